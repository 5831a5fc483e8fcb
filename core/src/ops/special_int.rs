//! Operations of two integer operands that fewer networks use, with broadcasting, as TensorFlow Lite Micro computes them.
//!
//! With `a' = a - zero[0]`, `b' = b - zero[1]` and `M` the multipliers, the result is `clamp(zero[2] + r)`: squared difference
//! `M2((M0(a' << s) - M1(b' << s))^2)`, quotient `M2(a' / b')` by the reciprocal of b'. Quotients rounded down, their remainders, and all operations of int32
//! work on stored numbers.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::elementwise::{Loop, MAX_LOOPS, is_walkable, operand_len, output_len};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;
use crate::quant::Multiplier;
use crate::tensor::DType;

/// The operations. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SpecialIntOp {
    /// (a - b)^2
    SquaredDifference,
    /// a / b of int8; a divisor of zero gives the end of the range.
    Div,
    /// The largest integer <= a / b; 0 where b is 0.
    FloorDiv,
    /// a - b * `FloorDiv`; 0 where b is 0.
    FloorMod,
}

operator! {
    /// `y = clamp(zero[2] + a op b)` on stored integers of one type.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SpecialInt<P> {
        /// Contiguous, of the broadcast shape.
        pub output: P,
        /// First operand.
        pub a: P,
        /// Second operand.
        pub b: P;
        /// Axes, outermost first.
        pub loops: heapless::Vec<Loop, MAX_LOOPS>,
        /// Type of all three: int8, int16 or int32.
        pub dtype: DType,
        /// The operation.
        pub op: SpecialIntOp,
        /// Zero points of a, b and the result.
        pub zero: [i32; 3],
        /// Left shift of the operands of a difference before they are scaled.
        pub shift: u8,
        /// Of a, b and the result.
        pub multipliers: [Multiplier; 3],
        /// Clamp of the result, in stored terms.
        pub clamp: [i32; 2],
    }
}

impl<P: Place> Operator for SpecialInt<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[output_len(&self.loops).ok_or(Fault::Shape)?, 4])?;
        checked_size(&[operand_len(&self.loops, |l| l.a).ok_or(Fault::Shape)?, 4])?;
        checked_size(&[operand_len(&self.loops, |l| l.b).ok_or(Fault::Shape)?, 4])?;
        if !is_walkable(&self.loops, |l| l.a) || !is_walkable(&self.loops, |l| l.b) {
            return Err(Fault::Shape);
        }
        if self.op == SpecialIntOp::Div && self.dtype != DType::I8 {
            return Err(Fault::Unsupported);
        }
        let valid = self.multipliers.iter().all(|m| m.is_valid()) && self.shift < 32 && self.clamp[0] <= self.clamp[1];
        if valid && matches!(self.dtype, DType::I8 | DType::I16 | DType::I32) {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let of = |access, slot, len: Option<u32>| Operand::of_type(self.dtype, access, slot, len.unwrap_or(u32::MAX));
        visit(of(Access::Write, self.output, output_len(&self.loops)));
        visit(of(Access::Read, self.a, operand_len(&self.loops, |l| l.a)));
        visit(of(Access::Read, self.b, operand_len(&self.loops, |l| l.b)));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // A quotient is a product with a reciprocal, which is approached in steps.
        let factor = if self.op == SpecialIntOp::Div { 5 } else { 2 };
        of_operands(|visit| self.operands(needs, visit)).times(factor)
    }
}
