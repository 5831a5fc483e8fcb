//! [`super::s16`] on ARMv7-M and ARMv8-M without vectors.

use super::s16_args::SvdfS16Args;

consecutive!(SvdfS16Args: state, weights, newest, bias, y, end, mantissa, places, zero, memory, rank);

frame!(
    /// The frame of any memories: the outputs' end, filters.
    Frame { last, filters }
);

/// Elements that move on and are multiplied at once.
#[cfg(kernel_isa = "dsp")]
const STEP: usize = 2;
#[cfg(not(kernel_isa = "dsp"))]
const STEP: usize = 1;

/// Whether the loops take memories of so many elements.
pub(super) fn takes(memory: usize) -> bool {
    memory.is_multiple_of(STEP)
}

/// # Safety
/// `args` gives outputs and biases for each unit, a newest value for each filter, and `memory` elements of state and weights for each filter.
#[inline(always)]
pub(super) unsafe fn times(args: &SvdfS16Args) {
    let is_aligned = (args.state as usize | args.weights as usize).is_multiple_of(4);
    // SAFETY: this function's contract guarantees the arrays that `args` gives. `eights` loads double words, which need multiples of four: `is_aligned`.
    unsafe {
        if (args.rank, args.memory) == (1, 8) && is_aligned {
            eights(args);
        } else {
            any(args, (args.memory / STEP).wrapping_sub(1));
        }
    }
}

/// A step of a memory: sum r0, state r1, weights r2; also in use: r4, r5.
#[cfg(kernel_isa = "dsp")]
macro_rules! step {
    () => {
        concat!(
            "ldr r4, [r1, #{next}]\n",
            "ldr r5, [r2], #4\n",
            "str r4, [r1], #4\n",
            "smlad r0, r4, r5, r0\n"
        )
    };
}
#[cfg(not(kernel_isa = "dsp"))]
macro_rules! step {
    () => {
        concat!(
            "ldrsh r4, [r1, #{next}]\n",
            "ldrsh r5, [r2], #2\n",
            "strh r4, [r1], #2\n",
            "mla r0, r4, r5, r0\n"
        )
    };
}

/// The last step, of which the newest element is read from r3.
#[cfg(kernel_isa = "dsp")]
macro_rules! last {
    () => {
        concat!(
            "ldrh r4, [r1, #{next}]\n",
            "ldrh r5, [r3], #2\n",
            "orr r4, r4, r5, lsl #16\n",
            "ldr r5, [r2], #4\n",
            "str r4, [r1], #4\n",
            "smlad r0, r4, r5, r0\n"
        )
    };
}
#[cfg(not(kernel_isa = "dsp"))]
macro_rules! last {
    () => {
        concat!(
            "ldrsh r4, [r3], #2\n",
            "ldrsh r5, [r2], #2\n",
            "strh r4, [r1], #2\n",
            "mla r0, r4, r5, r0\n"
        )
    };
}

/// All steps but the last: lr of them. Also in use: r6.
#[cfg(kernel_isa = "dsp")]
macro_rules! steps {
    () => {
        concat!(
            "movs r6, lr\n",
            "beq 4f\n",
            "3:\n",
            step!(),
            "subs r6, #1\n",
            "bne 3b\n",
            "4:\n"
        )
    };
}
#[cfg(not(kernel_isa = "dsp"))]
macro_rules! steps {
    () => {
        concat!(
            // Elements that do not fill a group of four come first.
            "ands r6, lr, #3\n",
            "beq 4f\n",
            "3:\n",
            step!(),
            "subs r6, #1\n",
            "bne 3b\n",
            "4: lsrs r6, lr, #2\n",
            "beq 6f\n",
            "5:\n",
            step!(),
            step!(),
            step!(),
            step!(),
            "subs r6, #1\n",
            "bne 5b\n",
            "6:\n"
        )
    };
}

