//! Legacy quantisation: uint8 activations and weights with one scale each. At import they become int8 with another zero point, of the same real values,
//! and operators whose uint8 arithmetic is not that of int8 become others in a row, or are refused by name.
//!
//! The truth is LiteRT's reference kernels for uint8, less 128.

use super::importer::{Importer, View};
use super::rows::rows;
use super::schema::{FLOAT32, INT8, INT16, Model, TensorInfo, UINT8};
use crate::error::{Error, Result};
use crate::graph::{
    Activation, Conv2dAttrs, DType, Data, Op, PoolAttrs, Quant, Tensor, TensorId, TensorKind, UnaryKind,
};

/// Operators whose uint8 results are known as int8 ones.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "ADD", "ARG_MAX", "ARG_MIN", "AVERAGE_POOL_2D", "BATCH_TO_SPACE_ND", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE",
    "DEQUANTIZE", "EQUAL", "EXPAND_DIMS", "FULLY_CONNECTED", "GATHER", "GREATER", "GREATER_EQUAL", "HARD_SWISH", "LEAKY_RELU", "LESS", "LESS_EQUAL",
    "LOG_SOFTMAX", "LOGISTIC", "MAXIMUM", "MAX_POOL_2D", "MEAN", "MINIMUM", "MIRROR_PAD", "MUL", "NOT_EQUAL", "PACK", "PAD", "PADV2", "PRELU",
    "QUANTIZE", "REDUCE_MAX", "REDUCE_MIN", "RELU", "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SLICE",
    "SOFTMAX", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE", "SUB", "SUM", "TANH", "TILE", "TRANSPOSE",
    "TRANSPOSE_CONV", "UNPACK", "CUSTOM `TFLite_Detection_PostProcess`",
];

/// Those that have real numbers beside them.
const REAL_TOO: &[&str] = &["QUANTIZE", "DEQUANTIZE", "CUSTOM `TFLite_Detection_PostProcess`"];

fn is_quantised_byte(info: &TensorInfo<'_>) -> bool {
    info.kind == UINT8 && !info.scale.is_empty() && !info.zero_point.is_empty()
}

/// Reads the quantised uint8 tensors as int8 where an operator computes with one: how many. Where they are only converted and moved, they stay.
pub(super) fn convert(model: &mut Model<'_>) -> Result<usize> {
    let names: Vec<String> = model.codes.iter().map(super::schema::OperatorCode::name).collect();
    let Some(graph) = model.subgraphs.first_mut() else {
        return Ok(0);
    };
    let computes =
        |name: &str| KNOWN.contains(&name) && rows().any(|row| row.kind == name && !row.types.contains(&DType::U8));
    let mut operators = graph.operators.iter();
    let found = operators.any(|operator| {
        // The first operand of a transposed convolution is its result's shape.
        let mut operands = operator.inputs.iter().flatten().map(|&x| &graph.tensors[x]);
        let result = operator.outputs.first().map(|&y| &graph.tensors[y]);
        let rescaled =
            |x: &TensorInfo<'_>| result.is_some_and(|y| (&y.scale, &y.zero_point) != (&x.scale, &x.zero_point));
        let name = &names[operator.code];
        let (computes, joins) = (computes(name), name == "CONCATENATION");
        operands.any(|x| is_quantised_byte(x) && (computes || joins && rescaled(x)))
    });
    if !found {
        return Ok(0);
    }
    let mut count = 0;
    for (index, info) in graph
        .tensors
        .iter_mut()
        .enumerate()
        .filter(|(_, info)| is_quantised_byte(info))
    {
        if let Some(zero) = info.zero_point.iter().find(|zero| !(0..=255).contains(*zero)) {
            return Err(Error::input(format!("zero point {zero}"))
                .expected("0 to 255")
                .at(format_args!("tensor {index} `{}`", info.name)));
        }
        info.zero_point.iter_mut().for_each(|zero| *zero -= 128);
        (info.kind, info.legacy) = (INT8, true);
        count += 1;
    }
    Ok(count)
}

impl Importer<'_, '_> {
    /// Whether operand 0 was uint8.
    pub(super) fn is_legacy(&self, view: View<'_, '_>) -> bool {
        view.optional(0).is_some_and(|x| self.info(x).legacy)
    }

