//! The products in portable Rust, for hosts: the same layout, the same order of writes, the same bits.
//!
//! # Safety of all loops
//! As the head of `neon/args.rs` says.

#![cfg(not(any(kernel_isa = "dotprod", target_arch = "x86_64")))]

use crate::kernels::neon::args::Product;
use crate::kernels::neon::gemm_s8_portable::rows;

pub(super) unsafe fn rows_by_four(args: *const Product) {
    // SAFETY: `rows` has the contract of this function, and gets the same arguments.
    unsafe { rows::<false, 4>(args, 4) }
}

pub(super) unsafe fn rows_by_one(args: *const Product) {
    // SAFETY: `rows` has the contract of this function, and gets the same arguments.
    unsafe { rows::<false, 4>(args, 1) }
}
