//! Softmax and its logarithm of one quantised row.

use core::cell::Cell;

use serde::{Deserialize, Serialize};

use super::activation::{input_radius, lookup_i16};
use super::fixed::{exp_on_negative_values, log_for_at_least_one, reciprocal};
use super::rounding::{
    Multiplier, Rescaler, high_mul_in_range, high_mul_of_positive, high_mul_of_twice, rounding_shift_right,
};

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
        let Self { multiplier, diff_min } = *self;
        let exp = |q: i8| {
            let diff = i32::from(q) - largest;
            if diff == 0 && diff_min <= 0 {
                return i32::MAX;
            }
            let scaled = if diff >= diff_min {
                // Its shift is to the left.
                high_mul_in_range(diff.wrapping_shl(multiplier.shift as u32), multiplier.mantissa)
            } else {
                NOTHING
            };
            // Such a term adds nothing to the sum, and rounds to nothing.
            if scaled <= NOTHING {
                0
            } else {
                exp_on_negative_values::<DIFF_BITS>(scaled)
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

/// Marker that is no exponential. With zero in its place compilers call `memset`, which a small program has for nothing else: 174 bytes on a Cortex-M4.
const UNSET: i32 = -2;

/// Q5 of which the exponential is below 2^11 of 2^31: half of what counts in the sum, and less than half of a result's last bit.
const NOTHING: i32 = -14 << (31 - DIFF_BITS);

/// An exponential, which is not negative, as Q12.
#[inline(always)]
fn share(exp: i32) -> u32 {
    (exp as u32).wrapping_add(1 << (SUM_BITS - 1)) >> SUM_BITS
}

/// Scale of an exponential to its share of the sum.
struct Scale {
    factor: i32,
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
            factor: factor & i32::MAX,
            shift,
            half: (1 << shift) >> 1,
        }
    }

    /// The rounded product: neither factor is negative, so that ties go up.
    #[inline(always)]
    fn apply(&self, exp: i32) -> u32 {
        // Most classes are as unlikely as that, and products are functions there.
        if cfg!(kernel_isa = "armv6m") && exp == 0 {
            return 0;
        }
        // Tables that no packer wrote may hold anything.
        (high_mul_of_positive(self.factor, exp & i32::MAX) as u32)
            .wrapping_add(self.half)
            .wrapping_shr(self.shift)
    }
}

/// A result of eight bits less its zero point.
#[inline(always)]
fn stored(share: u32) -> i8 {
    ((share as i32).clamp(0, 255) - 128) as i8
}

