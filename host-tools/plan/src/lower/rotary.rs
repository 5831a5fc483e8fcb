//! Rotary positions.

use arenite::Step;
use arenite::ops::rotary::RotaryF32;

use super::context::{Lower, fit, input, output};
use crate::error::{Error, Result};
use crate::graph::{DType, Node};
use crate::program::Place;

/// Lowers rotations of f32.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, interleaved: bool) -> Result<()> {
    let [x, cosines, sines, position] = [0, 1, 2, 3].map(|index| input(node, index));
    let (x, cosines, sines, position, y) = (x?, cosines?, sines?, position?, output(node)?);
    let [of_x, of_cosines, of_sines, of_position] = [x, cosines, sines, position].map(|id| lower.place(id));
    let (tx, tc) = (lower.graph().tensor(x), lower.graph().tensor(cosines));
    if tx.dtype != DType::F32 {
        return Err(Error::internal(format!("rotary positions of {}", tx.dtype.name())));
    }
    let step = RotaryF32 {
        output: Place::Tensor(y, 0),
        input: of_x?,
        position: of_position?,
        cosines: of_cosines?,
        sines: of_sines?,
        rows: fit(tx.shape[0], "the number of heads")?,
        width: fit(tx.shape[1], "the width of a head")?,
        positions: fit(tc.shape[0], "the number of positions")?,
        interleaved,
    };
    lower.push(node, "rotary", Step::RotaryF32(step), 0);
    Ok(())
}
