//! Elements of tensors: their types in PyTorch's schema, and strided storage as rows.

use crate::build::{LARGEST_EXTENT, elements};
use crate::error::{Error, Result};
use crate::files::json::Json;
use crate::fold_budget::FoldBudget;
use crate::onnx::{ElementType, unsupported};

/// The type that `ScalarType` of PyTorch's schema numbers so; what has no counterpart is left to the importer of ONNX, which refuses it by name.
pub(super) fn element_type(number: i64) -> ElementType {
    match number {
        1 => ElementType::UINT8,
        2 => ElementType::INT8,
        3 => ElementType::INT16,
        4 => ElementType::INT32,
        5 => ElementType::INT64,
        6 => ElementType::FLOAT16,
        7 => ElementType::FLOAT,
        8 => ElementType::DOUBLE,
        9..=11 => ElementType::COMPLEX,
        12 => ElementType::BOOL,
        13 => ElementType::BFLOAT16,
        28 => ElementType::UINT16,
        _ => ElementType::UNDEFINED,
    }
}

/// The extents that have a number in PyTorch's schema, or an expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Extent {
    Known(i64),
    Expression(String),
}

impl Extent {
    pub(super) fn read(json: &Json<'_>) -> Result<Self> {
        let object = json.object()?;
        if let Some(known) = object.get("as_int") {
            return known.integer().map(Self::Known);
        }
        let expression = object.need("as_expr")?.object()?;
        expression.need("expr_str")?.string().map(Self::Expression)
    }
}

/// Metadata of a tensor in the schema.
#[derive(Debug, Clone)]
pub(super) struct Meta {
    pub(super) elem: ElementType,
    pub(super) sizes: Vec<Extent>,
    strides: Vec<Extent>,
    offset: Extent,
}

/// The most axes of a tensor.
const MOST_AXES: usize = 64;

impl Meta {
    pub(super) fn read(json: &Json<'_>) -> Result<Self> {
        let object = json.object()?;
        let list = |name: &str| -> Result<Vec<Extent>> {
            let items = object.need(name)?.array()?;
            if items.len() > MOST_AXES {
                return Err(json.error(format!("a shape of more than {MOST_AXES} axes")));
            }
            items.iter().map(Extent::read).collect()
        };
        Ok(Self {
            elem: element_type(object.need("dtype")?.integer()?),
            sizes: list("sizes")?,
            strides: list("strides")?,
            offset: Extent::read(object.need("storage_offset")?)?,
        })
    }

    /// The shape, where all of it is stated.
    pub(super) fn shape(&self) -> Option<Vec<i64>> {
        numbers(&self.sizes)
    }
}

fn numbers(extents: &[Extent]) -> Option<Vec<i64>> {
    let number = |extent: &Extent| match extent {
        Extent::Known(number) => Some(*number),
        Extent::Expression(_) => None,
    };
    extents.iter().map(number).collect()
}

/// A tensor whose elements lie row by row.
#[derive(Debug, Clone)]
pub(super) struct Strided {
    pub(super) elem: ElementType,
    pub(super) shape: Vec<i64>,
    pub(super) data: Vec<u8>,
}

impl Strided {
    /// The elements of `storage` that a tensor has.
    pub(super) fn read(meta: &Meta, storage: &[u8], budget: &FoldBudget) -> Result<Self> {
        let place = (
            meta.shape(),
            numbers(&meta.strides),
            numbers(std::slice::from_ref(&meta.offset)),
        );
        let (Some(shape), Some(strides), Some(offset)) = place else {
            return Err(Error::input("the shape of a parameter is not stated").expected("numbers"));
        };
        Self::of(meta.elem, shape, &strides, offset[0], storage, budget)
    }

    /// Likewise, of these extents, strides and offset, in elements.
    pub(super) fn of(
        elem: ElementType,
        shape: Vec<i64>,
        strides: &[i64],
        offset: i64,
        storage: &[u8],
        budget: &FoldBudget,
    ) -> Result<Self> {
        let width = elem.bytes().ok_or_else(|| unsupported(elem, "a constant"))?;
        let extents: Option<Vec<usize>> = shape.iter().map(|&n| usize::try_from(n).ok()).collect();
        let steps: Option<Vec<usize>> = strides.iter().map(|&n| usize::try_from(n).ok()).collect();
        let first = usize::try_from(offset).ok();
        let outside = || {
            Error::input(format!(
                "shape {shape:?}, strides {strides:?} and offset {offset} in {} bytes",
                storage.len()
            ))
            .expected("elements within what is stored")
        };
        let (Some(extents), Some(steps), Some(first)) = (extents, steps, first) else {
            return Err(outside());
        };
        let known = extents.iter().chain(&steps).all(|&n| n <= LARGEST_EXTENT * 64);
        if extents.len() != steps.len() || !known || first > storage.len() {
            return Err(outside());
        }
        let count = elements(&extents)?;
        let mut data = Vec::new();
        if count > 0 {
            let reach = extents.iter().zip(&steps).try_fold(first, |at, (&extent, &step)| {
                at.checked_add((extent - 1).checked_mul(step)?)
            });
            let end = reach.and_then(|last| last.checked_add(1)?.checked_mul(width));
            if end.is_none_or(|end| end > storage.len()) {
                return Err(outside());
            }
            budget.take(&elem.name(), &extents, width)?;
            data.reserve_exact(count * width);
            let mut place = vec![0_usize; extents.len()];
            let mut at = first;
            for _ in 0..count {
                data.extend_from_slice(storage.get(at * width..(at + 1) * width).unwrap_or_default());
                for axis in (0..extents.len()).rev() {
                    place[axis] += 1;
                    at += steps[axis];
                    if place[axis] < extents[axis] {
                        break;
                    }
                    at -= steps[axis] * extents[axis];
                    place[axis] = 0;
                }
            }
        }
        Ok(Self { elem, shape, data })
    }
}
