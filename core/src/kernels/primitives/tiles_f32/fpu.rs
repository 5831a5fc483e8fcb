//! The loops of [`tiles_f32`](super) for Cortex-M cores with an FPU.
//!
//! VMLA rounds the product before it adds it, so that sums have the bits of a product and an addition by themselves.

use core::arch::naked_asm;

/// Arguments of [`dots`].
#[derive(Debug)]
#[repr(C)]
pub(super) struct Dots {
    pub(super) x: *const f32,
    pub(super) w: *const f32,
    /// Four.
    pub(super) sums: *mut f32,
    /// Bytes between filters.
    pub(super) filter: usize,
    /// Elements of a row, one at least.
    pub(super) len: usize,
    /// One at least.
    pub(super) rows: usize,
    /// Bytes from a row's end to the next one, of the window.
    pub(super) x_skip: usize,
    /// The same of a filter.
    pub(super) w_skip: usize,
}

consecutive!(Dots: x, w, sums, filter, len, rows, x_skip, w_skip);

/// Arguments of [`weighted`].
#[derive(Debug)]
#[repr(C)]
pub(super) struct Weighted {
    pub(super) factors: *const f32,
    /// A row of eight for each factor.
    pub(super) rows: *const f32,
    /// Factors, one at least.
    pub(super) count: usize,
    /// Bytes from a row's end to the next one.
    pub(super) skip: usize,
    /// Eight.
    pub(super) sums: *mut f32,
}

consecutive!(Weighted: factors, rows, count, skip, sums);

/// Arguments of [`outer`].
#[derive(Debug)]
#[repr(C)]
pub(super) struct Outer {
    /// Four channels of each pixel.
    pub(super) dy: *const f32,
    /// Four channels of each pixel.
    pub(super) x: *const f32,
    /// Four for each channel of `dy`.
    pub(super) sums: *mut f32,
    /// One at least.
    pub(super) rows: usize,
    /// One at least.
    pub(super) columns: usize,
    /// Bytes between columns of `dy`.
    pub(super) dy_column: usize,
    /// Bytes between columns of `x`.
    pub(super) x_column: usize,
    /// Bytes from behind the last column to the next row, of `dy`.
    pub(super) dy_skip: usize,
    /// The same of `x`.
    pub(super) x_skip: usize,
}

consecutive!(Outer: dy, x, sums, rows, columns, dy_column, x_column, dy_skip, x_skip);

/// Four products of s16 to s19 and s20 to s23, to the sums of these registers.
macro_rules! four {
    ($s0:literal $s1:literal $s2:literal $s3:literal) => {
        concat!(
            "vmla.f32 ",
            $s0,
            ", s16, s20\n vmla.f32 ",
            $s1,
            ", s17, s21\n vmla.f32 ",
            $s2,
            ", s18, s22\n vmla.f32 ",
            $s3,
            ", s19, s23\n",
        )
    };
}

/// Four products of this factor and s20 to s23, to the sums of these registers.
macro_rules! times {
    ($factor:literal: $s0:literal $s1:literal $s2:literal $s3:literal) => {
        concat!(
            "vmla.f32 ",
            $s0,
            ", ",
            $factor,
            ", s20\n vmla.f32 ",
            $s1,
            ", ",
            $factor,
            ", s21\n vmla.f32 ",
            $s2,
            ", ",
            $factor,
            ", s22\n vmla.f32 ",
            $s3,
            ", ",
            $factor,
            ", s23\n",
        )
    };
}

/// The first of these registers becomes the sum of all, one behind the other.
macro_rules! total {
    ($s0:literal $s1:literal $s2:literal $s3:literal) => {
        concat!(
            "vadd.f32 ",
            $s0,
            ", ",
            $s0,
            ", ",
            $s1,
            "\n vadd.f32 ",
            $s0,
            ", ",
            $s0,
            ", ",
            $s2,
            "\n vadd.f32 ",
            $s0,
            ", ",
            $s0,
            ", ",
            $s3,
            "\n",
        )
    };
}

