//! int8 convolution of one group.
//!
//! Four output pixels at a time: their windows are unpacked side by side into scratch (`rows` says why), the border as the input's zero
//! point, and every output channel's row of weights goes past them.
//!
//! **Weights**: a row of bytes for each output channel in the order `[kh, kw, in]`, zeros up to a multiple of 4, and zeros alone for a constant
//! channel. **Channels**: [records](Record), one a row. The rows are sorted by the size of their blocks, so that neighbours run the same loop; a
//! record knows its channel.

use super::pack;
use super::record::{self, BLOCK, BLOCK2, BLOCK3, BLOCK4, BLOCK8, CONSTANT, Record, padded};
use super::requant::Rounding;
use super::{Core, rows};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
use crate::cells::Dst;
#[cfg(any(test, packing))]
use crate::kernels::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::window::Window2d;

/// int8, one group.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let inputs = padded(inputs(op));
        let border = padded(u32::from(op.window.input[2]));
        Needs {
            scratch: inputs.saturating_mul(8).saturating_add(border),
            weights: inputs.saturating_mul(u32::from(op.window.output[2])),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // Four windows are read before their pixels are written.
        (index == 1).then(|| match pointwise_pixels(&op.window) {
            None => op.window.consumed_distance(1, 0),
            Some(pixels) => {
                let grows = i64::from(op.window.output[2]) - i64::from(op.window.input[2]);
                let last = i64::from((pixels - 1) / 4 * 4);
                (last * grows).max(0)
            }
        })
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let (row, mem) = (inputs(op), Mem::of_weights(weights));
        let inputs = padded(row);
        let (Some(records), Some(weights)) = (
            packed_records(op, inputs, &mem),
            mem.weights::<u32>(op.weights, Self::needs(op).weights / 4),
        ) else {
            return false;
        };
        // The loops take whole words, and a constant channel's row beside another one's.
        let beyond = beyond(row);
        let rows = blocks(weights, inputs as usize / 4);
        records.iter().zip(rows).all(|(record, weights)| {
            let constant = record[2] & CONSTANT != 0;
            weights.last().is_some_and(|word| word & beyond == 0)
                && (!constant || weights.iter().all(|&word| word == 0))
        })
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<i8>(op.weights, needs.weights)?;
        let records = records(op, padded(inputs(op)), mem)?;
        let scratch = mem.dst::<i32>(op.scratch, needs.scratch / 4)?;
        // SAFETY: the lengths are those of the window and of `needs`, and the records are valid.
        unsafe {
            convolve(
                op,
                input.as_ptr(),
                weights.as_ptr(),
                records,
                output.as_mut_ptr(),
                scratch.as_mut_ptr(),
            )
        };
        limit(output, op.clamp);
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;

    /// Of more than one pixel: [`super::dense`] takes that.
    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        (!op.is_one_pixel()).then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], records: &mut [Record]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed, records)
    }

    fn varies(op: &Conv2dS8, at: usize) -> bool {
        // RV32 takes two channels of different blocks by the smaller one: what a weight is too large for overflows elsewhere and not there.
        let weights = op.weights as usize..op.weights as usize + Self::needs(op).weights as usize;
        is_code(op, at) || weights.contains(&at)
    }

    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        Some(bound(op, Core::of(on.target)))
    }
}

/// Packs for this kernel: OHWI `weights` and the scalar kernel's `channels` (`[bias, mantissa, shift]`) into `packed`, of [`Kernel::needs`]'s bytes,
/// and `records`, as many as there are output channels. `None` where a length is wrong or this kernel does not compute `op`: more
/// than one group, or neighbouring weights of -128. On failure the destinations hold anything.
pub(super) fn pack(
    op: &Conv2dS8,
    weights: &[i8],
    channels: &[Record],
    packed: &mut [u8],
    records: &mut [Record],
) -> Option<()> {
    let inputs = inputs(op) as usize;
    let count = usize::from(op.window.output[2]);
    let lengths = weights.len() == inputs.checked_mul(count)? && channels.len() == count && records.len() == count;
    if op.groups != 1 || !lengths || packed.len() != S8::needs(op).weights as usize {
        return None;
    }
    let bits = pack::bits(op, weights, channels);
    let kind = |row: &[i8], channel: Record| {
        let record = pack::channel(op, row.iter().copied(), channel, bits);
        match record[2] & CONSTANT {
            0 => pack::block(inputs, core::iter::once(row.iter().copied())).map(|block| (record, block)),
            _ => Some((record, CONSTANT)),
        }
    };
    let mut places = packed.chunks_exact_mut(padded(inputs as u32) as usize).zip(records);
    for wanted in [BLOCK2, BLOCK3, BLOCK4, BLOCK8, CONSTANT] {
        for (c, (row, &channel)) in weights.chunks_exact(inputs).zip(channels).enumerate() {
            let (record, found) = kind(row, channel)?;
            if found != wanted {
                continue;
            }
            let (bytes, place) = places.next()?;
            // Loops that take two channels at a time go past a constant one's row with the other's.
            let row = if found == CONSTANT { &[][..] } else { row };
            let padding = core::iter::repeat(0);
            for (byte, w) in bytes.iter_mut().zip(row.iter().map(|&w| w as u8).chain(padding)) {
                *byte = w;
            }
            let [bias, multiplier, code] = record;
            *place = [bias, multiplier, code | (found & BLOCK) | (c as i32) << 16];
        }
    }
    Some(())
}

