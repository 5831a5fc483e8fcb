//! Operators that repeat elements, choose them by index, or put them into others.

use super::constant::Constant;
use super::importer::{Importer, View};
use super::movement::axis_of;
use crate::error::{Error, Result};
use crate::graph::{Activation, DType, Data, Op, Tensor, TensorId, TensorKind};

impl Importer<'_, '_> {
    /// Each axis as often as its multiple says: an axis in front of each, along which it is repeated.
    pub(super) fn tile(&mut self, view: View<'_, '_>) -> Result<()> {
        let (shape, result) = (self.shape(view.input(0)?)?, self.shape(view.output(0)?)?);
        let multiples = self.integers(view.input(1)?, "multiples")?;
        let multiples: Vec<usize> = multiples.iter().filter_map(|&m| usize::try_from(m).ok()).collect();
        if multiples.len() != shape.len() || multiples.contains(&0) {
            return Err(
                Error::input(format!("multiples {multiples:?} of {shape:?}")).expected("one for each axis, above 0")
            );
        }
        let (mut apart, mut repeated) = (Vec::new(), Vec::new());
        for (&extent, &multiple) in shape.iter().zip(&multiples) {
            if multiple > 1 {
                apart.push(1);
                repeated.push(multiple);
            }
            apart.push(extent);
            repeated.push(extent);
        }
        self.chain(
            view,
            vec![(Op::Reshape, apart), (Op::Broadcast, repeated), (Op::Reshape, result)],
        )
    }

    pub(super) fn broadcast_to(&mut self, view: View<'_, '_>) -> Result<()> {
        let (shape, result) = (self.integers(view.input(1)?, "shape")?, self.shape(view.output(0)?)?);
        if shape.len() != result.len() || shape.iter().zip(&result).any(|(&a, &b)| a != b as i64) {
            return Err(Error::input(format!("a result of {result:?}")).expected(format!("{shape:?}")));
        }
        self.chain(view, vec![(Op::Broadcast, result)])
    }

    /// One value in every place: a constant where the value is one.
    pub(super) fn fill(&mut self, view: View<'_, '_>) -> Result<()> {
        let (value, y) = (view.input(1)?, view.output(0)?);
        let (extents, shape) = (self.integers(view.input(0)?, "extents")?, self.shape(y)?);
        if extents.len() != shape.len() || extents.iter().zip(&shape).any(|(&a, &b)| a != b as i64) {
            return Err(Error::input(format!("a result of {shape:?}")).expected(format!("{extents:?}")));
        }
        self.expect_type(value, self.dtype(y)?)?;
        let Some(constant) = self.constant(value)? else {
            let from = self.operand(value)?;
            let y = self.output(y)?;
            self.node(view, "", Op::Broadcast, vec![Some(from)], vec![y]);
            return Ok(());
        };
        let count = (self.budget).take(&constant.dtype.name(), &shape, constant.bytes.len())?;
        let bytes = constant.bytes.repeat(count);
        self.known(y, bytes, Some(value))
    }

    /// Stored zeros, as in TensorFlow Lite Micro.
    pub(super) fn zeros_like(&mut self, view: View<'_, '_>) -> Result<()> {
        let y = view.output(0)?;
        let (shape, dtype) = (self.shape(y)?, self.dtype(y)?);
        self.expect_shape(y, &self.shape(view.input(0)?)?)?;
        let count = self.budget.take(&dtype.name(), &shape, dtype.bytes())?;
        self.known(y, vec![0; count * dtype.bytes()], None)
    }

    /// Notes that `y` is a constant, which repeats the file's tensor `of` where there is one.
    fn known(&mut self, y: usize, bytes: Vec<u8>, of: Option<usize>) -> Result<()> {
        self.has_no_value(y)?;
        let (dtype, shape) = (self.dtype(y)?, self.shape(y)?);
        self.scope.made.insert(y, of.and_then(|of| self.parameter_of(of)));
        let bytes = bytes.into();
        self.scope.folded.insert(y, Constant { dtype, shape, bytes });
        Ok(())
    }

