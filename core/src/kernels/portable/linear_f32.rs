//! Fully connected layers.

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dot_f32::Matrices;
use crate::ops::linear::LinearF32;

/// f32; weights `[out, in]`.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LinearF32;

    fn run(op: &LinearF32, mem: &Mem<'_>) -> Option<()> {
        Matrices {
            x: mem.src::<f32>(op.input, op.rows.checked_mul(op.inputs)?)?,
            w: mem.src::<f32>(op.weights, op.outputs.checked_mul(op.inputs)?)?,
            bias: mem.src::<f32>(op.bias, op.outputs)?,
            y: mem.dst::<f32>(op.output, op.rows.checked_mul(op.outputs)?)?,
            rows: op.rows as usize,
            inputs: op.inputs as usize,
            outputs: op.outputs as usize,
            limits: op.clamp,
        }
        .multiply()
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::LinearF32);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<LinearF32<P>> {
        job.linear_f32()
    }

    /// A product each where compilers use vectors, else two rows of eight by the loop of cores with an FPU: they run files for any target.
    fn bound(_: &LinearF32, on: &Machine) -> Option<u64> {
        Some(if on.vectors {
            on.macs
        } else {
            on.macs.saturating_mul(21) / 16
        })
    }
}
