//! Softmax and its logarithm of one quantised row.

use serde::{Deserialize, Serialize};

use super::activation::{input_radius, lookup_i16};
use super::fixed::{exp_on_negative_values, log_for_at_least_one, reciprocal};
use super::rounding::{Multiplier, rounding_shift_right};

/// Integer bits of the scaled difference to the row's largest value.
const DIFF_BITS: u32 = 5;
/// Integer bits of the sum of exponentials: rows of up to 4095 equal values do not saturate it.
const SUM_BITS: u32 = 12;

/// Softmax of a row of int8, with int8 (scale 1/256, zero point -128) or int16 (scale 1/65536, zero point -32768) results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SoftmaxI8 {
    /// `beta * scale` into Q5; its shift is not negative.
    pub multiplier: Multiplier,
    /// Differences below this are as good as minus infinity.
    pub diff_min: i32,
}

impl SoftmaxI8 {
    /// For inputs of this scale; `None` where `beta * scale` is not above 2^-26.
    pub fn new(beta: f32, scale: f32) -> Option<Self> {
        let real = f64::from(beta) * f64::from(scale) * f64::from(1 << (31 - DIFF_BITS));
        if real.is_nan() || real <= 1.0 {
            return None;
        }
        let multiplier = Multiplier::from_real(real.min(2_147_483_647.0))?;
        Some(Self {
            multiplier,
            diff_min: -input_radius(DIFF_BITS, multiplier.shift),
        })
    }

    /// One row into int8, in order. `row` is iterated three times; results may overwrite what has been read.
    pub fn run<I: Iterator<Item = i8>>(&self, row: impl Fn() -> I, mut write: impl FnMut(i8)) {
        self.row(row, 8, |q| write(stored(q)));
    }

    /// One row into int16, likewise.
    pub fn run_to_i16<I: Iterator<Item = i8>>(&self, row: impl Fn() -> I, mut write: impl FnMut(i16)) {
        self.row(row, 16, |q| write((q.min(65535) as u16).wrapping_sub(32768) as i16));
    }

    /// The exponentials that a row needs: of a difference to its largest value of 0, of -1 and so on; 0 where they are as good as those of minus infinity.
    pub fn exponentials(&self) -> [i32; 256] {
        let mut table = [0; 256];
        for (exp, diff) in table.iter_mut().zip((-255..=0).rev()) {
            if diff >= self.diff_min {
                *exp = exp_of_diff(diff, self.multiplier);
            }
        }
        table
    }

    fn row<I: Iterator<Item = i8>>(&self, row: impl Fn() -> I, output_bits: i32, mut store: impl FnMut(u32)) {
        let largest = largest(row());
        let exp = |q: i8| {
            let diff = i32::from(q) - largest;
            if diff >= self.diff_min {
                exp_of_diff(diff, self.multiplier)
            } else {
                0
            }
        };
        let mut kept = [UNSET; KEPT];
        let (mut sum, mut places) = (0_u32, kept.iter_mut());
        for q in row() {
            let exp = exp(q);
            sum = sum.saturating_add(share(exp));
            if let Some(place) = places.next() {
                *place = exp;
            }
        }
        let scale = Scale::of(sum, output_bits);
        let mut kept = kept.iter();
        for q in row() {
            store(scale.apply(kept.next().map_or_else(|| exp(q), |&exp| exp)));
        }
    }
}

/// Exponentials of a row that are computed once and not twice: those of a classifier.
const KEPT: usize = 16;

/// What no exponential is. With zero in its place compilers call `memset`, which a small program has for nothing else: 174 bytes on a Cortex-M4.
const UNSET: i32 = -2;

/// An exponential, which is not negative, as Q12.
#[inline(always)]
fn share(exp: i32) -> u32 {
    (exp as u32).wrapping_add(1 << (SUM_BITS - 1)) >> SUM_BITS
}

