//! MegEngine's profiler dump: every operator with its edges, shapes and parameters, but no weights.
//!
//! `graph_exec` holds operators, variables and the order, `profiler.opr_footprint` the parameters and shapes of each operator. Facts
//! that are stated twice (shapes, memory, computation) are checked against what the operators infer; times and addresses are not read.

mod attributes;
mod build;
mod dump;
mod integers;
mod work;

use std::collections::BTreeMap;
use std::path::Path;

use self::dump::{CONSTANT, Dump};
use super::assume::Assumptions;
use super::build as shared;
use super::imported::{ImportOptions, Imported};
use crate::error::Result;

/// The content is a JSON object with the profiler's two top-level names.
pub(super) fn recognises(content: &[u8]) -> bool {
    shared::is_json_object(content) && shared::contains(content, b"\"graph_exec\"")
}

/// Reads a dump.
pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let dump = Dump::parse(shared::text(content)?)?;
    let name = shared::stem(path);
    let images = dump.image_shapes()?;
    let batch = options.batch.unwrap_or(1).max(1);
    // Built at the traced batch first, so that everything the trace states is checked, and then at the batch asked for.
    let mut assumptions = Assumptions::new(options);
    let mut built = build::build(&dump, &name, &images, None, &mut assumptions)?;
    if built.batch != batch {
        assumptions = Assumptions::new(options);
        built = build::build(&dump, &name, &images, Some((built.batch, batch)), &mut assumptions)?;
    }
    if let Some(&input) = built.graph.inputs.first() {
        shared::check_input_shape(options.input_shape.as_deref(), &built.graph.tensor(input).shape)?;
    }
    let constants = dump.operators.iter().filter(|o| o.kind == CONSTANT).count();
    Ok(Imported {
        graph: built.graph,
        assumptions: assumptions.finish()?,
        warnings: built.warnings,
        constants: match constants {
            0 => BTreeMap::new(),
            n => BTreeMap::from([(CONSTANT.to_string(), n)]),
        },
        ..Imported::default()
    })
}
