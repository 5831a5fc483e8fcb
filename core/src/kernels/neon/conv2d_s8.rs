//! int8 convolution and fully connected layers as a product of rows (`neon::im2col`) and packed weights (`gemm`).

use core::marker::PhantomData;

use super::args::Product as Args;
use super::gemm_s8;
use super::gemm_s8::{Matrix, Multiply};
use super::im2col::{Geometry, Product, Rows};
use super::loops::{one_row, two_rows};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// int8, one group, no dilation. Packed weights of `gemm`; the channel records are in them, and `channels` is the offset of the weights.
#[derive(Debug)]
pub struct Convolution<L>(PhantomData<L>);

/// Without dot product instructions; no weight is -128.
pub type S8 = Convolution<Widening>;

/// Products of 16 bits.
#[derive(Debug)]
pub struct Widening;

impl Multiply for Widening {
    const TILE: usize = 2;
    const DEPTH: usize = 4;
    const FULL_RANGE: bool = false;

    unsafe fn tiles(args: &Args) {
        // SAFETY: `two_rows` has the contract of this function, and gets the same arguments.
        unsafe { two_rows(args) }
    }

    unsafe fn rows(args: &Args) {
        // SAFETY: `one_row` has the contract of this function, and gets the same arguments.
        unsafe { one_row(args) }
    }

    #[cfg(any(test, packing))]
    fn bound(rows: u64, vectors: u64, eights: u64) -> u64 {
        4 * rows * vectors + 1 + eights * (4 + 3 * rows + vectors * (2 + 6 * rows))
    }
}

#[cfg(any(test, packing))]
impl<L: Multiply> Candidate for Convolution<L> {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const CHANNELS: usize = gemm_s8::LANES;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        (L::FULL_RANGE || !plain.weights.contains(&i8::MIN)).then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack::<L>(&op, plain.weights, plain.channels, packed)
    }

    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        let [h, w, c] = op.window.output.map(u64::from);
        Some(gemm_s8::bound::<L>(
            u64::from(op.window.batch) * h * w,
            op.window.depth(),
            c,
        ))
    }
}

/// Packs OHWI weights and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where a slice is too short.
pub(in crate::kernels) fn pack<L: Multiply>(
    op: &Conv2dS8,
    weights: &[i8],
    channels: &[[i32; 3]],
    dst: &mut [u8],
) -> Option<()> {
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    let k = op.window.depth() as usize;
    let weight = |channel: usize, i: usize| weights.get(channel * k + i).copied();
    gemm_s8::pack::<L>(k, op.input_zero_point, channels, weight, dst)
}

impl<L: Multiply> Kernel for Convolution<L> {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1 && op.window.dilation == [1, 1]
    }

    fn needs(op: &Conv2dS8) -> Needs {
        if !Self::supports(op) {
            return Needs::UNSUPPORTED;
        }
        Needs {
            scratch: geometry(op).scratch,
            weights: gemm_s8::packed_bytes(u32::from(op.window.output[2]), op.window.depth()),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        (index == 1).then(|| geometry(op).distance(&op.window, 1))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let (k, channels) = (op.window.depth(), u32::from(op.window.output[2]));
        let weights = Mem::of_weights(weights).weights::<u8>(op.weights, gemm_s8::packed_bytes(channels, k));
        weights.is_some_and(|weights| gemm_s8::is_packed::<L>(weights, channels as usize, k as usize))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let (k, channels) = (op.window.depth(), u32::from(op.window.output[2]));
        let weights = mem.weights::<u8>(op.weights, gemm_s8::packed_bytes(channels, k))?;
        let product = Matrix::<L>::new(weights, k, channels, op.output_zero_point, op.clamp);
        let geometry = geometry(op);
        Rows {
            input: mem.src::<i8>(op.input, op.window.input_len()?)?,
            output: mem.dst::<i8>(op.output, op.window.output_len()?)?,
            scratch: match geometry.scratch {
                0 => None,
                bytes => Some(mem.dst::<i8>(op.scratch, bytes)?),
            },
            padding: op.input_zero_point,
            product,
            geometry: &geometry,
        }
        .run()
    }
}

fn geometry(op: &Conv2dS8) -> Geometry {
    Geometry::new(&op.window, 1, gemm_s8::BLOCK)
}

impl<L: Multiply> Product for Matrix<'_, L> {
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, _: usize) {
        // SAFETY: `Matrix::multiply` has the contract of this function, and gets the same arguments.
        unsafe { Matrix::multiply(self, x, stride, rows, out) }
    }
}
