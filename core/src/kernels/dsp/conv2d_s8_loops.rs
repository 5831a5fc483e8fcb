//! The inner loops of [`super::conv2d_s8`]: widening, and multiplying a block of widened pixels with two channels at a time.
//!
//! In assembly on Arm: the block of 4 pixels x 2 channels needs all fourteen registers (8 sums, 2 weights, 2 activations, 2 pointers), and
//! rustc leaves two or three to inline assembly's surroundings (r6, r7, often r9) and spills: the same loop from Rust with single-instruction
//! `asm!` took 2.0 instructions a MAC where this one takes 0.83 (K = 128).

/// A block of widened pixels, and what follows it through all channels. The assembly reads the fields by offset_of!.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ConvBlockArgs {
    /// The channel's output byte of the first pixel.
    pub out: *mut i8,
    /// Bytes between pixels of the output.
    pub stride: usize,
    /// Three times that.
    pub stride3: usize,
    /// Past the first pixel's last channel.
    pub out_end: *mut i8,
    /// The widened pixels: pairs of 16-bit activations, the block's pixels side by side.
    pub x: *const u32,
    /// Past them.
    pub x_end: *const u32,
    /// The packed stream.
    pub weights: *const u32,
    /// Pairs of activations in a pixel.
    pub pairs: usize,
    /// [`crate::ops::packed_conv2d::Form`]; never folded.
    pub form: usize,
    /// Pairs of a group of weights that share a factor; 0 where none do.
    pub share: usize,
    /// State of the loops for each group, after the block's pixels in scratch.
    pub groups: *mut u32,
}

#[cfg(kernel_isa = "dsp")]
pub(super) use arm::{finish_1x2, finish_4x2, fours_1x2, positive, signed};
#[cfg(kernel_isa = "dsp")]
use arm::{mac_1x2, mac_4x2};
#[cfg(not(kernel_isa = "dsp"))]
use portable::{mac_1x2, mac_4x2};

/// Loops that take a block through all channels of a stream.
pub(super) trait Loops {
    /// Pairs of activations that they take at a time: a pixel has a multiple of it, of which the last ones may be anything.
    const PAIRS: usize = 1;

    /// Four pixels.
    ///
    /// # Safety
    /// 1. `block` describes `4 * pairs` readable words of pixels, an even number of channels from `out` to `out_end` with as many channel pairs in the stream,
    ///    and four writable output pixels.
    /// 2. Loops of groups that share a factor: `groups` has five writable words for each group.
    unsafe fn mac_4x2(block: &ConvBlockArgs);

    /// One pixel.
    ///
    /// # Safety
    /// As for [`Loops::mac_4x2`], with one pixel's `pairs` words, one output pixel and two words for each group.
    unsafe fn mac_1x2(block: &ConvBlockArgs);
}

/// Each channel's weights in bytes of their own.
#[derive(Debug)]
pub(super) struct Separate;

impl Loops for Separate {
    #[inline(always)]
    unsafe fn mac_4x2(block: &ConvBlockArgs) {
        // SAFETY: `Loops::mac_4x2` has the same contract, and gets the same `block`.
        unsafe { mac_4x2(block) }
    }

    #[inline(always)]
    unsafe fn mac_1x2(block: &ConvBlockArgs) {
        // SAFETY: `Loops::mac_1x2` has the same contract, and gets the same `block`.
        unsafe { mac_1x2(block) }
    }
}

/// Requantises `sums` (channel by channel, `pixels` each) with two channels' records in the reference's form.
///
/// # Safety
/// `sums` holds `2 * pixels` sums, `records` eight words, and the outputs lie `stride` apart from `out`.
pub(super) unsafe extern "C" fn finish_general(
    sums: *const i32,
    records: *const u32,
    out: *mut i8,
    pixels_and_stride: usize,
) {
    let (pixels, stride) = (pixels_and_stride & 7, pixels_and_stride >> 3);
    for channel in 0..2 {
        for pixel in 0..pixels {
            // SAFETY: `channel < 2` and `pixel < pixels`: a sum, a record and an output that this function's contract guarantees.
            unsafe {
                let sum = *sums.add(channel * pixels + pixel);
                let out = out.add(pixel * stride + channel);
                *out = super::channel_record::general(records.add(4 * channel), sum);
            }
        }
    }
}

