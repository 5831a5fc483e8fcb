//! Two-dimensional convolution, grouped and depthwise included.
//!
//! `y[n, oy, ox, o] = act(bias[o] + sum x[n, oy * sh + ky * dh - top, ox * sw + kx * dw - left, g * C/G + c] * w[o, ky, kx, c])`
//! over the window's rows `ky`, columns `kx` and the channels `c` of the group `g` that `o` belongs to; outside the input x is
//! zero (the zero point, where quantised). Activations are NHWC.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Mem, Operand, Place};
use crate::ops::cost::{Cost, PIXEL, PIXELS_OF_GROUPS, ROUNDING, RUN, of_operands, taps_inside, windows};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};
use crate::ops::window::{Window2d, two};

operator! {
    /// An f32 convolution. Weights: OHWI `[out, kh, kw, in / groups]` for the scalar kernel; other kernels state their layout.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Conv2dF32<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P,
        /// Added before the clamp; of the output's shape.
        pub residual: Option<P>,
        /// The kernel's scratch.
        pub scratch: P;
        /// Offset of the weights, f32.
        pub weights: u32,
        /// Offset of the bias `[out]`, f32; none adds nothing. Kernels that always read one say so.
        pub bias: Option<u32>,
        /// Shapes.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
        /// Clamp of the result: (-inf, inf) for none.
        pub clamp: [f32; 2],
    }
}

operator! {
    /// An int8 convolution with int8 weights, as in the TensorFlow Lite 8-bit quantisation specification: per-channel symmetric
    /// weights, int32 bias. Weights: OHWI for the scalar kernel; other kernels state their layout.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Conv2dS8<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P,
        /// The kernel's scratch.
        pub scratch: P;
        /// Offset of the weights, in the kernel's layout.
        pub weights: u32,
        /// Offset of one `{ bias, multiplier, shift }` of i32 for each output channel; whether the bias holds the zero-point
        /// correction is part of the kernel's layout.
        pub channels: u32,
        /// Shapes.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
        /// Zero point of the input; also the value of the padding.
        pub input_zero_point: i8,
        /// Zero point of the output.
        pub output_zero_point: i8,
        /// Clamp of the result, in stored terms.
        pub clamp: [i8; 2],
        /// See [`Conv2dS8::STAGED`].
        pub flags: u8,
    }
}

operator! {
    /// An int16 convolution with int8 weights, per-channel multipliers and 64-bit sums; all zero points are 0.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Conv2dS16<P> {
        /// NHWC.
        pub output: P,
        /// NHWC.
        pub input: P;
        /// Offset of the OHWI weights, int8.
        pub weights: u32,
        /// Offset of the bias `[out]`, i64.
        pub bias: u32,
        /// Offset of one `{ multiplier, shift }` of i32 for each output channel.
        pub channels: u32,
        /// Shapes.
        pub window: Window2d,
        /// Input channels / groups are the weights' channels.
        pub groups: u16,
        /// Clamp of the result, in stored terms.
        pub clamp: [i16; 2],
    }
}

impl<P: Place> Conv2dS16<P> {
    /// Channels of one weight window.
    pub fn group_channels(&self) -> u32 {
        u32::from(self.window.input[2]) / u32::from(self.groups.max(1))
    }

    /// Elements of the OHWI weights.
    pub fn weights_len(&self) -> Option<u32> {
        let [kh, kw] = two::<_, u32>(self.window.kernel);
        size(&[u32::from(self.window.output[2]), kh, kw, self.group_channels()])
    }
}

impl<P: Place> Operator for Conv2dS16<P> {
    fn check(&self) -> Result<(), Fault> {
        self.window.check()?;
        check_groups(&self.window, self.groups)?;
        self.weights_len().ok_or(Fault::Shape)?;
        if self.clamp[0] > self.clamp[1] {
            return Err(Fault::Quantisation);
        }
        Ok(())
    }

