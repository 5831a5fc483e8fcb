//! Softmax over rows.

use super::row;
use crate::arena::Mem;
use crate::ops::Kernel;
use crate::ops::softmax::SoftmaxF32;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = SoftmaxF32;

    fn distance(_: &SoftmaxF32, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SoftmaxF32, mem: &Mem<'_>) -> Option<()> {
        let len = op.rows.checked_mul(op.classes)?;
        let classes = op.classes as usize;
        let input = mem.src::<f32>(op.input, len)?;
        let output = mem.dst::<f32>(op.output, len)?;
        for r in 0..op.rows as usize {
            let x = row(input, r, classes)?;
            let y = output.slice(r * classes, classes)?;
            let max = x.iter().fold(f32::NEG_INFINITY, |max, x| if x > max { x } else { max });
            let mut sum = 0.0;
            for (y, x) in y.cells().iter().zip(x.iter()) {
                let argument = op.beta * (x - max);
                let power = libm::expf(argument);
                sum += power;
                y.set(if op.log { argument } else { power });
            }
            let log_sum = if op.log { libm::logf(sum) } else { 0.0 };
            for y in y.cells() {
                y.set(if op.log { y.get() - log_sum } else { y.get() / sum });
            }
        }
        Some(())
    }
}
