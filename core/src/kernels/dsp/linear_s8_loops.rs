//! The inner loop of [`super::linear_s8`]: that of [`super::conv2d_s8_paired_loops`] for one pixel, with sums that are kept or channels that share a record.

/// A row of widened activations, and what follows it through all channels. The assembly reads the fields by offset_of!.
#[repr(C)]
#[derive(Debug)]
pub(super) struct LinearS8Args {
    /// Next output; not read where sums are kept.
    pub out: *mut u8,
    /// Past the last of them, or past the sums.
    pub out_end: *mut u8,
    /// The widened activations.
    pub x: *const u32,
    /// Words of weights.
    pub weights: *const u32,
    /// The biases of every two channels, or the sums, which are written then.
    pub from: *const u32,
    /// Words of activations, at least one.
    pub words: usize,
    /// `m, c, k, k - 8, d` of [`super::requantize::Short`], for all channels.
    pub record: *const u32,
    /// 0: the products are added to the sums at `from`. Else [`crate::ops::packed_conv2d::Form`], positive or signed.
    pub form: usize,
}

#[cfg(kernel_isa = "dsp")]
pub(super) use arm::multiply;
#[cfg(not(kernel_isa = "dsp"))]
pub(super) use portable::multiply;

#[cfg(kernel_isa = "dsp")]
mod arm {
    use super::LinearS8Args;
    use crate::kernels::dsp::conv2d_s8_paired_loops::{pair_1x2, pairs_1x2};

    consecutive!(LinearS8Args: out, out_end, x, weights, from, words, record, form);

    frame!(
        /// The frame of one pixel: where outputs go, the pixel, what of it is taken by fours, the pairs that are left; the
        /// record, in the place of a register that nobody needs.
        OnePixel { to, to_end, pixels, fours_end, entry, after_fours, epilogue, rest, record }
    );
    consecutive!(OnePixel: to, to_end, pixels, fours_end);

    /// All channels.
    ///
    /// # Safety
    /// `dense` describes readable activations, weights of as many words for every two channels, their biases and, but where sums are kept, a record and
    /// writable outputs, of an even number of channels and at least two.
    pub(in super::super) unsafe fn multiply(dense: &LinearS8Args) {
        // SAFETY: the assembly reads and writes what this function's contract guarantees of `dense` (fn docs), and keeps to the calling convention.
        unsafe { multiply_asm(dense) }
    }

