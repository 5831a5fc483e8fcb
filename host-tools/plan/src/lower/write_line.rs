//! A line of a state at a position.

use arenite::Step;
use arenite::ops::write_line::WriteLine;

use super::context::{Lower, fit, input};
use crate::error::{Error, Result};
use crate::graph::Node;

/// Lowers the line of any type.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (state, line, position) = (input(node, 0)?, input(node, 1)?, input(node, 2)?);
    let places = [lower.place(state)?, lower.place(line)?, lower.place(position)?];
    let (ts, tl) = (lower.graph().tensor(state), lower.graph().tensor(line));
    let &[outer, capacity, inner] = ts.shape.as_slice() else {
        return Err(Error::internal(format!("a state of shape {:?}", ts.shape)));
    };
    if tl.elements() != outer * inner || tl.dtype != ts.dtype {
        return Err(Error::internal(format!(
            "a line of {}{:?} for a state of {}{:?}",
            tl.dtype.name(),
            tl.shape,
            ts.dtype.name(),
            ts.shape
        )));
    }
    let step = WriteLine {
        state: places[0],
        line: places[1],
        position: places[2],
        element: ts.dtype.bytes() as u8,
        shape: [
            fit(outer, "the number of heads")?,
            fit(capacity, "the capacity")?,
            fit(inner, "the width of a line")?,
        ],
    };
    lower.push(node, "write_line", Step::WriteLine(step), 0);
    Ok(())
}
