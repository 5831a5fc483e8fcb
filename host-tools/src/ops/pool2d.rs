//! Poolings.

use arenite::ops::pool2d::PoolF32;
use arenite::{Slot, Step};

use super::conv2d::window;
use super::{clamp, input, output, want_f32};
use crate::error::Result;
use crate::graph::{Node, PoolAttrs};
use crate::program::{Lower, Place};

/// Lowers a max or average pooling.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, attrs: &PoolAttrs, max: bool) -> Result<()> {
    want_f32(lower.graph(), node)?;
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
    let op = PoolF32 {
        output: Slot::default(),
        input: Slot::default(),
        window,
        count_include_pad: attrs.count_include_pad,
        clamp: clamp(attrs.activation),
    };
    let places = vec![Place::Tensor(y, 0), lower.place(x)?];
    let (step, kind) = match max {
        true => (Step::MaxPoolF32(op), "max_pool2d"),
        false => (Step::AvgPoolF32(op), "avg_pool2d"),
    };
    lower.push(node, kind, step, places, 0);
    Ok(())
}
