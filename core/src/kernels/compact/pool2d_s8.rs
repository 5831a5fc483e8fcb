//! Pooling of int8: the scalar loop for one element type alone.

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::pool2d as scalar;
use crate::ops::pool2d::PoolInt;
use crate::tensor::DType;

/// Average of int8.
#[derive(Debug)]
pub struct Average;

/// Maximum of int8.
#[derive(Debug)]
pub struct Max;

impl Kernel for Average {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        op.dtype == DType::I8 && op.sums_fit()
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        scalar::AvgInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        scalar::average::<i8>(op, mem)
    }
}

impl Kernel for Max {
    type Op = PoolInt;

    fn supports(op: &PoolInt) -> bool {
        op.dtype == DType::I8
    }

    fn distance(op: &PoolInt, index: usize) -> Option<i64> {
        scalar::MaxInt::distance(op, index)
    }

    fn run(op: &PoolInt, mem: &Mem<'_>) -> Option<()> {
        scalar::maximum::<i8>(op, mem)
    }
}

#[cfg(any(test, packing))]
impl Candidate for Average {
    const JOB: Option<JobKind> = Some(JobKind::AvgPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.avg_pool_int()
    }
}

#[cfg(any(test, packing))]
impl Candidate for Max {
    const JOB: Option<JobKind> = Some(JobKind::MaxPoolInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PoolInt<P>> {
        job.max_pool_int()
    }
}
