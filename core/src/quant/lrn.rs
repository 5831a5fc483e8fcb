//! Local response normalisation of int8: what an element is multiplied by goes by the squares around it, through a table.
//!
//! With the differences to the zero point `d`, the real result `scale d / (bias + alpha scale^2 s)^beta` of the squares' sum `s` is `d c (1 + g s)^-beta`
//! steps of the result, `g = alpha scale^2 / bias` and `c = scale bias^-beta / result's scale`. The power is taken of `2^e m`, `m` from 1 to 2: a multiplier
//! for each `e` that occurs has `c 2^(-beta e)`, and `m^-beta` lies between entries of a table of 64 segments.
//!
//! The stored result is half a step off the real one at most, and `beta (beta + 1) / 64` of a step more (0.021 where beta is 0.75).

use serde::{Deserialize, Serialize};

use super::rounding::Multiplier;

/// Bits of the fraction of `1 + g s`.
const FRACTION: u32 = 20;
/// Bits that choose a segment, and those that lie in it.
const SEGMENT: u32 = 6;
const WITHIN: u32 = 12;
/// Bits of the fraction of a power.
const POWER: u32 = 23;
/// The largest exponent.
const MOST_BETA: f32 = 4.0;
/// Elements that are multiplied by so much leave the result's range, whatever their power.
const BEYOND: f64 = 4096.0;

/// An int8 local response normalisation; what it finds in tables is beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LrnI8 {
    /// Addend of one square, on top of one: `growth / 2^(FRACTION + shift)`.
    pub growth: u32,
    /// See there.
    pub shift: u8,
    /// Multipliers in the table, at least one.
    pub octaves: u8,
}

/// The entries of [`LrnI8`]'s table in front of the multipliers.
pub const LRN_POWERS: usize = (1 << SEGMENT) + 1;

/// The most multipliers behind them.
pub const LRN_OCTAVES: usize = (64 - FRACTION) as usize;

impl LrnI8 {
    /// For `[bias, alpha, beta]`, the scales of operand and result, and the most elements whose squares are summed. `None` where `bias` is not above zero,
    /// `alpha` below zero, `beta` not from 0 to 4, or a single square is more than 2,048 times `bias`.
    pub fn new([bias, alpha, beta]: [f32; 3], [input, output]: [f32; 2], near: u32) -> Option<Self> {
        let finite = [bias, alpha, beta, input, output].iter().all(|v| v.is_finite());
        if !finite || bias <= 0.0 || alpha < 0.0 || !(0.0..=MOST_BETA).contains(&beta) || input <= 0.0 || output <= 0.0
        {
            return None;
        }
        let scale = f64::from(input);
        let growth = f64::from(alpha) * scale * scale / f64::from(bias);
        let (fraction, exponent) = libm::frexp(growth);
        // The mantissa has 31 bits.
        let shift = 31_i32.wrapping_sub(FRACTION as i32).wrapping_sub(exponent);
        let (growth, shift) = match shift {
            ..0 => return None,
            0..=63 => (libm::trunc(libm::ldexp(fraction, 31)) as u32, shift as u8),
            // Whatever is added does not reach the fraction.
            _ => (0, 0),
        };
        let this = Self {
            growth,
            shift,
            octaves: 1,
        };
        let (last, _) = this.split(near.checked_mul(255 * 255)?);
        Some(Self {
            octaves: u8::try_from(last).ok()?.checked_add(1)?,
            ..this
        })
    }

    /// Whether the fields are in the range that [`LrnI8::new`] gives.
    pub const fn is_valid(&self) -> bool {
        self.shift <= 63 && self.octaves >= 1 && self.octaves as usize <= LRN_OCTAVES
    }

    /// Words of its table.
    pub const fn words(&self) -> u32 {
        LRN_POWERS as u32 + 2 * self.octaves as u32
    }

