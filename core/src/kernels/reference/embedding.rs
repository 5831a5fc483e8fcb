//! Rows of a table: [`crate::ops::embedding`].

use super::{at, constant, read, written};
use crate::arena::Mem;
use crate::ops::embedding::{Embedding, EmbeddingW8};

pub(crate) fn any(op: &Embedding, mem: &Mem<'_>) -> Option<()> {
    // The bytes of an element are one axis more.
    let [count, rows, width] = [op.count, op.rows, op.width].map(|extent| extent as usize);
    let bytes = usize::from(op.element);
    let (from, to) = ([rows, width, bytes], [count, width, bytes]);
    let table = read::<u8>(mem, op.table, from.iter().product())?;
    let output = written::<u8>(mem, op.output, to.iter().product())?;
    let indices = read::<i32>(mem, op.indices, count)?;
    for i in 0..count {
        let index = usize::try_from(indices.get(i)?).ok()?;
        for k in 0..width {
            for byte in 0..bytes {
                output.set(at(to, [i, k, byte]), table.get(at(from, [index, k, byte]))?)?;
            }
        }
    }
    Some(())
}

pub(crate) fn w8(op: &EmbeddingW8, mem: &Mem<'_>) -> Option<()> {
    let [count, rows, width, share] = [op.count, op.rows, op.width, op.share].map(|extent| extent as usize);
    let groups = width.div_ceil(share);
    let table = constant::<i8>(mem, op.table, rows * width)?;
    let scales = constant::<f32>(mem, op.scales, rows * groups)?;
    let output = written::<f32>(mem, op.output, count * width)?;
    let indices = read::<i32>(mem, op.indices, count)?;
    for i in 0..count {
        let index = usize::try_from(indices.get(i)?).ok()?;
        for k in 0..width {
            let scale = scales.get(at([rows, groups], [index, k / share]))?;
            let number = table.get(at([rows, width], [index, k]))?;
            output.set(at([count, width], [i, k]), f32::from(*number) * scale)?;
        }
    }
    Some(())
}
