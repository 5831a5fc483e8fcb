//! Products and sums of quantised operands, line by line: what the operator's multipliers allow is found once and not for each element.
//!
//! Helium has loops of its own for lines of neighbours, and for those of which one operand is a single element; the DSP extension for products of int8.

#[cfg(kernel_isa = "mve")]
pub(in crate::kernels) mod mve;
pub(crate) mod rows;

use super::broadcast_rows::{Line, walk};
use super::requantize::bounded::{Rescale, Term};
use crate::cells::{Dst, Src};
use crate::kernels::isa::dsp::{halves, sadd16, smulbb, smultt, sxtab16, sxtab16_ror8};
use crate::ops::elementwise::{Loop, MAX_LOOPS};
use crate::quant::Multiplier;

/// Whether a core multiplies halves of registers.
const DSP: bool = cfg!(kernel_isa = "dsp");

/// `M((a - zero_a) * (b - zero_b)) + zero`, saturated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProductS8 {
    zeros: [i8; 2],
    rescale: Rescale,
    #[cfg(kernel_isa = "mve")]
    vector: mve::MulArgs,
}

impl ProductS8 {
    /// `None` where the zero points are not of int8, or the multiplier has no short form.
    pub(crate) fn new(multiplier: Multiplier, [zero_a, zero_b, zero]: [i32; 3]) -> Option<Self> {
        Some(Self {
            zeros: [i8::try_from(zero_a).ok()?, i8::try_from(zero_b).ok()?],
            rescale: Rescale::new(multiplier, 255 * 255, i8::try_from(zero).ok()?.into())?,
            #[cfg(kernel_isa = "mve")]
            vector: mve::MulArgs::new(multiplier, [zero_a, zero_b, zero], [-128, 127]),
        })
    }

    /// Writes the products of what meets. `None` where an operand is too short.
    pub(crate) fn run(&self, loops: &[Loop], output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>) -> Option<()> {
        self.run_on(loops, output, a, b, DSP)
    }

    /// The same; `dsp`: with the loops for a core with the DSP extension.
    #[inline(always)]
    fn run_on(&self, loops: &[Loop], output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>, dsp: bool) -> Option<()> {
        let steps = loops.last().map_or([0, 0], |inner| [inner.a, inner.b]);
        if steps[0] == 0 && steps[1] != 0 {
            // A product does not mind the order.
            let mut turned = heapless::Vec::<Loop, MAX_LOOPS>::new();
            for l in loops {
                let Loop { count, a, b } = *l;
                turned.push(Loop { count, a: b, b: a }).ok()?;
            }
            let [a_zero, b_zero] = self.zeros;
            let this = Self {
                zeros: [b_zero, a_zero],
                ..*self
            };
            return this.in_order(&turned, output, (b, a), [steps[1], 0], dsp);
        }
        self.in_order(loops, output, (a, b), steps, dsp)
    }

    #[inline(never)]
    fn in_order(
        &self,
        loops: &[Loop],
        output: Dst<'_, i8>,
        (a, b): (Src<'_, i8>, Src<'_, i8>),
        steps: [u32; 2],
        dsp: bool,
    ) -> Option<()> {
        // The output may alias anything, for all that a compiler knows: copies of the fields stay in registers.
        let Self { zeros, rescale, .. } = *self;
        #[cfg(kernel_isa = "mve")]
        {
            let vector = self.vector.with_zeros(zeros);
            match steps {
                [1, 1] => {
                    // SAFETY: `walk` calls the closure with lines inside the operands; neighbours in both (steps 1).
                    return walk(loops, output, a, b, |line| unsafe {
                        mve::products_s8(line.a, line.b, line.output, line.count, &vector);
                    });
                }
                [1, 0] => {
                    // SAFETY: `walk` calls the closure with lines inside the operands; a line has at least one element of `b`.
                    return walk(loops, output, a, b, |line| unsafe {
                        let vector = vector.by(i32::from(line.b.read()));
                        mve::scaled_s8(line.a, line.output, line.count, &vector);
                    });
                }
                _ => {}
            }
        }
        match steps {
            // SAFETY: `walk` calls the closure with lines inside the operands; neighbours in both (steps 1).
            [1, 1] if dsp => walk(loops, output, a, b, |line| unsafe {
                fours::<false>(line, zeros, rescale);
            }),
            // SAFETY: `walk` calls the closure with lines inside the operands; neighbours in `a` (step 1), a single element in `b` (step 0).
            [1, 0] if dsp => walk(loops, output, a, b, |line| unsafe {
                fours::<true>(line, zeros, rescale);
            }),
            _ => walk(loops, output, a, b, |line| {
                line.straight(|a, b| of(a, b, zeros, rescale))
            }),
        }
    }
}

