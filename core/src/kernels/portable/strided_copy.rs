//! Strided copies.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::strided_copy;
use crate::ops::movement::CopyStrided;

/// Computes a [`CopyStrided`].
#[derive(Debug)]
pub struct Copy;

impl Kernel for Copy {
    type Op = CopyStrided;

    /// Let t(p) and f(p) be the p-th element's place in destination and source. Where t grows with p and f >= t everywhere,
    /// t(p) < t(q) <= f(q) for every later q: nothing is overwritten before it is read.
    fn distance(op: &CopyStrided, index: usize) -> Option<i64> {
        let mut inner = 1u64;
        let grows = op.loops.iter().rev().all(|l| {
            let nested = l.count == 1 || u64::from(l.to) >= inner;
            inner = inner.saturating_add((u64::from(l.count) - 1).saturating_mul(u64::from(l.to)));
            nested
        });
        let ahead = op.loops.iter().all(|l| i64::from(l.from) >= i64::from(l.to));
        (index == 1 && grows && ahead).then(|| -i64::from(op.from) * i64::from(op.element))
    }

    fn run(op: &CopyStrided, mem: &Mem<'_>) -> Option<()> {
        match op.element {
            1 => strided::<u8>(op, mem),
            2 => strided::<u16>(op, mem),
            4 => strided::<u32>(op, mem),
            8 => strided::<i64>(op, mem),
            _ => None,
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Copy {}

fn strided<T: Element>(op: &CopyStrided, mem: &Mem<'_>) -> Option<()> {
    let output = mem.dst::<T>(op.output, op.output_len()?)?;
    let input = mem.src::<T>(op.input, op.input_len)?;
    strided_copy::copy(&op.loops, op.from, output, input)
}
