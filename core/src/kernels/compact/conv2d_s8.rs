//! int8 convolution of one group, depthwise convolution, and, as a convolution of one pixel, the fully connected layer.
//!
//! A pixel's window is copied to scratch, its border as the input's zero point; then every output channel is a sum of products over it, with
//! nothing left of borders, strides and dilations. Convolutions take a word of four activations past two channels at a time: 16
//! instructions for 8 MACs with the DSP extension. Depthwise sums walk the window in steps of a pixel: 6 instructions a MAC.
//!
//! **Weights**: a row of bytes for each output channel in the order `[kh, kw, in / groups]`, zeros up to a multiple of 4. **Channels**:
//! `[bias, mantissa, shift]` of each, zero-point correction included (`bias - zero_point * sum(weights)`).

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::isa::dsp::{smlad, sxtb16, sxtb16_ror8};
use crate::kernels::portable::conv2d::channel_shifts_are_valid;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::window::{three, two};
use crate::quant::Multiplier;

/// int8, one group or one input channel a group.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1 || (op.groups == op.window.input[2] && op.groups == op.window.output[2])
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let channels = u32::from(op.window.input[2]);
        Needs {
            // The window, and a pixel of zero points.
            scratch: padded(taps(op).saturating_mul(channels)).saturating_add(padded(channels)),
            weights: row_bytes(op).saturating_mul(u32::from(op.window.output[2])),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // A window is read before its pixel is written.
        (index == 1).then(|| op.window.consumed_distance(1, 0))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let mem = Mem::of_weights(weights);
        let (row, words) = (row_bytes(op), row_bytes(op) as usize / 4);
        // Words are taken whole; behind a window scratch holds anything. At most three bytes of a row's last word are padding.
        let padding = row.wrapping_sub(taps(op).saturating_mul(op.group_channels()));
        let mask = !(u32::MAX.wrapping_shr(8 * padding));
        let rows = mem.weights::<u32>(op.weights, Self::needs(op).weights / 4);
        rows.is_some_and(|rows| mask == 0 || last_words(rows, words) & mask == 0) && channel_shifts_are_valid(op, &mem)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<u32>(op.weights, needs.weights / 4)?;
        let records = mem.weights::<i32>(op.channels, u32::from(op.window.output[2]) * 3)?;
        let scratch = mem.dst::<u32>(op.scratch, needs.scratch / 4)?;
        let rows = Rows {
            weights: weights.as_ptr(),
            records: records.as_ptr().cast(),
            channels: usize::from(op.window.output[2]),
            taps: taps(op) as usize,
            words: row_bytes(op) as usize / 4,
        };
        // SAFETY: input and output were taken with the window's lengths, weights, records and scratch with those of `needs`.
        unsafe { convolve(op, &rows, input.as_ptr(), output.as_mut_ptr(), scratch.as_mut_ptr()) };
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        job.conv2d_s8().map(|(op, _)| op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], records: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed, records)
    }

    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        Some(bound(op))
    }
}

/// Packs for this kernel: OHWI `weights` and the scalar kernel's `channels` (`[bias, mantissa, shift]`) into `packed`, of [`Kernel::needs`]'s bytes,
/// and `records`, as many as there are output channels. `None` where a length is wrong or `op` is not [supported](Kernel::supports).
fn pack(
    op: &Conv2dS8,
    weights: &[i8],
    channels: &[[i32; 3]],
    packed: &mut [u8],
    records: &mut [[i32; 3]],
) -> Option<()> {
    let row = (taps(op) * op.group_channels()) as usize;
    let count = usize::from(op.window.output[2]);
    let lengths = weights.len() == row.checked_mul(count)? && channels.len() == count && records.len() == count;
    if !S8::supports(op) || row == 0 || !lengths || packed.len() != S8::needs(op).weights as usize {
        return None;
    }
    let rows = packed.chunks_exact_mut(padded(row as u32) as usize);
    for (((packed, weights), &[bias, mantissa, shift]), record) in
        rows.zip(weights.chunks_exact(row)).zip(channels).zip(records)
    {
        let (bytes, padding) = packed.split_at_mut(row);
        bytes.iter_mut().zip(weights).for_each(|(byte, &w)| *byte = w as u8);
        padding.fill(0);
        let sum = weights.iter().map(|&w| i32::from(w)).fold(0, i32::wrapping_add);
        let correction = i32::from(op.input_zero_point).wrapping_mul(sum);
        *record = [bias.wrapping_sub(correction), mantissa, shift];
    }
    Some(())
}

