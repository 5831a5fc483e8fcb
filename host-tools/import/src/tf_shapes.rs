//! TensorFlow 1's step profile: one row a node with the shapes of its inputs and its output, sorted by name.
//!
//! Edges, strides and paddings are not stated. [`edges`] finds the edges from name scopes, control edges and shapes, [`windows`] the
//! windows from the shapes on both sides. The rows of the layout optimiser are bookkeeping: where two operators differ in layout,
//! the graph transposes.

mod build;
mod edges;
mod rows;
mod windows;

use std::path::Path;

use super::assume::Assumptions;
use super::build as shared;
use super::imported::{ImportOptions, Imported};
use crate::error::Result;

/// Some row among the first says: a name, parenthesised shapes, a device, a number.
pub(super) fn recognises(content: &[u8]) -> bool {
    let head = content.get(..64 << 10).unwrap_or(content);
    let head = String::from_utf8_lossy(head);
    let is_row = |line: &str| {
        let fields: Vec<_> = line.trim_end().split(", ").collect();
        let [name, middle @ .., device, number] = fields.as_slice() else {
            return false;
        };
        let is_middle = |field: &&str| (field.starts_with('(') && field.ends_with(')')) || field.starts_with('^');
        !name.is_empty()
            && !name.contains(' ')
            && middle.len() >= 2
            && middle.iter().all(is_middle)
            && device.bytes().all(|b| b.is_ascii_alphanumeric() || b":/_".contains(&b))
            && number.parse::<u64>().is_ok()
    };
    head.lines().take(20).filter(|line| is_row(line)).count() >= 2
}

/// Reads a profile.
pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let trace = rows::Trace::parse(shared::text(content)?)?;
    let name = shared::stem(path);
    let mut assumptions = Assumptions::new(options);
    let edges = edges::find(&trace, &mut assumptions)?;
    let windows = windows::find(&trace, &edges, &mut assumptions)?;
    let lrn = windows::lrn(&trace, &mut assumptions)?;
    // At the traced batch first, so that every stated shape is checked, and then at the batch asked for.
    let plan = build::Plan {
        trace: &trace,
        edges: &edges,
        windows: &windows,
        lrn,
    };
    let traced = plan.batch()?;
    let mut graph = plan.build(&name, None)?;
    let batch = options.batch.unwrap_or(1).max(1);
    if traced != batch {
        graph = plan.build(&name, Some(batch))?;
    }
    if let Some(&input) = graph.inputs.first() {
        shared::check_input_shape(options.input_shape.as_deref(), &graph.tensor(input).shape)?;
    }
    Ok(Imported {
        graph,
        assumptions: assumptions.finish()?,
        warnings: trace.warnings(),
        ..Imported::default()
    })
}
