//! Packing: the record of a channel, and the blocks that its weights allow.

use super::channel_record::{BLOCK2, BLOCK3, BLOCK4, BLOCK8, CONSTANT, GENERAL, LEAST_BITS, Record, SINGLE};
use super::{channel_record, requantize};
use crate::kernels::primitives::requantize::steps::Requantize;
use crate::ops::conv2d::Conv2dS8;
use crate::quant::Multiplier;

/// The bits with which most channels have the single form, 0 where none has it: `weights` are rows, one for each of the `channels`.
pub(super) fn bits(op: &Conv2dS8, weights: &[i8], channels: &[Record]) -> u32 {
    let row = weights.len().checked_div(channels.len()).unwrap_or(0).max(1);
    let of = |bits: u32| {
        let records = weights.chunks_exact(row).zip(channels);
        let records = records.map(|(row, &plain)| channel(op, row.iter().copied(), plain, bits));
        records.filter(|record| record[2] & SINGLE != 0).count()
    };
    let best = (LEAST_BITS..16).map(|bits| (of(bits), bits)).max();
    best.map_or(0, |(count, bits)| if count == 0 { 0 } else { bits })
}

/// Packs one channel: its `weights` and `[bias, mantissa, shift]` of the scalar kernel, with so many bits if it has the single form. Block and place are still
/// to be added.
pub(super) fn channel(
    op: &Conv2dS8,
    weights: impl Iterator<Item = i8>,
    [bias, mantissa, shift]: Record,
    bits: u32,
) -> Record {
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
        let output = |acc: i64| requantize::general(acc as i32, &general, op.output_zero_point, op.clamp);
        let value = output(low);
        if value == output(high) {
            // 4d * 2^30 / 2^31 is 2d, and half of it d: exact in both roundings.
            let distance = i32::from(value) - i32::from(op.output_zero_point);
            return [4 * distance, 1 << 30, 1 | CONSTANT];
        }
    }
    let reference = Requantize {
        multiplier,
        zero_point: op.output_zero_point.into(),
        clamp: op.clamp.map(i32::from),
    };
    let reach = bias
        .unsigned_abs()
        .saturating_add(channel_record::window(op).saturating_mul(1 << 14));
    if fits && let Some([mantissa, code]) = requantize::find_single(&reference, (low, high), reach, bits) {
        return [bias, mantissa, code];
    }
    match requantize::short_shift(low.abs().max(high.abs()), multiplier, op.output_zero_point) {
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

/// Whether the sums of every `block` neighbouring products with any int8 stay within 16 bits.
pub(super) fn blocks_fit(weights: impl Iterator<Item = i8>, block: usize) -> bool {
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
