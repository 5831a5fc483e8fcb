//! Sums of two int8 tensors by the linear form that the host has found to give the reference's bits (`kernels::linear_sum`).
//!
//! A factor is `high * 2^8 + low`, and the floor of its product over 2^8 `high * x + ((low * x) >> 8)`, of which nothing exceeds 32 bits.

use super::args::AddS8LinearArgs;
use super::loops::sum;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Machine;
use crate::kernels::primitives::add_s8_linear::{Added, Loop};
use crate::ops::packed_sum::PackedSumS8;

/// int8, both operands of the output's shape.
pub type S8 = Added<Halves>;

/// Products of a factor's halves.
#[derive(Debug)]
pub struct Halves;

impl Loop for Halves {
    fn add(op: &PackedSumS8, output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>) -> Option<()> {
        let args = AddS8LinearArgs {
            a: a.as_ptr(),
            b: b.as_ptr(),
            out: output.as_mut_ptr(),
            count: op.count as usize,
            high: op.factors.map(|factor| factor >> 8),
            low: op.factors.map(|factor| factor & 0xff),
            offset: op.offset,
        };
        // SAFETY: `a`, `b` and `output` were taken with `op.count` elements each, of which there is one at least (trait docs).
        unsafe { sum(&args) };
        Some(())
    }

    /// 23 instructions for as many words as eight registers hold.
    #[cfg(any(test, packing))]
    fn bound(op: &PackedSumS8, on: &Machine) -> u64 {
        let at_once = (on.vector_bits / 4).max(1);
        u64::from(op.count.div_ceil(at_once)) * 23
    }
}
