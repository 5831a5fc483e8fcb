//! Output shapes and dtypes of every operator.

use super::{Conv2dAttrs, DType, Layout, Op, Padding2d, PoolAttrs, Tensor};
use crate::error::{Error, Result};

/// The shape and dtype that `op` gives its outputs, or `None` where the output itself states them (reshape, slice,
/// resize …); errors say which operand does not fit.
pub fn infer(op: &Op, inputs: &[Option<&Tensor>]) -> Result<Option<Vec<usize>>> {
    let need = |i: usize| {
        inputs
            .get(i)
            .copied()
            .flatten()
            .ok_or_else(|| Error::input(format!("operand {i} is missing")))
    };
    Ok(match op {
        Op::Conv2d(attrs) => Some(conv2d(attrs, need(0)?, need(1)?, inputs.get(2).copied().flatten())?),
        Op::LocallyConnected2d { .. } => Some(locally_connected(need(0)?, need(1)?)?),
        Op::Linear { .. } => {
            let (x, w) = (need(0)?, need(1)?);
            rank("weights", w, 2)?;
            match x.shape.last() {
                Some(&k) if k == w.shape[1] => {}
                _ => {
                    return Err(mismatch(
                        "the last axis of the operand",
                        &x.shape,
                        "the weights",
                        &w.shape,
                    ));
                }
            }
            let mut shape = x.shape.clone();
            *shape.last_mut().expect("checked above") = w.shape[0];
            Some(shape)
        }
        Op::MatMul {
            transpose_a,
            transpose_b,
        } => Some(matmul(need(0)?, need(1)?, *transpose_a, *transpose_b)?),
        Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => Some(pool2d(attrs, need(0)?)?),
        Op::Binary { .. } | Op::SpecialBinary { .. } | Op::SpecialInt { .. } | Op::Compare { .. } => {
            Some(broadcast(&need(0)?.shape, &need(1)?.shape)?)
        }
        Op::Choose => {
            let (condition, chosen) = (need(0)?, broadcast(&need(1)?.shape, &need(2)?.shape)?);
            if broadcast(&condition.shape, &chosen)? != condition.shape {
                return Err(mismatch("the condition", &condition.shape, "the choice", &chosen));
            }
            Some(condition.shape.clone())
        }
        Op::Gather { axis } => {
            let (x, indices) = (need(0)?, need(1)?);
            extent(x, *axis)?;
            let mut shape = x.shape.clone();
            shape.splice(axis..=axis, indices.shape.iter().copied());
            Some(shape)
        }
        Op::Attention { .. } => Some(attention([need(0)?, need(1)?, need(2)?, need(3)?])?),
        Op::Embedding => {
            let (indices, table) = (need(0)?, need(1)?);
            rank("table", table, 2)?;
            let mut shape = indices.shape.clone();
            shape.push(table.shape[1]);
            Some(shape)
        }
        Op::RmsNorm { .. } => {
            let (x, gain) = (need(0)?, need(1)?);
            match x.shape.last() {
                Some(&channels) if gain.shape == [channels] => Some(x.shape.clone()),
                _ => return Err(mismatch("the operand", &x.shape, "the gain", &gain.shape)),
            }
        }
        Op::Rotary { .. } => Some(rotary([need(0)?, need(1)?, need(2)?, need(3)?])?),
        Op::Position { .. } => {
            one(need(0)?)?;
            one(need(1)?)?;
            Some(vec![1])
        }
        Op::Affine => {
            let x = need(0)?;
            let gain = need(1)?;
            if gain.elements() != 1 {
                return Err(Error::input(format!("the gain has shape {:?}", gain.shape)).expected("one element"));
            }
            if broadcast(&x.shape, &need(2)?.shape)? != x.shape {
                return Err(mismatch("the operand", &x.shape, "the bias", &need(2)?.shape));
            }
            Some(x.shape.clone())
        }
        Op::BatchNorm { axis, .. } => {
            let x = need(0)?;
            let channels = extent(x, *axis)?;
            for i in 1..5 {
                if need(i)?.shape != [channels] {
                    return Err(mismatch(
                        "the channels of the operand",
                        &x.shape,
                        "a statistic",
                        &need(i)?.shape,
                    ));
                }
            }
            Some(x.shape.clone())
        }
        Op::Unary(_) | Op::Lookup { .. } | Op::Identity | Op::L2Norm | Op::Quantize | Op::Dequantize | Op::Cast => {
            Some(need(0)?.shape.clone())
        }
        Op::Lrn { axis, .. } | Op::Softmax { axis, .. } | Op::LogSoftmax { axis } => {
            extent(need(0)?, *axis)?;
            Some(need(0)?.shape.clone())
        }
        Op::Reduce { axes, keep_dims, .. } => {
            let x = need(0)?;
            for &axis in axes {
                extent(x, axis)?;
            }
            Some(reduced(&x.shape, axes, *keep_dims))
        }
        Op::ArgMax { axis } => {
            extent(need(0)?, *axis)?;
            Some(reduced(&need(0)?.shape, &[*axis], false))
        }
        Op::Transpose { perm } => {
            let x = need(0)?;
            let mut seen = vec![false; x.shape.len()];
            if perm.len() != x.shape.len()
                || !perm
                    .iter()
                    .all(|&a| a < seen.len() && !std::mem::replace(&mut seen[a], true))
            {
                return Err(Error::input(format!(
                    "{perm:?} is no permutation of the axes of {:?}",
                    x.shape
                )));
            }
            Some(perm.iter().map(|&axis| x.shape[axis]).collect())
        }
        Op::Pad { pads, .. } => {
            let x = need(0)?;
            if pads.len() != x.shape.len() {
                return Err(Error::input(format!(
                    "{} axes padded of an operand of shape {:?}",
                    pads.len(),
                    x.shape
                )));
            }
            Some(
                x.shape
                    .iter()
                    .zip(pads)
                    .map(|(n, (before, after))| n + before + after)
                    .collect(),
            )
        }
        Op::Concat { axis, .. } => {
            let mut shape = need(0)?.shape.clone();
            extent(need(0)?, *axis)?;
            for i in 1..inputs.len() {
                let other = &need(i)?.shape;
                if other.len() != shape.len() || (0..shape.len()).any(|a| a != *axis && other[a] != shape[a]) {
                    return Err(mismatch("operand 0", &need(0)?.shape, "another operand", other));
                }
                shape[*axis] += other[*axis];
            }
            Some(shape)
        }
        Op::Reshape
        | Op::Broadcast
        | Op::Slice { .. }
        | Op::ResizeNearest { .. }
        | Op::ResizeBilinear { .. }
        | Op::Svdf { .. }
        | Op::UnidirectionalLstm { .. }
        | Op::Signal(_)
        | Op::Train(_)
        | Op::Detections(_)
        | Op::EthosU(_)
        | Op::ReadState
        | Op::AssignState
        | Op::WriteLine
        | Op::Opaque => None,
    })
}

