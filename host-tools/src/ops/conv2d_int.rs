//! int16 convolutions and linear layers: int8 weights, int64 biases and sums, all zero points 0.

use arenite::ops::conv2d::Conv2dS16;
use arenite::ops::window::Window2d;
use arenite::quant::Multiplier;
use arenite::{DType, Step};

use super::conv2d::per_tensor;
use super::elementwise_int::{clamp_int, factor};
use super::{fit, input, output};
use crate::error::{Error, Result};
use crate::graph::{Activation, Node, Quant};
use crate::program::{Lower, Place};

/// Lowers a convolution over `window`.
pub(super) fn lower_s16(
    lower: &mut Lower<'_>,
    node: &Node,
    window: Window2d,
    groups: usize,
    activation: Activation,
    macs: u64,
) -> Result<()> {
    let kind = if groups > 1 && groups == usize::from(window.input[2]) {
        "depthwise_conv2d"
    } else {
        "conv2d"
    };
    push(lower, node, window, groups, activation, (kind, macs))
}

/// Lowers a linear layer: a convolution of one row of pixels.
pub(super) fn lower_linear_s16(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    let (x, w) = (input(node, 0)?, input(node, 1)?);
    let (outputs, inputs) = (lower.graph().tensor(w).shape[0], lower.graph().tensor(w).shape[1]);
    let rows = lower.graph().tensor(x).elements() / inputs.max(1);
    let row = |features: usize| -> Result<[u16; 3]> {
        Ok([
            1,
            fit(rows, "the number of rows")?,
            fit(features, "the number of features")?,
        ])
    };
    let window = Window2d {
        batch: 1,
        input: row(inputs)?,
        output: row(outputs)?,
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    };
    push(
        lower,
        node,
        window,
        1,
        activation,
        ("linear", (rows * inputs * outputs) as u64),
    )
}

fn push(
    lower: &mut Lower<'_>,
    node: &Node,
    window: Window2d,
    groups: usize,
    activation: Activation,
    (kind, macs): (&'static str, u64),
) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let bias = node.inputs.get(2).copied().flatten();
    let graph = lower.graph();
    let types = (
        graph.tensor(w).dtype,
        graph.tensor(y).dtype,
        bias.map(|b| graph.tensor(b).dtype),
    );
    if !matches!(types, (DType::I8, DType::I16, None | Some(DType::I64))) {
        return Err(Error::unsupported("an int16 layer with these types")
            .expected("int8 weights, an int64 bias, an int16 result"));
    }
    let (qx, qy) = (per_tensor(graph.tensor(x))?, per_tensor(graph.tensor(y))?);
    if (qx.1, qy.1) != (0, 0) {
        return Err(Error::input(format!("zero points {} and {} of int16 tensors", qx.1, qy.1)).expected("0"));
    }
    let channels = usize::from(window.output[2]);
    let records = records(graph.tensor(w).quant.as_ref(), channels, qx.0, qy.0, kind == "linear")?;
    let clamp = clamp_int(activation, qy, DType::I16)?;
    let bias = match bias {
        Some(bias) => lower.bytes(bias)?,
        None => vec![0; 8 * channels],
    };
    let at = lower.place(x)?;
    let op = Conv2dS16 {
        output: Place::Tensor(y, 0),
        input: at,
        weights: lower.constant(w)?,
        bias: lower.program.weights.add_bytes(bias)?,
        channels: lower.program.weights.add_i32(&records)?,
        window,
        groups: fit(groups, "the number of groups")?,
        clamp: clamp.map(|c| c as i16),
    };
    lower.push(node, kind, Step::Conv2dS16(op), macs);
    Ok(())
}

/// `[mantissa, shift]` of each output channel. A linear layer with one scale multiplies the two input scales in f32, as
/// TensorFlow Lite does.
fn records(weights: Option<&Quant>, channels: usize, input: f32, output: f32, linear: bool) -> Result<Vec<i32>> {
    let quant = weights.ok_or_else(|| Error::input("weights without quantisation"))?;
    if quant.zero_point.iter().any(|&z| z != 0) {
        return Err(Error::unsupported("weights with a zero point").expected("0"));
    }
    let mut records = Vec::new();
    for channel in 0..channels {
        let real = match quant.axis {
            None if linear => f64::from(input * quant.scale[0]) / f64::from(output),
            axis => {
                let scale = quant.scale[if axis.is_some() { channel } else { 0 }];
                f64::from(input) * f64::from(scale) / f64::from(output)
            }
        };
        let Multiplier { mantissa, shift } = factor(real)?;
        records.extend([mantissa, i32::from(shift)]);
    }
    Ok(records)
}
