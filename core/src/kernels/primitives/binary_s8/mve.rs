//! Loops of Helium that several operators share: products and sums of quantised operands, and means of int8.
//!
//! A right shift rounds ties away from zero: what is negative, and only where there is a shift, is one less before it. The shifts are kept as left ones, which
//! are negative, so that the sign of both is that of their conjunction.

use crate::quant::Multiplier;

/// Parameters of a product: `M((a - a_zero) * (b - b_zero)) + zero`, clamped to the limits. The multiplier does not shift to the left.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(in crate::kernels) struct MulArgs {
    /// Negated, as the next one.
    a_zero: i32,
    /// For a single factor, the factor.
    b_zero: i32,
    mantissa: i32,
    zero: i32,
    shift: i32,
    limits: [i32; 2],
}
consecutive!(MulArgs: a_zero, b_zero, mantissa, zero, shift, limits);

impl MulArgs {
    pub(in crate::kernels) fn new(multiplier: Multiplier, [a_zero, b_zero, zero]: [i32; 3], limits: [i32; 2]) -> Self {
        Self {
            a_zero: a_zero.wrapping_neg(),
            b_zero: b_zero.wrapping_neg(),
            mantissa: multiplier.mantissa,
            zero,
            shift: multiplier.shift.into(),
            limits,
        }
    }

    /// With these zero points of the operands.
    #[inline(always)]
    pub(in crate::kernels) fn with_zeros(&self, zeros: [i8; 2]) -> Self {
        let [a_zero, b_zero] = zeros.map(|zero| -i32::from(zero));
        Self {
            a_zero,
            b_zero,
            ..*self
        }
    }

    /// With a single second operand.
    #[inline(always)]
    pub(in crate::kernels) fn by(&self, b: i32) -> Self {
        Self {
            b_zero: b.wrapping_add(self.b_zero),
            ..*self
        }
    }
}

/// Parameters of a sum of int16: `M(A(a * 2^15) ± B(b * 2^15)) + zero`, clamped to the limits. No multiplier shifts to the left.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(in crate::kernels) struct AddS16Args {
    mantissas: [i32; 3],
    zero: i32,
    shifts: [i32; 3],
    limits: [i32; 2],
}
const _: () = assert!(core::mem::offset_of!(AddS16Args, zero) == core::mem::offset_of!(AddS16Args, mantissas) + 12);
const _: () = assert!(core::mem::offset_of!(AddS16Args, limits) == core::mem::offset_of!(AddS16Args, shifts) + 12);

impl AddS16Args {
    pub(in crate::kernels) fn new(multipliers: [Multiplier; 3], zero: i32, limits: [i32; 2]) -> Self {
        Self {
            mantissas: multipliers.map(|m| m.mantissa),
            zero,
            shifts: multipliers.map(|m| m.shift.into()),
            limits,
        }
    }
}

