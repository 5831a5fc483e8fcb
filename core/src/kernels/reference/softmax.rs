//! Softmax and its logarithm over rows: [`crate::ops::softmax`].

use super::{at, constant, len, read, written};
use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
use crate::ops::softmax::{SoftmaxF32, SoftmaxInt, SoftmaxKind};
use crate::quant::softmax_by_table;

pub(crate) fn f32(op: &SoftmaxF32, mem: &Mem<'_>) -> Option<()> {
    let shape = [op.rows, op.classes].map(|extent| extent as usize);
    let [rows, classes] = shape;
    let (input, output) = (
        read::<f32>(mem, op.input, len(&shape))?,
        written::<f32>(mem, op.output, len(&shape))?,
    );
    for r in 0..rows {
        let x = |c: usize| input.get(at(shape, [r, c]));
        let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0);
        for c in 0..classes {
            max = libm::fmaxf(max, x(c)?);
        }
        for c in 0..classes {
            sum += libm::expf(op.beta * (x(c)? - max));
        }
        for c in 0..classes {
            let argument = op.beta * (x(c)? - max);
            let y = if op.log {
                argument - libm::logf(sum)
            } else {
                libm::expf(argument) / sum
            };
            output.set(at(shape, [r, c]), y)?;
        }
    }
    Some(())
}

/// The arithmetic of a row is [`crate::quant`]'s.
pub(crate) fn quantised(op: &SoftmaxInt, mem: &Mem<'_>) -> Option<()> {
    match op.kind {
        SoftmaxKind::I8(p) => rows::<i8, i8>(op, mem, |x, y| {
            let mut at = 0;
            p.run(|| x.iter(), |value| put(y, &mut at, value));
            Some(())
        }),
        SoftmaxKind::LogI8(p) => rows::<i8, i8>(op, mem, |x, y| {
            let mut at = 0;
            p.run(|| x.iter(), |value| put(y, &mut at, value));
            Some(())
        }),
        SoftmaxKind::I8ToI16(p) => rows::<i8, i16>(op, mem, |x, y| {
            let mut at = 0;
            p.run_to_i16(|| x.iter(), |value| put(y, &mut at, value));
            Some(())
        }),
        SoftmaxKind::I16(p, [exp, inverse]) => rows::<i16, i16>(op, mem, |x, y| {
            let exp = constant::<i16>(mem, exp, 513)?.try_into().ok()?;
            let inverse = constant::<i16>(mem, inverse, 513)?.try_into().ok()?;
            p.run(|| x.iter(), y.cells(), exp, inverse);
            Some(())
        }),
        SoftmaxKind::I8Table(table) => rows::<i8, i8>(op, mem, |x, y| {
            let table = constant::<i32>(mem, table, 256)?.try_into().ok()?;
            softmax_by_table(|| x.iter(), y.cells(), table);
            Some(())
        }),
    }
}

fn put<T: Element>(y: Dst<'_, T>, at: &mut usize, value: T) {
    let _ = y.set(*at, value);
    *at += 1;
}

fn rows<X: Element, Y: Element>(
    op: &SoftmaxInt,
    mem: &Mem<'_>,
    row: impl Fn(Src<'_, X>, Dst<'_, Y>) -> Option<()>,
) -> Option<()> {
    let [rows, classes] = [op.rows, op.classes].map(|extent| extent as usize);
    let (input, output) = (
        read::<X>(mem, op.input, rows * classes)?,
        written::<Y>(mem, op.output, rows * classes)?,
    );
    (0..rows).try_for_each(|r| row(input.slice(r * classes, classes)?, output.slice(r * classes, classes)?))
}
