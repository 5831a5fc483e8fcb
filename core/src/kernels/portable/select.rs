//! A choice between two operands, straight from the formula.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::strided_copy::broadcast;
use crate::ops::choose::Choose;
use crate::ops::elementwise::{is_contiguous, operand_len, output_len};

/// Elements of any size.
#[derive(Debug)]
pub struct ChooseKernel;

impl Kernel for ChooseKernel {
    type Op = Choose;

    fn distance(op: &Choose, index: usize) -> Option<i64> {
        let in_step = match index {
            // A larger result would be written over conditions that are still to be read.
            1 => op.element == 1,
            2 => is_contiguous(&op.loops, |l| l.a),
            3 => is_contiguous(&op.loops, |l| l.b),
            _ => false,
        };
        in_step.then_some(0)
    }

    fn run(op: &Choose, mem: &Mem<'_>) -> Option<()> {
        match op.element {
            1 => walk::<u8>(op, mem),
            2 => walk::<u16>(op, mem),
            4 => walk::<u32>(op, mem),
            8 => walk::<i64>(op, mem),
            _ => None,
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for ChooseKernel {}

fn walk<T: Element>(op: &Choose, mem: &Mem<'_>) -> Option<()> {
    let count = output_len(&op.loops)?;
    let output = mem.dst::<T>(op.output, count)?;
    let condition = mem.src::<u8>(op.condition, count)?;
    let a = mem.src::<T>(op.a, operand_len(&op.loops, |l| l.a)?)?;
    let b = mem.src::<T>(op.b, operand_len(&op.loops, |l| l.b)?)?;
    // The results are walked in order, and so are the conditions.
    let at = core::cell::Cell::new(0usize);
    broadcast(&op.loops, output, a, b, |a, b| {
        let index = at.replace(at.get().wrapping_add(1));
        if condition.get(index).is_some_and(|c| c != 0) {
            a
        } else {
            b
        }
    })
}
