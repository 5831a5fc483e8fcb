//! Loops of [`reduce_f32`](super) for Cortex-M cores with an FPU.
//!
//! VLDM takes eight elements at once. A comparison of a maximum takes four instructions an element, and another two would ask for a NaN: VCMPE states one in
//! FPSCR's cumulative flag instead, which is looked at once. A block with a NaN is computed again, by elements. The flags are left as they were found.

use core::arch::naked_asm;

use super::args::Extents;

/// Folds elements of one output, or of four or eight that are neighbours. Returns whether a NaN was compared, in which case the values mean nothing.
type Run = unsafe extern "C" fn(extents: *const Extents, x: *const f32, values: *mut f32) -> u32;

/// The loops of a fold. There is at least a row and a column.
pub(in crate::kernels) struct Loops {
    /// One output; of neighbouring columns eight at a time.
    pub(super) one: Run,
    /// Four outputs.
    pub(super) four: Run,
    /// Eight outputs.
    pub(super) eight: Run,
}

consecutive!(Extents: rows, row, columns, column);

/// `sum += x`.
macro_rules! sum {
    ($value:literal $x:literal) => {
        concat!("vadd.f32 ", $value, ", ", $value, ", ", $x, "\n")
    };
}

/// `x` where it is greater than `largest`.
macro_rules! max {
    ($largest:literal $x:literal) => {
        concat!(
            "vcmpe.f32 ",
            $x,
            ", ",
            $largest,
            "\n vmrs APSR_nzcv, fpscr\n it gt\n vmovgt.f32 ",
            $largest,
            ", ",
            $x,
            "\n"
        )
    };
}

/// `x` where it is less than `least`.
macro_rules! min {
    ($least:literal $x:literal) => {
        concat!(
            "vcmpe.f32 ",
            $x,
            ", ",
            $least,
            "\n vmrs APSR_nzcv, fpscr\n it mi\n vmovmi.f32 ",
            $least,
            ", ",
            $x,
            "\n"
        )
    };
}

/// r12: FPSCR as it was found; its flag of invalid operations is cleared.
macro_rules! clear_flag {
    () => {
        "vmrs r12, fpscr\n bic lr, r12, #1\n vmsr fpscr, lr\n"
    };
}

/// r0: the flag, which is then as it was found.
macro_rules! take_flag {
    () => {
        "vmrs r0, fpscr\n vmsr fpscr, r12\n and r0, r0, #1\n"
    };
}

/// Defines a loop over neighbours, values in `$values` and elements in `$elements`, which begins with the values of `$first`: at 10 with the first element,
/// or at 30 behind it.
macro_rules! neighbours {
    ($name:ident, $fold:ident, $values:literal $elements:literal, $first:expr, $end:expr, $($value:literal $x:literal),+) => {
        /// # Safety
        /// As for [`Run`].
        #[unsafe(naked)]
        unsafe extern "C" fn $name(extents: *const Extents, x: *const f32, values: *mut f32) -> u32 {
            naked_asm!(
                ".cpu cortex-m4",
                ".fpu fpv4-sp-d16",
                "push {{r4-r6, lr}}",
                "ldm r0, {{r3-r6}}", // rows, bytes between rows, columns, bytes between columns
                $first,
                "10: mov r0, r1",
                "mov lr, r5",
                concat!("20: vldmia r0, {{", $elements, "}}"),
                $($fold!($value $x),)+
                "30: add r0, r0, r6",
                "subs lr, lr, #1",
                "bne 20b",
                "add r1, r1, r4",
                "subs r3, r3, #1",
                "bne 10b",
                concat!("vstmia r2, {{", $values, "}}"),
                $end,
                "pop {{r4-r6, pc}}",
            )
        }
    };
}

