//! Pointwise operators of one operand that are a table, a rescaling or a change of type.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;
use crate::ops::softmax::TABLE_LEN;
use crate::quant::{Multiplier, SigmoidI16};
use crate::tensor::DType;

operator! {
    /// `y = table[x]` on bytes: any int8 or uint8 function, computed when packing.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Table<P> {
        /// Contiguous bytes.
        pub output: P,
        /// Contiguous bytes.
        pub input: P;
        /// Elements.
        pub count: u32,
        /// Offset of 256 bytes, ordered by the operand's unsigned value.
        pub table: u32,
    }
}

operator! {
    /// `y = clamp(zero_out + M(x - zero_in))` between integer types, with one multiplier for x' >= 0 and one for x' < 0: requantisation,
    /// ReLU, leaky ReLU, absolute value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Rescale<P> {
        /// Contiguous.
        pub output: P,
        /// Contiguous.
        pub input: P;
        /// Elements.
        pub count: u32,
        /// Type of the operand: int8, uint8, int16 or int32.
        pub from: DType,
        /// Type of the result, likewise.
        pub to: DType,
        /// Zero point of the operand.
        pub zero_in: i32,
        /// Zero point of the result.
        pub zero_out: i32,
        /// Take the absolute value of x - zero_in first.
        pub absolute: bool,
        /// Multiplier above the zero point.
        pub positive: Multiplier,
        /// Multiplier below the zero point; may be negative.
        pub negative: Multiplier,
        /// Clamp of the result, in stored terms.
        pub clamp: [i32; 2],
    }
}

operator! {
    /// `y = table(x)` of int16: values at steps of 128 with lines between them ([`crate::quant::lookup_i16`]).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct TableS16<P> {
        /// Contiguous.
        pub output: P,
        /// Contiguous.
        pub input: P;
        /// Elements.
        pub count: u32,
        /// Offset of 513 int16, ordered by the operand.
        pub table: u32,
    }
}

operator! {
    /// Logistic function or hyperbolic tangent of int16, with scale 1/32768.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct SigmoidS16<P> {
        /// Contiguous.
        pub output: P,
        /// Contiguous.
        pub input: P;
        /// Elements.
        pub count: u32,
        /// For the operand's scale.
        pub sigmoid: SigmoidI16,
        /// The hyperbolic tangent.
        pub tanh: bool,
    }
}

operator! {
    /// Between real and stored numbers: `q = round(x / scale) + zero_point`, `x = scale * (q - zero_point)`; with scale 0 the plain
    /// conversion of a cast.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Convert<P> {
        /// Contiguous.
        pub output: P,
        /// Contiguous.
        pub input: P;
        /// Elements.
        pub count: u32,
        /// Type of the operand: f32, int8, uint8, int16, int32 or bool.
        pub from: DType,
        /// Type of the result, likewise.
        pub to: DType,
        /// Scale of the integer side; 0 for a cast.
        pub scale: f32,
        /// Zero point of the integer side.
        pub zero_point: i32,
    }
}

fn pointwise<P: Place>(output: P, to: DType, input: P, from: DType, count: u32, visit: &mut dyn FnMut(Operand<P>)) {
    visit(Operand::of_type(to, Access::Write, output, count));
    visit(Operand::of_type(from, Access::Read, input, count));
}

impl<P: Place> Operator for Table<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        pointwise(self.output, DType::U8, self.input, DType::U8, self.count, visit);
        visit(Operand::constant::<u8>(self.table, 256));
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        Some(&mut self.count)
    }
}

impl<P: Place> Operator for Rescale<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        let integer = |dtype| matches!(dtype, DType::I8 | DType::U8 | DType::I16 | DType::I32);
        let valid = self.positive.is_valid() && self.negative.is_valid() && self.clamp[0] <= self.clamp[1];
        if valid && integer(self.from) && integer(self.to) {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        pointwise(self.output, self.to, self.input, self.from, self.count, visit);
    }

    fn cost(&self, needs: Needs) -> Cost {
        // Products of 64 bits, but between bytes.
        let bytes = [self.from, self.to]
            .iter()
            .all(|dtype| matches!(dtype, DType::I8 | DType::U8));
        of_operands(|visit| self.operands(needs, visit)).times(if bytes { 1 } else { 3 })
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        Some(&mut self.count)
    }
}

impl<P: Place> Operator for TableS16<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 2]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        pointwise(self.output, DType::I16, self.input, DType::I16, self.count, visit);
        visit(Operand::constant::<i16>(self.table, TABLE_LEN));
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        Some(&mut self.count)
    }
}

impl<P: Place> Operator for SigmoidS16<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 2]).map(|_| ())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        pointwise(self.output, DType::I16, self.input, DType::I16, self.count, visit);
    }

    fn elements_mut(&mut self) -> Option<&mut u32> {
        Some(&mut self.count)
    }
}

impl<P: Place> Operator for Convert<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.count, 4])?;
        let known = |dtype| !matches!(dtype, DType::I64);
        let moves = (self.from, self.to) != (DType::F32, DType::F32);
        if moves && known(self.from) && known(self.to) && self.scale.is_finite() && self.scale >= 0.0 {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        pointwise(self.output, self.to, self.input, self.from, self.count, visit);
    }

    fn cost(&self, needs: Needs) -> Cost {
        // 32 bits of an integer take more than f32 holds on their way to it.
        let factor = if [self.from, self.to] == [DType::I32, DType::F32] {
            2
        } else {
            1
        };
        of_operands(|visit| self.operands(needs, visit)).times(factor)
    }
}
