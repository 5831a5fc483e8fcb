//! [`super::s16`] on ARMv6-M, in three passes over the sums of a block: newest values take their places, then the sums over memories, which become outputs.

use super::s16_args::{Scale, SvdfS16Args};

/// Whether the loops take memories of so many elements.
pub(super) fn takes(_: usize) -> bool {
    true
}

/// # Safety
/// `args` gives outputs and biases for each unit, a newest value for each filter, and `memory` elements of state and weights for each filter.
#[inline(always)]
pub(super) unsafe fn times(args: &SvdfS16Args, scale: &Scale) {
    // SAFETY: this function's contract guarantees the arrays that `args` gives; `eights` runs only for rank 1 and memory 8.
    unsafe {
        halves(args, scale);
        if (args.rank, args.memory) == (1, 8) {
            eights(args);
        } else {
            any(args);
        }
        outputs(args);
    }
}

/// Saves registers.
macro_rules! enter {
    () => {
        concat!(
            "push {{r4-r7, lr}}\n",
            "mov r4, r8\n",
            "mov r5, r9\n",
            "mov r6, r10\n",
            "mov r7, r11\n",
            "push {{r4-r7}}\n"
        )
    };
}

/// Gives registers back, and returns.
macro_rules! leave {
    () => {
        concat!(
            "pop {{r4-r7}}\n",
            "mov r8, r4\n",
            "mov r9, r5\n",
            "mov r10, r6\n",
            "mov r11, r7\n",
            "pop {{r4-r7, pc}}\n"
        )
    };
}

/// The halves of the mantissa in r3, to r8 and r9, and 2^14 to r12. Also in use: r4.
macro_rules! mantissa {
    () => {
        concat!(
            "uxth r4, r3\n",
            "mov r8, r4\n",
            "lsrs r3, r3, #16\n",
            "mov r9, r3\n",
            "movs r3, #1\n",
            "lsls r3, r3, #14\n",
            "mov r12, r3\n"
        )
    };
}

/// Sums below 2^30, scaled and saturated to 16 bits, in their places.
///
/// # Safety
/// `args.newest` has a sum for each filter, of which there is one at least.
#[unsafe(naked)]
unsafe extern "C" fn halves(args: &SvdfS16Args, scale: &Scale) {
    naked!(
        SvdfS16Args { newest, y, end, rank }, Scale { mantissa, left, right, half, sign } =>
        ".cpu cortex-m0",
        enter!(),
        // Sums r0, their end r11; left r2, right r7, half r10, sign lr.
        "ldr r3, [r1, #{mantissa}]",
        mantissa!(),
        "ldr r3, [r1, #{half}]",
        "mov r10, r3",
        "ldr r3, [r1, #{sign}]",
        "mov lr, r3",
        "ldr r2, [r1, #{left}]",
        "ldr r7, [r1, #{right}]",
        "ldr r3, [r0, #{y}]",
        "ldr r4, [r0, #{end}]",
        "subs r4, r4, r3",
        "ldr r3, [r0, #{rank}]",
        "muls r4, r3, r4",
        "lsls r4, r4, #2",
        "ldr r0, [r0, #{newest}]",
        "adds r4, r4, r0",
        "mov r11, r4",
        "2: ldr r1, [r0]",
        "lsls r1, r2",
        "sxth r3, r1",
        "subs r4, r1, r3",
        "asrs r4, r4, #16",
        "mov r5, r8",
        "muls r5, r3, r5",
        "asrs r5, r5, #16",
        "mov r6, r9",
        "muls r3, r6, r3",
        "adds r5, r5, r3",
        "muls r6, r4, r6",
        "lsls r6, r6, #1",
        "mov r3, r8",
        "muls r4, r3, r4",
        "adds r5, r5, r4",
        "add r5, r12",
        "asrs r5, r5, #15",
        "adds r5, r5, r6",
        "asrs r1, r1, #31",
        "mov r3, lr",
        "ands r1, r3",
        "adds r5, r5, r1",
        "add r5, r10",
        "asrs r5, r7",
        "sxth r3, r5",
        "cmp r3, r5",
        "beq 3f",
        // 32767 or -32768.
        "asrs r5, r5, #31",
        "movs r3, #1",
        "lsls r3, r3, #15",
        "subs r3, #1",
        "eors r5, r3",
        "3: stm r0!, {{r5}}",
        "cmp r0, r11",
        "bne 2b",
        leave!(),
    )
}

/// Elements of a memory from state r1 and weights r2 on: each store has its offset, each load one of the registers that have 2, 4, 6 and 8. Sum r8.
macro_rules! element {
    ($($store:literal $load:literal)*) => {
        concat!($(
            "ldrsh r4, [r1, ", $load, "]\n",
            "ldrsh r7, [r2, ", $load, "]\n",
            "strh r4, [r1, #", $store, "]\n",
            "muls r4, r7, r4\n",
            "add r8, r4\n"
        ),*)
    };
}

