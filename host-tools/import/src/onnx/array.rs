//! Values that are known when importing, and what is computed of them then.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::elem::{Elem, unsupported};
use super::proto::Tensor;
use crate::build::elements;
use crate::error::{Error, Result};
use crate::fold_budget::FoldBudget;
use crate::graph::data::Expr;
use crate::graph::infer::broadcast;
use crate::graph::{DType, Data};
use crate::half;

/// A value that is known.
#[derive(Debug, Clone)]
pub(super) struct Array {
    pub(super) elem: Elem,
    pub(super) shape: Vec<usize>,
    pub(super) data: Elements,
    /// The initializer that it is made of, and that one's elements.
    pub(super) param: Option<(usize, u64)>,
    /// Of a value that is dequantised: of each element what it is a whole multiple of.
    pub(super) steps: Option<Rc<[f32]>>,
}

/// Elements, row-major. Booleans are 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Elements {
    Floats(Vec<f32>),
    Integers(Vec<i64>),
}

impl Array {
    pub(super) fn floats(shape: &[usize], values: Vec<f32>) -> Self {
        Self {
            elem: Elem::FLOAT,
            shape: shape.to_vec(),
            data: Elements::Floats(values),
            param: None,
            steps: None,
        }
    }

    pub(super) fn integers(elem: Elem, shape: &[usize], values: Vec<i64>) -> Self {
        Self {
            elem,
            shape: shape.to_vec(),
            data: Elements::Integers(values),
            param: None,
            steps: None,
        }
    }

    pub(super) fn scalar(value: f32) -> Self {
        Self::floats(&[], vec![value])
    }

    /// A value of one element in every place.
    pub(super) fn filled(budget: &FoldBudget, shape: &[usize], value: f32) -> Result<Self> {
        let count = paid(budget, Elem::FLOAT, shape)?;
        Ok(Self::floats(shape, vec![value; count]))
    }

    pub(super) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The integers of an operand that says how: axes, extents, paddings.
    pub(super) fn whole(&self, what: &str) -> Result<Vec<i64>> {
        match &self.data {
            Elements::Integers(values) => Ok(values.clone()),
            Elements::Floats(_) => {
                Err(Error::input(format!("the {what} are {}", self.elem.name())).expected("integers"))
            }
        }
    }

