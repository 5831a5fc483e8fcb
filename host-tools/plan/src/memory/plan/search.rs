//! Exact search: depth first over canonical plans, with live set inference, decomposition in time, and memory of failures.
//!
//! A plan in which no buffer can be lowered is determined by the order in which its buffers are placed, each at the least offset
//! that those below it allow. The search enumerates such orders by non-decreasing offset, so that each plan is met once. It
//! gives up a branch as soon as
//!
//! - some live set's floor (the least byte that any of its unplaced members can still take) plus the bytes of those members exceeds the
//!   capacity, or
//! - a buffer would be placed so high that another would fit untouched beneath it (the plan is dominated), or
//! - the unplaced buffers with their least offsets have been met before, and failed: what lies beneath them is irrelevant.
//!
//! Where the unplaced buffers fall apart into groups that share no live set, each group is solved alone. Several orders of
//! preference are tried in turn under growing node limits; a failed state stays failed in all of them. Most of them are sorted afresh,
//! by what is still unplaced, whenever a group falls apart.
//!
//! The ideas of canonical plans, section inference, dominance and decomposition are those of M. D. Moffitt, "MiniMalloc: A Lightweight
//! Memory Allocator for Hardware-Accelerated Machine Learning" (ASPLOS 2023), whose sections are the live sets here.

use std::ops::Range;

use super::failures::{Failures, state_hash};
use super::greedy;
use super::instance::Instance;
use super::live_set::LiveSet;
use super::random::Random;
use super::state::{NONE, State};

/// Orders of preference, in the letters of `greedy::orders`, and whether groups are sorted afresh by contention.
const STRATEGIES: [(&str, bool); 5] = [
    ("TWA", true),
    ("TWA", false),
    ("WAT", true),
    ("TAW", true),
    ("CTA", true),
];

/// A node of the budget is this much work: entries of lists looked at or changed. It is about what placing a buffer among 150 others takes;
/// where there are more, a placement counts for several nodes, so that the budget bounds the time whatever the size.
const WORK_PER_NODE: u64 = 512;

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Scaled offsets, in the order of the bodies.
    Found(Vec<i64>),
    /// No canonical plan fits.
    Exhausted,
    /// The node budget ran out.
    Budget,
}

enum Step {
    Solved,
    Failed,
    Stopped,
}

/// The body placed last: none may follow below it, nor beside it with a lower rank.
#[derive(Clone, Copy)]
struct Bar {
    offset: i64,
    rank: u32,
    body: usize,
}

/// A group of unplaced bodies that is searched on its own.
struct Scope {
    mask: Vec<u64>,
    live_sets: Range<usize>,
}

/// The search over one set of bodies that share no step with any other body.
pub(super) struct Search {
    state: State,
    /// One order of all bodies per strategy.
    orders: Vec<Vec<u32>>,
    /// Position of each body in the order in use; within a group, after it was sorted afresh.
    rank: Vec<u32>,
    base_rank: Vec<u32>,
    rerank: bool,
    failures: Failures,
    /// States looked at in this round, and how many may be.
    states: u64,
    state_limit: u64,
    /// The capacity of the run that may be resumed, and where it stopped: its cycle and the states of a round in it.
    capacity: Option<i64>,
    cycle: u64,
    slice: u64,
    /// [`State::work`] at which the search gives up.
    work_limit: u64,
}

impl Search {
    /// Prepares the search over `bodies` (indices into the instance, none of them empty), alive in `live sets`.
    pub(super) fn new(instance: &Instance, bodies: &[u32], live_sets: &[LiveSet]) -> Self {
        let mut local = vec![0; instance.bodies.len()];
        for (index, &body) in bodies.iter().enumerate() {
            local[body as usize] = index as u32;
        }
        let orders = greedy::orders(instance, bodies, &STRATEGIES.map(|(letters, _)| letters));
        Search {
            state: State::new(instance, bodies, live_sets),
            orders: orders
                .into_iter()
                .map(|order| order.into_iter().map(|b| local[b as usize]).collect())
                .collect(),
            rank: vec![0; bodies.len()],
            base_rank: vec![0; bodies.len()],
            rerank: false,
            failures: Failures::default(),
            states: 0,
            state_limit: 0,
            capacity: None,
            cycle: 0,
            slice: 0,
            work_limit: 0,
        }
    }

