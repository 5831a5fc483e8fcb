//! The state of the exact search: what is placed, what that means for the rest, and how to take it back.
//!
//! Bodies and live sets are numbered within one component. All lists are flat, and every change is logged, so that a step of the search
//! touches little memory and allocates nothing.

use super::instance::{Body, Instance};
use super::live_set::{LiveSet, Member};
use super::units::round_up;

/// Above every offset.
pub(super) const NONE: i64 = i64::MAX / 4;

/// Where the bodies of a set are in another list: `list[from..to]`.
type Range = (u32, u32);

#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) other: u32,
    /// Least offset of `other` above the owner of this edge.
    pub(super) distance: i64,
}

/// The state before a placement: how long the lists of changes were.
pub(super) struct Mark {
    body: u32,
    raised: usize,
    floors: usize,
    settled: usize,
}

/// State of one component: known bounds, and placed bodies.
pub(super) struct State {
    pub(super) height: Vec<i64>,
    pub(super) align: Vec<i64>,
    pub(super) fixed: Vec<bool>,
    pub(super) start: Vec<i64>,
    pub(super) edges: Vec<Edge>,
    pub(super) edge_range: Vec<Range>,
    /// Members of all live sets: the body, as an index into `bodies`, and the lowest byte that it takes there.
    pub(super) member_body: Vec<u32>,
    pub(super) member_low: Vec<i64>,
    /// All of `member_low` are 0.
    pub(super) flat: bool,
    pub(super) member_range: Vec<Range>,
    pub(super) spare: Vec<i64>,
    pub(super) weight_sum: Vec<i64>,
    /// (live set, weight) of every body.
    pub(super) uses: Vec<(u32, i64)>,
    pub(super) use_range: Vec<Range>,
    /// `dirty.len()` words a body: the live sets it is a member of.
    pub(super) live_set_mask: Vec<u64>,
    /// All separations are above 0.
    pub(super) positive: bool,
    pub(super) monotone: bool,
    // The following fields change during a search.
    pub(super) capacity: i64,
    pub(super) limit: Vec<i64>,
    pub(super) unplaced: Vec<u64>,
    pub(super) offset: Vec<i64>,
    pub(super) least: Vec<i64>,
    /// `least` of the unplaced, `NONE` for the placed.
    pub(super) current: Vec<i64>,
    pub(super) floor: Vec<i64>,
    pub(super) total: Vec<i64>,
    /// Unplaced bodies that span the boundary after each live set.
    pub(super) span: Vec<u32>,
    /// Unplaced bodies alive together with each body.
    pub(super) crowd: Vec<u32>,
    pub(super) trail: Vec<Mark>,
    pub(super) raised: Vec<(u32, i64)>,
    pub(super) floors: Vec<(u32, i64)>,
    pub(super) settled: Vec<u32>,
    pub(super) dirty: Vec<u64>,
    /// Entries looked at or changed since the search began.
    pub(super) work: u64,
    /// Whether the last placement left a boundary that no unplaced body spans.
    pub(super) broke: bool,
}

