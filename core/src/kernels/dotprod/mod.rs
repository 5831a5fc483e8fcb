//! The dot product instructions of AArch64 (`SDOT`, Armv8.2 and later): four products of bytes, added to each of four sums.
//!
//! | loop | MACs | instructions | instructions a MAC |
//! | --- | --- | --- | --- |
//! | product, four rows by sixteen channels (`gemm`) | 1024 | 74 | 0.072 |
//! | product, one row by sixteen channels | 256 | 23 | 0.090 |
//! | requantising of 4 x 16 outputs of a product | | 139 | |
//!
//! Where a product's rows come from is `neon::rows`'s. Hosts run the same files by `product`'s portable form, to the same bits.

pub mod conv2d;
mod gemm;
#[cfg_attr(aarch64 = "dotprod", path = "product.rs")]
#[cfg_attr(not(aarch64 = "dotprod"), path = "portable.rs")]
mod product;

/// A product of rows of activations and packed weights (`gemm`): read by the assembly at fixed offsets and by the portable loop by name.
#[repr(C)]
struct Product {
    /// The first row.
    x: *const i8,
    /// Bytes between rows.
    x_stride: usize,
    /// The first group.
    weights: *const u8,
    /// The first row of outputs.
    out: *mut i8,
    /// Bytes between rows of outputs.
    out_stride: usize,
    /// Whole groups of sixteen output channels.
    groups: usize,
    /// Channels of a last group, 0 where there is none.
    rest: usize,
    /// Whole blocks of sixteen elements of a row.
    blocks: usize,
    /// 1 where eight more elements follow.
    half: usize,
    /// Tiles of rows: of four, or of one, as the loop has them.
    tiles: usize,
    /// Added to the outputs.
    zero_point: i32,
    /// Least output.
    low: i32,
    /// Greatest output.
    high: i32,
}

// What the assembly reads.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(core::mem::offset_of!(Product, tiles) == 72 && core::mem::offset_of!(Product, high) == 88);

#[cfg(test)]
mod tests;
