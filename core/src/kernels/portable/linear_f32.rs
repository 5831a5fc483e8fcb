//! Fully connected layers.

use super::{clamp, row};
use crate::arena::Mem;
use crate::cells::Src;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::linear::LinearF32;

/// f32; weights `[out, in]`.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LinearF32;

    fn run(op: &LinearF32, mem: &Mem<'_>) -> Option<()> {
        let (inputs, outputs) = (op.inputs as usize, op.outputs as usize);
        let input = mem.src::<f32>(op.input, op.rows.checked_mul(op.inputs)?)?;
        let output = mem.dst::<f32>(op.output, op.rows.checked_mul(op.outputs)?)?;
        let weights = mem.src::<f32>(op.weights, op.outputs.checked_mul(op.inputs)?)?;
        let bias = mem.src::<f32>(op.bias, op.outputs)?;
        for r in 0..op.rows as usize {
            let x = row(input, r, inputs)?;
            for o in 0..outputs {
                let sum = dot(x, row(weights, o, inputs)?) + bias.get(o)?;
                output.set(r * outputs + o, clamp(sum, op.clamp))?;
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// Dot product with eight accumulators in a fixed order.
fn dot(x: Src<'_, f32>, w: Src<'_, f32>) -> f32 {
    let mut sums = [0.0f32; 8];
    let blocks = w.len() / 8;
    for i in 0..blocks {
        if let (Some(x), Some(w)) = (x.slice(i * 8, 8), w.slice(i * 8, 8)) {
            for ((sum, x), w) in sums.iter_mut().zip(x.iter()).zip(w.iter()) {
                *sum += x * w;
            }
        }
    }
    let tail = x.iter().zip(w.iter()).skip(blocks * 8).map(|(x, w)| x * w).sum::<f32>();
    sums.iter().sum::<f32>() + tail
}
