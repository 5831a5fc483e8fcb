//! Convolutions: of f32, int8 and int16. A linear layer is one of a row of pixels.

use arenite::kernels::api::candidate::PlainS8;
use arenite::ops::conv2d::{Conv2dF32, Conv2dS8, Conv2dS16};
use arenite::ops::window::Window2d;
use arenite::quant::Multiplier;
use arenite::{DType, Step, Target};

use super::context::{Lower, fit, input, optional, output, want_f32};
use super::copies::copy;
use super::low_bit;
use super::numbers::{clamp_int, clamp_s8, factor, multipliers, per_tensor, zero_point_s8};
use super::s8::S8;
use super::select::{self, Choice, Constants};
use super::train;
use super::windows::window;
use crate::error::{Error, Result};
use crate::graph::{Activation, Conv2dAttrs, Node, Quant, TensorId};
use crate::program::Place;

/// The kind of a convolution with a group for each channel.
const DEPTHWISE: &str = "depthwise_conv2d";

/// Lowers a convolution of f32, int8 or int16 activations.
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
        DType::I16 => push_s16(
            lower,
            node,
            window,
            attrs.groups,
            attrs.activation,
            (kind(attrs.groups, &window), macs),
        ),
        _ => lower_f32(lower, node, attrs, window, macs),
    }
}

fn kind(groups: usize, window: &Window2d) -> &'static str {
    if groups > 1 && groups == usize::from(window.input[2]) {
        DEPTHWISE
    } else {
        "conv2d"
    }
}

fn lower_f32(lower: &mut Lower<'_>, node: &Node, attrs: &Conv2dAttrs, window: Window2d, macs: u64) -> Result<()> {
    want_f32(lower.graph(), node)?;
    if train::is_trained(lower, node) {
        return train::conv2d(lower, node, (attrs, window), kind(attrs.groups, &window), macs);
    }
    if let Some(&bits) = lower.graph().low_bits.get(&node.name) {
        let layer = (kind(attrs.groups, &window), macs);
        return low_bit::push_f32(lower, node, (window, attrs.groups), bits, attrs.activation, layer);
    }
    let groups = fit(attrs.groups, "the number of groups")?;
    let bias = convolution_bias_f32(lower, optional(node, 2), usize::from(window.output[2]))?;
    let op = Conv2dF32 {
        output: Place::Tensor(output(node)?, 0),
        input: lower.place(input(node, 0)?)?,
        residual: optional(node, 3).map(|id| lower.place(id)).transpose()?,
        scratch: Place::Scratch,
        weights: 0,
        bias,
        window,
        groups,
        clamp: attrs.activation.bounds(),
    };
    let choice = choose_f32(lower, node, op)?;
    push_f32(lower, node, kind(attrs.groups, &window), choice, macs)
}

/// Chooses the kernel of an f32 convolution, or of a linear layer in the form of one. Operands: activations, weights (OHWI when read in order), bias,
/// residual.
pub(super) fn choose_f32(lower: &Lower<'_>, node: &Node, op: Conv2dF32<Place>) -> Result<Choice> {
    let w = input(node, 1)?;
    select::conv2d_f32(&lower.program, op, || {
        let bytes = lower.bytes(w)?;
        let values = bytes.as_chunks::<4>().0.iter();
        Ok(values.map(|v| f32::from_le_bytes(*v)).collect())
    })
}

