//! Locally connected layers with trained filters: forward, gradients of input and gain, and gradient descent on the filters.
//!
//! With `y` as in [`crate::ops::locally_connected`], `s[n, o, oy, ox] = sum x[n, c, oy + ky, ox + kx] * w[o, c, ky, kx, oy, ox]` and `dy` the gradient of the
//! loss by `y`, before the clamp:
//!
//! - `dx[n, c, iy, ix] = gain * sum dy[n, o, iy - ky, ix - kx] * w[o, c, ky, kx, iy - ky, ix - kx]`;
//! - `w[o, c, ky, kx, oy, ox] -= rate * gain * sum over n of dy[n, o, oy, ox] * x[n, c, oy + ky, ox + kx]`;
//! - `dgain = sum dy * s`, where `s` is computed again.
//!
//! A bias `[out, oh, ow]` is one of [`crate::ops::linear_train`] whose rows are images.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::locally_connected::Shape;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};

operator! {
    /// An f32 locally connected layer whose weights, bias and gain are operands: in the state where they are trained.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct TrainedLocallyConnectedF32<P> {
        /// NCHW.
        pub output: P,
        /// NCHW.
        pub input: P,
        /// `[out, in, kh, kw, oh, ow]`
        pub weights: P,
        /// `[out, oh, ow]`; none adds nothing.
        pub bias: Option<P>,
        /// `[1]`; none is a factor of 1.
        pub gain: Option<P>;
        /// Images.
        pub batch: u16,
        /// Channels, rows, columns of the input.
        pub input_shape: [u16; 3],
        /// Output channels.
        pub channels: u16,
        /// Rows and columns of the kernel.
        pub kernel: [u16; 2],
        /// Clamp of the result: (-inf, inf) for none.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// Gradient of a locally connected layer's input, f32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LocallyConnectedInputGradF32<P> {
        /// Gradient of the input, NCHW.
        pub output: P,
        /// Gradient of the layer's output, NCHW.
        pub gradient: P,
        /// `[out, in, kh, kw, oh, ow]`
        pub weights: P,
        /// `[1]`; none is a factor of 1.
        pub gain: Option<P>;
        /// Images.
        pub batch: u16,
        /// Channels, rows, columns of the input.
        pub input_shape: [u16; 3],
        /// Output channels.
        pub channels: u16,
        /// Rows and columns of the kernel.
        pub kernel: [u16; 2],
    }
}

operator! {
    /// A step of gradient descent on a locally connected layer's weights, f32; the gradient is in no memory.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LocallyConnectedWeightSgdF32<P> {
        /// `[out, in, kh, kw, oh, ow]`; updated.
        pub weights: P,
        /// Gradient of the layer's output, NCHW.
        pub gradient: P,
        /// The layer's input, NCHW.
        pub input: P,
        /// Learning rate, `[1]`.
        pub rate: P,
        /// `[1]`; none is a factor of 1.
        pub gain: Option<P>;
        /// Images.
        pub batch: u16,
        /// Channels, rows, columns of the input.
        pub input_shape: [u16; 3],
        /// Output channels.
        pub channels: u16,
        /// Rows and columns of the kernel.
        pub kernel: [u16; 2],
    }
}

operator! {
    /// Gradient of a locally connected layer's gain, f32.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LocallyConnectedGainGradF32<P> {
        /// Gradient of the gain, `[1]`.
        pub output: P,
        /// Gradient of the layer's output, NCHW.
        pub gradient: P,
        /// The layer's input, NCHW.
        pub input: P,
        /// `[out, in, kh, kw, oh, ow]`
        pub weights: P;
        /// Images.
        pub batch: u16,
        /// Channels, rows, columns of the input.
        pub input_shape: [u16; 3],
        /// Output channels.
        pub channels: u16,
        /// Rows and columns of the kernel.
        pub kernel: [u16; 2],
    }
}

fn floats<P: Place>(access: Access, place: P, len: Option<u32>) -> Operand<P> {
    Operand::of::<f32>(access, place, len.unwrap_or(u32::MAX))
}

macro_rules! shaped {
    ($($operator:ident)*) => {
        $(impl<P> $operator<P> {
            pub(crate) fn shape(&self) -> Shape {
                Shape {
                    batch: self.batch,
                    input: self.input_shape,
                    channels: self.channels,
                    kernel: self.kernel,
                }
            }

            /// Channels, rows, columns of the output.
            pub fn output_shape(&self) -> [u16; 3] {
                self.shape().output()
            }
        })*
    };
}

shaped! {
    TrainedLocallyConnectedF32
    LocallyConnectedInputGradF32
    LocallyConnectedWeightSgdF32
    LocallyConnectedGainGradF32
}

impl<P: Place> Operator for TrainedLocallyConnectedF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape().check()?;
        if self.clamp.iter().any(|limit| limit.is_nan()) {
            return Err(Fault::Shape);
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let shape = self.shape();
        visit(floats(Access::Write, self.output, shape.output_len()));
        visit(floats(Access::Read, self.input, shape.input_len()));
        visit(floats(Access::Read, self.weights, shape.weights_len()));
        if let Some(bias) = self.bias {
            visit(floats(Access::Read, bias, shape.bias_len()));
        }
        if let Some(gain) = self.gain {
            visit(floats(Access::Read, gain, Some(1)));
        }
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape().cost(of_operands(|visit| self.operands(needs, visit)))
    }
}

impl<P: Place> Operator for LocallyConnectedInputGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape().check()
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let shape = self.shape();
        visit(floats(Access::Write, self.output, shape.input_len()));
        visit(floats(Access::Read, self.gradient, shape.output_len()));
        visit(floats(Access::Read, self.weights, shape.weights_len()));
        if let Some(gain) = self.gain {
            visit(floats(Access::Read, gain, Some(1)));
        }
    }

    fn cost(&self, needs: Needs) -> Cost {
        let base = of_operands(|visit| self.operands(needs, visit));
        // Each row of the input looks at all taps of all filters, those outside included.
        let [channels, rows, columns] = self.input_shape.map(u64::from);
        let [kernel_rows, kernel_columns] = self.kernel.map(u64::from);
        let taps = u64::from(self.channels).saturating_mul(kernel_rows * kernel_columns);
        let inputs = u64::from(self.batch)
            .saturating_mul(channels * rows)
            .saturating_mul(columns);
        base.sums(inputs, taps)
    }
}

impl<P: Place> Operator for LocallyConnectedWeightSgdF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape().check()
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let shape = self.shape();
        visit(floats(Access::Update, self.weights, shape.weights_len()));
        visit(floats(Access::Read, self.gradient, shape.output_len()));
        visit(floats(Access::Read, self.input, shape.input_len()));
        visit(floats(Access::Read, self.rate, Some(1)));
        if let Some(gain) = self.gain {
            visit(floats(Access::Read, gain, Some(1)));
        }
    }

    fn cost(&self, needs: Needs) -> Cost {
        let weights = self.shape().weights_len().unwrap_or(u32::MAX);
        of_operands(|visit| self.operands(needs, visit)).sums(weights.into(), self.batch.into())
    }
}

impl<P: Place> Operator for LocallyConnectedGainGradF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape().check()
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let shape = self.shape();
        visit(floats(Access::Write, self.output, Some(1)));
        visit(floats(Access::Read, self.gradient, shape.output_len()));
        visit(floats(Access::Read, self.input, shape.input_len()));
        visit(floats(Access::Read, self.weights, shape.weights_len()));
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape().cost(of_operands(|visit| self.operands(needs, visit)))
    }
}
