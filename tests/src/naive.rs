//! The operators of `trace.json`, straight from the formulas of docs/trace-schema.md: loops over f64 arrays, nothing fused, nothing clever.
//!
//! It reads the trace's JSON by itself and shares no code with importer, passes or kernels, so that it can contradict them.

use std::collections::BTreeMap;

use ndarray::{ArrayD, Axis, Dimension, IxDyn, Slice, concatenate};
use serde_json::Value;

/// Tensors by name.
pub type Tensors = BTreeMap<String, ArrayD<f64>>;

/// Adds every operator's output to `tensors`, which holds the inputs, parameters and constants.
///
/// # Panics
/// Where the trace is not valid, or has an operator that is not written down here.
pub fn evaluate(trace: &Value, tensors: &mut Tensors) {
    for op in list(&trace["ops"]) {
        let inputs: Vec<Option<&ArrayD<f64>>> = list(&op["inputs"])
            .iter()
            .map(|name| name.as_str().map(|name| &tensors[name]))
            .collect();
        let output = operator(text(&op["op"]), &op["attrs"], &inputs);
        tensors.insert(text(&op["outputs"][0]).to_string(), output);
    }
}

fn operator(op: &str, attrs: &Value, inputs: &[Option<&ArrayD<f64>>]) -> ArrayD<f64> {
    let x = inputs[0].expect("a first input");
    let y = || inputs[1].expect("a second input");
    match op {
        "conv2d" => conv2d(x, y(), inputs.get(2).copied().flatten(), attrs),
        "linear" => linear(x, y(), inputs.get(2).copied().flatten()),
        "max_pool2d" | "avg_pool2d" => pool(x, attrs, op == "max_pool2d"),
        "relu" => x.mapv(|v| v.max(0.0)),
        "clamp" => x.mapv(|v| {
            v.max(attrs["min"].as_f64().unwrap_or(f64::NEG_INFINITY))
                .min(attrs["max"].as_f64().unwrap_or(f64::INFINITY))
        }),
        "leaky_relu" => {
            let slope = attrs["negative_slope"].as_f64().unwrap_or(0.01);
            x.mapv(|v| if v >= 0.0 { v } else { slope * v })
        }
        "log" => x.mapv(f64::ln),
        "exp" => x.mapv(f64::exp),
        "sqrt" => x.mapv(f64::sqrt),
        "div" => x / y(),
        "matmul" => matmul(x, y()),
        "sigmoid" => x.mapv(|v| 1.0 / (1.0 + (-v).exp())),
        "tanh" => x.mapv(f64::tanh),
        "hardswish" => x.mapv(|v| v * (v + 3.0).clamp(0.0, 6.0) / 6.0),
        "silu" => x.mapv(|v| v / (1.0 + (-v).exp())),
        "rsqrt" => x.mapv(|v| 1.0 / v.sqrt()),
        "square" => x.mapv(|v| v * v),
        "softsign" => x.mapv(|v| v / (1.0 + v.abs())),
        "softplus" => x.mapv(|v| v.exp().ln_1p()),
        "hardsigmoid" => x.mapv(|v| (v / 6.0 + 0.5).clamp(0.0, 1.0)),
        "erf" => x.mapv(erf),
        "gelu" => x.mapv(|v| 0.5 * v * (1.0 + erf(v / 2.0_f64.sqrt()))),
        "gelu_tanh" => {
            x.mapv(|v| 0.5 * v * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (v + 0.044715 * v.powi(3))).tanh()))
        }
        "sin" => x.mapv(f64::sin),
        "cos" => x.mapv(f64::cos),
        "abs" => x.mapv(f64::abs),
        "neg" => x.mapv(|v| -v),
        "identity" | "dropout" => x.clone(),
        "add" => x + y(),
        "sub" => x - y(),
        "mul" => x * y(),
        "maximum" => binary(x, y(), f64::max),
        "minimum" => binary(x, y(), f64::min),
        "batch_norm" => batch_norm(inputs, attrs),
        "softmax" => {
            let axis = Axis(axis(attrs["axis"].as_i64().unwrap_or(-1), x.ndim()));
            let mut result = x.clone();
            for mut lane in result.lanes_mut(axis) {
                let most = lane.fold(f64::NEG_INFINITY, |m, &v| m.max(v));
                lane.mapv_inplace(|v| (v - most).exp());
                let sum = lane.sum();
                lane.mapv_inplace(|v| v / sum);
            }
            result
        }
        "log_softmax" => operator("softmax", attrs, inputs).mapv(f64::ln),
        "mean" | "sum" | "max" => reduce(op, x, attrs),
        "flatten" => {
            let kept = x.shape()[0];
            reshaped(x, &[kept, x.len() / kept])
        }
        "reshape" => {
            let shape = integers(&attrs["shape"]);
            let known: i64 = shape.iter().filter(|&&n| n > 0).product();
            let shape: Vec<usize> = shape
                .iter()
                .map(|&n| if n > 0 { n as usize } else { x.len() / known as usize })
                .collect();
            reshaped(x, &shape)
        }
        "transpose" => {
            let order: Vec<usize> = integers(&attrs["perm"]).iter().map(|&n| n as usize).collect();
            x.clone().permuted_axes(IxDyn(&order))
        }
        "pad" => pad(x, attrs),
        "concat" => {
            let views: Vec<_> = inputs.iter().flatten().map(|x| x.view()).collect();
            let axis = axis(attrs["axis"].as_i64().expect("an axis"), x.ndim());
            concatenate(Axis(axis), &views).expect("equal shapes")
        }
        "slice" => {
            let at = |key: &str| attrs[key].as_i64().map(|n| n as isize);
            let slice = Slice::new(at("start").unwrap_or(0), at("stop"), at("step").unwrap_or(1));
            let axis = axis(attrs["axis"].as_i64().expect("an axis"), x.ndim());
            x.slice_axis(Axis(axis), slice).to_owned()
        }
        other => panic!("{other} is not written down here"),
    }
}

