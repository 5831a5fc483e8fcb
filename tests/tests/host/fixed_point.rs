//! The fixed-point functions against their published definitions (gemmlowp's `fixedpoint.h`, TensorFlow Lite's `common.h`), evaluated in exact
//! integers of 128 bits with every rounding written out. Bit for bit; constants are derived and not copied.

use arenite::quant::{
    Multiplier, dequantize, exp_on_negative_values, high_mul, high_mul_i16, inverse_sqrt, log_for_at_least_one,
    logistic, one_over_one_plus_x, quantize, requantize, rounding_shift_right, saturating_shift_left, tanh,
};
use arenite_tests::writers::Random;

const LOW: i128 = i32::MIN as i128;
const HIGH: i128 = i32::MAX as i128;

/// `real = raw / 2^(31 - bits)`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fixed {
    raw: i128,
    bits: u32,
}

/// A quotient rounded to nearest, ties away from zero.
fn nearest(dividend: i128, divisor: i128) -> i128 {
    let magnitude = (2 * dividend.abs() + divisor) / (2 * divisor);
    magnitude * dividend.signum()
}

/// A quotient rounded to nearest, ties up.
fn nearest_up(dividend: i128, divisor: i128) -> i128 {
    (2 * dividend + divisor).div_euclid(2 * divisor)
}

impl Fixed {
    fn new(raw: i32, bits: u32) -> Self {
        Self { raw: raw.into(), bits }
    }

    /// The nearest number, by f64, which has 22 bits more.
    fn of(real: f64, bits: u32) -> Self {
        let raw = (real * 2f64.powi(31 - bits as i32)).round() as i128;
        Self { raw, bits }
    }

    fn one(bits: u32) -> Self {
        Self {
            raw: if bits == 0 { HIGH } else { 1 << (31 - bits) },
            bits,
        }
    }

    /// In 32 bits, which the definitions take for granted.
    fn checked(self) -> Self {
        assert!((LOW..=HIGH).contains(&self.raw), "{self:?}");
        self
    }

    fn plus(self, other: Self) -> Self {
        assert_eq!(self.bits, other.bits);
        let raw = self.raw + other.raw;
        Self { raw, ..self }.checked()
    }

    fn minus(self, other: Self) -> Self {
        self.plus(Self {
            raw: -other.raw,
            ..other
        })
    }

    fn times(self, other: Self) -> Self {
        Self {
            raw: nearest_up(self.raw * other.raw, 1 << 31).min(HIGH),
            bits: self.bits + other.bits,
        }
    }

    /// As a number with other integer bits, saturated or rounded.
    fn rescaled(self, bits: u32) -> Self {
        let raw = if bits <= self.bits {
            (self.raw << (self.bits - bits)).clamp(LOW, HIGH)
        } else {
            nearest(self.raw, 1 << (bits - self.bits))
        };
        Self { raw, bits }
    }

    /// Half of it, rounded.
    fn half(self) -> Self {
        Self {
            raw: nearest(self.raw, 2),
            ..self
        }
    }

    fn half_sum(self, other: Self) -> Self {
        Self {
            raw: self.raw + other.raw,
            ..self
        }
        .half()
    }
}

fn exp(a: Fixed) -> i128 {
    if a.raw == 0 {
        return HIGH;
    }
    let quarter = 1i128 << (29 - a.bits);
    let remainder = Fixed {
        raw: a.raw.rem_euclid(quarter) - quarter,
        bits: a.bits,
    };
    // Taylor series around -1/8.
    let x = remainder.rescaled(0).plus(Fixed::of(0.125, 0));
    let (x2, x3) = (x.times(x), x.times(x).times(x));
    let x4_over_4 = x2.times(x2).half_quarter();
    let tail = x4_over_4.plus(x3).times(Fixed::of(1.0 / 3.0, 0)).plus(x2).half();
    let centre = Fixed::of((-0.125f64).exp(), 0);
    let mut result = centre.plus(centre.times(x.plus(tail)));
    let quarters = (remainder.raw - a.raw) / quarter;
    for bit in 0..a.bits + 2 {
        if quarters >> bit & 1 == 1 {
            result = result.times(Fixed::of((-(2f64.powi(bit as i32 - 2))).exp(), 0));
        }
    }
    result.raw
}

