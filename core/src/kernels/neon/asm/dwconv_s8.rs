//! Depthwise convolutions, a pixel at a time.
//!
//! Registers: x0 the arguments, x1 the table of taps, x2 bytes from its addresses to the pixel's, x3 the weights, which are walked through, x4 the pixel's
//! outputs, x5 channels, x6 a counter of blocks, x7 the block's first channel, x8 a counter of taps, x9 to x12 and x16 addresses, x13 and x14 the limits, x15
//! pixels, x17 the zero point. v16 to v19 are the sums.

use super::super::args::Depthwise;

/// Runs of pixels, by blocks of sixteen channels and at most two of eight. Two taps of sixteen channels, which are 32 MACs, take 16 instructions; requantising
/// sixteen outputs takes 43.
///
/// Two products of bytes, of which no weight is -128, fit 16 bits.
///
/// # Safety
/// `pixels` of the taps are readable as far as `step` and the blocks say, the outputs writable; the weights are as `dwconv_s8::pack` writes them.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn depthwise(args: *const Depthwise) {
    naked!(
        Depthwise { entries, weights, out, step, channels, blocks, halves, first_half, zero_point, high } =>
        ".arch armv8-a",
        r"
        .macro scale sum
            ld1     {{v0.4s-v2.4s}}, [x3], #48
            sshl    \sum\().4s, \sum\().4s, v0.4s
            sqrdmulh \sum\().4s, \sum\().4s, v1.4s
            and     v4.16b, \sum\().16b, v2.16b
            ssra    \sum\().4s, v4.4s, #31
            srshl   \sum\().4s, \sum\().4s, v2.4s
            add     \sum\().4s, \sum\().4s, v3.4s
        .endm

            ldp     x1, x16, [x0, #{entries}] // and taps
            ldp     x4, x15, [x0, #{out}] // and pixels
            ldr     x5, [x0, #{channels}]
            ldp     w17, w13, [x0, #{zero_point}] // and low
            ldr     w14, [x0, #{high}]
            mov     x2, #0
            dup     v3.4s, w17
            dup     v5.16b, w13
            dup     v6.16b, w14
        20: ldr     x3, [x0, #{weights}]
            mov     x7, #0
            ldr     x6, [x0, #{blocks}]
            cbz     x6, 30f
        21: ld1     {{v16.4s-v19.4s}}, [x3], #64
            add     x12, x2, x7
            mov     x10, x1
            lsr     x8, x16, #1
            cbz     x8, 23f
        22: ldp     x9, x11, [x10], #16
            add     x9, x9, x12
            add     x11, x11, x12
            ld1     {{v0.16b}}, [x9]
            ld1     {{v1.16b}}, [x11]
            ld1     {{v20.16b-v21.16b}}, [x3], #32
            smull   v22.8h, v0.8b, v20.8b
            smull2  v23.8h, v0.16b, v20.16b
            smlal   v22.8h, v1.8b, v21.8b
            smlal2  v23.8h, v1.16b, v21.16b
            saddw   v16.4s, v16.4s, v22.4h
            saddw2  v17.4s, v17.4s, v22.8h
            saddw   v18.4s, v18.4s, v23.4h
            saddw2  v19.4s, v19.4s, v23.8h
            subs    x8, x8, #1
            b.ne    22b
        23: tbz     x16, #0, 24f
            ldr     x9, [x10]
            add     x9, x9, x12
            ld1     {{v0.16b}}, [x9]
            ld1     {{v20.16b}}, [x3], #16
            smull   v22.8h, v0.8b, v20.8b
            smull2  v23.8h, v0.16b, v20.16b
            saddw   v16.4s, v16.4s, v22.4h
            saddw2  v17.4s, v17.4s, v22.8h
            saddw   v18.4s, v18.4s, v23.4h
            saddw2  v19.4s, v19.4s, v23.8h
        24: scale   v16
            scale   v17
            scale   v18
            scale   v19
            sqxtn   v16.4h, v16.4s
            sqxtn2  v16.8h, v17.4s
            sqxtn   v18.4h, v18.4s
            sqxtn2  v18.8h, v19.4s
            sqxtn   v16.8b, v16.8h
            sqxtn2  v16.16b, v18.8h
            smax    v16.16b, v16.16b, v5.16b
            smin    v16.16b, v16.16b, v6.16b
            add     x9, x4, x7
            st1     {{v16.16b}}, [x9]
            add     x7, x7, #16
            subs    x6, x6, #1
            b.ne    21b
        30: ldr     x6, [x0, #{halves}]
            cbz     x6, 40f
            ldr     x7, [x0, #{first_half}]
        31: ld1     {{v16.4s-v17.4s}}, [x3], #32
            add     x12, x2, x7
            mov     x10, x1
            lsr     x8, x16, #1
            cbz     x8, 33f
        32: ldp     x9, x11, [x10], #16
            add     x9, x9, x12
            add     x11, x11, x12
            ld1     {{v0.8b}}, [x9]
            ld1     {{v1.8b}}, [x11]
            ld1     {{v20.8b-v21.8b}}, [x3], #16
            smull   v22.8h, v0.8b, v20.8b
            smlal   v22.8h, v1.8b, v21.8b
            saddw   v16.4s, v16.4s, v22.4h
            saddw2  v17.4s, v17.4s, v22.8h
            subs    x8, x8, #1
            b.ne    32b
        33: tbz     x16, #0, 34f
            ldr     x9, [x10]
            add     x9, x9, x12
            ld1     {{v0.8b}}, [x9]
            ld1     {{v20.8b}}, [x3], #8
            smull   v22.8h, v0.8b, v20.8b
            saddw   v16.4s, v16.4s, v22.4h
            saddw2  v17.4s, v17.4s, v22.8h
        34: scale   v16
            scale   v17
            sqxtn   v16.4h, v16.4s
            sqxtn2  v16.8h, v17.4s
            sqxtn   v16.8b, v16.8h
            smax    v16.8b, v16.8b, v5.8b
            smin    v16.8b, v16.8b, v6.8b
            add     x9, x4, x7
            st1     {{v16.8b}}, [x9]
            // The last eight channels end where the pixel does.
            sub     x7, x5, #8
            subs    x6, x6, #1
            b.ne    31b
        40: add     x4, x4, x5
            ldr     x9, [x0, #{step}]
            add     x2, x2, x9
            subs    x15, x15, #1
            b.ne    20b
            ret

        .purgem scale
        ",
    )
}
