//! Sums and products of several operands: sums of tensors, running sums, root mean squares, products of matrices.

use super::importer::{Importer, View};
use super::movement::axis_of;
use super::rearrange::Link;
use crate::compose::{self, Compose};
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, DType, Data, Op, Quant, Tensor, TensorId, TensorKind, UnaryKind};
use arenite::ops::pointwise::{Function, UnaryOp};

/// int8 numbers are summed as int32 ones with so many bits behind the point: half of the 20 by which the reference shifts them left.
const FRACTION: u32 = 19;

const ADD: Op = Op::Binary {
    kind: BinaryOp::Add,
    activation: Activation::None,
};

impl Importer<'_, '_> {
    /// The sum of all operands, one after the other.
    pub(super) fn add_n(&mut self, view: View<'_, '_>) -> Result<()> {
        let (first, y) = (view.input(0)?, view.output(0)?);
        let shape = self.shape(first)?;
        let mut sum = self.wide(view, "/0", first)?;
        for position in 1..view.inputs.len() {
            let x = view.input(position)?;
            if self.shape(x)? != shape || self.dtype(x)? != self.dtype(first)? || self.quant(x)? != self.quant(first)? {
                return Err(Error::unsupported("a sum of tensors of other shapes or scales")
                    .expected("one shape, type and scale")
                    .help("TensorFlow Lite Micro refuses it as well; use ADD"));
            }
            let term = self.wide(view, &format!("/{position}"), x)?;
            sum = self.sum(view, &format!("/sum{position}"), sum, term)?;
        }
        self.narrow(view, sum, y)
    }

    /// Running sums along an axis, by doubling: each element takes the sum of ever more before it.
    pub(super) fn cumsum(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let shape = self.shape(x)?;
        let axis = match self.integers(view.input(1)?, "axis")?.as_slice() {
            &[axis] => axis_of(axis, shape.len())?,
            other => return Err(Error::input(format!("axes {other:?}")).expected("one axis")),
        };
        let (exclusive, reverse) = (view.flag(0)?, view.flag(1)?);
        let mut sum = self.wide(view, "/wide", x)?;
        if exclusive {
            sum = self.moved(view, "/before", sum, axis, 1, reverse)?;
        }
        let mut distance = 1;
        while distance < shape[axis] {
            let before = self.moved(view, &format!("/by{distance}"), sum, axis, distance, reverse)?;
            sum = self.sum(view, &format!("/sum{distance}"), sum, before)?;
            distance *= 2;
        }
        self.narrow(view, sum, y)
    }

    /// `x` moved along `axis` by `distance` places to the end, or to the start, zeros behind it.
    fn moved(
        &mut self,
        view: View<'_, '_>,
        suffix: &str,
        x: TensorId,
        axis: usize,
        distance: usize,
        to_start: bool,
    ) -> Result<TensorId> {
        let shape = self.out.tensor(x).shape.clone();
        let (mut begin, stride) = (vec![0; shape.len()], vec![1; shape.len()]);
        let (mut kept, mut pads) = (shape.clone(), vec![(0, 0); shape.len()]);
        let distance = distance.min(shape[axis]);
        if distance == shape[axis] {
            let bytes = vec![0; self.out.tensor(x).bytes()];
            let zeros = Tensor {
                kind: TensorKind::Const(Data::Bytes(bytes.into())),
                ..self.like(view, suffix, x, &shape)
            };
            return Ok(self.add_const(zeros));
        }
        kept[axis] -= distance;
        if to_start {
            (begin[axis], pads[axis]) = (distance, (0, distance));
        } else {
            pads[axis] = (distance, 0);
        }
        let cut = self.after(
            view,
            &format!("{suffix}/cut"),
            x,
            (Op::Slice { begin, stride }, kept),
            &[x],
        );
        Ok(self.after(view, suffix, x, (Op::Pad { pads, value: 0.0 }, shape), &[cut]))
    }

    /// An operand as it is summed: int8 as int32 with a fraction, others as they are.
    fn wide(&mut self, view: View<'_, '_>, suffix: &str, x: usize) -> Result<TensorId> {
        let from = self.operand(x)?;
        if self.dtype(x)? != DType::I8 {
            return Ok(from);
        }
        let scale = self.scale_of(x)?.scale[0];
        let tensor = Tensor {
            dtype: DType::I32,
            quant: Some(Quant::per_tensor(scale / (1 << FRACTION) as f32, 0)),
            ..self.like(view, suffix, from, &self.shape(x)?)
        };
        let to = self.add_const(tensor);
        self.node(view, suffix, Op::Quantize, vec![Some(from)], vec![to]);
        Ok(to)
    }