/// What takes an exponential to its share of the sum.
struct Scale {
    factor: u32,
    /// To the right, with its half.
    shift: u32,
    half: u32,
}

impl Scale {
    /// Of a sum of Q12, which may have saturated, for results of so many bits.
    fn of(sum: u32, output_bits: i32) -> Self {
        let (factor, bits_over_one) = reciprocal(sum.min(i32::MAX as u32) as i32, SUM_BITS as i32);
        let shift = (bits_over_one + 31 - output_bits).clamp(0, 31) as u32;
        Self {
            factor: factor as u32,
            shift,
            half: (1 << shift) >> 1,
        }
    }

    /// The rounded product: neither factor is negative, so that ties go up.
    #[inline(always)]
    fn apply(&self, exp: i32) -> u32 {
        let product = (u64::from(self.factor) * u64::from(exp as u32) + (1 << 30)) >> 31;
        (product as u32).wrapping_add(self.half).wrapping_shr(self.shift)
    }
}

/// A result of eight bits less its zero point.
#[inline(always)]
fn stored(share: u32) -> i8 {
    (share.min(255) as u8).wrapping_sub(128) as i8
}

/// [`SoftmaxI8::run`] with its [`SoftmaxI8::exponentials`]. `row` is iterated three times; results may overwrite what has been read.
pub fn softmax_by_table<I: Iterator<Item = i8>>(
    row: impl Fn() -> I,
    mut write: impl FnMut(i8),
    exponentials: &[i32; 256],
) {
    let largest = row().fold(i8::MIN, |most, q| if q > most { q } else { most });
    let exp = |q: i8| {
        let index = largest.wrapping_sub(q) as u8;
        exponentials.get(usize::from(index)).copied().unwrap_or(0)
    };
    let sum = row().fold(0_u32, |sum, q| sum.saturating_add(share(exp(q))));
    let scale = Scale::of(sum, 8);
    for q in row() {
        write(stored(scale.apply(exp(q))));
    }
}

/// Softmax of a row of int16 into int16 (scale 1/32768, zero point 0), with two interpolation tables of 513 values: exp(x) on
/// [-10, 0], and 1 / (1 + x) on [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SoftmaxI16 {
    /// `beta * scale` to the scale 10/65535 of the first table.
    pub multiplier: Multiplier,
}

impl SoftmaxI16 {
    /// For inputs of this scale and zero point 0.
    pub fn new(beta: f32, scale: f32) -> Option<Self> {
        let multiplier = Multiplier::from_real(f64::from(scale) * f64::from(beta) / (10.0 / 65535.0))?;
        Some(Self { multiplier })
    }

    /// One row, in order. `row` is iterated three times; results may overwrite what has been read.
    pub fn run<I: Iterator<Item = i16>>(
        &self,
        row: impl Fn() -> I,
        mut write: impl FnMut(i16),
        exp_table: &[i16],
        inverse_table: &[i16],
    ) {
        let largest = i32::from(row().max().unwrap_or(i16::MIN));
        let exp = |q: i16| {
            let diff = self.multiplier.apply(i32::from(q) - largest).wrapping_add(32767);
            lookup_i16(diff.clamp(-32768, 32767) as i16, exp_table)
        };
        let sum = row().fold(0_i32, |sum, q| sum.wrapping_add(i32::from(exp(q))));
        // The sum, brought to 1 <= s < 2 with 16 fractional bits, minus 1, recentred for the table.
        let headroom = sum.leading_zeros();
        let shifted = ((i64::from(sum) << headroom.saturating_sub(1)) + (1 << 13)) >> 14;
        let centred = (shifted - ((1 << 15) + (1 << 16))).clamp(-32768, 32767) as i16;
        let inverse = i64::from(lookup_i16(centred, inverse_table));
        let shift = 31_u32.saturating_sub(headroom).max(1);
        for q in row() {
            let product = (i64::from(exp(q)) * inverse + (1 << (shift - 1))) >> shift;
            write((product as i32).clamp(0, 32767) as i16);
        }
    }
}

