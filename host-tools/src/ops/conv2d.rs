//! Convolutions: windows, weights and, where quantised, multipliers.

use arenite::kernels::Backend;
use arenite::ops::conv2d::{Conv2dF32, Conv2dS8};
use arenite::ops::window::Window2d;
use arenite::quant::Multiplier;
use arenite::{DType, Step};

use super::select::{self, PackedF32};
use super::{clamp, fit, input, output, want_f32};
use crate::error::{Error, Result};
use crate::graph::infer::nhwc;
use crate::graph::{Activation, Conv2dAttrs, Node, Padding2d, Quant, Tensor, TensorId};
use crate::program::{Lower, Place};

/// Lowers a convolution of f32 or int8 activations.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, attrs: &Conv2dAttrs) -> Result<()> {
    let graph = lower.graph();
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let kernel = [graph.tensor(w).shape[1], graph.tensor(w).shape[2]];
    let window = window(
        graph.tensor(x),
        graph.tensor(y),
        attrs.layout,
        kernel,
        attrs.stride,
        attrs.dilation,
        attrs.padding,
    )?;
    let macs = graph.tensor(y).elements() as u64 * graph.tensor(w).shape[1..].iter().product::<usize>() as u64;
    match graph.tensor(x).dtype {
        DType::I8 => lower_s8(lower, node, attrs, window, macs),
        DType::I16 => super::conv2d_int::lower_s16(lower, node, window, attrs.groups, attrs.activation, macs),
        _ => lower_f32(lower, node, attrs, window, macs),
    }
}

fn lower_f32(lower: &mut Lower<'_>, node: &Node, attrs: &Conv2dAttrs, window: Window2d, macs: u64) -> Result<()> {
    want_f32(lower.graph(), node)?;
    let groups = fit(attrs.groups, "the number of groups")?;
    let depthwise = groups == window.input[2] && groups > 1;
    let residual = node.inputs.get(3).copied().flatten();
    let bias = node.inputs.get(2).copied().flatten();
    let bias = convolution_bias_f32(lower, bias, usize::from(window.output[2]))?;
    let op = Conv2dF32 {
        output: Place::Tensor(output(node)?, 0),
        input: lower.place(input(node, 0)?)?,
        residual: residual.map(|id| lower.place(id)).transpose()?,
        scratch: Place::Scratch,
        weights: 0,
        bias,
        window,
        groups,
        clamp: clamp(attrs.activation),
    };
    let kind = if depthwise { "depthwise_conv2d" } else { "conv2d" };
    if push_f32(lower, node, kind, op, macs)? {
        return Ok(());
    }
    let weights = lower.constant(input(node, 1)?)?;
    let step = if depthwise { Step::DepthwiseF32 } else { Step::Conv2dF32 };
    lower.push(node, kind, step(Conv2dF32 { weights, ..op }), macs);
    Ok(())
}

/// Appends the step of an f32 convolution, or of a linear layer in the form of one, where a kernel beside the scalar one computes it. Operands: activations,
/// weights (OHWI when read in order), bias, residual.
pub(super) fn push_f32(
    lower: &mut Lower<'_>,
    node: &Node,
    kind: &'static str,
    mut op: Conv2dF32<Place>,
    macs: u64,
) -> Result<bool> {
    let w = input(node, 1)?;
    let read = || {
        let bytes = lower.bytes(w)?;
        let values = bytes.as_chunks::<4>().0.iter();
        Ok(values.map(|v| f32::from_le_bytes(*v)).collect())
    };
    let Some((step, weights)) = select::conv2d_f32(&lower.program, &op, read)? else {
        return Ok(false);
    };
    op.weights = match weights {
        PackedF32::Values(packed) => lower.program.weights.add_f32(&packed)?,
        PackedF32::Blocks(channels) => lower.blocked(w, channels)?,
    };
    lower.push(node, kind, step(op), macs);
    Ok(true)
}

