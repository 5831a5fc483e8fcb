//! [`super::times`] for ARMv7-M: a byte at a time, which moves on by one while it is multiplied.

#![cfg(all(kernel_isa = "armv7m", not(any(kernel_isa = "dsp", kernel_isa = "mve"))))]

use super::args::SvdfS8Args;

consecutive!(SvdfS8Args: state, weights, newest, y, bias, mantissa, addend, right, end, less_one, rank);

frame!(
    /// The frame of any memories: the outputs' end, elements of a memory but for the newest, filters.
    Frame { last, elements, filters }
);

/// Memories of any length.
pub(super) fn takes(_: usize) -> bool {
    true
}

/// Elements of a memory but for the newest.
pub(super) fn less_one(memory: usize) -> usize {
    memory.wrapping_sub(1)
}

/// Four instructions for a product: sum r0, state r1, weights r2.
macro_rules! element {
    () => {
        concat!(
            "ldrsb r4, [r1, #{next}]\n",
            "ldrsb r5, [r2], #1\n",
            "strb r4, [r1], #1\n",
            "mla r0, r4, r5, r0\n"
        )
    };
}

/// The same with the newest element of the memory, from r3.
macro_rules! newest {
    () => {
        concat!(
            "ldrsb r4, [r3], #1\n",
            "ldrsb r5, [r2], #1\n",
            "strb r4, [r1], #1\n",
            "mla r0, r4, r5, r0\n"
        )
    };
}

/// The output of a sum: mantissa r12, addend lr, right shift r9, output r10.
macro_rules! output {
    () => {
        concat!(
            "lsls r0, r0, #1\n",
            "smull r4, r5, r0, r12\n",
            "add r5, r5, r4, lsr #31\n",
            "add r5, lr\n",
            "add r5, r5, r0, asr #31\n",
            "asr r5, r5, r9\n",
            "ssat r5, #8, r5\n",
            "strb r5, [r10], #1\n"
        )
    };
}

/// Of memories of eight elements, a filter for each unit.
///
/// # Safety
/// `args` gives a filter, its weights and its newest value for each output, and a bias; there is one output at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn eights(args: &SvdfS8Args) {
    naked!(SvdfS8Args { state, newest, y, mantissa, right } =>
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        // Biases r11, the end r8.
        "ldrd r9, r8, [r0, #{right}]", // end
        "ldrd r12, lr, [r0, #{mantissa}]", // addend
        "ldrd r10, r11, [r0, #{y}]", // bias
        "ldr r3, [r0, #{newest}]",
        "ldrd r1, r2, [r0, #{state}]", // weights
        "2: ldr r0, [r11], #4",
        element!(),
        element!(),
        element!(),
        element!(),
        element!(),
        element!(),
        element!(),
        newest!(),
        output!(),
        "cmp r10, r8",
        "bne 2b",
        "pop {{r4-r11, pc}}";
        next = const 1,
    )
}

/// Of any memories.
///
/// # Safety
/// `args` gives a memory, weights and a newest value for each filter, and a bias for each output; there is one of each at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn any(args: &SvdfS8Args) {
    naked!(SvdfS8Args { state, newest, y, mantissa, right, less_one }, Frame { last, elements, filters } =>
        ".cpu cortex-m3",
        "push {{r4-r11, lr}}",
        // Biases r11, elements left r6, filters left r7.
        "ldrd r9, r4, [r0, #{right}]", // end
        "ldrd r5, r6, [r0, #{less_one}]", // rank
        "push {{r4-r6}}",
        "ldrd r12, lr, [r0, #{mantissa}]", // addend
        "ldrd r10, r11, [r0, #{y}]", // bias
        "ldr r3, [r0, #{newest}]",
        "ldrd r1, r2, [r0, #{state}]", // weights
        "1: ldr r0, [r11], #4",
        "ldr r7, [sp, #{filters}]",
        "2: ldr r6, [sp, #{elements}]",
        "lsrs r8, r6, #1",
        "beq 4f",
        "3:",
        element!(),
        element!(),
        "subs r8, #1",
        "bne 3b",
        "4: lsls r6, r6, #31",
        "beq 5f",
        element!(),
        "5:",
        newest!(),
        "subs r7, #1",
        "bne 2b",
        output!(),
        "ldr r4, [sp, #{last}]",
        "cmp r10, r4",
        "bne 1b",
        "add sp, #12",
        "pop {{r4-r11, pc}}";
        next = const 1,
    )
}
