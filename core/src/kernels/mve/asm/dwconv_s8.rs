//! Depthwise convolution of interleaved rows; see [`crate::kernels::mve::dwconv_s8`] for the arrangement.

use super::super::args::{Depthwise, Interleave, LastColumn, RowSet};

consecutive!(Interleave: count, vectors, lanes, offset);
const _: () = assert!(core::mem::offset_of!(RowSet, steps) == core::mem::offset_of!(RowSet, rows) + 16);
consecutive!(Depthwise: weights, lower_weights, table, x, out, channels, sets, units, x_step, out_step, x_skip, out_skip, zero_point, rest);
consecutive!(Depthwise: rest, columns, outputs, low, high);
consecutive!(LastColumn: x, out, set, last, again, again_x, again_out);

frame!(
    /// The frame of a depthwise convolution: its arguments up to the rest; a shift's left part, and whether it goes right; limits, the last column.
    Frame {
        weights, lower_weights, table, x, out, channels, sets, units, x_step, out_step, x_skip, out_skip, zero_point, rest,
        left, goes_right, least, greatest, last_column
    }
);
consecutive!(Frame: weights, lower_weights, table, x, out, channels, sets, units, x_step, out_step, x_skip, out_skip, zero_point, rest);
consecutive!(Frame: left, goes_right, least, greatest);

/// Four vectors, one of each row of a set, stored byte by byte in turn: 14 instructions for 64 bytes.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn interleave(args: *const Interleave) {
    naked!(Interleave { sets, dst, count, lanes, dst_skip } =>
        ".cpu cortex-m55",
        "push {{r4-r11, lr}}",
        "ldr r12, [r0, #{sets}]",
        "ldrd r11, r9, [r0, #{count}]", // vectors
        "ldrd r1, r10, [r0, #{lanes}]", // offset
        "vctp.8 r1",
        "ldr r1, [r0, #{dst_skip}]",
        "push {{r1}}",
        "ldr r0, [r0, #{dst}]",
        // r1 to r4: rows; r5 to r8: their steps.
        "2: ldm r12!, {{r1-r8}}",
        "add r1, r10",
        "add r2, r10",
        "add r3, r10",
        "add r4, r10",
        "dls lr, r9",
        "3: vpstttt",
        "vldrbt.u8 q0, [r1]",
        "vldrbt.u8 q1, [r2]",
        "vldrbt.u8 q2, [r3]",
        "vldrbt.u8 q3, [r4]",
        "vst40.8 {{q0, q1, q2, q3}}, [r0]",
        "vst41.8 {{q0, q1, q2, q3}}, [r0]",
        "vst42.8 {{q0, q1, q2, q3}}, [r0]",
        "vst43.8 {{q0, q1, q2, q3}}, [r0]!",
        "add r1, r5",
        "add r2, r6",
        "add r3, r7",
        "add r4, r8",
        "le lr, 3b",
        "ldr r1, [sp]",
        "add r0, r1",
        "subs r11, #1",
        "bne 2b",
        "add sp, #4",
        "pop {{r4-r11, pc}}",
    )
}

/// Reads `Depthwise` to a [`Frame`]; leaves r0 at its columns.
macro_rules! prologue {
    () => {
        concat!(
            ".cpu cortex-m55\n push {{r4-r11, lr}}\n vpush {{d8-d15}}\n sub sp, #76\n",
            "ldm r0!, {{r1-r6}}\n stm sp, {{r1-r6}}\n",
            "ldm r0!, {{r1-r8}}\n add r12, sp, #{sets}\n stm r12, {{r1-r8}}\n",
            "mov r10, r3\n mov r11, r4\n mov r9, r7\n",
            "ldrd r1, r2, [r0]\n vldrw.u32 q1, [r1]\n vldrw.u32 q7, [r2]\n",
            "ldrd r1, r2, [r0, #{low}-{columns}]\n strd r1, r2, [sp, #{least}]\n",
        )
    };
}

