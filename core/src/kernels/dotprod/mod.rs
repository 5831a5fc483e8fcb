//! The dot product instructions of AArch64 (`SDOT`, Armv8.2 and later): four products of bytes, added to each of four sums.
//!
//! | loop | MACs | instructions | instructions a MAC |
//! | --- | --- | --- | --- |
//! | product, four rows by sixteen channels (`neon::gemm_s8`) | 1024 | 74 | 0.072 |
//! | product, one row by sixteen channels | 256 | 23 | 0.090 |
//! | requantising of 4 x 16 outputs of a product | | 139 | |
//!
//! Rows and weights are `neon::conv2d_s8`'s. Hosts run the same files by `product`'s portable form, to the same bits.

pub mod conv2d_s8;
#[cfg(kernel_isa = "dotprod")]
mod gemm_s8;
mod portable;
mod x86;

#[cfg(not(any(kernel_isa = "dotprod", target_arch = "x86_64")))]
use portable as gemm_s8;
#[cfg(target_arch = "x86_64")]
use x86 as gemm_s8;

#[cfg(test)]
mod tests;
