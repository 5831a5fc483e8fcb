//! The Fourier transform of real samples: [`crate::ops::fft`]. Of f32 it is the sum over all samples, in f64; of integers the transform of each part of the
//! samples first, then the stage that joins the parts, as the plan says: what is rounded is the operator's meaning.

use super::{at, constant, read, written};
use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
use crate::ops::fft::{FftPlan, SignalFft, leading_factors, stage_factors};
use crate::tensor::DType;

pub(crate) fn any(op: &SignalFft, mem: &Mem<'_>) -> Option<()> {
    match op.dtype {
        DType::F32 => floats(op, mem),
        DType::I16 => fixed::<i16>(op, mem),
        _ => fixed::<i32>(op, mem),
    }
}

fn floats(op: &SignalFft, mem: &Mem<'_>) -> Option<()> {
    let [from, to] = op.row().map(|elements| elements as usize);
    let (rows, length) = (op.rows as usize, op.length as usize);
    let input = read::<f32>(mem, op.input, rows * from)?;
    let output = written::<f32>(mem, op.output, rows * to)?;
    let angle = |k: usize, t: usize| 2.0 * core::f64::consts::PI * (k * t % length) as f64 / length as f64;
    for row in 0..rows {
        let x = |i: usize| input.get(at([rows, from], [row, i])).map(f64::from);
        if op.inverse {
            for t in 0..length {
                let sign = if t % 2 == 0 { 1.0 } else { -1.0 };
                // The ends are real; the bins beyond the middle are the others' mirror image.
                let mut sum = x(0)? + sign * x(length)?;
                for k in 1..length / 2 {
                    let (re, im) = (x(2 * k)?, x(2 * k + 1)?);
                    sum += 2.0 * (re * libm::cos(angle(k, t)) - im * libm::sin(angle(k, t)));
                }
                output.set(at([rows, to], [row, t]), (sum / length as f64) as f32)?;
            }
        } else {
            for k in 0..=length / 2 {
                let (mut re, mut im) = (0.0, 0.0);
                for t in 0..from {
                    re += x(t)? * libm::cos(angle(k, t));
                    im -= x(t)? * libm::sin(angle(k, t));
                }
                output.set(at([rows, to], [row, 2 * k]), re as f32)?;
                output.set(at([rows, to], [row, 2 * k + 1]), im as f32)?;
            }
        }
    }
    Some(())
}

/// A complex number, of parts that a type of fewer bits holds.
type Complex = [i64; 2];

/// A part.
trait Part: Element + Into<i64> {
    const BITS: u32;

    /// The low bits.
    fn low(value: i64) -> Self;

    /// Half of a sum or difference before its bits are cut.
    fn half(value: i64) -> i64;
}

impl Part for i16 {
    const BITS: u32 = 16;

    fn low(value: i64) -> i16 {
        value as i16
    }

    fn half(value: i64) -> i64 {
        value >> 1
    }
}

impl Part for i32 {
    const BITS: u32 = 32;

    fn low(value: i64) -> i32 {
        value as i32
    }

    fn half(value: i64) -> i64 {
        // Its sums are cut before.
        cut::<i32>(value) >> 1
    }
}

fn cut<T: Part>(value: i64) -> i64 {
    T::low(value).into()
}

/// A product without its fraction.
fn rounded<T: Part>(product: i64) -> i64 {
    cut::<T>(product.wrapping_add(1 << (T::BITS - 2)) >> (T::BITS - 1))
}

fn plus<T: Part>([a, b]: Complex, [c, d]: Complex) -> Complex {
    [cut::<T>(a + c), cut::<T>(b + d)]
}

fn minus<T: Part>([a, b]: Complex, [c, d]: Complex) -> Complex {
    [cut::<T>(a - c), cut::<T>(b - d)]
}

fn times<T: Part>([a, b]: Complex, [c, d]: Complex) -> Complex {
    [
        rounded::<T>((a * c).wrapping_sub(b * d)),
        rounded::<T>((a * d).wrapping_add(b * c)),
    ]
}

fn scaled<T: Part>(x: Complex, by: i64) -> Complex {
    x.map(|part| rounded::<T>(part * by))
}

fn divided<T: Part>(x: Complex, radix: i64) -> Complex {
    scaled::<T>(x, ((1_i64 << (T::BITS - 1)) - 1) / radix)
}

