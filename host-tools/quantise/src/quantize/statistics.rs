//! Statistics of the activations on the samples: the ends of their values, then how the values lie between them. No activation is stored.

use std::collections::BTreeMap;

use super::evaluate::{Evaluator, Samples, floats};
use super::masks::{self, Lines};
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
    /// Of these, values that are zero, which is stored exactly: after a ReLU most are.
    pub(super) zeros: u64,
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
            zeros: self.zeros + other.zeros,
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

/// Tables that neighbouring values are counted in, in turn: many values are the same, and a count that waits for the one before it takes several times as long.
const TABLES: usize = 4;

/// A histogram under way.
struct Counts {
    tables: [Vec<u64>; TABLES],
    zeros: u64,
}

impl Counts {
    fn new() -> Self {
        Self {
            tables: std::array::from_fn(|_| vec![0; BINS]),
            zeros: 0,
        }
    }

    fn add(&mut self, bytes: &[u8], low: f64, span: f64) {
        let (words, _) = bytes.as_chunks::<4>();
        self.zeros += words.iter().filter(|word| f32::from_le_bytes(**word) == 0.0).count() as u64;
        for words in words.chunks(TABLES) {
            for (word, table) in words.iter().zip(&mut self.tables) {
                table[bin_of(f32::from_le_bytes(*word).into(), low, span)] += 1;
            }
        }
    }

    fn bins(&self) -> Vec<u64> {
        let [first, rest @ ..] = &self.tables;
        let mut bins = first.clone();
        for table in rest {
            bins.iter_mut().zip(table).for_each(|(sum, count)| *sum += count);
        }
        bins
    }
}

/// Values whose least and greatest are kept side by side, in vector registers.
const LANES: usize = 16;

/// The bits of the exponent, all of which infinities and what is no number have.
const EXPONENT: u32 = 0x7f80_0000;

/// The least and the greatest of f32 values, infinities where there are none.
///
/// # Errors
/// A value that is not finite.
fn extremes(bytes: &[u8]) -> std::result::Result<[f32; 2], f32> {
    let (words, _) = bytes.as_chunks::<4>();
    let (blocks, rest) = words.as_chunks::<LANES>();
    let (mut least, mut greatest, mut odd) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES], [0_u32; LANES]);
    for block in blocks {
        for (lane, word) in block.iter().enumerate() {
            let value = f32::from_le_bytes(*word);
            least[lane] = if value < least[lane] { value } else { least[lane] };
            greatest[lane] = if value > greatest[lane] { value } else { greatest[lane] };
            odd[lane] |= u32::from(value.to_bits() & EXPONENT == EXPONENT);
        }
    }
    let rest = || rest.iter().map(|word| f32::from_le_bytes(*word));
    if odd.contains(&1) || rest().any(|value| !value.is_finite()) {
        return Err(floats(bytes).find(|value| !value.is_finite()).unwrap_or(f32::NAN));
    }
    let all = |of: [f32; LANES]| of.into_iter().chain(rest());
    Ok([
        all(least).fold(f32::INFINITY, f32::min),
        all(greatest).fold(f32::NEG_INFINITY, f32::max),
    ])
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

/// The values of every activation in each fold but `fold`, of so many.
pub(super) fn by_fold(parts: &Parts, fold: Option<usize>, folds: usize) -> Vec<BTreeMap<TensorId, Values>> {
    let mut all = vec![BTreeMap::<TensorId, Values>::new(); folds];
    for (index, part) in parts.iter().enumerate() {
        let own = fold_of(index, parts.len(), folds);
        if fold == Some(own) {
            continue;
        }
        let of_fold = &mut all[own];
        for (&id, values) in part {
            let joined = match of_fold.get(&id) {
                Some(others) => others.joined(values),
                None => values.clone(),
            };
            of_fold.insert(id, joined);
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
    (samples, masked): (&Samples, &Lines),
    progress: &mut dyn FnMut(usize),
) -> Result<Parts> {
    let ends = evaluator.each(
        samples,
        BTreeMap::<TensorId, [f32; 2]>::new,
        |ends, seen| {
            let [low, high] = extremes(&masks::read(masked, seen.tensor, seen.bytes)).map_err(|value| {
                let name = &graph.tensor(seen.tensor).name;
                Error::input(format!("`{name}` is {value} for sample {}", seen.sample))
                    .expected("finite values in every layer")
                    .help("the float network overflows there: leave the sample out, or mend the weights")
            })?;
            let [min, max] = ends.entry(seen.tensor).or_insert([f32::INFINITY, f32::NEG_INFINITY]);
            (*min, *max) = (min.min(low), max.max(high));
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
        BTreeMap::<TensorId, Counts>::new,
        |bins, seen| {
            if let Some(&[min, max]) = all.get(&seen.tensor) {
                let counts = bins.entry(seen.tensor).or_insert_with(Counts::new);
                counts.add(
                    &masks::read(masked, seen.tensor, seen.bytes),
                    f64::from(min),
                    f64::from(max) - f64::from(min),
                );
            }
            Ok(())
        },
        &mut |done| progress(samples.len() + done),
    )?;
    let part = |(bins, ends): (BTreeMap<TensorId, Counts>, &BTreeMap<TensorId, [f32; 2]>)| {
        let values = bins.into_iter().filter_map(|(id, counts)| {
            let &[min, max] = ends.get(&id)?;
            let (ends, bins, zeros) = (*all.get(&id)?, counts.bins(), counts.zeros);
            let values = Values {
                min,
                max,
                ends,
                bins,
                zeros,
            };
            Some((id, values))
        });
        values.collect()
    };
    Ok(bins.into_iter().zip(&ends).map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Of every length about the lanes, with the ends in every place.
    #[test]
    fn extremes_are_those_of_all_values() {
        assert_eq!(extremes(&[]), Ok([f32::INFINITY, f32::NEG_INFINITY]));
        for len in 1..3 * LANES {
            for at in 0..len {
                let mut values: Vec<f32> = (0..len).map(|n| (n % 5) as f32 - 2.0).collect();
                values[at] = -7.5;
                values[(at + 1) % len] = if len > 1 { 9.25 } else { -7.5 };
                let expected = [-7.5, if len > 1 { 9.25 } else { -7.5 }];
                assert_eq!(extremes(&bytes(&values)), Ok(expected), "{len} {at}");
                for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    values[at] = odd;
                    let found = extremes(&bytes(&values)).expect_err("no finite number");
                    assert_eq!(found.to_bits(), odd.to_bits(), "{len} {at}");
                }
            }
        }
    }

    #[test]
    fn counts_are_those_of_one_value_after_the_other() {
        let values: Vec<f32> = (0..1001).map(|n| (n * n % 997) as f32 / 3.0 - 100.0).collect();
        let mut counts = Counts::new();
        let (some, others) = values.split_at(333);
        counts.add(&bytes(some), -100.0, 332.0);
        counts.add(&bytes(others), -100.0, 332.0);
        let mut expected = vec![0; BINS];
        for value in &values {
            let bin = ((f64::from(*value) + 100.0) / 332.0 * BINS as f64).floor() as usize;
            expected[bin.min(BINS - 1)] += 1;
        }
        assert_eq!(counts.bins(), expected);
        // All values the same, and the greatest.
        assert_eq!(bin_of(5.0, 5.0, 0.0), 0);
        assert_eq!(bin_of(232.0, -100.0, 332.0), BINS - 1);
    }
}
