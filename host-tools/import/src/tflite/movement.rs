//! Operators that move elements: slices, splits, packs, paddings.

use super::importer::{Importer, View};
use crate::error::{Error, Result};
use crate::graph::{Activation, DType, Op, TensorId};

/// A slice with all defaults filled in: for each axis of the operand the first index, the step, and how many.
pub(super) struct Slice {
    pub(super) begin: Vec<usize>,
    pub(super) stride: Vec<isize>,
    pub(super) extent: Vec<usize>,
}

impl Importer<'_, '_> {
    pub(super) fn slice(&mut self, view: View<'_, '_>) -> Result<()> {
        let slice = self.slice_of(view)?;
        self.cut(view, "", view.input(0)?, view.output(0)?, slice)
    }

    pub(super) fn strided_slice(&mut self, view: View<'_, '_>) -> Result<()> {
        let slice = self.strided_slice_of(view)?;
        self.cut(view, "", view.input(0)?, view.output(0)?, slice)
    }

    pub(super) fn split(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = view.input(1)?;
        let axis = self.axis_operand(view.input(0)?, x)?;
        let extent = self.shape(x)?[axis];
        let parts = view.outputs.len();
        if parts == 0 || extent % parts != 0 {
            return Err(Error::input(format!(
                "it splits an extent of {extent} into {parts} equal parts"
            )));
        }
        self.parts(view, x, axis, &vec![extent / parts; parts])
    }

    pub(super) fn split_v(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = view.input(0)?;
        let axis = self.axis_operand(view.input(2)?, x)?;
        let extent = self.shape(x)?[axis];
        let sizes = self.integers(view.input(1)?, "sizes")?;
        let given: i64 = sizes.iter().filter(|&&s| s >= 0).sum();
        // One size may be -1: what the others leave.
        let sizes: Vec<usize> = sizes
            .iter()
            .map(|&s| usize::try_from(if s < 0 { extent as i64 - given } else { s }).unwrap_or(usize::MAX))
            .collect();
        if sizes.len() != view.outputs.len() || sizes.iter().try_fold(0_usize, |n, &s| n.checked_add(s)) != Some(extent)
        {
            return Err(Error::input(format!(
                "sizes {sizes:?} for {} results of an extent of {extent}",
                view.outputs.len()
            )));
        }
        self.parts(view, x, axis, &sizes)
    }

    pub(super) fn unpack(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = view.input(0)?;
        let shape = self.shape(x)?;
        let axis = axis_of(i64::from(view.option::<i32>(1, 0)?), shape.len())?;
        if shape[axis] != view.outputs.len() {
            return Err(Error::input(format!(
                "{} results of an extent of {}",
                view.outputs.len(),
                shape[axis]
            )));
        }
        self.parts(view, x, axis, &vec![1; view.outputs.len()])
    }

    pub(super) fn pack(&mut self, view: View<'_, '_>) -> Result<()> {
        let y = view.output(0)?;
        let y_shape = self.shape(y)?;
        let axis = axis_of(i64::from(view.option::<i32>(1, 0)?), y_shape.len())?;
        let mut shape = y_shape.clone();
        shape[axis] = 1;
        let mut rows = Vec::new();
        for position in 0..view.inputs.len() {
            let x = view.input(position)?;
            if self.shape(x)?.iter().product::<usize>() != shape.iter().product::<usize>() {
                return Err(Error::input(format!("it packs {:?} into {y_shape:?}", self.shape(x)?)));
            }
            let from = self.operand(x)?;
            let row = self.temporary(&format!("PACK#{}/{position}", view.index), y, &shape)?;
            self.node(view, &format!("/{position}"), Op::Reshape, vec![Some(from)], vec![row]);
            rows.push(Some(row));
        }
        let y = self.output(y)?;
        let activation = Activation::None;
        self.node(view, "", Op::Concat { axis, activation }, rows, vec![y]);
        Ok(())
    }

