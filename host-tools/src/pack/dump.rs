//! `--dump-after`: the text of one stage, kept as the network passes it.

use super::options::Options;
use crate::describe::dump;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::memory::Placed;
use crate::program::Program;
use crate::stage::Stage;

/// Which stage is wanted as text, and the text once it has passed.
#[derive(Debug, Default)]
pub struct Dump {
    wanted: Option<Stage>,
    /// The text.
    pub text: Option<String>,
}

impl Dump {
    /// Keeps the text of the stage that the options want.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Usage`] for a stage that the network does not pass.
    pub fn of(options: &Options) -> Result<Self> {
        let wanted = options.dump_after;
        if wanted == Some(Stage::Quantize) && options.quantize.is_none() {
            let message = "--dump-after quantize: nothing is quantised";
            return Err(Error::new(ErrorKind::Usage, message)
                .help("pass --dtype int8 and --calibrate, or --dump-after fuse, the stage before it"));
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
