//! The loops in RISC-V assembly, for RV32 and RV64: what the extension Zve32x has, which is part of V.
//!
//! Each function is naked and a leaf; it uses the integer registers that calls do not preserve, s0 to s10, which it saves, and all of the vectors', which no
//! call preserves. The rounding mode of fixed-point arithmetic is set where a function starts. The figures beside the loops count instructions.

mod macros;

use core::mem::offset_of;

use super::args::{AddS8LinearArgs, ConvArgs};
use macros::macros;

/// The macros, what is made of them, and where the arguments are.
macro_rules! loops {
    ($run:literal) => {
        naked!(
            ConvArgs {
                entries, taps, elements, weights, table, out, pixels, step, channels, outside, zero_point, low, high,
            } =>
            ".option push\n .option arch, +zve32x",
            macros!(),
            $run,
            macros!(end),
            ".option pop";
            bytes = const size_of::<usize>(),
        )
    };
}

/// Runs of pixels of a convolution. An element of a tile takes three instructions and two for each of its pixels; four elements, the pixels' addresses and two
/// more.
///
/// # Safety
/// `pixels` of the taps are readable as far as `step` and `elements` say, those outside without steps; the outputs are writable, and lie over the input no
/// closer than the kernel says; the constants are as `packed` writes them.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn convolution(args: *const ConvArgs) {
    loops!("run 0")
}

/// Runs of pixels of a depthwise convolution. A tap of a tile takes twelve instructions at most and four for each of its pixels.
///
/// # Safety
/// As for [`convolution`], where a tap has a pixel's channels.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn depthwise(args: *const ConvArgs) {
    loops!("run 1")
}

/// Sums of bytes: 23 instructions for as many as eight registers have room for as words, 32 at 128 bits.
///
/// # Safety
/// `count` elements, at least one, of both operands are readable and of the output writable, which lies over an operand at its start or below.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn sum(args: *const AddS8LinearArgs) {
    naked!(
        AddS8LinearArgs { a, b, out, count, high, low, offset } =>
        r"
        .option push
        .option arch, +zve32x
        .macro lx to, at
            .if     {bytes} == 8
            ld      \to, \at(a0)
            .else
            lw      \to, \at(a0)
            .endif
        .endm

            lx      a1, {a}
            lx      a2, {b}
            lx      a3, {out}
            lx      a4, {count}
            lw      t0, {high}(a0)
            lw      t1, {second_high}(a0)
            lw      t2, {low}(a0)
            lw      t3, {second_low}(a0)
            lw      t4, {offset}(a0)
            csrwi   vxrm, 2
        2:  vsetvli t5, a4, e32, m8, ta, ma
            vle8.v  v0, (a1)
            vle8.v  v4, (a2)
            vsext.vf4 v8, v0
            vmul.vx v16, v8, t2
            vsra.vi v16, v16, 8
            vmacc.vx v16, t0, v8
            vsext.vf4 v8, v4
            vmul.vx v24, v8, t3
            vsra.vi v24, v24, 8
            vmacc.vx v24, t1, v8
            vadd.vv v16, v16, v24
            vadd.vx v16, v16, t4
            vsetvli zero, zero, e16, m4, ta, ma
            vnsra.wi v16, v16, 20
            vsetvli zero, zero, e8, m2, ta, ma
            vnclip.wi v16, v16, 0
            vse8.v  v16, (a3)
            add     a1, a1, t5
            add     a2, a2, t5
            add     a3, a3, t5
            sub     a4, a4, t5
            bnez    a4, 2b
            ret

        .purgem lx
        .option pop
        ";
        bytes = const size_of::<usize>(),
        second_high = const offset_of!(AddS8LinearArgs, high) + size_of::<i32>(),
        second_low = const offset_of!(AddS8LinearArgs, low) + size_of::<i32>(),
    )
}
