//! Batch norm, its statistics and its gradients: [`crate::ops::batch_norm`].

use super::{at, read, written};
use crate::arena::{Mem, Slot};
use crate::ops::batch_norm::{BatchNormF32, BatchNormGradF32, BatchStatisticsF32};

pub(crate) fn f32(op: &BatchNormF32, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.rows, op.channels].map(|extent| extent as usize);
    let [rows, channels] = shape;
    let output = written::<f32>(mem, op.output, rows * channels)?;
    let input = read::<f32>(mem, op.input, rows * channels)?;
    for c in 0..channels {
        let of = |slot: Slot| Some(f64::from(read::<f32>(mem, slot, channels)?.get(c)?));
        let deviation = libm::sqrt(of(op.variance)? + f64::from(op.epsilon));
        for r in 0..rows {
            let x = f64::from(input.get(at(shape, [r, c]))?);
            let y = (x - of(op.mean)?) / deviation * of(op.gain)? + of(op.shift)?;
            output.set(at(shape, [r, c]), y as f32)?;
        }
    }
    Some(())
}

pub(crate) fn statistics(op: &BatchStatisticsF32, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.rows, op.channels].map(|extent| extent as usize);
    let [rows, channels] = shape;
    let input = read::<f32>(mem, op.input, rows * channels)?;
    let n = rows as f64;
    for c in 0..channels {
        let x = |r: usize| Some(f64::from(input.get(at(shape, [r, c]))?));
        let (mut mean, mut square) = (0.0, 0.0);
        for r in 0..rows {
            mean += x(r)? / n;
        }
        for r in 0..rows {
            square += (x(r)? - mean) * (x(r)? - mean);
        }
        let unbiased = if rows > 1 { square / (n - 1.0) } else { square };
        for (slot, value) in [(op.mean, mean), (op.variance, square / n)] {
            written::<f32>(mem, slot, channels)?.set(c, value as f32)?;
        }
        for (slot, value) in [(op.moving_mean, mean), (op.moving_variance, unbiased)] {
            let moving = written::<f32>(mem, slot, channels)?;
            let before = f64::from(moving.as_src().get(c)?);
            let momentum = f64::from(op.momentum);
            moving.set(c, (momentum * before + (1.0 - momentum) * value) as f32)?;
        }
    }
    Some(())
}

pub(crate) fn grad(op: &BatchNormGradF32, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.rows, op.channels].map(|extent| extent as usize);
    let [rows, channels] = shape;
    let output = written::<f32>(mem, op.output, rows * channels)?;
    let gradient = read::<f32>(mem, op.gradient, rows * channels)?;
    let input = read::<f32>(mem, op.input, rows * channels)?;
    for c in 0..channels {
        let of = |slot: Slot| Some(f64::from(read::<f32>(mem, slot, channels)?.get(c)?));
        let deviation = libm::sqrt(of(op.variance)? + f64::from(op.epsilon));
        let both = |r: usize| {
            let x = f64::from(input.get(at(shape, [r, c]))?);
            Some((
                f64::from(gradient.get(at(shape, [r, c]))?),
                (x - of(op.mean)?) / deviation,
            ))
        };
        let (mut dshift, mut dgain) = (0.0, 0.0);
        for r in 0..rows {
            let (dy, normal) = both(r)?;
            dshift += dy;
            dgain += dy * normal;
        }
        written::<f32>(mem, op.shift_gradient, channels)?.set(c, dshift as f32)?;
        written::<f32>(mem, op.gain_gradient, channels)?.set(c, dgain as f32)?;
        let n = rows as f64;
        for r in 0..rows {
            let (dy, normal) = both(r)?;
            let dx = of(op.gain)? / deviation * (dy - dshift / n - normal * dgain / n);
            output.set(at(shape, [r, c]), dx as f32)?;
        }
    }
    Some(())
}
