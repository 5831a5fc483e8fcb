//! Sums of two int8 operands, and the larger or smaller ones of int8 and int16, line by line with any broadcasting.
//!
//! Helium has a loop of its own for sums whose operands are neighbours or single elements, the DSP extension one for extremes of neighbours.

#[cfg(kernel_isa = "mve")]
use super::mve;
use crate::cells::{Dst, Src};
use crate::kernels::isa::dsp::max_s8x4;
use crate::kernels::primitives::broadcast_rows::{Line, walk};
use crate::kernels::primitives::requantize::bounded::{ByteTerm, Rescale};
use crate::ops::elementwise::Loop;
use crate::quant::Multiplier;

/// `clamp(M(A((a - zero_a) * 2^20) ± B((b - zero_b) * 2^20)) + zero)` of int8.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SumS8 {
    terms: [ByteTerm; 2],
    /// -1 where the second term is taken away, else 0.
    minus: i32,
    rescale: Rescale,
    limits: [i8; 2],
    #[cfg(kernel_isa = "mve")]
    vector: mve::AddS8Args,
}

impl SumS8 {
    /// `None` where a zero point or a limit is not of int8, or the multipliers are not those of a quantised sum.
    pub(crate) fn new(
        multipliers: [Multiplier; 3],
        zeros: [i32; 3],
        shift: u8,
        subtract: bool,
        limits: [i32; 2],
    ) -> Option<Self> {
        let [a, b, multiplier] = multipliers;
        let [zero_a, zero_b, zero] = zeros;
        let narrow = |x: i32| i8::try_from(x).ok();
        let zero = narrow(zero)?.into();
        Some(Self {
            terms: [ByteTerm::new(a, narrow(zero_a)?)?, ByteTerm::new(b, narrow(zero_b)?)?],
            minus: -i32::from(subtract),
            // Each term has 28 bits and a sign.
            rescale: Rescale::new(multiplier, 1 << 29, zero).filter(|_| shift == 20)?,
            limits: [narrow(limits[0])?, narrow(limits[1])?],
            #[cfg(kernel_isa = "mve")]
            vector: mve::AddS8Args {
                sum: mve::AddS16Args::new(multipliers, zero, limits),
                zeros: [zero_a.wrapping_neg(), zero_b.wrapping_neg()],
                steps: [4, 4],
            },
        })
    }

    /// Writes the sums of what meets. `None` where an operand is too short.
    #[inline(always)]
    pub(crate) fn run(&self, loops: &[Loop], output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>) -> Option<()> {
        walk(loops, output, a, b, |line| self.line(line))?;
        let [low, high] = self.limits;
        if self.limits != [i8::MIN, i8::MAX] {
            output.cells().iter().for_each(|y| y.set(y.get().max(low).min(high)));
        }
        Some(())
    }

    /// Writes the sums of a line, without the limits.
    #[inline(always)]
    fn line(&self, line: Line<i8, i8, i8>) {
        #[cfg(kernel_isa = "mve")]
        if let ([0 | 1, 1] | [1, 0], true) = (line.steps, line.count > 1) {
            // SAFETY: `walk` makes lines inside the operands alone, with an element of each at least.
            return unsafe { self.vectors(line) };
        }
        // The output may alias anything, for all that a compiler knows: copies of the fields stay in registers.
        let Self {
            terms: [a, b],
            minus,
            rescale,
            ..
        } = *self;
        let narrow = |sum: i32| rescale.apply(sum).clamp(-128, 127) as i8;
        let signed = |b: i32| (b ^ minus).wrapping_sub(minus);
        // SAFETY: `walk` makes lines with an element of each operand at least.
        let (first, second) = unsafe { (line.a.read(), line.b.read()) };
        match line.steps {
            [_, 0] => {
                let second = signed(b.apply(second));
                line.each(|x, _| narrow(a.apply(x).wrapping_add(second)));
            }
            [0, _] => {
                let first = a.apply(first);
                line.each(|_, y| narrow(first.wrapping_add(signed(b.apply(y)))));
            }
            _ => line.each(|x, y| narrow(a.apply(x).wrapping_add(signed(b.apply(y))))),
        }
    }

