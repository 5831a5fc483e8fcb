//! Locally connected (unshared) convolution: every output position has its own kernel. Valid windows, stride 1, NCHW.
//!
//! `y[n, o, oy, ox] = act(gain * sum x[n, c, oy + ky, ox + kx] * w[o, c, ky, kx, oy, ox] + bias[o, oy, ox])`
//!
//! The weights keep the order of the papers and traces, output columns innermost: weights, inputs and outputs are then all read
//! along rows, and a network of a gigabyte needs no second layout.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

operator! {
    /// An f32 locally connected layer.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LocallyConnectedF32<P> {
        /// NCHW.
        pub output: P,
        /// NCHW.
        pub input: P;
        /// Offset of the weights `[out, in, kh, kw, oh, ow]`.
        pub weights: u32,
        /// Offset of the bias `[out, oh, ow]`.
        pub bias: u32,
        /// Images.
        pub batch: u16,
        /// Channels, rows, columns of the input.
        pub input_shape: [u16; 3],
        /// Output channels.
        pub channels: u16,
        /// Rows and columns of the kernel.
        pub kernel: [u16; 2],
        /// Factor of the sum.
        pub gain: f32,
        /// Clamp of the result.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// An int8 locally connected layer, in the arithmetic of int8 convolutions: `clamp(zero point + M[o] (bias[o, oy, ox] + sum (x - zero point) w))`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct LocallyConnectedS8<P> {
        /// NCHW.
        pub output: P,
        /// NCHW.
        pub input: P;
        /// Offset of the weights `[out, in, kh, kw, oh, ow]`, int8.
        pub weights: u32,
        /// Offset of the bias `[out, oh, ow]`, int32.
        pub bias: u32,
        /// Offset of one `{ multiplier, shift }` of i32 for each output channel.
        pub multipliers: u32,
        /// Images.
        pub batch: u16,
        /// Channels, rows, columns of the input.
        pub input_shape: [u16; 3],
        /// Output channels.
        pub channels: u16,
        /// Rows and columns of the kernel.
        pub kernel: [u16; 2],
        /// Zero point of the input.
        pub input_zero_point: i8,
        /// Zero point of the output.
        pub output_zero_point: i8,
        /// Clamp of the result, in stored terms.
        pub clamp: [i8; 2],
    }
}

/// Shape, common to all operators of such a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) batch: u16,
    pub(crate) input: [u16; 3],
    pub(crate) channels: u16,
    pub(crate) kernel: [u16; 2],
}

impl Shape {
    pub(crate) fn output(&self) -> [u16; 3] {
        let [_, h, w] = self.input;
        let [kh, kw] = self.kernel;
        [self.channels, (h + 1).saturating_sub(kh), (w + 1).saturating_sub(kw)]
    }

    pub(crate) fn input_len(&self) -> Option<u32> {
        let [c, h, w] = self.input.map(u32::from);
        size(&[u32::from(self.batch), c, h, w])
    }

    pub(crate) fn output_len(&self) -> Option<u32> {
        let [c, h, w] = self.output().map(u32::from);
        size(&[u32::from(self.batch), c, h, w])
    }

    pub(crate) fn weights_len(&self) -> Option<u32> {
        let [o, oh, ow] = self.output().map(u32::from);
        let [kh, kw] = self.kernel.map(u32::from);
        size(&[o, u32::from(self.input[0]), kh, kw, oh, ow])
    }

    pub(crate) fn bias_len(&self) -> Option<u32> {
        size(&self.output().map(u32::from))
    }

    pub(crate) fn check(&self) -> Result<(), Fault> {
        let [_, h, w] = self.input;
        if h == u16::MAX || w == u16::MAX || self.kernel.contains(&0) {
            return Err(Fault::Shape);
        }
        for len in [self.input_len(), self.output_len(), self.weights_len(), self.bias_len()] {
            checked_size(&[len.ok_or(Fault::Shape)?, 4])?;
        }
        Ok(())
    }

    pub(crate) fn cost(&self, base: Cost) -> Cost {
        let [rows, columns] = self.kernel.map(u64::from);
        let terms = (rows * columns).saturating_mul(self.input[0].into());
        let outputs = self.output_len().unwrap_or(u32::MAX);
        base.sums(outputs.into(), terms)
    }
}

impl<P> LocallyConnectedF32<P> {
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
}

impl<P> LocallyConnectedS8<P> {
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
}

impl<P: Place> Operator for LocallyConnectedF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape().check()
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let shape = self.shape();
        let [output, input] = [shape.output_len(), shape.input_len()].map(|len| len.unwrap_or(u32::MAX));
        visit(Operand::of::<f32>(Access::Write, self.output, output));
        visit(Operand::of::<f32>(Access::Read, self.input, input));
        visit(Operand::constant::<f32>(
            self.weights,
            shape.weights_len().unwrap_or(u32::MAX),
        ));
        visit(Operand::constant::<f32>(
            self.bias,
            shape.bias_len().unwrap_or(u32::MAX),
        ));
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape().cost(of_operands(|visit| self.operands(needs, visit)))
    }
}

impl<P: Place> Operator for LocallyConnectedS8<P> {
    fn check(&self) -> Result<(), Fault> {
        self.shape().check()?;
        if self.clamp[0] > self.clamp[1] {
            return Err(Fault::Quantisation);
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let shape = self.shape();
        let [output, input] = [shape.output_len(), shape.input_len()].map(|len| len.unwrap_or(u32::MAX));
        visit(Operand::of::<i8>(Access::Write, self.output, output));
        visit(Operand::of::<i8>(Access::Read, self.input, input));
        visit(Operand::constant::<i8>(
            self.weights,
            shape.weights_len().unwrap_or(u32::MAX),
        ));
        visit(Operand::constant::<i32>(
            self.bias,
            shape.bias_len().unwrap_or(u32::MAX),
        ));
        visit(Operand::constant::<i32>(
            self.multipliers,
            u32::from(self.channels).saturating_mul(2),
        ));
    }

    fn cost(&self, needs: Needs) -> Cost {
        self.shape().cost(of_operands(|visit| self.operands(needs, visit)))
    }
}
