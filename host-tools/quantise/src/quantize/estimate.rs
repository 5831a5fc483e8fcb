//! Estimate of the quality on samples that no choice has seen. Outer folds: of each, the whole choice (equalisation, ranges, biases, rounding) is made anew
//! from the other samples, and its network is judged on all samples of the fold. The packed network is made of all samples and is none of these.

use std::collections::{BTreeMap, BTreeSet};

use super::calibrated;
use super::context::Context;
use super::evaluate::{Evaluator, Samples};
use super::form::is_real;
use super::judge::{Judge, Squares};
use super::search::{self, MACS};
use crate::error::Result;
use crate::graph::{Graph, facts};
use crate::report::Estimate;

/// Outer folds of networks that are cheap to run, and of others.
const FOLDS: [usize; 2] = [4, 2];

/// Multiply-accumulates of a run over all samples up to which a network is cheap.
const CHEAP: u64 = 1 << 28;

/// Search of each outer fold beside that of the packed network.
const SHARE: u64 = 4;

/// Signal of a sample that does not judge, in medians of all samples: 30 times their values.
const BROKEN: f64 = 1000.0;

/// Standard errors of the spread that is stated.
const ERRORS: f64 = 2.0;

/// Least spread that is stated, in dB: folds that agree by chance say no more.
const LEAST: f64 = 0.5;

/// Returns the estimate; none of a single sample, or where the signal or the noise of all answers is zero.
pub(super) fn run(
    graph: &Graph,
    context: &Context<'_>,
    optimise: bool,
    progress: &mut dyn FnMut(&str, u64, u64),
) -> Result<Option<Estimate>> {
    let samples = context.samples;
    let cheap = facts::macs_of_a_run(graph).saturating_mul(samples.len() as u64) <= CHEAP;
    let folds = FOLDS[usize::from(!cheap)].min(samples.len());
    if folds < 2 {
        return Ok(None);
    }
    let mut judged = Vec::new();
    for fold in 0..folds {
        progress("estimating", fold as u64, folds as u64);
        let [from, to] = [fold, fold + 1].map(|fold| fold * samples.len() / folds);
        let others = [&samples[..from], &samples[to..]].concat();
        judged.push(held_out(
            graph,
            context,
            &samples[from..to],
            &others,
            optimise && cheap,
        )?);
    }
    progress("estimating", folds as u64, folds as u64);
    let judged = sound(judged);
    Ok(Pooled::of(&judged).map(|pooled| Estimate {
        snr_db: round(pooled.decibels),
        spread_db: round(pooled.spread),
        samples: judged.iter().map(Vec::len).sum(),
        folds,
    }))
}

/// Signal and noise of each sample of `own`, by a network that is made of the others.
fn held_out(
    graph: &Graph,
    context: &Context<'_>,
    own: &Samples,
    others: &Samples,
    optimise: bool,
) -> Result<Vec<Squares>> {
    let context = Context {
        samples: others,
        spend: MACS / SHARE,
        ..*context
    };
    let (best, start) = calibrated::choose(graph, &context, &mut |_, _, _| {})?;
    let network = best.network(&context);
    let found = search::run(&network, &best.judge, start, &mut |_, _| {})?;
    let plain = network.plan(&found.choice, None)?;
    let (plan, _) = search::refine(&network, &best.judge, others, optimise, plain, &mut |_, _| {})?;
    let float = Evaluator::new(&best.graph, context.weights, context.threads, |id| {
        is_real(&best.graph, id)
    })?;
    let judge = Judge::new(&best.graph, &float, own, 1, own.len())?;
    judge.of_each(0, &network.made(&plan)?, context.weights, context.threads)
}

/// The ratio of all samples together and its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pooled {
    decibels: f64,
    spread: f64,
}