/// The error function by its Taylor series, of arguments of order one.
fn erf(x: f64) -> f64 {
    let (mut sum, mut power) = (0.0, x);
    for n in 0..60 {
        let n = f64::from(n);
        sum += power / (2.0 * n + 1.0);
        power *= -x * x / (n + 1.0);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

/// Elements of the padded axis that output `o` reads: their positions before padding, `None` in the padding.
fn taps(
    o: usize,
    kernel: i64,
    stride: i64,
    dilation: i64,
    before: i64,
    length: usize,
) -> impl Iterator<Item = (i64, Option<usize>)> {
    (0..kernel).map(move |k| {
        let at = o as i64 * stride - before + k * dilation;
        (at, usize::try_from(at).ok().filter(|&at| at < length))
    })
}

/// Channels last is channels first with the axes moved.
fn conv2d(x: &ArrayD<f64>, w: &ArrayD<f64>, bias: Option<&ArrayD<f64>>, attrs: &Value) -> ArrayD<f64> {
    match attrs["layout"].as_str() {
        Some("NHWC") => {
            let first = x
                .view()
                .permuted_axes(vec![0, 3, 1, 2])
                .as_standard_layout()
                .into_owned();
            let result = channels_first(&first, w, bias, attrs);
            result.permuted_axes(vec![0, 2, 3, 1]).as_standard_layout().into_owned()
        }
        _ => channels_first(x, w, bias, attrs),
    }
}

fn channels_first(x: &ArrayD<f64>, w: &ArrayD<f64>, bias: Option<&ArrayD<f64>>, attrs: &Value) -> ArrayD<f64> {
    let (strides, dilation) = (pair(attrs, "strides", 1), pair(attrs, "dilation", 1));
    let padding = four(attrs);
    let groups = attrs["groups"].as_u64().unwrap_or(1) as usize;
    let (x_shape, w_shape) = (x.shape(), w.shape());
    let extent = |axis: usize| {
        let reach = dilation[axis] * (w_shape[2 + axis] as i64 - 1) + 1;
        ((x_shape[2 + axis] as i64 + padding[2 * axis] + padding[2 * axis + 1] - reach) / strides[axis] + 1) as usize
    };
    let shape = [x_shape[0], w_shape[0], extent(0), extent(1)];
    let per_group = (w_shape[0] / groups, x_shape[1] / groups);
    ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let mut sum = bias.map_or(0.0, |b| b[[at[1]]]);
        let first = at[1] / per_group.0 * per_group.1;
        for c in 0..per_group.1 {
            for (ky, (_, iy)) in taps(
                at[2],
                w_shape[2] as i64,
                strides[0],
                dilation[0],
                padding[0],
                x_shape[2],
            )
            .enumerate()
            {
                for (kx, (_, ix)) in taps(
                    at[3],
                    w_shape[3] as i64,
                    strides[1],
                    dilation[1],
                    padding[2],
                    x_shape[3],
                )
                .enumerate()
                {
                    if let (Some(iy), Some(ix)) = (iy, ix) {
                        sum += x[[at[0], first + c, iy, ix]] * w[[at[1], c, ky, kx]];
                    }
                }
            }
        }
        sum
    })
}

