//! Constants that are stored sparsely, as the dense ones that they stand for.
//!
//! The format is that of TACO (Kjolstad et al. 2017, "The Tensor Algebra Compiler") as the schema's `SparsityParameters` state it: levels in the order of
//! traversal, each dense or compressed (CSR), over the tensor's axes and then over the axes of its blocks. Values stand in the order of the last level.

use super::flatbuffer::Table;
use crate::error::{Error, Result};

/// `DimensionType` of the schema.
const DENSE: u8 = 0;
const SPARSE_CSR: u8 = 1;

/// One level of the traversal.
struct Level {
    /// Extent.
    size: usize,
    /// Elements of the dense tensor between neighbours of the level.
    stride: usize,
    /// Where it is compressed: the ends of the parts, and the indices of all parts.
    compressed: Option<[Vec<i64>; 2]>,
}

/// The dense, row-major bytes of a tensor of `shape`, of which `data` holds the values that are not zero, `element` bytes each.
///
/// # Errors
/// Names what contradicts the shape or itself.
pub(super) fn densify(sparsity: Table<'_>, shape: &[usize], data: &[u8], element: usize) -> Result<Vec<u8>> {
    let wrong =
        |what: String| Error::input(what).help("the sparse weights of the file are corrupt; convert the model again");
    let levels = levels(sparsity, shape).map_err(|error| error.at("its sparsity"))?;
    let bytes = shape.iter().product::<usize>() * element;
    let mut dense = vec![0; bytes];
    // Where the entries of the levels so far begin: in the dense tensor, in the order of storage.
    let mut places = vec![0_usize];
    for (number, level) in levels.iter().enumerate() {
        let mut next = Vec::new();
        for (entry, &place) in places.iter().enumerate() {
            match &level.compressed {
                None => next.extend((0..level.size).map(|i| place + i * level.stride)),
                Some([ends, indices]) => {
                    let part = ends.get(entry).zip(ends.get(entry + 1));
                    let part = part
                        .and_then(|(&from, &to)| indices.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?));
                    let part = part.ok_or_else(|| {
                        wrong(format!(
                            "level {number} has no part {entry} of its {} indices",
                            indices.len()
                        ))
                    })?;
                    let mut least = 0;
                    for &index in part {
                        let within = usize::try_from(index).ok().filter(|i| (least..level.size).contains(i));
                        let within = within.ok_or_else(|| {
                            wrong(format!("part {entry} of level {number} has the index {index}"))
                                .expected(format!("rising ones from {least} and below {}", level.size))
                        })?;
                        least = within + 1;
                        next.push(place + within * level.stride);
                    }
                }
            }
        }
        if let Some([ends, indices]) = &level.compressed
            && (ends.len() != places.len() + 1
                || ends.first() != Some(&0)
                || ends.last() != Some(&(indices.len() as i64)))
        {
            let text = format!(
                "level {number} has {} segments for {} indices",
                ends.len(),
                indices.len()
            );
            return Err(wrong(text).expected(format!("{} segments from 0 to the last index", places.len() + 1)));
        }
        places = next;
    }
    if data.len() != places.len() * element {
        return Err(wrong(format!("{} bytes of values", data.len())).expected(format!(
            "{} for {} values",
            places.len() * element,
            places.len()
        )));
    }
    for (place, value) in places.iter().zip(data.chunks_exact(element)) {
        dense[place * element..][..element].copy_from_slice(value);
    }
    Ok(dense)
}

