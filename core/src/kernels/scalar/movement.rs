//! Strided copies.

use crate::kernels::cells::{Dst, Element, Src};
use crate::ops::elementwise::MAX_LOOPS;
use crate::ops::movement::CopyLoop;

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
