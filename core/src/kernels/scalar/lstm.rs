//! LSTM, straight from the formula.
//!
//! All gates of a time read the hidden state of the time before, so the new one is written to the output first and copied to the state
//! when the time is complete.

use super::int::Int;
use crate::arena::Mem;
use crate::blocks::blocks;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::dot::{MOST, rows_s8};
use crate::kernels::kernel::Kernel;
use crate::kernels::rescaled::Rescaled;
use crate::kernels::wide;
use crate::ops::lstm::{LstmF32, LstmInt, LstmShape};
use crate::quant::{Multiplier, Rescaler, SigmoidI16};
use crate::tensor::DType;

/// int8 or int16 activations.
#[derive(Debug)]
pub struct Quantised;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for Quantised {
    type Op = LstmInt;

    fn run(op: &LstmInt, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::I16 => quantised::<i16>(op, mem, (-32768, 32767)),
            _ => quantised::<i8>(op, mem, (-128, 127)),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for Quantised {}

impl Kernel for F32 {
    type Op = LstmF32;

    fn run(op: &LstmF32, mem: &Mem<'_>) -> Option<()> {
        let shape = &op.shape;
        let (features, cells) = (shape.features as usize, shape.cells as usize);
        let mut gates = [(&[][..], &[][..], &[][..]); 4];
        for (gate, offsets) in gates.iter_mut().zip(&shape.gates) {
            *gate = (
                mem.weights::<f32>(offsets.weights, shape.cells.checked_mul(shape.features)?)?,
                mem.weights::<f32>(offsets.recurrent, shape.cells.checked_mul(shape.cells)?)?,
                mem.weights::<f32>(offsets.bias, shape.cells)?,
            );
        }
        let dot = |w: &[f32], x: Src<'_, f32>| x.iter().zip(w).fold(0.0_f32, |sum, (x, w)| sum + x * w);
        let logistic = |x: f32| 1.0 / (1.0 + libm::expf(-x));
        each_time::<f32, f32>(shape, mem, |x, h, c, y| {
            for j in 0..cells {
                let mut sums = [0.0; 4];
                for (sum, (weights, recurrent, bias)) in sums.iter_mut().zip(gates) {
                    let w = weights.get(j * features..)?.get(..features)?;
                    let r = recurrent.get(j * cells..)?.get(..cells)?;
                    *sum = (dot(w, x) + bias.get(j)?) + dot(r, h.as_src());
                }
                let [input, forget, cell, output] = sums;
                let mut state = logistic(forget) * c.as_src().get(j)? + logistic(input) * libm::tanhf(cell);
                if op.clip > 0.0 {
                    state = super::clamp(state, [-op.clip, op.clip]);
                }
                c.set(j, state)?;
                y.set(j, libm::tanhf(state) * logistic(output))?;
            }
            Some(())
        })
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// Cells at a time.
const BLOCK: usize = MOST;

/// An activation.
trait Activation: Int {
    /// An element of the biases.
    type Bias: Element;

    /// `multiplier * (bias + sum of (x[i] - zero) * row[i])`, saturated, for as many rows of `weights` as there are sums; without biases these are 0.
    fn scaled(
        x: Src<'_, Self>,
        zero: i32,
        weights: &[i8],
        bias: Option<&[Self::Bias]>,
        multiplier: Multiplier,
        sums: &mut [i16],
    ) -> Option<()>;
}

impl Activation for i8 {
    type Bias = i32;

    // A function by itself: in one with all gates the loops would have no registers.
    #[inline(never)]
    fn scaled(
        x: Src<'_, i8>,
        zero: i32,
        weights: &[i8],
        bias: Option<&[i32]>,
        multiplier: Multiplier,
        sums: &mut [i16],
    ) -> Option<()> {
        let scale = Rescaled::new(multiplier, 0, (-32768, 32767), 0);
        let count = sums.len().min(BLOCK);
        rows_s8(x, zero, weights, count, |found| {
            for (sum, bias) in found.iter_mut().zip(bias.unwrap_or_default()) {
                *sum = sum.wrapping_add(*bias);
            }
            scale.fill(found, sums);
            Some(())
        })
    }
}

impl Activation for i16 {
    type Bias = i64;

    #[inline(never)]
    fn scaled(
        x: Src<'_, i16>,
        zero: i32,
        weights: &[i8],
        bias: Option<&[i64]>,
        multiplier: Multiplier,
        sums: &mut [i16],
    ) -> Option<()> {
        let (len, mut at) = (x.len(), 0);
        for sums in sums.chunks_mut(4) {
            let found = match wide::rows(x, weights, at) {
                Some(found) if zero == 0 => found.map(i64::from),
                _ => {
                    let mut found = [0_i64; 4];
                    for (found, row) in found.iter_mut().zip(blocks(weights.get(at * len..)?, len)) {
                        *found = x.iter().zip(row).fold(0, |sum: i64, (x, &w)| {
                            sum.wrapping_add(i64::from(x.widen().wrapping_sub(zero)) * i64::from(w))
                        });
                    }
                    found
                }
            };
            for ((sum, found), i) in sums.iter_mut().zip(found).zip(at..) {
                let bias = bias.and_then(|bias| bias.get(i)).copied().unwrap_or(0);
                *sum = saturate(multiplier.apply_wide(found.wrapping_add(bias)));
            }
            at += 4;
        }
        Some(())
    }
}

fn quantised<A: Activation>(op: &LstmInt, mem: &Mem<'_>, (low, high): (i32, i32)) -> Option<()> {
    let shape = &op.shape;
    let (features, cells) = (shape.features as usize, shape.cells as usize);
    let mut gates = [(&[][..], &[][..], &[][..]); 4];
    for (gate, offsets) in gates.iter_mut().zip(&shape.gates) {
        *gate = (
            mem.weights::<i8>(offsets.weights, shape.cells.checked_mul(shape.features)?)?,
            mem.weights::<i8>(offsets.recurrent, shape.cells.checked_mul(shape.cells)?)?,
            mem.weights::<A::Bias>(offsets.bias, shape.cells)?,
        );
    }
    each_time::<A, i16>(shape, mem, |x, h, c, y| {
        let mut first = 0;
        while first < cells {
            let count = (cells - first).min(BLOCK);
            let (mut sums, mut from_hidden) = ([[0_i16; BLOCK]; 4], [0_i16; BLOCK]);
            for ((sums, (weights, recurrent, bias)), scales) in sums.iter_mut().zip(gates).zip(&op.gates) {
                let (sums, more) = (sums.get_mut(..count)?, from_hidden.get_mut(..count)?);
                let (weights, recurrent) = (weights.get(first * features..)?, recurrent.get(first * cells..)?);
                let &[of_input, of_hidden] = scales;
                A::scaled(x, op.zero[0], weights, Some(bias.get(first..)?), of_input, sums)?;
                A::scaled(h.as_src(), op.zero[1], recurrent, None, of_hidden, more)?;
                for (sum, more) in sums.iter_mut().zip(more) {
                    *sum = sum.saturating_add(*more);
                }
            }
            finish(op, &sums, c.slice(first, count)?, y.slice(first, count)?, (low, high));
            first += count;
        }
        Some(())
    })
}

/// New states of a block of cells from their gates' sums.
#[inline(never)]
fn finish<A: Activation>(
    op: &LstmInt,
    [input, forget, cell, output]: &[[i16; BLOCK]; 4],
    states: Dst<'_, i16>,
    y: Dst<'_, A>,
    (low, high): (i32, i32),
) {
    // Gates have scale 2^-12, which the table takes as it is.
    const GATE: SigmoidI16 = SigmoidI16::power_of_two(0);
    let [keep, add, show] = op.products.map(Rescaler::new);
    let product = |m: &Rescaler, a: i16, b: i16| m.apply(i32::from(a) * i32::from(b));
    let limit = if op.clip > 0 { op.clip } else { i16::MAX };
    let least = if op.clip > 0 { op.clip.wrapping_neg() } else { i16::MIN };
    let of_gates = input.iter().zip(forget).zip(cell.iter().zip(output));
    for ((state, y), ((&input, &forget), (&cell, &output))) in states.cells().iter().zip(y.cells()).zip(of_gates) {
        let kept = saturate(product(&keep, GATE.logistic(forget), state.get()));
        let added = saturate(product(&add, GATE.logistic(input), GATE.tanh(cell)));
        let new = kept.saturating_add(added).min(limit).max(least);
        state.set(new);
        let shown = product(&show, op.tanh.tanh(new), GATE.logistic(output));
        y.set(A::narrow(shown.wrapping_add(op.zero[1]).max(low).min(high)));
    }
}

/// Calls `step(input, hidden, cell, output)` for every sequence and time, then takes the output over as hidden state.
fn each_time<A: Element, C: Element>(
    shape: &LstmShape,
    mem: &Mem<'_>,
    step: impl Fn(Src<'_, A>, Dst<'_, A>, Dst<'_, C>, Dst<'_, A>) -> Option<()>,
) -> Option<()> {
    let (batch, time) = (shape.batch as usize, shape.time as usize);
    let (features, cells) = (shape.features as usize, shape.cells as usize);
    let steps = shape.batch.checked_mul(shape.time)?;
    let input = mem.src::<A>(shape.input, steps.checked_mul(shape.features)?)?;
    let output = mem.dst::<A>(shape.output, steps.checked_mul(shape.cells)?)?;
    let hidden = mem.dst::<A>(shape.hidden, shape.batch.checked_mul(shape.cells)?)?;
    let cell = mem.dst::<C>(shape.cell, shape.batch.checked_mul(shape.cells)?)?;
    for b in 0..batch {
        for t in 0..time {
            let at = if shape.time_major { t * batch + b } else { b * time + t };
            let (h, c) = (hidden.slice(b * cells, cells)?, cell.slice(b * cells, cells)?);
            let y = output.slice(at * cells, cells)?;
            step(input.slice(at * features, features)?, h, c, y)?;
            for (h, y) in h.cells().iter().zip(y.as_src().iter()) {
                h.set(y);
            }
        }
    }
    Some(())
}

fn saturate(x: i32) -> i16 {
    x.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}
