//! A line into a state.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::position::{OutOfRange, index_at};
use crate::ops::size::size;
use crate::ops::write_line::WriteLine;

/// Elements of any size.
#[derive(Debug)]
pub struct WriteLineKernel;

impl Kernel for WriteLineKernel {
    type Op = WriteLine;

    const INDEXED: bool = true;

    fn out_of_range(op: &WriteLine, mem: &Mem<'_>) -> Option<OutOfRange> {
        let [_, capacity, _] = op.shape;
        index_at(mem, op.position, capacity)?.err()
    }

    fn run(op: &WriteLine, mem: &Mem<'_>) -> Option<()> {
        match op.element {
            1 => write::<u8>(op, mem),
            2 => write::<i16>(op, mem),
            4 => write::<u32>(op, mem),
            8 => write::<i64>(op, mem),
            _ => None,
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for WriteLineKernel {}

fn write<T: Element>(op: &WriteLine, mem: &Mem<'_>) -> Option<()> {
    let [outer, capacity, inner] = op.shape;
    let position = index_at(mem, op.position, capacity)?.ok()?;
    let state = mem.dst::<T>(op.state, size(&op.shape)?)?;
    let lines = mem.src::<T>(op.line, size(&[outer, inner])?)?;
    let (capacity, inner) = (capacity as usize, inner as usize);
    for o in 0..outer as usize {
        let to = o.wrapping_mul(capacity).wrapping_add(position).wrapping_mul(inner);
        let line = lines.slice(o.wrapping_mul(inner), inner)?;
        for (y, x) in state.slice(to, inner)?.cells().iter().zip(line.iter()) {
            y.set(x);
        }
    }
    Some(())
}
