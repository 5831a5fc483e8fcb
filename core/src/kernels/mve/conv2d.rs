//! Convolution as a product of rows (`rows`) and packed weights (`gemm`, `gemm_f32`).

use super::gemm_s8::Matrix;
use super::geometry::{Geometry, Path};
use super::im2col::{Product, Rows, whole_blocks};
use super::{gemm_f32, gemm_s8};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::operator::Needs;

/// int8, one group. Packed weights of `pack`; the channel records are in them, and `channels` is the offset of the weights.
#[derive(Debug)]
pub struct S8;

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    // Half of a vector: on `vww_96` a little faster than a whole one, and than a quarter.
    const CHANNELS: usize = 8;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        job.conv2d_s8().map(|(op, _)| op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack::<false>(&op, plain.weights, plain.channels, packed)
    }

    /// Left shifts, which few channels have, only cost more.
    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        Some(bound(op, false))
    }
}

/// Packs OHWI weights and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where
/// a slice is too short.
pub(super) fn pack<const W4: bool>(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let path = geometry(op).path;
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    let k = op.window.depth() as usize;
    let weight = |channel: usize, i: usize| {
        let at = channel * k + Geometry::plain_index(&op.window, path, i);
        weights.get(at).copied()
    };
    gemm_s8::pack::<W4>(k, op.input_zero_point, channels, weight, dst)
}

/// The least instructions of a step.
pub(super) fn bound(op: &Conv2dS8, left_shifts: bool) -> u64 {
    let [h, w, c] = op.window.output.map(u64::from);
    let output = super::Output::new(op.output_zero_point, op.clamp, left_shifts);
    gemm_s8::bound(u64::from(op.window.batch) * h * w, op.window.depth(), c, output.fast)
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1
    }

    fn needs(op: &Conv2dS8) -> Needs {
        needs::<false>(op)
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // The product writes less than two pixels ahead.
        let ahead = 2 * u32::from(op.window.output[2]) - 1;
        (index == 1).then(|| geometry(op).distance(&op.window, 1, ahead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        trusts::<false>(op, weights)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        run::<false>(op, mem)
    }
}

/// Elements of a row whose products with weights of four bits have room for 16 times their sum in 32 bits.
const MOST_OF_FOUR_BITS: u32 = 1 << 16;

/// The same of weights of -7 to 7, two channels in a byte: see `gemm`.
#[derive(Debug)]
pub struct S8W4;

#[cfg(any(test, packing))]
impl Candidate for S8W4 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8W4);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, plain) = job.conv2d_s8_w4()?;
        plain
            .weights
            .iter()
            .all(|weight| (-7..=7).contains(weight))
            .then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8_w4()?;
        pack::<true>(&op, plain.weights, plain.channels, packed)
    }

    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        Some(bound(op, false))
    }
}

impl Kernel for S8W4 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        S8::supports(op) && op.window.depth() <= MOST_OF_FOUR_BITS
    }

    fn needs(op: &Conv2dS8) -> Needs {
        needs::<true>(op)
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        S8::distance(op, index)
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        trusts::<true>(op, weights)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        run::<true>(op, mem)
    }
}

#[inline(always)]
fn needs<const W4: bool>(op: &Conv2dS8) -> Needs {
    if !S8::supports(op) {
        return Needs::UNSUPPORTED;
    }
    Needs {
        scratch: geometry(op).scratch,
        weights: gemm_s8::packed_bytes::<W4>(u32::from(op.window.output[2]), op.window.depth()),
    }
}

#[inline(always)]
fn trusts<const W4: bool>(op: &Conv2dS8, weights: &[u8]) -> bool {
    let (k, channels) = (op.window.depth(), u32::from(op.window.output[2]));
    let weights = Mem::of_weights(weights).weights::<u8>(op.weights, gemm_s8::packed_bytes::<W4>(channels, k));
    weights.is_some_and(|weights| gemm_s8::is_packed::<W4>(weights, channels as usize, k as usize))
}

#[inline(always)]
fn run<const W4: bool>(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
    let (k, channels) = (op.window.depth(), u32::from(op.window.output[2]));
    let product = Matrix::<W4>::new(
        mem.weights::<u8>(op.weights, gemm_s8::packed_bytes::<W4>(channels, k))?,
        k as usize,
        channels as usize,
        op.output_zero_point,
        op.clamp,
    )?;
    if is_one_row(op) {
        let (x, out) = (mem.src::<i8>(op.input, k)?, mem.dst::<i8>(op.output, channels)?);
        let row = whole_blocks(x, gemm_s8::padded(k), || mem.dst::<i8>(op.scratch, gemm_s8::padded(k)))?;
        // SAFETY: `row` is one row of whole blocks (`whole_blocks`), and `out` was taken with the pixel's `channels` elements.
        unsafe { product.multiply(row, 0, 1, out.as_mut_ptr()) };
        return Some(());
    }
    let geometry = geometry(op);
    Rows {
        input: mem.src::<i8>(op.input, op.window.input_len()?)?,
        output: mem.dst::<i8>(op.output, op.window.output_len()?)?,
        scratch: match geometry.scratch {
            0 => None,
            bytes => Some(mem.dst::<i8>(op.scratch, bytes)?),
        },
        padding: op.input_zero_point,
        product: product.of_copies(geometry.path != Path::Pixels),
        geometry: &geometry,
    }
    .run()
}

