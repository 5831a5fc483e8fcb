//! Operations of two integer operands that fewer networks use: [`crate::ops::special_int`].

use super::{IntsRead, IntsWritten, meeting, within};
use crate::arena::Mem;
use crate::ops::elementwise::{operand_len, output_len};
use crate::ops::special_int::{SpecialInt, SpecialIntOp};
use crate::quant::quotient;
use crate::tensor::DType;

pub(crate) fn special(op: &SpecialInt, mem: &Mem<'_>) -> Option<()> {
    let count = output_len(&op.loops)? as usize;
    let a = IntsRead::new(mem, op.a, op.dtype, operand_len(&op.loops, |l| l.a)? as usize)?;
    let b = IntsRead::new(mem, op.b, op.dtype, operand_len(&op.loops, |l| l.b)? as usize)?;
    let output = IntsWritten::new(mem, op.output, op.dtype, count)?;
    for i in 0..count {
        let [of_a, of_b] = meeting(&op.loops, i)?;
        output.set(i, within(element(op, a.get(of_a)?, b.get(of_b)?), op.clamp))?;
    }
    Some(())
}

fn element(op: &SpecialInt, a: i32, b: i32) -> i32 {
    let ([of_a, of_b, of_result], [zero_a, zero_b, zero]) = (op.multipliers, op.zero);
    let (x, y) = (a.wrapping_sub(zero_a), b.wrapping_sub(zero_b));
    match op.op {
        SpecialIntOp::SquaredDifference if op.dtype == DType::I32 => {
            let difference = a.wrapping_sub(b);
            difference.wrapping_mul(difference)
        }
        SpecialIntOp::SquaredDifference => {
            let scaled_a = of_a.apply(x.wrapping_shl(op.shift.into()));
            let scaled_b = of_b.apply(y.wrapping_shl(op.shift.into()));
            let difference = scaled_a.wrapping_sub(scaled_b);
            of_result.apply(difference.wrapping_mul(difference)).wrapping_add(zero)
        }
        SpecialIntOp::Div => quotient(x, y, of_result).wrapping_add(zero),
        SpecialIntOp::FloorDiv => floor(a, b) as i32,
        SpecialIntOp::FloorMod if b == 0 => 0,
        SpecialIntOp::FloorMod => (i64::from(a) - i64::from(b) * floor(a, b)) as i32,
    }
}

/// The largest integer <= a / b; 0 where b is 0.
fn floor(a: i32, b: i32) -> i64 {
    let (a, b) = (i64::from(a), i64::from(b));
    let towards_zero = a.checked_div(b).unwrap_or(0);
    let rest = a - towards_zero * b;
    if b != 0 && rest != 0 && (rest < 0) != (b < 0) {
        towards_zero - 1
    } else {
        towards_zero
    }
}