/// [`SoftmaxI8::run`] with its [`SoftmaxI8::exponentials`]. `row` is iterated three times; results may overwrite what has been read.
pub fn softmax_by_table<I: Iterator<Item = i8>>(row: impl Fn() -> I, out: &[Cell<i8>], exponentials: &[i32; 256]) {
    let largest = row().map(i32::from).fold(i8::MIN.into(), i32::max);
    let exp = |q: i8| {
        let index = (largest - i32::from(q)) as u8;
        exponentials.get(usize::from(index)).copied().unwrap_or(0)
    };
    // 2^12 of them at most, each of at most 2^20, do not saturate the sum.
    let sum = match out.len() {
        ..=4095 => row().fold(0_u32, |sum, q| sum.wrapping_add(share(exp(q)))),
        _ => row().fold(0_u32, |sum, q| sum.saturating_add(share(exp(q)))),
    };
    let scale = Scale::of(sum, 8);
    for (y, q) in out.iter().zip(row()) {
        y.set(stored(scale.apply(exp(q))));
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

    /// One row, in order. `row` is iterated twice; results, and the exponentials before them, may overwrite what has been read.
    pub fn run<I: Iterator<Item = i16>>(
        &self,
        row: impl Fn() -> I,
        out: &[Cell<i16>],
        exp_table: &[i16; 513],
        inverse_table: &[i16; 513],
    ) {
        let largest = row().map(i32::from).fold(i16::MIN.into(), i32::max);
        let Multiplier { mantissa, shift } = self.multiplier;
        let sum = match u32::try_from(shift) {
            // Differences have 16 bits: doubled and shifted, they have at most 30, and nothing shifts to the right.
            Ok(left @ 0..=13) => exponentials(row(), out, exp_table, |q| {
                high_mul_of_twice((i32::from(q) - largest) << (left + 1), mantissa)
            }),
            _ => {
                let rescaler = Rescaler::new(self.multiplier);
                exponentials(row(), out, exp_table, |q| rescaler.apply(i32::from(q) - largest))
            }
        };
        // The sum, brought to 1 <= s < 2 with 16 fractional bits, minus 1, recentred for the table.
        let headroom = sum.leading_zeros();
        let shifted = ((i64::from(sum) << headroom.saturating_sub(1)) + (1 << 13)) >> 14;
        let centred = (shifted - ((1 << 15) + (1 << 16))).clamp(-32768, 32767) as i16;
        let inverse = i32::from(lookup_i16(centred, inverse_table));
        let shift = 31_u32.saturating_sub(headroom).max(1);
        let half = 1_u32 << (shift - 1);
        let finish = |y: &Cell<i16>| {
            // Two numbers of 15 bits, and half of at most 2^31: as much as 32 bits hold.
            let product = (i32::from(y.get()).wrapping_mul(inverse) as u32).wrapping_add(half) as i32;
            y.set((product >> shift).clamp(0, 32767) as i16);
        };
        let (fours, rest) = out.as_chunks::<4>();
        for [a, b, c, d] in fours {
            [a, b, c, d].into_iter().for_each(finish);
        }
        rest.iter().for_each(finish);
    }
}

/// Writes the exponentials of scaled differences, and adds them up.
#[inline(always)]
fn exponentials(
    row: impl Iterator<Item = i16>,
    out: &[Cell<i16>],
    table: &[i16; 513],
    scale: impl Fn(i16) -> i32,
) -> i32 {
    let mut sum = 0_i32;
    for (y, q) in out.iter().zip(row) {
        // From -10 on: 9 bits of the table's index, and 7 bits beside it. The scaled value is not above 0.
        let place = scale(q).wrapping_add(65535).max(0) as usize;
        let index = (place >> 7) & 0x1FF;
        let [base, next] = [index, index + 1].map(|i| table.get(i).copied().unwrap_or(0));
        let delta = (i32::from(next.wrapping_sub(base)) * (place & 0x7F) as i32 + 64) >> 7;
        let exp = (i32::from(base) + delta) as i16;
        y.set(exp);
        sum = sum.wrapping_add(i32::from(exp));
    }
    sum
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
    use std::vec;
    use std::vec::Vec;

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
                let (mut plain, by_table) = (Vec::new(), vec![Cell::new(0); row.len()]);
                params.run(|| row.iter().copied(), |q| plain.push(q));
                softmax_by_table(|| row.iter().copied(), &by_table, &table);
                assert_eq!(
                    by_table,
                    plain.into_iter().map(Cell::new).collect::<Vec<_>>(),
                    "{scale} {row:?}"
                );
            }
        }
    }

    /// A table as the host makes it, without its correction of midpoints.
    fn table(function: impl Fn(f64) -> f64) -> [i16; 513] {
        core::array::from_fn(|i| (32768.0 * function(i as f64 / 512.0)).round().min(32767.0) as i16)
    }

    /// As the reference computes it, each exponential twice.
    fn by_formula(row: &[i16], multiplier: Multiplier, exp_table: &[i16], inverse_table: &[i16]) -> Vec<i16> {
        let largest = i32::from(*row.iter().max().unwrap());
        let exp = |q: i16| {
            let diff = multiplier.apply(i32::from(q) - largest) + 32767;
            lookup_i16(diff.clamp(-32768, 32767) as i16, exp_table)
        };
        let sum: i32 = row.iter().map(|&q| i32::from(exp(q))).sum();
        let headroom = sum.leading_zeros();
        let shifted = ((i64::from(sum) << (headroom - 1)) + (1 << 13)) >> 14;
        let centred = (shifted - ((1 << 15) + (1 << 16))).clamp(-32768, 32767) as i16;
        let inverse = i64::from(lookup_i16(centred, inverse_table));
        let shift = 31 - headroom;
        let output = |q: i16| (i64::from(exp(q)) * inverse + (1 << (shift - 1))) >> shift;
        row.iter().map(|&q| output(q).clamp(0, 32767) as i16).collect()
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
            let out: Vec<Cell<i16>> = vec![Cell::new(0); row.len()];
            let (exp, inverse) = (table(|x| (10.0 * (x - 1.0)).exp()), table(|x| 1.0 / (1.0 + x)));
            params.run(|| row.iter().copied(), &out, &exp, &inverse);
            for (got, exact) in out.iter().map(Cell::get).zip(exact) {
                prop_assert!((f64::from(got) / 32768.0 - exact).abs() < 2e-3, "{got} {exact}");
            }
            // In its own place, and by the reference's formula.
            let place: Vec<Cell<i16>> = row.iter().copied().map(Cell::new).collect();
            params.run(|| place.iter().map(Cell::get), &place, &exp, &inverse);
            prop_assert_eq!(&place, &out);
            prop_assert_eq!(by_formula(&row, params.multiplier, &exp, &inverse), out.iter().map(Cell::get).collect::<Vec<_>>());
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
            SoftmaxI16 { multiplier }.run(|| read().map(|q| i16::from(q) << 8), &[const { Cell::new(0) }; 9], &[mantissa as i16; 513], &[-32768; 513]);
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
