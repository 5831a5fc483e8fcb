//! Root mean square normalisation: [`crate::ops::rms_norm`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::rms_norm::RmsNormF32;

pub(crate) fn f32(op: &RmsNormF32, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.rows as usize, op.channels as usize];
    let [rows, channels] = shape;
    let (input, output) = (
        read::<f32>(mem, op.input, rows * channels)?,
        written::<f32>(mem, op.output, rows * channels)?,
    );
    let gain = read::<f32>(mem, op.gain, channels)?;
    for r in 0..rows {
        let mut squares = 0.0_f64;
        for c in 0..channels {
            let x = f64::from(input.get(at(shape, [r, c]))?);
            squares += x * x;
        }
        let root = libm::sqrt(squares / channels as f64 + f64::from(op.epsilon));
        for c in 0..channels {
            let normal = f64::from(input.get(at(shape, [r, c]))?) / root;
            output.set(at(shape, [r, c]), (normal * f64::from(gain.get(c)?)) as f32)?;
        }
    }
    Some(())
}
