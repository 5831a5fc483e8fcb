//! Products of rows of activations and packed weights.
//!
//! Registers: x0 the arguments, x1 and x2 the tile's rows and the bytes between them, x3 the weights, which are walked through, x4 and x5 the tile's outputs
//! and the bytes between their rows, x6 groups, x7 the group's outputs, x8 a counter, x9 to x12 the rows, x13, x14 and x17 limits and zero point, x15 tiles,
//! x16 the channels of a last group. v16 to v31 are the sums, four to a row; v0 to v3 elements of the rows, v4 to v7 weights.

use crate::kernels::neon::args::Product;
use crate::kernels::neon::loops::{forget, outputs, walk};

/// Assembler macros of both loops. They live as long as the assembler's module: [`purge`] and [`forget`] end them.
macro_rules! macros {
    () => {
        r"
        // Four elements of a row against the weights of four channels in each of v4 to v7.
        .macro dots vecs, x, s, a, b, c, d
            sdot    \a\().4s, v4.16b, \x\().4b[\s]
            .if     \vecs > 1
            sdot    \b\().4s, v5.16b, \x\().4b[\s]
            .endif
            .if     \vecs > 2
            sdot    \c\().4s, v6.16b, \x\().4b[\s]
            .endif
            .if     \vecs > 3
            sdot    \d\().4s, v7.16b, \x\().4b[\s]
            .endif
        .endm

        // The same of all rows.
        .macro step rows, vecs, s
            take    \vecs, x3, v4, v5, v6, v7
            dots    \vecs, v0, \s, v16, v17, v18, v19
            .if     \rows == 4
            dots    \vecs, v1, \s, v20, v21, v22, v23
            dots    \vecs, v2, \s, v24, v25, v26, v27
            dots    \vecs, v3, \s, v28, v29, v30, v31
            .endif
        .endm

        .macro copies vecs, a, b, c, d
            mov     \a\().16b, v16.16b
            .if     \vecs > 1
            mov     \b\().16b, v17.16b
            .endif
            .if     \vecs > 2
            mov     \c\().16b, v18.16b
            .endif
            .if     \vecs > 3
            mov     \d\().16b, v19.16b
            .endif
        .endm

        // The outputs of a tile and a group, as bytes in v16, v20, v24 and v28.
        .macro tile rows, vecs
            take    \vecs, x3, v16, v17, v18, v19
            mov     x9, x1
            .if     \rows == 4
            copies  \vecs, v20, v21, v22, v23
            copies  \vecs, v24, v25, v26, v27
            copies  \vecs, v28, v29, v30, v31
            add     x10, x9, x2
            add     x11, x10, x2
            add     x12, x11, x2
            .endif
            ldr     x8, [x0, #{blocks}]
            cbz     x8, 3f
        2:  ld1     {{v0.16b}}, [x9], #16
            .if     \rows == 4
            ld1     {{v1.16b}}, [x10], #16
            ld1     {{v2.16b}}, [x11], #16
            ld1     {{v3.16b}}, [x12], #16
            .endif
            step    \rows, \vecs, 0
            step    \rows, \vecs, 1
            step    \rows, \vecs, 2
            step    \rows, \vecs, 3
            subs    x8, x8, #1
            b.ne    2b
        3:  ldr     x8, [x0, #{half}]
            cbz     x8, 4f
            ld1     {{v0.8b}}, [x9]
            .if     \rows == 4
            ld1     {{v1.8b}}, [x10]
            ld1     {{v2.8b}}, [x11]
            ld1     {{v3.8b}}, [x12]
            .endif
            step    \rows, \vecs, 0
            step    \rows, \vecs, 1
        4:  finish  \rows, \vecs, v16, v17, v18, v19, v20, v21, v22, v23, v24, v25, v26, v27, v28, v29, v30, v31
        .endm
        "
    };
}

/// Ends the macros of this file but `tile`.
macro_rules! purge {
    () => {
        ".purgem dots\n .purgem step\n .purgem copies\n"
    };
}

/// Tiles of four rows: 74 instructions for sixteen elements of four rows and sixteen channels, which are 1024 MACs.
///
/// # Safety
/// As for [`crate::kernels::neon::gemm_s8::Matrix::multiply`], with four rows a tile, at least one tile, and arguments of packed weights.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows_by_four(args: *const Product) {
    naked!(
        Product { x, weights, out, groups, rest, blocks, half, tiles, zero_point, high } =>
        ".arch armv8.2-a+dotprod",
        outputs!(),
        walk!(),
        macros!(),
        "product 4, v16, v20, v24, v28",
        purge!(),
        forget!()
    )
}

/// Tiles of one row: 23 instructions for sixteen elements and sixteen channels, which are 256 MACs.
///
/// # Safety
/// As for [`rows_by_four`], with one row a tile.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows_by_one(args: *const Product) {
    naked!(
        Product { x, weights, out, groups, rest, blocks, half, tiles, zero_point, high } =>
        ".arch armv8.2-a+dotprod",
        outputs!(),
        walk!(),
        macros!(),
        "product 1, v16",
        purge!(),
        forget!()
    )
}
