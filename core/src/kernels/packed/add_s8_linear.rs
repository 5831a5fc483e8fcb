//! Sums of two int8 tensors by the linear form that the host has found to give the reference's bits (`kernels::linear_sum`).
//!
//! A factor has 36 bits with its byte; in halves, `factor = high * 2^8 + low`, its product's floor is `high * x + ((low * x) >> 8)`: two small products
//! where the two-rounding form of [`super::add_s8`] takes three and both roundings.

use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Machine;
use crate::kernels::primitives::add_s8_linear::{Added, Loop};
#[cfg(target_arch = "x86_64")]
use crate::kernels::x86;
use crate::ops::packed_sum::PackedSumS8;

/// int8, both operands of the output's shape.
pub type S8 = Added<Elements>;

/// One element after the other.
#[derive(Debug)]
pub struct Elements;

impl Loop for Elements {
    fn add(op: &PackedSumS8, output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>) -> Option<()> {
        let [fa, fb] = op.factors.map(Factor::new);
        #[cfg(target_arch = "x86_64")]
        let (output, a, b) = {
            // SAFETY: all three have `op.count` elements, and what the output overlaps of an operand was read before (`Added::distance`).
            let done = unsafe { x86::add_s8_linear::add(op, a.as_ptr(), b.as_ptr(), output.as_mut_ptr()) };
            let left = a.len().checked_sub(done)?;
            (output.tail(done)?, a.slice(done, left)?, b.slice(done, left)?)
        };
        for ((y, a), b) in output.cells().iter().zip(a.iter()).zip(b.iter()) {
            let sum = fa.times(a, op.offset);
            y.set((fb.times(b, sum) >> PackedSumS8::FRACTION).clamp(-128, 127) as i8);
        }
        Some(())
    }

    #[cfg(any(test, packing))]
    fn bound(op: &PackedSumS8, on: &Machine) -> u64 {
        let element = match super::Core::of(on.target) {
            super::Core::CortexM0 => 15,
            super::Core::CortexM3 => 10,
            super::Core::Riscv32 => 14,
        };
        u64::from(op.count) * element
    }
}

#[derive(Clone, Copy)]
struct Factor {
    high: i32,
    low: i32,
}

impl Factor {
    fn new(factor: i32) -> Self {
        Self {
            high: factor >> 8,
            low: factor & 0xff,
        }
    }

    /// `sum + floor(factor * x / 2^8)`
    #[inline(always)]
    fn times(self, x: i8, sum: i32) -> i32 {
        let x = i32::from(x);
        sum.wrapping_add(self.high.wrapping_mul(x))
            .wrapping_add((self.low * x) >> 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_product_in_halves_is_the_floor(factor: i32, x: i8, sum: i32) {
            let exact = (i64::from(factor) * i64::from(x)) >> 8;
            prop_assert_eq!(Factor::new(factor).times(x, sum), sum.wrapping_add(exact as i32));
        }
    }
}
