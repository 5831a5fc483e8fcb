//! Products of rows of activations and packed weights.

use core::arch::naked_asm;

use super::super::args::Product;

/// One block of 16 elements of two rows (r9, r11) and four channels (r5): 128 MACs in 14 instructions.
macro_rules! block_of_two_rows {
    ($mac:literal) => {
        concat!(
            "vldrb.u8 q0, [r9], #16\n vldrb.u8 q2, [r5], #16\n vldrb.u8 q1, [r11], #16\n",
            $mac,
            " r0, q0, q2\n ",
            $mac,
            " r8, q1, q2\n vldrb.u8 q3, [r5], #16\n",
            $mac,
            " r2, q0, q3\n ",
            $mac,
            " r10, q1, q3\n vldrb.u8 q2, [r5], #16\n",
            $mac,
            " r4, q0, q2\n ",
            $mac,
            " r12, q1, q2\n vldrb.u8 q3, [r5], #16\n",
            $mac,
            " r6, q0, q3\n ",
            $mac,
            " lr, q1, q3\n",
        )
    };
}

/// One block of one row (r9) and twice four channels (r11, r5): 128 MACs in 17 instructions.
macro_rules! block_of_one_row {
    ($mac:literal) => {
        concat!(
            "vldrb.u8 q0, [r9], #16\n vldrb.u8 q1, [r11], #16\n vldrb.u8 q2, [r11], #16\n",
            $mac,
            " r0, q0, q1\n vldrb.u8 q1, [r11], #16\n",
            $mac,
            " r2, q0, q2\n vldrb.u8 q2, [r11], #16\n",
            $mac,
            " r4, q0, q1\n vldrb.u8 q1, [r5], #16\n",
            $mac,
            " r6, q0, q2\n vldrb.u8 q2, [r5], #16\n",
            $mac,
            " r8, q0, q1\n vldrb.u8 q1, [r5], #16\n",
            $mac,
            " r10, q0, q2\n vldrb.u8 q2, [r5], #16\n",
            $mac,
            " r12, q0, q1\n ",
            $mac,
            " lr, q0, q2\n",
        )
    };
}

/// [`block_of_two_rows`] of weights of four bits, two channels in a vector: as many instructions, sums of a second channel `16 s1 + s0`, of a first `16 s0`.
macro_rules! block_of_two_rows_w4 {
    ($mac:literal) => {
        concat!(
            "vldrb.u8 q0, [r9], #16\n vldrb.u8 q2, [r5], #16\n vldrb.u8 q1, [r11], #16\n",
            four_channels_w4!(@ $mac, "q0", "q1"),
        )
    };
}

/// [`block_of_one_row`] of weights of four bits.
macro_rules! block_of_one_row_w4 {
    ($mac:literal) => {
        concat!(
            "vldrb.u8 q0, [r9], #16\n vldrb.u8 q1, [r11], #16\n vldrb.u8 q2, [r11], #16\n",
            $mac,
            " r2, q0, q1\n vshl.i8 q3, q1, #4\n",
            $mac,
            " r0, q0, q3\n vldrb.u8 q1, [r5], #16\n",
            $mac,
            " r6, q0, q2\n vshl.i8 q3, q2, #4\n",
            $mac,
            " r4, q0, q3\n vldrb.u8 q2, [r5], #16\n",
            $mac,
            " r10, q0, q1\n vshl.i8 q3, q1, #4\n",
            $mac,
            " r8, q0, q3\n",
            $mac,
            " lr, q0, q2\n vshl.i8 q3, q2, #4\n",
            $mac,
            " r12, q0, q3\n",
        )
    };
}

/// All blocks: the first sets the accumulators, one more where their number is even, then pairs. The blocks leave the flags alone.
macro_rules! blocks {
    ($block:ident) => {
        concat!(
            $block!("vmladav.s8"),
            "lsrs r7, r7, #1\n bcc.w 4f\n",
            $block!("vmladava.s8"),
            "4: beq.w 6f\n",
            "5:\n",
            $block!("vmladava.s8"),
            "subs r7, #1\n",
            $block!("vmladava.s8"),
            "bne.w 5b\n",
            "6:\n",
        )
    };
}