/// From weights to those of a window one column on: a column of a set has a byte of each of its four rows.
const COLUMN_BEFORE: i32 = -4;

/// A channel's bias, mantissa and shift to r5, r7, r8; x and out to r1, r3; sets to r12.
macro_rules! channel {
    ($shift:expr) => {
        concat!(
            "ldr r4, [sp, #{table}]\n ldm r4!, {{r5, r7, r8}}\n str r4, [sp, #{table}]\n",
            $shift,
            "ldrd r1, r3, [sp, #{x}]\n add r0, r1, #4\n add r2, r3, #1\n strd r0, r2, [sp, #{x}]\n",
            "ldr r12, [sp, #{sets}]\n",
        )
    };
}

/// After the last unit of a set: the next set, what comes after all sets, the next channel.
macro_rules! next {
    () => {
        next!("")
    };
    ($after:expr) => {
        concat!(
            "6: ldrd r0, r2, [sp, #{x_skip}]\n add r1, r0\n add r3, r2\n subs r12, #1\n bne 3b\n",
            $after,
            "ldr r0, [sp, #{channels}]\n subs r0, #1\n str r0, [sp, #{channels}]\n bne.w 2b\n",
            "add sp, #76\n vpop {{d8-d15}}\n pop {{r4-r11, pc}}\n",
        )
    };
}

/// Left and right part of a channel's shift, and whether it goes right at all.
macro_rules! split_shift {
    () => {
        "bic r0, r8, r8, asr #31\n and r8, r8, r8, asr #31\n lsr r2, r8, #31\n strd r0, r2, [sp, #{left}]\n"
    };
}

/// q6 to outputs: 6 instructions for four. Fast: no limits, ties up.
macro_rules! requantize_fast {
    () => {
        concat!(
            "vadd.i32 q6, q6, r5\n vqrdmulh.s32 q6, q6, r7\n vrshl.s32 q6, r8\n",
            "vqmovnb.s32 q6, q6\n vqadd.s16 q6, q6, r9\n vqmovnb.s16 q6, q6\n",
        )
    };
}
macro_rules! requantize_general {
    () => {
        concat!(
            "vadd.i32 q6, q6, r5\n ldrd r0, r2, [sp, #{left}]\n vshl.s32 q6, r0\n vqrdmulh.s32 q6, q6, r7\n",
            // Ties away from zero: one less where negative and shifted right.
            "vshr.s32 q0, q6, #31\n vmla.s32 q6, q0, r2\n vrshl.s32 q6, r8\n",
            "vqmovnb.s32 q6, q6\n vqadd.s16 q6, q6, r9\n",
            "ldrd r0, r2, [sp, #{least}]\n vdup.16 q0, r0\n vmax.s16 q6, q6, q0\n vdup.16 q0, r2\n vmin.s16 q6, q6, q0\n",
        )
    };
}