    fn operands(&self, _: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let channels = u32::from(self.window.output[2]);
        let (output, input) = (self.window.output_len(), self.window.input_len());
        visit(Operand::of::<i16>(
            Access::Write,
            self.output,
            output.unwrap_or(u32::MAX),
        ));
        visit(Operand::of::<i16>(Access::Read, self.input, input.unwrap_or(u32::MAX)));
        visit(Operand::constant::<i8>(
            self.weights,
            self.weights_len().unwrap_or(u32::MAX),
        ));
        visit(Operand::constant::<i64>(self.bias, channels));
        visit(Operand::constant::<i32>(self.channels, channels.saturating_mul(2)));
    }

    fn cost(&self, needs: Needs) -> Cost {
        let terms = u64::from(self.window.taps()).saturating_mul(self.group_channels().into());
        let outputs = u64::from(self.window.output_len().unwrap_or(u32::MAX));
        // A row of a window is one run where its pixels are neighbours.
        let runs = if self.groups == 1 && self.window.dilation[1] == 1 {
            self.window.kernel[0].into()
        } else {
            u64::from(self.window.taps())
        };
        of_operands(|visit| self.operands(needs, visit))
            .sums(outputs, terms)
            .computations(outputs, ROUNDING)
            .computations(outputs.saturating_mul(runs), RUN)
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}

impl<P: Place> Conv2dF32<P> {
    /// Whether there is a group for each input channel, and more than one.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.window.input[2]
    }

    /// The bias, `[out]`; empty where there is none.
    pub(crate) fn biases<'a>(&self, mem: &Mem<'a>) -> Option<&'a [f32]> {
        match self.bias {
            Some(bias) => mem.weights(bias, u32::from(self.window.output[2])),
            None => Some(&[]),
        }
    }

    /// Channels of one weight window.
    pub fn group_channels(&self) -> u32 {
        u32::from(self.window.input[2]) / u32::from(self.groups.max(1))
    }

    /// Elements of the OHWI weights.
    pub fn weights_len(&self) -> Option<u32> {
        let [kh, kw] = two::<_, u32>(self.window.kernel);
        size(&[u32::from(self.window.output[2]), kh, kw, self.group_channels()])
    }
}

impl Conv2dS8 {
    /// A bit of `flags`, for the scalar kernel: compute all channels of a pixel in scratch before writing any. The output may then follow
    /// its input more closely, which saves more arena than the scratch takes.
    pub const STAGED: u8 = 1;
}

impl<P> Conv2dS8<P> {
    /// Whether there is a group for each input channel, and more than one.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.window.input[2]
    }

    /// Whether images of one pixel become images of one pixel, as in a fully connected layer.
    pub fn is_one_pixel(&self) -> bool {
        self.window.output[..2] == [1, 1] && self.window.input[..2] == [1, 1]
    }

    /// Whether [`Conv2dS8::STAGED`] is set.
    pub fn is_staged(&self) -> bool {
        self.flags & Conv2dS8::STAGED != 0
    }

    /// Channels of one weight window.
    pub fn group_channels(&self) -> u32 {
        u32::from(self.window.input[2]) / u32::from(self.groups.max(1))
    }

    /// Elements of the OHWI weights.
    pub fn weights_len(&self) -> Option<u32> {
        let [kh, kw] = two::<_, u32>(self.window.kernel);
        size(&[u32::from(self.window.output[2]), kh, kw, self.group_channels()])
    }
}

impl<P: Place> Operator for Conv2dF32<P> {
    fn check(&self) -> Result<(), Fault> {
        self.window.check()?;
        check_groups(&self.window, self.groups)?;
        checked_size(&[self.weights_len().ok_or(Fault::Shape)?, 4])?;
        if self.clamp.iter().any(|c| c.is_nan()) {
            return Err(Fault::Shape);
        }
        Ok(())
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let output = self.window.output_len().unwrap_or(u32::MAX);
        visit(Operand::of::<f32>(Access::Write, self.output, output));
        visit(Operand::of::<f32>(
            Access::Read,
            self.input,
            self.window.input_len().unwrap_or(u32::MAX),
        ));
        if let Some(residual) = self.residual {
            visit(Operand::of::<f32>(Access::Read, residual, output));
        }
        visit(Operand::scratch(self.scratch, needs.scratch));
        visit(Operand::constant::<f32>(self.weights, needs.weights / 4));
        if let Some(bias) = self.bias {
            visit(Operand::constant::<f32>(bias, u32::from(self.window.output[2])));
        }
    }

