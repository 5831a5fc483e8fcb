//! A choice between two operands: [`crate::ops::choose`].

use super::{meeting, read, written};
use crate::arena::Mem;
use crate::ops::choose::Choose;
use crate::ops::elementwise::{operand_len, output_len};

pub(crate) fn any(op: &Choose, mem: &Mem<'_>) -> Option<()> {
    let (count, bytes) = (output_len(&op.loops)? as usize, usize::from(op.element));
    let output = written::<u8>(mem, op.output, count * bytes)?;
    let condition = read::<u8>(mem, op.condition, count)?;
    let a = read::<u8>(mem, op.a, operand_len(&op.loops, |l| l.a)? as usize * bytes)?;
    let b = read::<u8>(mem, op.b, operand_len(&op.loops, |l| l.b)? as usize * bytes)?;
    for i in 0..count {
        let [of_a, of_b] = meeting(&op.loops, i)?;
        for byte in 0..bytes {
            let chosen = if condition.get(i)? != 0 {
                a.get(of_a * bytes + byte)?
            } else {
                b.get(of_b * bytes + byte)?
            };
            output.set(i * bytes + byte, chosen)?;
        }
    }
    Some(())
}
