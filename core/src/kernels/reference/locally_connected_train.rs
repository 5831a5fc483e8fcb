//! Locally connected layers with trained filters: [`crate::ops::locally_connected_train`]. Activations NCHW, weights `[out, in, kh, kw, oh, ow]`.

use super::locally_connected::Extents;
use super::{at, indices, len, read, written};
use crate::arena::{Mem, Slot};
use crate::ops::locally_connected_train::{
    LocallyConnectedGainGradF32, LocallyConnectedInputGradF32, LocallyConnectedWeightSgdF32, TrainedLocallyConnectedF32,
};
use crate::ops::pointwise::clamp;

/// The factor of the sums.
fn gain(mem: &Mem<'_>, gain: Option<Slot>) -> Option<f32> {
    match gain {
        Some(gain) => read::<f32>(mem, gain, 1)?.get(0),
        None => Some(1.0),
    }
}

pub(crate) fn forward(op: &TrainedLocallyConnectedF32, mem: &Mem<'_>) -> Option<()> {
    let extents = Extents::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
    let [_, outputs, rows, columns] = extents.output;
    let input = read::<f32>(mem, op.input, len(&extents.input))?;
    let output = written::<f32>(mem, op.output, len(&extents.output))?;
    let weights = read::<f32>(mem, op.weights, len(&extents.weights))?;
    let gain = gain(mem, op.gain)?;
    for i in 0..len(&extents.output) {
        let index = indices(extents.output, i);
        let mut sum = 0.0;
        extents.products(index, |x, w| {
            sum += input.get(x)? * weights.get(w)?;
            Some(())
        })?;
        let [_, o, oy, ox] = index;
        let bias = match op.bias {
            Some(bias) => {
                read::<f32>(mem, bias, outputs * rows * columns)?.get(at([outputs, rows, columns], [o, oy, ox]))?
            }
            None => 0.0,
        };
        output.set(i, clamp(sum * gain + bias, op.clamp))?;
    }
    Some(())
}

pub(crate) fn input_grad(op: &LocallyConnectedInputGradF32, mem: &Mem<'_>) -> Option<()> {
    let extents = Extents::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
    let output = written::<f32>(mem, op.output, len(&extents.input))?;
    let gradient = read::<f32>(mem, op.gradient, len(&extents.output))?;
    let weights = read::<f32>(mem, op.weights, len(&extents.weights))?;
    let gain = gain(mem, op.gain)?;
    for x in 0..len(&extents.input) {
        output.set(x, 0.0)?;
    }
    for i in 0..len(&extents.output) {
        extents.products(indices(extents.output, i), |x, w| {
            let before = output.as_src().get(x)?;
            output.set(x, before + gain * gradient.get(i)? * weights.get(w)?)
        })?;
    }
    Some(())
}

pub(crate) fn weight_sgd(op: &LocallyConnectedWeightSgdF32, mem: &Mem<'_>) -> Option<()> {
    let extents = Extents::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
    let weights = written::<f32>(mem, op.weights, len(&extents.weights))?;
    let gradient = read::<f32>(mem, op.gradient, len(&extents.output))?;
    let input = read::<f32>(mem, op.input, len(&extents.input))?;
    let rate = f64::from(read::<f32>(mem, op.rate, 1)?.get(0)?) * f64::from(gain(mem, op.gain)?);
    for w in 0..len(&extents.weights) {
        let [o, c, ky, kx, oy, ox] = indices(extents.weights, w);
        let mut sum = 0.0_f64;
        for n in 0..usize::from(op.batch) {
            let dy = gradient.get(at(extents.output, [n, o, oy, ox]))?;
            let x = input.get(at(extents.input, [n, c, oy + ky, ox + kx]))?;
            sum += f64::from(dy) * f64::from(x);
        }
        let before = weights.as_src().get(w)?;
        weights.set(w, (f64::from(before) - rate * sum) as f32)?;
    }
    Some(())
}

pub(crate) fn gain_grad(op: &LocallyConnectedGainGradF32, mem: &Mem<'_>) -> Option<()> {
    let extents = Extents::new(op.batch, op.input_shape, op.output_shape(), op.kernel);
    let output = written::<f32>(mem, op.output, 1)?;
    let gradient = read::<f32>(mem, op.gradient, len(&extents.output))?;
    let input = read::<f32>(mem, op.input, len(&extents.input))?;
    let weights = read::<f32>(mem, op.weights, len(&extents.weights))?;
    let mut sum = 0.0_f64;
    for i in 0..len(&extents.output) {
        let dy = f64::from(gradient.get(i)?);
        extents.products(indices(extents.output, i), |x, w| {
            sum += dy * f64::from(input.get(x)?) * f64::from(weights.get(w)?);
            Some(())
        })?;
    }
    output.set(0, sum as f32)
}
