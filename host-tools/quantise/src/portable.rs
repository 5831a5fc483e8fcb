//! A graph as a file for hosts that is gone with what is returned: what the host computes a network with, to compare or to measure. Its kernels give the same
//! bits on every host (`arenite::kernels::neon`).

use std::path::Path;

use arenite::Target;

use crate::emit;
use crate::error::{Error, Result};
use crate::files::system::unnamed;
use crate::graph::Graph;
use crate::lower::{self, Preferences};
use crate::memory::{self, Placed, Region, Request};
use crate::metadata::Metadata;
use crate::model::ModelFile;
use crate::program::Program;
use crate::stage::unwatched;
use crate::weights::Weights;

/// A network of kernels for hosts, every tensor in a place of its own while it is needed.
pub struct Portable {
    /// The file.
    pub file: ModelFile,
    /// Its steps.
    pub program: Program,
    /// Where their operands lie.
    pub(crate) placed: Placed,
}

impl Portable {
    /// A network behind all passes, of kernels for `target`: [`Target::Portable`], by which one network computes what another one does, or
    /// [`Target::X8664`], which takes a tenth of the time.
    ///
    /// # Errors
    /// Operators that no kernel computes.
    pub fn of(graph: Graph, weights: &Weights, target: Target) -> Result<Self> {
        let preferences = Preferences {
            target,
            size: false,
            share: false,
            spend: None,
            cost: |_, _, _| None,
            without: &[],
            paged: false,
            accelerator: None,
        };
        let program = lower::lower(graph, preferences, weights)?;
        let request = Request {
            regions: vec![Region {
                name: "arena".into(),
                size: None,
            }],
            in_place: false,
            nodes: 1,
            max_step: None,
        };
        let placed = memory::place(memory::bodies(&program, false), &request, &mut unwatched)?;
        let place = Path::new("a temporary file");
        let io = |e: std::io::Error| Error::io(place, "write a model to run here", &e);
        let file = unnamed().map_err(io)?;
        let owners = emit::Owners::new(&program);
        let steps = emit::step_metadata(&program, &placed, &owners)?;
        let metadata = Metadata {
            cut: emit::cut_steps(&program, &steps),
            steps,
            ports: owners.ports,
            tensors: owners.names,
            ..Metadata::default()
        };
        emit::emit(
            &program,
            &placed,
            None,
            (&metadata, &[]),
            weights,
            &file,
            &mut |_, _| {},
        )?;
        let file = ModelFile::of(&file, place).map_err(io)?;
        Ok(Self { file, program, placed })
    }
}
