//! Positions that are checked.

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::position::{OutOfRange, Position, index_at};

/// int32.
#[derive(Debug)]
pub struct PositionKernel;

impl Kernel for PositionKernel {
    type Op = Position;

    const INDEXED: bool = true;

    fn out_of_range(op: &Position, mem: &Mem<'_>) -> Option<OutOfRange> {
        let lines = mem.src::<i32>(op.lines, 1)?.get(0)?;
        index_at(mem, op.input, op.allowed(lines))?.err()
    }

    /// The output is written when all is read.
    fn distance(_: &Position, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &Position, mem: &Mem<'_>) -> Option<()> {
        let lines = mem.dst::<i32>(op.lines, 1)?;
        let position = index_at(mem, op.input, op.allowed(lines.as_src().get(0)?))?.ok()? as i32;
        mem.dst::<i32>(op.output, 1)?.set(0, position)?;
        lines.set(0, position.saturating_add(1))
    }
}

#[cfg(any(test, packing))]
impl Candidate for PositionKernel {}
