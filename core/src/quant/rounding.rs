//! Rounding of quantised operators: multipliers, high halves, shifts, and conversion between real and stored values.

use serde::{Deserialize, Serialize};

/// A real factor as `mantissa * 2^(shift - 31)`. The mantissa has its top bit at bit 30 (or is 0), so the factor has 31
/// significant bits; negative factors have a negative mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Multiplier {
    /// Q0.31 mantissa.
    pub mantissa: i32,
    /// Power of two applied after the mantissa: left above 0, right below. -31 to 31.
    pub shift: i8,
}

impl Multiplier {
    /// The factor 1, exactly.
    pub const ONE: Self = Self {
        mantissa: 1 << 30,
        shift: 1,
    };

    /// The nearest multiplier of `real`; factors below 2^-32 become 0. `None` for a factor that is not finite or not below 2^31.
    pub fn from_real(real: f64) -> Option<Self> {
        if real == 0.0 {
            return Some(Self { mantissa: 0, shift: 0 });
        }
        if !real.is_finite() {
            return None;
        }
        let (fraction, exponent) = libm::frexp(real);
        let mantissa = libm::round(fraction * TWO_POW_31);
        // A fraction just below 1 rounds up to 1; the exponent takes it over.
        let (mantissa, exponent) = if libm::fabs(mantissa) >= TWO_POW_31 {
            (mantissa / 2.0, exponent.saturating_add(1))
        } else {
            (mantissa, exponent)
        };
        match exponent {
            32.. => None,
            -31..=31 => Some(Self {
                mantissa: mantissa as i32,
                shift: exponent as i8,
            }),
            _ => Some(Self { mantissa: 0, shift: 0 }),
        }
    }

    /// The factor as a real number.
    pub fn to_real(self) -> f64 {
        libm::ldexp(f64::from(self.mantissa), i32::from(self.shift) - 31)
    }

    /// Whether the fields are in the range that [`Multiplier::from_real`] gives.
    pub const fn is_valid(self) -> bool {
        -Self::MAX_SHIFT <= self.shift && self.shift <= Self::MAX_SHIFT
    }

    /// Whether it is not negative and shifts to the right, by at most 30.
    pub const fn narrows(self) -> bool {
        self.mantissa >= 0 && -30 <= self.shift && self.shift < 0
    }

    /// The furthest that it shifts, to either side.
    pub const MAX_SHIFT: i8 = 31;

    /// `x` times the factor, rounded to the high half (ties up) and again by the right shift (ties away from zero).
    #[inline]
    pub fn apply(self, x: i32) -> i32 {
        let shift = i32::from(self.shift);
        let shifted = x.wrapping_shl(shift.max(0) as u32);
        rounding_shift_right(high_mul(shifted, self.mantissa), shift.min(0).unsigned_abs())
    }
}

/// `a * b / 2^31`, rounded to nearest with ties up, saturated: gemmlowp's `SaturatingRoundingDoublingHighMul`, Arm's `VQRDMULH`.
#[inline]
pub fn high_mul(a: i32, b: i32) -> i32 {
    // Only -2^31 * -2^31 exceeds the range, and only that wraps to the least number.
    let product = high_mul_in_range(a, b);
    product.wrapping_sub(i32::from(product == i32::MIN))
}

/// [`high_mul`] of what are not both the least number: nothing saturates.
#[inline(always)]
pub(crate) fn high_mul_in_range(a: i32, b: i32) -> i32 {
    if cfg!(kernel_isa = "armv6m") {
        high_mul_by_halves(a, b)
    } else {
        ((i64::from(a) * i64::from(b) + (1 << 30)) >> 31) as i32
    }
}

/// The same without a 64-bit product, which ARMv6-M has not. Each of the sums has 32 bits, whatever the operands; both of them the least number give that.
#[cfg_attr(not(kernel_isa = "armv6m"), allow(dead_code))]
#[inline(never)]
fn high_mul_by_halves(a: i32, b: i32) -> i32 {
    let (ah, al) = (a >> 16, a & 0xFFFF);
    let (bh, bl) = (b >> 16, b & 0xFFFF);
    let low = (al as u32).wrapping_mul(bl as u32) >> 16;
    let first = al.wrapping_mul(bh).wrapping_add(low as i32);
    let second = ah.wrapping_mul(bl).wrapping_add(first & 0xFFFF);
    let high = ah.wrapping_mul(bh).wrapping_add(first >> 16);
    (high << 1).wrapping_add(second.wrapping_add(1 << 14) >> 15)
}