/// Clears s0 to s15 by a register that is 0.
macro_rules! clear {
    ($zero:literal) => {
        concat!(
            "vmov s0, s1, ",
            $zero,
            ", ",
            $zero,
            "\n vmov s2, s3, ",
            $zero,
            ", ",
            $zero,
            "\n vmov s4, s5, ",
            $zero,
            ", ",
            $zero,
            "\n vmov s6, s7, ",
            $zero,
            ", ",
            $zero,
            "\n vmov s8, s9, ",
            $zero,
            ", ",
            $zero,
            "\n vmov s10, s11, ",
            $zero,
            ", ",
            $zero,
            "\n vmov s12, s13, ",
            $zero,
            ", ",
            $zero,
            "\n vmov s14, s15, ",
            $zero,
            ", ",
            $zero,
            "\n",
        )
    };
}

/// A window with four filters: 23 instructions for 16 products.
///
/// # Safety
/// All rows of the window and of the filters are readable, four sums are writable.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn dots(args: *const Dots) {
    naked_asm!(
        ".cpu cortex-m4",
        ".fpu fpv4-sp-d16",
        "push {{r4-r10, lr}}",
        "vpush {{s16-s23}}",
        // r0: x; r1, r3, r4, r5: filters; r6: length; r7: rows; r8, r9: bytes to the next row; r10: what is left of the row; r12: sums.
        "ldm r0, {{r0-r3, r6-r9}}",
        "mov r12, r2",
        "add r4, r1, r3, lsl #1",
        "add r5, r4, r3",
        "add r3, r1, r3",
        "movs r2, #0",
        clear!("r2"),
        "10: lsrs r10, r6, #2",
        "beq 30f",
        "20: vldmia r0!, {{s16-s19}}",
        "vldmia r1!, {{s20-s23}}",
        four!("s0" "s1" "s2" "s3"),
        "vldmia r3!, {{s20-s23}}",
        four!("s4" "s5" "s6" "s7"),
        "vldmia r4!, {{s20-s23}}",
        four!("s8" "s9" "s10" "s11"),
        "vldmia r5!, {{s20-s23}}",
        four!("s12" "s13" "s14" "s15"),
        "subs r10, r10, #1",
        "bne 20b",
        "30: ands r10, r6, #3",
        "beq 50f",
        "40: vldmia r0!, {{s16}}",
        "vldmia r1!, {{s20}}",
        "vldmia r3!, {{s21}}",
        "vldmia r4!, {{s22}}",
        "vldmia r5!, {{s23}}",
        "vmla.f32 s0, s16, s20",
        "vmla.f32 s4, s16, s21",
        "vmla.f32 s8, s16, s22",
        "vmla.f32 s12, s16, s23",
        "subs r10, r10, #1",
        "bne 40b",
        "50: add r0, r0, r8",
        "add r1, r1, r9",
        "add r3, r3, r9",
        "add r4, r4, r9",
        "add r5, r5, r9",
        "subs r7, r7, #1",
        "bne 10b",
        total!("s0" "s1" "s2" "s3"),
        total!("s4" "s5" "s6" "s7"),
        total!("s8" "s9" "s10" "s11"),
        total!("s12" "s13" "s14" "s15"),
        "vmov.f32 s1, s4",
        "vmov.f32 s2, s8",
        "vmov.f32 s3, s12",
        "vstmia r12, {{s0-s3}}",
        "vpop {{s16-s23}}",
        "pop {{r4-r10, pc}}",
    )
}

