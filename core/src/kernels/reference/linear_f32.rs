//! Fully connected layer of f32: [`crate::ops::linear`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::linear::LinearF32;
use crate::ops::pointwise::clamp;

pub(crate) fn f32(op: &LinearF32, mem: &Mem<'_>) -> Option<()> {
    let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
    let input = read::<f32>(mem, op.input, rows * inputs)?;
    let weights = read::<f32>(mem, op.weights, outputs * inputs)?;
    let bias = read::<f32>(mem, op.bias, outputs)?;
    let output = written::<f32>(mem, op.output, rows * outputs)?;
    for r in 0..rows {
        for o in 0..outputs {
            let mut sum = bias.get(o)?;
            for i in 0..inputs {
                sum += input.get(at([rows, inputs], [r, i]))? * weights.get(at([outputs, inputs], [o, i]))?;
            }
            output.set(at([rows, outputs], [r, o]), clamp(sum, op.clamp))?;
        }
    }
    Some(())
}
