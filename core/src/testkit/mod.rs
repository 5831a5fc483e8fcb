//! For tests and measurements on hosts and boards (feature `testkit`): one kernel on memory of the caller's, without a blob, every kernel
//! against the scalar one on generated cases ([`compare`](compare())), and every kernel on such cases with bits changed (with `pack`: `mutate`).

mod cases;
mod compare;
mod memory;
#[cfg(feature = "pack")]
mod mutate;

#[cfg(feature = "pack")]
pub use compare::{Packed, mutate, packed};
pub use compare::{Verdict, compare};
pub use memory::{Difference, Workspace};
#[cfg(feature = "pack")]
pub use mutate::{Attack, Mutations};

use core::cell::Cell;

use crate::arena::{MAX_REGIONS, Mem};
use crate::kernels::kernel::Kernel;

/// Runs a kernel on one region and constants. `None` where an operand of `op` is out of bounds or misaligned; unlike load, this does not
/// check overlaps or the operator itself.
pub fn run<K: Kernel>(op: &K::Op, arena: &mut [u8], weights: &[u8]) -> Option<()> {
    let mut regions: [&[Cell<u8>]; MAX_REGIONS] = [&[]; MAX_REGIONS];
    if let Some(first) = regions.first_mut() {
        *first = Cell::from_mut(arena).as_slice_of_cells();
    }
    let mem = Mem {
        regions,
        state: &[],
        weights,
    };
    K::run(op, &mem)
}