    /// Writes its table, of [`LrnI8::words`], for the values that it was made for; `None` where the length is another.
    pub fn write(&self, [bias, beta]: [f32; 2], [input, output]: [f32; 2], table: &mut [i32]) -> Option<()> {
        if table.len() != self.words() as usize {
            return None;
        }
        let beta = f64::from(beta);
        let (powers, octaves) = table.split_first_chunk_mut::<LRN_POWERS>()?;
        for (at, power) in powers.iter_mut().enumerate() {
            let mantissa = 1.0 + libm::ldexp(at as f64, -(SEGMENT as i32));
            *power = libm::round(libm::ldexp(libm::pow(mantissa, -beta), POWER as i32)) as i32;
        }
        let whole = f64::from(input) / f64::from(output) * libm::pow(f64::from(bias), -beta);
        for (octave, multiplier) in octaves.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let factor = whole * libm::exp2(-beta * octave as f64);
            let Multiplier { mantissa, shift } =
                Multiplier::from_real(libm::ldexp(factor.min(BEYOND), -(POWER as i32)))?;
            *multiplier = [mantissa, i32::from(shift)];
        }
        Some(())
    }

    /// The difference `d` of an element to its zero point, normalised, as a difference to the result's, before it is clamped.
    #[inline]
    pub fn apply(&self, d: i32, squares: u32, powers: &[i32; LRN_POWERS], octaves: &[[i32; 2]]) -> i32 {
        let (octave, mantissa) = self.split(squares);
        let last = octaves.len().wrapping_sub(1);
        let [multiplier, shift] = octaves.get((octave as usize).min(last)).copied().unwrap_or([0, 0]);
        let segment = (mantissa >> WITHIN) as usize;
        let [low, high] = [segment, segment + 1].map(|at| powers.get(at).copied().unwrap_or(0));
        let within = (mantissa & ((1 << WITHIN) - 1)) as i32;
        let power = low.wrapping_add(high.wrapping_sub(low).wrapping_mul(within) >> WITHIN);
        let multiplier = Multiplier {
            mantissa: multiplier,
            shift: shift as i8,
        };
        multiplier.apply(d.wrapping_mul(power))
    }

    /// `1 + g s` as a power of two and the mantissa's bits behind the point.
    #[inline]
    fn split(&self, squares: u32) -> (u32, u32) {
        let grown = u64::from(squares).wrapping_mul(u64::from(self.growth)) >> (self.shift & 63);
        let sum = grown.wrapping_add(1 << FRACTION);
        let zeros = sum.leading_zeros();
        let fraction = (sum << (zeros & 63)) >> (63 - SEGMENT - WITHIN);
        let octave = (63 - FRACTION).wrapping_sub(zeros);
        (octave, fraction as u32 & ((1 << (SEGMENT + WITHIN)) - 1))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// The formula in f64.
    fn exact([bias, alpha, beta]: [f32; 3], [input, output]: [f32; 2], d: i32, squares: u32) -> f64 {
        let [bias, alpha, beta] = [bias, alpha, beta].map(f64::from);
        let scale = f64::from(input);
        scale * f64::from(d) / (bias + alpha * scale * scale * f64::from(squares)).powf(beta) / f64::from(output)
    }

    #[test]
    fn results_are_as_near_as_stated() {
        let networks = [
            ([2.0, 1e-4, 0.75], 5),
            ([1.0, 1e-4 / 5.0, 0.75], 5),
            ([1.0, 1.0, 0.5], 3),
            ([0.01, 0.3, 1.0], 9),
            ([1e-3, 2.0, 2.0], 33),
            ([1.0, 0.0, 0.75], 5),
            ([3.0, 0.1, 0.0], 1),
            ([1.0, 0.02, 4.0], 7),
        ];
        for ((values, near), scale) in networks
            .into_iter()
            .flat_map(|n| [1e-3, 0.02, 0.7, 11.0].map(|s| (n, s)))
        {
            // The largest result there is has all of the range.
            let most = (1..=255)
                .map(|d| exact(values, [scale, 1.0], d, (d * d) as u32))
                .fold(0.0, f64::max);
            let scales = [scale, (most / 255.0) as f32];
            let Some(lrn) = LrnI8::new(values, scales, near) else {
                assert!(values[1] * scale * scale / values[0] >= 2047.0, "{values:?} {scale}");
                continue;
            };
            let mut table = std::vec![0; lrn.words() as usize];
            lrn.write([values[0], values[2]], scales, &mut table).expect("a table");
            let (powers, octaves) = table.split_first_chunk().expect("powers");
            let (octaves, beta) = (octaves.as_chunks().0, f64::from(values[2]));
            let mut worst = 0.0_f64;
            for d in 0..=255_i32 {
                let own = (d * d) as u32;
                let others = (near - 1) * 255 * 255;
                let sums: Vec<u32> = (0..40)
                    .map(|part| own + (u64::from(others) * part / 39) as u32)
                    .collect();
                for squares in sums
                    .into_iter()
                    .chain((0..18).map(|bit| own + (1_u32 << bit).min(others)))
                {
                    let found = lrn.apply(d, squares, powers, octaves);
                    assert_eq!(found, -lrn.apply(-d, squares, powers, octaves), "both signs");
                    worst = worst.max((f64::from(found) - exact(values, scales, d, squares)).abs());
                }
            }
            assert!(
                worst <= 0.5 + beta * (beta + 1.0) / 64.0 + 1e-3,
                "{values:?} {scale}: {worst}"
            );
        }
    }

    #[test]
    fn what_has_no_form_is_none() {
        let of = |values| LrnI8::new(values, [0.1, 0.1], 5);
        assert!(of([2.0, 1e-4, 0.75]).is_some());
        for values in [
            [0.0, 1e-4, 0.75],
            [-1.0, 1e-4, 0.75],
            [1.0, -1e-4, 0.75],
            [1.0, 1e-4, -0.5],
            [1.0, 1e-4, 4.5],
            [1.0, f32::NAN, 1.0],
            [1e-9, 1.0, 0.5],
        ] {
            assert_eq!(of(values), None, "{values:?}");
        }
        assert_eq!(LrnI8::new([2.0, 1e-4, 0.75], [0.1, 0.1], 1 << 17), None);
    }

    #[test]
    fn elements_that_leave_the_range_stay_outside() {
        // The result's scale is so fine that even small elements do.
        let (values, scales) = ([1.0, 1e-6, 0.75], [1.0, 1e-5]);
        let lrn = LrnI8::new(values, scales, 5).expect("a form");
        let mut table = std::vec![0; lrn.words() as usize];
        lrn.write([values[0], values[2]], scales, &mut table).expect("a table");
        let (powers, octaves) = table.split_first_chunk().expect("powers");
        for d in 1..=255 {
            assert!(lrn.apply(d, (d * d) as u32, powers, octaves.as_chunks().0) > 255);
        }
    }
}