    // Sums: s0 in r0, 256 s1 + s0 in r1. Biases or sums r2.
    #[unsafe(naked)]
    unsafe extern "C" fn multiply_asm(dense: *const LinearS8Args) {
        naked!(OnePixel { to, to_end, pixels, entry, after_fours, epilogue, rest, record } =>
            ".cpu cortex-m33",
            "push.w {{r3-r11, lr}}",
            "ldm    r0, {{r1-r8}}",
            "str    r7, [sp]", // record
            "mov    lr, r4",
            "mov    r12, r5",
            "and    r9, r6, #3",
            "lsrs   r6, r6, #2",
            "add.w  r4, r3, r6, lsl #4",
            "mov    r10, r6",
            "rsb    r11, r6, #0",
            "and    r11, r11, #3",
            "movs   r5, #56",
            "mul    r5, r5, r11",
            "adr.w  r11, 20f",
            "add    r5, r11",
            "orr    r5, r5, #1",
            "adr.w  r7, 30f",
            "cmp    r8, #1",
            "it     eq",
            "addeq.w r7, r7, #(40f - 30f)",
            "it     hi",
            "addhi.w r7, r7, #(50f - 30f)",
            "orr    r7, r7, #1",
            "mov    r6, r7",
            "adr.w  r11, 22f",
            "orr    r11, r11, #1",
            "cmp    r9, #0",
            "it     ne",
            "movne  r6, r11",
            "cmp    r10, #0",
            "it     eq",
            "moveq  r5, r6",
            "cmp    r8, #0",
            "mov    r8, r9",
            "push.w {{r1-r8}}",
            "mov    r2, r12",
            "beq    11f",
            "10:",
            "ldrd   r0, r1, [r2], #8",
            "12:",
            "ldrd   r12, r3, [sp, #{pixels}]", // fours_end
            "ldr.w  pc, [sp, #{entry}]",
            ".p2align 2",
            "20:",
            pairs_1x2!(),
            pairs_1x2!(),
            pairs_1x2!(),
            pairs_1x2!(),
            "cmp    r12, r3",
            "bne.w  20b",
            "ldr.w  pc, [sp, #{after_fours}]",
            ".p2align 2",
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
            "30:",
            "subs   r1, r1, r0",
            "ldrd   r4, r5, [r2]",
            "add    r4, r0",
            "add.w  r5, r5, r1, asr #8",
            "strd   r4, r5, [r2], #8",
            "ldr    r3, [sp, #{to_end}]",
            "cmp    r2, r3",
            "beq    60f",
            "11:",
            "movs   r0, #0",
            "movs   r1, #0",
            "b      12b",
            ".p2align 2",
            "40:",
            "ldr    r4, [sp, #{record}]",
            "subs   r1, r1, r0",
            "ldm.w  r4, {{r4-r7}}",
            "lsl.w  r0, r0, r6",
            "lsl.w  r1, r1, r7",
            "smmla  r0, r0, r4, r5",
            "smmla  r1, r1, r4, r5",
            "45:",
            "ldrd   r8, r9, [sp, #{to}]", // to_end
            "ssat   r0, #8, r0, asr #16",
            "ssat   r1, #8, r1, asr #16",
            "strb   r0, [r8], #1",
            "strb   r1, [r8], #1",
            "str.w  r8, [sp, #{to}]",
            "cmp    r8, r9",
            "bne.w  10b",
            "60:",
            "add    sp, #32",
            "pop.w  {{r3-r11, pc}}",
            ".p2align 2",
            "50:",
            "ldr    r4, [sp, #{record}]",
            "subs   r1, r1, r0",
            "ldm.w  r4, {{r4-r8}}",
            "lsl.w  r0, r0, r6",
            "lsl.w  r1, r1, r7",
            "and.w  r9, r8, r0, asr #31",
            "and.w  r10, r8, r1, asr #31",
            "smmla  r0, r0, r4, r5",
            "smmla  r1, r1, r4, r5",
            "sub.w  r0, r0, r9",
            "sub.w  r1, r1, r10",
            "b      45b",
        )
    }
}

/// The same loop in Rust, for hosts.
#[cfg(not(kernel_isa = "dsp"))]
mod portable {
    use super::LinearS8Args;
    use crate::kernels::dsp::requantize::{PAIRS_SHIFT, Short};
    use crate::kernels::isa::dsp::{smlad, sxtb16};

    /// All channels.
    ///
    /// # Safety
    /// As for the loop in assembly: `dense` describes readable activations, weights of as many words for every two channels, their biases and, but where
    /// sums are kept, a record and writable outputs, of an even number of channels and at least two.
    pub(in super::super) unsafe fn multiply(dense: &LinearS8Args) {
        let (mut from, mut out, mut weights) = (dense.from.cast_mut(), dense.out, dense.weights);
        // SAFETY: `dense` describes activations, weights, biases and outputs of an even number of channels, at least two (fn docs); the loop ends with the last
        // two.
        unsafe {
            loop {
                let kept = dense.form == 0;
                let [mut first, mut both] = if kept {
                    [0; 2]
                } else {
                    [*from as i32, *from.add(1) as i32]
                };
                for at in 0..dense.words {
                    let (x, w) = (*dense.x.add(at), *weights.add(at));
                    both = smlad(x, w, both);
                    first = smlad(x, sxtb16(w), first);
                }
                weights = weights.add(dense.words);
                let second = both.wrapping_sub(first);
                if kept {
                    for (at, sum) in [first, second >> 8].into_iter().enumerate() {
                        *from.add(at) = (*from.add(at)).wrapping_add(sum as u32);
                    }
                } else {
                    let [m, c, k, less, d] = *dense.record.cast::<[u32; 5]>();
                    for (at, (sum, k)) in [(first, k), (second, less)].into_iter().enumerate() {
                        let short = Short {
                            offset: 0,
                            k,
                            m: m as i32,
                            c: c as i32,
                            d: d as i32,
                        };
                        *out.add(at) = short.apply(sum, PAIRS_SHIFT) as u8;
                    }
                    out = out.add(2);
                }
                from = from.add(2);
                if dense.out_end == if kept { from.cast() } else { out } {
                    return;
                }
            }
        }
    }
}
