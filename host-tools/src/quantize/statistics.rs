//! What is kept of the activations that the samples give: the ends of their values, then how the values lie between them. No activation is stored.

use std::collections::BTreeMap;

use super::evaluate::{Evaluator, Samples, floats};
use crate::error::{Error, Result};
use crate::graph::{Graph, TensorId};

/// Bins of a histogram.
pub(super) const BINS: usize = 2048;

/// An activation's values over some of the samples.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    /// The least.
    pub(super) min: f32,
    /// The greatest.
    pub(super) max: f32,
    /// Where the bins begin and end: the least and the greatest over all samples.
    pub(super) ends: [f32; 2],
    /// Values in each of [`BINS`] equal parts.
    pub(super) bins: Vec<u64>,
}

impl Values {
    /// The width of a bin.
    pub(super) fn width(&self) -> f64 {
        (f64::from(self.ends[1]) - f64::from(self.ends[0])) / BINS as f64
    }

    /// The middle of a bin, but no further out than any value.
    pub(super) fn middle(&self, bin: usize) -> f64 {
        let middle = f64::from(self.ends[0]) + (bin as f64 + 0.5) * self.width();
        middle.clamp(f64::from(self.min), f64::from(self.max))
    }

    /// Both together. Bins of other ends fall into the common ones by their middles.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let mut joined = Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            ends: [self.ends[0].min(other.ends[0]), self.ends[1].max(other.ends[1])],
            bins: vec![0; BINS],
        };
        let (low, span) = (f64::from(joined.ends[0]), joined.width() * BINS as f64);
        for values in [self, other] {
            for (bin, &count) in values.bins.iter().enumerate().filter(|(_, count)| **count > 0) {
                let at = if values.ends == joined.ends {
                    bin
                } else {
                    bin_of(values.middle(bin), low, span)
                };
                joined.bins[at] += count;
            }
        }
        joined
    }
}

fn bin_of(value: f64, low: f64, span: f64) -> usize {
    if span > 0.0 {
        ((((value - low) / span) * BINS as f64) as usize).min(BINS - 1)
    } else {
        0
    }
}

/// The values of every activation, by part of the samples.
pub(super) type Parts = Vec<BTreeMap<TensorId, Values>>;

/// The values of every activation in all parts but those of `fold`, of so many.
pub(super) fn without(parts: &Parts, fold: Option<(usize, usize)>) -> BTreeMap<TensorId, Values> {
    let mut all = BTreeMap::<TensorId, Values>::new();
    for (index, part) in parts.iter().enumerate() {
        if fold.is_some_and(|(fold, folds)| fold_of(index, parts.len(), folds) == fold) {
            continue;
        }
        for (&id, values) in part {
            let joined = match all.get(&id) {
                Some(others) => others.joined(values),
                None => values.clone(),
            };
            all.insert(id, joined);
        }
    }
    all
}

/// Neighbouring parts are a fold: samples that were made of one another stand side by side.
pub(super) fn fold_of(part: usize, parts: usize, folds: usize) -> usize {
    part * folds / parts.max(1)
}

/// The values of every activation, in two runs over the samples.
///
/// # Errors
/// An activation that is no number, with its sample.
pub(super) fn collect(
    evaluator: &Evaluator,
    graph: &Graph,
    samples: &Samples,
    progress: &mut dyn FnMut(usize),
) -> Result<Parts> {
    let ends = evaluator.each(
        samples,
        BTreeMap::<TensorId, [f32; 2]>::new,
        |ends, seen| {
            let [min, max] = ends.entry(seen.tensor).or_insert([f32::INFINITY, f32::NEG_INFINITY]);
            for value in floats(seen.bytes) {
                if !value.is_finite() {
                    let name = &graph.tensor(seen.tensor).name;
                    return Err(Error::input(format!("`{name}` is {value} for sample {}", seen.sample))
                        .expected("finite values in every layer")
                        .help("the float network overflows there: leave the sample out, or mend the weights"));
                }
                *min = min.min(value);
                *max = max.max(value);
            }
            Ok(())
        },
        &mut |done| progress(done),
    )?;
    let mut all = BTreeMap::<TensorId, [f32; 2]>::new();
    for (&id, &[min, max]) in ends.iter().flatten() {
        let [low, high] = all.entry(id).or_insert([min, max]);
        (*low, *high) = (low.min(min), high.max(max));
    }
    let bins = evaluator.each(
        samples,
        BTreeMap::<TensorId, Vec<u64>>::new,
        |bins, seen| {
            let Some(&[min, max]) = all.get(&seen.tensor) else {
                return Ok(());
            };
            let (low, span) = (f64::from(min), f64::from(max) - f64::from(min));
            let bins = bins.entry(seen.tensor).or_insert_with(|| vec![0; BINS]);
            for value in floats(seen.bytes) {
                bins[bin_of(f64::from(value), low, span)] += 1;
            }
            Ok(())
        },
        &mut |done| progress(samples.len() + done),
    )?;
    type Bins = BTreeMap<TensorId, Vec<u64>>;
    let part = |(bins, ends): (Bins, &BTreeMap<TensorId, [f32; 2]>)| {
        let values = bins.into_iter().filter_map(|(id, bins)| {
            let &[min, max] = ends.get(&id)?;
            let ends = *all.get(&id)?;
            Some((id, Values { min, max, ends, bins }))
        });
        values.collect()
    };
    Ok(bins.into_iter().zip(&ends).map(part).collect())
}
