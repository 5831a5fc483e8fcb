//! LSTM, straight from the formula.
//!
//! All gates of a time read the hidden state of the time before, so the new one is written to the output first and copied to the state
//! when the time is complete.

use crate::arena::Mem;
use crate::blocks::blocks;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::lstm_gates::{Activation, BLOCK, finish, products};
use crate::ops::lstm::{LstmF32, LstmInt, LstmShape};
use crate::quant::Multiplier;
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
            DType::I16 => quantised::<i16>(op, mem),
            _ => quantised::<i8>(op, mem),
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

/// Parameters of a gate.
struct Gate<'a, A: Activation> {
    weights: &'a [i8],
    recurrent: &'a [i8],
    bias: &'a [A::Bias],
}

/// Whether the sums of all gates are known to be small enough to be scaled without a look at each, which takes the fewest instructions.
#[cfg(packing)]
pub fn is_short(op: &LstmInt, weights: &[u8]) -> bool {
    let mem = Mem::of_weights(weights);
    match op.dtype {
        DType::I16 => gates::<i16>(op, &mem).is_some_and(|gates| scales(op, &gates).is_some()),
        _ => gates::<i8>(op, &mem).is_some_and(|gates| scales(op, &gates).is_some()),
    }
}

#[inline(always)]
fn gates<'a, A: Activation>(op: &LstmInt, mem: &Mem<'a>) -> Option<[Gate<'a, A>; 4]> {
    let shape = &op.shape;
    let gate = |index: usize| {
        let offsets = shape.gates.get(index)?;
        Some(Gate {
            weights: mem.weights(offsets.weights, shape.cells.checked_mul(shape.features)?)?,
            recurrent: mem.weights(offsets.recurrent, shape.cells.checked_mul(shape.cells)?)?,
            bias: mem.weights(offsets.bias, shape.cells)?,
        })
    };
    Some([gate(0)?, gate(1)?, gate(2)?, gate(3)?])
}

fn quantised<A: Activation>(op: &LstmInt, mem: &Mem<'_>) -> Option<()> {
    let shape = &op.shape;
    let [features, cells] = [shape.features, shape.cells].map(|extent| extent as usize);
    let gates = gates::<A>(op, mem)?;
    let (scales, products) = (scales(op, &gates), products(op)?);
    let (mut values, mut sums) = ([[0; BLOCK]; 4], [[0; BLOCK]; 2]);
    each_time::<A, i16>(shape, mem, |x, h, c, y| {
        let h = h.as_src();
        for first in (0..cells).step_by(BLOCK) {
            let count = (cells - first).min(BLOCK);
            for (index, (gate, values)) in gates.iter().zip(&mut values).enumerate() {
                let weights = gate.weights.get(first * features..)?;
                let recurrent = gate.recurrent.get(first * cells..)?;
                let bias = gate.bias.get(first..)?.get(..count)?;
                let Some(scales) = &scales else {
                    let multipliers = op.gates.get(index)?;
                    any_gate(op, (x, h), (weights, recurrent), bias, multipliers, values);
                    continue;
                };
                let [of_input, of_hidden] = &mut sums;
                A::sums(x, op.zero[0], weights, count, of_input)?;
                A::sums(h, op.zero[1], recurrent, count, of_hidden)?;
                A::gate([of_input, of_hidden], bias, scales.get(index)?, values);
            }
            finish(op, &products, &values, c.slice(first, count)?, y.slice(first, count)?)?;
        }
        Some(())
    })
}

