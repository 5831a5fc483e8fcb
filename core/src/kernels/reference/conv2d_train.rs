//! Convolution with trained weights: [`crate::ops::conv2d_train`]. Weights OHWI.

use super::conv2d::{filter, input_shape, output_shape, products};
use super::{indices, len, read, written};
use crate::arena::Mem;
use crate::ops::conv2d_train::{Conv2dInputGradF32, Conv2dWeightSgdF32, TrainedConv2dF32};
use crate::ops::pointwise::clamp;

pub(crate) fn forward(op: &TrainedConv2dF32, mem: &Mem<'_>) -> Option<()> {
    let (window, filter) = (&op.window, filter(&op.window, op.groups)?);
    let (from, to) = (input_shape(window), output_shape(window));
    let input = read::<f32>(mem, op.input, len(&from))?;
    let output = written::<f32>(mem, op.output, len(&to))?;
    let weights = read::<f32>(mem, op.weights, to[3] * filter)?;
    for i in 0..len(&to) {
        let index = indices(to, i);
        let [.., o] = index;
        let mut sum = match op.bias {
            Some(bias) => read::<f32>(mem, bias, to[3])?.get(o)?,
            None => 0.0,
        };
        products(window, op.groups, index, |x, w| {
            sum += input.get(x)? * weights.get(o * filter + w)?;
            Some(())
        })?;
        output.set(i, clamp(sum, op.clamp))?;
    }
    Some(())
}

pub(crate) fn input_grad(op: &Conv2dInputGradF32, mem: &Mem<'_>) -> Option<()> {
    let (window, filter) = (&op.window, filter(&op.window, op.groups)?);
    let (from, to) = (input_shape(window), output_shape(window));
    let output = written::<f32>(mem, op.output, len(&from))?;
    let gradient = read::<f32>(mem, op.gradient, len(&to))?;
    let weights = read::<f32>(mem, op.weights, to[3] * filter)?;
    for x in 0..len(&from) {
        output.set(x, 0.0)?;
    }
    for i in 0..len(&to) {
        let index = indices(to, i);
        let [.., o] = index;
        products(window, op.groups, index, |x, w| {
            let before = output.as_src().get(x)?;
            output.set(x, before + gradient.get(i)? * weights.get(o * filter + w)?)
        })?;
    }
    Some(())
}

pub(crate) fn weight_sgd(op: &Conv2dWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
    let (window, filter) = (&op.window, filter(&op.window, op.groups)?);
    let (from, to) = (input_shape(window), output_shape(window));
    let weights = written::<f32>(mem, op.weights, to[3] * filter)?;
    let gradient = read::<f32>(mem, op.gradient, len(&to))?;
    let input = read::<f32>(mem, op.input, len(&from))?;
    let rate = read::<f32>(mem, op.rate, 1)?.get(0)?;
    for weight in 0..to[3] * filter {
        let [own, tap] = indices([to[3], filter], weight);
        let mut sum = 0.0_f64;
        for i in 0..len(&to) {
            let index = indices(to, i);
            if index[3] != own {
                continue;
            }
            products(window, op.groups, index, |x, w| {
                if w == tap {
                    sum += f64::from(gradient.get(i)?) * f64::from(input.get(x)?);
                }
                Some(())
            })?;
        }
        let before = weights.as_src().get(weight)?;
        weights.set(weight, (f64::from(before) - f64::from(rate) * sum) as f32)?;
    }
    Some(())
}
