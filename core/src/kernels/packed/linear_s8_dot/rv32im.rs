//! [`super::sums`] and [`super::narrow`] for RV32IM: 7 instructions for an input's 4 products, 11 where words are made from bytes, 13 without blocks.
//!
//! a0 words, a1 x, a3 the sums' place, a4 the end of x, a5 and a6 totals, a7 and t0 high halves, t1 and t2 the block's sums, t3 and t4 words, t5 an
//! activation, t6 2^15. Of bytes: a2 a mask of even ones, t6 what each is more than its weight.

#![cfg(kernel_isa = "rv32im")]

macro_rules! rv {
    (word $to:literal $j:literal $i:literal) => { concat!("lw ", $to, ", 8*", $j, "+4*", $i, "(a0)\n") };
    (load $j:literal) => { concat!(rv!(word "t3" $j 0), rv!(word "t4" $j 1), "lb t5, ", $j, "(a1)\n") };
    (first $j:literal) => { concat!(rv!(load $j), "mul t1, t3, t5\n", "mul t2, t4, t5\n") };
    (next $($j:literal)*) => { concat!($(
        rv!(load $j), "mul t3, t3, t5\n", "mul t4, t4, t5\n", "add t1, t1, t3\n", "add t2, t2, t4\n"),*) };
    (add) => {
        concat!(
            "add t1, t1, t6\n",
            "add t2, t2, t6\n",
            rv!(total)
        )
    };
    (total) => {
        concat!(
            "add a5, a5, t1\n",
            "add a6, a6, t2\n",
            "srai t1, t1, 16\n",
            "srai t2, t2, 16\n",
            "add a7, a7, t1\n",
            "add t0, t0, t2\n"
        )
    };
    (narrow $($j:literal)*) => { concat!("lui t1, 8\n", "lui t2, 8\n", $(
        "lw t3, 4*", $j, "(a0)\n",
        "lb t5, ", $j, "(a1)\n",
        "srli t4, t3, 8\n",
        "and t3, t3, a2\n",
        "and t4, t4, a2\n",
        "sub t3, t3, t6\n",
        "sub t4, t4, t6\n",
        "mul t3, t3, t5\n",
        "mul t4, t4, t5\n",
        "add t1, t1, t3\n",
        "add t2, t2, t4\n",
    )* rv!(total)) };
    (block $first:literal $($next:literal)*) => { concat!(rv!(first $first), rv!(next $($next)*), rv!(add)) };
}

pub(in super::super) use rv;

/// `$width`: bytes of an input. `$fixed`: what stays. `$shift`: 15 less the block's power of two. `$taken`: inputs that the loop takes.
/// `$from`: where it is entered.
macro_rules! by {
    ($width:literal $fixed:literal $($name:ident $shift:literal $taken:literal ($($from:expr),*) ($($block:tt)*))*) => { $(
        /// # Safety
        /// As for [`super::sums`].
        #[unsafe(naked)]
        pub(in super::super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            naked!(
                ".option push",
                ".option arch, +m",
                // A block's sum starts at 2^15, which is as often taken off.
                "slli a5, a2, {shift}",
                "neg a5, a5",
                "mv a6, a5",
                "li a7, 0",
                "li t0, 0",
                "add a4, a1, a2",
                $fixed,
                $($from,)*
                "2:",
                $($block)*
                "addi a0, a0, {width}*{taken}",
                "addi a1, a1, {taken}",
                "bne a1, a4, 2b",
                "slli t1, a7, 16",
                "sub a5, a5, t1",
                "slli t2, t0, 16",
                "sub a6, a6, t2",
                words!("sw" "a3": "a5" "a7" "a6" "t0"),
                "ret",
                ".option pop";
                shift = const $shift,
                taken = const $taken,
                width = const $width,
            )
        }
    )* };
}

by! {
    8 "lui t6, 8"
    by_2 14 4 () (rv!(block 0 1), rv!(block 2 3),)
    by_4 13 8 ("andi t1, a2, 4", "beqz t1, 2f", "addi a0, a0, -32", "addi a1, a1, -4", "j 3f") (rv!(block 0 1 2 3), "3:", rv!(block 4 5 6 7),)
    by_8 12 16 ("andi t1, a2, 8", "beqz t1, 2f", "addi a0, a0, -64", "addi a1, a1, -8", "j 3f")
        (rv!(block 0 1 2 3 4 5 6 7), "3:", rv!(block 8 9 10 11 12 13 14 15),)
    by_16 11 16 () (rv!(block 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),)
    by_32 10 32 () (rv!(block 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31),)
}

by! {
    4 "li a2, 0x00ff00ff\nli t6, 0x00800080"
    narrow_by_4 13 4 () (rv!(narrow 0 1 2 3),)
    narrow_by_8 12 8 () (rv!(narrow 0 1 2 3 4 5 6 7),)
    narrow_by_16 11 16 () (rv!(narrow 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),)
}

macro_rules! plain {
    (weight $to:literal $j:literal $i:literal) => {
        concat!("lb ", $to, ", 4*", $j, "+", $i, "(a0)\n")
    };
    (two $j:literal) => {
        concat!(
            "lb t5, ", $j, "(a1)\n",
            plain!(weight "t1" $j 0),
            plain!(weight "t2" $j 1),
            "mul t1, t1, t5\n",
            "mul t2, t2, t5\n",
            "add a5, a5, t1\n",
            "add a6, a6, t2\n"
        )
    };
    (four $j:literal) => {
        concat!(
            plain!(two $j),
            plain!(weight "t3" $j 2),
            plain!(weight "t4" $j 3),
            "mul t3, t3, t5\n",
            "mul t4, t4, t5\n",
            "add a7, a7, t3\n",
            "add t0, t0, t4\n"
        )
    };
    ($($name:ident $channels:ident)*) => { $(
        /// a0 words, a1 x, a2 its end, a3 the sums' place, a5, a6, a7 and t0 sums, t1-t4 weights, t5 an activation.
        ///
        /// # Safety
        /// As for [`super::narrow`].
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            naked!(
                ".option push",
                ".option arch, +m",
                "add a2, a1, a2",
                "li a5, 0",
                "li a6, 0",
                "li a7, 0",
                "li t0, 0",
                "2:",
                plain!($channels 0),
                plain!($channels 1),
                plain!($channels 2),
                plain!($channels 3),
                "addi a0, a0, 16",
                "addi a1, a1, 4",
                "bne a1, a2, 2b",
                words!("sw" "a3": "a5" "a6" "a7" "t0"),
                "ret",
                ".option pop",
            )
        }
    )* };
}

plain!(plain four plain_two two);
