//! Local response normalisation straight from the formula.

use super::row;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::lrn::LrnF32;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LrnF32;

    fn run(op: &LrnF32, mem: &Mem<'_>) -> Option<()> {
        let len = op.pixels.checked_mul(op.channels)?;
        let (channels, radius) = (op.channels as usize, usize::from(op.radius));
        let input = mem.src::<f32>(op.input, len)?;
        let output = mem.dst::<f32>(op.output, len)?;
        for pixel in 0..op.pixels as usize {
            let x = row(input, pixel, channels)?;
            let y = output.slice(pixel * channels, channels)?;
            for (c, y) in y.cells().iter().enumerate() {
                let low = c.saturating_sub(radius);
                let near = x.slice(low, (c + radius + 1).min(channels) - low)?;
                let squares: f32 = near.iter().map(|x| x * x).sum();
                y.set(x.get(c)? / libm::powf(op.bias + op.alpha * squares, op.beta));
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}
