//! Exponential, reciprocal, logistic, hyperbolic tangent, logarithm and inverse square root in 32-bit fixed point, after
//! gemmlowp's `fixedpoint.h` and TensorFlow Lite's `common.h`, bit for bit.
//!
//! `Qm` is a 32-bit number with `m` integer bits beside the sign: `real = raw / 2^(31 - m)`.

use super::rounding::{
    Multiplier, high_mul, high_mul_in_range, high_mul_of_positive, high_mul_of_short, rounding_shift_right,
    saturating_shift_left,
};

/// exp(a) as Q0 for `a <= 0` in Q`INTEGER_BITS` (at most 5). exp(0) is the largest Q0 number.
pub fn exp_on_negative_values<const INTEGER_BITS: u32>(a: i32) -> i32 {
    const { assert!(INTEGER_BITS <= 5) };
    /// exp(-2^k) as Q0 for k = -2, -1, … 4.
    const FACTORS: [i32; 7] = [1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242];

    let fractional_bits = 31 - INTEGER_BITS;
    let quarter = 1_i32 << (fractional_bits - 2);
    // a = remainder + a multiple of -1/4, with the remainder in [-1/4, 0).
    let remainder = (a & (quarter - 1)) - quarter;
    let quarters = remainder.wrapping_sub(a);
    // It fits: the remainder has that many bits less.
    let mut result = exp_above_minus_quarter(remainder << INTEGER_BITS);
    for (k, &factor) in FACTORS.iter().enumerate().take(INTEGER_BITS as usize + 2) {
        if quarters & (1 << (fractional_bits - 2 + k as u32)) != 0 {
            result = high_mul_of_positive(factor, result);
        }
    }
    if a == 0 { i32::MAX } else { result }
}

/// 1 / (1 + a) as Q0 for `a` in [0, 1) as Q0.
pub fn one_over_one_plus_x(a: i32) -> i32 {
    saturating_shift_left(inverse_of_half_sum(a), 1)
}

/// The reciprocal of `x` > 0, a number with `integer_digits` bits before the binary point: a Q0 mantissa in [1/2, 1] and the bits
/// that `x` has above one, so that `1 / x = mantissa * 2^-bits`.
pub fn reciprocal(x: i32, integer_digits: i32) -> (i32, i32) {
    let headroom = x.leading_zeros();
    let minus_one = (x as u32).wrapping_shl(headroom).wrapping_sub(1 << 31) as i32;
    (one_over_one_plus_x(minus_one), integer_digits - headroom as i32)
}

/// `multiplier * a / b`, by the reciprocal of b; what a divisor of 0 gives is defined, and means nothing. The reference shifts quotients that are next to
/// nothing by 32 places and more, which the C++ standard leaves open: here they are what Arm's shifts make of them, a step up or, below zero, down.
pub fn quotient(a: i32, b: i32, multiplier: Multiplier) -> i32 {
    let (a, b) = if b < 0 {
        (a.wrapping_neg(), b.wrapping_neg())
    } else {
        (a, b)
    };
    let (inverse, above_one) = reciprocal(b, 31);
    // The dividend is brought up to where its sign bit ends.
    let headroom = (if a < 0 { !a } else { a }).leading_zeros().wrapping_sub(1) as i32;
    let unscaled = high_mul(a.wrapping_shl(headroom as u32), inverse);
    let shift = i32::from(multiplier.shift)
        .wrapping_sub(above_one)
        .wrapping_sub(headroom);
    let quotient = high_mul(unscaled, multiplier.mantissa);
    match shift.min(0).unsigned_abs() {
        places @ 0..=31 => rounding_shift_right(quotient, places),
        _ if quotient < 0 => -1,
        _ => 1,
    }
}

/// 1 / (1 + exp(-a)) as Q0 for any `a` in Q`INTEGER_BITS`.
pub fn logistic<const INTEGER_BITS: u32>(a: i32) -> i32 {
    // The absolute value is had by negating, as in the reference: the most negative number stays itself.
    let negative = if a > 0 { a.wrapping_neg() } else { a };
    let of_abs = one_over_one_plus_x(exp_on_negative_values::<INTEGER_BITS>(negative));
    match a {
        0 => 1 << 30,
        1.. => of_abs,
        _ => i32::MAX.wrapping_sub(of_abs),
    }
}

/// tanh(a) as Q0 for any `a` in Q4.
pub fn tanh(a: i32) -> i32 {
    let negative = if a < 0 { a } else { a.wrapping_neg() };
    // Q4 read as Q5 is twice the value: exp(2a).
    let exp = exp_on_negative_values::<5>(negative);
    // (1 - e) / (1 + e) = 2 / (1 + e) - 1
    let of_abs = saturating_shift_left(inverse_of_half_sum(exp).wrapping_sub(ONE_Q2), 2);
    match a {
        0 => 0,
        1.. => of_abs,
        _ => of_abs.wrapping_neg(),
    }
}