#[cfg(kernel_isa = "dsp")]
mod arm {
    use super::{ConvBlockArgs, finish_general};

    consecutive!(ConvBlockArgs: out, stride, stride3, out_end, x, x_end, weights, pairs, form);
    consecutive!(ConvBlockArgs: share, groups);

    frame!(
        /// The frame of four pixels: where outputs go, as in [`ConvBlockArgs`]; the pixels; where the unrolled loop is entered, and what follows it.
        FourPixels { to, stride, stride3, to_end, pixels, pixels_end, entry, epilogue }
    );
    consecutive!(FourPixels: to, stride, stride3, to_end);

    frame!(
        /// The frame of one pixel: where outputs go, the pixel, what of it is taken by fours, and the pairs that are left.
        OnePixel { to, to_end, pixels, fours_end, entry, after_fours, epilogue, rest }
    );
    consecutive!(OnePixel: to, to_end, pixels, fours_end);

    /// One pair of activations of 4 pixels x 2 channels: 16 MACs in 13 instructions.
    macro_rules! pair_4x2 {
        () => {
            "
            ldr.w   r8, [lr], #4
            ldrd    r10, r11, [r12], #8
            sxtb16  r9, r8, ror #8
            sxtb16  r8, r8
            smlad   r1, r10, r8, r1
            smlad   r5, r10, r9, r5
            smlad   r2, r11, r8, r2
            smlad   r6, r11, r9, r6
            ldrd    r10, r11, [r12], #8
            smlad   r3, r10, r8, r3
            smlad   r7, r10, r9, r7
            smlad   r0, r11, r8, r0
            smlad   r4, r11, r9, r4
            "
        };
    }

