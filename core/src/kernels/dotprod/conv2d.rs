//! int8 convolution and fully connected layers as a product of rows (`neon::rows`) and packed weights (`gemm`).

use super::gemm::{self, Matrix};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::kernel::Kernel;
use crate::kernels::neon::rows::{Geometry, Product, Rows};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// int8, one group, no dilation. Packed weights of `gemm`; the channel records are in them, and `channels` is the offset of the weights.
#[derive(Debug)]
pub struct S8;

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const CHANNELS: usize = gemm::LANES;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        job.conv2d_s8().map(|(op, _)| op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed)
    }

    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        let [h, w, c] = op.window.output.map(u64::from);
        Some(gemm::bound(u64::from(op.window.batch) * h * w, k(op), c))
    }
}

/// Packs OHWI weights and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where a slice is too short.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    let k = k(op) as usize;
    let weight = |channel: usize, i: usize| weights.get(channel * k + i).copied();
    gemm::pack(k, op.input_zero_point, channels, weight, dst)
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1 && op.window.dilation == [1, 1]
    }

    fn needs(op: &Conv2dS8) -> Needs {
        if !Self::supports(op) {
            // No arena is that large: load refuses the step.
            return Needs {
                scratch: u32::MAX,
                weights: u32::MAX,
            };
        }
        Needs {
            scratch: geometry(op).scratch,
            weights: gemm::packed_bytes(u32::from(op.window.output[2]), k(op)),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        (index == 1).then(|| geometry(op).distance(&op.window, 1))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let (k, channels) = (k(op), u32::from(op.window.output[2]));
        let weights = Mem::of_weights(weights).weights::<u8>(op.weights, gemm::packed_bytes(channels, k));
        weights.is_some_and(|weights| gemm::is_packed(weights, channels as usize, k as usize))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let (k, channels) = (k(op), u32::from(op.window.output[2]));
        let weights = mem.weights::<u8>(op.weights, gemm::packed_bytes(channels, k))?;
        let product = Matrix::new(weights, k, channels, op.output_zero_point, op.clamp);
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

/// Elements under a window; saturates.
fn k(op: &Conv2dS8) -> u32 {
    let [kh, kw] = op.window.kernel.map(u32::from);
    (kh * kw).saturating_mul(u32::from(op.window.input[2]))
}

fn geometry(op: &Conv2dS8) -> Geometry {
    Geometry::new(&op.window, 1, gemm::BLOCK)
}

impl Product for Matrix<'_> {
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, _: usize) {
        // SAFETY: the caller's promise.
        unsafe { Matrix::multiply(self, x, stride, rows, out) }
    }
}
