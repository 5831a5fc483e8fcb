//! LSTM: [`crate::ops::lstm`].

use super::{at, constant, read, written};
use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
use crate::ops::lstm::{LstmF32, LstmInt, LstmShape};
use crate::ops::pointwise::clamp;
use crate::quant::{Multiplier, SigmoidI16};
use crate::tensor::DType;

/// The operands of one sequence at one time.
struct Moment<'a, A, C> {
    x: Src<'a, A>,
    hidden: Dst<'a, A>,
    cell: Dst<'a, C>,
    y: Dst<'a, A>,
}

/// Calls `step` for each sequence and time in order; the output is the hidden state of the time behind.
fn each_time<A: Element, C: Element>(
    shape: &LstmShape,
    mem: &Mem<'_>,
    mut step: impl FnMut(&Moment<'_, A, C>) -> Option<()>,
) -> Option<()> {
    let [batch, times] = [shape.batch, shape.time].map(|extent| extent as usize);
    let [features, cells] = [shape.features, shape.cells].map(|extent| extent as usize);
    let input = read::<A>(mem, shape.input, batch * times * features)?;
    let output = written::<A>(mem, shape.output, batch * times * cells)?;
    let hidden = written::<A>(mem, shape.hidden, batch * cells)?;
    let cell = written::<C>(mem, shape.cell, batch * cells)?;
    for b in 0..batch {
        for t in 0..times {
            let row = if shape.time_major {
                at([times, batch], [t, b])
            } else {
                at([batch, times], [b, t])
            };
            let moment = Moment {
                x: input.slice(row * features, features)?,
                hidden: hidden.slice(b * cells, cells)?,
                cell: cell.slice(b * cells, cells)?,
                y: output.slice(row * cells, cells)?,
            };
            step(&moment)?;
            for j in 0..cells {
                moment.hidden.set(j, moment.y.as_src().get(j)?)?;
            }
        }
    }
    Some(())
}

pub(crate) fn f32(op: &LstmF32, mem: &Mem<'_>) -> Option<()> {
    let shape = &op.shape;
    let [features, cells] = [shape.features, shape.cells].map(|extent| extent as usize);
    let logistic = |x: f32| 1.0 / (1.0 + libm::expf(-x));
    each_time::<f32, f32>(shape, mem, |moment| {
        for j in 0..cells {
            let mut gates = [0.0; 4];
            for (gate, offsets) in gates.iter_mut().zip(&shape.gates) {
                let weights = constant::<f32>(mem, offsets.weights, cells * features)?;
                let recurrent = constant::<f32>(mem, offsets.recurrent, cells * cells)?;
                *gate = *constant::<f32>(mem, offsets.bias, cells)?.get(j)?;
                for i in 0..features {
                    *gate += moment.x.get(i)? * weights.get(at([cells, features], [j, i]))?;
                }
                for i in 0..cells {
                    *gate += moment.hidden.as_src().get(i)? * recurrent.get(at([cells, cells], [j, i]))?;
                }
            }
            let [input, forget, cell, output] = gates;
            let mut state = logistic(forget) * moment.cell.as_src().get(j)? + logistic(input) * libm::tanhf(cell);
            if op.clip > 0.0 {
                state = clamp(state, [-op.clip, op.clip]);
            }
            moment.cell.set(j, state)?;
            moment.y.set(j, logistic(output) * libm::tanhf(state))?;
        }
        Some(())
    })
}

pub(crate) fn quantised(op: &LstmInt, mem: &Mem<'_>) -> Option<()> {
    match op.dtype {
        DType::I16 => of_type::<i16>(op, mem),
        _ => of_type::<i8>(op, mem),
    }
}

/// An activation, with the arithmetic of its gates.
trait Activation: Element + Into<i32> {
    /// The bias of cell `j` of so many.
    fn bias(mem: &Mem<'_>, offset: u32, cells: usize, j: usize) -> Option<i64>;
    /// A gate's sum, scaled.
    fn scaled(sum: i64, multiplier: Multiplier) -> i32;
    /// Saturated.
    fn stored(value: i32) -> Self;
}

impl Activation for i8 {
    fn bias(mem: &Mem<'_>, offset: u32, cells: usize, j: usize) -> Option<i64> {
        constant::<i32>(mem, offset, cells)?.get(j).map(|&bias| bias.into())
    }

    fn scaled(sum: i64, multiplier: Multiplier) -> i32 {
        // Sums are modulo 2^32.
        multiplier.apply(sum as i32)
    }

    fn stored(value: i32) -> i8 {
        value.clamp(-128, 127) as i8
    }
}

impl Activation for i16 {
    fn bias(mem: &Mem<'_>, offset: u32, cells: usize, j: usize) -> Option<i64> {
        constant::<i64>(mem, offset, cells)?.get(j).copied()
    }

    fn scaled(sum: i64, multiplier: Multiplier) -> i32 {
        multiplier.apply_wide(sum)
    }

    fn stored(value: i32) -> i16 {
        saturated(value)
    }
}

fn saturated(value: i32) -> i16 {
    value.clamp(-32768, 32767) as i16
}

fn of_type<A: Activation>(op: &LstmInt, mem: &Mem<'_>) -> Option<()> {
    let shape = &op.shape;
    let [features, cells] = [shape.features, shape.cells].map(|extent| extent as usize);
    // The functions of gates, which have scale 2^-12.
    let gate = SigmoidI16::power_of_two(0);
    let [zero_in, zero_hidden] = op.zero.map(i64::from);
    let scaled = |a: i16, b: i16, multiplier: Multiplier| multiplier.apply(i32::from(a) * i32::from(b));
    each_time::<A, i16>(shape, mem, |moment| {
        for j in 0..cells {
            let mut gates = [0; 4];
            for ((gate, offsets), [of_input, of_hidden]) in gates.iter_mut().zip(&shape.gates).zip(op.gates) {
                let weights = constant::<i8>(mem, offsets.weights, cells * features)?;
                let recurrent = constant::<i8>(mem, offsets.recurrent, cells * cells)?;
                let mut sum = A::bias(mem, offsets.bias, cells, j)?;
                for i in 0..features {
                    let x: i32 = moment.x.get(i)?.into();
                    let weight = *weights.get(at([cells, features], [j, i]))?;
                    sum = sum.wrapping_add((i64::from(x) - zero_in) * i64::from(weight));
                }
                let mut over_hidden = 0_i64;
                for i in 0..cells {
                    let h: i32 = moment.hidden.as_src().get(i)?.into();
                    let weight = *recurrent.get(at([cells, cells], [j, i]))?;
                    over_hidden = over_hidden.wrapping_add((i64::from(h) - zero_hidden) * i64::from(weight));
                }
                let terms = [A::scaled(sum, of_input), A::scaled(over_hidden, of_hidden)].map(saturated);
                *gate = saturated(terms.map(i32::from).iter().sum());
            }
            let [input, forget, cell, output] = gates;
            let [keep, add, show] = op.products;
            let kept = saturated(scaled(gate.logistic(forget), moment.cell.as_src().get(j)?, keep));
            let added = saturated(scaled(gate.logistic(input), gate.tanh(cell), add));
            let mut state = saturated(i32::from(kept) + i32::from(added));
            if op.clip > 0 {
                state = state.clamp(-op.clip, op.clip);
            }
            moment.cell.set(j, state)?;
            let shown = scaled(op.tanh.tanh(state), gate.logistic(output), show);
            moment.y.set(j, A::stored(shown.wrapping_add(op.zero[1])))?;
        }
        Some(())
    })
}
