//! [`super::times`] on Helium.

/// Every `stride` bytes one of as many bytes as `count` says, which is not 0.
///
/// # Safety
/// `count` bytes are readable at `from`, and writable at `to`, `stride` bytes apart.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn append(to: *mut i8, from: *const i8, count: usize, stride: usize) {
    naked!(
        ".cpu cortex-m55",
        "push {{r7, lr}}",
        "mov r12, #0",
        "vidup.u32 q0, r12, #1",
        "vmul.i32 q0, q0, r3",
        "lsls r3, r3, #2",
        "dlstp.32 lr, r2",
        "2: vldrb.u32 q1, [r1], #4",
        "vstrb.32 q1, [r0, q0]",
        "add r0, r3",
        "letp lr, 2b",
        "pop {{r7, pc}}",
    )
}

/// Arguments of the loops. `#[repr(C)]`; the assembly reads fields by `offset_of!`.
#[repr(C)]
pub(super) struct SvdfS8MveArgs {
    pub(super) state: *const i8,
    pub(super) weights: *const i8,
    pub(super) bias: *const i32,
    pub(super) y: *mut i8,
    /// Units by fours, not 0.
    pub(super) fours: usize,
    /// Elements of a unit, at most 16 and not 0.
    pub(super) len: usize,
    pub(super) mantissa: i32,
    /// At most 0.
    pub(super) right: i32,
    pub(super) zero: i32,
}
consecutive!(SvdfS8MveArgs: state, weights, bias, y, fours, len, mantissa, right, zero);

/// Defines a loop over units, four at a time: what a unit's sum takes, and fifteen instructions.
macro_rules! fours {
    ($name:ident $row:ident) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(args: &SvdfS8MveArgs) {
            naked!(SvdfS8MveArgs { state, bias, fours, mantissa, zero } =>
                ".cpu cortex-m55",
                "push {{r4-r11, lr}}",
                // State r0, weights r1, biases r2, outputs r3, length r5, mantissa r7, right shift r9, zero point r11; sums r4, r6, r8, r10.
                "ldrd r12, r5, [r0, #{fours}]", // len
                "ldrd r7, r9, [r0, #{mantissa}]", // right
                "ldr r11, [r0, #{zero}]",
                "ldrd r2, r3, [r0, #{bias}]", // y
                "ldrd r0, r1, [r0, #{state}]", // weights
                "vctp.8 r5",
                "dls lr, r12",
                "2: ldrd r4, r6, [r2], #8",
                "ldrd r8, r10, [r2], #8",
                $row!("r4"),
                $row!("r6"),
                $row!("r8"),
                $row!("r10"),
                "vmov q2[2], q2[0], r4, r8",
                "vmov q2[3], q2[1], r6, r10",
                "vqrdmulh.s32 q2, q2, r7",
                // Ties away from zero: one less where negative.
                "vshr.s32 q3, q2, #31",
                "vadd.i32 q2, q2, q3",
                "vrshl.s32 q2, r9",
                "vadd.i32 q2, q2, r11",
                "vqmovnb.s32 q2, q2",
                "vqmovnb.s16 q2, q2",
                "vstrb.32 q2, [r3], #4",
                "le lr, 2b",
                "pop {{r4-r11, pc}}",
            )
        }
    };
}

macro_rules! eight {
    ($sum:literal) => {
        concat!(
            "vldrb.s16 q0, [r0], #8\n",
            "vldrb.s16 q1, [r1], #8\n",
            "vmladava.s16 ",
            $sum,
            ", q0, q1\n"
        )
    };
}

macro_rules! sixteen {
    ($sum:literal) => {
        concat!(
            "vldrb.u8 q0, [r0], #16\n",
            "vldrb.u8 q1, [r1], #16\n",
            "vmladava.s8 ",
            $sum,
            ", q0, q1\n"
        )
    };
}

macro_rules! any {
    ($sum:literal) => {
        concat!(
            "vpsttt\n",
            "vldrbt.u8 q0, [r0]\n",
            "vldrbt.u8 q1, [r1]\n",
            "vmladavat.s8 ",
            $sum,
            ", q0, q1\n",
            "add r0, r5\n",
            "add r1, r5\n"
        )
    };
}

fours!(eights eight);
fours!(sixteens sixteen);
fours!(rows any);
