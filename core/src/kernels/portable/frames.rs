//! Signal operators that remember samples, straight from their meaning.

use crate::arena::Mem;
use crate::cells::{Dst, Element, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::frames::{SignalDelay, SignalFramer, SignalOverlapAdd, SignalStacker};
use crate::ops::size::size;
use crate::tensor::DType;

/// int16.
#[derive(Debug)]
pub struct Delay;

/// int16.
#[derive(Debug)]
pub struct Framer;

/// int16.
#[derive(Debug)]
pub struct Stacker;

/// int16 and f32.
#[derive(Debug)]
pub struct OverlapAdd;

/// Writes what `kept` holds, then `new`, as far as `output` goes; then `kept` holds the last of both.
fn slide<T: Element>(kept: Dst<'_, T>, new: Src<'_, T>, output: Dst<'_, T>) -> Option<()> {
    for (y, x) in output.cells().iter().zip(kept.as_src().iter().chain(new.iter())) {
        y.set(x);
    }
    append(kept, new)
}

/// `kept` moves on by the length of `new`, which fills its end.
fn append<T: Element>(kept: Dst<'_, T>, new: Src<'_, T>) -> Option<()> {
    let cells = kept.cells();
    let stays = cells.len().saturating_sub(new.len());
    for (to, from) in cells.iter().zip(cells.get(cells.len() - stays..)?) {
        to.set(from.get());
    }
    let filled = cells.get(stays..)?;
    let last = new.slice(new.len().checked_sub(filled.len())?, filled.len())?;
    for (to, from) in filled.iter().zip(last.iter()) {
        to.set(from);
    }
    Some(())
}

impl Kernel for Delay {
    type Op = SignalDelay;

    fn run(op: &SignalDelay, mem: &Mem<'_>) -> Option<()> {
        let samples = size(&[op.rows, op.frame])?;
        let (input, output) = (mem.src::<i16>(op.input, samples)?, mem.dst::<i16>(op.output, samples)?);
        let state = mem.dst::<i16>(op.state, size(&[op.rows, op.delay])?)?;
        let (frame, delay) = (op.frame as usize, op.delay as usize);
        for row in 0..op.rows as usize {
            let kept = state.slice(row * delay, delay)?;
            slide(
                kept,
                input.slice(row * frame, frame)?,
                output.slice(row * frame, frame)?,
            )?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Delay {}

impl Kernel for Framer {
    type Op = SignalFramer;

    fn run(op: &SignalFramer, mem: &Mem<'_>) -> Option<()> {
        let frames = size(&[op.rows, op.frames])?;
        let input = mem.src::<i16>(op.input, frames.checked_mul(op.step)?)?;
        let output = mem.dst::<i16>(op.output, frames.checked_mul(op.size)?)?;
        let valid = mem.dst::<u8>(op.valid, 1)?;
        let state = mem.dst::<i16>(op.state, op.state_len())?;
        let (step, size, history) = (op.step as usize, op.size as usize, op.history() as usize);
        let counter = state.as_src().get(0)? as u16;
        let warm_up = op.warm_up();
        valid.set(0, u8::from(u32::from(counter) >= warm_up))?;
        let steps = u32::from(counter).saturating_add(op.frames).min(warm_up);
        state.set(0, steps as i16)?;
        let state = state.tail(1)?;
        for frame in 0..frames as usize {
            let row = (frame as u32).checked_div(op.frames)? as usize;
            let kept = state.slice(row * history, history)?;
            let output = output.slice(frame * size, size)?;
            slide(kept, input.slice(frame * step, step)?, output)?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for Framer {}

impl Kernel for Stacker {
    type Op = SignalStacker;

    fn run(op: &SignalStacker, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<i16>(op.input, op.channels)?;
        let output = mem.dst::<i16>(op.output, op.output_len())?;
        let valid = mem.dst::<u8>(op.valid, 1)?;
        let state = mem.dst::<i16>(op.state, op.state_len())?;
        let kept = state.tail(1)?;
        let mut left = u32::from(state.as_src().get(0)? as u16);
        if left == 0 {
            // The first frame stands for those before it.
            left = op.right + 1;
            let channels = op.channels as usize;
            for frame in 0..op.left.saturating_add(op.right) as usize {
                let frame = kept.slice(frame * channels, channels)?;
                for (to, from) in frame.cells().iter().zip(input.iter()) {
                    to.set(from);
                }
            }
        }
        slide(kept, input, output)?;
        left = left.min(op.step.max(op.right + 1)) - 1;
        valid.set(0, u8::from(left == 0))?;
        let until_next = if left == 0 { op.step } else { left };
        state.set(0, until_next as i16)
    }
}

#[cfg(any(test, packing))]
impl Candidate for Stacker {}

/// A sample that frames can be summed of.
trait Sum: Element + Default {
    fn sum(self, other: Self) -> Self;
}

impl Sum for i16 {
    fn sum(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Sum for f32 {
    fn sum(self, other: Self) -> Self {
        self + other
    }
}

impl Kernel for OverlapAdd {
    type Op = SignalOverlapAdd;

    fn run(op: &SignalOverlapAdd, mem: &Mem<'_>) -> Option<()> {
        match op.dtype {
            DType::I16 => overlap_add::<i16>(op, mem),
            _ => overlap_add::<f32>(op, mem),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for OverlapAdd {}

fn overlap_add<T: Sum>(op: &SignalOverlapAdd, mem: &Mem<'_>) -> Option<()> {
    let frames = size(&[op.rows, op.frames])?;
    let input = mem.src::<T>(op.input, frames.checked_mul(op.size)?)?;
    let output = mem.dst::<T>(op.output, frames.checked_mul(op.step)?)?;
    let state = mem.dst::<T>(op.state, size(&[op.rows, op.size])?)?;
    let (step, size) = (op.step as usize, op.size as usize);
    for frame in 0..frames as usize {
        let row = (frame as u32).checked_div(op.frames)? as usize;
        let sums = state.slice(row * size, size)?;
        for (sum, x) in sums.cells().iter().zip(input.slice(frame * size, size)?.iter()) {
            sum.set(x.sum(sum.get()));
        }
        let output = output.slice(frame * step, step)?;
        for (y, sum) in output.cells().iter().zip(sums.cells()) {
            y.set(sum.get());
        }
        for (to, from) in sums.cells().iter().zip(sums.tail(step)?.cells()) {
            to.set(from.get());
        }
        for sum in sums.tail(size.checked_sub(step)?)?.cells() {
            sum.set(T::default());
        }
    }
    Some(())
}