/// Logarithm of the softmax of a row of int8, with int8 results of scale 1/16 and zero point 127.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LogSoftmaxI8 {
    /// `scale` into Q5.
    pub multiplier: Multiplier,
    /// From Q5 back to the input's scale.
    pub inverse: Multiplier,
    /// Differences below this are as good as minus infinity.
    pub diff_min: i32,
}

impl LogSoftmaxI8 {
    /// For inputs of this scale; `None` where it is not above 2^-26.
    pub fn new(scale: f32) -> Option<Self> {
        let SoftmaxI8 { multiplier, diff_min } = SoftmaxI8::new(1.0, scale)?;
        let inverse = libm::ldexp(1.0, 31 - i32::from(multiplier.shift)) / f64::from(multiplier.mantissa);
        Some(Self {
            multiplier,
            inverse: Multiplier::from_real(inverse)?,
            diff_min,
        })
    }

    /// One row, in order. `row` is iterated three times; results may overwrite what has been read.
    pub fn run<I: Iterator<Item = i8>>(&self, row: impl Fn() -> I, mut write: impl FnMut(i8)) {
        const OUTPUT_BITS: u32 = 4;
        let largest = largest(row());
        let log_sum = log_for_at_least_one(sum_of_exps(row(), largest, self.multiplier, self.diff_min));
        // The smallest difference whose result fits Q5, in the input's scale.
        let floor = self.inverse.apply(log_sum.wrapping_add(i32::MIN));
        let floor = floor.max(self.diff_min.wrapping_sub(1));
        for q in row() {
            let diff = i32::from(q) - largest;
            write(if diff > floor {
                let log = self.multiplier.apply(diff).wrapping_sub(log_sum);
                let stored = rounding_shift_right(log, 31 - DIFF_BITS - OUTPUT_BITS).wrapping_add(127);
                stored.clamp(-128, 127) as i8
            } else {
                i8::MIN
            });
        }
    }
}

fn largest(row: impl Iterator<Item = i8>) -> i32 {
    i32::from(row.max().unwrap_or(i8::MIN))
}

/// exp(scale * diff) as Q0.
fn exp_of_diff(diff: i32, multiplier: Multiplier) -> i32 {
    exp_on_negative_values::<DIFF_BITS>(multiplier.apply(diff))
}

