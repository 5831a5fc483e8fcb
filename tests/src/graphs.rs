//! Meaning of a graph, as an importer gives it: loops in f64 over the operators' definitions in `host-tools/graph/src/graph/op.rs`, before any pass.
//!
//! It shares no code with passes, lowering and kernels, so that it can contradict them. The meaning of a trace is judged elsewhere.

use arenite::ops::pointwise::{Function, SpecialOp};
use arenite_host::Error;
use arenite_host::graph::{
    BinaryOp, Conv2dAttrs, Graph, Layout, Op, Padding2d, PoolAttrs, ReduceKind, Role, TensorId, TensorKind, UnaryKind,
};
use arenite_host::weights::Weights;
use ndarray::{Array4, ArrayD, Axis, IxDyn, concatenate};

type Values = ArrayD<f64>;

/// The outputs for one run with these inputs.
///
/// # Errors
/// Errors of reading the weights.
///
/// # Panics
/// Where the graph has an operator that is not written down here.
pub fn evaluate(graph: &Graph, weights: &Weights, inputs: &[Vec<f32>]) -> Result<Vec<Vec<f64>>, Error> {
    let mut known: Vec<Option<Values>> = vec![None; graph.tensors.len()];
    for (&id, values) in graph.inputs.iter().zip(inputs) {
        known[id.0] = Some(array(&graph.tensor(id).shape, values.iter().map(|&v| f64::from(v))));
    }
    for (index, tensor) in graph.tensors.iter().enumerate() {
        if let (TensorKind::Const(data), arenite::DType::F32) = (&tensor.kind, tensor.dtype) {
            let values = weights.evaluate(&data.to_expr(&tensor.shape))?;
            known[index] = Some(array(&tensor.shape, values.into_iter().map(f64::from)));
        }
    }
    // In whatever order the nodes are: a sweep computes what can be computed.
    loop {
        let before = known.iter().flatten().count();
        for node in graph.nodes.iter().filter(|node| node.role == Role::Forward) {
            let [output] = node.outputs[..] else { continue };
            let operands: Option<Vec<&Values>> = node.inputs.iter().flatten().map(|id| known[id.0].as_ref()).collect();
            if let (None, Some(operands)) = (&known[output.0], operands) {
                known[output.0] = Some(operator(&node.op, &operands, &graph.tensor(output).shape));
            }
        }
        if known.iter().flatten().count() == before {
            break;
        }
    }
    let of = |id: &TensorId| known[id.0].as_ref().expect("an output that operators give");
    Ok(graph
        .outputs
        .iter()
        .map(|id| of(id).iter().copied().collect())
        .collect())
}

const HARD_SIGMOID: UnaryKind = UnaryKind::Function(Function::Special(SpecialOp::HardSigmoid));

fn array(shape: &[usize], values: impl Iterator<Item = f64>) -> Values {
    ArrayD::from_shape_vec(IxDyn(shape), values.collect()).expect("as many values as the shape says")
}