#[inline(always)]
fn of(a: i8, b: i8, [zero_a, zero_b]: [i8; 2], rescale: Rescale) -> i8 {
    let [a, b] = [(a, zero_a), (b, zero_b)].map(|(x, zero)| i32::from(x) - i32::from(zero));
    rescale.apply(a * b).clamp(-128, 127) as i8
}

/// Four products at a time. `CONSTANT`: the second operand is a single element.
///
/// # Safety
/// 1. The line's elements lie inside the operands; `b` has at least one.
/// 2. The elements of `a` are neighbours; so are those of `b`, unless `CONSTANT`.
#[inline(always)]
unsafe fn fours<const CONSTANT: bool>(line: Line<i8, i8, i8>, zeros: [i8; 2], rescale: Rescale) {
    let [zero_a, zero_b] = zeros.map(|zero| {
        let zero = -i32::from(zero);
        halves(zero, zero)
    });
    let twice = |x: u32| sadd16(x, x);
    // SAFETY: `line.b` has at least one element (fn docs, point 1).
    let factor = unsafe { i32::from(line.b.read()) } - i32::from(zeros[1]);
    let factor = twice(halves(factor, factor));
    let Line {
        output: mut y,
        mut a,
        mut b,
        count,
        ..
    } = line;
    let narrow = |twice: i32| rescale.of_twice(twice).clamp(-128, 127) as i8;
    for _ in 0..count / 4 {
        // SAFETY: `count / 4 * 4 <= count`: four elements of `a` and the output, and of `b` unless `CONSTANT`, remain (fn docs). The accesses are unaligned.
        unsafe {
            let x = u32::from_le(a.cast::<u32>().read_unaligned());
            let w = if CONSTANT {
                0
            } else {
                u32::from_le(b.cast::<u32>().read_unaligned())
            };
            // The even ones and then the odd ones: fewer registers.
            let even = if CONSTANT { factor } else { twice(sxtab16(zero_b, w)) };
            let x_even = sxtab16(zero_a, x);
            y.write(narrow(smulbb(x_even, even)));
            y.wrapping_add(2).write(narrow(smultt(x_even, even)));
            let odd = if CONSTANT {
                factor
            } else {
                twice(sxtab16_ror8(zero_b, w))
            };
            let x_odd = sxtab16_ror8(zero_a, x);
            y.wrapping_add(1).write(narrow(smulbb(x_odd, odd)));
            y.wrapping_add(3).write(narrow(smultt(x_odd, odd)));
        }
        a = a.wrapping_add(4);
        if !CONSTANT {
            b = b.wrapping_add(4);
        }
        y = y.wrapping_add(4);
    }
    for i in 0..count % 4 {
        // SAFETY: `i < count % 4`, the elements that remain of the line (point 1); of `b` the same, or its single element.
        unsafe {
            let w = if CONSTANT { b.read() } else { b.wrapping_add(i).read() };
            y.wrapping_add(i).write(of(a.wrapping_add(i).read(), w, zeros, rescale));
        }
    }
}

/// `clamp(M(a * b) + zero)` of int16 with the zero points 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProductS16 {
    rescale: Rescale,
    limits: [i32; 2],
    #[cfg(kernel_isa = "mve")]
    vector: mve::MulArgs,
}

/// All of int16.
const FULL: [i32; 2] = [-32768, 32767];

impl ProductS16 {
    /// `None` where an operand has a zero point, or the multiplier no short form.
    pub(crate) fn new(multiplier: Multiplier, zeros: [i32; 3], limits: [i32; 2]) -> Option<Self> {
        let [0, 0, zero] = zeros else {
            return None;
        };
        Some(Self {
            rescale: Rescale::new(multiplier, 1 << 30, zero)?,
            limits,
            #[cfg(kernel_isa = "mve")]
            vector: mve::MulArgs::new(multiplier, zeros, limits),
        })
    }

    /// Writes the products of a line.
    #[inline(always)]
    pub(crate) fn line(&self, line: Line<i16, i16, i16>) {
        // The output may alias anything, for all that a compiler knows: copies of the fields stay in registers.
        let Self { rescale, limits, .. } = *self;
        let line = if line.steps[0] == 0 { line.swapped() } else { line };
        #[cfg(kernel_isa = "mve")]
        match line.steps {
            // SAFETY: `walk` makes lines inside the operands alone; neighbours in both (steps 1).
            [1, 1] => return unsafe { mve::products_s16(line.a, line.b, line.output, line.count, &self.vector) },
            [1, 0] => {
                // SAFETY: `walk` makes lines inside the operands alone; neighbours in `a` (step 1), and at least one element of `b`.
                return unsafe {
                    let vector = self.vector.by(i32::from(line.b.read()));
                    mve::scaled_s16(line.a, line.output, line.count, &vector)
                };
            }
            _ => {}
        }
        // Twice 2^30 has more than 32 bits, less twice of it not.
        let of = |a: i16, b: i16| {
            let minus = -(i32::from(a) * i32::from(b));
            rescale.of_minus_twice(minus << 1)
        };
        if limits == FULL {
            line.straight(|a, b| of(a, b).clamp(-32768, 32767) as i16);
        } else {
            line.each(|a, b| within(limits, of(a, b)));
        }
    }
}

