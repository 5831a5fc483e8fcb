//! Operators that only move elements: each becomes a view, or strided copies.

use arenite::Step;
use arenite::ops::elementwise::MAX_LOOPS;
use arenite::ops::movement::{CopyLoop, CopyStrided};

use super::{fit, input, output};
use crate::error::{Error, Result};
use crate::graph::{Activation, Data, Node, Tensor, TensorId, TensorKind};
use crate::program::{Lower, Place};

/// `output` holds the same bytes as `input`: a view, unless either side is fixed from outside (a network input that is an output,
/// a constant, state), which takes a copy.
pub(super) fn alias(lower: &mut Lower<'_>, node: &Node, x: TensorId, y: TensorId) -> Result<()> {
    let graph = lower.graph();
    let free = matches!(graph.tensor(x).kind, TensorKind::Activation | TensorKind::Input);
    let interface = graph.outputs.contains(&y) && (graph.outputs.contains(&x) || graph.inputs.contains(&x));
    if free && !interface {
        lower.view(y, x, 0);
        return Ok(());
    }
    copy_all(lower, node, "copy", x, y)
}

/// All elements of `x` into `y`.
pub(super) fn copy_all(lower: &mut Lower<'_>, node: &Node, kind: &'static str, x: TensorId, y: TensorId) -> Result<()> {
    let count = lower.graph().tensor(x).elements();
    copy(lower, node, kind, (x, 0), (y, 0), &[(count, 1, 1)])
}

/// A transpose: output axis `i` is input axis `perm[i]`.
pub(super) fn lower_transpose(lower: &mut Lower<'_>, node: &Node, perm: &[usize]) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (from, to) = (strides(lower.graph().tensor(x)), strides(lower.graph().tensor(y)));
    let shape = lower.graph().tensor(y).shape.clone();
    let axes: Vec<_> = perm
        .iter()
        .enumerate()
        .map(|(i, &axis)| (shape[i], to[i], from[axis] as isize))
        .collect();
    copy(lower, node, "transpose", (x, 0), (y, 0), &axes)
}

