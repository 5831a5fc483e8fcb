//! Which range each group of activations gets: the one of several with which the whole network's answers are nearest to the float network's.

use super::evaluate::Samples;
use super::judge::Judge;
use super::network::Network;
use super::range::Method;
use super::rewrite::Plan;
use crate::error::Result;
use crate::graph::facts;

/// Multiply-accumulates that the search may spend.
pub(super) const MACS: u64 = 1 << 33;

/// Runs of all judging samples without which nothing is chosen: every method for three forms of the network, and as much for its groups.
const RUNS: u64 = 4 * Method::ALL.len() as u64;

/// Share that the noise must fall to for a group to get another method than the others.
const NEARER: f64 = 0.99;

/// Standard errors by which the noise of the judging samples must fall for another choice to be taken: less is chance.
const SURE: f64 = 0.5;

/// Multiply-accumulates that take as long as making a network of one node.
const MADE: u64 = 1 << 17;

/// By how much the noise of the few samples that judge may grow where each layer by itself is nearer.
const TOLERATED: f64 = 1.1;

/// Result of the search.
pub(super) struct Found {
    pub(super) choice: Vec<Method>,
    /// Noise over signal of samples that have not calibrated what they judge, by sample.
    pub(super) crossed: Vec<f64>,
}

impl Found {
    /// Noise over signal of all samples.
    pub(super) fn noise(&self) -> f64 {
        self.crossed.iter().sum()
    }

    /// Whether it is nearer than another choice, judged by the same samples, beyond chance: the noise falls to this share, and by more than [`SURE`].
    pub(super) fn is_nearer(&self, other: &Self, share: f64) -> bool {
        let count = self.crossed.len().min(other.crossed.len()) as f64;
        let falls = self.crossed.iter().zip(&other.crossed).map(|(own, other)| other - own);
        let all: f64 = falls.clone().sum();
        let mean = all / count.max(1.0);
        let squares: f64 = falls.map(|fall| (fall - mean) * (fall - mean)).sum();
        let error = (squares * count / (count - 1.0).max(1.0)).sqrt();
        all > SURE * error && self.noise() < other.noise() * share
    }
}

/// The best of the methods for all groups alike. Samples that would judge themselves choose nothing.
pub(super) fn uniform(network: &Network<'_>, judge: &Judge) -> Result<Found> {
    let all = |method: Method| -> Vec<Method> {
        let of = |whole: &bool| if *whole { Method::MinMax } else { method };
        network.ranges.whole.iter().map(of).collect()
    };
    let first = Method::first(network.activations);
    let mut best = Found {
        choice: all(first),
        crossed: network.cross_noise(&all(first), judge)?,
    };
    if affordable(network, judge) {
        for method in Method::ALL.into_iter().filter(|&method| method != first) {
            let choice = all(method);
            let crossed = network.cross_noise(&choice, judge)?;
            let found = Found { choice, crossed };
            if found.is_nearer(&best, 1.0) {
                best = found;
            }
        }
    }
    Ok(best)
}

/// Whether the network can be run often enough to choose anything.
pub(super) fn affordable(network: &Network<'_>, judge: &Judge) -> bool {
    judge.folds() > 1 && pays(facts::macs_of_a_run(network.graph), judge.samples(), network.spend)
}

/// Whether so many multiply-accumulates pay for all runs without which nothing is chosen. The cost of making a network does not count here: of a network of
/// many nodes fewer groups are tried, but it is not left without any choice.
fn pays(macs: u64, samples: usize, spend: u64) -> bool {
    spend / macs.saturating_mul(samples as u64).max(1) >= RUNS
}

/// How many samples of each fold judge: the larger the network the fewer, for a choice by one sample a fold is better than none.
pub(super) fn judges(macs: u64, folds: usize, spend: u64) -> usize {
    let once = macs * folds as u64 * RUNS;
    usize::try_from(spend / once.max(1)).unwrap_or(usize::MAX).max(1)
}

/// Networks that may be tried for the groups, each made for every fold and run on all judging samples.
fn budget(network: &Network<'_>, judge: &Judge) -> u64 {
    if judge.folds() < 2 {
        return 0;
    }
    let made = network.graph.nodes.len() as u64 * judge.folds() as u64 * MADE;
    network.spend / (facts::macs_of_a_run(network.graph) * judge.samples() as u64 + made).max(1)
}

