//! The inner loops of [`super::conv2d_s8_w4_groups`]: those of [`super::conv2d_s8_w4_loops`], whose sums end with each group of weights that share a factor.
//!
//! Scratch keeps of each group, beside the block's pixels, what its sums start from, -8 times the sums of its activations, and where they enter the unrolled
//! loop: a group has four to sixteen pairs, by fours, so that there is no round of it to count.

use super::conv2d_s8_loops::{ConvBlockArgs, Loops};

#[cfg(kernel_isa = "dsp")]
use arm::{mac_1x2, mac_4x2};
#[cfg(not(kernel_isa = "dsp"))]
use portable::{mac_1x2, mac_4x2};

/// The weights of two channels in a byte, and a factor for each group of them.
#[derive(Debug)]
pub(super) struct W4GroupsLoops;

impl Loops for W4GroupsLoops {
    const PAIRS: usize = 4;

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
    use crate::kernels::dsp::conv2d_s8_loops::{finish_1x2, finish_4x2, finish_general, positive, signed};
    use crate::kernels::dsp::conv2d_s8_w4_loops::{even_4x2, odd_4x2, pair_4x2, pairs_1x2, shifted_4x2, word_1x2};

    frame!(
        /// The frame of four pixels: that of [`crate::kernels::dsp::conv2d_s8_w4_loops`] to the pixels, then the next group and where it enters the unrolled
        /// loop; what follows the last group; the groups, and totals of both channels, of the last pixel first.
        FourPixels {
            to, stride, stride3, to_end, pixels, pixels_end, next_group, entry, epilogue, first_group,
            first_3, first_0, first_1, first_2, second_3, second_0, second_1, second_2
        }
    );
    consecutive!(FourPixels: to, stride, stride3, to_end, pixels, pixels_end, next_group, entry, epilogue, first_group);
    consecutive!(FourPixels: first_3, first_0, first_1, first_2, second_3, second_0, second_1, second_2);
    frame!(
        /// The frame of one pixel.
        OnePixel { to, to_end, pixels, pixels_end, first_group, epilogue }
    );
    consecutive!(OnePixel: to, to_end);
    frame!(
        /// State of a group of four pixels in scratch: the starts of the sums, the last pixel's first, and the entry into the unrolled loop.
        Group { start_3, start_0, start_1, start_2, enters }
    );
    consecutive!(Group: start_3, start_0, start_1, start_2, enters);

