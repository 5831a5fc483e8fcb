//! Gradient of the local response normalisation, from the formula of [`crate::ops::lrn_grad`].
//!
//! Two passes over the channels of a pixel. The first writes `dy[c] / s[c]^beta` to the output and the term of each channel to scratch; the second subtracts
//! the sums of terms. So each power is computed once, and the output may be the gradient that is read.

use super::row;
use crate::arena::Mem;
use crate::cells::Src;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::lrn_grad::LrnGradF32;
use crate::ops::operator::Needs;
use crate::ops::size::product;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LrnGradF32;

    fn needs(op: &LrnGradF32) -> Needs {
        Needs {
            scratch: op.channels.saturating_mul(4),
            weights: 0,
        }
    }

    /// The first pass of a pixel reads each element of the gradient before it writes there.
    fn distance(_: &LrnGradF32, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &LrnGradF32, mem: &Mem<'_>) -> Option<()> {
        let len = product(op.pixels, op.channels)?;
        let output = mem.dst::<f32>(op.output, len)?;
        let gradient = mem.src::<f32>(op.gradient, len)?;
        let input = mem.src::<f32>(op.input, len)?;
        let terms = mem.dst::<f32>(op.scratch, op.channels)?;
        let (channels, radius) = (op.channels as usize, usize::from(op.radius));
        let factor = 2.0 * op.alpha * op.beta;
        for pixel in 0..op.pixels as usize {
            let (x, dy) = (row(input, pixel, channels)?, row(gradient, pixel, channels)?);
            let dx = output.slice(pixel.wrapping_mul(channels), channels)?;
            for (c, (dx, term)) in dx.cells().iter().zip(terms.cells()).enumerate() {
                let squares: f32 = near(x, c, radius)?.iter().map(|x| x * x).sum();
                let scale = op.bias + op.alpha * squares;
                let weighted = dy.get(c)? / libm::powf(scale, op.beta);
                term.set(weighted * x.get(c)? / scale);
                dx.set(weighted);
            }
            for (c, dx) in dx.cells().iter().enumerate() {
                let sum: f32 = near(terms.as_src(), c, radius)?.iter().sum();
                dx.set(dx.get() - factor * x.get(c)? * sum);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// The elements of a row at most `radius` away from channel `c`.
fn near(row: Src<'_, f32>, c: usize, radius: usize) -> Option<Src<'_, f32>> {
    let low = c.saturating_sub(radius);
    let end = c.saturating_add(radius).saturating_add(1).min(row.len());
    row.slice(low, end.checked_sub(low)?)
}
