//! Exact search: depth first over canonical plans, with section inference, decomposition in time, and memory of failures.
//!
//! A plan in which no buffer can be lowered is determined by the order in which its buffers are placed, each at the least offset
//! that those below it allow. The search enumerates such orders by non-decreasing offset, so that each plan is met once. It
//! gives up a branch as soon as
//!
//! - some section's floor (the least byte that any of its unplaced members can still take) plus the bytes of those members exceeds the
//!   capacity, or
//! - a buffer would be placed so high that another would fit untouched beneath it (the plan is dominated), or
//! - the unplaced buffers with their least offsets have been met before, and failed: what lies beneath them is irrelevant.
//!
//! Where the unplaced buffers fall apart into groups that share no section, each group is solved alone. Several orders of
//! preference are tried in turn under growing node limits; a failed state stays failed in all of them.
//!
//! The ideas of canonical plans, section inference, dominance and decomposition are those of M. D. Moffitt, "MiniMalloc: A Lightweight
//! Memory Allocator for Hardware-Accelerated Machine Learning" (ASPLOS 2023).

use super::instance::{Instance, Member, Section, round_up};
use super::memory::{Failures, Random, state_hash};

/// Above every offset.
const NONE: i64 = i64::MAX / 4;

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Scaled offsets, in the order of `Search::bodies`.
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

#[derive(Clone, Copy)]
struct Edge {
    other: u32,
    /// Least offset of `other` above the owner of this edge.
    distance: i64,
}

/// The state before a placement: how long the lists of changes were.
struct Mark {
    body: u32,
    raised: usize,
    floors: usize,
    settled: usize,
}

/// A group of unplaced bodies that is searched on its own.
struct Scope {
    mask: Vec<u64>,
    sections: std::ops::Range<usize>,
}

/// The search over one set of bodies that share no step with any other body.
pub(super) struct Search {
    /// Indices into the instance.
    pub(super) bodies: Vec<u32>,
    height: Vec<i64>,
    align: Vec<i64>,
    fixed: Vec<bool>,
    start: Vec<i64>,
    edges: Vec<Edge>,
    edge_range: Vec<(u32, u32)>,
    /// Members of all sections: the body, as an index into `bodies`, and the lowest byte that it takes there.
    member_body: Vec<u32>,
    member_low: Vec<i64>,
    /// All of `member_low` are 0.
    flat: bool,
    member_range: Vec<(u32, u32)>,
    spare: Vec<i64>,
    weight_sum: Vec<i64>,
    /// (section, weight) of every body.
    uses: Vec<(u32, i64)>,
    use_range: Vec<(u32, u32)>,
    /// `dirty.len()` words a body: the sections it is a member of.
    section_mask: Vec<u64>,
    orders: Vec<Vec<u32>>,
    /// All separations are above 0.
    positive: bool,
    monotone: bool,
    // What follows changes during a search.
    capacity: i64,
    limit: Vec<i64>,
    rank: Vec<u32>,
    unplaced: Vec<u64>,
    offset: Vec<i64>,
    least: Vec<i64>,
    /// `least` of the unplaced, `NONE` for the placed.
    current: Vec<i64>,
    floor: Vec<i64>,
    total: Vec<i64>,
    /// Unplaced bodies that span the boundary after each section.
    span: Vec<u32>,
    /// Unplaced bodies alive together with each body.
    crowd: Vec<u32>,
    trail: Vec<Mark>,
    raised: Vec<(u32, i64)>,
    floors: Vec<(u32, i64)>,
    settled: Vec<u32>,
    dirty: Vec<u64>,
    /// Whether the last placement left a boundary that no unplaced body spans.
    broke: bool,
    failures: Failures,
    nodes: u64,
    node_limit: u64,
}

