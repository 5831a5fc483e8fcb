//! Rows of a table at indices that a run is given.

use arenite::Step;
use arenite::ops::embedding::Embedding;

use super::context::{Lower, fit, input, output};
use crate::error::{Error, Result};
use crate::graph::{DType, Node};
use crate::program::Place;

/// Lowers rows of any type.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (indices, table, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let places = [lower.place(indices)?, lower.place(table)?];
    let (ti, tt) = (lower.graph().tensor(indices), lower.graph().tensor(table));
    if ti.dtype != DType::I32 {
        return Err(Error::unsupported(format!("indices of {}", ti.dtype.name())).expected("int32"));
    }
    let step = Embedding {
        output: Place::Tensor(y, 0),
        indices: places[0],
        table: places[1],
        element: tt.dtype.bytes() as u8,
        count: fit(ti.elements(), "the number of indices")?,
        rows: fit(tt.shape[0], "the number of rows")?,
        width: fit(tt.shape[1], "the width of a row")?,
    };
    lower.push(node, "embedding", Step::Embedding(step), 0);
    Ok(())
}
