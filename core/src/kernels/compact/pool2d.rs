//! Pooling of int8: the scalar loop for one element type alone.

use crate::arena::Mem;
use crate::kernels::kernel::Kernel;
use crate::kernels::scalar::pool2d as scalar;
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