/// A multiplier for many sums: what does not depend on the sum is found once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rescaler {
    multiplier: Multiplier,
    /// Before the product.
    left: u32,
    /// After it.
    right: u32,
    /// Half of what it shifts to one, and what of the sign is added to it.
    half: i32,
    sign: i32,
}

impl Rescaler {
    /// Sums of a smaller magnitude are short: nothing saturates, and the second rounding's addend fits.
    const REACH: u32 = 1 << 28;

    /// For `multiplier`.
    #[inline(always)]
    pub(crate) fn new(multiplier: Multiplier) -> Self {
        let shift = i32::from(multiplier.shift);
        let right = shift.min(0).unsigned_abs().min(31);
        Self {
            multiplier,
            left: shift.max(0) as u32,
            right,
            half: ((1_u32 << right) >> 1) as i32,
            sign: if right > 0 { -1 } else { 0 },
        }
    }

    /// [`Multiplier::apply`].
    #[inline(always)]
    pub(crate) fn apply(&self, x: i32) -> i32 {
        let shifted = x.wrapping_shl(self.left);
        if (shifted as u32).wrapping_add(Self::REACH) < 2 * Self::REACH {
            let high = high_mul_of_short(shifted, self.multiplier.mantissa);
            // Ties away from zero: below it the half is one less.
            ((high >> 31) & self.sign)
                .wrapping_add(self.half)
                .wrapping_add(high)
                .wrapping_shr(self.right)
        } else {
            general(self.multiplier, x)
        }
    }
}

#[cold]
#[inline(never)]
fn general(multiplier: Multiplier, x: i32) -> i32 {
    multiplier.apply(x)
}

/// [`high_mul`] of two numbers that are not negative.
#[inline(always)]
pub(super) fn high_mul_of_positive(a: i32, b: i32) -> i32 {
    if cfg!(kernel_isa = "armv6m") {
        return high_mul_by_halves(a, b);
    }
    // Doubled, one of them has 32 bits.
    let product = u64::from((a as u32) << 1) * u64::from(b as u32);
    ((product >> 32) as u32).wrapping_add(product as u32 >> 31) as i32
}

/// [`high_mul`] of a number that may be doubled.
#[inline(always)]
pub(super) fn high_mul_of_short(x: i32, mantissa: i32) -> i32 {
    if cfg!(kernel_isa = "armv6m") {
        return high_mul_by_halves(x, mantissa);
    }
    high_mul_of_twice(x << 1, mantissa)
}

/// [`high_mul`] of half of an even number.
#[inline(always)]
pub(super) fn high_mul_of_twice(twice: i32, mantissa: i32) -> i32 {
    if cfg!(kernel_isa = "armv6m") {
        return high_mul_by_halves(twice >> 1, mantissa);
    }
    // The result is the high word, rounded by the low word's top bit.
    let product = i64::from(twice) * i64::from(mantissa);
    ((product >> 32) as i32).wrapping_add((product as u32 >> 31) as i32)
}

/// The 16-bit form of [`high_mul`]: `a * b / 2^15`.
#[inline]
pub fn high_mul_i16(a: i16, b: i16) -> i16 {
    let rounded = (i32::from(a) * i32::from(b) + (1 << 14)) >> 15;
    rounded.min(i32::from(i16::MAX)) as i16
}

/// `x / 2^exponent`, rounded to nearest with ties away from zero: gemmlowp's `RoundingDivideByPOT`. `exponent` is 0 to 31.
#[inline]
pub fn rounding_shift_right(x: i32, exponent: u32) -> i32 {
    let exponent = exponent.min(31);
    let mask = ((1_u32 << exponent) - 1) as i32;
    let threshold = (mask >> 1) + i32::from(x < 0);
    (x >> exponent) + i32::from((x & mask) > threshold)
}