    /// A sum as the result `y`. Sums of int8 begin at what a stored 0 means, as in TensorFlow Lite Micro, and not at 0.
    fn narrow(&mut self, view: View<'_, '_>, mut sum: TensorId, y: usize) -> Result<()> {
        let op = if self.dtype(y)? == DType::I8 {
            self.scale_of(y)?;
            let zero = self.scale_of(view.input(0)?)?.zero_point[0];
            if zero != 0 {
                let bytes = zero.wrapping_neg().wrapping_shl(FRACTION).to_le_bytes();
                let first = self.add_const(Tensor {
                    kind: TensorKind::Const(Data::Bytes(bytes.to_vec().into())),
                    ..self.like(view, "/first", sum, &[1])
                });
                sum = self.sum(view, "/begun", sum, first)?;
            }
            Op::Quantize
        } else {
            Op::Identity
        };
        let y = self.output(y)?;
        self.node(view, "", op, vec![Some(sum)], vec![y]);
        Ok(())
    }

    fn sum(&mut self, view: View<'_, '_>, suffix: &str, a: TensorId, b: TensorId) -> Result<TensorId> {
        let shape = self.out.tensor(a).shape.clone();
        Ok(self.after(view, suffix, a, (ADD, shape), &[a, b]))
    }

    /// A tensor between two nodes of the operator, of the type and quantisation of `x`.
    fn like(&self, view: View<'_, '_>, suffix: &str, x: TensorId, shape: &[usize]) -> Tensor {
        let x = self.out.tensor(x);
        Tensor {
            quant: x.quant.clone(),
            ..Tensor::activation(format!("{}#{}{suffix}", view.kind, view.index), shape, x.dtype)
        }
    }

    /// A node whose result has the type and quantisation of `like`.
    fn after(
        &mut self,
        view: View<'_, '_>,
        suffix: &str,
        like: TensorId,
        (op, shape): Link,
        inputs: &[TensorId],
    ) -> TensorId {
        let tensor = self.like(view, suffix, like, &shape);
        let to = self.add_const(tensor);
        self.node(view, suffix, op, inputs.iter().copied().map(Some).collect(), vec![to]);
        to
    }

    /// The root of the mean of squares of each window.
    pub(super) fn l2_pool(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let mut attrs = self.window(view)?;
        let clamp = std::mem::take(&mut attrs.activation);
        let (shape, result) = (self.shape(x)?, self.shape(y)?);
        let mut links = vec![
            (Op::Unary(UnaryKind::SQUARE), shape),
            (Op::AvgPool2d(attrs), result.clone()),
            (
                Op::Unary(UnaryKind::Function(Function::Basic(UnaryOp::Sqrt))),
                result.clone(),
            ),
        ];
        match clamp {
            Activation::None => {}
            Activation::Relu => links.push((Op::Unary(UnaryKind::Relu), result)),
            Activation::Relu6 => links.push((Op::Unary(UnaryKind::Relu6), result)),
            Activation::ReluN1To1 => links.push((Op::Unary(UnaryKind::ReluN1To1), result)),
        }
        self.chain(view, links)
    }

    /// Products of matrices in batches; by constant int8 matrices a fully connected layer.
    pub(super) fn batch_matmul(&mut self, view: View<'_, '_>) -> Result<()> {
        let (a, b, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        let (transpose_a, transpose_b) = (view.flag(0)?, view.flag(1)?);
        self.widen_hybrid(a, &[b])?;
        self.refuse_hybrid(view, a, b).or_else(|error| {
            if self.dtype(a)? == self.dtype(b)? {
                Ok(())
            } else {
                Err(error)
            }
        })?;
        self.need_quant(view, 2)?;
        if self.dtype(a)? == DType::F32 {
            return self.real_products(view, transpose_a, transpose_b);
        }
        let constant = self.constant(b)?.filter(|b| b.dtype == DType::I8 && b.shape.len() == 2);
        let central = self
            .quant(b)?
            .is_some_and(|quant| quant.axis.is_none() && quant.zero_point[0] == 0);
        if let (Some(constant), true, false) = (constant, central, transpose_a) {
            let [rows, columns] = <[usize; 2]>::try_from(constant.shape.as_slice()).unwrap_or_default();
            let (shape, bytes) = if transpose_b {
                ([rows, columns], constant.bytes.into_owned())
            } else {
                let turned = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
                ([columns, rows], turned.map(|at| constant.bytes[at]).collect())
            };
            let quant = self.quant(b)?;
            let weights = self.add_const(Tensor {
                quant,
                kind: TensorKind::Const(Data::Bytes(bytes.into())),
                ..Tensor::activation(self.info(b).name.clone(), &shape, DType::I8)
            });
            self.parameter(b, weights);
            let (a, y) = (self.operand(a)?, self.output(y)?);
            let activation = Activation::None;
            self.node(
                view,
                "",
                Op::Linear { activation },
                vec![Some(a), Some(weights), None],
                vec![y],
            );
            return Ok(());
        }
        let (a, b, y) = (self.operand(a)?, self.operand(b)?, self.output(y)?);
        let op = Op::MatMul {
            transpose_a,
            transpose_b,
        };
        self.node(view, "", op, vec![Some(a), Some(b)], vec![y]);
        Ok(())
    }

    fn real_products(&mut self, view: View<'_, '_>, transpose_a: bool, transpose_b: bool) -> Result<()> {
        let (a, b) = (self.operand(view.input(0)?)?, self.operand(view.input(1)?)?);
        let mut parts = Parts {
            importer: self,
            view,
            count: 0,
        };
        let a = if transpose_a { parts.turned(a)? } else { a };
        // Rows of the second operand are columns of the product.
        let b = if transpose_b { b } else { parts.turned(b)? };
        let product = compose::products(&mut parts, &a, &b)?;
        let y = self.output(view.output(0)?)?;
        self.node(view, "", Op::Reshape, vec![Some(product)], vec![y]);
        Ok(())
    }
}

/// The nodes that one operator becomes, but for the last.
struct Parts<'p, 'm, 'a, 'v, 'o> {
    importer: &'p mut Importer<'m, 'a>,
    view: View<'v, 'o>,
    count: usize,
}

