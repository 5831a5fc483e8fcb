//! Strided copies.

use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::elementwise::MAX_LOOPS;
use crate::ops::movement::{CopyLoop, CopyStrided};

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
    copy(&op.loops, op.from, output, input)
}

/// Copies along `loops`, outermost first; the source's first element is `from`.
pub(crate) fn copy<T: Element>(loops: &[CopyLoop], from: u32, output: Dst<'_, T>, input: Src<'_, T>) -> Option<()> {
    let (outer, inner) = match loops {
        [outer @ .., inner] => (outer, *inner),
        [] => (
            loops,
            CopyLoop {
                count: 1,
                to: 1,
                from: 1,
            },
        ),
    };
    let mut index = [0u32; MAX_LOOPS];
    let (mut to, mut source) = (0usize, from as usize);
    loop {
        let (mut t, mut s) = (to, source);
        for _ in 0..inner.count {
            output.set(t, input.get(s)?)?;
            t = t.wrapping_add(inner.to as usize);
            s = s.wrapping_add_signed(inner.from as isize);
        }
        let mut done = true;
        for (l, n) in outer.iter().zip(index.iter_mut()).rev() {
            *n += 1;
            to = to.wrapping_add(l.to as usize);
            source = source.wrapping_add_signed(l.from as isize);
            if *n < l.count {
                done = false;
                break;
            }
            to = to.wrapping_sub((l.to as usize).wrapping_mul(l.count as usize));
            source = source.wrapping_sub((l.from as isize as usize).wrapping_mul(l.count as usize));
            *n = 0;
        }
        if done {
            return Some(());
        }
    }
}