    /// # Safety
    /// 1. The line's elements lie inside the operands, and the line has at least one of each.
    /// 2. An operand's elements are neighbours (step 1), or a single one (step 0).
    #[cfg(kernel_isa = "mve")]
    #[inline(never)]
    unsafe fn vectors(&self, line: Line<i8, i8, i8>) {
        // SAFETY: `line.count` elements lie at each operand (fn docs, points 1 and 2). Of a single element the loop reads the four copies in `a` or `b`.
        unsafe {
            let (a, b) = ([line.a.read(); 4], [line.b.read(); 4]);
            let args = mve::AddS8Args {
                steps: line.steps.map(|step| step << 2),
                ..self.vector
            };
            let of = |step: usize, line: *const i8, one: &[i8; 4]| if step == 0 { one.as_ptr() } else { line };
            let f = if self.minus == 0 {
                mve::sums_s8
            } else {
                mve::differences_s8
            };
            let [step_a, step_b] = line.steps;
            f(
                of(step_a, line.a, &a),
                of(step_b, line.b, &b),
                line.output,
                line.count,
                &args,
            );
        }
    }
}

/// Writes the larger, or the smaller, of what meets. `None` where an operand is too short.
pub(crate) fn extremes_s8(
    loops: &[Loop],
    output: Dst<'_, i8>,
    a: Src<'_, i8>,
    b: Src<'_, i8>,
    smaller: bool,
) -> Option<()> {
    let larger = |a, b| extreme::<i8>(smaller)(a, b) as i8;
    walk(loops, output, a, b, |line| {
        if cfg!(kernel_isa = "dsp") && line.steps == [1, 1] {
            // SAFETY: `walk` calls the closure with lines inside the operands; neighbours in both (steps 1).
            unsafe { words(line, order_mask(smaller) as u32) }.each(larger);
        } else {
            line.each(larger);
        }
    })
}

/// The same of int16.
pub(crate) fn extremes_s16(
    loops: &[Loop],
    output: Dst<'_, i16>,
    a: Src<'_, i16>,
    b: Src<'_, i16>,
    smaller: bool,
) -> Option<()> {
    walk(loops, output, a, b, |line| {
        line.straight(|a, b| extreme::<i16>(smaller)(a, b) as i16);
    })
}

/// Mask for XOR before and after a maximum: -1 (complements, which reverse the order) for the smaller number, 0 for the larger one.
fn order_mask(smaller: bool) -> i32 {
    i32::from(smaller).wrapping_neg()
}

/// The larger, or the smaller, of two numbers.
#[inline(always)]
fn extreme<T: Into<i32>>(smaller: bool) -> impl Fn(T, T) -> i32 + Copy {
    let mask = order_mask(smaller);
    move |a, b| (a.into() ^ mask).max(b.into() ^ mask) ^ mask
}

