//! Rows of a table at indices that a run is given.

use arenite::Step;
use arenite::ops::embedding::{Embedding, EmbeddingW8};

use super::context::{Lower, fit, input, output};
use super::low_bit::{packed, rounded};
use crate::error::{Error, Result};
use crate::graph::{DType, Node};
use crate::program::Place;

/// Lowers rows of any type, and f32 ones that are stored in eight bits. A classifier of the same table has the same bytes.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (indices, table, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let (ti, tt) = (lower.graph().tensor(indices), lower.graph().tensor(table));
    if ti.dtype != DType::I32 {
        return Err(Error::internal(format!("indices of {}", ti.dtype.name())));
    }
    let (count, width) = (ti.elements(), tt.shape[1]);
    if let Some(&bits) = lower.graph().low_bits.get(&node.name) {
        if bits.bits != 8 {
            return Err(Error::internal(format!("a table of {} bits", bits.bits)));
        }
        let rows = tt.shape[0];
        let found = rounded(&lower.values(table)?, width, bits);
        let step = EmbeddingW8 {
            output: Place::Tensor(y, 0),
            indices: lower.place(indices)?,
            table: lower.program.weights.add_bytes(packed(&found.numbers, width, 8))?,
            scales: lower.program.weights.add_f32(&found.scales)?,
            count: fit(count, "the number of indices")?,
            rows: fit(rows, "the number of rows")?,
            width: fit(width, "the width of a row")?,
            share: fit(bits.share(width), "the number of weights that share a scale")?,
        };
        lower.push(node, "embedding", Step::EmbeddingW8(step), 0);
        return Ok(());
    }
    let places = [lower.place(indices)?, lower.place(table)?];
    let tt = lower.graph().tensor(table);
    let step = Embedding {
        output: Place::Tensor(y, 0),
        indices: places[0],
        table: places[1],
        element: tt.dtype.bytes() as u8,
        count: fit(count, "the number of indices")?,
        rows: fit(tt.shape[0], "the number of rows")?,
        width: fit(tt.shape[1], "the width of a row")?,
    };
    lower.push(node, "embedding", Step::Embedding(step), 0);
    Ok(())
}