    /// The values as f32.
    pub(super) fn real(&self) -> Cow<'_, [f32]> {
        match &self.data {
            Elements::Floats(values) => Cow::Borrowed(values),
            Elements::Integers(values) => values.iter().map(|&v| v as f32).collect(),
        }
    }

    /// Where it is a single number, that number.
    pub(super) fn single(&self) -> Option<f32> {
        match (&self.data, self.len()) {
            (Elements::Floats(values), 1) => values.first().copied(),
            (Elements::Integers(values), 1) => values.first().map(|&v| v as f32),
            _ => None,
        }
    }

    /// The value of a tensor of the file; `bytes` are those of an external file.
    pub(super) fn read(tensor: &Tensor<'_>, bytes: Option<&[u8]>, budget: &FoldBudget) -> Result<Self> {
        let elem = Elem(tensor.elem);
        let at = |e: Error| e.at(format_args!("tensor `{}`", tensor.name));
        let extents: Option<Vec<usize>> = tensor.shape.iter().map(|&n| usize::try_from(n).ok()).collect();
        let shape = extents.ok_or_else(|| at(Error::input(format!("shape {:?}", tensor.shape))))?;
        let count = elements(&shape).map_err(at)?;
        let size = (elem.bytes_of(count)).ok_or_else(|| at(unsupported(elem, "a constant")))?;
        paid(budget, elem, &shape).map_err(at)?;
        let raw = bytes.or(tensor.raw);
        let data = match raw {
            Some(raw) if raw.len() == size && elem.is_nibble() => nibbles(elem, raw.iter().copied(), count),
            Some(raw) if raw.len() == size => from_raw(elem, raw),
            Some(raw) => {
                return Err(at(Error::input(format!("{} bytes of data", raw.len()))
                    .expected(format!("{size} for {} {shape:?}", elem.name()))));
            }
            None if elem.is_nibble() => {
                let (_, bytes) = tensor.typed(count).map_err(at)?;
                if bytes.len() != size {
                    return Err(at(Error::input(format!("{} pairs of elements of data", bytes.len()))
                        .expected(format!("{size} for {} {shape:?}", elem.name()))));
                }
                nibbles(elem, bytes.iter().map(|&byte| byte as u8), count)
            }
            None => {
                let (floats, integers) = tensor.typed(count).map_err(at)?;
                // Half floats stand as the bits of integers.
                let halves = matches!(elem, Elem::FLOAT16 | Elem::BFLOAT16);
                let data = match (elem.is_float(), halves) {
                    (true, false) => Elements::Floats(floats),
                    (true, true) => {
                        let bytes: Vec<u8> = integers.iter().flat_map(|&v| (v as u16).to_le_bytes()).collect();
                        from_raw(elem, &bytes)
                    }
                    _ => Elements::Integers(integers.iter().map(|&v| elem.wrap(v)).collect()),
                };
                let found = match &data {
                    Elements::Floats(values) => values.len(),
                    Elements::Integers(values) => values.len(),
                };
                if found != count {
                    return Err(at(Error::input(format!("{found} elements of data"))
                        .expected(format!("{count} for {} {shape:?}", elem.name()))));
                }
                data
            }
        };
        let elem = if elem.is_float() { Elem::FLOAT } else { elem };
        Ok(Self {
            elem,
            shape,
            data,
            param: None,
            steps: None,
        })
    }

    /// The same value as a tensor of the graph stores it.
    pub(super) fn stored(&self, budget: &FoldBudget) -> Result<(DType, Data)> {
        let dtype = self.elem.dtype()?;
        let width = dtype.bytes() * if self.steps.is_some() { 2 } else { 1 };
        budget.take(&self.elem.name(), &self.shape, width)?;
        if let Some(steps) = &self.steps {
            let values = self.real();
            let multiples = values.iter().zip(steps.iter()).map(|(v, step)| (v / step).round());
            let expr = Expr::multiples(multiples.collect(), steps.to_vec(), &self.shape);
            return Ok((dtype, Data::Lazy(Arc::new(expr))));
        }
        let bytes: Vec<u8> = match &self.data {
            Elements::Floats(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Elements::Integers(values) => {
                let width = dtype.bytes();
                let each = |v: &i64| v.to_le_bytes().into_iter().take(width);
                values.iter().flat_map(each).collect()
            }
        };
        Ok((dtype, Data::Bytes(bytes.into())))
    }

    /// The elements of a walk over this one's, as an array of the walk's extents.
    fn walked(&self, budget: &FoldBudget, walk: &Walk<'_>) -> Result<Self> {
        paid(budget, self.elem, walk.shape)?;
        if self.steps.is_some() {
            paid(budget, Elem::FLOAT, walk.shape)?;
        }
        let data = match &self.data {
            Elements::Floats(values) => Elements::Floats(walk.of(values)),
            Elements::Integers(values) => Elements::Integers(walk.of(values)),
        };
        Ok(Self {
            elem: self.elem,
            shape: walk.shape.to_vec(),
            data,
            param: self.param,
            steps: self.steps.as_ref().map(|steps| walk.of(steps).into()),
        })
    }

    pub(super) fn reshaped(&self, budget: &FoldBudget, shape: &[usize]) -> Result<Self> {
        paid(budget, self.elem, &self.shape)?;
        Ok(Self {
            shape: shape.to_vec(),
            ..self.clone()
        })
    }

    /// Axis `i` of the result is axis `perm[i]`.
    pub(super) fn permuted(&self, budget: &FoldBudget, perm: &[usize]) -> Result<Self> {
        let strides = strides(&self.shape);
        let shape: Vec<usize> = perm.iter().map(|&axis| self.shape[axis]).collect();
        let strides: Vec<isize> = perm.iter().map(|&axis| strides[axis]).collect();
        self.walked(budget, &Walk::new(&shape, &strides, 0))
    }

    /// Element `i` along axis `a` is element `begin[a] + i * step[a]`.
    pub(super) fn sliced(
        &self,
        budget: &FoldBudget,
        begin: &[usize],
        step: &[isize],
        extents: &[usize],
    ) -> Result<Self> {
        let inner = strides(&self.shape);
        let from: isize = begin.iter().zip(&inner).map(|(&b, s)| b as isize * s).sum();
        let moved: Vec<isize> = inner.iter().zip(step).map(|(a, b)| a * b).collect();
        self.walked(budget, &Walk::new(extents, &moved, from))
    }

    /// NumPy's broadcasting to `shape`.
    pub(super) fn broadcast(&self, budget: &FoldBudget, shape: &[usize]) -> Result<Cow<'_, Self>> {
        if self.shape == shape {
            return Ok(Cow::Borrowed(self));
        }
        if broadcast(&self.shape, shape)? != shape {
            return Err(Error::input(format!(
                "a value of shape {:?} for one of {shape:?}",
                self.shape
            )));
        }
        let inner = strides(&self.shape);
        let lead = shape.len() - self.shape.len().min(shape.len());
        let strides: Vec<isize> = (0..shape.len())
            .map(|axis| match axis.checked_sub(lead) {
                Some(own) if self.shape[own] != 1 => inner[own],
                _ => 0,
            })
            .collect();
        self.walked(budget, &Walk::new(shape, &strides, 0)).map(Cow::Owned)
    }

    /// Arrays one after another along `axis`.
    pub(super) fn joined<'v>(budget: &FoldBudget, parts: &[&'v Array], axis: usize) -> Result<Self> {
        let Some(first) = parts.first() else {
            return Err(Error::input("nothing to concatenate"));
        };
        let mut shape = first.shape.clone();
        shape[axis] = parts.iter().map(|p| p.shape[axis]).sum();
        paid(budget, first.elem, &shape)?;
        let outer: usize = shape[..axis].iter().product();
        let row = |p: &Array| p.shape[axis..].iter().product::<usize>();
        let floats = parts.iter().any(|p| matches!(p.data, Elements::Floats(_)));
        let data = if floats {
            let parts: Vec<(Cow<'_, [f32]>, usize)> = parts.iter().map(|p| (p.real(), row(p))).collect();
            let rows = (0..outer).flat_map(|i| parts.iter().flat_map(move |(v, n)| &v[i * n..(i + 1) * n]));
            Elements::Floats(rows.copied().collect())
        } else {
            let integers = |p: &&'v Array| match &p.data {
                Elements::Integers(values) => Some((values.as_slice(), row(p))),
                Elements::Floats(_) => None,
            };
            let parts: Vec<(&[i64], usize)> = parts.iter().filter_map(integers).collect();
            let rows = (0..outer).flat_map(|i| parts.iter().flat_map(move |(v, n)| &v[i * n..(i + 1) * n]));
            Elements::Integers(rows.copied().collect())
        };
        Ok(Self {
            elem: first.elem,
            shape,
            data,
            param: parts.iter().find_map(|p| p.param),
            steps: None,
        })
    }

    /// The elements that `indices` choose along `axis`.
    pub(super) fn gathered(&self, budget: &FoldBudget, axis: usize, indices: &[usize]) -> Result<Self> {
        let mut shape = self.shape.clone();
        shape[axis] = indices.len();
        paid(budget, self.elem, &shape)?;
        if self.steps.is_some() {
            paid(budget, Elem::FLOAT, &shape)?;
        }
        let inner: usize = self.shape[axis + 1..].iter().product();
        let rows = Rows {
            outer: self.shape[..axis].iter().product(),
            row: self.shape[axis] * inner,
            inner,
            indices,
        };
        Ok(Self {
            elem: self.elem,
            data: match &self.data {
                Elements::Floats(values) => Elements::Floats(rows.of(values)),
                Elements::Integers(values) => Elements::Integers(rows.of(values)),
            },
            shape,
            param: self.param,
            steps: self.steps.as_ref().map(|steps| rows.of(steps).into()),
        })
    }

    /// `f` of each element, as floats.
    pub(super) fn map(&self, budget: &FoldBudget, f: impl Fn(f32) -> f32) -> Result<Self> {
        paid(budget, Elem::FLOAT, &self.shape)?;
        Ok(Self {
            param: self.param,
            ..Self::floats(&self.shape, self.real().iter().copied().map(f).collect())
        })
    }

    /// As another type, as Cast converts.
    pub(super) fn cast(&self, budget: &FoldBudget, to: Elem) -> Result<Self> {
        paid(budget, to, &self.shape)?;
        let data = match (&self.data, to) {
            (data, to) if to == self.elem => data.clone(),
            (_, to) if to.is_float() => Elements::Floats(self.real().into_owned()),
            (Elements::Floats(values), Elem::BOOL) => {
                Elements::Integers(values.iter().map(|&v| i64::from(v != 0.0)).collect())
            }
            (Elements::Floats(values), _) => Elements::Integers(values.iter().map(|&v| to.wrap(v as i64)).collect()),
            (Elements::Integers(values), _) => Elements::Integers(values.iter().map(|&v| to.wrap(v)).collect()),
        };
        if to.bytes_of(1).is_none() {
            return Err(unsupported(to, "the result of a cast"));
        }
        Ok(Self {
            elem: if to.is_float() { Elem::FLOAT } else { to },
            shape: self.shape.clone(),
            data,
            param: self.param,
            steps: None,
        })
    }
}

