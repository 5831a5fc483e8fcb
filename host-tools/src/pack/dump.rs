//! `--dump-after`: the text of one stage, kept as the network passes it.

use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::memory::Placed;
use crate::program::Program;
use crate::report::dump;
use crate::stage::Stage;

/// Which stage is wanted as text, and the text once it has passed.
#[derive(Debug, Default)]
pub struct Dump {
    wanted: Option<Stage>,
    /// The text.
    pub text: Option<String>,
}

impl Dump {
    /// Keeps the text of `wanted`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unsupported`] for a stage that is not built yet.
    pub fn of(wanted: Option<Stage>) -> Result<Self> {
        if wanted == Some(Stage::Quantize) {
            return Err(Error::unsupported("--dump-after quantize is not built yet")
                .help("nothing is quantised: the stage before it is fuse, the one behind it schedule"));
        }
        Ok(Self { wanted, text: None })
    }

    /// A graph has passed `stage`.
    pub fn graph(&mut self, stage: Stage, graph: &Graph) {
        if self.wanted == Some(stage) {
            self.text = Some(dump::graph(graph));
        }
    }

    /// A program has passed `stage`; it has places once it is planned.
    pub fn program(&mut self, stage: Stage, program: &Program, placed: Option<&Placed>) {
        if self.wanted == Some(stage) {
            self.text = Some(dump::program(program, placed));
        }
    }
}
