//! The Fourier transform of real samples, in stages of radix 2, 3, 4 and 5 over the output itself: the samples are written in the order in which the first
//! stage takes them.

use core::cell::Cell;
use core::marker::PhantomData;

use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::fft::{FftPlan, MAX_STAGES, SignalFft, leading_factors, stage_factors};
use crate::ops::size::size;
use crate::tensor::DType;

/// Of samples `T`.
#[derive(Debug)]
pub struct Fft<T>(PhantomData<T>);

/// A real or imaginary part.
pub trait Sample: Element + Default {
    /// Its type.
    const DTYPE: DType;
    /// The sum, modulo the width.
    fn plus(self, other: Self) -> Self;
    /// The difference, likewise.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// `a * b - c * d`, rounded once.
    fn difference(a: [Self; 2], b: [Self; 2]) -> Self;
    /// `a * b + c * d`, rounded once.
    fn sum(a: [Self; 2], b: [Self; 2]) -> Self;
    /// Its part in a stage of that radix.
    fn divided(self, radix: u8) -> Self;
    /// Half of it.
    fn half(self) -> Self;
    /// Half of the sum of both, of which nothing is lost but the last bit.
    fn mean(self, other: Self) -> Self;
    /// Half of the difference, likewise.
    fn half_difference(self, other: Self) -> Self;
    /// Divisor of the samples of an inverse transform of so many.
    fn normalised(self, length: u32) -> Self;
}

macro_rules! fixed {
    ($t:ty, $wide:ty, $dtype:expr, $mean:expr, $half_difference:expr) => {
        impl Sample for $t {
            const DTYPE: DType = $dtype;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                Self::rounded(<$wide>::from(self).wrapping_mul(other.into()))
            }

            #[inline(always)]
            fn difference([a, b]: [Self; 2], [c, d]: [Self; 2]) -> Self {
                let product = |x: Self, y: Self| <$wide>::from(x).wrapping_mul(y.into());
                Self::rounded(product(a, b).wrapping_sub(product(c, d)))
            }

            #[inline(always)]
            fn sum([a, b]: [Self; 2], [c, d]: [Self; 2]) -> Self {
                let product = |x: Self, y: Self| <$wide>::from(x).wrapping_mul(y.into());
                Self::rounded(product(a, b).wrapping_add(product(c, d)))
            }

            #[inline(always)]
            fn divided(self, radix: u8) -> Self {
                self.times(match radix {
                    2 => <$t>::MAX / 2,
                    3 => <$t>::MAX / 3,
                    4 => <$t>::MAX / 4,
                    _ => <$t>::MAX / 5,
                })
            }

            #[inline(always)]
            fn half(self) -> Self {
                self >> 1
            }

            #[inline(always)]
            fn mean(self, other: Self) -> Self {
                ($mean)(self, other)
            }

            #[inline(always)]
            fn half_difference(self, other: Self) -> Self {
                ($half_difference)(self, other)
            }

            #[inline(always)]
            fn normalised(self, _: u32) -> Self {
                self
            }
        }

        impl Rounded<$wide> for $t {
            #[inline(always)]
            fn rounded(product: $wide) -> Self {
                (product.wrapping_add(1 << (<$t>::BITS - 2)) >> (<$t>::BITS - 1)) as $t
            }
        }
    };
}

/// A product without its fractional bits, rounded.
trait Rounded<W> {
    fn rounded(product: W) -> Self;
}

fixed!(
    i16,
    i32,
    DType::I16,
    |a: i16, b: i16| ((i32::from(a) + i32::from(b)) >> 1) as i16,
    |a: i16, b: i16| ((i32::from(a) - i32::from(b)) >> 1) as i16
);
// There, sums of int32 are int32.
fixed!(
    i32,
    i64,
    DType::I32,
    |a: i32, b: i32| a.wrapping_add(b) >> 1,
    |a: i32, b: i32| a.wrapping_sub(b) >> 1
);

