//! Losses with their gradients: [`crate::ops::loss`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::loss::{SoftmaxCrossEntropyF32, SquaredErrorF32};

pub(crate) fn softmax_cross_entropy(op: &SoftmaxCrossEntropyF32, mem: &Mem<'_>) -> Option<()> {
    let [rows, classes] = [op.rows, op.classes].map(|extent| extent as usize);
    let output = written::<f32>(mem, op.output, rows * classes)?;
    let logits = read::<f32>(mem, op.logits, rows * classes)?;
    let labels = read::<i32>(mem, op.labels, rows)?;
    let has_class = |r: usize| labels.get(r).map(|label| (0..op.classes as i32).contains(&label));
    let mut counted = 0;
    for r in 0..rows {
        counted += usize::from(has_class(r)?);
    }
    let mut loss = 0.0_f64;
    for r in 0..rows {
        let x = |c: usize| logits.get(at([rows, classes], [r, c])).map(f64::from);
        let (mut max, mut sum) = (f64::NEG_INFINITY, 0.0);
        for c in 0..classes {
            max = max.max(x(c)?);
        }
        for c in 0..classes {
            sum += libm::exp(x(c)? - max);
        }
        let label = labels.get(r)?;
        if has_class(r)? {
            loss += (libm::log(sum) + max - x(label as usize)?) / counted as f64;
        } else {
            for c in 0..classes {
                loss += if x(c)?.is_finite() { 0.0 } else { f64::NAN };
            }
        }
        for c in 0..classes {
            let right = if label == c as i32 { 1.0 } else { 0.0 };
            let gradient = (libm::exp(x(c)? - max) / sum - right) / counted as f64;
            let gradient = if has_class(r)? { gradient } else { 0.0 };
            output.set(at([rows, classes], [r, c]), gradient as f32)?;
        }
    }
    if !read::<f32>(mem, op.rate, 1)?.get(0)?.is_finite() {
        loss = f64::NAN;
    }
    written::<f32>(mem, op.loss, 1)?.set(0, loss as f32)?;
    written::<i32>(mem, op.ignored, 1)?.set(0, (rows - counted) as i32)
}

pub(crate) fn squared_error(op: &SquaredErrorF32, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let output = written::<f32>(mem, op.output, count)?;
    let input = read::<f32>(mem, op.input, count)?;
    let mut sum = 0.0_f64;
    for i in 0..count {
        let target = match op.target {
            Some(target) => read::<f32>(mem, target, count)?.get(i)?,
            None => 0.0,
        };
        let error = f64::from(input.get(i)?) - f64::from(target);
        sum += error * error;
        output.set(i, (2.0 * f64::from(op.factor) * error) as f32)?;
    }
    let finite = read::<f32>(mem, op.rate, 1)?.get(0)?.is_finite();
    let loss = if finite { f64::from(op.factor) * sum } else { f64::NAN };
    written::<f32>(mem, op.loss, 1)?.set(0, loss as f32)
}