/// Defines a loop over one output, whose value begins with `$first`.
macro_rules! one {
    ($name:ident, $fold:ident, $first:expr, $end:expr) => {
        /// # Safety
        /// As for [`Run`].
        #[unsafe(naked)]
        unsafe extern "C" fn $name(extents: *const Extents, x: *const f32, value: *mut f32) -> u32 {
            naked_asm!(
                ".cpu cortex-m4",
                ".fpu fpv4-sp-d16",
                "push {{r4-r6, lr}}",
                "ldm r0, {{r3-r6}}",
                $first,
                "10: mov r0, r1",
                "mov lr, r5",
                "cmp r6, #4",
                "bne 30f",
                "lsrs lr, r5, #3",
                "beq 21f",
                "20: vldmia r0!, {{s8-s15}}",
                $fold!("s0" "s8"), $fold!("s0" "s9"), $fold!("s0" "s10"), $fold!("s0" "s11"),
                $fold!("s0" "s12"), $fold!("s0" "s13"), $fold!("s0" "s14"), $fold!("s0" "s15"),
                "subs lr, lr, #1",
                "bne 20b",
                "21: ands lr, r5, #7",
                "beq 40f",
                "30: vldr s8, [r0]",
                "add r0, r0, r6",
                $fold!("s0" "s8"),
                "subs lr, lr, #1",
                "bne 30b",
                "40: add r1, r1, r4",
                "subs r3, r3, #1",
                "bne 10b",
                "vstr s0, [r2]",
                $end,
                "pop {{r4-r6, pc}}",
            )
        }
    };
}

/// Zeros in as many pairs of registers.
macro_rules! zeros {
    ($($pair:literal),+) => {
        concat!("movs r0, #0\n", $("vmov ", $pair, ", r0, r0\n",)+)
    };
}

/// The first elements, behind which the loop begins.
macro_rules! first_elements {
    ($values:literal) => {
        concat!(
            clear_flag!(),
            "vldmia r1, {{",
            $values,
            "}}\n mov r0, r1\n mov lr, r5\n b 30f\n"
        )
    };
}

one!(sum_of_one, sum, "movs r0, #0\n vmov s0, r0\n", "movs r0, #0");
one!(max_of_one, max, concat!(clear_flag!(), "vldr s0, [r1]\n"), take_flag!());
one!(min_of_one, min, concat!(clear_flag!(), "vldr s0, [r1]\n"), take_flag!());
neighbours!(sums_of_four, sum, "s0-s3" "s8-s11", zeros!("s0, s1", "s2, s3"), "movs r0, #0",
    "s0" "s8", "s1" "s9", "s2" "s10", "s3" "s11");
neighbours!(max_of_four, max, "s0-s3" "s8-s11", first_elements!("s0-s3"), take_flag!(),
    "s0" "s8", "s1" "s9", "s2" "s10", "s3" "s11");
neighbours!(min_of_four, min, "s0-s3" "s8-s11", first_elements!("s0-s3"), take_flag!(),
    "s0" "s8", "s1" "s9", "s2" "s10", "s3" "s11");
neighbours!(sums_of_eight, sum, "s0-s7" "s8-s15", zeros!("s0, s1", "s2, s3", "s4, s5", "s6, s7"), "movs r0, #0",
    "s0" "s8", "s1" "s9", "s2" "s10", "s3" "s11", "s4" "s12", "s5" "s13", "s6" "s14", "s7" "s15");
neighbours!(max_of_eight, max, "s0-s7" "s8-s15", first_elements!("s0-s7"), take_flag!(),
    "s0" "s8", "s1" "s9", "s2" "s10", "s3" "s11", "s4" "s12", "s5" "s13", "s6" "s14", "s7" "s15");
neighbours!(min_of_eight, min, "s0-s7" "s8-s15", first_elements!("s0-s7"), take_flag!(),
    "s0" "s8", "s1" "s9", "s2" "s10", "s3" "s11", "s4" "s12", "s5" "s13", "s6" "s14", "s7" "s15");

/// Sums: 12 instructions for eight elements.
pub(super) const SUM: Loops = Loops {
    one: sum_of_one,
    four: sums_of_four,
    eight: sums_of_eight,
};
/// Largest elements: 36 instructions for eight.
pub(super) const MAX: Loops = Loops {
    one: max_of_one,
    four: max_of_four,
    eight: max_of_eight,
};
/// Smallest ones.
pub(super) const MIN: Loops = Loops {
    one: min_of_one,
    four: min_of_four,
    eight: min_of_eight,
};
