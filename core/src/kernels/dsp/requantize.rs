//! Requantising in four to six instructions an output, and the host's proof that the bits stay the same.
//!
//! The reference ([`Multiplier::apply`](crate::quant::Multiplier::apply), zero point, clamp) costs twelve and more. The short form of a channel is
//!
//! ```text
//! x   = (acc + offset) << k                    offset is already in the bias
//! t   = (x * m >> 32) + c - (x < 0 ? d : 0)     SMMLA; the last term only where d != 0
//! out = saturate8(t >> SHIFT)                   SSAT with its own shift
//! ```
//!
//! **Why it can be exact.** With the factor `m * 2^(left - right - 31)`, the reference rounds `r = floor(acc * 2^left * m / 2^31 + 1/2)` and
//! then `r / 2^right`, half away from zero. So the output reaches `n` (zero point taken off) exactly where `r >= n * 2^right - 2^(right-1)`
//! for `n > 0`, and one later for `n <= 0` (`right > 0`). In terms of `y = acc * 2^left * m / 2^31` that is
//! `y >= n * 2^right - 2^(right-1) - 1/2` (or `+ 1/2`). Scaled by `2^j` with `j = SHIFT - right >= 1` every such limit is a whole number, so
//! comparing the floor of the scaled product, `x * m >> 32` with `k = 1 + left + j`, loses nothing: `c = (zero_point << SHIFT) +
//! 2^(SHIFT-1) + 2^(j-1)`, and `d = 2^j` moves the limits of the negative side. Where the zero point is the lowest output (a fused ReLU),
//! all of the negative side saturates and `d = 0` will do.
//!
//! **The proof is per channel.** Both sides never decrease with the accumulator, so they agree everywhere if they agree on both sides of every step of
//! the reference; [`Short::find`] knows the least and the largest accumulator that the weights allow, computes the (at most 255) steps
//! exactly and compares there. Nothing is used that this check has not seen. Channels whose factor is too small for `j >= 1` but whose
//! output takes few values (dead channels of trained networks) are moved by `offset` until their steps fall where the short form has its own.

use core::ops::RangeInclusive;

use crate::kernels::primitives::requantize::steps::{Requantize, shifts};

/// Fraction bits of a short form's sum; the immediate of the loops' SSAT. 14 serves right shifts up to 13 and outputs that would overflow
/// their range up to 128 times: every layer of the MLPerf Tiny networks.
pub const SHIFT: u32 = 14;

/// Fraction bits where `k` is folded into 16-bit depthwise weights (so `k <= 8`): right shifts 3 to 9.
pub const FOLDED_SHIFT: u32 = 10;

/// Fraction bits where two channels share words ([`super::conv2d_s8_paired`]), whose second one comes shifted left by 8 (so `k >= 8`): two more than
/// [`SHIFT`], which factors of 2^-9 and more allow without dropping bits.
pub const PAIRS_SHIFT: u32 = 16;

/// A channel's short form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Added to the bias.
    pub offset: i64,
    /// Left shift of the accumulator.
    pub k: u32,
    /// Mantissa.
    pub m: i32,
    /// Zero point and rounding.
    pub c: i32,
    /// Taken off where the accumulator is negative.
    pub d: i32,
}

/// Accumulators that a channel can produce: the least and the largest.
pub type Range = (i64, i64);

