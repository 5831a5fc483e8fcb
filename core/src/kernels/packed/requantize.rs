//! From an accumulator to an int8, in one of three forms.
//!
//! **General.** The reference rounds twice, `q = (acc * m + 2^30) >> 31` and then `q / 2^s` to nearest, ties away from zero.
//!
//! **Short.** The second rounding is `(q + 2^(s-1) - [q < 0]) >> s`; the zero point goes into the addend, `(2 * zero_point + 1) << (s - 1)`. All of it
//! stays within 32 bits where the host has bounded the accumulator, for shifts of 1 to 30.
//!
//! **Single.** Where only the outputs above the zero point count, as behind a fused ReLU, one rounding will do:
//!
//! ```text
//! p   = acc * M >> 16                      M: the upper 16 + bits of the mantissa
//! out = (p + addend) >> s                  addend: the short form's, and 2^(bits - 1)
//! ```
//!
//! The output reaches `n > 0` (zero point taken off) where `acc * m / 2^31 >= n * 2^r - 2^(r-1) - 1/2`, with the reference's shift `r`; scaled by `2^bits`
//! that is a whole number, so that comparing the floor of the product with it loses nothing, and `s = r + bits`. The bits of the mantissa that `M` lost may
//! matter all the same, so the packer compares both sides of each step of the reference, and takes the nearest mantissa that agrees, or the short form. `p` is
//! the upper half of `(acc << (bits + 1)) * m` on cores with 64-bit products, and on those without it is three products, two of them by eight bits of `M`: as
//! long as the accumulator has `30 - bits` bits, which the record shows for weights of any values. All channels of a step that have the form have the same
//! bits.

use super::channel_record::{GENERAL, LEAST_BITS, Record, SHORT_SUM, SINGLE, single_bits, single_code, single_reach};
use crate::kernels::primitives::requantize::steps::Requantize;
use crate::quant::Multiplier;

/// Mantissa and code of the single form for accumulators in `range`, of which the record shows that they are below `reach`; `None` where none agrees with
/// the reference.
pub(super) fn find_single(reference: &Requantize, range: (i64, i64), reach: u32, bits: u32) -> Option<[i32; 2]> {
    let Multiplier { mantissa, shift } = reference.multiplier;
    let right = u32::from(shift.unsigned_abs());
    let rises = reference.clamp[0] >= reference.zero_point;
    if !rises || mantissa <= 0 || shift >= 0 || !(LEAST_BITS..16).contains(&bits) {
        return None;
    }
    let code = single_code(right + bits, bits);
    [0, 1].into_iter().find_map(|up| {
        let m = i32::try_from(((i64::from(mantissa) >> (15 - bits)) + up) << (15 - bits)).ok()?;
        (reach < single_reach(bits) && right + bits <= 30 && agrees(reference, range, m, code)).then_some([m, code])
    })
}

/// Whether the single form gives the reference's output for every accumulator of the range, within the reference's limits.
fn agrees(reference: &Requantize, (low, high): (i64, i64), m: i32, code: i32) -> bool {
    let (bits, shift) = (single_bits(code), code as u32 & 0xff);
    let addend = ((2 * i64::from(reference.zero_point) + 1) << (shift - 1)) + (1 << (bits - 1));
    let sum = |acc: i64| ((acc * (i64::from(m) >> (15 - bits))) >> 16) + addend;
    let narrow = |n: i64| i32::try_from(n).is_ok();
    // The loops saturate at the limits of int8 or nearer.
    let among = reference.clamp.map(|end| end.clamp(-128, 127));
    narrow(addend)
        && narrow(sum(low))
        && narrow(sum(high))
        && reference.agrees((low, high), among, |acc, n| sum(acc) >> shift >= i64::from(n))
}

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

/// Rounding parameters of a step, for the short and the single form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounding {
    /// `2 * zero_point + 1` of the output.
    twice: i32,
    /// Bits of the single form; 0 where no channel has it.
    bits: u32,
}

impl Rounding {
    /// Of a step's output; `bits` are those of [`bits_of`](super::channel_record::bits_of).
    #[inline(always)]
    pub(super) fn new(zero_point: i8, bits: u32) -> Self {
        Self {
            twice: twice(zero_point),
            bits,
        }
    }

    /// The addend of either form: rounding and zero point.
    #[inline(always)]
    pub(super) fn addend(&self, code: i32) -> i32 {
        let half = if self.bits == 0 || code & SINGLE == 0 {
            0
        } else {
            self.half()
        };
        addend(self.twice, code).wrapping_add(half)
    }

    /// Shift of the accumulator to the left in the single form; 0 for the short form.
    #[inline(always)]
    pub(super) fn left(&self, code: i32) -> u32 {
        if code & SINGLE == 0 { 0 } else { self.bits + 1 }
    }

