//! The order of steps: the one with the lowest peak of live bytes, the traced one where that is as good.
//!
//! A state of the search is the set of steps done; what is live after them does not depend on their order, so the best way to reach
//! each set is kept alone (dynamic programming over down-sets: exact). The sets are few in real networks, whose width is small; beyond
//! `EXACT_STATES` in a layer only the best are kept, and the result is no longer known to be the best.
//!
//! The search counts nodes: a step tried after a set. Half of its budget may go into the exact search; where that does not suffice, the rest
//! goes into narrower ones, and the best order found is kept.

use std::collections::HashMap;

use arenite::Access;

use self::layer::{Layer, Reached, Set};
use super::lifetimes::{self, Moment, in_arena};
use crate::graph::TensorId;
use crate::program::{LoweredStep, Program};
use crate::stage::Progress;

mod layer;

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

/// Finds an order, within a budget of search nodes.
pub fn schedule(program: &Program, nodes: u64, progress: &mut Progress<'_>) -> Schedule {
    Ordering::of(program).best(nodes, &mut |spent| progress("ordering the steps", spent, nodes))
}

impl Schedule {
    fn improve(&mut self, search: Search) {
        if let Some((order, peak)) = search.found {
            (self.order, self.peak) = (order, peak);
        }
    }
}

/// Reorders a program's steps.
pub fn apply(program: &mut Program, order: &[usize]) {
    program.steps = order.iter().map(|&step| program.steps[step].clone()).collect();
}

/// Steps as sets of buffers.
#[derive(Debug)]
struct Ordering {
    steps: Vec<Item>,
    bytes: Vec<u64>,
    /// The steps that touch each buffer, in order.
    users: Vec<Vec<usize>>,
    /// Whether it stays to the end: a network output.
    stays: Vec<bool>,
    /// Alive before the first step.
    inputs: Vec<usize>,
    /// The steps that must come behind each.
    behind: Vec<Vec<usize>>,
}

#[derive(Debug)]
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

/// How a search ended.
struct Search {
    /// The best order and its peak, where there is one below the bound.
    found: Option<(Vec<usize>, u64)>,
    /// Whether it went to the end within its nodes.
    complete: bool,
    /// Whether it kept every set that could matter.
    exact: bool,
    nodes: u64,
}

