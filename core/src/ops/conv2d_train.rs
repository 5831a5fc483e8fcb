//! Convolution with trained weights: forward, gradient of its input, and gradient descent on its weights.
//!
//! With `y` as in [`crate::ops::conv2d`] and `dy` the gradient of the loss by it, before the clamp:
//!
//! - `dx[i] = sum dy[o] * w` over all products of `x[i]` in `y`;
//! - `w -= rate * dw`, `dw = sum dy[o] * x` over all products of the weight in `y`.
//!
//! Weights are OHWI `[out, kh, kw, in / groups]`, in the state where they are trained. Activations and gradients are NHWC.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::conv2d::check_groups;
use crate::ops::cost::{Cost, OUTPUT, of_operands, taps_inside};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::ops::window::{Window2d, two};

operator! {
    /// An f32 convolution whose weights and bias are operands: in the state where they are trained.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct TrainedConv2dF32<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P,
        /// OHWI.
        pub weights: P,
        /// `[out]`; none adds nothing.
        pub bias: Option<P>;
        /// Shapes.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
        /// Clamp of the result: (-inf, inf) for none.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// Gradient of a convolution's input, f32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Conv2dInputGradF32<P> {
        /// Gradient of the input, NHWC.
        pub output: P,
        /// Gradient of the convolution's output, NHWC.
        pub gradient: P,
        /// OHWI.
        pub weights: P;
        /// Shapes of the convolution.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
    }
}

operator! {
    /// A step of gradient descent on a convolution's weights, f32; the gradient is in no memory.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Conv2dWeightSgdF32<P> {
        /// OHWI; updated.
        pub weights: P,
        /// Gradient of the convolution's output, NHWC.
        pub gradient: P,
        /// The convolution's input, NHWC.
        pub input: P,
        /// Learning rate, `[1]`.
        pub rate: P;
        /// Shapes of the convolution.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
    }
}

/// Elements of OHWI weights.
pub(crate) fn weights_len(window: &Window2d, groups: u16) -> Option<u32> {
    let [kh, kw] = two::<_, u32>(window.kernel);
    size(&[u32::from(window.output[2]), kh, kw, group_channels(window, groups)])
}

/// Channels of one weight window.
pub(crate) fn group_channels(window: &Window2d, groups: u16) -> u32 {
    u32::from(window.input[2]) / u32::from(groups.max(1))
}

/// Checks what the three have in common.
fn check(window: &Window2d, groups: u16) -> Result<(), Fault> {
    window.check()?;
    check_groups(window, groups)?;
    checked_size(&[weights_len(window, groups).ok_or(Fault::Shape)?, 4]).map(|_| ())
}

/// Products of the convolution, the same in all three.
fn products(window: &Window2d, groups: u16) -> u64 {
    taps_inside(window)
        .saturating_mul(window.output[2].into())
        .saturating_mul(group_channels(window, groups).into())
}

/// Looks at taps for so many positions: of one pixel of one image.
fn taps_looked_at(window: &Window2d, pixels: [u16; 2]) -> u64 {
    let [rows, columns] = pixels.map(u64::from);
    u64::from(window.batch)
        .saturating_mul(rows * columns)
        .saturating_mul(window.taps().into())
}

fn floats<P: Place>(access: Access, place: P, len: Option<u32>) -> Operand<P> {
    Operand::of::<f32>(access, place, len.unwrap_or(u32::MAX))
}

impl<P: Place> Operator for TrainedConv2dF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(&self.window, self.groups)?;
        if self.clamp.iter().any(|limit| limit.is_nan()) {
            return Err(Fault::Shape);
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(floats(Access::Write, self.output, self.window.output_len()));
        visit(floats(Access::Read, self.input, self.window.input_len()));
        visit(floats(
            Access::Read,
            self.weights,
            weights_len(&self.window, self.groups),
        ));
        if let Some(bias) = self.bias {
            visit(floats(Access::Read, bias, Some(self.window.output[2].into())));
        }
    }

    fn cost(&self, needs: Needs) -> Cost {
        let outputs = self.window.output_len().unwrap_or(u32::MAX);
        of_operands(|visit| self.operands(needs, visit))
            .products(outputs.into(), products(&self.window, self.groups))
            .computations(
                taps_inside(&self.window).saturating_mul(self.window.output[2].into()),
                OUTPUT,
            )
    }
}

impl<P: Place> Operator for Conv2dInputGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(&self.window, self.groups)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(floats(Access::Write, self.output, self.window.input_len()));
        visit(floats(Access::Read, self.gradient, self.window.output_len()));
        visit(floats(
            Access::Read,
            self.weights,
            weights_len(&self.window, self.groups),
        ));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let outputs = self.window.input_len().unwrap_or(u32::MAX);
        let [rows, columns, channels] = self.window.input;
        let blocks = u64::from(channels.div_ceil(8)).max(self.groups.into());
        of_operands(|visit| self.operands(needs, visit))
            .products(outputs.into(), products(&self.window, self.groups))
            .computations(
                taps_looked_at(&self.window, [rows, columns]).saturating_mul(blocks),
                OUTPUT,
            )
    }
}

impl<P: Place> Operator for Conv2dWeightSgdF32<P> {
    fn check(&self) -> Result<(), Fault> {
        check(&self.window, self.groups)
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(floats(
            Access::Update,
            self.weights,
            weights_len(&self.window, self.groups),
        ));
        visit(floats(Access::Read, self.gradient, self.window.output_len()));
        visit(floats(Access::Read, self.input, self.window.input_len()));
        visit(floats(Access::Read, self.rate, Some(1)));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let weights = weights_len(&self.window, self.groups).unwrap_or(u32::MAX);
        let [rows, columns, channels] = self.window.output;
        let blocks = u64::from(group_channels(&self.window, self.groups).div_ceil(8)).saturating_mul(channels.into());
        of_operands(|visit| self.operands(needs, visit))
            .products(weights.into(), products(&self.window, self.groups))
            .computations(
                taps_looked_at(&self.window, [rows, columns]).saturating_mul(blocks),
                OUTPUT,
            )
    }
}