/// Whether all there is to multiply is one row, as in a fully connected layer. It needs no plan of copies but that of the row to whole blocks, and making
/// one takes as many instructions as a product of 128 by 10.
#[inline]
pub(super) fn is_one_row(op: &Conv2dS8) -> bool {
    let window = &op.window;
    let [rows, columns, _] = window.input;
    [window.batch, rows, columns] == [1; 3]
        && window.output[..2] == [1, 1]
        && (window.kernel, window.padding) == ([1, 1], [0, 0])
}

#[inline]
fn geometry(op: &Conv2dS8) -> Geometry {
    Geometry::new(&op.window, 1, gemm_s8::BLOCK as u32)
}

impl<const W4: bool> Product for Matrix<'_, W4> {
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, _: usize) {
        // SAFETY: `Matrix::multiply` has the contract of this function, and gets the same arguments.
        unsafe { Matrix::multiply(self, x, stride, rows, out) }
    }
}

/// f32, one group, no dilation. Packed weights of `pack_f32`; limits turn a NaN into a number.
#[derive(Debug)]
pub struct F32;

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dF32);
    const BIAS: bool = true;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dF32<P>> {
        job.conv2d_f32().map(|(op, _)| op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dF32, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, weights) = job.conv2d_f32()?;
        pack_f32(&op, weights, packed.as_chunks_mut().0)
    }

    fn bound(op: &Conv2dF32, _: &Machine) -> Option<u64> {
        Some(bound_f32(op))
    }
}

/// Packs OHWI weights, little-endian; `dst` has the kernel's `needs(op).weights` bytes. `None` where a slice is too short.
pub(super) fn pack_f32(op: &Conv2dF32, weights: &[f32], dst: &mut [[u8; 4]]) -> Option<()> {
    let path = geometry_f32(op).path;
    let k = op.window.depth() as usize;
    let weight = |channel: usize, i: usize| {
        let at = channel * k + Geometry::plain_index(&op.window, path, i);
        weights.get(at).copied()
    };
    gemm_f32::pack(usize::from(op.window.output[2]), k, weight, dst)
}

/// The least instructions of a step.
fn bound_f32(op: &Conv2dF32) -> u64 {
    let [h, w, c] = op.window.output.map(u64::from);
    gemm_f32::bound(u64::from(op.window.batch) * h * w, u64::from(op.window.depth()), c)
}

impl Kernel for F32 {
    type Op = Conv2dF32;

    /// Its sums start from a bias in memory.
    fn supports(op: &Conv2dF32) -> bool {
        op.groups == 1 && op.window.dilation == [1, 1] && op.bias.is_some()
    }

    fn needs(op: &Conv2dF32) -> Needs {
        if !Self::supports(op) {
            return Needs::UNSUPPORTED;
        }
        Needs {
            scratch: geometry_f32(op).scratch,
            weights: gemm_f32::packed_bytes(u32::from(op.window.output[2]), op.window.depth()),
        }
    }

    fn distance(op: &Conv2dF32, index: usize) -> Option<i64> {
        // Three rows are written group by group.
        let ahead = 3 * u32::from(op.window.output[2]) - 1;
        match (index, op.residual) {
            (1, _) => Some(geometry_f32(op).distance(&op.window, 4, ahead)),
            // The last two of three rows are written group by group before the first one's next group is read.
            (2, Some(_)) if usize::from(op.window.output[2]) > gemm_f32::GROUP => {
                Some(8 * i64::from(op.window.output[2]))
            }
            (2, Some(_)) => Some(0),
            _ => None,
        }
    }

    fn in_place(op: &Conv2dF32, index: usize) -> bool {
        index == 2 && op.residual.is_some()
    }

    fn run(op: &Conv2dF32, mem: &Mem<'_>) -> Option<()> {
        let geometry = geometry_f32(op);
        let (k, channels) = (op.window.depth(), u32::from(op.window.output[2]));
        let outputs = op.window.output_len()?;
        Rows {
            input: mem.src::<i8>(op.input, op.window.input_len()?.checked_mul(4)?)?,
            output: mem.dst::<i8>(op.output, outputs.checked_mul(4)?)?,
            scratch: match geometry.scratch {
                0 => None,
                bytes => Some(mem.dst::<i8>(op.scratch, bytes)?),
            },
            padding: 0,
            product: gemm_f32::Matrix {
                weights: mem.weights::<f32>(op.weights, gemm_f32::packed_bytes(channels, k) / 4)?,
                bias: mem.weights::<f32>(op.bias?, channels)?,
                k: k as usize,
                channels: channels as usize,
                residual: match op.residual {
                    Some(slot) => mem.src::<f32>(slot, outputs)?.as_ptr(),
                    None => core::ptr::null(),
                },
                limits: op.clamp,
            },
            geometry: &geometry,
        }
        .run()
    }
}

fn geometry_f32(op: &Conv2dF32) -> Geometry {
    Geometry::new(&op.window, 4, 4)
}
