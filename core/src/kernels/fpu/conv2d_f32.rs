//! f32 convolution, four pixels of a row and four output channels at a time.
//!
//! Weights: `[out / 4, kh, kw, in, 4]`, the last block filled with zeros. A run of the window that lies inside the input (a kernel row, or one
//! tap where columns are dilated) is one pass of the inner loop. Pixels at the left and right border, and those left over at the end of
//! a row, go one at a time.

use super::conv2d_f32_loops::{CHANNELS, multiply};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Layout, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::{clamp, taps};
use crate::ops::conv2d::Conv2dF32;
use crate::ops::operator::Needs;
use crate::ops::window::Window2d;
#[cfg(any(test, packing))]
use crate::target::Target;

/// Pixels of a block.
const PIXELS: usize = 4;

/// f32, one group.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = Conv2dF32;

    fn supports(op: &Conv2dF32) -> bool {
        op.groups == 1
    }

    fn needs(op: &Conv2dF32) -> Needs {
        let blocks = u32::from(op.window.output[2]).div_ceil(CHANNELS as u32);
        let bytes = match op.groups {
            1 => window_len(&op.window).and_then(|len| len.checked_mul(blocks * CHANNELS as u32 * 4)),
            // Not computed by this kernel: more than any file has.
            _ => None,
        };
        Needs {
            scratch: 0,
            weights: bytes.unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        // The last block of channels reads a block of pixels when all others of these pixels are written.
        let lead = u32::from(op.window.output[2]) * PIXELS as u32 - 1;
        match (index, op.residual) {
            (1, _) => Some(op.window.consumed_distance(4, lead)),
            (2, Some(_)) => Some(beside(&op.window)),
            _ => None,
        }
    }

    fn in_place(op: &Conv2dF32, index: usize) -> bool {
        index == 2 && op.residual.is_some()
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        let window = &in_one_row(&op.window);
        let residual = match op.residual {
            Some(slot) => Some(mem.src::<f32>(slot, window.output_len()?)?),
            None => None,
        };
        let weights = mem.weights::<f32>(op.weights, Self::needs(op).weights / 4)?;
        let layer = Layer {
            window,
            input: mem.src::<f32>(op.input, window.input_len()?)?,
            output: mem.dst::<f32>(op.output, window.output_len()?)?,
            residual,
            weights: weights.as_chunks::<CHANNELS>().0,
            bias: op.biases(mem)?,
            clamp: op.clamp,
        };
        let [height, width, _] = window.output.map(usize::from);
        let (from, to) = inside(window);
        for image in 0..usize::from(window.batch) {
            for y in 0..height {
                let mut x = 0;
                while x < width {
                    if x >= from && x + PIXELS <= to {
                        layer.block::<PIXELS>(image, y, x)?;
                        x += PIXELS;
                    } else {
                        layer.block::<1>(image, y, x)?;
                        x += 1;
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dF32);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dF32<P>> {
        job.conv2d_f32().map(|(op, _)| op)
    }

    fn layout(op: &Conv2dF32) -> Layout {
        if usize::from(op.window.output[2]).is_multiple_of(CHANNELS) {
            Layout::Blocks(CHANNELS)
        } else {
            Layout::Own
        }
    }

    fn pack(job: &Job<'_>, _: &Conv2dF32, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, weights) = job.conv2d_f32()?;
        pack(&op, weights, packed.as_chunks_mut().0)
    }

    fn bound(op: &Conv2dF32, on: &Machine) -> Option<u64> {
        let vectors = matches!(
            on.target,
            Target::Aarch64 | Target::Aarch64Dotprod | Target::Aarch64I8mm | Target::Aarch64Sme | Target::X8664
        );
        Some(bound(op, vectors))
    }
}

/// Packs OHWI weights into `packed`, of `needs(..).weights / 4` elements, little-endian. `None` where a slice has the wrong length.
pub(super) fn pack(op: &Conv2dF32, weights: &[f32], packed: &mut [[u8; 4]]) -> Option<()> {
    let window = &op.window;
    let len = window_len(window)? as usize;
    let channels = usize::from(window.output[2]);
    if !F32::supports(op)
        || weights.len() != channels.checked_mul(len)?
        || packed.len() != channels.next_multiple_of(CHANNELS) * len
    {
        return None;
    }
    for (block, packed) in packed.chunks_exact_mut(len * CHANNELS).enumerate() {
        for (at, packed) in packed.chunks_exact_mut(CHANNELS).enumerate() {
            for (channel, packed) in packed.iter_mut().enumerate() {
                let from = (block * CHANNELS + channel) * len + at;
                *packed = weights.get(from).copied().unwrap_or(0.0).to_le_bytes();
            }
        }
    }
    Some(())
}

/// The fewest instructions that the step can take on a Cortex-M with an FPU: 39 for 32 MACs where four pixels share the weights, 20 for 16
/// where a pixel is alone (`products`), and the load and store of every sum. Products with the border count as well: where there is much of it, a
/// step can stay below. `vectors`: on AArch64 16 MACs take 4 loads of inputs, one of weights, 4 multiplications and 4 additions.
fn bound(op: &Conv2dF32, vectors: bool) -> u64 {
    let window = &in_one_row(&op.window);
    let outputs = window.output_len().map_or(0, u64::from);
    let macs = outputs.saturating_mul(window_len(window).map_or(0, u64::from));
    let (from, to) = inside(window);
    let width = u64::from(window.output[1]).max(1);
    let blocked = ((to - from) / PIXELS * PIXELS) as u64;
    let (together, alone) = (macs / width * blocked, macs / width * (width - blocked));
    let products = if vectors {
        together * 13 / 16 + alone * 14 / 16
    } else {
        together * 39 / 32 + alone * 20 / 16
    };
    products + 2 * outputs
}

/// Elements under a window.
fn window_len(window: &Window2d) -> Option<u32> {
    window.taps().checked_mul(u32::from(window.input[2]))
}

/// Columns of the output whose windows lie inside the input's columns: from, to.
fn inside(window: &Window2d) -> (usize, usize) {
    let [_, columns] = window.kernel.map(usize::from);
    let width = usize::from(window.output[1]);
    let whole = |x: &usize| taps(*x, window, 1).is_some_and(|(first, count, _)| first == 0 && count == columns);
    let from = (0..width).find(whole).unwrap_or(width);
    let to = (from..width).find(|x| !whole(x)).unwrap_or(width);
    (from, to)
}

/// The same convolution over all pixels in one row, where windows are single pixels: blocks then cross rows.
fn in_one_row(window: &Window2d) -> Window2d {
    let [height, width, depth] = window.input;
    let pixels = u32::from(window.batch) * u32::from(height) * u32::from(width);
    let pointwise = window.kernel == [1, 1] && window.stride == [1, 1] && window.padding == [0, 0];
    match u16::try_from(pixels) {
        Ok(pixels) if pointwise && window.output[..2] == window.input[..2] => Window2d {
            batch: 1,
            input: [1, pixels, depth],
            output: [1, pixels, window.output[2]],
            ..*window
        },
        _ => *window,
    }
}

/// Least distance of the output below the tensor that is added, in bytes: other pixels' earlier channels are written before a block of channels reads it.
fn beside(window: &Window2d) -> i64 {
    let channels = usize::from(window.output[2]);
    let ahead = if channels > CHANNELS {
        (PIXELS - 1) * channels
    } else {
        0
    };
    4 * ahead as i64
}

struct Layer<'a> {
    window: &'a Window2d,
    input: Src<'a, f32>,
    output: Dst<'a, f32>,
    residual: Option<Src<'a, f32>>,
    weights: &'a [[f32; CHANNELS]],
    /// Empty for none.
    bias: &'a [f32],
    clamp: [f32; 2],
}

impl Layer<'_> {
    /// All channels of `N` pixels of a row; more than one only where their windows' columns lie inside.
    fn block<const N: usize>(&self, image: usize, y: usize, x: usize) -> Option<()> {
        let window = self.window;
        let [height, width, depth] = window.input.map(usize::from);
        let [out_height, out_width, channels] = window.output.map(usize::from);
        let [_, kernel_columns] = window.kernel.map(usize::from);
        let [row_step, column_step] = window.dilation.map(usize::from);
        let (ky, rows, top) = taps(y, window, 0)?;
        let (kx, columns, left) = taps(x, window, 1)?;
        let stride = usize::from(window.stride[1]) * depth;
        // Undilated columns are contiguous.
        let (runs, len) = if column_step == 1 {
            (1, columns * depth)
        } else {
            (columns, depth)
        };
        let taps_len = window_len(window)? as usize;
        let first_out = ((image * out_height + y) * out_width + x) * channels;
        for (block, first) in (0..channels).step_by(CHANNELS).enumerate() {
            let mut start = [0.0; CHANNELS];
            let biases = self.bias.get(first..).unwrap_or_default();
            start.iter_mut().zip(biases).for_each(|(sum, &bias)| *sum = bias);
            let mut sums = [start; N];
            let weights = self.weights.get(block * taps_len..)?;
            for row in 0..rows {
                let line = (image * height + top + row * row_step) * width + left;
                for run in 0..runs {
                    let at = (line + run * column_step) * depth;
                    let tap = (ky + row) * kernel_columns + kx + run;
                    let weights = weights.get(tap * depth..)?.get(..len)?;
                    let mut inputs = [self.input.slice(at, len)?; N];
                    for (pixel, input) in inputs.iter_mut().enumerate() {
                        *input = self.input.slice(at + pixel * stride, len)?;
                    }
                    multiply(&mut sums, inputs, weights);
                }
            }
            for (pixel, sums) in sums.iter().enumerate() {
                let at = first_out + pixel * channels + first;
                let outputs = self.output.slice(at, CHANNELS.min(channels - first))?;
                for (i, (output, &sum)) in outputs.cells().iter().zip(sums).enumerate() {
                    let residual = match self.residual {
                        Some(residual) => residual.get(at + i)?,
                        None => 0.0,
                    };
                    output.set(clamp(sum + residual, self.clamp));
                }
            }
        }
        Some(())
    }
}
