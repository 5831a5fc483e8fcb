//! int8 convolution of 3 x 3 windows by Winograd's F(2x2, 3x3) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016): 16 products for
//! four outputs where windows take 36, for 32 bytes of weights where windows have nine.
//!
//! **Exact.** The transform of the weights has halves in it, so twice the transform is used in each direction: every weight is a whole number of 12 bits, every
//! transformed input one of 11, and each sum is four times the convolution's. All of it is counted modulo 2^32, where sums and differences commute with the
//! remainder, and four times the convolution fits 32 bits, which [`Kernel::supports`] makes sure of.
//!
//! Two tiles of 2 x 2 outputs at a time: their inputs are transformed into scratch, the border as the input's zero point, and the weights of four output
//! channels after four go past them, a row of the transform at a time (`products`).
//!
//! **Weights**: halfwords, `[out / 4, 16, in, 4]`, the last four channels filled up with zeros; zeros alone for a constant channel. **Channels**:
//! [records](Record), in order.

mod transform;

// The cores with loops of their own; hosts, and other cores, run the portable one.
mod armv6m;
mod armv7m;
mod portable;
mod rv32im;

#[cfg(kernel_isa = "armv6m")]
use armv6m as loops;
#[cfg(kernel_isa = "armv7m")]
use armv7m as loops;
#[cfg(not(kernel_isa = "gpr32"))]
use portable as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

#[cfg(any(test, packing))]
use super::Core;
use super::channel_record::{CONSTANT, GENERAL, Record, bits_of, padded};
#[cfg(any(test, packing))]
use super::conv2d_s8::is_code;
use super::conv2d_s8::{limit, packed_records, records};
#[cfg(any(test, packing))]
use super::pack;
use super::requantize;
use super::requantize::Rounding;
use transform::{LANES, POINTS, SUMS, TILES};

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::distance::furthest;
use crate::ops::operator::Needs;
use crate::ops::window::{Window2d, three};

/// Input channels that a loop takes at a time.
const STEP: u16 = 4;
/// The most input channels: four sums of `9 * channels` products of at most 2^14 stay below 2^31.
const MOST_CHANNELS: u16 = 3640;