impl Search {
    /// Prepares the search over `bodies` (indices into the instance, none of them empty), alive in `sections`.
    pub(super) fn new(instance: &Instance, bodies: Vec<u32>, sections: &[Section], orders: Vec<Vec<u32>>) -> Self {
        let count = bodies.len();
        let mut local = vec![u32::MAX; instance.bodies.len()];
        for (index, &body) in bodies.iter().enumerate() {
            local[body as usize] = index as u32;
        }
        let own = |f: &dyn Fn(&super::instance::Body) -> i64| -> Vec<i64> {
            bodies.iter().map(|&b| f(&instance.bodies[b as usize])).collect()
        };
        let (mut members, mut member_range, mut spare) = (Vec::new(), Vec::new(), Vec::new());
        let mut uses_of: Vec<Vec<(u32, i64)>> = vec![Vec::new(); count];
        for (index, section) in sections.iter().enumerate() {
            let from = members.len() as u32;
            for member in &section.members {
                let body = local[member.body as usize];
                uses_of[body as usize].push((index as u32, member.weight));
                members.push(Member { body, ..*member });
            }
            member_range.push((from, members.len() as u32));
            spare.push(section.members.iter().map(|m| m.pad).max().unwrap_or(0));
        }
        let (mut edges, mut edge_range) = (Vec::new(), Vec::new());
        let mut seen = vec![u32::MAX; count];
        for a in 0..count {
            let from = edges.len() as u32;
            seen[a] = a as u32;
            for &(section, _) in &uses_of[a] {
                let (begin, end) = member_range[section as usize];
                for member in &members[begin as usize..end as usize] {
                    let b = member.body as usize;
                    if seen[b] != a as u32 {
                        seen[b] = a as u32;
                        if let Some((distance, _)) = instance.separation(bodies[a] as usize, bodies[b] as usize) {
                            edges.push(Edge {
                                other: b as u32,
                                distance,
                            });
                        }
                    }
                }
            }
            edge_range.push((from, edges.len() as u32));
        }
        let (mut uses, mut use_range) = (Vec::new(), Vec::new());
        let words = spare.len().div_ceil(64);
        let mut section_mask = vec![0u64; count * words];
        for (body, list) in uses_of.into_iter().enumerate() {
            for &(section, _) in &list {
                section_mask[body * words + section as usize / 64] |= 1 << (section % 64);
            }
            let from = uses.len() as u32;
            uses.extend(list);
            use_range.push((from, uses.len() as u32));
        }
        let orders = orders
            .into_iter()
            .map(|order| order.into_iter().map(|b| local[b as usize]).collect())
            .collect();
        Search {
            height: own(&|b| b.height),
            align: own(&|b| b.align),
            fixed: bodies
                .iter()
                .map(|&b| instance.bodies[b as usize].fixed.is_some())
                .collect(),
            start: own(&|b| b.fixed.unwrap_or(0)),
            edge_range,
            flat: members.iter().all(|m| m.low == 0),
            member_body: members.iter().map(|m| m.body).collect(),
            member_low: members.iter().map(|m| m.low).collect(),
            member_range,
            limit: vec![0; spare.len()],
            floor: vec![0; spare.len()],
            total: vec![0; spare.len()],
            span: vec![0; spare.len()],
            dirty: vec![0; words],
            spare,
            weight_sum: sections
                .iter()
                .map(|s| s.members.iter().map(|m| m.weight).sum())
                .collect(),
            uses,
            use_range,
            section_mask,
            orders,
            positive: edges.iter().all(|e: &Edge| e.distance > 0),
            edges,
            monotone: instance.monotone,
            capacity: 0,
            rank: vec![0; count],
            unplaced: vec![0; count.div_ceil(64)],
            offset: vec![0; count],
            least: vec![0; count],
            current: vec![0; count],
            crowd: vec![0; count],
            trail: Vec::new(),
            raised: Vec::new(),
            floors: Vec::new(),
            settled: Vec::new(),
            broke: false,
            failures: Failures::default(),
            nodes: 0,
            node_limit: 0,
            bodies,
        }
    }

