//! The products on x86-64 hosts: the same layout, the same order of writes, the same bits.
//!
//! # Safety of all loops
//! As the head of `neon/args.rs` says.

#![cfg(target_arch = "x86_64")]

use crate::kernels::neon::args::Product;
use crate::kernels::neon::loops::dots;

pub(super) unsafe fn rows_by_four(args: *const Product) {
    // SAFETY: `dots` has the contract of this function, and gets the same arguments.
    unsafe { dots::<4>(args) }
}

pub(super) unsafe fn rows_by_one(args: *const Product) {
    // SAFETY: `dots` has the contract of this function, and gets the same arguments.
    unsafe { dots::<1>(args) }
}