impl Sample for f32 {
    const DTYPE: DType = DType::F32;

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self - other
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self * other
    }

    #[inline(always)]
    fn difference([a, b]: [Self; 2], [c, d]: [Self; 2]) -> Self {
        a * b - c * d
    }

    #[inline(always)]
    fn sum([a, b]: [Self; 2], [c, d]: [Self; 2]) -> Self {
        a * b + c * d
    }

    #[inline(always)]
    fn divided(self, _: u8) -> Self {
        self
    }

    #[inline(always)]
    fn half(self) -> Self {
        self * 0.5
    }

    #[inline(always)]
    fn mean(self, other: Self) -> Self {
        (self + other) * 0.5
    }

    #[inline(always)]
    fn half_difference(self, other: Self) -> Self {
        (self - other) * 0.5
    }

    #[inline(always)]
    fn normalised(self, length: u32) -> Self {
        self / length as f32
    }
}

/// A complex number.
type Complex<T> = [T; 2];

/// One in the output.
type Point<T> = [Cell<T>; 2];

#[inline(always)]
fn get<T: Copy>(point: &Point<T>) -> Complex<T> {
    let [re, im] = point;
    [re.get(), im.get()]
}

#[inline(always)]
fn set<T>(point: &Point<T>, [x, y]: Complex<T>) {
    let [re, im] = point;
    re.set(x);
    im.set(y);
}

#[inline(always)]
fn divided<T: Sample>(x: Complex<T>, radix: u8) -> Complex<T> {
    x.map(|x| x.divided(radix))
}

#[inline(always)]
fn plus<T: Sample>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [a.plus(c), b.plus(d)]
}

#[inline(always)]
fn minus<T: Sample>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [a.minus(c), b.minus(d)]
}

#[inline(always)]
fn times<T: Sample>([a, b]: Complex<T>, [c, d]: Complex<T>) -> Complex<T> {
    [T::difference([a, c], [b, d]), T::sum([a, d], [b, c])]
}

#[inline(always)]
fn conjugate<T: Sample>([re, im]: Complex<T>) -> Complex<T> {
    [re, T::default().minus(im)]
}

/// `i * x`
#[inline(always)]
fn turned<T: Sample>([re, im]: Complex<T>) -> Complex<T> {
    [T::default().minus(im), re]
}

impl<T: Sample> Kernel for Fft<T> {
    type Op = SignalFft;

    fn supports(op: &SignalFft) -> bool {
        op.dtype == T::DTYPE
    }

