//! Record of an output channel: three words, `[bias, multiplier, code]`, in the place of the scalar kernel's record.
//!
//! - `bias`: the accumulator's start, zero-point correction included (`bias - zero_point * sum(weights)`).
//! - `multiplier`: the Q31 mantissa.
//! - `code`: bits 0 to 7 the shift; 8 and 9 the block; 10 `GENERAL`; 11 `CONSTANT`; 15 `SINGLE`, with 12 to 14 its bits less 8; 16 to 31 the channel's
//!   place in the output.
//!
//! The shift of the short and the single form is to the right, 1 to 30; of the general form it is the signed power of two of
//! [`Multiplier`](crate::quant::Multiplier).

use crate::ops::conv2d::Conv2dS8;

/// `[bias, multiplier, code]`.
pub type Record = [i32; 3];

/// The words by name, for the assembly.
#[allow(dead_code, reason = "nothing else has a record so")]
#[repr(C)]
pub(super) struct Words {
    pub(super) bias: i32,
    pub(super) multiplier: i32,
    pub(super) code: i32,
}

const _: () = assert!(size_of::<Words>() == size_of::<Record>());

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
/// Requantised by the single form.
pub(super) const SINGLE: i32 = 0x8000;
/// Its bits less [`LEAST_BITS`], the same for all channels of a step.
const BITS: i32 = 0x7000;
/// First bit of [`BITS`].
const BITS_AT: u32 = 12;
/// The fewest bits of the single form.
pub(super) const LEAST_BITS: u32 = 8;

/// Rounds up to the four inputs that a loop takes at a time.
pub(super) const fn padded(inputs: u32) -> u32 {
    inputs.saturating_add(3) & !3
}

/// The blocks that divide `inputs` (padded): bit n for block `n << 8`.
pub(super) fn divisors(inputs: usize) -> u32 {
    1 | 1 << 1 | u32::from(inputs.is_multiple_of(12)) << 2 | u32::from(inputs.is_multiple_of(8)) << 3
}

/// Whether a packer can have written the record of a window of `inputs` for outputs of this zero point, its block and place aside ([`is_valid`]): the
/// arithmetic of its form holds, and what has no meaning is zero.
#[inline(always)]
pub(super) fn is_packed(record: &Record, inputs: u32, zero_point: i8) -> bool {
    let [bias, multiplier, code] = *record;
    match code & (SINGLE | BITS | GENERAL | CONSTANT) {
        0 => ((code & 0xff) as u32).wrapping_sub(1) < 30 && multiplier >= 0 && bias.unsigned_abs() < SHORT_SUM,
        _ if code & (SINGLE | GENERAL | CONSTANT) == SINGLE => is_single(record, inputs),
        _ => is_uncommon(record, zero_point),
    }
}

/// [`is_packed`] of the single form: whatever the weights are, no accumulator leaves the range in which all cores agree.
fn is_single(&[bias, multiplier, code]: &Record, inputs: u32) -> bool {
    let bits = single_bits(code);
    // An input and a weight have eight bits each.
    let reach = bias.unsigned_abs().saturating_add(inputs.saturating_mul(1 << 14));
    ((code & 0xff) as u32).wrapping_sub(1) < 30
        && reach < single_reach(bits)
        && multiplier >= 0
        && multiplier & ((1 << (15 - bits)) - 1) == 0
}

/// Inputs of a window.
pub(super) fn window(op: &Conv2dS8) -> u32 {
    let [rows, columns] = op.window.kernel.map(u32::from);
    rows.saturating_mul(columns).saturating_mul(op.group_channels())
}

/// Bound of the single form's accumulators, exclusive: each product of an accumulator and a part of the mantissa then has 32 bits.
pub(super) const fn single_reach(bits: u32) -> u32 {
    1 << (30 - bits)
}

/// The bits of a code of the single form, [`LEAST_BITS`] to 15.
#[inline(always)]
pub(super) const fn single_bits(code: i32) -> u32 {
    LEAST_BITS + ((code & BITS) >> BITS_AT) as u32
}

/// The code of the single form.
pub(super) const fn single_code(shift: u32, bits: u32) -> i32 {
    SINGLE | shift as i32 | ((bits - LEAST_BITS) as i32) << BITS_AT
}

/// The bits of the single form in a step: those of its first such channel, 0 where it has none. Outputs below the zero point rule the form out.
pub(super) fn bits_of(op: &Conv2dS8, records: &[Record]) -> u32 {
    if op.clamp[0] < op.output_zero_point {
        return 0;
    }
    let first = records.iter().find(|record| record[2] & SINGLE != 0);
    first.map_or(0, |record| single_bits(record[2]))
}

/// Whether the record is of another form than the single one, or of that with these bits.
#[inline(always)]
pub(super) fn has_bits(&[_, _, code]: &Record, bits: u32) -> bool {
    code & SINGLE == 0 || single_bits(code) == bits
}

/// [`is_packed`] for what is neither short nor varies.
#[cold]
#[inline(never)]
fn is_uncommon(&[bias, multiplier, code]: &Record, zero_point: i8) -> bool {
    match code & (SINGLE | BITS | GENERAL | CONSTANT) {
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
