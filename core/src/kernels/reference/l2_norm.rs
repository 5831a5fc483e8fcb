//! Rows divided by their length: [`crate::ops::l2_norm`].

use super::{at, len, read, written};
use crate::arena::Mem;
use crate::ops::l2_norm::L2NormS8;
use crate::quant::{Multiplier, inverse_sqrt};

pub(crate) fn s8(op: &L2NormS8, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.rows, op.channels].map(|extent| extent as usize);
    let [rows, channels] = shape;
    let input = read::<i8>(mem, op.input, len(&shape))?;
    let output = written::<i8>(mem, op.output, len(&shape))?;
    let centred = |r: usize, c: usize| Some(i32::from(input.get(at(shape, [r, c]))?) - op.zero);
    for r in 0..rows {
        let mut squares = 0_i32;
        for c in 0..channels {
            let x = centred(r, c)?;
            squares = squares.wrapping_add(x * x);
        }
        // The result's scale is 2^-7.
        let (mantissa, shift) = inverse_sqrt(squares);
        let factor = Multiplier {
            mantissa,
            shift: (shift + 7) as i8,
        };
        for c in 0..channels {
            output.set(at(shape, [r, c]), factor.apply(centred(r, c)?).clamp(-128, 127) as i8)?;
        }
    }
    Some(())
}
