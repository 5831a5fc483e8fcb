//! Slices at computed indices: [`crate::ops::gather`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::gather::Gather;

pub(crate) fn any(op: &Gather, mem: &Mem<'_>) -> Option<()> {
    // The bytes of an element are one axis more.
    let [outer, extent, inner] = op.shape.map(|extent| extent as usize);
    let (count, bytes) = (op.count as usize, usize::from(op.element));
    let (from, to) = ([outer, extent, inner, bytes], [outer, count, inner, bytes]);
    let input = read::<u8>(mem, op.input, from.iter().product())?;
    let output = written::<u8>(mem, op.output, to.iter().product())?;
    let wanted = read::<i32>(mem, op.indices, count)?;
    for o in 0..outer {
        for i in 0..count {
            let index = i64::from(wanted.get(i)?).clamp(0, extent as i64 - 1) as usize;
            for k in 0..inner {
                for byte in 0..bytes {
                    output.set(at(to, [o, i, k, byte]), input.get(at(from, [o, index, k, byte]))?)?;
                }
            }
        }
    }
    Some(())
}
