//! Losses with their gradients, from the formulas of [`crate::ops::loss`].

use super::row;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::loss::{SoftmaxCrossEntropyF32, SquaredErrorF32};
use crate::ops::size::product;

/// Cross-entropy of a softmax, f32.
#[derive(Debug)]
pub struct SoftmaxCrossEntropy;

/// Squared error, f32.
#[derive(Debug)]
pub struct SquaredError;

impl Kernel for SoftmaxCrossEntropy {
    type Op = SoftmaxCrossEntropyF32;

    /// A row is read before it is written.
    fn distance(_: &SoftmaxCrossEntropyF32, index: usize) -> Option<i64> {
        (index == 3).then_some(0)
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &SoftmaxCrossEntropyF32, mem: &Mem<'_>) -> Option<()> {
        let all = product(op.rows, op.classes)?;
        let output = mem.dst::<f32>(op.output, all)?;
        let logits = mem.src::<f32>(op.logits, all)?;
        let labels = mem.src::<i32>(op.labels, op.rows)?;
        let classes = op.classes as usize;
        let class = |label: i32| usize::try_from(label).ok().filter(|&label| label < classes);
        let ignored = labels.iter().filter(|&label| class(label).is_none()).count();
        let share = 1.0 / labels.len().saturating_sub(ignored).max(1) as f32;
        let mut loss = 0.0;
        for (r, label) in labels.iter().enumerate() {
            let x = row(logits, r, classes)?;
            let dx = output.slice(r.wrapping_mul(classes), classes)?;
            let Some(label) = class(label) else {
                // Products of 0 and what is no finite number are none: who reads the loss learns of it.
                x.iter().for_each(|x| loss += 0.0 * x);
                dx.cells().iter().for_each(|dx| dx.set(0.0));
                continue;
            };
            let right = x.get(label)?;
            let max = x.iter().fold(f32::NEG_INFINITY, |max, x| if x > max { x } else { max });
            let mut sum = 0.0;
            for (dx, x) in dx.cells().iter().zip(x.iter()) {
                let power = libm::expf(x - max);
                sum += power;
                dx.set(power);
            }
            loss += share * (libm::logf(sum) - (right - max));
            let scale = share / sum;
            dx.cells().iter().for_each(|dx| dx.set(dx.get() * scale));
            let own = dx.cells().get(label)?;
            own.set(own.get() - share);
        }
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        mem.dst::<f32>(op.loss, 1)?.set(0, with_rate(loss, rate))?;
        mem.dst::<i32>(op.ignored, 1)?.set(0, ignored as i32)
    }
}

#[cfg(any(test, packing))]
impl Candidate for SoftmaxCrossEntropy {}

impl Kernel for SquaredError {
    type Op = SquaredErrorF32;

    /// Element by element.
    fn distance(op: &SquaredErrorF32, index: usize) -> Option<i64> {
        (index == 2 || (index == 3 && op.target.is_some())).then_some(0)
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &SquaredErrorF32, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, op.count)?;
        let input = mem.src::<f32>(op.input, op.count)?;
        let target = match op.target {
            Some(target) => Some(mem.src::<f32>(target, op.count)?),
            None => None,
        };
        let (mut sum, mut part) = (0.0f32, 0.0f32);
        for (i, (dx, x)) in output.cells().iter().zip(input.iter()).enumerate() {
            let error = match target {
                Some(target) => x - target.get(i)?,
                None => x,
            };
            part += error * error;
            if i % PART == PART - 1 {
                sum += part;
                part = 0.0;
            }
            dx.set(2.0 * op.factor * error);
        }
        let rate = mem.src::<f32>(op.rate, 1)?.get(0)?;
        mem.dst::<f32>(op.loss, 1)?
            .set(0, with_rate(op.factor * (sum + part), rate))
    }
}

#[cfg(any(test, packing))]
impl Candidate for SquaredError {}

/// Terms of a sum that is a term itself.
const PART: usize = 64;

/// The loss; NaN where the learning rate is not finite.
fn with_rate(loss: f32, rate: f32) -> f32 {
    if rate.is_finite() { loss } else { f32::NAN }
}