fn pool(x: &ArrayD<f64>, attrs: &Value, max: bool) -> ArrayD<f64> {
    let kernel = pair(attrs, "kernel", 1);
    let strides = if attrs["strides"].is_null() {
        kernel
    } else {
        pair(attrs, "strides", 1)
    };
    let padding = four(attrs);
    let include = attrs["count_include_pad"].as_bool().unwrap_or(true);
    let shape = x.shape();
    let extent = |axis: usize| {
        let (n, before, after) = (shape[2 + axis] as i64, padding[2 * axis], padding[2 * axis + 1]);
        let span = n + before + after - kernel[axis];
        if attrs["ceil_mode"].as_bool().unwrap_or(false) {
            let out = (span + strides[axis] - 1) / strides[axis] + 1;
            (out - i64::from((out - 1) * strides[axis] >= n + before)) as usize
        } else {
            (span / strides[axis] + 1) as usize
        }
    };
    ArrayD::from_shape_fn(IxDyn(&[shape[0], shape[1], extent(0), extent(1)]), |at| {
        let (mut most, mut sum, mut count) = (f64::NEG_INFINITY, 0.0, 0);
        for (py, iy) in taps(at[2], kernel[0], strides[0], 1, padding[0], shape[2]) {
            for (px, ix) in taps(at[3], kernel[1], strides[1], 1, padding[2], shape[3]) {
                let padded = py < shape[2] as i64 + padding[1] && px < shape[3] as i64 + padding[3];
                match (iy, ix) {
                    (Some(iy), Some(ix)) => {
                        let value = x[[at[0], at[1], iy, ix]];
                        (most, sum, count) = (most.max(value), sum + value, count + 1);
                    }
                    _ => count += i32::from(include && padded),
                }
            }
        }
        if max { most } else { sum / f64::from(count) }
    })
}

fn linear(x: &ArrayD<f64>, w: &ArrayD<f64>, bias: Option<&ArrayD<f64>>) -> ArrayD<f64> {
    let mut shape = x.shape().to_vec();
    let length = shape.pop().expect("an axis");
    shape.push(w.shape()[0]);
    ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let mut from = at.clone();
        let o = at[at.ndim() - 1];
        let last = from.ndim() - 1;
        let mut sum = bias.map_or(0.0, |b| b[[o]]);
        for i in 0..length {
            from[last] = i;
            sum += x[from.clone()] * w[[o, i]];
        }
        sum
    })
}

fn batch_norm(inputs: &[Option<&ArrayD<f64>>], attrs: &Value) -> ArrayD<f64> {
    let x = inputs[0].expect("x");
    let axis = axis(attrs["axis"].as_i64().unwrap_or(1), x.ndim());
    let epsilon = attrs["eps"].as_f64().unwrap_or(1e-5);
    ArrayD::from_shape_fn(IxDyn(x.shape()), |at| {
        let of = |input: usize, default: f64| inputs[input].map_or(default, |t| t[[at[axis]]]);
        (x[at.clone()] - of(3, 0.0)) / (of(4, 1.0) + epsilon).sqrt() * of(1, 1.0) + of(2, 0.0)
    })
}

