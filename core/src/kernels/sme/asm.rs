//! The loop in assembly of SVE in streaming mode, where NEON is not there.
//!
//! Registers: x0 the arguments; x1 to x4 the next window, the row of the input at which it begins, its column and the pixels that are left; x5 to x7 one,
//! two and three steps between windows; x8 columns, x9 and x10 those inside; x11 channels that are left; w12 a line or a column of a tile; x13 the weights,
//! which are walked through; x14 the row of the window and x15 the element of it; x16, x17 and x30 what is at hand; x19 words and x20 bytes of a vector; x21
//! pixels; x22 to x24 the tile's first window, as x1 to x3; x25 its outputs and x26 its pixels; x27 channels that are done; x28 bytes of a line of the
//! channels; x29 rows of the input. p0 are the elements of a vector that the row has, p4 to p6 the channels, p7 all; z8 to z19 are the words of the channels,
//! z28 to z30 zero point and limits, z31 padding. za0 is windows by elements, a line of its words every fourth line of bytes; za1 to za3 are sums.

use super::args::Convolution;

frame! {
    /// Registers that the function restores.
    Saved { d8, d9, d10, d11, d12, d13, d14, d15, x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30 }
}

/// Assembler macros of the loop. They live as long as the assembler's module: [`purge`] ends them.
macro_rules! macros {
    () => {
        r"
        // Four elements of all pixels, times those of the channels.
        .macro four tiles, at
            mova    z0.s, p7/m, za0v.s[w12, \at]
            ld1w    {{z1.s}}, p4/z, [x13]
            .if     \tiles > 1
            ld1w    {{z2.s}}, p5/z, [x13, #1, mul vl]
            .endif
            .if     \tiles > 2
            ld1w    {{z3.s}}, p6/z, [x13, #2, mul vl]
            .endif
            add     x13, x13, x28
            smopa   za1.s, p7/m, p7/m, z0.b, z1.b
            .if     \tiles > 1
            smopa   za2.s, p7/m, p7/m, z0.b, z2.b
            .endif
            .if     \tiles > 2
            smopa   za3.s, p7/m, p7/m, z0.b, z3.b
            .endif
        .endm

        // The x16 fours of a vector, at least one.
        .macro fours tiles
            subs    x16, x16, #4
            b.lo    52f
        51: four    \tiles, 0
            four    \tiles, 1
            four    \tiles, 2
            four    \tiles, 3
            add     w12, w12, #4
            subs    x16, x16, #4
            b.hs    51b
        52: tbz     x16, #1, 53f
            four    \tiles, 0
            four    \tiles, 1
            add     w12, w12, #2
        53: tbz     x16, #0, 58f
            four    \tiles, 0
            b       58f
        .endm

        // The words of three vectors of channels from x27 on, of which p4 to p6 say where there are any.
        .macro words
            ldr     x16, [x0, #{channels}]
            whilelo p4.s, x27, x16
            add     x17, x27, x19
            whilelo p5.s, x17, x16
            add     x17, x17, x19
            whilelo p6.s, x17, x16
            ldr     x16, [x0, #{table}]
            add     x16, x16, x27, lsl #2
            line    z8, z9, z10
            add     x16, x16, x28
            line    z11, z12, z13
            add     x16, x16, x28
            line    z14, z15, z16
            add     x16, x16, x28
            line    z17, z18, z19
        .endm
        .macro line a, b, c
            ld1w    {{\a\().s}}, p4/z, [x16]
            ld1w    {{\b\().s}}, p5/z, [x16, #1, mul vl]
            ld1w    {{\c\().s}}, p6/z, [x16, #2, mul vl]
        .endm

        // Outputs of a pixel's sums of one tile, with any shifts or with shifts right alone; ties go away from zero.
        .macro out any, pixel, tile, left, mantissa, right, lanes, at
            mova    z0.s, p7/m, \tile\().s[w12, \pixel]
            .if     \any
            lsl     z0.s, p7/m, z0.s, \left\().s
            sqrdmulh z0.s, z0.s, \mantissa\().s
            and     z1.d, z0.d, \right\().d
            ssra    z0.s, z1.s, #31
            .else
            sqrdmulh z0.s, z0.s, \mantissa\().s
            ssra    z0.s, z0.s, #31
            .endif
            srshl   z0.s, p7/m, z0.s, \right\().s
            add     z0.s, z0.s, z28.s
            sclamp  z0.s, z29.s, z30.s
            st1b    {{z0.s}}, \lanes, [x17, #\at, mul vl]
        .endm

        // Of all its tiles.
        .macro pixel any, tiles, pixel
            out     \any, \pixel, za1h, z11, z14, z17, p4, 0
            .if     \tiles > 1
            out     \any, \pixel, za2h, z12, z15, z18, p5, 1
            .endif
            .if     \tiles > 2
            out     \any, \pixel, za3h, z13, z16, z19, p6, 2
            .endif
            add     x17, x17, x16
        .endm

        // Of all pixels.
        .macro outs tiles
            cmpge   p1.s, p4/z, z17.s, #0
            b.any   65f
            .if     \tiles > 1
            cmpge   p1.s, p5/z, z18.s, #0
            b.any   65f
            .endif
            .if     \tiles > 2
            cmpge   p1.s, p6/z, z19.s, #0
            b.any   65f
            .endif
            subs    x30, x26, #4
            b.lo    62f
        61: pixel   0, \tiles, 0
            pixel   0, \tiles, 1
            pixel   0, \tiles, 2
            pixel   0, \tiles, 3
            add     w12, w12, #4
            subs    x30, x30, #4
            b.hs    61b
        62: tbz     x30, #1, 63f
            pixel   0, \tiles, 0
            pixel   0, \tiles, 1
            add     w12, w12, #2
        63: tbz     x30, #0, 69f
            pixel   0, \tiles, 0
            b       69f
        65: pixel   1, \tiles, 0
            add     w12, w12, #1
            cmp     w12, w26
            b.ne    65b
            b       69f
        .endm
        "
    };
}

/// Ends them.
macro_rules! purge {
    () => {
        ".purgem four\n .purgem fours\n .purgem words\n .purgem line\n .purgem out\n .purgem pixel\n .purgem outs\n"
    };
}

/// All outputs. Windows are read and outputs written byte by byte, the words of the channels as such: without an MMU all memory counts as device memory.
///
/// # Safety
/// Of the windows, what lies inside the input is valid for reads; `out` is valid for writes of all pixels; constants have the layout of `packed`. The core has
/// the extension, switched on for this level of exceptions, and nobody has anything in its array.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn convolution(args: *const Convolution) {
    naked!(
        Convolution { window, weights, table, out, channels, rows, run, pitch, height, columns, inside, left, top, stride, bottom, outside, low },
        Saved { d10, d12, d14, x19, x21, x23, x25, x27, x29 } =>
        ".arch armv9-a+sme",
        macros!(),
        r"
            // Streaming mode begins and ends with all vectors cleared.
            stp     d8, d9, [sp, #-{saved}]!
            stp     d10, d11, [sp, #{d10}]
            stp     d12, d13, [sp, #{d12}]
            stp     d14, d15, [sp, #{d14}]
            stp     x19, x20, [sp, #{x19}]
            stp     x21, x22, [sp, #{x21}]
            stp     x23, x24, [sp, #{x23}]
            stp     x25, x26, [sp, #{x25}]
            stp     x27, x28, [sp, #{x27}]
            stp     x29, x30, [sp, #{x29}]
            smstart
            cntw    x19
            cntb    x20
            ptrue   p7.b
            ldp     w14, w15, [x0, #{outside}] // and zero_point
            ldp     w16, w17, [x0, #{low}] // and high
            dup     z31.b, w14
            dup     z28.s, w15
            dup     z29.s, w16
            dup     z30.s, w17
            ldp     x8, x5, [x0, #{columns}] // and step
            ldp     x10, x9, [x0, #{inside}] // both
            lsl     x6, x5, #1
            add     x7, x6, x5
            ldr     x29, [x0, #{height}]
            ldr     x22, [x0, #{window}]
            ldr     x23, [x0, #{top}]
            mov     x24, #0
            ldr     x25, [x0, #{out}]
            ldp     x28, x21, [x0, #{channels}] // and pixels
            lsl     x28, x28, #2
            mov     x27, #0
            words

            // A tile of pixels.
        10: cmp     x21, x19
            csel    x26, x21, x19, lo
            mov     x27, #0

            // Three vectors of channels of it, whose words stay where there are no others.
        20: ldr     x16, [x0, #{channels}]
            sub     x11, x16, x27
            add     x17, x19, x19, lsl #1
            cmp     x16, x17
            b.ls    21f
            words
        21: zero    {{za1.s, za2.s, za3.s}}
            ldr     x13, [x0, #{weights}]
            add     x13, x13, x27, lsl #2
            mov     x14, #0
        30: mov     x15, #0

            // A vector of a row of every window, as lines of za0.
        40: ldp     x16, x17, [x0, #{run}] // and pitch
            whilelo p0.b, x15, x16
            madd    x1, x14, x17, x22
            add     x1, x1, x15
            add     x2, x23, x14
            mov     x3, x24
            mov     x4, x26
            mov     w12, #0
            // Pixels of a row of the output.
        41: sub     x16, x8, x3
            cmp     x16, x4
            csel    x16, x4, x16, hi
            sub     x4, x4, x16
            cmp     x2, x29
            b.hs    47f
            // Those of them whose windows lie inside.
        42: cmp     x3, x10
            b.lo    46f
            subs    x17, x9, x3
            b.ls    46f
            cmp     x17, x16
            csel    x17, x16, x17, hi
            sub     x16, x16, x17
            add     x3, x3, x17
            subs    x17, x17, #4
            b.lo    44f
        43: ld1b    {{za0h.b[w12, 0]}}, p0/z, [x1]
            ld1b    {{za0h.b[w12, 4]}}, p0/z, [x1, x5]
            ld1b    {{za0h.b[w12, 8]}}, p0/z, [x1, x6]
            ld1b    {{za0h.b[w12, 12]}}, p0/z, [x1, x7]
            add     x1, x1, x5, lsl #2
            add     w12, w12, #16
            subs    x17, x17, #4
            b.hs    43b
        44: tbz     x17, #1, 441f
            ld1b    {{za0h.b[w12, 0]}}, p0/z, [x1]
            ld1b    {{za0h.b[w12, 4]}}, p0/z, [x1, x5]
            add     x1, x1, x6
            add     w12, w12, #8
        441: tbz    x17, #0, 442f
            ld1b    {{za0h.b[w12, 0]}}, p0/z, [x1]
            add     x1, x1, x5
            add     w12, w12, #4
        442: cbnz   x16, 42b
            b       49f
            // One whose window reaches beyond a side: elements of the row of the input from x30 on, which may be negative.
        46: ldr     x17, [x0, #{left}]
            madd    x30, x3, x5, x15
            sub     x30, x30, x17
            ldr     x17, [x0, #{pitch}]
            whilelt p1.b, x30, x17
            whilelt p2.b, x30, xzr
            bic     p1.b, p0/z, p1.b, p2.b
            ld1b    {{z0.b}}, p1/z, [x1]
            sel     z0.b, p1, z0.b, z31.b
            mova    za0h.b[w12, 0], p7/m, z0.b
            add     x1, x1, x5
            add     w12, w12, #4
            add     x3, x3, #1
            subs    x16, x16, #1
            b.ne    42b
            b       49f
            // Rows above and below the input.
        47: add     x3, x3, x16
            madd    x1, x16, x5, x1
        48: mova    za0h.b[w12, 0], p7/m, z31.b
            add     w12, w12, #4
            subs    x16, x16, #1
            b.ne    48b
        49: cmp     x3, x8
            b.ne    50f
            mov     x3, #0
            ldp     x16, x17, [x0, #{stride}] // and next_row
            add     x2, x2, x16
            add     x1, x1, x17
            ldp     x16, x17, [x0, #{bottom}] // and next_image
            add     x16, x16, x14
            cmp     x2, x16
            b.ne    491f
            add     x1, x1, x17
            ldr     x2, [x0, #{top}]
            add     x2, x2, x14
        491: cbnz   x4, 41b

            // Times the weights.
        50: cntp    x16, p7, p0.s
            mov     w12, #0
            cmp     x11, x19
            b.ls    55f
            cmp     x11, x19, lsl #1
            b.ls    54f
            fours   3
        54: fours   2
        55: fours   1
        58: add     x15, x15, x20
            ldp     x16, x17, [x0, #{rows}] // and run
            cmp     x15, x17
            b.lo    40b
            add     x14, x14, #1
            cmp     x14, x16
            b.lo    30b

            // Outputs.
            addha   za1.s, p7/m, p7/m, z8.s
            addha   za2.s, p7/m, p7/m, z9.s
            addha   za3.s, p7/m, p7/m, z10.s
            ldr     x16, [x0, #{channels}]
            add     x17, x25, x27
            mov     w12, #0
            cmp     x11, x19
            b.ls    67f
            cmp     x11, x19, lsl #1
            b.ls    66f
            outs    3
        66: outs    2
        67: outs    1
        69: add     x27, x27, x19
            add     x27, x27, x19, lsl #1
            cmp     x27, x16
            b.lo    20b

            // The next tile is where the last walk ended.
            madd    x25, x26, x16, x25
            ldr     x17, [x0, #{pitch}]
            sub     x14, x14, #1
            msub    x22, x14, x17, x1
            sub     x22, x22, x15
            add     x22, x22, x20
            sub     x23, x2, x14
            mov     x24, x3
            subs    x21, x21, x26
            b.ne    10b

            smstop
            ldp     d10, d11, [sp, #{d10}]
            ldp     d12, d13, [sp, #{d12}]
            ldp     d14, d15, [sp, #{d14}]
            ldp     x19, x20, [sp, #{x19}]
            ldp     x21, x22, [sp, #{x21}]
            ldp     x23, x24, [sp, #{x23}]
            ldp     x25, x26, [sp, #{x25}]
            ldp     x27, x28, [sp, #{x27}]
            ldp     x29, x30, [sp, #{x29}]
            ldp     d8, d9, [sp], #{saved}
            ret
        ",
        purge!();
        saved = const size_of::<Saved>(),
    )
}