/// Defines the loop of 2 x 2 outputs a gather: 17 (fast) instructions for four outputs of up to 9 taps.
macro_rules! two_by_two {
    ($(#[$doc:meta])* $name:ident, $shift:expr, $requantize:ident ($($word:ident)*)) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Depthwise) {
            naked!(Depthwise { columns, low }, Frame { weights, table, x, channels, sets, units, x_skip, least, rest $(, $word)* } => concat!(
                prologue!(),
                // The channel's weights against the window, one column on, one row on, both on.
                "2: ldrd r0, r2, [sp, #{weights}]\n vldrb.u8 q3, [r0, #{column_before}]\n vldrb.u8 q2, [r0], #16\n",
                "vldrb.u8 q5, [r2, #{column_before}]\n vldrb.u8 q4, [r2], #16\n strd r0, r2, [sp, #{weights}]\n",
                channel!($shift),
                "3: ldr lr, [sp, #{units}]\n wls lr, lr, 5f\n",
                "4: vldrw.u32 q0, [r1, q1]\n add r1, r10\n",
                "vmladav.s8 r0, q0, q2\n vmladav.s8 r2, q0, q3\n vmladav.s8 r4, q0, q4\n vmladav.s8 r6, q0, q5\n",
                "vmov q6[2], q6[0], r0, r2\n vmov q6[3], q6[1], r4, r6\n",
                $requantize!(),
                "vstrb.32 q6, [r3, q7]\n add r3, r11\n le lr, 4b\n",
                // An odd last column: two outputs.
                "5: ldr r0, [sp, #{rest}]\n cmp r0, #0\n beq.w 6f\n vctp.32 r0\n",
                "vldrw.u32 q0, [r1, q1]\n vmladav.s8 r0, q0, q2\n vmladav.s8 r4, q0, q4\n",
                "vmov q6[2], q6[0], r0, r0\n vmov q6[3], q6[1], r4, r4\n",
                $requantize!(),
                "vpst\n vstrbt.32 q6, [r3, q7]\n",
                next!(),
            ); column_before = const COLUMN_BEFORE)
        }
    };
}

two_by_two! {
    /// Windows of at most 3 x 3 at stride 1; see [`crate::kernels::mve::dwconv_s8`] for when `fast` holds.
    depthwise_2x2_fast, "", requantize_fast ()
}
two_by_two! {
    /// Windows of at most 3 x 3 at stride 1.
    depthwise_2x2_general, split_shift!(), requantize_general (left)
}

/// Four windows of a row to this vector, one a gather.
macro_rules! four_windows {
    ($q:literal) => {
        concat!(
            "vldrw.u32 q0, [r1, q1]\n vmladav.s8 r0, q0, q2\n vldrw.u32 q0, [r1, q3]\n vmladav.s8 r2, q0, q2\n",
            "vldrw.u32 q0, [r1, q4]\n vmladav.s8 r4, q0, q2\n vldrw.u32 q0, [r1, q5]\n vmladav.s8 r6, q0, q2\n",
            "vmov ",
            $q,
            "[2], ",
            $q,
            "[0], r0, r4\n vmov ",
            $q,
            "[3], ",
            $q,
            "[1], r2, r6\n",
        )
    };
}

/// Defines the loop of one output a gather: 20 (fast) instructions for four outputs of up to 16 taps.
macro_rules! one_by_one {
    ($(#[$doc:meta])* $name:ident, $shift:expr, $requantize:ident ($($word:ident)*)) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Depthwise) {
            naked!(Depthwise { columns, low }, Frame { weights, table, x, channels, sets, units, x_skip, least, rest $(, $word)* } => concat!(
                prologue!(),
                // Offsets of four windows; x then moves on by four.
                "vadd.i32 q3, q1, r10\n vadd.i32 q4, q3, r10\n vadd.i32 q5, q4, r10\n lsl r10, #2\n",
                "2: ldr r0, [sp, #{weights}]\n vldrb.u8 q2, [r0], #16\n str r0, [sp, #{weights}]\n",
                channel!($shift),
                "3: ldr lr, [sp, #{units}]\n wls lr, lr, 5f\n",
                "4:\n", four_windows!("q6"), $requantize!(),
                "vstrb.32 q6, [r3, q7]\n add r1, r10\n add r3, r11\n le lr, 4b\n",
                // The last one to three outputs.
                "5: ldr r0, [sp, #{rest}]\n cmp r0, #0\n beq.w 6f\n vctp.32 r0\n",
                four_windows!("q6"), $requantize!(),
                "vpst\n vstrbt.32 q6, [r3, q7]\n",
                next!(),
            ))
        }
    };
}

one_by_one! {
    /// Windows of at most 4 x 4 at any stride; see [`crate::kernels::mve::dwconv_s8`] for when `fast` holds.
    depthwise_1x1_fast, "", requantize_fast ()
}
one_by_one! {
    /// Windows of at most 4 x 4 at any stride.
    depthwise_1x1_general, split_shift!(), requantize_general (left)
}

