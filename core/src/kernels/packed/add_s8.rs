//! Sums of two int8 tensors of one shape.
//!
//! The reference gives both operands 20 more bits, scales each by `s / (2 * max(s_a, s_b))` with two roundings, adds, and requantises the sum. The operand
//! of the larger scale so has the factor 1/2 exactly. For the other one, `v = x - zero_point` has 9 bits, so that with `m = mh * 2^16 + ml`
//! `(v * 2^20 * m + 2^30) >> 31` is `v * mh * 2^5 + ((v * ml + 2^10) >> 11)`: two small products instead of a 64-bit one.

use super::requantize;
use super::requantize::Rounding;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::portable::elementwise_s8_s16::Binary;
use crate::kernels::primitives::binary_s8::ProductS8;
use crate::kernels::primitives::broadcast_rows::walk;
use crate::ops::elementwise::{is_contiguous, operand_len, output_len};
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::quant::Multiplier;
use crate::tensor::DType;

/// Sums of int8 tensors of one shape, and products of int8 tensors; everything else of the operator goes to the scalar kernel.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = BinaryInt;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(op: &BinaryInt, index: usize) -> Option<i64> {
        Binary::distance(op, index)
    }

    fn run(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
        let narrow = |n: i32| i8::try_from(n).ok();
        let [za, zb, zy] = op.zero.map(narrow);
        let [low, high] = op.clamp.map(narrow);
        if let Some(code) = product(op) {
            return multiply(op, mem, code);
        }
        match (za, zb, zy, low, high) {
            (Some(za), Some(zb), Some(zy), Some(low), Some(high)) if has_loop(op) => {
                let count = output_len(&op.loops)?;
                let [a_multiplier, b_multiplier, multiplier] = op.multipliers;
                let [a_term, b_term] = [(za, a_multiplier), (zb, b_multiplier)]
                    .map(|(zero_point, multiplier)| Term { zero_point, multiplier });
                let (a, b) = (mem.src(op.a, count)?, mem.src(op.b, count)?);
                add(
                    (a, &a_term),
                    (b, &b_term),
                    multiplier,
                    zy,
                    [low, high],
                    mem.dst(op.output, count)?,
                )
            }
            _ => Binary::run(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::BinaryInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<BinaryInt<P>> {
        job.binary_int().filter(|op| has_loop(op) || product(op).is_some())
    }

    fn bound(op: &BinaryInt, on: &Machine) -> Option<u64> {
        if op.op == IntOp::Mul {
            // Two loads, two zero points, the product.
            let core = super::Core::of(on.target);
            return Some(u64::from(output_len(&op.loops)?) * (5 + core.requantize()));
        }
        Some(bound(u64::from(output_len(&op.loops)?), super::Core::of(on.target)))
    }
}

/// Whether this kernel has a loop of its own for `op`.
pub(super) fn has_loop<P>(op: &BinaryInt<P>) -> bool {
    let one_shape = is_contiguous(&op.loops, |l| l.a) && is_contiguous(&op.loops, |l| l.b);
    op.dtype == DType::I8 && op.op == IntOp::Add && op.shift == 20 && one_shape
}

/// The short form's shift for an int8 product, where it is one and has that form.
fn product<P>(op: &BinaryInt<P>) -> Option<i32> {
    let [_, _, multiplier] = op.multipliers;
    let [za, zb, zy] = op.zero.map(|zero| i8::try_from(zero).ok());
    let is_product = op.dtype == DType::I8 && op.op == IntOp::Mul && za.is_some() && zb.is_some();
    if is_product {
        requantize::short_shift(255 * 255, multiplier, zy?)
    } else {
        None
    }
}

/// Products of what meets.
fn multiply(op: &BinaryInt, mem: &Mem<'_>, code: i32) -> Option<()> {
    let [za, zb, zy] = op.zero;
    let [_, _, multiplier] = op.multipliers;
    let addend = Rounding::new(i8::try_from(zy).ok()?, 0).addend(code);
    let output = mem.dst::<i8>(op.output, output_len(&op.loops)?)?;
    let a = mem.src::<i8>(op.a, operand_len(&op.loops, |l| l.a)?)?;
    let b = mem.src::<i8>(op.b, operand_len(&op.loops, |l| l.b)?)?;
    match ProductS8::new(multiplier, op.zero) {
        Some(product) if !cfg!(kernel_isa = "armv6m") => product.run(&op.loops, output, a, b)?,
        _ => walk(&op.loops, output, a, b, |line| {
            line.straight(|a, b| {
                let product = i32::from(a)
                    .wrapping_sub(za)
                    .wrapping_mul(i32::from(b).wrapping_sub(zb));
                requantize::short(product, multiplier.mantissa, code, addend)
            });
        })?,
    }
    let [low, high] = op.clamp.map(|limit| i8::try_from(limit).ok());
    super::conv2d_s8::limit(output, [low.unwrap_or(i8::MIN), high.unwrap_or(i8::MAX)]);
    Some(())
}

/// An operand of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Its zero point.
    pub zero_point: i8,
    /// Its scale over twice the larger one.
    pub multiplier: Multiplier,
}

/// `out = a + b`, element by element in order; the output may be either operand. `multiplier` takes the sum of the terms, which has 20 bits more, to
/// the output's scale. `None` where lengths differ.
pub fn add(
    (a, a_term): (Src<'_, i8>, &Term),
    (b, b_term): (Src<'_, i8>, &Term),
    multiplier: Multiplier,
    zero_point: i8,
    limits: [i8; 2],
    out: Dst<'_, i8>,
) -> Option<()> {
    if a.len() != out.cells().len() || b.len() != a.len() {
        return None;
    }
    // 255 * 2^19 for each term.
    let short = requantize::short_shift((1 << 28) - 1, multiplier, zero_point);
    match (Small::of(a_term), Small::of(b_term), short) {
        (Some(a_small), Some(b_small), Some(code)) => {
            let addend = Rounding::new(zero_point, 0).addend(code);
            let finish = |sum| requantize::short(sum, multiplier.mantissa, code, addend);
            // The sum does not mind the order.
            match (a_small.half, b_small.half) {
                (true, _) => each(b, a, out, |b, a| finish(b_small.scale(b) + a_small.halve(a))),
                (_, true) => each(a, b, out, |a, b| finish(a_small.scale(a) + b_small.halve(b))),
                _ => each(a, b, out, |a, b| finish(a_small.scale(a) + b_small.scale(b))),
            }
            super::conv2d_s8::limit(out, limits);
        }
        _ => general((a, a_term), (b, b_term), multiplier, zero_point, limits, out),
    }
    Some(())
}

/// The fewest instructions of a sum of `count` elements, one term of which is exactly halved.
fn bound(count: u64, core: super::Core) -> u64 {
    let terms = match core {
        super::Core::CortexM0 => 15,
        super::Core::CortexM3 => 10,
        super::Core::Riscv32 => 13,
    };
    count * (terms + core.requantize())
}

/// A term with a right shift, or none, after a positive multiplier.
struct Small {
    zero_point: i32,
    high: i32,
    low: i32,
    shift: u32,
    round: i32,
    half: bool,
}

impl Small {
    fn of(term: &Term) -> Option<Self> {
        let Multiplier { mantissa, shift } = term.multiplier;
        let right = u32::from(shift.unsigned_abs());
        (shift <= 0 && right < 31 && mantissa >= 0).then_some(Self {
            zero_point: i32::from(term.zero_point),
            high: (mantissa >> 16) << 5,
            low: mantissa & 0xffff,
            shift: right,
            round: (1 << right) >> 1,
            half: mantissa == 1 << 30 && right == 0,
        })
    }

    #[inline(always)]
    fn scale(&self, x: i8) -> i32 {
        let v = i32::from(x) - self.zero_point;
        let q = v * self.high + ((v * self.low + (1 << 10)) >> 11);
        // Ties away from zero; without a shift there are none.
        let away = if self.round == 0 { 0 } else { q >> 31 };
        q.wrapping_add(away).wrapping_add(self.round).wrapping_shr(self.shift)
    }

    #[inline(always)]
    fn halve(&self, x: i8) -> i32 {
        (i32::from(x) - self.zero_point) << 19
    }
}

#[inline(always)]
fn each(a: Src<'_, i8>, b: Src<'_, i8>, out: Dst<'_, i8>, f: impl Fn(i8, i8) -> i8) {
    for ((y, a), b) in out.cells().iter().zip(a.iter()).zip(b.iter()) {
        y.set(f(a, b));
    }
}

#[cold]
#[inline(never)]
fn general(
    (a, a_term): (Src<'_, i8>, &Term),
    (b, b_term): (Src<'_, i8>, &Term),
    multiplier: Multiplier,
    zero_point: i8,
    [low, high]: [i8; 2],
    out: Dst<'_, i8>,
) {
    let scale = |x: i8, term: &Term| {
        let v = i32::from(x) - i32::from(term.zero_point);
        term.multiplier.apply(v << 20)
    };
    each(a, b, out, |a, b| {
        let sum = multiplier.apply(scale(a, a_term).wrapping_add(scale(b, b_term)));
        let y = sum.wrapping_add(i32::from(zero_point));
        y.max(i32::from(low)).min(i32::from(high)) as i8
    });
}
