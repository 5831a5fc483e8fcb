//! Operators that slide a window: convolution and pooling.

use super::operator::layout_name;
use super::trace::Operator;
use super::work::Work;
use crate::build::Weights;
use crate::error::{Error, Result};
use crate::graph::infer::{nhwc, windows};
use crate::graph::{Activation, Conv2dAttrs, Layout, Op, Padding2d, PoolAttrs, TensorId};

impl Work<'_, '_, '_> {
    pub(super) fn conv2d(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let layout = o.layout()?;
        let x = self.f32_input(o, 0)?;
        self.check_layout(o, 0, layout_name(layout))?;
        let shape = self.weights_shape(o, 1, "OIHW", 4)?;
        let weights = Weights::Moved {
            shape,
            perm: vec![0, 2, 3, 1],
        };
        let w = self.weights(o, 1, &weights)?;
        let mut inputs = vec![x, w];
        if o.has(2) {
            inputs.push(self.f32_input(o, 2)?);
        }
        let attrs = Conv2dAttrs {
            layout,
            stride: o.pair("strides")?,
            dilation: o.pair("dilation")?,
            padding: o.padding()?,
            groups: o.size("groups")?,
            activation: Activation::None,
        };
        self.node(o, Op::Conv2d(attrs), &inputs)
    }

    pub(super) fn pool2d(&mut self, o: &Operator<'_>) -> Result<TensorId> {
        let is_max = o.kind == "max_pool2d";
        let layout = o.layout()?;
        let mut x = self.f32_input(o, 0)?;
        self.check_layout(o, 0, layout_name(layout))?;
        if is_max && o.pair("dilation")? != [1, 1] {
            let dilated = Error::unsupported("a dilated pooling").expected("dilation [1, 1]");
            return Err(o.attr("dilation")?.locate(dilated));
        }
        let kernel = o.pair("kernel")?;
        let stride = o.pair("strides")?;
        let stated = o.padding()?;
        let Padding2d {
            top,
            bottom,
            left,
            right,
        } = stated;
        if top.max(bottom) > kernel[0] / 2 || left.max(right) > kernel[1] / 2 {
            return Err(o
                .json
                .error(format!(
                    "padding [{top}, {bottom}, {left}, {right}] of a kernel of {kernel:?}"
                ))
                .expected("at most half the kernel"));
        }
        let mut padding = stated;
        if o.flag("ceil_mode")? {
            let [_, h, w, _] = nhwc(layout, self.builder.shape(x))?;
            padding.bottom += ceiling(h, kernel[0], stride[0], top, bottom)?;
            padding.right += ceiling(w, kernel[1], stride[1], left, right)?;
        }
        let mut count_include_pad = !is_max && o.flag("count_include_pad")?;
        let mut activation_padding = padding;
        if count_include_pad && padding != stated {
            // The divisor counts stated padding, but not what only the ceiling reaches: the former becomes zeros of their own.
            let rows_columns = [(top, bottom), (left, right)];
            let pads = match layout {
                Layout::Nchw => vec![(0, 0), (0, 0), rows_columns[0], rows_columns[1]],
                Layout::Nhwc => vec![(0, 0), rows_columns[0], rows_columns[1], (0, 0)],
            };
            if stated != Padding2d::default() {
                x = self.part(o, "pad", Op::Pad { pads, value: 0.0 }, &[x])?;
            }
            activation_padding = Padding2d {
                bottom: padding.bottom - bottom,
                right: padding.right - right,
                ..Padding2d::default()
            };
            count_include_pad = false;
        }
        let attrs = PoolAttrs {
            layout,
            kernel,
            stride,
            padding: activation_padding,
            count_include_pad,
            activation: Activation::None,
        };
        let op = if is_max {
            Op::MaxPool2d(attrs)
        } else {
            Op::AvgPool2d(attrs)
        };
        self.node(o, op, &[x])
    }
}

/// Padding behind the input that only ceiling mode reaches.
fn ceiling(n: usize, kernel: usize, stride: usize, before: usize, after: usize) -> Result<usize> {
    let floor = windows(n, kernel, stride, 1, before + after)?;
    let covered = (floor - 1) * stride + kernel;
    let next = floor * stride;
    // One more window, unless it would start in the padding behind the input.
    if covered < n + before + after && next < n + before {
        Ok((next + kernel).saturating_sub(n + before + after))
    } else {
        Ok(0)
    }
}
