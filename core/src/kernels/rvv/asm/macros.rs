//! Assembler macros of both loops.
//!
//! Registers: a0 the arguments, a1 to a6 the addresses of the tile's pixels, a7 the weights, which are walked through, t0 to t2 and s8 to s10 elements, t3
//! channels, t4 and t5 counters of elements and taps, t6 the table of taps, s0 the part's first channel, s1 its channels, s2 bytes from the addresses of the
//! table to the tile's first pixel, s3 bytes between pixels, s4 the tile's first outputs, s5 pixels, s6 bytes between the pixels of this tap, s7 the address of
//! taps outside. Sums are v8, v16 and v24, eight registers each (`wide` 8), or v8, v12 and so on to v28, four registers each (`wide` 4).

/// Macros of the assembler. They live as long as its module: `macros!(end)` ends them.
macro_rules! macros {
    () => {
        r"
        // Words as long as addresses.
        .macro lx to, at, from
            .if     {bytes} == 8
            ld      \to, \at(\from)
            .else
            lw      \to, \at(\from)
            .endif
        .endm
        .macro sx from, at, to
            .if     {bytes} == 8
            sd      \from, \at(\to)
            .else
            sw      \from, \at(\to)
            .endif
        .endm

        // \op sums, address, element, and what else it takes, for every pixel of a tile.
        .macro each wide, pixels, op, p, q
            \op     v8, a1, t0, \p, \q
            .if     \wide == 8
            .if     \pixels > 1
            \op     v16, a2, t1, \p, \q
            \op     v24, a3, t2, \p, \q
            .endif
            .else
            .if     \pixels > 1
            \op     v12, a2, t1, \p, \q
            .endif
            .if     \pixels > 2
            \op     v16, a3, t2, \p, \q
            \op     v20, a4, s8, \p, \q
            \op     v24, a5, s9, \p, \q
            \op     v28, a6, s10, \p, \q
            .endif
            .endif
        .endm

        // Types of vectors as long as a part: sums, their halves, bytes.
        .macro words wide
            vsetvli zero, zero, e32, m\wide, ta, ma
        .endm
        .macro halves wide
            .if     \wide == 8
            vsetvli zero, zero, e16, m4, ta, ma
            .else
            vsetvli zero, zero, e16, m2, ta, ma
            .endif
        .endm
        .macro bytes wide
            .if     \wide == 8
            vsetvli zero, zero, e8, m2, ta, ma
            .else
            vsetvli zero, zero, e8, m1, ta, ma
            .endif
        .endm

        // A line of bytes, widened in the registers that it lies in the last of.
        .macro widened wide, a, b, c, from
            .if     \wide == 8
            vle8.v  \c, (\from)
            vsext.vf2 \a, \c
            .else
            vle8.v  \b, (\from)
            vsext.vf2 \a, \b
            .endif
        .endm

        .macro load sums, x, element, at, q
            lb      \element, \at(\x)
        .endm
        .macro multiply sums, x, element, weights, q
            vwmacc.vx \sums, \element, \weights
        .endm
        .macro ahead sums, x, element, by, q
            addi    \x, \x, \by
        .endm
        .macro onwards sums, x, element, by, q
            add     \x, \x, \by
        .endm
        .macro tap sums, x, element, wide, q
            widened \wide, v4, v5, v6, \x
            vwmacc.vv \sums, v4, v0
        .endm

        // An element of all pixels; those next to each other take registers in turns.
        .macro even wide, pixels, at
            widened \wide, v0, v1, v2, a7
            add     a7, a7, t3
            each    \wide, \pixels, load, \at, 0
            each    \wide, \pixels, multiply, v0, 0
        .endm
        .macro odd wide, pixels, at
            widened \wide, v4, v5, v6, a7
            add     a7, a7, t3
            each    \wide, \pixels, load, \at, 0
            each    \wide, \pixels, multiply, v4, 0
        .endm

        .macro copy sums, x, element, p, q
            vmv.v.v \sums, v0
        .endm
        .macro left sums, x, element, p, q
            vsll.vv \sums, \sums, v0
        .endm
        .macro scale sums, x, element, p, q
            vsmul.vv \sums, \sums, v0
        .endm
        // Less one where a negative number is shifted, so that ties go away from zero.
        .macro ties sums, x, element, wide, q
            .if     \wide == 8
            vle32.v v0, (s8)
            vminu.vx v0, v0, s9
            vmulh.vv v0, \sums, v0
            .else
            vmulh.vv v0, \sums, v4
            .endif
            vadd.vv \sums, \sums, v0
        .endm
        .macro right sums, x, element, p, q
            vssra.vv \sums, \sums, v0
        .endm
        .macro plus sums, x, element, value, q
            vadd.vx \sums, \sums, \value
        .endm
        .macro narrow sums, x, element, p, q
            vnclip.wi \sums, \sums, 0
        .endm
        .macro limit sums, x, element, low, high
            vmax.vx \sums, \sums, \low
            vmin.vx \sums, \sums, \high
        .endm
        .macro store sums, x, element, p, q
            vse8.v  \sums, (s8)
            add     s8, s8, t3
        .endm

        // Outputs of the part's sums.
        .macro outputs wide, pixels
            words   \wide
            lx      s8, {table}, a0
            slli    s9, s0, 2
            add     s8, s8, s9
            slli    s10, t3, 2
            add     s8, s8, s10
            vle32.v v0, (s8)
            each    \wide, \pixels, left, 0, 0
            add     s8, s8, s10
            vle32.v v0, (s8)
            each    \wide, \pixels, scale, 0, 0
            add     s8, s8, s10
            li      s9, 1
            .if     \wide == 4
            vle32.v v4, (s8)
            vminu.vx v4, v4, s9
            .endif
            each    \wide, \pixels, ties, \wide, 0
            vle32.v v0, (s8)
            each    \wide, \pixels, right, 0, 0
            lw      t0, {zero_point}(a0)
            each    \wide, \pixels, plus, t0, 0
            halves  \wide
            each    \wide, \pixels, narrow, 0, 0
            bytes   \wide
            each    \wide, \pixels, narrow, 0, 0
            lw      t0, {low}(a0)
            lw      t1, {high}(a0)
            each    \wide, \pixels, limit, t0, t1
            add     s8, s4, s0
            each    \wide, \pixels, store, 0, 0
        .endm

        // Addresses of the pixels of the tap at t6.
        .macro addresses wide, pixels
            lx      a1, 0, t6
            addi    t6, t6, {bytes}
            li      s6, 0
            beq     a1, s7, 3f
            add     a1, a1, s2
            mv      s6, s3
        3:
            .if     \pixels > 1
            add     a2, a1, s6
            .endif
            .if     \pixels > 2
            add     a3, a2, s6
            .endif
            .if     \pixels > 3
            add     a4, a3, s6
            add     a5, a4, s6
            add     a6, a5, s6
            .endif
        .endm

        // A tile: part by part of the channels, all taps.
        .macro tile depthwise, wide, pixels
            li      s0, 0
        1:  sub     t0, t3, s0
            vsetvli s1, t0, e32, m\wide, ta, ma
            lx      t0, {table}, a0
            slli    t1, s0, 2
            add     t0, t0, t1
            .if     \pixels == 1
            vle32.v v8, (t0)
            .else
            vle32.v v0, (t0)
            each    \wide, \pixels, copy, 0, 0
            .endif
            halves  \wide
            lx      t6, {entries}, a0
            lx      t5, {taps}, a0
            lx      a7, {weights}, a0
            add     a7, a7, s0
        2:  addresses \wide, \pixels
            .if     \depthwise
            each    \wide, \pixels, onwards, s0, 0
            widened \wide, v0, v1, v2, a7
            add     a7, a7, t3
            each    \wide, \pixels, tap, \wide, 0
            .else
            lx      t4, {elements}, a0
            addi    t4, t4, -4
            bltz    t4, 5f
        4:  even    \wide, \pixels, 0
            odd     \wide, \pixels, 1
            even    \wide, \pixels, 2
            odd     \wide, \pixels, 3
            each    \wide, \pixels, ahead, 4, 0
            addi    t4, t4, -4
            bgez    t4, 4b
        5:  addi    t4, t4, 4
            beqz    t4, 7f
        6:  even    \wide, \pixels, 0
            each    \wide, \pixels, ahead, 1, 0
            addi    t4, t4, -1
            bnez    t4, 6b
        7:
            .endif
            addi    t5, t5, -1
            bnez    t5, 2b
            outputs \wide, \pixels
            add     s0, s0, s1
            bne     s0, t3, 1b
            // The next tile.
            .rept   \pixels
            add     s2, s2, s3
            add     s4, s4, t3
            .endr
            addi    s5, s5, -\pixels
        .endm

        .macro run depthwise
            addi    sp, sp, -12*{bytes}
            .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
            sx      s\n, {bytes}*\n, sp
            .endr
            csrwi   vxrm, 0
            lx      t3, {channels}, a0
            lx      s3, {step}, a0
            lx      s4, {out}, a0
            lx      s5, {pixels}, a0
            lx      s7, {outside}, a0
            li      s2, 0
            vsetvli t0, zero, e32, m4, ta, ma
            bltu    t0, t3, 30f
            li      t0, 6
            bltu    s5, t0, 11f
        10: tile    \depthwise, 4, 6
            li      t0, 6
            bgeu    s5, t0, 10b
        11: li      t0, 2
            bltu    s5, t0, 13f
        12: tile    \depthwise, 4, 2
            li      t0, 2
            bgeu    s5, t0, 12b
        13: beqz    s5, 40f
            tile    \depthwise, 4, 1
            j       40f
        30: li      t0, 3
            bltu    s5, t0, 32f
        31: tile    \depthwise, 8, 3
            li      t0, 3
            bgeu    s5, t0, 31b
        32: beqz    s5, 40f
        33: tile    \depthwise, 8, 1
            bnez    s5, 33b
        40:
            .irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
            lx      s\n, {bytes}*\n, sp
            .endr
            addi    sp, sp, 12*{bytes}
            ret
        .endm
        "
    };
    (end) => {
        r"
        .irp name, lx, sx, each, words, halves, bytes, widened, load, multiply, ahead, onwards, tap, even, odd
        .purgem \name
        .endr
        .irp name, copy, left, scale, ties, right, plus, narrow, limit, store
        .purgem \name
        .endr
        .purgem outputs
        .purgem addresses
        .purgem tile
        .purgem run
        "
    };
}
pub(super) use macros;
