//! Depthwise convolutions of f32, a pixel at a time.
//!
//! Registers: x0 the arguments, x1 the table of taps, x2 bytes from its addresses to the pixel's, x3 the block's weights, x4 the pixel's outputs, x5 bytes of a
//! pixel, x6 a counter of blocks, x7 bytes before the block's first channel, x8 a counter of taps, x9 to x12 and x17 addresses, x13 biases, x14 what is added
//! to the pixel, x15 pixels, x16 taps. v16 to v19 are the sums, v28 and v29 the limits.

use super::super::args::DepthwiseF32;

/// Runs of pixels, by blocks of sixteen channels and of four. Two taps of sixteen channels, which are 32 MACs, take 17 instructions.
///
/// # Safety
/// `pixels` of the taps are readable as far as `step` and the blocks say, the outputs writable; weights, biases and what is added are as many as channels.
#[unsafe(naked)]
pub(in crate::kernels) unsafe extern "C" fn depthwise_f32(args: *const DepthwiseF32) {
    naked!(
        DepthwiseF32 { entries, weights, out, step, bytes, blocks, quads, bias, limits } =>
        ".arch armv8-a",
        r"
            ldp     x1, x16, [x0, #{entries}] // and taps
            ldp     x4, x15, [x0, #{out}] // and pixels
            ldr     x5, [x0, #{bytes}]
            ldp     x13, x14, [x0, #{bias}] // and residual
            add     x8, x0, #{limits}
            ld1r    {{v28.4s}}, [x8], #4
            ld1r    {{v29.4s}}, [x8]
            mov     x2, #0
        20: mov     x7, #0
            ldr     x6, [x0, #{blocks}]
            cbz     x6, 30f
        21: movi    v16.2d, #0
            movi    v17.2d, #0
            movi    v18.2d, #0
            movi    v19.2d, #0
            cbz     x13, 22f
            add     x8, x13, x7
            ld1     {{v16.4s-v19.4s}}, [x8]
        22: ldr     x3, [x0, #{weights}]
            add     x3, x3, x7
            add     x12, x2, x7
            mov     x10, x1
            lsr     x8, x16, #1
            cbz     x8, 24f
        23: ldp     x9, x11, [x10], #16
            add     x9, x9, x12
            add     x11, x11, x12
            ld1     {{v0.4s-v3.4s}}, [x9]
            ld1     {{v4.4s-v7.4s}}, [x11]
            ld1     {{v20.4s-v23.4s}}, [x3], x5
            ld1     {{v24.4s-v27.4s}}, [x3], x5
            fmla    v16.4s, v0.4s, v20.4s
            fmla    v17.4s, v1.4s, v21.4s
            fmla    v18.4s, v2.4s, v22.4s
            fmla    v19.4s, v3.4s, v23.4s
            fmla    v16.4s, v4.4s, v24.4s
            fmla    v17.4s, v5.4s, v25.4s
            fmla    v18.4s, v6.4s, v26.4s
            fmla    v19.4s, v7.4s, v27.4s
            subs    x8, x8, #1
            b.ne    23b
        24: tbz     x16, #0, 25f
            ldr     x9, [x10]
            add     x9, x9, x12
            ld1     {{v0.4s-v3.4s}}, [x9]
            ld1     {{v20.4s-v23.4s}}, [x3]
            fmla    v16.4s, v0.4s, v20.4s
            fmla    v17.4s, v1.4s, v21.4s
            fmla    v18.4s, v2.4s, v22.4s
            fmla    v19.4s, v3.4s, v23.4s
        25: cbz     x14, 26f
            add     x8, x14, x7
            ld1     {{v0.4s-v3.4s}}, [x8]
            fadd    v16.4s, v16.4s, v0.4s
            fadd    v17.4s, v17.4s, v1.4s
            fadd    v18.4s, v18.4s, v2.4s
            fadd    v19.4s, v19.4s, v3.4s
        26: fmax    v16.4s, v16.4s, v28.4s
            fmax    v17.4s, v17.4s, v28.4s
            fmax    v18.4s, v18.4s, v28.4s
            fmax    v19.4s, v19.4s, v28.4s
            fmin    v16.4s, v16.4s, v29.4s
            fmin    v17.4s, v17.4s, v29.4s
            fmin    v18.4s, v18.4s, v29.4s
            fmin    v19.4s, v19.4s, v29.4s
            add     x9, x4, x7
            st1     {{v16.4s-v19.4s}}, [x9]
            add     x7, x7, #64
            subs    x6, x6, #1
            b.ne    21b
        30: ldr     x6, [x0, #{quads}]
            cbz     x6, 40f
            // The last four channels end where the pixel does.
            sub     x17, x5, #16
        31: cmp     x7, x17
            csel    x7, x7, x17, lo
            movi    v16.2d, #0
            cbz     x13, 32f
            add     x8, x13, x7
            ld1     {{v16.4s}}, [x8]
        32: ldr     x3, [x0, #{weights}]
            add     x3, x3, x7
            add     x12, x2, x7
            mov     x10, x1
            mov     x8, x16
        33: ldr     x9, [x10], #8
            add     x9, x9, x12
            ld1     {{v0.4s}}, [x9]
            ld1     {{v20.4s}}, [x3], x5
            fmla    v16.4s, v0.4s, v20.4s
            subs    x8, x8, #1
            b.ne    33b
            cbz     x14, 34f
            add     x8, x14, x7
            ld1     {{v0.4s}}, [x8]
            fadd    v16.4s, v16.4s, v0.4s
        34: fmax    v16.4s, v16.4s, v28.4s
            fmin    v16.4s, v16.4s, v29.4s
            add     x9, x4, x7
            st1     {{v16.4s}}, [x9]
            add     x7, x7, #16
            subs    x6, x6, #1
            b.ne    31b
        40: add     x4, x4, x5
            ldr     x9, [x0, #{step}]
            add     x2, x2, x9
            cbz     x14, 41f
            add     x14, x14, x5
        41: subs    x15, x15, #1
            b.ne    20b
            ret
        ",
    )
}
