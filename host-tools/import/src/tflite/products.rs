//! Convolutions, fully connected layers and pooling.

use super::importer::{Importer, View};
use super::ops::{activation, by_output, padding, positive};
use crate::error::{Error, Result};
use crate::graph::{
    Activation, BinaryOp, Conv2dAttrs, Data, Layout, Op, Padding2d, PoolAttrs, Tensor, TensorId, TensorKind,
};

impl Importer<'_, '_> {
    pub(super) fn conv2d(&mut self, view: View<'_, '_>, depthwise: bool) -> Result<()> {
        let (x, w, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        self.widen_hybrid(x, &[w])?;
        self.refuse_hybrid(view, x, w)?;
        self.need_quant(view, 2)?;
        let (x_shape, w_shape) = (self.shape(x)?, self.shape(w)?);
        let (&[_, h, width, channels], &[w0, kh, kw, w3]) = (x_shape.as_slice(), w_shape.as_slice()) else {
            return Err(Error::input(format!("operand shapes {x_shape:?} and {w_shape:?}")).expected("four axes each"));
        };
        let groups = if depthwise {
            if w0 != 1 || w3 % channels != 0 {
                return Err(
                    Error::input(format!("depthwise weights {w_shape:?} for {channels} channels"))
                        .expected("[1, rows, columns, a multiple of the channels]"),
                );
            }
            // Some converters leave it out.
            let multiplier = view.option::<i32>(3, 0)?;
            if multiplier != 0 && multiplier as usize != w3 / channels {
                let text = format!("depth multiplier {multiplier}, {channels} channels and weights {w_shape:?}");
                return Err(Error::input(text).expected(format!("depth multiplier {}", w3 / channels)));
            }
            channels
        } else {
            if channels % w3 != 0 {
                return Err(Error::input(format!("weights {w_shape:?} for {channels} channels"))
                    .expected("channels that are a multiple of the weights' last axis"));
            }
            channels / w3
        };
        let first = if depthwise { 5 } else { 4 };
        let (strides, dilations) = (
            [view.option(2, 0)?, view.option(1, 0)?],
            [view.option(first + 1, 1)?, view.option(first, 1)?],
        );
        let (stride, dilation) = (positive(strides, "stride")?, positive(dilations, "dilation")?);
        let padding = padding(view.option(0, 0)?, [h, width], [kh, kw], stride, dilation)?;
        let activation = activation(view.option(if depthwise { 4 } else { 3 }, 0)?)?;
        let mut attrs = Conv2dAttrs {
            layout: Layout::Nhwc,
            stride,
            dilation,
            padding,
            groups,
            activation,
        };
        if !depthwise
            && groups == 1
            && let Some(apart) = self.apart_from_offsets(w)?
        {
            let window = (Op::Conv2d(attrs), [kh, kw, channels]);
            return self.convolved_apart(view, window, activation, apart);
        }
        let legacy = self.info(x).legacy;
        let (from, weights) = if legacy {
            let (from, weights) = self.legacy_conv(view, &mut attrs, depthwise)?;
            (Some(from), weights)
        } else if depthwise {
            (None, self.depthwise_weights(w)?)
        } else {
            (None, self.channel_weights(w)?)
        };
        let out = if depthwise { w3 } else { w0 };
        let bias = self.bias(view.optional(2), [x, w], out)?;
        let from = match from {
            Some(from) => from,
            None => self.operand(x)?,
        };
        let result = self.output(y)?;
        self.node(
            view,
            "",
            Op::Conv2d(attrs),
            vec![Some(from), Some(weights), bias],
            vec![result],
        );
        if legacy {
            let results = self.shape(y)?.iter().product::<usize>();
            self.macs(results * kh * kw * (channels / groups));
        }
        Ok(())
    }

    /// Weights `[out, …]`, quantised by output channel if by any: of another axis as long as that one TensorFlow Lite Micro reads the scales
    /// as those of the outputs.
    pub(super) fn channel_weights(&mut self, w: usize) -> Result<TensorId> {
        let id = self.operand(w)?;
        let tensor = self.out.tensor_mut(id);
        let out = tensor.shape[0];
        if let Some(quant) = tensor.quant.as_mut().filter(|quant| quant.axis.is_some()) {
            by_output(quant, out).map_err(|e| e.at(format_args!("tensor {w} `{}`", tensor.name)))?;
        }
        Ok(id)
    }

    /// Depthwise weights `[1, kh, kw, out]` as OHWI `[out, kh, kw, 1]`.
    fn depthwise_weights(&mut self, w: usize) -> Result<TensorId> {
        let (bytes, shape) = self.filters(w, true)?;
        let name = self.info(w).name.clone();
        let mut quant = self.quant(w)?;
        if let Some(quant) = quant.as_mut().filter(|quant| quant.axis.is_some()) {
            by_output(quant, shape[0]).map_err(|e| e.at(format_args!("tensor {w} `{name}`")))?;
        }
        let id = self.add_const(Tensor {
            quant,
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            traced_perm: Some(vec![3, 1, 2, 0]),
            ..Tensor::activation(name, &shape, self.dtype(w)?)
        });
        self.parameter(w, id);
        Ok(id)
    }

    /// Constant weights by output channel, rows, columns: bytes and shape. Depthwise ones are `[1, kh, kw, out]` in the file.
    pub(super) fn filters(&self, w: usize, depthwise: bool) -> Result<(Vec<u8>, [usize; 4])> {
        let Some(constant) = self.constant(w)? else {
            let kind = if depthwise { "depthwise weights" } else { "weights" };
            return Err(Error::unsupported(format!("{kind} that are computed at run time")).help("make them constants"));
        };
        let [first, kh, kw, last] = <[usize; 4]>::try_from(constant.shape.as_slice()).unwrap_or_default();
        if !depthwise {
            return Ok((constant.bytes.into_owned(), [first, kh, kw, last]));
        }
        let size = constant.dtype.bytes();
        let taps = kh * kw;
        let mut bytes = Vec::with_capacity(constant.bytes.len());
        for channel in 0..last {
            for tap in 0..taps {
                let at = (tap * last + channel) * size;
                bytes.extend_from_slice(&constant.bytes[at..at + size]);
            }
        }
        Ok((bytes, [last, kh, kw, 1]))
    }

    pub(super) fn fully_connected(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, w, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        self.widen_hybrid(x, &[w])?;
        self.refuse_hybrid(view, x, w)?;
        self.need_quant(view, 2)?;
        if view.option::<i8>(1, 0)? != 0 {
            return Err(Error::unsupported("a shuffled weights format").help("convert the model without it"));
        }
        let activation = activation(view.option(0, 0)?)?;
        let &[out, k] = self.shape(w)?.as_slice() else {
            return Err(Error::input(format!("weights of shape {:?}", self.shape(w)?)).expected("[out, in]"));
        };
        let (x_shape, y_shape) = (self.shape(x)?, self.shape(y)?);
        let elements: usize = x_shape.iter().product();
        if !elements.is_multiple_of(k) || y_shape.iter().product::<usize>() != elements / k * out {
            return Err(
                Error::input(format!("{x_shape:?} times weights [{out}, {k}] into {y_shape:?}"))
                    .expected("rows of the weights' second extent"),
            );
        }
        // Leading axes are rows; whatever the shapes, the operator sees a matrix.
        let rows = elements / k;
        let keeps =
            |shape: &[usize]| matches!(shape.split_last(), Some((_, rest)) if rest.iter().product::<usize>() == rows);
        let same = x_shape.last() == Some(&k) && keeps(&y_shape) && x_shape.len() == y_shape.len();
        let from = if same && x_shape[..x_shape.len() - 1] == y_shape[..y_shape.len() - 1] {
            self.operand(x)?
        } else {
            self.reshaped(view, x, &[rows, k])?
        };
        let mut natural = self.out.tensor(from).shape.clone();
        if let Some(last) = natural.last_mut() {
            *last = out;
        }
        let (inputs, op) = if let Some(apart) = self.apart_from_offsets(w)? {
            let bias = self.bias(view.optional(2), [x, w], out)?;
            let none = Activation::None;
            let op = Op::Linear { activation: none };
            let terms = self.terms_apart(view, from, (op, vec![1, k], natural.clone()), apart, bias)?;
            let kind = BinaryOp::Add;
            (terms.map(Some).to_vec(), Op::Binary { kind, activation })
        } else {
            let (from, weights) = self.centred(view, x, w, from)?;
            let inputs = vec![Some(from), Some(weights), self.bias(view.optional(2), [x, w], out)?];
            (inputs, Op::Linear { activation })
        };
        let macs = if matches!(op, Op::Linear { .. }) {
            elements * out
        } else {
            0
        };
        if natural == y_shape {
            let y = self.output(y)?;
            self.node(view, "", op, inputs, vec![y]);
            self.macs(macs);
            return Ok(());
        }
        let flat = self.temporary(&format!("FULLY_CONNECTED#{}/rows", view.index), y, &natural)?;
        self.node(view, "/rows", op, inputs, vec![flat]);
        self.macs(macs);
        let y = self.output(y)?;
        self.node(view, "", Op::Reshape, vec![Some(flat)], vec![y]);
        Ok(())
    }

    /// A convolution of weights that are apart from their offsets.
    fn convolved_apart(
        &mut self,
        view: View<'_, '_>,
        (op, [rows, columns, channels]): (Op, [usize; 3]),
        activation: Activation,
        apart: (TensorId, Vec<f32>),
    ) -> Result<()> {
        let Op::Conv2d(attrs) = op else {
            return Err(Error::internal("no convolution"));
        };
        let none = Activation::None;
        let op = Op::Conv2d(Conv2dAttrs {
            activation: none,
            ..attrs
        });
        let (x, w, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        let bias = self.bias(view.optional(2), [x, w], apart.1.len())?;
        let (from, shape) = (self.operand(x)?, self.shape(y)?);
        let terms = self.terms_apart(view, from, (op, vec![1, rows, columns, channels], shape), apart, bias)?;
        let y = self.output(y)?;
        let kind = BinaryOp::Add;
        self.node(
            view,
            "",
            Op::Binary { kind, activation },
            terms.map(Some).to_vec(),
            vec![y],
        );
        Ok(())
    }

    /// The two terms of a layer: its activations times the numbers of its weights, and their sums times the offsets, with the bias. Given are the layer, the
    /// shape of one output's weights, and that of the result.
    fn terms_apart(
        &mut self,
        view: View<'_, '_>,
        from: TensorId,
        (op, filter, shape): (Op, Vec<usize>, Vec<usize>),
        (numbers, offsets): (TensorId, Vec<f32>),
        bias: Option<TensorId>,
    ) -> Result<[TensorId; 2]> {
        let y = view.output(0)?;
        let ones = vec![1.0; filter.iter().product()];
        let ones = self.add_f32(&format!("{}#{}/ones", view.kind, view.index), &filter, &ones);
        let mut of_sums = shape.clone();
        if let Some(last) = of_sums.last_mut() {
            *last = 1;
        }
        let sums = self.then(
            view,
            "/sums",
            y,
            (op.clone(), of_sums),
            vec![Some(from), Some(ones), None],
        )?;
        self.macs(0);
        let times = match &op {
            Op::Conv2d(attrs) => Op::Conv2d(Conv2dAttrs {
                stride: [1, 1],
                dilation: [1, 1],
                padding: Padding2d::default(),
                ..*attrs
            }),
            op => op.clone(),
        };
        let mut of_offsets = vec![1; filter.len()];
        of_offsets[0] = offsets.len();
        let offsets = self.add_f32(&format!("{}#{}/offsets", view.kind, view.index), &of_offsets, &offsets);
        let inputs = vec![Some(sums), Some(offsets), bias];
        let offset = self.then(view, "/offset", y, (times, shape.clone()), inputs)?;
        self.macs(0);
        let product = self.then(view, "/product", y, (op, shape), vec![Some(from), Some(numbers), None])?;
        Ok([product, offset])
    }

    pub(super) fn pool(&mut self, view: View<'_, '_>, max: bool) -> Result<()> {
        let attrs = self.window(view)?;
        self.same_scales(view)?;
        if !max && self.is_legacy(view) {
            return self.legacy_average(view, attrs);
        }
        self.elementwise(
            view,
            if max {
                Op::MaxPool2d(attrs)
            } else {
                Op::AvgPool2d(attrs)
            },
            1,
        )
    }

    /// The window of a pooling.
    pub(super) fn window(&mut self, view: View<'_, '_>) -> Result<PoolAttrs> {
        let shape = self.shape(view.input(0)?)?;
        let &[_, h, w, _] = shape.as_slice() else {
            return Err(Error::input(format!("an operand of shape {shape:?}")).expected("four axes"));
        };
        let kernel = positive([view.option(4, 0)?, view.option(3, 0)?], "filter extent")?;
        let stride = positive([view.option(2, 0)?, view.option(1, 0)?], "stride")?;
        Ok(PoolAttrs {
            layout: Layout::Nhwc,
            kernel,
            stride,
            padding: padding(view.option(0, 0)?, [h, w], kernel, stride, [1, 1])?,
            count_include_pad: false,
            activation: activation(view.option(5, 0)?)?,
        })
    }
}