/// Tries each group with the other methods, as far as the budget goes.
pub(super) fn run(
    network: &Network<'_>,
    judge: &Judge,
    start: Found,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Found> {
    let mut best = start;
    let groups = network.groups.members.len();
    let budget = budget(network, judge).min((groups * Method::ALL.len()) as u64);
    let mut spent = 0;
    for group in 0..groups {
        for method in Method::ALL {
            let candidates = &network.ranges.candidates[group];
            let same = candidates[method as usize] == candidates[best.choice[group] as usize];
            if network.ranges.whole[group] || same {
                continue;
            }
            if spent >= budget {
                return Ok(best);
            }
            let mut choice = best.choice.clone();
            choice[group] = method;
            let crossed = network.cross_noise(&choice, judge)?;
            let found = Found { choice, crossed };
            if found.is_nearer(&best, NEARER) {
                best = found;
            }
            spent += 1;
            progress(spent, budget);
        }
    }
    Ok(best)
}

/// A plan with better biases and, where that is wanted, better weights: as far as they bring the answers nearer.
pub(super) fn refine(
    network: &Network<'_>,
    judge: &Judge,
    samples: &Samples,
    optimise: bool,
    plain: Plan,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Plan, Refined)> {
    let mut best = plain.clone();
    let mut told = Refined {
        noise: network.noise(&best, judge)?,
        bias_corrected: false,
        rounding_optimised: false,
    };
    let nearest = network.refined(&best, samples, false, progress)?;
    let noise = network.noise(&nearest, judge)?;
    if noise < told.noise * TOLERATED {
        best = nearest;
        (told.noise, told.bias_corrected) = (noise, true);
    }
    if optimise {
        let rounded = network.refined(&plain, samples, true, progress)?;
        let noise = network.noise(&rounded, judge)?;
        if noise < told.noise * TOLERATED {
            best = rounded;
            (told.noise, told.bias_corrected, told.rounding_optimised) = (noise, true, true);
        }
    }
    Ok((best, told))
}

/// Result of refining.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refined {
    /// Noise over signal.
    pub(super) noise: f64,
    pub(super) bias_corrected: bool,
    pub(super) rounding_optimised: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(crossed: &[f64]) -> Found {
        Found {
            choice: Vec::new(),
            crossed: crossed.to_vec(),
        }
    }

    #[test]
    fn what_is_chance_is_not_nearer() {
        let before = found(&[1.0, 2.0, 3.0, 4.0]);
        // All samples are nearer; on average none is; one is, and the others are not.
        assert!(found(&[0.9, 1.9, 2.9, 3.9]).is_nearer(&before, 1.0));
        assert!(!found(&[2.0, 1.0, 4.0, 3.0]).is_nearer(&before, 1.0));
        assert!(!found(&[1.5, 2.6, 3.6, 1.9]).is_nearer(&before, 1.0));
        // Less than what is asked for.
        assert!(!found(&[0.9, 1.9, 2.9, 3.9]).is_nearer(&before, 0.9));
        assert!(found(&[0.5, 1.0, 1.5, 2.0]).is_nearer(&before, 0.6));
    }

    #[test]
    fn the_larger_the_network_the_fewer_samples_judge_but_one_of_a_fold_at_least() {
        assert_eq!(judges(7_489_664, 4, MACS), 8);
        assert_eq!(judges(30_000_000, 4, MACS), 2);
        assert_eq!(judges(76_473_920, 4, MACS), 1);
        assert_eq!(judges(4_089_184_256, 4, MACS), 1);
        assert!(judges(0, 1, MACS) > 1 << 20);
        // As many as can pay for the runs that a choice takes, also of the quarter that an outer fold of the estimate has.
        for (macs, spend) in [
            (10_000_000, MACS),
            (30_000_000, MACS),
            (60_000_000, MACS),
            (200_000, MACS / 4),
        ] {
            assert!(pays(macs, 4 * judges(macs, 4, spend), spend), "{macs}");
        }
        assert!(!pays(4_089_184_256, 4, MACS));
    }
}
