//! [`super::sums`] and [`super::narrow`] for ARMv7-M: two inputs at a time, 7 instructions for their 8 products, 15 where words are made from bytes, and
//! 19 without blocks.
//!
//! r0 words, r1 x, r2 2^15, or a mask of even bytes, r3 an activation, r4-r7 words, r8 and r9 the block's sums, r10 and r11 totals, r12 and lr high
//! halves.

#![cfg(kernel_isa = "armv7m")]

frame!(
    /// The frame: where the sums go, the end of x.
    Frame { place, end }
);

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
    (narrow) => {
        concat!(
            "ldm r0!, {{r4, r6}}\n",
            "ldrsb r3, [r1], #1\n",
            "and r5, r2, r4, lsr #8\n",
            "ands r4, r2\n",
            "and r7, r2, r6, lsr #8\n",
            "ands r6, r2\n",
            "sub r4, r4, #0x00800080\n",
            "sub r5, r5, #0x00800080\n",
            "mla r8, r4, r3, r8\n",
            "mla r9, r5, r3, r9\n",
            "ldrsb r3, [r1], #1\n",
            "sub r6, r6, #0x00800080\n",
            "sub r7, r7, #0x00800080\n",
            "mla r8, r6, r3, r8\n",
            "mla r9, r7, r3, r9\n"
        )
    };
    (narrow $($two:ident)*) => { concat!("mov r8, #0x8000\n", "mov r9, #0x8000\n", $(m3!($two)),*, m3!(add)) };
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

/// `$fixed`: what stays. `$shift`: 15 less the block's power of two. `$from`: where the loop is entered.
macro_rules! by {
    ($fixed:literal $($name:ident $shift:literal ($($from:expr),*) ($($block:tt)*))*) => { $(
        /// # Safety
        /// As for [`super::sums`].
        #[unsafe(naked)]
        pub(in super::super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            naked!(
                Frame { end } =>
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
                $fixed,
                "2:",
                $($block)*
                "ldr r3, [sp, #{end}]",
                "cmp r1, r3",
                "bne 2b",
                "sub r10, r10, r12, lsl #16",
                "sub r11, r11, lr, lsl #16",
                "pop {{r0, r1}}",
                "strd r10, r12, [r0]",
                "strd r11, lr, [r0, #{second_sum}]",
                "pop {{r4-r11, pc}}";
                second_sum = const 2 * 4,
                shift = const $shift,
            )
        }
    )* };
}

by! {
    "mov r2, #0x8000"
    by_2 14 () (m3!(2), m3!(2),)
    by_4 13 ("tst r2, #4", "mov r2, #0x8000", "bne 3f") (m3!(4), "3:", m3!(4),)
    by_8 12 () (m3!(8),)
    by_16 11 () (m3!(16),)
    by_32 10 () (m3!(32),)
}

by! {
    "mov r2, #0x00ff00ff"
    narrow_by_4 13 () (m3!(narrow narrow narrow),)
    narrow_by_8 12 () (m3!(narrow narrow narrow narrow narrow),)
    narrow_by_16 11 () (m3!(narrow narrow narrow narrow narrow narrow narrow narrow narrow),)
}

macro_rules! plain {
    (two $($word:literal)*) => { concat!($(
        "ldrsb r3, [r1], #1\n",
        "sxtb r12, ", $word, "\n",
        "sxtb lr, ", $word, ", ror #8\n",
        "mla r8, r12, r3, r8\n",
        "mla r9, lr, r3, r9\n",
    )*) };
    (four $($word:literal)*) => { concat!($(
        plain!(two $word),
        "sxtb r12, ", $word, ", ror #16\n",
        "asr lr, ", $word, ", #24\n",
        "mla r10, r12, r3, r10\n",
        "mla r11, lr, r3, r11\n",
    )*) };
    ($($name:ident $channels:ident)*) => { $(
        /// r0 words, r1 x, r2 its end, r3 an activation, r4-r7 words, r8-r11 sums, r12 and lr weights.
        ///
        /// # Safety
        /// As for [`super::narrow`].
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            naked!(
                ".cpu cortex-m3",
                "push {{r3-r11, lr}}",
                "add r2, r1",
                "mov r8, #0",
                "mov r9, #0",
                "mov r10, #0",
                "mov r11, #0",
                "2:",
                "ldm r0!, {{r4-r7}}",
                plain!($channels "r4" "r5" "r6" "r7"),
                "cmp r1, r2",
                "bne 2b",
                "pop {{r3}}",
                "stm r3, {{r8-r11}}",
                "pop {{r4-r11, pc}}",
            )
        }
    )* };
}

plain!(plain four plain_two two);
