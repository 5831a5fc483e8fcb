//! Pooling of int8, four channels at a time: averages with two SXTAB16 for each four elements, maxima with SSUB8 and SEL.

use core::num::NonZeroU32;

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::instructions::{max_s8x4, split, sxtab16, sxtab16_ror8};
use crate::kernels::kernel::Kernel;
use crate::kernels::scalar::pool2d::{AvgInt, MaxInt};
use crate::kernels::scalar::taps;
use crate::ops::pool2d::PoolInt;
use crate::ops::window::{Window2d, three};
use crate::tensor::DType;

/// Average of int8.
#[derive(Debug)]
pub struct Average;

/// Maximum of int8.
#[derive(Debug)]
pub struct Max;

impl Kernel for Average {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        is_plain(op) && op.sums_fit()
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        // Channel by channel in the scalar kernel, by fours here: both read a pixel's window before its last channels are written.
        AvgInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        let (input, output, clamp) = operands(op, mem)?;
        average(&op.window, input, output, clamp)
    }
}

impl Kernel for Max {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        is_plain(op)
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        MaxInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        let (input, output, clamp) = operands(op, mem)?;
        max(&op.window, input, output, clamp)
    }
}

#[cfg(any(test, packing))]
impl Candidate for Average {
    const JOB: Option<JobKind> = Some(JobKind::AvgPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.avg_pool_int()
    }

    fn bound(op: &PoolInt, _: &Machine) -> Option<u64> {
        Some(bound(&op.window))
    }
}

#[cfg(any(test, packing))]
impl Candidate for Max {
    const JOB: Option<JobKind> = Some(JobKind::MaxPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.max_pool_int()
    }

    fn bound(op: &PoolInt, _: &Machine) -> Option<u64> {
        Some(bound(&op.window))
    }
}

type Operands<'a> = (Src<'a, i8>, Dst<'a, i8>, [i8; 2]);

/// int8 without dilation.
fn is_plain(op: &PoolInt) -> bool {
    op.dtype == DType::I8 && op.window.dilation == [1, 1]
}

fn operands<'a>(op: &PoolInt, mem: &Mem<'a>) -> Option<Operands<'a>> {
    let input = mem.src(op.input, op.window.input_len()?)?;
    let output = mem.dst(op.output, op.window.output_len()?)?;
    Some((input, output, op.clamp.map(|n| n.clamp(-128, 127) as i8)))
}

/// Elements that a 16-bit sum holds.
const FULL: usize = 255;

/// Average pooling: the mean of the elements inside the input, rounded half away from zero, then clamped. `None` where the
/// operands are not of the window's sizes or dilated.
pub fn average(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, clamp: [i8; 2]) -> Option<()> {
    each_window(window, input, |patch, at, channel, lanes| {
        // A window of padding alone has the sum 0.
        let count = NonZeroU32::new((patch.rows * patch.columns) as u32).unwrap_or(NonZeroU32::MIN);
        let half = count.get() / 2;
        let mean = |sum: i32| {
            let sign = sum >> 31;
            let quotient = (sum.unsigned_abs().wrapping_add(half) / count) as i32;
            ((quotient ^ sign).wrapping_sub(sign)) as i8
        };
        let sums = if lanes > 0 {
            // SAFETY: four channels from `channel` of every pixel of the patch lie inside the input, as `each_window` says.
            unsafe { patch.sums(channel) }
        } else {
            [0, 0, 0, patch.fold(input, channel, 0, |sum, x| sum + x)?]
        };
        let written = lanes.max(1);
        let out = output.slice(at, written)?;
        for (out, &sum) in out.cells().iter().zip(sums.get(4 - written..)?) {
            out.set(mean(sum));
        }
        Some(())
    })?;
    limit(output, clamp);
    Some(())
}

/// Max pooling, then clamped. `None` where the operands are not of the window's sizes or dilated.
pub fn max(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, clamp: [i8; 2]) -> Option<()> {
    each_window(window, input, |patch, at, channel, lanes| {
        if lanes > 0 {
            // SAFETY: as in `average`.
            let maxima = unsafe { patch.maxima(channel) };
            return put(output, at, lanes, maxima.to_le_bytes().map(|max| max as i8));
        }
        output.set(at, patch.fold(input, channel, -128, |max, x| max.max(x))? as i8)
    })?;
    limit(output, clamp);
    Some(())
}

/// An activation with limits of its own.
fn limit(output: Dst<'_, i8>, [low, high]: [i8; 2]) {
    if [low, high] != [i8::MIN, i8::MAX] {
        output.cells().iter().for_each(|y| y.set(y.get().max(low).min(high)));
    }
}

