//! Estimate of the quality on samples that no choice has seen. Outer folds: of each, the whole choice (form, ranges, biases, rounding) is made anew from the
//! other samples, and its network is judged on all samples of the fold. The packed network is made of all samples and is none of these.

use super::calibrated;
use super::context::Context;
use super::evaluate::{Evaluator, Samples};
use super::form::is_real;
use super::judge::{self, Judge, Squares};
use super::search;
use crate::error::Result;
use crate::graph::{Graph, facts};
use crate::report::Estimate;

/// Outer folds of networks that are cheap to run, and of others.
const FOLDS: [usize; 2] = [4, 2];

/// Multiply-accumulates of a run over all samples up to which a network is cheap.
const CHEAP: u64 = 1 << 30;

/// The search of each outer fold takes one in so many multiply-accumulates of the packed network's.
const SHARE: u64 = 4;

/// Standard errors of the spread that is stated.
const ERRORS: f64 = 2.0;

/// Least spread that is stated, in dB: folds that agree by chance say no more.
const LEAST: f64 = 1.0;

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
    let mut all = Squares::new();
    let mut ends = Vec::new();
    for fold in 0..folds {
        progress("estimating", fold as u64, folds as u64);
        let [from, to] = [fold, fold + 1].map(|fold| fold * samples.len() / folds);
        let others = [&samples[..from], &samples[to..]].concat();
        let own = &samples[from..to];
        judge::add(&mut all, held_out(graph, context, own, &others, optimise && cheap)?);
        ends.push(to);
    }
    progress("estimating", folds as u64, folds as u64);
    let each = judge::of_each(&all);
    Ok(Pooled::of(&each, &ends).map(|pooled| Estimate {
        snr_db: round(pooled.decibels),
        spread_db: round(pooled.spread),
        samples: each.len(),
        folds,
    }))
}

/// Signal and noise of the samples of `own`, by a network that is made of the others.
fn held_out(graph: &Graph, context: &Context<'_>, own: &Samples, others: &Samples, optimise: bool) -> Result<Squares> {
    let plain = Context {
        samples: others,
        spend: context.spend / SHARE,
        ..*context
    };
    let chosen = calibrated::choose(graph, &plain, &mut |_, _, _| {})?;
    let context = chosen.context(plain);
    let best = &chosen.best;
    let network = best.network(&context);
    let first = network.plan(&chosen.found.choice, None)?;
    let (plan, _) = search::refine(&network, &best.judge, others, optimise, first, &mut |_, _| {})?;
    let float = Evaluator::new(&best.graph, context.weights, context.threads, |id| {
        is_real(&best.graph, id)
    })?;
    let judge = Judge::new(&best.graph, &float, own, 1, own.len())?;
    judge.squares(0, &network.made(&plan)?, context.weights, context.threads)
}

/// The ratio of all samples together and its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pooled {
    decibels: f64,
    spread: f64,
}

impl Pooled {
    /// Of the noise of each sample over all signal, and the ends of the folds. The spread is of samples, or of folds, whichever is larger: folds tell what the
    /// choice of calibration samples does.
    fn of(each: &[f64], ends: &[usize]) -> Option<Self> {
        let ratio: f64 = each.iter().sum();
        if ratio <= 0.0 || !ratio.is_finite() {
            return None;
        }
        let count = each.len() as f64;
        let mean = ratio / count;
        let squares: f64 = each.iter().map(|noise| (noise - mean).powi(2)).sum();
        let of_samples = (squares * count / (count - 1.0).max(1.0)).sqrt() / ratio;
        let mut from = 0;
        let of_fold = ends.iter().map(|&to| {
            let own = each.get(from..to).unwrap_or_default();
            from = to;
            decibels(own.iter().sum::<f64>() * count / own.len().max(1) as f64)
        });
        let of_fold: Vec<f64> = of_fold.filter(|decibels| decibels.is_finite()).collect();
        let between = spread(&of_fold) / (of_fold.len() as f64).max(1.0).sqrt();
        Some(Self {
            decibels: decibels(ratio),
            spread: (ERRORS * (of_samples * 10.0 / std::f64::consts::LN_10).max(between)).max(LEAST),
        })
    }
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

    const ENDS: [usize; 4] = [16, 32, 48, 64];

    fn pooled(noise: impl Fn(usize) -> f64) -> Option<Pooled> {
        let each: Vec<f64> = (0..64).map(|at| noise(at) / 64.0).collect();
        Pooled::of(&each, &ENDS)
    }

    #[test]
    fn equal_samples_have_their_own_ratio_and_the_least_spread() {
        let equal = pooled(|_| 0.01).expect("noise");
        assert!((equal.decibels - 20.0).abs() < 1e-9, "{equal:?}");
        assert_eq!(equal.spread, LEAST);
        // Without noise there is no ratio.
        assert_eq!(pooled(|_| 0.0), None);
        assert_eq!(Pooled::of(&[], &[]), None);
    }

    #[test]
    fn a_value_that_left_its_range_is_noise_and_makes_the_estimate_less_certain() {
        let clipped = pooled(|at| if at == 21 { 0.5 } else { 0.01 }).expect("noise");
        assert!(clipped.decibels < 18.0 && clipped.spread > 2.0, "{clipped:?}");
    }

    #[test]
    fn folds_that_differ_spread_more_than_their_samples_do() {
        let folds = pooled(|at| [0.01, 0.02, 0.01, 0.02][at / 16]).expect("noise");
        let samples = pooled(|at| [0.01, 0.02][at % 2]).expect("noise");
        assert!(folds.spread > 1.2 * samples.spread, "{folds:?} {samples:?}");
    }
}