impl State {
    /// Nothing placed yet of `bodies` (indices into the instance, none of them empty), alive in `live sets`.
    pub(super) fn new(instance: &Instance, bodies: &[u32], live_sets: &[LiveSet]) -> Self {
        let count = bodies.len();
        let mut local = vec![u32::MAX; instance.bodies.len()];
        for (index, &body) in bodies.iter().enumerate() {
            local[body as usize] = index as u32;
        }
        let own = |f: &dyn Fn(&Body) -> i64| -> Vec<i64> {
            bodies.iter().map(|&b| f(&instance.bodies[b as usize])).collect()
        };
        let (mut members, mut member_range, mut spare) = (Vec::new(), Vec::new(), Vec::new());
        let mut uses_of: Vec<Vec<(u32, i64)>> = vec![Vec::new(); count];
        for (index, live_set) in live_sets.iter().enumerate() {
            let from = members.len() as u32;
            for member in &live_set.members {
                let body = local[member.body as usize];
                uses_of[body as usize].push((index as u32, member.weight));
                members.push(Member { body, ..*member });
            }
            member_range.push((from, members.len() as u32));
            spare.push(live_set.members.iter().map(|m| m.pad).max().unwrap_or(0));
        }
        let (mut edges, mut edge_range) = (Vec::new(), Vec::new());
        let mut seen = vec![u32::MAX; count];
        for a in 0..count {
            let from = edges.len() as u32;
            seen[a] = a as u32;
            for &(live_set, _) in &uses_of[a] {
                let (begin, end) = member_range[live_set as usize];
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
        let mut live_set_mask = vec![0u64; count * words];
        for (body, list) in uses_of.into_iter().enumerate() {
            for &(live_set, _) in &list {
                live_set_mask[body * words + live_set as usize / 64] |= 1 << (live_set % 64);
            }
            let from = uses.len() as u32;
            uses.extend(list);
            use_range.push((from, uses.len() as u32));
        }
        State {
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
            weight_sum: live_sets
                .iter()
                .map(|s| s.members.iter().map(|m| m.weight).sum())
                .collect(),
            uses,
            use_range,
            live_set_mask,
            positive: edges.iter().all(|e: &Edge| e.distance > 0),
            edges,
            monotone: instance.monotone,
            capacity: 0,
            unplaced: vec![0; count.div_ceil(64)],
            offset: vec![0; count],
            least: vec![0; count],
            current: vec![0; count],
            crowd: vec![0; count],
            trail: Vec::new(),
            raised: Vec::new(),
            floors: Vec::new(),
            settled: Vec::new(),
            work: 0,
            broke: false,
        }
    }

    /// Takes everything back. False if some live set alone exceeds the capacity. No body does: the bound of every problem is above its ends.
    pub(super) fn reset(&mut self, capacity: i64) -> bool {
        self.capacity = capacity;
        let count = self.height.len();
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
        for live_set in 0..self.spare.len() {
            self.limit[live_set] = self.capacity + self.spare[live_set];
            let (from, to) = self.member_range[live_set];
            let range = from as usize..to as usize;
            let floors = self.member_body[range.clone()].iter().zip(&self.member_low[range]);
            self.floor[live_set] = floors
                .map(|(&body, &low)| self.least[body as usize] + low)
                .min()
                .unwrap_or(0);
            self.total[live_set] = self.weight_sum[live_set];
            if self.floor[live_set] + self.total[live_set] > self.limit[live_set] {
                return false;
            }
        }
        true
    }

    /// Places a body and draws the consequences. False where no plan can follow; `unwind` undoes it either way.
    pub(super) fn place(&mut self, body: usize, offset: i64, live_sets: &std::ops::Range<usize>) -> bool {
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
        // Taking it back costs as much again.
        self.work += 2 * u64::from(to - from) + (self.dirty.len() + live_sets.len()) as u64;
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
        // A body that has nothing unplaced beside it stays where it is.
        for index in first_settled..self.settled.len() {
            let other = self.settled[index] as usize;
            self.offset[other] = self.least[other];
            self.take(other);
            self.release(other);
        }
        fits && self.live_sets_fit(if self.monotone { offset } else { 0 }, live_sets)
    }

    /// Undoes placements, the latest first, until `depth` are left.
    pub(super) fn unwind(&mut self, depth: usize) {
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
            if let Some((live_set, floor)) = self.floors.pop() {
                self.floor[live_set as usize] = floor;
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

    /// Takes a placed body out of its live sets.
    fn release(&mut self, body: usize) {
        let (from, to) = self.use_range[body];
        let uses = &self.uses[from as usize..to as usize];
        self.work += 2 * uses.len() as u64;
        for &(live_set, weight) in uses {
            self.total[live_set as usize] -= weight;
        }
        if let (Some(first), Some(last)) = (uses.first(), uses.last()) {
            for span in &mut self.span[first.0 as usize..last.0 as usize] {
                *span -= 1;
                self.broke |= *span == 0;
            }
        }
    }

    /// Puts an unplaced body back into its live sets.
    fn retain(&mut self, body: usize) {
        let (from, to) = self.use_range[body];
        let uses = &self.uses[from as usize..to as usize];
        for &(live_set, weight) in uses {
            self.total[live_set as usize] += weight;
        }
        if let (Some(first), Some(last)) = (uses.first(), uses.last()) {
            for span in &mut self.span[first.0 as usize..last.0 as usize] {
                *span += 1;
            }
        }
    }

    /// Marks the live sets of a body as changed.
    fn mark(&mut self, body: usize) {
        let words = self.dirty.len();
        self.work += words as u64;
        for (dirty, &mask) in self
            .dirty
            .iter_mut()
            .zip(&self.live_set_mask[body * words..(body + 1) * words])
        {
            *dirty |= mask;
        }
    }

    /// Recomputes the floors of changed live sets and compares all live sets with the capacity.
    fn live_sets_fit(&mut self, bar: i64, range: &std::ops::Range<usize>) -> bool {
        for word in 0..self.dirty.len() {
            let mut bits = self.dirty[word];
            while bits != 0 {
                let live_set = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if self.total[live_set] == 0 {
                    continue;
                }
                let (from, to) = self.member_range[live_set];
                let bodies = &self.member_body[from as usize..to as usize];
                self.work += bodies.len() as u64;
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
                if floor > self.floor[live_set] && floor < NONE {
                    self.floors.push((live_set as u32, self.floor[live_set]));
                    self.floor[live_set] = floor;
                    if floor + self.total[live_set] > self.limit[live_set] {
                        return false;
                    }
                }
            }
        }
        let (floors, totals, limits) = (
            &self.floor[range.clone()],
            &self.total[range.clone()],
            &self.limit[range.clone()],
        );
        !floors
            .iter()
            .zip(totals)
            .zip(limits)
            .any(|((&floor, &total), &limit)| total > 0 && floor.max(bar) + total > limit)
    }

    /// Whether `body` may only stand where it is because `last` stands (a separation of 0 or less).
    pub(super) fn is_forced_after(&self, last: usize, body: usize) -> bool {
        if self.positive {
            return false;
        }
        let (from, to) = self.edge_range[last];
        self.edges[from as usize..to as usize]
            .iter()
            .any(|edge| edge.other as usize == body && edge.distance <= 0)
    }
}