fn conjugate<T: Part>([re, im]: Complex) -> Complex {
    [re, cut::<T>(-im)]
}

/// `i * x`
fn turned<T: Part>([re, im]: Complex) -> Complex {
    [cut::<T>(-im), re]
}

/// A transform of complex samples.
struct Transform<'a, T> {
    plan: &'a FftPlan,
    /// Factors of all stages, real and imaginary part.
    factors: &'a [T],
    inverse: bool,
    /// The results.
    points: Dst<'a, T>,
}

impl<T: Part> Transform<'_, T> {
    fn point(&self, at: usize) -> Option<Complex> {
        let points = self.points.as_src();
        Some([points.get(2 * at)?.into(), points.get(2 * at + 1)?.into()])
    }

    fn set(&self, at: usize, [re, im]: Complex) -> Option<()> {
        self.points.set(2 * at, T::low(re))?;
        self.points.set(2 * at + 1, T::low(im))
    }

    fn factor(&self, at: usize) -> Option<Complex> {
        Some([
            (*self.factors.get(2 * at)?).into(),
            (*self.factors.get(2 * at + 1)?).into(),
        ])
    }

    /// The transform of the samples `start`, `start + stride`, … by the stages from `stage` on, to `len` points from `first` on.
    fn run(
        &self,
        stage: usize,
        [first, len]: [usize; 2],
        [start, stride]: [usize; 2],
        sample: &dyn Fn(usize) -> Option<Complex>,
    ) -> Option<()> {
        let Some(&radix) = self.plan.radices().get(stage) else {
            return self.set(first, sample(start)?);
        };
        let parts = usize::from(radix);
        let m = len.checked_div(parts)?;
        for part in 0..parts {
            let from = [start + part * stride, stride * parts];
            self.run(stage + 1, [first + part * m, m], from, sample)?;
        }
        // Stages of shorter transforms have their factors before.
        let (mut before, mut shorter) = (0, 1);
        for &radix in self.plan.radices().get(stage + 1..)?.iter().rev() {
            before += stage_factors(radix, shorter) as usize;
            shorter *= u32::from(radix);
        }
        let own = before + leading_factors(radix) as usize;
        for u in 0..m {
            let mut x = [[0; 2]; 5];
            for (part, x) in x.iter_mut().enumerate().take(parts) {
                *x = divided::<T>(self.point(first + part * m + u)?, radix.into());
                if part > 0 {
                    *x = times::<T>(*x, self.factor(own + u * (parts - 1) + part - 1)?);
                }
            }
            let joined = self.joined(radix, x, before)?;
            for (part, y) in joined.into_iter().enumerate().take(parts) {
                self.set(first + part * m + u, y)?;
            }
        }
        Some(())
    }

    /// The transform of as many numbers as the radix says.
    fn joined(&self, radix: u8, [x0, x1, x2, x3, x4]: [Complex; 5], leading: usize) -> Option<[Complex; 5]> {
        let none = [0; 2];
        Some(match radix {
            2 => [plus::<T>(x0, x1), minus::<T>(x0, x1), none, none, none],
            3 => {
                let [_, sine] = self.factor(leading)?;
                let sum = plus::<T>(x1, x2);
                let middle = minus::<T>(x0, sum.map(|part| part >> 1));
                let turn = turned::<T>(scaled::<T>(minus::<T>(x1, x2), sine));
                [
                    plus::<T>(x0, sum),
                    plus::<T>(middle, turn),
                    minus::<T>(middle, turn),
                    none,
                    none,
                ]
            }
            4 => {
                let (even, odd) = (plus::<T>(x0, x2), plus::<T>(x1, x3));
                let (rest, turn) = (minus::<T>(x0, x2), turned::<T>(minus::<T>(x1, x3)));
                let (low, high) = (minus::<T>(rest, turn), plus::<T>(rest, turn));
                let (second, fourth) = if self.inverse { (high, low) } else { (low, high) };
                [plus::<T>(even, odd), second, minus::<T>(even, odd), fourth, none]
            }
            _ => {
                let ([a_re, a_im], [b_re, b_im]) = (self.factor(leading)?, self.factor(leading + 1)?);
                let (outer, inner) = (plus::<T>(x1, x4), plus::<T>(x2, x3));
                let (outer_rest, inner_rest) = (minus::<T>(x1, x4), minus::<T>(x2, x3));
                let sum = |x: [Complex; 3]| plus::<T>(plus::<T>(x[0], x[1]), x[2]);
                let near = sum([x0, scaled::<T>(outer, a_re), scaled::<T>(inner, b_re)]);
                let far = sum([x0, scaled::<T>(outer, b_re), scaled::<T>(inner, a_re)]);
                // -i times both.
                let turned_back = |[re, im]: Complex| [im, cut::<T>(-re)];
                let near_turn = turned_back(plus::<T>(scaled::<T>(outer_rest, a_im), scaled::<T>(inner_rest, b_im)));
                let far_turn = turned_back(minus::<T>(scaled::<T>(inner_rest, a_im), scaled::<T>(outer_rest, b_im)));
                [
                    sum([x0, outer, inner]),
                    minus::<T>(near, near_turn),
                    plus::<T>(far, far_turn),
                    minus::<T>(far, far_turn),
                    plus::<T>(near, near_turn),
                ]
            }
        })
    }
}

