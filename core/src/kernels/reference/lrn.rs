//! Local response normalisation: [`crate::ops::lrn`].

use super::{at, constant, len, read, written};
use crate::arena::Mem;
use crate::ops::lrn::{LrnF32, LrnS8};

pub(crate) fn f32(op: &LrnF32, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.pixels, op.channels].map(|extent| extent as usize);
    let [pixels, channels] = shape;
    let input = read::<f32>(mem, op.input, len(&shape))?;
    let output = written::<f32>(mem, op.output, len(&shape))?;
    for p in 0..pixels {
        for c in 0..channels {
            let mut squares = 0.0;
            for other in 0..channels {
                if other.abs_diff(c) <= op.radius.into() {
                    let x = input.get(at(shape, [p, other]))?;
                    squares += x * x;
                }
            }
            let x = input.get(at(shape, [p, c]))?;
            output.set(at(shape, [p, c]), x / libm::powf(op.bias + op.alpha * squares, op.beta))?;
        }
    }
    Some(())
}

pub(crate) fn s8(op: &LrnS8, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.pixels, op.channels].map(|extent| extent as usize);
    let [pixels, channels] = shape;
    let input = read::<i8>(mem, op.input, len(&shape))?;
    let output = written::<i8>(mem, op.output, len(&shape))?;
    let table = constant::<i32>(mem, op.table, op.lrn.words() as usize)?;
    let (powers, octaves) = table.split_first_chunk()?;
    let (octaves, _) = octaves.as_chunks();
    let centred = |p: usize, c: usize| {
        let x = input.get(at(shape, [p, c]))?;
        Some(i32::from(x) - i32::from(op.input_zero_point))
    };
    for p in 0..pixels {
        for c in 0..channels {
            let mut squares = 0_u32;
            for other in 0..channels {
                if other.abs_diff(c) <= op.radius.into() {
                    squares += centred(p, other)?.pow(2) as u32;
                }
            }
            let normal = op.lrn.apply(centred(p, c)?, squares, powers, octaves);
            let stored = normal.wrapping_add(op.output_zero_point.into());
            output.set(at(shape, [p, c]), stored.clamp(-128, 127) as i8)?;
        }
    }
    Some(())
}