    /// Refuses operators that have another meaning on what was uint8, and other numbers beside it.
    pub(super) fn check_legacy(&self, view: View<'_, '_>) -> Result<()> {
        let mut tensors = view.inputs.iter().flatten().chain(view.outputs).copied();
        let Some(legacy) = tensors.clone().find(|&t| self.info(t).legacy) else {
            return Ok(());
        };
        let name = &self.info(legacy).name;
        if !KNOWN.contains(&view.kind) {
            return Err(Error::unsupported(format!("uint8 numbers, such as `{name}`"))
                .expected("an operator whose uint8 arithmetic is that of int8 (docs/operators.md)")
                .help("convert the model again with int8 activations, or insert DEQUANTIZE and QUANTIZE"));
        }
        let other = |&t: &usize| {
            let info = self.info(t);
            !info.legacy && matches!(info.kind, FLOAT32 | UINT8 | INT16 | INT8)
        };
        match tensors.find(other) {
            Some(other) if !REAL_TOO.contains(&view.kind) => {
                let info = self.info(other);
                Err(Error::unsupported(format!(
                    "`{}` is {} beside the uint8 `{name}`",
                    info.name,
                    info.type_name()
                ))
                .expected("quantised uint8 operands and results alone")
                .help("convert the model again with one type of activations and weights"))
            }
            _ => Ok(()),
        }
    }

    /// Says once what became of uint8.
    pub(super) fn report_legacy(&mut self) {
        if self.legacy.tensors > 0 {
            let ports =
                "so are the network's inputs and outputs, unless --input-dtype u8 and --output-dtype u8 are given";
            self.warn(format!(
                "{} uint8 tensors are int8, their numbers less 128, of the same real values; {ports}",
                self.legacy.tensors
            ));
        }
        if self.legacy.layers > 0 {
            self.warn(format!(
                "{} layers have weights that lie further from their zero point than int8 reaches: they are stored in two or three parts that add up, with as \
                 many times the multiply-accumulates",
                self.legacy.layers
            ));
        }
    }

    /// The scale of the products of activations and weights that were uint8, multiplied in f32 as in the reference, and the weights' zero point.
    fn legacy_products(&mut self, x: usize, w: usize) -> Result<(f32, i32)> {
        let (qx, qw) = (self.scale_of(x)?, self.scale_of(w)?);
        let (name, weights_name) = (&self.info(x).name, &self.info(w).name);
        if qw.axis.is_some() {
            return Err(Error::unsupported(format!(
                "{} scales of the uint8 weights `{weights_name}`",
                qw.scale.len()
            ))
            .expected("one")
            .help("TensorFlow Lite reads one as well; convert the model again with int8 weights"));
        }
        let product = qx.scale[0] * qw.scale[0];
        if !product.is_normal() {
            return Err(Error::input(format!(
                "the scales {} of `{name}` and {} of `{weights_name}`",
                qx.scale[0], qw.scale[0]
            ))
            .expected("scales whose product is a normal float32 number"));
        }
        Ok((product, qw.zero_point[0]))
    }

    /// Activations `from`, of the operand `x`, and the weights `w` of a legacy transposed convolution, which are `bytes` turned by half a turn: both as often
    /// as the weights have parts, side by side as channels.
    pub(super) fn legacy_turned(
        &mut self,
        view: View<'_, '_>,
        [x, w]: [usize; 2],
        from: TensorId,
        bytes: &[u8],
    ) -> Result<(TensorId, TensorId)> {
        let (product, zero) = self.legacy_products(x, w)?;
        let mut shape = self.nhwc(w)?;
        let zero_x = self.scale_of(x)?.zero_point[0];
        let mut from = self.read_as(view, "/products", from, Quant::per_tensor(product, zero_x));
        let (terms, run) = (terms(bytes, zero), shape[3]);
        if terms.len() > 1 {
            self.legacy.layers += 1;
            shape[3] *= terms.len();
            from = self.repeated(view, from, 3, terms.len());
        }
        let name = self.info(w).name.clone();
        let weights = self.add_const(Tensor {
            quant: Some(Quant::per_tensor(1.0, 0)),
            kind: TensorKind::Const(Data::Bytes(in_turn(&terms, run).into())),
            ..Tensor::activation(name, &shape, DType::I8)
        });
        self.parameter(w, weights);
        Ok((from, weights))
    }

