//! Operations of two integer operands that fewer networks use.

use arenite::ops::special_int::{SpecialInt, SpecialIntOp};
use arenite::quant::Multiplier;
use arenite::{DType, Step};

use super::context::{Lower, input, output};
use super::loops::loops;
use super::numbers::{below_one, clamp_int, factor, limits, per_tensor};
use crate::error::{Error, Result};
use crate::graph::{Activation, Node};
use crate::program::Place;

/// Left shift of the operands of a difference: 255^2 shifted twice stays within 31 bits.
const SHIFT: u8 = 7;

/// Lowers such an operation.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, op: SpecialIntOp, activation: Activation) -> Result<()> {
    let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let places = [lower.place(a)?, lower.place(b)?];
    let [ta, tb, ty] = [a, b, y].map(|id| lower.graph().tensor(id));
    let dtype = ty.dtype;
    if [ta.dtype, tb.dtype] != [dtype; 2] {
        return Err(
            Error::unsupported(format!("operands of {} and {}", ta.dtype.name(), tb.dtype.name()))
                .expected(format!("{} as the result", dtype.name())),
        );
    }
    let mut step = SpecialInt {
        output: Place::Tensor(y, 0),
        a: places[0],
        b: places[1],
        loops: loops(&ty.shape, &ta.shape, &tb.shape)?,
        dtype,
        op,
        zero: [0; 3],
        shift: 0,
        multipliers: [Multiplier::ONE; 3],
        clamp: limits(dtype)?,
    };
    let quantised = matches!(op, SpecialIntOp::SquaredDifference | SpecialIntOp::Div) && dtype != DType::I32;
    if quantised {
        let (qa, qb, qy) = (per_tensor(ta)?, per_tensor(tb)?, per_tensor(ty)?);
        step.zero = [qa.1, qb.1, qy.1];
        step.clamp = clamp_int(activation, qy, dtype)?;
        if op == SpecialIntOp::Div {
            step.multipliers[2] = factor(f64::from(qa.0) / (f64::from(qb.0) * f64::from(qy.0)))?;
        } else {
            let (sa, sb, sy) = (f64::from(qa.0), f64::from(qb.0), f64::from(qy.0));
            step.shift = SHIFT;
            let common = 2.0 * sa.max(sb);
            let result = common * common / (f64::from(1 << (2 * SHIFT)) * sy);
            step.multipliers = [below_one(sa / common)?, below_one(sb / common)?, below_one(result)?];
        }
    }
    let name = match op {
        SpecialIntOp::SquaredDifference => "squared_difference",
        SpecialIntOp::Div => "div",
        SpecialIntOp::FloorDiv => "floor_div",
        SpecialIntOp::FloorMod => "floor_mod",
    };
    lower.push(node, name, Step::SpecialInt(step), 0);
    Ok(())
}
