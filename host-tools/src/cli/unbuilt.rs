//! What the contract has and these tools do not build yet: refused by name, never accepted and ignored.

use std::path::PathBuf;

use super::program::Verdict;
use crate::{Error, Result};

/// Options of `pack` that are not built yet. Whoever builds one moves it from here to `pack`'s own arguments.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct UnbuiltPackOptions {
    /// Element type of the packed network, where it is not the input's own.
    #[arg(long, value_name = "f32|int8|int16x8", hide = true)]
    dtype: Option<String>,
    /// Sample inputs for quantising.
    #[arg(long, value_name = "FILE", hide = true)]
    calibrate: Option<PathBuf>,
    /// A layer that stays in f32 when quantising.
    #[arg(long, value_name = "NAME", hide = true)]
    keep_f32: Vec<String>,
    /// Samples whose outputs go into the model.
    #[arg(long, value_name = "FILE", hide = true)]
    self_test: Option<PathBuf>,
    /// An ed25519 key.
    #[arg(long, value_name = "KEYFILE", hide = true)]
    sign: Option<PathBuf>,
    /// A page about the model.
    #[arg(long, value_name = "FILE.html", hide = true)]
    report: Option<PathBuf>,
}

impl UnbuiltPackOptions {
    /// Refuses the first of them that was given.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] naming the option and what to do instead.
    pub fn refuse(&self) -> Result<()> {
        let given = [
            (
                "--dtype",
                self.dtype.is_some(),
                "leave it out: the network keeps its own element type",
            ),
            (
                "--calibrate",
                self.calibrate.is_some(),
                "quantise in the training framework and pack its .tflite file",
            ),
            (
                "--keep-f32",
                !self.keep_f32.is_empty(),
                "leave it out: nothing is quantised",
            ),
            (
                "--self-test",
                self.self_test.is_some(),
                "samples in a trace.json are replayed when packing",
            ),
            (
                "--sign",
                self.sign.is_some(),
                "sign the file with your update system's own tool",
            ),
            (
                "--report",
                self.report.is_some(),
                "`arenite inspect --steps` prints the per-step table",
            ),
        ];
        match given.into_iter().find(|(_, given, _)| *given) {
            None => Ok(()),
            Some((name, _, instead)) => Err(Error::unsupported(format!("{name} is not built yet")).help(instead)),
        }
    }
}

/// Arguments of `arenite report`.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// The model file.
    model: PathBuf,
    /// The page to write.
    #[arg(short, long)]
    output: PathBuf,
}

impl ReportArgs {
    /// Refuses the command.
    pub(super) fn refuse(&self) -> Result<Verdict> {
        Err(Error::unsupported("arenite report is not built yet")
            .help("`arenite inspect --steps` prints the per-step table"))
    }
}
