//! From problem to plan: bound, greedy placement, exact search.

use std::sync::mpsc;

use super::bound;
use super::greedy::{self, Placement};
use super::instance::{Instance, SEARCH_LIMIT};
use super::live_set::LiveSet;
use super::problem::{Options, Plan, PlanError, Problem, Proof};
use super::search::{Outcome, Search};
use super::skyline;

/// Orders for greedy placement, in the letters of `greedy::orders`.
const GREEDY_ORDERS: [&str; 7] = ["TWA", "WAT", "TAW", "UZ", "ZW", "AZ", "LZ"];

/// Rounded problems that are searched beside the exact one.
const COARSE: usize = 2;

/// Stack of the search's thread per level; there are at most as many levels as bodies.
const STACK_PER_LEVEL: usize = 4096;

/// The most that a search may need where it has no thread of its own; such programs are linked with more.
const LARGEST_STACK: usize = 6 << 20;

/// Places the buffers as low as possible, or within a capacity, within a budget of search nodes.
///
/// # Errors
/// A problem that contradicts itself: see [`PlanError`]. A capacity that is not met is no error: the plan is then higher.
pub fn solve(problem: &Problem, options: &Options) -> Result<Plan, PlanError> {
    solve_watched(problem, options, &mut |_| ())
}

/// [`solve`], telling `progress` now and then how many nodes of its budget are spent.
///
/// # Errors
/// As [`solve`].
pub fn solve_watched(problem: &Problem, options: &Options, progress: &mut dyn FnMut(u64)) -> Result<Plan, PlanError> {
    let instance = Instance::new(problem)?;
    refuse_fixed_overlap(problem, &instance)?;
    let capacity = options
        .capacity
        .map(|bytes| (bytes / instance.unit).min(i64::MAX as u64 / 8) as i64);
    let mut solver = Solver {
        bound: bound::max_live(&instance),
        proof: Proof::BoundMet,
        left: options.nodes,
        offsets: vec![0; instance.bodies.len()],
        height: 0,
        instance: &instance,
    };
    solver.run(capacity, &mut |left| progress(options.nodes - left));
    Ok(solver.into_plan(problem, options.nodes))
}

/// Greedy placement alone: fast, and often optimal (the plan says whether it is).
///
/// # Errors
/// As [`solve`].
pub fn estimate(problem: &Problem) -> Result<Plan, PlanError> {
    solve(
        problem,
        &Options {
            capacity: None,
            nodes: 0,
        },
    )
}

/// Max-live in bytes, with what alignment adds and what relations save: no plan is lower.
///
/// # Errors
/// As [`solve`].
pub fn lower_bound(problem: &Problem) -> Result<u64, PlanError> {
    let instance = Instance::new(problem)?;
    Ok(bound::max_live(&instance) as u64 * instance.unit)
}

/// The sets of buffers alive together that are part of no larger one, in order of time: the step from which each is complete, and the
/// bytes below which no plan can place it. The largest is [`lower_bound`].
///
/// # Errors
/// As [`solve`].
pub fn profile(problem: &Problem) -> Result<Vec<(u64, u64)>, PlanError> {
    let instance = Instance::new(problem)?;
    let mut profile = Vec::new();
    instance.visit_live_sets(&mut |live_set| {
        profile.push((live_set.at, live_set.bound as u64 * instance.unit));
        i64::MIN
    });
    Ok(profile)
}

struct Solver<'a> {
    instance: &'a Instance,
    bound: i64,
    proof: Proof,
    left: u64,
    offsets: Vec<i64>,
    height: i64,
}

