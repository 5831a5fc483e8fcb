//! Index of the largest element along an axis, the first one on a tie.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::tensor::DType;

operator! {
    /// `[outer, extent, inner]` of f32 or int8 into `[outer, inner]` of i32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct ArgMax<P> {
        /// `[outer, inner]`
        pub output: P,
        /// `[outer, extent, inner]`
        pub input: P;
        /// Type of the operand.
        pub dtype: DType,
        /// outer, extent, inner
        pub shape: [u32; 3],
    }
}

impl<P: Place> Operator for ArgMax<P> {
    fn check(&self) -> Result<(), Fault> {
        let [outer, extent, inner] = self.shape;
        checked_size(&[outer, extent, inner, 4])?;
        match self.dtype {
            DType::F32 | DType::I8 => Ok(()),
            _ => Err(Fault::Shape),
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let [outer, _, inner] = self.shape;
        let len = |extents: &[u32]| size(extents).unwrap_or(u32::MAX);
        visit(Operand::of::<i32>(Access::Write, self.output, len(&[outer, inner])));
        visit(Operand::of_type(self.dtype, Access::Read, self.input, len(&self.shape)));
    }
}
