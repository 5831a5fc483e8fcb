//! Positions that are checked: [`crate::ops::position`].

use super::{read, written};
use crate::arena::Mem;
use crate::ops::position::Position;

pub(crate) fn any(op: &Position, mem: &Mem<'_>) -> Option<()> {
    let (output, lines) = (written::<i32>(mem, op.output, 1)?, written::<i32>(mem, op.lines, 1)?);
    let position = read::<i32>(mem, op.input, 1)?.get(0)?;
    let there = i64::from(lines.as_src().get(0)?).max(0);
    let fits = position >= 0 && i64::from(position) <= there && i64::from(position) < i64::from(op.capacity);
    output.set(0, fits.then_some(position)?)?;
    lines.set(0, position + 1)
}