impl Solver<'_> {
    /// `told` hears how many nodes are left.
    fn run(&mut self, capacity: Option<i64>, told: &mut dyn FnMut(u64)) {
        for (offset, body) in self.offsets.iter_mut().zip(&self.instance.bodies) {
            *offset = body.fixed.unwrap_or(0);
        }
        // Groups that share no step are independent; the highest of them decides.
        let target = self.bound.max(capacity.unwrap_or(0));
        let mut hard: Vec<(i64, Vec<u32>)> = Vec::new();
        for bodies in components(self.instance) {
            let placement = self.first(&bodies, target);
            self.keep(&bodies, &placement);
            if placement.height > target {
                hard.push((placement.height, bodies));
            } else {
                self.height = self.height.max(placement.height);
            }
        }
        if hard.is_empty() {
            return;
        }
        if self.left == 0 || self.instance.search_size() > SEARCH_LIMIT {
            self.height = hard.iter().map(|(height, ..)| *height).fold(self.height, i64::max);
            return;
        }
        let live_sets = self.instance.live_sets();
        // The highest first: its optimum is a bound for the others.
        hard.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (height, bodies) in hard {
            let known = self.height.max(self.bound);
            let height = if height <= known.max(capacity.unwrap_or(0)) {
                height
            } else {
                self.improve((bodies, height), &live_sets, capacity, told)
            };
            self.height = self.height.max(height);
        }
    }

    /// The first placement of a component: the greedy one, or where there are very many bodies that of the skyline if it is lower.
    fn first(&self, bodies: &[u32], target: i64) -> Placement {
        let greedy = || {
            let orders = greedy::orders(self.instance, bodies, &GREEDY_ORDERS);
            greedy::place(self.instance, bodies, &orders, target)
        };
        let found = match bodies.len() {
            0..skyline::LARGE => None,
            _ => skyline::place(self.instance, bodies, target),
        };
        let Some(found) = found else {
            return greedy();
        };
        // Nor does the greedy one take its time where it would compare nearly all with all, or where there is next to nothing to gain.
        let enough =
            found.height <= target || (bodies.len() >= skyline::LARGEST && found.height - target <= target / 100);
        if enough || self.instance.search_size() > greedy::MOST_PAIRS {
            return found;
        }
        let other = greedy();
        if other.height < found.height { other } else { found }
    }

    /// One search for a plan within `aim`, by turns of the exact problem and of rounded ones.
    fn attempt(
        &self,
        search: &mut Search,
        (bodies, aim): (&[u32], i64),
        budget: u64,
        spent: &mut dyn FnMut(u64),
    ) -> (Outcome, u64) {
        let stack = (bodies.len() + 64) * STACK_PER_LEVEL + (1 << 20);
        let coarse = self.coarse(aim);
        let turn = budget.div_ceil(coarse.len() as u64 + 2);
        let (outcome, mut used) = run_with_stack(search, aim, turn, stack, spent);
        if outcome != Outcome::Budget {
            return (outcome, used);
        }
        for (grid, instance) in coarse {
            let live_sets = own_live_sets(&instance, bodies, &instance.live_sets());
            let mut rough = Search::new(&instance, bodies, &live_sets);
            let mut more_spent = |more| spent(used + more);
            let budget_now = turn.min(budget - used);
            let (outcome, more) = run_with_stack(&mut rough, aim / grid, budget_now, stack, &mut more_spent);
            used += more;
            if let Outcome::Found(offsets) = outcome {
                return (
                    Outcome::Found(offsets.iter().map(|offset| offset * grid).collect()),
                    used,
                );
            }
        }
        let mut more_spent = |more| spent(used + more);
        let (outcome, more) = run_with_stack(search, aim, budget - used.min(budget), stack, &mut more_spent);
        (outcome, used + more)
    }

    /// The problem with sizes rounded up, as coarsely as `aim` may still allow: equal sizes and sums that fit exactly are what the
    /// search lives on, and nearly equal ones hide them.
    fn coarse(&self, aim: i64) -> Vec<(i64, Instance)> {
        let mut found = Vec::new();
        let mut grid = 1i64 << aim.max(1).ilog2();
        while grid > 1 && found.len() < COARSE {
            if let Some(instance) = self.instance.rounded(grid)
                && bound::max_live(&instance) <= aim / grid
            {
                found.push((grid, instance));
            }
            grid /= 2;
        }
        found
    }

    /// Searches for lower plans of one component, bodies of this height; returns its height then.
    fn improve(
        &mut self,
        (bodies, height): (Vec<u32>, i64),
        live_sets: &[LiveSet],
        capacity: Option<i64>,
        told: &mut dyn FnMut(u64),
    ) -> i64 {
        let live_sets = own_live_sets(self.instance, &bodies, live_sets);
        let mut search = Search::new(self.instance, &bodies, &live_sets);
        let mut best = height;
        // Heights from `low` up are undecided; those from `sure` up are not proven impossible.
        let mut sure = self.bound.max(self.height);
        let mut low = sure;
        let mut first = true;
        while low < best && self.left > 0 {
            let aim = match capacity {
                Some(capacity) => capacity.max(low),
                // The bound itself is the likeliest optimum; after it, halve what is left.
                None if first => low,
                None => low + (best - 1 - low) / 2,
            };
            let budget = if capacity.is_some() || low + 1 == best {
                self.left
            } else {
                self.left.div_ceil(3)
            };
            let mut spent = |used| told(self.left.saturating_sub(used));
            let (outcome, used) = self.attempt(&mut search, (&bodies, aim), budget, &mut spent);
            self.left -= used.min(self.left);
            match outcome {
                Outcome::Found(offsets) => {
                    let ends = offsets
                        .iter()
                        .zip(&bodies)
                        .map(|(o, &b)| o + self.instance.bodies[b as usize].height);
                    best = ends.max().unwrap_or(0);
                    self.keep(&bodies, &Placement { offsets, height: best });
                    if capacity.is_some() {
                        break;
                    }
                }
                Outcome::Exhausted => {
                    if self.instance.exhaustible {
                        sure = aim + 1;
                    }
                    low = aim + 1;
                    if capacity.is_some() {
                        break;
                    }
                }
                Outcome::Budget => {
                    if capacity.is_some() {
                        break;
                    }
                    low = aim + 1;
                }
            }
            first = false;
        }
        if sure > self.bound && sure > self.height {
            self.bound = sure;
            self.proof = Proof::Exhausted;
        }
        best
    }

    fn keep(&mut self, bodies: &[u32], placement: &Placement) {
        for (&body, &offset) in bodies.iter().zip(&placement.offsets) {
            self.offsets[body as usize] = offset;
        }
    }

    fn into_plan(self, problem: &Problem, nodes: u64) -> Plan {
        let unit = self.instance.unit;
        let offsets: Vec<u64> = self
            .offsets
            .iter()
            .zip(&problem.buffers)
            .map(|(&offset, buffer)| buffer.fixed.unwrap_or(offset as u64 * unit))
            .collect();
        let height = self.height as u64 * unit;
        let lower_bound = (self.bound as u64 * unit).min(height);
        let proven_optimal = height == lower_bound;
        let proof = if proven_optimal { self.proof } else { Proof::None };
        Plan {
            offsets,
            height,
            lower_bound,
            proven_optimal,
            proof,
            nodes: nodes - self.left,
        }
    }
}