/// Eight sums of rows times their factors: 14 instructions for 8 products.
///
/// # Safety
/// All factors and rows are readable, eight sums are readable and writable.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn weighted(args: *const Weighted) {
    naked_asm!(
        ".cpu cortex-m4",
        ".fpu fpv4-sp-d16",
        "push {{r4, lr}}",
        // r1: factors; r2: rows; r3: count; r4: bytes to the next row; r12: sums.
        "ldm r0, {{r1-r4, r12}}",
        "movs r0, #0",
        "vmov s0, s1, r0, r0",
        "vmov s2, s3, r0, r0",
        "vmov s4, s5, r0, r0",
        "vmov s6, s7, r0, r0",
        "10: vldmia r1!, {{s12}}",
        "vldmia r2!, {{s8-s11}}",
        "vmla.f32 s0, s12, s8",
        "vmla.f32 s1, s12, s9",
        "vmla.f32 s2, s12, s10",
        "vmla.f32 s3, s12, s11",
        "vldmia r2!, {{s8-s11}}",
        "vmla.f32 s4, s12, s8",
        "vmla.f32 s5, s12, s9",
        "vmla.f32 s6, s12, s10",
        "vmla.f32 s7, s12, s11",
        "add r2, r2, r4",
        "subs r3, r3, #1",
        "bne 10b",
        "vldmia r12, {{s8-s15}}",
        "vadd.f32 s0, s8, s0",
        "vadd.f32 s1, s9, s1",
        "vadd.f32 s2, s10, s2",
        "vadd.f32 s3, s11, s3",
        "vadd.f32 s4, s12, s4",
        "vadd.f32 s5, s13, s5",
        "vadd.f32 s6, s14, s6",
        "vadd.f32 s7, s15, s7",
        "vstmia r12, {{s0-s7}}",
        "pop {{r4, pc}}",
    )
}

/// Outer products of four channels with four: 22 instructions for 16 products.
///
/// # Safety
/// Four channels of every pixel of both maps are readable, sixteen sums are readable and writable.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn outer(args: *const Outer) {
    naked_asm!(
        ".cpu cortex-m4",
        ".fpu fpv4-sp-d16",
        "push {{r4-r10, lr}}",
        "vpush {{s16-s23}}",
        // r1: dy; r2: x; r3: sums; r4: rows; r5: columns; r6, r7: bytes between columns; r8, r9: bytes to the next row; r10: the column.
        "ldm r0, {{r1-r9}}",
        "movs r0, #0",
        "10:",
        clear!("r0"),
        "mov r10, r5",
        "20: vldmia r1, {{s16-s19}}",
        "vldmia r2, {{s20-s23}}",
        times!("s16": "s0" "s1" "s2" "s3"),
        times!("s17": "s4" "s5" "s6" "s7"),
        times!("s18": "s8" "s9" "s10" "s11"),
        times!("s19": "s12" "s13" "s14" "s15"),
        "add r1, r1, r6",
        "add r2, r2, r7",
        "subs r10, r10, #1",
        "bne 20b",
        "add r1, r1, r8",
        "add r2, r2, r9",
        "vldmia r3!, {{s16-s23}}",
        "vadd.f32 s16, s16, s0",
        "vadd.f32 s17, s17, s1",
        "vadd.f32 s18, s18, s2",
        "vadd.f32 s19, s19, s3",
        "vadd.f32 s20, s20, s4",
        "vadd.f32 s21, s21, s5",
        "vadd.f32 s22, s22, s6",
        "vadd.f32 s23, s23, s7",
        "vldmia r3!, {{s0-s7}}",
        "sub r3, r3, #64",
        "vstmia r3!, {{s16-s23}}",
        "vadd.f32 s0, s0, s8",
        "vadd.f32 s1, s1, s9",
        "vadd.f32 s2, s2, s10",
        "vadd.f32 s3, s3, s11",
        "vadd.f32 s4, s4, s12",
        "vadd.f32 s5, s5, s13",
        "vadd.f32 s6, s6, s14",
        "vadd.f32 s7, s7, s15",
        "vstmia r3!, {{s0-s7}}",
        "sub r3, r3, #64",
        "subs r4, r4, #1",
        "bne 10b",
        "vpop {{s16-s23}}",
        "pop {{r4-r10, pc}}",
    )
}