impl Short {
    /// A form that equals `reference` on all of `range`, with a pre-shift among `shifts_left`. `signed` allows `d != 0`.
    pub fn find(
        reference: &Requantize,
        range: Range,
        shift: u32,
        shifts_left: RangeInclusive<u32>,
        signed: bool,
    ) -> Option<Self> {
        let ((lo, hi), (k_min, k_max)) = (range, shifts_left.into_inner());
        let (left, right) = shifts(reference.multiplier);
        let fits = |acc: i64| i32::try_from(acc << left).is_ok();
        if lo > hi || left > 30 || !fits(lo) || !fits(hi) {
            return None;
        }
        let (first, last) = (reference.apply(lo as i32), reference.apply(hi as i32));
        if first == last {
            let c = (i32::from(first) << shift) + (1 << (shift - 1));
            return Some(Self {
                offset: 0,
                k: k_min,
                m: 0,
                c,
                d: 0,
            });
        }
        if reference.multiplier.mantissa <= 0 {
            return None;
        }
        let whole = Self {
            offset: 0,
            k: 0,
            m: reference.multiplier.mantissa,
            c: 0,
            d: 0,
        };
        let j = shift as i32 - right as i32;
        let k = 1 + left as i32 + j;
        if j >= 1 && k as u32 <= k_max {
            let half = if right > 0 { 1 << (shift - 1) } else { 0 };
            let c = (reference.zero_point << shift) + half + (1 << (j - 1));
            // A longer pre-shift than the factor wants takes bits off its end. A result that then misses a limit by less than a step of the accumulator is
            // exact still: rounded down or up.
            let drop = k_min.saturating_sub(k as u32);
            return [0, 1].into_iter().take(1 + drop.min(1) as usize).find_map(|up| {
                let positive = Self {
                    k: k as u32 + drop,
                    m: (whole.m >> drop) + up,
                    c,
                    ..whole
                };
                let negative = Self { d: 1 << j, ..positive };
                let mut forms = [positive, negative].into_iter().take(1 + usize::from(signed));
                forms.find(|form| form.equals(reference, range, shift))
            });
        }
        if k as u32 > k_max && k > 0 {
            return None;
        }
        // A factor too small for whole limits: centre on one of the few steps, and let the check choose among the nearby roundings.
        let mut inside = (-127..=127).filter(|&n| (lo + 1..=hi).contains(&reference.step(n)));
        let n = inside.clone().nth(inside.by_ref().count() / 2)?;
        let drop = (k_min as i32 - k).max(0) as u32;
        let k = k.max(k_min as i32) as u32;
        let m = ((i64::from(whole.m) + ((1i64 << drop) >> 1)) >> drop) as i32;
        (-32..=32)
            .flat_map(|lead: i32| (-1..=1).map(move |nudge| (lead, nudge)))
            .find_map(|(lead, nudge)| {
                // With `c` ahead by `lead` the step is reached at this accumulator.
                let at = (-i64::from(lead) << 32).div_euclid(i64::from(m.max(1)) << k);
                let centred = Self {
                    offset: at + nudge - reference.step(n),
                    k,
                    m,
                    c: (n << shift) + lead,
                    d: 0,
                };
                centred.equals(reference, range, shift).then_some(centred)
            })
    }

    /// The output of an accumulator, without `offset`.
    #[inline]
    pub fn apply(&self, acc: i32, shift: u32) -> i8 {
        let x = (acc.wrapping_add(self.offset as i32)) << self.k;
        let high = ((i64::from(x) * i64::from(self.m)) >> 32) as i32;
        let d = if x < 0 { self.d } else { 0 };
        (high.wrapping_add(self.c).wrapping_sub(d) >> shift).clamp(-128, 127) as i8
    }