fn fixed<T: Part>(op: &SignalFft, mem: &Mem<'_>) -> Option<()> {
    let plan = FftPlan::new(op.length)?;
    let [from, to] = op.row().map(|elements| elements as usize);
    let (rows, n) = (op.rows as usize, plan.n() as usize);
    let input = read::<T>(mem, op.input, rows * from)?;
    let output = written::<T>(mem, op.output, rows * to)?;
    let factors = constant::<T>(mem, op.twiddles, plan.factors() as usize * 2)?;
    for row in 0..rows {
        let transform = Transform {
            plan: &plan,
            factors,
            inverse: op.inverse,
            points: output.slice(row * to, to)?,
        };
        let x = input.slice(row * from, from)?;
        if op.inverse {
            transform.run(0, [0, n], [0, 1], &|k| sample_of_bins(&transform, x, k))?;
        } else {
            // Zeros follow the samples.
            let part = |i: usize| x.get(i).map_or(0, Into::into);
            transform.run(0, [0, n], [0, 1], &|k| Some([part(2 * k), part(2 * k + 1)]))?;
            bins(&transform)?;
        }
    }
    Some(())
}

/// Factor `k` of those that join the halves, from 1 on.
fn joining<T: Part>(transform: &Transform<'_, T>, k: usize) -> Option<Complex> {
    let behind = (transform.plan.factors() - transform.plan.n() / 2) as usize;
    transform.factor(behind + k.checked_sub(1)?)
}

/// The bins of real samples, of their transform as complex ones.
fn bins<T: Part>(transform: &Transform<'_, T>) -> Option<()> {
    let n = transform.plan.n() as usize;
    let [even, odd] = divided::<T>(transform.point(0)?, 2);
    transform.set(0, [cut::<T>(even + odd), 0])?;
    transform.set(n, [cut::<T>(even - odd), 0])?;
    for k in 1..=n / 2 {
        let x = divided::<T>(transform.point(k)?, 2);
        let mirrored = divided::<T>(conjugate::<T>(transform.point(n - k)?), 2);
        let [a, b] = plus::<T>(x, mirrored);
        let [c, d] = times::<T>(minus::<T>(x, mirrored), joining(transform, k)?);
        transform.set(k, [T::half(a + c), T::half(b + d)])?;
        transform.set(n - k, [T::half(a - c), T::half(d - b)])?;
    }
    Some(())
}

/// Complex sample `k` whose transform gives the samples of these bins.
fn sample_of_bins<T: Part>(transform: &Transform<'_, T>, bins: Src<'_, T>, k: usize) -> Option<Complex> {
    let n = transform.plan.n() as usize;
    let bin = |at: usize| Some([bins.get(2 * at)?.into(), bins.get(2 * at + 1)?.into()]);
    if k == 0 {
        let ([first, _], [last, _]): (Complex, Complex) = (bin(0)?, bin(n)?);
        return Some(divided::<T>([cut::<T>(first + last), cut::<T>(first - last)], 2));
    }
    let j = k.min(n - k);
    let x = divided::<T>(bin(j)?, 2);
    let mirrored = divided::<T>(conjugate::<T>(bin(n - j)?), 2);
    let even = plus::<T>(x, mirrored);
    let odd = times::<T>(minus::<T>(x, mirrored), joining(transform, j)?);
    Some(if k < n - k {
        plus::<T>(even, odd)
    } else {
        conjugate::<T>(minus::<T>(even, odd))
    })
}
