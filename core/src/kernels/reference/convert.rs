//! Tables, rescalings and changes of type: [`crate::ops::convert`].

use super::{IntsRead, IntsWritten, constant, range, read, within, written};
use crate::arena::Mem;
use crate::ops::convert::{Convert, Rescale, SigmoidS16, Table, TableS16};
use crate::quant::{dequantize, quantize};
use crate::tensor::DType;

pub(crate) fn table(op: &Table, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (read::<u8>(mem, op.input, count)?, written::<u8>(mem, op.output, count)?);
    let table = constant::<u8>(mem, op.table, 256)?;
    (0..count).try_for_each(|i| output.set(i, *table.get(usize::from(input.get(i)?))?))
}

/// `y = a + (b - a) * rest / 128`, rounded half up, between the table's values on both sides.
pub(crate) fn table_s16(op: &TableS16, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (
        read::<i16>(mem, op.input, count)?,
        written::<i16>(mem, op.output, count)?,
    );
    let table = constant::<i16>(mem, op.table, 513)?;
    (0..count).try_for_each(|i| {
        let from_least = i32::from(input.get(i)?) + 32768;
        let (place, rest) = ((from_least / 128) as usize, from_least % 128);
        let (a, b) = (i32::from(*table.get(place)?), i32::from(*table.get(place + 1)?));
        // Values further apart than 15 bits come round, as in TensorFlow Lite.
        let apart = i32::from((b - a) as i16);
        output.set(i, (a + (apart * rest + 64).div_euclid(128)) as i16)
    })
}

pub(crate) fn rescale(op: &Rescale, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let input = IntsRead::new(mem, op.input, op.from, count)?;
    let output = IntsWritten::new(mem, op.output, op.to, count)?;
    for i in 0..count {
        let mut x = input.get(i)?.wrapping_sub(op.zero_in);
        if op.absolute {
            x = x.wrapping_abs();
        }
        let scaled = if x >= 0 {
            op.positive.apply(x)
        } else if op.negative.mantissa < 0 {
            // A negative factor is applied as the opposite of its magnitude's product.
            let mut opposite = op.negative;
            opposite.mantissa = opposite.mantissa.wrapping_neg();
            opposite.apply(x).wrapping_neg()
        } else {
            op.negative.apply(x)
        };
        output.set(i, within(scaled.wrapping_add(op.zero_out), op.clamp))?;
    }
    Some(())
}

pub(crate) fn sigmoid(op: &SigmoidS16, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (
        read::<i16>(mem, op.input, count)?,
        written::<i16>(mem, op.output, count)?,
    );
    (0..count).try_for_each(|i| {
        let x = input.get(i)?;
        let y = if op.tanh {
            op.sigmoid.tanh(x)
        } else {
            op.sigmoid.logistic(x)
        };
        output.set(i, y)
    })
}

pub(crate) fn convert(op: &Convert, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let scaled = op.scale > 0.0;
    for i in 0..count {
        match (op.from, op.to) {
            (DType::F32, to) => {
                let x = read::<f32>(mem, op.input, count)?.get(i)?;
                let [low, high] = range(to);
                let stored = if scaled {
                    quantize(x, op.scale, op.zero_point, low, high)
                } else {
                    x as i32
                };
                IntsWritten::new(mem, op.output, to, count)?.set(i, stored)?;
            }
            (from, DType::F32) => {
                let q = IntsRead::new(mem, op.input, from, count)?.get(i)?;
                let x = if scaled {
                    dequantize(q, op.scale, op.zero_point)
                } else {
                    q as f32
                };
                written::<f32>(mem, op.output, count)?.set(i, x)?;
            }
            (from, to) => {
                let q = IntsRead::new(mem, op.input, from, count)?.get(i)?;
                IntsWritten::new(mem, op.output, to, count)?.set(i, q)?;
            }
        }
    }
    Some(())
}