/// `clamp(M(A(a * 2^15) ± B(b * 2^15)) + zero)` of int16 with the zero points 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SumS16 {
    terms: Terms,
    subtract: bool,
    rescale: Rescale,
    limits: [i32; 2],
    #[cfg(kernel_isa = "mve")]
    vector: mve::AddS16Args,
}

/// One of the terms has the factor 1/2 exactly.
#[derive(Debug, Clone, Copy)]
enum Terms {
    Halves,
    HalfAnd(Term),
    AndHalf(Term),
}

/// One half.
pub(in crate::kernels) const HALF: Multiplier = Multiplier {
    mantissa: 1 << 30,
    shift: 0,
};

impl SumS16 {
    /// `None` where something has a zero point, or the multipliers are not those of a quantised sum.
    pub(crate) fn new(
        multipliers: [Multiplier; 3],
        zeros: [i32; 3],
        shift: u8,
        subtract: bool,
        limits: [i32; 2],
    ) -> Option<Self> {
        let [a, b, multiplier] = multipliers;
        let [0, 0, zero] = zeros else {
            return None;
        };
        if shift != 15 {
            return None;
        }
        let terms = if a == HALF && b == HALF {
            Terms::Halves
        } else if a == HALF {
            Terms::HalfAnd(Term::new(b)?)
        } else if b == HALF {
            Terms::AndHalf(Term::new(a)?)
        } else {
            return None;
        };
        Some(Self {
            terms,
            subtract,
            rescale: Rescale::new(multiplier, 1 << 30, zero)?,
            limits,
            #[cfg(kernel_isa = "mve")]
            vector: mve::AddS16Args::new(multipliers, zero, limits),
        })
    }

    /// Writes the sums of a line.
    #[inline(always)]
    pub(crate) fn line(&self, line: Line<i16, i16, i16>) {
        #[cfg(kernel_isa = "mve")]
        if line.steps == [1, 1] {
            let f = if self.subtract {
                mve::differences_s16
            } else {
                mve::sums_s16
            };
            // SAFETY: `walk` makes lines inside the operands alone; neighbours in both (steps 1).
            return unsafe { f(line.a, line.b, line.output, line.count, &self.vector) };
        }
        let half = |x: i16| i32::from(x) << 14;
        match (self.terms, self.subtract) {
            (Terms::HalfAnd(b), false) => self.each(line, |x, y| half(x) + b.apply(y.into())),
            // The sum does not mind the order.
            (Terms::AndHalf(a), false) => self.each(line.swapped(), |x, y| half(x) + a.apply(y.into())),
            (Terms::HalfAnd(b), true) => self.each(line, |x, y| half(x) - b.apply(y.into())),
            (Terms::AndHalf(a), true) => self.each(line, |x, y| a.apply(x.into()) - half(y)),
            (Terms::Halves, false) => self.each(line, |x, y| half(x) + half(y)),
            (Terms::Halves, true) => self.each(line, |x, y| half(x) - half(y)),
        }
    }

    #[inline(always)]
    fn each(&self, line: Line<i16, i16, i16>, sum: impl Fn(i16, i16) -> i32) {
        let Self { rescale, limits, .. } = *self;
        if limits == FULL {
            line.straight(|a, b| rescale.apply(sum(a, b)).clamp(-32768, 32767) as i16);
        } else {
            line.each(|a, b| within(limits, rescale.apply(sum(a, b))));
        }
    }
}

/// Not `clamp`, which panics where it does not see that the limits are in order.
#[inline(always)]
fn within([low, high]: [i32; 2], x: i32) -> i16 {
    x.max(low).min(high) as i16
}

#[cfg(test)]
pub(in crate::kernels) mod tests {
    extern crate std;
    use core::cell::Cell;
    use std::vec::Vec;

    use super::*;
    use crate::cells::Element;
    use proptest::prelude::*;

    pub(in crate::kernels) fn multiplier() -> impl Strategy<Value = Multiplier> {
        (1 << 30..=i32::MAX, -20_i8..2).prop_map(|(mantissa, shift)| Multiplier { mantissa, shift })
    }

