//! Sums of int8 tensors: 24 instructions for four elements.
//!
//! The reference shifts both operands left by 20, multiplies each by its scale over twice the larger one, adds, and requantises: three
//! rounded multiplications. As a function of the two stored bytes that is a rounded linear form but for errors below 2^-18 of a step, so
//! nearly always some linear form gives the same 65,536 results. [`Sum::find`] searches the nearest constants and compares all of them;
//! where none is equal the step stays with the scalar kernel.
//!
//! The loop masks bytes 1 and 3 (and, shifted, 0 and 2) of a word into the high bytes of halves: an SMLAWB or SMLAWT then adds
//! `factor * byte / 2^8`.

use crate::arena::{Mem, Slot};
use crate::kernels::kernel::Kernel;
use crate::ops::packed_sum::PackedSumS8;
use crate::quant::Multiplier;

/// int8, both operands of the output's shape.
#[derive(Debug)]
pub struct S8;

/// Fraction bits of the sum.
const FRACTION: u32 = 20;

/// Units of the sum by which the constants that are searched can change it: 8 + 2 * 24 * 128 / 2^8, and rounding.
const CLOSE: i64 = 34;

/// Bits by which both operands are shifted left in the reference.
const REFERENCE_SHIFT: u32 = 20;

impl Kernel for S8 {
    type Op = PackedSumS8;

    fn distance(_: &PackedSumS8, index: usize) -> Option<i64> {
        // Elements in order, each (with up to three after it) read before it is written.
        (index == 1 || index == 2).then_some(0)
    }

    fn run(op: &PackedSumS8, mem: &Mem<'_>) -> Option<()> {
        let output = mem.dst::<i8>(op.output, op.count)?;
        let a = mem.src::<i8>(op.a, op.count)?;
        let b = mem.src::<i8>(op.b, op.count)?;
        let quads = op.count as usize / 4;
        if quads > 0 {
            // SAFETY: all three have four elements a quad.
            unsafe { quads_of(output.as_mut_ptr(), a.as_ptr(), b.as_ptr(), quads, op) };
        }
        for at in 4 * quads..op.count as usize {
            output.set(at, element(op, a.get(at)?, b.get(at)?))?;
        }
        Some(())
    }
}

/// A quantised sum as the model states it.
#[derive(Debug, Clone, Copy)]
pub struct Sum {
    /// Zero points of the operands.
    pub zero_points: [i8; 2],
    /// Scales of the operands over twice the larger one.
    pub multipliers: [Multiplier; 2],
    /// Twice the larger scale over 2^20 times the output's.
    pub output_multiplier: Multiplier,
    /// Zero point of the output.
    pub output_zero_point: i8,
    /// Clamp of the result, in stored terms.
    pub clamp: [i8; 2],
}

impl Sum {
    /// The reference's result.
    pub fn apply(&self, a: i8, b: i8) -> i8 {
        let [[a, _], [_, b]] = [self.scaled(a), self.scaled(b)];
        self.finish(a.wrapping_add(b))
    }

    /// A value as the first and as the second operand.
    fn scaled(&self, value: i8) -> [i32; 2] {
        let [za, zb] = self.zero_points;
        let [ma, mb] = self.multipliers;
        [(za, ma), (zb, mb)]
            .map(|(zero_point, m)| m.apply((i32::from(value) - i32::from(zero_point)) << REFERENCE_SHIFT))
    }

    fn finish(&self, sum: i32) -> i8 {
        let [low, high] = self.clamp.map(i32::from);
        let out = self
            .output_multiplier
            .apply(sum)
            .wrapping_add(i32::from(self.output_zero_point));
        out.max(low).min(high) as i8
    }