/// The sum of exp(scale * (q - largest)) as Q12; saturates rather than wraps.
fn sum_of_exps(row: impl Iterator<Item = i8>, largest: i32, multiplier: Multiplier, diff_min: i32) -> i32 {
    row.map(|q| i32::from(q) - largest)
        .filter(|&diff| diff >= diff_min)
        .fold(0_i32, |sum, diff| {
            sum.saturating_add(rounding_shift_right(exp_of_diff(diff, multiplier), SUM_BITS))
        })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    fn softmax(row: &[f64]) -> Vec<f64> {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
        row.iter().map(|x| (x - largest).exp() / sum).collect()
    }

    #[test]
    fn a_table_gives_the_same_bits() {
        for (beta, scale) in [(1.0, 0.05), (1.0, 0.003), (0.5, 0.9), (1.0, 7.0)] {
            let params = SoftmaxI8::new(beta, scale).unwrap();
            let table = params.exponentials();
            for (len, seed) in (1..60).zip(1_i32..) {
                let row: Vec<i8> = (0..len).map(|i: i32| (i * 71 + seed * 37) as i8).collect();
                let (mut plain, mut by_table) = (Vec::new(), Vec::new());
                params.run(|| row.iter().copied(), |q| plain.push(q));
                softmax_by_table(|| row.iter().copied(), |q| by_table.push(q), &table);
                assert_eq!(by_table, plain, "{scale} {row:?}");
            }
        }
    }

    /// A table as the host makes it, without its correction of midpoints.
    fn table(function: impl Fn(f64) -> f64) -> Vec<i16> {
        (0..513)
            .map(|i| (32768.0 * function(f64::from(i) / 512.0)).round().min(32767.0) as i16)
            .collect()
    }

    proptest! {
        #[test]
        fn int8_rows_are_near(row in prop::collection::vec(any::<i8>(), 1..64), scale in 1e-3_f32..0.5) {
            let params = SoftmaxI8::new(1.0, scale).unwrap();
            let exact = softmax(&row.iter().map(|&q| f64::from(q) * f64::from(scale)).collect::<Vec<_>>());
            let (mut narrow, mut wide) = (Vec::new(), Vec::new());
            params.run(|| row.iter().copied(), |q| narrow.push(q));
            params.run_to_i16(|| row.iter().copied(), |q| wide.push(q));
            for ((narrow, wide), exact) in narrow.iter().zip(&wide).zip(exact) {
                prop_assert!(((f64::from(*narrow) + 128.0) / 256.0 - exact.min(255.0 / 256.0)).abs() < 0.6 / 256.0);
                prop_assert!(((f64::from(*wide) + 32768.0) / 65536.0 - exact.min(65535.0 / 65536.0)).abs() < 2.0 / 65536.0);
            }
        }

        #[test]
        fn int16_rows_are_near(row in prop::collection::vec(any::<i16>(), 1..64), scale in 1e-5_f32..1e-3) {
            let params = SoftmaxI16::new(1.0, scale).unwrap();
            let exact = softmax(&row.iter().map(|&q| f64::from(q) * f64::from(scale)).collect::<Vec<_>>());
            let mut out = Vec::new();
            params.run(|| row.iter().copied(), |q| out.push(q), &table(|x| (10.0 * (x - 1.0)).exp()), &table(|x| 1.0 / (1.0 + x)));
            for (got, exact) in out.iter().zip(exact) {
                prop_assert!((f64::from(*got) / 32768.0 - exact).abs() < 2e-3, "{got} {exact}");
            }
        }

        #[test]
        fn log_rows_are_near(row in prop::collection::vec(any::<i8>(), 1..64), scale in 1e-3_f32..0.1) {
            let params = LogSoftmaxI8::new(scale).unwrap();
            let exact = softmax(&row.iter().map(|&q| f64::from(q) * f64::from(scale)).collect::<Vec<_>>());
            let mut out = Vec::new();
            params.run(|| row.iter().copied(), |q| out.push(q));
            for (got, exact) in out.iter().zip(exact) {
                let stored = (exact.ln() * 16.0 + 127.0).max(-128.0);
                prop_assert!((f64::from(*got) - stored).abs() < 1.1, "{got} {stored}");
            }
        }

        #[test]
        fn nothing_panics(row in prop::collection::vec(any::<i8>(), 0..9), mantissa: i32, shift: i8, diff_min: i32) {
            let multiplier = Multiplier { mantissa, shift };
            let read = || row.iter().copied();
            SoftmaxI8 { multiplier, diff_min }.run(read, |_| {});
            LogSoftmaxI8 { multiplier, inverse: multiplier, diff_min }.run(read, |_| {});
            SoftmaxI16 { multiplier }.run(|| read().map(|q| i16::from(q) << 8), |_| {}, &[], &[]);
        }
    }

    #[test]
    fn unusable_scales() {
        assert_eq!(SoftmaxI8::new(1.0, 1e-9), None);
        assert_eq!(SoftmaxI8::new(f32::NAN, 1.0), None);
        assert_eq!(LogSoftmaxI8::new(0.0), None);
    }

    #[test]
    fn a_long_row_of_equal_values_saturates() {
        let mut out = Vec::new();
        let row = || core::iter::repeat_n(3, 5000);
        SoftmaxI8::new(1.0, 0.1).unwrap().run(row, |q| out.push(q));
        assert_eq!(out, vec![-128; 5000]);
    }
}