/// Pays for a value of this type before it is computed: the number of its elements.
pub(super) fn paid(budget: &FoldBudget, elem: Elem, shape: &[usize]) -> Result<usize> {
    let (name, bytes) = if elem.is_float() {
        ("float".to_string(), 4)
    } else {
        (elem.name(), 8)
    };
    budget.take(&name, shape, bytes)
}

/// Elements between neighbours along each axis.
fn strides(shape: &[usize]) -> Vec<isize> {
    (0..shape.len())
        .map(|axis| shape[axis + 1..].iter().product::<usize>() as isize)
        .collect()
}

/// A walk along axes, outermost first.
struct Walk<'s> {
    shape: &'s [usize],
    strides: &'s [isize],
    from: isize,
}

impl<'s> Walk<'s> {
    fn new(shape: &'s [usize], strides: &'s [isize], from: isize) -> Self {
        Self { shape, strides, from }
    }

    /// The elements at its places.
    fn of<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let mut picked = Vec::with_capacity(self.shape.iter().product());
        if self.shape.contains(&0) {
            return picked;
        }
        // The innermost axis is a loop of its own.
        let (extent, outer) = self.shape.split_last().map_or((1, &[][..]), |(&n, outer)| (n, outer));
        let step = self.strides.last().copied().unwrap_or(0);
        let (mut place, mut at) = (vec![0; outer.len()], self.from);
        loop {
            picked.extend((0..extent as isize).map(|i| values[(at + i * step) as usize]));
            let mut axis = outer.len();
            loop {
                if axis == 0 {
                    return picked;
                }
                axis -= 1;
                place[axis] += 1;
                at += self.strides[axis];
                if place[axis] < outer[axis] {
                    break;
                }
                at -= self.strides[axis] * outer[axis] as isize;
                place[axis] = 0;
            }
        }
    }
}