impl Parts<'_, '_, '_, '_, '_> {
    fn emit(&mut self, op: Op, shape: Vec<usize>, inputs: &[TensorId]) -> TensorId {
        self.count += 1;
        let (suffix, like) = (format!("/{}", self.count), inputs[0]);
        self.importer.after(self.view, &suffix, like, (op, shape), inputs)
    }

    /// With its last two axes swapped.
    fn turned(&mut self, x: TensorId) -> Result<TensorId> {
        let rank = self.shape(&x).len();
        if rank < 2 {
            return Err(Error::input(format!("an operand of shape {:?}", self.shape(&x))).expected("at least two axes"));
        }
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 1, rank - 2);
        self.transpose(&x, &perm)
    }
}

impl Compose for Parts<'_, '_, '_, '_, '_> {
    type Value = TensorId;

    fn shape(&self, value: &TensorId) -> Vec<usize> {
        self.importer.out.tensor(*value).shape.clone()
    }

    fn reshape(&mut self, value: &TensorId, shape: &[usize]) -> Result<TensorId> {
        if self.shape(value) == shape {
            return Ok(*value);
        }
        Ok(self.emit(Op::Reshape, shape.to_vec(), &[*value]))
    }

    fn transpose(&mut self, value: &TensorId, perm: &[usize]) -> Result<TensorId> {
        let of = self.shape(value);
        let shape = perm.iter().map(|&axis| of[axis]).collect();
        Ok(self.emit(Op::Transpose { perm: perm.to_vec() }, shape, &[*value]))
    }

    fn part(&mut self, value: &TensorId, axis: usize, from: usize, extent: usize) -> Result<TensorId> {
        let mut shape = self.shape(value);
        if shape[axis] == extent {
            return Ok(*value);
        }
        let (mut begin, stride) = (vec![0; shape.len()], vec![1; shape.len()]);
        begin[axis] = from;
        shape[axis] = extent;
        Ok(self.emit(Op::Slice { begin, stride }, shape, &[*value]))
    }

    fn concat(&mut self, values: &[TensorId], axis: usize) -> Result<TensorId> {
        let [first, others @ ..] = values else {
            return Err(Error::internal("a concatenation of nothing"));
        };
        if others.is_empty() {
            return Ok(*first);
        }
        let mut shape = self.shape(first);
        shape[axis] = values.iter().map(|value| self.shape(value)[axis]).sum();
        let activation = Activation::None;
        Ok(self.emit(Op::Concat { axis, activation }, shape, values))
    }

    fn zeros_around(&mut self, value: &TensorId, pads: &[(usize, usize)]) -> Result<TensorId> {
        let shape = self
            .shape(value)
            .iter()
            .zip(pads)
            .map(|(n, (a, b))| n + a + b)
            .collect();
        let op = Op::Pad {
            pads: pads.to_vec(),
            value: 0.0,
        };
        Ok(self.emit(op, shape, &[*value]))
    }

    fn linear(&mut self, x: &TensorId, w: &TensorId) -> Result<TensorId> {
        let mut shape = self.shape(x);
        if let (Some(last), Some(&out)) = (shape.last_mut(), self.shape(w).first()) {
            *last = out;
        }
        let activation = Activation::None;
        Ok(self.emit(Op::Linear { activation }, shape, &[*x, *w]))
    }
}