/// The fewest instructions of the step: its MACs in blocks of 4, and the least requantising of every output. Constant channels have no MACs, larger
/// blocks cost less: a model that has many of them can stay below it.
fn bound(op: &Conv2dS8, core: Core) -> u64 {
    let outputs = op.window.output_len().map_or(0, u64::from);
    outputs * u64::from(inputs(op)) * core.rows() / 16 + outputs * core.requantize()
}

/// The records of a step as load wants them: [`records`], with every bit as a packer writes it.
pub(super) fn packed_records<'a>(op: &Conv2dS8, inputs: u32, mem: &Mem<'a>) -> Option<&'a [Record]> {
    let window = record::window(op);
    let packed = |record: &Record| record::is_packed(record, window, op.output_zero_point);
    let same = |records: &[Record]| {
        let bits = record::bits_of(op, records);
        records.iter().all(|record| record::has_bits(record, bits))
    };
    records(op, inputs, mem).filter(|records| records.iter().all(packed) && same(records))
}

/// Whether byte `at` of the weights is of a record's code: cores that put two products in one word take different runs of inputs where the block in it is
/// too long.
pub(super) fn is_code(op: &Conv2dS8, at: usize) -> bool {
    at.checked_sub(op.channels as usize).is_some_and(|at| at % 12 >= 8)
}

/// The bytes of a row's last word that lie beyond `row` bytes.
pub(super) const fn beyond(row: u32) -> u32 {
    match row % 4 {
        0 => 0,
        used => u32::MAX << (8 * used),
    }
}

/// The records of a step, checked for what memory safety rests on.
pub(super) fn records<'a>(op: &Conv2dS8, inputs: u32, mem: &Mem<'a>) -> Option<&'a [Record]> {
    let count = u32::from(op.window.output[2]);
    let (records, _) = mem.weights::<i32>(op.channels, count.checked_mul(3)?)?.as_chunks::<3>();
    let divisors = record::divisors(inputs as usize);
    let valid = |record: &Record| record::is_valid(record, divisors, count);
    records.iter().all(valid).then_some(records)
}

/// The loops saturate at the type's limits; an activation with others is applied afterwards.
pub(super) fn limit(output: Dst<'_, i8>, [low, high]: [i8; 2]) {
    if [low, high] != [i8::MIN, i8::MAX] {
        output.cells().iter().for_each(|y| y.set(y.get().max(low).min(high)));
    }
}

/// Inputs of one window.
fn inputs(op: &Conv2dS8) -> u32 {
    let [rows, columns] = op.window.kernel.map(u32::from);
    rows.saturating_mul(columns)
        .saturating_mul(u32::from(op.window.input[2]))
}

/// The pixels of all images, where an output pixel needs its own input pixel alone.
pub(super) fn pointwise_pixels(window: &Window2d) -> Option<u32> {
    let unpadded = window.input[..2] == window.output[..2] && window.padding == [0, 0];
    (window.kernel == [1, 1] && window.stride == [1, 1] && unpadded)
        .then(|| u32::from(window.batch) * u32::from(window.input[0]) * u32::from(window.input[1]))
}