/// Any number of blocks, for the first half of a group (the second is the same).
macro_rules! any_blocks {
    ($half:tt) => {
        concat!("ldrd r9, r11, [sp]\n ldr r7, [sp, #8]\n", blocks!(block_of_two_rows))
    };
}

/// The same of weights of four bits.
macro_rules! any_blocks_w4 {
    ($half:tt) => {
        concat!("ldrd r9, r11, [sp]\n ldr r7, [sp, #8]\n", blocks!(block_of_two_rows_w4))
    };
}

/// Four channels times rows in two registers.
macro_rules! four_channels {
    ($mac:literal, $x0:literal, $x1:literal) => {
        concat!(
            "vldrb.u8 q2, [r5], #16\n vldrb.u8 q3, [r5], #16\n",
            $mac,
            " r0, ",
            $x0,
            ", q2\n ",
            $mac,
            " r8, ",
            $x1,
            ", q2\n vldrb.u8 q2, [r5], #16\n",
            $mac,
            " r2, ",
            $x0,
            ", q3\n ",
            $mac,
            " r10, ",
            $x1,
            ", q3\n vldrb.u8 q3, [r5], #16\n",
            $mac,
            " r4, ",
            $x0,
            ", q2\n ",
            $mac,
            " r12, ",
            $x1,
            ", q2\n",
            $mac,
            " r6, ",
            $x0,
            ", q3\n ",
            $mac,
            " lr, ",
            $x1,
            ", q3\n",
        )
    };
}

/// The same of weights of four bits; with `@` the first vector is in q2.
macro_rules! four_channels_w4 {
    ($mac:literal, $x0:literal, $x1:literal) => {
        concat!("vldrb.u8 q2, [r5], #16\n", four_channels_w4!(@ $mac, $x0, $x1))
    };
    (@ $mac:literal, $x0:literal, $x1:literal) => {
        concat!(
            $mac,
            " r2, ",
            $x0,
            ", q2\n ",
            $mac,
            " r10, ",
            $x1,
            ", q2\n vshl.i8 q3, q2, #4\n",
            $mac,
            " r0, ",
            $x0,
            ", q3\n ",
            $mac,
            " r8, ",
            $x1,
            ", q3\n vldrb.u8 q2, [r5], #16\n",
            $mac,
            " r6, ",
            $x0,
            ", q2\n ",
            $mac,
            " lr, ",
            $x1,
            ", q2\n vshl.i8 q3, q2, #4\n",
            $mac,
            " r4, ",
            $x0,
            ", q3\n ",
            $mac,
            " r12, ",
            $x1,
            ", q3\n",
        )
    };
}

/// One block: the second half of a group finds both rows in q0 and q1.
macro_rules! one_block {
    (0) => {
        concat!(
            "ldrd r9, r11, [sp]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
            four_channels!("vmladav.s8", "q0", "q1"),
        )
    };
    (1) => {
        four_channels!("vmladav.s8", "q0", "q1")
    };
}

/// The same of weights of four bits.
macro_rules! one_block_w4 {
    (0) => {
        concat!(
            "ldrd r9, r11, [sp]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
            four_channels_w4!("vmladav.s8", "q0", "q1"),
        )
    };
    (1) => {
        four_channels_w4!("vmladav.s8", "q0", "q1")
    };
}

/// Two blocks: the second half of a group finds both rows in q0, q1 and q6, q7.
macro_rules! two_blocks {
    (0) => {
        concat!(
            "ldrd r9, r11, [sp]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
            four_channels!("vmladav.s8", "q0", "q1"),
            "vldrb.u8 q6, [r9, #16]\n vldrb.u8 q7, [r11, #16]\n",
            four_channels!("vmladava.s8", "q6", "q7"),
        )
    };
    (1) => {
        concat!(
            four_channels!("vmladav.s8", "q0", "q1"),
            four_channels!("vmladava.s8", "q6", "q7")
        )
    };
}

