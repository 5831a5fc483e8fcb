//! The products of matrices of bytes of AArch64 (`SMMLA`, Armv8.6 and later): of two rows of eight bytes by two others, added to four sums.
//!
//! | loop | MACs | instructions | instructions a MAC |
//! | --- | --- | --- | --- |
//! | product, four rows by sixteen channels (`neon::gemm_s8`) | 1024 | 46 | 0.045 |
//! | product, one row by sixteen channels | 256 | 25 | 0.098 |
//!
//! Rows and weights are `neon::conv2d_s8`'s. Hosts run the same files by `product`'s portable form, to the same bits; `dotprod`'s tests
//! are theirs as well.

pub mod conv2d_s8;
#[cfg(kernel_isa = "i8mm")]
mod gemm_s8;
mod portable;

#[cfg(not(kernel_isa = "i8mm"))]
use portable as gemm_s8;
