//! Products of matrices of which neither is constant, in batches, of int8 and int16 as TensorFlow Lite Micro computes them.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, ROUNDING, of_operands};
use crate::ops::elementwise::{Loop, MAX_LOOPS, is_walkable, operand_len, output_len};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::quant::Multiplier;
use crate::tensor::DType;

operator! {
    /// `y[r, c] = clamp(zero[2] + M(sum (a[r, k] - zero[0]) (b[k, c] - zero[1])))` for each pair of matrices.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct MatMulInt<P> {
        /// `[matrices, rows, columns]`
        pub output: P,
        /// Matrices of `rows` times `terms` elements.
        pub a: P,
        /// Matrices of `terms` times `columns` elements.
        pub b: P;
        /// Axes of the batch, outermost first; strides in matrices.
        pub loops: heapless::Vec<Loop, MAX_LOOPS>,
        /// Type of all three: int8 or int16.
        pub dtype: DType,
        /// Rows, terms of a sum, columns.
        pub shape: [u32; 3],
        /// Whether a matrix of a is stored with its columns as rows.
        pub transpose_a: bool,
        /// Whether one of b is.
        pub transpose_b: bool,
        /// Zero points of a, b and the result.
        pub zero: [i32; 3],
        /// Of the sum.
        pub multiplier: Multiplier,
        /// Clamp of the result, in stored terms.
        pub clamp: [i32; 2],
    }
}

impl<P> MatMulInt<P> {
    /// Elements of the result and of both operands.
    pub(crate) fn lens(&self) -> Option<[u32; 3]> {
        let [rows, terms, columns] = self.shape;
        let all = |matrices: u32, extents: [u32; 2]| matrices.checked_mul(size(&extents)?);
        Some([
            all(output_len(&self.loops)?, [rows, columns])?,
            all(operand_len(&self.loops, |l| l.a)?, [rows, terms])?,
            all(operand_len(&self.loops, |l| l.b)?, [terms, columns])?,
        ])
    }
}

impl<P: Place> Operator for MatMulInt<P> {
    fn check(&self) -> Result<(), Fault> {
        for len in self.lens().ok_or(Fault::Shape)? {
            checked_size(&[len, 4])?;
        }
        if !is_walkable(&self.loops, |l| l.a) || !is_walkable(&self.loops, |l| l.b) {
            return Err(Fault::Shape);
        }
        // A wide product shifts left by 7 at most.
        let shift = if self.dtype == DType::I16 { 7 } else { 31 };
        let range = |zero: &i32| (-0x8000..0x8000).contains(zero);
        let valid = self.multiplier.is_valid() && self.multiplier.shift <= shift && self.clamp[0] <= self.clamp[1];
        if valid && self.zero.iter().all(range) && matches!(self.dtype, DType::I8 | DType::I16) {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let [output, a, b] = self.lens().unwrap_or([u32::MAX; 3]);
        visit(Operand::of_type(self.dtype, Access::Write, self.output, output));
        visit(Operand::of_type(self.dtype, Access::Read, self.a, a));
        visit(Operand::of_type(self.dtype, Access::Read, self.b, b));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let outputs = self.lens().map_or(u64::MAX, |[output, ..]| output.into());
        of_operands(|visit| self.operands(needs, visit))
            .sums(outputs, self.shape[1].into())
            .computations(outputs, ROUNDING + ROUNDING / 2)
    }
}
