//! How far a quantised network's answers are from the float one's, on a part of the samples.

use std::collections::BTreeMap;

use arenite::quant::dequantize;

use super::activations::Activations;
use super::evaluate::{Evaluator, Samples, floats, parts};
use super::form::{before_softmax, is_real};
use super::statistics::fold_of;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, TensorId};
use crate::samples::Value;
use crate::weights::Weights;

/// The float network's answers, and what gave them.
pub(super) struct Judge {
    folds: Vec<Fold>,
    judged: Vec<Judged>,
}

/// An answer that is looked at.
struct Judged {
    /// In the float graph.
    answer: TensorId,
    /// The output that comes of it.
    output: usize,
    /// The name of the node that reads it, where it is not the output itself.
    reader: Option<String>,
}

/// Samples that judge what the others have calibrated.
struct Fold {
    samples: Vec<Vec<Value>>,
    /// By tensor, by sample.
    answers: BTreeMap<TensorId, Vec<Vec<f32>>>,
}

/// Signal and noise of each answer, in squares, by sample.
pub(super) type Squares = BTreeMap<TensorId, Vec<[f64; 2]>>;

/// A sample whose answers have so many times the median's signal counts as one that has no more: what is broken decides nothing.
const BROKEN: f64 = 100.0;

/// Noise over the signal of all samples together, by sample; of all answers.
pub(super) fn of_each(squares: &Squares) -> Vec<f64> {
    let count = squares.values().map(Vec::len).max().unwrap_or(0);
    let mut all = vec![0.0; count];
    for answer in squares.values() {
        let mut signals: Vec<f64> = answer.iter().map(|&[signal, _]| signal).collect();
        signals.sort_unstable_by(f64::total_cmp);
        let most = signals.get(signals.len() / 2).map_or(0.0, |median| median * BROKEN);
        let weight = |signal: f64| {
            if signal > most && most > 0.0 {
                most / signal
            } else {
                1.0
            }
        };
        let signal: f64 = answer.iter().map(|&[signal, _]| signal * weight(signal)).sum();
        for (noise_of_sample, &[own, noise]) in all.iter_mut().zip(answer) {
            *noise_of_sample += noise * weight(own) / signal.max(f64::MIN_POSITIVE);
        }
    }
    all
}

/// Noise over signal, over all answers.
pub(super) fn noise(squares: &Squares) -> f64 {
    of_each(squares).iter().sum()
}

/// Adds those of other samples.
pub(super) fn add(to: &mut Squares, squares: Squares) {
    for (id, each) in squares {
        to.entry(id).or_default().extend(each);
    }
}

impl Judge {
    /// Of samples in so many folds, of each of which at most `judges` judge, spread over all of it.
    pub(super) fn new(
        graph: &Graph,
        float: &Evaluator,
        samples: &Samples,
        folds: usize,
        judges: usize,
    ) -> Result<Self> {
        let judged = graph.outputs.iter().enumerate().map(|(output, &id)| {
            let (answer, reader) = before_softmax(graph, id);
            let reader = reader.map(|node| node.name.clone());
            Judged { answer, output, reader }
        });
        let judged: Vec<Judged> = judged.filter(|judged| is_real(graph, judged.answer)).collect();
        let tensors: Vec<TensorId> = judged.iter().map(|judged| judged.answer).collect();
        let parts: Vec<_> = parts(samples).collect();
        let fold = |fold: usize| {
            let own = parts
                .iter()
                .enumerate()
                .filter(|(part, _)| fold_of(*part, parts.len(), folds) == fold);
            let own: Vec<_> = own.flat_map(|(_, part)| part.iter()).collect();
            let step = own.len().div_ceil(judges).max(1);
            let samples: Vec<_> = own.into_iter().step_by(step).cloned().collect();
            let parts = float.each(
                &samples,
                BTreeMap::<TensorId, Vec<Vec<f32>>>::new,
                |answers, seen| {
                    if tensors.contains(&seen.tensor) {
                        answers
                            .entry(seen.tensor)
                            .or_default()
                            .push(floats(seen.bytes).collect());
                    }
                    Ok(())
                },
                &mut |_| {},
            )?;
            let mut answers = BTreeMap::<TensorId, Vec<Vec<f32>>>::new();
            for (id, part) in parts.into_iter().flatten() {
                answers.entry(id).or_default().extend(part);
            }
            Ok(Fold { samples, answers })
        };
        Ok(Self {
            folds: (0..folds).map(fold).collect::<Result<_>>()?,
            judged,
        })
    }