impl Fixed {
    fn half_quarter(self) -> Self {
        Self {
            raw: nearest(self.raw, 4),
            ..self
        }
    }
}

/// 2 / (1 + a), by Newton's steps from the line 48/17 - 32/17 d.
fn inverse_of_half_sum(a: Fixed) -> Fixed {
    let half = a.half_sum(Fixed::one(0));
    let mut x = Fixed::of(48.0 / 17.0, 2).plus(half.times(Fixed::of(-32.0 / 17.0, 2)));
    for _ in 0..3 {
        let error = Fixed::one(2).minus(half.times(x));
        x = x.plus(x.times(error).rescaled(2));
    }
    x
}

fn inverse(a: Fixed) -> Fixed {
    Fixed {
        bits: 1,
        ..inverse_of_half_sum(a)
    }
    .rescaled(0)
}

fn sigmoid(a: Fixed) -> i128 {
    let magnitude = Fixed { raw: -a.raw.abs(), ..a };
    let of_abs = inverse(Fixed {
        raw: exp(magnitude),
        bits: 0,
    });
    match a.raw {
        0 => 1 << 30,
        1.. => of_abs.raw,
        _ => HIGH - of_abs.raw,
    }
}

fn hyperbolic(a: Fixed) -> i128 {
    let twice = Fixed {
        raw: -a.raw.abs(),
        bits: a.bits + 1,
    };
    let e = Fixed {
        raw: exp(twice),
        bits: 0,
    };
    let of_abs = inverse_of_half_sum(e).minus(Fixed::one(2)).rescaled(0);
    of_abs.raw * a.raw.signum()
}

/// The natural logarithm of a Q12 number from 1 on, as Q5.
fn logarithm(x: i32) -> i128 {
    let root = |power: f64| 2f64.powf(power);
    let leading = |raw: i128| (raw as u32).leading_zeros();
    let accumulated = |whole: i128| (whole << 25).clamp(LOW, HIGH);
    let quarter = Fixed::of(0.25, 0).rescaled(6).raw;
    let z = Fixed::new(x, 0);
    let shifted = |z: Fixed, by: u32| Fixed {
        raw: (z.raw << by).clamp(LOW, HIGH),
        ..z
    };
    let sqrt_half = Fixed::of(root(-0.5), 0);
    let headroom_a = leading(z.raw);
    let r_a = shifted(shifted(z, headroom_a - 1).times(sqrt_half), 1);
    let power_a = (accumulated(12 - i128::from(headroom_a)) + quarter).clamp(LOW, HIGH);
    let headroom_b = leading(z.times(sqrt_half).raw) - 1;
    let r_b = shifted(z, headroom_b);
    let power_b = (accumulated(12 - i128::from(headroom_b)) - quarter).clamp(LOW, HIGH);
    let r = if r_a.raw < r_b.raw { r_a } else { r_b };
    let power = Fixed {
        raw: power_a.max(power_b),
        bits: 6,
    };
    let centre = Fixed::of(root(-0.25), 0);
    let p = r.half_sum(centre);
    let q = r.minus(centre);
    let q = q.plus(q);
    let squared = q.times(q);
    let numerator = q
        .times(r)
        .plus(q.times(squared).times(Fixed::of(11.0 / 240.0 * root(0.25), 0)));
    let inner = Fixed::of(2.0 / root(0.25) - root(0.25), 0)
        .plus(q)
        .plus(Fixed::of(root(0.25) / 20.0, 0).times(squared));
    let denominator = p.times(inner).plus(Fixed::of(root(0.25) / 4.0, 0).times(q));
    let sum = power
        .times(Fixed::of(2f64.ln(), 0))
        .plus(numerator.rescaled(6).times(inverse(denominator)));
    sum.rescaled(5).raw
}

