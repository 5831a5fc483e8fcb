//! Operators of version 2: products of computed matrices, tables, the largest's index, Fourier transforms, and images that grow.

use arenite::ops::binary::SpecialBinaryOp;
use arenite::ops::fft::{FftPlan, MAX_FFT};

use super::operator::layout_name;
use super::trace::Operator;
use super::work::Work;
use crate::build::{NewNode, Weights};
use crate::compose::{self, Compose};
use crate::error::{Error, Result};
use crate::graph::infer::nhwc;
use crate::graph::{Activation, Conv2dAttrs, DType, Data, Layout, Op, Padding2d, Signal, TensorId};

/// The largest number of rows of a table: f32 counts them exactly, and each is compared with each index.
const MOST_ROWS: usize = 1 << 20;

/// The nodes that one operator of the trace becomes, but for the last.
struct Parts<'p, 'w, 'a, 'o> {
    work: &'p mut Work<'w, 'a, 'o>,
    operator: &'p Operator<'a>,
    count: usize,
}

impl Parts<'_, '_, '_, '_> {
    fn emit(&mut self, op: Op, inputs: &[TensorId]) -> Result<TensorId> {
        self.count += 1;
        self.work.part(self.operator, &self.count.to_string(), op, inputs)
    }

    fn emit_shape(&mut self, op: Op, x: TensorId, shape: &[usize]) -> Result<TensorId> {
        self.count += 1;
        let (operator, step) = (self.operator, self.count);
        let node = NewNode {
            name: &format!("{}.{step}", operator.name),
            kind: crate::graph::facts::IMPLIED,
            op,
            inputs: &[Some(x)],
            output: &format!("{}.{step}", operator.output),
            origin: super::trace::origin(&operator.json),
        };
        self.work.builder.node_of_shape(node, shape)
    }
}

impl Compose for Parts<'_, '_, '_, '_> {
    type Value = TensorId;

    fn shape(&self, value: &TensorId) -> Vec<usize> {
        self.work.builder.shape(*value).to_vec()
    }

    fn reshape(&mut self, value: &TensorId, shape: &[usize]) -> Result<TensorId> {
        if self.work.builder.shape(*value) == shape {
            return Ok(*value);
        }
        self.emit_shape(Op::Reshape, *value, shape)
    }

    fn transpose(&mut self, value: &TensorId, perm: &[usize]) -> Result<TensorId> {
        self.emit(Op::Transpose { perm: perm.to_vec() }, &[*value])
    }

    fn part(&mut self, value: &TensorId, axis: usize, from: usize, extent: usize) -> Result<TensorId> {
        let mut shape = self.shape(value);
        if shape[axis] == extent {
            return Ok(*value);
        }
        let (mut begin, stride) = (vec![0; shape.len()], vec![1; shape.len()]);
        begin[axis] = from;
        shape[axis] = extent;
        self.emit_shape(Op::Slice { begin, stride }, *value, &shape)
    }

    fn concat(&mut self, values: &[TensorId], axis: usize) -> Result<TensorId> {
        let activation = Activation::None;
        match values {
            [one] => Ok(*one),
            several => self.emit(Op::Concat { axis, activation }, several),
        }
    }

    fn zeros_around(&mut self, value: &TensorId, pads: &[(usize, usize)]) -> Result<TensorId> {
        let (pads, value_of) = (pads.to_vec(), 0.0);
        self.emit(Op::Pad { pads, value: value_of }, &[*value])
    }

    fn linear(&mut self, x: &TensorId, w: &TensorId) -> Result<TensorId> {
        let activation = Activation::None;
        self.emit(Op::Linear { activation }, &[*x, *w])
    }
}

impl<'a> Work<'_, 'a, '_> {
    /// Adds the result of `compose` under the operator's own name.
    fn composed(
        &mut self,
        o: &Operator<'a>,
        compose: impl FnOnce(&mut Parts<'_, '_, 'a, '_>) -> Result<TensorId>,
    ) -> Result<TensorId> {
        let made = compose(&mut Parts {
            work: self,
            operator: o,
            count: 0,
        })?;
        self.node(o, Op::Identity, &[made])
    }

    pub(super) fn matmul(&mut self, o: &Operator<'a>) -> Result<TensorId> {
        let (x, y) = (self.f32_input(o, 0)?, self.f32_input(o, 1)?);
        self.composed(o, |parts| compose::multiplied(parts, &x, &y))
    }

    /// Rows of a table: a product with rows of zeros and a one, which stands where an index is the row's number.
    pub(super) fn embedding(&mut self, o: &Operator<'a>) -> Result<TensorId> {
        let indices = self.input(o, 0)?;
        let dtype = self.builder.graph().tensor(indices).dtype;
        if dtype != DType::I32 {
            return Err(o.json.error(format!("indices of {}", dtype.name())).expected("i32"));
        }
        let shape = self.weights_shape(o, 1, "", 2)?;
        let (rows, width) = (shape[0], shape[1]);
        if rows > MOST_ROWS {
            return Err(o.json.locate(
                Error::unsupported(format!("a table of {rows} rows")).expected(format!("at most {MOST_ROWS}")),
            ));
        }
        let table = self.weights(
            o,
            1,
            &Weights::Moved {
                shape,
                perm: vec![1, 0],
            },
        )?;
        let numbers: Vec<f32> = (0..rows).map(|row| row as f32).collect();
        let name = format!("{}.rows", o.name);
        let numbers = self
            .builder
            .constant(&name, &[1, rows], DType::F32, Data::from_f32(&numbers));
        let mut result = self.builder.shape(indices).to_vec();
        let count = result.iter().product();
        result.push(width);
        self.composed(o, |parts| {
            let column = parts.reshape(&indices, &[count, 1])?;
            let column = parts.emit_shape(Op::Cast, column, &[count, 1])?;
            let kind = SpecialBinaryOp::Equal;
            let hot = parts.emit(Op::SpecialBinary { kind }, &[column, numbers])?;
            let rows = parts.linear(&hot, &table)?;
            parts.reshape(&rows, &result)
        })
    }

