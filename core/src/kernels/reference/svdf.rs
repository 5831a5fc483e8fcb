//! SVDF: [`crate::ops::svdf`].

use super::{IntsRead, IntsWritten, at, constant, len, range, read, within, written};
use crate::arena::{Mem, Slot};
use crate::ops::pointwise::clamp;
use crate::ops::svdf::{SvdfF32, SvdfS8, SvdfShape};
use crate::tensor::DType;

/// Batch, features, units, filters and times.
fn extents(shape: &SvdfShape) -> [usize; 5] {
    let units = shape.units as usize;
    let [batch, features, rank, memory] =
        [shape.batch, shape.features, shape.rank, shape.memory].map(|extent| extent as usize);
    [batch, features, units, units * rank, memory]
}

pub(crate) fn f32(op: &SvdfF32, mem: &Mem<'_>) -> Option<()> {
    let [batch, features, units, filters, memory] = extents(&op.shape);
    let states = [batch, filters, memory];
    let input = read::<f32>(mem, op.input, batch * features)?;
    let output = written::<f32>(mem, op.output, batch * units)?;
    let state = written::<f32>(mem, op.state, len(&states))?;
    let weights = constant::<f32>(mem, op.weights, filters * features)?;
    let time_weights = constant::<f32>(mem, op.time_weights, filters * memory)?;
    let bias = constant::<f32>(mem, op.bias, units)?;
    for b in 0..batch {
        for f in 0..filters {
            for t in 1..memory {
                state.set(at(states, [b, f, t - 1]), state.as_src().get(at(states, [b, f, t]))?)?;
            }
            let mut newest = 0.0;
            for i in 0..features {
                newest += input.get(at([batch, features], [b, i]))? * weights.get(at([filters, features], [f, i]))?;
            }
            state.set(at(states, [b, f, memory - 1]), newest)?;
        }
        for u in 0..units {
            let mut sum = *bias.get(u)?;
            let rank = filters / units;
            for f in u * rank..(u + 1) * rank {
                for t in 0..memory {
                    let past = state.as_src().get(at(states, [b, f, t]))?;
                    sum += past * time_weights.get(at([filters, memory], [f, t]))?;
                }
            }
            output.set(at([batch, units], [b, u]), clamp(sum, op.clamp))?;
        }
    }
    Some(())
}

pub(crate) fn s8(op: &SvdfS8, mem: &Mem<'_>) -> Option<()> {
    let [batch, features, units, filters, memory] = extents(&op.shape);
    let states = [batch, filters, memory];
    let input = read::<i8>(mem, op.input, batch * features)?;
    let output = written::<i8>(mem, op.output, batch * units)?;
    let state = IntsWritten::new(mem, op.state, op.state_type, len(&states))?;
    let past = IntsRead::new(mem, op.state, op.state_type, len(&states))?;
    let weights = constant::<i8>(mem, op.weights, filters * features)?;
    let time_weights = IntsRead::new(mem, of_weights(op.time_weights), op.state_type, filters * memory)?;
    let bias = constant::<i32>(mem, op.bias, units)?;
    let [zero_in, zero_state, zero_out] = op.zero;
    let [into_state, into_output] = op.multipliers;
    for b in 0..batch {
        for f in 0..filters {
            for t in 1..memory {
                state.set(at(states, [b, f, t - 1]), past.get(at(states, [b, f, t]))?)?;
            }
            let mut sum = 0_i32;
            for i in 0..features {
                let x = i32::from(input.get(at([batch, features], [b, i]))?).wrapping_sub(zero_in);
                let weight = i32::from(*weights.get(at([filters, features], [f, i]))?);
                sum = sum.wrapping_add(x.wrapping_mul(weight));
            }
            // Saturated before the zero point is added.
            let newest = within(into_state.apply(sum), range(op.state_type)).wrapping_add(zero_state);
            state.set(at(states, [b, f, memory - 1]), newest)?;
        }
        for u in 0..units {
            let mut sum = *bias.get(u)?;
            let rank = filters / units;
            for f in u * rank..(u + 1) * rank {
                for t in 0..memory {
                    let past = past.get(at(states, [b, f, t]))?.wrapping_sub(zero_state);
                    let weight = time_weights.get(at([filters, memory], [f, t]))?;
                    sum = sum.wrapping_add(past.wrapping_mul(weight));
                }
            }
            let stored = within(into_output.apply(sum).wrapping_add(zero_out), range(DType::I8));
            output.set(at([batch, units], [b, u]), stored as i8)?;
        }
    }
    Some(())
}

fn of_weights(offset: u32) -> Slot {
    Slot {
        region: Slot::WEIGHTS,
        offset,
    }
}
