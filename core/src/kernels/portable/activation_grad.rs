//! Gradient through an activation, from the formula of [`crate::ops::activation_grad`].

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::activation_grad::{Activated, ActivationGradF32};

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = ActivationGradF32;

    /// Element by element.
    fn distance(_: &ActivationGradF32, index: usize) -> Option<i64> {
        matches!(index, 1 | 2).then_some(0)
    }

    // Under its own name, so that a program can place it in another memory than its flash.
    #[cfg_attr(kernel_isa = "mve", inline(never))]
    fn run(op: &ActivationGradF32, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, op.count)?;
        let gradient = mem.src::<f32>(op.gradient, op.count)?;
        let result = mem.src::<f32>(op.result, op.count)?;
        for ((dx, dy), y) in output.cells().iter().zip(gradient.iter()).zip(result.iter()) {
            dx.set(match op.activation {
                Activated::Clamp { min, max } if min < y && y < max => dy,
                Activated::Clamp { .. } => 0.0,
                Activated::Tanh => dy * (1.0 - y * y),
                Activated::Logistic => dy * (y * (1.0 - y)),
            });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}
