//! Operators that are others in a row: transposed convolutions, normalisation, ELU, the smallest's index, weights with a zero point.
//!
//! Their results are those of TensorFlow Lite Micro's own kernels: sums of integers do not depend on their order.

use arenite::ops::pointwise::{Function, SpecialOp};

use super::importer::{Importer, View};
use super::legacy::terms;
use super::ops::{activation, by_output, padding, positive};
use super::rearrange::Link;
use crate::error::{Error, Result};
use crate::graph::{
    Activation, BinaryOp, Conv2dAttrs, DType, Data, Layout, Op, Padding2d, ReduceKind, Tensor, TensorId, TensorKind,
    UnaryKind,
};

impl Importer<'_, '_> {
    /// A transposed convolution: zeros between the pixels, then a convolution of stride 1 with the kernel turned by half a turn.
    pub(super) fn transpose_conv(&mut self, view: View<'_, '_>) -> Result<()> {
        // Operands: the result's shape, weights, activations, bias.
        let (w, x, y) = (view.input(1)?, view.input(2)?, view.output(0)?);
        self.widen_hybrid(x, &[w])?;
        self.refuse_hybrid(view, x, w)?;
        if self.dtype(x)? != DType::F32 {
            for tensor in [x, w, y] {
                self.scale_of(tensor)?;
            }
        }
        let ([n, h, width, channels], [batch, oh, ow, out]) = (self.nhwc(x)?, self.nhwc(y)?);
        let [w_out, kh, kw, w_in] = self.nhwc(w)?;
        if (n, channels, out) != (batch, w_in, w_out) {
            return Err(Error::input(format!(
                "weights {:?} between {:?} and {:?}",
                self.shape(w)?,
                self.shape(x)?,
                self.shape(y)?
            ))
            .expected("[out, rows, columns, in]"));
        }
        if self.constant(view.input(0)?)?.is_some() {
            let stated = self.integers(view.input(0)?, "the result's shape")?;
            let stated: Vec<usize> = stated.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
            self.expect_shape(y, &stated)?;
        }
        let stride = positive([view.option(2, 0)?, view.option(1, 0)?], "stride")?;
        let same = padding(view.option(0, 0)?, [oh, ow], [kh, kw], stride, [1, 1])?;
        let activation = activation(view.option(3, 0)?)?;

        let spread = [h * stride[0], width * stride[1]];
        let mut links: Vec<Link> = Vec::new();
        if stride != [1, 1] {
            let mut pads = vec![(0, 0); 6];
            (pads[2], pads[4]) = ((0, stride[0] - 1), (0, stride[1] - 1));
            let value = self.stored_zero(x)?;
            links.push((Op::Reshape, vec![n, h, 1, width, 1, channels]));
            let padded = vec![n, h, stride[0], width, stride[1], channels];
            links.push((Op::Pad { pads, value }, padded));
            links.push((Op::Reshape, vec![n, spread[0], spread[1], channels]));
        }
        let (top, bottom) = edges(spread[0], oh, kh, same.top)?;
        let (left, right) = edges(spread[1], ow, kw, same.left)?;
        // A kernel smaller than the stride does not reach the last zeros.
        let kept = [
            spread[0].saturating_add_signed(bottom.min(0)),
            spread[1].saturating_add_signed(right.min(0)),
        ];
        if kept != spread {
            if kept.contains(&0) {
                return Err(Error::internal(format!("a result of {oh} x {ow} from {h} x {width}")));
            }
            let (begin, stride) = (vec![0; 4], vec![1; 4]);
            links.push((Op::Slice { begin, stride }, vec![n, kept[0], kept[1], channels]));
        }
        let bytes = self.turned(w)?;
        let (from, weights, bias) = if self.info(x).legacy {
            let from = self.links(view, x, x, links)?;
            let (from, weights) = self.legacy_turned(view, [x, w], from, &bytes)?;
            (from, weights, self.bias(view.optional(3), [x, w], out)?)
        } else {
            let weights = self.turned_weights(w, bytes)?;
            let bias = self.bias(view.optional(3), [x, w], out)?;
            (self.links(view, x, x, links)?, weights, bias)
        };
        let op = Op::Conv2d(Conv2dAttrs {
            layout: Layout::Nhwc,
            stride: [1, 1],
            dilation: [1, 1],
            padding: Padding2d {
                top,
                bottom: bottom.max(0).unsigned_abs(),
                left,
                right: right.max(0).unsigned_abs(),
            },
            groups: 1,
            activation,
        });
        let y = self.output(y)?;
        self.node(view, "", op, vec![Some(from), Some(weights), bias], vec![y]);
        self.macs(n * h * width * channels * kh * kw * out);
        Ok(())
    }

