//! f32 convolution and fully connected layers as a product of rows (`rows`) and packed weights.
//!
//! **Layout.** Output channels come in groups of sixteen, the last of as many as are left, rounded up to four: `[group][k][16]`, with zeros beyond the last
//! channel. One `FMLA` multiplies the weights of four channels by an element of a row, so that a vector of weights serves all rows of a tile: four rows by
//! sixteen channels, which fill half of the registers with sums, want 2 loads for an element's 16 multiplications.

use super::args::ProductF32;
use super::im2col::{Geometry, Product, Rows, TILE};
#[cfg(target_arch = "x86_64")]
use super::loops::{Convolution, convolution_f32};
use super::loops::{four_rows_f32, one_row_f32};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Layout, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dF32;
use crate::ops::operator::Needs;
#[cfg(target_arch = "x86_64")]
use crate::ops::window::Window2d;

/// Output channels of a group.
const GROUP: usize = 16;

/// Output channels of a vector of sums.
const LANES: u32 = 4;

/// f32, one group, no dilation. Limits turn a NaN into a number.
#[derive(Debug)]
pub struct F32;

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dF32);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dF32<P>> {
        job.conv2d_f32().map(|(op, _)| op)
    }

    fn layout(op: &Conv2dF32) -> Layout {
        if usize::from(op.window.output[2]).is_multiple_of(GROUP) {
            Layout::Blocks(GROUP)
        } else {
            Layout::Own
        }
    }

    fn pack(job: &Job<'_>, _: &Conv2dF32, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, weights) = job.conv2d_f32()?;
        pack(&op, weights, packed.as_chunks_mut().0)
    }

    fn bound(op: &Conv2dF32, _: &Machine) -> Option<u64> {
        let [h, w, c] = op.window.output.map(u64::from);
        Some(bound(
            u64::from(op.window.batch) * h * w,
            u64::from(op.window.depth()),
            c,
        ))
    }
}

/// Packs OHWI weights, little-endian, into the kernel's `needs(op).weights` bytes. `None` where a slice has the wrong length.
pub(super) fn pack(op: &Conv2dF32, weights: &[f32], packed: &mut [[u8; 4]]) -> Option<()> {
    let (k, channels) = (op.window.depth() as usize, usize::from(op.window.output[2]));
    if weights.len() != channels.checked_mul(k)? || packed.len() * 4 != packed_bytes(channels as u32, k as u32) as usize
    {
        return None;
    }
    let mut rest = packed;
    for first in (0..channels).step_by(GROUP) {
        let width = (channels - first).min(GROUP).next_multiple_of(LANES as usize);
        let (group, behind) = rest.split_at_mut_checked(width * k)?;
        rest = behind;
        for (i, places) in group.chunks_exact_mut(width).enumerate() {
            for (channel, place) in (first..).zip(places) {
                let weight = if channel < channels {
                    *weights.get(channel * k + i)?
                } else {
                    0.0
                };
                *place = weight.to_le_bytes();
            }
        }
    }
    Some(())
}

/// Bytes of packed weights; saturates.
const fn packed_bytes(channels: u32, k: u32) -> u32 {
    channels.div_ceil(LANES).saturating_mul(k).saturating_mul(LANES * 4)
}

/// The least instructions of a product.
#[cfg(any(test, packing))]
fn bound(rows: u64, k: u64, channels: u64) -> u64 {
    // Of a tile of rows and a group of channels, in vectors of sums: biases, elements, limits and storing.
    let group = |rows: u64, vectors: u64| {
        let step = 1 + rows * vectors;
        (rows - 1) * vectors + 2 + k / 4 * (rows + 4 * step + 2) + k % 4 * (rows + step + 2) + 2 * rows * vectors + rows
    };
    let vectors = channels.div_ceil(LANES.into());
    let tile = |rows: u64| {
        let rest = vectors % 4;
        vectors / 4 * group(rows, 4) + if rest > 0 { group(rows, rest) } else { 0 }
    };
    rows / TILE as u64 * tile(TILE as u64) + rows % TILE as u64 * tile(1)
}

impl Kernel for F32 {
    type Op = Conv2dF32;

    fn supports(op: &Conv2dF32) -> bool {
        op.groups == 1 && op.window.dilation == [1, 1]
    }

    fn needs(op: &Conv2dF32) -> Needs {
        if !Self::supports(op) {
            return Needs::UNSUPPORTED;
        }
        Needs {
            scratch: geometry(op).scratch,
            weights: packed_bytes(u32::from(op.window.output[2]), op.window.depth()),
        }
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        let channels = usize::from(op.window.output[2]);
        match (index, op.residual) {
            (1, _) => Some(geometry(op).distance(&op.window, 4)),
            // The later rows of a tile are written group by group before the first one's next group is read.
            (2, Some(_)) if channels > GROUP => Some(((TILE - 1) * channels * 4) as i64),
            (2, Some(_)) => Some(0),
            _ => None,
        }
    }

