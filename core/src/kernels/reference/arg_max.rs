//! Index of the largest element: [`crate::ops::arg_max`].

use super::{at, len, read, written};
use crate::arena::Mem;
use crate::cells::Element;
use crate::ops::arg_max::ArgMax;
use crate::tensor::DType;

pub(crate) fn any(op: &ArgMax, mem: &Mem<'_>) -> Option<()> {
    match op.dtype {
        DType::F32 => search::<f32>(op, mem),
        _ => search::<i8>(op, mem),
    }
}

fn search<T: Element + PartialOrd>(op: &ArgMax, mem: &Mem<'_>) -> Option<()> {
    let shape = op.shape.map(|extent| extent as usize);
    let [outer, extent, inner] = shape;
    let input = read::<T>(mem, op.input, len(&shape))?;
    let output = written::<i32>(mem, op.output, outer * inner)?;
    for o in 0..outer {
        for i in 0..inner {
            let of = |index: usize| input.get(at(shape, [o, index, i]));
            let mut best = 0;
            for index in 1..extent {
                if of(index)? > of(best)? {
                    best = index;
                }
            }
            output.set(at([outer, inner], [o, i]), best as i32)?;
        }
    }
    Some(())
}
