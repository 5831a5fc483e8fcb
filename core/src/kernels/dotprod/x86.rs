//! The products on x86-64 hosts: the same layout, the same order of writes, the same bits.

#![cfg(target_arch = "x86_64")]

use crate::kernels::neon::args::Product;
use crate::kernels::neon::loops::dots;

pub(super) unsafe fn rows_by_four(args: *const Product) {
    // SAFETY: `dots` asks of its arguments what this function asks of the same.
    unsafe { dots::<4>(args) }
}

pub(super) unsafe fn rows_by_one(args: *const Product) {
    // SAFETY: `dots` asks of its arguments what this function asks of the same.
    unsafe { dots::<1>(args) }
}
