//! What the loops know of an output channel: three words, `[bias, multiplier, code]`, in the place of the scalar kernel's record.
//!
//! - `bias`: the accumulator's start, zero-point correction included (`bias - zero_point * sum(weights)`).
//! - `multiplier`: the Q31 mantissa.
//! - `code`: bits 0 to 7 the shift; 8 and 9 the block; 10 `GENERAL`; 11 `CONSTANT`; 16 to 31 the channel's place in the output.
//!
//! The shift of the short form is to the right, 1 to 30; of the general form it is the signed power of two of [`Multiplier`](crate::quant::Multiplier).

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
/// Sums of the short form are below it in magnitude.
pub(super) const SHORT_SUM: u32 = 1 << 28;
/// Bits of the code without a meaning: zero.
const RESERVED: i32 = 0xf000;

/// Rounds up to the four inputs that a loop takes at a time.
pub(super) const fn padded(inputs: u32) -> u32 {
    inputs.saturating_add(3) & !3
}

/// The blocks that divide `inputs` (padded): bit n for block `n << 8`.
pub(super) fn divisors(inputs: usize) -> u32 {
    1 | 1 << 1 | u32::from(inputs.is_multiple_of(12)) << 2 | u32::from(inputs.is_multiple_of(8)) << 3
}

/// Whether a packer can have written the record for outputs of this zero point, its block and place aside ([`is_valid`]): the arithmetic of its form holds, and
/// what has no meaning is zero.
#[inline(always)]
pub(super) fn is_packed(record: &Record, zero_point: i8) -> bool {
    let [bias, multiplier, code] = *record;
    match code & (RESERVED | GENERAL | CONSTANT) {
        0 => ((code & 0xff) as u32).wrapping_sub(1) < 30 && multiplier >= 0 && bias.unsigned_abs() < SHORT_SUM,
        _ => is_uncommon(record, zero_point),
    }
}

/// [`is_packed`] for what is neither short nor varies.
#[cold]
#[inline(never)]
fn is_uncommon(&[bias, multiplier, code]: &Record, zero_point: i8) -> bool {
    match code & (RESERVED | GENERAL | CONSTANT) {
        GENERAL => (-31..=31).contains(&(code as i8)),
        // The output less the zero point, times four.
        CONSTANT => {
            let value = i8::try_from((bias >> 2).saturating_add(i32::from(zero_point)));
            (multiplier, code & 0xff, bias & 3) == (1 << 30, 1, 0) && value.is_ok()
        }
        _ => false,
    }
}

/// Whether loops in blocks that divide (`divisors`) into this many `outputs` stay within bounds whatever else the record says.
pub(super) fn is_valid(&[_, _, code]: &Record, divisors: u32, outputs: u32) -> bool {
    (divisors >> ((code & BLOCK) >> 8)) & 1 == 1 && (code as u32 >> 16) < outputs
}
