//! The int8 convolution of [`super::conv2d`] in the form that vector backends run: weights, biases and requantisation packed by
//! the host into one stream, in the order that the loop reads them.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::cost::{Cost, of_operands, windows};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::checked_size;
use crate::ops::window::Window2d;

operator! {
    /// A convolution, depthwise convolution or fully connected layer (one pixel) with a packed stream of weights.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct PackedConv2dS8<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P,
        /// The kernel's scratch.
        pub scratch: P;
        /// Offset of the stream, in the kernel's layout; a multiple of 4.
        pub weights: u32,
        /// Shapes.
        pub window: Window2d,
        /// Value of the padding.
        pub input_zero_point: i8,
        /// Requantisation form of the stream's channels.
        pub form: Form,
    }
}

/// Requantising sequence that a stream was packed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Form {
    /// Short, with the pre-shift folded into the weights (depthwise only).
    Folded = 0,
    /// Short, outputs that saturate on the negative side.
    Positive = 1,
    /// Short, with the correction of negative accumulators.
    Signed = 2,
    /// The reference's arithmetic.
    General = 3,
}

impl<P: Place> PackedConv2dS8<P> {
    /// The packed form of `op`; its weights are still `op`'s.
    pub fn of(op: &Conv2dS8<P>, form: Form) -> Self {
        Self {
            output: op.output,
            input: op.input,
            scratch: op.scratch,
            weights: op.weights,
            window: op.window,
            input_zero_point: op.input_zero_point,
            form,
        }
    }
}

impl<P: Place> Operator for PackedConv2dS8<P> {
    fn check(&self) -> Result<(), Fault> {
        self.window.check()?;
        // Kernels widen windows to words, several at a time: their sizes stay within 32 bits.
        let [rows, columns] = self.window.kernel.map(u32::from);
        checked_size(&[rows, columns, u32::from(self.window.input[2]), 64])?;
        Ok(())
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let bytes = |access, slot, len: Option<u32>| Operand::of::<i8>(access, slot, len.unwrap_or(u32::MAX));
        visit(bytes(Access::Write, self.output, self.window.output_len()));
        visit(bytes(Access::Read, self.input, self.window.input_len()));
        visit(Operand::scratch(self.scratch, needs.scratch));
        visit(Operand {
            align: 4,
            ..Operand::constant::<i8>(self.weights, needs.weights)
        });
    }

    fn set_constants(&mut self, weights: u32, _: u32) {
        self.weights = weights;
    }

    fn cost(&self, needs: Needs) -> Cost {
        // The stream holds a word for two weights: as many products for a pixel, and the records. Sums of any size take more to round.
        let rounding = if self.form == Form::General { 32 } else { 0 };
        of_operands(|visit| self.operands(needs, visit))
            .sums(windows(&self.window), u64::from(needs.weights / 2))
            .computations(self.window.output_len().unwrap_or(u32::MAX).into(), rounding)
            .copies(&self.window)
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}

operator! {
    /// The same of weights that are products: groups of neighbours share a factor, which the stream has with them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct PackedGroupsS8<P> {
        /// The convolution of the products.
        pub conv: PackedConv2dS8<P>;
        /// Weights of a group.
        pub share: u32,
    }
}

impl<P: Place> Operator for PackedGroupsS8<P> {
    fn check(&self) -> Result<(), Fault> {
        if self.share == 0 {
            return Err(Fault::Shape);
        }
        self.conv.check()
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        self.conv.operands(needs, visit);
    }

    fn set_constants(&mut self, weights: u32, records: u32) {
        self.conv.set_constants(weights, records);
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.conv.cost(needs)
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        self.conv.window_mut()
    }
}
