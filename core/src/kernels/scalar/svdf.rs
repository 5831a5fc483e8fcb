//! SVDF, straight from the formula.

use super::clamp;
use super::int::Int;
use crate::arena::Mem;
use crate::cells::{Dst, Element};
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::size::size;
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
            DType::I16 => run_s8::<i16>(op, mem, (-32768, 32767)),
            _ => run_s8::<i8>(op, mem, (-128, 127)),
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
        shift(state);
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

fn run_s8<S: Int>(op: &SvdfS8, mem: &Mem<'_>, (low, high): (i32, i32)) -> Option<()> {
    let shape = op.shape;
    let (features, memory, rank) = (shape.features as usize, shape.memory as usize, shape.rank as usize);
    let filters = shape.filters();
    let input = mem.src::<i8>(op.input, shape.batch.checked_mul(shape.features)?)?;
    let output = mem.dst::<i8>(op.output, shape.batch.checked_mul(shape.units)?)?;
    let state = mem.dst::<S>(op.state, states(&shape)?)?;
    let weights = mem.weights::<i8>(op.weights, filters.checked_mul(shape.features)?)?;
    let time_weights = mem.weights::<S>(op.time_weights, filters.checked_mul(shape.memory)?)?;
    let bias = mem.weights::<i32>(op.bias, shape.units)?;
    let [zero_in, zero_state, zero_out] = op.zero;
    let [into_state, into_output] = op.multipliers;
    shift(state);
    for b in 0..shape.batch as usize {
        let x = input.slice(b * features, features)?;
        let y = output.slice(b * shape.units as usize, shape.units as usize)?;
        for (u, (y, bias)) in y.cells().iter().zip(bias).enumerate() {
            let mut sum = *bias;
            for f in u * rank..(u + 1) * rank {
                let w = weights.get(f * features..)?.get(..features)?;
                let newest = (x.iter().zip(w)).fold(0_i32, |sum, (x, &w)| {
                    sum.wrapping_add(i32::from(w).wrapping_mul(i32::from(x).wrapping_sub(zero_in)))
                });
                let newest = into_state.apply(newest).clamp(low, high).wrapping_add(zero_state);
                let row = state.slice((b * filters as usize + f) * memory, memory)?;
                row.set(memory - 1, S::narrow(newest))?;
                let v = time_weights.get(f * memory..)?.get(..memory)?;
                for (s, v) in row.as_src().iter().zip(v) {
                    sum = sum.wrapping_add(v.widen().wrapping_mul(s.widen().wrapping_sub(zero_state)));
                }
            }
            let scaled = into_output.apply(sum).wrapping_add(zero_out);
            y.set(scaled.clamp(-128, 127) as i8);
        }
    }
    Some(())
}

fn states(shape: &SvdfShape) -> Option<u32> {
    size(&[shape.batch, shape.filters(), shape.memory])
}

/// Every element takes the next one's value; the newest of each filter is written over afterwards.
fn shift<T: Element>(state: Dst<'_, T>) {
    for pair in state.cells().windows(2) {
        if let [older, newer] = pair {
            older.set(newer.get());
        }
    }
}