impl Pooled {
    /// The ratio of the sums of squares, as a test set's. The spread is of samples, or of folds, whichever is larger: folds tell what the choice of calibration
    /// samples does.
    fn of(folds: &[Vec<Squares>]) -> Option<Self> {
        let all: Vec<&Squares> = folds.iter().flatten().collect();
        let answers: BTreeSet<_> = all.iter().flat_map(|squares| squares.keys().copied()).collect();
        let mut ratio = 0.0_f64;
        let mut shares = vec![[0.0; 2]; all.len()];
        let mut moved = vec![0.0; all.len()];
        for id in answers {
            let of = |squares: &&Squares| squares.get(&id).copied().unwrap_or_default();
            let each: Vec<[f64; 2]> = all.iter().map(of).collect();
            let [signal, noise] = each
                .iter()
                .fold([0.0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
            if signal <= 0.0 {
                continue;
            }
            let own = noise / signal;
            ratio += own;
            for (at, [s, n]) in each.into_iter().enumerate() {
                moved[at] += (n - own * s) / signal;
                shares[at] = [shares[at][0] + s / signal, shares[at][1] + n / signal];
            }
        }
        if ratio <= 0.0 || !ratio.is_finite() {
            return None;
        }
        let count = all.len() as f64;
        let of_samples = (moved.iter().map(|by| by * by).sum::<f64>() * count / (count - 1.0).max(1.0)).sqrt() / ratio;
        let mut from = 0;
        let of_fold = folds.iter().map(|fold| {
            let own = &shares[from..from + fold.len()];
            from += fold.len();
            let [signal, noise] = own.iter().fold([0.0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
            decibels(noise / signal.max(f64::MIN_POSITIVE))
        });
        let of_fold: Vec<f64> = of_fold.filter(|decibels| decibels.is_finite()).collect();
        let between = spread(&of_fold) / (of_fold.len() as f64).max(1.0).sqrt();
        Some(Self {
            decibels: decibels(ratio),
            spread: (ERRORS * (of_samples * 10.0 / std::f64::consts::LN_10).max(between)).max(LEAST),
        })
    }
}

/// Samples whose answers are like the others': one that is broken would be all that the sums tell. Noise alone makes none broken, for a value beyond its range
/// that one sample in a hundred has is most of a test set's noise.
fn sound(folds: Vec<Vec<Squares>>) -> Vec<Vec<Squares>> {
    let signals = |squares: &Squares| {
        squares
            .iter()
            .map(|(&id, &[signal, _])| (id, signal))
            .collect::<Vec<_>>()
    };
    let mut by_answer = BTreeMap::<_, Vec<f64>>::new();
    for (id, signal) in folds.iter().flatten().flat_map(signals) {
        by_answer.entry(id).or_default().push(signal);
    }
    let median = |mut all: Vec<f64>| {
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let medians: BTreeMap<_, f64> = by_answer.into_iter().map(|(id, all)| (id, median(all))).collect();
    let like = |squares: &Squares| {
        let most = |id| medians.get(&id).map_or(0.0, |median| median * BROKEN);
        signals(squares)
            .into_iter()
            .all(|(id, signal)| most(id) <= 0.0 || signal <= most(id))
    };
    let of_fold = |fold: Vec<Squares>| fold.into_iter().filter(|squares| like(squares)).collect();
    folds.into_iter().map(of_fold).collect()
}

/// Standard deviation.
fn spread(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if count < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt()
}

fn decibels(noise: f64) -> f64 {
    -10.0 * noise.log10()
}

/// To a hundredth.
fn round(decibels: f64) -> f64 {
    (decibels * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::TensorId;

    fn folds(noise: impl Fn(usize) -> f64, signal: impl Fn(usize) -> f64) -> Vec<Vec<Squares>> {
        let sample = |at: usize| Squares::from([(TensorId(7), [signal(at), noise(at)])]);
        let fold = |fold: usize| (fold * 16..(fold + 1) * 16).map(sample).collect();
        (0..4).map(fold).collect()
    }

    #[test]
    fn equal_samples_have_their_own_ratio_and_the_least_spread() {
        let pooled = Pooled::of(&folds(|_| 0.01, |_| 1.0)).expect("noise");
        assert!((pooled.decibels - 20.0).abs() < 1e-9, "{pooled:?}");
        assert_eq!(pooled.spread, LEAST);
        // Neither without noise nor without signal is there a ratio.
        assert_eq!(Pooled::of(&folds(|_| 0.0, |_| 1.0)), None);
        assert_eq!(Pooled::of(&folds(|_| 0.0, |_| 0.0)), None);
        assert_eq!(Pooled::of(&[]), None);
    }

    #[test]
    fn the_ratio_is_that_of_the_sums() {
        let (noise, signal) = (|at: usize| 0.001 * (at % 5 + 1) as f64, |at: usize| (at % 3 + 1) as f64);
        let sum = |of: &dyn Fn(usize) -> f64| (0..64).map(of).sum::<f64>();
        let expected = 10.0 * (sum(&signal) / sum(&noise)).log10();
        let pooled = Pooled::of(&folds(noise, signal)).expect("noise");
        assert!((pooled.decibels - expected).abs() < 1e-9, "{pooled:?} {expected}");
    }

    #[test]
    fn one_broken_sample_decides_nothing() {
        let healthy = Pooled::of(&folds(|_| 0.01, |_| 1.0)).expect("noise");
        let broken = |value: f64, usual: f64| move |at: usize| if at == 21 { value } else { usual };
        for noise in [0.0, 1.0, 1e8] {
            let sound = sound(folds(broken(noise, 0.01), broken(1e8, 1.0)));
            assert_eq!(sound.iter().map(Vec::len).collect::<Vec<_>>(), [16, 15, 16, 16]);
            let pooled = Pooled::of(&sound).expect("noise");
            assert!((pooled.decibels - healthy.decibels).abs() < 1e-9, "{noise}: {pooled:?}");
        }
        // A value that left its range is noise as any other, and makes the estimate less certain.
        let clipped = sound(folds(broken(0.5, 0.01), |_| 1.0));
        let pooled = Pooled::of(&clipped).expect("noise");
        assert!(
            clipped[1].len() == 16 && pooled.decibels < healthy.decibels - 2.0,
            "{pooled:?}"
        );
        assert!(pooled.spread > 2.0, "{pooled:?}");
    }

    #[test]
    fn folds_that_differ_spread_more_than_their_samples_do() {
        let pooled = Pooled::of(&folds(|at| [0.01, 0.02, 0.01, 0.02][at / 16], |_| 1.0)).expect("noise");
        let of_samples = Pooled::of(&folds(|at| [0.01, 0.02][at % 2], |_| 1.0)).expect("noise");
        assert!(pooled.spread > 1.5 * of_samples.spread, "{pooled:?} {of_samples:?}");
    }
}