    fn run(op: &SignalFft, mem: &Mem<'_>) -> Option<()> {
        let plan = FftPlan::new(op.length)?;
        let [from, to] = op.row();
        let input = mem.src::<T>(op.input, size(&[op.rows, from])?)?;
        let output = mem.dst::<T>(op.output, size(&[op.rows, to])?)?;
        let (factors, _) = mem
            .weights::<T>(op.twiddles, plan.factors().checked_mul(2)?)?
            .as_chunks::<2>();
        let joining = factors.len().checked_sub(plan.n() as usize / 2)?;
        let (stages, joining) = factors.split_at_checked(joining)?;
        for row in 0..op.rows as usize {
            let input = input.slice(row * from as usize, from as usize)?;
            let output = output.slice(row * to as usize, to as usize)?;
            if op.inverse {
                inverse(&plan, input, output, stages, joining)?;
            } else {
                forward(&plan, input, output, stages, joining)?;
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl<T: Sample + 'static> Candidate for Fft<T> {}

/// The bins of real samples: `output` has a pair more than there are complex samples.
fn forward<T: Sample>(
    plan: &FftPlan,
    input: Src<'_, T>,
    output: Dst<'_, T>,
    stages: &[Complex<T>],
    joining: &[Complex<T>],
) -> Option<()> {
    let n = plan.n() as usize;
    let (bins, _) = output.cells().as_chunks::<2>();
    let part = |i| input.get(i).unwrap_or_default();
    let points = bins.get(..n)?;
    transform(plan, points, stages, false, |k| Some([part(2 * k), part(2 * k + 1)]))?;
    let [even, odd] = divided(get(bins.first()?), 2);
    set(bins.first()?, [even.plus(odd), T::default()]);
    set(bins.get(n)?, [even.minus(odd), T::default()]);
    for (k, factor) in (1..).zip(joining) {
        let (low, high) = (bins.get(k)?, bins.get(n.checked_sub(k)?)?);
        let x = divided(get(low), 2);
        let mirrored = divided(conjugate(get(high)), 2);
        let (sum, rest) = (plus(x, mirrored), times(minus(x, mirrored), *factor));
        let ([a, b], [c, d]) = (sum, rest);
        set(low, [a.mean(c), b.mean(d)]);
        // In the middle, this one counts.
        set(high, [a.half_difference(c), d.half_difference(b)]);
    }
    Some(())
}

/// The samples of bins.
fn inverse<T: Sample>(
    plan: &FftPlan,
    input: Src<'_, T>,
    output: Dst<'_, T>,
    stages: &[Complex<T>],
    joining: &[Complex<T>],
) -> Option<()> {
    let n = plan.n() as usize;
    let (bins, _) = input.chunks::<2>();
    let (points, _) = output.cells().as_chunks::<2>();
    let sample = |k: usize| {
        if k == 0 {
            let ([first, _], [last, _]) = (bins.get(0)?, bins.get(n)?);
            return Some(divided([first.plus(last), first.minus(last)], 2));
        }
        let mirror = n.checked_sub(k)?;
        let j = k.min(mirror);
        let x = divided(bins.get(j)?, 2);
        let mirrored = divided(conjugate(bins.get(n - j)?), 2);
        let (even, odd) = (plus(x, mirrored), times(minus(x, mirrored), *joining.get(j - 1)?));
        Some(if k < mirror {
            plus(even, odd)
        } else {
            conjugate(minus(even, odd))
        })
    };
    transform(plan, points, stages, true, sample)?;
    for cell in output.cells() {
        cell.set(cell.get().normalised(2 * plan.n()));
    }
    Some(())
}

/// The transform of `sample(0..n)` to `points`.
fn transform<T: Sample>(
    plan: &FftPlan,
    points: &[Point<T>],
    stages: &[Complex<T>],
    inverse: bool,
    sample: impl Fn(usize) -> Option<Complex<T>>,
) -> Option<()> {
    reorder(plan, points, sample)?;
    let (mut m, mut factors) = (1usize, stages);
    for &radix in plan.radices().iter().rev() {
        let (own, rest) = factors.split_at_checked(stage_factors(radix, m as u32) as usize)?;
        let (leading, own) = own.split_at_checked(leading_factors(radix) as usize)?;
        let whole = m * usize::from(radix);
        let mut left = points;
        while let Some((block, behind)) = left.split_at_checked(whole) {
            match radix {
                2 => radix_2(block, m, own),
                3 => radix_3(block, m, leading, own),
                4 => radix_4(block, m, own, inverse),
                _ => radix_5(block, m, leading, own),
            }?;
            left = behind;
            if left.is_empty() {
                break;
            }
        }
        (m, factors) = (whole, rest);
    }
    Some(())
}

/// Writes the samples in the order in which the first stage takes them: that of their digits, the last radix's first.
fn reorder<T: Sample>(plan: &FftPlan, points: &[Point<T>], sample: impl Fn(usize) -> Option<Complex<T>>) -> Option<()> {
    /// A digit of a number of which the last digit counts the most.
    #[derive(Clone, Copy, Default)]
    struct Digit {
        radix: u8,
        value: u8,
        stride: usize,
    }
    let mut digits = [Digit::default(); MAX_STAGES];
    let mut stride = points.len();
    for (digit, &radix) in digits.iter_mut().zip(plan.radices().iter().rev()) {
        stride = stride.checked_div(usize::from(radix))?;
        *digit = Digit {
            radix,
            value: 0,
            stride,
        };
    }
    let mut from = 0usize;
    for point in points {
        set(point, sample(from)?);
        // The next number: digits that are full start anew.
        for digit in &mut digits {
            digit.value = digit.value.wrapping_add(1);
            from = from.wrapping_add(digit.stride);
            if digit.value < digit.radix {
                break;
            }
            from = from.wrapping_sub(digit.stride.wrapping_mul(digit.radix.into()));
            digit.value = 0;
        }
    }
    Some(())
}

fn radix_2<T: Sample>(block: &[Point<T>], m: usize, factors: &[Complex<T>]) -> Option<()> {
    let (low, high) = block.split_at_checked(m)?;
    for ((a, b), w) in low.iter().zip(high).zip(factors) {
        let x = divided(get(a), 2);
        let y = times(divided(get(b), 2), *w);
        set(b, minus(x, y));
        set(a, plus(x, y));
    }
    Some(())
}

fn radix_3<T: Sample>(block: &[Point<T>], m: usize, leading: &[Complex<T>], factors: &[Complex<T>]) -> Option<()> {
    let (first, rest) = block.split_at_checked(m)?;
    let (second, third) = rest.split_at_checked(m)?;
    let &[_, sine] = leading.first()?;
    let (factors, _) = factors.as_chunks::<2>();
    for (((a, b), c), [w1, w2]) in first.iter().zip(second).zip(third).zip(factors) {
        let x = divided(get(a), 3);
        let y = times(divided(get(b), 3), *w1);
        let z = times(divided(get(c), 3), *w2);
        let (sum, difference) = (plus(y, z), minus(y, z));
        let middle = minus(x, sum.map(T::half));
        let turn = turned(difference.map(|part| part.times(sine)));
        set(a, plus(x, sum));
        set(b, plus(middle, turn));
        set(c, minus(middle, turn));
    }
    Some(())
}

fn radix_4<T: Sample>(block: &[Point<T>], m: usize, factors: &[Complex<T>], inverse: bool) -> Option<()> {
    let (first, rest) = block.split_at_checked(m)?;
    let (second, rest) = rest.split_at_checked(m)?;
    let (third, fourth) = rest.split_at_checked(m)?;
    let (factors, _) = factors.as_chunks::<3>();
    let points = first.iter().zip(second).zip(third).zip(fourth);
    for ((((a, b), c), d), [w1, w2, w3]) in points.zip(factors) {
        let x0 = divided(get(a), 4);
        let x1 = times(divided(get(b), 4), *w1);
        let x2 = times(divided(get(c), 4), *w2);
        let x3 = times(divided(get(d), 4), *w3);
        let (even, odd) = (plus(x0, x2), plus(x1, x3));
        let rest = minus(x0, x2);
        let turn = turned(minus(x1, x3));
        set(a, plus(even, odd));
        set(c, minus(even, odd));
        let (forward, back) = if inverse { (d, b) } else { (b, d) };
        set(forward, minus(rest, turn));
        set(back, plus(rest, turn));
    }
    Some(())
}

fn radix_5<T: Sample>(block: &[Point<T>], m: usize, leading: &[Complex<T>], factors: &[Complex<T>]) -> Option<()> {
    let (first, rest) = block.split_at_checked(m)?;
    let (second, rest) = rest.split_at_checked(m)?;
    let (third, rest) = rest.split_at_checked(m)?;
    let (fourth, fifth) = rest.split_at_checked(m)?;
    let &[[ya_re, ya_im], [yb_re, yb_im]] = leading else {
        return None;
    };
    let (factors, _) = factors.as_chunks::<4>();
    let points = first.iter().zip(second).zip(third).zip(fourth).zip(fifth);
    for (((((a, b), c), d), e), [w1, w2, w3, w4]) in points.zip(factors) {
        let x0 = divided(get(a), 5);
        let x1 = times(divided(get(b), 5), *w1);
        let x2 = times(divided(get(c), 5), *w2);
        let x3 = times(divided(get(d), 5), *w3);
        let x4 = times(divided(get(e), 5), *w4);
        let (sum1, difference1) = (plus(x1, x4), minus(x1, x4));
        let (sum2, difference2) = (plus(x2, x3), minus(x2, x3));
        let scaled = |x: Complex<T>, by: T| x.map(|part| part.times(by));
        set(a, plus(x0, plus(sum1, sum2)));
        let near = plus(plus(x0, scaled(sum1, ya_re)), scaled(sum2, yb_re));
        // -i times the sum; the products are rounded before they change sign.
        let [re, im] = plus(scaled(difference1, ya_im), scaled(difference2, yb_im));
        let turn = [im, T::default().minus(re)];
        set(b, minus(near, turn));
        set(e, plus(near, turn));
        let far = plus(plus(x0, scaled(sum1, yb_re)), scaled(sum2, ya_re));
        let [re, im] = minus(scaled(difference2, ya_im), scaled(difference1, yb_im));
        let turn = [im, T::default().minus(re)];
        set(c, plus(far, turn));
        set(d, minus(far, turn));
    }
    Some(())
}