/// ln(x) as Q5 for `x >= 1` in Q12: a Padé approximant around 2^(-1/4) after the exponent is split off. Smaller `x` are served down
/// to the symmetric end of the range.
pub fn log_for_at_least_one(x: i32) -> i32 {
    const INPUT_BITS: i32 = 12;
    const ACCUMULATOR_BITS: u32 = 6;
    const LN_2: i32 = 1488522236;
    const FOURTH_ROOT_HALF: i32 = 1805811301;
    const SQRT_HALF: i32 = 1518500250;
    const ALPHA_N: i32 = 117049297; // 11/240 * 2^(1/4)
    const ALPHA_D: i32 = 127690142; // 1/20 * 2^(1/4)
    const ALPHA_I: i32 = 1057819769; // 2^(3/4) - 2^(1/4)
    const ALPHA_F: i32 = 638450708; // 1/4 * 2^(1/4)
    const QUARTER: i32 = rounded_quarter(ACCUMULATOR_BITS);
    let exponent = |e: i32| saturating_shift_left(e, 31 - ACCUMULATOR_BITS);

    // The mantissa is taken from x or from x * sqrt(1/2), whichever lies nearer to the expansion point.
    let headroom_a = x.leading_zeros();
    let mantissa_a = high_mul(saturating_shift_left(x, headroom_a.saturating_sub(1)), SQRT_HALF);
    let mantissa_a = saturating_shift_left(mantissa_a, 1);
    let exponent_a = exponent(INPUT_BITS - headroom_a as i32).saturating_add(QUARTER);

    let headroom_b = high_mul(x, SQRT_HALF).leading_zeros().saturating_sub(1);
    let mantissa_b = saturating_shift_left(x, headroom_b);
    let exponent_b = exponent(INPUT_BITS - headroom_b as i32).saturating_sub(QUARTER);

    let r = mantissa_a.min(mantissa_b);
    let power = exponent_a.max(exponent_b);
    let p = rounding_half_sum(r, FOURTH_ROOT_HALF);
    let q = r.wrapping_sub(FOURTH_ROOT_HALF).wrapping_mul(2);
    let q_squared = high_mul(q, q);
    let numerator = high_mul(q, r).wrapping_add(high_mul(high_mul(q, q_squared), ALPHA_N));
    let inner = ALPHA_I.wrapping_add(q).wrapping_add(high_mul(ALPHA_D, q_squared));
    let denominator_minus_one = high_mul(p, inner).wrapping_add(high_mul(ALPHA_F, q));
    let inverse = one_over_one_plus_x(denominator_minus_one);
    let numerator = rounding_shift_right(numerator, ACCUMULATOR_BITS);
    saturating_shift_left(
        high_mul(power, LN_2).wrapping_add(high_mul(numerator, inverse)),
        ACCUMULATOR_BITS - 5,
    )
}

/// 1 / sqrt(x) as mantissa and **left** shift, by five Newton steps from 1: `mantissa * 2^(shift - 31)`. 0 counts as 1.
pub fn inverse_sqrt(x: i32) -> (i32, i32) {
    if x <= 1 {
        return (i32::MAX, 0);
    }
    let mut input = x;
    let mut shift = 11;
    while input >= 1 << 29 {
        input /= 4;
        shift += 1;
    }
    let pairs = ((input.leading_zeros() - 1) / 2).saturating_sub(1);
    shift -= pairs as i32;
    input <<= 2 * pairs;

    const HALF_THREE_Q3: i32 = (1 << 28) + (1 << 27);
    const HALF_SQRT_2: i32 = 1518500250;
    let input = input >> 1;
    let half_input = rounding_shift_right(input, 1);
    let mut y = 1 << 28;
    for _ in 0..5 {
        // Products of Q3 numbers are Q6 (and Q9); shifting left brings them back to Q3.
        let cube = saturating_shift_left(high_mul(high_mul(y, y), y), 6);
        y = saturating_shift_left(high_mul(HALF_THREE_Q3, y).wrapping_sub(high_mul(half_input, cube)), 3);
    }
    let mantissa = high_mul(y, HALF_SQRT_2);
    match shift {
        ..0 => (mantissa.wrapping_shl(-shift as u32), 0),
        _ => (mantissa, -shift),
    }
}