/// Instructions of the step's inner loops with the DSP extension, and the requantising of every output.
fn bound(op: &Conv2dS8) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    let row = u64::from(taps(op)) * u64::from(op.group_channels());
    outputs * (if op.groups == 1 { row * 2 } else { row * 6 } + 24)
}

fn taps(op: &Conv2dS8) -> u32 {
    let [rows, columns] = op.window.kernel;
    u32::from(rows) * u32::from(columns)
}

/// The bits of the last words of all rows of `words` words. A function of its own, for speed.
#[inline(never)]
fn last_words(rows: &[u32], words: usize) -> u32 {
    let mut bits = 0;
    let mut at = words.wrapping_sub(1);
    while let Some(word) = rows.get(at) {
        bits |= word;
        at = at.saturating_add(words.max(1));
    }
    bits
}

/// Bytes of a row of weights.
fn row_bytes(op: &Conv2dS8) -> u32 {
    padded(taps(op).saturating_mul(op.group_channels()))
}

const fn padded(bytes: u32) -> u32 {
    bytes.saturating_add(3) & !3
}

/// Weights and records of the output channels.
struct Rows {
    weights: *const u32,
    records: *const [i32; 3],
    channels: usize,
    taps: usize,
    /// Of a row.
    words: usize,
}

/// The whole step.
///
/// # Safety
/// `input` and `output` are readable and writable for the window's lengths, the rows for its channels, `scratch` for what `needs` says, which overlaps
/// neither.
unsafe fn convolve(op: &Conv2dS8, rows: &Rows, input: *const i8, output: *mut i8, scratch: *mut u32) {
    let window = &op.window;
    let [height, width, channels] = three::<_, usize>(window.input);
    let [out_height, out_width, _] = three::<_, usize>(window.output);
    let [kernel_rows, kernel_columns] = two::<_, usize>(window.kernel);
    let [row_stride, stride] = two::<_, usize>(window.stride);
    let [row_dilation, dilation] = two::<_, usize>(window.dilation);
    let [above, before] = two::<_, usize>(window.padding);
    let outside = scratch
        .cast::<i8>()
        .wrapping_add(padded((rows.taps * channels) as u32) as usize);
    for at in 0..channels {
        // SAFETY: `needs` counts a pixel of `channels` bytes behind the window. Volatile, or it would be a `memset` that nothing else of a small model needs.
        unsafe { outside.wrapping_add(at).write_volatile(op.input_zero_point) };
    }
    let (mut image, mut out) = (input, output);
    for _ in 0..window.batch {
        for y in 0..out_height {
            for x in 0..out_width {
                let mut to = scratch.cast::<i8>();
                // Above and left of the input the sums wrap, and are beyond its extents.
                let mut row = (y * row_stride).wrapping_sub(above);
                for _ in 0..kernel_rows {
                    let mut column = (x * stride).wrapping_sub(before);
                    for _ in 0..kernel_columns {
                        let inside = row < height && column < width;
                        let pixel = row.wrapping_mul(width).wrapping_add(column).wrapping_mul(channels);
                        let from = if inside {
                            image.wrapping_add(pixel)
                        } else {
                            outside.cast_const()
                        };
                        // SAFETY: `row` and `column` lie in the image, or it is the pixel of zero points; `to` is one of the window's `taps` pixels (`needs`).
                        unsafe { copy(from, to, channels) };
                        to = to.wrapping_add(channels);
                        column = column.wrapping_add(dilation);
                    }
                    row = row.wrapping_add(row_dilation);
                }
                // SAFETY: all `taps` pixels of the window were written, and `out` is the next of the output's pixels (fn docs).
                unsafe {
                    match op.groups {
                        1 => products(op, rows, scratch, out),
                        _ => depthwise(op, rows, scratch.cast(), out),
                    }
                }
                out = out.wrapping_add(rows.channels);
            }
        }
        image = image.wrapping_add(height * width * channels);
    }
}

/// Copies `count` bytes.
///
/// # Safety
/// `count` bytes are readable at `from` and writable at `to`, and do not overlap.
#[inline(never)]
unsafe fn copy(mut from: *const i8, mut to: *mut i8, mut count: usize) {
    // SAFETY: `count` bytes remain at both, of those that this function's contract guarantees; words are read and written unaligned.
    unsafe {
        while count >= 4 {
            to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned());
            (from, to, count) = (from.add(4), to.add(4), count - 4);
        }
        while count > 0 {
            *to = *from;
            (from, to, count) = (from.add(1), to.add(1), count - 1);
        }
    }
}

