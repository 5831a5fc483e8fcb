//! The products in portable Rust, for hosts: the same layout, the same order of writes, the same bits.
//!
//! # Safety of all loops
//! As the head of `neon/args.rs` says.

#![cfg(not(kernel_isa = "i8mm"))]

use crate::kernels::neon::args::Product;
use crate::kernels::neon::gemm_s8_portable::rows;

pub(super) unsafe fn rows_by_four(args: *const Product) {
    // SAFETY: `rows` has the contract of this function, and gets the same arguments.
    unsafe { rows::<false, 8>(args, 4) }
}

pub(super) unsafe fn rows_by_one(args: *const Product) {
    // SAFETY: `rows` has the contract of this function, and gets the same arguments.
    unsafe { rows::<false, 8>(args, 1) }
}
