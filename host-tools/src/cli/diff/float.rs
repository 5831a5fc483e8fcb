//! `arenite diff INT8 --float F32 --inputs X`: how much noise each layer of an int8 or int16 model has, beside the float model that it was made of.

use std::path::Path;

use arenite::Port;
use serde::Serialize;

use super::alone::{Alone, Named, decibels};
use super::blame::{self, AllFed, Blame, Fed};
use super::factors::factors;
use super::models::{Models, Values, completed};
use super::options::Options;
use super::sizes::Factors;
use super::traced::{self, Traced, is_quantised};
use crate::files::print;
use crate::metadata::{Metadata, StepMeta, TensorMeta};
use crate::model::{self, ModelFile};
use crate::{Error, Result, samples};

/// How many of the worst layers are named.
const WORST: usize = 3;
/// A layer that makes all noise brings no more than this, in dB: what is left of noise then is below what is looked at.
const MOST_GAIN: f64 = 60.0;

/// All layers.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Runs that were compared.
    pub(super) samples: usize,
    /// Of the outputs, or of what a last softmax reads.
    pub(super) snr_db: Option<f64>,
    /// The same of what these differ by from their mean over the samples: a constant that all answers share hides no noise.
    pub(super) deviations_db: Option<f64>,
    /// Value of `deviations_db` for a float model that answers each sample as the one before it.
    pub(super) another_db: Option<f64>,
    /// Pairs of layers between which packing equalised channels: they are compared in the float model's sizes.
    pub(super) equalised: usize,
    /// Of the samples, those by which layers are blamed.
    pub(super) blamed_by: usize,
    /// The inputs' share of the noise.
    pub(super) inputs_share: f64,
    pub(super) layers: Vec<Layer>,
    /// Those with the largest shares, and why.
    pub(super) worst: Vec<Advice>,
    /// Options that were tried, where `--packed-by` says how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) options: Option<Options>,
    /// Those that are further from the float model by themselves than they should be, and why.
    pub(super) weak: Vec<Named>,
    /// Steps that stand for no tensor of the float model.
    pub(super) not_in_float: Vec<String>,
}

/// A layer.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Layer {
    pub(super) step: usize,
    pub(super) op: String,
    /// The tensor.
    pub(super) name: String,
    /// Squares of the float layer's values over squares of the differences; none without noise or without signal.
    pub(super) snr_db: Option<f64>,
    /// The same of deviations from each value's mean over the samples; none for one sample.
    pub(super) deviations_db: Option<f64>,
    /// As `snr_db`, of the layer by itself: its operands are the float model's values, as they store them.
    pub(super) alone_db: Option<f64>,
    /// As `snr_db`, of the float layer's values stored with its scale: what the layer could reach.
    pub(super) stored_db: Option<f64>,
    /// The share of values that the float layer has outside of what the scale holds.
    pub(super) clipped: f64,
    /// Signal over noise of the answers, were nothing but this layer rounded; none where that makes no noise in them.
    pub(super) answers_db: Option<f64>,
    /// Of the noise that all layers and inputs make so, the share of this one.
    pub(super) share: f64,
}

/// A layer that makes much of the noise.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Advice {
    /// The tensor.
    pub(super) name: String,
    /// The layer, as options name it.
    pub(super) layer: String,
    pub(super) share: f64,
    /// Gain of the answers, were the layer exact, in dB.
    pub(super) gain_db: f64,
    pub(super) reason: String,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    signal: f64,
    noise: f64,
    clipped: u64,
    count: u64,
    /// By value: sums over the samples of what the float model has, and of the difference.
    of_values: Vec<[f64; 2]>,
}

impl Sums {
    /// Adds a run's values, in the float model's sizes; `own` are those that are expected, in the tensor's.
    fn add(&mut self, tensor: &TensorMeta, found: &Traced, expected: &Traced, own: &Traced) {
        let ends = traced::ends(tensor.dtype).filter(|_| is_quantised(tensor));
        let held =
            ends.map(|[low, high]| [f64::from(low) - 0.5, f64::from(high) + 0.5].map(|end| traced::real(tensor, end)));
        let values = found.values.iter().zip(&expected.values).zip(&own.values);
        let known = found.known.iter().zip(&expected.known);
        self.of_values.resize(expected.values.len(), [0.0; 2]);
        for ((((&found, &expected), &own), (&known, &there)), of_value) in values.zip(known).zip(&mut self.of_values) {
            if !(known && there) {
                continue;
            }
            of_value[0] += expected;
            of_value[1] += expected - found;
            self.signal += expected * expected;
            self.noise += (expected - found) * (expected - found);
            self.clipped += u64::from(held.is_some_and(|[low, high]| !(low..=high).contains(&own)));
            self.count += 1;
        }
    }