    /// Looks for a plan within `capacity` (scaled). Returns the nodes used as well, and tells them from round to round.
    /// Called again with the same capacity, it goes on
    /// where its budget ran out.
    pub(super) fn run(&mut self, capacity: i64, budget: u64, spent: &mut dyn FnMut(u64)) -> (Outcome, u64) {
        if self.capacity != Some(capacity) {
            self.failures.clear();
            self.capacity = Some(capacity);
            (self.cycle, self.slice) = (0, 2 * self.rank.len() as u64 + 64);
        }
        self.state.work = 0;
        self.work_limit = budget.saturating_mul(WORK_PER_NODE);
        loop {
            for (strategy, (_, rerank)) in STRATEGIES.into_iter().enumerate() {
                let mut order = self.orders[strategy].clone();
                // The orders as they are, and changed a little, in turn.
                if self.cycle % 2 == 1 {
                    shuffle_locally(&mut order, self.cycle * STRATEGIES.len() as u64 + strategy as u64);
                }
                for (rank, &body) in order.iter().enumerate() {
                    self.rank[body as usize] = rank as u32;
                }
                self.base_rank.copy_from_slice(&self.rank);
                self.rerank = rerank;
                self.states = 0;
                self.state_limit = self.slice;
                let step = if self.state.reset(capacity) {
                    self.split(0..self.state.spare.len(), None)
                } else {
                    Step::Failed
                };
                let used = self.state.work.div_ceil(WORK_PER_NODE).min(budget);
                match step {
                    Step::Solved => return (Outcome::Found(self.state.offset.clone()), used),
                    Step::Failed => return (Outcome::Exhausted, used),
                    Step::Stopped if self.state.work >= self.work_limit => return (Outcome::Budget, used),
                    Step::Stopped => spent(used),
                }
            }
            self.cycle += 1;
            self.slice *= 2;
        }
    }

    /// Solves every independent group among the unplaced bodies of a range of live sets.
    fn split(&mut self, live_sets: Range<usize>, last: Option<Bar>) -> Step {
        let mut groups: Vec<(usize, Scope)> = Vec::new();
        let mut from = live_sets.start;
        for live_set in live_sets.clone() {
            if live_set + 1 < live_sets.end && self.state.span[live_set] > 0 {
                continue;
            }
            let mut mask = vec![0u64; self.state.unplaced.len()];
            for other in from..=live_set {
                let (begin, end) = self.state.member_range[other];
                for &body in &self.state.member_body[begin as usize..end as usize] {
                    mask[body as usize / 64] |= (1 << (body % 64)) & self.state.unplaced[body as usize / 64];
                }
                self.state.work += u64::from(end - begin);
            }
            let size: u32 = mask.iter().map(|w| w.count_ones()).sum();
            if size > 0 {
                groups.push((
                    size as usize,
                    Scope {
                        mask,
                        live_sets: from..live_set + 1,
                    },
                ));
            }
            from = live_set + 1;
        }
        // The smallest group first: if it fails, the others need not be tried.
        groups.sort_by_key(|(size, scope)| (*size, scope.live_sets.start));
        for (_, group) in groups {
            let step = if self.rerank {
                // Ranks change their meaning, so that a tie with the body placed last tells nothing.
                let saved = self.sort_afresh(&group);
                let step = self.descend(&group, last.map(|bar| Bar { rank: 0, ..bar }));
                for (body, rank) in saved {
                    self.rank[body as usize] = rank;
                }
                step
            } else {
                self.descend(&group, last)
            };
            match step {
                Step::Solved => {}
                other => return other,
            }
        }
        Step::Solved
    }