/// All channels of a convolution, two at a time; an odd last one goes with itself.
///
/// # Safety
/// As for [`convolve`], for one pixel: `window` holds the window's words, `out` takes `rows.channels` bytes.
#[inline(never)]
unsafe fn products(op: &Conv2dS8, rows: &Rows, window: *const u32, out: *mut i8) {
    let mut channel = 0;
    while channel < rows.channels {
        let pair = [channel, (channel + 1).min(rows.channels - 1)];
        // SAFETY: both of `pair` are below `rows.channels`; the contract guarantees their rows of `rows.words` weights, records and outputs, and the words of
        // `window`.
        unsafe {
            let [mut v, mut w] = [
                rows.weights.add(pair[0] * rows.words),
                rows.weights.add(pair[1] * rows.words),
            ];
            let [mut a, mut b] = [(*rows.records.add(pair[0]))[0], (*rows.records.add(pair[1]))[0]];
            let mut x = window;
            for _ in 0..rows.words {
                let (even, odd) = (sxtb16(*x), sxtb16_ror8(*x));
                a = smlad(odd, sxtb16_ror8(*v), smlad(even, sxtb16(*v), a));
                b = smlad(odd, sxtb16_ror8(*w), smlad(even, sxtb16(*w), b));
                (x, v, w) = (x.add(1), v.add(1), w.add(1));
            }
            store(op, &*rows.records.add(pair[0]), a, out.add(pair[0]));
            store(op, &*rows.records.add(pair[1]), b, out.add(pair[1]));
        }
        channel += 2;
    }
}

/// All channels of a depthwise convolution.
///
/// # Safety
/// As for [`convolve`], for one pixel: `window` holds `rows.taps` pixels, `out` takes `rows.channels` bytes.
#[inline(never)]
unsafe fn depthwise(op: &Conv2dS8, rows: &Rows, window: *const i8, out: *mut i8) {
    for channel in 0..rows.channels {
        // SAFETY: `channel < rows.channels`, and this function's contract guarantees its weights, record and output, and the pixels of `window`.
        unsafe {
            let record = &*rows.records.add(channel);
            let mut w = rows.weights.add(channel * rows.words).cast::<i8>();
            let mut x = window.add(channel);
            let mut sum = record[0];
            for _ in 0..rows.taps {
                sum = sum.wrapping_add(i32::from(*x) * i32::from(*w));
                (x, w) = (x.wrapping_add(rows.channels), w.add(1));
            }
            store(op, record, sum, out.add(channel));
        }
    }
}

