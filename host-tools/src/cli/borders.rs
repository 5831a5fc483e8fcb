//! `--signature`, `--set`, `--from`, `--until`, `--state`, `--context` and `--tokenizer`: which network of a file is packed, which part of it, what it
//! keeps from run to run, and how it reads text.

use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::import::ImportOptions;
use crate::pack::Options;

/// As clap reads them.
#[derive(clap::Args, Debug, Default)]
pub(super) struct BorderOptions {
    /// An input gets this value, a number or numbers separated by commas, and is no longer an input; repeatable.
    #[arg(long, value_name = "INPUT=VALUE")]
    set: Vec<String>,
    /// The network begins with this tensor, as an input; repeatable.
    #[arg(long, value_name = "TENSOR")]
    from: Vec<String>,
    /// The network ends with this tensor, as an output; repeatable.
    #[arg(long, value_name = "TENSOR")]
    until: Vec<String>,
    /// An input that this tensor of the run before becomes, zero before the first one; it is no longer an input; repeatable.
    #[arg(long, value_name = "IN=OUT")]
    state: Vec<String>,
    /// The network of this name in a .tflite file of several; repeatable: then a bundle of these.
    #[arg(long, value_name = "NAME")]
    signature: Vec<String>,
    /// Positions of a language model's cache of keys and values: as many as it was trained for by default.
    #[arg(long, value_name = "N")]
    context: Option<usize>,
    /// The tokenizer of a language model, as llama2.c has it: it becomes a section of the file.
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
}

impl BorderOptions {
    /// The tokenizer's file.
    pub(super) fn tokenizer(&self) -> Option<&PathBuf> {
        self.tokenizer.as_ref()
    }

    /// Whether none is given.
    pub(super) fn is_empty(&self) -> bool {
        self.part().is_none() && self.signature.is_empty()
    }

    /// An option that names a part of the network, if one is given.
    pub(super) fn part(&self) -> Option<&'static str> {
        let given = [
            ("--set", !self.set.is_empty()),
            ("--from", !self.from.is_empty()),
            ("--until", !self.until.is_empty()),
            ("--state", !self.state.is_empty()),
            ("--context", self.context.is_some()),
            ("--tokenizer", self.tokenizer.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// The signatures, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for one that is given twice.
    pub(super) fn signatures(&self) -> Result<&[String]> {
        let mut names = self.signature.iter().enumerate();
        match names.find(|(index, name)| self.signature[..*index].contains(name)) {
            None => Ok(&self.signature),
            Some((_, name)) => Err(
                Error::new(ErrorKind::Usage, format!("--signature {name} is given twice")).expected("each name once"),
            ),
        }
    }

    /// Refuses what several signatures, which make a bundle, cannot share, and a file that cannot be read for each of them. `own` are options that are of one
    /// network, with whether they are given.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`], naming the option.
    pub(super) fn check_several(&self, inputs: &[PathBuf], own: [(&str, bool); 4]) -> Result<()> {
        if self.signatures()?.len() < 2 {
            return Ok(());
        }
        let usage = |message: String| Error::new(ErrorKind::Usage, message);
        let given = own.iter().find(|(_, given)| *given).map(|(option, _)| *option);
        if let Some(option) = given.or(self.part()) {
            return Err(usage(format!("{option} with several signatures"))
                .expected("one signature")
                .help("pack each signature by itself with options of its own"));
        }
        if inputs.iter().any(|input| !input.is_file()) {
            return Err(usage("several signatures of what is no file".into())
                .expected("a .tflite file, which is read for each")
                .help("write it to a file first"));
        }
        Ok(())
    }

    /// The networks with several signatures one for each, named after it.
    pub(super) fn each(&self, networks: Vec<Options>) -> Vec<Options> {
        if self.signature.len() < 2 {
            return networks;
        }
        let of = |network: &Options| {
            let one = |signature: &String| {
                let mut network = network.clone();
                network.import.signature = Some(signature.clone());
                network.name = Some(signature.clone());
                network
            };
            self.signature.iter().map(one).collect::<Vec<_>>()
        };
        networks.iter().flat_map(of).collect()
    }

    /// `options` with these; of several signatures the first.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for `--set` without a value, and for a signature that is given twice.
    pub(super) fn added_to(&self, options: ImportOptions) -> Result<ImportOptions> {
        // Names of tensors may hold the sign; values do not.
        let set = self.set.iter().map(|text| match text.rsplit_once('=') {
            Some((name, value)) => Ok((name.to_string(), value.to_string())),
            None => Err(Error::new(ErrorKind::Usage, format!("--set {text}")).expected("INPUT=VALUE")),
        });
        Ok(ImportOptions {
            set: set.collect::<Result<_>>()?,
            from: self.from.clone(),
            until: self.until.clone(),
            state: self.state.clone(),
            context: self.context,
            tokenizer: self.tokenizer.clone(),
            signature: self.signatures()?.first().cloned(),
            ..options
        })
    }
}
