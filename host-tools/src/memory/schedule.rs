//! The order of steps: the one with the lowest peak of live bytes, the traced one where that is as good.
//!
//! A state of the search is the set of steps done; what is live after them does not depend on their order, so the best way to reach
//! each set is kept alone (dynamic programming over down-sets: exact). The sets are few in real networks, whose width is small; beyond
//! `EXACT_STATES` in a layer only the best are kept, and the result is no longer known to be the best.

use std::collections::{BTreeMap, HashMap};

use arenite::Access;

use super::lifetimes::{self, Moment, in_arena};
use crate::graph::TensorId;
use crate::program::{LoweredStep, Program};

/// Down-sets kept in each layer before the search becomes a beam.
const EXACT_STATES: usize = 20_000;

/// An order of steps and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Indices of the steps as they were, in their new order.
    pub order: Vec<usize>,
    /// Max-live of that order, in bytes.
    pub peak: u64,
    /// Max-live of the order as it was.
    pub traced_peak: u64,
    /// Whether no order is lower.
    pub proven_optimal: bool,
}

/// Finds an order.
pub fn schedule(program: &Program) -> Schedule {
    let problem = Ordering::of(program);
    let traced: Vec<usize> = (0..problem.steps.len()).collect();
    let traced_peak = problem.peak(&traced);
    let lowest = problem.least_peak();
    if traced_peak <= lowest {
        return Schedule {
            order: traced,
            peak: traced_peak,
            traced_peak,
            proven_optimal: true,
        };
    }
    match problem.search(traced_peak) {
        (Some((order, peak)), exact) => Schedule {
            order,
            peak,
            traced_peak,
            proven_optimal: exact,
        },
        (None, exact) => Schedule {
            order: traced,
            peak: traced_peak,
            traced_peak,
            proven_optimal: exact,
        },
    }
}

/// Reorders a program's steps.
pub fn apply(program: &mut Program, order: &[usize]) {
    program.steps = order.iter().map(|&step| program.steps[step].clone()).collect();
}

/// Steps as sets of buffers.
struct Ordering {
    steps: Vec<Item>,
    bytes: Vec<u64>,
    /// Uses by steps; a network output has one more, which never comes.
    uses: Vec<u32>,
    /// Alive before the first step.
    inputs: Vec<usize>,
}

struct Item {
    /// Buffers it touches, each once.
    buffers: Vec<usize>,
    /// Steps that must come before it.
    after: Vec<usize>,
    scratch: u64,
}

impl Item {
    fn of_scratch(scratch: u64) -> Self {
        Self {
            buffers: Vec::new(),
            after: Vec::new(),
            scratch,
        }
    }
}

/// What the search knows of a set of steps done.
#[derive(Clone)]
struct Reached {
    peak: u64,
    live: u64,
    /// The last step, and the index of the set before it in the layer before.
    last: (usize, usize),
}

impl Ordering {
    fn of(program: &Program) -> Self {
        let scratch = |step: &LoweredStep| step.step.needs().scratch.into();
        let mut ordering = Self {
            steps: program
                .steps
                .iter()
                .map(|step| Item::of_scratch(scratch(step)))
                .collect(),
            bytes: Vec::new(),
            uses: Vec::new(),
            inputs: Vec::new(),
        };
        let mut buffers: HashMap<TensorId, usize> = HashMap::new();
        // Any two steps that touch a buffer keep their order, unless both only read it.
        let mut last_write: HashMap<usize, usize> = HashMap::new();
        let mut reads: HashMap<usize, Vec<usize>> = HashMap::new();
        for touch in lifetimes::of_program(program) {
            let buffer = *buffers.entry(touch.root).or_insert_with(|| {
                let in_arena = in_arena(&program.graph, touch.root);
                let bytes = program.graph.tensor(touch.root).bytes() as u64;
                ordering.bytes.push(if in_arena { bytes } else { 0 });
                ordering.uses.push(0);
                ordering.bytes.len() - 1
            });
            let step = match touch.at {
                Moment::Start => {
                    ordering.inputs.push(buffer);
                    continue;
                }
                Moment::Step(step) => step,
                Moment::End => {
                    ordering.uses[buffer] += 1;
                    continue;
                }
            };
            let item = &mut ordering.steps[step];
            if !item.buffers.contains(&buffer) {
                item.buffers.push(buffer);
                ordering.uses[buffer] += 1;
            }
            item.after.extend(last_write.get(&buffer));
            if touch.access == Some(Access::Read) {
                reads.entry(buffer).or_default().push(step);
            } else {
                item.after.extend(reads.remove(&buffer).into_iter().flatten());
                last_write.insert(buffer, step);
            }
        }
        for (step, item) in ordering.steps.iter_mut().enumerate() {
            item.after.retain(|&before| before != step);
            item.after.sort_unstable();
            item.after.dedup();
        }
        ordering
    }

