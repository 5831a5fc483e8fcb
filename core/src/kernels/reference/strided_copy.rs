//! Strided copies: [`crate::ops::movement`].

use super::{len, read, written};
use crate::arena::Mem;
use crate::ops::elementwise::MAX_LOOPS;
use crate::ops::movement::CopyStrided;

pub(crate) fn any(op: &CopyStrided, mem: &Mem<'_>) -> Option<()> {
    let bytes = usize::from(op.element);
    let input = read::<u8>(mem, op.input, op.input_len as usize * bytes)?;
    let output = written::<u8>(mem, op.output, op.output_len()? as usize * bytes)?;
    // Axes that there are not have one index.
    let mut counts = [1; MAX_LOOPS];
    for (count, axis) in counts.iter_mut().zip(&op.loops) {
        *count = axis.count as usize;
    }
    for i in 0..len(&counts) {
        let (mut from, mut to) = (i64::from(op.from), 0_i64);
        for (index, axis) in super::indices(counts, i).into_iter().zip(&op.loops) {
            from += index as i64 * i64::from(axis.from);
            to += index as i64 * i64::from(axis.to);
        }
        let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
        for byte in 0..bytes {
            output.set(to * bytes + byte, input.get(from * bytes + byte)?)?;
        }
    }
    Some(())
}