/// exp(a) as Q0 for `a` in [-1/4, 0) as Q0: Taylor series of degree four around -1/8.
fn exp_above_minus_quarter(a: i32) -> i32 {
    const EXP_MINUS_EIGHTH: i32 = 1895147668;
    const THIRD: i32 = 715827883;
    let x = a.wrapping_add(1 << 28);
    let x2 = high_mul_of_short(x, x);
    let x3 = high_mul_of_short(x2, x);
    // Ties away from zero, for what is far from the ends of 32 bits.
    let half = |x: i32, half: i32| x.wrapping_add(x >> 31).wrapping_add(half);
    let x4_over_4 = half(high_mul_of_short(x2, x2), 2) >> 2;
    // x^4/24 + x^3/6 + x^2/2
    let tail = half(high_mul_of_short(x4_over_4.wrapping_add(x3), THIRD).wrapping_add(x2), 1) >> 1;
    EXP_MINUS_EIGHTH.wrapping_add(high_mul_of_short(x.wrapping_add(tail), EXP_MINUS_EIGHTH))
}

const ONE_Q2: i32 = 1 << 29;

/// 2 / (1 + a) as Q2 for `a` in [0, 1) as Q0: three Newton-Raphson steps from the optimal linear start 48/17 - 32/17 d.
fn inverse_of_half_sum(a: i32) -> i32 {
    const START: i32 = 1515870810; // 48/17 as Q2
    const SLOPE: i32 = -1010580540; // -32/17 as Q2
    let half = rounding_half_sum(a, i32::MAX);
    let mut x = START.wrapping_add(high_mul_in_range(half, SLOPE));
    for _ in 0..3 {
        let error = ONE_Q2.wrapping_sub(high_mul_in_range(half, x));
        x = x.wrapping_add(saturating_shift_left(high_mul_in_range(x, error), 2));
    }
    x
}

/// (a + b) / 2, rounded away from zero.
fn rounding_half_sum(a: i32, b: i32) -> i32 {
    let sum = i64::from(a) + i64::from(b);
    // A shift rounds down, which is away from zero below it. A division by two would be a call in code optimised for size.
    ((sum + i64::from(sum >= 0)) >> 1) as i32
}

/// 1/4, rescaled from Q0.
const fn rounded_quarter(integer_bits: u32) -> i32 {
    1 << (29 - integer_bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn real(raw: i32, integer_bits: i32) -> f64 {
        f64::from(raw) / 2.0_f64.powi(31 - integer_bits)
    }

    #[test]
    fn ends_of_the_ranges() {
        assert_eq!(exp_on_negative_values::<5>(0), i32::MAX);
        assert_eq!(exp_on_negative_values::<5>(i32::MIN), 0);
        assert_eq!(logistic::<4>(0), 1 << 30);
        assert_eq!(tanh(0), 0);
        assert_eq!(tanh(i32::MIN), -i32::MAX);
        assert_eq!(inverse_sqrt(0), (i32::MAX, 0));
        assert_eq!(reciprocal(1 << 19, 12).1, 0);
        assert_eq!(log_for_at_least_one(1 << 19).abs(), 0);
    }

    proptest! {
        #[test]
        fn exp_is_near(a in i32::MIN..=0) {
            prop_assert!((real(exp_on_negative_values::<5>(a), 0) - real(a, 5).exp()).abs() < 1e-6);
        }

        #[test]
        fn logistic_and_tanh_are_near(a in (i32::MIN + 1)..) {
            let x = real(a, 4);
            prop_assert!((real(logistic::<4>(a), 0) - 1.0 / (1.0 + (-x).exp())).abs() < 1e-6);
            prop_assert!((real(tanh(a), 0) - x.tanh()).abs() < 1e-6);
            prop_assert_eq!(tanh(-a), -tanh(a));
        }

        #[test]
        fn reciprocal_is_near(x in 1_i32..) {
            let (mantissa, bits) = reciprocal(x, 12);
            let exact = 1.0 / real(x, 12);
            prop_assert!((real(mantissa, 0) / 2.0_f64.powi(bits) / exact - 1.0).abs() < 1e-7);
        }

        #[test]
        fn log_is_near(x in (1_i32 << 19)..) {
            prop_assert!((real(log_for_at_least_one(x), 5) - real(x, 12).ln()).abs() < 1e-5);
        }

        #[test]
        fn inverse_sqrt_is_near(x in 2_i32..) {
            let (mantissa, shift) = inverse_sqrt(x);
            let got = f64::from(mantissa) / 2.0_f64.powi(31 - shift);
            prop_assert!((got * f64::from(x).sqrt() - 1.0).abs() < 1e-4, "{got}");
        }

        #[test]
        fn nothing_panics(a: i32, digits in -64..64) {
            exp_on_negative_values::<0>(a);
            exp_on_negative_values::<5>(a);
            logistic::<4>(a);
            tanh(a);
            reciprocal(a, digits);
            log_for_at_least_one(a);
            inverse_sqrt(a);
        }
    }
}