fn lower_s8(lower: &mut Lower<'_>, node: &Node, attrs: &Conv2dAttrs, window: Window2d, macs: u64) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let (input_q, output_q) = (
        per_tensor(lower.graph().tensor(x))?,
        per_tensor(lower.graph().tensor(y))?,
    );
    let channels = usize::from(window.output[2]);
    let weights = lower.graph().tensor(w);
    let multipliers = multipliers(weights, channels, f64::from(input_q.0), f64::from(output_q.0))?;
    let clamp = clamp_s8(attrs.activation, output_q);
    let groups = fit(attrs.groups, "the number of groups")?;
    let kind = if groups == window.input[2] && groups > 1 {
        "depthwise_conv2d"
    } else {
        "conv2d"
    };
    push_s8(
        lower,
        node,
        kind,
        S8 {
            window,
            groups,
            input_q,
            output_q,
            clamp,
            multipliers,
        },
        macs,
    )
}

/// What an int8 convolution or fully connected layer has beside its operands.
pub(super) struct S8 {
    pub(super) window: Window2d,
    pub(super) groups: u16,
    /// Scale and zero point.
    pub(super) input_q: (f32, i32),
    /// Scale and zero point.
    pub(super) output_q: (f32, i32),
    pub(super) clamp: [i8; 2],
    /// One for each output channel.
    pub(super) multipliers: Vec<Multiplier>,
}

/// Chooses the kernel, adds its weights and appends the step. Operands: activations, weights (OHWI when read in order), bias.
pub(super) fn push_s8(lower: &mut Lower<'_>, node: &Node, kind: &'static str, conv: S8, macs: u64) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let (x_tensor, w_tensor, y_tensor) = (
        lower.graph().tensor(x),
        lower.graph().tensor(w),
        lower.graph().tensor(y),
    );
    if [x_tensor, w_tensor, y_tensor].iter().any(|t| t.dtype != DType::I8) {
        return Err(Error::unsupported(format!(
            "{} of {} activations with {} weights and {} output",
            node.kind,
            x_tensor.dtype.name(),
            w_tensor.dtype.name(),
            y_tensor.dtype.name()
        ))
        .expected("int8 throughout"));
    }
    let bias = match node.inputs.get(2).copied().flatten() {
        Some(bias) if lower.graph().tensor(bias).dtype == DType::I32 => lower
            .bytes(bias)?
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| i32::from_le_bytes(*b))
            .collect(),
        Some(bias) => {
            let dtype = lower.graph().tensor(bias).dtype.name();
            return Err(Error::unsupported(format!("a bias of {dtype} for int8 activations")).expected("int32"));
        }
        None => vec![0; conv.multipliers.len()],
    };
    let channels: Vec<[i32; 3]> = bias
        .iter()
        .zip(&conv.multipliers)
        .map(|(&bias, m)| [bias, m.mantissa, i32::from(m.shift)])
        .collect();
    let weights: Vec<i8> = lower.bytes(w)?.iter().map(|&b| b as i8).collect();
    let stages = lower.program.share && conv.window.output[..2] != [1, 1];
    let op = Conv2dS8 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        scratch: Place::Scratch,
        weights: 0,
        channels: 0,
        window: conv.window,
        groups: conv.groups,
        input_zero_point: zero_point_s8(conv.input_q.1)?,
        output_zero_point: zero_point_s8(conv.output_q.1)?,
        clamp: conv.clamp,
        flags: if stages { Conv2dS8::STAGED } else { 0 },
    };
    let plain = select::Plain {
        weights: &weights,
        channels: &channels,
    };
    let choice = select::conv2d_s8(&lower.program, op, &plain)
        .ok_or_else(|| Error::internal(format!("no backend of {} computes it", lower.program.target.name())))?;
    let weights = lower.program.weights.add_bytes(choice.weights)?;
    let records = match choice.records.is_empty() {
        true => weights,
        false => lower.program.weights.add_i32(&choice.records)?,
    };
    lower.push(node, kind, (choice.step)(weights, records), macs);
    Ok(())
}

