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
use crate::ops::cost::{Cost, OUTPUT, TURN, blocks, of_operands, taps_inside};
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

/// Neighbouring input channels whose gradients are summed at a time.
const LANES: u32 = 8;

/// Input and output channels of a tile of weights.
const TILE: u32 = 4;

/// Channels of one group of the output.
fn group_filters(window: &Window2d, groups: u16) -> u32 {
    u32::from(window.output[2]) / u32::from(groups.max(1))
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
        let [rows, columns, _] = self.window.input.map(u64::from);
        let blocks = blocks(group_channels(&self.window, self.groups), LANES).saturating_mul(self.groups.into());
        // Each block of each pixel looks at all taps, and those inside have a row of weights for each filter of the group.
        let looks = u64::from(self.window.batch)
            .saturating_mul(rows * columns)
            .saturating_mul(self.window.taps().into());
        let turns = taps_inside(&self.window).saturating_mul(group_filters(&self.window, self.groups).into());
        of_operands(|visit| self.operands(needs, visit))
            .products(outputs.into(), products(&self.window, self.groups))
            .computations(looks.saturating_mul(blocks), OUTPUT)
            .computations(turns.saturating_mul(blocks), TURN)
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
        let [rows, _, _] = self.window.output.map(u64::from);
        let [channels, filters] = [group_channels, group_filters].map(|count| count(&self.window, self.groups));
        let tiles = blocks(channels, TILE)
            .saturating_mul(blocks(filters, TILE))
            .saturating_mul(self.groups.into());
        // Each tile of each tap begins with every image and with every row, and takes a turn for each pixel that has the tap inside.
        let begins = u64::from(self.window.batch)
            .saturating_mul(rows + 1)
            .saturating_mul(self.window.taps().into());
        of_operands(|visit| self.operands(needs, visit))
            .products(weights.into(), products(&self.window, self.groups))
            .computations(begins.saturating_mul(tiles), OUTPUT)
            .computations(taps_inside(&self.window).saturating_mul(tiles), TURN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Slot;

    /// 3 x 3 taps over images of 8 x 8 pixels, padded.
    fn window([channels, filters]: [u16; 2]) -> Window2d {
        Window2d {
            batch: 2,
            input: [8, 8, channels],
            output: [8, 8, filters],
            kernel: [3, 3],
            stride: [1, 1],
            dilation: [1, 1],
            padding: [1, 1],
        }
    }

    fn input_grad(channels: [u16; 2], groups: u16) -> Cost {
        let op = Conv2dInputGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            weights: Slot::default(),
            window: window(channels),
            groups,
        };
        op.cost(Needs::default())
    }

    fn weight_sgd(channels: [u16; 2], groups: u16) -> Cost {
        let op = Conv2dWeightSgdF32 {
            weights: Slot::default(),
            gradient: Slot::default(),
            input: Slot::default(),
            rate: Slot::default(),
            window: window(channels),
            groups,
        };
        op.cost(Needs::default())
    }

    /// Passes of a loop over so many channels.
    fn passes(channels: u16, block: u16) -> u64 {
        let (mut at, mut count) = (0, 0);
        while at < channels {
            at += if channels - at >= block { block } else { 1 };
            count += 1;
        }
        count
    }

    /// Pixels of both images, and those of them that have a tap inside, of all nine.
    const PIXELS: u64 = 2 * 64;
    const INSIDE: u64 = 2 * 22 * 22;

    #[test]
    fn blocks_and_single_channels_are_counted_as_the_kernels_take_them() {
        for (channels, filters) in (1..=17).flat_map(|channels| [1, 3, 4, 7, 8].map(|filters| (channels, filters))) {
            for groups in [1_u16, 2, 3] {
                let [c, f, all] = [channels, filters, groups].map(u64::from);
                let (both, products) = ([channels * groups, filters * groups], INSIDE * f * c * all);
                let blocks = passes(channels, 8) * all;
                let expected = products + 8 * PIXELS * c * all + 8 * 9 * PIXELS * blocks + 2 * INSIDE * f * blocks;
                assert_eq!(input_grad(both, groups).products, expected, "{both:?}, {groups} groups");
                let tiles = passes(channels, 4) * passes(filters, 4) * all;
                let expected = products + 8 * 9 * f * c * all + 8 * 9 * 2 * (8 + 1) * tiles + 2 * INSIDE * tiles;
                assert_eq!(weight_sgd(both, groups).products, expected, "{both:?}, {groups} groups");
            }
        }
    }

    /// Seven single channels are seven passes over all taps, where eight are one.
    #[test]
    fn channels_that_are_left_over_cost_what_they_take() {
        assert!(input_grad([7, 1], 1).total() > 2 * input_grad([8, 1], 1).total());
        assert!(weight_sgd([3, 3], 1).total() > weight_sgd([4, 4], 1).total());
    }

    /// Of channels that are whole blocks the loops are a small part beside the products.
    #[test]
    fn whole_blocks_cost_little_beside_their_products() {
        for channels in [[8, 8], [16, 32], [64, 64]] {
            let [c, f] = channels.map(u64::from);
            let products = 3 * INSIDE * f * c;
            assert!(weight_sgd(channels, 1).total() < products * 5 / 4, "{channels:?}");
            assert!(input_grad(channels, 1).total() < products * 8 / 5, "{channels:?}");
        }
    }
}
