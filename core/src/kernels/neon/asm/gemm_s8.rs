//! Products of rows of activations and packed weights (`gemm`) without dot product instructions.
//!
//! Registers: x0 the arguments, x1 and x2 the tile's rows and the bytes between them, x3 and x11 the weights, which are walked through, x4 and x5 the tile's
//! outputs and the bytes between their rows, x6 groups, x7 the group's outputs, x8 a counter, x9 and x10 the rows, x12 biases, x13, x14 and x17 limits and zero
//! point, x15 tiles, x16 the channels of a last group. v16 to v31 are the sums, two to a channel and eight to a row; v0 to v3 elements of the rows, v4 and v5
//! weights, v6 and v7 products.

use super::super::args::Product;
use super::gemm_tiles::{forget, walk};
use super::requantize::outputs;

/// Assembler macros of both loops. They live as long as the assembler's module: [`purge`] and [`forget`] end them.
macro_rules! macros {
    () => {
        r"
        // Eight elements of a row, four times each four of them in \x and \y, against the weights of four channels in v4 and v5.
        .macro products x, y, a, b
            smull   v6.8h, \x\().8b, v4.8b
            smull2  v7.8h, \x\().16b, v4.16b
            smlal   v6.8h, \y\().8b, v5.8b
            smlal2  v7.8h, \y\().16b, v5.16b
            sadalp  \a\().4s, v6.8h
            sadalp  \b\().4s, v7.8h
        .endm

        // The same of all rows.
        .macro vector rows, a, b, c, d
            ld1     {{v4.16b}}, [x3], #16
            ld1     {{v5.16b}}, [x11], #16
            products v0, v1, \a, \b
            .if     \rows == 2
            products v2, v3, \c, \d
            .endif
        .endm

        // Eight sums of each row from zero, of which those of one channel lie side by side.
        .macro zero vecs, a, b, c, d, e, f, g, h
            movi    \a\().2d, #0
            movi    \b\().2d, #0
            .if     \vecs > 1
            movi    \c\().2d, #0
            movi    \d\().2d, #0
            .endif
            .if     \vecs > 2
            movi    \e\().2d, #0
            movi    \f\().2d, #0
            .endif
            .if     \vecs > 3
            movi    \g\().2d, #0
            movi    \h\().2d, #0
            .endif
        .endm

        // One sum of each channel, with its bias of v0 to v3.
        .macro pairs vecs, a, b, c, d, e, f, g, h, i, j, k, l
            addp    \a\().4s, \e\().4s, \f\().4s
            add     \a\().4s, \a\().4s, v0.4s
            .if     \vecs > 1
            addp    \b\().4s, \g\().4s, \h\().4s
            add     \b\().4s, \b\().4s, v1.4s
            .endif
            .if     \vecs > 2
            addp    \c\().4s, \i\().4s, \j\().4s
            add     \c\().4s, \c\().4s, v2.4s
            .endif
            .if     \vecs > 3
            addp    \d\().4s, \k\().4s, \l\().4s
            add     \d\().4s, \d\().4s, v3.4s
            .endif
        .endm

        // The outputs of a tile and a group, as bytes in v16 and v20.
        .macro tile rows, vecs
            mov     x12, x3
            add     x3, x3, #(16 * \vecs)
            zero    \vecs, v16, v17, v18, v19, v20, v21, v22, v23
            mov     x9, x1
            .if     \rows == 2
            zero    \vecs, v24, v25, v26, v27, v28, v29, v30, v31
            add     x10, x9, x2
            .endif
            ldp     x8, x11, [x0, #{blocks}] // and half
            add     x8, x11, x8, lsl #1
        2:  ld1     {{v0.8b}}, [x9], #8
            dup     v1.4s, v0.s[1]
            dup     v0.4s, v0.s[0]
            .if     \rows == 2
            ld1     {{v2.8b}}, [x10], #8
            dup     v3.4s, v2.s[1]
            dup     v2.4s, v2.s[0]
            .endif
            add     x11, x3, #(16 * \vecs)
            vector  \rows, v16, v17, v24, v25
            .if     \vecs > 1
            vector  \rows, v18, v19, v26, v27
            .endif
            .if     \vecs > 2
            vector  \rows, v20, v21, v28, v29
            .endif
            .if     \vecs > 3
            vector  \rows, v22, v23, v30, v31
            .endif
            mov     x3, x11
            subs    x8, x8, #1
            b.ne    2b
            take    \vecs, x12, v0, v1, v2, v3
            pairs   \vecs, v16, v17, v18, v19, v16, v17, v18, v19, v20, v21, v22, v23
            .if     \rows == 2
            pairs   \vecs, v20, v21, v22, v23, v24, v25, v26, v27, v28, v29, v30, v31
            .endif
            finish  \rows, \vecs, v16, v17, v18, v19, v20, v21, v22, v23
        .endm
        "
    };
}

/// Ends the macros of this file but `tile`.
macro_rules! purge {
    () => {
        ".purgem products\n .purgem vector\n .purgem zero\n .purgem pairs\n"
    };
}

/// Tiles of two rows: 66 instructions for eight elements of two rows and sixteen channels, which are 256 MACs.
///
/// Two products of bytes, of which no weight is -128, fit 16 bits.
///
/// # Safety
/// As for [`crate::kernels::neon::gemm_s8::Matrix::multiply`], with two rows a tile, at least one tile, and arguments of packed weights.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn two_rows(args: *const Product) {
    naked!(
        Product { x, weights, out, groups, rest, blocks, tiles, zero_point, high } =>
        ".arch armv8-a",
        outputs!(),
        walk!(),
        macros!(),
        "product 2, v16, v20",
        purge!(),
        forget!()
    )
}

/// Tiles of one row: 39 instructions for eight elements and sixteen channels, which are 128 MACs.
///
/// # Safety
/// As for [`two_rows`], with one row a tile.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn one_row(args: *const Product) {
    naked!(
        Product { x, weights, out, groups, rest, blocks, tiles, zero_point, high } =>
        ".arch armv8-a",
        outputs!(),
        walk!(),
        macros!(),
        "product 1, v16",
        purge!(),
        forget!()
    )
}