    /// Looks for a plan within `capacity` (scaled). Returns the nodes used as well.
    pub(super) fn run(&mut self, capacity: i64, budget: u64) -> (Outcome, u64) {
        self.capacity = capacity;
        self.failures.clear();
        let mut used = 0;
        let mut slice = 2 * self.bodies.len() as u64 + 64;
        for round in 0.. {
            let mut order = self.orders[round % self.orders.len()].clone();
            if round >= self.orders.len() {
                shuffle_locally(&mut order, round as u64);
            }
            for (rank, &body) in order.iter().enumerate() {
                self.rank[body as usize] = rank as u32;
            }
            if round > 0 && round % self.orders.len() == 0 {
                slice += slice / 2;
            }
            self.nodes = 0;
            self.node_limit = slice.min(budget - used);
            let step = self.search_from_scratch();
            used += self.nodes;
            match step {
                Step::Solved => return (Outcome::Found(self.offset.clone()), used),
                Step::Failed => return (Outcome::Exhausted, used),
                Step::Stopped if used >= budget => break,
                Step::Stopped => {}
            }
        }
        (Outcome::Budget, used)
    }

    fn search_from_scratch(&mut self) -> Step {
        let count = self.bodies.len();
        self.trail.clear();
        self.raised.clear();
        self.floors.clear();
        self.settled.clear();
        self.unplaced.fill(0);
        for body in 0..count {
            self.unplaced[body / 64] |= 1 << (body % 64);
            let (from, to) = self.edge_range[body];
            self.crowd[body] = to - from;
        }
        self.least.copy_from_slice(&self.start);
        self.current.copy_from_slice(&self.start);
        self.span.fill(0);
        for body in 0..count {
            let (from, to) = self.use_range[body];
            if let [first, .., last] = &self.uses[from as usize..to as usize] {
                self.span[first.0 as usize..last.0 as usize]
                    .iter_mut()
                    .for_each(|span| *span += 1);
            }
        }
        for section in 0..self.spare.len() {
            self.limit[section] = self.capacity + self.spare[section];
            let (from, to) = self.member_range[section];
            let range = from as usize..to as usize;
            let floors = self.member_body[range.clone()].iter().zip(&self.member_low[range]);
            self.floor[section] = floors
                .map(|(&body, &low)| self.least[body as usize] + low)
                .min()
                .unwrap_or(0);
            self.total[section] = self.weight_sum[section];
            if self.floor[section] + self.total[section] > self.limit[section] {
                return Step::Failed;
            }
        }
        for body in 0..count {
            if self.least[body] + self.height[body] > self.capacity {
                return Step::Failed;
            }
        }
        self.split(0..self.spare.len(), None)
    }

    /// Solves every independent group among the unplaced bodies of a range of sections.
    fn split(&mut self, sections: std::ops::Range<usize>, last: Option<usize>) -> Step {
        let mut groups: Vec<(usize, Scope)> = Vec::new();
        let mut from = sections.start;
        for section in sections.clone() {
            if section + 1 < sections.end && self.span[section] > 0 {
                continue;
            }
            let mut mask = vec![0u64; self.unplaced.len()];
            for other in from..=section {
                let (begin, end) = self.member_range[other];
                for &body in &self.member_body[begin as usize..end as usize] {
                    mask[body as usize / 64] |= (1 << (body % 64)) & self.unplaced[body as usize / 64];
                }
            }
            let size: u32 = mask.iter().map(|w| w.count_ones()).sum();
            if size > 0 {
                groups.push((
                    size as usize,
                    Scope {
                        mask,
                        sections: from..section + 1,
                    },
                ));
            }
            from = section + 1;
        }
        // The smallest group first: if it fails, the others need not be tried.
        groups.sort_by_key(|(size, scope)| (*size, scope.sections.start));
        for (_, group) in groups {
            match self.descend(&group, last) {
                Step::Solved => {}
                other => return other,
            }
        }
        Step::Solved
    }

