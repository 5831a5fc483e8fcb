//! The linear form of int8 sums, which some kernels want instead of the sum as the model states it.
//!
//! The reference shifts both operands left by 20, multiplies each by its scale over twice the larger one, adds, and requantises: three
//! rounded multiplications. As a function of the two stored bytes that is a rounded linear form but for errors below 2^-18 of a step, so
//! nearly always some linear form gives the same 65,536 results. [`Sum::find`] searches the nearest constants and compares all of them;
//! where none is equal the sum stays as the model states it.

use crate::arena::{Place, Slot};
use crate::ops::elementwise::{is_contiguous, output_len};
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::ops::packed_sum::PackedSumS8;
use crate::quant::Multiplier;
use crate::tensor::DType;

/// Units of the sum by which the constants that are searched can change it: 8 + 2 * 24 * 128 / 2^8, and rounding.
const CLOSE: i64 = 34;

/// Bits by which both operands are shifted left in the reference.
const REFERENCE_SHIFT: u32 = 20;

/// The linear form of `op`, where it is an int8 sum or difference of two tensors of one shape and has one that gives the same bits.
pub fn linear_sum<P: Place>(op: &BinaryInt<P>) -> Option<PackedSumS8<P>> {
    let (factors, offset) = Sum::of(op)?.find()?;
    Some(PackedSumS8 {
        output: op.output,
        a: op.a,
        b: op.b,
        count: output_len(&op.loops)?,
        factors,
        offset,
    })
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
    /// Whether the second operand is taken away.
    pub minus: bool,
}

impl Sum {
    /// An int8 sum or difference of two tensors of the output's shape; `None` for any other operator.
    pub fn of<P: Place>(op: &BinaryInt<P>) -> Option<Self> {
        let one_shape = is_contiguous(&op.loops, |l| l.a) && is_contiguous(&op.loops, |l| l.b);
        let sum =
            op.dtype == DType::I8 && matches!(op.op, IntOp::Add | IntOp::Sub) && u32::from(op.shift) == REFERENCE_SHIFT;
        if !sum || !one_shape {
            return None;
        }
        let narrow = |n: i32| i8::try_from(n).ok();
        let [za, zb, zy] = op.zero.map(narrow);
        let [low, high] = op.clamp.map(narrow);
        let [ma, mb, my] = op.multipliers;
        Some(Self {
            zero_points: [za?, zb?],
            multipliers: [ma, mb],
            output_multiplier: my,
            output_zero_point: zy?,
            clamp: [low?, high?],
            minus: op.op == IntOp::Sub,
        })
    }

    /// The reference's result.
    pub fn apply(&self, a: i8, b: i8) -> i8 {
        let [[a, _], [_, b]] = [self.scaled(a), self.scaled(b)];
        self.finish(a.wrapping_add(b))
    }

    /// A value as the first and as the second operand.
    fn scaled(&self, value: i8) -> [i32; 2] {
        let [za, zb] = self.zero_points;
        let [ma, mb] = self.multipliers;
        let [a, b] = [(za, ma), (zb, mb)]
            .map(|(zero_point, m)| m.apply((i32::from(value) - i32::from(zero_point)) << REFERENCE_SHIFT));
        // Rounded first, as in the reference: ties do not go with the sign.
        [a, if self.minus { b.wrapping_neg() } else { b }]
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
        let (fa, fb) = (ma?, if self.minus { mb?.checked_neg()? } else { mb? });
        let mut scaled = [[0i32; 2]; 256];
        for (value, scaled) in (i8::MIN..=i8::MAX).zip(&mut scaled) {
            *scaled = self.scaled(value);
        }
        let [za, zb] = self.zero_points.map(i64::from);
        let centre = (i64::from(self.output_zero_point) << PackedSumS8::FRACTION) + (1 << (PackedSumS8::FRACTION - 1));
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
                let sum = near.linear(a, b);
                if (sum - CLOSE) >> PackedSumS8::FRACTION != (sum + CLOSE) >> PackedSumS8::FRACTION {
                    close.push((a, b, self.finish(sa.wrapping_add(*sb)))).ok()?;
                }
            }
        }
        let around = |n: i32| (0..=n).flat_map(|d| [d, -d]);
        around(8)
            .flat_map(|nudge| around(24).map(move |a| (nudge, a)))
            .flat_map(|(nudge, a)| around(24).map(move |b| (nudge, a, b)))
            .filter_map(|(nudge, a, b)| form(a, b, nudge))
            .find(|op| close.iter().all(|&(a, b, sum)| op.element(a, b) == sum))
            .filter(|op| self.equals(op, &scaled))
            .map(|op| (op.factors, op.offset))
    }

    /// An operand's scale over the output's, with [`PackedSumS8::FRACTION`] + 8 bits.
    fn factor(&self, m: Multiplier) -> Option<i32> {
        let output = self.output_multiplier;
        let product = i128::from(m.mantissa) * i128::from(output.mantissa);
        let shift =
            i32::from(m.shift) + i32::from(output.shift) + (REFERENCE_SHIFT + PackedSumS8::FRACTION + 8) as i32 - 62;
        let right = u32::try_from(-shift).ok().filter(|right| (1..=126).contains(right))?;
        i32::try_from((product + (1 << (right - 1))) >> right).ok()
    }

    fn equals(&self, op: &PackedSumS8, scaled: &[[i32; 2]; 256]) -> bool {
        if !op.is_narrow() {
            return false;
        }
        let values = || (i8::MIN..=i8::MAX).zip(scaled);
        values().all(|(a, [sa, _])| values().all(|(b, [_, sb])| op.element(a, b) == self.finish(sa.wrapping_add(*sb))))
    }
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
            minus: false,
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
            let op: PackedSumS8 = PackedSumS8 {
                factors,
                offset,
                output: Default::default(),
                a: Default::default(),
                b: Default::default(),
                count: 0,
            };
            for a in i8::MIN..=i8::MAX {
                for b in i8::MIN..=i8::MAX {
                    assert_eq!(op.element(a, b), sum.apply(a, b), "{a} {b}");
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
    fn most_differences_have_a_linear_form() {
        let mut found = 0;
        for i in 0..20 {
            let real = |j: i32| 0.02 + f64::from((i * 7919 + j * 104_729) % 1000) / 8000.0;
            let point = |j: i32| (f64::from((i * 31 + j * 57) % 256) - 128.0) as i8;
            let difference = Sum {
                minus: true,
                ..sum((real(1), point(1)), (real(2), point(2)), (0.06 + real(3), point(3)))
            };
            let Some((factors, offset)) = difference.find() else {
                continue;
            };
            found += 1;
            let op: PackedSumS8 = PackedSumS8 {
                factors,
                offset,
                output: Default::default(),
                a: Default::default(),
                b: Default::default(),
                count: 0,
            };
            for (a, b) in (i8::MIN..=i8::MAX).flat_map(|a| (i8::MIN..=i8::MAX).map(move |b| (a, b))) {
                assert_eq!(op.element(a, b), difference.apply(a, b), "{a} {b}");
            }
        }
        assert!(found >= 17, "{found} of 20 differences have a linear form");
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