    /// Rounding offset of the single form: half a step of the reference's first rounding.
    #[inline(always)]
    pub(super) fn half(&self) -> i32 {
        (1 << self.bits) >> 1
    }

    /// Shift of the single form's mantissas to the right, for cores without 64-bit products.
    #[inline(always)]
    pub(super) fn right(&self) -> u32 {
        15_u32.wrapping_sub(self.bits)
    }

    /// An output.
    #[inline(always)]
    pub(super) fn apply(&self, acc: i32, multiplier: i32, code: i32, addend: i32) -> i8 {
        if code & SINGLE == 0 {
            short(acc, multiplier, code, addend)
        } else {
            single(acc, multiplier, self.bits, code, addend)
        }
    }
}

/// `2 * zero_point + 1` of an output.
#[inline(always)]
pub(super) const fn twice(zero_point: i8) -> i32 {
    2 * zero_point as i32 + 1
}

/// The addend of the short form, of [`twice`].
#[inline(always)]
pub(super) const fn addend(twice: i32, code: i32) -> i32 {
    twice.wrapping_shl((code as u32 & 0xff).wrapping_sub(1))
}

/// The single form.
#[inline(always)]
pub(super) fn single(acc: i32, multiplier: i32, bits: u32, shift: i32, addend: i32) -> i8 {
    let sum = shifted_product(acc, multiplier, bits).wrapping_add(addend);
    sum.wrapping_shr(shift as u32 & 0xff).clamp(-128, 127) as i8
}

/// `acc * M >> 16`.
#[cfg(not(kernel_isa = "armv6m"))]
#[inline(always)]
fn shifted_product(acc: i32, multiplier: i32, bits: u32) -> i32 {
    ((i64::from(acc.wrapping_shl(bits + 1)) * i64::from(multiplier)) >> 32) as i32
}

/// The same without a 64-bit product, which ARMv6-M has not.
#[cfg(kernel_isa = "armv6m")]
#[inline(always)]
fn shifted_product(acc: i32, multiplier: i32, bits: u32) -> i32 {
    product_by_bytes(acc, multiplier, bits)
}

/// The same by eight bits of `M` at a time, as the loops for ARMv6-M go: what each shift drops is dropped by the one after it in any case.
#[cfg_attr(not(kernel_isa = "armv6m"), allow(dead_code))]
#[inline(always)]
fn product_by_bytes(acc: i32, multiplier: i32, bits: u32) -> i32 {
    let [low, middle, high] = bytes(multiplier, bits);
    let sum = acc.wrapping_mul(low) >> 8;
    let sum = sum.wrapping_add(acc.wrapping_mul(middle)) >> 8;
    sum.wrapping_add(acc.wrapping_mul(high))
}

