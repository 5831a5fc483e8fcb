//! Products of rows of activations and packed weights.

use super::super::args::{Product, Widen};

consecutive!(Product: low, high);

/// The frame of a product.
#[repr(C)]
#[allow(dead_code, reason = "the assembly names its words")]
struct Frame {
    /// Of a pair's first row.
    sums: [i32; 4],
    second_sums: [i32; 4],
    /// The elements of both rows.
    row: *const i8,
    second_row: *const i8,
    /// Blocks less one, or rounds of blocks.
    rounds: u32,
    /// Bytes of half a group's weights.
    half_group: u32,
    zero: i32,
    /// The first group's weights.
    first_group: *const u8,
    /// Bytes of two rows.
    two_rows: u32,
    /// Pairs.
    left: u32,
    /// Of the weights.
    end: *const u8,
    /// From the last output of a pair to the next pair.
    to_next: u32,
    least: i32,
    greatest: i32,
    /// Entry of the first round of blocks in either half of a group.
    entry: usize,
    second_entry: usize,
}
consecutive!(Frame: row, second_row, rounds, half_group, zero);
consecutive!(Frame: two_rows, left);
consecutive!(Frame: least, greatest, entry, second_entry);

/// Vectors of both rows (r9, r11), `$at` bytes on.
macro_rules! vectors_of_rows {
    ($first:literal $second:literal $at:literal) => {
        concat!(
            "vldrb.u8 ",
            $first,
            ", [r9, #",
            $at,
            "]\n vldrb.u8 ",
            $second,
            ", [r11, #",
            $at,
            "]\n",
        )
    };
}

