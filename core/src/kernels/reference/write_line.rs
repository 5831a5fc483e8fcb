//! A line of a state: [`crate::ops::write_line`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::write_line::WriteLine;

pub(crate) fn any(op: &WriteLine, mem: &Mem<'_>) -> Option<()> {
    // The bytes of an element are one axis more.
    let [outer, capacity, inner] = op.shape.map(|extent| extent as usize);
    let bytes = usize::from(op.element);
    let (to, from) = ([outer, capacity, inner, bytes], [outer, inner, bytes]);
    let state = written::<u8>(mem, op.state, to.iter().product())?;
    let line = read::<u8>(mem, op.line, from.iter().product())?;
    let position = usize::try_from(read::<i32>(mem, op.position, 1)?.get(0)?).ok()?;
    for o in 0..outer {
        for i in 0..inner {
            for byte in 0..bytes {
                state.set(at(to, [o, position, i, byte]), line.get(at(from, [o, i, byte]))?)?;
            }
        }
    }
    Some(())
}