/// The same of weights of four bits.
macro_rules! two_blocks_w4 {
    (0) => {
        concat!(
            "ldrd r9, r11, [sp]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
            four_channels_w4!("vmladav.s8", "q0", "q1"),
            "vldrb.u8 q6, [r9, #16]\n vldrb.u8 q7, [r11, #16]\n",
            four_channels_w4!("vmladava.s8", "q6", "q7"),
        )
    };
    (1) => {
        concat!(
            four_channels_w4!("vmladav.s8", "q0", "q1"),
            four_channels_w4!("vmladava.s8", "q6", "q7")
        )
    };
}

/// Eight accumulators to two vectors of four channels.
macro_rules! accumulators_to {
    ($a:literal, $b:literal) => {
        concat!(
            "vmov ",
            $a,
            "[2], ",
            $a,
            "[0], r0, r4\n vmov ",
            $a,
            "[3], ",
            $a,
            "[1], r2, r6\n",
            "vmov ",
            $b,
            "[2], ",
            $b,
            "[0], r8, r12\n vmov ",
            $b,
            "[3], ",
            $b,
            "[1], r10, lr\n",
        )
    };
}

/// The same of sums of weights of four bits, brought to their own size.
macro_rules! accumulators_w4_to {
    ($a:literal, $b:literal) => {
        concat!(
            "sub.w r2, r2, r0, asr #4\n sub.w r6, r6, r4, asr #4\n sub.w r10, r10, r8, asr #4\n sub.w lr, lr, r12, asr #4\n",
            accumulators_to!($a, $b),
            "vshr.s32 ",
            $a,
            ", ",
            $a,
            ", #4\n vshr.s32 ",
            $b,
            ", ",
            $b,
            ", #4\n",
        )
    };
}

/// An operation with the next four words of the table.
macro_rules! with_table {
    ($op:literal, $($q:literal),+) => {
        concat!("vldrw.u32 q2, [r5], #16\n", $($op, " ", $q, ", ", $q, ", q2\n"),+)
    };
}

/// The rounding shift right by the next four words, ties up.
macro_rules! shift_ties_up {
    ($($q:literal),+) => { with_table!("vrshl.s32", $($q),+) };
}

/// The same with ties away from zero: one is taken from what is negative and shifted at all.
macro_rules! shift_ties_away {
    ($($q:literal),+) => {
        concat!(
            "vldrw.u32 q2, [r5], #16\n",
            $("vand q0, ", $q, ", q2\n vshr.s32 q0, q0, #31\n vadd.i32 ", $q, ", ", $q, ", q0\n",
              "vrshl.s32 ", $q, ", ", $q, ", q2\n"),+
        )
    };
}

/// Clamp of 16-bit lanes to any limits.
macro_rules! clamp_to_limits {
    ($($q:literal),+) => {
        concat!(
            "ldrd r0, r2, [sp, #40]\n vdup.16 q0, r0\n vdup.16 q1, r2\n",
            $("vmax.s16 ", $q, ", ", $q, ", q0\n vmin.s16 ", $q, ", ", $q, ", q1\n"),+
        )
    };
}