/// `x * 2^exponent`, saturated.
#[inline]
pub fn saturating_shift_left(x: i32, exponent: u32) -> i32 {
    let exponent = exponent.min(31);
    let shifted = x << exponent;
    if shifted >> exponent == x {
        shifted
    } else if x < 0 {
        i32::MIN
    } else {
        i32::MAX
    }
}

/// The stored value of a real one: `round(x / scale) + zero_point` with ties away from zero, clamped to `min..=max`. NaN is
/// stored as the zero point.
#[inline]
pub fn quantize(x: f32, scale: f32, zero_point: i32, min: i32, max: i32) -> i32 {
    let stored = rounded(x / scale).saturating_add(zero_point);
    // No `clamp`, which panics where it does not see that the limits are in order.
    stored.max(min).min(max)
}

/// The nearest integer, ties away from zero, saturated; 0 of NaN. On its bits: a third of the instructions of rounding and converting, where the core has no
/// unit for either.
#[inline]
fn rounded(x: f32) -> i32 {
    const FRACTION: u32 = 23;
    const BIAS: u32 = 127;
    let bits = x.to_bits();
    let exponent = (bits >> FRACTION) & 0xFF;
    let mantissa = (bits & ((1 << FRACTION) - 1)) | 1 << FRACTION;
    let magnitude = match exponent {
        // Below a half.
        ..126 => 0,
        // One bit more than is wanted, of which half rounds.
        126..=150 => ((mantissa << 1) >> (BIAS + FRACTION - exponent)).wrapping_add(1) >> 1,
        151..158 => mantissa << (exponent - BIAS - FRACTION),
        _ if x.is_nan() => return 0,
        _ if x < 0.0 => return i32::MIN,
        _ => return i32::MAX,
    };
    if bits >> 31 == 0 {
        magnitude as i32
    } else {
        (magnitude as i32).wrapping_neg()
    }
}

/// The real value of a stored one: the product, rounded to f32 once.
#[inline]
pub fn dequantize(q: i32, scale: f32, zero_point: i32) -> f32 {
    const EXACT: u32 = 1 << f32::MANTISSA_DIGITS;
    let centred = q.wrapping_sub(zero_point);
    // Two numbers of f32 have one product. f64, which few cores have a unit for, is for what f32 does not hold.
    if centred.unsigned_abs() <= EXACT {
        scale * centred as f32
    } else {
        (f64::from(scale) * f64::from(centred)) as f32
    }
}

/// From one scale and zero point to another: `multiplier * (q - zero_point_in) + zero_point_out`, clamped to `min..=max`.
#[inline]
pub fn requantize(q: i32, zero_point_in: i32, multiplier: Multiplier, zero_point_out: i32, min: i32, max: i32) -> i32 {
    multiplier
        .apply(q.wrapping_sub(zero_point_in))
        .wrapping_add(zero_point_out)
        .max(min)
        .min(max)
}

