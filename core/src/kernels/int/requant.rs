//! From an accumulator to an int8.
//!
//! The reference rounds twice, `q = (acc * m + 2^30) >> 31` and then `q / 2^s` to nearest, ties away from zero. The second rounding is
//! `(q + 2^(s-1) - [q < 0]) >> s`; the zero point goes into the addend, `(2 * zero_point + 1) << (s - 1)`. All of it stays within 32 bits
//! where the host has bounded the accumulator: the *short* form, for shifts of 1 to 30. Everything else takes [`general`], the reference itself.

use super::record::{GENERAL, Record, SHORT_SUM};
use crate::quant::Multiplier;

/// The short form's shift for accumulators of at most this magnitude; `None` where it does not hold.
pub(super) fn short_shift(magnitude: i64, multiplier: Multiplier, zero_point: i8) -> Option<i32> {
    if magnitude >= i64::from(SHORT_SUM) || multiplier.mantissa < 0 || !(-31..0).contains(&multiplier.shift) {
        return None;
    }
    let largest = ((magnitude * i64::from(multiplier.mantissa)) >> 31) + 1;
    let mut shift = -i32::from(multiplier.shift);
    // Below half of half a unit everything rounds to nothing, with one bit less as well.
    while shift > 1 && largest < 1 << (shift - 2) {
        shift -= 1;
    }
    let addend = (2 * i64::from(zero_point) + 1) << (shift - 1);
    (shift <= 30 && largest + 1 + addend.abs() <= i64::from(i32::MAX)).then_some(shift)
}

/// The addend of the short form: rounding and zero point. `twice` is `2 * zero_point + 1`.
#[inline(always)]
pub(super) fn addend(twice: i32, code: i32) -> i32 {
    twice.wrapping_shl((code as u32 & 0xff).wrapping_sub(1))
}

/// The short form.
#[inline(always)]
pub(super) fn short(acc: i32, multiplier: i32, code: i32, addend: i32) -> i8 {
    let q = high_mul(acc, multiplier);
    let shifted = q
        .wrapping_add(q >> 31)
        .wrapping_add(addend)
        .wrapping_shr(code as u32 & 0xff);
    shifted.clamp(-128, 127) as i8
}

/// Either form, within limits. `record` says which.
#[inline(never)]
pub(super) fn any(acc: i32, record: &Record, zero_point: i8, limits: [i8; 2]) -> i8 {
    let [_, multiplier, code] = *record;
    if code & GENERAL != 0 {
        return general(acc, record, zero_point, limits);
    }
    let [low, high] = limits;
    short(acc, multiplier, code, addend(2 * i32::from(zero_point) + 1, code)).clamp(low, high.max(low))
}

/// The reference, from a record of the general form.
#[cold]
#[inline(never)]
pub(super) fn general(acc: i32, &[_, mantissa, code]: &Record, zero_point: i8, [low, high]: [i8; 2]) -> i8 {
    let scaled = Multiplier {
        mantissa,
        shift: code as i8,
    }
    .apply(acc);
    let value = scaled.wrapping_add(i32::from(zero_point));
    value.max(i32::from(low)).min(i32::from(high)) as i8
}

/// `(acc * m + 2^30) >> 31` for |acc| < 2^28 and 0 <= m < 2^31.
#[cfg(not(cortex_m = "baseline"))]
#[inline(always)]
fn high_mul(acc: i32, m: i32) -> i32 {
    // Doubled, the result is the high word, rounded by the low word's top bit.
    let product = i64::from(acc << 1) * i64::from(m);
    ((product >> 32) as i32).wrapping_add((product as u32 >> 31) as i32)
}

/// The same without a 64-bit product, which ARMv6-M has not.
#[cfg(cortex_m = "baseline")]
#[inline(always)]
fn high_mul(acc: i32, m: i32) -> i32 {
    high_mul_by_halves(acc, m)
}

/// With `acc = ah * 2^16 + al` (`al` signed) and `m = mh * 2^16 + ml` (`ml` unsigned) the product is `ah*mh * 2^32 + middle * 2^16` and 16 bits that a
/// floor drops, for `middle = al*mh + ah*ml + (al*ml >> 16)`, which is below `2^30 + 2^28 + 2^15`. Beyond these bounds it wraps.
#[cfg_attr(not(cortex_m = "baseline"), allow(dead_code))]
#[inline(always)]
fn high_mul_by_halves(acc: i32, m: i32) -> i32 {
    let (mh, ml) = (m >> 16, m & 0xffff);
    let al = i32::from(acc as i16);
    let ah = acc.wrapping_sub(al) >> 16;
    let middle = al
        .wrapping_mul(mh)
        .wrapping_add(ah.wrapping_mul(ml))
        .wrapping_add(al.wrapping_mul(ml) >> 16);
    (ah.wrapping_mul(mh) << 1).wrapping_add((middle.wrapping_add(1 << 14)) >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::int::record::CONSTANT;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        /// Weights that a packer did not write make accumulators of any size.
        #[test]
        fn nothing_panics_beyond_the_bounds(acc: i32, m: i32, code: i32, twice: i32, zero_point: i8) {
            high_mul_by_halves(acc, m);
            short(acc, m, code, addend(twice, code));
            super::any(acc, &[acc, m, code], zero_point, [-128, 127]);
        }

        #[test]
        fn halves_make_the_product(acc in -(1 << 28)..1 << 28, m in 0..=i32::MAX) {
            prop_assert_eq!(high_mul_by_halves(acc, m), crate::quant::high_mul(acc, m));
            prop_assert_eq!(high_mul(acc, m), crate::quant::high_mul(acc, m));
        }

        #[test]
        fn the_short_form_is_the_reference(
            acc in -(1 << 28) + 1..1 << 28, bits in 0..28, mantissa in 1 << 30..=i32::MAX, shift in -31_i8..0, zero_point: i8,
        ) {
            // Small accumulators meet the ties, large ones the bounds.
            let acc = acc >> bits;
            let multiplier = Multiplier { mantissa, shift };
            if let Some(code) = short_shift(i64::from(acc).abs(), multiplier, zero_point) {
                let value = short(acc, mantissa, code, addend(2 * i32::from(zero_point) + 1, code));
                let reference = general(acc, &[0, mantissa, i32::from(shift) & 0xff], zero_point, [-128, 127]);
                prop_assert_eq!(value, reference);
            }
        }

        #[test]
        fn exact_ties_round_away_from_zero(k in -2000_i32..2000, shift in 1_u32..12, zero_point: i8) {
            // acc * 2^30 / 2^31 = acc / 2, so acc = 2 * (k * 2^shift + half).
            let acc = 2 * ((k << shift) + (1 << (shift - 1)));
            let multiplier = Multiplier { mantissa: 1 << 30, shift: -(shift as i8) };
            let code = short_shift(i64::from(acc).abs(), multiplier, zero_point).unwrap();
            let value = short(acc, 1 << 30, code, addend(2 * i32::from(zero_point) + 1, code));
            prop_assert_eq!(value, general(acc, &[0, 1 << 30, -(shift as i32) & 0xff], zero_point, [-128, 127]));
        }
    }

    #[test]
    fn every_constant_is_reached() {
        for zero_point in -128_i8..=127 {
            for value in -128_i8..=127 {
                let distance = i32::from(value) - i32::from(zero_point);
                let record = [4 * distance, 1 << 30, 1 | CONSTANT];
                assert_eq!(super::any(record[0], &record, zero_point, [-128, 127]), value);
            }
        }
    }
}
