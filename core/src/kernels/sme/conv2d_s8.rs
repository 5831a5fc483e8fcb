//! int8 convolution and fully connected layers by outer products: every four elements of a window's row, of as many pixels as a vector has words, times
//! those of as many output channels. Windows are read where they are.

use super::args::Convolution;
use super::loops::convolution;
use super::packed;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dwconv_indirection::inside;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::window::Window2d;

/// int8, one group, no dilation. Constants of `packed`; the channel records are in them.
#[derive(Debug)]
pub struct S8;

/// Words of the longest vectors, which are the pixels of a tile.
const MOST: u32 = 64;

/// Words of the shortest ones, and the tiles of sums that a pixel has at once.
const LEAST: u32 = 4;
const TILES: u32 = 3;

/// Pixels that are worth a tile, whose time hardly depends on how many it has. The dot products or the products of matrices take fewer instructions for less.
#[cfg(any(test, packing))]
const WORTH: u32 = 4;

fn pixels(window: &Window2d) -> u32 {
    let [rows, columns] = [window.output[0], window.output[1]].map(u32::from);
    rows.saturating_mul(columns).saturating_mul(window.batch.into())
}

/// Whether the input's pixels are the windows, in order.
fn plain(window: &Window2d) -> bool {
    let same = window.input[..2] == window.output[..2];
    same && (window.kernel, window.padding, window.stride) == ([1, 1], [0, 0], [1, 1])
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1 && op.window.dilation == [1, 1]
    }

    fn needs(op: &Conv2dS8) -> Needs {
        Needs {
            scratch: 0,
            weights: packed::bytes(&op.window),
        }
    }

    /// All channels at once are written after a tile's windows were read; where they are not, its windows are read again for the others.
    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        let channels = u32::from(op.window.output[2]);
        let lead = if channels <= TILES * LEAST {
            0
        } else {
            MOST * channels - 1
        };
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        packed::is_packed(op, weights)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let input = mem.src::<i8>(op.input, window.input_len()?)?.as_ptr();
        let output = mem.dst::<i8>(op.output, window.output_len()?)?.as_mut_ptr();
        let (table, weights) = packed::parts(mem, op)?;
        let pixels = pixels(window) as usize;
        let [height, width, depth] = window.input.map(usize::from);
        let [rows, columns, channels] = window.output.map(usize::from);
        let [stride, step] = window.stride.map(usize::from);
        let [top, left] = window.padding.map(usize::from);
        let pitch = width * depth;
        let below = (rows * stride) as isize;
        let (from, to) = inside(width, columns, window.kernel[1].into(), step, left);
        let mut args = Convolution {
            window: input.wrapping_sub(top * pitch + left * depth),
            weights: weights.as_ptr().cast(),
            table: table.as_ptr(),
            out: output,
            channels,
            pixels,
            rows: window.kernel[0].into(),
            run: packed::run(window) as usize,
            pitch,
            height,
            columns,
            step: step * depth,
            inside: [from, to],
            left: left * depth,
            top: -(top as isize),
            stride,
            next_row: (stride * pitch) as isize - (columns * step * depth) as isize,
            bottom: below - top as isize,
            next_image: (height as isize - below) * pitch as isize,
            outside: i32::from(op.input_zero_point),
            zero_point: i32::from(op.output_zero_point),
            low: i32::from(op.clamp[0]),
            high: i32::from(op.clamp[1]),
        };
        if plain(window) {
            // One row, of which nothing lies outside.
            (args.columns, args.inside, args.pitch) = (pixels, [0, pixels], pixels * depth);
            (args.height, args.bottom) = (1, stride as isize);
        }
        // SAFETY: of the windows of all pixels the loop reads what lies inside the input, and it writes the pixels of the output, in order; constants have the
        // layout of `packed`.
        unsafe { convolution(&args) };
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const CHANNELS: usize = 16;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        (pixels(&op.window) >= WORTH).then_some(op)
    }

    fn pack(job: &Job<'_>, op: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (_, plain) = job.conv2d_s8()?;
        packed::pack(op, plain.weights, plain.channels, packed)
    }

    /// Of every tile: a row of each window loaded, moved and passed, vector by vector; every four elements moved, with their weights loaded and multiplied; and
    /// the outputs, each vector of which takes ten.
    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        let window = &op.window;
        let words = match on.vector_bits {
            0 => u64::from(MOST),
            bits => u64::from(bits / 32),
        };
        let (pixels, channels) = (u64::from(pixels(window)), u64::from(window.output[2]));
        let vectors = channels.div_ceil(words);
        let passes = vectors.div_ceil(TILES.into());
        let lines = u64::from(window.kernel[0]) * u64::from(packed::run(window)).div_ceil(4 * words);
        let fours = u64::from(packed::fours(window));
        let tiles = pixels.div_ceil(words);
        Some(2 * passes * lines * pixels + tiles * fours * (2 * passes + 2 * vectors) + 10 * pixels * vectors)
    }
}