    /// The share of values that lie outside of what the scale holds.
    fn clipped(&self) -> f64 {
        self.clipped as f64 / self.count.max(1) as f64
    }

    /// Squares of deviations from the mean over so many samples: of the float model, and of the difference.
    fn deviations(&self, samples: usize) -> [f64; 2] {
        let of_means = |which: usize| self.of_values.iter().map(|sums| sums[which] * sums[which]).sum::<f64>();
        [(self.signal, 0), (self.noise, 1)].map(|(squares, which)| squares - of_means(which) / samples as f64)
    }
}

/// How far apart a layer's values of consecutive samples are.
#[derive(Debug, Default)]
struct Another {
    before: Vec<f64>,
    noise: f64,
}

impl Another {
    fn add<'v>(&mut self, values: impl Iterator<Item = &'v f64>) {
        let values: Vec<f64> = values.copied().collect();
        let differences = self.before.iter().zip(&values).map(|(a, b)| (a - b) * (a - b));
        self.noise += differences.sum::<f64>();
        self.before = values;
    }
}

/// Compares two models on the same inputs.
pub(super) fn compared(int8: &Path, float: &Path, inputs: &Path) -> Result<Report> {
    on_both(int8, [float, inputs], |models, runs, equalised| {
        let steps = models.ours.steps.len();
        let mut found = Found {
            sums: vec![Sums::default(); steps],
            alone: vec![Alone::default(); steps],
            blame: Blame::of(steps),
            another: Another::default(),
        };
        let sizes = factors(equalised, models, runs)?;
        let blaming = blame::samples(models, runs.len());
        for (number, run) in runs.iter().enumerate() {
            found.add(models, &sizes, run, number < blaming)?;
        }
        let mut report = found.report(models.ours, runs.len()).map_err(|e| e.in_file(int8))?;
        (report.equalised, report.blamed_by) = (equalised, blaming);
        Ok(report)
    })
}

/// Signal over noise of a model's answers, in dB.
pub(super) fn answers(int8: &Path, float: &Path, inputs: &Path) -> Result<Option<f64>> {
    on_both(int8, [float, inputs], |models, runs, _| {
        let mut sums = Sums::default();
        for run in runs {
            let values = models.values(run)?;
            let ours = models.ours;
            let judged = ours.steps.iter().rposition(|step| is_answer(step, &values));
            let mut failed = None;
            model::run(models.int8, &[models.inputs(run)?], true, &mut |_, step, session| {
                if judged != Some(step as usize) {
                    return;
                }
                let read = completed(ours, step, &|slot, len| session.read(slot, len));
                let Some((tensor, bytes)) = read else { return };
                let Some((_, expected)) = values.of(tensor) else {
                    return;
                };
                match models.found(&Factors::default(), step as usize, tensor, bytes) {
                    Ok(found) => sums.add(tensor, &found, expected, expected),
                    Err(e) => failed = Some(e),
                }
            })?;
            failed.map_or(Ok(()), Err)?;
        }
        Ok(decibels(sums.signal, sums.noise))
    })
}