/// Adds the weights of the step that [`choose_f32`] chose, and appends it.
pub(super) fn push_f32(
    lower: &mut Lower<'_>,
    node: &Node,
    kind: &'static str,
    choice: Choice,
    macs: u64,
) -> Result<()> {
    let w = input(node, 1)?;
    let Choice { mut step, constants } = choice;
    let weights = match constants {
        Constants::Plain => lower.constant(w)?,
        Constants::Blocks(channels) => lower.blocked(w, channels)?,
        Constants::Packed { weights, .. } => lower.program.weights.add_bytes(weights)?,
    };
    step.set_constants(weights, weights);
    lower.push(node, kind, step, macs);
    Ok(())
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
    let clamp = clamp_s8(attrs.activation, output_q)?;
    let groups = fit(attrs.groups, "the number of groups")?;
    push_s8(
        lower,
        node,
        kind(attrs.groups, &window),
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
    let bias = match optional(node, 2) {
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
    let plain = PlainS8 {
        weights: &weights,
        channels: &channels,
    };
    if let Some(&bits) = lower.graph().low_bits.get(&node.name) {
        return low_bit::push_s8(lower, node, &conv, plain, bits, (kind, macs));
    }
    // The scalar kernels and the compact one compute any groups by themselves.
    let by_parts = conv.groups > 1 && !lower.program.size && lower.program.target != Target::Portable;
    let [c, oc] = [conv.window.input[2], conv.window.output[2]];
    if by_parts && conv.groups != c {
        return push_groups(lower, node, kind, &conv, plain, macs);
    }
    let mut conv = conv;
    if conv.groups == 1 {
        conv.window = of_one_pixel(conv.window);
    }
    let mut at = lower.place(x)?;
    if by_parts && c != oc {
        // Every channel as often as it has filters: then each filter has a channel of its own.
        let mut shape = lower.graph().tensor(x).shape.clone();
        let elements = lower.graph().tensor(x).elements();
        let times = usize::from(oc) / usize::from(c).max(1);
        if let Some(last) = shape.last_mut() {
            *last = oc.into();
        }
        let repeated = lower.temporary_of(x, y, &shape, 0);
        copy(
            lower,
            node,
            "repeat",
            (x, 0),
            (repeated, 0),
            &[(times, 1, 0), (elements, times, 1)],
        )?;
        (conv.window.input[2], conv.groups) = (oc, oc);
        at = Place::Tensor(repeated, 0);
    }
    push_plain(lower, node, kind, &conv, plain, [Place::Tensor(y, 0), at], macs)
}

/// A window that is all of its image as the same of one pixel, whose channels are all of the image: convolutions at the end of networks, and those of one
/// new frame, are fully connected layers, and their weights are in that order already.
fn of_one_pixel(window: Window2d) -> Window2d {
    let [height, width, channels] = window.input;
    let whole = window.kernel == [height, width]
        && window.output[..2] == [1, 1]
        && (window.dilation, window.padding) == ([1, 1], [0, 0]);
    let inputs = [height, width, channels].map(u64::from).iter().product::<u64>();
    match u16::try_from(inputs) {
        Ok(inputs) if whole => Window2d {
            input: [1, 1, inputs],
            kernel: [1, 1],
            stride: [1, 1],
            ..window
        },
        _ => window,
    }
}

/// Input channels of as many groups as become one, with zeros where an output does not see an input: a pixel of fewer takes as long.
const MERGED: usize = 4;

/// Appends a convolution for each group, or for a few narrow ones, of channels that are copied out of the input's and into the output's.
fn push_groups(
    lower: &mut Lower<'_>,
    node: &Node,
    kind: &'static str,
    conv: &S8,
    plain: PlainS8<'_>,
    macs: u64,
) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let [c, oc] = [conv.window.input[2], conv.window.output[2]].map(usize::from);
    let (groups, weights) = merged(conv, plain.weights);
    let plain = PlainS8 {
        weights: &weights,
        ..plain
    };
    let (part_c, part_oc) = (c / groups, oc / groups);
    let pixels = [x, y].map(|id| {
        let tensor = lower.graph().tensor(id);
        tensor.elements() / tensor.shape.last().copied().unwrap_or(1).max(1)
    });
    let shape = |lower: &Lower<'_>, id: TensorId, channels: usize| {
        let mut shape = lower.graph().tensor(id).shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = channels;
        }
        shape
    };
    for group in 0..groups {
        let (shape_x, shape_y) = (shape(lower, x, part_c), shape(lower, y, part_oc));
        let from = lower.temporary_of(x, y, &shape_x, group);
        let to = lower.temporary_of(y, y, &shape_y, group);
        let channels = [(pixels[0], part_c, c as isize), (part_c, 1, 1)];
        copy(lower, node, "slice", (x, group * part_c), (from, 0), &channels)?;
        let mut part = S8 {
            window: conv.window,
            groups: 1,
            multipliers: Vec::new(),
            ..*conv
        };
        part.window.input[2] = fit(part_c, "the number of channels")?;
        part.window.output[2] = fit(part_oc, "the number of channels")?;
        let per_group = plain.weights.len() / groups;
        let of_group = PlainS8 {
            weights: &plain.weights[group * per_group..][..per_group],
            channels: &plain.channels[group * part_oc..][..part_oc],
        };
        let places = [to, from].map(|id| Place::Tensor(id, 0));
        push_plain(lower, node, kind, &part, of_group, places, macs / groups as u64)?;
        let channels = [(pixels[1], oc, part_oc as isize), (part_oc, 1, 1)];
        copy(lower, node, "concat", (to, 0), (y, group * part_oc), &channels)?;
    }
    Ok(())
}

