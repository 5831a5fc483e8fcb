//! Elementwise operators.

use core::marker::PhantomData;

use super::within;
use crate::arena::{Mem, Slot};
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::broadcast_rows::walk;
use crate::ops::binary::{BinaryVisitor, Pairwise};
use crate::ops::elementwise::{BinaryF32, Loop, UnaryF32, is_contiguous, operand_len, output_len};
use crate::ops::pointwise::{Pointwise, Visitor};

/// Computes a [`BinaryF32`] with the functions of `F`.
#[derive(Debug)]
pub struct Binary<F>(PhantomData<F>);

impl<F: Pairwise> Kernel for Binary<F> {
    type Op = BinaryF32<Slot, F>;

    fn distance(op: &BinaryF32<Slot, F>, index: usize) -> Option<i64> {
        let in_step = match index {
            1 => is_contiguous(&op.loops, |l| l.a),
            2 => is_contiguous(&op.loops, |l| l.b),
            _ => false,
        };
        in_step.then_some(0)
    }

    fn run(op: &BinaryF32<Slot, F>, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, output_len(&op.loops)?)?;
        let a = mem.src::<f32>(op.a, operand_len(&op.loops, |l| l.a)?)?;
        let b = mem.src::<f32>(op.b, operand_len(&op.loops, |l| l.b)?)?;
        binary(op.op, &op.loops, op.clamp, output, a, b)
    }
}

#[cfg(any(test, packing))]
impl<F: Pairwise> Candidate for Binary<F> {}

/// Computes a [`UnaryF32`] with the functions of `F`.
#[derive(Debug)]
pub struct Unary<F>(PhantomData<F>);

impl<F: Pointwise> Kernel for Unary<F> {
    type Op = UnaryF32<Slot, F>;

    fn distance(_: &UnaryF32<Slot, F>, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &UnaryF32<Slot, F>, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<f32>(op.output, op.count)?;
        let input = mem.src::<f32>(op.input, op.count)?;
        unary(op.op, output, input);
        Some(())
    }
}

#[cfg(any(test, packing))]
impl<F: Pointwise> Candidate for Unary<F> {}

/// `y = clamp(a op b)` over broadcast axes.
pub(crate) fn binary<F: Pairwise>(
    op: F,
    loops: &[Loop],
    limits: [f32; 2],
    output: Dst<'_, f32>,
    a: Src<'_, f32>,
    b: Src<'_, f32>,
) -> Option<()> {
    // One monomorphised loop an operation: the match stays outside, and so do the limits, which few steps have.
    op.visit(Broadcast::<F> {
        loops,
        output,
        a,
        b,
        set: PhantomData,
    })?;
    within(limits, output.slice(0, output_len(loops)? as usize)?);
    Some(())
}

struct Broadcast<'a, F> {
    loops: &'a [Loop],
    output: Dst<'a, f32>,
    a: Src<'a, f32>,
    b: Src<'a, f32>,
    set: PhantomData<F>,
}

impl<F: Pairwise> BinaryVisitor for Broadcast<'_, F> {
    type Output = Option<()>;

    #[inline(always)]
    fn visit(self, f: impl Fn(f32, f32) -> f32) -> Option<()> {
        walk(self.loops, self.output, self.a, self.b, |line| {
            if F::SHORT {
                line.neighbours(&f);
            } else {
                line.each(&f);
            }
        })
    }
}

/// `y = op(x)`: one monomorphised loop a function.
pub(crate) fn unary<F: Pointwise>(op: F, output: Dst<'_, f32>, input: Src<'_, f32>) {
    op.visit(Map { output, input });
}

struct Map<'a> {
    output: Dst<'a, f32>,
    input: Src<'a, f32>,
}

impl Visitor for Map<'_> {
    type Output = ();

    fn visit(self, f: impl Fn(f32) -> f32) {
        for (y, x) in self.output.cells().iter().zip(self.input.iter()) {
            y.set(f(x));
        }
    }
}
