//! [`super::sums`] for ARMv7-M: two inputs at a time, 7 instructions for their 8 products.
//!
//! r0 words, r1 x, r2 2^15, r3 an activation, r4-r7 words, r8 and r9 the block's sums, r10 and r11 totals, r12 and lr high halves. On the stack: the sums'
//! place, the end of x.

macro_rules! m3 {
    (two $a:literal $b:literal) => {
        concat!(
            "ldm r0!, {{r4-r7}}\n",
            "ldrsb r3, [r1], #1\n",
            "mla r8, r4, r3, ",
            $a,
            "\n",
            "mla r9, r5, r3, ",
            $b,
            "\n",
            "ldrsb r3, [r1], #1\n",
            "mla r8, r6, r3, r8\n",
            "mla r9, r7, r3, r9\n"
        )
    };
    (first) => { m3!(two "r2" "r2") };
    (next) => { m3!(two "r8" "r9") };
    (add) => {
        concat!(
            "add r10, r8\n",
            "add r12, r12, r8, asr #16\n",
            "add r11, r9\n",
            "add lr, lr, r9, asr #16\n"
        )
    };
    (2) => { concat!(m3!(first), m3!(add)) };
    (4) => { concat!(m3!(first), m3!(next), m3!(add)) };
    (8) => { concat!(m3!(first), m3!(next), m3!(next), m3!(next), m3!(add)) };
    (16) => { concat!(m3!(first), m3!(next), m3!(next), m3!(next), m3!(next), m3!(next), m3!(next), m3!(next), m3!(add)) };
    (eight) => { concat!(m3!(next), m3!(next), m3!(next), m3!(next)) };
    (32) => { concat!(m3!(first), m3!(next), m3!(next), m3!(next), m3!(eight), m3!(eight), m3!(eight), m3!(add)) };
}

/// `$shift`: 15 less the block's power of two. `$from`: where the loop is entered.
macro_rules! by {
    ($($name:ident $shift:literal ($($from:expr),*) ($($block:tt)*))*) => { $(
        /// # Safety
        /// As for [`super::sums`].
        #[unsafe(naked)]
        pub(in super::super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            core::arch::naked_asm!(
                ".cpu cortex-m3",
                "push {{r4-r11, lr}}",
                "add r12, r1, r2",
                "push {{r3, r12}}",
                // A block's sum starts at 2^15, which is as often taken off.
                "lsl r10, r2, #{shift}",
                "rsb r10, r10, #0",
                "mov r11, r10",
                "mov r12, #0",
                "mov lr, #0",
                $($from,)*
                "mov r2, #0x8000",
                "2:",
                $($block)*
                "ldr r3, [sp, #4]",
                "cmp r1, r3",
                "bne 2b",
                "sub r10, r10, r12, lsl #16",
                "sub r11, r11, lr, lsl #16",
                "pop {{r0, r1}}",
                "strd r10, r12, [r0]",
                "strd r11, lr, [r0, #8]",
                "pop {{r4-r11, pc}}",
                shift = const $shift,
            )
        }
    )* };
}

by! {
    by_2 14 () (m3!(2), m3!(2),)
    by_4 13 ("tst r2, #4", "mov r2, #0x8000", "bne 3f") (m3!(4), "3:", m3!(4),)
    by_8 12 () (m3!(8),)
    by_16 11 () (m3!(16),)
    by_32 10 () (m3!(32),)
}
