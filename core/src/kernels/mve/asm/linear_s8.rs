//! Rows of activations times packed weights whose channels are requantised alike; see [`crate::kernels::mve::linear_s8`].

use super::super::args::Alike;

consecutive!(Alike: out, x, groups, blocks, weights, zero_point, factor);
consecutive!(Alike: low, high);
const _: () = assert!(core::mem::offset_of!(Alike, low) == core::mem::offset_of!(Alike, factor) + 8);

frame!(
    /// The frame of eight channels at a time. `end` has the last biases; `rounds` are of four blocks; `group` is where a group's first block is.
    Frame { zero_point, mantissa, shift, low, high, end, rounds, row, group }
);

/// Sixteen weights of each of eight channels (r11, r5) times this vector of the row: 16 instructions of four bytes.
macro_rules! eight_channels {
    ($x:literal) => {
        concat!(
            "vldrb.u8 q6, [r11], #16\n vldrb.u8 q7, [r11], #16\n",
            "vmladava.s8 r0, ",
            $x,
            ", q6\n vldrb.u8 q6, [r11], #16\n",
            "vmladava.s8 r2, ",
            $x,
            ", q7\n vldrb.u8 q7, [r11], #16\n",
            "vmladava.s8 r4, ",
            $x,
            ", q6\n vldrb.u8 q6, [r5], #16\n",
            "vmladava.s8 r6, ",
            $x,
            ", q7\n vldrb.u8 q7, [r5], #16\n",
            "vmladava.s8 r8, ",
            $x,
            ", q6\n vldrb.u8 q6, [r5], #16\n",
            "vmladava.s8 r10, ",
            $x,
            ", q7\n vldrb.u8 q7, [r5], #16\n",
            "vmladava.s8 r12, ",
            $x,
            ", q6\n vmladava.s8 lr, ",
            $x,
            ", q7\n",
        )
    };
}

/// The next vector of the row (r9), which does not stay in a register: 17 instructions.
macro_rules! block {
    () => {
        concat!("vldrb.u8 q5, [r9], #16\n", eight_channels!("q5"))
    };
}

/// Defines a loop over eight channels at a time, which share a factor: 16 instructions for a block, one more for those before the last five, whose part of the
/// row stays in q0 to q4, and 19 besides (fast) for 8 outputs. Biases are where the sums start.
macro_rules! one_row_alike {
    ($(#[$doc:meta])* $name:ident, away: $away:expr, clamp: $clamp:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Alike) {
            naked!(Frame { rounds, row, group } => concat!(
                ".cpu cortex-m55\n push {{r4-r11, lr}}\n vpush {{d8-d15}}\n sub sp, #36\n",
                // r1: outputs; r2: the row; r3: half a group, after its number of groups; r4: blocks; r5: weights.
                "ldm r0, {{r1-r10}}\n lsl r11, r4, #6\n lsl r0, r11, #1\n add r0, #32\n mla r12, r0, r3, r5\n",
                "sub r12, #32\n sub r5, #32\n mov r3, r11\n stm sp, {{r6-r10, r12}}\n",
                // Thumb addresses are odd.
                "mov r9, r2\n adr.w r8, 1f\n add r8, #1\n subs r6, r4, #5\n bgt 2f\n",
                // Fewer blocks than registers: the last registers have them.
                "rsb r6, r6, #0\n add r8, r8, r6, lsl #2\n adr.w r7, 7f\n add r7, r7, r6, lsl #6\n b 3f\n",
                // More: as many in front as are too many, in rounds of four, of which the first one may be short.
                "2: add r4, r6, #3\n lsr r4, r4, #2\n str r4, [sp, #{rounds}]\n rsb r4, r6, r4, lsl #2\n add r9, r9, r6, lsl #4\n",
                "adr.w r7, 5f\n mov r6, #68\n mla r7, r4, r6, r7\n",
                "3: add r7, #1\n str r2, [sp, #{row}]\n str r7, [sp, #{group}]\n bx r8\n",
                "1: vldrb.u8 q0, [r9], #16\n vldrb.u8 q1, [r9], #16\n vldrb.u8 q2, [r9], #16\n vldrb.u8 q3, [r9], #16\n vldrb.u8 q4, [r9], #16\n",
                // r11, r5: weights of both halves of the group, behind which the biases are.
                "4: add.w r11, r5, #32\n add.w r5, r11, r3\n add.w r0, r5, r3\n ldm r0, {{r0, r2, r4, r6, r8, r10, r12, lr}}\n",
                "ldrd r7, r9, [sp, #{rounds}]\n ldr pc, [sp, #{group}]\n",
                "5:\n", block!(), block!(), block!(), block!(), "subs r7, #1\n bne.w 5b\n",
                "7:\n", eight_channels!("q0"), eight_channels!("q1"), eight_channels!("q2"), eight_channels!("q3"), eight_channels!("q4"),
                "vmov q6[2], q6[0], r0, r4\n vmov q6[3], q6[1], r2, r6\n vmov q7[2], q7[0], r8, r12\n vmov q7[3], q7[1], r10, lr\n",
                "ldm sp, {{r0, r2, r4, r6, r8, r10}}\n",
                "vqrdmulh.s32 q6, q6, r2\n vqrdmulh.s32 q7, q7, r2\n",
                $away,
                "vrshl.s32 q6, r4\n vrshl.s32 q7, r4\n",
                "vqmovnb.s32 q6, q6\n vqmovnt.s32 q6, q7\n vqadd.s16 q6, q6, r0\n",
                $clamp,
                "vstrb.16 q6, [r1], #8\n cmp r5, r10\n bne.w 4b\n",
                "add sp, #36\n vpop {{d8-d15}}\n pop {{r4-r11, pc}}\n",
            ))
        }
    };
}

