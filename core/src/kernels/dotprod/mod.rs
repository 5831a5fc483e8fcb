//! The dot product instructions of AArch64 (`SDOT`, Armv8.2 and later): four products of bytes, added to each of four sums.
//!
//! | loop | MACs | instructions | instructions a MAC |
//! | --- | --- | --- | --- |
//! | product, four rows by sixteen channels (`neon::gemm`) | 1024 | 74 | 0.072 |
//! | product, one row by sixteen channels | 256 | 23 | 0.090 |
//! | requantising of 4 x 16 outputs of a product | | 139 | |
//!
//! Rows and weights are `neon::conv2d`'s. Hosts run the same files by `product`'s portable form, to the same bits.

pub mod conv2d;
#[cfg_attr(aarch64 = "dotprod", path = "product.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86.rs")]
#[cfg_attr(not(any(aarch64 = "dotprod", target_arch = "x86_64")), path = "portable.rs")]
mod product;

#[cfg(test)]
mod tests;