/// Eight elements of a memory.
#[cfg(kernel_isa = "dsp")]
macro_rules! eight {
    () => {
        concat!(
            "ldr r4, [r1, #{next}]\n",
            "ldr r5, [r1, #{next_word}]\n",
            "ldrd r6, r7, [r2], #8\n",
            "strd r4, r5, [r1], #8\n",
            "smlad r0, r4, r6, r0\n",
            "smlad r0, r5, r7, r0\n",
            "ldr r4, [r1, #{next}]\n",
            "ldrh r5, [r1, #{next_word}]\n",
            "ldrh r7, [r3], #2\n",
            "orr r5, r5, r7, lsl #16\n",
            "ldrd r6, r7, [r2], #8\n",
            "strd r4, r5, [r1], #8\n",
            "smlad r0, r4, r6, r0\n",
            "smlad r0, r5, r7, r0\n"
        )
    };
}
#[cfg(not(kernel_isa = "dsp"))]
macro_rules! eight {
    () => {
        concat!(step!(), step!(), step!(), step!(), step!(), step!(), step!(), last!())
    };
}

/// The output of a sum of any size, rounded twice: mantissa r10, places r11, zero point r12, output r9.
macro_rules! output {
    () => {
        concat!(
            "smull r4, r5, r0, r10\n",
            "adds r4, r4, #0x40000000\n",
            "adc r5, r5, #0\n",
            "lsls r5, r5, #1\n",
            "orr r5, r5, r4, lsr #31\n",
            // Ties away from zero: one less where negative.
            "add r5, r5, r5, asr #31\n",
            "asr r5, r5, r11\n",
            "adds r5, #1\n",
            "add r5, r12, r5, asr #1\n",
            "ssat r5, #8, r5\n",
            "strb r5, [r9], #1\n"
        )
    };
}

/// Of memories of eight elements at multiples of four, a filter for each unit.
///
/// # Safety
/// `args` gives a filter, its weights and its newest value for each output, and a bias; there is one output at least.
#[unsafe(naked)]
unsafe extern "C" fn eights(args: &SvdfS16Args) {
    naked!(SvdfS16Args { state, newest, y, mantissa, zero } =>
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        // Biases r8, the end lr.
        "ldrd r10, r11, [r0, #{mantissa}]", // places
        "ldr r12, [r0, #{zero}]",
        "ldrd r9, lr, [r0, #{y}]", // end
        "ldrd r3, r8, [r0, #{newest}]", // bias
        "ldrd r1, r2, [r0, #{state}]", // weights
        "2: ldr r0, [r8], #4",
        eight!(),
        output!(),
        "cmp r9, lr",
        "bne 2b",
        "pop {{r4-r11, pc}}";
        next = const 2,
        // Of the words that begin with the next element.
        #[cfg(kernel_isa = "dsp")]
        next_word = const 2 + 4,
    )
}

/// Of any memories; steps of one but for the last.
///
/// # Safety
/// `args` gives a memory, weights and a newest value for each filter, and a bias for each output; there is one of each at least.
#[unsafe(naked)]
unsafe extern "C" fn any(args: &SvdfS16Args, less_one: usize) {
    naked!(SvdfS16Args { state, newest, bias, end, mantissa, zero, rank }, Frame { last, filters } =>
        ".cpu cortex-m33",
        "push {{r4-r11, lr}}",
        // Biases r8, steps left r6, filters left r7, steps of a memory lr.
        "mov lr, r1",
        "ldr r4, [r0, #{end}]",
        "ldr r5, [r0, #{rank}]",
        "push {{r4-r5}}",
        "ldrd r10, r11, [r0, #{mantissa}]", // places
        "ldr r12, [r0, #{zero}]",
        "ldrd r8, r9, [r0, #{bias}]", // y
        "ldr r3, [r0, #{newest}]",
        "ldrd r1, r2, [r0, #{state}]", // weights
        "1: ldr r0, [r8], #4",
        "ldr r7, [sp, #{filters}]",
        "2:",
        steps!(),
        last!(),
        "subs r7, #1",
        "bne 2b",
        output!(),
        "ldr r4, [sp, #{last}]",
        "cmp r9, r4",
        "bne 1b",
        "pop {{r4-r5}}",
        "pop {{r4-r11, pc}}";
        next = const 2,
    )
}