    /// `r8..r11` hold m, c, k, d.
    // With the fraction bits of the sums.
    macro_rules! positive {
        ($shift:literal $($sum:literal)*) => { concat!($("
            lsl.w   ", $sum, ", ", $sum, ", r10
            smmla   ", $sum, ", ", $sum, ", r8, r9
            ssat    ", $sum, ", #8, ", $sum, ", asr #", $shift, "
        "),*) };
    }
    pub(in super::super) use positive;

    macro_rules! signed {
        ($shift:literal $($sum:literal)*) => { concat!($("
            lsl.w   ", $sum, ", ", $sum, ", r10
            and.w   r12, r11, ", $sum, ", asr #31
            smmla   ", $sum, ", ", $sum, ", r8, r9
            sub.w   ", $sum, ", ", $sum, ", r12
            ssat    ", $sum, ", #8, ", $sum, ", asr #", $shift, "
        "),*) };
    }
    pub(in super::super) use signed;

    /// From sums of four pixels, channel 0 in r1 r2 r3 r0 and channel 1 in r5 r6 r7 r4, to eight outputs, and on to the next channels at 10; 30, 40, 50 by the
    /// form. Sums have `$fraction` fraction bits in the short forms; `$general` makes plain ones of them. The frame of `$frame` bytes starts with `to`, stride,
    /// stride3, and the outputs' end.
    macro_rules! finish_4x2 {
        ($fraction:literal, $frame:literal, $general:expr) => {
            concat!(
                "
            30:
            ldm.w  lr!, {{r8-r11}}
            ",
                positive!($fraction "r1" "r2" "r3" "r0"),
                "
            ldm.w  lr!, {{r8-r11}}
            ",
                positive!($fraction "r5" "r6" "r7" "r4"),
                "
            35:
            ldm.w  sp, {{r8-r11}}
            strb   r2, [r8, r9]
            strb   r3, [r8, r9, lsl #1]
            strb   r0, [r8, r10]
            strb   r1, [r8], #1
            strb   r6, [r8, r9]
            strb   r7, [r8, r9, lsl #1]
            strb   r4, [r8, r10]
            strb   r5, [r8], #1
            36:
            str.w  r8, [sp, #{to}]
            cmp    r8, r11
            bne.w  10b
            ",
                "add sp, #",
                $frame,
                "
            pop.w  {{r3-r11, pc}}
            .p2align 2
            40:
            ldm.w  lr!, {{r8-r11}}
            ",
                signed!($fraction "r1" "r2" "r3" "r0"),
                "
            ldm.w  lr!, {{r8-r11}}
            ",
                signed!($fraction "r5" "r6" "r7" "r4"),
                "
            b      35b
            .p2align 2
            50:
            ",
                $general,
                "
            ldm.w  sp, {{r8-r11}}
            push.w {{r4}}
            push.w {{r5-r7}}
            push.w {{r0}}
            push.w {{r1-r3}}
            mov    r0, sp
            mov    r1, lr
            mov    r4, lr
            mov    r2, r8
            lsl    r3, r9, #3
            add    r3, #4
            bl     {finish}
            add    sp, #32
            add.w  lr, r4, #32
            add.w  r8, r8, #2
            b      36b
            ",
            )
        };
    }
    pub(in super::super) use finish_4x2;

    /// The same of one pixel, of which `$sums` makes the channels' sums in r0 and r1; the frame has `to` and `to_end`.
    macro_rules! finish_1x2 {
        ($fraction:literal, $frame:literal, $sums:literal, $general:literal) => {
            concat!(
                "
            30:
            ",
                $sums,
                "
            ldm.w  lr!, {{r4-r11}}
            lsl.w  r0, r0, r6
            lsl.w  r1, r1, r10
            smmla  r0, r0, r4, r5
            smmla  r1, r1, r8, r9
            35:
            ldrd   r2, r3, [sp, #{to}]
            ",
                "ssat r0, #8, r0, asr #",
                $fraction,
                "\n ssat r1, #8, r1, asr #",
                $fraction,
                "
            strb   r0, [r2], #1
            strb   r1, [r2], #1
            36:
            str.w  r2, [sp, #{to}]
            cmp    r2, r3
            bne.w  10b
            ",
                "add sp, #",
                $frame,
                "
            pop.w  {{r3-r11, pc}}
            .p2align 2
            40:
            ",
                $sums,
                "
            ldm.w  lr!, {{r4-r11}}
            lsl.w  r0, r0, r6
            lsl.w  r1, r1, r10
            and.w  r7, r7, r0, asr #31
            and.w  r11, r11, r1, asr #31
            smmla  r0, r0, r4, r5
            smmla  r1, r1, r8, r9
            sub.w  r0, r0, r7
            sub.w  r1, r1, r11
            b      35b
            .p2align 2
            50:
            ",
                $sums,
                "
            ",
                $general,
                "
            ldr.w  r2, [sp, #{to}]
            push.w {{r0, r1}}
            mov    r0, sp
            mov    r1, lr
            mov    r4, lr
            mov    r5, r2
            movs   r3, #1
            bl     {finish}
            add    sp, #8
            add.w  lr, r4, #32
            add.w  r2, r5, #2
            ldr.w  r3, [sp, #{to_end}]
            b      36b
            ",
            )
        };
    }
    pub(in super::super) use finish_1x2;

    /// One pixel, whose pairs are in r9, their end in r4 as the frame wants it: the frame of eight words from r1 on, and the loop over fours of pairs, each of
    /// `$bytes` bytes of code. The other pairs follow at 22.
    macro_rules! fours_1x2 {
        ($bytes:literal, $four:expr) => {
            concat!(
                "
            and    r8, r9, #3
            lsrs   r9, r9, #2
            add.w  r4, r3, r9, lsl #4
            rsb    r11, r9, #0
            and    r11, r11, #3
            ",
                "movs r5, #",
                $bytes,
                "
            mul    r5, r5, r11
            adr.w  r11, 20f
            add    r5, r11
            orr    r5, r5, #1
            adr.w  r7, 30f
            cmp    r10, #2
            it     eq
            addeq.w r7, r7, #(40f - 30f)
            it     hi
            addhi.w r7, r7, #(50f - 30f)
            orr    r7, r7, #1
            mov    r6, r7
            adr.w  r11, 22f
            orr    r11, r11, #1
            cmp    r8, #0
            it     ne
            movne  r6, r11
            cmp    r9, #0
            it     eq
            moveq  r5, r6
            push.w {{r1-r8}}
            10:
            ldrd   r0, r1, [lr], #8
            ldrd   r12, r3, [sp, #{pixels}]
            ldr.w  pc, [sp, #{entry}]
            .p2align 2
            20:
            ",
                $four,
                $four,
                $four,
                $four,
                "
            cmp    r12, r3
            bne.w  20b
            ldr.w  pc, [sp, #{after_fours}]
            .p2align 2
            "
            )
        };
    }
    pub(in super::super) use fours_1x2;

    /// All channels of four pixels.
    ///
    /// # Safety
    /// `block` describes `4 * pairs` readable words of pixels, an even number of channels from `out` to `out_end` with as many
    /// channel pairs in the stream, and four writable output pixels.
    pub(in super::super) unsafe fn mac_4x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `block` (fn docs), and keeps to the calling convention.
        unsafe { mac_4x2_asm(block) }
    }

    // Sums: channel 0 of the pixels in r1 r2 r3 r0, channel 1 in r5 r6 r7 r4. Weights r8 r9, activations r10 r11, their pointer r12, the
    // stream's lr.
    #[unsafe(naked)]
    unsafe extern "C" fn mac_4x2_asm(block: *const ConvBlockArgs) {
        naked!(FourPixels { to, pixels, pixels_end, entry, epilogue } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldm    r0, {{r1-r9}}",
            "mov    lr, r7",
            // The first pair starts the sums; the other n - 1 enter the unrolled loop so that it ends on its last copy.
            "subs   r8, #1",
            "rsb    r7, r8, #0",
            "and    r7, r7, #7",
            "cmp    r8, #0",
            "it     eq",
            "moveq  r7, #8",
            "movs   r8, #52",
            "mul    r7, r7, r8",
            "adr.w  r10, 20f",
            "add    r7, r10",
            "orr    r7, r7, #1",
            "adr.w  r8, 30f",
            "cmp    r9, #2",
            "it     eq",
            "addeq.w r8, r8, #(40f - 30f)",
            "it     hi",
            "addhi.w r8, r8, #(50f - 30f)",
            "orr    r8, r8, #1",
            "push.w {{r1-r8}}",
            "10:",
            "ldrd   r0, r4, [lr], #8",
            "ldr.w  r12, [sp, #{pixels}]",
            "ldr.w  r8, [lr], #4",
            "ldm.w  r12!, {{r2, r3, r10, r11}}",
            "sxtb16 r9, r8, ror #8",
            "sxtb16 r8, r8",
            "smlad  r5, r2, r9, r4",
            "smlad  r1, r2, r8, r0",
            "smlad  r6, r3, r9, r4",
            "smlad  r2, r3, r8, r0",
            "smlad  r7, r10, r9, r4",
            "smlad  r3, r10, r8, r0",
            "smlad  r4, r11, r9, r4",
            "smlad  r0, r11, r8, r0",
            "ldr.w  pc, [sp, #{entry}]",
            ".p2align 2",
            "20:",
            pair_4x2!(), pair_4x2!(), pair_4x2!(), pair_4x2!(),
            pair_4x2!(), pair_4x2!(), pair_4x2!(), pair_4x2!(),
            "ldr.w  r8, [sp, #{pixels_end}]",
            "cmp    r12, r8",
            "bne.w  20b",
            "ldr.w  pc, [sp, #{epilogue}]",
            ".p2align 2",
            finish_4x2!("14", "32", "");
            finish = sym finish_general,
        )
    }

    macro_rules! pair_1x2 {
        ($x:literal, $w:literal) => {
            concat!(
                "
            sxtb16  r2, ",
                $w,
                "
            sxtb16  ",
                $w,
                ", ",
                $w,
                ", ror #8
            smlad   r0, ",
                $x,
                ", r2, r0
            smlad   r1, ",
                $x,
                ", ",
                $w,
                ", r1
        "
            )
        };
    }

    /// Four pairs of activations of 1 pixel x 2 channels: 16 MACs in 18 instructions.
    macro_rules! pairs_1x2 {
        () => {
            concat!(
                "
            ldm.w   r12!, {{r4-r7}}
            ldm.w   lr!, {{r8-r11}}
        ",
                pair_1x2!("r4", "r8"),
                pair_1x2!("r5", "r9"),
                pair_1x2!("r6", "r10"),
                pair_1x2!("r7", "r11")
            )
        };
    }

    /// All channels of one pixel.
    ///
    /// # Safety
    /// As for [`mac_4x2`], with one pixel's `pairs` words and one output pixel.
    pub(in super::super) unsafe fn mac_1x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `block`, one pixel.
        unsafe { mac_1x2_asm(block) }
    }

    // Sums r0 r1.
    #[unsafe(naked)]
    unsafe extern "C" fn mac_1x2_asm(block: *const ConvBlockArgs) {
        naked!(ConvBlockArgs { out, out_end, x, weights, pairs },
            OnePixel { to, to_end, pixels, entry, after_fours, epilogue, rest } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldr.w  lr, [r0, #{weights}]",
            "ldr.w  r1, [r0, #{out}]",
            "ldr.w  r2, [r0, #{out_end}]",
            "ldr.w  r3, [r0, #{x}]",
            "ldrd   r9, r10, [r0, #{pairs}]", // form
            fours_1x2!("72", pairs_1x2!()),
            "22:",
            "ldr.w  r4, [sp, #{rest}]",
            "23:",
            "ldr    r5, [r12], #4",
            "ldr    r8, [lr], #4",
            pair_1x2!("r5", "r8"),
            "subs   r4, #1",
            "bne    23b",
            "ldr.w  pc, [sp, #{epilogue}]",
            ".p2align 2",
            finish_1x2!("14", "32", "", "");
            finish = sym finish_general,
        )
    }
}

/// The same loops in Rust, for hosts.
#[cfg(not(kernel_isa = "dsp"))]
mod portable {
    use super::{ConvBlockArgs, finish_general};
    use crate::kernels::dsp::channel_record;
    use crate::kernels::isa::dsp::{smlad, sxtb16, sxtb16_ror8};
    use crate::ops::packed_conv2d::Form;

    /// All channels of four pixels.
    ///
    /// # Safety
    /// `block` describes `4 * pairs` readable words of pixels, an even number of channels from `out` to `out_end` with as many
    /// channel pairs in the stream, and four writable output pixels.
    pub(in super::super) unsafe fn mac_4x2(block: &ConvBlockArgs) {
        // SAFETY: this function's contract guarantees `block` for four pixels.
        unsafe { mac::<4>(block) }
    }

    /// All channels of one pixel.
    ///
    /// # Safety
    /// As for [`mac_4x2`], with one pixel's `pairs` words and one output pixel.
    pub(in super::super) unsafe fn mac_1x2(block: &ConvBlockArgs) {
        // SAFETY: this function's contract guarantees `block` for one pixel.
        unsafe { mac::<1>(block) }
    }

    /// All channels of `PIXELS` pixels.
    ///
    /// # Safety
    /// As for [`mac_4x2`], with as many pixels.
    unsafe fn mac<const PIXELS: usize>(block: &ConvBlockArgs) {
        let mut weights = block.weights;
        let mut out = block.out;
        // SAFETY: `block` has `PIXELS` pixels' words, a stream for the channels up to `out_end`, and outputs of as many pixels (fn docs).
        unsafe {
            while out != block.out_end {
                let biases = [*weights as i32, *weights.add(1) as i32];
                weights = weights.add(2);
                let mut sums = biases.map(|bias| [bias; PIXELS]);
                for pair in 0..block.pairs {
                    let w = *weights;
                    weights = weights.add(1);
                    for pixel in 0..PIXELS {
                        let x = *block.x.add(pair * PIXELS + pixel);
                        for (sums, w) in sums.iter_mut().zip([sxtb16(w), sxtb16_ror8(w)]) {
                            if let Some(sum) = sums.get_mut(pixel) {
                                *sum = smlad(x, w, *sum);
                            }
                        }
                    }
                }
                if block.form == Form::General as usize {
                    finish_general(sums.as_ptr().cast(), weights, out, PIXELS | block.stride << 3);
                } else {
                    for (channel, sums) in sums.iter().enumerate() {
                        let short = channel_record::short(weights.add(4 * channel));
                        for (pixel, &sum) in sums.iter().enumerate() {
                            *out.add(pixel * block.stride + channel) =
                                short.apply(sum, crate::kernels::dsp::requantize::SHIFT);
                        }
                    }
                }
                weights = weights.add(8);
                out = out.add(2);
            }
        }
    }
}