    /// The answers by the tensors of a quantised graph that hold them as whoever comes next reads them, behind a conversion where there is one.
    fn places(&self, graph: &Graph) -> BTreeMap<TensorId, TensorId> {
        let place = |judged: &Judged| {
            let reads = |node: &&Node| Some(&node.name) == judged.reader.as_ref();
            let read = graph.nodes.iter().find(reads).and_then(|node| node.inputs.first());
            match judged.reader {
                Some(_) => read.copied().flatten(),
                None => graph.outputs.get(judged.output).copied(),
            }
        };
        let places = self.judged.iter().map(|judged| (place(judged), judged.answer));
        places.filter_map(|(place, answer)| Some((place?, answer))).collect()
    }

    /// How many folds there are.
    pub(super) fn folds(&self) -> usize {
        self.folds.len()
    }

    /// How many samples judge.
    pub(super) fn samples(&self) -> usize {
        self.folds.iter().map(|fold| fold.samples.len()).sum()
    }

    /// How the answers of a quantised graph to the samples of a fold differ; nodes have the float graph's names.
    pub(super) fn squares(&self, fold: usize, graph: &Graph, weights: &Weights, threads: usize) -> Result<Squares> {
        let fold = &self.folds[fold];
        let places = self.places(graph);
        let evaluator = Evaluator::new(graph, weights, threads, |id| places.contains_key(&id))?;
        let parts = evaluator.each(
            &fold.samples,
            Squares::new,
            |sums, seen| {
                let id = places.get(&seen.tensor).copied().unwrap_or(seen.tensor);
                let Some(answer) = fold.answers.get(&id).and_then(|all| all.get(seen.sample)) else {
                    return Ok(());
                };
                let [mut signal, mut noise] = [0.0; 2];
                let mut add = |(expected, found): (f32, f32)| {
                    let (expected, found) = (f64::from(expected), f64::from(found));
                    signal += expected * expected;
                    noise += (expected - found) * (expected - found);
                };
                match Activations::of(graph.tensor(seen.tensor)) {
                    Some((activations, quant)) => {
                        let (scale, zero) = (quant.scale[0], quant.zero_point[0]);
                        let numbers = activations.numbers(seen.bytes);
                        let real = numbers.iter().map(|&number| dequantize(number.into(), scale, zero));
                        answer.iter().copied().zip(real).for_each(&mut add);
                    }
                    None => answer.iter().copied().zip(floats(seen.bytes)).for_each(&mut add),
                }
                sums.entry(id).or_default().push([signal, noise]);
                Ok(())
            },
            &mut |_| {},
        )?;
        let mut sums = Squares::new();
        parts.into_iter().for_each(|part| add(&mut sums, part));
        match fold.answers.keys().find(|id| !sums.contains_key(id)) {
            None => Ok(sums),
            Some(_) => Err(Error::internal("an answer of the quantised network is not seen")),
        }
    }
}

/// Noise over signal in dB of signal over noise.
pub(super) fn decibels(noise: f64) -> Option<f64> {
    let ratio = -10.0 * noise.log10();
    // A thousandth of a dB is more than anybody reads.
    ratio.is_finite().then(|| (ratio * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broken_sample_decides_nothing() {
        let of = |broken: [f64; 2]| {
            let mut all = vec![[1.0, 0.01]; 30];
            all[7] = broken;
            Squares::from([(TensorId(3), all)])
        };
        let healthy = noise(&of([1.0, 0.01]));
        assert!((healthy - 0.01).abs() < 1e-9, "{healthy}");
        // Its signal and noise count as those of a sample a hundred times the median.
        let broken = of([1e8, 1e7]);
        assert!((noise(&broken) - (29.0 * 0.01 + 10.0) / 129.0).abs() < 1e-9);
        assert_eq!(of_each(&broken).len(), 30);
        // A value that left its range is noise as any other.
        assert!(noise(&of([1.0, 0.5])) > 2.0 * healthy);
    }
}