/// The mantissa and the left shift of 1 / sqrt(x), by Newton's steps from 1.
fn root(x: i32) -> (i128, i32) {
    if x <= 1 {
        return (HIGH, 0);
    }
    let (mut input, mut shift) = (i128::from(x), 11);
    while input >= 1 << 29 {
        (input, shift) = (input / 4, shift + 1);
    }
    let pairs = ((input as u32).leading_zeros() - 1) / 2 - 1;
    input <<= 2 * pairs;
    shift -= pairs as i32;
    let input = Fixed {
        raw: input >> 1,
        bits: 3,
    };
    let mut y = Fixed::one(3);
    for _ in 0..5 {
        let cube = y.times(y).times(y).rescaled(3);
        let next = Fixed::of(1.5, 3).times(y).minus(input.half().times(cube));
        y = next.rescaled(3);
    }
    let mantissa = y.times(Fixed::of(0.5f64.sqrt(), 0)).raw;
    if shift < 0 {
        (mantissa << -shift, 0)
    } else {
        (mantissa, -shift)
    }
}

/// Every power of two with its neighbours, both signs, the ends, and many others, dense near nothing and near the ends.
fn numbers(count: usize) -> Vec<i32> {
    let mut random = Random::new(3);
    let powers = (0..32).flat_map(|bit| [-2i64, -1, 0, 1, 2].map(|by| (1i64 << bit) + by));
    let mut numbers: Vec<i32> = powers
        .flat_map(|n| [n, -n])
        .filter_map(|n| i32::try_from(n).ok())
        .collect();
    numbers.extend([i32::MIN, i32::MIN + 1, i32::MAX, 0]);
    numbers.extend((0..count).map(|_| {
        let bits = (random.below(1 << 16) << 16 | random.below(1 << 16)) as u32 as i32;
        bits >> random.below(31)
    }));
    numbers
}

#[test]
fn products_and_shifts_are_exact() {
    let numbers = numbers(3000);
    for (index, &a) in numbers.iter().enumerate() {
        let b = numbers[(index * 7919 + 13) % numbers.len()];
        for b in [b, a, i32::MIN, i32::MAX] {
            let exact = Fixed::new(a, 0).times(Fixed::new(b, 0)).raw;
            assert_eq!(i128::from(high_mul(a, b)), exact, "{a} * {b}");
            let (a, b) = (a as i16, b as i16);
            let exact = nearest_up(i128::from(a) * i128::from(b), 1 << 15).min(i16::MAX.into());
            assert_eq!(i128::from(high_mul_i16(a, b)), exact, "{a} * {b} of int16");
        }
        for exponent in 0..=31 {
            let exact = nearest(a.into(), 1 << exponent);
            assert_eq!(
                i128::from(rounding_shift_right(a, exponent)),
                exact,
                "{a} / 2^{exponent}"
            );
            let exact = (i128::from(a) << exponent).clamp(LOW, HIGH);
            assert_eq!(
                i128::from(saturating_shift_left(a, exponent)),
                exact,
                "{a} * 2^{exponent}"
            );
        }
    }
}

#[test]
fn exponential_logistic_and_tanh_are_exact() {
    for a in numbers(60_000) {
        if a <= 0 {
            // The most negative number has its remainder and its quarters like any other.
            assert_eq!(
                i128::from(exp_on_negative_values::<5>(a)),
                exp(Fixed::new(a, 5)),
                "exp {a} of Q5"
            );
            assert_eq!(
                i128::from(exp_on_negative_values::<3>(a)),
                exp(Fixed::new(a, 3)),
                "exp {a} of Q3"
            );
            assert_eq!(
                i128::from(exp_on_negative_values::<0>(a)),
                exp(Fixed::new(a, 0)),
                "exp {a} of Q0"
            );
        }
        assert_eq!(i128::from(logistic::<4>(a)), sigmoid(Fixed::new(a, 4)), "logistic {a}");
        assert_eq!(i128::from(tanh(a)), hyperbolic(Fixed::new(a, 4)), "tanh {a}");
        if a >= 0 {
            assert_eq!(
                i128::from(one_over_one_plus_x(a)),
                inverse(Fixed::new(a, 0)).raw,
                "1 / (1 + {a})"
            );
        }
    }
}

#[test]
fn logarithm_and_root_are_exact() {
    for a in numbers(60_000) {
        if a >= 1 << 19 {
            assert_eq!(i128::from(log_for_at_least_one(a)), logarithm(a), "log {a}");
        }
        if a >= 0 {
            let (mantissa, shift) = inverse_sqrt(a);
            assert_eq!((i128::from(mantissa), shift), root(a), "1 / sqrt {a}");
        }
    }
}