    /// Activations and weights of a legacy convolution: the input is read in steps of the products. Weights of more than eight bits around their zero point are
    /// several, over the input as often: side by side as channels, or as rows or columns in turn.
    pub(super) fn legacy_conv(
        &mut self,
        view: View<'_, '_>,
        attrs: &mut Conv2dAttrs,
        depthwise: bool,
    ) -> Result<(TensorId, TensorId)> {
        let (x, w) = (view.input(0)?, view.input(1)?);
        let (product, zero) = self.legacy_products(x, w)?;
        let zero_x = self.scale_of(x)?.zero_point[0];
        let weights_name = self.info(w).name.clone();
        let (bytes, mut shape) = self.filters(w, depthwise)?;
        let terms = terms(&bytes, zero);
        let mut from = self.operand(x)?;
        from = self.read_as(view, "/products", from, Quant::per_tensor(product, zero_x));
        let (count, mut run) = (terms.len(), shape[3]);
        if count > 1 {
            self.legacy.layers += 1;
            let axis = repeated_axis(attrs, shape)?;
            if axis == 1 {
                run *= shape[2];
            }
            shape[axis] *= count;
            from = self.repeated(view, from, axis, count);
            if axis < 3 {
                // As often as many rows or columns, and every window starts at the first of its own.
                let at = axis - 1;
                attrs.stride[at] *= count;
                attrs.dilation[at] = 1;
                let padding = &mut attrs.padding;
                let both = match axis {
                    1 => [&mut padding.top, &mut padding.bottom],
                    _ => [&mut padding.left, &mut padding.right],
                };
                both.into_iter().for_each(|side| *side *= count);
            }
        }
        let bytes = in_turn(&terms, run);
        let weights = self.add_const(Tensor {
            quant: Some(Quant::per_tensor(1.0, 0)),
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            traced_perm: (depthwise && count == 1).then(|| vec![3, 1, 2, 0]),
            ..Tensor::activation(weights_name, &shape, DType::I8)
        });
        self.parameter(w, weights);
        Ok((from, weights))
    }

    /// `from` `count` times: along the channels one behind the other, along rows and columns each as often before the next.
    fn repeated(&mut self, view: View<'_, '_>, from: TensorId, axis: usize, count: usize) -> TensorId {
        let tensor = self.out.tensor(from).clone();
        let mut shape = tensor.shape.clone();
        let activation = Activation::None;
        let mut part = from;
        let at = if axis == 3 { 3 } else { axis + 1 };
        if axis < 3 {
            shape.insert(at, 1);
            part = self.made(view, "/apart", Op::Reshape, part, 1, (&tensor, &shape));
        }
        shape[at] *= count;
        let concat = Op::Concat { axis: at, activation };
        part = self.made(view, "/repeated", concat, part, count, (&tensor, &shape));
        if axis < 3 {
            shape.remove(at);
            shape[axis] *= count;
            part = self.made(view, "/in turn", Op::Reshape, part, 1, (&tensor, &shape));
        }
        part
    }

    /// The result of `op` on `count` times `from`: a tensor like another, of this shape.
    pub(super) fn made(
        &mut self,
        view: View<'_, '_>,
        suffix: &str,
        op: Op,
        from: TensorId,
        count: usize,
        (like, shape): (&Tensor, &[usize]),
    ) -> TensorId {
        let to = self.add_const(Tensor {
            quant: like.quant.clone(),
            ..Tensor::activation(format!("{}#{}{suffix}", view.kind, view.index), shape, like.dtype)
        });
        self.node(view, suffix, op, vec![Some(from); count], vec![to]);
        to
    }

    /// The stored numbers of `from`, read with another quantisation.
    pub(super) fn read_as(&mut self, view: View<'_, '_>, suffix: &str, from: TensorId, quant: Quant) -> TensorId {
        let like = Tensor {
            quant: Some(quant),
            ..self.out.tensor(from).clone()
        };
        let shape = like.shape.clone();
        self.made(view, suffix, Op::Reshape, from, 1, (&like, &shape))
    }

