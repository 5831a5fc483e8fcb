//! Operators that move elements, and those that make constants.

use super::array::{Array, paid};
use super::elem::Elem;
use super::fold::fold_sums;
use super::importer::{Importer, Value, View};
use crate::build::resolve;
use crate::error::{Error, Result};
use crate::graph::BinaryOp;

/// Orders of the channels in the blocks of DepthToSpace and SpaceToDepth.
const MODES: [&str; 2] = ["DCR", "CRD"];

/// An axis that may be counted from the end.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    let from_front = if axis < 0 {
        axis.saturating_add(rank as i64)
    } else {
        axis
    };
    usize::try_from(from_front)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| Error::input(format!("axis {axis} of {rank} axes")))
}

/// Refuses axes that are named twice.
pub(super) fn each_once(axes: &[usize]) -> Result<()> {
    let twice = |(at, axis): &(usize, &usize)| axes[..*at].contains(*axis);
    match axes.iter().enumerate().find(twice) {
        Some((_, axis)) => Err(Error::input(format!("axis {axis} is named twice")).expected("each axis once")),
        None => Ok(()),
    }
}

/// The extents that an operand states, all above zero.
pub(super) fn extents(values: &[i64], what: &str) -> Result<Vec<usize>> {
    let wrong = || Error::input(format!("the {what} {values:?}")).expected("extents above zero");
    values
        .iter()
        .map(|&n| usize::try_from(n).map_err(|_| wrong()))
        .collect()
}