/// Splits a 4-D shape into batch, rows, columns, channels.
pub fn nhwc(layout: Layout, shape: &[usize]) -> Result<[usize; 4]> {
    match (layout, shape) {
        (Layout::Nhwc, &[n, h, w, c]) | (Layout::Nchw, &[n, c, h, w]) => Ok([n, h, w, c]),
        _ => Err(Error::input(format!("an operand has shape {shape:?}")).expected("four axes")),
    }
}

/// Joins batch, rows, columns, channels into a 4-D shape.
pub fn from_nhwc(layout: Layout, [n, h, w, c]: [usize; 4]) -> Vec<usize> {
    match layout {
        Layout::Nhwc => vec![n, h, w, c],
        Layout::Nchw => vec![n, c, h, w],
    }
}

/// Output extent of a window that slides over `input` with padding: floor((input + padding - dilated kernel) / stride) + 1.
pub fn windows(input: usize, kernel: usize, stride: usize, dilation: usize, padding: usize) -> Result<usize> {
    if kernel == 0 || stride == 0 || dilation == 0 {
        return Err(Error::input(format!(
            "kernel {kernel}, stride {stride} and dilation {dilation} must be at least 1"
        )));
    }
    let overflow = || {
        Error::input(format!(
            "a window of {kernel} with dilation {dilation} and padding {padding} overflows"
        ))
    };
    let span = (kernel - 1)
        .checked_mul(dilation)
        .and_then(|s| s.checked_add(1))
        .ok_or_else(overflow)?;
    let padded = input.checked_add(padding).ok_or_else(overflow)?;
    match padded.checked_sub(span) {
        Some(room) => Ok(room / stride + 1),
        None => Err(Error::input(format!(
            "a window of {span} does not fit into {input} with padding {padding}"
        ))),
    }
}

