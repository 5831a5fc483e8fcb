//! The linear form of an int8 sum: [`crate::ops::packed_sum`].

use super::{read, written};
use crate::arena::Mem;
use crate::ops::packed_sum::PackedSumS8;

pub(crate) fn s8(op: &PackedSumS8, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (a, b) = (read::<i8>(mem, op.a, count)?, read::<i8>(mem, op.b, count)?);
    let output = written::<i8>(mem, op.output, count)?;
    let [factor_a, factor_b] = op.factors.map(i64::from);
    for i in 0..count {
        let of_a = (factor_a * i64::from(a.get(i)?)).div_euclid(1 << 8);
        let of_b = (factor_b * i64::from(b.get(i)?)).div_euclid(1 << 8);
        let sum = (of_a + of_b + i64::from(op.offset)).div_euclid(1 << 20);
        output.set(i, sum.clamp(-128, 127) as i8)?;
    }
    Some(())
}
