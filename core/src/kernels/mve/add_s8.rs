//! Sums of two int8 tensors of one shape.
//!
//! The reference scales both operands with 20 more bits, by `s / (2 * max(s_a, s_b))`, and adds. The operand with the larger scale so has
//! the factor 1/2 exactly, and is only shifted. `have_form` says whether a pair of multipliers has that form; every sum of the 8-bit
//! specification has.

use super::Output;
use super::args::Add;
use super::loops::{add_fast, add_general};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::elementwise::{is_contiguous, output_len};
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::quant::Multiplier;
use crate::tensor::DType;

/// int8 sums of two tensors of the output's shape.
#[derive(Debug)]
pub struct SumS8;

/// Bits by which the operands are shifted left before they are scaled.
const SHIFT: u8 = 20;

#[cfg(any(test, packing))]
impl Candidate for SumS8 {
    const JOB: Option<JobKind> = Some(JobKind::BinaryInt);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<BinaryInt<P>> {
        job.binary_int()
    }

    fn bound(op: &BinaryInt, _: &Machine) -> Option<u64> {
        let limits = op.clamp.map(|limit| limit as i8);
        Some(bound(u64::from(output_len(&op.loops)?), op.zero[2] as i8, limits))
    }
}

impl Kernel for SumS8 {
    type Op = BinaryInt;

    fn supports(op: &BinaryInt) -> bool {
        terms(op).is_some_and(|(a, b, ..)| have_form(&a, &b, op.multipliers[2]))
    }

    fn distance(_: &BinaryInt, index: usize) -> Option<i64> {
        // Elements in order, each (with up to three after it) read before it is written.
        (index == 1 || index == 2).then_some(0)
    }

    fn run(op: &BinaryInt, mem: &Mem<'_>) -> Option<()> {
        let (a_term, b_term, zero_point, limits) = terms(op)?;
        let count = output_len(&op.loops)?;
        let a = mem.src::<i8>(op.a, count)?;
        let b = mem.src::<i8>(op.b, count)?;
        let output = mem.dst::<i8>(op.output, count)?;
        add(
            (a, &a_term),
            (b, &b_term),
            op.multipliers[2],
            zero_point,
            limits,
            output,
        )
    }
}

/// Both terms, the output's zero point and the limits of an int8 sum without broadcasting; `None` for any other operator.
fn terms(op: &BinaryInt) -> Option<(Term, Term, i8, [i8; 2])> {
    let sum = op.op == IntOp::Add && op.dtype == DType::I8 && op.shift == SHIFT;
    if !sum || !is_contiguous(&op.loops, |l| l.a) || !is_contiguous(&op.loops, |l| l.b) {
        return None;
    }
    let narrow = |x: i32| i8::try_from(x).ok();
    let [a, b, zero_point] = op.zero;
    let term = |zero_point: i32, multiplier: Multiplier| {
        Some(Term {
            zero_point: narrow(zero_point)?,
            multiplier,
        })
    };
    Some((
        term(a, op.multipliers[0])?,
        term(b, op.multipliers[1])?,
        narrow(zero_point)?,
        [narrow(op.clamp[0])?, narrow(op.clamp[1])?],
    ))
}

/// One half.
pub const HALF: Multiplier = Multiplier {
    mantissa: 1 << 30,
    shift: 0,
};

/// An operand of a sum.
#[derive(Debug, Clone, Copy)]
pub struct Term {
    /// Its zero point.
    pub zero_point: i8,
    /// Its scale over twice the larger one.
    pub multiplier: Multiplier,
}

/// Whether [`add`] computes a sum of these terms, with this multiplier of the result.
fn have_form(a: &Term, b: &Term, multiplier: Multiplier) -> bool {
    let exact = |term: &Term| term.multiplier == HALF;
    let right = |m: Multiplier| m.shift <= 0;
    (exact(a) && right(b.multiplier) || exact(b) && right(a.multiplier)) && right(multiplier)
}

/// `out = a + b`, element by element in order; the output may be either operand. `None` where lengths differ or the multipliers do not
/// have the form that `have_form` asks for.
pub fn add(
    (a, a_term): (Src<'_, i8>, &Term),
    (b, b_term): (Src<'_, i8>, &Term),
    multiplier: Multiplier,
    zero_point: i8,
    limits: [i8; 2],
    out: Dst<'_, i8>,
) -> Option<()> {
    if !have_form(a_term, b_term, multiplier) || a.len() != out.cells().len() || b.len() != a.len() || a.len() == 0 {
        return None;
    }
    let ((a, a_term), (b, b_term)) = if a_term.multiplier == HALF {
        ((a, a_term), (b, b_term))
    } else {
        ((b, b_term), (a, a_term))
    };
    let output = Output::new(zero_point, limits, false);
    let args = Add {
        scale: 1 << 20,
        b_offset: -(i32::from(b_term.zero_point) << 20),
        b_mantissa: b_term.multiplier.mantissa,
        b_shift: i32::from(b_term.multiplier.shift),
        a_offset: -(i32::from(a_term.zero_point) << 19),
        mantissa: multiplier.mantissa,
        shift: i32::from(multiplier.shift),
        zero_point: output.zero_point,
        low: output.low,
        high: output.high,
    };
    // SAFETY: `b` and `out` have `a.len()` elements, as compared above.
    unsafe {
        if output.fast {
            add_fast(a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), a.len(), &args)
        } else {
            add_general(a.as_ptr(), b.as_ptr(), out.as_mut_ptr(), a.len(), &args)
        }
    }
    Some(())
}

/// The least instructions of a sum.
fn bound(count: u64, zero_point: i8, limits: [i8; 2]) -> u64 {
    let loop_of_four = if Output::new(zero_point, limits, false).fast {
        16
    } else {
        20
    };
    count.div_ceil(4) * loop_of_four
}
