//! From values to a range.

use super::activations::Activations;
use super::statistics::{BINS, Values};

/// How a range is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Method {
    /// All values are inside.
    MinMax,
    /// So are values that lie an eighth further out: other samples have such.
    Wide,
    /// A quarter further out.
    Wider,
    /// All but one in ten thousand are, in equal parts at either end.
    Percentile,
    /// The mean square of rounding and clipping together is least.
    Mse,
    /// The same by values of samples that the range does not come from, which reach further: clipping weighs as much as rounding.
    Held1,
    /// Four times as much: it is alike for many values, and the layers behind do not average it away.
    Held4,
    /// Sixteen times as much.
    Held16,
}

impl Method {
    pub(super) const ALL: [Self; 8] = [
        Self::MinMax,
        Self::Wide,
        Self::Wider,
        Self::Percentile,
        Self::Mse,
        Self::Held1,
        Self::Held4,
        Self::Held16,
    ];

    /// The one that is taken where no other is known to be nearer.
    pub(super) fn first(activations: Activations) -> Self {
        match activations {
            Activations::Int8 => Self::MinMax,
            // Its steps are so fine that ranges may lie well outside of what the samples have.
            Activations::Int16 => Self::Wider,
        }
    }

    /// Its name in summaries.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MinMax => "min/max",
            Self::Wide => "min/max + 1/8",
            Self::Wider => "min/max + 1/4",
            Self::Percentile => "percentile",
            Self::Mse => "mse",
            Self::Held1 => "held out, 1",
            Self::Held4 => "held out, 4",
            Self::Held16 => "held out, 16",
        }
    }

    /// The range; zero is always inside.
    pub(super) fn range(self, values: &Values, folds: &[Values], activations: Activations) -> [f64; 2] {
        let ends = [f64::from(values.min).min(0.0), f64::from(values.max).max(0.0)];
        match self {
            Self::MinMax => ends,
            Self::Wide => wider(ends, 1.125),
            Self::Wider => wider(ends, 1.25),
            Self::Percentile => percentile(values, ends),
            Self::Mse => least_square(values, ends, activations),
            Self::Held1 => held_out(ends, folds, activations, 1.0),
            Self::Held4 => held_out(ends, folds, activations, 4.0),
            Self::Held16 => held_out(ends, folds, activations, 16.0),
        }
    }
}

/// A range with its ends further out, but for one at the bound of ReLU6.
fn wider([low, high]: [f64; 2], factor: f64) -> [f64; 2] {
    let high = if high == 6.0 { high } else { high * factor };
    [low * factor, high]
}

/// Values outside of a percentile's range.
const OUTSIDE: f64 = 1e-4;

fn percentile(values: &Values, [low, high]: [f64; 2]) -> [f64; 2] {
    let all: u64 = values.bins.iter().sum();
    let most = (all as f64 * OUTSIDE / 2.0) as u64;
    let mut outside = [0; 2];
    let mut beyond = |end: usize, bin: usize| {
        outside[end] += values.bins[bin];
        outside[end] > most
    };
    let width = values.width();
    let first = (0..BINS)
        .find(|&bin| beyond(0, bin))
        .map_or(low, |bin| values.middle(bin) - width / 2.0);
    let last = (0..BINS)
        .rev()
        .find(|&bin| beyond(1, bin))
        .map_or(high, |bin| values.middle(bin) + width / 2.0);
    [first.clamp(low, 0.0), last.clamp(0.0, high)]
}

/// Steps of the search for each end.
const STEPS: usize = 80;

/// Both ends in turn move inwards as long as the sum of the squares of rounding (a twelfth of a squared step each) and clipping falls.
fn least_square(values: &Values, ends: [f64; 2], activations: Activations) -> [f64; 2] {
    let curve = Curve::of(values);
    let mut best = ends;
    let mut least = curve.error(best, activations, 1.0);
    for _ in 0..2 {
        for end in 0..2 {
            let from = best[end];
            for step in 1..STEPS {
                let mut tried = best;
                tried[end] = from * (1.0 - step as f64 / STEPS as f64);
                let error = curve.error(tried, activations, 1.0);
                if error < least {
                    (best, least) = (tried, error);
                }
            }
        }
    }
    best
}