/// Defines the loops of products, in 15 and 13 instructions for four elements.
macro_rules! product {
    ($(#[$doc:meta])* $name:ident, $scaled:ident, $x:ty, $load:tt, $store:tt) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(in crate::kernels) unsafe extern "C" fn $name(a: *const $x, b: *const $x, out: *mut $x, count: usize, args: *const MulArgs) {
            naked!(MulArgs { shift } => concat!(
                ".cpu cortex-m55\n push {{r4-r8, lr}}\n vpush {{d8-d13}}\n ldr r12, [sp, #{args}]\n",
                "ldrd r8, r4, [r12, #{shift}]\n vdup.32 q4, r8\n vdup.32 q5, r4\n ldr r4, [r12, #{upper_limit}]\n vdup.32 q6, r4\n ldm r12, {{r4-r7}}\n",
                "dlstp.32 lr, r3\n",
                "2: ", $load, " q0, [r0], ", $store, "\n", $load, " q1, [r1], ", $store, "\n",
                "vadd.i32 q0, q0, r4\n vadd.i32 q1, q1, r5\n vmul.i32 q0, q0, q1\n",
                product!(rounded),
                product!(stored $store),
                "vpop {{d8-d13}}\n pop {{r4-r8, pc}}\n",
            ); upper_limit = const core::mem::offset_of!(MulArgs, limits) + 4,
            // Behind six registers and six double ones.
            args = const 6 * 4 + 6 * 8)
        }

        /// The same with a single second operand.
        #[unsafe(naked)]
        pub(in crate::kernels) unsafe extern "C" fn $scaled(a: *const $x, out: *mut $x, count: usize, args: *const MulArgs) {
            naked!(MulArgs { shift } => concat!(
                ".cpu cortex-m55\n push {{r4-r8, lr}}\n vpush {{d8-d13}}\n mov r12, r3\n mov r3, r2\n mov r2, r1\n",
                "ldrd r8, r4, [r12, #{shift}]\n vdup.32 q4, r8\n vdup.32 q5, r4\n ldr r4, [r12, #{upper_limit}]\n vdup.32 q6, r4\n ldm r12, {{r4-r7}}\n",
                "dlstp.32 lr, r3\n",
                "2: ", $load, " q0, [r0], ", $store, "\n vadd.i32 q0, q0, r4\n vmul.i32 q0, q0, r5\n",
                product!(rounded),
                product!(stored $store),
                "vpop {{d8-d13}}\n pop {{r4-r8, pc}}\n",
            ); upper_limit = const core::mem::offset_of!(MulArgs, limits) + 4)
        }
    };
    (rounded) => {
        "vqrdmulh.s32 q0, q0, r6\n vand q1, q0, q4\n vshr.s32 q1, q1, #31\n vadd.i32 q0, q0, q1\n vrshl.s32 q0, q0, q4\n"
    };
    (stored "#4") => {
        "vadd.i32 q0, q0, r7\n vmax.s32 q0, q0, q5\n vmin.s32 q0, q0, q6\n vstrb.32 q0, [r2], #4\n letp lr, 2b\n"
    };
    (stored "#8") => {
        "vadd.i32 q0, q0, r7\n vmax.s32 q0, q0, q5\n vmin.s32 q0, q0, q6\n vstrh.32 q0, [r2], #8\n letp lr, 2b\n"
    };
}

product! {
    /// Products of int8.
    products_s8, scaled_s8, i8, "vldrb.s32", "#4"
}
product! {
    /// Products of int16.
    products_s16, scaled_s16, i16, "vldrh.s32", "#8"
}

/// Parameters of a sum of int8: `M(A((a - a_zero) * 2^20) ± B((b - b_zero) * 2^20)) + zero`, clamped to the limits. No multiplier shifts to the left.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(in crate::kernels) struct AddS8Args {
    pub(in crate::kernels) sum: AddS16Args,
    /// Zero points of the operands, negated.
    pub(in crate::kernels) zeros: [i32; 2],
    /// Bytes from four elements of an operand to the next four: 4, or 0 of four that are one.
    pub(in crate::kernels) steps: [usize; 2],
}
const _: () = assert!(core::mem::offset_of!(AddS8Args, sum) == 0);

