//! Index of the largest element, straight from the formula.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::arg_max::ArgMax;
use crate::ops::size::product;
use crate::ops::size::size;
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
    let [outer, extent, inner] = op.shape.map(|n| n as usize);
    let input = mem.src::<T>(op.input, size(&op.shape)?)?;
    let output = mem.dst::<i32>(op.output, product(op.shape[0], op.shape[2])?)?;
    for i in 0..outer {
        for k in 0..inner {
            let mut largest = (0, input.get(i * extent * inner + k)?);
            for j in 1..extent {
                let x = input.get((i * extent + j) * inner + k)?;
                if x > largest.1 {
                    largest = (j as i32, x);
                }
            }
            output.set(i * inner + k, largest.0)?;
        }
    }
    Some(())
}