/// Reads `Product`; leaves r1, r3 = outputs and a frame:
/// 0 x of both rows, 8 blocks less one, 12 bytes of half a group's weights, 16 zero point, 20 weights, 24 bytes of two rows, 28 pairs,
/// 32 end of the weights, 36 from the last output of a pair to the next pair, 40 limits.
macro_rules! product_prologue {
    ($half:literal) => {
        concat!(
            ".cpu cortex-m55\n push {{r4-r11, lr}}\n vpush {{d8-d15}}\n sub sp, #60\n",
            "ldr r1, [r0, #0]\n ldr r2, [r0, #4]\n add r3, r1, r2\n strd r1, r3, [sp]\n add r2, r2\n str r2, [sp, #24]\n",
            "ldr r1, [r0, #20]\n str r1, [sp, #8]\n add r1, #1\n lsl r1, #", $half, "\n str r1, [sp, #12]\n",
            "ldr r2, [r0, #32]\n str r2, [sp, #16]\n ldr r5, [r0, #12]\n str r5, [sp, #20]\n",
            "ldr r2, [r0, #8]\n str r2, [sp, #28]\n",
            "ldr r2, [r0, #16]\n lsl r1, #1\n add r1, #128\n mla r1, r1, r2, r5\n str r1, [sp, #32]\n",
            "ldr r1, [r0, #24]\n ldr r4, [r0, #28]\n add r3, r1, r4\n add r4, r4\n sub r4, r4, r2, lsl #3\n",
            "str r4, [sp, #36]\n",
            "ldr r2, [r0, #36]\n vctp.16 r2\n ldrd r2, r4, [r0, #40]\n strd r2, r4, [sp, #40]\n",
        )
    };
}
macro_rules! product_epilogue {
    () => {
        "add sp, #60\n vpop {{d8-d15}}\n pop {{r4-r11, pc}}\n"
    };
}

/// Defines a loop over pairs of rows: 41 (fast) instructions besides the blocks for 16 outputs.
macro_rules! two_rows {
    (
        $(#[$doc:meta])* $name:ident, $blocks:ident, $accumulators:ident, $half:literal, left: $left:expr, shift: $shift:expr, clamp: $clamp:expr
    ) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(in crate::kernels::mve) unsafe extern "C" fn $name(args: *const Product) {
            naked_asm!(concat!(
                product_prologue!($half),
                "2: ldr r5, [sp, #20]\n",
                // r9, r11: rows; r5: weights; r7: blocks; r1, r3: outputs. Channels 0, 2, 4, 6 of the group, then 1, 3, 5, 7.
                "3:\n",
                $blocks!(0), $accumulators!("q4", "q5"),
                $blocks!(1), $accumulators!("q6", "q7"),
                with_table!("vadd.i32", "q4", "q5"), with_table!("vadd.i32", "q6", "q7"),
                $left,
                with_table!("vqrdmulh.s32", "q4", "q5"), with_table!("vqrdmulh.s32", "q6", "q7"),
                $shift,
                // Even channels to the lower halves of the lanes, odd ones to the upper: the order of memory.
                "ldr r0, [sp, #16]\n",
                "vqmovnb.s32 q4, q4\n vqmovnt.s32 q4, q6\n vqmovnb.s32 q5, q5\n vqmovnt.s32 q5, q7\n",
                "vqadd.s16 q4, q4, r0\n vqadd.s16 q5, q5, r0\n",
                $clamp,
                "vpstt\n vstrbt.16 q4, [r1], #8\n vstrbt.16 q5, [r3], #8\n",
                "ldr r0, [sp, #32]\n cmp r5, r0\n bne.w 3b\n",
                // The next pair.
                "ldrd r9, r11, [sp]\n ldrd r0, r2, [sp, #24]\n add r9, r0\n add r11, r0\n strd r9, r11, [sp]\n",
                "ldr r0, [sp, #36]\n add r1, r0\n add r3, r0\n subs r2, #1\n str r2, [sp, #28]\n bne.w 2b\n",
                product_epilogue!(),
            ))
        }
    };
}

