//! Slices.

use super::context::{Lower, fit, input, output};
use super::copies::{copy, strides};
use crate::error::{Error, Result};
use crate::graph::{Node, TensorKind};

/// A slice; one that is contiguous in its input is a view.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, begin: &[usize], stride: &[isize]) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (source, result) = (lower.graph().tensor(x), lower.graph().tensor(y));
    if begin.len() != source.shape.len() || stride.len() != source.shape.len() {
        return Err(Error::input(format!(
            "a slice of {} axes of {:?}",
            begin.len(),
            source.shape
        )));
    }
    // The output may have lost axes of extent 1: the elements are in the same order.
    let mut extents = Vec::new();
    let mut left = result.shape.iter().copied().filter(|&n| n != 1).peekable();
    for axis in 0..source.shape.len() {
        let room = match stride[axis] {
            s if s > 0 => (source.shape[axis].saturating_sub(begin[axis])).div_ceil(s.unsigned_abs()),
            s if s < 0 => begin[axis] / s.unsigned_abs() + 1,
            _ => return Err(Error::input("a slice with stride 0")),
        };
        let kept = result.shape.len() == source.shape.len();
        let extent = if kept {
            result.shape[axis]
        } else {
            left.next_if(|&n| n <= room).unwrap_or(1)
        };
        if extent > room {
            return Err(Error::input(format!(
                "a slice of {extent} along axis {axis} of {:?} from {}",
                source.shape, begin[axis]
            )));
        }
        extents.push(extent);
    }
    let from_strides = strides(source);
    let from: usize = begin.iter().zip(&from_strides).map(|(b, s)| b * s).sum();
    let mut to = 1;
    let mut axes: Vec<(usize, usize, isize)> = Vec::new();
    for axis in (0..extents.len()).rev() {
        axes.push((extents[axis], to, from_strides[axis] as isize * stride[axis]));
        to *= extents[axis];
    }
    axes.reverse();
    let contiguous = axes.iter().all(|&(n, to, from)| n == 1 || to as isize == from);
    let element = source.dtype.bytes();
    let is_output = lower.graph().outputs.contains(&y);
    if contiguous && matches!(source.kind, TensorKind::Activation | TensorKind::Input) && !is_output {
        lower.view(y, x, fit(from * element, "the offset")?);
        return Ok(());
    }
    copy(lower, node, "slice", (x, from), (y, 0), &axes)
}
