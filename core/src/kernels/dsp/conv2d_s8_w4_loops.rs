//! The inner loops of [`super::conv2d_s8_w4`]: those of [`super::conv2d_s8_loops`] for bytes `16 q1 + q0 + 8`.

use super::conv2d_s8_loops::{ConvBlockArgs, Loops};

#[cfg(kernel_isa = "dsp")]
pub(super) use arm::{even_4x2, odd_4x2, pair_4x2, pairs_1x2, shifted_4x2, word_1x2};
#[cfg(kernel_isa = "dsp")]
use arm::{mac_1x2, mac_4x2};
#[cfg(not(kernel_isa = "dsp"))]
pub(super) use portable::{finish, word};
#[cfg(not(kernel_isa = "dsp"))]
use portable::{mac_1x2, mac_4x2};

/// The weights of two channels in a byte.
#[derive(Debug)]
pub(super) struct W4Loops;

impl Loops for W4Loops {
    const PAIRS: usize = 2;

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
    use crate::kernels::dsp::conv2d_s8_loops::{finish_1x2, finish_4x2, finish_general, fours_1x2, positive, signed};

    frame!(
        /// The frame of four pixels: where outputs go, as in [`ConvBlockArgs`]; the pixels; where the unrolled loop is entered, and
        /// what follows it; 8 x of each pixel.
        FourPixels { to, stride, stride3, to_end, pixels, pixels_end, entry, epilogue, eights_0, eights_1, eights_2, eights_3 }
    );
    consecutive!(FourPixels: to, stride, stride3, to_end);

    frame!(
        /// The frame of one pixel: where outputs go, the pixel, what of it is taken by fours, the pairs that are left, and 8 x.
        OnePixel { to, to_end, pixels, fours_end, entry, after_fours, epilogue, rest, eights }
    );
    consecutive!(OnePixel: to, to_end, pixels, fours_end);

    /// One pair of activations of 4 pixels x 2 channels: 16 MACs in 13 instructions. `$load` loads a word of the stream, `$wide` widens two of its bytes.
    macro_rules! pair_4x2 {
        ($load:literal $wide:literal) => {
            concat!(
                $load,
                "
            ldrd    r10, r11, [r12], #8
            ",
                $wide,
                "
            and     r9, r8, #0x000f000f
            smlad   r5, r10, r8, r5
            smlad   r1, r10, r9, r1
            smlad   r6, r11, r8, r6
            smlad   r2, r11, r9, r2
            ldrd    r10, r11, [r12], #8
            smlad   r7, r10, r8, r7
            smlad   r3, r10, r9, r3
            smlad   r4, r11, r8, r4
            smlad   r0, r11, r9, r0
            "
            )
        };
    }
    pub(in super::super) use pair_4x2;

    macro_rules! even_4x2 {
        () => {
            pair_4x2!("ldr.w r8, [lr]" "sxtb16 r8, r8")
        };
    }
    pub(in super::super) use even_4x2;

    macro_rules! odd_4x2 {
        () => {
            pair_4x2!("ldr.w r8, [lr], #4" "sxtb16 r8, r8, ror #8")
        };
    }
    pub(in super::super) use odd_4x2;

    /// From `16 s1` to `s1`.
    macro_rules! shifted_4x2 {
        () => {
            "asrs r5, r5, #4\n asrs r6, r6, #4\n asrs r7, r7, #4\n asrs r4, r4, #4"
        };
    }
    pub(in super::super) use shifted_4x2;