/// The larger ones of the bytes of words, with `mask` XORed before and after; returns the rest of the line.
///
/// # Safety
/// The line's elements lie inside the operands and are neighbours in each.
#[inline(always)]
unsafe fn words(line: Line<i8, i8, i8>, mask: u32) -> Line<i8, i8, i8> {
    let mut rest = line;
    while rest.count >= 4 {
        // SAFETY: `rest.count >= 4`: four neighbours of each operand remain (fn docs). The accesses are unaligned.
        unsafe {
            let [a, b] = [rest.a, rest.b].map(|x| x.cast::<u32>().read_unaligned() ^ mask);
            rest.output.cast::<u32>().write_unaligned(max_s8x4(a, b) ^ mask);
        }
        rest.a = rest.a.wrapping_add(4);
        rest.b = rest.b.wrapping_add(4);
        rest.output = rest.output.wrapping_add(4);
        rest.count -= 4;
    }
    rest
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::kernels::primitives::binary_s8::HALF;
    use crate::kernels::primitives::binary_s8::tests::{STEPS, expected, expected as expected_of, multiplier, written};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 4))]

        #[test]
        fn sums_of_int8(
            a in prop::collection::vec(any::<i8>(), 240), b in prop::collection::vec(any::<i8>(), 60), count in 1_u32..40,
            multipliers in [multiplier(), multiplier(), multiplier()], zeros: [i8; 3], half in 0..3_u8, ends: bool, low in -128..0, full: bool,
        ) {
            let limits = if full { [-128, 127] } else { [low, 100] };
            let extreme = |x: &i8| if ends { (x >> 7) ^ i8::MIN } else { *x };
            let (a, b): (Vec<i8>, Vec<i8>) = (a.iter().map(extreme).collect(), b.iter().map(extreme).collect());
            let zeros = zeros.map(|zero| i32::from(extreme(&zero)));
            let [first, second, result] = multipliers;
            let [first, second] = [(first, 0), (second, 1)].map(|(m, i)| if i == half { HALF } else { m });
            let result = Multiplier { shift: result.shift - 11, ..result };
            let scaled = |x: i8, zero: i32, m: Multiplier| m.apply((i32::from(x) - zero) << 20);
            for (subtract, sign) in [(false, 1), (true, -1)] {
                if let Some(sum) = SumS8::new([first, second, result], zeros, 20, subtract, limits) {
                    for steps in STEPS {
                        let expected = expected(&a, &b, count, steps, |a, b| {
                            let sum = scaled(a, zeros[0], first) + sign * scaled(b, zeros[1], second);
                            (result.apply(sum) + zeros[2]).clamp(limits[0], limits[1])
                        });
                        let found = written(&a, &b, count, steps, |loops, y, a, b| sum.run(loops, y, a, b));
                        prop_assert!(found.into_iter().map(i32::from).eq(expected), "{:?}", steps);
                    }
                } else {
                    // The zero point has 8 bits more than what it is shifted by.
                    prop_assert!(first.shift > 0 || second.shift > 0 || !result.narrows() || result.shift < -23);
                }
            }
        }

        #[test]
        fn larger_and_smaller_halves(a in prop::collection::vec(any::<i16>(), 240), b in prop::collection::vec(any::<i16>(), 60), count in 1_u32..40) {
            for (smaller, of) in [(false, i16::max as fn(i16, i16) -> i16), (true, i16::min)] {
                for steps in STEPS {
                    let expected = expected(&a, &b, count, steps, |a, b| of(a, b).into());
                    let found = written(&a, &b, count, steps, |loops, y, a, b| extremes_s16(loops, y, a, b, smaller));
                    prop_assert!(found.into_iter().map(i32::from).eq(expected), "{:?}", steps);
                }
            }
        }

        #[test]
        fn larger_and_smaller_ones(a in prop::collection::vec(any::<i8>(), 240), b in prop::collection::vec(any::<i8>(), 60), count in 1_u32..40) {
            for (smaller, of) in [(false, i8::max as fn(i8, i8) -> i8), (true, i8::min)] {
                for steps in STEPS {
                    let expected = expected(&a, &b, count, steps, |a, b| of(a, b).into());
                    let found = written(&a, &b, count, steps, |loops, y, a, b| extremes_s8(loops, y, a, b, smaller));
                    prop_assert!(found.into_iter().map(i32::from).eq(expected), "{:?}", steps);
                    let mask = if smaller { u32::MAX } else { 0 };
                    // SAFETY: `walk` calls the closure with lines inside the operands; `written` is given it where both steps are 1.
                    let line = |line: Line<i8, i8, i8>| unsafe { words(line, mask) }.each(of);
                    if steps == [1, 1] {
                        let found = written(&a, &b, count, steps, |loops, y, a, b| walk(loops, y, a, b, line));
                        let expected = expected_of(&a, &b, count, steps, |a, b| of(a, b).into());
                        prop_assert!(found.into_iter().map(i32::from).eq(expected));
                    }
                }
            }
        }
    }
}
