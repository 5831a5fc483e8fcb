//! The noise that each layer makes in the answers: of the float network in which this one layer has its own error, and nothing else is rounded.

use std::collections::BTreeMap;

use super::models::{Models, Values, completed};
use super::stored;
use super::traced::Traced;
use crate::Result;
use crate::model;

/// Multiply-accumulates that finding it may take.
const MACS: u64 = 1 << 34;

/// A step of the int8 model whose operands were the float model's values, as it stores them.
pub(super) struct Fed {
    pub(super) step: usize,
    /// Its result: real numbers of the float model's sizes.
    pub(super) found: Traced,
    /// The float model's result as the step's tensor stores it.
    pub(super) stored: Traced,
}

/// By the float model's step.
pub(super) type AllFed = BTreeMap<usize, Fed>;

/// Squares over all samples.
pub(super) struct Blame {
    /// Of the answers' noise, by step of the int8 model.
    pub(super) noise: Vec<f64>,
    /// The same of what the inputs are rounded by.
    pub(super) of_inputs: f64,
    /// Of the answers.
    pub(super) signal: f64,
}

/// How many of so many samples are looked at: a run for each layer.
pub(super) fn samples(models: &Models<'_>, count: usize) -> usize {
    let once: u64 = models.theirs.steps.iter().map(|step| step.macs).sum();
    let all = once.saturating_mul(models.ours.steps.len() as u64 + 2).max(1);
    usize::try_from(MACS / all).unwrap_or(usize::MAX).clamp(1, count.max(1))
}

impl Blame {
    pub(super) fn of(steps: usize) -> Self {
        Self {
            noise: vec![0.0; steps],
            of_inputs: 0.0,
            signal: 0.0,
        }
    }

    /// All noise, were that of layers alike added to no other's.
    pub(super) fn all(&self) -> f64 {
        self.noise.iter().sum::<f64>() + self.of_inputs
    }

    /// Adds a run of the float model, whose step `judged` completes the answers.
    pub(super) fn add(
        &mut self,
        models: &Models<'_>,
        judged: usize,
        (run, values): (&[Vec<u8>], &Values<'_>),
        fed: &AllFed,
    ) -> Result<()> {
        let Some(answer) = values.of_steps.get(&judged) else {
            return Ok(());
        };
        self.signal += answer.values.iter().map(|value| value * value).sum::<f64>();
        let read = stored::inputs_as_read(&models.inputs(run)?, run, models.ports[0]);
        if read != run {
            self.of_inputs += noise(models, judged, &read, answer, None)?;
        }
        for (&place, changed) in &own_errors(models, &read, values, fed)? {
            let step = fed[&place].step;
            self.noise[step] += match place == judged {
                true => squares(answer, changed),
                false if place > judged => 0.0,
                false => noise(models, judged, run, answer, Some((place, changed)))?,
            };
        }
        Ok(())
    }
}

/// The float model's values with the error that each layer adds to what its operands' rounding makes: by the float model's step.
fn own_errors(
    models: &Models<'_>,
    read: &[Vec<u8>],
    values: &Values<'_>,
    fed: &AllFed,
) -> Result<BTreeMap<usize, Traced>> {
    let mut all = BTreeMap::new();
    let mut failed = None;
    model::run_changing(models.float, &[read.to_vec()], true, &mut |_, step, session| {
        let place = step as usize;
        let (Some(own), Some(expected)) = (fed.get(&place), values.of_steps.get(&place)) else {
            return;
        };
        let Some((tensor, bytes)) = completed(models.theirs, step, &|slot, len| session.read(slot, len)) else {
            return;
        };
        match Traced::of(models.theirs, place, tensor, bytes) {
            Ok(of_rounded) => drop(all.insert(place, with_error(expected, &own.found, &of_rounded))),
            Err(e) => failed = Some(e),
        }
        if let Some(bytes) = stored::bytes(models.theirs, place, tensor, bytes, &own.stored) {
            session.write(tensor.slot, &bytes);
        }
    })?;
    failed.map_or(Ok(all), Err)
}

/// Values and, where both are known, what `found` differs by from `wanted`.
fn with_error(values: &Traced, found: &Traced, wanted: &Traced) -> Traced {
    let mut changed = values.clone();
    let pairs = found.values.iter().zip(&wanted.values);
    let known = found.known.iter().zip(&wanted.known);
    for ((value, (&found, &wanted)), (&here, &there)) in changed.values.iter_mut().zip(pairs).zip(known) {
        let error = found - wanted;
        if here && there && error.is_finite() {
            *value += error;
        }
    }
    changed
}

/// Squares of what the answers differ by, in a run of the float model in which a step's result may be another.
fn noise(
    models: &Models<'_>,
    judged: usize,
    inputs: &[Vec<u8>],
    answer: &Traced,
    changed: Option<(usize, &Traced)>,
) -> Result<f64> {
    let mut sum = 0.0;
    let mut failed = None;
    model::run_changing(models.float, &[inputs.to_vec()], true, &mut |_, step, session| {
        let place = step as usize;
        let changed = changed.filter(|(changed, _)| *changed == place).map(|(_, value)| value);
        if changed.is_none() && place != judged {
            return;
        }
        let Some((tensor, bytes)) = completed(models.theirs, step, &|slot, len| session.read(slot, len)) else {
            return;
        };
        if place == judged {
            match Traced::of(models.theirs, place, tensor, bytes) {
                Ok(found) => sum += squares(answer, &found),
                Err(e) => failed = Some(e),
            }
        }
        let written = changed.and_then(|value| stored::bytes(models.theirs, place, tensor, bytes, value));
        if let Some(bytes) = written {
            session.write(tensor.slot, &bytes);
        }
    })?;
    failed.map_or(Ok(sum), Err)
}

fn squares(expected: &Traced, found: &Traced) -> f64 {
    let values = expected.values.iter().zip(&found.values);
    let known = expected.known.iter().zip(&found.known);
    let each = values.zip(known).filter(|(_, (known, there))| **known && **there);
    each.map(|((expected, found), _)| (expected - found) * (expected - found))
        .filter(|square| square.is_finite())
        .sum()
}
