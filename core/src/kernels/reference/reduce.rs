//! Mean, sum, maximum and minimum over axes: [`crate::ops::reduce`].

use super::{IntsRead, IntsWritten, at, indices, len, range, read, within, written};
use crate::arena::Mem;
use crate::ops::reduce::{ReduceF32, ReduceInt, Reduction};

/// Calls `element` with the index of each element that output `i` is made of.
fn under(shape: [u32; 5], i: usize, mut element: impl FnMut(usize) -> Option<()>) -> Option<()> {
    let shape = shape.map(|extent| extent as usize);
    let [a, r, b, s, c] = shape;
    let [i, j, k] = indices([a, b, c], i);
    for p in 0..r {
        for q in 0..s {
            element(at(shape, [i, p, j, q, k]))?;
        }
    }
    Some(())
}

/// Elements of the input and of the output.
fn lens(shape: [u32; 5]) -> [usize; 2] {
    let [a, r, b, s, c] = shape.map(|extent| extent as usize);
    [len(&[a, r, b, s, c]), len(&[a, b, c])]
}

pub(crate) fn f32(op: &ReduceF32, mem: &Mem<'_>) -> Option<()> {
    let [from, to] = lens(op.shape);
    let (input, output) = (read::<f32>(mem, op.input, from)?, written::<f32>(mem, op.output, to)?);
    for i in 0..to {
        let (mut sum, mut count, mut extreme) = (0.0, 0, None);
        under(op.shape, i, |element| {
            let x = input.get(element)?;
            (sum, count) = (sum + x, count + 1);
            extreme = Some(match (extreme, op.kind) {
                (Some(known), Reduction::Max) if !(x > known || x.is_nan()) => known,
                (Some(known), Reduction::Min) if !(x < known || x.is_nan()) => known,
                _ => x,
            });
            Some(())
        })?;
        output.set(
            i,
            match op.kind {
                Reduction::Mean => sum / count as f32,
                Reduction::Sum => sum,
                Reduction::Max | Reduction::Min => extreme?,
            },
        )?;
    }
    Some(())
}

pub(crate) fn quantised(op: &ReduceInt, mem: &Mem<'_>) -> Option<()> {
    let [from, to] = lens(op.shape);
    let input = IntsRead::new(mem, op.input, op.dtype, from)?;
    let output = IntsWritten::new(mem, op.output, op.dtype, to)?;
    for i in 0..to {
        let (mut sum, mut largest, mut least) = (0_i32, i32::MIN, i32::MAX);
        under(op.shape, i, |element| {
            let x = input.get(element)?;
            sum = sum.wrapping_add(x.wrapping_sub(op.zero_in));
            (largest, least) = (largest.max(x), least.min(x));
            Some(())
        })?;
        let stored = match op.kind {
            // The mean's divisor is part of the multiplier.
            Reduction::Mean | Reduction::Sum => op.multiplier.apply(sum).wrapping_add(op.zero_out),
            Reduction::Max => largest,
            Reduction::Min => least,
        };
        output.set(i, within(stored, range(op.dtype)))?;
    }
    Some(())
}