    /// Every step needs at least its own buffers and scratch.
    fn least_peak(&self) -> u64 {
        let own = |item: &Item| item.buffers.iter().map(|&b| self.bytes[b]).sum::<u64>() + item.scratch;
        self.steps.iter().map(own).max().unwrap_or(0)
    }

    fn peak(&self, order: &[usize]) -> u64 {
        let mut left = self.uses.clone();
        let mut started = vec![false; left.len()];
        let mut live: u64 = self.inputs.iter().map(|&b| self.bytes[b]).sum();
        self.inputs.iter().for_each(|&b| started[b] = true);
        let mut peak = live;
        for &step in order {
            let item = &self.steps[step];
            for &b in &item.buffers {
                if !std::mem::replace(&mut started[b], true) {
                    live += self.bytes[b];
                }
            }
            peak = peak.max(live + item.scratch);
            for &b in &item.buffers {
                left[b] -= 1;
                if left[b] == 0 {
                    live -= self.bytes[b];
                }
            }
        }
        peak
    }

    /// The best order with a peak below `bound`, if there is one, and whether the search was exact.
    fn search(&self, bound: u64) -> (Option<(Vec<usize>, u64)>, bool) {
        let words = self.steps.len().div_ceil(64);
        let start = Reached {
            peak: 0,
            live: self.inputs.iter().map(|&b| self.bytes[b]).sum(),
            last: (usize::MAX, 0),
        };
        let mut layers: Vec<Vec<Reached>> = vec![vec![start]];
        let mut sets: Vec<Vec<u64>> = vec![vec![0; words]];
        let mut exact = true;
        for _ in 0..self.steps.len() {
            let mut next: BTreeMap<Vec<u64>, Reached> = BTreeMap::new();
            let layer = layers.last().expect("there is a first layer");
            for (from, (set, reached)) in sets.iter().zip(layer).enumerate() {
                let done = |step: usize| set[step / 64] >> (step % 64) & 1 == 1;
                for step in (0..self.steps.len()).filter(|&s| !done(s) && self.steps[s].after.iter().all(|&b| done(b)))
                {
                    let (during, after) = self.advance(reached.live, step, &done);
                    let peak = reached.peak.max(during);
                    if peak >= bound {
                        continue;
                    }
                    let mut set = set.clone();
                    set[step / 64] |= 1 << (step % 64);
                    let found = Reached {
                        peak,
                        live: after,
                        last: (step, from),
                    };
                    match next.get_mut(&set) {
                        Some(known) if known.peak <= peak => {}
                        Some(known) => *known = found,
                        None => {
                            next.insert(set, found);
                        }
                    }
                }
            }
            let mut best: Vec<(Vec<u64>, Reached)> = next.into_iter().collect();
            if best.len() > EXACT_STATES {
                exact = false;
                best.sort_by_key(|(_, r)| (r.peak, r.live));
                best.truncate(EXACT_STATES);
            }
            if best.is_empty() {
                return (None, exact);
            }
            let (new_sets, layer) = best.into_iter().unzip();
            sets = new_sets;
            layers.push(layer);
        }
        let mut order = Vec::new();
        let peak = layers.last().map_or(0, |layer| layer[0].peak);
        let mut at = 0;
        for layer in layers.iter().skip(1).rev() {
            let (step, from) = layer[at].last;
            order.push(step);
            at = from;
        }
        order.reverse();
        (Some((order, peak)), exact)
    }

