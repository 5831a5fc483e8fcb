//! Pooling of int8, four channels at a time: averages with two SXTAB16 for each four elements, maxima with SSUB8 and SEL.

use core::num::NonZeroU32;

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(feature = "rolling")]
use crate::arena::Slot;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::isa::dsp::{max_s8x4, sadd16, split, sxtab16, sxtab16_ror8};
use crate::kernels::portable::pool2d::{AvgInt, MaxInt};
use crate::ops::pool2d::PoolInt;
use crate::ops::window::{Window2d, inside, three};
use crate::tensor::DType;

/// Average of int8.
#[derive(Debug)]
pub struct Average;

/// Maximum of int8.
#[derive(Debug)]
pub struct Max;

impl Kernel for Average {
    type Op = PoolInt;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn supports(op: &PoolInt) -> bool {
        is_plain(op) && op.sums_fit()
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        // Channel by channel in the scalar kernel, by fours here: both read a pixel's window before its last channels are written.
        AvgInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        // Rows that lie anywhere are few.
        #[cfg(feature = "rolling")]
        if op.input.region == Slot::ROLLED {
            return AvgInt::run(op, mem);
        }
        let (input, output, clamp) = operands(op, mem)?;
        average(&op.window, input, output, clamp)
    }
}

impl Kernel for Max {
    type Op = PoolInt;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn supports(op: &PoolInt) -> bool {
        is_plain(op)
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        MaxInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        // Rows that lie anywhere are few.
        #[cfg(feature = "rolling")]
        if op.input.region == Slot::ROLLED {
            return MaxInt::run(op, mem);
        }
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
    let mean_of_few = |corners: [u32; 4]| {
        let add = |[even, odd]: [u32; 2], x| [sxtab16(even, x), sxtab16_ror8(odd, x)];
        let [even, odd] = corners.into_iter().fold([0; 2], add).map(quarters);
        even | odd << 8
    };
    each_window(window, input, output, mean_of_few, |patch, from, lanes| {
        // A window of padding alone has the sum 0.
        let count = NonZeroU32::new((patch.rows * patch.columns) as u32).unwrap_or(NonZeroU32::MIN);
        let half = count.get() / 2;
        let mean = |sum: i32| {
            let sign = sum >> 31;
            let quotient = (sum.unsigned_abs().wrapping_add(half) / count) as i32;
            ((quotient ^ sign).wrapping_sub(sign)) as u8
        };
        // SAFETY: `each_window` calls the closure with a patch inside the input, of which `lanes` channels from `from` on are readable in every pixel.
        unsafe {
            if lanes == 1 {
                mean(patch.fold(from, 0, |sum, x| sum + x)).into()
            } else {
                u32::from_le_bytes(patch.sums(from).map(mean))
            }
        }
    })?;
    limit(output, clamp);
    Some(())
}

/// Quarters of halves that are sums of four bytes, rounded half away from zero: the low bytes.
#[inline(always)]
fn quarters(sums: u32) -> u32 {
    // Below zero the half is one less.
    let half = 0x0002_0002 - (sums >> 15 & 0x0001_0001);
    sadd16(sums, half) >> 2 & 0x00FF_00FF
}

/// Max pooling, then clamped. `None` where the operands are not of the window's sizes or dilated.
pub fn max(window: &Window2d, input: Src<'_, i8>, output: Dst<'_, i8>, clamp: [i8; 2]) -> Option<()> {
    let max_of_few = |[a, b, c, d]: [u32; 4]| max_s8x4(max_s8x4(a, b), max_s8x4(c, d));
    // SAFETY: `each_window` calls the closure with a patch inside the input, of which `lanes` channels from `from` on are readable in every pixel.
    each_window(window, input, output, max_of_few, |patch, from, lanes| unsafe {
        if lanes == 1 {
            patch.fold(from, -128, i32::max) as u32
        } else {
            patch.maxima(from)
        }
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

/// The fewest instructions of an average: three for each four elements, and the division.
fn bound(window: &Window2d) -> u64 {
    let outputs = window.output_len().map_or(0, u64::from);
    let [rows, columns] = window.kernel.map(u64::from);
    outputs * rows * columns * 3 / 4 + outputs * 4
}

/// Part of a window inside the input.
struct Patch {
    rows: usize,
    columns: usize,
    channels: usize,
    /// Elements between rows.
    pitch: usize,
}

impl Patch {
    /// # Safety
    /// Four channels of every pixel, of the first one from `from` on, lie inside the input.
    #[inline(always)]
    unsafe fn sums(&self, from: *const i8) -> [i32; 4] {
        let mut row = from;
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
                    // SAFETY: `pixel` is a pixel of the patch; four channels of it lie inside the input (fn docs). The read is unaligned.
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
    unsafe fn maxima(&self, from: *const i8) -> u32 {
        let mut maxima = u32::from_ne_bytes([0x80; 4]);
        let mut row = from;
        for _ in 0..self.rows {
            let mut pixel = row;
            for _ in 0..self.columns {
                // SAFETY: `pixel` is a pixel of the patch; four channels of it lie inside the input (fn docs). The read is unaligned.
                maxima = max_s8x4(maxima, unsafe { pixel.cast::<u32>().read_unaligned() });
                pixel = pixel.wrapping_add(self.channels);
            }
            row = row.wrapping_add(self.pitch);
        }
        maxima
    }

    /// Fold over a single channel.
    ///
    /// # Safety
    /// The channel of every pixel of the patch, of the first one at `from`, lies inside the input.
    #[inline(always)]
    unsafe fn fold(&self, from: *const i8, first: i32, f: impl Fn(i32, i32) -> i32) -> i32 {
        let (mut value, mut row) = (first, from);
        for _ in 0..self.rows {
            let mut pixel = row;
            for _ in 0..self.columns {
                // SAFETY: `pixel` is a pixel of the patch, whose channel lies inside the input (fn docs).
                value = f(value, i32::from(unsafe { pixel.read() }));
                pixel = pixel.wrapping_add(self.channels);
            }
            row = row.wrapping_add(self.pitch);
        }
        value
    }
}

/// Writes the last `lanes` of four bytes, or the only one.
///
/// # Safety
/// `lanes` bytes are writable at `to`.
#[inline(always)]
unsafe fn put(to: *mut i8, values: u32, lanes: usize, of: usize) {
    if lanes == 4 {
        // SAFETY: `lanes` is 4, and four bytes are writable at `to` (fn docs). The write is unaligned.
        return unsafe { to.cast::<u32>().write_unaligned(values) };
    }
    let mut values = values.wrapping_shr(8 * of.wrapping_sub(lanes) as u32);
    for i in 0..lanes {
        // SAFETY: `i < lanes`, and `lanes` bytes are writable at `to` (fn docs).
        unsafe { to.wrapping_add(i).write(values as i8) };
        values >>= 8;
    }
}

/// Writes `values(patch, first element, lanes)` for every output in order: bytes of four channels, or of one where there are fewer. So many lie inside the
/// input, from the first element on and at every pixel of the patch. Four channels of up to two rows of two pixels are `of_few` of these, twice of a single row
/// or column.
#[inline(always)]
fn each_window(
    window: &Window2d,
    input: Src<'_, i8>,
    output: Dst<'_, i8>,
    of_few: impl Fn([u32; 4]) -> u32,
    values: impl Fn(&Patch, *const i8, usize) -> u32,
) -> Option<()> {
    let sizes = input.len() == window.input_len()? as usize && output.cells().len() == window.output_len()? as usize;
    if !sizes || window.dilation != [1, 1] || window.input[2] != window.output[2] {
        return None;
    }
    let [height, width, channels] = three::<_, usize>(window.input);
    let lanes = if channels < 4 { 1 } else { 4 };
    let last = channels.checked_sub(lanes)?;
    let pitch = width * channels;
    let mut to = output.as_mut_ptr();
    for image in 0..usize::from(window.batch) {
        for y in 0..usize::from(window.output[0]) {
            let (top, rows) = inside(y, window, 0)?;
            for x in 0..usize::from(window.output[1]) {
                let (left, columns) = inside(x, window, 1)?;
                let first = input
                    .as_ptr()
                    .wrapping_add(((image * height + top) * width + left) * channels);
                let few = lanes == 4 && (1..=2).contains(&rows) && (1..=2).contains(&columns);
                let below = if rows == 2 { pitch } else { 0 };
                let right = if columns == 2 { channels } else { 0 };
                // Whole rows are one long one.
                let (rows, columns) = if columns == width {
                    (1, rows * columns)
                } else {
                    (rows, columns)
                };
                let patch = Patch {
                    rows,
                    columns,
                    channels,
                    pitch,
                };
                let mut at = 0;
                while at < channels {
                    // Of the last four, what was written is read again, for nothing.
                    let from = at.min(last);
                    let written = lanes - (at - from);
                    let from = first.wrapping_add(from);
                    // SAFETY: the sizes say that there is an output for each channel of each window, whose elements are in the input.
                    unsafe {
                        let found = if few {
                            let corners = [0, right, below, below + right];
                            of_few(corners.map(|corner| from.wrapping_add(corner).cast::<u32>().read_unaligned()))
                        } else {
                            values(&patch, from, lanes)
                        };
                        put(to.wrapping_add(at), found, written, lanes);
                    }
                    at += written;
                }
                to = to.wrapping_add(channels);
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