/// One is taken from what is negative and shifted at all.
macro_rules! ties_away {
    () => {
        "lsr r7, r4, #31\n vshr.s32 q5, q6, #31\n vmla.s32 q6, q5, r7\n vshr.s32 q5, q7, #31\n vmla.s32 q7, q5, r7\n"
    };
}

one_row_alike! {
    /// One row, channels alike. See [`crate::kernels::mve::gemm_s8`] for when `fast` holds.
    rows1_alike_fast,
    away: "",
    clamp: "vqmovnb.s16 q6, q6\n"
}
one_row_alike! {
    /// One row, channels alike, limits of the type.
    rows1_alike_unlimited,
    away: ties_away!(),
    clamp: "vqmovnb.s16 q6, q6\n"
}
one_row_alike! {
    /// One row, channels alike.
    rows1_alike_general,
    away: ties_away!(),
    clamp: "vdup.16 q5, r6\n vmax.s16 q6, q6, q5\n vdup.16 q5, r8\n vmin.s16 q6, q6, q5\n"
}

/// One row, half a group of channels alike, of which `groups` are written: 10 instructions for a block, 27 besides for at most four outputs.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn rows1_four(args: *const Alike) {
    naked!(concat!(
        ".cpu cortex-m55\n push {{r4-r8, r10, r11, lr}}\n vpush {{d8-d9}}\n",
        // r1: outputs; r2: the row; r3: channels; r4: blocks; r5: weights, behind which the biases are, where the sums start.
        "ldm r0!, {{r1-r5}}\n add r7, r5, r4, lsl #6\n ldm r7, {{r6, r8, r10, r12}}\n dls lr, r4\n",
        "1: vldrb.u8 q0, [r2], #16\n vldrb.u8 q1, [r5], #16\n vldrb.u8 q2, [r5], #16\n",
        "vmladava.s8 r6, q0, q1\n vldrb.u8 q1, [r5], #16\n vmladava.s8 r8, q0, q2\n vldrb.u8 q2, [r5], #16\n",
        "vmladava.s8 r10, q0, q1\n vmladava.s8 r12, q0, q2\n le lr, 1b\n",
        "vmov q4[2], q4[0], r6, r10\n vmov q4[3], q4[1], r8, r12\n",
        // r4: the zero point; r5: mantissa; r6: shift; r7, r8: limits.
        "ldm r0, {{r4-r8}}\n vqrdmulh.s32 q4, q4, r5\n",
        "lsr r5, r6, #31\n vshr.s32 q0, q4, #31\n vmla.s32 q4, q0, r5\n vrshl.s32 q4, r6\n",
        "vqmovnb.s32 q4, q4\n vqadd.s16 q4, q4, r4\n",
        "vdup.16 q0, r7\n vdup.16 q1, r8\n vmax.s16 q4, q4, q0\n vmin.s16 q4, q4, q1\n",
        "vctp.32 r3\n vpst\n vstrbt.32 q4, [r1]\n",
        "vpop {{d8-d9}}\n pop {{r4-r8, r10, r11, pc}}\n",
    ))
}