/// Writes the last `lanes` of four outputs.
#[inline(always)]
fn put(output: Dst<'_, i8>, at: usize, lanes: usize, values: [i8; 4]) -> Option<()> {
    let out = output.slice(at, lanes)?;
    if let [a, b, c, d] = out.cells() {
        for (out, value) in [a, b, c, d].into_iter().zip(values) {
            out.set(value);
        }
    } else {
        for (out, value) in out.cells().iter().rev().zip(values.into_iter().rev()) {
            out.set(value);
        }
    }
    Some(())
}

/// The fewest instructions of an average: three for each four elements, and the division.
fn bound(window: &Window2d) -> u64 {
    let outputs = window.output_len().map_or(0, u64::from);
    let [rows, columns] = window.kernel.map(u64::from);
    outputs * rows * columns * 3 / 4 + outputs * 4
}

/// What of a window lies inside the input.
struct Patch {
    /// The first pixel's first channel.
    start: *const i8,
    /// The same as an index.
    at: usize,
    rows: usize,
    columns: usize,
    channels: usize,
    /// Elements between rows.
    pitch: usize,
}

impl Patch {
    /// # Safety
    /// Four channels from `channel` of every pixel lie inside the input.
    #[inline(always)]
    unsafe fn sums(&self, channel: usize) -> [i32; 4] {
        let mut row = self.start.wrapping_add(channel);
        let (mut even, mut odd, mut room) = (0, 0, FULL);
        let mut sums = [0; 4];
        let mut add = |even, odd| {
            let ([s0, s2], [s1, s3]) = (split(even), split(odd));
            sums.iter_mut().zip([s0, s1, s2, s3]).for_each(|(sum, s)| *sum += s);
        };
        for _ in 0..self.rows {
            let mut pixel = row;
            let mut left = self.columns;
            while left > 0 {
                if room == 0 {
                    add(even, odd);
                    (even, odd, room) = (0, 0, FULL);
                }
                let part = left.min(room);
                left -= part;
                room -= part;
                for _ in 0..part {
                    // SAFETY: as the caller promises.
                    let x = unsafe { pixel.cast::<u32>().read_unaligned() };
                    even = sxtab16(even, x);
                    odd = sxtab16_ror8(odd, x);
                    pixel = pixel.wrapping_add(self.channels);
                }
            }
            row = row.wrapping_add(self.pitch);
        }
        add(even, odd);
        sums
    }

    /// # Safety
    /// As for `sums`.
    #[inline(always)]
    unsafe fn maxima(&self, channel: usize) -> u32 {
        let mut maxima = u32::from_ne_bytes([0x80; 4]);
        let mut row = self.start.wrapping_add(channel);
        for _ in 0..self.rows {
            let mut pixel = row;
            for _ in 0..self.columns {
                // SAFETY: as the caller promises.
                maxima = max_s8x4(maxima, unsafe { pixel.cast::<u32>().read_unaligned() });
                pixel = pixel.wrapping_add(self.channels);
            }
            row = row.wrapping_add(self.pitch);
        }
        maxima
    }

    fn fold(&self, input: Src<'_, i8>, channel: usize, first: i32, f: impl Fn(i32, i32) -> i32) -> Option<i32> {
        let mut value = first;
        for row in 0..self.rows {
            for column in 0..self.columns {
                let at = self.at + row * self.pitch + column * self.channels + channel;
                value = f(value, i32::from(input.get(at)?));
            }
        }
        Some(value)
    }
}

