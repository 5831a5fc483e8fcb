//! An intact model file as tools look at it.

use std::path::Path;

use arenite::{Declaration, Fault, Header, KernelId, LoadError, Port, Sections, Step};

use crate::error::{Error, ErrorKind, Result};
use crate::metadata::Metadata;
use crate::report::Summary;

/// A file as tools look at it: ports and steps as values.
pub struct ModelView<'a> {
    path: &'a Path,
    /// All of the file.
    bytes: &'a [u8],
    sections: Sections<'a>,
    /// Whether its steps are those of training.
    of_training: bool,
    weights: &'a [u8],
    /// The inputs.
    pub inputs: Vec<Port<'a>>,
    /// The outputs.
    pub outputs: Vec<Port<'a>>,
}

impl<'a> ModelView<'a> {
    pub(super) fn of(sections: Sections<'a>, bytes: &'a [u8], path: &'a Path) -> Result<Self> {
        let [inputs, outputs] = [sections.header().inputs, sections.header().outputs].map(u32::from);
        let wrong = |port| load_error(LoadError::Port { port });
        let input = |i: u32| sections.input(i as usize).ok_or_else(|| wrong(i));
        let output = |i: u32| sections.output(i as usize).ok_or_else(|| wrong(inputs + i));
        let at = sections.header().weights;
        let weights = bytes
            .get(at.offset as usize..)
            .and_then(|rest| rest.get(..at.len as usize));
        Ok(Self {
            path,
            bytes,
            of_training: false,
            // Those of a file that is read in pieces may be left out.
            weights: weights.unwrap_or(&[]),
            inputs: (0..inputs).map(input).collect::<Result<_>>()?,
            outputs: (0..outputs).map(output).collect::<Result<_>>()?,
            sections,
        })
    }

    /// The same file with the steps, inputs and outputs of training; `None` for a file without.
    ///
    /// # Errors
    /// As [`super::ModelFile::view`].
    pub fn training(&self) -> Result<Option<Self>> {
        let of = |sections| Self::of(sections, self.bytes, self.path).map_err(|e| e.in_file(self.path));
        let view = self.sections.training().map(of).transpose()?;
        Ok(view.map(|view| Self {
            of_training: true,
            ..view
        }))
    }

    /// The header.
    pub fn header(&self) -> Header {
        self.sections.header()
    }

    /// The bytes of a section.
    pub fn section(&self, at: arenite::blob::Section) -> &'a [u8] {
        let from = self.bytes.get(at.offset as usize..);
        from.and_then(|bytes| bytes.get(..at.len as usize)).unwrap_or_default()
    }

    /// The name of the target that the file states.
    pub fn target_name(&self) -> &'static str {
        self.sections.target_name()
    }

    /// The state's value after a reset.
    pub fn state_init(&self) -> arenite::StateInit<'a> {
        self.sections.state_init()
    }

    /// How many cores the file is for, and a byte for each step; `None` for one.
    pub fn cores(&self) -> Option<(u8, &'a [u8])> {
        self.sections.cores()
    }

    /// Refuses a file that rolls, for a command that looks at tensors or times of single steps.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`].
    pub fn refuse_rolling(&self, command: &str) -> Result<()> {
        if self.header().rolling.len == 0 {
            return Ok(());
        }
        Err(Error::unsupported(format!("{command} of a model that rolls"))
            .in_file(self.path)
            .expected("a model whose steps run once each")
            .help("its first steps run once for each row, and their tensors are never whole: pack it without --stream-input for this"))
    }

    /// The accelerator that the file is for, and a byte for each step, 1 for those that it has; `None` for a file that needs none.
    pub fn accelerator(&self) -> Option<(Declaration, &'a [u8])> {
        self.sections.accelerator()
    }

    /// The weights.
    pub fn weights(&self) -> &'a [u8] {
        self.weights
    }

    /// The steps, decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] naming the step.
    pub fn steps(&self) -> Result<Vec<Step>> {
        let decode = |(step, record): (u32, Option<(u8, &[u8])>)| {
            let wrong = |fault| load_error(LoadError::Step { step, fault });
            let (kernel, params) = record.ok_or_else(|| wrong(Fault::Encoding))?;
            let id = KernelId::from_u8(kernel).ok_or_else(|| load_error(LoadError::UnknownKernel { step, kernel }))?;
            Step::decode(id, params).map_err(wrong)
        };
        let numbered = (self.sections.first_step()..).zip(self.sections.steps());
        let steps: Vec<Step> = numbered.map(decode).collect::<Result<_>>()?;
        if steps.len() == self.header().step_count as usize {
            Ok(steps)
        } else {
            Err(load_error(LoadError::Header))
        }
    }

    /// The metadata, with the class labels.
    ///
    /// # Errors
    /// As [`Metadata::decode`]; labels that do not decode.
    pub fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::decode(self.sections.metadata()).map_err(|e| e.in_file(self.path))?;
        let labels = self.sections.labels();
        if !labels.is_empty() {
            metadata.labels = postcard::from_bytes(labels).map_err(|_| self.unread("the class labels"))?;
        }
        if self.of_training {
            return metadata
                .of_training()
                .ok_or_else(|| self.unread("what is said of training"));
        }
        Ok(metadata)
    }

    fn unread(&self, what: &str) -> Error {
        Error::input(format!("{what} in it cannot be read"))
            .in_file(self.path)
            .expected("what this version of the tools writes")
            .help("pack the model again")
    }

    /// The summary that was printed when the model was packed, with the sizes of the file itself.
    ///
    /// # Errors
    /// As [`Metadata::decode`].
    pub fn summary(&self) -> Result<Summary> {
        let mut summary: Summary =
            serde_json::from_str(&self.metadata()?.summary).map_err(|_| self.unread("the summary"))?;
        summary.dead_channels.get_or_insert_default();
        summary.model_bytes = u64::from(self.header().total);
        summary.weights_bytes = u64::from(self.header().weights.len);
        summary.plan_bytes = u64::from(self.header().ports.len) + u64::from(self.header().steps.len);
        Ok(summary)
    }
}

/// The runtime's reason why a file does not load, with its remedy.
pub(super) fn load_error(error: LoadError) -> Error {
    let kind = match error {
        LoadError::Kernel { .. } => ErrorKind::Unsupported,
        _ => ErrorKind::Input,
    };
    let help = match error {
        LoadError::Version { found, supported } if found > supported => {
            "these tools are older than those that packed it: update them, or pack the network with these"
        }
        LoadError::Version { .. } => "arenite migrate MODEL -o MODEL",
        LoadError::Kernel { .. } => "run it on a board of its target, or pack it with --target portable",
        _ => "the file is damaged or no model: pack it again",
    };
    Error::new(kind, error.to_string()).help(help)
}
