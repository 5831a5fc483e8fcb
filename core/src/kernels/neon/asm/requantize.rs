//! Requantisation of sums of products to outputs.

/// Macros of the assembler: `scale` makes outputs of four sums, by the shift left of v0, the mantissas of v1, the shift right of v2, whose ties go away from
/// zero, and the zero point of v3; `narrow` makes bytes of a row's outputs, within the limits of v5 and v6; `store` writes the x16 outputs of a last group at
/// x7 and goes on by x5, byte by byte below eight: nothing says that they are aligned.
macro_rules! outputs {
    () => {
        r"
        .macro scale sum
            sshl    \sum\().4s, \sum\().4s, v0.4s
            sqrdmulh \sum\().4s, \sum\().4s, v1.4s
            and     v4.16b, \sum\().16b, v2.16b
            ssra    \sum\().4s, v4.4s, #31
            srshl   \sum\().4s, \sum\().4s, v2.4s
            add     \sum\().4s, \sum\().4s, v3.4s
        .endm

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
        "
    };
}
pub(in crate::kernels) use outputs;
