//! Elementwise operators of two integer operands, with broadcasting, as TensorFlow Lite Micro computes them.
//!
//! With `a' = a - zero[0]`, `b' = b - zero[1]` and `M` the multipliers, the result is `clamp(zero[2] + r)`:
//! addition `M2(M0(a' << s) + M1(b' << s))`, subtraction likewise, product `M2(a' * b')`, PReLU `M0(a')` where a' >= 0 and
//! `M2(a' * b')` elsewhere. Minimum and maximum compare stored numbers. Plain i32 tensors are computed without multipliers;
//! they alone are divided, towards zero, by 0 to 0.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
pub use crate::ops::binary::IntOp;
use crate::ops::elementwise::{Loop, MAX_LOOPS, is_walkable, only_line, operand_len, output_len};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;
use crate::quant::Multiplier;
use crate::tensor::DType;

operator! {
    /// `y = clamp(zero[2] + a op b)` on stored integers of one type.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct BinaryInt<P> {
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
        pub op: IntOp,
        /// Zero points of a, b and the result.
        pub zero: [i32; 3],
        /// Left shift of a sum's operands before they are scaled.
        pub shift: u8,
        /// Of a, b and the result.
        pub multipliers: [Multiplier; 3],
        /// Clamp of the result, in stored terms.
        pub clamp: [i32; 2],
    }
}

impl<P: Place> Operator for BinaryInt<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[output_len(&self.loops).ok_or(Fault::Shape)?, 4])?;
        checked_size(&[operand_len(&self.loops, |l| l.a).ok_or(Fault::Shape)?, 4])?;
        checked_size(&[operand_len(&self.loops, |l| l.b).ok_or(Fault::Shape)?, 4])?;
        if !is_walkable(&self.loops, |l| l.a) || !is_walkable(&self.loops, |l| l.b) {
            return Err(Fault::Shape);
        }
        // Plain integers have no scale that a PReLU's factor could take, and quantised ones no quotient yet.
        if self.op
            == if self.dtype == DType::I32 {
                IntOp::Prelu
            } else {
                IntOp::Div
            }
        {
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

    fn elements_mut(&mut self) -> Option<&mut u32> {
        only_line(&mut self.loops)
    }
}
