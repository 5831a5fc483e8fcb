//! Convolution straight from the formula of [`crate::ops::conv2d`]. Weights OHWI.

#[cfg(feature = "rolling")]
use super::rows::Rows;
use super::{clamp, dot, taps};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(feature = "rolling")]
use crate::arena::Slot;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Layout};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::operator::Needs;
use crate::ops::window::{Window2d, three, two};
use crate::quant::Multiplier;

/// f32, any groups.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = Conv2dF32;

    fn needs(op: &Conv2dF32) -> Needs {
        Needs {
            scratch: 0,
            weights: op.weights_len().unwrap_or(u32::MAX).saturating_mul(4),
        }
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        trailing(&op.window, op.residual.is_some(), index)
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let input = mem.src::<f32>(op.input, window.input_len()?)?;
        let output = mem.dst::<f32>(op.output, window.output_len()?)?;
        let residual = match op.residual {
            Some(slot) => Some(mem.src::<f32>(slot, window.output_len()?)?),
            None => None,
        };
        let weights = mem.weights::<f32>(op.weights, op.weights_len()?)?;
        let bias = op.biases(mem)?;
        let channels = op.group_channels() as usize;
        each_output(window, op.groups, output, |at, image, y, x, o, first_channel| {
            let mut sum = bias.get(o).copied().unwrap_or(0.0);
            each_row(
                window,
                input,
                weights,
                channels,
                image,
                y,
                x,
                o,
                first_channel,
                |x, w| sum += dot(x, w),
            )?;
            if let Some(residual) = residual {
                sum += residual.get(at)?;
            }
            Some(clamp(sum, op.clamp))
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dF32);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dF32<P>> {
        let (op, _) = job.conv2d_f32()?;
        (!op.is_depthwise()).then_some(op)
    }

    fn layout(_: &Conv2dF32) -> Layout {
        Layout::Plain
    }
}

/// f32 with one input channel a group. Weights OHWI, i.e. `[channels, kh, kw, 1]`.
#[derive(Debug)]
pub struct DepthwiseF32;

impl Kernel for DepthwiseF32 {
    type Op = Conv2dF32;

    fn needs(op: &Conv2dF32) -> Needs {
        F32::needs(op)
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        F32::distance(op, index)
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        F32::run(op, mem)
    }
}

#[cfg(any(test, packing))]
impl Candidate for DepthwiseF32 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dF32);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dF32<P>> {
        let (op, _) = job.conv2d_f32()?;
        op.is_depthwise().then_some(op)
    }

    fn layout(_: &Conv2dF32) -> Layout {
        Layout::Plain
    }
}

/// int8, any groups. The channel records' bias is the model's own.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn needs(op: &Conv2dS8) -> Needs {
        Needs {
            scratch: if op.is_staged() {
                u32::from(op.window.output[2])
            } else {
                0
            },
            weights: op.weights_len().unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        let lead = if op.is_staged() {
            0
        } else {
            u32::from(op.window.output[2]) - 1
        };
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        channel_shifts_are_valid(op, &Mem::of_weights(weights))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        #[cfg(feature = "rolling")]
        if op.input.region == Slot::ROLLED {
            return conv2d_of_row(op, mem);
        }
        let window = &op.window;
        let input = mem.src::<i8>(op.input, window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, window.output_len()?)?;
        let stage = mem.dst::<i8>(op.scratch, Self::needs(op).scratch)?;
        let weights = mem.weights::<i8>(op.weights, op.weights_len()?)?;
        let records = mem.weights::<i32>(op.channels, u32::from(window.output[2]).checked_mul(3)?)?;
        let (records, _) = records.as_chunks::<3>();
        let channels = op.group_channels() as usize;
        let zero_point = i32::from(op.input_zero_point);
        let value = |_: usize, image: usize, y: usize, x: usize, o: usize, first_channel: usize| {
            let record = records.get(o)?;
            let [mut sum, ..] = *record;
            let add = |x: Src<'_, i8>, w: &[i8]| {
                for (x, &w) in x.iter().zip(w) {
                    sum = sum.wrapping_add((i32::from(x) - zero_point) * i32::from(w));
                }
            };
            each_row(window, input, weights, channels, image, y, x, o, first_channel, add)?;
            Some(stored(op, record, sum))
        };
        if op.is_staged() {
            each_pixel(window, op.groups, output, stage, value)
        } else {
            each_output(window, op.groups, output, value)
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        (!op.is_depthwise()).then_some(op)
    }

    fn layout(_: &Conv2dS8) -> Layout {
        Layout::Plain
    }
}

