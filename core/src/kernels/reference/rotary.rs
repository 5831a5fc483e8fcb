//! Rotary positions: [`crate::ops::rotary`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::rotary::RotaryF32;

pub(crate) fn f32(op: &RotaryF32, mem: &Mem<'_>) -> Option<()> {
    let [rows, width, positions] = [op.rows, op.width, op.positions].map(|extent| extent as usize);
    let half = width / 2;
    let (input, output) = (
        read::<f32>(mem, op.input, rows * width)?,
        written::<f32>(mem, op.output, rows * width)?,
    );
    let (cosines, sines) = (
        read::<f32>(mem, op.cosines, positions * half)?,
        read::<f32>(mem, op.sines, positions * half)?,
    );
    let position = usize::try_from(read::<i32>(mem, op.position, 1)?.get(0)?).ok()?;
    for r in 0..rows {
        for i in 0..half {
            let pair = if op.interleaved {
                [2 * i, 2 * i + 1]
            } else {
                [i, half + i]
            };
            let [first, second] = pair.map(|element| at([rows, width], [r, element]));
            let angle = at([positions, half], [position, i]);
            let (a, b) = (input.get(first)?, input.get(second)?);
            let (cosine, sine) = (cosines.get(angle)?, sines.get(angle)?);
            output.set(first, a * cosine - b * sine)?;
            output.set(second, a * sine + b * cosine)?;
        }
    }
    Some(())
}
