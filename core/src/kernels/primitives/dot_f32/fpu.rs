//! The loop of [`dot_f32`](super) for Cortex-M cores with an FPU.
//!
//! Two sums of eight take 16 registers, what they are multiplied of the other 16. VMLA rounds the product before it adds it, so that sums have the bits of a
//! product and an addition by themselves.

use core::arch::naked_asm;

/// Arguments of [`dots`].
#[derive(Debug)]
#[repr(C)]
pub(super) struct Dots {
    /// `len` elements.
    pub(super) x: *const f32,
    /// Two numbers for each pair.
    pub(super) bias: *const f32,
    /// Two outputs for each pair.
    pub(super) y: *mut f32,
    pub(super) len: usize,
    /// Pairs, one at least.
    pub(super) pairs: usize,
    /// Bytes between the two rows of a pair.
    pub(super) stride: usize,
    /// 1 where the outputs have limits.
    pub(super) limited: u32,
    /// Two rows for each pair, one pair behind the other.
    pub(super) w: *const f32,
    pub(super) limits: [f32; 2],
}

consecutive!(Dots: x, bias, y, len, pairs, stride, limited, w, limits);

/// Eight products of s16 to s23 and s24 to s31, to the sums of these registers.
macro_rules! eight {
    ($s0:literal $s1:literal $s2:literal $s3:literal $s4:literal $s5:literal $s6:literal $s7:literal) => {
        concat!(
            "vmla.f32 ",
            $s0,
            ", s16, s24\n vmla.f32 ",
            $s1,
            ", s17, s25\n",
            "vmla.f32 ",
            $s2,
            ", s18, s26\n vmla.f32 ",
            $s3,
            ", s19, s27\n",
            "vmla.f32 ",
            $s4,
            ", s20, s28\n vmla.f32 ",
            $s5,
            ", s21, s29\n",
            "vmla.f32 ",
            $s6,
            ", s22, s30\n vmla.f32 ",
            $s7,
            ", s23, s31\n",
        )
    };
}

/// Bounds a number by s3 and s4; a NaN stays.
macro_rules! bounds {
    ($x:literal) => {
        concat!(
            "vcmp.f32 ",
            $x,
            ", s3\n vmrs APSR_nzcv, fpscr\n it mi\n vmovmi.f32 ",
            $x,
            ", s3\n",
            "vcmp.f32 ",
            $x,
            ", s4\n vmrs APSR_nzcv, fpscr\n it gt\n vmovgt.f32 ",
            $x,
            ", s4\n",
        )
    };
}

/// The outputs of each pair of rows with `x`: 21 instructions for 16 products.
///
/// # Safety
/// The operands are readable and `y` is writable, as the fields say; the last pair's second row is `stride` bytes behind its first one.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(args: *const Dots) {
    naked_asm!(
        ".cpu cortex-m4",
        ".fpu fpv4-sp-d16",
        "push {{r4-r10, lr}}",
        "vpush {{s16-s31}}",
        // r4: x; r5: biases; r6: outputs; r7: length; r8: pairs; r9: bytes between rows; r10: whether there are limits, which lie at r12; r1: rows.
        "mov r12, r0",
        "ldm r12!, {{r4-r10, lr}}",
        "mov r1, lr",
        "movs r3, #0",
        "10: mov r0, r4",
        "add r2, r1, r9",
        "vmov s0, s1, r3, r3",
        "vmov s2, s3, r3, r3",
        "vmov s4, s5, r3, r3",
        "vmov s6, s7, r3, r3",
        "vmov s8, s9, r3, r3",
        "vmov s10, s11, r3, r3",
        "vmov s12, s13, r3, r3",
        "vmov s14, s15, r3, r3",
        "lsrs lr, r7, #3",
        "beq 30f",
        "20: vldmia r0!, {{s16-s23}}",
        "vldmia r1!, {{s24-s31}}",
        eight!("s0" "s1" "s2" "s3" "s4" "s5" "s6" "s7"),
        "vldmia r2!, {{s24-s31}}",
        eight!("s8" "s9" "s10" "s11" "s12" "s13" "s14" "s15"),
        "subs lr, lr, #1",
        "bne 20b",
        "vadd.f32 s0, s0, s1",
        "vadd.f32 s8, s8, s9",
        "vadd.f32 s0, s0, s2",
        "vadd.f32 s8, s8, s10",
        "vadd.f32 s0, s0, s3",
        "vadd.f32 s8, s8, s11",
        "vadd.f32 s0, s0, s4",
        "vadd.f32 s8, s8, s12",
        "vadd.f32 s0, s0, s5",
        "vadd.f32 s8, s8, s13",
        "vadd.f32 s0, s0, s6",
        "vadd.f32 s8, s8, s14",
        "vadd.f32 s0, s0, s7",
        "vadd.f32 s8, s8, s15",
        // The remaining elements have sums of their own, from the first product on.
        "30: ands lr, r7, #7",
        "beq 60f",
        "vldmia r0!, {{s16}}",
        "vldmia r1!, {{s24}}",
        "vldmia r2!, {{s28}}",
        "vmul.f32 s1, s16, s24",
        "vmul.f32 s9, s16, s28",
        "subs lr, lr, #1",
        "beq 50f",
        "lsrs lr, lr, #1",
        "bcc 40f",
        "vldmia r0!, {{s16}}",
        "vldmia r1!, {{s24}}",
        "vldmia r2!, {{s28}}",
        "vmla.f32 s1, s16, s24",
        "vmla.f32 s9, s16, s28",
        "cmp lr, #0",
        "beq 50f",
        "40: vldmia r0!, {{s16-s17}}",
        "vldmia r1!, {{s24-s25}}",
        "vldmia r2!, {{s28-s29}}",
        "vmla.f32 s1, s16, s24",
        "vmla.f32 s9, s16, s28",
        "vmla.f32 s1, s17, s25",
        "vmla.f32 s9, s17, s29",
        "subs lr, lr, #1",
        "bne 40b",
        "50: vadd.f32 s0, s0, s1",
        "vadd.f32 s8, s8, s9",
        "60: vldmia r5!, {{s1-s2}}",
        "vadd.f32 s0, s0, s1",
        "vadd.f32 s1, s8, s2",
        "cmp r10, #0",
        "beq 70f",
        "vldmia r12, {{s3-s4}}",
        bounds!("s0"),
        bounds!("s1"),
        "70: vstmia r6!, {{s0-s1}}",
        "mov r1, r2",
        "subs r8, r8, #1",
        "bne 10b",
        "vpop {{s16-s31}}",
        "pop {{r4-r10, pc}}",
    )
}