    /// Ranks the bodies of a group by what is unplaced beside them. Returns their ranks before.
    fn sort_afresh(&mut self, scope: &Scope) -> Vec<(u32, u32)> {
        let mut list: Vec<(i64, u32, u32)> = Vec::new();
        for (word, &mask) in scope.mask.iter().enumerate() {
            let mut bits = mask;
            while bits != 0 {
                let body = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let (from, to) = self.state.use_range[body];
                let uses = &self.state.uses[from as usize..to as usize];
                let total = uses
                    .iter()
                    .map(|&(live_set, _)| self.state.total[live_set as usize])
                    .max();
                list.push((-total.unwrap_or(0), self.base_rank[body], body as u32));
            }
        }
        list.sort_unstable();
        let saved = list
            .iter()
            .map(|&(_, _, body)| (body, self.rank[body as usize]))
            .collect();
        for (rank, &(_, _, body)) in list.iter().enumerate() {
            self.rank[body as usize] = rank as u32;
        }
        saved
    }

    /// Places one more body of the scope, none below the last one placed.
    fn descend(&mut self, scope: &Scope, last: Option<Bar>) -> Step {
        if self.states >= self.state_limit || self.state.work >= self.work_limit {
            return Step::Stopped;
        }
        self.states += 1;
        let bar = last.map_or((i64::MIN, 0), |bar| (bar.offset, bar.rank));
        let mut candidates: Vec<(i64, u32, u32)> = Vec::new();
        let mut roof = NONE;
        let mut hash = 0u128;
        let mut blocked_any = false;
        let mut any = false;
        let mut scanned = scope.mask.len() as u64;
        for (word, (&mask, &free)) in scope.mask.iter().zip(&self.state.unplaced).enumerate() {
            let mut bits = mask & free;
            while bits != 0 {
                let body = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                any = true;
                scanned += 1;
                let key = (self.state.least[body], self.rank[body]);
                roof = roof.min(key.0 + self.state.height[body]);
                let blocked = key < bar && !last.is_some_and(|last| self.state.is_forced_after(last.body, body));
                hash = hash.wrapping_add(state_hash(body as u32, key.0, blocked && key.0 == bar.0));
                if blocked {
                    blocked_any = true;
                } else {
                    candidates.push((key.0, key.1, body as u32));
                }
            }
        }
        self.state.work += scanned;
        if !any {
            return Step::Solved;
        }
        if blocked_any {
            hash = hash.wrapping_add(state_hash(u32::MAX, bar.0, true));
        }
        if self.failures.contains(hash) {
            return Step::Failed;
        }
        if self.state.monotone {
            // Whatever comes next, nothing stays below it: no live set may need more room than that leaves.
            let range = scope.live_sets.clone();
            let highest = self.state.limit[range.clone()]
                .iter()
                .zip(&self.state.total[range])
                .map(|(&limit, &total)| if total > 0 { limit - total } else { NONE })
                .min()
                .unwrap_or(NONE);
            candidates.retain(|c| c.0 < roof && c.0 <= highest);
        }
        candidates.sort_unstable();
        for &(offset, rank, body) in &candidates {
            // Placements that fail at once cost time as well.
            if self.state.work >= self.work_limit {
                return Step::Stopped;
            }
            let body = body as usize;
            let depth = self.state.trail.len();
            self.state.broke = false;
            let mut step = Step::Failed;
            if self.state.place(body, offset, &scope.live_sets) {
                step = if self.state.broke {
                    self.split(scope.live_sets.clone(), Some(Bar { offset, rank, body }))
                } else {
                    self.descend(scope, Some(Bar { offset, rank, body }))
                };
            }
            match step {
                // Groups solved before one that failed are undone with it.
                Step::Failed => self.state.unwind(depth),
                // Solved: the offsets stay as they are. Stopped: the next round starts afresh.
                other => return other,
            }
        }
        self.failures.insert(hash);
        Step::Failed
    }
}

/// Exchanges near neighbours of an order, in a way that depends on `seed` alone.
fn shuffle_locally(order: &mut [u32], seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..order.len() / 2 {
        let at = random.below(order.len() as u64) as usize;
        let other = (at + 1 + random.below(8) as usize).min(order.len() - 1);
        order.swap(at, other);
    }
}