/// The live sets that have any of `bodies`.
fn own_live_sets(instance: &Instance, bodies: &[u32], live_sets: &[LiveSet]) -> Vec<LiveSet> {
    // Live sets are in order of time, and groups share none.
    let lives = || bodies.iter().map(|&body| &instance.bodies[body as usize]);
    let first = lives().map(|body| body.lower).min().unwrap_or(0);
    let last = lives().map(|body| body.upper).max().unwrap_or(0);
    let from = live_sets.partition_point(|live_set| live_set.at < first);
    let to = live_sets.partition_point(|live_set| live_set.at < last);
    live_sets[from..to].to_vec()
}

/// Runs the search on a thread whose stack fits its depth; `spent` hears here what it tells there.
fn run_with_stack(
    search: &mut Search,
    capacity: i64,
    budget: u64,
    stack: usize,
    spent: &mut dyn FnMut(u64),
) -> (Outcome, u64) {
    if cfg!(target_arch = "wasm32") {
        // There are no threads, and a stack that is the caller's; what may not fit it is not searched.
        return if stack <= LARGEST_STACK {
            search.run(capacity, budget, spent)
        } else {
            (Outcome::Budget, budget)
        };
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .stack_size(stack)
            .spawn_scoped(scope, move || {
                search.run(capacity, budget, &mut |nodes| {
                    // The other end waits until this one is dropped.
                    let _ = sender.send(nodes);
                })
            });
        receiver.iter().for_each(spent);
        // Without a thread there is no search; the greedy plan stands.
        worker
            .ok()
            .and_then(|worker| worker.join().ok())
            .unwrap_or((Outcome::Budget, budget))
    })
}

/// Sets of bodies that share no step with bodies of other sets, in order of time. Empty bodies are in none.
fn components(instance: &Instance) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..instance.bodies.len() as u32)
        .filter(|&b| !instance.bodies[b as usize].parts.is_empty())
        .collect();
    order.sort_by_key(|&b| (instance.bodies[b as usize].lower, b));
    let mut sets: Vec<Vec<u32>> = Vec::new();
    let mut end = 0;
    for body in order {
        let info = &instance.bodies[body as usize];
        match sets.last_mut() {
            Some(set) if info.lower < end => set.push(body),
            _ => sets.push(vec![body]),
        }
        end = end.max(info.upper);
    }
    sets
}

fn refuse_fixed_overlap(problem: &Problem, instance: &Instance) -> Result<(), PlanError> {
    let fixed: Vec<(usize, i64)> = instance
        .bodies
        .iter()
        .enumerate()
        .filter_map(|(i, b)| b.fixed.map(|offset| (i, offset)))
        .collect();
    for (position, &(a, at_a)) in fixed.iter().enumerate() {
        for &(b, at_b) in &fixed[position + 1..] {
            if let Some((ab, ba)) = instance.separation(a, b)
                && at_a + ab > at_b
                && at_b + ba > at_a
            {
                let name = |index: usize| problem.buffers[index].name.clone();
                return Err(PlanError::FixedOverlap {
                    first: name(a),
                    second: name(b),
                });
            }
        }
    }
    Ok(())
}
