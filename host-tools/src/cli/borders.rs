//! `--set`, `--from` and `--until`: which part of a network is packed.

use crate::error::{Error, ErrorKind, Result};
use crate::import::ImportOptions;

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
}

impl BorderOptions {
    /// Whether none is given.
    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.from.is_empty() && self.until.is_empty()
    }

    /// `options` with these.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for `--set` without a value.
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
            ..options
        })
    }
}
