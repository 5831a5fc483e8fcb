//! Two-dimensional convolutions whose weights are stored in few bits, and widened by the kernel: for networks that flash bounds.
//!
//! The formulas are those of [`crate::ops::conv2d`]. The weights of each output, in the order `[kh, kw, in / groups]`, start at a byte of their own; of
//! four bits the first of a byte is the low half, and a half that is left over is zero. Neighbours share a scale, so many of them; at the end of an
//! output's weights there may be fewer.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::conv2d::{Conv2dS8, check_groups};
use crate::ops::cost::{Cost, of_operands, taps_inside};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::ops::window::{Window2d, two};

operator! {
    /// A convolution of f32 activations with weights of 16, 8 or 4 bits, `w = scale * q`: the kernel says which. Of 16 bits `q` is a finite half (IEEE 754
    /// binary16), of fewer a whole number.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct WeightOnlyF32<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P,
        /// Added before the clamp; of the output's shape.
        pub residual: Option<P>;
        /// Offset of the weights.
        pub weights: u32,
        /// Offset of the scales, f32 and above zero, `[out, scales of an output]`.
        pub scales: u32,
        /// Offset of the bias `[out]`, f32; none adds nothing.
        pub bias: Option<u32>,
        /// Shapes.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
        /// Weights that share a scale.
        pub share: u32,
        /// Clamp of the result: (-inf, inf) for none.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// An int8 convolution with weights of 4 bits, `w = factor * q` with whole factors: the int8 convolution of these products, bit for bit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Conv2dS8W4<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P;
        /// Offset of the weights.
        pub weights: u32,
        /// Offset of the factors, a byte each, 1 to [`MOST_FACTOR`], `[out, factors of an output]`.
        pub factors: u32,
        /// Offset of one `{ bias, multiplier, shift }` of i32 for each output channel; the bias is the model's own.
        pub channels: u32,
        /// Shapes.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
        /// Weights that share a factor.
        pub share: u32,
        /// Zero point of the input; also the value of the padding.
        pub input_zero_point: i8,
        /// Zero point of the output.
        pub output_zero_point: i8,
        /// Clamp of the result, in stored terms.
        pub clamp: [i8; 2],
    }
}

operator! {
    /// The same in a kernel's own layout: the int8 convolution of the products, and how many weights share a factor, which lies with them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct GroupsConv2dS8<P> {
        /// The convolution of the products.
        pub conv: Conv2dS8<P>;
        /// Weights that share a factor.
        pub share: u32,
    }
}

/// The largest factor of [`Conv2dS8W4`]: its product with a weight, -7 to 7, is an int8 weight.
pub const MOST_FACTOR: u8 = 18;

/// Shape, common to both operators.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Outputs.
    pub(crate) outputs: u32,
    /// Weights of an output.
    pub(crate) filter: u32,
    /// Parts of an output's weights that share something.
    pub(crate) parts: u32,
}

impl Shape {
    fn of(window: &Window2d, groups: u16, share: u32) -> Option<Self> {
        let [rows, columns] = two::<_, u32>(window.kernel);
        let channels = u32::from(window.input[2]).checked_div(u32::from(groups))?;
        let filter = size(&[rows, columns, channels])?;
        Some(Self {
            outputs: u32::from(window.output[2]),
            filter,
            parts: filter.checked_add(share.checked_sub(1)?)?.checked_div(share)?,
        })
    }

    /// Bytes of weights of so many bits.
    pub(crate) fn bytes(&self, bits: u32) -> Option<u32> {
        size(&[self.outputs, filter_bytes(self.filter, bits)])
    }

    /// Parts of all outputs.
    pub(crate) fn all_parts(&self) -> Option<u32> {
        size(&[self.outputs, self.parts])
    }
}

/// Bytes of an output's weights, 16, 8 or 4 bits each.
pub const fn filter_bytes(weights: u32, bits: u32) -> u32 {
    match bits {
        4 => weights.div_ceil(2),
        16 => weights.saturating_mul(2),
        _ => weights,
    }
}