/// int8 with one input channel a group. The channel records' bias is the model's own.
#[derive(Debug)]
pub struct DepthwiseS8;

impl Kernel for DepthwiseS8 {
    type Op = Conv2dS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn needs(op: &Conv2dS8) -> Needs {
        S8::needs(op)
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        S8::distance(op, index)
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        S8::trusts(op, weights)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        S8::run(op, mem)
    }
}

#[cfg(any(test, packing))]
impl Candidate for DepthwiseS8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        op.is_depthwise().then_some(op)
    }

    fn layout(_: &Conv2dS8) -> Layout {
        Layout::Plain
    }
}

/// Distance by which an f32 output that is written in order, one channel after the other, may overlap its input (1) and its residual (2).
pub(super) fn trailing(window: &Window2d, residual: bool, index: usize) -> Option<i64> {
    match index {
        1 => Some(window.consumed_distance(4, u32::from(window.output[2]) - 1)),
        2 if residual => Some(0),
        _ => None,
    }
}

/// Whether the words for the channels' shifts are shifts, in all their bits.
pub(crate) fn channel_shifts_are_valid(op: &Conv2dS8, mem: &Mem<'_>) -> bool {
    let records = mem.weights::<i32>(op.channels, u32::from(op.window.output[2]) * 3);
    records.is_some_and(|records| are_shifts::<3>(records.as_chunks().0))
}

/// Whether the last word of each record is a shift. Load asks it of every channel: without a branch for each, in a function of its own, for speed.
#[inline(never)]
pub(super) fn are_shifts<const N: usize>(records: &[[i32; N]]) -> bool {
    const MASK: i32 = Multiplier::MAX_SHIFT as i32;
    const { assert!(MASK & (MASK + 1) == 0, "all bits up to the highest are shifts") };
    let of = |record: &[i32; N]| record.last().map_or(0, |shift| shift.wrapping_abs());
    let (fours, rest) = records.as_chunks::<4>();
    let bits = fours
        .iter()
        .fold(0, |bits, [a, b, c, d]| bits | of(a) | of(b) | of(c) | of(d));
    rest.iter().fold(bits, |bits, record| bits | of(record)) & !MASK == 0
}

/// [`S8`] of one row.
#[cfg(feature = "rolling")]
fn conv2d_of_row(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
    let window = &op.window;
    let input = Rows::<i8>::of(mem, op.input, window)?;
    let output = mem.dst::<i8>(op.output, window.output_len()?)?;
    let stage = mem.dst::<i8>(op.scratch, S8::needs(op).scratch)?;
    let weights = mem.weights::<i8>(op.weights, op.weights_len()?)?;
    let records = mem.weights::<i32>(op.channels, u32::from(window.output[2]).checked_mul(3)?)?;
    let (records, _) = records.as_chunks::<3>();
    let channels = op.group_channels() as usize;
    let all_channels = usize::from(window.input[2]);
    let zero_point = i32::from(op.input_zero_point);
    let [kh, kw] = two::<_, usize>(window.kernel);
    let [dh, dw] = two::<_, usize>(window.dilation);
    let (ky, rows, iy) = taps(0, window, 0)?;
    let value = |_: usize, _: usize, _: usize, x: usize, o: usize, first_channel: usize| {
        let record = records.get(o)?;
        let [mut sum, ..] = *record;
        let (kx, columns, ix) = taps(x, window, 1)?;
        for r in 0..rows {
            let row = input.get(iy + r * dh)?;
            let tap = (o * kh + ky + r) * kw + kx;
            for k in 0..columns {
                let x = row.slice((ix + k * dw) * all_channels + first_channel, channels)?;
                let w = weights.get((tap + k) * channels..)?.get(..channels)?;
                for (x, &w) in x.iter().zip(w) {
                    sum = sum.wrapping_add((i32::from(x) - zero_point) * i32::from(w));
                }
            }
        }
        Some(stored(op, record, sum))
    };
    if op.is_staged() {
        each_pixel(window, op.groups, output, stage, value)
    } else {
        each_output(window, op.groups, output, value)
    }
}