fn operator(op: &Op, operands: &[&Values], shape: &[usize]) -> Values {
    let x = operands[0];
    match op {
        Op::Conv2d(attrs) => conv2d(attrs, x, operands[1], operands.get(2).copied()),
        Op::LocallyConnected2d { .. } => locally_connected(x, operands[1]),
        Op::MaxPool2d(attrs) => pool(attrs, x, true),
        Op::AvgPool2d(attrs) => pool(attrs, x, false),
        Op::Linear { .. } => {
            let (rows, columns) = (operands[1].shape()[0], operands[1].shape()[1]);
            let flat: Vec<f64> = x.iter().copied().collect();
            let values = flat.chunks(columns).flat_map(|row| {
                (0..rows).map(move |out| {
                    let sum: f64 = (0..columns).map(|i| row[i] * operands[1][[out, i]]).sum();
                    sum + operands.get(2).map_or(0.0, |bias| bias[[out]])
                })
            });
            array(shape, values.collect::<Vec<_>>().into_iter())
        }
        Op::MatMul {
            transpose_a: false,
            transpose_b,
        } => {
            let (m, k, n) = (x.shape()[0], x.shape()[1], shape[1]);
            let weight = |i: usize, j: usize| operands[1][if *transpose_b { [j, i] } else { [i, j] }];
            let at = |p: usize| (0..k).map(|i| x[[p / n, i]] * weight(i, p % n)).sum();
            array(shape, (0..m * n).map(at))
        }
        Op::Binary { kind, .. } => match kind {
            BinaryOp::Add => x + operands[1],
            BinaryOp::Sub => x - operands[1],
            BinaryOp::Mul => x * operands[1],
            BinaryOp::Div => x / operands[1],
            other => panic!("no dialect's network here has {other:?}"),
        },
        Op::Unary(UnaryKind::Relu) => x.mapv(|v| v.max(0.0)),
        Op::Unary(UnaryKind::Relu6) => x.mapv(|v| v.clamp(0.0, 6.0)),
        Op::Unary(kind) if *kind == UnaryKind::TANH => x.mapv(f64::tanh),
        Op::Unary(kind) if *kind == UnaryKind::EXP => x.mapv(f64::exp),
        Op::Unary(kind) if *kind == HARD_SIGMOID => x.mapv(|v| (v / 6.0 + 0.5).clamp(0.0, 1.0)),
        Op::Affine => x * operands[1] + operands[2],
        Op::BatchNorm { axis, epsilon, .. } => {
            let mut result = x.clone();
            for (channel, mut lane) in result.axis_iter_mut(Axis(*axis)).enumerate() {
                let [gamma, beta, mean, variance] = [1, 2, 3, 4].map(|i| operands[i][[channel]]);
                lane.mapv_inplace(|v| (v - mean) / (variance + f64::from(*epsilon)).sqrt() * gamma + beta);
            }
            result
        }
        Op::Lrn {
            axis,
            radius,
            bias,
            alpha,
            beta,
        } => {
            let mut result = x.clone();
            for (from, mut to) in x.lanes(Axis(*axis)).into_iter().zip(result.lanes_mut(Axis(*axis))) {
                for channel in 0..from.len() {
                    let near = channel.saturating_sub(*radius)..(channel + radius + 1).min(from.len());
                    let squares: f64 = near.map(|c| from[c] * from[c]).sum();
                    to[channel] =
                        from[channel] / (f64::from(*bias) + f64::from(*alpha) * squares).powf(f64::from(*beta));
                }
            }
            result
        }
        Op::Softmax { axis, .. } => {
            let mut result = x.mapv(f64::exp);
            for mut lane in result.lanes_mut(Axis(*axis)) {
                let sum = lane.sum();
                lane.mapv_inplace(|v| v / sum);
            }
            result
        }
        Op::Reduce {
            kind: kind @ (ReduceKind::Mean | ReduceKind::Max),
            axes,
            ..
        } => {
            let mut result = x.clone();
            for &axis in axes.iter().rev() {
                result = match kind {
                    ReduceKind::Mean => result.mean_axis(Axis(axis)).expect("no empty axis"),
                    _ => result.fold_axis(Axis(axis), f64::NEG_INFINITY, |a, b| a.max(*b)),
                };
            }
            array(shape, result.iter().copied())
        }
        Op::Pad { pads, value } => {
            let mut result = ArrayD::from_elem(IxDyn(shape), f64::from(*value));
            let mut inside = result.view_mut();
            for (axis, &(before, _)) in pads.iter().enumerate() {
                inside.slice_axis_inplace(Axis(axis), (before..before + x.shape()[axis]).into());
            }
            inside.assign(x);
            result
        }
        Op::Transpose { perm } => {
            let view = x.view().permuted_axes(IxDyn(perm));
            view.as_standard_layout().into_owned()
        }
        Op::Concat { axis, .. } => {
            let views: Vec<_> = operands.iter().map(|operand| operand.view()).collect();
            concatenate(Axis(*axis), &views).expect("operands that fit")
        }
        Op::Slice { begin, stride } => ArrayD::from_shape_fn(IxDyn(shape), |at| {
            let index = |axis: usize| begin[axis].wrapping_add_signed(stride[axis] * at[axis] as isize);
            x[IxDyn(&(0..shape.len()).map(index).collect::<Vec<_>>())]
        }),
        Op::Broadcast => x.broadcast(shape).expect("a shape that fits").to_owned(),
        Op::Reshape => array(shape, x.iter().copied()),
        Op::Identity => x.clone(),
        other => panic!("no dialect's network here has {other:?}"),
    }
}

/// Axes as batch, rows, columns, channels.
fn nhwc(layout: Layout, x: &Values) -> Array4<f64> {
    let order = match layout {
        Layout::Nchw => [0, 2, 3, 1],
        Layout::Nhwc => [0, 1, 2, 3],
    };
    let view = x.view().permuted_axes(IxDyn(&order));
    view.to_owned().into_dimensionality().expect("four axes")
}