    /// The bytes of weights OHWI with rows and columns back to front.
    fn turned(&self, w: usize) -> Result<Vec<u8>> {
        let Some(constant) = self.constant(w)? else {
            return Err(Error::unsupported("weights that are computed at run time").help("make them constants"));
        };
        let [_, kh, kw, channels] = self.nhwc(w)?;
        let row = channels * constant.dtype.bytes();
        let kernels = constant.bytes.chunks_exact(kh * kw * row);
        Ok(kernels
            .flat_map(|kernel| kernel.chunks_exact(row).rev())
            .flatten()
            .copied()
            .collect())
    }

    /// Those weights, quantised as the file says.
    fn turned_weights(&mut self, w: usize, bytes: Vec<u8>) -> Result<TensorId> {
        let (shape, dtype) = (self.shape(w)?, self.dtype(w)?);
        let name = self.info(w).name.clone();
        let mut quant = self.quant(w)?;
        if let Some(quant) = quant.as_mut().filter(|quant| quant.axis.is_some()) {
            by_output(quant, shape[0]).map_err(|e| e.at(format_args!("tensor {w} `{name}`")))?;
        }
        let id = self.add_const(Tensor {
            quant,
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            ..Tensor::activation(name, &shape, dtype)
        });
        self.parameter(w, id);
        Ok(id)
    }

    /// `x / max(sqrt(sum of x^2 along the last axis), 1e-6)`
    pub(super) fn l2_normalization(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        if self.dtype(x)? == DType::I8 {
            return self.elementwise(view, Op::L2Norm, 1);
        }
        let shape = self.shape(x)?;
        let axis = super::movement::axis_of(-1, shape.len())?;
        let mut one = shape.clone();
        one[axis] = 1;
        let sum = Op::Reduce {
            kind: ReduceKind::Sum,
            axes: vec![axis],
            keep_dims: true,
        };
        let clamp = UnaryKind::Clamp {
            min: 1e-12,
            max: f32::INFINITY,
        };
        let links = vec![
            (Op::Unary(UnaryKind::SQUARE), shape),
            (sum, one.clone()),
            (Op::Unary(clamp), one.clone()),
            (Op::Unary(UnaryKind::RSQRT), one),
        ];
        let factor = self.links(view, x, y, links)?;
        let (x, y) = (self.operand(x)?, self.output(y)?);
        self.node(view, "", binary(BinaryOp::Mul), vec![Some(x), Some(factor)], vec![y]);
        Ok(())
    }

    pub(super) fn gelu(&mut self, view: View<'_, '_>) -> Result<()> {
        let function = if view.flag(0)? {
            SpecialOp::GeluTanh
        } else {
            SpecialOp::Gelu
        };
        self.elementwise(view, Op::Unary(UnaryKind::Function(Function::Special(function))), 1)
    }

    /// `exp(x) - 1` below zero, `x` above. An int8 one is a table; an f32 one is `max(x, 0) + (exp(min(x, 0)) - 1)`.
    pub(super) fn elu(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        if self.dtype(x)? != DType::F32 {
            return self.elementwise(view, Op::Unary(UnaryKind::Elu), 1);
        }
        let shape = self.shape(x)?;
        let negative = UnaryKind::Clamp {
            min: f32::NEG_INFINITY,
            max: 0.0,
        };
        let links = vec![
            (Op::Unary(negative), shape.clone()),
            (Op::Unary(UnaryKind::EXP), shape.clone()),
        ];
        let power = self.links(view, x, y, links)?;
        let one = self.add_const(Tensor {
            kind: TensorKind::Const(Data::Bytes(1_f32.to_le_bytes().to_vec().into())),
            ..Tensor::activation(format!("ELU#{}/one", view.index), &[1], DType::F32)
        });
        let low = (binary(BinaryOp::Sub), shape.clone());
        let low = self.then(view, "/low", y, low, vec![Some(power), Some(one)])?;
        let from = self.operand(x)?;
        let high = (Op::Unary(UnaryKind::Relu), shape);
        let high = self.then(view, "/high", y, high, vec![Some(from)])?;
        let y = self.output(y)?;
        self.node(view, "", binary(BinaryOp::Add), vec![Some(high), Some(low)], vec![y]);
        Ok(())
    }