impl<'a> Importer<'_, 'a> {
    pub(super) fn reshape_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let from = self.shape(&x);
        let shape = match self.operand(view, 1)? {
            Value::Array(target) => {
                let mut target = target.whole("new extents")?;
                if !view.flag("allowzero", false)? {
                    for (axis, extent) in target.iter_mut().enumerate().filter(|(_, n)| **n == 0) {
                        let kept = from
                            .get(axis)
                            .ok_or_else(|| Error::input(format!("extent {axis} of {from:?} kept")))?;
                        *extent = *kept as i64;
                    }
                }
                let count = from.iter().product();
                resolve(&target, count).ok_or_else(|| {
                    Error::input(format!("a reshape of {from:?} into {target:?}")).help(
                        "another batch or shape was asked for than the model is made for: export it with symbolic extents",
                    )
                })?
            }
            _ => self.stated_shape(view)?,
        };
        let y = self.reshape(&x, &shape)?;
        self.bind(view, 0, y)
    }

    /// The shape that the file states of the result: of an operator whose shape is an operand that is computed or given at run time.
    fn stated_shape(&mut self, view: View<'_, 'a>) -> Result<Vec<usize>> {
        let name = view.output(0).unwrap_or_default();
        let Some(shape) = self.stated.get(name).cloned() else {
            return Err(
                Error::unsupported("dynamic shape: the result's extents are known at run time only")
                    .help("make them constants of the model (onnxsim folds what is constant)"),
            );
        };
        let how = view.input(1)?;
        self.warn(format!(
            "`{name}` has the shape {shape:?} that the file states: the value of `{how}` is not read"
        ));
        Ok(shape)
    }

    /// The axes of a reduction whose axes are given at run time, by the shape that the file states of its result.
    pub(super) fn stated_axes(&mut self, view: View<'_, 'a>, from: &[usize], keep: bool) -> Result<Vec<usize>> {
        let to = self.stated_shape(view)?;
        let ambiguous = || {
            Error::unsupported("dynamic shape: the axes are known at run time only")
                .help("make them constants of the model (onnxsim folds what is constant)")
        };
        if keep {
            let fits = to.len() == from.len() && to.iter().zip(from).all(|(&t, &f)| t == f || t == 1);
            return if fits {
                Ok((0..from.len()).filter(|&a| to[a] != from[a]).collect())
            } else {
                Err(ambiguous())
            };
        }
        let subsets = (0u32..1 << from.len().min(16)).map(|set| (0..from.len()).filter(move |a| set >> a & 1 == 1));
        let mut fitting = subsets.filter(|axes| {
            let axes: Vec<usize> = axes.clone().collect();
            (0..from.len())
                .filter(|a| !axes.contains(a))
                .map(|a| from[a])
                .eq(to.iter().copied())
        });
        match (fitting.next(), fitting.next()) {
            (Some(axes), None) => Ok(axes.collect()),
            _ => Err(ambiguous()),
        }
    }

    pub(super) fn flatten(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let axis = view.int("axis", 1)?;
        let axis = if axis == shape.len() as i64 {
            shape.len()
        } else {
            axis_of(axis, shape.len())?
        };
        let (rows, columns) = shape.split_at(axis);
        let y = self.reshape(&x, &[rows.iter().product(), columns.iter().product()])?;
        self.bind(view, 0, y)
    }

    pub(super) fn squeeze(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let axes = self.integers(view, 1, "axes", "axes")?;
        let axes: Vec<usize> = match axes {
            None => (0..shape.len()).filter(|&a| shape[a] == 1).collect(),
            Some(axes) => axes.iter().map(|&a| axis_of(a, shape.len())).collect::<Result<_>>()?,
        };
        if let Some(axis) = axes.iter().find(|&&a| shape[a] != 1) {
            return Err(Error::input(format!("axis {axis} of {shape:?} is to go")).expected("an extent of 1"));
        }
        let kept: Vec<usize> = (0..shape.len())
            .filter(|a| !axes.contains(a))
            .map(|a| shape[a])
            .collect();
        let y = self.reshape(&x, &kept)?;
        self.bind(view, 0, y)
    }

    pub(super) fn unsqueeze(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let axes = self.integers(view, 1, "axes", "axes")?;
        let axes = axes.ok_or_else(|| Error::input("no axes to add"))?;
        let mut shape = self.shape(&x);
        let rank = shape.len() + axes.len();
        let mut axes: Vec<usize> = axes.iter().map(|&a| axis_of(a, rank)).collect::<Result<_>>()?;
        axes.sort_unstable();
        if let Some(twice) = axes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::input(format!("axis {} is added twice", twice[0])));
        }
        for axis in axes {
            shape.insert(axis, 1);
        }
        let y = self.reshape(&x, &shape)?;
        self.bind(view, 0, y)
    }

    pub(super) fn transpose_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let rank = self.shape(&x).len();
        let perm = match view.node.ints("perm")? {
            None => (0..rank).rev().collect(),
            Some(perm) if perm.iter().any(|&axis| axis < 0) => {
                return Err(Error::input(format!("attribute `perm` is {perm:?}")).expected("axes from 0 on"));
            }
            Some(perm) => perm.iter().map(|&a| axis_of(a, rank)).collect::<Result<Vec<_>>>()?,
        };
        let y = self.transpose(&x, &perm)?;
        self.bind(view, 0, y)
    }

    pub(super) fn concat_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let count = view.node.inputs.len();
        let values: Vec<Value> = (0..count).map(|i| self.operand(view, i)).collect::<Result<_>>()?;
        let rank = values.first().map_or(0, |v| self.shape(v).len());
        let axis = axis_of(view.int("axis", 1)?, rank)?;
        let y = self.concat(&values, axis)?;
        self.bind(view, 0, y)
    }

    pub(super) fn split(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let axis = axis_of(view.int("axis", 0)?, shape.len())?;
        let (count, extent) = (view.node.outputs.len(), shape[axis]);
        if let Some(stated) = view.node.int("num_outputs")?.filter(|&stated| stated != count as i64) {
            return Err(Error::input(format!("attribute `num_outputs` is {stated}"))
                .expected(format!("{count}, the number of its results")));
        }
        let parts = match self.integers(view, 1, "split", "extents of the parts")? {
            Some(parts) => extents(&parts, "extents of the parts")?,
            None => {
                let each = extent.div_ceil(count.max(1));
                (0..count).map(|i| each.min(extent.saturating_sub(i * each))).collect()
            }
        };
        if parts.len() != count || parts.iter().sum::<usize>() != extent {
            return Err(Error::input(format!(
                "parts {parts:?} of {extent} elements into {count} results"
            )));
        }
        let mut from = 0;
        for (position, &part) in parts.iter().enumerate() {
            if view.output(position).is_some() {
                let y = self.part(&x, axis, from, part)?;
                self.bind(view, position, y)?;
            }
            from += part;
        }
        Ok(())
    }

    pub(super) fn slice_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let need = |list: Option<Vec<i64>>, what: &str| list.ok_or_else(|| Error::input(format!("no {what}")));
        let starts = need(self.integers(view, 1, "starts", "first elements")?, "first elements")?;
        let ends = need(self.integers(view, 2, "ends", "last elements")?, "last elements")?;
        let axes = self.integers(view, 3, "axes", "axes")?;
        let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = self
            .integers(view, 4, "steps", "steps")?
            .unwrap_or_else(|| vec![1; starts.len()]);
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
            return Err(Error::input(format!(
                "first {starts:?}, last {ends:?}, axes {axes:?}, steps {steps:?}"
            )));
        }
        let (mut begin, mut stride, mut kept) = (vec![0; shape.len()], vec![1isize; shape.len()], shape.clone());
        let axes: Vec<usize> = axes.iter().map(|&a| axis_of(a, shape.len())).collect::<Result<_>>()?;
        each_once(&axes)?;
        for (at, &axis) in axes.iter().enumerate() {
            let (extent, step) = (shape[axis] as i64, steps[at]);
            let counted = |index: i64| if index < 0 { index.saturating_add(extent) } else { index };
            if extent == 0 {
                continue;
            }
            if step == 0 || step == i64::MIN {
                return Err(Error::input(format!("a slice with step {step}")));
            }
            let (from, count) = if step > 0 {
                let (from, to) = (counted(starts[at]).clamp(0, extent), counted(ends[at]).clamp(0, extent));
                (from, (to - from).max(0).saturating_add(step - 1) / step)
            } else {
                let (from, to) = (
                    counted(starts[at]).clamp(0, extent - 1),
                    counted(ends[at]).clamp(-1, extent - 1),
                );
                (from, (from - to).max(0).saturating_add(-step - 1) / -step)
            };
            kept[axis] = count as usize;
            begin[axis] = if count == 0 { 0 } else { from as usize };
            // A single element has no step.
            stride[axis] = if count <= 1 { 1 } else { step as isize };
        }
        let y = self.slice(&x, &begin, &stride, &kept)?;
        self.bind(view, 0, y)
    }

    /// Broadcast to `shape`, as an addition of -0, which changes no number.
    pub(super) fn expand(&mut self, x: &Value, shape: &[usize]) -> Result<Value> {
        let from = self.shape(x);
        let to = crate::graph::infer::broadcast(&from, shape)?;
        if to == from {
            return Ok(x.clone());
        }
        if let Value::Array(array) = x {
            return Ok(array.broadcast(&self.budget, &to)?.into_owned().into());
        }
        let lead = to.len() - from.len();
        let kept = |axis: usize| axis.checked_sub(lead).is_some_and(|own| from[own] == to[axis]);
        let zeros: Vec<usize> = (0..to.len())
            .map(|axis| if kept(axis) { 1 } else { to[axis] })
            .collect();
        match x {
            Value::Mask(id) => {
                let zeros = Array::filled(&self.budget, &zeros, -0.0)?.into();
                let y = self.binary(BinaryOp::Add, &Value::Tensor(*id), &zeros)?;
                Ok(Value::Mask(self.tensor(&y)?))
            }
            _ if self.elem(x) == Elem::FLOAT => {
                let zeros = Array::filled(&self.budget, &zeros, -0.0)?;
                self.binary(BinaryOp::Add, x, &zeros.into())
            }
            _ => {
                let count = paid(&self.budget, Elem::INT32, &zeros)?;
                let zeros = Array::integers(Elem::INT32, &zeros, vec![0; count]);
                self.binary(BinaryOp::Add, x, &zeros.into())
            }
        }
    }

    pub(super) fn expand_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = match self.operand(view, 1)? {
            Value::Array(shape) => extents(&shape.whole("new extents")?, "new extents")?,
            _ => self.stated_shape(view)?,
        };
        let y = self.expand(&x, &shape)?;
        self.bind(view, 0, y)
    }

    pub(super) fn tile(&mut self, view: View<'_, 'a>) -> Result<()> {
        let mut x = self.operand(view, 0)?;
        let repeats = self.known(view, 1, "repeats")?;
        let repeats = repeats.ok_or_else(|| Error::input("no repeats"))?.whole("repeats")?;
        let repeats = extents(&repeats, "repeats")?;
        if repeats.len() != self.shape(&x).len() {
            return Err(Error::input(format!(
                "{} repeats of {:?}",
                repeats.len(),
                self.shape(&x)
            )));
        }
        for (axis, &count) in repeats.iter().enumerate().filter(|(_, n)| **n != 1) {
            let shape = self.shape(&x);
            let mut wide = shape.clone();
            wide.insert(axis, 1);
            let lifted = self.reshape(&x, &wide)?;
            wide[axis] = count;
            let repeated = self.expand(&lifted, &wide)?;
            let mut flat = shape;
            flat[axis] = flat[axis].saturating_mul(count);
            x = self.reshape(&repeated, &flat)?;
        }
        self.bind(view, 0, x)
    }

    pub(super) fn depth_to_space(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let block = block_of(view)?;
        let shape = self.shape(&x);
        let &[n, c, h, w] = shape.as_slice() else {
            return Err(Error::input(format!("an operand of shape {shape:?}")).expected("four axes"));
        };
        if !c.is_multiple_of(block * block) {
            return Err(Error::input(format!("{c} channels in blocks of {block} x {block}")));
        }
        let depth = c / (block * block);
        let (split, perm) = match view.word("mode", &MODES)? {
            "CRD" => ([n, depth, block, block, h, w], [0, 1, 4, 2, 5, 3]),
            _ => ([n, block, block, depth, h, w], [0, 3, 4, 1, 5, 2]),
        };
        let x = self.reshape(&x, &split)?;
        let x = self.transpose(&x, &perm)?;
        let y = self.reshape(&x, &[n, depth, h * block, w * block])?;
        self.bind(view, 0, y)
    }

    pub(super) fn space_to_depth(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let block = block_of(view)?;
        let shape = self.shape(&x);
        let &[n, c, h, w] = shape.as_slice() else {
            return Err(Error::input(format!("an operand of shape {shape:?}")).expected("four axes"));
        };
        if !h.is_multiple_of(block) || !w.is_multiple_of(block) {
            return Err(Error::input(format!(
                "{h} x {w} elements in blocks of {block} x {block}"
            )));
        }
        let x = self.reshape(&x, &[n, c, h / block, block, w / block, block])?;
        let perm = match view.word("mode", &MODES)? {
            "CRD" => [0, 1, 3, 5, 2, 4],
            _ => [0, 3, 5, 1, 2, 4],
        };
        let x = self.transpose(&x, &perm)?;
        let y = self.reshape(&x, &[n, c * block * block, h / block, w / block])?;
        self.bind(view, 0, y)
    }

    /// The sum of the elements up to each: at run time a product with a triangle of ones.
    pub(super) fn cum_sum(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let axis = self.known(view, 1, "axis")?.and_then(|a| a.single());
        let axis = axis_of(axis.ok_or_else(|| Error::input("no axis"))? as i64, shape.len())?;
        let (exclusive, reverse) = (view.flag("exclusive", false)?, view.flag("reverse", false)?);
        let n = shape[axis];
        if let Value::Array(array) = &x {
            let sums = fold_sums(&self.budget, array, axis, [exclusive, reverse])?;
            return self.bind(view, 0, sums.into());
        }
        paid(&self.budget, Elem::FLOAT, &[n, n])?;
        let counts = |to: usize, from: usize| {
            let (a, b) = if reverse { (to, from) } else { (from, to) };
            a < b || (a == b && !exclusive)
        };
        let ones = (0..n * n).map(|i| f32::from(u8::from(counts(i / n, i % n)))).collect();
        let y = self.along(&x, axis, Array::floats(&[n, n], ones))?;
        self.bind(view, 0, y)
    }

    /// Each line along `axis` times a matrix `[to, from]`.
    pub(super) fn along(&mut self, x: &Value, axis: usize, matrix: Array) -> Result<Value> {
        let shape = self.shape(x);
        let rank = shape.len();
        if rank == 1 {
            // The product wants rows.
            let row = self.reshape(x, &[1, shape[0]])?;
            let y = self.products(&row, &matrix.into())?;
            let to = self.shape(&y)[1..].to_vec();
            return self.reshape(&y, &to);
        }
        let mut perm: Vec<usize> = (0..rank).filter(|&a| a != axis).chain([axis]).collect();
        let x = self.transpose(x, &perm)?;
        let y = self.products(&x, &matrix.into())?;
        let inverse: Vec<usize> = (0..rank)
            .map(|a| perm.iter().position(|&p| p == a).unwrap_or(0))
            .collect();
        perm = inverse;
        self.transpose(&y, &perm)
    }
}

/// The side of a block.
fn block_of(view: View<'_, '_>) -> Result<usize> {
    let block = view.int("blocksize", 0)?;
    let fits = usize::try_from(block).ok().filter(|b| (1..=1 << 16).contains(b));
    fits.ok_or_else(|| Error::input(format!("blocks of {block} x {block}")))
}