/// Defines the loop of a sum, in 25 instructions for four elements of int16, and in 29 for four of int8.
macro_rules! sum {
    ($(#[$doc:meta])* $name:ident, $x:tt, $args:ident ($($of:tt)*), $add:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(in crate::kernels) unsafe extern "C" fn $name(a: *const $x, b: *const $x, out: *mut $x, count: usize, args: *const $args) {
            naked!(AddS16Args { shifts } $($of)* => concat!(
                ".cpu cortex-m55\n push {{r4-r10, lr}}\n vpush {{d8-d15}}\n ldr r12, [sp, #{args}]\n",
                "ldrd r4, r5, [r12, #{shifts}]\n vdup.32 q4, r4\n vdup.32 q5, r5\n ldrd r4, r5, [r12, #{third_shift}]\n vdup.32 q6, r4\n vdup.32 q7, r5\n",
                "ldr r8, [r12, #{upper_limit}]\n vdup.32 q3, r8\n ldm r12, {{r4-r7}}\n",
                sum!(loaded $x),
                "vqrdmulh.s32 q0, q0, r4\n vand q2, q0, q4\n vshr.s32 q2, q2, #31\n vadd.i32 q0, q0, q2\n vrshl.s32 q0, q0, q4\n",
                "vqrdmulh.s32 q1, q1, r5\n vand q2, q1, q5\n vshr.s32 q2, q2, #31\n vadd.i32 q1, q1, q2\n vrshl.s32 q1, q1, q5\n",
                $add,
                "vqrdmulh.s32 q0, q0, r6\n vand q2, q0, q6\n vshr.s32 q2, q2, #31\n vadd.i32 q0, q0, q2\n vrshl.s32 q0, q0, q6\n",
                "vadd.i32 q0, q0, r7\n vmax.s32 q0, q0, q7\n vmin.s32 q0, q0, q3\n",
                sum!(stored $x),
                "letp lr, 2b\n vpop {{d8-d15}}\n pop {{r4-r10, pc}}\n",
            ); third_shift = const core::mem::offset_of!(AddS16Args, shifts) + 8,
            upper_limit = const core::mem::offset_of!(AddS16Args, limits) + 4,
            // Behind eight registers and eight double ones.
            args = const 8 * 4 + 8 * 8)
        }
    };
    (loaded i16) => {
        "dlstp.32 lr, r3\n2: vldrh.s32 q0, [r0], #8\n vldrh.s32 q1, [r1], #8\n vshl.i32 q0, q0, #15\n vshl.i32 q1, q1, #15\n"
    };
    (loaded i8) => {
        concat!(
            "ldrd r9, r10, [r12, #{zeros}]\n ldrd r8, r12, [r12, #{steps}]\n",
            "dlstp.32 lr, r3\n2: vldrb.s32 q0, [r0]\n vldrb.s32 q1, [r1]\n add r0, r0, r8\n add r1, r1, r12\n",
            "vadd.i32 q0, q0, r9\n vadd.i32 q1, q1, r10\n vshl.i32 q0, q0, #20\n vshl.i32 q1, q1, #20\n",
        )
    };
    (stored i16) => { "vstrh.32 q0, [r2], #8\n" };
    (stored i8) => { "vstrb.32 q0, [r2], #4\n" };
}

sum! {
    /// `a + b`
    sums_s16, i16, AddS16Args (), "vadd.i32 q0, q0, q1\n"
}
sum! {
    /// `a - b`
    differences_s16, i16, AddS16Args (), "vsub.i32 q0, q0, q1\n"
}
sum! {
    /// `a + b`
    sums_s8, i8, AddS8Args (, AddS8Args { zeros, steps }), "vadd.i32 q0, q0, q1\n"
}
sum! {
    /// `a - b`
    differences_s8, i8, AddS8Args (, AddS8Args { zeros, steps }), "vsub.i32 q0, q0, q1\n"
}

/// Means of neighbours, each of the elements along two axes: `clamp(M(sum - zeros) + zero)`. The multiplier does not shift to the left, a sum has 16 bits.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(in crate::kernels) struct Mean {
    pub(in crate::kernels) from: *const i8,
    /// Bytes between columns.
    pub(in crate::kernels) step: usize,
    /// At least one, as the next ones.
    pub(in crate::kernels) columns: usize,
    /// Bytes from the end of a row of columns to the next one.
    pub(in crate::kernels) skip: usize,
    /// Neighbours.
    pub(in crate::kernels) channels: usize,
    pub(in crate::kernels) rows: usize,
    pub(in crate::kernels) to: *mut i8,
    /// Zero points of the elements of a sum, negated.
    pub(in crate::kernels) zeros: i32,
    pub(in crate::kernels) mantissa: i32,
    pub(in crate::kernels) zero: i32,
    pub(in crate::kernels) shift: i32,
    /// Bytes between neighbours, where these are apart.
    pub(in crate::kernels) stride: usize,
}
consecutive!(Mean: from, step, columns, skip, channels, rows, to, zeros, mantissa, zero, shift);

