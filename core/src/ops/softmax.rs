//! Softmax and its logarithm along the innermost axis.
//!
//! `y = exp(beta * (x - max)) / sum exp(beta * (x - max))`; the logarithm is `beta * (x - max) - ln(sum)`.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;
use crate::quant::{LogSoftmaxI8, SoftmaxI8, SoftmaxI16};
use crate::tensor::DType;

operator! {
    /// An f32 softmax over rows.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SoftmaxF32<P> {
        /// `[rows, classes]`
        pub output: P,
        /// `[rows, classes]`
        pub input: P;
        /// Product of the outer extents.
        pub rows: u32,
        /// Extent of the axis that sums to one.
        pub classes: u32,
        /// Factor of the argument.
        pub beta: f32,
        /// Give the logarithm.
        pub log: bool,
    }
}

impl<P: Place> Operator for SoftmaxF32<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.classes, 4]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = self.rows.saturating_mul(self.classes);
        visit(Operand::of::<f32>(Access::Write, self.output, len));
        visit(Operand::of::<f32>(Access::Read, self.input, len));
    }
}

operator! {
    /// An int8 or int16 softmax over rows, or its logarithm.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SoftmaxInt<P> {
        /// `[rows, classes]`
        pub output: P,
        /// `[rows, classes]`
        pub input: P;
        /// Product of the outer extents.
        pub rows: u32,
        /// Extent of the axis that sums to one.
        pub classes: u32,
        /// Function, and its parameters.
        pub kind: SoftmaxKind,
    }
}

/// Types and parameters of a [`SoftmaxInt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SoftmaxKind {
    /// int8 into int8 of scale 1/256.
    I8(SoftmaxI8),
    /// int8 into int16 of scale 1/65536.
    I8ToI16(SoftmaxI8),
    /// int16 into int16 of scale 1/32768, with the offsets of two tables of 513 i16: exp(x) on [-10, 0] and 1 / (1 + x) on [0, 1].
    I16(SoftmaxI16, [u32; 2]),
    /// The logarithm: int8 into int8 of scale 1/16.
    LogI8(LogSoftmaxI8),
    /// As `I8`, with the offset of a table of exponentials, of 256 i32: of a difference of 0 to the row's largest value, of -1 and so on, 0 from where they are
    /// as good as minus infinity.
    I8Table(u32),
}

impl<P: Place> SoftmaxInt<P> {
    /// Types of operand and result.
    pub fn types(&self) -> (DType, DType) {
        match self.kind {
            SoftmaxKind::I8(_) | SoftmaxKind::LogI8(_) | SoftmaxKind::I8Table(_) => (DType::I8, DType::I8),
            SoftmaxKind::I8ToI16(_) => (DType::I8, DType::I16),
            SoftmaxKind::I16(..) => (DType::I16, DType::I16),
        }
    }
}

/// Entries of an interpolation table of int16.
pub const TABLE_LEN: u32 = 513;

/// Entries of a table of exponentials.
pub const EXPONENTIALS: u32 = 256;

impl<P: Place> Operator for SoftmaxInt<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.rows, self.classes, 4])?;
        let valid = match self.kind {
            SoftmaxKind::I8(p) | SoftmaxKind::I8ToI16(p) => p.multiplier.is_valid(),
            SoftmaxKind::I16(p, _) => p.multiplier.is_valid(),
            SoftmaxKind::LogI8(p) => p.multiplier.is_valid() && p.inverse.is_valid(),
            SoftmaxKind::I8Table(_) => true,
        };
        if valid { Ok(()) } else { Err(Fault::Quantisation) }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = self.rows.saturating_mul(self.classes);
        let (from, to) = self.types();
        visit(Operand::of_type(to, Access::Write, self.output, len));
        visit(Operand::of_type(from, Access::Read, self.input, len));
        if let SoftmaxKind::I16(_, tables) = self.kind {
            for table in tables {
                visit(Operand::constant::<i16>(table, TABLE_LEN));
            }
        }
        if let SoftmaxKind::I8Table(table) = self.kind {
            visit(Operand::constant::<i32>(table, EXPONENTIALS));
        }
    }
}