    /// Output of `line` for three lines of `count` elements of `a` and `b` with these steps.
    pub(in crate::kernels) fn written<T: Element + Default>(
        a: &[T],
        b: &[T],
        count: u32,
        steps: [u32; 2],
        run: impl Fn(&[Loop], Dst<'_, T>, Src<'_, T>, Src<'_, T>) -> Option<()>,
    ) -> Vec<T> {
        let memory: Vec<Cell<u64>> = std::vec![Cell::new(0); 64];
        // SAFETY: 64 words of eight bytes are 512 cells of a byte, aligned for any element and borrowed as long as the view.
        let bytes = unsafe { core::slice::from_raw_parts(memory.as_ptr().cast::<Cell<u8>>(), 512) };
        let output = Dst::<T>::from_cells(&bytes[..3 * count as usize * size_of::<T>()]).unwrap();
        let [a_step, b_step] = steps;
        let loops = [
            Loop {
                count: 3,
                a: a_step * count,
                b: 3 - b_step,
            },
            Loop {
                count,
                a: a_step,
                b: b_step,
            },
        ];
        run(&loops, output, Src::from_slice(a), Src::from_slice(b)).unwrap();
        output.cells().iter().map(Cell::get).collect()
    }

    pub(in crate::kernels) fn expected<T: Copy>(
        a: &[T],
        b: &[T],
        count: u32,
        [a_step, b_step]: [u32; 2],
        f: impl Fn(T, T) -> i32,
    ) -> Vec<i32> {
        let places =
            (0..3).flat_map(|i| (0..count).map(move |k| (a_step * (i * count + k), (3 - b_step) * i + b_step * k)));
        places.map(|(x, y)| f(a[x as usize], b[y as usize])).collect()
    }

    pub(in crate::kernels) const STEPS: [[u32; 2]; 5] = [[1, 1], [1, 0], [0, 1], [0, 0], [2, 1]];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 4))]

        #[test]
        fn products_of_int8(
            a in prop::collection::vec(any::<i8>(), 240), b in prop::collection::vec(any::<i8>(), 60), count in 1_u32..40,
            multiplier in multiplier(), zeros: [i8; 3],
        ) {
            let zeros = zeros.map(i32::from);
            if let Some(product) = ProductS8::new(multiplier, zeros) {
                for steps in STEPS {
                    let expected = expected(&a, &b, count, steps, |a, b| {
                        let product = (i32::from(a) - zeros[0]) * (i32::from(b) - zeros[1]);
                        (multiplier.apply(product) + zeros[2]).clamp(-128, 127)
                    });
                    for dsp in [false, true] {
                        let found = written(&a, &b, count, steps, |loops, y, a, b| product.run_on(loops, y, a, b, dsp));
                        prop_assert!(found.into_iter().map(i32::from).eq(expected.iter().copied()), "{:?}", steps);
                    }
                }
            }
        }

        #[test]
        fn products_and_sums_of_int16(
            a in prop::collection::vec(any::<i16>(), 240), b in prop::collection::vec(any::<i16>(), 60), count in 1_u32..40,
            multipliers in [multiplier(), multiplier()],
            zero: i16, half in 0..3_u8, ends: bool, low in -32768..0, full: bool,
        ) {
            let limits = if full { FULL } else { [low, 1000] };
            let extreme = |x: &i16| if ends { (x >> 15) ^ i16::MIN } else { *x };
            let (a, b): (Vec<i16>, Vec<i16>) = (a.iter().map(extreme).collect(), b.iter().map(extreme).collect());
            let [other, result] = multipliers;
            let other = Multiplier { shift: other.shift.min(-1), ..other };
            let (first, second) = [(HALF, other), (other, HALF), (HALF, HALF)][half as usize];
            let zero = i32::from(zero);
            let narrow = |x: i32| i32::from(x.max(limits[0]).min(limits[1]) as i16);
            for steps in STEPS {
                if let Some(product) = ProductS16::new(result, [0, 0, zero], limits) {
                    let expected = expected(&a, &b, count, steps, |a, b| narrow(result.apply(i32::from(a) * i32::from(b)) + zero));
                    let found = written(&a, &b, count, steps, |loops, y, a, b| walk(loops, y, a, b, |line| product.line(line)));
                    prop_assert!(found.into_iter().map(i32::from).eq(expected), "{:?}", steps);
                }
                for subtract in [false, true] {
                    let scaled = |x: i16, m: Multiplier| m.apply(i32::from(x) << 15);
                    let sign = if subtract { -1 } else { 1 };
                    if let Some(sum) = SumS16::new([first, second, result], [0, 0, zero], 15, subtract, limits) {
                        let expected = expected(&a, &b, count, steps, |a, b| narrow(result.apply(scaled(a, first) + sign * scaled(b, second)) + zero));
                        let found = written(&a, &b, count, steps, |loops, y, a, b| walk(loops, y, a, b, |line| sum.line(line)));
                        prop_assert!(found.into_iter().map(i32::from).eq(expected), "{:?}", steps);
                    } else {
                        prop_assert!(result.shift >= 0 || i64::from(zero.abs()) << -result.shift > 1 << 29);
                    }
                }
            }
        }
    }
}
