//! Sums of int8 tensors in their linear form (`kernels::linear_sum`): 24 instructions for four elements.
//!
//! The loop masks bytes 1 and 3 (and, shifted, 0 and 2) of a word into the high bytes of halves: an SMLAWB or SMLAWT then adds
//! `factor * byte / 2^8`.

use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Machine;
use crate::kernels::primitives::add_s8_linear::{Added, Loop};
use crate::ops::packed_sum::PackedSumS8;

/// int8, both operands of the output's shape.
pub type S8 = Added<Words>;

/// Words of four elements.
#[derive(Debug)]
pub struct Words;

impl Loop for Words {
    fn add(op: &PackedSumS8, output: Dst<'_, i8>, a: Src<'_, i8>, b: Src<'_, i8>) -> Option<()> {
        let quads = op.count as usize / 4;
        if quads > 0 {
            // SAFETY: `4 * quads <= op.count`, the elements with which all three were taken.
            unsafe { quads_of(output.as_mut_ptr(), a.as_ptr(), b.as_ptr(), quads, op) };
        }
        for at in 4 * quads..op.count as usize {
            output.set(at, op.element(a.get(at)?, b.get(at)?))?;
        }
        Some(())
    }

    /// The loop's.
    #[cfg(any(test, packing))]
    fn bound(op: &PackedSumS8, _: &Machine) -> u64 {
        u64::from(op.count) * 22 / 4
    }
}

/// # Safety
/// All three have `4 * quads` elements; `quads > 0`.
#[cfg(not(kernel_isa = "dsp"))]
unsafe fn quads_of(output: *mut i8, a: *const i8, b: *const i8, quads: usize, op: &PackedSumS8) {
    for at in 0..4 * quads {
        // SAFETY: `at < 4 * quads`, the length of all three (fn docs).
        unsafe { *output.add(at) = op.element(*a.add(at), *b.add(at)) };
    }
}

/// # Safety
/// All three have `4 * quads` elements; `quads > 0`.
#[cfg(kernel_isa = "dsp")]
unsafe fn quads_of(output: *mut i8, a: *const i8, b: *const i8, quads: usize, op: &PackedSumS8) {
    let [fa, fb] = op.factors;
    let constants = [fa, fb, op.offset, 0xFF00_FF00_u32 as i32];
    // SAFETY: the assembly reads and writes `4 * quads` elements, the length of all three (fn docs); `quads > 0`.
    unsafe { sum_asm(output, a, b, quads, &constants) }
}

/// In assembly: from Rust the same sums take 33 instructions for four elements, byte by byte.
#[cfg(kernel_isa = "dsp")]
#[unsafe(naked)]
unsafe extern "C" fn sum_asm(output: *mut i8, a: *const i8, b: *const i8, quads: usize, constants: &[i32; 4]) {
    naked!(
        ".cpu cortex-m33",
        "push.w  {{r4-r11, lr}}",
        "ldr.w   r4, [sp, #{constants}]",
        "ldm.w   r4, {{r4-r7}}",
        "10:",
        "ldr.w   r8, [r1], #4",
        "ldr.w   r9, [r2], #4",
        "and.w   r10, r7, r8, lsl #8",
        "and.w   r11, r7, r9, lsl #8",
        "smlawb  r12, r4, r10, r6",
        "smlawt  lr, r4, r10, r6",
        "smlawb  r12, r5, r11, r12",
        "smlawt  lr, r5, r11, lr",
        "and.w   r8, r7, r8",
        "and.w   r9, r7, r9",
        "smlawb  r10, r4, r8, r6",
        "smlawt  r11, r4, r8, r6",
        "smlawb  r10, r5, r9, r10",
        "smlawt  r11, r5, r9, r11",
        "ssat    r12, #8, r12, asr #20",
        "ssat    r10, #8, r10, asr #20",
        "ssat    lr, #8, lr, asr #20",
        "ssat    r11, #8, r11, asr #20",
        "bfi     r12, r10, #8, #8",
        "bfi     r12, lr, #16, #8",
        "bfi     r12, r11, #24, #8",
        "subs    r3, #1",
        "str.w   r12, [r0], #4",
        "bne     10b",
        "pop.w   {{r4-r11, pc}}";
        // Behind nine registers.
        constants = const 9 * 4,
    )
}
