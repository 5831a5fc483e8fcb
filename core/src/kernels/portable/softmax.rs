//! Softmax over rows.

use super::row;
use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::size::product;
use crate::ops::softmax::{EXPONENTIALS, SoftmaxF32, SoftmaxInt, SoftmaxKind, TABLE_LEN};
use crate::quant::softmax_by_table;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = SoftmaxF32;

    fn distance(_: &SoftmaxF32, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SoftmaxF32, mem: &Mem<'_>) -> Option<()> {
        let len = product(op.rows, op.classes)?;
        let classes = op.classes as usize;
        let input = mem.src::<f32>(op.input, len)?;
        let output = mem.dst::<f32>(op.output, len)?;
        for r in 0..op.rows as usize {
            let x = row(input, r, classes)?;
            let y = output.slice(r * classes, classes)?;
            let max = x.iter().fold(f32::NEG_INFINITY, |max, x| if x > max { x } else { max });
            let mut sum = 0.0;
            for (y, x) in y.cells().iter().zip(x.iter()) {
                let argument = op.beta * (x - max);
                let power = libm::expf(argument);
                sum += power;
                y.set(if op.log { argument } else { power });
            }
            let log_sum = if op.log { libm::logf(sum) } else { 0.0 };
            for y in y.cells() {
                y.set(if op.log { y.get() - log_sum } else { y.get() / sum });
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// int8 into int8: the softmax of a classifier, by itself, because the others are four times its code.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = SoftmaxInt;

    fn supports(op: &SoftmaxInt) -> bool {
        matches!(op.kind, SoftmaxKind::I8(_))
    }

    fn distance(op: &SoftmaxInt, index: usize) -> Option<i64> {
        Quantised::distance(op, index)
    }

    fn run(op: &SoftmaxInt, mem: &Mem<'_>) -> Option<()> {
        match op.kind {
            SoftmaxKind::I8(p) => rows::<i8, i8>(op, mem, |x, y| p.run(|| x.iter(), writer(y))),
            _ => None,
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {}

/// int8 and int16, and logarithms.
#[derive(Debug)]
pub struct Quantised;

impl Kernel for Quantised {
    type Op = SoftmaxInt;

    fn distance(op: &SoftmaxInt, index: usize) -> Option<i64> {
        // A result as wide as its operand overwrites what has been read.
        let (from, to) = op.types();
        (index == 1 && from == to).then_some(0)
    }

    fn run(op: &SoftmaxInt, mem: &Mem<'_>) -> Option<()> {
        match op.kind {
            SoftmaxKind::I8(p) => rows::<i8, i8>(op, mem, |x, y| p.run(|| x.iter(), writer(y))),
            SoftmaxKind::LogI8(p) => rows::<i8, i8>(op, mem, |x, y| p.run(|| x.iter(), writer(y))),
            SoftmaxKind::I8ToI16(p) => rows::<i8, i16>(op, mem, |x, y| p.run_to_i16(|| x.iter(), writer(y))),
            SoftmaxKind::I16(p, [exp, inverse]) => {
                let exp = mem.weights::<i16>(exp, TABLE_LEN)?.try_into().ok()?;
                let inverse = mem.weights::<i16>(inverse, TABLE_LEN)?.try_into().ok()?;
                rows::<i16, i16>(op, mem, |x, y| p.run(|| x.iter(), y.cells(), exp, inverse))
            }
            SoftmaxKind::I8Table(exp) => {
                let exp: &[i32; 256] = mem.weights::<i32>(exp, EXPONENTIALS)?.try_into().ok()?;
                rows::<i8, i8>(op, mem, |x, y| softmax_by_table(|| x.iter(), y.cells(), exp))
            }
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Quantised {}

fn rows<X: Element, Y: Element>(op: &SoftmaxInt, mem: &Mem<'_>, run: impl Fn(Src<'_, X>, Dst<'_, Y>)) -> Option<()> {
    let len = product(op.rows, op.classes)?;
    let classes = op.classes as usize;
    let input = mem.src::<X>(op.input, len)?;
    let output = mem.dst::<Y>(op.output, len)?;
    for r in 0..op.rows as usize {
        run(row(input, r, classes)?, output.slice(r * classes, classes)?);
    }
    Some(())
}

/// Writes one element after the other.
fn writer<T: Element>(y: Dst<'_, T>) -> impl FnMut(T) {
    let mut cells = y.cells().iter();
    move |value| {
        if let Some(cell) = cells.next() {
            cell.set(value);
        }
    }
}