/// Four sums in q6 and four in q0 to the 16-bit lanes of q6, in turn, and to outputs: 10 instructions for eight. No limits, ties up.
macro_rules! requantize_eight {
    () => {
        concat!(
            "vadd.i32 q6, q6, r5\n vadd.i32 q0, q0, r5\n vqrdmulh.s32 q6, q6, r7\n vqrdmulh.s32 q0, q0, r7\n",
            "vrshl.s32 q6, r8\n vrshl.s32 q0, r8\n vqmovnb.s32 q6, q6\n vqmovnt.s32 q6, q0\n vqadd.s16 q6, q6, r9\n vqmovnb.s16 q6, q6\n",
        )
    };
}

/// One column of a set's two rows to these registers; the next set is as far as `$step` says.
macro_rules! column_of_set {
    ($upper:literal, $lower:literal, $step:literal) => {
        concat!(
            "vldrw.u32 q0, [r1, q1]\n",
            $step,
            "vmladav.s8 ",
            $upper,
            ", q0, q2\n vmladav.s8 ",
            $lower,
            ", q0, q4\n",
        )
    };
}

/// The last column of all sets, four at a time, by [`LastColumn`](super::super::args::LastColumn): 35 instructions for eight outputs.
macro_rules! last_column {
    () => {
        concat!(
            "ldr lr, [sp, #{last_column}]\n ldrd r1, r3, [sp, #{x}]\n ldm lr!, {{r0, r2, r10, r11, r12}}\n add r1, r0\n add r3, r2\n",
            "vldrw.u32 q5, [lr, #{outputs}-{again_x}]\n",
            "7:\n",
            column_of_set!("r0", "r2", "add r1, r10\n"),
            column_of_set!("r4", "r6", "add r1, r10\n"),
            "vmov q6[2], q6[0], r0, r4\n vmov q3[2], q3[0], r2, r6\n",
            column_of_set!("r0", "r2", "add r1, r11\n"),
            column_of_set!("r4", "r6", ""),
            "vmov q6[3], q6[1], r0, r4\n vmov q3[3], q3[1], r2, r6\n vmov q0, q3\n",
            requantize_eight!(),
            "vstrb.16 q6, [r3, q5]\n",
            "cmp r12, #0\n beq 8f\n mov r12, #0\n ldrd r0, r2, [lr]\n add r1, r0\n add r3, r2\n b 7b\n",
            "8: ldrd r10, r11, [sp, #{x_step}]\n", // out_step
        )
    };
}

/// Two columns of two rows to this vector.
macro_rules! unit {
    ($q:literal) => {
        concat!(
            "vldrw.u32 q0, [r1, q1]\n vmladav.s8 r0, q0, q2\n vmladav.s8 r2, q0, q3\n vmladav.s8 r4, q0, q4\n vmladav.s8 r6, q0, q5\n",
            "vmov ", $q, "[2], ", $q, "[0], r0, r2\n vmov ", $q, "[3], ", $q, "[1], r4, r6\n",
        )
    };
}

/// Rest of a set by `rest`: lanes of the second four (`$eight`), one column alone (`$one`), or lanes of the first four (`$four`).
macro_rules! rest_of_eight {
    ($four:expr, $one:expr, $eight:expr) => {
        concat!(
            "5: ldr r0, [sp, #{rest}]\n lsls r2, r0, #1\n beq.w 6f\n vmsr p0, r0\n",
            $one,
            "bcs 7f\n",
            $four,
            requantize_fast!(),
            "b 9f\n",
            "7:\n",
            $eight,
            requantize_eight!(),
            "9: vpst\n vstrbt.16 q6, [r3, q7]\n",
        )
    };
}