/// A slice; one that is contiguous in its input is a view.
pub(super) fn lower_slice(lower: &mut Lower<'_>, node: &Node, begin: &[usize], stride: &[isize]) -> Result<()> {
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
        let extent = match kept {
            true => result.shape[axis],
            false => left.next_if(|&n| n <= room).unwrap_or(1),
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

/// A concatenation: each operand is placed inside the result where that is one run of bytes and the operand is free, and copied there
/// otherwise.
pub(super) fn lower_concat(lower: &mut Lower<'_>, node: &Node, axis: usize, activation: Activation) -> Result<()> {
    let y = output(node)?;
    if activation != Activation::None {
        return Err(
            Error::unsupported("a concatenation with a fused activation").help("apply the activation before it")
        );
    }
    let to = strides(lower.graph().tensor(y));
    let mut at = 0;
    for index in 0..node.inputs.len() {
        let x = input(node, index)?;
        let tensor = lower.graph().tensor(x);
        let (from, shape) = (strides(tensor), tensor.shape.clone());
        if tensor.quant != lower.graph().tensor(y).quant {
            return Err(Error::unsupported(format!(
                "a concatenation that rescales `{}`",
                tensor.name
            )));
        }
        let axes: Vec<_> = (0..shape.len()).map(|i| (shape[i], to[i], from[i] as isize)).collect();
        let offset = at * to[axis];
        let bytes = fit(offset * lower.graph().tensor(x).dtype.bytes(), "the offset")?;
        if !is_one_run(&axes) || !lower.place_inside(x, y, bytes) {
            copy(lower, node, "concat", (x, 0), (y, offset), &axes)?;
        }
        at += shape[axis];
    }
    Ok(())
}

/// A padding that nothing could fold: the value everywhere, then the operand in its place.
pub(super) fn lower_pad(lower: &mut Lower<'_>, node: &Node, pads: &[(usize, usize)], value: f32) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (source, result) = (lower.graph().tensor(x).clone(), lower.graph().tensor(y).clone());
    let bytes: Vec<u8> = match source.dtype {
        arenite::DType::F32 => value.to_le_bytes().to_vec(),
        arenite::DType::I8 => (value as i8).to_le_bytes().to_vec(),
        arenite::DType::U8 => (value as u8).to_le_bytes().to_vec(),
        arenite::DType::I16 => (value as i16).to_le_bytes().to_vec(),
        arenite::DType::I32 => (value as i32).to_le_bytes().to_vec(),
        dtype => return Err(Error::unsupported(format!("padding of {}", dtype.name()))),
    };
    let constant = lower.program.graph.add_tensor(Tensor {
        kind: TensorKind::Const(Data::Bytes(bytes.into())),
        ..Tensor::activation(format!("{}:value", node.name), &[1], source.dtype)
    });
    let (from, to) = (strides(&source), strides(&result));
    let start: usize = pads.iter().zip(&to).map(|((before, _), stride)| before * stride).sum();
    let axes: Vec<_> = (0..source.shape.len())
        .map(|i| (source.shape[i], to[i], from[i] as isize))
        .collect();
    let bytes = fit(start * source.dtype.bytes(), "the offset")?;
    if is_one_run(&axes) && lower.place_inside(x, y, bytes) {
        let end = start + source.elements();
        for (from, to) in [(0, start), (end, result.elements())] {
            if from < to {
                copy(lower, node, "pad", (constant, 0), (y, from), &[(to - from, 1, 0)])?;
            }
        }
        return Ok(());
    }
    copy(lower, node, "pad", (constant, 0), (y, 0), &[(result.elements(), 1, 0)])?;
    copy(lower, node, "pad", (x, 0), (y, start), &axes)
}

/// [`super::copy_elements`].
pub(super) fn copy_elements(
    [output, input]: [Place; 2],
    element: usize,
    from: usize,
    len: usize,
    axes: &[(usize, usize, usize)],
) -> Option<Step<Place>> {
    let mut loops = heapless::Vec::new();
    for &(count, to, from) in axes {
        let (count, to, from) = (count.try_into().ok()?, to.try_into().ok()?, from.try_into().ok()?);
        loops.push(CopyLoop { count, to, from }).ok()?;
    }
    Some(Step::CopyBytes(CopyStrided {
        output,
        input,
        element: element.try_into().ok()?,
        input_len: len.try_into().ok()?,
        from: from.try_into().ok()?,
        loops,
    }))
}

/// Whether axes of (extent, stride in the destination, stride in the source) walk neighbouring elements of both.
fn is_one_run(axes: &[(usize, usize, isize)]) -> bool {
    let mut inner = 1;
    axes.iter()
        .rev()
        .filter(|(count, ..)| *count != 1)
        .all(|&(count, to, from)| {
            let next = to == inner && from == inner as isize;
            inner *= count;
            next
        })
}

/// A copy step between elements `from` of `x` and `to` of `y`, along `axes` of (extent, stride in y, stride in x).
pub(super) fn copy(
    lower: &mut Lower<'_>,
    node: &Node,
    kind: &'static str,
    (x, from): (TensorId, usize),
    (y, to): (TensorId, usize),
    axes: &[(usize, usize, isize)],
) -> Result<()> {
    let mut merged: Vec<(usize, usize, isize)> = Vec::new();
    for &(count, to, from) in axes.iter().filter(|(count, ..)| *count != 1) {
        match merged.last_mut() {
            Some(last) if last.1 == count * to && last.2 == count as isize * from => *last = (last.0 * count, to, from),
            _ => merged.push((count, to, from)),
        }
    }
    let mut loops = heapless::Vec::new();
    for (count, to, from) in merged {
        let from = i32::try_from(from).map_err(|_| Error::unsupported(format!("a stride of {from}")))?;
        let axis = CopyLoop {
            count: fit(count, "an extent")?,
            to: fit(to, "a stride")?,
            from,
        };
        let full = || Error::unsupported(format!("a copy along more than {MAX_LOOPS} axes"));
        loops.push(axis).map_err(|_| full())?;
    }
    let at = lower.place(x)?;
    let tensor = lower.graph().tensor(x);
    let element = tensor.dtype.bytes();
    let op = CopyStrided {
        output: Place::Tensor(y, fit(to * element, "the offset")?),
        input: at,
        element: element as u8,
        input_len: fit(tensor.elements(), "the number of elements")?,
        from: fit(from, "the offset")?,
        loops,
    };
    lower.push(node, kind, Step::CopyBytes(op), 0);
    Ok(())
}

/// Elements between neighbours along each axis.
fn strides(tensor: &Tensor) -> Vec<usize> {
    let inner = |axis: usize| tensor.shape[axis + 1..].iter().product();
    (0..tensor.shape.len()).map(inner).collect()
}
