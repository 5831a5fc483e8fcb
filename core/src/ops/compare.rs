//! Comparisons and logical operators of two operands, with broadcasting, as TensorFlow Lite Micro computes them.
//!
//! Quantised numbers are compared as `M0((a - zero[0]) << shift)` and `M1((b - zero[1]) << shift)`; all others as they are stored.

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

/// Comparison of two numbers. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Comparison {
    /// a = b
    Equal,
    /// a and b differ; so does a NaN from itself.
    NotEqual,
    /// a < b
    Less,
    /// a <= b
    LessOrEqual,
    /// Of truth values: both hold.
    And,
    /// Of truth values: one holds, or both.
    Or,
}

operator! {
    /// `y = a op b`, a truth value for each pair of numbers of one type.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Compare<P> {
        /// Contiguous, of the broadcast shape.
        pub output: P,
        /// First operand.
        pub a: P,
        /// Second operand.
        pub b: P;
        /// Axes, outermost first.
        pub loops: heapless::Vec<Loop, MAX_LOOPS>,
        /// Type of the operands: f32, int8, int32 or bool.
        pub dtype: DType,
        /// The question.
        pub op: Comparison,
        /// Zero points of a and b, where they are int8.
        pub zero: [i32; 2],
        /// Left shift of int8 operands before they are scaled.
        pub shift: u8,
        /// Of a and b, where they are int8.
        pub multipliers: [Multiplier; 2],
    }
}

impl<P: Place> Operator for Compare<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[output_len(&self.loops).ok_or(Fault::Shape)?])?;
        checked_size(&[operand_len(&self.loops, |l| l.a).ok_or(Fault::Shape)?, 4])?;
        checked_size(&[operand_len(&self.loops, |l| l.b).ok_or(Fault::Shape)?, 4])?;
        if !is_walkable(&self.loops, |l| l.a) || !is_walkable(&self.loops, |l| l.b) {
            return Err(Fault::Shape);
        }
        let logical = matches!(self.op, Comparison::And | Comparison::Or);
        let known = match self.dtype {
            DType::Bool => true,
            DType::F32 | DType::I8 | DType::I32 => !logical,
            DType::U8 | DType::I16 | DType::I64 => false,
        };
        if !known {
            return Err(Fault::Unsupported);
        }
        if self.multipliers.iter().all(|m| m.is_valid()) && self.shift < 32 {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = |len: Option<u32>| len.unwrap_or(u32::MAX);
        let read = |slot, count| Operand::of_type(self.dtype, Access::Read, slot, len(count));
        let written = len(output_len(&self.loops));
        visit(Operand::of_type(DType::Bool, Access::Write, self.output, written));
        visit(read(self.a, operand_len(&self.loops, |l| l.a)));
        visit(read(self.b, operand_len(&self.loops, |l| l.b)));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Bytes are brought to one scale first.
        let quarters = if self.dtype == DType::I8 { 6 } else { 4 };
        of_operands(|visit| self.operands(needs, visit)).quarters(quarters)
    }
}