/// Defines the loop of four columns of two rows: 29 instructions for eight outputs of up to 9 taps.
macro_rules! two_by_two_by_eight {
    (
        $(#[$doc:meta])* $name:ident, ($($arg:ident)*) ($($word:ident)*) ($($last:tt)*), $enter:expr, $rest:expr, $after:expr
    ) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Depthwise) {
            naked!(Depthwise { columns, low $(, $arg)* }, Frame { weights, table, x, channels, sets, units, x_skip, least $(, $word)* } $($last)* => concat!(
                prologue!(), $enter,
                // The channel's weights against the window, one column on, one row on, both on.
                "2: ldrd r0, r2, [sp, #{weights}]\n vldrb.u8 q3, [r0, #{column_before}]\n vldrb.u8 q2, [r0], #16\n",
                "vldrb.u8 q5, [r2, #{column_before}]\n vldrb.u8 q4, [r2], #16\n strd r0, r2, [sp, #{weights}]\n",
                channel!(""),
                "3: ldr lr, [sp, #{units}]\n wls lr, lr, 5f\n",
                "4:\n", unit!("q6"), "add r1, r10\n", unit!("q0"), "add r1, r10\n", requantize_eight!(),
                "vstrb.16 q6, [r3, q7]\n add r3, r11\n le lr, 4b\n",
                $rest,
                next!($after),
            ); column_before = const COLUMN_BEFORE)
        }
    };
}

two_by_two_by_eight! {
    /// Windows of at most 3 x 3 at stride 1, four columns of two rows at a time. Where `fast` holds.
    depthwise_2x2_by_eight, () (rest) (),
    "",
    rest_of_eight!(
        unit!("q6"),
        concat!(
            "bpl 8f\n",
            "vldrw.u32 q0, [r1, q1]\n vmladav.s8 r0, q0, q2\n vmladav.s8 r4, q0, q4\n",
            "vmov q6[2], q6[0], r0, r0\n vmov q6[3], q6[1], r4, r4\n",
            requantize_fast!(),
            "b 9f\n 8:\n",
        ),
        concat!(unit!("q6"), "add r1, r10\n", unit!("q0"), "sub r1, r10\n")
    ),
    ""
}
two_by_two_by_eight! {
    /// The same where one column is left, of at least three sets of rows.
    depthwise_2x2_by_eight_and_one, (column) (x_step last_column) (, LastColumn { outputs, again_x }),
    "ldr r0, [r0, #{column}-{columns}]\n str r0, [sp, #{last_column}]\n",
    "5:\n",
    last_column!()
}

/// Windows of at most 4 x 4 at any stride, eight of a row at a time: 35 instructions for eight outputs of up to 16 taps. Where `fast` holds.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn depthwise_1x1_by_eight(args: *const Depthwise) {
    naked!(Depthwise { columns, low }, Frame { weights, table, x, channels, sets, units, x_skip, least, rest } => concat!(
        prologue!(),
        // Offsets of four windows; x then moves on by four.
        "vadd.i32 q3, q1, r10\n vadd.i32 q4, q3, r10\n vadd.i32 q5, q4, r10\n lsl r10, #2\n",
        "2: ldr r0, [sp, #{weights}]\n vldrb.u8 q2, [r0], #16\n str r0, [sp, #{weights}]\n",
        channel!(""),
        "3: ldr lr, [sp, #{units}]\n wls lr, lr, 5f\n",
        "4:\n",
        four_windows!("q6"),
        "add r1, r10\n",
        four_windows!("q0"),
        "add r1, r10\n",
        requantize_eight!(),
        "vstrb.16 q6, [r3, q7]\n add r3, r11\n le lr, 4b\n",
        rest_of_eight!(
            four_windows!("q6"),
            "",
            concat!(
                four_windows!("q6"),
                "add r1, r10\n",
                four_windows!("q0"),
                "sub r1, r10\n"
            )
        ),
        next!(),
    ))
}