/// Calls `value(patch, output index, channel, lanes)` for every output in order: for the last `lanes` of four channels from `channel` on, or for that channel
/// alone, where there are not as many and `lanes` is 0.
fn each_window(
    window: &Window2d,
    input: Src<'_, i8>,
    value: impl Fn(&Patch, usize, usize, usize) -> Option<()>,
) -> Option<()> {
    if input.len() != window.input_len()? as usize || window.dilation != [1, 1] || window.input[2] != window.output[2] {
        return None;
    }
    let [height, width, channels] = three::<_, usize>(window.input);
    let mut out = 0;
    for image in 0..usize::from(window.batch) {
        for y in 0..usize::from(window.output[0]) {
            let (_, rows, top) = taps(y, window, 0)?;
            for x in 0..usize::from(window.output[1]) {
                let (_, columns, left) = taps(x, window, 1)?;
                let at = ((image * height + top) * width + left) * channels;
                let pitch = width * channels;
                // Whole rows are one long one.
                let (rows, columns) = if columns == width {
                    (1, rows * columns)
                } else {
                    (rows, columns)
                };
                let patch = Patch {
                    start: input.as_ptr().wrapping_add(at),
                    at,
                    rows,
                    columns,
                    channels,
                    pitch,
                };
                let mut channel = 0;
                while channel < channels {
                    let left = channels - channel;
                    // Of the last four, what was written is read again, for nothing.
                    let (from, lanes) = if channels >= 4 {
                        (channel.min(channels - 4), left.min(4))
                    } else {
                        (channel, 0)
                    };
                    value(&patch, out, from, lanes)?;
                    let written = lanes.max(1);
                    channel += written;
                    out += written;
                }
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::cell::Cell;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn pools_equal_their_definition(
            height in 1u16..7, width in 1u16..7, channels in 1u16..10, kernel in [1u16..5, 1u16..5], stride in [1u8..3, 1u8..3],
            padding in [0u8..2, 0u8..2], x in prop::collection::vec(any::<i8>(), 7 * 7 * 10), limited: bool,
        ) {
            let out = |extent: u16, i: usize| (extent + u16::from(padding[i]) - 1) / u16::from(stride[i]) + 1;
            let window = Window2d {
                batch: 1,
                input: [height, width, channels],
                output: [out(height, 0), out(width, 1), channels],
                kernel,
                stride,
                dilation: [1, 1],
                padding: padding.map(|p| p.min(kernel[0].min(kernel[1]) as u8 - 1)),
            };
            let input = &x[..window.input_len().unwrap() as usize];
            let limits = if limited { [-100, 90] } else { [-128, 127] };
            let (mut averages, mut maxima): (Vec<i32>, Vec<i32>) = (vec![], vec![]);
            for y in 0..window.output[0] {
                for x in 0..window.output[1] {
                    for c in 0..channels {
                        let (mut sum, mut count, mut max) = (0, 0, -128);
                        for (ky, kx) in (0..kernel[0]).flat_map(|ky| (0..kernel[1]).map(move |kx| (ky, kx))) {
                            let iy = i32::from(y * u16::from(stride[0]) + ky) - i32::from(window.padding[0]);
                            let ix = i32::from(x * u16::from(stride[1]) + kx) - i32::from(window.padding[1]);
                            if (0..i32::from(height)).contains(&iy) && (0..i32::from(width)).contains(&ix) {
                                let at = ((iy * i32::from(width) + ix) * i32::from(channels)) as usize + usize::from(c);
                                let value = i32::from(input[at]);
                                (sum, count, max) = (sum + value, count + 1, max.max(value));
                            }
                        }
                        let mean = if count == 0 { 0 } else { (f64::from(sum) / f64::from(count)).round() as i32 };
                        averages.push(mean.clamp(limits[0].into(), limits[1].into()));
                        maxima.push(max.clamp(limits[0].into(), limits[1].into()));
                    }
                }
            }
            let mut bytes = vec![0u8; averages.len()];
            let output = |bytes: &mut [u8]| {
                let cells = Cell::from_mut(bytes).as_slice_of_cells();
                average(&window, Src::from_slice(input), Dst::from_cells(cells).unwrap(), limits).unwrap();
            };
            output(&mut bytes);
            prop_assert_eq!(bytes.iter().map(|&b| i32::from(b as i8)).collect::<Vec<_>>(), averages);
            let cells = Cell::from_mut(&mut bytes[..]).as_slice_of_cells();
            max(&window, Src::from_slice(input), Dst::from_cells(cells).unwrap(), limits).unwrap();
            prop_assert_eq!(bytes.iter().map(|&b| i32::from(b as i8)).collect::<Vec<_>>(), maxima);
        }
    }

    /// Windows of more elements than a 16-bit sum holds, of the ends of int8, in one run or in rows apart.
    #[test]
    fn large_windows_are_summed_in_parts() {
        for (input, kernel) in [
            ([3, 200, 5], [3, 200]),
            ([3, 200, 5], [3, 171]),
            ([2, 600, 6], [2, 599]),
            ([300, 2, 4], [300, 1]),
        ] {
            let [height, width, channels]: [u16; 3] = input;
            let window = Window2d {
                batch: 1,
                input,
                output: [1, 1, channels],
                kernel,
                stride: [1, 1],
                dilation: [1, 1],
                padding: [0, 0],
            };
            let ends = [-128, 127, -128, 126, 127, -1];
            let input: Vec<i8> = (0..height * width)
                .flat_map(|_| ends.into_iter().take(channels.into()))
                .collect();
            let mut bytes = vec![0u8; channels.into()];
            let output = Dst::from_cells(Cell::from_mut(&mut bytes[..]).as_slice_of_cells()).unwrap();
            average(&window, Src::from_slice(&input), output, [-128, 127]).unwrap();
            let averages: Vec<i8> = bytes.iter().map(|&byte| byte as i8).collect();
            assert_eq!(
                averages,
                ends[..usize::from(channels)],
                "{kernel:?} of {height} x {width}"
            );
        }
    }
}
