//! Signal operators.

use std::f64::consts::PI;

use arenite::ops::fft::{FftPlan, SignalFft, leading_factors};
use arenite::ops::frames::{SignalDelay, SignalFramer, SignalOverlapAdd, SignalStacker};
use arenite::ops::signal::{
    GAIN_TABLE, LOG_TABLE, SignalAutoScale, SignalEnergy, SignalFilterBank, SignalLog, SignalPcan, SignalSquareRoot,
    SignalSubtraction, SignalWindow,
};
use arenite::{DType, Step};

use super::context::{Lower, fit, input};
use crate::error::{Error, Result};
use crate::graph::{Node, Signal, TensorId};
use crate::program::Place;

/// Lowers a signal operator.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, signal: &Signal) -> Result<()> {
    let x = input(node, 0)?;
    let (shape, elements) = {
        let tensor = lower.graph().tensor(x);
        (tensor.shape.clone(), tensor.elements())
    };
    let dtype = lower.graph().tensor(x).dtype;
    let output = result(node, 0)?;
    let from = lower.place(x)?;
    let count = fit(elements, "the number of elements")?;
    let last = shape.last().copied().unwrap_or(1).max(1);
    let samples = fit(last, "the number of samples")?;
    let rows = fit(elements / last, "the number of rows")?;
    let step = match signal {
        Signal::Window { shift } => Step::SignalWindow(SignalWindow {
            output,
            input: from,
            window: operand(lower, node, 1)?,
            count,
            size: samples,
            shift: *shift,
        }),
        Signal::AutoScale => Step::SignalAutoScale(SignalAutoScale {
            output,
            input: from,
            bits: result(node, 1)?,
            count,
        }),
        Signal::Fft { length, inverse } => {
            let length = fit(*length, "the length")?;
            let step = SignalFft {
                output,
                input: from,
                dtype,
                rows,
                samples: if *inverse { length } else { samples },
                length,
                inverse: *inverse,
                twiddles: lower.program.weights.add_bytes(twiddles(dtype, length, *inverse)?)?,
            };
            match dtype {
                DType::I16 => Step::SignalFftS16(step),
                DType::I32 => Step::SignalFftS32(step),
                _ => Step::SignalFftF32(step),
            }
        }
        Signal::Energy { start, end } => Step::SignalEnergy(SignalEnergy {
            output,
            input: from,
            bins: count / 2,
            start: fit(*start, "the first bin")?,
            end: fit(*end, "the last bin")?,
        }),
        Signal::FilterBank => filter_bank(lower, node, [output, from], count)?,
        Signal::SquareRoot => Step::SignalSquareRoot(SignalSquareRoot {
            output,
            input: from,
            bits: operand(lower, node, 1)?,
            count,
        }),
        Signal::SpectralSubtraction(constants) => Step::SignalSubtraction(SignalSubtraction {
            output,
            input: from,
            noise: result(node, 1)?,
            state: operand(lower, node, 1)?,
            count,
            constants: *constants,
        }),
        Signal::Pcan { shift } => {
            let table = numbers(lower, node, 2)?;
            let table = &table[..table.len().min(GAIN_TABLE as usize)];
            Step::SignalPcan(SignalPcan {
                output,
                input: from,
                noise: operand(lower, node, 1)?,
                count,
                shift: *shift,
                table: lower
                    .program
                    .weights
                    .add_bytes(bytes(table.iter().map(|n| n.to_le_bytes())))?,
            })
        }
        Signal::Log { scale, correction } => Step::SignalLog(SignalLog {
            output,
            input: from,
            count,
            scale: *scale,
            correction: *correction,
            table: lower.program.weights.add_bytes(logarithms())?,
        }),
        Signal::Delay { length } => Step::SignalDelay(SignalDelay {
            output,
            input: from,
            state: operand(lower, node, 1)?,
            rows,
            frame: samples,
            delay: fit(*length, "the delay")?,
        }),
        Signal::Framer { size, step, prefill } => Step::SignalFramer(SignalFramer {
            output,
            input: from,
            valid: result(node, 1)?,
            state: operand(lower, node, 1)?,
            rows,
            frames: fit(last / step, "the number of frames")?,
            size: fit(*size, "the frame")?,
            step: fit(*step, "the step")?,
            prefill: *prefill,
        }),
        Signal::Stacker { left, right, step } => Step::SignalStacker(SignalStacker {
            output,
            input: from,
            valid: result(node, 1)?,
            state: operand(lower, node, 1)?,
            channels: count,
            left: fit(*left, "the context")?,
            right: fit(*right, "the context")?,
            step: fit(*step, "the step")?,
        }),
        Signal::OverlapAdd { step } => {
            let frames = shape.iter().rev().nth(1).copied().unwrap_or(1).max(1);
            Step::SignalOverlapAdd(SignalOverlapAdd {
                output,
                input: from,
                state: operand(lower, node, 1)?,
                dtype,
                rows: fit(elements / last / frames, "the number of rows")?,
                frames: fit(frames, "the number of frames")?,
                size: samples,
                step: fit(*step, "the step")?,
            })
        }
    };
    lower.push(node, signal.name(), step, 0);
    Ok(())
}