/// Scales of the sums of each gate, which need no look at a sum; `None` where some sums might be too large for that.
#[inline(never)]
fn scales<A: Activation>(op: &LstmInt, gates: &[Gate<'_, A>; 4]) -> Option<[[A::Scale; 2]; 4]> {
    let [features, cells] = [op.shape.features, op.shape.cells].map(|extent| extent as usize);
    // Their magnitudes go by zero points that are activations.
    if op.zero.iter().any(|&zero| i8::try_from(zero).is_err()) {
        return None;
    }
    let of = |index: usize| {
        let &[of_input, of_hidden] = op.gates.get(index)?;
        let largest = gates
            .get(index)?
            .bias
            .iter()
            .fold(0, |largest, &bias| A::magnitude(bias).max(largest));
        Some([A::scale(of_input, features, largest)?, A::scale(of_hidden, cells, 0)?])
    };
    Some([of(0)?, of(1)?, of(2)?, of(3)?])
}

/// A gate of sums of any size, cell by cell.
#[cold]
#[inline(never)]
fn any_gate<A: Activation>(
    op: &LstmInt,
    (x, h): (Src<'_, A>, Src<'_, A>),
    (weights, recurrent): (&[i8], &[i8]),
    bias: &[A::Bias],
    &[of_input, of_hidden]: &[Multiplier; 2],
    values: &mut [i16; BLOCK],
) {
    let rows = blocks(weights, x.len()).zip(blocks(recurrent, h.len()));
    for ((value, &bias), (row, recurrent)) in values.iter_mut().zip(bias).zip(rows) {
        let first = A::term(x, op.zero[0], row, bias, of_input);
        *value = first.saturating_add(A::term(h, op.zero[1], recurrent, A::NO_BIAS, of_hidden));
    }
}

/// Calls `step(input, hidden, cell, output)` for every sequence and time, then takes the output over as hidden state.
fn each_time<A: Element, C: Element>(
    shape: &LstmShape,
    mem: &Mem<'_>,
    mut step: impl FnMut(Src<'_, A>, Dst<'_, A>, Dst<'_, C>, Dst<'_, A>) -> Option<()>,
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

#[cfg(all(test, packing))]
mod tests {
    use super::*;
    use crate::arena::Slot;
    use crate::ops::lstm::Gate as Offsets;
    use crate::quant::SigmoidI16;

    /// Weights of 0 for both inputs, and a bias that the four gates share.
    #[repr(align(8))]
    struct Constants([u8; 2048]);

    fn op(dtype: DType, features: u32) -> LstmInt {
        let (output, input, hidden, cell) = (Slot::default(), Slot::default(), Slot::default(), Slot::default());
        let multiplier = |shift| Multiplier {
            mantissa: 1 << 30,
            shift,
        };
        LstmInt {
            shape: LstmShape {
                output,
                input,
                hidden,
                cell,
                batch: 1,
                time: 1,
                features,
                cells: 3,
                time_major: false,
                gates: [Offsets {
                    weights: 0,
                    recurrent: 0,
                    bias: 1600,
                }; 4],
            },
            dtype,
            zero: [0; 2],
            gates: [[multiplier(-3); 2]; 4],
            products: [multiplier(-15); 3],
            tanh: SigmoidI16::power_of_two(1),
            clip: 0,
        }
    }

    #[test]
    fn sums_that_may_be_large_are_seen() {
        let mut constants = Constants([0; 2048]);
        let short = |op: &LstmInt, constants: &Constants| is_short(op, &constants.0);
        let (narrow, wide) = (op(DType::I8, 511), op(DType::I16, 511));
        assert!(short(&narrow, &constants) && short(&wide, &constants));
        assert!(short(&op(DType::I8, 512), &constants) && !short(&op(DType::I16, 512), &constants));
        for (index, zero) in [(0, -129), (0, 128), (1, -129), (1, 128)] {
            let mut far = narrow;
            far.zero[index] = zero;
            assert!(!short(&far, &constants), "{index} {zero}");
        }
        for gate in 0..4 {
            let mut up = narrow;
            up.gates[gate][1].shift = 20;
            assert!(!short(&up, &constants), "{gate}");
        }
        // The last cell's bias: 2^30 of int8, what 511 products leave of 2^31 of int16.
        constants.0[1608..1612].copy_from_slice(&(1_i32 << 30).to_le_bytes());
        assert!(!short(&narrow, &constants));
        constants.0[1608..1612].fill(0);
        for (bias, fits) in [((1_i64 << 22) - 1, true), (1 << 22, false), (-1 << 22, false)] {
            constants.0[1616..1624].copy_from_slice(&bias.to_le_bytes());
            assert_eq!(short(&wide, &constants), fits, "{bias}");
        }
    }
}
