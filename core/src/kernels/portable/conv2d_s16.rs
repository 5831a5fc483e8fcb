//! int16 convolution with int8 weights, OHWI.

use super::conv2d::are_shifts;
use super::taps;
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::conv2d_s16::{Channels, depthwise, output_rows};
use crate::kernels::primitives::dot_s16::{StridedLines, Taps};
use crate::kernels::primitives::dwconv_indirection::inside;
use crate::kernels::primitives::{conv2d_s16, dot_s16};
use crate::ops::conv2d::Conv2dS16;
use crate::ops::window::{Window2d, three, two};

/// int16 with int8 weights and 64-bit sums, any groups.
#[derive(Debug)]
pub struct S16;

impl Kernel for S16 {
    type Op = Conv2dS16;

    fn distance(op: &Conv2dS16, index: usize) -> Option<i64> {
        let lead = u32::from(op.window.output[2]) - 1;
        (index == 1).then(|| op.window.consumed_distance(2, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS16, weights: &[u8]) -> bool {
        let words = u32::from(op.window.output[2]) * 2;
        let records = Mem::of_weights(weights).weights::<i32>(op.channels, words);
        records.is_some_and(|records| are_shifts::<2>(records.as_chunks().0))
    }

    fn run(op: &Conv2dS16, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let input = mem.src::<i16>(op.input, window.input_len()?)?;
        let output = mem.dst::<i16>(op.output, window.output_len()?)?;
        let weights = mem.weights::<i8>(op.weights, op.weights_len()?)?;
        let bias = mem.weights::<i64>(op.bias, u32::from(window.output[2]))?;
        let records = mem.weights::<i32>(op.channels, u32::from(window.output[2]).checked_mul(2)?)?;
        let (records, _) = records.as_chunks::<2>();
        let group = op.group_channels() as usize;
        let channels = Channels {
            weights,
            bias,
            records,
            clamp: op.clamp,
        };
        let products = two::<_, usize>(window.kernel)
            .into_iter()
            .product::<usize>()
            .saturating_mul(group);
        let short = products <= dot_s16::LONGEST && channels.are_short(products);
        #[cfg(kernel_isa = "mve")]
        let short = short || (products > dot_s16::LONGEST && channels.are_short_by_weights());
        let finish = |o: usize, sum: i64| {
            let (&record, sum) = (records.get(o)?, sum.wrapping_add(*bias.get(o)?));
            Some(if short {
                channels.short(sum as i32, record)
            } else {
                channels.long(sum, record)
            })
        };
        // Of few input channels with several outputs each there are more of a group at a time.
        let [inputs, outputs] = [window.input[2], window.output[2]];
        let depthwise = group == 1 && op.groups != 1 && (inputs == outputs || inputs >= 4);
        if depthwise && short {
            return pixels(window, input, output, &channels);
        }
        if short && usize::from(window.output[2]) >= output_rows::LANES.saturating_mul(op.groups.into()) {
            return lines(window, op.groups, input, output, &channels);
        }
        blocks_of_four(window, op.groups, input, output, weights, finish)
    }
}

#[cfg(any(test, packing))]
impl Candidate for S16 {}

/// A depthwise convolution of short sums.
fn pixels(window: &Window2d, input: Src<'_, i16>, output: Dst<'_, i16>, channels: &Channels<'_>) -> Option<()> {
    let [h, w, c] = three::<_, usize>(window.input);
    let [oh, ow, oc] = three::<_, usize>(window.output);
    let [kh, kw] = two::<_, usize>(window.kernel);
    let [dh, dw] = two::<_, usize>(window.dilation);
    let (stride, before) = (usize::from(window.stride[1]), usize::from(window.padding[1]));
    let multiplier = oc.checked_div(c)?;
    let (from, to) = inside(w, ow, (kw - 1) * dw + 1, stride, before);
    let mut at = 0;
    for (image, y) in (0..usize::from(window.batch)).flat_map(|image| (0..oh).map(move |y| (image, y))) {
        let (ky, rows, iy) = taps(y, window, 0)?;
        let mut x = 0;
        while x < ow {
            // Those whose windows have all their columns together.
            let (run, kx, columns, ix) = if x >= from && x < to {
                (to - x, 0, kw, x * stride - before)
            } else {
                let (kx, columns, ix) = taps(x, window, 1)?;
                (1, kx, columns, ix)
            };
            let under = Taps {
                count: [rows, columns],
                steps: [dh * w * c, dw * c],
                weights_steps: [kw, kh * kw],
            };
            // A window of padding alone may begin behind the input.
            let (start, first) = match rows * columns {
                0 => (0, 0),
                _ => (((image * h + iy) * w + ix) * c, ky * kw + kx),
            };
            let places = output.slice(at, run * oc)?;
            depthwise::run(input, [start, stride * c], channels, multiplier, first, &under, places)?;
            (x, at) = (x + run, at + run * oc);
        }
    }
    Some(())
}

/// A convolution of short sums of as many channels in a group as the loop takes.
fn lines(
    window: &Window2d,
    groups: u16,
    input: Src<'_, i16>,
    output: Dst<'_, i16>,
    channels: &Channels<'_>,
) -> Option<()> {
    let [h, w, c] = three::<_, usize>(window.input);
    let [oh, ow, oc] = three::<_, usize>(window.output);
    let [kh, kw] = two::<_, usize>(window.kernel);
    let [dh, dw] = two::<_, usize>(window.dilation);
    let (stride, before) = (usize::from(window.stride[1]), usize::from(window.padding[1]));
    let groups = usize::from(groups).max(1);
    let (group, count) = (c / groups, oc / groups);
    let filter = kh * kw * group;
    let (from, to) = inside(w, ow, (kw - 1) * dw + 1, stride, before);
    let mut at = 0;
    for (image, y) in (0..usize::from(window.batch)).flat_map(|image| (0..oh).map(move |y| (image, y))) {
        let (ky, rows, iy) = taps(y, window, 0)?;
        let mut x = 0;
        while x < ow {
            // Those whose windows have all their columns together, unless groups take turns at each pixel.
            let (run, kx, columns, ix) = if x >= from && x < to && groups == 1 {
                (to - x, 0, kw, x * stride - before)
            } else {
                let (kx, columns, ix) = taps(x, window, 1)?;
                (1, kx, columns, ix)
            };
            // Columns that are neighbours are one line.
            let (row, weights_row) = (dh * w * c, kw * group);
            let (counts, len, [step, weights_step]) = if group == c && dw == 1 {
                ([1, rows], columns * c, [row, weights_row])
            } else {
                ([rows, columns], group, [dw * c, group])
            };
            let mut under = conv2d_s16::WindowLines {
                count: counts,
                len,
                steps: [row, step],
                weights_steps: [weights_row, weights_step],
            };
            let (mut start, mut first) = (((image * h + iy) * w + ix) * c, (ky * kw + kx) * group);
            // A window of padding alone may begin behind the input.
            if rows * columns == 0 {
                (under.count, under.len, start, first) = ([1, 1], 0, 0, 0);
            }
            let mut o = 0;
            while o < oc {
                let of_group = Channels {
                    weights: channels.weights.get(o * filter..(o + count) * filter)?,
                    bias: channels.bias.get(o..o + count)?,
                    records: channels.records.get(o..o + count)?,
                    clamp: channels.clamp,
                };
                let places = output.slice(at + o, (run - 1) * oc + count)?;
                output_rows::run(input, [start, stride * c], &of_group, first, &under, places, oc)?;
                (start, o) = (start + group, o + count);
            }
            (x, at) = (x + run, at + run * oc);
        }
    }
    Some(())
}

/// Every output element in order, four channels at a time: `finish(channel, sum)`.
fn blocks_of_four(
    window: &Window2d,
    groups: u16,
    input: Src<'_, i16>,
    output: Dst<'_, i16>,
    weights: &[i8],
    finish: impl Fn(usize, i64) -> Option<i16>,
) -> Option<()> {
    let [h, w, c] = three::<_, usize>(window.input);
    let [oh, ow, oc] = three::<_, usize>(window.output);
    let [kh, kw] = two::<_, usize>(window.kernel);
    let [dh, dw] = two::<_, usize>(window.dilation);
    // Groups of a channel each are taken four at a time.
    let depthwise = groups != 1 && c == oc && usize::from(groups) == c;
    let groups = usize::from(if depthwise { 1 } else { groups });
    let (group, count) = (c.checked_div(groups)?, oc.checked_div(groups)?);
    let filter = kh * kw * if depthwise { 1 } else { group };
    let mut at = 0;
    for (image, y) in (0..usize::from(window.batch)).flat_map(|image| (0..oh).map(move |y| (image, y))) {
        let (ky, rows, iy) = taps(y, window, 0)?;
        for x in 0..ow {
            let (kx, columns, ix) = taps(x, window, 1)?;
            for of in 0..groups {
                let start = ((image * h + iy) * w + ix) * c + of * group;
                let (mut o, end) = (of * count, of * count + count);
                while o < end {
                    let place = output.slice(at + o, (end - o).min(4))?;
                    let sums = if rows * columns == 0 {
                        [0; 4]
                    } else if !depthwise {
                        // Of fewer than four the last channel several times.
                        let tap = (ky * kw + kx) * group;
                        let rows_of = [o, o + 1, o + 2, o + 3].map(|o| o.min(end - 1) * filter + tap);
                        // Columns that are neighbours are one line.
                        let (len, more) = if dw == 1 && group == c {
                            (columns * c, 1)
                        } else {
                            (group, columns)
                        };
                        let lines = StridedLines {
                            count: rows,
                            len,
                            step: dh * w * c,
                            weights_step: kw * group,
                        };
                        let mut sums = [0; 4];
                        for column in 0..more {
                            let rows_of = rows_of.map(|row| row + column * group);
                            add_lines(&mut sums, input, start + column * dw * c, weights, rows_of, lines)?;
                        }
                        sums
                    } else {
                        let taps = Taps {
                            count: [rows, columns],
                            steps: [dh * w * c, dw * c],
                            weights_steps: [kw, filter],
                        };
                        let first = o * filter + ky * kw + kx;
                        if place.cells().len() == 4 && rows * columns <= dot_s16::LONGEST {
                            dot_s16::columns::<4>(input, start + o, weights, first, &taps)?.map(i64::from)
                        } else {
                            add_taps(input, start + o, weights, first, taps, place.cells().len())?
                        }
                    };
                    for ((y, sum), o) in place.cells().iter().zip(sums).zip(o..) {
                        y.set(finish(o, sum)?);
                    }
                    o += 4;
                }
            }
            at += oc;
        }
    }
    Some(())
}

/// Adds the products along lines of any length.
#[inline(always)]
fn add_lines(
    sums: &mut [i64; 4],
    input: Src<'_, i16>,
    start: usize,
    weights: &[i8],
    rows: [usize; 4],
    lines: StridedLines,
) -> Option<()> {
    let mut add = |start: usize, rows: [usize; 4], lines: StridedLines| {
        let found = dot_s16::dots(input, start, weights, rows, lines)?;
        for (sum, found) in sums.iter_mut().zip(found) {
            *sum += i64::from(found);
        }
        Some(())
    };
    if lines.count.checked_mul(lines.len)? <= dot_s16::LONGEST {
        return add(start, rows, lines);
    }
    for line in 0..lines.count {
        let mut done = 0;
        while done < lines.len {
            let piece = StridedLines {
                count: 1,
                len: (lines.len - done).min(dot_s16::LONGEST),
                ..lines
            };
            let rows = rows.map(|row| row + line * lines.weights_step + done);
            add(start + line * lines.step + done, rows, piece)?;
            done += piece.len;
        }
    }
    Some(())
}

/// The products of a window of any size, of as many of four channels as there are.
fn add_taps(
    input: Src<'_, i16>,
    start: usize,
    weights: &[i8],
    first: usize,
    taps: Taps,
    channels: usize,
) -> Option<[i64; 4]> {
    let [rows, columns] = taps.count;
    let ([row, column], [weights_row, channel]) = (taps.steps, taps.weights_steps);
    let mut sums = [0_i64; 4];
    // As many columns and rows at a time as the sums have bits for.
    let wide_columns = columns.min(dot_s16::LONGEST);
    let high_rows = dot_s16::LONGEST.checked_div(wide_columns)?.min(rows);
    let mut r = 0;
    while r < rows {
        let mut k = 0;
        while k < columns {
            let piece = Taps {
                count: [(rows - r).min(high_rows), (columns - k).min(wide_columns)],
                ..taps
            };
            let (start, first) = (start + r * row + k * column, first + r * weights_row + k);
            if channels == 4 {
                for (sum, found) in sums
                    .iter_mut()
                    .zip(dot_s16::columns::<4>(input, start, weights, first, &piece)?)
                {
                    *sum += i64::from(found);
                }
            } else {
                for (c, sum) in sums.iter_mut().enumerate().take(channels) {
                    let [found] = dot_s16::columns(input, start + c, weights, first + c * channel, &piece)?;
                    *sum += i64::from(found);
                }
            }
            k += wide_columns;
        }
        r += high_rows;
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use core::cell::Cell;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// Places of int16.
    #[repr(align(2))]
    struct Aligned([Cell<u8>; 1 << 15]);

    type Convolve = fn(&Window2d, u16, Src<'_, i16>, Dst<'_, i16>, &Channels<'_>) -> Option<()>;

    /// Checks a convolution of `groups` groups by the definition; a window that has no place is none.
    fn check(
        of: Convolve,
        groups: u16,
        shapes: ([u16; 4], u16, [u16; 2]),
        rest: [[u8; 2]; 3],
        seed: u32,
    ) -> Result<(), TestCaseError> {
        let ([batch, h, w, c], oc, kernel) = shapes;
        let [stride, dilation, padding] = rest;
        let extent = |axis: usize| {
            let reach = (kernel[axis] - 1) * u16::from(dilation[axis]) + 1;
            let room = [h, w][axis] + 2 * u16::from(padding[axis]);
            room.checked_sub(reach).map(|left| left / u16::from(stride[axis]) + 1)
        };
        let (Some(oh), Some(ow)) = (extent(0), extent(1)) else {
            return Ok(());
        };
        let window = Window2d {
            batch,
            input: [h, w, c],
            output: [oh, ow, oc],
            kernel,
            stride,
            dilation,
            padding,
        };
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as i16
        };
        let filter = usize::from(kernel[0] * kernel[1] * (c / groups));
        let input: Vec<i16> = (0..window.input_len().unwrap()).map(|_| random()).collect();
        let weights: Vec<i8> = (0..filter * usize::from(oc)).map(|_| random() as i8).collect();
        let bias: Vec<i64> = (0..oc).map(|_| i64::from(random())).collect();
        let records: Vec<[i32; 2]> = (0..oc).map(|_| [1 << 30 | i32::from(random()).abs(), -5]).collect();
        let channels = Channels {
            weights: &weights,
            bias: &bias,
            records: &records,
            clamp: [-32768, 32767],
        };
        let memory = Aligned([const { Cell::new(0) }; 1 << 15]);
        let output = Dst::<i16>::from_cells(&memory.0[..2 * window.output_len().unwrap() as usize]).unwrap();
        prop_assert!(channels.are_short(filter));
        of(&window, groups, Src::from_slice(&input), output, &channels).unwrap();
        let [h, w, c] = [h, w, c].map(usize::from);
        let ([kh, kw], oc) = (kernel.map(usize::from), usize::from(oc));
        let group = c / usize::from(groups);
        for (at, y) in output.cells().iter().enumerate() {
            let (o, x, rest) = (at % oc, at / oc % usize::from(ow), at / oc / usize::from(ow));
            let (row, image) = (rest % usize::from(oh), rest / usize::from(oh));
            let first = o / (oc / usize::from(groups)) * group;
            let mut sum = bias[o];
            for (i, j) in (0..kh).flat_map(|i| (0..kw).map(move |j| (i, j))) {
                let place = |at: usize, tap: usize, axis: usize| {
                    (at * usize::from(stride[axis]) + tap * usize::from(dilation[axis]))
                        .checked_sub(usize::from(padding[axis]))
                };
                if let (Some(iy), Some(ix)) = (place(row, i, 0), place(x, j, 1))
                    && iy < h
                    && ix < w
                {
                    for k in 0..group {
                        let weight = weights[((o * kh + i) * kw + j) * group + k];
                        sum += i64::from(input[((image * h + iy) * w + ix) * c + first + k]) * i64::from(weight);
                    }
                }
            }
            prop_assert_eq!(y.get(), channels.long(sum, records[o]), "{:?} at {}", window, at);
        }
        Ok(())
    }

    /// The way of sums that may be long.
    fn long(window: &Window2d, groups: u16, x: Src<'_, i16>, y: Dst<'_, i16>, channels: &Channels<'_>) -> Option<()> {
        blocks_of_four(window, groups, x, y, channels.weights, |o, sum| {
            Some(channels.long(sum + channels.bias.get(o)?, *channels.records.get(o)?))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 2))]

        /// Windows of every kind, of padding alone among them.
        #[test]
        fn depthwise_pixels_are_sums_of_their_taps(
            image in (1..=2_u16, 1..6_u16, 1..7_u16, 2..11_u16), kernel in (1..4_u16, 1..5_u16), stride in [1..4_u8, 1..4_u8], dilation in [1..4_u8, 1..4_u8],
            padding in [0..9_u8, 0..9_u8], seed: u32,
        ) {
            let (batch, h, w, c) = image;
            let shapes = ([batch, h, w, c], c, [kernel.0, kernel.1]);
            check(|window, _, x, y, channels| pixels(window, x, y, channels), c, shapes, [stride, dilation, padding], seed)?;
        }

        /// The same in groups.
        #[test]
        fn lines_are_sums_of_their_taps(
            image in (1..=2_u16, 1..6_u16, 1..7_u16, 1..11_u16), kernel in (1..4_u16, 1..5_u16), stride in [1..4_u8, 1..4_u8], dilation in [1..4_u8, 1..4_u8],
            padding in [0..4_u8, 0..4_u8], outputs in 1..8_u16, groups in 1..4_u16, seed: u32,
        ) {
            let (batch, h, w, c) = image;
            let shapes = ([batch, h, w, c * groups], outputs * groups, [kernel.0, kernel.1]);
            check(lines, groups, shapes, [stride, dilation, padding], seed)?;
            check(long, groups, shapes, [stride, dilation, padding], seed)?;
        }
    }
}