    /// Places one more body of the scope, none below the last one placed.
    fn descend(&mut self, scope: &Scope, last: Option<usize>) -> Step {
        if self.nodes >= self.node_limit {
            return Step::Stopped;
        }
        self.nodes += 1;
        let bar = last.map_or((i64::MIN, 0), |body| (self.offset[body], self.rank[body]));
        let mut candidates: Vec<(i64, u32, u32)> = Vec::new();
        let mut roof = NONE;
        let mut hash = 0u128;
        let mut blocked_any = false;
        let mut any = false;
        for (word, (&mask, &free)) in scope.mask.iter().zip(&self.unplaced).enumerate() {
            let mut bits = mask & free;
            while bits != 0 {
                let body = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                any = true;
                let key = (self.least[body], self.rank[body]);
                roof = roof.min(key.0 + self.height[body]);
                let blocked = key < bar && !last.is_some_and(|last| self.is_forced_after(last, body));
                hash = hash.wrapping_add(state_hash(body as u32, key.0, blocked && key.0 == bar.0));
                if blocked {
                    blocked_any = true;
                } else {
                    candidates.push((key.0, key.1, body as u32));
                }
            }
        }
        if !any {
            return Step::Solved;
        }
        if blocked_any {
            hash = hash.wrapping_add(state_hash(u32::MAX, bar.0, true));
        }
        if self.failures.contains(hash) {
            return Step::Failed;
        }
        if self.monotone {
            // Whatever comes next, nothing stays below it: no section may need more room than that leaves.
            let range = scope.sections.clone();
            let highest = self.limit[range.clone()]
                .iter()
                .zip(&self.total[range])
                .map(|(&limit, &total)| if total > 0 { limit - total } else { NONE })
                .min()
                .unwrap_or(NONE);
            candidates.retain(|c| c.0 < roof && c.0 <= highest);
        }
        candidates.sort_unstable();
        for &(offset, _, body) in &candidates {
            let body = body as usize;
            let depth = self.trail.len();
            self.broke = false;
            let mut step = Step::Failed;
            if self.place(body, offset, scope) {
                step = if self.broke {
                    self.split(scope.sections.clone(), Some(body))
                } else {
                    self.descend(scope, Some(body))
                };
            }
            match step {
                // Groups solved before one that failed are undone with it.
                Step::Failed => self.unwind(depth),
                // Solved: the offsets stay as they are. Stopped: the next round starts afresh.
                other => return other,
            }
        }
        self.failures.insert(hash);
        Step::Failed
    }

    /// Places a body and draws the consequences. False where no plan can follow; `unwind` undoes it either way.
    fn place(&mut self, body: usize, offset: i64, scope: &Scope) -> bool {
        self.trail.push(Mark {
            body: body as u32,
            raised: self.raised.len(),
            floors: self.floors.len(),
            settled: self.settled.len(),
        });
        let mut fits = true;
        let first_settled = self.settled.len();
        self.offset[body] = offset;
        self.take(body);
        self.dirty.fill(0);
        self.mark(body);
        self.release(body);
        let (from, to) = self.edge_range[body];
        for edge in from as usize..to as usize {
            let Edge { other, distance } = self.edges[edge];
            let other = other as usize;
            if self.unplaced[other / 64] & (1 << (other % 64)) == 0 {
                continue;
            }
            self.crowd[other] -= 1;
            let mut least = offset + distance;
            if least > self.least[other] {
                least = round_up(least, self.align[other]);
                self.raised.push((other as u32, self.least[other]));
                self.least[other] = least;
                self.current[other] = least;
                fits &= least + self.height[other] <= self.capacity && !self.fixed[other];
                self.mark(other);
            }
            if self.crowd[other] == 0 {
                self.settled.push(other as u32);
            }
        }
        // What has nothing unplaced beside it stays where it is.
        for index in first_settled..self.settled.len() {
            let other = self.settled[index] as usize;
            self.offset[other] = self.least[other];
            self.take(other);
            self.release(other);
        }
        fits && self.sections_fit(if self.monotone { offset } else { 0 }, scope)
    }

    /// Undoes placements, the latest first, until `depth` are left.
    fn unwind(&mut self, depth: usize) {
        while self.trail.len() > depth {
            if let Some(mark) = self.trail.pop() {
                self.unplace(&mark);
            }
        }
    }

