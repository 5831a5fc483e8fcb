//! Reductions straight from the formula.

use crate::arena::Mem;
use crate::ops::Kernel;
use crate::ops::reduce::{ReduceF32, Reduction};

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = ReduceF32;

    fn run(op: &ReduceF32, mem: &Mem<'_>) -> Option<()> {
        let [a, r, b, s, c] = op.shape.map(|n| n as usize);
        let input = mem.src::<f32>(op.input, crate::ops::size(&op.shape)?)?;
        let output = mem.dst::<f32>(op.output, op.output_len())?;
        let mut at = 0;
        for i in 0..a {
            for j in 0..b {
                for k in 0..c {
                    let start = input.get((i * r * b + j) * s * c + k)?;
                    let mut value = match op.kind {
                        Reduction::Mean | Reduction::Sum => 0.0,
                        Reduction::Max | Reduction::Min => start,
                    };
                    for p in 0..r {
                        for q in 0..s {
                            let x = input.get((((i * r + p) * b + j) * s + q) * c + k)?;
                            value = match op.kind {
                                Reduction::Mean | Reduction::Sum => value + x,
                                Reduction::Max if x > value => x,
                                Reduction::Min if x < value => x,
                                Reduction::Max | Reduction::Min => value,
                            };
                        }
                    }
                    if op.kind == Reduction::Mean {
                        value /= (r * s) as f32;
                    }
                    output.set(at, value)?;
                    at += 1;
                }
            }
        }
        Some(())
    }
}