/// Does `work` with both models, the runs of the float one, and the number of pairs of layers that were equalised.
fn on_both<T>(
    int8: &Path,
    [float, inputs]: [&Path; 2],
    work: impl FnOnce(&Models<'_>, &[Vec<Vec<u8>>], usize) -> Result<T>,
) -> Result<T> {
    let [int8, float] = [ModelFile::open(int8)?, ModelFile::open(float)?];
    let views = (int8.view()?, float.view()?);
    views.0.refuse_rolling("`diff`")?;
    views.1.refuse_rolling("`diff`")?;
    let (ours, theirs) = (views.0.metadata()?, views.1.metadata()?);
    let runs = samples::read(inputs, &views.1.inputs, &samples::of_a_data_set, &mut |note| {
        print::note(note)
    })
    .map_err(|e| e.in_file(inputs))?;
    let names = |ports: &[Port<'_>]| ports.iter().map(|port| port.name.to_string()).collect::<Vec<_>>();
    if names(&views.0.inputs) != names(&views.1.inputs) {
        return Err(Error::input(format!("its inputs are {:?}", names(&views.0.inputs)))
            .in_file(int8.path())
            .expected(format!("{:?}, those of the float model", names(&views.1.inputs))));
    }
    let equalised = views.0.summary()?.quantization.map_or(0, |made| made.equalised);
    let models = Models {
        ours: &ours,
        theirs: &theirs,
        int8: &int8.load()?,
        float: &float.load()?,
        ports: [&views.0.inputs, &views.1.inputs],
    };
    work(&models, &runs, equalised)
}

/// Sums over all samples, by step of the int8 model.
struct Found {
    sums: Vec<Sums>,
    alone: Vec<Alone>,
    blame: Blame,
    another: Another,
}

impl Found {
    /// Adds a run of both models; `blaming` as well what each layer does to the answers.
    fn add(&mut self, models: &Models<'_>, factors: &Factors, run: &[Vec<u8>], blaming: bool) -> Result<()> {
        let ours = models.ours;
        let values = models.values(run)?;
        let stored = models.inputs(run)?;
        let mut fed = AllFed::new();
        let mut failed = None;
        model::run_changing(
            models.int8,
            std::slice::from_ref(&stored),
            true,
            &mut |_, step, session| {
                let Some((tensor, bytes)) = completed(ours, step, &|slot, len| session.read(slot, len)) else {
                    return;
                };
                let Some((place, expected)) = values.of(tensor) else {
                    return;
                };
                let step = step as usize;
                let Some(best) = models.stored(factors, (step, tensor), bytes, expected) else {
                    return;
                };
                match models
                    .found(factors, step, tensor, bytes)
                    .and_then(|found| Ok((found, models.found(factors, step, tensor, &best)?)))
                {
                    Ok((found, stored)) => {
                        self.alone[step].add(&found, &stored, expected);
                        // A conversion behind the layer completes the same values once more.
                        fed.entry(place).or_insert(Fed { step, found, stored });
                    }
                    Err(e) => failed = Some(e),
                }
                // The next reader is fed with the float model's values.
                session.write(tensor.slot, &best);
            },
        )?;
        let judged = ours.steps.iter().rposition(|step| is_answer(step, &values));
        model::run(models.int8, &[stored], true, &mut |_, step, session| {
            let Some((tensor, bytes)) = completed(ours, step, &|slot, len| session.read(slot, len)) else {
                return;
            };
            let Some((_, expected)) = values.of(tensor) else {
                return;
            };
            let step = step as usize;
            match models.found(factors, step, tensor, bytes) {
                Ok(found) => {
                    let mut own = expected.clone();
                    factors.to_own(step, &mut own);
                    self.sums[step].add(tensor, &found, expected, &own);
                    if judged == Some(step) {
                        self.another.add(expected.values.iter());
                    }
                }
                Err(e) => failed = Some(e),
            }
        })?;
        failed.map_or(Ok(()), Err)?;
        let judged = judged.and_then(|step| values.of(ours.steps[step].completes.as_ref()?));
        match judged {
            Some((judged, _)) if blaming => self.blame.add(models, judged, (run, &values), &fed),
            _ => Ok(()),
        }
    }

    fn report(&self, metadata: &Metadata, samples: usize) -> Result<Report> {
        let mut layers = Vec::new();
        let mut weak = Vec::new();
        let mut not_in_float = Vec::new();
        let all = self.blame.all();
        let share = |noise: f64| if all > 0.0 { noise / all } else { 0.0 };
        for (index, (step, sums)) in metadata.steps.iter().zip(&self.sums).enumerate() {
            let Some(tensor) = &step.completes else { continue };
            if sums.count == 0 {
                not_in_float.push(step.name.clone());
                continue;
            }
            let [signal, noise] = sums.deviations(samples);
            let [alone_db, stored_db] = self.alone[index].decibels();
            weak.extend(self.alone[index].named(&tensor.names[0], sums.clipped()));
            layers.push(Layer {
                step: index,
                op: step.kind.clone(),
                name: tensor.names[0].clone(),
                snr_db: decibels(sums.signal, sums.noise),
                deviations_db: decibels(signal, noise).filter(|_| samples > 1),
                alone_db,
                stored_db,
                clipped: sums.clipped(),
                answers_db: decibels(self.blame.signal, self.blame.noise[index]),
                share: share(self.blame.noise[index]),
            });
        }
        if layers.is_empty() {
            return Err(Error::input("none of its layers is one of the float model")
                .expected("an int8 model that was made of the float model")
                .help("`arenite inspect --steps` lists the names"));
        }
        let judged = layers.iter().rev().find(|layer| !layer.op.contains("softmax"));
        let judged = judged.or(layers.last());
        let signal = judged.map_or(0.0, |layer| self.sums[layer.step].deviations(samples)[0]);
        Ok(Report {
            samples,
            snr_db: judged.and_then(|layer| layer.snr_db),
            deviations_db: judged.and_then(|layer| layer.deviations_db),
            // Of as many pairs as there are samples but one.
            another_db: decibels(signal, self.another.noise * samples as f64 / (samples as f64 - 1.0))
                .filter(|_| samples > 1),
            equalised: 0,
            blamed_by: 0,
            inputs_share: share(self.blame.of_inputs),
            worst: self.worst(&layers, &metadata.steps),
            options: None,
            weak,
            layers,
            not_in_float,
        })
    }

    fn worst(&self, layers: &[Layer], steps: &[StepMeta]) -> Vec<Advice> {
        let mut sorted: Vec<&Layer> = layers.iter().filter(|layer| layer.share > 0.0).collect();
        sorted.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.step.cmp(&b.step)));
        let advice = |layer: &&Layer| Advice {
            name: layer.name.clone(),
            layer: steps[layer.step].name.clone(),
            share: layer.share,
            gain_db: decibels(1.0, 1.0 - layer.share).unwrap_or(MOST_GAIN).min(MOST_GAIN),
            reason: self.alone[layer.step].reason(layer.clipped),
        };
        sorted.iter().take(WORST).map(advice).collect()
    }
}