    /// An int8 matrix `[out, in]` whose zero point is not zero, as one whose is: `w - zero point` in as many int8 terms as that takes, side by
    /// side, and the operand `from` as often. Other weights, and what is no constant, stay as they are.
    pub(super) fn centred(
        &mut self,
        view: View<'_, '_>,
        x: usize,
        w: usize,
        from: TensorId,
    ) -> Result<(TensorId, TensorId)> {
        let (constant, quant) = (self.constant(w)?, self.quant(w)?);
        let (Some(constant), Some(mut quant)) = (constant, quant) else {
            return Ok((from, self.channel_weights(w)?));
        };
        let zero = quant.zero_point[0];
        if constant.dtype != DType::I8 || quant.axis.is_some() || zero == 0 {
            return Ok((from, self.channel_weights(w)?));
        }
        let terms = terms(&constant.bytes, zero);
        let [out, k] = <[usize; 2]>::try_from(constant.shape.as_slice()).unwrap_or_default();
        let rows = (0..out).flat_map(|row| terms.iter().flat_map(move |term| &term[row * k..(row + 1) * k]));
        let bytes: Vec<u8> = rows.copied().collect();
        quant.zero_point.fill(0);
        let count = terms.len();
        let weights = self.add_const(Tensor {
            quant: Some(quant),
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            ..Tensor::activation(self.info(w).name.clone(), &[out, k * count], DType::I8)
        });
        self.parameter(w, weights);
        if count == 1 {
            return Ok((from, weights));
        }
        self.legacy.layers += usize::from(self.info(w).legacy);
        let mut shape = self.out.tensor(from).shape.clone();
        let axis = shape.len() - 1;
        shape[axis] *= count;
        let activation = Activation::None;
        let link = (Op::Concat { axis, activation }, shape);
        Ok((self.then(view, "/repeated", x, link, vec![Some(from); count])?, weights))
    }

    /// The largest's index of the negated elements: the first of equals is the same.
    pub(super) fn arg_min(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = view.input(0)?;
        let (shape, from) = (self.shape(x)?, self.operand(x)?);
        let negated = (Op::Unary(UnaryKind::NEG), shape);
        let negated = self.then(view, "/negated", x, negated, vec![Some(from)])?;
        if self.dtype(x)? != DType::F32 {
            // q becomes -1 - q, so that -128 has a counterpart.
            let mut quant = self.scale_of(x)?;
            quant.zero_point.iter_mut().for_each(|zero| *zero = -1 - *zero);
            self.out.tensor_mut(negated).quant = Some(quant);
        }
        self.arg_max_of(view, negated)
    }
}

/// Rows of padding before and, where positive, after `extent` spread rows, so that a convolution by `kernel` gives `result` rows of which the
/// transposed one leaves out the first `pad`; negative: spread rows at the end that no result sees.
fn edges(extent: usize, result: usize, kernel: usize, pad: usize) -> Result<(usize, isize)> {
    let before = (kernel - 1).checked_sub(pad);
    let before = before.ok_or_else(|| Error::internal(format!("a padding of {pad} for a kernel of {kernel}")))?;
    let after = (result + kernel - 1) as i64 - (extent + before) as i64;
    let after = isize::try_from(after).map_err(|_| Error::internal(format!("a result of {result} rows")))?;
    Ok((before, after))
}

fn binary(kind: BinaryOp) -> Op {
    Op::Binary {
        kind,
        activation: Activation::None,
    }
}
