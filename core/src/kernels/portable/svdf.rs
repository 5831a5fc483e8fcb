//! SVDF, straight from the formula.

use super::clamp;
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::delay_line::advance;
use crate::kernels::primitives::dot_s8::{Products, lines, rows_s8};
use crate::kernels::primitives::requantize::lines::Rescaled;
#[cfg(packing)]
use crate::kernels::primitives::svdf_state::s16_args::short;
use crate::kernels::primitives::svdf_state::s16_args::{Constants, Row};
use crate::ops::size::{product, size};
use crate::ops::svdf::{SvdfF32, SvdfS8, SvdfShape};
use crate::tensor::DType;

/// int8, with int8 or int16 state.
#[derive(Debug)]
pub struct S8;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for S8 {
    type Op = SvdfS8;

    fn run(op: &SvdfS8, mem: &Mem<'_>) -> Option<()> {
        match op.state_type {
            DType::I16 => run_s8::<i16>(op, mem, (-32768, 32767), wide),
            _ => run_s8::<i8>(op, mem, (-128, 127), |_, _, _| Some(false)),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {}

impl Kernel for F32 {
    type Op = SvdfF32;

    fn run(op: &SvdfF32, mem: &Mem<'_>) -> Option<()> {
        let shape = op.shape;
        let (features, memory, rank) = (shape.features as usize, shape.memory as usize, shape.rank as usize);
        let filters = shape.filters();
        let input = mem.src::<f32>(op.input, shape.batch.checked_mul(shape.features)?)?;
        let output = mem.dst::<f32>(op.output, shape.batch.checked_mul(shape.units)?)?;
        let state = mem.dst::<f32>(op.state, states(&shape)?)?;
        let weights = mem.weights::<f32>(op.weights, filters.checked_mul(shape.features)?)?;
        let time_weights = mem.weights::<f32>(op.time_weights, filters.checked_mul(shape.memory)?)?;
        let bias = mem.weights::<f32>(op.bias, shape.units)?;
        advance(state);
        for b in 0..shape.batch as usize {
            let x = input.slice(b * features, features)?;
            let y = output.slice(b * shape.units as usize, shape.units as usize)?;
            for (u, (y, bias)) in y.cells().iter().zip(bias).enumerate() {
                let mut sum = *bias;
                for f in u * rank..(u + 1) * rank {
                    let w = weights.get(f * features..)?.get(..features)?;
                    let newest = x.iter().zip(w).fold(0.0, |sum, (x, w)| sum + w * x);
                    let row = state.slice((b * filters as usize + f) * memory, memory)?;
                    row.set(memory - 1, newest)?;
                    let v = time_weights.get(f * memory..)?.get(..memory)?;
                    sum += row.as_src().iter().zip(v).fold(0.0, |sum, (s, v)| sum + v * s);
                }
                y.set(clamp(sum, op.clamp));
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// Whether a layer of int16 state is one for these loops; some take even memories alone.
#[cfg(packing)]
pub fn is_short(op: &SvdfS8) -> bool {
    short(op).is_some()
}

/// A row by loops of its own; `false` on cores that have none for the layer.
fn wide(op: &SvdfS8, row: Row<'_, i16>, constants: Constants<'_, i16>) -> Option<bool> {
    #[cfg(kernel_isa = "gpr32")]
    return crate::kernels::primitives::svdf_state::s16::run(op, row, constants);
    #[cfg(not(kernel_isa = "gpr32"))]
    {
        let _ = (op, row, constants);
        Some(false)
    }
}

fn run_s8<S: Products>(
    op: &SvdfS8,
    mem: &Mem<'_>,
    limits: (i32, i32),
    loops: impl Fn(&SvdfS8, Row<'_, S>, Constants<'_, S>) -> Option<bool>,
) -> Option<()> {
    let shape = op.shape;
    let (features, units) = (shape.features as usize, shape.units as usize);
    let input = mem.src::<i8>(op.input, product(shape.batch, shape.features)?)?;
    let output = mem.dst::<i8>(op.output, product(shape.batch, shape.units)?)?;
    let state = mem.dst::<S>(op.state, states(&shape)?)?;
    let weights = mem.weights::<i8>(op.weights, product(shape.filters(), shape.features)?)?;
    let time_weights = mem.weights::<S>(op.time_weights, product(shape.filters(), shape.memory)?)?;
    let bias = mem.weights::<i32>(op.bias, shape.units)?;
    let len = product(shape.filters(), shape.memory)? as usize;
    let rows = |b: usize| {
        Some((
            input.slice(b * features, features)?,
            output.slice(b * units, units)?,
            state.slice(b * len, len)?,
        ))
    };
    let batch = shape.batch as usize;
    // They take all rows or none.
    let mut taken = 0;
    while taken < batch && loops(op, rows(taken)?, (weights, time_weights, bias))? {
        taken += 1;
    }
    if taken == batch {
        return Some(());
    }
    // The newest of each filter is written over below.
    advance(state);
    for b in 0..batch {
        let (x, y, state) = rows(b)?;
        append(op, x, weights, state, limits)?;
        finish(op, state.as_src(), time_weights, bias, y)?;
    }
    Some(())
}

/// Each filter's sum over the features, to the end of its memory.
// Functions by themselves: in one with all kernels the loops would have no registers.
#[inline(never)]
fn append<S: Products>(
    op: &SvdfS8,
    x: Src<'_, i8>,
    weights: &[i8],
    state: Dst<'_, S>,
    limits: (i32, i32),
) -> Option<()> {
    let (memory, filters) = (op.shape.memory as usize, op.shape.filters() as usize);
    let [zero_in, zero_state, _] = op.zero;
    let [into_state, _] = op.multipliers;
    let into_state = Rescaled::new(into_state, 0, limits, zero_state);
    let mut newest = memory.wrapping_sub(1);
    rows_s8(x, zero_in, weights, filters, |sums| {
        into_state.put(sums, state, newest, memory)?;
        newest = newest.wrapping_add(memory.wrapping_mul(sums.len()));
        Some(())
    })
}

/// Each unit's sum over its filters and their memories: these lie together, in the state and in its weights.
#[inline(never)]
fn finish<S: Products>(op: &SvdfS8, state: Src<'_, S>, time_weights: &[S], bias: &[i32], y: Dst<'_, i8>) -> Option<()> {
    let len = op.shape.rank as usize * op.shape.memory as usize;
    let [_, zero_state, zero_out] = op.zero;
    let [_, into_output] = op.multipliers;
    let into_output = Rescaled::new(into_output, zero_out, (-128, 127), 0);
    let mut first = 0;
    lines(state, zero_state, time_weights, bias, len, |sums| {
        into_output.put(sums, y, first, 1)?;
        first = first.wrapping_add(sums.len());
        Some(())
    })
}

fn states(shape: &SvdfShape) -> Option<u32> {
    size(&[shape.batch, shape.filters(), shape.memory])
}
