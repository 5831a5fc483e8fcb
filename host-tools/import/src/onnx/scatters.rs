//! Elements chosen and replaced at indices that are known, and the largest ones of a known value.
//!
//! The known indices say for each element of the result where it comes from: one step picks them, of the operand or of the operand with the updates behind it.

use std::cmp::Ordering;

use super::array::{Array, Elements, paid};
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use crate::error::{Error, Result};
use crate::graph::{DType, Op, ReduceKind};

/// Most runs of neighbours that are copied; more are picked by a table of indices.
const MOST_RUNS: usize = 8;

impl<'a> Importer<'_, 'a> {
    pub(super) fn gather_elements(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, shape, axis) = self.along_node_axis(view)?;
        let places = self.known_indices(view)?;
        let places = Self::element_places(&places, &shape, axis)?;
        let result = self.shape_of_operand(view, 1)?;
        let y = self.picked(&x, &places, &result)?;
        self.bind(view, 0, y)
    }

    pub(super) fn gather_nd(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let (shape, indices) = (self.shape(&x), self.known_indices(view)?);
        let batch = usize::try_from(view.int("batch_dims", 0)?).unwrap_or(usize::MAX);
        let (places, result) = self.slice_places(&indices, &shape, batch)?;
        let y = self.picked(&x, &places, &result)?;
        self.bind(view, 0, y)
    }

    pub(super) fn scatter_elements(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, shape, axis) = self.along_node_axis(view)?;
        let indices = self.known_indices(view)?;
        let places = Self::element_places(&indices, &shape, axis)?;
        let updates = self.operand(view, 2)?;
        if self.shape(&updates) != indices.shape {
            return Err(Error::input(format!("updates of shape {:?}", self.shape(&updates)))
                .expected(format!("{:?}, that of the indices", indices.shape)));
        }
        let y = self.scattered(view, &x, &updates, &places)?;
        self.bind(view, 0, y)
    }

    pub(super) fn scatter_nd(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let (shape, indices) = (self.shape(&x), self.known_indices(view)?);
        let (places, result) = self.slice_places(&indices, &shape, 0)?;
        let updates = self.operand(view, 2)?;
        if self.shape(&updates) != result {
            return Err(Error::input(format!("updates of shape {:?}", self.shape(&updates)))
                .expected(format!("{result:?}, as the indices say")));
        }
        let y = self.scattered(view, &x, &updates, &places)?;
        self.bind(view, 0, y)
    }

    /// The largest or least elements of a known value along an axis, those of lower index first among equals; of a computed one the first alone.
    pub(super) fn top_k(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let axis = axis_of(view.int("axis", -1)?, shape.len())?;
        let k = match view.node.int("k")? {
            Some(k) => k,
            None => {
                let k = self.known(view, 1, "number of elements")?;
                let k = k
                    .ok_or_else(|| Error::input("no number of elements"))?
                    .whole("number of elements")?;
                k.first().copied().unwrap_or(0)
            }
        };
        let k = usize::try_from(k).ok().filter(|&k| k <= shape[axis]);
        let k = k.ok_or_else(|| Error::input(format!("more elements than the {} along axis {axis}", shape[axis])))?;
        let largest = view.flag("largest", true)?;
        // Those of a computed operand are one, and of a constant in order.
        view.flag("sorted", true)?;
        let (values, indices) = match &x {
            Value::Array(array) => self.known_top(array, axis, k, largest)?,
            _ if k == 1 => {
                let kind = if largest { ReduceKind::Max } else { ReduceKind::Min };
                let values = self.reduce(kind, &x, &[axis], true)?;
                let place = self.place_of_extreme(&x, axis, !largest)?;
                let kept = self.shape(&values);
                (values, self.reshape(&place, &kept)?)
            }
            _ => {
                return Err(
                    Error::unsupported(format!("the {k} largest or least of elements that are computed"))
                        .expected("constants, or k = 1")
                        .help("end the network before this operator, and sort in the application"),
                );
            }
        };
        self.bind(view, 0, values)?;
        self.bind(view, 1, indices)
    }

    fn known_top(&self, array: &Array, axis: usize, k: usize, largest: bool) -> Result<(Value, Value)> {
        let (extent, inner) = (array.shape[axis], array.shape[axis + 1..].iter().product::<usize>());
        let mut shape = array.shape.clone();
        shape[axis] = k;
        paid(&self.budget, Elem::INT64, &array.shape)?;
        let count = paid(&self.budget, Elem::INT64, &shape)?;
        let (mut places, mut indices) = (vec![0; count], vec![0; count]);
        let compare = |a: usize, b: usize| match &array.data {
            Elements::Integers(values) => values[a].cmp(&values[b]),
            Elements::Floats(values) => {
                let (a, b) = (values[a], values[b]);
                a.partial_cmp(&b).unwrap_or_else(|| a.total_cmp(&b))
            }
        };
        let lines = if k == 0 { 0 } else { array.len() / extent };
        for line in 0..lines {
            let at = |i: usize| (line / inner * extent + i) * inner + line % inner;
            let mut order: Vec<usize> = (0..extent).collect();
            // Stable: the lower index of equals stays first.
            order.sort_by(|&a, &b| match compare(at(a), at(b)) {
                order if largest => order.reverse(),
                order => order,
            });
            for (rank, &i) in order.iter().take(k).enumerate() {
                let to = (line / inner * k + rank) * inner + line % inner;
                (places[to], indices[to]) = (at(i), i as i64);
            }
        }
        let flat = array.reshaped(&self.budget, &[array.len()])?;
        let values = flat
            .gathered(&self.budget, 0, &places)?
            .reshaped(&self.budget, &shape)?;
        Ok((values.into(), Array::integers(Elem::INT64, &shape, indices).into()))
    }

    /// The first operand, its shape, and the axis that the node names.
    fn along_node_axis(&mut self, view: View<'_, 'a>) -> Result<(Value, Vec<usize>, usize)> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let axis = axis_of(view.int("axis", 0)?, shape.len())?;
        Ok((x, shape, axis))
    }

    fn known_indices(&mut self, view: View<'_, 'a>) -> Result<std::rc::Rc<Array>> {
        self.known(view, 1, "indices")?
            .ok_or_else(|| Error::input("no indices"))
    }

    fn shape_of_operand(&mut self, view: View<'_, 'a>, position: usize) -> Result<Vec<usize>> {
        let value = self.operand(view, position)?;
        Ok(self.shape(&value))
    }

    /// Where each element at `indices` along `axis` lies in a tensor of `shape`.
    fn element_places(indices: &Array, shape: &[usize], axis: usize) -> Result<Vec<usize>> {
        let inside = |a: usize| a == axis || indices.shape[a] <= shape[a];
        if indices.shape.len() != shape.len() || !(0..shape.len()).all(inside) {
            return Err(
                Error::input(format!("indices of shape {:?} for {shape:?}", indices.shape))
                    .expected("as many axes, none longer but the one that is indexed"),
            );
        }
        let extents = &indices.shape;
        (indices.whole("indices")?.iter().enumerate())
            .map(|(at, &index)| {
                let (mut rest, mut place, mut stride) = (at, 0, 1);
                for a in (0..shape.len()).rev() {
                    let own = rest % extents[a];
                    rest /= extents[a];
                    let own = if a == axis { index_of(index, shape[a])? } else { own };
                    place += own * stride;
                    stride *= shape[a];
                }
                Ok(place)
            })
            .collect()
    }

    /// Where each element of the slices at `indices` lies in a tensor of `shape`, and the shape of the slices together. The first `batch` axes are those of
    /// both.
    fn slice_places(&self, indices: &Array, shape: &[usize], batch: usize) -> Result<(Vec<usize>, Vec<usize>)> {
        let wrong = || {
            Error::input(format!(
                "indices of shape {:?} for {shape:?}, {batch} axes of both",
                indices.shape
            ))
            .expected("a last axis no longer than the operand has axes")
        };
        let Some((&width, lead)) = indices.shape.split_last() else {
            return Err(wrong());
        };
        let deep = batch
            .checked_add(width)
            .filter(|&deep| deep <= shape.len())
            .ok_or_else(wrong)?;
        if lead.get(..batch) != shape.get(..batch) || width == 0 {
            return Err(wrong());
        }
        let result = [lead, &shape[deep..]].concat();
        let count = paid(&self.budget, Elem::INT64, &result)?;
        let slice: usize = shape[deep..].iter().product();
        let per_batch = lead[batch..].iter().product::<usize>().max(1);
        let mut places = Vec::with_capacity(count);
        for (at, index) in indices.whole("indices")?.chunks(width).enumerate() {
            let mut place = at / per_batch;
            for (&i, &extent) in index.iter().zip(&shape[batch..]) {
                place = place * extent + index_of(i, extent)?;
            }
            places.extend((0..slice).map(|i| place * slice + i));
        }
        Ok((places, result))
    }

    /// The elements at `places` of an operand, as a value of this shape.
    fn picked(&mut self, x: &Value, places: &[usize], shape: &[usize]) -> Result<Value> {
        let count = self.shape(x).iter().product();
        let flat = self.reshape(x, &[count])?;
        let runs = 1 + places.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count();
        let y = match &flat {
            Value::Array(array) => array.gathered(&self.budget, 0, places)?.into(),
            _ if runs <= MOST_RUNS => self.chosen(&flat, 0, places)?,
            Value::Tensor(id) | Value::Mask(id) => {
                let indices = places.iter().map(|&place| place as i64).collect();
                let indices = self.int32(&Array::integers(Elem::INT64, &[places.len()], indices).into())?;
                let dtype = self.out.tensor(*id).dtype;
                let y = self.emit_as(Op::Gather { axis: 0 }, &[*id, indices], &[places.len()], dtype)?;
                match flat {
                    Value::Mask(_) => Value::Mask(y),
                    _ => Value::Tensor(y),
                }
            }
        };
        self.reshape(&y, shape)
    }

    /// The operand with updates at `places`, the last of several at one place.
    fn scattered(&mut self, view: View<'_, 'a>, x: &Value, updates: &Value, places: &[usize]) -> Result<Value> {
        let (shape, reduction) = (self.shape(x), view.text("reduction", "none")?);
        if let (Value::Array(x), Value::Array(updates)) = (x, updates) {
            return self.known_scatter(x, updates, places, reduction).map(Value::from);
        }
        if reduction != "none" {
            return Err(
                Error::unsupported(format!("the reduction `{reduction}` of updates that are computed"))
                    .expected("constants, or no reduction"),
            );
        }
        // Integers of one type: constants may be int64, what is computed is int32.
        let narrow = self.is_int32(x) || self.is_int32(updates);
        let of_one_type = |net: &mut Self, value: &Value| {
            let id = if narrow { net.int32(value) } else { net.tensor(value) };
            id.map(Value::Tensor)
        };
        let (x, updates) = (of_one_type(self, x)?, of_one_type(self, updates)?);
        if self.elem(&x) != self.elem(&updates) {
            return Err(Error::input(format!("updates of {}", self.elem(&updates).name()))
                .expected(format!("{}, the type of the operand", self.elem(&x).name())));
        }
        let (count, more) = (shape.iter().product::<usize>(), places.len());
        if self.elem(&x).dtype()? == DType::I64 {
            return Err(super::elem::unsupported(Elem::INT64, "a tensor that is computed"));
        }
        paid(&self.budget, Elem::INT64, &shape)?;
        let mut from: Vec<usize> = (0..count).collect();
        for (update, &place) in places.iter().enumerate() {
            from[place] = count + update;
        }
        let (x, updates) = (self.reshape(&x, &[count])?, self.reshape(&updates, &[more])?);
        let all = self.concat(&[x, updates], 0)?;
        self.picked(&all, &from, &shape)
    }

    fn known_scatter(&self, x: &Array, updates: &Array, places: &[usize], reduction: &str) -> Result<Array> {
        paid(&self.budget, x.elem, &x.shape)?;
        let unknown = || Error::input(format!("the reduction `{reduction}`")).expected("none, add, mul, max or min");
        let mut result = x.clone();
        result.steps = None;
        match (&mut result.data, &updates.data) {
            (Elements::Integers(values), Elements::Integers(updates)) => {
                for (&place, &update) in places.iter().zip(updates) {
                    let old = values[place];
                    values[place] = x.elem.wrap(match reduction {
                        "none" => update,
                        "add" => old.wrapping_add(update),
                        "mul" => old.wrapping_mul(update),
                        "max" => old.max(update),
                        "min" => old.min(update),
                        _ => return Err(unknown()),
                    });
                }
            }
            (Elements::Floats(values), Elements::Floats(updates)) => {
                for (&place, &update) in places.iter().zip(updates) {
                    let old = values[place];
                    values[place] = match reduction {
                        "none" => update,
                        "add" => old + update,
                        "mul" => old * update,
                        "max" if old.partial_cmp(&update) == Some(Ordering::Greater) || old.is_nan() => old,
                        "min" if old.partial_cmp(&update) == Some(Ordering::Less) || old.is_nan() => old,
                        "max" | "min" => update,
                        _ => return Err(unknown()),
                    };
                }
            }
            _ => {
                return Err(Error::input(format!("updates of {}", updates.elem.name()))
                    .expected(format!("{}, the type of the operand", x.elem.name())));
            }
        }
        Ok(result)
    }
}

/// An index that may be counted from the end.
fn index_of(index: i64, extent: usize) -> Result<usize> {
    axis_of(index, extent).map_err(|_| Error::input(format!("index {index} of {extent} elements")))
}