    pub(super) fn concatenation(&mut self, view: View<'_, '_>) -> Result<()> {
        let activation = view.option::<i8>(1, 0)?;
        if activation != 0 {
            return Err(Error::unsupported("a fused activation")
                .help("TensorFlow Lite Micro refuses it as well; convert the activation as an operator of its own"));
        }
        let y = view.output(0)?;
        let axis = axis_of(i64::from(view.option::<i32>(0, 0)?), self.shape(y)?.len())?;
        let quant = self.quant(y)?;
        let mut operands = Vec::new();
        for position in 0..view.inputs.len() {
            let x = view.input(position)?;
            if self.is_empty(x) {
                continue;
            }
            if self.dtype(y)? != DType::F32 && self.quant(x)? != quant {
                if self.info(x).legacy {
                    operands.push(Some(self.legacy_part(view, position, x, y)?));
                    continue;
                }
                return Err(Error::unsupported("it concatenates tensors of different scales")
                    .expected("one scale and zero point for all operands and the result")
                    .help("TensorFlow Lite Micro refuses it as well; insert QUANTIZE before the operands"));
            }
            operands.push(Some(self.operand(x)?));
        }
        let y = self.output(y)?;
        let activation = Activation::None;
        self.node(view, "", Op::Concat { axis, activation }, operands, vec![y]);
        Ok(())
    }

    pub(super) fn pad(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let rank = self.shape(x)?.len();
        let pads = self.pairs(view.input(1)?, "paddings", rank)?;
        let value = match view.optional(2) {
            None => self.stored_zero(y)?,
            Some(value) => {
                let constant = self.constant(value)?.ok_or_else(|| {
                    Error::unsupported("the padding value is computed at run time").help("make it a constant")
                })?;
                let real = constant.bytes.first_chunk().map(|b| f32::from_le_bytes(*b));
                let stored = constant.integers().and_then(|v| v.first().map(|&v| v as f32));
                let value = if constant.dtype == DType::F32 { real } else { stored };
                value.ok_or_else(|| Error::unsupported(format!("a padding value of type {}", constant.dtype.name())))?
            }
        };
        let (x, y) = (self.operand(x)?, self.output(y)?);
        self.node(view, "", Op::Pad { pads, value }, vec![Some(x)], vec![y]);
        Ok(())
    }

    pub(super) fn transpose(&mut self, view: View<'_, '_>) -> Result<()> {
        let perm = self.integers(view.input(1)?, "permutation")?;
        let rank = self.shape(view.input(0)?)?.len();
        let perm = perm.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<_>>()?;
        let (x, y) = (self.operand(view.input(0)?)?, self.output(view.output(0)?)?);
        self.node(view, "", Op::Transpose { perm }, vec![Some(x)], vec![y]);
        Ok(())
    }

    pub(super) fn reshape(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (self.operand(view.input(0)?)?, self.output(view.output(0)?)?);
        self.node(view, "", Op::Reshape, vec![Some(x)], vec![y]);
        Ok(())
    }

    /// SLICE: first indices and sizes, -1 for what is left.
    pub(super) fn slice_of(&self, view: View<'_, '_>) -> Result<Slice> {
        let shape = self.shape(view.input(0)?)?;
        let begin = self.integers(view.input(1)?, "first indices")?;
        let size = self.integers(view.input(2)?, "sizes")?;
        let wrong = || Error::input(format!("first indices {begin:?} and sizes {size:?} of shape {shape:?}"));
        if begin.len() != shape.len() || size.len() != shape.len() {
            return Err(wrong());
        }
        let mut slice = Slice::whole(&shape);
        for (axis, &extent) in shape.iter().enumerate() {
            let first = usize::try_from(begin[axis])
                .ok()
                .filter(|&b| b < extent)
                .ok_or_else(wrong)?;
            let left = extent - first;
            slice.begin[axis] = first;
            slice.extent[axis] = match size[axis] {
                -1 => left,
                size => usize::try_from(size).ok().filter(|&s| s <= left).ok_or_else(wrong)?,
            };
        }
        Ok(slice)
    }

