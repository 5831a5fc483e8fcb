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
    /// One element. A sum beyond 32 bits, which the host never packs, is cut as in the kernels' loops.
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
        checked_size(&[self.count]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<i8>(Access::Write, self.output, self.count));
        visit(Operand::of::<i8>(Access::Read, self.a, self.count));
        visit(Operand::of::<i8>(Access::Read, self.b, self.count));
    }
}