    fn in_place(op: &Conv2dF32, index: usize) -> bool {
        index == 2 && op.residual.is_some()
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        let geometry = geometry(op);
        let (k, channels) = (op.window.depth(), u32::from(op.window.output[2]));
        let outputs = op.window.output_len()?;
        let rows = Rows {
            input: mem.src::<i8>(op.input, op.window.input_len()?.checked_mul(4)?)?,
            output: mem.dst::<i8>(op.output, outputs.checked_mul(4)?)?,
            scratch: match geometry.scratch {
                0 => None,
                bytes => Some(mem.dst::<i8>(op.scratch, bytes)?),
            },
            padding: 0,
            product: Matrix {
                weights: mem.weights::<f32>(op.weights, packed_bytes(channels, k) / 4)?,
                bias: op.biases(mem)?,
                k: k as usize,
                channels: channels as usize,
                residual: match op.residual {
                    Some(slot) => mem.src::<f32>(slot, outputs)?.as_ptr(),
                    None => core::ptr::null(),
                },
                limits: op.clamp,
            },
            geometry: &geometry,
        };
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `mem` gave input, output, residual and scratch the lengths of the window and of `needs`, weights and biases their own.
        if unsafe { convolution_f32(&rows.convolution(&op.window, mem.rounding.fused)) } {
            return Some(());
        }
        rows.run()
    }
}

#[cfg(target_arch = "x86_64")]
impl Rows<'_, Matrix<'_>> {
    /// The operands, for the loops that take a convolution as a whole.
    fn convolution<'a>(&self, window: &'a Window2d, fused: bool) -> Convolution<'a> {
        let product = &self.product;
        Convolution {
            window,
            input: self.input.as_ptr().cast(),
            output: self.output.as_mut_ptr().cast(),
            scratch: self
                .scratch
                .map_or(core::ptr::null_mut(), |scratch| scratch.as_mut_ptr().cast()),
            weights: product.weights.as_ptr(),
            bias: product.biases(),
            residual: product.residual,
            limits: product.limits,
            fused,
        }
    }
}

fn geometry(op: &Conv2dF32) -> Geometry {
    Geometry::new(&op.window, 4, 4)
}

/// Packed weights and what they are multiplied to.
struct Matrix<'a> {
    /// [`packed_bytes`].
    weights: &'a [f32],
    /// As many as channels; empty for none.
    bias: &'a [f32],
    k: usize,
    channels: usize,
    /// Of the output's shape; null for none.
    residual: *const f32,
    limits: [f32; 2],
}

impl Matrix<'_> {
    /// Null for none.
    fn biases(&self) -> *const f32 {
        if self.bias.is_empty() {
            core::ptr::null()
        } else {
            self.bias.as_ptr()
        }
    }
}

impl Product for Matrix<'_> {
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, pixel: usize) {
        let channels = self.channels;
        let whole = channels - channels % GROUP;
        // The loop reads a group's biases whole.
        let mut last_bias = [0.0; GROUP];
        let biases = self.bias.get(whole..).unwrap_or_default();
        last_bias.iter_mut().zip(biases).for_each(|(to, &bias)| *to = bias);
        let mut args = ProductF32 {
            x: x.cast(),
            x_stride: stride,
            weights: self.weights.as_ptr(),
            bias: self.biases(),
            out: out.cast(),
            out_stride: 4 * channels,
            residual: if self.residual.is_null() {
                self.residual
            } else {
                self.residual.wrapping_add(pixel * channels)
            },
            groups: channels / GROUP,
            rest: channels % GROUP,
            quads: self.k / 4,
            odd: self.k % 4,
            tiles: rows / TILE,
            limits: self.limits,
            last_bias: last_bias.as_ptr(),
        };
        if args.tiles > 0 {
            // SAFETY: at least one tile; the groups are those of the packed weights, and the contract guarantees `rows >= TILE` rows at `x` and their outputs.
            unsafe { four_rows_f32(&args) };
        }
        let done = args.tiles * TILE;
        if done < rows {
            args.tiles = rows - done;
            args.x = args.x.wrapping_byte_add(done * stride);
            args.out = args.out.wrapping_add(done * channels);
            if !args.residual.is_null() {
                args.residual = args.residual.wrapping_add(done * channels);
            }
            // SAFETY: `rows - done > 0` rows are left, from `args.x` and `args.out` on; this function's contract guarantees all `rows`.
            unsafe { one_row_f32(&args) };
        }
    }
}