/// Defines the loop of means, in 5 instructions for eight neighbours' next elements and 30 for their means.
macro_rules! means {
    ($(#[$doc:meta])* $name:ident ($($arg:ident)*), $prepare:expr, $load:expr, $next:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(in crate::kernels) unsafe extern "C" fn $name(args: *const Mean) {
            naked!(Mean { zeros, shift $(, $arg)* } => concat!(
                ".cpu cortex-m55\n",
                "push {{r4-r11, lr}}\n",
                "sub sp, #4\n",
                "vpush {{d8-d15}}\n",
                "ldr r1, [r0, #{shift}]\n",
                "vdup.32 q4, r1\n",
                "mvn r1, #127\n",
                "vdup.16 q5, r1\n",
                "mov r1, #127\n",
                "vdup.16 q6, r1\n",
                $prepare,
                "add r1, r0, #{zeros}\n",
                "ldm r1, {{r9-r11}}\n",
                // r1 source, r2 step, r3 columns, r4 skip, r5 channels, r6 rows, r7 destination; r0 and r8 walk.
                "ldm r0, {{r1-r7}}\n",
                "2: vctp.16 r5\n",
                "mov r0, r1\n",
                "mov r8, r6\n",
                "vmov.i32 q0, #0\n",
                "3: dls lr, r3\n",
                "4: vpst\n",
                $load,
                "add r0, r2\n",
                "vadd.i16 q0, q0, q1\n",
                "le lr, 4b\n",
                "add r0, r4\n",
                "subs r8, #1\n",
                "bne 3b\n",
                // Even and odd channels.
                "vmovlb.s16 q2, q0\n",
                "vmovlt.s16 q3, q0\n",
                "vadd.i32 q2, q2, r9\n",
                "vadd.i32 q3, q3, r9\n",
                "vqrdmulh.s32 q2, q2, r10\n",
                "vqrdmulh.s32 q3, q3, r10\n",
                "vand q0, q2, q4\n",
                "vand q1, q3, q4\n",
                "vshr.s32 q0, q0, #31\n",
                "vshr.s32 q1, q1, #31\n",
                "vadd.i32 q2, q2, q0\n",
                "vadd.i32 q3, q3, q1\n",
                "vrshl.s32 q2, q2, q4\n",
                "vrshl.s32 q3, q3, q4\n",
                "vqmovnb.s32 q0, q2\n",
                "vqmovnt.s32 q0, q3\n",
                "vqadd.s16 q0, q0, r11\n",
                "vmax.s16 q0, q0, q5\n",
                "vmin.s16 q0, q0, q6\n",
                "vpst\n",
                "vstrbt.16 q0, [r7], #8\n",
                $next,
                "subs r5, #8\n",
                "bgt 2b\n",
                "vpop {{d8-d15}}\n",
                "add sp, #4\n",
                "pop {{r4-r11, pc}}\n",
            ))
        }
    };
}

means! {
    /// Of what lies side by side.
    means (), "", "vldrbt.s16 q1, [r0]\n", "add r1, #8\n"
}
means! {
    /// Of what lies apart; seven times the stride has 16 bits.
    means_apart (stride),
    "ldr r12, [r0, #{stride}]\n mov r2, #0\n vidup.u16 q7, r2, #1\n vmul.i16 q7, q7, r12\n lsl r12, r12, #3\n",
    "vldrbt.s16 q1, [r0, q7]\n",
    "add r1, r12\n"
}