/// A factor's mantissa and power of two, from the bits of the f64.
fn decomposed(real: f64) -> Option<(i128, i128)> {
    let bits = real.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i128 & 0x7FF, (bits & ((1 << 52) - 1)) as i128);
    if exponent == 0x7FF {
        return None;
    }
    if exponent == 0 {
        return Some((0, 0));
    }
    let sign = if bits >> 63 == 1 { -1 } else { 1 };
    let mantissa = nearest((1 << 52 | fraction) << 31, 1 << 53);
    let (mantissa, exponent) = if mantissa == 1 << 31 {
        (1 << 30, exponent - 1021)
    } else {
        (mantissa, exponent - 1022)
    };
    match exponent {
        32.. => None,
        -31..=31 => Some((sign * mantissa, exponent)),
        _ => Some((0, 0)),
    }
}

#[test]
fn multipliers_are_exact() {
    let mut random = Random::new(5);
    let numbers = numbers(40_000);
    for &x in &numbers {
        let bits = (random.below(1 << 31) as u64) << 32 | random.below(1 << 31) as u64;
        let exponent = 1023 + random.below(72) as u64 - 36;
        let mut reals = vec![f64::from_bits(
            bits & ((1 << 52) - 1) | exponent << 52 | (bits & 1) << 63,
        )];
        // Halves of the last bit, and a fraction that rounds up to one.
        reals.push(f64::from_bits(reals[0].to_bits() & !((1 << 22) - 1) | 1 << 21));
        reals.push(f64::from_bits(exponent << 52 | ((1 << 52) - 1)));
        for real in reals {
            let found = Multiplier::from_real(real).map(|m| (i128::from(m.mantissa), i128::from(m.shift)));
            assert_eq!(found, decomposed(real), "{real:e}");
            let Some((mantissa, shift)) = found else { continue };
            let multiplier = Multiplier {
                mantissa: mantissa as i32,
                shift: shift as i8,
            };
            // In 32 bits the left shift wraps, as it does in practice where the definition leaves it open.
            let shifted = ((i128::from(x) << shift.max(0)) as i32).into();
            let product = Fixed { raw: shifted, bits: 0 }.times(Fixed { raw: mantissa, bits: 0 });
            let exact = nearest(product.raw, 1 << (-shift).max(0));
            assert_eq!(i128::from(multiplier.apply(x)), exact, "{x} * {multiplier:?}");
            if shift <= 7 {
                let wide = i64::from(x) << 16 | i64::from(x as u16);
                let reduced = ((mantissa + (1 << 15)) >> 16).min(0x7FFF);
                let exact = nearest_up(i128::from(wide) * reduced, 1 << (15 - shift));
                assert_eq!(
                    multiplier.apply_wide(wide),
                    exact as i32,
                    "{wide} * {multiplier:?}, wide"
                );
            }
            let (zero_in, zero_out) = (random.below(256) as i32 - 128, random.below(256) as i32 - 128);
            let moved = x.wrapping_sub(zero_in);
            let exact = multiplier.apply(moved).wrapping_add(zero_out).clamp(-128, 127);
            assert_eq!(requantize(x, zero_in, multiplier, zero_out, -128, 127), exact);
        }
    }
}

/// A quotient of f32 numbers, rounded to f32 and then to the nearest integer, ties away from zero.
#[test]
fn stored_and_real_values_are_exact() {
    let mut random = Random::new(9);
    for x in numbers(20_000) {
        let scale = (1 + random.below(1 << 20)) as f32 / (1 << 24) as f32;
        let zero = random.below(256) as i32 - 128;
        let real = x as f32 * scale / 2.0;
        // The quotient of two f32 numbers in f64 rounds to f32 as the exact one does.
        let quotient = (f64::from(real) / f64::from(scale)) as f32;
        let whole = ((f64::from(quotient).abs() + 0.5).floor() * f64::from(quotient).signum()) as i128;
        let exact = (whole.clamp(LOW, HIGH) + i128::from(zero)).clamp(-128, 127);
        assert_eq!(
            i128::from(quantize(real, scale, zero, -128, 127)),
            exact,
            "{real} by {scale}"
        );
        let stored = x >> 8;
        let exact = (f64::from(scale) * f64::from(stored - zero)) as f32;
        assert_eq!(dequantize(stored, scale, zero).to_bits(), exact.to_bits());
    }
}
