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

/// Signal and noise of each answer, in squares.
pub(super) type Squares = BTreeMap<TensorId, [f64; 2]>;

/// Noise over signal, over all answers.
pub(super) fn noise(squares: &Squares) -> f64 {
    squares
        .values()
        .map(|[signal, noise]| noise / signal.max(f64::MIN_POSITIVE))
        .sum()
}

/// Adds squares.
pub(super) fn add(to: &mut Squares, squares: Squares) {
    for (id, [signal, noise]) in squares {
        let sum = to.entry(id).or_default();
        (sum[0], sum[1]) = (sum[0] + signal, sum[1] + noise);
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
        let mut sums = Squares::new();
        for part in self.parts(fold, graph, (weights, threads), &|_| 0)? {
            add(
                &mut sums,
                part.into_iter().map(|((_, id), squares)| (id, squares)).collect(),
            );
        }
        match self.folds[fold].answers.keys().find(|id| !sums.contains_key(id)) {
            None => Ok(sums),
            Some(_) => Err(Error::internal("an answer of the quantised network is not seen")),
        }
    }

    /// The same of each sample of a fold by itself.
    pub(super) fn of_each(
        &self,
        fold: usize,
        graph: &Graph,
        weights: &Weights,
        threads: usize,
    ) -> Result<Vec<Squares>> {
        let mut each = vec![Squares::new(); self.folds[fold].samples.len()];
        let parts = self.parts(fold, graph, (weights, threads), &|sample| sample)?;
        for ((sample, id), squares) in parts.into_iter().flatten() {
            each[sample].insert(id, squares);
        }
        Ok(each)
    }

    /// Squares of the parts of a fold, by answer and by what `of` makes of a sample's number.
    fn parts(
        &self,
        fold: usize,
        graph: &Graph,
        (weights, threads): (&Weights, usize),
        of: &(dyn Fn(usize) -> usize + Sync),
    ) -> Result<Vec<BTreeMap<(usize, TensorId), [f64; 2]>>> {
        let fold = &self.folds[fold];
        let places = self.places(graph);
        let evaluator = Evaluator::new(graph, weights, threads, |id| places.contains_key(&id))?;
        evaluator.each(
            &fold.samples,
            BTreeMap::<(usize, TensorId), [f64; 2]>::new,
            |sums, seen| {
                let id = places.get(&seen.tensor).copied().unwrap_or(seen.tensor);
                let Some(answer) = fold.answers.get(&id).and_then(|all| all.get(seen.sample)) else {
                    return Ok(());
                };
                let [signal, noise] = sums.entry((of(seen.sample), id)).or_default();
                let mut add = |(expected, found): (f32, f32)| {
                    let (expected, found) = (f64::from(expected), f64::from(found));
                    *signal += expected * expected;
                    *noise += (expected - found) * (expected - found);
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
                Ok(())
            },
            &mut |_| {},
        )
    }
}

/// Noise over signal in dB of signal over noise.
pub(super) fn decibels(noise: f64) -> Option<f64> {
    let ratio = -10.0 * noise.log10();
    // A thousandth of a dB is more than anybody reads.
    ratio.is_finite().then(|| (ratio * 1e3).round() / 1e3)
}
