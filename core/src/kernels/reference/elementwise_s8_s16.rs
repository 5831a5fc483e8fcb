//! Elementwise operators of two integer operands: [`crate::ops::elementwise_int`].

use super::{IntsRead, IntsWritten, meeting, within};
use crate::arena::Mem;
use crate::ops::elementwise::{operand_len, output_len};
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::tensor::DType;

pub(crate) fn binary(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
    let count = output_len(&op.loops)? as usize;
    let a = IntsRead::new(mem, op.a, op.dtype, operand_len(&op.loops, |l| l.a)? as usize)?;
    let b = IntsRead::new(mem, op.b, op.dtype, operand_len(&op.loops, |l| l.b)? as usize)?;
    let output = IntsWritten::new(mem, op.output, op.dtype, count)?;
    for i in 0..count {
        let [of_a, of_b] = meeting(&op.loops, i)?;
        let (a, b) = (a.get(of_a)?, b.get(of_b)?);
        let y = if op.dtype == DType::I32 {
            plain(op.op, a, b)?
        } else {
            quantised(op, a, b)?
        };
        output.set(i, within(y, op.clamp))?;
    }
    Some(())
}

fn plain(op: IntOp, a: i32, b: i32) -> Option<i32> {
    Some(match op {
        IntOp::Add => a.wrapping_add(b),
        IntOp::Sub => a.wrapping_sub(b),
        IntOp::Mul => a.wrapping_mul(b),
        IntOp::Minimum => a.min(b),
        IntOp::Maximum => a.max(b),
        IntOp::Div if b == 0 => 0,
        IntOp::Div => a.wrapping_div(b),
        IntOp::Prelu => return None,
    })
}

fn quantised(op: &BinaryInt, a: i32, b: i32) -> Option<i32> {
    let ([of_a, of_b, of_result], [zero_a, zero_b, zero]) = (op.multipliers, op.zero);
    let (x, y) = (a.wrapping_sub(zero_a), b.wrapping_sub(zero_b));
    let scaled_a = of_a.apply(x.wrapping_shl(op.shift.into()));
    let scaled_b = of_b.apply(y.wrapping_shl(op.shift.into()));
    let product = x.wrapping_mul(y);
    let result = match op.op {
        IntOp::Add => of_result.apply(scaled_a.wrapping_add(scaled_b)),
        IntOp::Sub => of_result.apply(scaled_a.wrapping_sub(scaled_b)),
        IntOp::Mul => of_result.apply(product),
        IntOp::Prelu if x >= 0 => of_a.apply(x),
        IntOp::Prelu => of_result.apply(product),
        IntOp::Minimum => return Some(a.min(b)),
        IntOp::Maximum => return Some(a.max(b)),
        IntOp::Div => return None,
    };
    Some(result.wrapping_add(zero))
}
