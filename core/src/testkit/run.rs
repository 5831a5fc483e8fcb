//! One kernel on memory of the caller's.

use core::cell::Cell;

use crate::arena::{MAX_REGIONS, Mem, Rounding};
use crate::kernels::api::kernel::Kernel;

/// Runs a kernel on one region and constants. `None` where an operand of `op` is out of bounds or misaligned; unlike load, this does not
/// check overlaps or the operator itself.
pub fn run<K: Kernel>(op: &K::Op, arena: &mut [u8], weights: &[u8]) -> Option<()> {
    K::run(op, &memory(arena, weights))
}

/// One region and constants.
pub(super) fn memory<'m>(arena: &'m mut [u8], weights: &'m [u8]) -> Mem<'m> {
    let mut regions: [&[Cell<u8>]; MAX_REGIONS] = [&[]; MAX_REGIONS];
    if let Some(first) = regions.first_mut() {
        *first = Cell::from_mut(arena).as_slice_of_cells();
    }
    Mem {
        regions,
        state: &[],
        weights,
        rounding: Rounding::default(),
        turning: Default::default(),
    }
}
