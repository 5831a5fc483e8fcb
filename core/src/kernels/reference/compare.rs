//! Comparisons and logical operators: [`crate::ops::compare`].

use super::{meeting, read, written};
use crate::arena::{Mem, Slot};
use crate::cells::Src;
use crate::ops::compare::{Compare, Comparison};
use crate::ops::elementwise::{operand_len, output_len};
use crate::tensor::DType;

pub(crate) fn any(op: &Compare, mem: &Mem<'_>) -> Option<()> {
    let count = output_len(&op.loops)? as usize;
    let [a_len, b_len] = [operand_len(&op.loops, |l| l.a)?, operand_len(&op.loops, |l| l.b)?].map(|n| n as usize);
    let output = written::<u8>(mem, op.output, count)?;
    for i in 0..count {
        let [a, b] = meeting(&op.loops, i)?;
        let holds = match op.dtype {
            DType::F32 => holds(
                op.op,
                of::<f32>(mem, op.a, a_len)?.get(a)?,
                of::<f32>(mem, op.b, b_len)?.get(b)?,
            ),
            DType::I32 => holds(
                op.op,
                of::<i32>(mem, op.a, a_len)?.get(a)?,
                of::<i32>(mem, op.b, b_len)?.get(b)?,
            ),
            DType::I8 => {
                let x = i32::from(of::<i8>(mem, op.a, a_len)?.get(a)?);
                let y = i32::from(of::<i8>(mem, op.b, b_len)?.get(b)?);
                let ([of_a, of_b], [zero_a, zero_b]) = (op.multipliers, op.zero);
                let shifted = |x: i32, zero: i32| x.wrapping_sub(zero).wrapping_shl(op.shift.into());
                holds(op.op, of_a.apply(shifted(x, zero_a)), of_b.apply(shifted(y, zero_b)))
            }
            _ => {
                let x = of::<u8>(mem, op.a, a_len)?.get(a)? != 0;
                let y = of::<u8>(mem, op.b, b_len)?.get(b)? != 0;
                match op.op {
                    Comparison::And => x && y,
                    Comparison::Or => x || y,
                    other => holds(other, x, y),
                }
            }
        };
        output.set(i, u8::from(holds))?;
    }
    Some(())
}

fn of<'a, T: crate::cells::Element>(mem: &Mem<'a>, slot: Slot, count: usize) -> Option<Src<'a, T>> {
    read(mem, slot, count)
}

fn holds<T: PartialOrd>(op: Comparison, a: T, b: T) -> bool {
    match op {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Less => a < b,
        Comparison::LessOrEqual => a <= b,
        Comparison::And | Comparison::Or => false,
    }
}
