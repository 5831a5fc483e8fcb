//! The sum of two int8 tensors as one linear form of the stored values, where the host has found one that gives the reference's bits.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;

operator! {
    /// `y = saturate((factors[0] * a / 2^8 + factors[1] * b / 2^8 + offset) / 2^20)`, elementwise, all divisions rounding down.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct PackedSumS8<P> {
        /// Contiguous.
        pub output: P,
        /// Of the output's shape.
        pub a: P,
        /// Of the output's shape.
        pub b: P;
        /// Elements.
        pub count: u32,
        /// Scales of the operands over the output's, with 28 fraction bits.
        pub factors: [i32; 2],
        /// Zero points and rounding, with 20 fraction bits.
        pub offset: i32,
    }
}

impl PackedSumS8 {
    /// Fraction bits of the sum.
    pub const FRACTION: u32 = 20;
}

impl<P> PackedSumS8<P> {
    /// Whether no sum of two bytes leaves 32 bits on its way: what lies beyond, kernels would cut or hold at the end of the range, each in its way.
    pub(crate) fn is_narrow(&self) -> bool {
        let products: i64 = self.factors.iter().map(|&f| i64::from(f).abs() >> 1).sum();
        products + i64::from(self.offset).abs() + 2 <= i64::from(i32::MAX)
    }

    /// One element.
    #[inline]
    pub fn element(&self, a: i8, b: i8) -> i8 {
        (self.linear(a, b) as i32 >> PackedSumS8::FRACTION).clamp(-128, 127) as i8
    }

    /// The linear form.
    #[inline]
    pub(crate) fn linear(&self, a: i8, b: i8) -> i64 {
        let [fa, fb] = self.factors.map(i64::from);
        i64::from(self.offset) + ((fa * i64::from(a)) >> 8) + ((fb * i64::from(b)) >> 8)
    }
}

impl<P: Place> Operator for PackedSumS8<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count])?;
        if self.is_narrow() {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<i8>(Access::Write, self.output, self.count));
        visit(Operand::of::<i8>(Access::Read, self.a, self.count));
        visit(Operand::of::<i8>(Access::Read, self.b, self.count));
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        Some(&mut self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Slot;

    /// Each of them would be cut by one kernel and held at the end of the range by another.
    #[test]
    fn sums_that_leave_32_bits_are_refused() {
        let of = |factors: [i32; 2], offset: i32| PackedSumS8 {
            output: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            count: 7,
            factors,
            offset,
        };
        for (factors, offset) in [
            ([1 << 30, -(1 << 30)], (1 << 30) - 3),
            ([i32::MAX, 0], 1 << 29),
            ([0, 0], i32::MAX - 2),
        ] {
            let op = of(factors, offset);
            op.check().expect("within 32 bits");
            for (a, b) in [(-128, -128), (-128, 127), (127, -128), (127, 127)] {
                let sum = op.linear(a, b);
                assert_eq!(i64::from(sum as i32), sum);
            }
        }
        for (factors, offset) in [
            ([1 << 30, 1 << 30], 1 << 30),
            ([i32::MIN, i32::MIN], 0),
            ([1 << 30, 1 << 30], -(1 << 30)),
            ([0, 0], i32::MIN),
        ] {
            assert_eq!(
                of(factors, offset).check(),
                Err(Fault::Quantisation),
                "{factors:?} {offset}"
            );
        }
    }
}
