//! Poolings.

use arenite::ops::pool2d::{PoolF32, PoolInt};
use arenite::{DType, Step};

use super::context::{Lower, input, output, want_f32};
use super::numbers::{clamp_int, per_tensor};
use super::select;
use super::windows::window;
use crate::error::Result;
use crate::graph::{Node, PoolAttrs};
use crate::program::Place;

/// Lowers a max or average pooling.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, attrs: &PoolAttrs, max: bool) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let graph = lower.graph();
    let window = window(
        graph.tensor(x),
        graph.tensor(y),
        attrs.layout,
        attrs.kernel,
        attrs.stride,
        [1, 1],
        attrs.padding,
    )?;
    let dtype = graph.tensor(x).dtype;
    if dtype != DType::F32 {
        let clamp = clamp_int(attrs.activation, per_tensor(graph.tensor(y))?, dtype)?;
        let op = PoolInt {
            output: Place::Tensor(y, 0),
            input: lower.place(x)?,
            dtype,
            window,
            clamp: clamp.map(|c| c as i16),
        };
        let kind = if max { "max_pool2d" } else { "avg_pool2d" };
        let step = select::pool_int(&lower.program, op, max)?;
        lower.push(node, kind, step, 0);
        return Ok(());
    }
    want_f32(graph, node)?;
    let op = PoolF32 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        window,
        count_include_pad: attrs.count_include_pad,
        clamp: attrs.activation.bounds(),
    };
    let (step, kind) = if max {
        (Step::MaxPoolF32(op), "max_pool2d")
    } else {
        (Step::AvgPoolF32(op), "avg_pool2d")
    };
    lower.push(node, kind, step, 0);
    Ok(())
}
