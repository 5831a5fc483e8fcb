//! Products of rows of activations and packed weights.
//!
//! Registers: x0 the arguments, x1 and x2 the tile's rows and the bytes between them, x3 the weights, which are walked through, x4 and x5 the tile's outputs
//! and the bytes between their rows, x6 groups, x7 the group's outputs, x8 a counter, x9 to x12 the rows, x13, x14 and x17 limits and zero point, x15 tiles,
//! x16 the channels of a last group. v16 to v31 are the sums, four to a row; v0 to v3 elements of the rows, v4 to v7 weights.

use core::arch::naked_asm;

use super::Product;

/// What both loops are made of. Macros of the assembler live as long as its module: [`forget`] ends them.
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
            .if     \vecs == 4
            ld1     {{v4.16b-v7.16b}}, [x3], #64
            .elseif \vecs == 3
            ld1     {{v4.16b-v6.16b}}, [x3], #48
            .elseif \vecs == 2
            ld1     {{v4.16b-v5.16b}}, [x3], #32
            .else
            ld1     {{v4.16b}}, [x3], #16
            .endif
            dots    \vecs, v0, \s, v16, v17, v18, v19
            .if     \rows == 4
            dots    \vecs, v1, \s, v20, v21, v22, v23
            dots    \vecs, v2, \s, v24, v25, v26, v27
            dots    \vecs, v3, \s, v28, v29, v30, v31
            .endif
        .endm

        // Four sums to outputs, by the shift left of v0, the mantissas of v1, the shift right of v2, whose ties go away from zero, and the zero point of v3.
        .macro scale sum
            sshl    \sum\().4s, \sum\().4s, v0.4s
            sqrdmulh \sum\().4s, \sum\().4s, v1.4s
            and     v4.16b, \sum\().16b, v2.16b
            ssra    \sum\().4s, v4.4s, #31
            srshl   \sum\().4s, \sum\().4s, v2.4s
            add     \sum\().4s, \sum\().4s, v3.4s
        .endm

        .macro column rows, a, b, c, d
            ld1     {{v0.4s-v2.4s}}, [x3], #48
            scale   \a
            .if     \rows == 4
            scale   \b
            scale   \c
            scale   \d
            .endif
        .endm

        // A row's outputs as bytes, within the limits of v5 and v6.
        .macro narrow vecs, a, b, c, d
            sqxtn   \a\().4h, \a\().4s
            .if     \vecs > 1
            sqxtn2  \a\().8h, \b\().4s
            .endif
            .if     \vecs > 2
            sqxtn   \c\().4h, \c\().4s
            .endif
            .if     \vecs > 3
            sqxtn2  \c\().8h, \d\().4s
            .endif
            sqxtn   \a\().8b, \a\().8h
            .if     \vecs > 2
            sqxtn2  \a\().16b, \c\().8h
            .endif
            smax    \a\().16b, \a\().16b, v5.16b
            smin    \a\().16b, \a\().16b, v6.16b
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
            .if     \vecs == 4
            ld1     {{v16.4s-v19.4s}}, [x3], #64
            .elseif \vecs == 3
            ld1     {{v16.4s-v18.4s}}, [x3], #48
            .elseif \vecs == 2
            ld1     {{v16.4s-v17.4s}}, [x3], #32
            .else
            ld1     {{v16.4s}}, [x3], #16
            .endif
            mov     x9, x1
            .if     \rows == 4
            copies  \vecs, v20, v21, v22, v23
            copies  \vecs, v24, v25, v26, v27
            copies  \vecs, v28, v29, v30, v31
            add     x10, x9, x2
            add     x11, x10, x2
            add     x12, x11, x2
            .endif
            ldr     x8, [x0, #56]
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
        3:  ldr     x8, [x0, #64]
            cbz     x8, 4f
            ld1     {{v0.8b}}, [x9]
            .if     \rows == 4
            ld1     {{v1.8b}}, [x10]
            ld1     {{v2.8b}}, [x11]
            ld1     {{v3.8b}}, [x12]
            .endif
            step    \rows, \vecs, 0
            step    \rows, \vecs, 1
        4:  dup     v3.4s, w17
            dup     v5.16b, w13
            dup     v6.16b, w14
            column  \rows, v16, v20, v24, v28
            .if     \vecs > 1
            column  \rows, v17, v21, v25, v29
            .endif
            .if     \vecs > 2
            column  \rows, v18, v22, v26, v30
            .endif
            .if     \vecs > 3
            column  \rows, v19, v23, v27, v31
            .endif
            narrow  \vecs, v16, v17, v18, v19
            .if     \rows == 4
            narrow  \vecs, v20, v21, v22, v23
            narrow  \vecs, v24, v25, v26, v27
            narrow  \vecs, v28, v29, v30, v31
            .endif
        .endm

        // The outputs of a last group, byte by byte below eight: nothing says that they are aligned.
        .macro store v
            mov     x8, x7
            tbz     x16, #3, 5f
            st1     {{\v\().8b}}, [x8], #8
            ext     \v\().16b, \v\().16b, \v\().16b, #8
        5:  tbz     x16, #2, 6f
            st1     {{\v\().b}}[0], [x8], #1
            st1     {{\v\().b}}[1], [x8], #1
            st1     {{\v\().b}}[2], [x8], #1
            st1     {{\v\().b}}[3], [x8], #1
            ext     \v\().16b, \v\().16b, \v\().16b, #4
        6:  tbz     x16, #1, 7f
            st1     {{\v\().b}}[0], [x8], #1
            st1     {{\v\().b}}[1], [x8], #1
            ext     \v\().16b, \v\().16b, \v\().16b, #2
        7:  tbz     x16, #0, 8f
            st1     {{\v\().b}}[0], [x8]
        8:  add     x7, x7, x5
        .endm

        .macro product rows
            ldp     x1, x2, [x0]
            ldp     x4, x5, [x0, #24]
            ldr     x16, [x0, #48]
            ldr     x15, [x0, #72]
            ldp     w17, w13, [x0, #80]
            ldr     w14, [x0, #88]
        20: ldr     x3, [x0, #16]
            mov     x7, x4
            ldr     x6, [x0, #40]
            cbz     x6, 30f
        21: tile    \rows, 4
            mov     x8, x7
            st1     {{v16.16b}}, [x8], x5
            .if     \rows == 4
            st1     {{v20.16b}}, [x8], x5
            st1     {{v24.16b}}, [x8], x5
            st1     {{v28.16b}}, [x8]
            .endif
            add     x7, x7, #16
            subs    x6, x6, #1
            b.ne    21b
        30: cbz     x16, 40f
            cmp     x16, #4
            b.ls    31f
            cmp     x16, #8
            b.ls    32f
            cmp     x16, #12
            b.ls    33f
            tile    \rows, 4
            b       39f
        31: tile    \rows, 1
            b       39f
        32: tile    \rows, 2
            b       39f
        33: tile    \rows, 3
        39: store   v16
            .if     \rows == 4
            store   v20
            store   v24
            store   v28
            .endif
        40: .rept   \rows
            add     x1, x1, x2
            add     x4, x4, x5
            .endr
            subs    x15, x15, #1
            b.ne    20b
            ret
        .endm
        "
    };
}

/// Ends the assembler's macros.
macro_rules! forget {
    () => {
        ".purgem dots\n .purgem step\n .purgem scale\n .purgem column\n .purgem narrow\n .purgem copies\n .purgem tile\n .purgem store\n .purgem product"
    };
}

/// Tiles of four rows: 74 instructions for sixteen elements of four rows and sixteen channels, which are 1024 MACs.
///
/// # Safety
/// As for [`super::gemm::Matrix::multiply`], with four rows a tile, at least one tile, and arguments of packed weights.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows_by_four(args: *const Product) {
    naked_asm!(".arch armv8.2-a+dotprod", macros!(), "product 4", forget!())
}

/// Tiles of one row: 23 instructions for sixteen elements and sixteen channels, which are 256 MACs.
///
/// # Safety
/// As for [`rows_by_four`], with one row a tile.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn rows_by_one(args: *const Product) {
    naked_asm!(".arch armv8.2-a+dotprod", macros!(), "product 1", forget!())
}