    pub(super) fn arg_max(&mut self, o: &Operator<'a>) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        let mut shape = self.builder.shape(x).to_vec();
        let axis = o.axis("axis", shape.len())?;
        if !o.flag("keepdims")? {
            return self.node(o, Op::ArgMax { axis }, &[x]);
        }
        shape[axis] = 1;
        let index = self.part(o, "index", Op::ArgMax { axis }, &[x])?;
        self.node_of_shape(o, Op::Reshape, &[index], &shape)
    }

    /// The bins of real samples along the last axis, pairs of real and imaginary part.
    pub(super) fn rfft(&mut self, o: &Operator<'a>) -> Result<TensorId> {
        let x = self.f32_input(o, 0)?;
        let mut shape = self.builder.shape(x).to_vec();
        let json = o.attr("length")?;
        let length = json.size(0..=MAX_FFT as usize)?;
        if FftPlan::new(length as u32).is_none() {
            return Err(json
                .error(format!("a Fourier transform of length {length}"))
                .expected("an even length, half of it a product of 2, 3 and 5"));
        }
        match shape.last_mut() {
            Some(samples) if *samples <= length => *samples = length + 2,
            _ => {
                return Err(o
                    .json
                    .error(format!("samples of shape {shape:?}"))
                    .expected(format!("at most {length} along the last axis")));
            }
        }
        let op = Op::Signal(Signal::Fft { length, inverse: false });
        self.node_of_shape(o, op, &[x], &shape)
    }

    pub(super) fn resize(&mut self, o: &Operator<'a>) -> Result<TensorId> {
        let nearest = o.kind == "resize_nearest";
        let own = if nearest { "half_pixel_centers" } else { "align_corners" };
        let layout = o.layout()?;
        let x = self.f32_input(o, 0)?;
        self.check_layout(o, 0, layout_name(layout))?;
        let [rows, columns] = o.pair("size")?;
        let flag = o.flag(own)?;
        let op = if nearest {
            Op::ResizeNearest {
                align_corners: false,
                half_pixel_centers: flag,
            }
        } else {
            Op::ResizeBilinear {
                align_corners: flag,
                half_pixel_centers: !flag,
            }
        };
        let [batch, _, _, channels] = nhwc(layout, self.builder.shape(x)).map_err(|e| o.json.locate(e))?;
        let shape = [batch, rows, columns, channels];
        if layout == Layout::Nhwc {
            return self.node_of_shape(o, op, &[x], &shape);
        }
        let mut parts = Parts {
            work: self,
            operator: o,
            count: 0,
        };
        let moved = parts.transpose(&x, &[0, 2, 3, 1])?;
        let resized = parts.emit_shape(op, moved, &shape)?;
        let perm = vec![0, 3, 1, 2];
        self.node(o, Op::Transpose { perm }, &[resized])
    }

    /// A convolution of the spread operand by the turned kernel.
    pub(super) fn conv_transpose2d(&mut self, o: &Operator<'a>) -> Result<TensorId> {
        let layout = o.layout()?;
        let x = self.f32_input(o, 0)?;
        self.check_layout(o, 0, "NCHW")?;
        let weights = self.weights_shape(o, 1, "IOHW", 4)?;
        let (stride, dilation) = (o.pair("strides")?, o.pair("dilation")?);
        let groups = o.size("groups")?;
        let stated = o.padding()?;
        let more = o.pair("output_padding")?;
        let shape = self.builder.shape(x).to_vec();
        let [_, h, w, channels] = nhwc(layout, &shape).map_err(|e| o.json.locate(e))?;
        if channels != weights[0] || !channels.is_multiple_of(groups) {
            return Err(o.json.error(format!(
                "{channels} channels in {groups} groups and weights {weights:?}"
            )));
        }
        // The kernel's reach, less the part that the trace cuts off, is the padding of the convolution.
        let margin = |axis: usize, cut: usize, more: usize| {
            let reach = dilation[axis].saturating_mul(weights[axis + 2] - 1);
            reach.saturating_add(more).checked_sub(cut).ok_or_else(|| {
                o.json
                    .locate(Error::unsupported(format!(
                        "padding {cut} of a kernel that reaches {reach}"
                    )))
                    .expected("at most dilation * (kernel - 1)")
            })
        };
        let padding = Padding2d {
            top: margin(0, stated.top, 0)?,
            bottom: margin(0, stated.bottom, more[0])?,
            left: margin(1, stated.left, 0)?,
            right: margin(1, stated.right, more[1])?,
        };
        let mut inputs = vec![self.weights(o, 1, &Weights::Turned { groups })?];
        if o.has(2) {
            inputs.push(self.weights(o, 2, &Weights::Same)?);
        }
        let mut parts = Parts {
            work: self,
            operator: o,
            count: 0,
        };
        let x = compose::spread(&mut parts, x, &stride)?;
        let attrs = Conv2dAttrs {
            layout,
            stride: [1, 1],
            dilation,
            padding,
            groups,
            activation: Activation::None,
        };
        let extents = [shape[0], channels, h, w];
        let macs = extents.iter().chain(&weights[1..]);
        let macs = macs.fold(1u64, |product, &n| product.saturating_mul(n as u64));
        inputs.insert(0, x);
        let y = self.node(o, Op::Conv2d(attrs), &inputs)?;
        self.builder.state_macs(&o.name, macs);
        Ok(y)
    }
}