/// Matrices of equal batches.
fn matmul(a: &ArrayD<f64>, b: &ArrayD<f64>) -> ArrayD<f64> {
    let rank = a.ndim();
    let (terms, columns) = (a.shape()[rank - 1], b.shape()[rank - 1]);
    let mut shape = a.shape().to_vec();
    shape[rank - 1] = columns;
    ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let (mut left, mut right) = (at.as_array_view().to_vec(), at.as_array_view().to_vec());
        let product = |term: usize| {
            left[rank - 1] = term;
            right[rank - 2] = term;
            a[IxDyn(&left)] * b[IxDyn(&right)]
        };
        (0..terms).map(product).sum()
    })
}

fn reduce(op: &str, x: &ArrayD<f64>, attrs: &Value) -> ArrayD<f64> {
    let mut axes: Vec<usize> = integers(&attrs["axes"]).iter().map(|&n| axis(n, x.ndim())).collect();
    axes.sort_unstable();
    let count: usize = axes.iter().map(|&axis| x.shape()[axis]).product();
    let mut result = x.clone();
    for &axis in axes.iter().rev() {
        result = match op {
            "max" => result.fold_axis(Axis(axis), f64::NEG_INFINITY, |a, &b| a.max(b)),
            _ => result.sum_axis(Axis(axis)),
        };
        if attrs["keepdims"].as_bool().unwrap_or(false) {
            result = result.insert_axis(Axis(axis));
        }
    }
    if op == "mean" { result / count as f64 } else { result }
}

fn pad(x: &ArrayD<f64>, attrs: &Value) -> ArrayD<f64> {
    let padding: Vec<Vec<i64>> = list(&attrs["padding"]).iter().map(integers).collect();
    let shape: Vec<usize> = x
        .shape()
        .iter()
        .zip(&padding)
        .map(|(&n, p)| n + (p[0] + p[1]) as usize)
        .collect();
    let value = attrs["value"].as_f64().unwrap_or(0.0);
    ArrayD::from_shape_fn(IxDyn(&shape), |at| {
        let from: Option<Vec<usize>> = (0..at.ndim())
            .map(|axis| {
                at[axis]
                    .checked_sub(padding[axis][0] as usize)
                    .filter(|&n| n < x.shape()[axis])
            })
            .collect();
        from.map_or(value, |from| x[IxDyn(&from)])
    })
}

fn binary(x: &ArrayD<f64>, y: &ArrayD<f64>, f: impl Fn(f64, f64) -> f64) -> ArrayD<f64> {
    // Broadcasting is ndarray's own; adding to zeros gives both operands the common shape.
    let zeros = x * 0.0 + y * 0.0;
    let (x, y) = (x + &zeros, y + &zeros);
    ArrayD::from_shape_fn(zeros.raw_dim(), |at| f(x[at.clone()], y[at]))
}

fn reshaped(x: &ArrayD<f64>, shape: &[usize]) -> ArrayD<f64> {
    let values: Vec<f64> = x.iter().copied().collect();
    ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many elements")
}

fn axis(axis: i64, rank: usize) -> usize {
    axis.rem_euclid(rank as i64) as usize
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn integers(value: &Value) -> Vec<i64> {
    list(value).iter().filter_map(Value::as_i64).collect()
}

fn pair(attrs: &Value, key: &str, default: i64) -> [i64; 2] {
    match integers(&attrs[key])[..] {
        [rows, columns] => [rows, columns],
        _ => [default; 2],
    }
}

/// Padding: top, bottom, left, right.
fn four(attrs: &Value) -> [i64; 4] {
    integers(&attrs["padding"]).try_into().unwrap_or([0; 4])
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}