fn traced(layout: Layout, y: Array4<f64>) -> Values {
    let order = match layout {
        Layout::Nchw => [0, 3, 1, 2],
        Layout::Nhwc => [0, 1, 2, 3],
    };
    let view = y.view().into_dyn().permuted_axes(IxDyn(&order));
    view.as_standard_layout().into_owned()
}

/// Windows on an axis, by the definition of docs/trace-schema.md.
fn windows(extent: usize, before: usize, after: usize, kernel: usize, stride: usize, dilation: usize) -> usize {
    (extent + before + after - (dilation * (kernel - 1) + 1)) / stride + 1
}

fn extents(x: &Array4<f64>, kernel: [usize; 2], stride: [usize; 2], dilation: [usize; 2], p: Padding2d) -> [usize; 2] {
    let (_, rows, columns, _) = x.dim();
    [
        windows(rows, p.top, p.bottom, kernel[0], stride[0], dilation[0]),
        windows(columns, p.left, p.right, kernel[1], stride[1], dilation[1]),
    ]
}

fn conv2d(attrs: &Conv2dAttrs, x: &Values, weights: &Values, bias: Option<&Values>) -> Values {
    let x = nhwc(attrs.layout, x);
    let (images, h, w, c) = x.dim();
    let [out, kh, kw, within] = [0, 1, 2, 3].map(|axis| weights.shape()[axis]);
    assert_eq!(within * attrs.groups, c);
    let ([sy, sx], [dy, dx], p) = (attrs.stride, attrs.dilation, attrs.padding);
    let [rows, columns] = extents(&x, [kh, kw], attrs.stride, attrs.dilation, p);
    let y = Array4::from_shape_fn((images, rows, columns, out), |(image, row, column, o)| {
        let first = o / (out / attrs.groups) * within;
        let mut sum = bias.map_or(0.0, |bias| bias[[o]]);
        for ky in 0..kh {
            for kx in 0..kw {
                let (at_y, at_x) = (row * sy + ky * dy, column * sx + kx * dx);
                if at_y < p.top || at_y - p.top >= h || at_x < p.left || at_x - p.left >= w {
                    continue;
                }
                for i in 0..within {
                    sum += x[[image, at_y - p.top, at_x - p.left, first + i]] * weights[[o, ky, kx, i]];
                }
            }
        }
        sum
    });
    traced(attrs.layout, y)
}

fn pool(attrs: &PoolAttrs, x: &Values, largest: bool) -> Values {
    let x = nhwc(attrs.layout, x);
    let (images, h, w, c) = x.dim();
    let ([kh, kw], [sy, sx], p) = (attrs.kernel, attrs.stride, attrs.padding);
    let [rows, columns] = extents(&x, attrs.kernel, attrs.stride, [1, 1], p);
    let y = Array4::from_shape_fn((images, rows, columns, c), |(image, row, column, channel)| {
        let mut inside = Vec::new();
        for at_y in row * sy..row * sy + kh {
            for at_x in column * sx..column * sx + kw {
                if at_y >= p.top && at_y - p.top < h && at_x >= p.left && at_x - p.left < w {
                    inside.push(x[[image, at_y - p.top, at_x - p.left, channel]]);
                }
            }
        }
        let divisor = if attrs.count_include_pad { kh * kw } else { inside.len() };
        if largest {
            inside.into_iter().fold(f64::NEG_INFINITY, f64::max)
        } else {
            inside.iter().sum::<f64>() / divisor as f64
        }
    });
    traced(attrs.layout, y)
}

/// NCHW; a kernel for each place, valid windows, stride 1.
fn locally_connected(x: &Values, weights: &Values) -> Values {
    let [out, within, kh, kw, rows, columns] = [0, 1, 2, 3, 4, 5].map(|axis| weights.shape()[axis]);
    let images = x.shape()[0];
    ArrayD::from_shape_fn(IxDyn(&[images, out, rows, columns]), |at| {
        let mut sum = 0.0;
        for c in 0..within {
            for ky in 0..kh {
                for kx in 0..kw {
                    sum += x[[at[0], c, at[2] + ky, at[3] + kx]] * weights[IxDyn(&[at[1], c, ky, kx, at[2], at[3]])];
                }
            }
        }
        sum
    })
}
