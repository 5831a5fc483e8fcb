//! A graph as a file of portable kernels that is gone with what is returned: what the host computes a network with, to compare or to measure.

use std::path::Path;

use arenite::Target;

use crate::emit;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::lower::{self, Preferences};
use crate::memory::{self, Placed, Region, Request};
use crate::metadata::Metadata;
use crate::model::ModelFile;
use crate::program::Program;
use crate::stage::unwatched;
use crate::weights::Weights;

/// A network of portable kernels, every tensor in a place of its own while it is needed.
pub(crate) struct Portable {
    /// The file.
    pub(crate) file: ModelFile,
    /// Its steps.
    pub(crate) program: Program,
    /// Where their operands lie.
    pub(crate) placed: Placed,
}

impl Portable {
    /// A network behind all passes.
    ///
    /// # Errors
    /// What no kernel computes.
    pub(crate) fn of(graph: Graph, weights: &Weights) -> Result<Self> {
        let preferences = Preferences {
            target: Target::Portable,
            size: false,
            share: false,
            spend: None,
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
        let file = tempfile::tempfile().map_err(io)?;
        let owners = emit::Owners::new(&program);
        let steps = emit::step_metadata(&program, &placed, &owners)?;
        let metadata = Metadata {
            cut: emit::cut_steps(&program, &steps),
            steps,
            ports: owners.ports,
            tensors: owners.names,
            ..Metadata::default()
        };
        emit::emit(&program, &placed, &metadata, &[], weights, &file, &mut |_, _| {})?;
        let file = ModelFile::of(&file, place).map_err(io)?;
        Ok(Self { file, program, placed })
    }
}