    /// Means of uint8 numbers are rounded half up, those of int8 numbers half away from zero: where a window has a half, int16 numbers of 0 to 255 are
    /// averaged.
    pub(super) fn legacy_average(&mut self, view: View<'_, '_>, attrs: PoolAttrs) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let ([_, h, w, _], [_, oh, ow, _]) = (self.nhwc(x)?, self.nhwc(y)?);
        let even = |extent: usize, kernel: usize, stride: usize, before: usize, outputs: usize| {
            (0..outputs).any(|o| {
                let first = o * stride;
                let end = (first + kernel).min(before + extent);
                end.saturating_sub(first.max(before)).is_multiple_of(2)
            })
        };
        let PoolAttrs {
            kernel,
            stride,
            padding,
            activation,
            ..
        } = attrs;
        let halves = even(h, kernel[0], stride[0], padding.top, oh) || even(w, kernel[1], stride[1], padding.left, ow);
        if !halves {
            return self.elementwise(view, Op::AvgPool2d(attrs), 1);
        }
        let scale = self.scale_of(x)?.scale[0];
        let own = self.scale_of(y)?;
        let bytes = Quant::per_tensor(scale, -128);
        let wide = |shape: &[usize]| Tensor {
            quant: Some(Quant::per_tensor(scale, 0)),
            ..Tensor::activation("", shape, DType::I16)
        };
        let (before, after) = (self.shape(x)?, self.shape(y)?);
        let mut from = self.operand(x)?;
        from = self.read_as(view, "/bytes", from, bytes.clone());
        from = self.made(view, "/wide", Op::Quantize, from, 1, (&wide(&before), &before));
        let average = Op::AvgPool2d(PoolAttrs {
            activation: Activation::None,
            ..attrs
        });
        from = self.made(view, "/average", average, from, 1, (&wide(&after), &after));
        let narrow = Tensor {
            quant: Some(bytes),
            ..Tensor::activation("", &after, DType::I8)
        };
        from = self.made(view, "/narrow", Op::Quantize, from, 1, (&narrow, &after));
        let clamp = match activation {
            Activation::None => Op::Reshape,
            Activation::Relu => Op::Unary(UnaryKind::Relu),
            Activation::Relu6 => Op::Unary(UnaryKind::Relu6),
            Activation::ReluN1To1 => Op::Unary(UnaryKind::ReluN1To1),
        };
        if clamp != Op::Reshape {
            from = self.read_as(view, "/unclamped", from, own);
        }
        let y = self.output(y)?;
        self.node(view, "", clamp, vec![Some(from)], vec![y]);
        Ok(())
    }

    /// A RELU6 of uint8 rescales, where one of int8 only clamps.
    pub(super) fn legacy_relu6(&mut self, view: View<'_, '_>) -> Result<()> {
        self.need_quant(view, 1)?;
        let (x, y) = (view.input(0)?, view.output(0)?);
        let mut from = self.operand(x)?;
        let own = self.scale_of(y)?;
        if self.scale_of(x)? != own {
            let (shape, quant) = (self.shape(x)?, Some(own));
            let like = Tensor {
                quant,
                ..Tensor::activation("", &shape, DType::I8)
            };
            from = self.made(view, "/rescaled", Op::Quantize, from, 1, (&like, &shape));
        }
        let y = self.output(y)?;
        self.node(view, "", Op::Unary(UnaryKind::Relu6), vec![Some(from)], vec![y]);
        Ok(())
    }
}

/// The axis along which a convolution takes its input several times: the channels; of groups, rows or columns that are next to each other.
fn repeated_axis(attrs: &Conv2dAttrs, [_, kh, kw, _]: [usize; 4]) -> Result<usize> {
    let dense = |axis: usize, extent: usize| extent == 1 || attrs.dilation[axis] == 1;
    match (attrs.groups, dense(0, kh), dense(1, kw)) {
        (1, ..) => Ok(3),
        (_, true, _) => Ok(1),
        (_, _, true) => Ok(2),
        _ => Err(Error::unsupported(format!(
            "uint8 weights that lie further from their zero point than int8 reaches, in {} groups, dilated by {:?}",
            attrs.groups, attrs.dilation
        ))
        .expected("a dilation of rows or of columns alone, or weights within -128 to 127 of their zero point")
        .help("convert the model again with int8 weights")),
    }
}

/// Stored int8 weights around `zero` as terms around 0, which add up to them.
pub(super) fn terms(weights: &[u8], zero: i32) -> Vec<Vec<u8>> {
    let mut rest: Vec<i32> = weights.iter().map(|&byte| i32::from(byte as i8) - zero).collect();
    let mut terms: Vec<Vec<u8>> = Vec::new();
    while terms.is_empty() || rest.iter().any(|&w| w != 0) {
        let term = rest.iter_mut().map(|w| {
            let part = (*w).clamp(-128, 127);
            *w -= part;
            part as u8
        });
        terms.push(term.collect());
    }
    terms
}

/// `run` bytes of each of the terms before the next ones.
fn in_turn(terms: &[Vec<u8>], run: usize) -> Vec<u8> {
    let runs = (0..terms.first().map_or(0, Vec::len)).step_by(run.max(1));
    let bytes = runs.flat_map(|at| terms.iter().flat_map(move |term| &term[at..at + run]));
    bytes.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_add_up_to_the_weights() {
        let weights: Vec<u8> = (0..=255).collect();
        for zero in -128..=127 {
            let terms = terms(&weights, zero);
            for (at, &stored) in weights.iter().enumerate() {
                let sum: i32 = terms.iter().map(|term| i32::from(term[at] as i8)).sum();
                assert_eq!(sum, i32::from(stored as i8) - zero);
            }
            let count = match zero {
                0 => 1,
                -128 => 3,
                _ => 2,
            };
            assert_eq!(terms.len(), count, "{zero}");
        }
    }

    #[test]
    fn every_operator_is_documented() {
        let text = include_str!("../../../../docs/operators.md");
        let (_, text) = text.split_once("## Legacy uint8").unwrap();
        let (text, _) = text.split_once("\n## ").unwrap();
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for known in KNOWN {
            // A custom operator by the name between the quotes.
            let name = known.split('`').nth(1).unwrap_or(known);
            assert!(
                words.contains(&name),
                "docs/operators.md does not name {known} beside uint8"
            );
            assert!(rows().any(|row| row.kind == *known), "{known}");
        }
    }
}