    /// Whether this form gives the reference's output for every accumulator of the range.
    fn equals(&self, reference: &Requantize, (lo, hi): Range, shift: u32) -> bool {
        let shifted = |acc: i64| (acc + self.offset) << self.k;
        let sum = |acc: i64| {
            let x = shifted(acc);
            ((x * i64::from(self.m)) >> 32) + i64::from(self.c) - if x < 0 { i64::from(self.d) } else { 0 }
        };
        // The shift and the sum stay within 32 bits; both grow with the accumulator.
        let narrow = |v: i64| i32::try_from(v).is_ok();
        if ![lo, hi]
            .iter()
            .all(|&acc| narrow(acc + self.offset) && narrow(shifted(acc)) && narrow(sum(acc)))
        {
            return false;
        }
        reference.agrees((lo, hi), [-128, 127], |acc, n| sum(acc) >> shift >= i64::from(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quant::Multiplier;
    use proptest::prelude::*;

    fn reference(real: f64, zero_point: i32, clamp: [i32; 2]) -> Requantize {
        Requantize {
            multiplier: Multiplier::from_real(real).unwrap(),
            zero_point,
            clamp,
        }
    }

    /// All accumulators within reach of the output range, and a window at each end.
    fn agree(reference: &Requantize, short: &Short, (lo, hi): Range, shift: u32) {
        let near = (600.0 / reference.multiplier.to_real()) as i64;
        let middle = (lo.max(-near)..=hi.min(near)).step_by(1 + (near as usize / 200_000));
        let ends = (lo..=hi.min(lo + 500)).chain(lo.max(hi - 500)..=hi);
        for acc in middle.chain(ends) {
            assert_eq!(
                short.apply(acc as i32, shift),
                reference.apply(acc as i32),
                "{reference:?} {short:?} {acc}"
            );
        }
        // And every accumulator around a step.
        for n in -128..=128 {
            let step = reference.step(n);
            for acc in (step - 3..step + 3).filter(|acc| (lo..=hi).contains(acc)) {
                assert_eq!(
                    short.apply(acc as i32, shift),
                    reference.apply(acc as i32),
                    "{reference:?} {short:?} {acc}"
                );
            }
        }
    }

    #[test]
    fn a_fused_relu_needs_no_sign() {
        let reference = reference(0.0031, -128, [-128, 127]);
        let short = Short::find(&reference, (-700_000, 800_000), SHIFT, 0..=31, false).unwrap();
        assert_eq!(short.d, 0);
        agree(&reference, &short, (-700_000, 800_000), SHIFT);
    }

    #[test]
    fn a_signed_output_needs_it() {
        let reference = reference(0.0031, 4, [-128, 127]);
        assert_eq!(Short::find(&reference, (-700_000, 800_000), SHIFT, 0..=31, false), None);
        let short = Short::find(&reference, (-700_000, 800_000), SHIFT, 0..=31, true).unwrap();
        assert_ne!(short.d, 0);
        agree(&reference, &short, (-700_000, 800_000), SHIFT);
    }

    #[test]
    fn a_clamp_inside_the_byte_has_no_short_form_unless_out_of_reach() {
        let reference = reference(0.0031, -128, [-128, 100]);
        assert_eq!(Short::find(&reference, (-700_000, 800_000), SHIFT, 0..=31, true), None);
        assert!(Short::find(&reference, (-700_000, 10_000), SHIFT, 0..=31, true).is_some());
    }

    #[test]
    fn a_dead_channel_has_one() {
        // A bias of 2^30 and weights that move the output by at most one step.
        let reference = reference(1.1e-8, -128, [-128, 127]);
        let centre = reference.step(-120);
        for range in [(centre - 90_000, centre + 90_000), (centre + 1, centre + 90_000)] {
            let short = Short::find(&reference, range, SHIFT, 0..=31, false).unwrap();
            agree(&reference, &short, range, SHIFT);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 2))]

        /// Whatever form is found equals the reference.
        #[test]
        fn found_forms_are_exact(
            exponent in -22.0f64..0.5, zero_point in -128i32..=127, relu: bool, lo in -3_000_000i64..0, hi in 1i64..3_000_000,
            centre in -400_000_000i64..400_000_000, dead: bool, folded: bool,
        ) {
            let zero_point = if relu { -128 } else { zero_point };
            let reference = reference(exponent.exp2(), zero_point, [-128, 127]);
            let range = if dead { (centre + lo / 16, centre + hi / 16) } else { (lo, hi) };
            let (shift, k) = if folded { (FOLDED_SHIFT, 0..=8) } else { (SHIFT, 0..=31) };
            if let Some(short) = Short::find(&reference, range, shift, k, !folded) {
                agree(&reference, &short, range, shift);
            }
            if let Some(short) = Short::find(&reference, range, PAIRS_SHIFT, 8..=31, !folded) {
                prop_assert!(short.k >= 8);
                agree(&reference, &short, range, PAIRS_SHIFT);
            }
        }

        /// The factors of real layers always have one.
        #[test]
        fn usual_layers_have_a_form(exponent in -13.0f64..-2.0, zero_point in -128i32..=127, outputs in 256.0f64..16_000.0) {
            let reference = reference(exponent.exp2(), zero_point, [-128, 127]);
            let reach = (outputs / exponent.exp2()) as i64;
            prop_assert!(Short::find(&reference, (-reach, reach), SHIFT, 0..=31, true).is_some());
        }
    }
}
