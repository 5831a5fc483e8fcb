//! Comparisons, choices between two operands, and slices at computed indices.

use arenite::ops::choose::Choose;
use arenite::ops::compare::{Compare, Comparison};
use arenite::ops::gather::Gather;
use arenite::quant::Multiplier;
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output};
use super::loops::loops;
use super::numbers::{below_one, per_tensor};
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Left shift of int8 numbers before they are compared.
const SHIFT: u8 = 8;

/// Lowers a comparison or a logical operator.
pub(super) fn lower_compare(lower: &mut Lower<'_>, node: &Node, op: Comparison) -> Result<()> {
    let (a, b, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let places = [lower.place(a)?, lower.place(b)?];
    let [ta, tb, ty] = [a, b, y].map(|id| lower.graph().tensor(id));
    if ta.dtype != tb.dtype || !matches!(ta.dtype, DType::F32 | DType::I8 | DType::I32 | DType::Bool) {
        let text = format!("operands of {} and {}", ta.dtype.name(), tb.dtype.name());
        return Err(Error::unsupported(text).expected("two of f32, int8, int32 or bool"));
    }
    let mut step = Compare {
        output: Place::Tensor(y, 0),
        a: places[0],
        b: places[1],
        loops: loops(&ty.shape, &ta.shape, &tb.shape)?,
        dtype: ta.dtype,
        op,
        zero: [0; 2],
        shift: 0,
        multipliers: [Multiplier::ONE; 2],
    };
    if ta.dtype == DType::I8 {
        let (qa, qb) = (per_tensor(ta)?, per_tensor(tb)?);
        step.zero = [qa.1, qb.1];
        step.shift = SHIFT;
        step.multipliers = [below_one(qa.0.into())?, below_one(qb.0.into())?];
    }
    let name = match op {
        Comparison::Equal => "equal",
        Comparison::NotEqual => "not_equal",
        Comparison::Less => "less",
        Comparison::LessOrEqual => "less_or_equal",
        Comparison::And => "and",
        Comparison::Or => "or",
    };
    lower.push(node, name, Step::Compare(step), 0);
    Ok(())
}

/// Lowers a choice between two operands.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (condition, a, b, y) = (input(node, 0)?, input(node, 1)?, input(node, 2)?, output(node)?);
    let places = [lower.place(condition)?, lower.place(a)?, lower.place(b)?];
    let [tc, ta, tb, ty] = [condition, a, b, y].map(|id| lower.graph().tensor(id));
    if tc.dtype != DType::Bool || ta.dtype != tb.dtype {
        let text = format!(
            "a choice by {} between {} and {}",
            tc.dtype.name(),
            ta.dtype.name(),
            tb.dtype.name()
        );
        return Err(Error::unsupported(text).expected("a choice by bool between two of one type"));
    }
    let step = Choose {
        output: Place::Tensor(y, 0),
        condition: places[0],
        a: places[1],
        b: places[2],
        element: ta.dtype.bytes() as u8,
        loops: loops(&ty.shape, &ta.shape, &tb.shape)?,
    };
    lower.push(node, "choose", Step::Choose(step), 0);
    Ok(())
}

/// Lowers slices along `axis` at indices that are computed.
pub(super) fn lower_gather(lower: &mut Lower<'_>, node: &Node, axis: usize) -> Result<()> {
    let (x, indices, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let places = [lower.place(x)?, lower.place(indices)?];
    let (tx, ti) = (lower.graph().tensor(x), lower.graph().tensor(indices));
    if ti.dtype != DType::I32 {
        return Err(Error::unsupported(format!("computed indices of {}", ti.dtype.name()))
            .expected("int32")
            .help("cast the indices to int32 in the model"));
    }
    let extent = |axes: &[usize]| fit(axes.iter().product(), "an extent");
    let step = Gather {
        output: Place::Tensor(y, 0),
        input: places[0],
        indices: places[1],
        element: tx.dtype.bytes() as u8,
        shape: [
            extent(&tx.shape[..axis])?,
            extent(&tx.shape[axis..=axis])?,
            extent(&tx.shape[axis + 1..])?,
        ],
        count: fit(ti.elements(), "the number of indices")?,
    };
    lower.push(node, "gather", Step::Gather(step), 0);
    Ok(())
}