    /// All channels of four pixels.
    ///
    /// # Safety
    /// See [`super::Loops::mac_4x2`].
    pub(in super::super) unsafe fn mac_4x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `block` (fn docs), and keeps to the calling convention.
        unsafe { mac_4x2_asm(block) }
    }

    // Sums: s0 + 8 x of the pixels in r1 r2 r3 r0, 16 s1 + s0 + 8 x in r5 r6 r7 r4. Weights r8 r9, activations r10 r11, their pointer r12, the stream's lr.
    #[unsafe(naked)]
    unsafe extern "C" fn mac_4x2_asm(block: *const ConvBlockArgs) {
        naked!(ConvBlockArgs { x }, FourPixels { to, pixels, pixels_end, entry, epilogue, eights_0 } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldrd   r12, r7, [r0, #{x}]", // x_end
            "mov.w  lr, #0x00010001",
            "movs   r1, #0",
            "movs   r2, #0",
            "movs   r3, #0",
            "movs   r4, #0",
            "5:",
            "ldm.w  r12!, {{r8-r11}}",
            "smlad  r1, r8, lr, r1",
            "smlad  r2, r9, lr, r2",
            "smlad  r3, r10, lr, r3",
            "smlad  r4, r11, lr, r4",
            "ldm.w  r12!, {{r8-r11}}",
            "smlad  r1, r8, lr, r1",
            "smlad  r2, r9, lr, r2",
            "smlad  r3, r10, lr, r3",
            "smlad  r4, r11, lr, r4",
            "cmp    r12, r7",
            "bne.w  5b",
            "lsls   r1, r1, #3",
            "lsls   r2, r2, #3",
            "lsls   r3, r3, #3",
            "lsls   r4, r4, #3",
            "push.w {{r1-r4}}",
            "ldm    r0, {{r1-r9}}",
            "mov    lr, r7",
            // The first pair starts the sums; the others, an odd number, enter the unrolled loop so that it ends on its last copy.
            "subs   r8, #1",
            "rsb    r7, r8, #0",
            "and    r7, r7, #7",
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
            "ldr.w  r8, [lr]",
            "ldm.w  r12!, {{r2, r3, r10, r11}}",
            "sxtb16 r8, r8",
            "and    r9, r8, #0x000f000f",
            "smlad  r5, r2, r8, r4",
            "smlad  r1, r2, r9, r0",
            "smlad  r6, r3, r8, r4",
            "smlad  r2, r3, r9, r0",
            "smlad  r7, r10, r8, r4",
            "smlad  r3, r10, r9, r0",
            "smlad  r4, r11, r8, r4",
            "smlad  r0, r11, r9, r0",
            "ldr.w  pc, [sp, #{entry}]",
            ".p2align 2",
            "20:",
            even_4x2!(), odd_4x2!(), even_4x2!(), odd_4x2!(),
            even_4x2!(), odd_4x2!(), even_4x2!(), odd_4x2!(),
            "ldr.w  r8, [sp, #{pixels_end}]",
            "cmp    r12, r8",
            "bne.w  20b",
            "add.w  r8, sp, #{eights_0}",
            "ldm.w  r8, {{r8-r11}}",
            "subs   r5, r5, r1",
            "subs   r6, r6, r2",
            "subs   r7, r7, r3",
            "subs   r4, r4, r0",
            "sub.w  r1, r1, r8",
            "sub.w  r2, r2, r9",
            "sub.w  r3, r3, r10",
            "sub.w  r0, r0, r11",
            "ldr.w  pc, [sp, #{epilogue}]",
            ".p2align 2",
            finish_4x2!("16", "48", shifted_4x2!());
            finish = sym finish_general,
        )
    }

    /// A word of weights in `$w` for the pairs of activations in `$a` and `$b`: 8 MACs in 8 instructions.
    macro_rules! word_1x2 {
        ($w:literal $a:literal $b:literal) => {
            concat!(
                "
            sxtb16  r10, ",
                $w,
                "
            smlad   r1, ",
                $a,
                ", r10, r1
            and     r10, r10, #0x000f000f
            smlad   r0, ",
                $a,
                ", r10, r0
            sxtb16  r10, ",
                $w,
                ", ror #8
            smlad   r1, ",
                $b,
                ", r10, r1
            and     r10, r10, #0x000f000f
            smlad   r0, ",
                $b,
                ", r10, r0
        "
            )
        };
    }
    pub(in super::super) use word_1x2;

    /// Four pairs of activations of 1 pixel x 2 channels: 16 MACs in 18 instructions.
    macro_rules! pairs_1x2 {
        () => {
            concat!(
                "
            ldm.w   r12!, {{r4-r7}}
            ldrd    r8, r9, [lr], #8
        ",
                word_1x2!("r8" "r4" "r5"),
                word_1x2!("r9" "r6" "r7")
            )
        };
    }
    pub(in super::super) use pairs_1x2;

    /// All channels of one pixel.
    ///
    /// # Safety
    /// See [`super::Loops::mac_1x2`].
    pub(in super::super) unsafe fn mac_1x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `block`, one pixel.
        unsafe { mac_1x2_asm(block) }
    }

    // Sums: s0 + 8 x in r0, 16 s1 + s0 + 8 x in r1.
    #[unsafe(naked)]
    unsafe extern "C" fn mac_1x2_asm(block: *const ConvBlockArgs) {
        naked!(ConvBlockArgs { out, out_end, x, weights, pairs },
            OnePixel { to, to_end, pixels, entry, after_fours, epilogue, eights } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldr.w  r12, [r0, #{x}]",
            "ldr.w  r9, [r0, #{pairs}]",
            "add.w  r3, r12, r9, lsl #2",
            "movs   r1, #0",
            "mov.w  r2, #0x00010001",
            "5:",
            "ldrd   r4, r5, [r12], #8",
            "smlad  r1, r4, r2, r1",
            "smlad  r1, r5, r2, r1",
            "cmp    r12, r3",
            "bne    5b",
            "lsls   r1, r1, #3",
            "push.w {{r1, r2}}",
            "ldr.w  lr, [r0, #{weights}]",
            "ldr.w  r1, [r0, #{out}]",
            "ldr.w  r2, [r0, #{out_end}]",
            "ldr.w  r3, [r0, #{x}]",
            "ldrd   r9, r10, [r0, #{pairs}]", // form
            fours_1x2!("72", pairs_1x2!()),
            "22:",
            "ldrd   r4, r5, [r12], #8",
            "ldr.w  r8, [lr], #4",
            word_1x2!("r8" "r4" "r5"),
            "ldr.w  pc, [sp, #{epilogue}]",
            ".p2align 2",
            finish_1x2!("16", "40", "ldr.w r12, [sp, #{eights}]\n subs r1, r1, r0\n sub.w r0, r0, r12", "asrs r1, r1, #4");
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
    use crate::kernels::isa::dsp::{smlad, sxtb16, sxtb16_ror8};
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
        // SAFETY: `block` has `PIXELS` pixels' words, a stream for the channels up to `out_end`, and outputs of as many pixels (fn docs).
        unsafe {
            let mut eights = [0_i32; PIXELS];
            for pair in 0..block.pairs {
                for (pixel, sum) in eights.iter_mut().enumerate() {
                    *sum = smlad(*block.x.add(pair * PIXELS + pixel), 0x0008_0008, *sum);
                }
            }
            while out != block.out_end {
                let mut first = [*weights as i32; PIXELS];
                let mut both = [*weights.add(1) as i32; PIXELS];
                weights = weights.add(2);
                for two in 0..block.pairs / 2 {
                    word(block.x.add(2 * two * PIXELS), *weights, &mut first, &mut both);
                    weights = weights.add(1);
                }
                for ((first, both), eight) in first.iter_mut().zip(&mut both).zip(&eights) {
                    *both = both.wrapping_sub(*first);
                    *first = first.wrapping_sub(*eight);
                }
                (weights, out) = finish(block, [first, both], weights, out);
            }
        }
    }

    /// A word of weights times two pairs of activations of each pixel: `s0 + 8 x` to `first`, `16 s1 + s0 + 8 x` to `both`.
    ///
    /// # Safety
    /// `x` has two pairs for each of `PIXELS` pixels.
    pub(in super::super) unsafe fn word<const PIXELS: usize>(
        x: *const u32,
        w: u32,
        first: &mut [i32; PIXELS],
        both: &mut [i32; PIXELS],
    ) {
        for (half, w) in [sxtb16(w), sxtb16_ror8(w)].into_iter().enumerate() {
            for (pixel, (first, both)) in first.iter_mut().zip(&mut *both).enumerate() {
                // SAFETY: `half < 2` and `pixel < PIXELS`: one of the `2 * PIXELS` pairs that this function's contract guarantees.
                let x = unsafe { *x.add(half * PIXELS + pixel) };
                *both = smlad(x, w, *both);
                *first = smlad(x, w & 0x000f_000f, *first);
            }
        }
    }

    /// The outputs of sums `s0` and `16 s1` by the records at `weights`; what follows both.
    ///
    /// # Safety
    /// As for [`super::Loops::mac_4x2`], with two channels' records at `weights` and their outputs of `PIXELS` pixels at `out`.
    pub(in super::super) unsafe fn finish<const PIXELS: usize>(
        block: &ConvBlockArgs,
        mut sums: [[i32; PIXELS]; 2],
        weights: *const u32,
        out: *mut i8,
    ) -> (*const u32, *mut i8) {
        // SAFETY: this function's contract guarantees two records at `weights` and two channels of `PIXELS` outputs at `out`.
        unsafe {
            if block.form == Form::General as usize {
                let [_, seconds] = &mut sums;
                seconds.iter_mut().for_each(|sum| *sum >>= 4);
                finish_general(sums.as_ptr().cast(), weights, out, PIXELS | block.stride << 3);
            } else {
                for (channel, sums) in sums.iter().enumerate() {
                    let short = channel_record::short(weights.add(4 * channel));
                    for (pixel, &sum) in sums.iter().enumerate() {
                        *out.add(pixel * block.stride + channel) = short.apply(sum, PAIRS_SHIFT);
                    }
                }
            }
            (weights.add(8), out.add(2))
        }
    }
}
