//! Max and average pooling over windows of an NHWC tensor.
//!
//! Padding never takes part in a maximum. An average divides by the number of elements inside the input, or by the whole window where
//! `count_include_pad` is set.

use serde::{Deserialize, Serialize};

use super::conv2d::Window2d;
use super::{Needs, Operator};
use crate::arena::{Access, Operand, Slot};
use crate::error::Fault;

/// An f32 pooling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PoolF32 {
    /// NHWC.
    pub output: Slot,
    /// NHWC.
    pub input: Slot,
    /// Shapes; dilation is 1.
    pub window: Window2d,
    /// Average: divide by the window's size, and not by the elements inside the input.
    pub count_include_pad: bool,
    /// Clamp of the result.
    pub clamp: [f32; 2],
}

impl Operator for PoolF32 {
    fn check(&self) -> Result<(), Fault> {
        self.window.check()?;
        if self.window.input[2] != self.window.output[2] || self.window.dilation != [1, 1] {
            return Err(Fault::Shape);
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand)) {
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

    fn slots_mut(&mut self, visit: &mut dyn FnMut(&mut Slot)) {
        visit(&mut self.output);
        visit(&mut self.input);
    }
}