/// How many groups there are where narrow ones are merged, and the weights of these.
fn merged(conv: &S8, weights: &[i8]) -> (usize, Vec<i8>) {
    let groups = usize::from(conv.groups);
    let [c, oc] = [conv.window.input[2], conv.window.output[2]].map(|extent| (usize::from(extent) / groups).max(1));
    let fits = |several: &usize| groups.is_multiple_of(*several) && several * c <= MERGED;
    let several = (1..=groups).rev().find(fits).unwrap_or(1);
    let mut wide = vec![0; weights.len() * several];
    let taps = conv.window.kernel.map(usize::from).into_iter().product::<usize>();
    let pixels = weights.chunks(c).zip(wide.chunks_mut(c * several));
    for (i, (from, to)) in pixels.enumerate() {
        let group = i / (taps * oc);
        to[group % several * c..][..c].copy_from_slice(from);
    }
    (groups / several, wide)
}

/// Chooses the kernel for these places and constants, adds its weights and appends the step.
fn push_plain(
    lower: &mut Lower<'_>,
    node: &Node,
    kind: &'static str,
    conv: &S8,
    plain: PlainS8<'_>,
    [output, input]: [Place; 2],
    macs: u64,
) -> Result<()> {
    let PlainS8 { weights, channels } = plain;
    let stages = lower.program.share && conv.window.output[..2] != [1, 1];
    let op = Conv2dS8 {
        output,
        input,
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
    let Choice { mut step, constants } = select::conv2d_s8(
        &lower.program,
        op,
        plain,
        lower.spends(node),
        (lower.cost, &lower.without),
    )?;
    let (packed, records) = match constants {
        Constants::Packed { weights, records } => (weights, records),
        Constants::Plain | Constants::Blocks(_) => (
            weights.iter().map(|&w| w as u8).collect(),
            channels.as_flattened().to_vec(),
        ),
    };
    let weights = lower.program.weights.add_bytes(packed)?;
    let records = if records.is_empty() {
        // They are in the weights: their field points there too.
        weights
    } else {
        lower.program.weights.add_i32(&records)?
    };
    step.set_constants(weights, records);
    lower.push(node, kind, step, macs);
    Ok(())
}

/// Appends the step of an int16 convolution or linear layer: int8 weights, int64 biases and sums, all zero points 0.
pub(super) fn push_s16(
    lower: &mut Lower<'_>,
    node: &Node,
    window: Window2d,
    groups: usize,
    activation: Activation,
    (kind, macs): (&'static str, u64),
) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let bias = optional(node, 2);
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

/// The offset of a [`Conv2dF32`]'s bias; zeros for an absent one where kernels start their sums from a bias in memory.
pub(super) fn convolution_bias_f32(lower: &mut Lower<'_>, bias: Option<TensorId>, len: usize) -> Result<Option<u32>> {
    match bias {
        None if !select::wants_bias_f32(&lower.program) => Ok(None),
        bias => lower.bias_f32(bias, len).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_are_the_image_are_pixels_and_no_others() {
        let window = Window2d {
            batch: 2,
            input: [5, 3, 40],
            output: [1, 1, 7],
            kernel: [5, 3],
            stride: [3, 1],
            dilation: [1, 1],
            padding: [0, 0],
        };
        let pixel = of_one_pixel(window);
        assert_eq!(
            (pixel.batch, pixel.input, pixel.output, pixel.kernel, pixel.stride),
            (2, [1, 1, 600], [1, 1, 7], [1, 1], [1, 1])
        );
        assert_eq!(of_one_pixel(pixel), pixel);
        for other in [
            Window2d {
                input: [6, 3, 40],
                ..window
            },
            Window2d {
                kernel: [5, 2],
                ..window
            },
            Window2d {
                padding: [1, 0],
                ..window
            },
            Window2d {
                dilation: [1, 2],
                ..window
            },
            Window2d {
                output: [2, 1, 7],
                ..window
            },
            // More than a window can name.
            Window2d {
                input: [5, 3, 4370],
                ..window
            },
        ] {
            assert_eq!(of_one_pixel(other), other);
        }
    }
}
