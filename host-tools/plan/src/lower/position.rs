//! Positions that are checked.

use arenite::Step;
use arenite::ops::position::Position;

use super::context::{Lower, fit, input, output};
use crate::error::Result;
use crate::graph::Node;
use crate::program::Place;

/// Lowers the check of a position against the lines that are written.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, capacity: usize) -> Result<()> {
    let (position, lines, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let step = Position {
        output: Place::Tensor(y, 0),
        input: lower.place(position)?,
        lines: lower.place(lines)?,
        capacity: fit(capacity, "the capacity")?,
    };
    lower.push(node, "position", Step::Position(step), 0);
    Ok(())
}
