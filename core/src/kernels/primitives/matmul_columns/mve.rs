//! Loops of Helium for products of matrices: one element by a row of the other matrix, whose sums stay in registers.

/// Sums of a call.
pub(in crate::kernels) const MOST: usize = 16;

/// Columns `columns` of a matrix whose rows have `width` elements, and the elements that they are multiplied with.
#[repr(C)]
pub(in crate::kernels) struct MatmulColumnsArgs {
    pub(in crate::kernels) x: *const i8,
    /// From an element to the next.
    pub(in crate::kernels) step: usize,
    /// Elements, not none.
    pub(in crate::kernels) count: usize,
    pub(in crate::kernels) m: *const i8,
    pub(in crate::kernels) width: usize,
    /// Room for [`MOST`].
    pub(in crate::kernels) sums: *mut i32,
    pub(in crate::kernels) zero: i32,
    /// Columns left, not 0.
    pub(in crate::kernels) columns: usize,
}
consecutive!(MatmulColumnsArgs: x, step, count, m, width, sums, zero, columns);

/// `sum of (x[k] - zero) * m[k, i]`, modulo 2^32, of sixteen columns, or of four at the most where fewer than sixteen are left: their number.
///
/// # Safety
/// `args` gives elements at `x`, and as many rows of `m` with `args.columns` columns left.
pub(in crate::kernels) unsafe fn columns(args: &MatmulColumnsArgs) -> usize {
    if args.columns >= MOST {
        // SAFETY: at least `MOST` (sixteen) columns are left, and this function's contract guarantees elements and rows.
        unsafe { sixteen(args) };
        return MOST;
    }
    // SAFETY: the loop takes at most four of the columns left, and this function's contract guarantees elements and rows.
    unsafe { four(args) };
    args.columns.min(4)
}

/// # Safety
/// As for [`columns`], with at least sixteen columns left.
#[unsafe(naked)]
unsafe extern "C" fn sixteen(args: &MatmulColumnsArgs) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r7, lr}}",
        "vpush {{d8-d11}}",
        // Elements r1, step r2, count r3, matrix r4, width r5, sums r6, zero r7.
        "ldm r0, {{r1-r7}}",
        "vmov.i32 q0, #0",
        "vmov.i32 q1, #0",
        "vmov.i32 q2, #0",
        "vmov.i32 q3, #0",
        "dls lr, r3",
        "2: ldrsb r0, [r1]",
        "vldrb.s32 q4, [r4]",
        "sub r0, r0, r7",
        "vldrb.s32 q5, [r4, #{second}]",
        "vmla.s32 q0, q4, r0",
        "vldrb.s32 q4, [r4, #{third}]",
        "vmla.s32 q1, q5, r0",
        "vldrb.s32 q5, [r4, #{fourth}]",
        "vmla.s32 q2, q4, r0",
        "add r4, r5",
        "vmla.s32 q3, q5, r0",
        "add r1, r2",
        "le lr, 2b",
        "vstrw.32 q0, [r6]",
        "vstrw.32 q1, [r6, #{second_sums}]",
        "vstrw.32 q2, [r6, #{third_sums}]",
        "vstrw.32 q3, [r6, #{fourth_sums}]",
        "vpop {{d8-d11}}",
        "pop {{r4-r7, pc}}";
        // Columns by fours: bytes, and words of sums.
        second = const 4, third = const 8, fourth = const 12,
        second_sums = const 16, third_sums = const 32, fourth_sums = const 48,
    )
}

/// # Safety
/// As for [`columns`], with fewer than sixteen columns left.
#[unsafe(naked)]
unsafe extern "C" fn four(args: &MatmulColumnsArgs) {
    naked!(
        ".cpu cortex-m55",
        "push {{r4-r7, lr}}",
        "ldm r0!, {{r1-r7}}",
        "ldr r0, [r0]",
        "vmov.i32 q0, #0",
        // As many lanes as there are columns.
        "vctp.32 r0",
        "dls lr, r3",
        "2: ldrsb r0, [r1]",
        "vpst",
        "vldrbt.s32 q1, [r4]",
        "sub r0, r0, r7",
        "add r1, r2",
        "vmla.s32 q0, q1, r0",
        "add r4, r5",
        "le lr, 2b",
        "vstrw.32 q0, [r6]",
        "pop {{r4-r7, pc}}",
    )
}