    /// STRIDED_SLICE with its masks: `begin` and `end` bits mean "from the start", "to the end", `shrink` bits drop the axis.
    pub(super) fn strided_slice_of(&self, view: View<'_, '_>) -> Result<Slice> {
        let shape = self.shape(view.input(0)?)?;
        let mask = |field| view.option::<i32>(field, 0);
        let [begin_mask, end_mask, ellipsis, new_axis, shrink] = [mask(0)?, mask(1)?, mask(2)?, mask(3)?, mask(4)?];
        if ellipsis != 0 || new_axis != 0 {
            return Err(Error::unsupported("an ellipsis or new-axis mask")
                .help("TensorFlow Lite Micro refuses them as well; slice with explicit indices and reshape"));
        }
        let begin = self.integers(view.input(1)?, "first indices")?;
        let end = self.integers(view.input(2)?, "last indices")?;
        let stride = self.integers(view.input(3)?, "strides")?;
        let wrong = || Error::input(format!("slice {begin:?} to {end:?} by {stride:?} of shape {shape:?}"));
        if begin.len() > shape.len() || end.len() != begin.len() || stride.len() != begin.len() {
            return Err(wrong());
        }
        let mut slice = Slice::whole(&shape);
        for axis in 0..begin.len() {
            let extent = shape[axis] as i64;
            let (bit, step) = (1 << axis, stride[axis]);
            if step == 0 || step.unsigned_abs() > u64::from(u32::MAX) {
                return Err(wrong());
            }
            // Indices count from the end where negative, and are clamped to the axis.
            let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
            let index = |i: i64| (if i < 0 { i.saturating_add(extent) } else { i }).clamp(low, high);
            let mut first = if begin_mask & bit != 0 {
                if step > 0 { low } else { high }
            } else {
                index(begin[axis])
            };
            let mut last = if end_mask & bit != 0 {
                if step > 0 { high } else { low }
            } else {
                index(end[axis])
            };
            if shrink & bit != 0 {
                // One index: the end is not looked at.
                first = if begin[axis] < 0 {
                    begin[axis].saturating_add(extent)
                } else {
                    begin[axis]
                };
                last = first.saturating_add(step.signum());
            }
            let count = if step > 0 {
                (last - first + step - 1).div_euclid(step)
            } else {
                (first - last - step - 1).div_euclid(-step)
            };
            if count < 1 || !(0..extent).contains(&first) {
                return Err(wrong().expected("at least one element on each axis"));
            }
            slice.begin[axis] = first as usize;
            slice.stride[axis] = step as isize;
            slice.extent[axis] = if shrink & bit != 0 { 1 } else { count as usize };
        }
        Ok(slice)
    }

    /// One result for each part of `axis`.
    fn parts(&mut self, view: View<'_, '_>, x: usize, axis: usize, sizes: &[usize]) -> Result<()> {
        let shape = self.shape(x)?;
        let mut first = 0;
        for (position, &size) in sizes.iter().enumerate() {
            let mut slice = Slice::whole(&shape);
            slice.begin[axis] = first;
            slice.extent[axis] = size;
            first += size;
            self.cut(view, &format!("/{position}"), x, view.output(position)?, slice)?;
        }
        Ok(())
    }

    /// A slice into `y`, reshaped where `y` has other axes.
    fn cut(&mut self, view: View<'_, '_>, suffix: &str, x: usize, y: usize, slice: Slice) -> Result<()> {
        let from = self.operand(x)?;
        let Slice { begin, stride, extent } = slice;
        let shape = self.shape(y)?;
        if shape.iter().product::<usize>() != extent.iter().product::<usize>() {
            return Err(
                Error::input(format!("result `{}` has shape {shape:?}", self.info(y).name))
                    .expected(format!("the elements of {extent:?}")),
            );
        }
        let op = Op::Slice { begin, stride };
        if shape == extent {
            let y = self.output(y)?;
            self.node(view, suffix, op, vec![Some(from)], vec![y]);
            return Ok(());
        }
        let cut = self.temporary(&format!("{}#{}{suffix}/slice", view.kind, view.index), x, &extent)?;
        let y = self.output(y)?;
        self.node(view, &format!("{suffix}/slice"), op, vec![Some(from)], vec![cut]);
        self.node(view, suffix, Op::Reshape, vec![Some(cut)], vec![y]);
        Ok(())
    }

    /// The axis that a constant operand names.
    pub(super) fn axis_operand(&self, index: usize, x: usize) -> Result<usize> {
        match self.integers(index, "axis")?.as_slice() {
            &[axis] => axis_of(axis, self.shape(x)?.len()),
            other => Err(Error::input(format!("axes {other:?}")).expected("one axis")),
        }
    }

    /// A view of `x` with the shape `shape`, through a reshape where it has another one.
    pub(super) fn reshaped(&mut self, view: View<'_, '_>, x: usize, shape: &[usize]) -> Result<TensorId> {
        let from = self.operand(x)?;
        if self.shape(x)? == shape {
            return Ok(from);
        }
        let to = self.temporary(&format!("{}#{}/reshape", view.kind, view.index), x, shape)?;
        self.node(view, "/reshape", Op::Reshape, vec![Some(from)], vec![to]);
        Ok(to)
    }
}

impl Slice {
    fn whole(shape: &[usize]) -> Self {
        Self {
            begin: vec![0; shape.len()],
            stride: vec![1; shape.len()],
            extent: shape.to_vec(),
        }
    }
}

/// An axis that may count from the end.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_start)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| Error::input(format!("axis {axis}")).expected(format!("an axis of {rank}")))
}
