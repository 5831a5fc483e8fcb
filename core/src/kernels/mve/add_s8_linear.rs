//! Sums of two int8 tensors by the linear form that the host has found to give the reference's bits (`kernels::linear_sum`): 30 instructions for 16
//! elements, 10 for each four that are left.
//!
//! Of `x * 2^23` and a factor, the upper word of the doubled product is the product of `x` and the factor over 2^8, rounded down. VQDMLASH adds a number to
//! it, here the offset, VQDMLAH adds it to a vector.

use super::args::AddS8LinearArgs;
use super::loops::linear_sum;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Machine;
use crate::kernels::primitives::add_s8_linear::{Added, Loop};
use crate::ops::packed_sum::PackedSumS8;

/// int8, both operands of the output's shape.
pub type S8 = Added<Doubled>;

/// Upper words of doubled products.
#[derive(Debug)]
pub struct Doubled;

impl Loop for Doubled {
    fn add(op: &PackedSumS8, output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>) -> Option<()> {
        let args = AddS8LinearArgs {
            a: a.as_ptr(),
            b: b.as_ptr(),
            out: output.as_mut_ptr(),
            count: op.count,
            factors: op.factors,
            offset: op.offset,
        };
        // SAFETY: `a`, `b` and `output` were taken with `op.count` elements each.
        unsafe { linear_sum(&args) };
        Some(())
    }

    /// The loops'.
    #[cfg(any(test, packing))]
    fn bound(op: &PackedSumS8, _: &Machine) -> u64 {
        u64::from(op.count / 16) * 30 + u64::from((op.count % 16).div_ceil(4)) * 10
    }
}