fn operand(lower: &mut Lower<'_>, node: &Node, index: usize) -> Result<Place> {
    let id = input(node, index)?;
    lower.place(id)
}

fn result(node: &Node, index: usize) -> Result<Place> {
    let missing = || Error::input(format!("result {index} is missing"));
    let id: TensorId = node.outputs.get(index).copied().ok_or_else(missing)?;
    Ok(Place::Tensor(id, 0))
}

/// The values of a constant int16 operand.
fn numbers(lower: &Lower<'_>, node: &Node, index: usize) -> Result<Vec<i16>> {
    let bytes = lower.bytes(input(node, index)?)?;
    let pairs = bytes.as_chunks::<2>().0.iter();
    Ok(pairs.map(|pair| i16::from_le_bytes(*pair)).collect())
}

fn bytes<const N: usize>(words: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    words.flatten().collect()
}

/// The bands of a filter bank one behind the other, so that no index is left to follow but the first bin.
fn filter_bank(lower: &mut Lower<'_>, node: &Node, [output, from]: [Place; 2], bins: u32) -> Result<Step<Place>> {
    let [weights, counterparts, starts, first_weights, widths] =
        [1, 2, 3, 4, 5].map(|index| numbers(lower, node, index));
    let (weights, counterparts) = (weights?, counterparts?);
    let (starts, first_weights, widths) = (starts?, first_weights?, widths?);
    let (mut bands, mut pairs) = (Vec::new(), Vec::new());
    for (band, ((&start, &first), &width)) in starts.iter().zip(&first_weights).zip(&widths).enumerate() {
        let index = |n: i16| usize::try_from(n).ok();
        let taken = || {
            // A width below zero is none.
            let (start, first, width) = (index(start)?, index(first)?, width.max(0) as usize);
            let range = first..first.checked_add(width)?;
            let own = weights.get(range.clone())?.iter().zip(counterparts.get(range)?);
            (start + width <= bins as usize).then_some((start, width, own))
        };
        let Some((start, width, own)) = taken() else {
            return Err(Error::input(format!(
                "band {band} takes {width} bins from {start} and as many weights from {first}"
            ))
            .expected(format!(
                "at most {bins} bins, {} weights and {} of their counterparts",
                weights.len(),
                counterparts.len()
            )));
        };
        bands.extend([start as u16, width as u16]);
        pairs.extend(own.flat_map(|(&own, &other)| [own, other]));
    }
    let step = SignalFilterBank {
        output,
        input: from,
        bins,
        channels: fit(widths.len().saturating_sub(1), "the number of channels")?,
        taps: fit(pairs.len() / 2, "the number of weights")?,
        bands: lower
            .program
            .weights
            .add_bytes(bytes(bands.iter().map(|n| n.to_le_bytes())))?,
        weights: lower
            .program
            .weights
            .add_bytes(bytes(pairs.iter().map(|n| n.to_le_bytes())))?,
    };
    Ok(Step::SignalFilterBank(step))
}

/// The table of [`SignalLog`].
fn logarithms() -> Vec<u8> {
    let entry = |i: u32| {
        let x = f64::from(i) / 128.0;
        (((1.0 + x).log2() - x) * 65_536.0).round() as u16
    };
    bytes((0..LOG_TABLE).map(|i| entry(i).to_le_bytes()))
}

/// The factors of a transform, in the order of [`FftPlan`].
fn twiddles(dtype: DType, length: u32, inverse: bool) -> Result<Vec<u8>> {
    let plan = FftPlan::new(length).ok_or_else(|| Error::unsupported(format!("a transform of length {length}")))?;
    let direction = if inverse { 1.0 } else { -1.0 };
    let n = f64::from(plan.n());
    let mut bytes = Vec::new();
    let mut push = |phase: f64| {
        for part in [phase.cos(), phase.sin()] {
            // As kiss_fft rounds them.
            let fixed = |largest: i32| (0.5 + f64::from(largest) * part).floor();
            match dtype {
                DType::I16 => bytes.extend((fixed(i16::MAX.into()) as i16).to_le_bytes()),
                DType::I32 => bytes.extend((fixed(i32::MAX) as i32).to_le_bytes()),
                _ => bytes.extend((part as f32).to_le_bytes()),
            }
        }
    };
    let mut m = 1;
    for &radix in plan.radices().iter().rev() {
        let stride = plan.n() / (m * u32::from(radix));
        // Of n, so that the phase is rounded as there.
        let root = |i: u32| direction * 2.0 * PI * f64::from(i) / n;
        for leading in 1..=leading_factors(radix) {
            push(root(leading * m * stride));
        }
        for u in 0..m {
            for k in 1..u32::from(radix) {
                push(root(u * k * stride));
            }
        }
        m *= u32::from(radix);
    }
    for k in 1..=plan.n() / 2 {
        push(direction * PI * (f64::from(k) / n + 0.5));
    }
    Ok(bytes)
}
