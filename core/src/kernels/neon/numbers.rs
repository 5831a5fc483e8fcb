//! Arithmetic of the portable loops.

use crate::quant::Multiplier;

/// A sum by shift left, mantissa and shift right (0 or negative), of which one shift is 0.
pub(in crate::kernels) fn requantised(sum: i32, [left, mantissa, right]: [i32; 3]) -> i32 {
    let shift = left.wrapping_add(right) as i8;
    Multiplier { mantissa, shift }.apply(sum)
}

/// Word `index` of a table of words.
///
/// # Safety
/// `table` is valid for reads of `index + 1` words.
pub(in crate::kernels) unsafe fn word(table: *const u8, index: usize) -> i32 {
    // SAFETY: `index + 1` words are readable at `table` (fn docs); the read is unaligned.
    unsafe { table.cast::<i32>().add(index).read_unaligned() }
}
