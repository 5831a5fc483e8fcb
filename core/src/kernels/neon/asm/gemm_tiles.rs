//! Walk of packed-weight products through their tiles, for any multiply instruction.

/// Macros of the assembler: `take` loads vectors, which lie one behind the other; `finish` makes bytes of a tile's sums, a list of four registers for each row,
/// in the first register of each list; `product` goes over all tiles and groups, where the file's own `tile` leaves the bytes of the rows in the registers that
/// it names. [`outputs`](super::requantize::outputs) stands before them, and [`forget`] ends both. Registers are those of the loops' heads.
macro_rules! walk {
    () => {
        r"
        .macro take vecs, from, a, b, c, d
            .if     \vecs == 4
            ld1     {{\a\().4s-\d\().4s}}, [\from], #64
            .elseif \vecs == 3
            ld1     {{\a\().4s-\c\().4s}}, [\from], #48
            .elseif \vecs == 2
            ld1     {{\a\().4s-\b\().4s}}, [\from], #32
            .else
            ld1     {{\a\().4s}}, [\from], #16
            .endif
        .endm

        .macro column rows, a, b, c, d
            ld1     {{v0.4s-v2.4s}}, [x3], #48
            scale   \a
            .if     \rows > 1
            scale   \b
            .endif
            .if     \rows > 2
            scale   \c
            scale   \d
            .endif
        .endm

        .macro finish rows, vecs, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p
            dup     v3.4s, w17
            dup     v5.16b, w13
            dup     v6.16b, w14
            column  \rows, \a, \e, \i, \m
            .if     \vecs > 1
            column  \rows, \b, \f, \j, \n
            .endif
            .if     \vecs > 2
            column  \rows, \c, \g, \k, \o
            .endif
            .if     \vecs > 3
            column  \rows, \d, \h, \l, \p
            .endif
            narrow  \vecs, \a, \b, \c, \d
            .if     \rows > 1
            narrow  \vecs, \e, \f, \g, \h
            .endif
            .if     \rows > 2
            narrow  \vecs, \i, \j, \k, \l
            narrow  \vecs, \m, \n, \o, \p
            .endif
        .endm

        .macro product rows, a, b, c, d
            ldp     x1, x2, [x0, #{x}] // and x_stride
            ldp     x4, x5, [x0, #{out}] // and out_stride
            ldr     x16, [x0, #{rest}]
            ldr     x15, [x0, #{tiles}]
            ldp     w17, w13, [x0, #{zero_point}] // and low
            ldr     w14, [x0, #{high}]
        20: ldr     x3, [x0, #{weights}]
            mov     x7, x4
            ldr     x6, [x0, #{groups}]
            cbz     x6, 30f
        21: tile    \rows, 4
            mov     x8, x7
            st1     {{\a\().16b}}, [x8], x5
            .if     \rows > 1
            st1     {{\b\().16b}}, [x8], x5
            .endif
            .if     \rows > 2
            st1     {{\c\().16b}}, [x8], x5
            st1     {{\d\().16b}}, [x8]
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
        39: store   \a
            .if     \rows > 1
            store   \b
            .endif
            .if     \rows > 2
            store   \c
            store   \d
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

/// Ends the macros of [`walk`] and of the outputs, and the file's `tile`.
macro_rules! forget {
    () => {
        ".purgem scale\n .purgem narrow\n .purgem store\n .purgem take\n .purgem column\n .purgem finish\n .purgem tile\n .purgem product\n"
    };
}
pub(in crate::kernels) use forget;
pub(in crate::kernels) use walk;
