//! Sums of two int8 tensors by the linear form that the host has found to give the reference's bits (`kernels::linear_sum`): all of the kernel but a backend's
//! loop.

#[cfg(any(test, packing))]
pub mod form;

use core::marker::PhantomData;

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::ops::packed_sum::PackedSumS8;

/// int8, both operands of the output's shape.
#[derive(Debug)]
pub struct Added<L>(PhantomData<L>);

/// A backend's loop.
pub trait Loop: 'static {
    /// Writes the sums, of which there is one at least. All three have `op.count` elements; an operand may be the output. `None` is never given then.
    fn add(op: &PackedSumS8, output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>) -> Option<()>;

    /// The least instructions.
    #[cfg(any(test, packing))]
    fn bound(op: &PackedSumS8, on: &Machine) -> u64;
}

impl<L: Loop> Kernel for Added<L> {
    type Op = PackedSumS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(_: &PackedSumS8, index: usize) -> Option<i64> {
        // Elements in order, each, with some after it, read before it is written.
        (index == 1 || index == 2).then_some(0)
    }

    fn run(op: &PackedSumS8, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<i8>(op.output, op.count)?;
        let a = mem.src::<i8>(op.a, op.count)?;
        let b = mem.src::<i8>(op.b, op.count)?;
        L::add(op, output, a, b)
    }
}

#[cfg(any(test, packing))]
impl<L: Loop> Candidate for Added<L> {
    const JOB: Option<JobKind> = Some(JobKind::LinearSumS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedSumS8<P>> {
        job.linear_sum_s8()
    }

    fn bound(op: &PackedSumS8, on: &Machine) -> Option<u64> {
        Some(L::bound(op, on))
    }
}