    /// All channels of four pixels.
    ///
    /// # Safety
    /// See [`super::Loops::mac_4x2`]; `groups` has five writable words for each group.
    pub(in super::super) unsafe fn mac_4x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what the contract guarantees of `block` and `groups` (fn docs), and keeps to the calling convention.
        unsafe { mac_4x2_asm(block) }
    }

    // Sums of a group: s0 of the pixels in r1 r2 r3 r0, 16 s1 + s0 in r5 r6 r7 r4. Weights r8 r9, activations r10 r11, their pointer r12, the stream's lr.
    // A group takes 13 instructions a pair and 25 besides.
    #[unsafe(naked)]
    unsafe extern "C" fn mac_4x2_asm(block: *const ConvBlockArgs) {
        naked!(ConvBlockArgs { x, share, groups },
            FourPixels { to, pixels, pixels_end, next_group, entry, epilogue, first_group, first_3, first_1, second_3, second_1 },
            Group { start_3, start_1, enters } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "push.w {{r0, r1}}",
            "ldrd   r12, r7, [r0, #{x}]", // x_end
            "ldrd   r5, r6, [r0, #{share}]", // groups
            "lsls   r5, r5, #4",
            // -8 in both halves.
            "mvn    lr, #0x00070007",
            "4:",
            "add.w  r0, r12, r5",
            "cmp    r0, r7",
            "it     hi",
            "movhi  r0, r7",
            // Of n pairs, 16 n bytes, the first starts the sums; the others enter so that they end on the last copy.
            "sub.w  r8, r0, r12",
            "rsb.w  r8, r8, #256",
            "mov.w  r9, #13",
            "mul    r8, r8, r9",
            "adr.w  r9, 20f",
            "add.w  r8, r9, r8, lsr #2",
            "orr    r8, r8, #1",
            "str.w  r8, [r6, #{enters}]",
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
            "cmp    r12, r0",
            "bne.w  5b",
            "strd   r4, r1, [r6, #{start_3}]", // start_0
            "strd   r2, r3, [r6, #{start_1}]", // start_2
            "adds   r6, #20",
            "cmp    r12, r7",
            "bne.w  4b",
            "pop.w  {{r0, r1}}",
            "ldr.w  r10, [r0, #{groups}]",
            "ldm    r0, {{r1-r9}}",
            "mov    lr, r7",
            "adr.w  r8, 30f",
            "cmp    r9, #2",
            "it     eq",
            "addeq.w r8, r8, #(40f - 30f)",
            "it     hi",
            "addhi.w r8, r8, #(50f - 30f)",
            "orr    r8, r8, #1",
            "sub    sp, #72",
            "stm.w  sp, {{r1-r6}}",
            "strd   r8, r10, [sp, #{epilogue}]", // first_group
            "10:",
            "ldrd   r0, r4, [lr], #8",
            "mov    r1, r0",
            "mov    r2, r0",
            "mov    r3, r0",
            "mov    r5, r4",
            "mov    r6, r4",
            "mov    r7, r4",
            "ldr.w  r12, [sp, #{pixels}]",
            "ldr.w  r8, [sp, #{first_group}]",
            "11:",
            "add.w  r9, sp, #{first_3}",
            "stm.w  r9, {{r0-r7}}",
            "ldm.w  r8!, {{r0-r3, r9}}",
            "strd   r8, r9, [sp, #{next_group}]", // entry
            "ldr.w  r8, [lr]",
            "ldm.w  r12!, {{r6, r7, r10, r11}}",
            "sxtb16 r8, r8",
            "and    r9, r8, #0x000f000f",
            "smlad  r5, r6, r8, r1",
            "smlad  r1, r6, r9, r1",
            "smlad  r6, r7, r8, r2",
            "smlad  r2, r7, r9, r2",
            "smlad  r7, r10, r8, r3",
            "smlad  r3, r10, r9, r3",
            "smlad  r4, r11, r8, r0",
            "smlad  r0, r11, r9, r0",
            "ldr.w  pc, [sp, #{entry}]",
            ".p2align 2",
            "20:",
            odd_4x2!(), even_4x2!(), odd_4x2!(), even_4x2!(), odd_4x2!(),
            even_4x2!(), odd_4x2!(), even_4x2!(), odd_4x2!(), even_4x2!(),
            odd_4x2!(), even_4x2!(), odd_4x2!(), even_4x2!(), odd_4x2!(),
            "subs   r5, r5, r1",
            "subs   r6, r6, r2",
            "subs   r7, r7, r3",
            "subs   r4, r4, r0",
            "ldrb.w r9, [lr, #{second_factor}]",
            "ldrb.w r8, [lr], #4",
            "ldrd   r10, r11, [sp, #{first_3}]", // first_0
            "mla    r0, r0, r8, r10",
            "mla    r1, r1, r8, r11",
            "ldrd   r10, r11, [sp, #{first_1}]", // first_2
            "mla    r2, r2, r8, r10",
            "mla    r3, r3, r8, r11",
            "ldrd   r10, r11, [sp, #{second_3}]", // second_0
            "mla    r4, r4, r9, r10",
            "mla    r5, r5, r9, r11",
            "ldrd   r10, r11, [sp, #{second_1}]", // second_2
            "mla    r6, r6, r9, r10",
            "mla    r7, r7, r9, r11",
            "ldrd   r9, r8, [sp, #{pixels_end}]", // next_group
            "cmp    r12, r9",
            "bne.w  11b",
            "ldr.w  pc, [sp, #{epilogue}]",
            ".p2align 2",
            finish_4x2!("16", "72", shifted_4x2!());
            second_factor = const 1,
            finish = sym finish_general,
        )
    }

    /// All channels of one pixel.
    ///
    /// # Safety
    /// See [`super::Loops::mac_1x2`]; `groups` has two writable words for each group.
    pub(in super::super) unsafe fn mac_1x2(block: &ConvBlockArgs) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `block`, one pixel, and of `groups`.
        unsafe { mac_1x2_asm(block) }
    }

    // Sums of a group: s0 in r0, 16 s1 + s0 in r1; totals r2 and r11, the next group r3.
    // A group takes 18 instructions for four pairs and 11 besides.
    #[unsafe(naked)]
    unsafe extern "C" fn mac_1x2_asm(block: *const ConvBlockArgs) {
        naked!(ConvBlockArgs { out, out_end, x, weights, pairs, form, share, groups },
            OnePixel { to, to_end, pixels, pixels_end, first_group, epilogue } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldr.w  r12, [r0, #{x}]",
            "ldr.w  r9, [r0, #{pairs}]",
            "add.w  r3, r12, r9, lsl #2",
            "ldrd   r5, r6, [r0, #{share}]", // groups
            "lsls   r5, r5, #2",
            "mvn    r2, #0x00070007",
            "4:",
            "add.w  r8, r12, r5",
            "cmp    r8, r3",
            "it     hi",
            "movhi  r8, r3",
            // Of n pairs, 4 n bytes: as many fours of 72 bytes are left out as are not there.
            "sub.w  r9, r8, r12",
            "rsb.w  r9, r9, #64",
            "add.w  r9, r9, r9, lsl #3",
            "adr.w  r10, 20f",
            "add.w  r9, r10, r9, lsr #1",
            "orr    r9, r9, #1",
            "movs   r1, #0",
            "5:",
            "ldrd   r10, r11, [r12], #8",
            "smlad  r1, r10, r2, r1",
            "smlad  r1, r11, r2, r1",
            "cmp    r12, r8",
            "bne    5b",
            "strd   r1, r9, [r6], #8",
            "cmp    r12, r3",
            "bne.w  4b",
            "ldr.w  lr, [r0, #{weights}]",
            "mov    r4, r3",
            "ldr.w  r1, [r0, #{out}]",
            "ldr.w  r2, [r0, #{out_end}]",
            "ldr.w  r3, [r0, #{x}]",
            "ldr.w  r5, [r0, #{groups}]",
            "ldr.w  r10, [r0, #{form}]",
            "adr.w  r6, 30f",
            "cmp    r10, #2",
            "it     eq",
            "addeq.w r6, r6, #(40f - 30f)",
            "it     hi",
            "addhi.w r6, r6, #(50f - 30f)",
            "orr    r6, r6, #1",
            "push.w {{r1-r6}}",
            "10:",
            "ldrd   r2, r11, [lr], #8",
            "ldr.w  r12, [sp, #{pixels}]",
            "ldr.w  r3, [sp, #{first_group}]",
            "11:",
            "ldrd   r0, r4, [r3], #8",
            "mov    r1, r0",
            "bx     r4",
            ".p2align 2",
            "20:",
            pairs_1x2!(), pairs_1x2!(), pairs_1x2!(), pairs_1x2!(),
            "subs   r1, r1, r0",
            "ldrb.w r5, [lr, #{second_factor}]",
            "ldrb.w r4, [lr], #4",
            "mla    r2, r0, r4, r2",
            "mla    r11, r1, r5, r11",
            "ldr.w  r4, [sp, #{pixels_end}]",
            "cmp    r12, r4",
            "bne.w  11b",
            "ldr.w  pc, [sp, #{epilogue}]",
            ".p2align 2",
            finish_1x2!("16", "24", "mov r0, r2\n mov r1, r11", "asrs r1, r1, #4");
            second_factor = const 1,
            finish = sym finish_general,
        )
    }
}