/// NumPy broadcasting of two shapes.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(mismatch("one operand", a, "the other", b)),
        })
        .collect()
}

fn conv2d(attrs: &Conv2dAttrs, x: &Tensor, w: &Tensor, bias: Option<&Tensor>) -> Result<Vec<usize>> {
    let [n, h, width, c] = nhwc(attrs.layout, &x.shape)?;
    rank("weights", w, 4)?;
    let [out, kh, kw, per_group] = [w.shape[0], w.shape[1], w.shape[2], w.shape[3]];
    if attrs.groups == 0 || per_group.checked_mul(attrs.groups) != Some(c) || out % attrs.groups != 0 {
        return Err(Error::input(format!(
            "{c} input channels, {} groups and weights {:?} (OHWI) do not fit together",
            attrs.groups, w.shape
        ))
        .expected("weights whose I times the groups is the input's channels, and an O that the groups divide"));
    }
    if let Some(bias) = bias.filter(|b| b.shape != [out]) {
        return Err(mismatch("the weights", &w.shape, "the bias", &bias.shape));
    }
    let Padding2d {
        top,
        bottom,
        left,
        right,
    } = attrs.padding;
    let oh = windows(h, kh, attrs.stride[0], attrs.dilation[0], top + bottom)?;
    let ow = windows(width, kw, attrs.stride[1], attrs.dilation[1], left + right)?;
    Ok(from_nhwc(attrs.layout, [n, oh, ow, out]))
}

fn locally_connected(x: &Tensor, w: &Tensor) -> Result<Vec<usize>> {
    let [n, h, width, c] = nhwc(Layout::Nchw, &x.shape)?;
    rank("weights", w, 6)?;
    let [out, cin, kh, kw, oh, ow] = [w.shape[0], w.shape[1], w.shape[2], w.shape[3], w.shape[4], w.shape[5]];
    if cin != c || windows(h, kh, 1, 1, 0)? != oh || windows(width, kw, 1, 1, 0)? != ow {
        return Err(mismatch(
            "the operand",
            &x.shape,
            "the weights [out, in, kh, kw, oh, ow]",
            &w.shape,
        ));
    }
    Ok(vec![n, out, oh, ow])
}

fn pool2d(attrs: &PoolAttrs, x: &Tensor) -> Result<Vec<usize>> {
    let [n, h, w, c] = nhwc(attrs.layout, &x.shape)?;
    let Padding2d {
        top,
        bottom,
        left,
        right,
    } = attrs.padding;
    let oh = windows(h, attrs.kernel[0], attrs.stride[0], 1, top + bottom)?;
    let ow = windows(w, attrs.kernel[1], attrs.stride[1], 1, left + right)?;
    Ok(from_nhwc(attrs.layout, [n, oh, ow, c]))
}

fn matmul(a: &Tensor, b: &Tensor, transpose_a: bool, transpose_b: bool) -> Result<Vec<usize>> {
    let split = |t: &Tensor, transpose: bool| match t.shape.as_slice() {
        [batch @ .., r, c] if transpose => Ok((batch.to_vec(), *c, *r)),
        [batch @ .., r, c] => Ok((batch.to_vec(), *r, *c)),
        _ => Err(Error::input(format!("`{}` has shape {:?}", t.name, t.shape)).expected("at least two axes")),
    };
    let (batch_a, m, k) = split(a, transpose_a)?;
    let (batch_b, k_b, n) = split(b, transpose_b)?;
    if k != k_b {
        return Err(mismatch("one matrix", &a.shape, "the other", &b.shape));
    }
    let mut shape = broadcast(&batch_a, &batch_b)?;
    shape.extend([m, n]);
    Ok(shape)
}

