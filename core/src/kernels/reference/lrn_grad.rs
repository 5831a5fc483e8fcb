//! Gradient of the local response normalisation: [`crate::ops::lrn_grad`].

use super::{at, len, read, written};
use crate::arena::Mem;
use crate::ops::lrn_grad::LrnGradF32;

pub(crate) fn f32(op: &LrnGradF32, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.pixels, op.channels].map(|extent| extent as usize);
    let [pixels, channels] = shape;
    let output = written::<f32>(mem, op.output, len(&shape))?;
    let gradient = read::<f32>(mem, op.gradient, len(&shape))?;
    let input = read::<f32>(mem, op.input, len(&shape))?;
    let is_near = |c: usize, other: usize| other.abs_diff(c) <= op.radius.into();
    let of = |p: usize, c: usize| {
        Some((
            f64::from(input.get(at(shape, [p, c]))?),
            gradient.get(at(shape, [p, c]))?,
        ))
    };
    let [bias, alpha, beta] = [op.bias, op.alpha, op.beta].map(f64::from);
    let scale = |p: usize, c: usize| {
        let mut squares = 0.0;
        for other in (0..channels).filter(|&other| is_near(c, other)) {
            let (x, _) = of(p, other)?;
            squares += x * x;
        }
        Some(bias + alpha * squares)
    };
    for p in 0..pixels {
        for c in 0..channels {
            let mut sum = 0.0;
            for other in (0..channels).filter(|&other| is_near(c, other)) {
                let (x, dy) = of(p, other)?;
                sum += f64::from(dy) * x / libm::pow(scale(p, other)?, beta + 1.0);
            }
            let (x, dy) = of(p, c)?;
            let dx = f64::from(dy) / libm::pow(scale(p, c)?, beta) - 2.0 * alpha * beta * x * sum;
            output.set(at(shape, [p, c]), dx as f32)?;
        }
    }
    Some(())
}
