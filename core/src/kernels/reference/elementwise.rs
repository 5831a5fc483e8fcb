//! Elementwise operators of f32: [`crate::ops::elementwise`], with the functions of [`crate::ops::pointwise`] and [`crate::ops::binary`].

use super::{meeting, read, written};
use crate::arena::{Mem, Slot};
use crate::ops::binary::{BinaryVisitor, Pairwise};
use crate::ops::elementwise::{BinaryF32, UnaryF32, operand_len, output_len};
use crate::ops::pointwise::{Pointwise, clamp};

/// `f(a, b)`.
struct At(f32, f32);

impl BinaryVisitor for At {
    type Output = f32;

    fn visit(self, f: impl Fn(f32, f32) -> f32) -> f32 {
        f(self.0, self.1)
    }
}

pub(crate) fn binary<F: Pairwise>(op: &BinaryF32<Slot, F>, mem: &Mem<'_>) -> Option<()> {
    let count = output_len(&op.loops)? as usize;
    let a = read::<f32>(mem, op.a, operand_len(&op.loops, |l| l.a)? as usize)?;
    let b = read::<f32>(mem, op.b, operand_len(&op.loops, |l| l.b)? as usize)?;
    let output = written::<f32>(mem, op.output, count)?;
    for i in 0..count {
        let [of_a, of_b] = meeting(&op.loops, i)?;
        let y = op.op.visit(At(a.get(of_a)?, b.get(of_b)?));
        output.set(i, clamp(y, op.clamp))?;
    }
    Some(())
}

pub(crate) fn unary<F: Pointwise>(op: &UnaryF32<Slot, F>, mem: &Mem<'_>) -> Option<()> {
    let count = op.count as usize;
    let (input, output) = (
        read::<f32>(mem, op.input, count)?,
        written::<f32>(mem, op.output, count)?,
    );
    (0..count).try_for_each(|i| output.set(i, op.op.apply(input.get(i)?)))
}
