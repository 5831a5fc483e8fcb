//! Resizing of NHWC images. Where each row and column comes from is a table that the host makes.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::tensor::DType;

/// Interpolation of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Interpolation {
    /// The pixel that the tables name.
    Nearest,
    /// Weighted mean of four: f32 in f32; int8 with fractions of 1/1024, rounded away from zero.
    Bilinear,
}

operator! {
    /// A resizing of f32 or int8.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Resize<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P;
        /// Type of both: f32 or int8.
        pub dtype: DType,
        /// Interpolation of a pixel.
        pub interpolation: Interpolation,
        /// Images.
        pub batch: u32,
        /// Rows and columns of the input.
        pub from: [u32; 2],
        /// Rows and columns of the output.
        pub to: [u32; 2],
        /// Channels.
        pub channels: u32,
        /// Offset of one `{ low, high, fraction }` of i32 for each row, then for each column, of the output: two indices into the
        /// input and the weight of the second, in 1/1024 or as the bits of an f32.
        pub table: u32,
    }
}

impl<P: Place> Resize<P> {
    /// Elements of the input and of the output.
    pub fn lens(&self) -> Option<(u32, u32)> {
        let len = |[h, w]: [u32; 2]| size(&[self.batch, h, w, self.channels]);
        Some((len(self.from)?, len(self.to)?))
    }

    /// Words of the table.
    pub fn table_len(&self) -> u32 {
        self.to[0].saturating_add(self.to[1]).saturating_mul(3)
    }
}

impl<P: Place> Operator for Resize<P> {
    fn check(&self) -> Result<(), Fault> {
        let (input, output) = self.lens().ok_or(Fault::Shape)?;
        checked_size(&[input, 4])?;
        checked_size(&[output, 4])?;
        match self.dtype {
            DType::F32 | DType::I8 => Ok(()),
            _ => Err(Fault::Shape),
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let (input, output) = self.lens().unwrap_or((u32::MAX, u32::MAX));
        visit(Operand::of_type(self.dtype, Access::Write, self.output, output));
        visit(Operand::of_type(self.dtype, Access::Read, self.input, input));
        visit(Operand::constant::<i32>(self.table, self.table_len()));
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Four pixels for each output.
        let (_, output) = self.lens().unwrap_or((u32::MAX, u32::MAX));
        let means = of_operands(|visit| self.operands(needs, visit)).sums(output.into(), 4);
        match (self.dtype, self.interpolation) {
            // As it is without an FPU: each product and sum is a call.
            (DType::F32, Interpolation::Bilinear) => means.times(16),
            _ => means,
        }
    }
}
