//! Index of the largest element, straight from the formula.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::resize::places;
use crate::ops::arg_max::ArgMax;
use crate::ops::size::{product, size};
use crate::tensor::DType;

/// f32 and int8.
#[derive(Debug)]
pub struct ArgMaxKernel;

impl Kernel for ArgMaxKernel {
    type Op = ArgMax;

    fn run(op: &ArgMax, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::F32 => search::<f32>(op, mem),
            _ => search::<i8>(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for ArgMaxKernel {}

fn search<T: Element + PartialOrd>(op: &ArgMax, mem: &Mem<'_>) -> Option<()> {
    let input = mem.src::<T>(op.input, size(&op.shape)?)?;
    let output = mem.dst::<i32>(op.output, product(op.shape[0], op.shape[2])?)?;
    places(input, output, op.shape)
}
