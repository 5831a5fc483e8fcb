//! Training of fully connected layers and of biases: [`crate::ops::linear_train`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::linear_train::{BiasSgdF32, LinearInputGradF32, LinearWeightSgdF32};

pub(crate) fn input_grad(op: &LinearInputGradF32, mem: &Mem<'_>) -> Option<()> {
    let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
    let output = written::<f32>(mem, op.output, rows * inputs)?;
    let gradient = read::<f32>(mem, op.gradient, rows * outputs)?;
    let weights = read::<f32>(mem, op.weights, outputs * inputs)?;
    for r in 0..rows {
        for i in 0..inputs {
            let mut sum = 0.0_f64;
            for o in 0..outputs {
                let dy = gradient.get(at([rows, outputs], [r, o]))?;
                sum += f64::from(dy) * f64::from(weights.get(at([outputs, inputs], [o, i]))?);
            }
            output.set(at([rows, inputs], [r, i]), sum as f32)?;
        }
    }
    Some(())
}

pub(crate) fn weight_sgd(op: &LinearWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
    let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
    let weights = written::<f32>(mem, op.weights, outputs * inputs)?;
    let gradient = read::<f32>(mem, op.gradient, rows * outputs)?;
    let input = read::<f32>(mem, op.input, rows * inputs)?;
    let rate = f64::from(read::<f32>(mem, op.rate, 1)?.get(0)?);
    for o in 0..outputs {
        for i in 0..inputs {
            let mut sum = 0.0_f64;
            for r in 0..rows {
                let dy = gradient.get(at([rows, outputs], [r, o]))?;
                sum += f64::from(dy) * f64::from(input.get(at([rows, inputs], [r, i]))?);
            }
            let weight = at([outputs, inputs], [o, i]);
            let before = f64::from(weights.as_src().get(weight)?);
            weights.set(weight, (before - rate * sum) as f32)?;
        }
    }
    Some(())
}

pub(crate) fn bias_sgd(op: &BiasSgdF32, mem: &Mem<'_>) -> Option<()> {
    let [rows, channels] = [op.rows, op.channels].map(|extent| extent as usize);
    let bias = written::<f32>(mem, op.bias, channels)?;
    let gradient = read::<f32>(mem, op.gradient, rows * channels)?;
    let rate = f64::from(read::<f32>(mem, op.rate, 1)?.get(0)?);
    for c in 0..channels {
        let mut sum = 0.0_f64;
        for r in 0..rows {
            sum += f64::from(gradient.get(at([rows, channels], [r, c]))?);
        }
        let before = f64::from(bias.as_src().get(c)?);
        bias.set(c, (before - rate * sum) as f32)?;
    }
    Some(())
}