/// The levels in the order of traversal; together they have as many places as the tensor has elements.
fn levels(sparsity: Table<'_>, shape: &[usize]) -> Result<Vec<Level>> {
    let order = once_each(sparsity.scalars::<i32>(0)?.to_vec())?;
    let blocks = sparsity.scalars::<i32>(1)?.to_vec();
    let metadata = sparsity.tables(2)?;
    let count = shape.len() + blocks.len();
    if order.len() != count || metadata.len() != count {
        let text = format!("{} levels, and an order of {}", metadata.len(), order.len());
        return Err(Error::input(text).expected(format!("{count}: the axes and the blocks")));
    }
    let mut block_sizes = vec![1; shape.len()];
    let mut is_blocked = vec![false; shape.len()];
    let mut blocked = Vec::new();
    for (block, &axis) in blocks.iter().enumerate() {
        let level = order.iter().position(|&dim| dim == shape.len() + block).unwrap_or(0);
        let size = size(metadata.get(level)?)?;
        let free = |axis: &usize| is_blocked.get(*axis) == Some(&false) && shape[*axis].is_multiple_of(size);
        let Some(axis) = usize::try_from(axis).ok().filter(free) else {
            return Err(Error::input(format!("blocks of {size} along axis {axis} of {shape:?}"))
                .expected("one block size for an axis, which its extent is a multiple of"));
        };
        (is_blocked[axis], block_sizes[axis]) = (true, size);
        blocked.push(axis);
    }
    let stride = |axis: usize| shape[axis + 1..].iter().product::<usize>();
    let level = |(level, &dim): (usize, &usize)| {
        let (size_is, stride) = match dim.checked_sub(shape.len()) {
            None => (shape[dim] / block_sizes[dim], stride(dim) * block_sizes[dim]),
            Some(block) => (block_sizes[blocked[block]], stride(blocked[block])),
        };
        let table = metadata.get(level)?;
        let compressed = match table.scalar::<u8>(0, DENSE)? {
            // A compressed level's own extent is not stated.
            DENSE if size(table)? != size_is => {
                return Err(Error::input(format!("level {level} of extent {}", size(table)?))
                    .expected(format!("{size_is}, for shape {shape:?}")));
            }
            DENSE => None,
            SPARSE_CSR => Some([numbers(table, 2)?, numbers(table, 4)?]),
            other => {
                return Err(Error::input(format!("level {level} of type {other}")).expected("0 (dense) or 1 (CSR)"));
            }
        };
        Ok(Level {
            size: size_is,
            stride,
            compressed,
        })
    };
    order.iter().enumerate().map(level).collect()
}

/// The numbers below their count, each once.
fn once_each(list: Vec<i32>) -> Result<Vec<usize>> {
    let mut free = vec![true; list.len()];
    let take = |(level, number): (usize, i32)| {
        let place = usize::try_from(number)
            .ok()
            .filter(|&place| free.get(place) == Some(&true));
        let place = place.ok_or_else(|| {
            Error::input(format!("level {level} in the order is dimension {number}"))
                .expected(format!("each below {} once", free.len()))
        })?;
        free[place] = false;
        Ok(place)
    };
    list.into_iter().enumerate().map(take).collect()
}

/// The extent that a level states.
fn size(table: Table<'_>) -> Result<usize> {
    let size = table.scalar::<i32>(1, 0)?;
    let size = usize::try_from(size).ok().filter(|&size| size > 0);
    size.ok_or_else(|| Error::input("a level without extent"))
}

/// The union `SparseIndexVector` whose type is field `field` and whose value the next one.
fn numbers(table: Table<'_>, field: usize) -> Result<Vec<i64>> {
    let kind = table.scalar::<u8>(field, 0)?;
    let value = table.table(field + 1)?;
    let value = value.ok_or_else(|| Error::input("a compressed level without segments or indices"))?;
    Ok(match kind {
        1 => value.scalars::<i32>(0)?.to_vec().into_iter().map(i64::from).collect(),
        2 => value.scalars::<u16>(0)?.to_vec().into_iter().map(i64::from).collect(),
        3 => value.scalars::<u8>(0)?.to_vec().into_iter().map(i64::from).collect(),
        other => {
            return Err(Error::input(format!("indices of type {other}")).expected("1 (int32), 2 (uint16) or 3 (uint8)"));
        }
    })
}
