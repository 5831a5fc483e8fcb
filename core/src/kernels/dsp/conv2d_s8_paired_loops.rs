//! The inner loops of [`super::conv2d_s8_paired`]: those of [`super::conv2d_s8_loops`] for words `256 w1 + w0`.

use super::conv2d_s8_loops::{ConvBlockArgs, Loops};

#[cfg(kernel_isa = "dsp")]
use arm::{mac_1x2, mac_4x2};
#[cfg(kernel_isa = "dsp")]
pub(super) use arm::{pair_1x2, pairs_1x2};
#[cfg(not(kernel_isa = "dsp"))]
use portable::{mac_1x2, mac_4x2};

/// The weights of two channels in a half.
#[derive(Debug)]
pub(super) struct Paired;

impl Loops for Paired {
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

#[cfg(kernel_isa = "dsp")]
mod arm {
    use super::ConvBlockArgs;
    use crate::kernels::dsp::conv2d_s8_loops::{finish_1x2, finish_general, fours_1x2, positive, signed};

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

    /// One pair of activations of 4 pixels x 2 channels, 16 MACs, with the word of weights in `$w`, which is lost: 9 instructions. `$x`: what loads the
    /// activations into r8 to r11.
    macro_rules! pair_4x2 {
        ($w:literal) => {
            concat!(
                "
            smlad   r5, r8, ",
                $w,
                ", r5
            smlad   r6, r9, ",
                $w,
                ", r6
            smlad   r7, r10, ",
                $w,
                ", r7
            smlad   r4, r11, ",
                $w,
                ", r4
            sxtb16  ",
                $w,
                ", ",
                $w,
                "
            smlad   r1, r8, ",
                $w,
                ", r1
            smlad   r2, r9, ",
                $w,
                ", r2
            smlad   r3, r10, ",
                $w,
                ", r3
            smlad   r0, r11, ",
                $w,
                ", r0
            "
            )
        };
    }