    /// Live bytes during and after `step`, from those before it.
    fn advance(&self, live: u64, step: usize, done: &dyn Fn(usize) -> bool) -> (u64, u64) {
        let item = &self.steps[step];
        let (mut during, mut dead) = (live, 0);
        for &b in &item.buffers {
            let users = self.users(b);
            let used = users.iter().filter(|&&s| done(s)).count() as u32;
            if used == 0 && !self.inputs.contains(&b) {
                during += self.bytes[b];
            }
            if used + 1 == self.uses[b] {
                dead += self.bytes[b];
            }
        }
        (during + item.scratch, during - dead)
    }

    fn users(&self, buffer: usize) -> Vec<usize> {
        (0..self.steps.len())
            .filter(|&s| self.steps[s].buffers.contains(&buffer))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(buffers: &[usize], after: &[usize]) -> Item {
        Item {
            buffers: buffers.to_vec(),
            after: after.to_vec(),
            scratch: 0,
        }
    }

    /// Two branches from one input, each wide in the middle and narrow at its end: traced side by side, better one after the other.
    #[test]
    fn branches_are_finished_one_by_one() {
        let problem = Ordering {
            steps: vec![
                item(&[0, 1], &[]),
                item(&[0, 2], &[]),
                item(&[1, 3], &[0]),
                item(&[2, 4], &[1]),
                item(&[3, 4, 5], &[2, 3]),
            ],
            bytes: vec![10, 100, 100, 1, 1, 1],
            uses: vec![2, 2, 2, 2, 2, 2],
            inputs: vec![0],
        };
        assert_eq!(problem.peak(&[0, 1, 2, 3, 4]), 210);
        let (found, exact) = problem.search(210);
        let (order, peak) = found.expect("a better order");
        assert!(exact);
        assert_eq!(peak, 111);
        assert_eq!(problem.peak(&order), 111);
    }

    fn permutations(problem: &Ordering, order: &mut Vec<usize>, best: &mut u64) {
        if order.len() == problem.steps.len() {
            *best = (*best).min(problem.peak(order));
            return;
        }
        for step in 0..problem.steps.len() {
            if !order.contains(&step) && problem.steps[step].after.iter().all(|b| order.contains(b)) {
                order.push(step);
                permutations(problem, order, best);
                order.pop();
            }
        }
    }

    proptest! {
        /// Against all orders of small random graphs.
        #[test]
        fn the_search_finds_the_best_order(
            sizes in prop::collection::vec(1u64..50, 7),
            edges in prop::collection::vec(prop::collection::vec(any::<bool>(), 6), 6),
        ) {
            // Step i writes buffer i + 1 and reads buffer j + 1 of some earlier steps j, or the input.
            let mut uses = vec![0u32; 7];
            let steps: Vec<Item> = (0..6).map(|i| {
                let after: Vec<usize> = (0..i).filter(|&j| edges[i][j]).collect();
                let mut buffers: Vec<usize> = after.iter().map(|j| j + 1).collect();
                if buffers.is_empty() {
                    buffers.push(0);
                }
                buffers.push(i + 1);
                buffers.iter().for_each(|&b| uses[b] += 1);
                Item { buffers, after, scratch: 0 }
            }).collect();
            uses[6] += 1;
            let problem = Ordering { steps, bytes: sizes, uses, inputs: vec![0] };
            let mut best = u64::MAX;
            permutations(&problem, &mut Vec::new(), &mut best);
            let traced = problem.peak(&[0, 1, 2, 3, 4, 5]);
            let found = problem.search(traced);
            prop_assert!(found.1);
            prop_assert_eq!(found.0.map_or(traced, |(order, peak)| {
                assert_eq!(problem.peak(&order), peak);
                peak
            }), best);
        }
    }
}
