//! Rows of a table.

use super::row;
use crate::arena::{Mem, Slot};
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::embedding::{Embedding, EmbeddingW8};
use crate::ops::position::{OutOfRange, within};
use crate::ops::size::size;

/// Elements of any size.
#[derive(Debug)]
pub struct EmbeddingKernel;

impl Kernel for EmbeddingKernel {
    type Op = Embedding;

    const INDEXED: bool = true;

    fn out_of_range(op: &Embedding, mem: &Mem<'_>) -> Option<OutOfRange> {
        first_outside(mem, op.indices, op.count, op.rows)
    }

    fn run(op: &Embedding, mem: &Mem<'_>) -> Option<()> {
        match op.element {
            1 => copied::<u8>(op, mem),
            2 => copied::<i16>(op, mem),
            4 => copied::<u32>(op, mem),
            8 => copied::<i64>(op, mem),
            _ => None,
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for EmbeddingKernel {}

/// int8 with scales, into f32.
#[derive(Debug)]
pub struct W8;

impl Kernel for W8 {
    type Op = EmbeddingW8;

    const INDEXED: bool = true;

    fn out_of_range(op: &EmbeddingW8, mem: &Mem<'_>) -> Option<OutOfRange> {
        first_outside(mem, op.indices, op.count, op.rows)
    }

    fn run(op: &EmbeddingW8, mem: &Mem<'_>) -> Option<()> {
        // A step's numbers may have changed since they were checked, and pieces of no elements are a panic.
        let (width, share, groups) = (op.width as usize, (op.share as usize).max(1), op.groups() as usize);
        let table = mem.weights::<i8>(op.table, size(&[op.rows, op.width])?)?;
        let scales = mem.weights::<f32>(op.scales, size(&[op.rows, op.groups()])?)?;
        let output = mem.dst::<f32>(op.output, size(&[op.count, op.width])?)?;
        let indices = mem.src::<i32>(op.indices, op.count)?;
        for (i, index) in indices.iter().enumerate() {
            let index = within(index, op.rows).ok()?;
            let row = table.get(index.wrapping_mul(width)..)?.get(..width)?;
            let scales = scales.get(index.wrapping_mul(groups)..)?.get(..groups)?;
            let to = output.slice(i.wrapping_mul(width), width)?;
            for ((to, row), scale) in to.cells().chunks(share).zip(row.chunks(share)).zip(scales) {
                for (y, x) in to.iter().zip(row) {
                    y.set(f32::from(*x) * scale);
                }
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for W8 {}

fn copied<T: Element>(op: &Embedding, mem: &Mem<'_>) -> Option<()> {
    let width = op.width as usize;
    let output = mem.dst::<T>(op.output, size(&[op.count, op.width])?)?;
    let table = mem.src::<T>(op.table, size(&[op.rows, op.width])?)?;
    let indices = mem.src::<i32>(op.indices, op.count)?;
    for (i, index) in indices.iter().enumerate() {
        let from = row(table, within(index, op.rows).ok()?, width)?;
        let to = output.slice(i.wrapping_mul(width), width)?;
        for (y, x) in to.cells().iter().zip(from.iter()) {
            y.set(x);
        }
    }
    Some(())
}

/// The first index outside of the table.
fn first_outside(mem: &Mem<'_>, indices: Slot, count: u32, rows: u32) -> Option<OutOfRange> {
    let mut indices = mem.src::<i32>(indices, count)?.iter();
    indices.find_map(|index| within(index, rows).err())
}
