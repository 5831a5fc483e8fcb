//! LSTM, straight from the formula.
//!
//! All gates of a time read the hidden state of the time before, so the new one is written to the output first and copied to the state
//! when the time is complete.

use super::int::Int;
use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::dot::fours_s8;
use crate::kernels::kernel::Kernel;
use crate::kernels::wide;
use crate::ops::lstm::{LstmF32, LstmInt, LstmShape};
use crate::quant::{Multiplier, SigmoidI16};
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
            DType::I16 => quantised::<i16>(op, mem, |sum, m| m.apply_wide(sum), (-32768, 32767)),
            _ => quantised::<i8>(op, mem, |sum, m| m.apply(sum as i32), (-128, 127)),
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

/// An activation.
trait Activation: Int {
    /// An element of the biases.
    type Bias: Element + Into<i64>;

    /// `sum of (x[i] - zero) * row[i]` for a row of each gate: of i8 modulo 2^32, which is all that is used of it, of i16 modulo 2^64.
    fn dots(x: Src<'_, Self>, zero: i32, rows: [&[i8]; 4]) -> [i64; 4];
}

impl Activation for i8 {
    type Bias = i32;

    #[inline(always)]
    fn dots(x: Src<'_, Self>, zero: i32, rows: [&[i8]; 4]) -> [i64; 4] {
        fours_s8(x, zero, rows).map(i64::from)
    }
}

impl Activation for i16 {
    type Bias = i64;

    #[inline(always)]
    fn dots(x: Src<'_, Self>, zero: i32, rows: [&[i8]; 4]) -> [i64; 4] {
        if zero == 0
            && let Some(sums) = wide::rows(x, rows)
        {
            return sums.map(i64::from);
        }
        let mut sums = [0_i64; 4];
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = x.iter().zip(row).fold(0, |sum: i64, (x, &w)| {
                sum.wrapping_add(i64::from(x.widen().wrapping_sub(zero)) * i64::from(w))
            });
        }
        sums
    }
}

fn quantised<A: Activation>(
    op: &LstmInt,
    mem: &Mem<'_>,
    scale: impl Fn(i64, Multiplier) -> i32,
    (low, high): (i32, i32),
) -> Option<()> {
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
    // Gates have scale 2^-12, which the table takes as it is.
    const GATE: SigmoidI16 = SigmoidI16::power_of_two(0);
    let [keep, add, show] = op.products;
    each_time::<A, i16>(shape, mem, |x, h, c, y| {
        for j in 0..cells {
            let (mut rows, mut recurrent) = ([&[][..]; 4], [&[][..]; 4]);
            for ((row, recurrent), (w, r, _)) in rows.iter_mut().zip(&mut recurrent).zip(gates) {
                *row = w.get(j * features..)?.get(..features)?;
                *recurrent = r.get(j * cells..)?.get(..cells)?;
            }
            let from_x = A::dots(x, op.zero[0], rows);
            let from_h = A::dots(h.as_src(), op.zero[1], recurrent);
            let mut sums = [0_i16; 4];
            let of_gates = gates.iter().zip(&op.gates).zip(from_x.into_iter().zip(from_h));
            for (sum, (((_, _, bias), &[from_input, from_hidden]), (x, h))) in sums.iter_mut().zip(of_gates) {
                let bias: i64 = (*bias.get(j)?).into();
                let x = saturate(scale(x.wrapping_add(bias), from_input));
                *sum = x.saturating_add(saturate(scale(h, from_hidden)));
            }
            let [input, forget, cell, output] = sums;
            let product = |m: Multiplier, a: i16, b: i16| m.apply(i32::from(a) * i32::from(b));
            let kept = saturate(product(keep, GATE.logistic(forget), c.as_src().get(j)?));
            let added = saturate(product(add, GATE.logistic(input), GATE.tanh(cell)));
            let mut state = kept.saturating_add(added);
            if op.clip > 0 {
                state = state.min(op.clip).max(op.clip.wrapping_neg());
            }
            c.set(j, state)?;
            let shown = product(show, op.tanh.tanh(state), GATE.logistic(output));
            y.set(j, A::narrow(shown.wrapping_add(op.zero[1]).clamp(low, high)))?;
        }
        Some(())
    })
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