/// Values of a fold, summed from the least on: their number, their sum and that of their squares.
struct Curve {
    low: f64,
    width: f64,
    sums: Vec<[f64; 3]>,
    zeros: f64,
}

impl Curve {
    fn of(values: &Values) -> Self {
        let mut sums = vec![[0.0; 3]];
        let mut sum = [0.0; 3];
        for (bin, &count) in values.bins.iter().enumerate() {
            let (count, middle) = (count as f64, values.middle(bin));
            sum = [
                sum[0] + count,
                sum[1] + count * middle,
                sum[2] + count * middle * middle,
            ];
            sums.push(sum);
        }
        Self {
            low: f64::from(values.ends[0]),
            width: values.width(),
            sums,
            zeros: values.zeros as f64,
        }
    }

    /// The first bin whose middle is this or more.
    fn bin(&self, value: f64) -> usize {
        if self.width > 0.0 {
            ((value - self.low) / self.width - 0.5).ceil().clamp(0.0, BINS as f64) as usize
        } else {
            BINS
        }
    }

    /// Squares of rounding and clipping.
    fn error(&self, [low, high]: [f64; 2], activations: Activations, weight: f64) -> f64 {
        let step = activations.step([low, high]);
        let (first, last) = (self.bin(low), self.bin(high).max(self.bin(low)));
        let square = |[n, s, q]: [f64; 3], end: f64| (q - 2.0 * end * s + end * end * n).max(0.0);
        let all = self.sums[BINS];
        let (below, upto) = (self.sums[first], self.sums[last]);
        let above = [all[0] - upto[0], all[1] - upto[1], all[2] - upto[2]];
        let inside = (upto[0] - below[0] - self.zeros).max(0.0);
        inside * step * step / 12.0 + weight * (square(below, low) + square(above, high))
    }
}

/// The ends of all values times factors with which the ranges of all folds but one give the others' values the least error.
fn held_out(ends: [f64; 2], folds: &[Values], activations: Activations, weight: f64) -> [f64; 2] {
    if folds.len() < 2 {
        return ends;
    }
    let held: Vec<([f64; 2], Curve)> = folds
        .iter()
        .enumerate()
        .map(|(fold, own)| {
            let others = folds.iter().enumerate().filter(|(other, _)| *other != fold);
            let ends = others.fold([0.0_f64; 2], |[low, high], (_, v)| {
                [low.min(v.min.into()), high.max(v.max.into())]
            });
            (ends, Curve::of(own))
        })
        .collect();
    let error = |factors: [f64; 2]| -> f64 {
        held.iter()
            .map(|([low, high], curve)| curve.error([low * factors[0], high * factors[1]], activations, weight))
            .sum()
    };
    let mut best = [1.0, 1.0];
    let mut least = error(best);
    for _ in 0..2 {
        for end in 0..2 {
            for step in 8..=64 {
                let mut tried = best;
                tried[end] = f64::from(step) / 40.0;
                if end == 1 && ends[1] == 6.0 && tried[1] > 1.0 {
                    continue;
                }
                let error = error(tried);
                if error < least * (1.0 - 1e-9) {
                    (best, least) = (tried, error);
                }
            }
        }
    }
    [ends[0] * best[0], ends[1] * best[1]]
}

