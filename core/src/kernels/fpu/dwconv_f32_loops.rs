//! The inner loop of [`super::dwconv_f32`]: one output pixel, eight channels at a time.
//!
//! In assembly on hard-float Cortex-M, for the reasons of [`super::conv2d_f32_loops`].
#![allow(unsafe_code)]

use crate::cells::{Dst, Src};
#[cfg(not(kernel_isa = "fpu"))]
use crate::ops::pointwise::clamp;

/// Channels of a block.
#[cfg(not(kernel_isa = "fpu"))]
const CHANNELS: usize = 8;

/// Operands of an output pixel, whose taps have as many channels.
#[derive(Clone, Copy)]
pub(super) struct Pixel<'a> {
    /// From the first tap's pixel on.
    pub(super) input: Src<'a, f32>,
    /// From the first tap's weights on.
    pub(super) weights: &'a [f32],
    /// Empty for none.
    pub(super) bias: &'a [f32],
    pub(super) output: Dst<'a, f32>,
    pub(super) residual: Option<Src<'a, f32>>,
    /// Rows and columns of taps inside the input.
    pub(super) taps: [usize; 2],
    /// Elements from a row of taps to the next, and from tap to tap, of the input.
    pub(super) steps: [usize; 2],
    /// Elements from a row of taps to the next of the weights.
    pub(super) weights_row: usize,
    pub(super) limits: [f32; 2],
}

impl Pixel<'_> {
    /// Computes the pixel. `None` where an operand is too short.
    #[cfg(not(kernel_isa = "fpu"))]
    #[inline(always)]
    pub(super) fn compute(&self) -> Option<()> {
        let channels = self.output.cells().len();
        let ([rows, columns], [row_step, column_step]) = (self.taps, self.steps);
        for first in (0..channels).step_by(CHANNELS) {
            let len = CHANNELS.min(channels - first);
            let mut sums = [0.0; CHANNELS];
            let biases = self.bias.get(first..).unwrap_or_default();
            sums.iter_mut().zip(biases).for_each(|(sum, &bias)| *sum = bias);
            for row in 0..rows {
                let mut from = row * row_step + first;
                let mut tap = row * self.weights_row + first;
                for _ in 0..columns {
                    let x = self.input.slice(from, len)?;
                    let w = self.weights.get(tap..)?.get(..len)?;
                    match (x.chunks::<CHANNELS>().0.get(0), w.as_array::<CHANNELS>()) {
                        (Some(x), Some(w)) => {
                            sums.iter_mut().zip(x).zip(w).for_each(|((sum, x), w)| *sum += x * w);
                        }
                        _ => sums
                            .iter_mut()
                            .zip(x.iter())
                            .zip(w)
                            .for_each(|((sum, x), w)| *sum += x * w),
                    }
                    from += column_step;
                    tap += channels;
                }
            }
            let outputs = self.output.slice(first, len)?;
            for (i, (output, &sum)) in outputs.cells().iter().zip(&sums).enumerate() {
                let residual = match self.residual {
                    Some(residual) => residual.get(first + i)?,
                    None => 0.0,
                };
                output.set(clamp(sum + residual, self.limits));
            }
        }
        Some(())
    }

    /// Computes the pixel. `None` where an operand is too short.
    #[cfg(kernel_isa = "fpu")]
    #[inline(always)]
    pub(super) fn compute(&self) -> Option<()> {
        const BYTES: usize = size_of::<f32>();
        let channels = self.output.cells().len();
        let ([rows, columns], [row_step, column_step]) = (self.taps, self.steps);
        let mut rows = rows;
        if rows == 0 || columns == 0 {
            rows = 0;
        } else {
            let last = |row: usize, column: usize| {
                let row = rows.wrapping_sub(1).wrapping_mul(row);
                let column = columns.wrapping_sub(1).wrapping_mul(column);
                row.wrapping_add(column).wrapping_add(channels)
            };
            if last(row_step, column_step) > self.input.len() || last(self.weights_row, channels) > self.weights.len() {
                return None;
            }
        }
        if !self.bias.is_empty() && self.bias.len() < channels {
            return None;
        }
        let residual = match self.residual {
            Some(residual) => residual.slice(0, channels)?.as_ptr(),
            None => core::ptr::null(),
        };
        let args = arm::DepthwiseArgs {
            x: self.input.as_ptr(),
            weights: self.weights.as_ptr(),
            bias: if self.bias.is_empty() {
                core::ptr::null()
            } else {
                self.bias.as_ptr()
            },
            out: self.output.as_mut_ptr(),
            residual,
            channels,
            step: column_step.wrapping_mul(BYTES),
            weights_step: channels.wrapping_mul(BYTES),
            rows,
            columns,
            x_skip: row_step
                .wrapping_sub(columns.wrapping_mul(column_step))
                .wrapping_mul(BYTES),
            weights_skip: self
                .weights_row
                .wrapping_sub(columns.wrapping_mul(channels))
                .wrapping_mul(BYTES),
            limited: u32::from(self.limits != [f32::NEG_INFINITY, f32::INFINITY]),
            limits: self.limits,
        };
        // SAFETY: all taps of all channels, and the output pixel with what is added to it, lie inside the operands, as just checked.
        unsafe { arm::pixel(&args) };
        Some(())
    }
}