/// One block of 16 elements of two rows (r9, r11) and four channels (r5): 128 MACs in 14 instructions of four bytes. The rows of the first two blocks stay
/// in q0 to q3 for the other half of the group.
macro_rules! block_of_two_rows {
    () => {
        concat!(
            "vldrb.u8 q4, [r9], #16\n vldrb.u8 q6, [r5], #16\n vldrb.u8 q5, [r11], #16\n",
            "vmladava.s8 r0, q4, q6\n vmladava.s8 r8, q5, q6\n vldrb.u8 q7, [r5], #16\n",
            "vmladava.s8 r2, q4, q7\n vmladava.s8 r10, q5, q7\n vldrb.u8 q6, [r5], #16\n",
            "vmladava.s8 r4, q4, q6\n vmladava.s8 r12, q5, q6\n vldrb.u8 q7, [r5], #16\n",
            "vmladava.s8 r6, q4, q7\n vmladava.s8 lr, q5, q7\n",
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

/// Blocks in fours, from the address in this word of the frame: the first time as many fewer as are too many.
macro_rules! blocks_by_four {
    ($entry:literal, $label:literal) => {
        concat!(
            "ldr r7, [sp, #{rounds}]\n ldr pc, [sp, #{",
            $entry,
            "}]\n",
            $label,
            ":\n",
            block_of_two_rows!(),
            block_of_two_rows!(),
            block_of_two_rows!(),
            block_of_two_rows!(),
            "subs r7, #1\n bne.w ",
            $label,
            "b\n",
        )
    };
}

/// At least three blocks: the second half of a group finds the rows of the first two in q0 to q3. The frame has rows from their third block on.
macro_rules! any_blocks {
    (0) => {
        concat!(
            "ldrd r9, r11, [sp, #{row}]\n ",
            vectors_of_rows!("q0" "q1" "-32"),
            four_channels!("vmladav.s8", "q0", "q1"),
            vectors_of_rows!("q2" "q3" "-16"),
            four_channels!("vmladava.s8", "q2", "q3"),
            blocks_by_four!("entry", "5"),
        )
    };
    (1) => {
        concat!(
            four_channels!("vmladav.s8", "q0", "q1"),
            "ldrd r9, r11, [sp, #{row}]\n", // second_row
            four_channels!("vmladava.s8", "q2", "q3"),
            blocks_by_four!("second_entry", "6"),
        )
    };
}

/// Frame words for [`any_blocks`]: rows from their third block on, rounds, the first round's entry in either half.
macro_rules! enter_any_blocks {
    () => {
        concat!(
            "ldrd r2, r4, [sp, #{row}]\n add r2, #32\n add r4, #32\n strd r2, r4, [sp, #{row}]\n",
            "ldr r2, [sp, #{rounds}]\n add r4, r2, #2\n lsr r4, r4, #2\n str r4, [sp, #{rounds}]\n",
            // Thumb addresses are odd.
            "rsb r2, r2, #1\n and r2, r2, #3\n mov r4, #56\n mul r2, r2, r4\n add r2, #1\n",
            "adr.w r4, 5f\n add r4, r2\n adr.w r5, 6f\n add r5, r2\n strd r4, r5, [sp, #{entry}]\n",
        )
    };
}

/// The same of weights of four bits.
macro_rules! any_blocks_w4 {
    ($half:tt) => {
        concat!(
            "ldrd r9, r11, [sp, #{row}]\n ldr r7, [sp, #{rounds}]\n",
            blocks!(block_of_two_rows_w4)
        )
    };
}

/// Four channels times rows in two registers: 12 instructions.
macro_rules! four_channels {
    ($mac:literal, $x0:literal, $x1:literal) => {
        concat!(
            "vldrb.u8 q6, [r5], #16\n vldrb.u8 q7, [r5], #16\n",
            $mac,
            " r0, ",
            $x0,
            ", q6\n ",
            $mac,
            " r8, ",
            $x1,
            ", q6\n vldrb.u8 q6, [r5], #16\n",
            $mac,
            " r2, ",
            $x0,
            ", q7\n ",
            $mac,
            " r10, ",
            $x1,
            ", q7\n vldrb.u8 q7, [r5], #16\n",
            $mac,
            " r4, ",
            $x0,
            ", q6\n ",
            $mac,
            " r12, ",
            $x1,
            ", q6\n",
            $mac,
            " r6, ",
            $x0,
            ", q7\n ",
            $mac,
            " lr, ",
            $x1,
            ", q7\n",
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
            "ldrd r9, r11, [sp, #{row}]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
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
            "ldrd r9, r11, [sp, #{row}]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
            four_channels_w4!("vmladav.s8", "q0", "q1"),
        )
    };
    (1) => {
        four_channels_w4!("vmladav.s8", "q0", "q1")
    };
}

/// Two blocks: the second half of a group finds both rows in q0 to q3.
macro_rules! two_blocks {
    (0) => {
        concat!(
            "ldrd r9, r11, [sp, #{row}]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
            four_channels!("vmladav.s8", "q0", "q1"),
            vectors_of_rows!("q2" "q3" "16"),
            four_channels!("vmladava.s8", "q2", "q3"),
        )
    };
    (1) => {
        concat!(
            four_channels!("vmladav.s8", "q0", "q1"),
            four_channels!("vmladava.s8", "q2", "q3")
        )
    };
}

/// Three blocks: the second half of a group finds both rows in q0 to q5.
macro_rules! three_blocks {
    (0) => {
        concat!(
            two_blocks!(0),
            vectors_of_rows!("q4" "q5" "32"),
            four_channels!("vmladava.s8", "q4", "q5"),
        )
    };
    (1) => {
        concat!(two_blocks!(1), four_channels!("vmladava.s8", "q4", "q5"))
    };
}

/// Four blocks: the second half of a group finds the first two of both rows in q0 to q3.
macro_rules! four_blocks {
    (0) => {
        concat!(two_blocks!(0), four_blocks!(@))
    };
    (1) => {
        concat!(two_blocks!(1), four_blocks!(@))
    };
    (@) => {
        concat!(
            vectors_of_rows!("q4" "q5" "32"),
            four_channels!("vmladava.s8", "q4", "q5"),
            vectors_of_rows!("q4" "q5" "48"),
            four_channels!("vmladava.s8", "q4", "q5"),
        )
    };
}

/// The same of weights of four bits.
macro_rules! two_blocks_w4 {
    (0) => {
        concat!(
            "ldrd r9, r11, [sp, #{row}]\n vldrb.u8 q0, [r9]\n vldrb.u8 q1, [r11]\n",
            four_channels_w4!("vmladav.s8", "q0", "q1"),
            vectors_of_rows!("q6" "q7" "16"),
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

/// Eight accumulators of either half of a group to q4 and q5, q6 and q7: the first half's through memory, which leaves the vectors to the rows.
macro_rules! accumulators {
    (0) => {
        "stm sp, {{r0, r2, r4, r6, r8, r10, r12, lr}}\n"
    };
    (1) => {
        concat!(
            "vldrw.u32 q4, [sp]\n vldrw.u32 q5, [sp, #{second_sums}]\n",
            moved!("q6", "q7"),
        )
    };
    // Of one row, both halves at once.
    (row) => {
        moved!("q4", "q6")
    };
}

/// Eight accumulators to two vectors.
macro_rules! moved {
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

/// Eight accumulators to two vectors of four channels, of sums of weights of four bits, brought to their own size.
macro_rules! accumulators_w4 {
    (0) => {
        accumulators_w4!(@ "q4", "q5")
    };
    (1) => {
        accumulators_w4!(@ "q6", "q7")
    };
    (row) => {
        accumulators_w4!(@ "q4", "q6")
    };
    (@ $a:literal, $b:literal) => {
        concat!(
            "sub.w r2, r2, r0, asr #4\n sub.w r6, r6, r4, asr #4\n sub.w r10, r10, r8, asr #4\n sub.w lr, lr, r12, asr #4\n",
            moved!($a, $b),
            "vshr.s32 ", $a, ", ", $a, ", #4\n vshr.s32 ", $b, ", ", $b, ", #4\n",
        )
    };
}

/// An operation with the next four words of the table; `$past` bytes on are those after them.
macro_rules! with_table {
    ($op:literal, $($q:literal),+) => {
        with_table!("16" $op, $($q),+)
    };
    ($past:literal $op:literal, $($q:literal),+) => {
        concat!("vldrw.u32 q2, [r5], #", $past, "\n", $($op, " ", $q, ", ", $q, ", q2\n"),+)
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
            "ldrd r0, r2, [sp, #{least}]\n vdup.16 q0, r0\n vdup.16 q1, r2\n",
            $("vmax.s16 ", $q, ", ", $q, ", q0\n vmin.s16 ", $q, ", ", $q, ", q1\n"),+
        )
    };
}

/// Reads `Product`; leaves r1, r3 = outputs and a [`Frame`].
macro_rules! product_prologue {
    ($half:literal) => {
        product_prologue!($half, "")
    };
    // `$more` adds to r1 what eight channels have beside.
    ($half:literal, $more:literal) => {
        concat!(
            ".cpu cortex-m55\n push {{r4-r11, lr}}\n vpush {{d8-d15}}\n sub sp, #92\n",
            "ldr r1, [r0, #{x}]\n ldr r2, [r0, #{x_stride}]\n add r3, r1, r2\n strd r1, r3, [sp, #{row}]\n add r2, r2\n str r2, [sp, #{two_rows}]\n",
            "ldr r1, [r0, #{blocks_less_one}]\n str r1, [sp, #{rounds}]\n add r1, #1\n lsl r1, #", $half, "\n str r1, [sp, #{half_group}]\n",
            "ldr r2, [r0, #{zero_point}]\n str r2, [sp, #{zero}]\n ldr r5, [r0, #{weights}]\n str r5, [sp, #{first_group}]\n",
            "ldr r2, [r0, #{pairs}]\n str r2, [sp, #{left}]\n",
            "ldr r2, [r0, #{groups}]\n lsl r1, #1\n add r1, #128\n ", $more, "mla r1, r1, r2, r5\n str r1, [sp, #{end}]\n",
            "ldr r1, [r0, #{out}]\n ldr r4, [r0, #{out_stride}]\n add r3, r1, r4\n add r4, r4\n sub r4, r4, r2, lsl #3\n",
            "str r4, [sp, #{to_next}]\n",
            "ldr r2, [r0, #{lanes}]\n vctp.16 r2\n ldrd r2, r4, [r0, #{low}]\n strd r2, r4, [sp, #{least}]\n",
        )
    };
}
macro_rules! product_epilogue {
    () => {
        "add sp, #92\n vpop {{d8-d15}}\n pop {{r4-r11, pc}}\n"
    };
}

/// Of loops that take nothing more from the frame.
macro_rules! enter {
    () => {
        ""
    };
}

/// Of loops over so many blocks that nothing counts them: r7 is the end of the weights.
macro_rules! enter_blocks {
    () => {
        "ldr r7, [sp, #{end}]\n"
    };
}

/// Whether these were the last weights.
macro_rules! at_end {
    (enter_blocks) => {
        "cmp r5, r7\n"
    };
    ($enter:ident) => {
        "ldr r0, [sp, #{end}]\n cmp r5, r0\n"
    };
}

/// Defines a loop over pairs of rows: 39 (fast; 38 of four blocks or fewer) instructions besides the blocks for 16 outputs.
macro_rules! two_rows {
    (
        $(#[$doc:meta])* $name:ident, $enter:ident, $blocks:ident, $accumulators:ident, $half:literal, words: ($($word:ident)*), past: $past:literal,
        left: $left:expr, shift: $shift:expr, clamp: $clamp:expr
    ) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Product) {
            naked!(Product { x, x_stride, pairs, weights, groups, blocks_less_one, out, out_stride, zero_point, lanes, low },
                Frame { row, rounds, half_group, zero, first_group, two_rows, left, end, to_next, least $(, $word)* } => concat!(
                product_prologue!($half), $enter!(),
                "2: ldr r5, [sp, #{first_group}]\n",
                // r9, r11: rows; r5: weights; r7: blocks; r1, r3: outputs. Channels 0, 2, 4, 6 of the group, then 1, 3, 5, 7.
                "3:\n",
                $blocks!(0), $accumulators!(0),
                $blocks!(1), $accumulators!(1),
                with_table!("vadd.i32", "q4", "q5"), with_table!($past "vadd.i32", "q6", "q7"),
                $left,
                with_table!("vqrdmulh.s32", "q4", "q5"), with_table!("vqrdmulh.s32", "q6", "q7"),
                $shift,
                // Even channels to the lower halves of the lanes, odd ones to the upper: the order of memory.
                "ldr r0, [sp, #{zero}]\n",
                "vqmovnb.s32 q4, q4\n vqmovnt.s32 q4, q6\n vqmovnb.s32 q5, q5\n vqmovnt.s32 q5, q7\n",
                "vqadd.s16 q4, q4, r0\n vqadd.s16 q5, q5, r0\n",
                $clamp,
                "vpstt\n vstrbt.16 q4, [r1], #8\n vstrbt.16 q5, [r3], #8\n",
                at_end!($enter), "bne.w 3b\n",
                // The next pair.
                "ldrd r9, r11, [sp, #{row}]\n ldrd r0, r2, [sp, #{two_rows}]\n add r9, r0\n add r11, r0\n strd r9, r11, [sp, #{row}]\n",
                "ldr r0, [sp, #{to_next}]\n add r1, r0\n add r3, r0\n subs r2, #1\n str r2, [sp, #{left}]\n bne.w 2b\n",
                product_epilogue!(),
            ))
        }
    };
}

/// The forms of a loop over pairs of rows.
macro_rules! two_rows_of {
    ($($fast:ident, $general:ident, $enter:ident, $blocks:ident, $accumulators:ident, $half:literal, $words:tt, $doc:literal;)*) => {$(
        two_rows! {
            #[doc = $doc]
            #[doc = ""]
            #[doc = "See [`crate::kernels::mve::gemm_s8`] for when `fast` holds."]
            $fast, $enter, $blocks, $accumulators, $half, words: $words,
            past: "48",
            left: "",
            shift: concat!(shift_ties_up!("q4", "q5"), shift_ties_up!("q6", "q7")),
            // Without limits but those of the type.
            clamp: "vqmovnb.s16 q4, q4\n vqmovnb.s16 q5, q5\n"
        }
        two_rows! {
            #[doc = $doc]
            $general, $enter, $blocks, $accumulators, $half, words: $words,
            past: "16",
            left: concat!(with_table!("vshl.s32", "q4", "q5"), with_table!("vshl.s32", "q6", "q7")),
            shift: concat!(shift_ties_away!("q4", "q5"), shift_ties_away!("q6", "q7")),
            clamp: clamp_to_limits!("q4", "q5")
        }
    )*};
}
two_rows_of! {
    rows2_fast, rows2_general, enter_any_blocks, any_blocks, accumulators, "6", (second_sums entry second_entry), "Pairs of rows, of at least three blocks.";
    rows2_k16_fast, rows2_k16_general, enter_blocks, one_block, accumulators, "6", (second_sums),
        "Pairs of rows of one block: 65 (fast) instructions for 16 outputs.";
    rows2_k32_fast, rows2_k32_general, enter_blocks, two_blocks, accumulators, "6", (second_sums),
        "Pairs of rows of two blocks: 91 (fast) instructions for 16 outputs.";
    rows2_k48_fast, rows2_k48_general, enter_blocks, three_blocks, accumulators, "6", (second_sums),
        "Pairs of rows of three blocks: 117 (fast) instructions for 16 outputs.";
    rows2_k64_fast, rows2_k64_general, enter_blocks, four_blocks, accumulators, "6", (second_sums),
        "Pairs of rows of four blocks: 147 (fast) instructions for 16 outputs.";
    rows2_w4_fast, rows2_w4_general, enter, any_blocks_w4, accumulators_w4, "5", (), "Pairs of rows, weights of four bits.";
    rows2_w4_k16_fast, rows2_w4_k16_general, enter, one_block_w4, accumulators_w4, "5", (), "Pairs of rows of one block, weights of four bits.";
    rows2_w4_k32_fast, rows2_w4_k32_general, enter, two_blocks_w4, accumulators_w4, "5", (), "Pairs of rows of two blocks, weights of four bits.";
}

/// The frame of a product of four rows.
#[repr(C)]
#[allow(dead_code, reason = "the assembly names its words")]
struct OfFour {
    /// From the first row's output to each row's.
    outputs: [u32; 4],
    first_group: *const u8,
    /// Fours.
    left: u32,
    /// Bytes of a row.
    bytes: u32,
    /// From the last output of four rows to the next four.
    to_next: u32,
    unused: u32,
    least: i32,
    greatest: i32,
}
consecutive!(OfFour: first_group, left, bytes, to_next);
consecutive!(OfFour: least, greatest);

/// Ties of the shifts to the right in r8 (q6) and r10 (q7) away from zero: one less where negative and shifted.
macro_rules! ties_of_four_rows {
    (up) => {
        ""
    };
    (away) => {
        "asr r0, r8, #31\n asr r2, r10, #31\n vpt.s32 lt, q6, zr\n vaddt.i32 q6, q6, r0\n vpt.s32 lt, q7, zr\n vaddt.i32 q7, q7, r2\n"
    };
}

/// The limits of four rows' outputs in q4 and q5, of which the frame has room behind what the loop without them wants.
macro_rules! limits_of_four_rows {
    (up) => {
        ""
    };
    (enter away) => {
        "ldrd r4, r6, [r0, #{low}]\n strd r4, r6, [sp, #{least}]\n"
    };
    (enter up) => {
        ""
    };
    (away) => {
        "ldrd r0, r2, [sp, #{least}]\n vdup.8 q6, r0\n vdup.8 q7, r2\n vmax.s8 q4, q4, q6\n vmin.s8 q4, q4, q7\n vmax.s8 q5, q5, q6\n vmin.s8 q5, q5, q7\n"
    };
}

/// Two channels of four rows to 16-bit lanes of q6, a row each 32 bits: their weights are next, their numbers `$at` bytes into each part of the table.
macro_rules! two_channels_of_four_rows {
    ($at:literal $ties:tt) => {
        concat!(
            "vldrb.u8 q6, [r5], #16\n vldrb.u8 q7, [r5], #16\n",
            "vmladav.s8 r0, q0, q6\n vmladav.s8 r2, q1, q6\n vmladav.s8 r4, q2, q6\n vmladav.s8 r6, q3, q6\n",
            "vmladav.s8 r8, q0, q7\n vmladav.s8 r10, q1, q7\n vmladav.s8 r12, q2, q7\n vmladav.s8 lr, q3, q7\n",
            moved!("q6", "q7"),
            "ldrd r0, r2, [r7, #",
            $at,
            "]\n ldrd r4, r6, [r7, #{mantissas}+",
            $at,
            "]\n ldrd r8, r10, [r7, #{shifts}+",
            $at,
            "]\n",
            "vadd.i32 q6, q6, r0\n vadd.i32 q7, q7, r2\n vqrdmulh.s32 q6, q6, r4\n vqrdmulh.s32 q7, q7, r6\n",
            ties_of_four_rows!($ties),
            "vrshl.s32 q6, r8\n vrshl.s32 q7, r10\n vqmovnb.s32 q6, q6\n vqmovnt.s32 q6, q7\n vqadd.s16 q6, q6, r11\n",
        )
    };
}

/// Defines a loop over four rows of one block, whole groups of channels, outputs at multiples of four bytes, without shifts to the left. The rows stay in
/// registers, and their numbers are scalars. `pairs` counts fours. The frame is [`OfFour`].
macro_rules! four_rows {
    ($(#[$doc:meta])* $name:ident, $ties:tt, ($($arg:ident)*) ($($word:ident)*)) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Product) {
            naked!(Product { x, x_stride, pairs, weights, groups, out, out_stride, zero_point $(, $arg)* },
                OfFour { outputs, first_group, left, bytes, to_next $(, $word)* } => concat!(
                ".cpu cortex-m55\n push {{r4-r11, lr}}\n vpush {{d8-d15}}\n sub sp, #44\n",
                "ldr r9, [r0, #{x}]\n ldr r2, [r0, #{pairs}]\n ldr r5, [r0, #{weights}]\n strd r5, r2, [sp, #{first_group}]\n",
                "ldr r4, [r0, #{groups}]\n add r3, r5, r4, lsl #8\n ldr r1, [r0, #{out}]\n ldr r6, [r0, #{out_stride}]\n",
                "lsl r8, r6, #1\n add r10, r8, r6\n mov r2, #0\n strd r2, r6, [sp, #{outputs}]\n strd r8, r10, [sp, #{third_output}]\n",
                "lsl r6, r6, #2\n sub r6, r6, r4, lsl #3\n ldr r4, [r0, #{x_stride}]\n strd r4, r6, [sp, #{bytes}]\n ldr r11, [r0, #{zero_point}]\n",
                limits_of_four_rows!(enter $ties),
                "2: ldrd r5, r0, [sp, #{first_group}]\n subs r0, #1\n str r0, [sp, #{left}]\n ldr r4, [sp, #{bytes}]\n",
                "vldrb.u8 q0, [r9]\n add r9, r4\n vldrb.u8 q1, [r9]\n add r9, r4\n vldrb.u8 q2, [r9]\n add r9, r4\n vldrb.u8 q3, [r9]\n add r9, r4\n",
                // r1: outputs; r3: end of the weights; r5: weights; r7: table; r11: zero point.
                "3: add r7, r5, #128\n",
                two_channels_of_four_rows!("0" $ties),
                "vqmovnb.s16 q4, q6\n",
                two_channels_of_four_rows!("8" $ties),
                "vqmovnb.s16 q5, q6\n",
                two_channels_of_four_rows!("16" $ties),
                "vqmovnt.s16 q4, q6\n",
                two_channels_of_four_rows!("24" $ties),
                "vqmovnt.s16 q5, q6\n",
                limits_of_four_rows!($ties),
                "vldrw.u32 q6, [sp, #{outputs}]\n vstrw.32 q4, [r1, q6]\n add r1, #4\n vstrw.32 q5, [r1, q6]\n add r1, #4\n",
                "add r5, r7, #128\n cmp r5, r3\n bne.w 3b\n",
                "ldr r0, [sp, #{left}]\n ldr r2, [sp, #{to_next}]\n add r1, r2\n cmp r0, #0\n bne.w 2b\n",
                "add sp, #44\n vpop {{d8-d15}}\n pop {{r4-r11, pc}}\n",
            ); third_output = const core::mem::offset_of!(OfFour, outputs) + 8,
            // Of the table, whose parts have eight words: see `gemm`.
            mantissas = const 64, shifts = const 96)
        }
    };
}

four_rows! {
    /// 117 instructions for 32 outputs; see [`crate::kernels::mve::gemm_s8`] for when `fast` holds, which it has to.
    rows4_k16_fast, up, () ()
}
four_rows! {
    /// 148 instructions for 32 outputs, any zero point and limits.
    rows4_k16_right, away, (low) (least)
}

/// Blocks of one row by eights, as [`blocks_by_four`], after the first.
macro_rules! blocks_of_one_row {
    () => {
        concat!(
            block_of_one_row!("vmladav.s8"),
            "ldr pc, [sp, #{entry}]\n 5:\n",
            block_of_one_row!("vmladava.s8"),
            block_of_one_row!("vmladava.s8"),
            block_of_one_row!("vmladava.s8"),
            block_of_one_row!("vmladava.s8"),
            block_of_one_row!("vmladava.s8"),
            block_of_one_row!("vmladava.s8"),
            block_of_one_row!("vmladava.s8"),
            block_of_one_row!("vmladava.s8"),
            "subs r7, #1\n bne.w 5b\n 6:\n",
        )
    };
}

/// Frame words for [`blocks_of_one_row`]: rounds, and the first round's entry, which lies behind the loop where there is but one block.
macro_rules! enter_one_row {
    () => {
        concat!(
            "ldr r2, [sp, #{rounds}]\n adds r4, r2, #7\n lsr r4, r4, #3\n str r4, [sp, #{rounds}]\n",
            "adr.w r6, 6f\n cmp r2, #0\n beq 2f\n",
            "adr.w r6, 5f\n rsb r2, r2, #0\n and r2, r2, #7\n mov r4, #68\n mla r6, r2, r4, r6\n",
            "2: add r6, #1\n str r6, [sp, #{entry}]\n",
        )
    };
}

/// Blocks of one row and weights of four bits.
macro_rules! blocks_of_one_row_w4 {
    () => {
        blocks!(block_of_one_row_w4)
    };
}

/// Sums of a group of weights of four bits, times its factors, to the totals in q4 and q6, 16 times too large: 14 instructions.
macro_rules! end_of_group {
    () => {
        concat!(
            "sub.w r2, r2, r0, asr #4\n sub.w r6, r6, r4, asr #4\n sub.w r10, r10, r8, asr #4\n sub.w lr, lr, r12, asr #4\n",
            moved!("q1", "q2"),
            "vldrb.u32 q0, [r5], #4\n vldrb.u32 q3, [r5], #4\n vmul.i32 q1, q1, q0\n vmul.i32 q2, q2, q3\n",
            "vadd.i32 q4, q4, q1\n vadd.i32 q6, q6, q2\n",
        )
    };
}

/// Blocks of one row, each a group.
macro_rules! blocks_g16 {
    () => {
        concat!(
            "add r7, #1\n vmov.i32 q4, #0\n vmov.i32 q6, #0\n 5:\n",
            block_of_one_row_w4!("vmladav.s8"),
            end_of_group!(),
            "subs r7, #1\n bne.w 5b\n",
        )
    };
}

/// Blocks of one row, two a group; the last one may be alone.
macro_rules! blocks_g32 {
    () => {
        concat!(
            "add r7, #1\n vmov.i32 q4, #0\n vmov.i32 q6, #0\n 5:\n",
            block_of_one_row_w4!("vmladav.s8"),
            "subs r7, #1\n beq.w 6f\n",
            block_of_one_row_w4!("vmladava.s8"),
            "6:\n",
            end_of_group!(),
            "subs r7, #1\n bgt.w 5b\n",
        )
    };
}

/// Totals of groups, brought to their own size.
macro_rules! totals {
    (row) => {
        "vshr.s32 q4, q4, #4\n vshr.s32 q6, q6, #4\n"
    };
}

/// Defines a loop over one row.
macro_rules! one_row {
    (
        $(#[$doc:meta])* $name:ident, $enter:ident, $blocks:ident, $accumulators:ident, $half:literal, more: $more:literal ($($arg:ident)*) ($($word:ident)*),
        past: $past:literal, left: $left:expr, shift: $shift:expr, clamp: $clamp:expr
    ) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Product) {
            naked!(Product { x, x_stride, pairs, weights, groups, blocks_less_one, out, out_stride, zero_point, lanes, low $(, $arg)* },
                Frame { row, rounds, half_group, zero, first_group, two_rows, left, end, to_next, least $(, $word)* } => concat!(
                product_prologue!($half, $more), $enter!(),
                // r9: the row; r11, r5: weights of both halves of the group.
                "3: ldr r9, [sp, #{row}]\n ldrd r7, r0, [sp, #{rounds}]\n mov r11, r5\n add r5, r0\n",
                $blocks!(), $accumulators!(row),
                with_table!("vadd.i32", "q4"), with_table!($past "vadd.i32", "q6"),
                $left,
                with_table!("vqrdmulh.s32", "q4"), with_table!("vqrdmulh.s32", "q6"),
                $shift,
                "ldr r0, [sp, #{zero}]\n vqmovnb.s32 q4, q4\n vqmovnt.s32 q4, q6\n vqadd.s16 q4, q4, r0\n",
                $clamp,
                "vpst\n vstrbt.16 q4, [r1], #8\n",
                "ldr r0, [sp, #{end}]\n cmp r5, r0\n bne.w 3b\n",
                product_epilogue!(),
            ))
        }
    };
}

/// The forms of a loop over one row.
macro_rules! one_row_of {
    ($($fast:ident, $general:ident, $enter:ident, $blocks:ident, $accumulators:ident, $half:literal, $more:literal $args:tt $words:tt, $doc:literal;)*) => {$(
        one_row! {
            #[doc = $doc]
            #[doc = ""]
            #[doc = "See [`crate::kernels::mve::gemm_s8`] for when `fast` holds."]
            $fast, $enter, $blocks, $accumulators, $half, more: $more $args $words,
            past: "48",
            left: "",
            shift: concat!(shift_ties_up!("q4"), shift_ties_up!("q6")),
            clamp: "vqmovnb.s16 q4, q4\n"
        }
        one_row! {
            #[doc = $doc]
            $general, $enter, $blocks, $accumulators, $half, more: $more $args $words,
            past: "16",
            left: concat!(with_table!("vshl.s32", "q4"), with_table!("vshl.s32", "q6")),
            shift: concat!(shift_ties_away!("q4"), shift_ties_away!("q6")),
            clamp: clamp_to_limits!("q4")
        }
    )*};
}
one_row_of! {
    rows1_fast, rows1_general, enter_one_row, blocks_of_one_row, accumulators, "6", "" () (entry), "One row.";
    rows1_w4_fast, rows1_w4_general, enter, blocks_of_one_row_w4, accumulators_w4, "5", "" () (), "One row, weights of four bits.";
    rows1_g16_fast, rows1_g16_general, enter, blocks_g16, totals, "5", "ldr r3, [r0, #{factors}]\n add r1, r3\n " (factors) (),
        "One row, a factor for each block.";
    rows1_g32_fast, rows1_g32_general, enter, blocks_g32, totals, "5", "ldr r3, [r0, #{factors}]\n add r1, r3\n " (factors) (),
        "One row, a factor for two blocks.";
}

/// A block of half a group of channels (`$src`) to int8 weights (`$dst`), by the factors in r8 to r11: 18 instructions for 64.
macro_rules! widened_block {
    ($src:literal, $dst:literal) => {
        concat!(
            "vldrb.u8 q0, [",
            $src,
            "], #16\n vldrb.u8 q3, [",
            $src,
            "], #16\n",
            "vshl.i8 q1, q0, #4\n vshr.s8 q1, q1, #4\n vsub.i8 q2, q0, q1\n vshr.s8 q2, q2, #4\n",
            "vmul.i8 q1, q1, r8\n vmul.i8 q2, q2, r9\n vstrb.8 q1, [",
            $dst,
            "], #16\n vstrb.8 q2, [",
            $dst,
            "], #16\n",
            "vshl.i8 q1, q3, #4\n vshr.s8 q1, q1, #4\n vsub.i8 q2, q3, q1\n vshr.s8 q2, q2, #4\n",
            "vmul.i8 q1, q1, r10\n vmul.i8 q2, q2, r11\n vstrb.8 q1, [",
            $dst,
            "], #16\n vstrb.8 q2, [",
            $dst,
            "], #16\n",
        )
    };
}

/// The factors of half a group of channels, bytes at r12.
macro_rules! four_factors {
    ($a:literal $b:literal $c:literal $d:literal) => {
        concat!(
            "ldrb r8, [r12, #",
            $a,
            "]\n ldrb r9, [r12, #",
            $b,
            "]\n ldrb r10, [r12, #",
            $c,
            "]\n ldrb r11, [r12, #",
            $d,
            "]\n",
        )
    };
}

/// Weights of four bits and factors of eight channels to int8 weights, and the tables as they are.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn widen_groups(args: *const Widen) {
    naked!(Widen { src, dst, blocks, of_group } => concat!(
        ".cpu cortex-m55\n push {{r4-r11, lr}}\n",
        // r1, r2: even and odd channels; r3, r4: theirs of eight bits; r5: blocks left; r6: those of a group; r7: of them left; r12: factors.
        "ldr r1, [r0, #{src}]\n ldr r3, [r0, #{dst}]\n ldr r5, [r0, #{blocks}]\n ldr lr, [r0, #{of_group}]\n",
        "add r2, r1, r5, lsl #5\n add r4, r3, r5, lsl #6\n",
        "1: mov r6, lr\n cmp r5, lr\n it lo\n movlo r6, r5\n sub r5, r5, r6\n add r12, r2, r6, lsl #5\n",
        four_factors!("0" "1" "2" "3"),
        "mov r7, r6\n",
        "2:\n",
        widened_block!("r1", "r3"),
        "subs r7, #1\n bne.w 2b\n",
        four_factors!("4" "5" "6" "7"),
        "3:\n",
        widened_block!("r2", "r4"),
        "subs r6, #1\n bne.w 3b\n",
        "add r2, #8\n cmp r5, #0\n bne.w 1b\n",
        "mov r5, #4\n",
        "4: vldrb.u8 q0, [r2], #16\n vldrb.u8 q1, [r2], #16\n vstrb.8 q0, [r4], #16\n vstrb.8 q1, [r4], #16\n subs r5, #1\n bne 4b\n",
        "pop {{r4-r11, pc}}\n",
    ))
}