    fn unplace(&mut self, mark: &Mark) {
        while self.settled.len() > mark.settled {
            if let Some(other) = self.settled.pop() {
                self.give_back(other as usize);
                self.retain(other as usize);
            }
        }
        while self.floors.len() > mark.floors {
            if let Some((section, floor)) = self.floors.pop() {
                self.floor[section as usize] = floor;
            }
        }
        while self.raised.len() > mark.raised {
            if let Some((other, least)) = self.raised.pop() {
                self.least[other as usize] = least;
                self.current[other as usize] = least;
            }
        }
        let body = mark.body as usize;
        let (from, to) = self.edge_range[body];
        for edge in &self.edges[from as usize..to as usize] {
            let other = edge.other as usize;
            if self.unplaced[other / 64] & (1 << (other % 64)) != 0 {
                self.crowd[other] += 1;
            }
        }
        self.give_back(body);
        self.retain(body);
    }

    fn take(&mut self, body: usize) {
        self.unplaced[body / 64] &= !(1 << (body % 64));
        self.current[body] = NONE;
    }

    fn give_back(&mut self, body: usize) {
        self.unplaced[body / 64] |= 1 << (body % 64);
        self.current[body] = self.least[body];
    }

    /// Takes a placed body out of its sections.
    fn release(&mut self, body: usize) {
        let (from, to) = self.use_range[body];
        let uses = &self.uses[from as usize..to as usize];
        for &(section, weight) in uses {
            self.total[section as usize] -= weight;
        }
        if let (Some(first), Some(last)) = (uses.first(), uses.last()) {
            for span in &mut self.span[first.0 as usize..last.0 as usize] {
                *span -= 1;
                self.broke |= *span == 0;
            }
        }
    }

    /// Puts an unplaced body back into its sections.
    fn retain(&mut self, body: usize) {
        let (from, to) = self.use_range[body];
        let uses = &self.uses[from as usize..to as usize];
        for &(section, weight) in uses {
            self.total[section as usize] += weight;
        }
        if let (Some(first), Some(last)) = (uses.first(), uses.last()) {
            for span in &mut self.span[first.0 as usize..last.0 as usize] {
                *span += 1;
            }
        }
    }

    /// Marks the sections of a body as changed.
    fn mark(&mut self, body: usize) {
        let words = self.dirty.len();
        for (dirty, &mask) in self
            .dirty
            .iter_mut()
            .zip(&self.section_mask[body * words..(body + 1) * words])
        {
            *dirty |= mask;
        }
    }

    /// Recomputes the floors of changed sections and compares all sections with the capacity.
    fn sections_fit(&mut self, bar: i64, scope: &Scope) -> bool {
        for word in 0..self.dirty.len() {
            let mut bits = self.dirty[word];
            while bits != 0 {
                let section = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if self.total[section] == 0 {
                    continue;
                }
                let (from, to) = self.member_range[section];
                let bodies = &self.member_body[from as usize..to as usize];
                let floor = if self.flat {
                    bodies
                        .iter()
                        .map(|&body| self.current[body as usize])
                        .min()
                        .unwrap_or(NONE)
                } else {
                    let lows = &self.member_low[from as usize..to as usize];
                    bodies
                        .iter()
                        .zip(lows)
                        .map(|(&body, &low)| self.current[body as usize] + low)
                        .min()
                        .unwrap_or(NONE)
                };
                if floor > self.floor[section] && floor < NONE {
                    self.floors.push((section as u32, self.floor[section]));
                    self.floor[section] = floor;
                    if floor + self.total[section] > self.limit[section] {
                        return false;
                    }
                }
            }
        }
        let range = scope.sections.clone();
        let (floors, totals, limits) = (
            &self.floor[range.clone()],
            &self.total[range.clone()],
            &self.limit[range],
        );
        !floors
            .iter()
            .zip(totals)
            .zip(limits)
            .any(|((&floor, &total), &limit)| total > 0 && floor.max(bar) + total > limit)
    }

    /// Whether `body` may only stand where it is because `last` stands (a separation of 0 or less).
    fn is_forced_after(&self, last: usize, body: usize) -> bool {
        if self.positive {
            return false;
        }
        let (from, to) = self.edge_range[last];
        self.edges[from as usize..to as usize]
            .iter()
            .any(|edge| edge.other as usize == body && edge.distance <= 0)
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
