//! Max and average pooling over windows of an NHWC tensor.
//!
//! Padding never takes part in a maximum. An average divides by the number of elements inside the input, or by the whole window where
//! `count_include_pad` is set.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands, taps_inside};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::window::Window2d;
use crate::tensor::DType;

operator! {
    /// An f32 pooling.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct PoolF32<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P;
        /// Shapes; dilation is 1.
        pub window: Window2d,
        /// Average: divide by the window's size, and not by the elements inside the input.
        pub count_include_pad: bool,
        /// Clamp of the result.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// A pooling of int8 or int16. Averages are rounded half away from zero; padding never takes part.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct PoolInt<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P;
        /// Type of both: int8 or int16.
        pub dtype: DType,
        /// Shapes; dilation is 1.
        pub window: Window2d,
        /// Clamp of the result, in stored terms.
        pub clamp: [i16; 2],
    }
}

/// The most int8 elements `n` of a mean in 32 bits: `n * 128 + n / 2` is below 2^31.
pub(crate) const MOST_SUMMED_S8: u32 = 16_711_935;

impl<P: Place> PoolInt<P> {
    /// Whether the sum of any window's elements, and the half of their number that rounds it, fit 32 bits.
    pub fn sums_fit(&self) -> bool {
        let Window2d { kernel, input, .. } = self.window;
        let [rows, columns] = [kernel[0].min(input[0]), kernel[1].min(input[1])].map(u32::from);
        // Likewise n * 32768 + n / 2.
        let most = match self.dtype {
            DType::I8 => MOST_SUMMED_S8,
            _ => 65_535,
        };
        rows * columns <= most
    }
}

impl<P: Place> Operator for PoolInt<P> {
    fn check(&self) -> Result<(), Fault> {
        self.window.check()?;
        if self.window.input[2] != self.window.output[2] || self.window.dilation != [1, 1] {
            return Err(Fault::Shape);
        }
        let stored = match self.dtype {
            DType::I8 => self.clamp.iter().all(|&limit| i8::try_from(limit).is_ok()),
            dtype => dtype == DType::I16,
        };
        if self.clamp[0] <= self.clamp[1] && stored {
            Ok(())
        } else {
            Err(Fault::Quantisation)
        }
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let (output, input) = (self.window.output_len(), self.window.input_len());
        let of = |access, slot, len: Option<u32>| Operand::of_type(self.dtype, access, slot, len.unwrap_or(u32::MAX));
        visit(of(Access::Write, self.output, output));
        visit(of(Access::Read, self.input, input));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let outputs = self.window.output_len().unwrap_or(u32::MAX);
        let products = taps_inside(&self.window).saturating_mul(self.window.input[2].into());
        // Windows of two by two have loops of their own.
        let factor = if self.window.kernel.iter().all(|&extent| extent <= 2) {
            1
        } else {
            2
        };
        of_operands(|visit| self.operands(needs, visit))
            .products(outputs.into(), products)
            .times(factor)
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}

impl<P: Place> Operator for PoolF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.window.check()?;
        if self.window.input[2] != self.window.output[2] || self.window.dilation != [1, 1] {
            return Err(Fault::Shape);
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<f32>(
            Access::Write,
            self.output,
            self.window.output_len().unwrap_or(u32::MAX),
        ));
        visit(Operand::of::<f32>(
            Access::Read,
            self.input,
            self.window.input_len().unwrap_or(u32::MAX),
        ));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let outputs = self.window.output_len().unwrap_or(u32::MAX);
        let products = taps_inside(&self.window).saturating_mul(self.window.input[2].into());
        of_operands(|visit| self.operands(needs, visit)).products(outputs.into(), products)
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}
