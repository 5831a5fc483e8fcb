//! Depthwise convolutions of any windows, a pixel at a time.

use super::super::args::Taps;

consecutive!(Taps: entries, pairs);
consecutive!(Taps: out, pixels);
consecutive!(Taps: low, high);

/// Products of sixteen channels in q6 (even ones) and q7, which are spent, to the sums q0 to q3.
macro_rules! widen {
    () => {
        concat!(
            "vmovlb.s16 q4, q6\n vadd.i32 q0, q0, q4\n vmovlt.s16 q6, q6\n vadd.i32 q1, q1, q6\n",
            "vmovlb.s16 q4, q7\n vadd.i32 q2, q2, q4\n vmovlt.s16 q7, q7\n vadd.i32 q3, q3, q7\n",
        )
    };
}

/// Vectors of biases, as many bytes from r3.
macro_rules! biases {
    ($($q:literal $at:literal),+) => { concat!($("vldrw.u32 ", $q, ", [r3, #", $at, "]\n"),+) };
}

/// A sum's shift left, mantissa and shift right at r3, a vector each. Fast: no shift left, ties up.
macro_rules! scale_fast {
    ($sum:literal $at:literal) => {
        concat!(
            "vldrw.u32 q4, [r3, #",
            $at,
            "+{mantissas}]\n vqrdmulh.s32 ",
            $sum,
            ", ",
            $sum,
            ", q4\n",
            "vldrw.u32 q5, [r3, #",
            $at,
            "+{rights}]\n vrshl.s32 ",
            $sum,
            ", ",
            $sum,
            ", q5\n",
        )
    };
}
macro_rules! scale_general {
    ($sum:literal $at:literal) => {
        concat!(
            "vldrw.u32 q4, [r3, #",
            $at,
            "]\n vshl.s32 ",
            $sum,
            ", ",
            $sum,
            ", q4\n",
            "vldrw.u32 q4, [r3, #",
            $at,
            "+{mantissas}]\n vqrdmulh.s32 ",
            $sum,
            ", ",
            $sum,
            ", q4\n",
            "vldrw.u32 q5, [r3, #",
            $at,
            "+{rights}]\n",
            // Ties away from zero: one less where negative and shifted right.
            "vand q4, ",
            $sum,
            ", q5\n vshr.s32 q4, q4, #31\n vadd.i32 ",
            $sum,
            ", ",
            $sum,
            ", q4\n",
            "vrshl.s32 ",
            $sum,
            ", ",
            $sum,
            ", q5\n",
        )
    };
}

macro_rules! limits_fast {
    () => {
        ""
    };
}
macro_rules! limits_general {
    () => {
        "ldrd r4, r5, [r0, #{low}]\n vdup.8 q4, r4\n vdup.8 q5, r5\n vmax.s8 q0, q0, q4\n vmin.s8 q0, q0, q5\n"
    };
}

/// Defines the loop over blocks of sixteen channels: 25 instructions for two taps of a block, 41 (fast) or 66 for the rest of it.
///
/// r0 the arguments, r1 the table of taps, r2 bytes from its addresses to the pixel's, r3 the weights, which are walked through, r4 and r5 addresses, r6 the
/// outputs, r7 channels that are left, r8 bytes to the block's, r9 pixels, r10 pairs of taps, r11 the table's start, r12 the zero point.
macro_rules! taps {
    ($(#[$doc:meta])* $name:ident, $scale:ident, $limits:ident ($($limit:ident)*)) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(args: *const Taps) {
            naked!(Taps { entries, odd, weights, out, step, channels, zero_point $(, $limit)* } => concat!(
                ".cpu cortex-m55\n push {{r4-r11, lr}}\n vpush {{d8-d15}}\n",
                "ldrd r11, r10, [r0, #{entries}]\n ldrd r6, r9, [r0, #{out}]\n ldr r12, [r0, #{zero_point}]\n mov r2, #0\n",
                "1: ldr r3, [r0, #{weights}]\n ldr r7, [r0, #{channels}]\n mov r8, r2\n",
                "2: vctp.8 r7\n",
                biases!("q0" "0", "q1" "16", "q2" "32", "q3" "48"), "add r3, #64\n",
                "mov r1, r11\n wls lr, r10, 4f\n",
                "3: ldrd r4, r5, [r1], #8\n add r4, r8\n add r5, r8\n",
                "vpstt\n vldrbt.u8 q4, [r4]\n vldrbt.u8 q5, [r3], #16\n",
                "vmullb.s8 q6, q4, q5\n vmullt.s8 q7, q4, q5\n",
                // Two products of bytes, of which no weight is -128, fit 16 bits.
                "vpstt\n vldrbt.u8 q4, [r5]\n vldrbt.u8 q5, [r3]\n",
                "vmullb.s8 q5, q4, q5\n vadd.i16 q6, q6, q5\n vldrb.u8 q5, [r3], #16\n vmullt.s8 q4, q4, q5\n vadd.i16 q7, q7, q4\n",
                widen!(),
                "le lr, 3b\n",
                "4: ldr r4, [r0, #{odd}]\n cbz r4, 5f\n",
                "ldr r4, [r1]\n add r4, r8\n vpstt\n vldrbt.u8 q4, [r4]\n vldrbt.u8 q5, [r3], #16\n",
                "vmullb.s8 q6, q4, q5\n vmullt.s8 q7, q4, q5\n",
                widen!(),
                "5:\n",
                $scale!("q0" "0"), $scale!("q1" "48"), $scale!("q2" "96"), $scale!("q3" "144"),
                "add r3, #192\n",
                "vqmovnb.s32 q0, q0\n vqmovnt.s32 q0, q1\n vqmovnb.s32 q2, q2\n vqmovnt.s32 q2, q3\n",
                "vqadd.s16 q0, q0, r12\n vqadd.s16 q2, q2, r12\n vqmovnb.s16 q0, q0\n vqmovnt.s16 q0, q2\n",
                $limits!(),
                "vpst\n vstrbt.8 q0, [r6]\n",
                "add r6, #16\n add r8, #16\n subs r7, #16\n bgt.w 2b\n",
                // Back from the end of the last block to that of the pixel.
                "add r6, r7\n ldr r4, [r0, #{step}]\n add r2, r4\n subs r9, #1\n bne.w 1b\n",
                "vpop {{d8-d15}}\n pop {{r4-r11, pc}}\n",
            ); mantissas = const 16, rights = const 32)
        }
    };
}

taps! {
    /// Runs of pixels; see [`crate::kernels::mve::add_s8`] for when `fast` holds.
    taps_fast, scale_fast, limits_fast ()
}
taps! {
    /// Any zero point, limits and shifts.
    taps_general, scale_general, limits_general (low)
}