/// Whether a step completes what is judged: of the steps that do the last one.
fn is_answer(step: &StepMeta, values: &Values<'_>) -> bool {
    let there = |tensor| values.of(tensor).is_some();
    !step.kind.contains("softmax") && step.completes.as_ref().is_some_and(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_from_the_mean_over_samples() {
        // Two values of three samples, with a constant that the mean takes away.
        let float = [[101.0, -3.0], [104.0, 2.0], [102.5, 0.5]];
        let int8 = [[101.5, -2.0], [104.0, 1.5], [103.0, 0.0]];
        let mut sums = Sums::default();
        sums.of_values.resize(2, [0.0; 2]);
        for (float, int8) in float.iter().zip(&int8) {
            for ((float, int8), of_value) in float.iter().zip(int8).zip(&mut sums.of_values) {
                of_value[0] += float;
                of_value[1] += float - int8;
                sums.signal += float * float;
                sums.noise += (float - int8) * (float - int8);
            }
        }
        let deviations = |samples: &[[f64; 2]; 3], at: usize| {
            let mean = samples.iter().map(|sample| sample[at]).sum::<f64>() / 3.0;
            samples.map(|sample| sample[at] - mean)
        };
        let (mut signal, mut noise) = (0.0, 0.0);
        for at in 0..2 {
            for (float, int8) in deviations(&float, at).into_iter().zip(deviations(&int8, at)) {
                signal += float * float;
                noise += (float - int8) * (float - int8);
            }
        }
        let found = sums.deviations(3);
        assert!(
            (found[0] - signal).abs() < 1e-9 && (found[1] - noise).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!(decibels(found[0], found[1]), Some(10.25));
        assert_eq!(decibels(1.0, 0.0), None);
    }

    #[test]
    fn another_samples_answers_are_the_ones_before() {
        let mut another = Another::default();
        for values in [[1.0, 2.0], [1.5, 0.0], [3.5, 1.0]] {
            another.add(values.iter());
        }
        assert_eq!(another.noise, 0.25 + 4.0 + 4.0 + 1.0);
    }
}
