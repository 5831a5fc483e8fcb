//! Products of rows of f32 and packed weights.
//!
//! Registers: x0 the arguments, x1 and x2 the tile's rows and the bytes between them, x3 the weights, which are walked through, x4 and x5 the tile's outputs
//! and the bytes between their rows, x6 groups, x7 the group's outputs, x8 a counter and addresses, x9 to x12 the rows, x13 and x14 what is added to the
//! group's and to the tile's outputs, x15 tiles, x16 the channels of a last group, x17 biases. v16 to v31 are the sums, four to a row; v0 to v3 elements of
//! the rows, v4 to v7 weights.

use super::super::args::ProductF32;

/// Assembler macros of both loops. They live as long as the assembler's module: [`forget`] ends them.
macro_rules! macros {
    () => {
        r"
        // An element of a row times the weights of four channels in each of v4 to v7.
        .macro fmas vecs, x, s, a, b, c, d
            fmla    \a\().4s, v4.4s, \x\().s[\s]
            .if     \vecs > 1
            fmla    \b\().4s, v5.4s, \x\().s[\s]
            .endif
            .if     \vecs > 2
            fmla    \c\().4s, v6.4s, \x\().s[\s]
            .endif
            .if     \vecs > 3
            fmla    \d\().4s, v7.4s, \x\().s[\s]
            .endif
        .endm

        // The same of all rows.
        .macro step rows, vecs, s
            .if     \vecs == 4
            ld1     {{v4.4s-v7.4s}}, [x3], #64
            .elseif \vecs == 3
            ld1     {{v4.4s-v6.4s}}, [x3], #48
            .elseif \vecs == 2
            ld1     {{v4.4s-v5.4s}}, [x3], #32
            .else
            ld1     {{v4.4s}}, [x3], #16
            .endif
            fmas    \vecs, v0, \s, v16, v17, v18, v19
            .if     \rows == 4
            fmas    \vecs, v1, \s, v20, v21, v22, v23
            fmas    \vecs, v2, \s, v24, v25, v26, v27
            fmas    \vecs, v3, \s, v28, v29, v30, v31
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

        .macro limit vecs, a, b, c, d
            fmax    \a\().4s, \a\().4s, v0.4s
            fmin    \a\().4s, \a\().4s, v1.4s
            .if     \vecs > 1
            fmax    \b\().4s, \b\().4s, v0.4s
            fmin    \b\().4s, \b\().4s, v1.4s
            .endif
            .if     \vecs > 2
            fmax    \c\().4s, \c\().4s, v0.4s
            fmin    \c\().4s, \c\().4s, v1.4s
            .endif
            .if     \vecs > 3
            fmax    \d\().4s, \d\().4s, v0.4s
            fmin    \d\().4s, \d\().4s, v1.4s
            .endif
        .endm

        .macro sum vecs, a, b, c, d
            fadd    \a\().4s, \a\().4s, v4.4s
            .if     \vecs > 1
            fadd    \b\().4s, \b\().4s, v5.4s
            .endif
            .if     \vecs > 2
            fadd    \c\().4s, \c\().4s, v6.4s
            .endif
            .if     \vecs > 3
            fadd    \d\().4s, \d\().4s, v7.4s
            .endif
        .endm

        // The sums of a tile and a group; limits in v0 and v1.
        .macro tile rows, vecs
            cbz     x17, 1f
            .if     \vecs == 4
            ld1     {{v16.4s-v19.4s}}, [x17], #64
            .elseif \vecs == 3
            ld1     {{v16.4s-v18.4s}}, [x17]
            .elseif \vecs == 2
            ld1     {{v16.4s-v17.4s}}, [x17]
            .else
            ld1     {{v16.4s}}, [x17]
            .endif
            b       2f
        1:  movi    v16.2d, #0
            movi    v17.2d, #0
            movi    v18.2d, #0
            movi    v19.2d, #0
        2:  mov     x9, x1
            .if     \rows == 4
            copies  \vecs, v20, v21, v22, v23
            copies  \vecs, v24, v25, v26, v27
            copies  \vecs, v28, v29, v30, v31
            add     x10, x9, x2
            add     x11, x10, x2
            add     x12, x11, x2
            .endif
            ldr     x8, [x0, #{quads}]
            cbz     x8, 4f
        3:  ld1     {{v0.4s}}, [x9], #16
            .if     \rows == 4
            ld1     {{v1.4s}}, [x10], #16
            ld1     {{v2.4s}}, [x11], #16
            ld1     {{v3.4s}}, [x12], #16
            .endif
            step    \rows, \vecs, 0
            step    \rows, \vecs, 1
            step    \rows, \vecs, 2
            step    \rows, \vecs, 3
            subs    x8, x8, #1
            b.ne    3b
        4:  ldr     x8, [x0, #{odd}]
            cbz     x8, 6f
        5:  ld1     {{v0.s}}[0], [x9], #4
            .if     \rows == 4
            ld1     {{v1.s}}[0], [x10], #4
            ld1     {{v2.s}}[0], [x11], #4
            ld1     {{v3.s}}[0], [x12], #4
            .endif
            step    \rows, \vecs, 0
            subs    x8, x8, #1
            b.ne    5b
        6:  add     x8, x0, #{limits}
            ld1r    {{v0.4s}}, [x8], #4
            ld1r    {{v1.4s}}, [x8]
        .endm

        // A vector's x10 channels at x8.
        .macro tail op, v
            cmp     x10, #3
            b.hi    1f
            \op     {{\v\().s}}[0], [x8], #4
            cmp     x10, #2
            b.lo    2f
            \op     {{\v\().s}}[1], [x8], #4
            b.eq    2f
            \op     {{\v\().s}}[2], [x8]
            b       2f
        1:  \op     {{\v\().4s}}, [x8]
        2:
        .endm

        // The channels of a last group at x8.
        .macro segments op, vecs, a, b, c, d
            .if     \vecs == 1
            tail    \op, \a
            .else
            \op     {{\a\().4s}}, [x8], #16
            .if     \vecs == 2
            tail    \op, \b
            .else
            \op     {{\b\().4s}}, [x8], #16
            .if     \vecs == 3
            tail    \op, \c
            .else
            \op     {{\c\().4s}}, [x8], #16
            tail    \op, \d
            .endif
            .endif
            .endif
        .endm

        .macro row_of_rest vecs, a, b, c, d
            mov     x8, x9
            segments  ld1, \vecs, v4, v5, v6, v7
            sum     \vecs, \a, \b, \c, \d
            add     x9, x9, x5
        .endm

        .macro store_rest vecs, a, b, c, d
            limit   \vecs, \a, \b, \c, \d
            mov     x8, x7
            segments  st1, \vecs, \a, \b, \c, \d
            add     x7, x7, x5
        .endm

        .macro rest rows, vecs
            tile    \rows, \vecs
            sub     x10, x16, #(4 * \vecs - 4)
            cbz     x13, 7f
            mov     x9, x13
            row_of_rest \vecs, v16, v17, v18, v19
            .if     \rows == 4
            row_of_rest \vecs, v20, v21, v22, v23
            row_of_rest \vecs, v24, v25, v26, v27
            row_of_rest \vecs, v28, v29, v30, v31
            .endif
        7:  store_rest \vecs, v16, v17, v18, v19
            .if     \rows == 4
            store_rest \vecs, v20, v21, v22, v23
            store_rest \vecs, v24, v25, v26, v27
            store_rest \vecs, v28, v29, v30, v31
            .endif
        .endm

        .macro product rows
            ldp     x1, x2, [x0, #{x}] // and x_stride
            ldp     x4, x5, [x0, #{out}] // and out_stride
            ldr     x14, [x0, #{residual}]
            ldr     x16, [x0, #{rest}]
            ldr     x15, [x0, #{tiles}]
        20: ldp     x3, x17, [x0, #{weights}] // and bias
            mov     x7, x4
            mov     x13, x14
            ldr     x6, [x0, #{groups}]
            cbz     x6, 30f
        21: tile    \rows, 4
            cbz     x13, 22f
            mov     x8, x13
            add     x13, x13, #64
            ld1     {{v4.4s-v7.4s}}, [x8], x5
            sum     4, v16, v17, v18, v19
            .if     \rows == 4
            ld1     {{v4.4s-v7.4s}}, [x8], x5
            sum     4, v20, v21, v22, v23
            ld1     {{v4.4s-v7.4s}}, [x8], x5
            sum     4, v24, v25, v26, v27
            ld1     {{v4.4s-v7.4s}}, [x8]
            sum     4, v28, v29, v30, v31
            .endif
        22: mov     x8, x7
            limit   4, v16, v17, v18, v19
            st1     {{v16.4s-v19.4s}}, [x8], x5
            .if     \rows == 4
            limit   4, v20, v21, v22, v23
            st1     {{v20.4s-v23.4s}}, [x8], x5
            limit   4, v24, v25, v26, v27
            st1     {{v24.4s-v27.4s}}, [x8], x5
            limit   4, v28, v29, v30, v31
            st1     {{v28.4s-v31.4s}}, [x8]
            .endif
            add     x7, x7, #64
            subs    x6, x6, #1
            b.ne    21b
        30: cbz     x16, 40f
            ldr     x17, [x0, #{last_bias}]
            cmp     x16, #4
            b.ls    31f
            cmp     x16, #8
            b.ls    32f
            cmp     x16, #12
            b.ls    33f
            rest    \rows, 4
            b       40f
        31: rest    \rows, 1
            b       40f
        32: rest    \rows, 2
            b       40f
        33: rest    \rows, 3
        40: .rept   \rows
            add     x1, x1, x2
            add     x4, x4, x5
            .endr
            cbz     x14, 41f
            .rept   \rows
            add     x14, x14, x5
            .endr
        41: subs    x15, x15, #1
            b.ne    20b
            ret
        .endm
        "
    };
}

/// Ends the assembler's macros.
macro_rules! forget {
    () => {
        ".purgem fmas\n .purgem step\n .purgem copies\n .purgem limit\n .purgem sum\n .purgem tile\n .purgem tail\n .purgem segments\n \
         .purgem row_of_rest\n .purgem store_rest\n .purgem rest\n .purgem product"
    };
}

/// A loop: its macros, what is made of them, and where the arguments are.
macro_rules! loops {
    ($product:literal) => {
        naked!(
            ProductF32 { x, weights, out, residual, groups, rest, quads, odd, tiles, limits, last_bias } =>
            ".arch armv8-a",
            macros!(),
            $product,
            forget!()
        )
    };
}

/// Tiles of four rows: 74 instructions for four elements of four rows and sixteen channels, which are 256 MACs.
///
/// # Safety
/// As for [`super::super::conv2d_f32::Matrix`]'s product, with four rows a tile, at least one tile, and arguments of packed weights.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn four_rows_f32(args: *const ProductF32) {
    loops!("product 4")
}

/// Tiles of one row: 23 instructions for four elements and sixteen channels, which are 64 MACs.
///
/// # Safety
/// As for [`four_rows_f32`], with one row a tile.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn one_row_f32(args: *const ProductF32) {
    loops!("product 1")
}
