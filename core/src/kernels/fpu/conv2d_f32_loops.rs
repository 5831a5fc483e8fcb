//! The inner loop of [`super::conv2d_f32`]: one run of one or four pixels, times four channels' weights.
//!
//! In assembly on hard-float Cortex-M: Rust fuses no multiplication with an addition, has no `mul_add` in `core`, and its inline assembly takes no
//! floating-point registers there; VMUL and VADD with one load each took 2.4 to 3.2 instructions a MAC, VLDM and VFMA take 1.2.
#![allow(unsafe_code)]

use crate::cells::Src;

/// Channels of a block.
pub const CHANNELS: usize = 4;

/// Adds the products of a run to the sums of `N` pixels. The slices have the same length.
#[cfg(not(kernel_isa = "fpu"))]
pub(super) fn multiply<const N: usize>(
    sums: &mut [[f32; CHANNELS]; N],
    inputs: [Src<'_, f32>; N],
    weights: &[[f32; CHANNELS]],
) {
    for (i, weights) in weights.iter().enumerate() {
        let x = inputs.map(|x| x.get(i).unwrap_or(0.0));
        for (sums, x) in sums.iter_mut().zip(x) {
            sums.iter_mut().zip(weights).for_each(|(sum, w)| *sum += x * w);
        }
    }
}

/// Adds the products of a run to the sums of `N` pixels, one or four. The slices have the same length.
#[cfg(kernel_isa = "fpu")]
#[inline(always)]
pub(super) fn multiply<const N: usize>(
    sums: &mut [[f32; CHANNELS]; N],
    inputs: [Src<'_, f32>; N],
    weights: &[[f32; CHANNELS]],
) {
    const { assert!(N == 1 || N == 4) };
    let len = inputs.iter().fold(weights.len(), |len, x| len.min(x.len()));
    let x = inputs.map(Src::as_ptr);
    // SAFETY: every input has `len` elements, the weights as many blocks; `sums` and `x` have `N` entries.
    unsafe {
        let (sums, x) = (sums.as_mut_ptr(), x.as_ptr());
        match N {
            4 => arm::multiply_4(sums, x, weights.as_ptr(), len),
            _ => arm::multiply_1(sums, x, weights.as_ptr(), len),
        }
    }
}

#[cfg(kernel_isa = "fpu")]
mod arm {
    use super::CHANNELS;

    /// The 16 products of one input of four pixels.
    macro_rules! products {
        ($x0:literal $x1:literal $x2:literal $x3:literal, $w0:literal $w1:literal $w2:literal $w3:literal) => {
            concat!(
                "vfma.f32 s0, ",
                $x0,
                ", ",
                $w0,
                "\n vfma.f32 s1, ",
                $x0,
                ", ",
                $w1,
                "\n",
                "vfma.f32 s2, ",
                $x0,
                ", ",
                $w2,
                "\n vfma.f32 s3, ",
                $x0,
                ", ",
                $w3,
                "\n",
                "vfma.f32 s4, ",
                $x1,
                ", ",
                $w0,
                "\n vfma.f32 s5, ",
                $x1,
                ", ",
                $w1,
                "\n",
                "vfma.f32 s6, ",
                $x1,
                ", ",
                $w2,
                "\n vfma.f32 s7, ",
                $x1,
                ", ",
                $w3,
                "\n",
                "vfma.f32 s8, ",
                $x2,
                ", ",
                $w0,
                "\n vfma.f32 s9, ",
                $x2,
                ", ",
                $w1,
                "\n",
                "vfma.f32 s10, ",
                $x2,
                ", ",
                $w2,
                "\n vfma.f32 s11, ",
                $x2,
                ", ",
                $w3,
                "\n",
                "vfma.f32 s12, ",
                $x3,
                ", ",
                $w0,
                "\n vfma.f32 s13, ",
                $x3,
                ", ",
                $w1,
                "\n",
                "vfma.f32 s14, ",
                $x3,
                ", ",
                $w2,
                "\n vfma.f32 s15, ",
                $x3,
                ", ",
                $w3,
                "\n",
            )
        };
    }

    /// Two inputs of four pixels at a time: 39 instructions for 32 MACs.
    ///
    /// # Safety
    /// Four sums of four channels, four inputs of `len` elements, `len` blocks of weights.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn multiply_4(
        sums: *mut [f32; CHANNELS],
        inputs: *const *const f32,
        weights: *const [f32; CHANNELS],
        len: usize,
    ) {
        naked!(
            ".cpu cortex-m4",
            ".fpu fpv4-sp-d16",
            "push    {{r4-r7}}",
            "vpush   {{s16-s31}}",
            "ldm     r1, {{r4-r7}}",
            "vldmia  r0, {{s0-s15}}",
            "lsrs    r1, r3, #1",
            "beq     20f",
            "10:",
            "vldmia  r4!, {{s16-s17}}",
            "vldmia  r5!, {{s18-s19}}",
            "vldmia  r6!, {{s20-s21}}",
            "vldmia  r7!, {{s22-s23}}",
            "vldmia  r2!, {{s24-s31}}",
            products!("s16" "s18" "s20" "s22", "s24" "s25" "s26" "s27"),
            products!("s17" "s19" "s21" "s23", "s28" "s29" "s30" "s31"),
            "subs    r1, #1",
            "bne     10b",
            "20:",
            "lsls    r3, r3, #31",
            "beq     30f",
            "vldr    s16, [r4]",
            "vldr    s18, [r5]",
            "vldr    s20, [r6]",
            "vldr    s22, [r7]",
            "vldmia  r2, {{s24-s27}}",
            products!("s16" "s18" "s20" "s22", "s24" "s25" "s26" "s27"),
            "30:",
            "vstmia  r0, {{s0-s15}}",
            "vpop    {{s16-s31}}",
            "pop     {{r4-r7}}",
            "bx      lr",
        )
    }

    macro_rules! one {
        ($x:literal, $w0:literal $w1:literal $w2:literal $w3:literal) => {
            concat!(
                "vfma.f32 s0, ",
                $x,
                ", ",
                $w0,
                "\n vfma.f32 s1, ",
                $x,
                ", ",
                $w1,
                "\n",
                "vfma.f32 s2, ",
                $x,
                ", ",
                $w2,
                "\n vfma.f32 s3, ",
                $x,
                ", ",
                $w3,
                "\n",
            )
        };
    }

    /// Four inputs of a pixel at a time: 20 instructions for 16 MACs.
    ///
    /// # Safety
    /// As for [`multiply_4`], with one of each.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn multiply_1(
        sums: *mut [f32; CHANNELS],
        inputs: *const *const f32,
        weights: *const [f32; CHANNELS],
        len: usize,
    ) {
        naked!(
            ".cpu cortex-m4",
            ".fpu fpv4-sp-d16",
            "vpush   {{s16-s31}}",
            "ldr     r1, [r1]",
            "vldmia  r0, {{s0-s3}}",
            "lsrs    r12, r3, #2",
            "beq     20f",
            "10:",
            "vldmia  r1!, {{s4-s7}}",
            "vldmia  r2!, {{s16-s31}}",
            one!("s4", "s16" "s17" "s18" "s19"),
            one!("s5", "s20" "s21" "s22" "s23"),
            one!("s6", "s24" "s25" "s26" "s27"),
            one!("s7", "s28" "s29" "s30" "s31"),
            "subs    r12, r12, #1",
            "bne     10b",
            "20:",
            "ands    r3, r3, #3",
            "beq     30f",
            "21:",
            "vldmia  r1!, {{s4}}",
            "vldmia  r2!, {{s16-s19}}",
            one!("s4", "s16" "s17" "s18" "s19"),
            "subs    r3, #1",
            "bne     21b",
            "30:",
            "vstmia  r0, {{s0-s3}}",
            "vpop    {{s16-s31}}",
            "bx      lr",
        )
    }
}
