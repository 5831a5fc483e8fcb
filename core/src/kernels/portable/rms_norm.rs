//! Root mean square normalisation.

use super::row;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dot_f32::dot;
use crate::ops::rms_norm::RmsNormF32;
use crate::ops::size::size;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = RmsNormF32;

    /// A row is summed before it is written, element by element.
    fn distance(_: &RmsNormF32, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &RmsNormF32, mem: &Mem<'_>) -> Option<()> {
        let (len, channels) = (size(&[op.rows, op.channels])?, op.channels as usize);
        let input = mem.src::<f32>(op.input, len)?;
        let gain = mem.src::<f32>(op.gain, op.channels)?;
        let output = mem.dst::<f32>(op.output, len)?;
        for r in 0..op.rows as usize {
            let x = row(input, r, channels)?;
            let mean = dot(x, x) / op.channels as f32;
            let factor = 1.0 / libm::sqrtf(mean + op.epsilon);
            let y = output.slice(r.wrapping_mul(channels), channels)?;
            for ((y, x), gain) in y.cells().iter().zip(x.iter()).zip(gain.iter()) {
                y.set(x * factor * gain);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}