/// Rows of elements, chosen by index.
struct Rows<'s> {
    outer: usize,
    /// Elements of all that an index chooses from, and of what one index chooses.
    row: usize,
    inner: usize,
    indices: &'s [usize],
}

impl Rows<'_> {
    fn of<T: Copy>(&self, values: &[T]) -> Vec<T> {
        let mut picked = Vec::with_capacity(self.outer * self.indices.len() * self.inner);
        for outer in 0..self.outer {
            for &index in self.indices {
                let from = outer * self.row + index * self.inner;
                picked.extend_from_slice(&values[from..from + self.inner]);
            }
        }
        picked
    }
}

/// Elements of four bits, two a byte: the first is the lower half.
fn nibbles(elem: Elem, bytes: impl Iterator<Item = u8>, count: usize) -> Elements {
    let halves = bytes.flat_map(|byte| [byte & 0xF, byte >> 4]).take(count);
    Elements::Integers(halves.map(|half| elem.wrap(half.into())).collect())
}

fn from_raw(elem: Elem, raw: &[u8]) -> Elements {
    let pairs = || raw.as_chunks::<2>().0.iter().copied();
    let words = || raw.as_chunks::<4>().0.iter().copied();
    let longs = || raw.as_chunks::<8>().0.iter().copied();
    match elem {
        Elem::FLOAT => Elements::Floats(words().map(f32::from_le_bytes).collect()),
        Elem::DOUBLE => Elements::Floats(longs().map(|b| f64::from_le_bytes(b) as f32).collect()),
        Elem::FLOAT16 => Elements::Floats(pairs().map(|b| half::to_f32(u16::from_le_bytes(b))).collect()),
        Elem::BFLOAT16 => {
            let wide = |b| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16);
            Elements::Floats(pairs().map(wide).collect())
        }
        Elem::INT8 => Elements::Integers(raw.iter().map(|&b| i64::from(b as i8)).collect()),
        Elem::BOOL => Elements::Integers(raw.iter().map(|&b| i64::from(b != 0)).collect()),
        Elem::INT16 => Elements::Integers(pairs().map(|b| i64::from(i16::from_le_bytes(b))).collect()),
        Elem::UINT16 => Elements::Integers(pairs().map(|b| i64::from(u16::from_le_bytes(b))).collect()),
        Elem::INT32 => Elements::Integers(words().map(|b| i64::from(i32::from_le_bytes(b))).collect()),
        Elem::UINT32 => Elements::Integers(words().map(|b| i64::from(u32::from_le_bytes(b))).collect()),
        Elem::INT64 | Elem::UINT64 => Elements::Integers(longs().map(i64::from_le_bytes).collect()),
        _ => Elements::Integers(raw.iter().map(|&b| i64::from(b)).collect()),
    }
}
