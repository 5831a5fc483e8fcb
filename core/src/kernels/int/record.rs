//! What the loops know of an output channel: three words, `[bias, multiplier, code]`, in the place of the scalar kernel's record.
//!
//! - `bias`: the accumulator's start, zero-point correction included (`bias - zero_point * sum(weights)`).
//! - `multiplier`: the Q31 mantissa.
//! - `code`: bits 0 to 7 the shift; 8 and 9 the block; 10 `GENERAL`; 11 `CONSTANT`; 16 to 31 the channel's place in the output.
//!
//! The shift of the short form is to the right, 1 to 30; of the general form it is the signed power of two of [`Multiplier`].

use super::requant;
use crate::ops::conv2d::Conv2dS8;
use crate::quant::Multiplier;

/// `[bias, multiplier, code]`.
pub type Record = [i32; 3];

/// The block's bits.
pub(super) const BLOCK: i32 = 0x300;
/// Blocks of four inputs.
pub(super) const BLOCK4: i32 = 0;
/// Blocks of two: always fit, except two weights of -128.
pub(super) const BLOCK2: i32 = 0x100;
/// Blocks of three; only where a window has a multiple of 12 inputs.
pub(super) const BLOCK3: i32 = 0x200;
/// Blocks of eight; only where a window has a multiple of 8 inputs.
pub(super) const BLOCK8: i32 = 0x300;
/// The short requantising does not hold.
pub(super) const GENERAL: i32 = 0x400;
/// Every input gives the same output: the bias alone, no products.
pub(super) const CONSTANT: i32 = 0x800;

/// Rounds up to the four inputs that a loop takes at a time.
pub(super) const fn padded(inputs: u32) -> u32 {
    inputs.saturating_add(3) & !3
}

/// Packs one channel: its `weights` and `[bias, mantissa, shift]` of the scalar kernel. Block and place are still to be added.
pub(super) fn pack(op: &Conv2dS8, weights: impl Iterator<Item = i8>, [bias, mantissa, shift]: Record) -> Record {
    let zero_point = i64::from(op.input_zero_point);
    let (mut sum, mut low, mut high) = (0i32, i64::from(bias), i64::from(bias));
    for w in weights {
        sum = sum.wrapping_add(i32::from(w));
        let ends = [-128, 127].map(|x| (x - zero_point) * i64::from(w));
        low += ends[0].min(ends[1]);
        high += ends[0].max(ends[1]);
    }
    let multiplier = Multiplier {
        mantissa,
        shift: shift as i8,
    };
    let bias = bias.wrapping_sub(i32::from(op.input_zero_point).wrapping_mul(sum));
    let general = [bias, mantissa, (shift & 0xff) | GENERAL];
    let fits = i32::try_from(low).is_ok() && i32::try_from(high).is_ok();
    if fits && mantissa >= 0 && multiplier.shift <= 0 {
        // Requantising is monotone where nothing overflows.
        let output = |acc: i64| requant::general(acc as i32, &general, op.output_zero_point, op.clamp);
        let value = output(low);
        if value == output(high) {
            // 4d * 2^30 / 2^31 is 2d, and half of it d: exact in both roundings.
            let distance = i32::from(value) - i32::from(op.output_zero_point);
            return [4 * distance, 1 << 30, 1 | CONSTANT];
        }
    }
    match requant::short_shift(low.abs().max(high.abs()), multiplier, op.output_zero_point) {
        Some(shift) => [bias, mantissa, shift],
        None => general,
    }
}

/// The largest blocks whose products with any int8 fit 16 bits, for one or several rows of the same length; `None` where not even two do.
pub(super) fn block<W: Iterator<Item = i8>>(inputs: usize, rows: impl Iterator<Item = W> + Clone) -> Option<i32> {
    let fit = |block| rows.clone().all(|row| blocks_fit(row, block));
    if inputs.is_multiple_of(8) && fit(8) {
        Some(BLOCK8)
    } else if fit(4) {
        Some(BLOCK4)
    } else if inputs.is_multiple_of(12) && fit(3) {
        Some(BLOCK3)
    } else {
        fit(2).then_some(BLOCK2)
    }
}

/// The blocks that divide `inputs` (padded): bit n for block `n << 8`.
pub(super) fn divisors(inputs: usize) -> u32 {
    1 | 1 << 1 | u32::from(inputs.is_multiple_of(12)) << 2 | u32::from(inputs.is_multiple_of(8)) << 3
}

/// Whether loops in blocks that divide (`divisors`) into this many `outputs` stay within bounds whatever else the record says.
pub(super) fn is_valid(&[_, _, code]: &Record, divisors: u32, outputs: u32) -> bool {
    (divisors >> ((code & BLOCK) >> 8)) & 1 == 1 && (code as u32 >> 16) < outputs
}

/// Whether the sums of every `block` neighbouring products with any int8 stay within 16 bits.
fn blocks_fit(weights: impl Iterator<Item = i8>, block: usize) -> bool {
    let (mut low, mut high) = (0, 0);
    for (i, w) in weights.map(i32::from).enumerate() {
        if i % block == 0 {
            (low, high) = (0, 0);
        }
        low += (w * 127).min(w * -128);
        high += (w * 127).max(w * -128);
        if low < i32::from(i16::MIN) || high > i32::from(i16::MAX) {
            return false;
        }
    }
    true
}
