//! [`four`] in Rust.

use super::super::record::Record;
use super::super::requant;

/// Biases are added, sums requantised and stored; `twice` is `2 * zero_point + 1` of the output.
///
/// # Safety
/// Four sums, records and outputs.
#[inline(always)]
pub(in super::super) unsafe fn four(sums: *const i32, records: *const Record, y: *mut i8, twice: i32) {
    for i in 0..4 {
        // SAFETY: one of four.
        unsafe {
            let [bias, multiplier, code] = *records.add(i);
            let addend = requant::addend(twice, code);
            *y.add(i) = requant::short((*sums.add(i)).wrapping_add(bias), multiplier, code, addend);
        }
    }
}