/// The forms of a loop over pairs of rows.
macro_rules! two_rows_of {
    ($($fast:ident, $general:ident, $blocks:ident, $accumulators:ident, $half:literal, $doc:literal;)*) => {$(
        two_rows! {
            #[doc = $doc]
            #[doc = ""]
            #[doc = "See [`super::super::gemm`] for when `fast` holds."]
            $fast, $blocks, $accumulators, $half,
            left: "add r5, #32\n",
            shift: concat!(shift_ties_up!("q4", "q5"), shift_ties_up!("q6", "q7")),
            // Without limits but those of the type.
            clamp: "vqmovnb.s16 q4, q4\n vqmovnb.s16 q5, q5\n"
        }
        two_rows! {
            #[doc = $doc]
            $general, $blocks, $accumulators, $half,
            left: concat!(with_table!("vshl.s32", "q4", "q5"), with_table!("vshl.s32", "q6", "q7")),
            shift: concat!(shift_ties_away!("q4", "q5"), shift_ties_away!("q6", "q7")),
            clamp: clamp_to_limits!("q4", "q5")
        }
    )*};
}
two_rows_of! {
    rows2_fast, rows2_general, any_blocks, accumulators_to, "6", "Pairs of rows.";
    rows2_k16_fast, rows2_k16_general, one_block, accumulators_to, "6", "Pairs of rows of one block: 68 (fast) instructions for 16 outputs, 14 % less.";
    rows2_k32_fast, rows2_k32_general, two_blocks, accumulators_to, "6", "Pairs of rows of two blocks: 94 (fast) instructions for 16 outputs, 12 % less.";
    rows2_w4_fast, rows2_w4_general, any_blocks_w4, accumulators_w4_to, "5", "Pairs of rows, weights of four bits.";
    rows2_w4_k16_fast, rows2_w4_k16_general, one_block_w4, accumulators_w4_to, "5", "Pairs of rows of one block, weights of four bits.";
    rows2_w4_k32_fast, rows2_w4_k32_general, two_blocks_w4, accumulators_w4_to, "5", "Pairs of rows of two blocks, weights of four bits.";
}

/// Defines a loop over one row.
macro_rules! one_row {
    ($(#[$doc:meta])* $name:ident, $block:ident, $accumulators:ident, $half:literal, left: $left:expr, shift: $shift:expr, clamp: $clamp:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(in crate::kernels::mve) unsafe extern "C" fn $name(args: *const Product) {
            naked_asm!(concat!(
                product_prologue!($half),
                // r9: the row; r11, r5: weights of both halves of the group.
                "3: ldr r9, [sp]\n ldrd r7, r0, [sp, #8]\n mov r11, r5\n add r5, r0\n",
                blocks!($block), $accumulators!("q4", "q6"),
                with_table!("vadd.i32", "q4"), with_table!("vadd.i32", "q6"),
                $left,
                with_table!("vqrdmulh.s32", "q4"), with_table!("vqrdmulh.s32", "q6"),
                $shift,
                "ldr r0, [sp, #16]\n vqmovnb.s32 q4, q4\n vqmovnt.s32 q4, q6\n vqadd.s16 q4, q4, r0\n",
                $clamp,
                "vpst\n vstrbt.16 q4, [r1], #8\n",
                "ldr r0, [sp, #32]\n cmp r5, r0\n bne.w 3b\n",
                product_epilogue!(),
            ))
        }
    };
}

/// The forms of a loop over one row.
macro_rules! one_row_of {
    ($($fast:ident, $general:ident, $block:ident, $accumulators:ident, $half:literal, $doc:literal;)*) => {$(
        one_row! {
            #[doc = $doc]
            #[doc = ""]
            #[doc = "See [`super::super::gemm`] for when `fast` holds."]
            $fast, $block, $accumulators, $half,
            left: "add r5, #32\n",
            shift: concat!(shift_ties_up!("q4"), shift_ties_up!("q6")),
            clamp: "vqmovnb.s16 q4, q4\n"
        }
        one_row! {
            #[doc = $doc]
            $general, $block, $accumulators, $half,
            left: concat!(with_table!("vshl.s32", "q4"), with_table!("vshl.s32", "q6")),
            shift: concat!(shift_ties_away!("q4"), shift_ties_away!("q6")),
            clamp: clamp_to_limits!("q4")
        }
    )*};
}
one_row_of! {
    rows1_fast, rows1_general, block_of_one_row, accumulators_to, "6", "One row.";
    rows1_w4_fast, rows1_w4_general, block_of_one_row_w4, accumulators_w4_to, "5", "One row, weights of four bits.";
}
