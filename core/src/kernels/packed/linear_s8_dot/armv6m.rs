//! [`super::sums`] and [`super::narrow`] for ARMv6-M: 7 instructions for an input's 4 products, 12 for those of the first two of a block, and 12 an input where
//! words are made from bytes, 17 without blocks.
//!
//! r0 words, r1 index of the activation from -inputs to 0, r2 end of x, r3 an activation, r4-r7 words and the block's sums, r8 and r10 totals, r9 and r11
//! high halves, r12 2^15. Of bytes: r1 x, r2 a mask of even ones, lr what makes weights of them; the end of x is on the stack.

#![cfg(kernel_isa = "armv6m")]

macro_rules! m0 {
    (two) => {
        concat!(
            "ldm r0!, {{r4-r7}}\n",
            "ldrsb r3, [r2, r1]\n",
            "adds r1, #1\n",
            "muls r4, r3, r4\n",
            "muls r5, r3, r5\n",
            "ldrsb r3, [r2, r1]\n",
            "adds r1, #1\n",
            "muls r6, r3, r6\n",
            "muls r7, r3, r7\n",
            "adds r4, r4, r6\n",
            "adds r5, r5, r7\n"
        )
    };
    (next) => {
        concat!(
            "ldm r0!, {{r6, r7}}\n",
            "ldrsb r3, [r2, r1]\n",
            "adds r1, #1\n",
            "muls r6, r3, r6\n",
            "muls r7, r3, r7\n",
            "adds r4, r4, r6\n",
            "adds r5, r5, r7\n"
        )
    };
    (add) => {
        concat!(
            "add r4, r12\n",
            "add r5, r12\n",
            "add r8, r4\n",
            "add r10, r5\n",
            "asrs r4, r4, #16\n",
            "asrs r5, r5, #16\n",
            "add r9, r4\n",
            "add r11, r5\n"
        )
    };
    (again 32) => {
        "beq 3f\n b 2b\n 3:\n"
    };
    (again $block:tt) => {
        "bne 2b\n"
    };
    (eight) => {
        concat!(
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next)
        )
    };
    (2) => {
        concat!(m0!(two), m0!(add))
    };
    (4) => {
        concat!(m0!(two), m0!(next), m0!(next), m0!(add))
    };
    (8) => {
        concat!(
            m0!(two),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(add)
        )
    };
    (16) => {
        concat!(
            m0!(two),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(eight),
            m0!(add)
        )
    };
    (32) => {
        concat!(
            m0!(two),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(next),
            m0!(eight),
            m0!(eight),
            m0!(eight),
            m0!(add)
        )
    };
}

pub(in super::super) use m0;

frame! {
    /// Pushed words: registers, and the address of the sums.
    Saved { r8, r9, r10, r11, to }
}

frame! {
    /// The same with the end of x before it.
    SavedBehindEnd { x_end, r8, r9, r10, r11, to }
}

frame! {
    /// Words pushed by the loops without blocks.
    SavedPair { r8, r9, to }
}

/// `$shift`: 15 less the block's power of two.
macro_rules! by {
    ($($name:ident $shift:literal $block:tt)*) => { $(
        /// # Safety
        /// As for [`super::sums`].
        #[unsafe(naked)]
        pub(in super::super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            naked!(
                Saved { to } =>
                ".cpu cortex-m0",
                "push {{r3-r7, lr}}",
                "mov r4, r8",
                "mov r5, r9",
                "mov r6, r10",
                "mov r7, r11",
                "push {{r4-r7}}",
                // A block's sum starts at 2^15, which is as often taken off.
                "lsls r4, r2, #{shift}",
                "rsbs r4, r4, #0",
                "mov r8, r4",
                "mov r10, r4",
                "movs r4, #0",
                "mov r9, r4",
                "mov r11, r4",
                "movs r4, #1",
                "lsls r4, r4, #15",
                "mov r12, r4",
                "rsbs r3, r2, #0",
                "adds r2, r1, r2",
                "mov r1, r3",
                "2:",
                m0!($block),
                "cmp r1, #0",
                m0!(again $block),
                "ldr r0, [sp, #{to}]",
                "mov r4, r8",
                "mov r5, r9",
                "lsls r1, r5, #16",
                "subs r4, r4, r1",
                "mov r6, r10",
                "mov r7, r11",
                "lsls r1, r7, #16",
                "subs r6, r6, r1",
                "stm r0!, {{r4-r7}}",
                "pop {{r4-r7}}",
                "mov r8, r4",
                "mov r9, r5",
                "mov r10, r6",
                "mov r11, r7",
                "pop {{r3-r7, pc}}";
                shift = const $shift,
            )
        }
    )* };
}

by!(by_2 14 2 by_4 13 4 by_8 12 8 by_16 11 16 by_32 10 32);