/// Requantises a sum and writes it.
///
/// # Safety
/// `out` is writable.
#[inline(never)]
unsafe fn store(op: &Conv2dS8, &[_, mantissa, shift]: &[i32; 3], sum: i32, out: *mut i8) {
    let shift = shift as i8;
    let [low, high] = op.clamp;
    let stored = Multiplier { mantissa, shift }
        .apply(sum)
        .wrapping_add(i32::from(op.output_zero_point));
    // `clamp` panics on an empty range, which load excludes but the compiler does not see.
    let stored = stored.max(i32::from(low)).min(i32::from(high));
    // SAFETY: `out` is writable (fn docs).
    unsafe { *out = stored as i8 };
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::arena::{Rounding, Slot};
    use crate::kernels::portable;
    use crate::ops::window::Window2d;
    use core::cell::Cell;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// Runs `K` with these weights and records, the output behind the input and the scratch behind both.
    fn run<K: Kernel<Op = Conv2dS8>>(op: &Conv2dS8, input: &[i8], weights: &[u8], records: &[[i32; 3]]) -> Vec<u8> {
        #[repr(align(16))]
        struct Aligned<T>(T);
        let round = |n: usize| n.next_multiple_of(16);
        let output = round(input.len());
        let scratch = output + round(op.window.output_len().unwrap() as usize);
        let mut arena = Aligned([0x5Au8; 1 << 14]);
        arena.0.iter_mut().zip(input).for_each(|(byte, &x)| *byte = x as u8);
        let mut constants = Aligned([0u8; 1 << 14]);
        let channels = round(weights.len());
        let records = records.as_flattened().iter().flat_map(|n| n.to_le_bytes());
        constants.0[..weights.len()].copy_from_slice(weights);
        constants.0[channels..]
            .iter_mut()
            .zip(records)
            .for_each(|(to, from)| *to = from);
        let slot = |offset: usize| Slot {
            region: 0,
            offset: offset as u32,
        };
        let op = Conv2dS8 {
            output: slot(output),
            scratch: slot(scratch),
            channels: channels as u32,
            ..*op
        };
        let mem = Mem {
            regions: [Cell::from_mut(&mut arena.0[..]).as_slice_of_cells(), &[], &[], &[]],
            state: &[],
            weights: &constants.0,
            rounding: Rounding::default(),
            turning: Default::default(),
        };
        K::run(&op, &mem).unwrap();
        arena.0[output..][..op.window.output_len().unwrap() as usize].to_vec()
    }

    proptest! {
        #[test]
        fn equals_the_scalar_kernel(
            extents in [1u16..7, 1u16..7], channels in [1u16..10, 1u16..10], kernel in [1u16..4, 1u16..4], stride in [1u8..3, 1u8..3],
            dilation in [1u8..3, 1u8..3], padding in [0u8..2, 0u8..2], depthwise: bool, batch in 1u16..3, zero_points: [i8; 2],
            input in prop::collection::vec(any::<i8>(), 2 * 6 * 6 * 9), weights in prop::collection::vec(any::<i8>(), 9 * 9 * 9),
            records in prop::collection::vec((-9000i32..9000, (1i32 << 30).., -12i32..2), 9),
        ) {
            let [inputs, outputs] = if depthwise { [channels[0]; 2] } else { channels };
            let extent = |i: usize| (extents[i] + u16::from(padding[i]) - 1) / u16::from(stride[i]) + 1;
            let op = Conv2dS8 {
                output: Slot::default(),
                input: Slot::default(),
                scratch: Slot::default(),
                weights: 0,
                channels: 0,
                window: Window2d {
                    batch, input: [extents[0], extents[1], inputs], output: [extent(0), extent(1), outputs], kernel, stride, dilation, padding,
                },
                groups: if depthwise { inputs } else { 1 },
                input_zero_point: zero_points[0],
                output_zero_point: zero_points[1],
                clamp: [-120, 110],
                flags: 0,
            };
            let input = &input[..op.window.input_len().unwrap() as usize];
            let weights = &weights[..op.weights_len().unwrap() as usize];
            let records: Vec<[i32; 3]> =
                records[..usize::from(outputs)].iter().map(|&(bias, mantissa, shift)| [bias, mantissa, shift]).collect();
            let plain: Vec<u8> = weights.iter().map(|&w| w as u8).collect();
            let expected = run::<portable::conv2d::S8>(&op, input, &plain, &records);
            let mut packed = vec![0xFF; S8::needs(&op).weights as usize];
            let mut packed_records = vec![[0; 3]; records.len()];
            pack(&op, weights, &records, &mut packed, &mut packed_records).unwrap();
            prop_assert_eq!(run::<S8>(&op, input, &packed, &packed_records), expected);
        }
    }

    #[test]
    fn wrong_lengths_and_other_groups_are_refused() {
        let op = Conv2dS8 {
            output: Slot::default(),
            input: Slot::default(),
            scratch: Slot::default(),
            weights: 0,
            channels: 0,
            window: Window2d {
                batch: 1,
                input: [1, 1, 4],
                output: [1, 1, 4],
                kernel: [1, 1],
                stride: [1, 1],
                dilation: [1, 1],
                padding: [0, 0],
            },
            groups: 2,
            input_zero_point: 0,
            output_zero_point: 0,
            clamp: [-128, 127],
            flags: 0,
        };
        assert!(!S8::supports(&op));
        assert_eq!(pack(&op, &[0; 8], &[[0; 3]; 4], &mut [0; 16], &mut [[0; 3]; 4]), None);
        let one = Conv2dS8 { groups: 1, ..op };
        assert_eq!(pack(&one, &[0; 15], &[[0; 3]; 4], &mut [0; 16], &mut [[0; 3]; 4]), None);
        assert_eq!(
            pack(&one, &[0; 16], &[[0; 3]; 4], &mut [0; 16], &mut [[0; 3]; 4]),
            Some(())
        );
    }
}