/// `M`: its lowest eight bits, the next eight, and the others.
#[cfg_attr(not(kernel_isa = "armv6m"), allow(dead_code))]
#[inline(always)]
pub(super) fn bytes(multiplier: i32, bits: u32) -> [i32; 3] {
    let m = multiplier.wrapping_shr(15_u32.wrapping_sub(bits));
    [m & 0xff, (m >> 8) & 0xff, m >> 16]
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

/// Any form, within limits. `record` says which.
#[inline(never)]
pub(super) fn any(acc: i32, record: &Record, zero_point: i8, limits: [i8; 2]) -> i8 {
    let [_, multiplier, code] = *record;
    if code & GENERAL != 0 {
        return general(acc, record, zero_point, limits);
    }
    let [low, high] = limits;
    let rounding = Rounding::new(zero_point, single_bits(code));
    rounding
        .apply(acc, multiplier, code, rounding.addend(code))
        .clamp(low, high.max(low))
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
#[cfg(not(kernel_isa = "armv6m"))]
#[inline(always)]
fn high_mul(acc: i32, m: i32) -> i32 {
    // Doubled, the result is the high word, rounded by the low word's top bit.
    let product = i64::from(acc << 1) * i64::from(m);
    ((product >> 32) as i32).wrapping_add((product as u32 >> 31) as i32)
}

/// The same without a 64-bit product, which ARMv6-M has not.
#[cfg(kernel_isa = "armv6m")]
#[inline(always)]
fn high_mul(acc: i32, m: i32) -> i32 {
    high_mul_by_halves(acc, m)
}

/// With `acc = ah * 2^16 + al` (`al` signed) and `m = mh * 2^16 + ml` (`ml` unsigned) the product is `ah*mh * 2^32 + middle * 2^16` and 16 bits that a
/// floor drops, for `middle = al*mh + ah*ml + (al*ml >> 16)`, which is below `2^30 + 2^28 + 2^15`. Beyond these bounds it wraps.
#[cfg_attr(not(kernel_isa = "armv6m"), allow(dead_code))]
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
    use crate::kernels::packed::channel_record::CONSTANT;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        /// Weights that a packer did not write make accumulators of any size.
        #[test]
        fn nothing_panics_beyond_the_bounds(acc: i32, m: i32, code: i32, twice: i32, zero_point: i8) {
            high_mul_by_halves(acc, m);
            product_by_bytes(acc, m, single_bits(code));
            let rounding = Rounding { twice, bits: single_bits(code) };
            rounding.apply(acc, m, code, rounding.addend(code));
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
                let value = short(acc, mantissa, code, Rounding::new(zero_point, 0).addend(code));
                let reference = general(acc, &[0, mantissa, i32::from(shift) & 0xff], zero_point, [-128, 127]);
                prop_assert_eq!(value, reference);
            }
        }

        /// With any weights that the record lets through.
        #[test]
        fn bytes_make_the_product(acc in -(1 << 22) + 1..1 << 22, bits in LEAST_BITS..16, mantissa in 0..=i32::MAX) {
            let acc = acc % single_reach(bits) as i32;
            let m = mantissa >> (15 - bits) << (15 - bits);
            let expected = (i64::from(acc) * i64::from(m >> (15 - bits))) >> 16;
            prop_assert_eq!(i64::from(product_by_bytes(acc, m, bits)), expected);
            prop_assert_eq!(i64::from(shifted_product(acc, m, bits)), expected);
        }

        /// Wherever one is found, at every step of the reference and beside it, at the ends, and elsewhere.
        #[test]
        fn the_single_form_is_the_reference(
            exponent in -14.0_f64..-1.0, reach in 100_u32..3_000_000, zero_point: i8, relu: bool, low in 0.0_f64..1.0, high in 0.0_f64..1.0, at in 0.0_f64..1.0,
            bits in LEAST_BITS..16,
        ) {
            let zero_point = if relu { -128 } else { zero_point };
            let clamp = [i32::from(zero_point), 127];
            let reference = Requantize { multiplier: Multiplier::from_real(exponent.exp2()).unwrap(), zero_point: zero_point.into(), clamp };
            let range = (-(low * f64::from(reach)) as i64, (high * f64::from(reach)) as i64);
            if let Some([m, code]) = find_single(&reference, range, reach, bits) {
                let rounding = Rounding::new(zero_point, bits);
                let addend = rounding.addend(code);
                let steps = (-127..=127).flat_map(|n| [-1, 0, 1].map(|beside| reference.step(n) + beside));
                let somewhere = range.0 + (at * (range.1 - range.0) as f64) as i64;
                for acc in steps.chain([range.0, range.1, somewhere]).filter(|acc| (range.0..=range.1).contains(acc)) {
                    let value = rounding.apply(acc as i32, m, code, addend).max(zero_point);
                    prop_assert_eq!(value, reference.apply(acc as i32), "{}", acc);
                }
            }
        }

        #[test]
        fn exact_ties_round_away_from_zero(k in -2000_i32..2000, shift in 1_u32..12, zero_point: i8) {
            // acc * 2^30 / 2^31 = acc / 2, so acc = 2 * (k * 2^shift + half).
            let acc = 2 * ((k << shift) + (1 << (shift - 1)));
            let multiplier = Multiplier { mantissa: 1 << 30, shift: -(shift as i8) };
            let code = short_shift(i64::from(acc).abs(), multiplier, zero_point).unwrap();
            let value = short(acc, 1 << 30, code, Rounding::new(zero_point, 0).addend(code));
            prop_assert_eq!(value, general(acc, &[0, 1 << 30, -(shift as i32) & 0xff], zero_point, [-128, 127]));
        }
    }

    #[test]
    fn most_layers_with_a_fused_relu_have_a_single_form() {
        let found = (0..200).filter(|i| {
            let multiplier = Multiplier::from_real(f64::exp2(-9.0 + 7.0 * f64::from(i * 37 % 200) / 200.0)).unwrap();
            let reference = Requantize {
                multiplier,
                zero_point: -128,
                clamp: [-128, 127],
            };
            let reach = i * 91 % 4000 + ((1 + i % 64) << 14);
            let range = (-i64::from(reach) / 2, i64::from(reach) / 2);
            (LEAST_BITS..16).any(|bits| find_single(&reference, range, reach as u32, bits).is_some())
        });
        let found = found.count();
        assert!(found >= 190, "{found} of 200");
    }

    #[test]
    fn outputs_below_the_zero_point_want_two_roundings() {
        let multiplier = Multiplier::from_real(0.0031).unwrap();
        let of = |zero_point, clamp| {
            find_single(
                &Requantize {
                    multiplier,
                    zero_point,
                    clamp,
                },
                (-90_000, 90_000),
                100_000,
                12,
            )
        };
        assert!(of(-128, [-128, 127]).is_some());
        assert!(of(4, [4, 127]).is_some());
        assert_eq!(of(4, [-128, 127]), None);
        assert_eq!(of(4, [3, 127]), None);
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
