//! Slices at computed indices, straight from the formula.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::gather::Gather;
use crate::ops::size::size;

/// Elements of any size.
#[derive(Debug)]
pub struct GatherKernel;

impl Kernel for GatherKernel {
    type Op = Gather;

    fn run(op: &Gather, mem: &Mem<'_>) -> Option<()> {
        match op.element {
            1 => gather::<u8>(op, mem),
            2 => gather::<u16>(op, mem),
            4 => gather::<u32>(op, mem),
            8 => gather::<i64>(op, mem),
            _ => None,
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for GatherKernel {}

fn gather<T: Element>(op: &Gather, mem: &Mem<'_>) -> Option<()> {
    let [outer, extent, inner] = op.shape;
    let output = mem.dst::<T>(op.output, size(&[outer, op.count, inner])?)?;
    let input = mem.src::<T>(op.input, size(&op.shape)?)?;
    let indices = mem.src::<i32>(op.indices, op.count)?;
    let (extent, inner) = (extent as usize, inner as usize);
    let mut at = 0usize;
    for o in 0..outer as usize {
        for index in indices.iter() {
            // Nothing can be refused at run time: what is outside is the nearest slice inside.
            let index = (index.max(0) as usize).min(extent.saturating_sub(1));
            let from = o.wrapping_mul(extent).wrapping_add(index).wrapping_mul(inner);
            let row = input.slice(from, inner)?;
            for (y, x) in output.slice(at, inner)?.cells().iter().zip(row.iter()) {
                y.set(x);
            }
            at = at.wrapping_add(inner);
        }
    }
    Some(())
}