/// # Safety
/// The operands have the lengths of the window and of [`S8::needs`]; the records are valid.
unsafe fn convolve(
    op: &Conv2dS8,
    input: *const i8,
    weights: *const i8,
    records: &[Record],
    output: *mut i8,
    scratch: *mut i32,
) {
    let window = &op.window;
    let inputs = inputs(op) as usize;
    let padded = padded(inputs as u32) as usize;
    let [height, width, channels] = window.input.map(usize::from);
    let [out_height, out_width, out_channels] = window.output.map(usize::from);
    let pointwise = pointwise_pixels(window);
    let rounding = Rounding::new(op.output_zero_point, record::bits_of(op, records));
    let (images, pixels) = match pointwise {
        Some(pixels) => (1, pixels as usize),
        None => (usize::from(window.batch), out_height * out_width),
    };
    // SAFETY: within scratch: the words, then the border's pixel.
    let border = unsafe {
        (2 * inputs..2 * padded).for_each(|i| scratch.add(i).write(0));
        let border = scratch.add(2 * padded).cast::<i8>();
        (0..channels).for_each(|i| border.add(i).write(op.input_zero_point));
        border
    };
    let (mut image, mut out) = (input, output);
    for _ in 0..images {
        let patches = Patches { image, border, window };
        let (mut y, mut x) = (0, 0);
        for first in (0..pixels).step_by(4) {
            let count = (pixels - first).min(4);
            // SAFETY: the windows of `count` pixels, repeated to four; `count` pixels are written.
            unsafe {
                if pointwise.is_some() {
                    let at = |i: usize| image.add((first + i.min(count - 1)) * channels);
                    unpack([at(0), at(1), at(2), at(3)], channels, scratch);
                } else {
                    let mut corners = [(0, 0); 4];
                    for corner in &mut corners {
                        *corner = patches.corner(y, x);
                        x += 1;
                        if x == out_width && y + 1 < out_height {
                            (y, x) = (y + 1, 0);
                        } else if x == out_width {
                            x -= 1;
                        }
                    }
                    patches.unpack(&corners, scratch);
                }
                rows::multiply(
                    scratch,
                    weights,
                    padded,
                    records,
                    out,
                    out_channels,
                    count,
                    op.output_zero_point,
                    rounding,
                );
                out = out.add(count * out_channels);
            }
        }
        image = image.wrapping_add(height * width * channels);
    }
}

/// The windows of one image.
struct Patches<'a> {
    image: *const i8,
    /// A pixel of the border.
    border: *const i8,
    window: &'a Window2d,
}

impl Patches<'_> {
    /// Row and column of a window's first tap.
    fn corner(&self, y: usize, x: usize) -> (isize, isize) {
        let at = |at: usize, axis: usize| {
            (at * usize::from(self.window.stride[axis])) as isize - isize::from(self.window.padding[axis])
        };
        (at(y, 0), at(x, 1))
    }

    /// Unpacks four windows.
    ///
    /// # Safety
    /// `words` takes two words for each input of a window.
    #[inline(never)]
    unsafe fn unpack(&self, corners: &[(isize, isize); 4], words: *mut i32) {
        let [height, width, channels] = self.window.input.map(usize::from);
        let [rows, columns] = self.window.kernel.map(usize::from);
        let [down, right] = self.window.dilation.map(isize::from);
        let pitch = width * channels;
        let mut words = words;
        let inside = |y: isize| (y as usize) < height;
        let [(y, first), .., (last_y, last)] = *corners;
        // Four windows side by side, none across the border's columns: whole rows of taps. Other groups go tap by tap.
        let side_by_side = right == 1 && y == last_y && first >= 0 && last as usize + columns <= width;
        let offsets = corners.map(|(_, x)| x.wrapping_mul(channels as isize));
        for row in 0..rows as isize {
            let line = y + row * down;
            if side_by_side && inside(line) {
                let start = self.image.wrapping_add(line as usize * pitch);
                // SAFETY: a row of taps inside the image, for each window.
                words = unsafe {
                    unpack(
                        offsets.map(|offset| start.wrapping_offset(offset)),
                        columns * channels,
                        words,
                    )
                };
                continue;
            }
            for column in 0..columns as isize {
                let starts = corners.map(|(y, x)| {
                    let (y, x) = (y + row * down, x + column * right);
                    if inside(y) && (x as usize) < width {
                        self.image.wrapping_add(y as usize * pitch + x as usize * channels)
                    } else {
                        self.border
                    }
                });
                // SAFETY: pixels of the image or of the border.
                words = unsafe { unpack(starts, channels, words) };
            }
        }
    }
}

/// `len` bytes at each of four places, two by two into words: `a + (b << 16)`, `c + (d << 16)`. Returns where it stopped.
///
/// # Safety
/// The places are readable for `len` bytes; `words` takes twice as many words.
#[inline(never)]
unsafe fn unpack(places: [*const i8; 4], len: usize, words: *mut i32) -> *mut i32 {
    let ([mut a, mut b, mut c, mut d], mut words, mut left) = (places, words, len);
    // SAFETY: `at` is below the bytes that are left.
    let pair = |x: *const i8, y: *const i8, at: usize| unsafe {
        i32::from(*x.add(at)).wrapping_add(i32::from(*y.add(at)) << 16)
    };
    macro_rules! take {
        // SAFETY: so many bytes are left at all four places, and words for them.
        ($count:literal: $($at:literal)*) => { unsafe {
            $(
                words.add(2 * $at).write(pair(a, b, $at));
                words.add(2 * $at + 1).write(pair(c, d, $at));
            )*
            (a, b, c, d) = (a.add($count), b.add($count), c.add($count), d.add($count));
            words = words.add(2 * $count);
            left -= $count;
        } };
    }
    // Four at a time where most instructions of one are the pointers': ARMv7-M's loads move them on.
    if !cfg!(cortex_m = "mainline") {
        while left >= 4 {
            take!(4: 0 1 2 3);
        }
    }
    while left > 0 {
        take!(1: 0);
    }
    words
}