/// A sum as the output's number.
#[inline(always)]
fn stored(op: &Conv2dS8, &[_, mantissa, shift]: &[i32; 3], sum: i32) -> i8 {
    let shift = shift as i8;
    let scaled = Multiplier { mantissa, shift }.apply(sum);
    let [low, high] = op.clamp.map(i32::from);
    // `clamp` panics on an empty range, which load excludes but the compiler does not see.
    let stored = scaled.wrapping_add(i32::from(op.output_zero_point)).max(low).min(high);
    stored as i8
}

/// Calls `value(index, image, y, x, channel, first input channel of its group)` for every output element in order.
pub(super) fn each_output<T: crate::cells::Element>(
    window: &Window2d,
    groups: u16,
    output: Dst<'_, T>,
    value: impl Fn(usize, usize, usize, usize, usize, usize) -> Option<T>,
) -> Option<()> {
    let [oh, ow, oc] = three::<_, usize>(window.output);
    let per_group = oc.checked_div(usize::from(groups))?;
    let group_channels = usize::from(window.input[2]).checked_div(usize::from(groups))?;
    let mut at = 0;
    for image in 0..usize::from(window.batch) {
        for y in 0..oh {
            for x in 0..ow {
                for o in 0..oc {
                    let first_channel = o.checked_div(per_group)? * group_channels;
                    output.set(at, value(at, image, y, x, o, first_channel)?)?;
                    at += 1;
                }
            }
        }
    }
    Some(())
}

/// [`each_output`], but writes the channels of a pixel only when all of them are computed, from `stage`.
fn each_pixel<T: crate::cells::Element>(
    window: &Window2d,
    groups: u16,
    output: Dst<'_, T>,
    stage: Dst<'_, T>,
    value: impl Fn(usize, usize, usize, usize, usize, usize) -> Option<T>,
) -> Option<()> {
    let [oh, ow, oc] = three::<_, usize>(window.output);
    let one = Window2d {
        batch: 1,
        output: [1, 1, window.output[2]],
        ..*window
    };
    let mut pixel = 0;
    for image in 0..usize::from(window.batch) {
        for y in 0..oh {
            for x in 0..ow {
                each_output(&one, groups, stage, |at, _, _, _, o, first| {
                    value(pixel + at, image, y, x, o, first)
                })?;
                let place = output.slice(pixel, oc)?;
                for (to, from) in place.cells().iter().zip(stage.as_src().iter()) {
                    to.set(from);
                }
                pixel += oc;
            }
        }
    }
    Some(())
}

/// Calls `row(input, weights)` for every run of channels under the window of one output element that lies inside the input.
#[expect(clippy::too_many_arguments, reason = "the indices of one output element")]
pub(super) fn each_row<'a, T: crate::cells::Element, W>(
    window: &Window2d,
    input: Src<'a, T>,
    weights: &'a [W],
    channels: usize,
    image: usize,
    y: usize,
    x: usize,
    o: usize,
    first_channel: usize,
    mut row: impl FnMut(Src<'a, T>, &'a [W]),
) -> Option<()> {
    let [h, w, c] = three::<_, usize>(window.input);
    let [kh, kw] = two::<_, usize>(window.kernel);
    let [dh, dw] = two::<_, usize>(window.dilation);
    let (ky, rows, iy) = taps(y, window, 0)?;
    let (kx, columns, ix) = taps(x, window, 1)?;
    for r in 0..rows {
        for k in 0..columns {
            let pixel = (image * h + iy + r * dh) * w + ix + k * dw;
            let tap = (o * kh + ky + r) * kw + kx + k;
            let x = input.slice(pixel * c + first_channel, channels)?;
            let w = weights.get(tap * channels..)?.get(..channels)?;
            row(x, w);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn shifts_are_those_of_valid_multipliers() {
        let words = (-300..300).chain([i32::MIN, i32::MAX, i32::MIN + 1, 1 << 8, 31 << 8]);
        for (word, count) in words.flat_map(|word| (1..10).map(move |count| (word, count))) {
            let valid = i8::try_from(word).is_ok_and(|shift| Multiplier { mantissa: 0, shift }.is_valid());
            for at in 0..count {
                let mut records = std::vec![[-1, -1, 31]; count];
                records[at][2] = word;
                assert_eq!(are_shifts::<3>(&records), valid, "{word} at {at} of {count}");
            }
        }
    }
}