const TWO_POW_31: f64 = 2_147_483_648.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 64))]

        #[test]
        fn rounding_on_bits_is_rounding(bits: u32, near in -70_000_i32..70_000, ulps in -2_i32..3) {
            // Any number, and those beside ties.
            let tie = near as f32 + 0.5;
            for x in [f32::from_bits(bits), f32::from_bits(tie.to_bits().wrapping_add_signed(ulps)), near as f32] {
                prop_assert_eq!(rounded(x), libm::roundf(x) as i32, "{}", x);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 64))]

        #[test]
        fn a_stored_number_is_rounded_once(scale: f32, bits in 0..32_u32, q: i32, zero_point in -4_i32..4) {
            let q = q >> bits;
            let expected = (f64::from(scale) * f64::from(q.wrapping_sub(zero_point))) as f32;
            prop_assert_eq!(dequantize(q, scale, zero_point).to_bits(), expected.to_bits(), "{} {}", q, scale);
        }
    }

    #[test]
    fn rounding_at_the_ends() {
        for exponent in 0..=255_u32 {
            for bits in [0, 1, 0x40_0000, 0x3F_FFFF, 0x7F_FFFF].map(|fraction| exponent << 23 | fraction) {
                for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                    assert_eq!(rounded(x), libm::roundf(x) as i32, "{x}");
                }
            }
        }
    }

    #[test]
    fn multipliers_of_simple_factors() {
        let of = |real| Multiplier::from_real(real);
        assert_eq!(of(1.0), Some(Multiplier::ONE));
        assert_eq!(
            of(0.75),
            Some(Multiplier {
                mantissa: 3 << 29,
                shift: 0
            })
        );
        assert_eq!(
            of(-0.5),
            Some(Multiplier {
                mantissa: -(1 << 30),
                shift: 0
            })
        );
        assert_eq!(of(0.0), Some(Multiplier { mantissa: 0, shift: 0 }));
        // The fraction rounds up to 1.
        assert_eq!(of(1.0 - 1e-12), Some(Multiplier::ONE));
        // 2^-32 is 0.5 * 2^-31, the smallest that is kept.
        let tiny = 1.0 / 4_294_967_296.0;
        assert_eq!(
            of(tiny),
            Some(Multiplier {
                mantissa: 1 << 30,
                shift: -31
            })
        );
        assert_eq!(of(tiny * 0.99), Some(Multiplier { mantissa: 0, shift: 0 }));
        assert_eq!(of(TWO_POW_31), None);
        assert_eq!(of(f64::NAN), None);
        assert_eq!(of(f64::NEG_INFINITY), None);
    }

    #[test]
    fn ties() {
        // High half: up. Shift: away from zero.
        assert_eq!(high_mul(1, 1 << 30), 1);
        assert_eq!(high_mul(-1, 1 << 30), 0);
        assert_eq!(high_mul(-3, 1 << 30), -1);
        assert_eq!(high_mul(i32::MIN, i32::MIN), i32::MAX);
        assert_eq!(high_mul_i16(i16::MIN, i16::MIN), i16::MAX);
        assert_eq!(rounding_shift_right(5, 1), 3);
        assert_eq!(rounding_shift_right(-5, 1), -3);
        assert_eq!(rounding_shift_right(7, 0), 7);
        assert_eq!(rounding_shift_right(i32::MIN, 31), -1);
        assert_eq!(rounding_shift_right(i32::MAX, 31), 1);
    }

    #[test]
    fn rounding_twice_differs_from_rounding_once() {
        // 1.4999…: the first rounding makes it 1.5, the second 2.
        let factor = Multiplier {
            mantissa: 1 << 30,
            shift: -1,
        };
        assert_eq!(factor.apply(5), 2);
        assert_eq!((5.0 * factor.to_real()).round(), 1.0);
    }

    #[test]
    fn quantize_rounds_ties_away_and_saturates() {
        assert_eq!(quantize(0.25, 0.1, 0, -128, 127), 3);
        assert_eq!(quantize(2.5, 1.0, 0, -128, 127), 3);
        assert_eq!(quantize(-2.5, 1.0, 0, -128, 127), -3);
        assert_eq!(quantize(1e30, 1.0, 5, -128, 127), 127);
        assert_eq!(quantize(f32::NEG_INFINITY, 1.0, 5, -128, 127), -128);
        assert_eq!(quantize(f32::NAN, 1.0, 5, -128, 127), 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        #[test]
        fn halves_make_the_product(a: i32, b: i32, bits in 0..31, ends in 0..9_usize) {
            let end = |i: usize| [i32::MIN, i32::MAX, -1][i % 3];
            for (a, b) in [(a, b), (a >> bits, b), (end(ends), b), (a, end(ends)), (end(ends), end(ends / 3)), (a | 0xFFFF, b | 0xFFFF)] {
                let exact = (i64::from(a) * i64::from(b) + (1 << 30)) >> 31;
                prop_assert_eq!(high_mul_by_halves(a, b), exact as i32, "{} {}", a, b);
                prop_assert_eq!(i64::from(high_mul(a, b)), exact.min(i64::from(i32::MAX)), "{} {}", a, b);
            }
        }

        #[test]
        fn doubled_factors_make_the_product(a: i32, b: i32, bits in 0..31) {
            let (x, y) = ((a & i32::MAX) >> bits, b & i32::MAX);
            prop_assert_eq!(high_mul_of_positive(x, y), high_mul(x, y));
            prop_assert_eq!(high_mul_of_positive(i32::MAX, y), high_mul(i32::MAX, y));
            prop_assert_eq!(high_mul_of_short(a >> 2, b), high_mul(a >> 2, b));
            prop_assert_eq!(high_mul_of_twice(a & !1, b), high_mul(a >> 1, b));
        }

        #[test]
        fn a_rescaler_is_its_multiplier(x: i32, bits in 0..31, near in -3_i32..4, mantissa: i32, shift: i8) {
            for (mantissa, shift) in [(mantissa, shift), (mantissa & i32::MAX, shift % 32), (mantissa & i32::MAX, -(shift & 15)), (1 << 30, shift % 32)] {
                let multiplier = Multiplier { mantissa, shift };
                let rescaler = Rescaler::new(multiplier);
                let reach = Rescaler::REACH as i32;
                for x in [x, x >> bits, near << (bits % 29), reach + near, -reach + near, i32::MIN, i32::MAX] {
                    prop_assert_eq!(rescaler.apply(x), multiplier.apply(x), "{} {:?}", x, multiplier);
                }
            }
        }
    }

    proptest! {
        /// gemmlowp writes the product with a sign-dependent nudge and a truncating division; the shift must equal it.
        #[test]
        fn high_mul_equals_the_truncating_form(a: i32, b: i32) {
            prop_assume!(a != i32::MIN || b != i32::MIN);
            let product = i64::from(a) * i64::from(b);
            let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
            prop_assert_eq!(i64::from(high_mul(a, b)), (product + nudge) / (1 << 31));
        }

        #[test]
        fn high_mul_i16_equals_the_truncating_form(a: i16, b: i16) {
            prop_assume!(a != i16::MIN || b != i16::MIN);
            let product = i32::from(a) * i32::from(b);
            let nudge = if product >= 0 { 1 << 14 } else { 1 - (1 << 14) };
            prop_assert_eq!(i32::from(high_mul_i16(a, b)), (product + nudge) / (1 << 15));
        }

        #[test]
        fn rounding_shift_is_round_half_away(x: i32, exponent in 0_u32..=31) {
            let exact = f64::from(x) / f64::from(2.0_f32).powi(exponent as i32);
            prop_assert_eq!(f64::from(rounding_shift_right(x, exponent)), exact.round());
        }

        #[test]
        fn a_multiplier_is_within_half_a_unit_of_its_factor(real in 1e-6_f64..1e6, negative: bool) {
            let real = if negative { -real } else { real };
            let multiplier = Multiplier::from_real(real).unwrap();
            prop_assert!((multiplier.to_real() / real - 1.0).abs() <= 1.0 / TWO_POW_31);
            prop_assert!(multiplier.mantissa.unsigned_abs() >= 1 << 30);
        }

        #[test]
        fn apply_is_within_one_of_the_exact_product(x in -(1_i32 << 24)..(1 << 24), real in 1e-9_f64..16.0) {
            let multiplier = Multiplier::from_real(real).unwrap();
            let exact = f64::from(x) * real;
            prop_assert!((f64::from(multiplier.apply(x)) - exact).abs() <= 1.01, "{} {}", multiplier.apply(x), exact);
        }

        #[test]
        fn apply_wide_is_within_its_16_bit_mantissa(x in -(1_i64 << 40)..(1 << 40), real in 1e-9_f64..1e-4) {
            let multiplier = Multiplier::from_real(real).unwrap();
            let exact = x as f64 * real;
            let error = (f64::from(multiplier.apply_wide(x)) - exact).abs();
            prop_assert!(error <= 0.51 + exact.abs() / 32768.0, "{error} of {exact}");
        }

        #[test]
        fn nothing_panics(x: i32, wide: i64, mantissa: i32, shift: i8, real: f64) {
            let multiplier = Multiplier { mantissa, shift };
            multiplier.apply(x);
            multiplier.apply_wide(wide);
            Multiplier::from_real(real);
        }

        #[test]
        fn quantize_undoes_dequantize(q in -128..=127, zero_point in -128..=127, scale in 1e-6_f32..1e3) {
            prop_assert_eq!(quantize(dequantize(q, scale, zero_point), scale, zero_point, -128, 127), q);
        }

        #[test]
        fn requantising_to_the_same_parameters_changes_nothing(q in -128..=127, zero_point in -128..=127) {
            prop_assert_eq!(requantize(q, zero_point, Multiplier::ONE, zero_point, -128, 127), q);
        }
    }
}