/// The share of values outside of a range, by the middles of their bins.
pub(super) fn outside(values: &Values, [low, high]: [f64; 2]) -> f64 {
    let all: u64 = values.bins.iter().sum();
    let bins = values.bins.iter().enumerate();
    let out: u64 = bins
        .filter(|(bin, _)| values.middle(*bin) < low || values.middle(*bin) > high)
        .map(|(_, count)| count)
        .sum();
    out as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(min: f32, max: f32, bins: impl IntoIterator<Item = (usize, u64)>) -> Values {
        let mut all = vec![0; BINS];
        bins.into_iter().for_each(|(bin, count)| all[bin] = count);
        Values {
            min,
            max,
            ends: [min, max],
            bins: all,
            zeros: 0,
        }
    }

    #[test]
    fn zeros_are_exact_and_move_no_range() {
        // Behind a ReLU: nine of ten values are zero, which every scale stores as it is.
        let tail = |bin: usize| (bin, (BINS - bin) as u64);
        let alone = values(0.0, 4.0, (1..BINS).map(tail));
        let with = Values {
            zeros: 10_000_000,
            ..values(0.0, 4.0, (1..BINS).map(tail).chain([(0, 10_000_000)]))
        };
        assert_eq!(
            Method::Mse.range(&with, &[], Activations::Int8),
            Method::Mse.range(&alone, &[], Activations::Int8)
        );
    }

    #[test]
    fn ranges_are_as_wide_as_values_of_other_samples_want() {
        // Two folds of which the second reaches half as far again: ranges of the first alone clip it.
        let spread = |max: f32| values(0.0, max, (0..BINS).map(|bin| (bin, 100)));
        let folds = [spread(2.0), spread(3.0)];
        let all = folds[0].joined(&folds[1]);
        let [low, high] = Method::Held16.range(&all, &folds, Activations::Int8);
        assert!(low == 0.0 && high > 4.0 && high <= 3.0 * 1.6, "{high}");
        // The same values in every fold: nothing beyond them is wanted, and little less.
        let [_, high] = Method::Held16.range(&all, &[all.clone(), all.clone()], Activations::Int8);
        assert!((2.7..=3.05).contains(&high), "{high}");
        // One fold says nothing of others.
        assert_eq!(Method::Held1.range(&all, &folds[..1], Activations::Int8), [0.0, 3.0]);
    }

    /// Sums of squares beside a loop over all values.
    #[test]
    fn errors_are_those_of_single_values() {
        let spread = values(-1.0, 3.0, (0..BINS).map(|bin| (bin, (bin * 7 % 13) as u64)));
        let curve = Curve::of(&spread);
        for [low, high] in [[-1.0, 3.0], [-0.4, 1.7], [0.0, 0.9], [-2.0, 5.0]] {
            let step = Activations::Int8.step([low, high]);
            let each = (0..BINS).map(|bin| {
                let middle = spread.middle(bin);
                let outside = (low - middle).max(middle - high).max(0.0);
                let error = if outside > 0.0 {
                    4.0 * outside * outside
                } else {
                    step * step / 12.0
                };
                spread.bins[bin] as f64 * error
            });
            let (naive, found) = (each.sum::<f64>(), curve.error([low, high], Activations::Int8, 4.0));
            assert!((naive - found).abs() <= 1e-6 * naive, "{low} {high}: {naive} {found}");
        }
    }

    #[test]
    fn a_few_far_values_are_clipped_and_counted() {
        // Values all over the first quarter, and one at the far end.
        let spread = values(0.0, 4.0, (0..BINS / 4).map(|bin| (bin, 1000)).chain([(BINS - 1, 1)]));
        assert_eq!(Method::MinMax.range(&spread, &[], Activations::Int8), [0.0, 4.0]);
        assert_eq!(Method::Wide.range(&spread, &[], Activations::Int8), [0.0, 4.5]);
        assert_eq!(
            Method::Wider.range(&values(-1.0, 6.0, [(0, 1)]), &[], Activations::Int8),
            [-1.25, 6.0]
        );
        // The least of 512,001 (h / 255)² / 12 + (4 - h)² is at 2.41.
        for (method, expected) in [(Method::Percentile, 0.9..1.6), (Method::Mse, 2.3..2.5)] {
            let [low, high] = method.range(&spread, &[], Activations::Int8);
            assert!(low == 0.0 && expected.contains(&high), "{method:?} {high}");
            let share = outside(&spread, [low, high]);
            assert!(share > 0.0 && share < 1e-4, "{share}");
        }
        assert!(outside(&spread, [0.0, 4.0]) == 0.0);
    }

    #[test]
    fn joined_values_are_those_of_both() {
        let (a, b) = (values(0.0, 1.0, [(0, 5), (BINS - 1, 7)]), values(-3.0, 1.0, [(0, 2)]));
        let joined = a.joined(&b);
        assert_eq!(
            (joined.min, joined.max, joined.bins.iter().sum::<u64>()),
            (-3.0, 1.0, 14)
        );
        assert_eq!(joined.bins[BINS - 1], 7);
    }
}