    /// Slices along one axis: one slice where constant indices are evenly spaced, else by the indices themselves.
    pub(super) fn gather(&mut self, view: View<'_, '_>) -> Result<()> {
        if view.option::<i32>(1, 0)? != 0 {
            return Err(Error::unsupported("batch_dims of a gather").help("use batch_dims = 0"));
        }
        let shape = self.shape(view.input(0)?)?;
        let axis = axis_of(i64::from(view.option::<i32>(0, 0)?), shape.len())?;
        let (indices, x) = (view.input(1)?, view.input(0)?);
        if self.constant(indices)?.is_none() {
            let (x, indices) = (self.operand(x)?, self.operand(indices)?);
            return self.computed_slices(view, x, axis, indices);
        }
        let indices = self.integers(indices, "indices")?;
        let from = self.operand(x)?;
        self.slices(view, from, &shape, axis, &indices)
    }

    /// Elements or slices by constant tuples of indices of the first axes, which are one axis here.
    pub(super) fn gather_nd(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, tuples) = (view.input(0)?, view.input(1)?);
        let (shape, of_tuples) = (self.shape(x)?, self.shape(tuples)?);
        let depth = of_tuples.last().copied().unwrap_or(0);
        if depth == 0 || depth > shape.len() {
            return Err(Error::input(format!("tuples of shape {of_tuples:?} for {shape:?}")));
        }
        let values = self.integers(tuples, "indices")?;
        let (chosen, rest) = shape.split_at(depth);
        let linear = values.chunks_exact(depth).map(|tuple| {
            let step = |at: i64, (&index, &extent): (&i64, &usize)| {
                (0..extent as i64).contains(&index).then(|| at * extent as i64 + index)
            };
            tuple.iter().zip(chosen).try_fold(0, step)
        });
        let linear: Option<Vec<i64>> = linear.collect();
        let linear = linear.ok_or_else(|| {
            Error::input(format!("indices {values:?} of {shape:?}")).expected("indices within the axes")
        })?;
        let mut flat = vec![chosen.iter().product()];
        flat.extend(rest);
        let from = self.reshaped(view, x, &flat)?;
        self.slices(view, from, &flat, 0, &linear)
    }

    /// The slices of `from`, which has the shape `shape`, at constant indices along `axis`.
    fn slices(
        &mut self,
        view: View<'_, '_>,
        from: TensorId,
        shape: &[usize],
        axis: usize,
        indices: &[i64],
    ) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let known = |&i: &i64| usize::try_from(i).ok().filter(|&i| i < shape[axis]);
        let known: Option<Vec<usize>> = indices.iter().map(known).collect();
        let known = known.filter(|indices| !indices.is_empty()).ok_or_else(|| {
            Error::input(format!("indices of axis {axis} of {shape:?}")).expected("0 to the extent, exclusive")
        })?;
        let mut gathered = shape.to_vec();
        gathered[axis] = known.len();
        let result = self.shape(y)?;
        if result.iter().product::<usize>() != gathered.iter().product::<usize>() {
            return Err(Error::input(format!("it gathers {gathered:?} into {result:?}")));
        }
        let step = known.get(1).map_or(1, |&second| second as isize - known[0] as isize);
        if step != 0 && known.windows(2).all(|w| w[1] as isize - w[0] as isize == step) {
            let (mut begin, mut stride) = (vec![0; shape.len()], vec![1; shape.len()]);
            (begin[axis], stride[axis]) = (known[0], step);
            let cut = (Op::Slice { begin, stride }, gathered);
            let cut = self.then(view, "/slices", x, cut, vec![Some(from)])?;
            let y = self.output(y)?;
            self.node(view, "", Op::Reshape, vec![Some(cut)], vec![y]);
            return Ok(());
        }
        let bytes: Vec<u8> = known.iter().flat_map(|&i| (i as i32).to_le_bytes()).collect();
        let indices = self.add_const(Tensor {
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            ..Tensor::activation(
                format!("{}#{}/indices", view.kind, view.index),
                &[known.len()],
                DType::I32,
            )
        });
        self.computed_slices(view, from, axis, indices)
    }

    /// The slices of `from` at `indices` along `axis`, in the result's shape.
    fn computed_slices(&mut self, view: View<'_, '_>, from: TensorId, axis: usize, indices: TensorId) -> Result<()> {
        let dtype = self.out.tensor(indices).dtype;
        if dtype != DType::I32 {
            return Err(Error::unsupported(format!("computed indices of {}", dtype.name()))
                .expected("int32")
                .help("convert the model with int32 indices"));
        }
        let mut shape = self.out.tensor(from).shape.clone();
        let of_indices = self.out.tensor(indices).shape.clone();
        shape.splice(axis..=axis, of_indices);
        let y = view.output(0)?;
        if shape.iter().product::<usize>() != self.shape(y)?.iter().product::<usize>() {
            return Err(Error::input(format!("it gathers {shape:?} into {:?}", self.shape(y)?)));
        }
        let slices = self.then(
            view,
            "/slices",
            y,
            (Op::Gather { axis }, shape),
            vec![Some(from), Some(indices)],
        )?;
        let y = self.output(y)?;
        self.node(view, "", Op::Reshape, vec![Some(slices)], vec![y]);
        Ok(())
    }

    /// Rows of a table. One of int8 under a float32 result becomes float32, as the weights of other hybrid operators.
    pub(super) fn embedding_lookup(&mut self, view: View<'_, '_>) -> Result<()> {
        let (indices, table, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        self.widen_hybrid(y, &[table])?;
        self.expect_type(table, self.dtype(y)?)?;
        let (table, indices) = (self.operand(table)?, self.operand(indices)?);
        self.computed_slices(view, table, 0, indices)
    }

    /// The operand with a block of it replaced, at a constant place, which is moved to where the block fits.
    pub(super) fn dynamic_update_slice(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, part, y) = (view.input(0)?, view.input(1)?, view.output(0)?);
        let (shape, block) = (self.shape(x)?, self.shape(part)?);
        let begin = self.integers(view.input(2)?, "first indices")?;
        let fits =
            block.len() == shape.len() && begin.len() == shape.len() && block.iter().zip(&shape).all(|(b, s)| b <= s);
        if !fits || self.shape(y)? != shape {
            return Err(Error::input(format!("a block of {block:?} at {begin:?} of {shape:?}")));
        }
        let room = |axis: usize| (shape[axis] - block[axis]) as i64;
        let begin: Vec<usize> = (0..shape.len())
            .map(|axis| begin[axis].clamp(0, room(axis)) as usize)
            .collect();
        let (from, mut current) = (self.operand(x)?, self.operand(part)?);
        let mut extents = block.clone();
        // From the innermost axis on, what lies before and behind the block is put around it.
        for axis in (0..shape.len()).rev().filter(|&axis| block[axis] != shape[axis]) {
            let mut around = |side: &str, first: usize, count: usize| -> Result<Option<TensorId>> {
                let mut piece = extents.clone();
                piece[axis] = count;
                let mut at = vec![0; shape.len()];
                at[..axis].copy_from_slice(&begin[..axis]);
                at[axis] = first;
                let op = Op::Slice {
                    begin: at,
                    stride: vec![1; shape.len()],
                };
                let cut = self.then(view, &format!("/{axis}{side}"), y, (op, piece), vec![Some(from)])?;
                Ok(Some(cut))
            };
            let end = begin[axis] + block[axis];
            let mut pieces = Vec::new();
            if begin[axis] > 0 {
                pieces.push(around("before", 0, begin[axis])?);
            }
            pieces.push(Some(current));
            if end < shape[axis] {
                pieces.push(around("behind", end, shape[axis] - end)?);
            }
            extents[axis] = shape[axis];
            let activation = Activation::None;
            let link = (Op::Concat { axis, activation }, extents.clone());
            current = self.then(view, &format!("/{axis}"), y, link, pieces)?;
        }
        let y = self.output(y)?;
        self.node(view, "", Op::Reshape, vec![Some(current)], vec![y]);
        Ok(())
    }
}
