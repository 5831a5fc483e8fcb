//! [`super::loops`] of operators of sequences: attention over all lines that a state holds, lines and rows by index, rows that are summed up.

use arenite::Step;

use super::counts::{Counts, block};
use super::loops_single::{eights, grid, lines};

/// The counts of such a step; `None` of others.
pub(super) fn counts(step: &Step) -> Option<[Counts; 3]> {
    Some(match step {
        Step::AttentionF32(op) => {
            let [heads, width] = [op.heads, op.width].map(f64::from);
            let [_, eights, left] = eights("width", op.width);
            let blocks = block(width, 8.0);
            grid(
                &[("heads", heads)],
                &[("lines", op.capacity.into())],
                &[("width", width), ("blocks", blocks), eights, left],
            )
        }
        Step::WriteLine(op) => {
            let [outer, _, inner] = op.shape.map(f64::from);
            grid(&[("outer", outer)], &[], &lines("row", inner))
        }
        Step::Embedding(op) => grid(&[("indices", op.count.into())], &[], &lines("row", op.width.into())),
        Step::EmbeddingW8(op) => {
            let parts = f64::from(op.width.div_ceil(op.share.max(1)));
            let mut row = lines("row", op.width.into()).to_vec();
            row.push(("parts", parts));
            grid(&[("indices", op.count.into())], &[], &row)
        }
        Step::RmsNormF32(op) => grid(&[("rows", op.rows.into())], &[], &eights("channels", op.channels)),
        Step::RotaryF32(op) => grid(&[("rows", op.rows.into())], &[], &[("pairs", f64::from(op.width / 2))]),
        Step::GlobalAvgPoolS8(op) => {
            let [rows, columns, channels] = op.extents.map(f64::from);
            grid(&[("pixels", rows * columns)], &[("channels", channels)], &[])
        }
        Step::Position(_) => grid(&[], &[], &[]),
        _ => return None,
    })
}
