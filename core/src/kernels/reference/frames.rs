//! Signal operators that remember samples: [`crate::ops::frames`]. Each row is one stream: the samples of its state, then those of the run.

use super::{at, read, written};
use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
use crate::ops::frames::{SignalDelay, SignalFramer, SignalOverlapAdd, SignalStacker};
use crate::tensor::DType;

/// Sample `i` of what a state holds and what follows.
fn sample(kept: Dst<'_, i16>, new: Src<'_, i16>, i: usize) -> Option<i16> {
    let before = kept.cells().len();
    if i < before {
        kept.as_src().get(i)
    } else {
        new.get(i - before)
    }
}

/// The state after a run: the last samples of both.
fn remember(kept: Dst<'_, i16>, new: Src<'_, i16>) -> Option<()> {
    // In this order none is written before it is read.
    (0..kept.cells().len()).try_for_each(|i| kept.set(i, sample(kept, new, i + new.len())?))
}

pub(crate) fn delay(op: &SignalDelay, mem: &Mem<'_>) -> Option<()> {
    let [rows, frame, delay] = [op.rows, op.frame, op.delay].map(|n| n as usize);
    let input = read::<i16>(mem, op.input, rows * frame)?;
    let output = written::<i16>(mem, op.output, rows * frame)?;
    let state = written::<i16>(mem, op.state, rows * delay)?;
    for row in 0..rows {
        let (kept, new) = (state.slice(row * delay, delay)?, input.slice(row * frame, frame)?);
        for i in 0..frame {
            output.set(at([rows, frame], [row, i]), sample(kept, new, i)?)?;
        }
        remember(kept, new)?;
    }
    Some(())
}

pub(crate) fn framer(op: &SignalFramer, mem: &Mem<'_>) -> Option<()> {
    let [rows, frames, size, step] = [op.rows, op.frames, op.size, op.step].map(|n| n as usize);
    let history = op.history() as usize;
    let input = read::<i16>(mem, op.input, rows * frames * step)?;
    let output = written::<i16>(mem, op.output, rows * frames * size)?;
    let state = written::<i16>(mem, op.state, 1 + rows * history)?;
    let steps = u32::from(state.as_src().get(0)? as u16);
    written::<u8>(mem, op.valid, 1)?.set(0, u8::from(steps >= op.warm_up()))?;
    state.set(0, (steps + op.frames).min(op.warm_up()) as i16)?;
    for row in 0..rows {
        let kept = state.slice(1 + row * history, history)?;
        let new = input.slice(row * frames * step, frames * step)?;
        for frame in 0..frames {
            for i in 0..size {
                let x = sample(kept, new, frame * step + i)?;
                output.set(at([rows, frames, size], [row, frame, i]), x)?;
            }
        }
        remember(kept, new)?;
    }
    Some(())
}

pub(crate) fn stacker(op: &SignalStacker, mem: &Mem<'_>) -> Option<()> {
    let [channels, left, right] = [op.channels, op.left, op.right].map(|n| n as usize);
    let frames = left + 1 + right;
    let input = read::<i16>(mem, op.input, channels)?;
    let output = written::<i16>(mem, op.output, frames * channels)?;
    let state = written::<i16>(mem, op.state, 1 + (left + right) * channels)?;
    let kept = state.slice(1, (left + right) * channels)?;
    let mut until = u32::from(state.as_src().get(0)? as u16);
    if until == 0 {
        // The first frame stands for those before it.
        until = op.right + 1;
        for i in 0..kept.cells().len() {
            kept.set(i, input.get(i.checked_rem(channels)?)?)?;
        }
    }
    for i in 0..frames * channels {
        output.set(i, sample(kept, input, i)?)?;
    }
    remember(kept, input)?;
    // A state that no run has left is as good as the longest wait.
    until = until.min(op.step.max(op.right + 1)) - 1;
    written::<u8>(mem, op.valid, 1)?.set(0, u8::from(until == 0))?;
    state.set(0, (if until == 0 { op.step } else { until }) as i16)
}

pub(crate) fn overlap_add(op: &SignalOverlapAdd, mem: &Mem<'_>) -> Option<()> {
    match op.dtype {
        DType::I16 => sums::<i16>(op, mem, 0, i16::saturating_add),
        _ => sums::<f32>(op, mem, 0.0, |a, b| a + b),
    }
}

fn sums<T: Element>(op: &SignalOverlapAdd, mem: &Mem<'_>, zero: T, add: fn(T, T) -> T) -> Option<()> {
    let [rows, frames, size, step] = [op.rows, op.frames, op.size, op.step].map(|n| n as usize);
    let input = read::<T>(mem, op.input, rows * frames * size)?;
    let output = written::<T>(mem, op.output, rows * frames * step)?;
    let state = written::<T>(mem, op.state, rows * size)?;
    for row in 0..rows {
        for frame in 0..frames {
            for i in 0..size {
                let sum = state.as_src().get(at([rows, size], [row, i]))?;
                let x = input.get(at([rows, frames, size], [row, frame, i]))?;
                state.set(at([rows, size], [row, i]), add(sum, x))?;
            }
            for i in 0..step {
                let sum = state.as_src().get(at([rows, size], [row, i]))?;
                output.set(at([rows, frames, step], [row, frame, i]), sum)?;
            }
            for i in 0..size {
                let later = match i + step {
                    place if place < size => state.as_src().get(at([rows, size], [row, place]))?,
                    _ => zero,
                };
                state.set(at([rows, size], [row, i]), later)?;
            }
        }
    }
    Some(())
}