/// Attention over states, whose heads divide the query's.
fn attention([query, keys, values, position]: [&Tensor; 4]) -> Result<Vec<usize>> {
    one(position)?;
    let (&[heads, width], &[shared, _, of_keys]) = (query.shape.as_slice(), keys.shape.as_slice()) else {
        return Err(mismatch("the query", &query.shape, "the keys", &keys.shape));
    };
    if width != of_keys || keys.shape != values.shape || shared == 0 || heads % shared != 0 {
        return Err(Error::internal(format!(
            "a query of shape {:?}, keys {:?} and values {:?}",
            query.shape, keys.shape, values.shape
        )));
    }
    Ok(query.shape.clone())
}

/// Pairs that are turned by tables of a number for each.
fn rotary([x, cosines, sines, position]: [&Tensor; 4]) -> Result<Vec<usize>> {
    one(position)?;
    match (x.shape.as_slice(), cosines.shape.as_slice()) {
        (&[_, width], &[_, half]) if width == 2 * half && cosines.shape == sines.shape => Ok(x.shape.clone()),
        _ => Err(mismatch("the operand", &x.shape, "the cosines", &cosines.shape)),
    }
}

/// Refuses what is not one int32.
fn one(index: &Tensor) -> Result<()> {
    if index.elements() == 1 && index.dtype == DType::I32 {
        return Ok(());
    }
    Err(Error::internal(format!(
        "an index `{}` of {}{:?}",
        index.name,
        index.dtype.name(),
        index.shape
    )))
}

fn reduced(shape: &[usize], axes: &[usize], keep_dims: bool) -> Vec<usize> {
    let kept = |axis: &usize| !axes.contains(axis);
    if keep_dims {
        (0..shape.len())
            .map(|axis| if kept(&axis) { shape[axis] } else { 1 })
            .collect()
    } else {
        (0..shape.len()).filter(kept).map(|axis| shape[axis]).collect()
    }
}

fn extent(x: &Tensor, axis: usize) -> Result<usize> {
    let missing = || Error::input(format!("axis {axis} of `{}`, which has shape {:?}", x.name, x.shape));
    x.shape
        .get(axis)
        .copied()
        .ok_or_else(|| missing().expected("an axis that exists"))
}

fn rank(what: &str, t: &Tensor, rank: usize) -> Result<()> {
    if t.shape.len() == rank {
        Ok(())
    } else {
        Err(Error::input(format!("the {what} `{}` have shape {:?}", t.name, t.shape)).expected(format!("{rank} axes")))
    }
}

fn mismatch(what_a: &str, a: &[usize], what_b: &str, b: &[usize]) -> Error {
    Error::input(format!("{what_a} has shape {a:?}, {what_b} {b:?}: they do not fit"))
}

/// The dtype that the outputs of `op` have when it is not stated by the output itself.
pub fn infer_dtype(op: &Op, inputs: &[Option<&Tensor>]) -> Option<DType> {
    match op {
        Op::ArgMax { .. } => Some(DType::I32),
        Op::Compare { .. } => Some(DType::Bool),
        Op::Choose | Op::Embedding => inputs.get(1).copied().flatten().map(|t| t.dtype),
        Op::Dequantize | Op::Detections(_) => Some(DType::F32),
        Op::Quantize
        | Op::Cast
        | Op::AssignState
        | Op::WriteLine
        | Op::Opaque
        | Op::Svdf { .. }
        | Op::Softmax { .. }
        | Op::EthosU(_)
        | Op::Signal(_)
        | Op::Train(_) => None,
        _ => inputs.first().copied().flatten().map(|t| t.dtype),
    }
}