/// Memories of eight elements, a filter for each unit.
///
/// # Safety
/// `args` gives a filter, its weights and its newest value for each output, and a bias; there is one output at least.
#[unsafe(naked)]
unsafe extern "C" fn eights(args: &SvdfS16Args) {
    naked!(
        SvdfS16Args { state, weights, newest, bias, y, end } =>
        ".cpu cortex-m0",
        enter!(),
        // Weights are an element behind: they go by the index of the state's next one. Sums r9, biases r10, the sums' end r11.
        "ldr r3, [r0, #{y}]",
        "ldr r4, [r0, #{end}]",
        "subs r4, r4, r3",
        "lsls r4, r4, #2",
        "ldr r3, [r0, #{newest}]",
        "mov r9, r3",
        "adds r4, r4, r3",
        "mov r11, r4",
        "ldr r3, [r0, #{bias}]",
        "mov r10, r3",
        "ldr r1, [r0, #{state}]",
        "ldr r2, [r0, #{weights}]",
        "subs r2, #2",
        "movs r0, #2",
        "movs r3, #4",
        "movs r5, #6",
        "movs r6, #8",
        "2: mov r4, r10",
        "ldm r4!, {{r7}}",
        "mov r10, r4",
        "mov r8, r7",
        element!("0" "r0" "2" "r3" "4" "r5" "6" "r6"),
        "adds r1, #8",
        "adds r2, #8",
        element!("0" "r0" "2" "r3" "4" "r5"),
        "mov r4, r9",
        "ldr r7, [r4]",
        "strh r7, [r1, #{fourth}]",
        "ldrsh r4, [r2, r6]",
        "muls r7, r4, r7",
        "add r7, r8",
        "mov r4, r9",
        "stm r4!, {{r7}}",
        "mov r9, r4",
        "adds r1, #8",
        "adds r2, #8",
        "cmp r4, r11",
        "bne 2b",
        leave!();
        fourth = const 3 * size_of::<i16>(),
    )
}

/// Any memories.
///
/// # Safety
/// `args` gives a memory, weights and a newest value for each filter, and a bias for each output; there is one of each at least.
#[unsafe(naked)]
unsafe extern "C" fn any(args: &SvdfS16Args) {
    naked!(
        SvdfS16Args { state, weights, newest, bias, y, end, memory, rank } =>
        ".cpu cortex-m0",
        enter!(),
        // State r1, weights r2, newest r3, which the sums r8 never pass, up to their end r11; filters left r9, biases r10, rank r12, bytes before the last
        // element lr.
        "ldr r3, [r0, #{y}]",
        "ldr r4, [r0, #{end}]",
        "subs r4, r4, r3",
        "lsls r4, r4, #2",
        "ldr r3, [r0, #{newest}]",
        "mov r8, r3",
        "adds r4, r4, r3",
        "mov r11, r4",
        "ldr r4, [r0, #{bias}]",
        "mov r10, r4",
        "ldr r4, [r0, #{rank}]",
        "mov r12, r4",
        "ldr r4, [r0, #{memory}]",
        "subs r4, #1",
        "lsls r4, r4, #1",
        "mov lr, r4",
        "ldr r1, [r0, #{state}]",
        "ldr r2, [r0, #{weights}]",
        "1: mov r4, r10",
        "ldm r4!, {{r0}}",
        "mov r10, r4",
        "mov r9, r12",
        // From the elements before the last one, with an index up to 0.
        "2: mov r5, lr",
        "adds r1, r1, r5",
        "adds r2, r2, r5",
        "adds r6, r1, #2",
        "rsbs r5, r5, #0",
        "beq 4f",
        "3: ldrsh r4, [r6, r5]",
        "ldrsh r7, [r2, r5]",
        "strh r4, [r1, r5]",
        "muls r4, r7, r4",
        "adds r0, r0, r4",
        "adds r5, #2",
        "bne 3b",
        "4: ldm r3!, {{r4}}",
        "ldrsh r7, [r2, r5]",
        "strh r4, [r1]",
        "muls r4, r7, r4",
        "adds r0, r0, r4",
        "adds r1, #2",
        "adds r2, #2",
        "mov r4, r9",
        "subs r4, #1",
        "mov r9, r4",
        "bne 2b",
        "mov r4, r8",
        "stm r4!, {{r0}}",
        "mov r8, r4",
        "cmp r4, r11",
        "bne 1b",
        leave!(),
    )
}

/// Outputs of sums of any size, rounded twice.
///
/// # Safety
/// `args.newest` has a sum for each output, of which there is one at least.
#[unsafe(naked)]
unsafe extern "C" fn outputs(args: &SvdfS16Args) {
    naked!(
        SvdfS16Args { newest, y, end, mantissa, places, zero } =>
        ".cpu cortex-m0",
        enter!(),
        // Sums r0, output r2, its end r11; places r7, zero point r10.
        "ldr r3, [r0, #{mantissa}]",
        mantissa!(),
        "ldr r7, [r0, #{places}]",
        "ldr r3, [r0, #{zero}]",
        "mov r10, r3",
        "ldr r2, [r0, #{y}]",
        "ldr r3, [r0, #{end}]",
        "mov r11, r3",
        "ldr r0, [r0, #{newest}]",
        "2: ldm r0!, {{r1}}",
        "uxth r3, r1",
        "asrs r4, r1, #16",
        "mov r5, r8",
        "muls r5, r3, r5",
        "lsrs r5, r5, #16",
        "mov r6, r9",
        "muls r3, r6, r3",
        "adds r5, r5, r3",
        "muls r6, r4, r6",
        "lsrs r3, r5, #16",
        "adds r6, r6, r3",
        "uxth r5, r5",
        "mov r3, r8",
        "muls r4, r3, r4",
        "adds r4, r4, r5",
        "add r4, r12",
        "asrs r4, r4, #15",
        "lsls r6, r6, #1",
        "adds r4, r4, r6",
        // Ties away from zero: one less where negative.
        "asrs r3, r4, #31",
        "adds r4, r4, r3",
        "asrs r4, r7",
        "adds r4, #1",
        "asrs r4, r4, #1",
        "add r4, r10",
        "sxtb r3, r4",
        "cmp r3, r4",
        "beq 3f",
        // 127 or -128.
        "asrs r4, r4, #31",
        "movs r3, #127",
        "eors r4, r3",
        "3: strb r4, [r2]",
        "adds r2, #1",
        "cmp r2, r11",
        "bne 2b",
        leave!(),
    )
}