    /// The factors and the offset of [`PackedSumS8`], if some give the reference's result for every pair of bytes.
    pub fn find(&self) -> Option<([i32; 2], i32)> {
        if self.clamp != [-128, 127] {
            return None;
        }
        let [ma, mb] = self.multipliers.map(|m| self.factor(m));
        let (fa, fb) = (ma?, mb?);
        let mut scaled = [[0i32; 2]; 256];
        for (value, scaled) in (i8::MIN..=i8::MAX).zip(&mut scaled) {
            *scaled = self.scaled(value);
        }
        let [za, zb] = self.zero_points.map(i64::from);
        let centre = (i64::from(self.output_zero_point) << FRACTION) + (1 << (FRACTION - 1));
        // Both products are rounded down, by half a unit on average.
        let centre = centre - ((i64::from(fa) * za + i64::from(fb) * zb) >> 8) + 1;
        let form = |a: i32, b: i32, nudge: i32| {
            Some(PackedSumS8 {
                factors: [fa.checked_add(a)?, fb.checked_add(b)?],
                offset: i32::try_from(centre).ok()?.checked_add(nudge)?,
                output: Slot::default(),
                a: Slot::default(),
                b: Slot::default(),
                count: 0,
            })
        };
        // Near constants change the result of the few pairs alone that lie next to a step; the search looks at those.
        let near = form(0, 0, 0)?;
        let mut close: heapless::Vec<(i8, i8, i8), 128> = heapless::Vec::new();
        for (a, [sa, _]) in (i8::MIN..=i8::MAX).zip(&scaled) {
            for (b, [_, sb]) in (i8::MIN..=i8::MAX).zip(&scaled) {
                let sum = linear(&near, a, b);
                if (sum - CLOSE) >> FRACTION != (sum + CLOSE) >> FRACTION {
                    close.push((a, b, self.finish(sa.wrapping_add(*sb)))).ok()?;
                }
            }
        }
        let around = |n: i32| (0..=n).flat_map(|d| [d, -d]);
        around(8)
            .flat_map(|nudge| around(24).map(move |a| (nudge, a)))
            .flat_map(|(nudge, a)| around(24).map(move |b| (nudge, a, b)))
            .filter_map(|(nudge, a, b)| form(a, b, nudge))
            .find(|op| close.iter().all(|&(a, b, sum)| element(op, a, b) == sum))
            .filter(|op| self.equals(op, &scaled))
            .map(|op| (op.factors, op.offset))
    }

    /// An operand's scale over the output's, with [`FRACTION`] + 8 bits.
    fn factor(&self, m: Multiplier) -> Option<i32> {
        let output = self.output_multiplier;
        let product = i128::from(m.mantissa) * i128::from(output.mantissa);
        let shift = i32::from(m.shift) + i32::from(output.shift) + (REFERENCE_SHIFT + FRACTION + 8) as i32 - 62;
        let right = u32::try_from(-shift).ok().filter(|right| (1..=126).contains(right))?;
        i32::try_from((product + (1 << (right - 1))) >> right).ok()
    }

    fn equals(&self, op: &PackedSumS8, scaled: &[[i32; 2]; 256]) -> bool {
        // The sum must not wrap.
        let reach: i64 = op.factors.iter().map(|&f| i64::from(f).abs() >> 1).sum();
        if reach + i64::from(op.offset).abs() + 2 > i64::from(i32::MAX) {
            return false;
        }
        let values = || (i8::MIN..=i8::MAX).zip(scaled);
        values().all(|(a, [sa, _])| values().all(|(b, [_, sb])| element(op, a, b) == self.finish(sa.wrapping_add(*sb))))
    }
}

/// The fewest instructions of the step: the loop's.
pub fn bound(op: &PackedSumS8) -> u64 {
    u64::from(op.count) * 22 / 4
}

/// One element. A sum beyond 32 bits, which the host never packs, is cut as in the loop.
#[inline]
fn element(op: &PackedSumS8, a: i8, b: i8) -> i8 {
    (linear(op, a, b) as i32 >> FRACTION).clamp(-128, 127) as i8
}

/// The linear form.
#[inline]
fn linear(op: &PackedSumS8, a: i8, b: i8) -> i64 {
    let [fa, fb] = op.factors.map(i64::from);
    i64::from(op.offset) + ((fa * i64::from(a)) >> 8) + ((fb * i64::from(b)) >> 8)
}

/// # Safety
/// All three have `4 * quads` elements; `quads > 0`.
#[cfg(not(all(cortex_m = "dsp", feature = "dsp")))]
unsafe fn quads_of(output: *mut i8, a: *const i8, b: *const i8, quads: usize, op: &PackedSumS8) {
    for at in 0..4 * quads {
        // SAFETY: as the caller promises.
        unsafe { *output.add(at) = element(op, *a.add(at), *b.add(at)) };
    }
}

/// # Safety
/// All three have `4 * quads` elements; `quads > 0`.
#[cfg(all(cortex_m = "dsp", feature = "dsp"))]
unsafe fn quads_of(output: *mut i8, a: *const i8, b: *const i8, quads: usize, op: &PackedSumS8) {
    let [fa, fb] = op.factors;
    let constants = [fa, fb, op.offset, 0xFF00_FF00_u32 as i32];
    // SAFETY: as the caller promises.
    unsafe { sum_asm(output, a, b, quads, &constants) }
}

