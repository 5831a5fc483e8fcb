//! int8 convolution and fully connected layers: those of [`crate::kernels::neon::conv2d_s8`], multiplied by `SMMLA`.

use super::gemm_s8::{rows_by_four, rows_by_one};
use crate::kernels::neon::args::Product;
use crate::kernels::neon::conv2d_s8::Convolution;
use crate::kernels::neon::gemm_s8::Multiply;

/// int8, one group, no dilation.
pub type S8 = Convolution<Matrices>;

/// Two rows of eight bytes by those of two channels.
#[derive(Debug)]
pub struct Matrices;

impl Multiply for Matrices {
    const TILE: usize = 4;
    const DEPTH: usize = 8;
    const FULL_RANGE: bool = true;

    unsafe fn tiles(args: &Product) {
        // SAFETY: `rows_by_four` has the contract of this function, and gets the same arguments.
        unsafe { rows_by_four(args) }
    }

    unsafe fn rows(args: &Product) {
        // SAFETY: `rows_by_one` has the contract of this function, and gets the same arguments.
        unsafe { rows_by_one(args) }
    }

    #[cfg(any(test, packing))]
    fn bound(rows: u64, vectors: u64, eights: u64) -> u64 {
        let (blocks, half) = (eights / 2, eights % 2);
        let sums = 2 * vectors * rows.div_ceil(2);
        let step = vectors.div_ceil(2) + sums;
        1 + sums + blocks * (rows + 2 + 2 * step + 2) + half * (rows + step) + sums
    }
}
