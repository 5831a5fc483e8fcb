//! [`four`] in Rust.

#![cfg(not(kernel_isa = "gpr32"))]

use crate::kernels::packed::channel_record::Record;
use crate::kernels::packed::requantize;

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
            let addend = requantize::addend(twice, code);
            *y.add(i) = requantize::short((*sums.add(i)).wrapping_add(bias), multiplier, code, addend);
        }
    }
}
