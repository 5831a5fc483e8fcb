//! Requantisation as it is published, in exact integers.

use arenite::quant::Multiplier;

/// gemmlowp's `SaturatingRoundingDoublingHighMul` and `RoundingDivideByPOT` behind a left shift; `None` where 32 bits do not hold it.
pub(super) fn scaled(x: i128, multiplier: Multiplier) -> Option<i128> {
    let shift = u32::from(multiplier.shift.unsigned_abs());
    let (left, right) = if multiplier.shift > 0 { (shift, 0) } else { (0, shift) };
    let shifted = word(x << left)?;
    let product = shifted * i128::from(multiplier.mantissa);
    let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
    let high = ((product + nudge) / (1 << 31)).min(i128::from(i32::MAX));
    let half = (1_i128 << right) / 2;
    let rounded = (high.abs() + half) >> right;
    Some(if high < 0 { -rounded } else { rounded })
}

/// A number that fits 32 bits.
pub(super) fn word(x: i128) -> Option<i128> {
    i32::try_from(x).ok().map(i128::from)
}