macro_rules! narrow {
    (next $j:literal) => {
        concat!(
            "ldm r0!, {{r6}}\n",
            "ldrb r3, [r1, #",
            $j,
            "]\n",
            "sxtb r3, r3\n",
            "lsrs r7, r6, #8\n",
            "ands r6, r2\n",
            "ands r7, r2\n",
            "add r6, lr\n",
            "add r7, lr\n",
            "muls r6, r3, r6\n",
            "muls r7, r3, r7\n",
            "adds r4, r4, r6\n",
            "adds r5, r5, r7\n"
        )
    };
    (again 16) => {
        "beq 3f\n b 2b\n 3:\n"
    };
    (again $block:tt) => {
        "bne 2b\n"
    };
}

/// `$shift`: 15 less the block's power of two.
macro_rules! narrow_by {
    ($($name:ident $shift:literal $block:tt ($($j:literal)*))*) => { $(
        /// # Safety
        /// As for [`super::narrow`].
        #[unsafe(naked)]
        pub(in super::super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            naked!(
                SavedBehindEnd { x_end, to } =>
                ".cpu cortex-m0",
                "push {{r3-r7, lr}}",
                "mov r4, r8",
                "mov r5, r9",
                "mov r6, r10",
                "mov r7, r11",
                "adds r3, r1, r2",
                "push {{r3-r7}}",
                // A block's sum starts at 2^15, which is as often taken off.
                "lsls r4, r2, #{shift}",
                "rsbs r4, r4, #0",
                "mov r8, r4",
                "mov r10, r4",
                "movs r4, #0",
                "mov r9, r4",
                "mov r11, r4",
                "movs r4, #1",
                "lsls r4, r4, #15",
                "mov r12, r4",
                "movs r2, #255",
                "lsls r3, r2, #16",
                "orrs r2, r3",
                // 128 less in either half.
                "movs r4, #128",
                "lsls r3, r4, #16",
                "adds r4, r4, r3",
                "rsbs r4, r4, #0",
                "mov lr, r4",
                "2:",
                "mov r4, r12",
                "mov r5, r12",
                $(narrow!(next $j),)*
                "add r8, r4",
                "add r10, r5",
                "asrs r4, r4, #16",
                "asrs r5, r5, #16",
                "add r9, r4",
                "add r11, r5",
                "adds r1, #{block}",
                "ldr r3, [sp, #{x_end}]",
                "cmp r1, r3",
                narrow!(again $block),
                "ldr r0, [sp, #{to}]",
                "mov r4, r8",
                "mov r5, r9",
                "lsls r1, r5, #16",
                "subs r4, r4, r1",
                "mov r6, r10",
                "mov r7, r11",
                "lsls r1, r7, #16",
                "subs r6, r6, r1",
                "stm r0!, {{r4-r7}}",
                "pop {{r3-r7}}",
                "mov r8, r4",
                "mov r9, r5",
                "mov r10, r6",
                "mov r11, r7",
                "pop {{r3-r7, pc}}";
                shift = const $shift,
                block = const $block,
            )
        }
    )* };
}

narrow_by! {
    narrow_by_4 13 4 (0 1 2 3)
    narrow_by_8 12 8 (0 1 2 3 4 5 6 7)
    narrow_by_16 11 16 (0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
}

macro_rules! plain {
    (two $j:literal) => {
        concat!(
            "ldm r0!, {{r6}}\n",
            "ldrb r3, [r1, #", $j, "]\n",
            "sxtb r3, r3\n",
            "sxtb r7, r6\n",
            "muls r7, r3, r7\n",
            "adds r4, r4, r7\n",
            "asrs r6, r6, #8\n",
            "sxtb r7, r6\n",
            "muls r7, r3, r7\n",
            "adds r5, r5, r7\n"
        )
    };
    (four $j:literal) => {
        concat!(
            plain!(two $j),
            "asrs r6, r6, #8\n",
            "sxtb r7, r6\n",
            "muls r7, r3, r7\n",
            "add r8, r7\n",
            "asrs r6, r6, #8\n",
            "muls r6, r3, r6\n",
            "add r9, r6\n"
        )
    };
    ($($name:ident $channels:ident)*) => { $(
        /// r0 words, r1 x, r2 its end, r3 an activation, r4, r5, r8 and r9 sums, r6 a word, r7 a weight.
        ///
        /// # Safety
        /// As for [`super::narrow`].
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            naked!(
                SavedPair { to } =>
                ".cpu cortex-m0",
                "push {{r3-r7, lr}}",
                "mov r6, r8",
                "mov r7, r9",
                "push {{r6, r7}}",
                "adds r2, r1, r2",
                "movs r4, #0",
                "movs r5, #0",
                "mov r8, r4",
                "mov r9, r4",
                "2:",
                plain!($channels 0),
                plain!($channels 1),
                plain!($channels 2),
                plain!($channels 3),
                "adds r1, #4",
                "cmp r1, r2",
                "bne 2b",
                "ldr r0, [sp, #{to}]",
                "mov r6, r8",
                "mov r7, r9",
                "stm r0!, {{r4-r7}}",
                "pop {{r6, r7}}",
                "mov r8, r6",
                "mov r9, r7",
                "pop {{r3-r7, pc}}",
            )
        }
    )* };
}

plain!(plain four plain_two two);