/// In assembly: from Rust the same sums take 33 instructions for four elements, byte by byte.
#[cfg(all(cortex_m = "dsp", feature = "dsp"))]
#[unsafe(naked)]
unsafe extern "C" fn sum_asm(output: *mut i8, a: *const i8, b: *const i8, quads: usize, constants: &[i32; 4]) {
    core::arch::naked_asm!(
        ".cpu cortex-m33",
        "push.w  {{r4-r11, lr}}",
        "ldr.w   r4, [sp, #36]",
        "ldm.w   r4, {{r4-r7}}",
        "10:",
        "ldr.w   r8, [r1], #4",
        "ldr.w   r9, [r2], #4",
        "and.w   r10, r7, r8, lsl #8",
        "and.w   r11, r7, r9, lsl #8",
        "smlawb  r12, r4, r10, r6",
        "smlawt  lr, r4, r10, r6",
        "smlawb  r12, r5, r11, r12",
        "smlawt  lr, r5, r11, lr",
        "and.w   r8, r7, r8",
        "and.w   r9, r7, r9",
        "smlawb  r10, r4, r8, r6",
        "smlawt  r11, r4, r8, r6",
        "smlawb  r10, r5, r9, r10",
        "smlawt  r11, r5, r9, r11",
        "ssat    r12, #8, r12, asr #20",
        "ssat    r10, #8, r10, asr #20",
        "ssat    lr, #8, lr, asr #20",
        "ssat    r11, #8, r11, asr #20",
        "bfi     r12, r10, #8, #8",
        "bfi     r12, lr, #16, #8",
        "bfi     r12, r11, #24, #8",
        "subs    r3, #1",
        "str.w   r12, [r0], #4",
        "bne     10b",
        "pop.w   {{r4-r11, pc}}",
    )
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn sum(a: (f64, i8), b: (f64, i8), y: (f64, i8)) -> Sum {
        let twice = 2.0 * a.0.max(b.0);
        let of = |real: f64| Multiplier::from_real(real).unwrap();
        Sum {
            zero_points: [a.1, b.1],
            multipliers: [of(a.0 / twice), of(b.0 / twice)],
            output_multiplier: of(twice / (f64::from(1 << REFERENCE_SHIFT) * y.0)),
            output_zero_point: y.1,
            clamp: [-128, 127],
        }
    }

    /// The residual sums of the image classification network of MLPerf Tiny.
    #[test]
    fn real_sums_have_a_linear_form() {
        for (a, b, y) in [
            (
                (0.039393551647663116, -128),
                (0.10419496148824692, 4),
                (0.050945673137903214, -128),
            ),
            (
                (0.044761426746845245, -17),
                (0.11311884224414825, 4),
                (0.0532362163066864, -128),
            ),
            (
                (0.08385830372571945, 38),
                (0.21724364161491394, -2),
                (0.1270691454410553, -128),
            ),
        ] {
            let sum = sum(a, b, y);
            let (factors, offset) = sum.find().unwrap();
            let op = PackedSumS8 {
                factors,
                offset,
                output: Default::default(),
                a: Default::default(),
                b: Default::default(),
                count: 0,
            };
            for a in i8::MIN..=i8::MAX {
                for b in i8::MIN..=i8::MAX {
                    assert_eq!(element(&op, a, b), sum.apply(a, b), "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn most_sums_have_a_linear_form() {
        let mut found = 0;
        for i in 0..40 {
            let real = |j: i32| f64::from((i * 7919 + j * 104_729) % 1000) / 1000.0;
            let point = |j: i32| (f64::from((i * 31 + j * 57) % 256) - 128.0) as i8;
            let sum = sum(
                (0.02 + real(1) / 8.0, point(1)),
                (0.02 + real(2) / 8.0, point(2)),
                (0.08 + real(3) / 8.0, point(3)),
            );
            found += usize::from(sum.find().is_some());
        }
        std::println!("{found} of 40 sums have a linear form");
        assert!(found >= 38);
    }

    #[test]
    fn a_clamped_sum_has_none() {
        let clamped = Sum {
            clamp: [-128, 100],
            ..sum((0.05, 0), (0.05, 0), (0.1, 0))
        };
        assert_eq!(clamped.find(), None);
    }
}