/// The device's window of a convolution or pooling.
pub(super) fn window(
    x: &Tensor,
    y: &Tensor,
    layout: crate::graph::Layout,
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    padding: Padding2d,
) -> Result<Window2d> {
    if layout != crate::graph::Layout::Nhwc {
        return Err(Error::internal("a spatial operator in NCHW order reached lowering"));
    }
    let [n, h, w, c] = nhwc(layout, &x.shape)?;
    let [_, oh, ow, oc] = nhwc(layout, &y.shape)?;
    // What the last window needs behind the input has the limit of what the first one needs before it.
    for (axis, (extent, outputs, before)) in [(h, oh, padding.top), (w, ow, padding.left)].into_iter().enumerate() {
        let last = outputs.saturating_sub(1).saturating_mul(stride[axis]);
        let reach = kernel[axis].saturating_sub(1).saturating_mul(dilation[axis]);
        let end = last.saturating_add(reach).saturating_add(1);
        fit::<u8>(end.saturating_sub(extent.saturating_add(before)), "the padding")?;
    }
    Ok(Window2d {
        batch: fit(n, "the batch")?,
        input: [
            fit(h, "the height")?,
            fit(w, "the width")?,
            fit(c, "the number of input channels")?,
        ],
        output: [
            fit(oh, "the height")?,
            fit(ow, "the width")?,
            fit(oc, "the number of output channels")?,
        ],
        kernel: [fit(kernel[0], "the kernel")?, fit(kernel[1], "the kernel")?],
        stride: [fit(stride[0], "the stride")?, fit(stride[1], "the stride")?],
        dilation: [fit(dilation[0], "the dilation")?, fit(dilation[1], "the dilation")?],
        padding: [fit(padding.top, "the padding")?, fit(padding.left, "the padding")?],
    })
}

/// The offset of a [`Conv2dF32`]'s bias; zeros for an absent one where kernels start their sums from a bias in memory, as Helium's do.
pub(super) fn convolution_bias_f32(lower: &mut Lower<'_>, bias: Option<TensorId>, len: usize) -> Result<Option<u32>> {
    match bias {
        None if !select::backends(&lower.program).contains(&Backend::Mve) => Ok(None),
        bias => bias_f32(lower, bias, len).map(Some),
    }
}

/// The offset of an f32 bias; zeros where there is none.
pub(super) fn bias_f32(lower: &mut Lower<'_>, bias: Option<TensorId>, len: usize) -> Result<u32> {
    match bias {
        Some(bias) => lower.constant(bias),
        None => lower.program.weights.add_f32(&vec![0.0; len]),
    }
}

/// Scale and zero point of a per-tensor quantised tensor.
pub(crate) fn per_tensor(tensor: &Tensor) -> Result<(f32, i32)> {
    match &tensor.quant {
        Some(Quant {
            scale,
            zero_point,
            axis: None,
        }) => Ok((scale[0], zero_point[0])),
        _ => Err(Error::input(format!(
            "`{}` ({}) has no per-tensor quantisation",
            tensor.name,
            tensor.dtype.name()
        ))),
    }
}

/// A zero point as int8.
pub(crate) fn zero_point_s8(zero_point: i32) -> Result<i8> {
    i8::try_from(zero_point)
        .map_err(|_| Error::input(format!("the zero point {zero_point} of an int8 tensor")).expected("-128 to 127"))
}

/// The clamp of a fused activation on stored int8 numbers: TensorFlow Lite's `CalculateActivationRangeQuantized`.
pub(crate) fn clamp_s8(activation: Activation, (scale, zero_point): (f32, i32)) -> [i8; 2] {
    let [low, high] = clamp(activation);
    let stored = |real: f32, open: i32| match real.is_finite() {
        true => arenite::quant::quantize(real, scale, zero_point, -128, 127),
        false => open,
    };
    [stored(low, -128) as i8, stored(high, 127) as i8]
}

/// The multiplier of each output channel: `input scale * weight scale / output scale`, in f64.
pub(super) fn multipliers(weights: &Tensor, channels: usize, input: f64, output: f64) -> Result<Vec<Multiplier>> {
    let Some(quant) = &weights.quant else {
        return Err(Error::input(format!(
            "the weights `{}` have no quantisation",
            weights.name
        )));
    };
    if let Some(zero) = quant.zero_point.iter().find(|&&z| z != 0) {
        return Err(Error::unsupported(format!("the weights `{}` have zero point {zero}", weights.name)).expected("0"));
    }
    (0..channels)
        .map(|channel| {
            let scale = if quant.axis.is_some() {
                quant.scale[channel]
            } else {
                quant.scale[0]
            };
            let real = input * f64::from(scale) / output;
            Multiplier::from_real(real)
                .ok_or_else(|| Error::input(format!("channel {channel} of `{}` has the factor {real}", weights.name)))
        })
        .collect()
}
