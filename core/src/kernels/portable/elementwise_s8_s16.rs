//! Elementwise operators of two integer operands, straight from the formula.

use super::integers::Int;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::primitives::binary_s8::rows::SumS8;
use crate::kernels::primitives::binary_s8::{ProductS16, SumS16, rows};
use crate::kernels::primitives::broadcast_rows;
use crate::kernels::primitives::requantize::bounded::Either;
use crate::kernels::primitives::strided_copy::broadcast;
use crate::ops::elementwise::{is_contiguous, operand_len, output_len};
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::tensor::DType;

/// int8, int16 and int32.
#[derive(Debug)]
pub struct Binary;

impl Kernel for Binary {
    type Op = BinaryInt;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(op: &BinaryInt, index: usize) -> Option<i64> {
        let in_step = match index {
            1 => is_contiguous(&op.loops, |l| l.a),
            2 => is_contiguous(&op.loops, |l| l.b),
            _ => false,
        };
        in_step.then_some(0)
    }

    // Each of these has a frame of its own, and this none that would lie above them.
    fn run(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
        match (op.dtype, op.op) {
            (DType::I8, IntOp::Add | IntOp::Sub) => sums(op, mem).unwrap_or_else(|| quantised::<i8>(op, mem)),
            (DType::I8, IntOp::Minimum | IntOp::Maximum) if is_whole(op, i8::MIN, i8::MAX) => {
                let (output, a, b) = operands(op, mem)?;
                rows::extremes_s8(&op.loops, output, a, b, op.op == IntOp::Minimum)
            }
            (DType::I16, IntOp::Minimum | IntOp::Maximum) if is_whole(op, i16::MIN, i16::MAX) => {
                let (output, a, b) = operands(op, mem)?;
                rows::extremes_s16(&op.loops, output, a, b, op.op == IntOp::Minimum)
            }
            (DType::I8, _) => quantised::<i8>(op, mem),
            (DType::I16, _) => words(op, mem),
            _ => plain(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Binary {
    const JOB: Option<JobKind> = Some(JobKind::BinaryInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<BinaryInt<P>> {
        job.binary_int()
    }
}

/// The int16 operators of quantised networks, which have loops of their own.
enum Wide {
    Product(ProductS16),
    Sum(SumS16),
}

fn wide(op: &BinaryInt) -> Option<Wide> {
    let [_, _, multiplier] = op.multipliers;
    match op.op {
        IntOp::Mul => ProductS16::new(multiplier, op.zero, op.clamp).map(Wide::Product),
        IntOp::Add | IntOp::Sub => {
            SumS16::new(op.multipliers, op.zero, op.shift, op.op == IntOp::Sub, op.clamp).map(Wide::Sum)
        }
        _ => None,
    }
}

/// int8 sums and differences; `None` of those that are not of quantised networks.
#[inline(never)]
fn sums(op: &BinaryInt, mem: &Mem<'_>) -> Option<Option<()>> {
    let sum = SumS8::new(op.multipliers, op.zero, op.shift, op.op == IntOp::Sub, op.clamp)?;
    Some(operands(op, mem).and_then(|(output, a, b)| sum.run(&op.loops, output, a, b)))
}

/// Whether no number of a type is outside the limits.
fn is_whole<T: Into<i32>>(op: &BinaryInt, low: T, high: T) -> bool {
    op.clamp[0] <= low.into() && op.clamp[1] >= high.into()
}

type Operands<'a, T> = (Dst<'a, T>, Src<'a, T>, Src<'a, T>);

fn operands<'a, T: Element>(op: &BinaryInt, mem: &Mem<'a>) -> Option<Operands<'a, T>> {
    let output = mem.dst::<T>(op.output, output_len(&op.loops)?)?;
    let a = mem.src::<T>(op.a, operand_len(&op.loops, |l| l.a)?)?;
    let b = mem.src::<T>(op.b, operand_len(&op.loops, |l| l.b)?)?;
    Some((output, a, b))
}

/// int16.
#[inline(never)]
fn words(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
    match wide(op) {
        Some(wide) => wide.run(op, mem),
        None => quantised::<i16>(op, mem),
    }
}

impl Wide {
    fn run(&self, op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
        let (output, a, b) = operands(op, mem)?;
        match self {
            Wide::Product(product) => broadcast_rows::walk(&op.loops, output, a, b, |line| product.line(line)),
            Wide::Sum(sum) => broadcast_rows::walk(&op.loops, output, a, b, |line| sum.line(line)),
        }
    }
}

#[inline(never)]
fn quantised<T: Int>(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
    let [m0, m1, m2] = op.multipliers;
    let [z0, z1, z2] = op.zero;
    let shift = u32::from(op.shift);
    let left = |x: i32| m0.apply(x.wrapping_sub(z0).wrapping_shl(shift));
    let right = |x: i32| m1.apply(x.wrapping_sub(z1).wrapping_shl(shift));
    let product = |a: i32, b: i32| a.wrapping_sub(z0).wrapping_mul(b.wrapping_sub(z1));
    match op.op {
        IntOp::Add | IntOp::Sub => {
            let sign = sign(op);
            walk::<T>(op, mem, |a, b| {
                m2.apply(left(a).wrapping_add(right(b).wrapping_mul(sign)))
                    .wrapping_add(z2)
            })
        }
        IntOp::Mul => walk::<T>(op, mem, |a, b| m2.apply(product(a, b)).wrapping_add(z2)),
        IntOp::Minimum | IntOp::Maximum => walk::<T>(op, mem, extreme(op)),
        IntOp::Prelu if size_of::<T>() == 1 => prelu(op, mem),
        IntOp::Prelu => quantised_prelu::<T>(op, mem),
        IntOp::Div => None,
    }
}

/// PReLU of int8, of which the products have 18 bits where the zero points are numbers of int8.
#[inline(never)]
fn prelu(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
    let [m0, _, m2] = op.multipliers;
    let [z0, z1, _] = op.zero;
    let short = [z0, z1].iter().all(|&zero| i8::try_from(zero).is_ok());
    let of = |multiplier, magnitude| Either::new(multiplier, magnitude).filter(|_| short);
    let (Some(above), Some(below)) = (of(m0, 255), of(m2, 255 * 255)) else {
        return quantised_prelu::<i8>(op, mem);
    };
    scaled_prelu::<i8>(op, mem, |x| above.apply(x), |x| below.apply(x))
}

/// PReLU of any multipliers.
#[cold]
#[inline(never)]
fn quantised_prelu<T: Int>(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
    let [m0, _, m2] = op.multipliers;
    scaled_prelu::<T>(op, mem, |x| m0.apply(x), |x| m2.apply(x))
}

/// PReLU whose inputs above zero, and whose products below, are scaled by these.
#[inline(always)]
fn scaled_prelu<T: Int>(
    op: &BinaryInt,
    mem: &Mem<'_>,
    above: impl Fn(i32) -> i32,
    below: impl Fn(i32) -> i32,
) -> Option<()> {
    let [z0, z1, z2] = op.zero;
    walk::<T>(op, mem, |a, b| {
        let x = a.wrapping_sub(z0);
        let scaled = if x >= 0 {
            above(x)
        } else {
            below(x.wrapping_mul(b.wrapping_sub(z1)))
        };
        scaled.wrapping_add(z2)
    })
}

#[inline(never)]
fn plain(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
    match op.op {
        IntOp::Add | IntOp::Sub => {
            let sign = sign(op);
            walk::<i32>(op, mem, |a, b| a.wrapping_add(b.wrapping_mul(sign)))
        }
        IntOp::Mul => walk::<i32>(op, mem, i32::wrapping_mul),
        IntOp::Minimum | IntOp::Maximum => walk::<i32>(op, mem, extreme(op)),
        IntOp::Div => walk::<i32>(op, mem, quotient),
        IntOp::Prelu => None,
    }
}

/// Factor of a sum's second operand. Operators that differ in so little share a loop, which is some 800 bytes of code.
fn sign(op: &BinaryInt) -> i32 {
    if op.op == IntOp::Sub { -1 } else { 1 }
}

/// The smaller or the larger of two.
fn extreme(op: &BinaryInt) -> impl Fn(i32, i32) -> i32 + use<> {
    let smaller = op.op == IntOp::Minimum;
    move |a, b| if (a < b) == smaller { a } else { b }
}

/// Towards zero; 0 by 0, and the lowest number by -1 is itself.
fn quotient(a: i32, b: i32) -> i32 {
    a.checked_div(b).unwrap_or(if b == 0 { 0 } else { a })
}

fn walk<T: Int>(op: &BinaryInt, mem: &Mem<'_>, f: impl Fn(i32, i32) -> i32) -> Option<()> {
    let (output, a, b) = operands::<T>(op, mem)?;
    let [low, high] = op.clamp;
    let clamp = |x: i32| {
        if x < low {
            low
        } else if x > high {
            high
        } else {
            x
        }
    };
    broadcast(&op.loops, output, a, b, |a, b| {
        T::narrow(clamp(f(a.widen(), b.widen())))
    })
}