fn check(window: &Window2d, groups: u16, share: u32) -> Result<(), Fault> {
    window.check()?;
    check_groups(window, groups)?;
    let shape = Shape::of(window, groups, share).ok_or(Fault::Shape)?;
    if share > shape.filter {
        return Err(Fault::Shape);
    }
    // Scales are no more than weights, and weights fit four bytes each.
    checked_size(&[shape.outputs, shape.filter, 4]).map(|_| ())
}

fn cost(base: Cost, window: &Window2d, shape: Option<Shape>) -> Cost {
    let outputs = window.output_len().unwrap_or(u32::MAX);
    let (filter, parts) = shape.map_or((u32::MAX, u32::MAX), |shape| (shape.filter, shape.parts));
    // The loops leave padding out. A part is begun anew in each row of taps, or at each of them.
    let taps = taps_inside(window).saturating_mul(window.output[2].into());
    let products = taps.saturating_mul((filter / window.taps().max(1)).into());
    let begun = taps.saturating_add(u64::from(outputs).saturating_mul(parts.into()));
    base.products(outputs.into(), products).computations(begun, 4)
}

impl<P> WeightOnlyF32<P> {
    pub(crate) fn shape(&self) -> Option<Shape> {
        Shape::of(&self.window, self.groups, self.share)
    }
}

impl<P> Conv2dS8W4<P> {
    pub(crate) fn shape(&self) -> Option<Shape> {
        Shape::of(&self.window, self.groups, self.share)
    }
}

impl<P: Place> Operator for WeightOnlyF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(&self.window, self.groups, self.share)?;
        if self.clamp.iter().any(|c| c.is_nan()) {
            return Err(Fault::Shape);
        }
        Ok(())
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let output = self.window.output_len().unwrap_or(u32::MAX);
        let input = self.window.input_len().unwrap_or(u32::MAX);
        visit(Operand::of::<f32>(Access::Write, self.output, output));
        visit(Operand::of::<f32>(Access::Read, self.input, input));
        if let Some(residual) = self.residual {
            visit(Operand::of::<f32>(Access::Read, residual, output));
        }
        let scales = self.shape().and_then(|shape| shape.all_parts());
        visit(Operand::constant::<u8>(self.weights, needs.weights));
        visit(Operand::constant::<f32>(self.scales, scales.unwrap_or(u32::MAX)));
        if let Some(bias) = self.bias {
            visit(Operand::constant::<f32>(bias, u32::from(self.window.output[2])));
        }
    }

    fn cost(&self, needs: Needs) -> Cost {
        cost(
            of_operands(|visit| self.operands(needs, visit)),
            &self.window,
            self.shape(),
        )
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}

impl<P: Place> Operator for Conv2dS8W4<P> {
    fn check(&self) -> Result<(), Fault> {
        check(&self.window, self.groups, self.share)?;
        if self.clamp[0] > self.clamp[1] {
            return Err(Fault::Quantisation);
        }
        Ok(())
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let output = self.window.output_len().unwrap_or(u32::MAX);
        let input = self.window.input_len().unwrap_or(u32::MAX);
        visit(Operand::of::<i8>(Access::Write, self.output, output));
        visit(Operand::of::<i8>(Access::Read, self.input, input));
        let factors = self.shape().and_then(|shape| shape.all_parts());
        visit(Operand::constant::<u8>(self.weights, needs.weights));
        visit(Operand::constant::<u8>(self.factors, factors.unwrap_or(u32::MAX)));
        visit(Operand::constant::<i32>(
            self.channels,
            u32::from(self.window.output[2]).saturating_mul(3),
        ));
    }

    fn cost(&self, needs: Needs) -> Cost {
        cost(
            of_operands(|visit| self.operands(needs, visit)),
            &self.window,
            self.shape(),
        )
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}

impl<P: Place> Operator for GroupsConv2dS8<P> {
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
