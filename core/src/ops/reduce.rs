//! Mean, sum, maximum and minimum over axes.
//!
//! The host merges neighbouring axes, so that the operand is `[kept, reduced, kept, reduced, kept]` at most.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::quant::Multiplier;
use crate::tensor::DType;

/// Operation of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(missing_docs, reason = "named by their operation")]
pub enum Reduction {
    Mean,
    Sum,
    Max,
    Min,
}

operator! {
    /// An f32 reduction of `[a, r, b, s, c]` over `r` and `s` into `[a, b, c]`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct ReduceF32<P> {
        /// `[a, b, c]`
        pub output: P,
        /// `[a, r, b, s, c]`
        pub input: P;
        /// a, r, b, s, c
        pub shape: [u32; 5],
        /// The operation.
        pub kind: Reduction,
    }
}

impl<P: Place> ReduceF32<P> {
    pub(crate) fn output_len(&self) -> u32 {
        let [a, _, b, _, c] = self.shape;
        size(&[a, b, c]).unwrap_or(u32::MAX)
    }
}

operator! {
    /// A reduction of int8 or int16, `[a, r, b, s, c]` over `r` and `s`. Mean and sum are `zero_out + M(sum of (x - zero_in))`, the mean's
    /// divisor being part of the multiplier; maximum and minimum are stored numbers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct ReduceInt<P> {
        /// `[a, b, c]`
        pub output: P,
        /// `[a, r, b, s, c]`
        pub input: P;
        /// Type of both: int8 or int16.
        pub dtype: DType,
        /// a, r, b, s, c
        pub shape: [u32; 5],
        /// The operation.
        pub kind: Reduction,
        /// Zero point of the operand.
        pub zero_in: i32,
        /// Of the sum.
        pub multiplier: Multiplier,
        /// Zero point of the result.
        pub zero_out: i32,
    }
}

impl<P: Place> Operator for ReduceInt<P> {
    fn check(&self) -> Result<(), Fault> {
        let [a, r, b, s, c] = self.shape;
        checked_size(&[a, r, b, s, c, 2])?;
        if self.multiplier.is_valid() && matches!(self.dtype, DType::I8 | DType::I16) {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let [a, _, b, _, c] = self.shape;
        let len = |extents: &[u32]| size(extents).unwrap_or(u32::MAX);
        visit(Operand::of_type(
            self.dtype,
            Access::Write,
            self.output,
            len(&[a, b, c]),
        ));
        visit(Operand::of_type(self.dtype, Access::Read, self.input, len(&self.shape)));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // An output is begun and rounded besides.
        let [a, _, b, _, c] = self.shape;
        let outputs = size(&[a, b, c]).unwrap_or(u32::MAX);
        of_operands(|visit| self.operands(needs, visit)).computations(outputs.into(), 3)
    }
}

impl<P: Place> Operator for ReduceF32<P> {
    fn check(&self) -> Result<(), Fault> {
        let [a, r, b, s, c] = self.shape;
        checked_size(&[a, r, b, s, c, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<f32>(Access::Write, self.output, self.output_len()));
        visit(Operand::of::<f32>(
            Access::Read,
            self.input,
            size(&self.shape).unwrap_or(u32::MAX),
        ));
    }
}