    fn set_constants(&mut self, weights: u32, _: u32) {
        self.weights = weights;
    }

    fn cost(&self, needs: Needs) -> Cost {
        let outputs = self.window.output_len().unwrap_or(u32::MAX);
        let terms = u64::from(self.window.taps()).saturating_mul(self.group_channels().into());
        let inside = taps_inside(&self.window).saturating_mul(self.window.output[2].into());
        let products = match needs.scratch {
            0 => inside.saturating_mul(self.group_channels().into()),
            // Windows are copied with their padding.
            _ => terms.saturating_mul(outputs.into()),
        };
        of_operands(|visit| self.operands(needs, visit))
            .products(outputs.into(), products)
            .copies(&self.window)
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}

impl<P: Place> Operator for Conv2dS8<P> {
    fn check(&self) -> Result<(), Fault> {
        self.window.check()?;
        check_groups(&self.window, self.groups)?;
        self.weights_len().ok_or(Fault::Shape)?;
        if self.clamp[0] > self.clamp[1] || self.flags & !Conv2dS8::STAGED != 0 {
            return Err(Fault::Quantisation);
        }
        Ok(())
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        visit(Operand::of::<i8>(
            Access::Write,
            self.output,
            self.window.output_len().unwrap_or(u32::MAX),
        ));
        visit(Operand::of::<i8>(
            Access::Read,
            self.input,
            self.window.input_len().unwrap_or(u32::MAX),
        ));
        visit(Operand::scratch(self.scratch, needs.scratch));
        visit(Operand {
            align: 4,
            ..Operand::constant::<i8>(self.weights, needs.weights)
        });
        visit(Operand::constant::<i32>(
            self.channels,
            u32::from(self.window.output[2]).saturating_mul(3),
        ));
    }

    fn set_constants(&mut self, weights: u32, records: u32) {
        (self.weights, self.channels) = (weights, records);
    }

    fn cost(&self, needs: Needs) -> Cost {
        let terms = u64::from(self.window.taps()).saturating_mul(self.group_channels().into());
        let outputs = self.window.output_len().unwrap_or(u32::MAX);
        // Of a channel by itself as many are rounded at once as are summed.
        let rounding = if self.groups == 1 { ROUNDING } else { ROUNDING / 4 };
        // Pixels of windows of several channels may lie anywhere.
        let pixels = match self.groups {
            1 => self.window.taps().into(),
            _ => PIXELS_OF_GROUPS,
        };
        let begun_pixels = windows(&self.window).saturating_mul(pixels * PIXEL);
        // Windows of several channels are begun for each output channel in each row.
        let begun = if self.groups == 1 && self.window.taps() > 1 {
            outputs.checked_div(self.window.output[1].into()).unwrap_or(0)
        } else {
            0
        };
        of_operands(|visit| self.operands(needs, visit))
            .sums(outputs.into(), terms)
            .computations(outputs.into(), rounding)
            .computations(begun.into(), 48)
            .computations(begun_pixels, 1)
            .copies(&self.window)
    }

    fn window_mut(&mut self) -> Option<&mut Window2d> {
        Some(&mut self.window)
    }
}

pub(crate) fn check_groups(window: &Window2d, groups: u16) -> Result<(), Fault> {
    let fits = |channels: u16| groups > 0 && channels.is_multiple_of(groups);
    if fits(window.input[2]) && fits(window.output[2]) {
        Ok(())
    } else {
        Err(Fault::Shape)
    }
}
