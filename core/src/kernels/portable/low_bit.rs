//! Convolutions with weights of 16, 8 or 4 bits under f32 activations, and of 4 under int8 ones, straight from the formulas of [`crate::ops::low_bit`].

use super::conv2d::{are_shifts, each_output, trailing};
use super::{clamp, taps};
use crate::arena::Mem;
use crate::cells::{Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::low_bit::{Conv2dS8W4, MOST_FACTOR, Shape, WeightOnlyF32, filter_bytes};
use crate::ops::operator::Needs;
use crate::ops::window::{Window2d, three, two};
use crate::quant::Multiplier;

/// f32 activations, weights of `BITS` bits, any groups.
#[derive(Debug)]
pub struct F32<const BITS: u32>;

impl<const BITS: u32> Kernel for F32<BITS> {
    type Op = WeightOnlyF32;

    fn needs(op: &WeightOnlyF32) -> Needs {
        Needs {
            scratch: 0,
            weights: op.shape().and_then(|shape| shape.bytes(BITS)).unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &WeightOnlyF32, index: usize) -> Option<i64> {
        trailing(&op.window, op.residual.is_some(), index)
    }

    const TRUSTS: bool = true;

    fn trusts(op: &WeightOnlyF32, weights: &[u8]) -> bool {
        scales_and_padding::<BITS>(op, &Mem::of_weights(weights)) == Some(true)
    }

    fn run(op: &WeightOnlyF32, mem: &Mem<'_>) -> Option<()> {
        let (window, shape) = (&op.window, op.shape()?);
        let input = mem.src::<f32>(op.input, window.input_len()?)?;
        let output = mem.dst::<f32>(op.output, window.output_len()?)?;
        let residual = match op.residual {
            Some(slot) => Some(mem.src::<f32>(slot, window.output_len()?)?),
            None => None,
        };
        let weights = mem.weights::<u8>(op.weights, shape.bytes(BITS)?)?;
        let scales = mem.weights::<f32>(op.scales, shape.all_parts()?)?;
        let bias = match op.bias {
            Some(bias) => mem.weights::<f32>(bias, shape.outputs)?,
            None => &[],
        };
        each_output(window, op.groups, output, |at, image, y, x, o, first_channel| {
            let filter = part_of(weights, o, filter_bytes(shape.filter, BITS))?;
            let scales = part_of(scales, o, shape.parts)?;
            let mut sum = bias.get(o).copied().unwrap_or(0.0);
            each_part(
                window,
                op.groups,
                input,
                [image, y, x],
                first_channel,
                op.share,
                |part, first, x| {
                    sum += scales.get(part)? * dot::<BITS>(x, filter, first)?;
                    Some(())
                },
            )?;
            if let Some(residual) = residual {
                sum += residual.get(at)?;
            }
            Some(clamp(sum, op.clamp))
        })
    }
}

#[cfg(any(test, packing))]
impl<const BITS: u32> Candidate for F32<BITS> {}

/// int8 activations, weights of 4 bits, any groups.
#[derive(Debug)]
pub struct S8W4;

impl Kernel for S8W4 {
    type Op = Conv2dS8W4;

    fn needs(op: &Conv2dS8W4) -> Needs {
        Needs {
            scratch: 0,
            weights: op.shape().and_then(|shape| shape.bytes(4)).unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &Conv2dS8W4, index: usize) -> Option<i64> {
        let lead = u32::from(op.window.output[2]) - 1;
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8W4, weights: &[u8]) -> bool {
        factors_and_padding(op, &Mem::of_weights(weights)) == Some(true)
    }

    fn run(op: &Conv2dS8W4, mem: &Mem<'_>) -> Option<()> {
        let (window, shape) = (&op.window, op.shape()?);
        let input = mem.src::<i8>(op.input, window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, window.output_len()?)?;
        let weights = mem.weights::<u8>(op.weights, shape.bytes(4)?)?;
        let factors = mem.weights::<u8>(op.factors, shape.all_parts()?)?;
        let records = mem.weights::<i32>(op.channels, shape.outputs.checked_mul(3)?)?;
        let (records, _) = records.as_chunks::<3>();
        let zero_point = i32::from(op.input_zero_point);
        let [low, high] = op.clamp.map(i32::from);
        each_output(window, op.groups, output, |_, image, y, x, o, first_channel| {
            let filter = part_of(weights, o, filter_bytes(shape.filter, 4))?;
            let factors = part_of(factors, o, shape.parts)?;
            let [bias, mantissa, shift] = *records.get(o)?;
            let mut sum = bias;
            each_part(
                window,
                op.groups,
                input,
                [image, y, x],
                first_channel,
                op.share,
                |part, first, x| {
                    let products = dot_s8(x, filter, first, zero_point)?;
                    sum = sum.wrapping_add(products.wrapping_mul(i32::from(*factors.get(part)?)));
                    Some(())
                },
            )?;
            let shift = shift as i8;
            let scaled = Multiplier { mantissa, shift }.apply(sum);
            let stored = scaled.wrapping_add(i32::from(op.output_zero_point)).max(low).min(high);
            Some(stored as i8)
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8W4 {}

/// The part of output `o` in a table with `len` entries for each output.
fn part_of<T>(table: &[T], o: usize, len: u32) -> Option<&[T]> {
    let len = len as usize;
    table.get(o.checked_mul(len)?..)?.get(..len)
}

/// Whether all scales are finite and above zero, and halves of bytes that hold no weight are zero.
fn scales_and_padding<const BITS: u32>(op: &WeightOnlyF32, mem: &Mem<'_>) -> Option<bool> {
    let shape = op.shape()?;
    let scales = mem.weights::<f32>(op.scales, shape.all_parts()?)?;
    // As bits: above zero is what lies above those of zero and below infinity's.
    let usable = |scale: &f32| (1..f32::INFINITY.to_bits()).contains(&scale.to_bits());
    let padding = BITS != 4 || padding_is_zero(mem.weights::<u8>(op.weights, shape.bytes(BITS)?)?, &shape)?;
    Some(padding && scales.iter().all(usable))
}

/// Whether all factors are such that products are int8 weights, all shifts are, and halves of bytes that hold no weight are zero.
fn factors_and_padding(op: &Conv2dS8W4, mem: &Mem<'_>) -> Option<bool> {
    let shape = op.shape()?;
    let factors = mem.weights::<u8>(op.factors, shape.all_parts()?)?;
    let records = mem.weights::<i32>(op.channels, shape.outputs.checked_mul(3)?)?;
    let padding = padding_is_zero(mem.weights::<u8>(op.weights, shape.bytes(4)?)?, &shape)?;
    let factors = factors.iter().all(|factor| (1..=MOST_FACTOR).contains(factor));
    Some(padding && factors && are_shifts::<3>(records.as_chunks().0))
}

fn padding_is_zero(weights: &[u8], shape: &Shape) -> Option<bool> {
    if shape.filter.is_multiple_of(2) {
        return Some(true);
    }
    let bytes = filter_bytes(shape.filter, 4) as usize;
    let filters = (0..shape.outputs as usize).map(|o| weights.get(o * bytes..)?.get(..bytes)?.last().copied());
    let mut bits = 0;
    for last in filters {
        bits |= last?;
    }
    Some(bits & 0xF0 == 0)
}

/// Calls `part(number, first weight, activations)` for all parts of a filter's weights that lie over the input, or as much of each as lies in one run of
/// neighbours: a row of taps, or where these are apart the channels of each.
fn each_part<T: Element>(
    window: &Window2d,
    groups: u16,
    input: Src<'_, T>,
    [image, y, x]: [usize; 3],
    first_channel: usize,
    share: u32,
    mut part: impl FnMut(usize, usize, Src<'_, T>) -> Option<()>,
) -> Option<()> {
    let [h, w, c] = three::<_, usize>(window.input);
    let [_, kw] = two::<_, usize>(window.kernel);
    let [dh, dw] = two::<_, usize>(window.dilation);
    let channels = c.checked_div(usize::from(groups))?;
    let share = share as usize;
    let (ky, rows, iy) = taps(y, window, 0)?;
    let (kx, columns, ix) = taps(x, window, 1)?;
    let (runs, len) = if groups == 1 && dw == 1 {
        (usize::from(columns > 0), columns * c)
    } else {
        (columns, channels)
    };
    for r in 0..rows {
        for k in 0..runs {
            let pixel = (image * h + iy + r * dh) * w + ix + k * dw;
            let run = input.slice(pixel * c + first_channel, len)?;
            let mut first = ((ky + r) * kw + kx + k) * channels;
            let mut number = first.checked_div(share)?;
            let mut left = share - (first - number * share);
            let mut done = 0;
            while done < len {
                let here = left.min(len - done);
                part(number, first, run.slice(done, here)?)?;
                (done, first, number, left) = (done + here, first + here, number + 1, share);
            }
        }
    }
    Some(())
}

/// The weight in the low half of a byte.
fn low(byte: u8) -> i8 {
    ((byte << 4) as i8) >> 4
}

/// The one in the high half.
fn high(byte: u8) -> i8 {
    (byte as i8) >> 4
}

/// The dot product of activations and as many weights from `first` on: a fixed order of additions, the same on every target.
#[inline(always)]
fn dot<const BITS: u32>(x: Src<'_, f32>, filter: &[u8], first: usize) -> Option<f32> {
    if BITS == 16 {
        let (halves, _) = filter.as_chunks();
        return Some(dot_of(x, halves.get(first..)?.get(..x.len())?, |&half| widened(half)));
    }
    if BITS == 8 {
        return Some(dot_of(x, filter.get(first..)?.get(..x.len())?, |&q| f32::from(q as i8)));
    }
    let mut sum = 0.0;
    let (x, bytes) = halves(x, filter, first, |x, q| sum += x * f32::from(q))?;
    let mut sums = [0.0_f32; 4];
    let (fours, rest) = x.chunks::<4>();
    let (pairs, _) = bytes.as_chunks::<2>();
    for (i, &[a, b]) in (0..x.len() / 4).zip(pairs) {
        let weights = [low(a), high(a), low(b), high(b)];
        for ((sum, x), q) in sums.iter_mut().zip(fours.get(i)?).zip(weights) {
            *sum += x * f32::from(q);
        }
    }
    let tail = bytes.get(x.len() / 4 * 2..)?;
    let [p, q, r, s] = sums;
    sum += (p + q) + (r + s);
    for (at, x) in rest.iter().enumerate() {
        sum += x * f32::from(half(tail, at)?);
    }
    Some(sum)
}

/// The f32 of a finite half, in the same few instructions for all of them.
#[inline(always)]
fn widened(half: [u8; 2]) -> f32 {
    // The half's exponent and mantissa at their places in an f32, whose sign is that of the half.
    let bits = (i32::from(i16::from_le_bytes(half)) << 13) as u32 & 0x8FFF_E000;
    // An f32 counts its exponent from 127, a half from 15.
    f32::from_bits(bits) * f32::from_bits((127 + 112) << 23)
}

/// Four sums, so that none waits for another.
#[inline(always)]
fn dot_of<W>(x: Src<'_, f32>, w: &[W], wide: impl Fn(&W) -> f32) -> f32 {
    let mut sums = [0.0_f32; 4];
    let (blocks, rest) = w.as_chunks::<4>();
    let (fours, others) = x.chunks::<4>();
    for (i, block) in blocks.iter().enumerate() {
        if let Some(x) = fours.get(i) {
            for ((sum, x), q) in sums.iter_mut().zip(x).zip(block) {
                *sum += x * wide(q);
            }
        }
    }
    let [p, q, r, s] = sums;
    let tail = others.iter().zip(rest).map(|(x, q)| x * wide(q));
    (p + q) + (r + s) + tail.sum::<f32>()
}

/// The same of int8 activations and weights of 4 bits.
fn dot_s8(x: Src<'_, i8>, filter: &[u8], first: usize, zero_point: i32) -> Option<i32> {
    let mut sum = 0_i32;
    let mut add = |x: i8, q: i8| sum = sum.wrapping_add((i32::from(x) - zero_point) * i32::from(q));
    let (x, bytes) = halves(x, filter, first, &mut add)?;
    let (pairs, rest) = x.chunks::<2>();
    for (i, &byte) in (0..x.len() / 2).zip(bytes) {
        let [a, b] = pairs.get(i)?;
        add(a, low(byte));
        add(b, high(byte));
    }
    if let Some(last) = rest.get(0) {
        add(last, low(*bytes.get(x.len() / 2)?));
    }
    Some(sum)
}

/// Hands a weight in a high half to `add`, where `first` is one, with its activation; returns the others and the bytes of their weights.
#[inline(always)]
fn halves<'x, 'f, T: Element>(
    x: Src<'x, T>,
    filter: &'f [u8],
    first: usize,
    mut add: impl FnMut(T, i8),
) -> Option<(Src<'x, T>, &'f [u8])> {
    let bytes = filter.get(first / 2..)?;
    if first.is_multiple_of(2) {
        return Some((x, bytes));
    }
    let (byte, bytes) = bytes.split_first()?;
    let Some(own) = x.get(0) else {
        return Some((x, bytes));
    };
    add(own, high(*byte));
    Some((x.slice(1, x.len() - 1)?, bytes))
}

/// Weight `at` of bytes that begin with one in a low half.
fn half(bytes: &[u8], at: usize) -> Option<i8> {
    let byte = *bytes.get(at / 2)?;
    Some(if at.is_multiple_of(2) { low(byte) } else { high(byte) })
}