    /// The weights' words are in registers of the FPU, so that the stream's pointer needs none while they are taken.
    #[cfg(kernel_isa = "fpu")]
    macro_rules! words {
        ($($label:literal $s:literal)*) => { concat!($("
        ", $label, ":
            vmov    lr, ", $s, "
            ldm.w   r12!, {{r8-r11}}
        ", pair_4x2!("lr")),*) };
    }

    /// The words that are left over beside whole sixteens, in the last registers: 12 bytes each.
    #[cfg(kernel_isa = "fpu")]
    macro_rules! entries {
        ($($label:literal $s:literal)*) => { concat!($("
            vldmia  lr!, {{", $s, "-s15}}
            vmov    s16, lr
            b.w     ", $label, "b
        "),*) };
    }

    /// All channels of four pixels.
    ///
    /// # Safety
    /// See [`super::Loops::mac_4x2`].
    pub(in super::super) unsafe fn mac_4x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `block` (fn docs), and keeps to the calling convention.
        unsafe { mac_4x2_asm(block) }
    }

    // Sums: s0 of the pixels in r1 r2 r3 r0, 256 s1 + s0 in r5 r6 r7 r4. Activations r8 to r11, their pointer r12, a word of weights or their
    // pointer lr. s16: that pointer; s17: the activations' end. Only without FPU the frame's last two words are read.
    #[cfg(kernel_isa = "fpu")]
    macro_rules! enter {
        () => {
            "
            vpush   {{s16, s17}}
            vmov    s17, r6
            subs    r8, #1
            beq     1f
            and     r7, r8, #15
            add.w   r7, r7, r7, lsl #1
            adr.w   r10, 60f
            add.w   r7, r10, r7, lsl #2
            orr     r7, r7, #1
        1:
            "
        };
    }

    #[cfg(kernel_isa = "fpu")]
    macro_rules! fours {
        () => {
            concat!(
                "
            .p2align 2
        20:
            vldmia  lr!, {{s0-s15}}
            vmov    s16, lr
            ",
                words!("70" "s0" "71" "s1" "72" "s2" "73" "s3" "74" "s4" "75" "s5" "76" "s6" "77" "s7"),
                words!("78" "s8" "79" "s9" "80" "s10" "81" "s11" "82" "s12" "83" "s13" "84" "s14" "85" "s15"),
                "
            vmov    lr, r8, s16, s17
            cmp     r12, r8
            bne.w   20b
        29:
            vmrs    APSR_nzcv, fpscr
            sub.w   r5, r5, r1
            sub.w   r6, r6, r2
            sub.w   r7, r7, r3
            sub.w   r4, r4, r0
            bpl.w   40f
            "
            )
        };
    }

    /// Entries of the loop by the number of words left over beside groups of sixteen.
    #[cfg(kernel_isa = "fpu")]
    macro_rules! entrances {
        () => {
            concat!(
                "
            .p2align 2
        60:
            b.w     20b
            nop.w
            nop.w
            ",
                entries!("85" "s15" "84" "s14" "83" "s13" "82" "s12" "81" "s11" "80" "s10" "79" "s9" "78" "s8"),
                entries!("77" "s7" "76" "s6" "75" "s5" "74" "s4" "73" "s3" "72" "s2" "71" "s1")
            )
        };
    }

    /// The FPU's flags say how sums are requantised, so that the short way needs no jump through memory: negative without signs, zero with them, else general.
    #[cfg(kernel_isa = "fpu")]
    macro_rules! form {
        () => {
            "
            sub.w   r11, r9, #2
            lsl.w   r11, r11, #24
            vmov    s12, r11
            vcmp.f32 s12, #0
            "
        };
    }

    #[cfg(kernel_isa = "fpu")]
    macro_rules! general {
        () => {
            "bgt.w   50f"
        };
    }

    /// After a call of Rust.
    #[cfg(kernel_isa = "fpu")]
    macro_rules! restore {
        () => {
            "
            vmov.f32 s12, #1.0
            vcmp.f32 s12, #0
            "
        };
    }

    #[cfg(kernel_isa = "fpu")]
    macro_rules! leave {
        () => {
            "vpop    {{s16, s17}}"
        };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! leave {
        () => {
            ""
        };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! enter {
        () => {
            "
            subs    r8, #1
            beq     1f
            rsb     r7, r8, #0
            and     r7, r7, #7
            movs    r10, #48
            mul     r7, r7, r10
            adr.w   r10, 20f
            add     r7, r10
            orr     r7, r7, #1
        1:
            "
        };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! words {
        ($($word:literal)*) => { concat!($("
            ldr.w   r8, [lr], #4
            ldrd    r10, r11, [r12], #8
            sxtb16  r9, r8
            smlad   r5, r10, r8, r5
            smlad   r1, r10, r9, r1
            smlad   r6, r11, r8, r6
            smlad   r2, r11, r9, r2
            ldrd    r10, r11, [r12], #8
            smlad   r7, r10, r8, r7
            smlad   r3, r10, r9, r3
            smlad   r4, r11, r8, r4
            smlad   r0, r11, r9, r0
        ", $word),*) };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! fours {
        () => {
            concat!(
                "
            .p2align 2
        20:
            ",
                words!("" "" "" "" "" "" "" ""),
                "
            ldr.w   r8, [sp, #{pixels_end}]
            cmp     r12, r8
            bne.w   20b
        29:
            subs    r5, r5, r1
            subs    r6, r6, r2
            subs    r7, r7, r3
            subs    r4, r4, r0
            ldr.w   pc, [sp, #{epilogue}]
            .p2align 2
            "
            )
        };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! entrances {
        () => {
            ""
        };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! form {
        () => {
            "
            adr.w   r11, 30f
            cmp     r9, #2
            it      eq
            addeq.w r11, r11, #(40f - 30f)
            it      hi
            addhi.w r11, r11, #(50f - 30f)
            orr     r11, r11, #1
            "
        };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! general {
        () => {
            ""
        };
    }

    #[cfg(not(kernel_isa = "fpu"))]
    macro_rules! restore {
        () => {
            ""
        };
    }

    #[unsafe(naked)]
    unsafe extern "C" fn mac_4x2_asm(block: *const ConvBlockArgs) {
        naked!(FourPixels { to, pixels, entry } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldm    r0, {{r1-r9}}",
            "mov    lr, r7",
            form!(),
            // The first word starts the sums; the others enter the unrolled loop so that it ends on its last copy. Without others, straight on.
            "adr.w  r7, 29f",
            "orr    r7, r7, #1",
            enter!(),
            "mov    r8, r11",
            "push.w {{r1-r8}}",
            "10:",
            "ldrd   r0, r4, [lr], #8",
            "ldr.w  r12, [sp, #{pixels}]",
            "ldr.w  r8, [lr], #4",
            "ldm.w  r12!, {{r2, r3, r10, r11}}",
            "smlad  r5, r2, r8, r4",
            "smlad  r6, r3, r8, r4",
            "smlad  r7, r10, r8, r4",
            "smlad  r4, r11, r8, r4",
            "sxtb16 r8, r8",
            "smlad  r1, r2, r8, r0",
            "smlad  r2, r3, r8, r0",
            "smlad  r3, r10, r8, r0",
            "smlad  r0, r11, r8, r0",
            "ldr.w  pc, [sp, #{entry}]",
            fours!(),
            "30:",
            "ldm.w  lr!, {{r8-r11}}",
            positive!("16" "r1" "r2" "r3" "r0"),
            "ldm.w  lr!, {{r8-r11}}",
            positive!("16" "r5" "r6" "r7" "r4"),
            "35:",
            "ldm.w  sp, {{r8-r11}}",
            // Both channels of a pixel at once: a store with its offset in a register takes two cycles.
            "bfi    r2, r6, #8, #8",
            "bfi    r3, r7, #8, #8",
            "bfi    r0, r4, #8, #8",
            "bfi    r1, r5, #8, #8",
            "strh   r2, [r8, r9]",
            "strh   r3, [r8, r9, lsl #1]",
            "strh   r0, [r8, r10]",
            "strh   r1, [r8], #2",
            "36:",
            "str.w  r8, [sp, #{to}]",
            "cmp    r8, r11",
            "bne.w  10b",
            "add    sp, #32",
            leave!(),
            "pop.w  {{r3-r11, pc}}",
            ".p2align 2",
            "40:",
            general!(),
            "ldm.w  lr!, {{r8-r11}}",
            signed!("16" "r1" "r2" "r3" "r0"),
            "ldm.w  lr!, {{r8-r11}}",
            signed!("16" "r5" "r6" "r7" "r4"),
            "b      35b",
            ".p2align 2",
            "50:",
            "asrs   r5, r5, #8",
            "asrs   r6, r6, #8",
            "asrs   r7, r7, #8",
            "asrs   r4, r4, #8",
            "ldm.w  sp, {{r8-r11}}",
            // In the order of the pixels.
            "push.w {{r4}}",
            "push.w {{r5-r7}}",
            "push.w {{r0}}",
            "push.w {{r1-r3}}",
            "mov    r0, sp",
            "mov    r1, lr",
            "mov    r4, lr",
            "mov    r2, r8",
            "lsl    r3, r9, #3",
            "add    r3, #4",
            "bl     {finish}",
            "add    sp, #32",
            restore!(),
            "add.w  lr, r4, #32",
            "add.w  r8, r8, #2",
            "b      36b",
            entrances!();
            #[cfg(not(kernel_isa = "fpu"))]
            pixels_end = const core::mem::offset_of!(FourPixels, pixels_end),
            #[cfg(not(kernel_isa = "fpu"))]
            epilogue = const core::mem::offset_of!(FourPixels, epilogue),
            finish = sym finish_general,
        )
    }

    macro_rules! pair_1x2 {
        ($x:literal, $w:literal) => {
            concat!(
                "
            smlad   r1, ",
                $x,
                ", ",
                $w,
                ", r1
            sxtb16  ",
                $w,
                ", ",
                $w,
                "
            smlad   r0, ",
                $x,
                ", ",
                $w,
                ", r0
        "
            )
        };
    }

    /// Four pairs of activations of 1 pixel x 2 channels: 16 MACs in 14 instructions.
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

    pub(in super::super) use pair_1x2;
    pub(in super::super) use pairs_1x2;

    /// All channels of one pixel.
    ///
    /// # Safety
    /// See [`super::Loops::mac_1x2`].
    pub(in super::super) unsafe fn mac_1x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `block`, one pixel.
        unsafe { mac_1x2_asm(block) }
    }

    // Sums: s0 in r0, 256 s1 + s0 in r1.
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
            fours_1x2!("56", pairs_1x2!()),
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
            finish_1x2!("16", "32", "subs r1, r1, r0", "asrs r1, r1, #8");
            finish = sym finish_general,
        )
    }
}

/// The same loops in Rust, for hosts.
#[cfg(not(kernel_isa = "dsp"))]
mod portable {
    use super::ConvBlockArgs;
    use crate::kernels::dsp::channel_record;
    use crate::kernels::dsp::conv2d_s8_loops::finish_general;
    use crate::kernels::dsp::requantize::PAIRS_SHIFT;
    use crate::kernels::isa::dsp::{smlad, sxtb16};
    use crate::ops::packed_conv2d::Form;

    /// All channels of four pixels.
    ///
    /// # Safety
    /// See [`super::Loops::mac_4x2`].
    pub(in super::super) unsafe fn mac_4x2(block: &ConvBlockArgs) {
        // SAFETY: this function's contract guarantees `block` for four pixels.
        unsafe { mac::<4>(block) }
    }

    /// All channels of one pixel.
    ///
    /// # Safety
    /// See [`super::Loops::mac_1x2`].
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
        let general = block.form == Form::General as usize;
        // SAFETY: `block` has `PIXELS` pixels' words, a stream for the channels up to `out_end`, and outputs of as many pixels (fn docs).
        unsafe {
            while out != block.out_end {
                let mut first = [*weights as i32; PIXELS];
                let mut both = [*weights.add(1) as i32; PIXELS];
                weights = weights.add(2);
                for pair in 0..block.pairs {
                    let w = *weights;
                    weights = weights.add(1);
                    for (pixel, (first, both)) in first.iter_mut().zip(&mut both).enumerate() {
                        let x = *block.x.add(pair * PIXELS + pixel);
                        *both = smlad(x, w, *both);
                        *first = smlad(x, sxtb16(w), *first);
                    }
                }
                // 256 times the second channel's sums.
                for (first, both) in first.iter().zip(&mut both) {
                    *both = both.wrapping_sub(*first) >> if general { 8 } else { 0 };
                }
                let sums = [first, both];
                if general {
                    finish_general(sums.as_ptr().cast(), weights, out, PIXELS | block.stride << 3);
                } else {
                    for (channel, sums) in sums.iter().enumerate() {
                        let short = channel_record::short(weights.add(4 * channel));
                        for (pixel, &sum) in sums.iter().enumerate() {
                            *out.add(pixel * block.stride + channel) = short.apply(sum, PAIRS_SHIFT);
                        }
                    }
                }
                weights = weights.add(8);
                out = out.add(2);
            }
        }
    }
}
