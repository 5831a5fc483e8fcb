//! Accumulators at which the reference's requantised output goes up by one: proofs of shorter forms compare there.
//!
//! An output never decreases with the accumulator and takes at most 256 values, so a form that never decreases either is the reference's wherever both agree on
//! the two sides of each of its at most 255 steps.

use crate::quant::Multiplier;

/// Parameters of the reference's requantisation: multiplier, zero point, clamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requantize {
    /// Input scale times weight scale over output scale.
    pub multiplier: Multiplier,
    /// Of the output.
    pub zero_point: i32,
    /// Least and largest output.
    pub clamp: [i32; 2],
}

impl Requantize {
    /// The stored output.
    #[inline]
    pub fn apply(&self, acc: i32) -> i8 {
        let [low, high] = self.clamp;
        // `max` then `min` and not `clamp`, which panics on an empty range.
        let out = self.multiplier.apply(acc).wrapping_add(self.zero_point);
        out.max(low).min(high) as i8
    }

    /// The least accumulator whose unclamped output reaches `n`; for a positive mantissa and accumulators that the left shift
    /// does not overflow.
    pub(crate) fn step(&self, n: i32) -> i64 {
        let (left, right) = shifts(self.multiplier);
        let n = i128::from(n - self.zero_point);
        let mut limit = n << right;
        if right > 0 {
            limit -= 1 << (right - 1);
            limit += i128::from(n <= 0);
        }
        // acc * 2^left * mantissa >= limit * 2^31 - 2^30
        let numerator = (limit << 31) - (1 << 30);
        let denominator = i128::from(self.multiplier.mantissa.max(1)) << left;
        let floor = numerator.div_euclid(denominator);
        (floor + i128::from(floor * denominator != numerator)) as i64
    }

    /// Whether a form that never decreases gives this output for every accumulator from `low` to `high`, by its value on both sides of each step:
    /// `reaches(acc, n)` says whether it is at least `n`, which lies above the least and up to the largest of `among`, the outputs that the form can tell
    /// apart.
    pub(crate) fn agrees(&self, (low, high): (i64, i64), among: [i32; 2], reaches: impl Fn(i64, i32) -> bool) -> bool {
        let [least, most] = self.clamp;
        (among[0] + 1..=among[1]).all(|n| {
            // Whether the output reaches n: at least n after the clamp.
            let step = match n {
                n if n <= least => i64::MIN,
                n if n > most => i64::MAX,
                n => self.step(n),
            };
            if step > high {
                !reaches(high, n)
            } else if step <= low {
                reaches(low, n)
            } else {
                reaches(step, n) && !reaches(step - 1, n)
            }
        })
    }
}

/// Left and right shift of a multiplier.
pub(crate) fn shifts(multiplier: Multiplier) -> (u32, u32) {
    let shift = i32::from(multiplier.shift);
    (shift.max(0) as u32, shift.min(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 2))]

        /// Steps are where the reference says.
        #[test]
        fn steps_are_exact(real in 1e-6f64..1.5, zero_point in -128i32..=127, n in -127i32..=127) {
            let multiplier = Multiplier::from_real(real).unwrap();
            let reference = Requantize { multiplier, zero_point, clamp: [-1000, 1000] };
            let unclamped = |acc: i64| reference.multiplier.apply(acc as i32).wrapping_add(zero_point);
            let step = reference.step(n);
            prop_assert!(unclamped(step) >= n && unclamped(step - 1) < n);
        }
    }
}