/// int8, one group, 3 x 3, neighbouring windows.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        let window = &op.window;
        let channels = window.input[2];
        op.groups == 1
            && (window.kernel, window.stride, window.dilation) == ([3, 3], [1, 1], [1, 1])
            && channels.is_multiple_of(STEP)
            && channels <= MOST_CHANNELS
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(u32::from);
        let blocks = outputs.div_ceil(LANES as u32);
        Needs {
            scratch: inputs * (POINTS * TILES * 2) as u32 + padded(inputs),
            weights: inputs
                .saturating_mul(blocks)
                .saturating_mul((POINTS * LANES * 2) as u32),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        (index == 1).then(|| distance(&op.window))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let mem = Mem::of_weights(weights);
        let inputs = usize::from(op.window.input[2]);
        let (Some(records), Some(weights)) = (
            packed_records(op, inputs as u32, &mem),
            mem.weights::<i16>(op.weights, Self::needs(op).weights / 2),
        ) else {
            return false;
        };
        let ordered = (0..).zip(records).all(|(c, record)| record[2] as u32 >> 16 == c);
        ordered
            && blocks(weights, inputs * POINTS * LANES)
                .zip(records.chunks(LANES))
                .all(|(block, records)| is_packed(block, records, inputs))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
        let weights = mem.weights::<i16>(op.weights, needs.weights / 2)?;
        let records = records(op, op.window.input[2].into(), mem)?;
        let scratch = mem.dst::<i32>(op.scratch, needs.scratch / 4)?;
        let step = Convolution {
            op,
            rounding: Rounding::new(op.output_zero_point, bits_of(op, records)),
            records,
            weights: weights.as_ptr(),
            tiles: scratch.as_mut_ptr().cast(),
        };
        // SAFETY: input and output were taken with the window's lengths, weights and scratch with those of `needs`; the records were read as valid ones.
        unsafe { step.run(input.as_ptr(), output.as_mut_ptr()) };
        limit(output, op.clamp);
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const RECORDS: bool = true;
    const SPENDS_FLASH: bool = true;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        job.conv2d_s8().map(|(op, _)| op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], records: &mut [Record]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(usize::from);
        let lengths = plain.weights.len() == 9 * inputs * outputs && plain.channels.len() == outputs;
        if !lengths || records.len() != outputs || packed.len() != Self::needs(&op).weights as usize {
            return None;
        }
        packed.fill(0);
        let bits = pack::bits(&op, plain.weights, plain.channels);
        let rows = plain.weights.chunks_exact(9 * inputs).zip(plain.channels);
        for ((c, (row, &channel)), place) in rows.enumerate().zip(records) {
            let [bias, multiplier, code] = pack::channel(&op, row.iter().copied(), channel, bits);
            *place = [bias, multiplier, code | (c as i32) << 16];
            if code & CONSTANT != 0 {
                continue;
            }
            for i in 0..inputs {
                let kernel = core::array::from_fn(|tap| row.get(tap * inputs + i).copied().unwrap_or(0));
                for (p, value) in transform::weights(&kernel).into_iter().enumerate() {
                    let at = (((c / LANES) * POINTS + p) * inputs + i) * LANES + c % LANES;
                    packed
                        .get_mut(2 * at..)?
                        .first_chunk_mut::<2>()?
                        .copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        Some(())
    }

    fn varies(op: &Conv2dS8, at: usize) -> bool {
        // Requantising without a 64-bit product differs beyond the bounds that weights of a packer keep.
        let weights = op.weights as usize..op.weights as usize + Self::needs(op).weights as usize;
        is_code(op, at) || weights.contains(&at)
    }

    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        let core = Core::of(on.target);
        let outputs = op.window.output_len().map_or(0, u64::from);
        let products = outputs * u64::from(op.window.input[2]) * 4;
        Some(products * core.products() / 8 + outputs * core.requantize())
    }
}

/// Whether the weights of four channels, `[16, inputs, 4]`, are those of kernels of bytes, and zeros of channels that are constant or not there.
fn is_packed(block: &[i16], records: &[Record], inputs: usize) -> bool {
    let row = inputs * LANES;
    let varies = |lane: usize| records.get(lane).is_some_and(|[_, _, code]| code & CONSTANT == 0);
    let varies: [bool; LANES] = core::array::from_fn(varies);
    block.len() == POINTS * row
        && (0..row).all(|at| {
            // SAFETY: `p < POINTS` and `at < row`: within the block's `POINTS * row` elements, as just compared.
            let points = core::array::from_fn(|p| unsafe { *block.as_ptr().add(p * row + at) });
            match varies.get(at % LANES) {
                Some(true) => transform::is_of_bytes(&points),
                _ => points == [0; POINTS],
            }
        })
}

/// Whether the transforms, of inputs for all output channels and of sums for all input channels, take less than they save: each some 85 instructions a tile
/// and channel, where every pair of channels saves some 15.
#[cfg(any(test, packing))]
pub fn pays(window: &Window2d) -> bool {
    let [inputs, outputs] = [window.input[2], window.output[2]].map(u32::from);
    15 * inputs * outputs > 85 * (inputs + outputs)
}

/// Least distance of the output below the input, in bytes. The inputs of a pair of tiles are read before the pair's outputs are written; earlier pairs have
/// written the rows above, and the outputs on the left in both rows.
fn distance(window: &Window2d) -> i64 {
    let signed = |[a, b, c]: [usize; 3]| [a as isize, b as isize, c as isize];
    let [ih, iw, ic] = signed(three(window.input));
    let [oh, ow, oc] = signed(three(window.output));
    let tiles = |extent: isize| (extent + 1) / 2;
    let [top, left] = window.padding;
    let rows = furthest(tiles(oh), 2, top, [2 * ow * oc, iw * ic]);
    let columns = furthest(tiles(ow), 2, left, [2 * oc, ic]);
    let grows = (oh * ow * oc - ih * iw * ic).max(0);
    let images = usize::from(window.batch) as isize - 1;
    (rows + ow * oc + columns + images * grows) as i64
}

/// A step: its constants, and where two transformed tiles, `[in, 16, 2]`, and a pixel of the border go.
struct Convolution<'a> {
    op: &'a Conv2dS8,
    rounding: Rounding,
    records: &'a [Record],
    weights: *const i16,
    tiles: *mut i16,
}

