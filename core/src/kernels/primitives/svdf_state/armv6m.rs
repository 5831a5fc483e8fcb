//! [`super::times`] for ARMv6-M: a byte at a time, which moves on by one while it is multiplied.

#![cfg(kernel_isa = "armv6m")]

use core::mem::offset_of;

use super::args::SvdfS8Args;

// The first five are loaded at once, which goes on to the sixth.
consecutive!(SvdfS8Args: state, weights, newest, y, bias, mantissa);
const _: () = assert!(offset_of!(SvdfS8Args, state) == 0);

/// Memories of any length.
pub(super) fn takes(_: usize) -> bool {
    true
}

/// Elements of a memory but for the newest.
pub(super) fn less_one(memory: usize) -> usize {
    memory.wrapping_sub(1)
}

/// Six instructions for a product: sum r0, state r1, the element behind it r6, weights r2, each from index r5 on.
macro_rules! element {
    () => {
        concat!(
            "ldrsb r4, [r6, r5]\n",
            "strb r4, [r1, r5]\n",
            "ldrsb r7, [r2, r5]\n",
            "muls r4, r7, r4\n",
            "adds r0, r0, r4\n",
            "adds r5, #1\n"
        )
    };
}

/// The same with the newest element of the memory, from r3.
macro_rules! newest {
    () => {
        concat!(
            "ldrb r4, [r3]\n",
            "sxtb r4, r4\n",
            "adds r3, #1\n",
            "strb r4, [r1, r5]\n",
            "ldrsb r7, [r2, r5]\n",
            "muls r4, r7, r4\n",
            "adds r0, r0, r4\n"
        )
    };
}

/// Saves registers: fields r11, output r8, biases r9, the end r10.
macro_rules! enter {
    () => {
        concat!(
            "push {{r4-r7, lr}}\n",
            "mov r4, r8\n",
            "mov r5, r9\n",
            "mov r6, r10\n",
            "mov r7, r11\n",
            "push {{r4-r7}}\n",
            "mov r11, r0\n",
            "ldm r0!, {{r1-r5}}\n",
            "mov r8, r4\n",
            "mov r9, r5\n",
            "ldr r4, [r0, #{end}-{mantissa}]\n",
            "mov r10, r4\n"
        )
    };
}

/// The next bias.
macro_rules! bias {
    () => {
        concat!("mov r4, r9\n", "ldm r4!, {{r0}}\n", "mov r9, r4\n")
    };
}

/// The output of a sum below 2^28, whose product with the mantissa is that of their halves; flags say whether it was the last one.
macro_rules! output {
    () => {
        concat!(
            "mov r7, r11\n",
            "sxth r4, r0\n",
            "subs r5, r0, r4\n",
            "asrs r5, r5, #16\n",
            "mov r12, r0\n",
            "ldrh r6, [r7, #{mantissa}]\n",
            "ldrh r7, [r7, #{upper_half}]\n",
            "movs r0, r4\n",
            "muls r0, r6, r0\n",
            "asrs r0, r0, #16\n",
            "muls r4, r7, r4\n",
            "adds r0, r0, r4\n",
            "muls r6, r5, r6\n",
            "adds r0, r0, r6\n",
            "muls r7, r5, r7\n",
            "lsls r7, r7, #1\n",
            "movs r4, #1\n",
            "lsls r4, r4, #14\n",
            "adds r0, r0, r4\n",
            "asrs r0, r0, #15\n",
            "adds r0, r0, r7\n",
            "mov r4, r12\n",
            "asrs r4, r4, #31\n",
            "adds r0, r0, r4\n",
            "mov r7, r11\n",
            "ldr r4, [r7, #{addend}]\n",
            "adds r0, r0, r4\n",
            "ldr r4, [r7, #{right}]\n",
            "asrs r0, r4\n",
            "sxtb r4, r0\n",
            "cmp r4, r0\n",
            "beq 7f\n",
            // 127 or -128.
            "asrs r4, r0, #31\n",
            "movs r0, #127\n",
            "eors r0, r4\n",
            "7: mov r4, r8\n",
            "strb r0, [r4]\n",
            "adds r4, #1\n",
            "mov r8, r4\n",
            "cmp r4, r10\n"
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

/// Of memories of eight elements, a filter for each unit.
///
/// # Safety
/// `args` gives a filter, its weights and its newest value for each output, and a bias; there is one output at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn eights(args: &SvdfS8Args) {
    naked!(
        SvdfS8Args { mantissa, addend, right, end } =>
        ".cpu cortex-m0",
        enter!(),
        "2:",
        bias!(),
        "adds r6, r1, #1",
        "movs r5, #0",
        element!(),
        element!(),
        element!(),
        element!(),
        element!(),
        element!(),
        element!(),
        newest!(),
        "adds r1, #8",
        "adds r2, #8",
        output!(),
        "bne 2b",
        leave!();
        upper_half = const offset_of!(SvdfS8Args, mantissa) + 2,
    )
}

/// Of any memories.
///
/// # Safety
/// `args` gives a memory, weights and a newest value for each filter, and a bias for each output; there is one of each at least.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn any(args: &SvdfS8Args) {
    naked!(
        SvdfS8Args { mantissa, addend, right, end, less_one, rank } =>
        ".cpu cortex-m0",
        enter!(),
        "1:",
        bias!(),
        // Filters left.
        "mov r7, r11",
        "ldr r4, [r7, #{rank}]",
        "mov r12, r4",
        "2: mov r7, r11",
        "ldr r5, [r7, #{less_one}]",
        "adds r1, r1, r5",
        "adds r2, r2, r5",
        "adds r6, r1, #1",
        // From the elements before the last one, with an index up to 0.
        "rsbs r5, r5, #0",
        "beq 4f",
        "3:",
        element!(),
        "bne 3b",
        "4:",
        newest!(),
        "adds r1, #1",
        "adds r2, #1",
        "mov r4, r12",
        "subs r4, #1",
        "mov r12, r4",
        "bne 2b",
        output!(),
        "bne 1b",
        leave!();
        upper_half = const offset_of!(SvdfS8Args, mantissa) + 2,
    )
}