#[cfg(kernel_isa = "fpu")]
mod arm {
    /// Arguments of [`pixel`]. Steps and skips are bytes.
    #[repr(C)]
    pub(super) struct DepthwiseArgs {
        /// The first tap's pixel.
        pub(super) x: *const f32,
        /// The first tap's weights.
        pub(super) weights: *const f32,
        /// Null for none.
        pub(super) bias: *const f32,
        pub(super) out: *mut f32,
        /// Added to the outputs; null for none.
        pub(super) residual: *const f32,
        /// One at least.
        pub(super) channels: usize,
        /// From tap to tap of a row, of the input and of the weights.
        pub(super) step: usize,
        pub(super) weights_step: usize,
        /// No row for no tap.
        pub(super) rows: usize,
        pub(super) columns: usize,
        /// From the end of a row of taps to the next, likewise; modulo 2^32.
        pub(super) x_skip: usize,
        pub(super) weights_skip: usize,
        /// 1 where the outputs have limits.
        pub(super) limited: u32,
        pub(super) limits: [f32; 2],
    }

    consecutive!(DepthwiseArgs: x, weights, bias, out, residual, channels, step, weights_step, rows);
    consecutive!(DepthwiseArgs: x_skip, weights_skip);

    /// A number within s8 and s9; a NaN stays.
    macro_rules! bounds {
        ($x:literal) => {
            concat!(
                "vcmp.f32 ",
                $x,
                ", s8\n vmrs APSR_nzcv, fpscr\n it mi\n vmovmi.f32 ",
                $x,
                ", s8\n",
                "vcmp.f32 ",
                $x,
                ", s9\n vmrs APSR_nzcv, fpscr\n it gt\n vmovgt.f32 ",
                $x,
                ", s9\n",
            )
        };
    }

    /// A block of channels, of as many bytes: its sums lie in the registers `$sums`, each in `$sum`; a tap's inputs, then what is added, in `$inputs`, each in
    /// `$x`; its weights in `$weights`, each in `$w`. `$zero` has the sums where there is no bias, of r2, which is 0.
    macro_rules! block {
        ($sums:literal $inputs:literal $weights:literal, $bytes:literal, $zero:expr, $($sum:literal $x:literal $w:literal),+) => {
            concat!(
                "movs r2, #0\n cmp r6, #0\n beq 12f\n vldmia r6!, {{", $sums, "}}\n b 13f\n",
                "12: ", $zero,
                "13: mov r0, r4\n mov r1, r5\n ldr r2, [r12, #{rows}]\n cbz r2, 16f\n",
                "14: ldr r3, [r12, #{columns}]\n",
                "15: vldmia r0, {{", $inputs, "}}\n vldmia r1, {{", $weights, "}}\n add r0, r0, r10\n add r1, r1, r11\n",
                $("vfma.f32 ", $sum, ", ", $x, ", ", $w, "\n",)+
                "subs r3, r3, #1\n bne 15b\n",
                "ldr r3, [r12, #{x_skip}]\n ldr lr, [r12, #{weights_skip}]\n add r0, r0, r3\n add r1, r1, lr\n",
                "subs r2, r2, #1\n bne 14b\n",
                "16: cmp r8, #0\n beq 17f\n vldmia r8!, {{", $inputs, "}}\n",
                $("vadd.f32 ", $sum, ", ", $sum, ", ", $x, "\n",)+
                "17: ldr r3, [r12, #{limited}]\n cmp r3, #0\n beq 18f\n add r3, r12, #{limits}\n vldmia r3, {{s8-s9}}\n",
                $(bounds!($sum),)+
                "18: vstmia r7!, {{", $sums, "}}\n add r4, r4, #", $bytes, "\n add r5, r5, #", $bytes, "\n",
            )
        };
    }

    /// All channels of an output pixel: 14 instructions for a tap of eight channels, 10 for one of four, 7 for one of a channel that is left.
    ///
    /// # Safety
    /// The operands are readable and `out` is writable, as the fields say.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn pixel(args: *const DepthwiseArgs) {
        naked!(DepthwiseArgs { rows, columns, x_skip, weights_skip, limited, limits } =>
            ".cpu cortex-m4",
            ".fpu fpv4-sp-d16",
            "push {{r4-r11, lr}}",
            "vpush {{s16-s23}}",
            "mov r12, r0",
            // r4: x; r5: weights; r6: biases; r7: outputs; r8: residual; r9: channels; r10, r11: steps.
            "ldm r0, {{r4-r11}}",
            "subs r9, r9, #8",
            "blt 20f",
            "10:",
            block!(
                "s0-s7" "s8-s15" "s16-s23", "32",
                "vmov s0, s1, r2, r2\n vmov s2, s3, r2, r2\n vmov s4, s5, r2, r2\n vmov s6, s7, r2, r2\n",
                "s0" "s8" "s16", "s1" "s9" "s17", "s2" "s10" "s18", "s3" "s11" "s19",
                "s4" "s12" "s20", "s5" "s13" "s21", "s6" "s14" "s22", "s7" "s15" "s23"
            ),
            "subs r9, r9, #8",
            "bge 10b",
            "20: adds r9, r9, #4",
            "blt 21f",
            block!(
                "s0-s3" "s8-s11" "s16-s19", "16",
                "vmov s0, s1, r2, r2\n vmov s2, s3, r2, r2\n",
                "s0" "s8" "s16", "s1" "s9" "s17", "s2" "s10" "s18", "s3" "s11" "s19"
            ),
            "subs r9, r9, #4",
            "21: adds r9, r9, #4",
            "beq 30f",
            "22:",
            block!("s0" "s8" "s16", "4", "vmov s0, r2\n", "s0" "s8" "s16"),
            "subs r9, r9, #1",
            "bne 22b",
            "30: vpop {{s16-s23}}",
            "pop {{r4-r11, pc}}",
        )
    }
}
