//! [`super::times`] on the DSP extension.

#![cfg(all(kernel_isa = "dsp", not(kernel_isa = "mve")))]

use super::args::SvdfS8Args;

consecutive!(SvdfS8Args: state, weights, newest, y, bias, mantissa, addend, right, end, less_one, rank);

frame!(
    /// The frame of any memories: what scales, the outputs' end, words of a memory but for the last, filters.
    Frame { factor, addend, shift, last, words, filters }
);
consecutive!(Frame: factor, addend, shift, last);

/// Multiplies a word of state with the next one of weights: eight instructions for four products.
macro_rules! products {
    ($state:literal, $weights:literal, $temp:literal, $more:literal) => {
        concat!(
            "ldr ",
            $weights,
            ", [r2], #4\n",
            "sxtb16 ",
            $temp,
            ", ",
            $state,
            "\n",
            "sxtb16 ",
            $more,
            ", ",
            $weights,
            "\n",
            "smlad r0, ",
            $temp,
            ", ",
            $more,
            ", r0\n",
            "sxtb16 ",
            $temp,
            ", ",
            $state,
            ", ror #8\n",
            "sxtb16 ",
            $more,
            ", ",
            $weights,
            ", ror #8\n",
            "smlad r0, ",
            $temp,
            ", ",
            $more,
            ", r0\n"
        )
    };
}

/// Whether the loops take memories of so many elements: whole words.
pub(super) fn takes(memory: usize) -> bool {
    memory.is_multiple_of(4)
}

/// Words of a memory but for the last.
pub(super) fn less_one(memory: usize) -> usize {
    (memory / 4).wrapping_sub(1)
}

/// Of memories of eight elements, a filter for each unit.
///
/// # Safety
/// `args` gives a filter, its weights and its newest value for each output, and a bias; there is one output at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn eights(args: &SvdfS8Args) {
    naked!(SvdfS8Args { state, newest, y, mantissa, right, end } =>
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        // Sum r0, state r1, weights r2, newest r3, y r10, bias r11, mantissa r12, addend lr, right shift r9; on the stack the end.
        "ldr r4, [r0, #{end}]",
        "push {{r4}}",
        "ldr r9, [r0, #{right}]",
        "ldrd r12, lr, [r0, #{mantissa}]", // addend
        "ldrd r10, r11, [r0, #{y}]", // bias
        "ldr r3, [r0, #{newest}]",
        "ldrd r1, r2, [r0, #{state}]", // weights
        "2: ldr r0, [r11], #4",
        "ldr r4, [r1]",
        "ldr r6, [r1, #{next_word}]",
        "ldrb r5, [r3], #1",
        "lsrs r4, r4, #8",
        "orr r4, r4, r6, lsl #24",
        "lsrs r6, r6, #8",
        "orr r6, r6, r5, lsl #24",
        "str r4, [r1], #4",
        "str r6, [r1], #4",
        products!("r4", "r7", "r5", "r8"),
        products!("r6", "r7", "r5", "r8"),
        "lsls r0, r0, #1",
        "smmlar r5, r0, r12, lr",
        "add r5, r5, r0, asr #31",
        "asr r5, r5, r9",
        "ssat r5, #8, r5",
        "strb r5, [r10], #1",
        "ldr r4, [sp]",
        "cmp r10, r4",
        "bne 2b",
        "pop {{r4}}",
        "pop {{r4-r11, pc}}";
        next_word = const 4,
    )
}

/// Of memories of whole words.
///
/// # Safety
/// `args` gives a memory, weights and a newest value for each filter, and a bias for each output; there is one of each at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn any(args: &SvdfS8Args) {
    naked!(SvdfS8Args { mantissa }, Frame { factor, shift, words, filters } =>
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        // Sum r0, state r1, weights r2, newest r3, words left r8, filters left r9, y r10, bias r11.
        "add r4, r0, #{mantissa}",
        "ldm r4, {{r5-r10}}",
        "push {{r5-r10}}",
        "ldm r0, {{r1-r4, r11}}",
        "mov r10, r4",
        "1: ldr r0, [r11], #4",
        "ldr r9, [sp, #{filters}]",
        "2: ldr r8, [sp, #{words}]",
        "ldr r4, [r1]",
        "cmp r8, #0",
        "beq 4f",
        "3: ldr r6, [r1, #{next_word}]",
        "lsrs r4, r4, #8",
        "orr r4, r4, r6, lsl #24",
        "str r4, [r1], #4",
        products!("r4", "r7", "r5", "r12"),
        "mov r4, r6",
        "subs r8, #1",
        "bne 3b",
        "4: ldrb r6, [r3], #1",
        "lsrs r4, r4, #8",
        "orr r4, r4, r6, lsl #24",
        "str r4, [r1], #4",
        products!("r4", "r7", "r5", "r12"),
        "subs r9, #1",
        "bne 2b",
        "ldrd r4, r5, [sp, #{factor}]", // addend
        "ldrd r6, r7, [sp, #{shift}]", // last
        "lsls r0, r0, #1",
        "smmlar r4, r0, r4, r5",
        "add r4, r4, r0, asr #31",
        "asr r4, r4, r6",
        "ssat r4, #8, r4",
        "strb r4, [r10], #1",
        "cmp r10, r7",
        "bne 1b",
        "add sp, #24",
        "pop {{r4-r11, pc}}";
        next_word = const 4,
    )
}
