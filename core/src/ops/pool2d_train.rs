//! Training through poolings: a maximum that keeps where it was found, and the gradients of maximum and average.
//!
//! A position is the index of the tap under the window, `ky * kw + kx`, of the first of equal elements; of a NaN where there is one. A kernel has at most 256
//! taps. The gradient of a maximum goes to the element at its position, that of an average to all elements inside the input in equal parts; both are sums
//! where windows overlap.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands, taps_inside};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::window::Window2d;

operator! {
    /// An f32 maximum over windows that keeps its positions.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct MaxPoolPositionsF32<P> {
        /// NHWC.
        pub output: P,
        /// A byte for each element of the output.
        pub positions: P,
        /// NHWC.
        pub input: P;
        /// Shapes; dilation is 1.
        pub window: Window2d,
        /// Clamp of the result.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// Gradient of the input of a maximum over windows, f32. A position that is no tap inside the input takes no part.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct MaxPoolGradF32<P> {
        /// Gradient of the pooling's input, NHWC.
        pub output: P,
        /// Gradient of its output, NHWC.
        pub gradient: P,
        /// A byte for each element of the output.
        pub positions: P;
        /// Shapes; dilation is 1.
        pub window: Window2d,
    }
}

operator! {
    /// Gradient of the input of an average over windows, f32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct AvgPoolGradF32<P> {
        /// Gradient of the pooling's input, NHWC.
        pub output: P,
        /// Gradient of its output, NHWC.
        pub gradient: P;
        /// Shapes; dilation is 1.
        pub window: Window2d,
        /// Whether it divides by the window's size, and not by the elements inside the input.
        pub count_include_pad: bool,
    }
}

/// The most taps whose index is a byte.
const MOST_TAPS: u32 = 256;

fn check(window: &Window2d) -> Result<(), Fault> {
    window.check()?;
    if window.input[2] != window.output[2] || window.dilation != [1, 1] {
        return Err(Fault::Shape);
    }
    Ok(())
}

fn check_positions(window: &Window2d) -> Result<(), Fault> {
    if window.taps() > MOST_TAPS {
        return Err(Fault::Shape);
    }
    check(window)
}

fn cost<P>(window: &Window2d, operands: impl FnOnce(&mut dyn FnMut(Operand<P>))) -> Cost {
    let outputs = window.output_len().unwrap_or(u32::MAX);
    let products = taps_inside(window).saturating_mul(window.input[2].into());
    of_operands(operands).products(outputs.into(), products)
}

fn of<T, P: Place>(access: Access, place: P, len: Option<u32>) -> Operand<P> {
    Operand::of::<T>(access, place, len.unwrap_or(u32::MAX))
}

impl<P: Place> Operator for MaxPoolPositionsF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check_positions(&self.window)?;
        if self.clamp.iter().any(|limit| limit.is_nan()) {
            return Err(Fault::Shape);
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(of::<f32, P>(Access::Write, self.output, self.window.output_len()));
        visit(of::<u8, P>(Access::Write, self.positions, self.window.output_len()));
        visit(of::<f32, P>(Access::Read, self.input, self.window.input_len()));
    }

    fn cost(&self, needs: Needs) -> Cost {
        cost(&self.window, |visit| self.operands(needs, visit))
    }
}

impl<P: Place> Operator for MaxPoolGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check_positions(&self.window)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(of::<f32, P>(Access::Write, self.output, self.window.input_len()));
        visit(of::<f32, P>(Access::Read, self.gradient, self.window.output_len()));
        visit(of::<u8, P>(Access::Read, self.positions, self.window.output_len()));
    }

    fn cost(&self, needs: Needs) -> Cost {
        cost(&self.window, |visit| self.operands(needs, visit))
    }
}

impl<P: Place> Operator for AvgPoolGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(&self.window)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(of::<f32, P>(Access::Write, self.output, self.window.input_len()));
        visit(of::<f32, P>(Access::Read, self.gradient, self.window.output_len()));
    }

    fn cost(&self, needs: Needs) -> Cost {
        cost(&self.window, |visit| self.operands(needs, visit))
    }
}
