//! Attention over the lines of a state, a query head at a time: no matrix of scores exists.

use super::row;
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dot_f32::dot;
use crate::ops::attention::AttentionF32;
use crate::ops::operator::Needs;
use crate::ops::position::{OutOfRange, index_at};
use crate::ops::size::size;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = AttentionF32;

    const INDEXED: bool = true;

    fn out_of_range(op: &AttentionF32, mem: &Mem<'_>) -> Option<OutOfRange> {
        index_at(mem, op.position, op.capacity)?.err()
    }

    fn needs(op: &AttentionF32) -> Needs {
        Needs {
            scratch: op.scores(),
            weights: 0,
        }
    }

    /// A head of the query is read before the same head of the output is written.
    fn distance(_: &AttentionF32, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &AttentionF32, mem: &Mem<'_>) -> Option<()> {
        let lines = index_at(mem, op.position, op.capacity)?.ok()?.wrapping_add(1);
        let (width, capacity) = (op.width as usize, op.capacity as usize);
        let query = mem.src::<f32>(op.query, size(&[op.heads, op.width])?)?;
        let output = mem.dst::<f32>(op.output, size(&[op.heads, op.width])?)?;
        let cached = size(&[op.kv_heads, op.capacity, op.width])?;
        let keys = mem.src::<f32>(op.keys, cached)?;
        let values = mem.src::<f32>(op.values, cached)?;
        let scores = mem.dst::<f32>(op.scratch, op.capacity)?.slice(0, lines)?;
        let group = op.heads.checked_div(op.kv_heads)? as usize;
        for head in 0..op.heads as usize {
            // Where the head's lines begin, in elements.
            let from = head.checked_div(group)?.wrapping_mul(capacity).wrapping_mul(width);
            let all = lines.wrapping_mul(width);
            let sum = softmax(row(query, head, width)?, keys.slice(from, all)?, op.scale, scores)?;
            let y = output.slice(head.wrapping_mul(width), width)?;
            weigh(scores.as_src(), values.slice(from, all)?, sum, y)?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// Exponentials of the scores of a query, less the largest one, into `scores`, and their sum. `keys` has a line for each score.
fn softmax(query: Src<'_, f32>, keys: Src<'_, f32>, scale: f32, scores: Dst<'_, f32>) -> Option<f32> {
    let mut max = f32::NEG_INFINITY;
    for (line, score) in scores.cells().iter().enumerate() {
        let found = dot(query, row(keys, line, query.len())?) * scale;
        score.set(found);
        if found > max {
            max = found;
        }
    }
    let mut sum = 0.0;
    for score in scores.cells() {
        let power = libm::expf(score.get() - max);
        sum += power;
        score.set(power);
    }
    Some(sum)
}

/// Columns of the values that are summed at a time: as many as registers hold.
const COLUMNS: usize = 8;

/// `y[c] = sum over t of weights[t] * values[t, c] / sum`.
fn weigh(weights: Src<'_, f32>, values: Src<'_, f32>, sum: f32, y: Dst<'_, f32>) -> Option<()> {
    let width = y.cells().len();
    for (block, y) in y.cells().chunks(COLUMNS).enumerate() {
        let mut sums = [0.0_f32; COLUMNS];
        let mut from = block.wrapping_mul(COLUMNS);
        for weight in weights.iter() {
            for (sum, value) in sums.iter_mut().zip(values.slice(from, y.len())?.iter()) {
                *sum += weight * value;
            }
            from = from.wrapping_add(width);
        }
        y.iter().zip(sums).for_each(|(y, found)| y.set(found / sum));
    }
    Some(())
}