impl Ordering {
    fn of(program: &Program) -> Self {
        let scratch = |step: &LoweredStep| step.step.needs().scratch.into();
        let steps = program.steps.iter();
        let mut steps: Vec<Item> = steps.map(|step| Item::of_scratch(scratch(step))).collect();
        let (mut bytes, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        let mut buffers: HashMap<TensorId, usize> = HashMap::new();
        // Any two steps that touch a buffer keep their order, unless both only read it.
        let mut last_write: HashMap<usize, usize> = HashMap::new();
        let mut reads: HashMap<usize, Vec<usize>> = HashMap::new();
        for touch in lifetimes::of_program(program) {
            let buffer = *buffers.entry(touch.root).or_insert_with(|| {
                let in_arena = in_arena(&program.graph, touch.root);
                let own = program.graph.tensor(touch.root).bytes() as u64;
                bytes.push(if in_arena { own } else { 0 });
                bytes.len() - 1
            });
            let step = match touch.at {
                Moment::Start => {
                    inputs.push(buffer);
                    continue;
                }
                Moment::Step(step) => step,
                Moment::End => {
                    outputs.push(buffer);
                    continue;
                }
            };
            let item = &mut steps[step];
            if !item.buffers.contains(&buffer) {
                item.buffers.push(buffer);
            }
            item.after.extend(last_write.get(&buffer));
            if touch.access == Some(Access::Read) {
                reads.entry(buffer).or_default().push(step);
            } else {
                item.after.extend(reads.remove(&buffer).into_iter().flatten());
                last_write.insert(buffer, step);
            }
        }
        for (step, item) in steps.iter_mut().enumerate() {
            item.after.retain(|&before| before != step);
            item.after.sort_unstable();
            item.after.dedup();
        }
        Self::new(steps, bytes, inputs, &outputs)
    }

    fn new(steps: Vec<Item>, bytes: Vec<u64>, inputs: Vec<usize>, outputs: &[usize]) -> Self {
        let mut users = vec![Vec::new(); bytes.len()];
        let mut behind = vec![Vec::new(); steps.len()];
        for (step, item) in steps.iter().enumerate() {
            item.buffers.iter().for_each(|&b| users[b].push(step));
            item.after.iter().for_each(|&before| behind[before].push(step));
        }
        let mut stays = vec![false; bytes.len()];
        outputs.iter().for_each(|&b| stays[b] = true);
        Self {
            steps,
            bytes,
            users,
            stays,
            inputs,
            behind,
        }
    }

    /// Every step needs at least its own buffers and scratch.
    fn least_peak(&self) -> u64 {
        let own = |item: &Item| item.buffers.iter().map(|&b| self.bytes[b]).sum::<u64>() + item.scratch;
        self.steps.iter().map(own).max().unwrap_or(0)
    }

    fn peak(&self, order: &[usize]) -> u64 {
        let uses = self.users.iter().zip(&self.stays);
        let mut left: Vec<usize> = uses.map(|(users, &stays)| users.len() + usize::from(stays)).collect();
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

    /// The lowest order that is found within a budget of search nodes; `told` hears how many of them are spent.
    fn best(&self, nodes: u64, told: &mut dyn FnMut(u64)) -> Schedule {
        let traced: Vec<usize> = (0..self.steps.len()).collect();
        let traced_peak = self.peak(&traced);
        let least = self.least_peak();
        let mut found = Schedule {
            order: traced,
            peak: traced_peak,
            traced_peak,
            proven_optimal: traced_peak <= least,
        };
        if found.proven_optimal {
            return found;
        }
        let whole = self.search(traced_peak, EXACT_STATES, nodes / 2, told);
        let complete = whole.complete;
        let mut left = nodes - whole.nodes;
        found.proven_optimal = complete && whole.exact;
        found.improve(whole);
        if complete {
            return found;
        }
        // Branch after branch, which finishes what it starts.
        for last_first in [true, false] {
            let steps = self.steps.len() as u64;
            if steps > left {
                return found;
            }
            left -= steps;
            let order = self.depth_first(last_first);
            let peak = self.peak(&order);
            if peak < found.peak {
                (found.order, found.peak) = (order, peak);
            }
        }
        found.proven_optimal |= found.peak <= least;
        // One state a layer costs least; from what that takes follows how many the rest of the budget can pay for.
        let mut width = 1;
        loop {
            let narrow = self.search(found.peak, width, left, &mut |more| told(nodes - left + more));
            left -= narrow.nodes;
            let cost = narrow.nodes.div_ceil(width as u64).max(1);
            let complete = narrow.complete;
            found.improve(narrow);
            found.proven_optimal |= found.peak <= least;
            let affordable = (left / cost).min(EXACT_STATES as u64) as usize;
            if !complete || affordable <= width {
                return found;
            }
            width = affordable.min(16 * width);
        }
    }

    /// The best order with a peak below `bound`: the best `width` sets of each layer are kept, as long as the nodes suffice.
    fn search(&self, bound: u64, width: usize, nodes: u64, told: &mut dyn FnMut(u64)) -> Search {
        let mut search = Search {
            found: None,
            complete: false,
            exact: true,
            nodes: 0,
        };
        let start = Reached {
            peak: 0,
            live: self.inputs.iter().map(|&b| self.bytes[b]).sum(),
            last: (usize::MAX, 0),
        };
        let ready: Vec<usize> = (0..self.steps.len())
            .filter(|&s| self.steps[s].after.is_empty())
            .collect();
        let mut layers: Vec<Vec<Reached>> = vec![vec![start]];
        // The sets of the last layer, and the steps that each allows, in order.
        let mut sets: Vec<(Set, Vec<usize>)> = vec![(Set::empty(), ready)];
        for _ in 0..self.steps.len() {
            told(search.nodes);
            let mut next = Layer::behind(&sets);
            let layer = layers.last().expect("there is a first layer");
            for (from, ((set, ready), reached)) in sets.iter().zip(layer).enumerate() {
                search.nodes += ready.len() as u64;
                if search.nodes > nodes {
                    search.nodes = nodes;
                    return search;
                }
                for &step in ready {
                    let (during, live) = self.advance(reached.live, step, set);
                    let peak = reached.peak.max(during);
                    if peak < bound {
                        let last = (step, from);
                        next.offer(Reached { peak, live, last });
                    }
                }
            }
            let (best, all) = next.best(width);
            search.exact &= all;
            if best.is_empty() {
                search.complete = true;
                return search;
            }
            let ready = best.iter().map(|(set, reached)| {
                let (step, from) = reached.last;
                self.ready_behind(step, set, &sets[from].1)
            });
            let ready: Vec<Vec<usize>> = ready.collect();
            let (new_sets, layer): (Vec<_>, Vec<_>) = best.into_iter().unzip();
            sets = new_sets.into_iter().zip(ready).collect();
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
        search.found = Some((order, peak));
        search.complete = true;
        search
    }

    /// Every step right behind what it needs, of which the last, or the first, in the traced order comes first.
    fn depth_first(&self, last_first: bool) -> Vec<usize> {
        let mut order = Vec::new();
        let mut opened = vec![false; self.steps.len()];
        let ends = (0..self.steps.len()).filter(|&step| self.behind[step].is_empty());
        for end in ends {
            // A step stands on the stack twice: to be opened, and to be done behind what it needs.
            let mut stack = vec![(end, false)];
            while let Some((step, done)) = stack.pop() {
                if done {
                    order.push(step);
                } else if !std::mem::replace(&mut opened[step], true) {
                    stack.push((step, true));
                    let needs = self.steps[step].after.iter().map(|&before| (before, false));
                    if last_first {
                        stack.extend(needs)
                    } else {
                        stack.extend(needs.rev())
                    }
                }
            }
        }
        order
    }

    /// The steps that `set` allows, `step` being the last of it and `ready` what the set before allowed.
    fn ready_behind(&self, step: usize, set: &Set, ready: &[usize]) -> Vec<usize> {
        let mut now: Vec<usize> = ready.iter().copied().filter(|&other| other != step).collect();
        let freed = self.behind[step].iter().copied();
        now.extend(freed.filter(|&next| self.steps[next].after.iter().all(|&before| set.has(before))));
        now.sort_unstable();
        now
    }

    /// Live bytes during and after `step`, from those before it.
    fn advance(&self, live: u64, step: usize, done: &Set) -> (u64, u64) {
        let item = &self.steps[step];
        let (mut during, mut dead) = (live, 0);
        for &b in &item.buffers {
            let mut users = self.users[b].iter();
            if !self.inputs.contains(&b) && !users.clone().any(|&user| done.has(user)) {
                during += self.bytes[b];
            }
            // From the last one, which is the likeliest to be still to come.
            if !self.stays[b] && users.by_ref().rev().all(|&user| user == step || done.has(user)) {
                dead += self.bytes[b];
            }
        }
        (during + item.scratch, during - dead)
    }
}

#[cfg(test)]
mod tests;