impl Convolution<'_> {
    /// # Safety
    /// The operands have the lengths of the window and of [`S8::needs`]; the records are valid.
    unsafe fn run(&self, input: *const i8, output: *mut i8) {
        let window = &self.op.window;
        let [height, width, channels] = window.input.map(usize::from);
        let [out_height, out_width, out_channels] = window.output.map(usize::from);
        let [top, left] = window.padding.map(usize::from);
        // SAFETY: `needs` counts a pixel of `channels` bytes behind the `channels * POINTS * TILES` elements of the tiles.
        let border = unsafe {
            let border = self.tiles.add(channels * POINTS * TILES).cast::<i8>();
            (0..channels).for_each(|i| border.add(i).write(self.op.input_zero_point));
            border
        };
        for image in 0..usize::from(window.batch) {
            let image_in = input.wrapping_add(image * height * width * channels);
            let image_out = output.wrapping_add(image * out_height * out_width * out_channels);
            let place = |y: usize, x: usize| {
                // Coordinates before the image wrap around, beyond all rows and columns.
                let (y, x) = (y.wrapping_sub(top), x.wrapping_sub(left));
                if y < height && x < width {
                    image_in.wrapping_add((y * width + x) * channels)
                } else {
                    border
                }
            };
            let (mut y, mut x) = (0, 0);
            while y < out_height {
                let count = if x + 2 < out_width { TILES } else { 1 };
                for tile in 0..TILES {
                    let x = x + 2 * tile.min(count - 1);
                    let pixels = core::array::from_fn(|i| core::array::from_fn(|j| place(y + i, x + j)));
                    // SAFETY: `place` gives pixels of the image or the border's; `tile < TILES`, one of the tiles in scratch.
                    unsafe { transform::inputs(&pixels, channels, self.tiles.add(tile)) };
                }
                let out = image_out.wrapping_add((y * out_width + x) * out_channels);
                let sizes = [(out_height - y).min(2), (out_width - x).min(2 * TILES)];
                // SAFETY: `y < out_height` and `x < out_width`, and `sizes` are the rows and columns that are left from there, at most.
                unsafe { self.channels(out, sizes) };
                x += 2 * count;
                if x >= out_width {
                    (y, x) = (y + 2, 0);
                }
            }
        }
    }

    /// All output channels of the tiles in scratch.
    ///
    /// # Safety
    /// As for [`Convolution::run`]; `out` takes `rows` rows of `columns` pixels.
    #[inline(never)]
    unsafe fn channels(&self, out: *mut i8, [rows, columns]: [usize; 2]) {
        let [_, width, stride] = self.op.window.output.map(usize::from);
        let channels = usize::from(self.op.window.input[2]);
        let mut weights = self.weights;
        for block in self.records.chunks(LANES) {
            let (mut upper, mut lower) = ([0; SUMS], [0; SUMS]);
            let mut products = [0; 4 * LANES * TILES];
            for row in 0..4 {
                // SAFETY: `row < 4` of the tiles in scratch; `weights` has four rows of points for each block of records, which are taken in order (`needs`).
                unsafe {
                    loops::products(self.tiles.add(row * 4 * TILES), weights, channels, &mut products);
                    weights = weights.add(4 * LANES * channels);
                }
                match row {
                    0 => transform::sums::<0>(&products, &mut upper, &mut lower),
                    1 => transform::sums::<1>(&products, &mut upper, &mut lower),
                    2 => transform::sums::<2>(&products, &mut upper, &mut lower),
                    _ => transform::sums::<3>(&products, &mut upper, &mut lower),
                }
            }
            let [(upper, _), (lower, _)] = [&upper, &lower].map(|sums| sums.as_chunks::<{ 2 * TILES }>());
            for (record, (upper, lower)) in block.iter().zip(upper.iter().zip(lower)) {
                // SAFETY: a valid record's place is below the output's channels; `out` takes `rows` rows of `columns` pixels (fn docs).
                unsafe {
                    let out = out.add((record[2] as u32 >> 16) as usize);
                    self.store(record, upper, columns, out);
                    if rows > 1 {
                        self.store(record, lower, columns, out.add(width * stride));
                    }
                }
            }
        }
    }

    /// The outputs of four times these sums.
    ///
    /// # Safety
    /// `out` takes a channel of `columns` pixels.
    #[inline(always)]
    unsafe fn store(&self, record: &Record, sums: &[i32; 2 * TILES], columns: usize, out: *mut i8) {
        let &[bias, multiplier, code] = record;
        let zero_point = self.op.output_zero_point;
        let addend = self.rounding.addend(code);
        let stride = usize::from(self.op.window.output[2]);
        let mut out = out;
        for &sum in sums.iter().take(columns) {
            let acc = bias.wrapping_add(sum >> 2);
            let value = match code & GENERAL {
                0 => self.rounding.apply(acc, multiplier, code, addend),
                _ => requantize::general(acc, record, zero_point, [i8::MIN, i8::MAX]),
            };
            // SAFETY: `out` is at one of the `columns` pixels that it takes (fn docs).
            unsafe { out.write(value) };
            out = out.wrapping_add(stride);
        }
    }
}
