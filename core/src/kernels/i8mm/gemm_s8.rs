//! Products of rows of activations and packed weights.
//!
//! Registers: x0 the arguments, x1 and x2 the tile's rows and the bytes between them, x3 the weights, which are walked through, x4 and x5 the tile's outputs
//! and the bytes between their rows, x6 groups, x7 the group's outputs, x8 a counter, x9 to x12 the rows, x13, x14 and x17 limits and zero point, x15 tiles,
//! x16 the channels of a last group. v16 to v31 are the sums: two rows by two channels each, those of the
//! first two rows before those of the other two; v0 to v3 weights and rows, v4 to v7 pairs of rows.

use crate::kernels::neon::args::Product;
use crate::kernels::neon::loops::{forget, outputs, walk};

/// Assembler macros of both loops. They live as long as the assembler's module: [`purge`] and [`forget`] end them.
macro_rules! macros {
    () => {
        r"
        // Eight elements of all rows, two rows a register, against the weights of four channels in \u and \w.
        .macro four rows, x, y, u, w, a, b, c, d
            smmla   \a\().4s, \x\().16b, \u\().16b
            smmla   \b\().4s, \x\().16b, \w\().16b
            .if     \rows == 4
            smmla   \c\().4s, \y\().16b, \u\().16b
            smmla   \d\().4s, \y\().16b, \w\().16b
            .endif
        .endm

        // The same of a group.
        .macro step rows, vecs, x, y
            .if     \vecs > 1
            ld1     {{v0.16b-v3.16b}}, [x3], #64
            four    \rows, \x, \y, v0, v1, v16, v17, v24, v25
            four    \rows, \x, \y, v2, v3, v18, v19, v26, v27
            .else
            ld1     {{v0.16b-v1.16b}}, [x3], #32
            four    \rows, \x, \y, v0, v1, v16, v17, v24, v25
            .endif
            .if     \vecs > 3
            ld1     {{v0.16b-v3.16b}}, [x3], #64
            four    \rows, \x, \y, v0, v1, v20, v21, v28, v29
            four    \rows, \x, \y, v2, v3, v22, v23, v30, v31
            .elseif \vecs > 2
            ld1     {{v0.16b-v1.16b}}, [x3], #32
            four    \rows, \x, \y, v0, v1, v20, v21, v28, v29
            .endif
        .endm

        // Sums of two rows from the biases of v0 to v3.
        .macro start vecs, a, b, c, d, e, f, g, h
            dup     \a\().2d, v0.d[0]
            dup     \b\().2d, v0.d[1]
            .if     \vecs > 1
            dup     \c\().2d, v1.d[0]
            dup     \d\().2d, v1.d[1]
            .endif
            .if     \vecs > 2
            dup     \e\().2d, v2.d[0]
            dup     \f\().2d, v2.d[1]
            .endif
            .if     \vecs > 3
            dup     \g\().2d, v3.d[0]
            dup     \h\().2d, v3.d[1]
            .endif
        .endm

        // The sums of four channels of one row in \a, of the other in \b.
        .macro rows_of rows, a, b
            zip1    v4.2d, \a\().2d, \b\().2d
            .if     \rows == 4
            zip2    \b\().2d, \a\().2d, \b\().2d
            .endif
            mov     \a\().16b, v4.16b
        .endm

        .macro sums rows, vecs, a, b, c, d, e, f, g, h
            rows_of \rows, \a, \b
            .if     \vecs > 1
            rows_of \rows, \c, \d
            .endif
            .if     \vecs > 2
            rows_of \rows, \e, \f
            .endif
            .if     \vecs > 3
            rows_of \rows, \g, \h
            .endif
        .endm

        // The outputs of a tile and a group, as bytes in v16, v17, v24 and v25.
        .macro tile rows, vecs
            take    \vecs, x3, v0, v1, v2, v3
            start   \vecs, v16, v17, v18, v19, v20, v21, v22, v23
            mov     x9, x1
            .if     \rows == 4
            start   \vecs, v24, v25, v26, v27, v28, v29, v30, v31
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
            zip1    v4.2d, v0.2d, v1.2d
            zip2    v5.2d, v0.2d, v1.2d
            zip1    v6.2d, v2.2d, v3.2d
            zip2    v7.2d, v2.2d, v3.2d
            .else
            mov     v4.16b, v0.16b
            dup     v5.2d, v0.d[1]
            .endif
            step    \rows, \vecs, v4, v6
            step    \rows, \vecs, v5, v7
            subs    x8, x8, #1
            b.ne    2b
        3:  ldr     x8, [x0, #{half}]
            cbz     x8, 4f
            ld1     {{v4.8b}}, [x9]
            .if     \rows == 4
            ld1     {{v1.8b}}, [x10]
            ld1     {{v6.8b}}, [x11]
            ld1     {{v3.8b}}, [x12]
            zip1    v4.2d, v4.2d, v1.2d
            zip1    v6.2d, v6.2d, v3.2d
            .endif
            step    \rows, \vecs, v4, v6
        4:  sums    \rows, \vecs, v16, v17, v18, v19, v20, v21, v22, v23
            .if     \rows == 4
            sums    \rows, \vecs, v24, v25, v26, v27, v28, v29, v30, v31
            .endif
            finish  \rows, \vecs, v16, v18, v20, v22, v17, v19, v21, v23, v24, v26, v28, v30, v25, v27, v29, v31
        .endm
        "
    };
}

/// Ends the macros of this file but `tile`.
macro_rules! purge {
    () => {
        ".purgem four\n .purgem step\n .purgem start\n .purgem rows_of\n .purgem sums\n"
    };
}

/// Tiles of four rows: 46 instructions for sixteen elements of four rows and sixteen channels, which are 1024 MACs.
///
/// # Safety
/// As for [`crate::kernels::neon::gemm_s8::Matrix::multiply`], with four rows a tile, at least one tile, and arguments of packed weights.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows_by_four(args: *const Product) {
    naked!(
        Product { x, weights, out, groups, rest, blocks, half, tiles, zero_point, high } =>
        ".arch armv8.2-a+i8mm",
        outputs!(),
        walk!(),
        macros!(),
        "product 4, v16, v17, v24, v25",
        purge!(),
        forget!()
    )
}

/// Tiles of one row: 25 instructions for sixteen elements and sixteen channels, which are 256 MACs.
///
/// # Safety
/// As for [`rows_by_four`], with one row a tile.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows_by_one(args: *const Product) {
    naked!(
        Product { x, weights, out, groups, rest, blocks, half, tiles, zero_point, high } =>
        ".arch armv8.2-a+i8mm",
        outputs!(),
        walk!(),
        macros!(),
        "product 1, v16",
        purge!(),
        forget!()
    )
}