/// The same loops in Rust, for hosts.
#[cfg(not(kernel_isa = "dsp"))]
mod portable {
    use super::ConvBlockArgs;
    use crate::kernels::dsp::conv2d_s8_w4_loops::{finish, word};
    use crate::kernels::isa::dsp::smlad;

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
            while out != block.out_end {
                let mut totals = [0, 1].map(|channel| [*weights.add(channel) as i32; PIXELS]);
                weights = weights.add(2);
                let mut from = 0;
                while from < block.pairs {
                    let to = (from + block.share).min(block.pairs);
                    let mut first = [0; PIXELS];
                    for at in from..to {
                        for (pixel, sum) in first.iter_mut().enumerate() {
                            *sum = smlad(*block.x.add(at * PIXELS + pixel), 0xfff8_fff8, *sum);
                        }
                    }
                    let mut both = first;
                    for two in (from..to).step_by(2) {
                        word(block.x.add(two * PIXELS), *weights, &mut first, &mut both);
                        weights = weights.add(1);
                    }
                    let [f0, f1] = [*weights & 0xff, *weights >> 8 & 0xff].map(|factor| factor as i32);
                    weights = weights.add(1);
                    let [total_0, total_1] = &mut totals;
                    for pixel in 0..PIXELS {
                        let second = both[pixel].wrapping_sub(first[pixel]);
                        total_0[pixel] = total_0[pixel].wrapping_add(first[pixel].wrapping_mul(f0));
                        total_1[pixel] = total_1[pixel].wrapping_add(second.wrapping_mul(f1));
                    }
                    from = to;
                }
                (weights, out) = finish(block, totals, weights, out);
            }
        }
    }
}
