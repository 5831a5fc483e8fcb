//! Rows divided by their length.

use super::row;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::l2_norm::L2NormS8;
use crate::quant::{Multiplier, inverse_sqrt};

/// Bits of the result's fraction: its scale is 1/128.
const FRACTION: i32 = 7;

/// int8.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = L2NormS8;

    /// A row is added up before any of it is written.
    fn distance(_: &L2NormS8, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &L2NormS8, mem: &Mem<'_>) -> Option<()> {
        let len = op.rows.checked_mul(op.channels)?;
        let channels = op.channels as usize;
        let input = mem.src::<i8>(op.input, len)?;
        let output = mem.dst::<i8>(op.output, len)?;
        let centred = |x: i8| i32::from(x).wrapping_sub(op.zero);
        for r in 0..op.rows as usize {
            let x = row(input, r, channels)?;
            let squares = x
                .iter()
                .fold(0_i32, |sum, x| sum.wrapping_add(centred(x).wrapping_mul(centred(x))));
            let (mantissa, shift) = inverse_sqrt(squares);
            let factor = Multiplier {
                mantissa,
                shift: (shift + FRACTION) as i8,
            };
            let y = output.slice(r * channels, channels)?;
            for (y, x) in y.cells().iter().zip(x.iter()) {
                y.set(factor.apply(centred(x)).clamp(-128, 127) as i8);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {}
