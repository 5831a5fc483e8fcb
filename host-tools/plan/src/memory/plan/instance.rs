//! The problem as the algorithms see it: validated, scaled by its common divisor, with separations and live sets.

use std::collections::HashMap;

use super::problem::{PlanError, Problem};
use super::units::{common_unit, gcd, round_up, validate};

/// Sums over live sets of their members, and pairs of bodies alive together, up to which the exact search is tried.
pub(super) const SEARCH_LIMIT: usize = 2_000_000;

/// One rectangle of a body, in scaled units.
#[derive(Clone, Debug)]
pub(super) struct Rect {
    pub(super) lower: u64,
    pub(super) upper: u64,
    pub(super) offset: i64,
    pub(super) size: i64,
}

/// One buffer, in scaled units.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) align: i64,
    pub(super) fixed: Option<i64>,
    pub(super) parts: Vec<Rect>,
    /// Hull of the parts' lifetimes.
    pub(super) lower: u64,
    pub(super) upper: u64,
    /// One past the highest byte of any part.
    pub(super) height: i64,
    /// One rectangle from offset 0, in no relation: its separations follow from sizes alone.
    pub(super) plain: bool,
}

impl Body {
    /// Sum of bytes times steps.
    pub(super) fn area(&self) -> f64 {
        self.parts
            .iter()
            .map(|p| (p.upper - p.lower) as f64 * p.size as f64)
            .sum()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Instance {
    /// Bytes per scaled unit.
    pub(super) unit: u64,
    /// Empty buffers (no byte at any time) have `parts` empty.
    pub(super) bodies: Vec<Body>,
    /// (below, above) -> least difference of offsets, for pairs that may overlap.
    pub(super) relations: HashMap<(u32, u32), i64>,
    /// Of each body, those that it has a relation with, in order and each once.
    pub(super) related: Vec<Vec<u32>>,
    /// Whether an exhausted search proves that no plan exists: see [`Instance::new`].
    pub(super) exhaustible: bool,
    /// Whether every separation is at least 0, so that offsets never fall along a stack.
    pub(super) monotone: bool,
}

impl Instance {
    /// Validates and scales a problem.
    ///
    /// All sizes, distances and offsets are divided by their greatest common divisor: a left-justified plan has only
    /// offsets that are sums of them, so nothing is lost. An alignment that divides it needs no attention at all.
    pub(super) fn new(problem: &Problem) -> Result<Self, PlanError> {
        validate(problem)?;
        let unit = common_unit(problem);
        let scale = |bytes: u64| (bytes / unit) as i64;
        let mut bodies: Vec<Body> = problem
            .buffers
            .iter()
            .map(|buffer| {
                let parts: Vec<Rect> = buffer
                    .parts
                    .iter()
                    .filter(|p| p.size > 0 && p.upper > p.lower)
                    .map(|p| Rect {
                        lower: p.lower,
                        upper: p.upper,
                        offset: scale(p.offset),
                        size: scale(p.size),
                    })
                    .collect();
                Body {
                    align: if buffer.align.is_multiple_of(unit) {
                        scale(buffer.align)
                    } else {
                        1
                    },
                    fixed: buffer.fixed.map(scale),
                    lower: parts.iter().map(|p| p.lower).min().unwrap_or(0),
                    upper: parts.iter().map(|p| p.upper).max().unwrap_or(0),
                    height: parts.iter().map(|p| p.offset + p.size).max().unwrap_or(0),
                    plain: parts.len() == 1 && parts.iter().all(|p| p.offset == 0),
                    parts,
                }
            })
            .collect();
        let mut relations = HashMap::new();
        for relation in &problem.relations {
            let distance = relation.distance.div_euclid(unit as i64);
            let key = (relation.below as u32, relation.above as u32);
            relations
                .entry(key)
                .and_modify(|d: &mut i64| *d = distance.min(*d))
                .or_insert(distance);
            for index in [relation.below, relation.above] {
                if let Some(body) = bodies.get_mut(index) {
                    body.plain = false;
                }
            }
        }
        let mut related = vec![Vec::new(); bodies.len()];
        for &(below, above) in relations.keys() {
            related[below as usize].push(above);
            related[above as usize].push(below);
        }
        for partners in &mut related {
            partners.sort_unstable();
            partners.dedup();
        }
        let mut instance = Instance {
            unit,
            bodies,
            relations,
            related,
            exhaustible: true,
            monotone: true,
        };
        instance.classify();
        Ok(instance)
    }

    /// The same with every size rounded up to a multiple of `grid` (scaled), which is then the unit. Any plan of it, times `grid`, is
    /// one of this. `None` where bodies are more than rectangles, or fixed, or aligned otherwise.
    pub(super) fn rounded(&self, grid: i64) -> Option<Instance> {
        let simple = |b: &Body| b.fixed.is_none() && (b.parts.is_empty() || b.plain) && grid % b.align == 0;
        if !self.bodies.iter().all(simple) {
            return None;
        }
        let mut coarse = self.clone();
        for body in &mut coarse.bodies {
            body.align = 1;
            body.height = (body.height + grid - 1) / grid;
            body.parts.iter_mut().for_each(|part| part.size = body.height);
        }
        Some(coarse)
    }

    /// The separations of two bodies that share a step: the least `offset[b] - offset[a]` with a below b, and the least
    /// `offset[a] - offset[b]` with b below a. `None` where they are never alive together.
    pub(super) fn separation(&self, a: usize, b: usize) -> Option<(i64, i64)> {
        let (x, y) = (&self.bodies[a], &self.bodies[b]);
        if x.lower >= y.upper || y.lower >= x.upper {
            return None;
        }
        let (mut ab, mut ba) = if x.plain && y.plain {
            (x.height, y.height)
        } else {
            self.separation_of_parts(a, b)?
        };
        // Differences of offsets are multiples of what divides both alignments.
        let grid = gcd(x.align as u64, y.align as u64) as i64;
        if grid > 1 {
            ab = round_up(ab, grid);
            ba = round_up(ba, grid);
        }
        Some((ab, ba))
    }

    fn separation_of_parts(&self, a: usize, b: usize) -> Option<(i64, i64)> {
        let (x, y) = (&self.bodies[a], &self.bodies[b]);
        let mut pair: Option<(i64, i64)> = None;
        for p in &x.parts {
            for q in y.parts.iter().filter(|q| p.lower < q.upper && q.lower < p.upper) {
                let (ab, ba) = (p.offset + p.size - q.offset, q.offset + q.size - p.offset);
                pair = Some(pair.map_or((ab, ba), |(u, v)| (u.max(ab), v.max(ba))));
            }
        }
        let (mut ab, mut ba) = pair?;
        if let Some(&distance) = self.relations.get(&(a as u32, b as u32)) {
            ab = ab.min(distance);
        }
        if let Some(&distance) = self.relations.get(&(b as u32, a as u32)) {
            ba = ba.min(distance);
        }
        Some((ab, ba))
    }

    /// Sets `exhaustible` and `monotone`.
    ///
    /// The search orders each pair one way or the other. It covers every valid plan unless (1) two bodies of several
    /// parts could interlock, one part above and another below, or (2) separations of 0 or less let an ordering be circular.
    fn classify(&mut self) {
        // Without an exact search nobody asks.
        if self.search_size() > SEARCH_LIMIT {
            (self.monotone, self.exhaustible) = (false, false);
            return;
        }
        let special = |body: usize| !self.bodies[body].plain;
        let (mut exhaustible, mut monotone) = (true, true);
        let mut zero: Vec<(usize, usize)> = Vec::new();
        self.visit_pairs(&mut |a, b| {
            if !special(a) && !special(b) {
                return;
            }
            let Some((ab, ba)) = self.separation(a, b) else {
                return;
            };
            monotone &= ab >= 0 && ba >= 0;
            exhaustible &= !self.may_interlock(a, b);
            if ab == 0 {
                zero.push((a, b));
            }
            if ba == 0 {
                zero.push((b, a));
            }
        });
        self.monotone = monotone;
        self.exhaustible = exhaustible && monotone && is_acyclic(self.bodies.len(), &zero);
    }

    /// Calls `visit` with every pair of bodies whose lifetimes meet, once.
    pub(super) fn visit_pairs(&self, visit: &mut dyn FnMut(usize, usize)) {
        let mut events: Vec<(u64, bool, u32)> = Vec::new();
        for (index, body) in self.bodies.iter().enumerate().filter(|(_, b)| !b.parts.is_empty()) {
            events.push((body.lower, true, index as u32));
            events.push((body.upper, false, index as u32));
        }
        // At equal times, ends come first.
        events.sort_unstable();
        let mut alive: Vec<u32> = Vec::new();
        let mut place = vec![0; self.bodies.len()];
        for (_, begins, body) in events {
            if begins {
                alive.iter().for_each(|&other| visit(body as usize, other as usize));
                place[body as usize] = alive.len();
                alive.push(body);
            } else {
                let at = place[body as usize];
                alive.swap_remove(at);
                if let Some(&moved) = alive.get(at) {
                    place[moved as usize] = at;
                }
            }
        }
    }

    /// Whether the set of forbidden offset differences of two bodies has a gap.
    fn may_interlock(&self, a: usize, b: usize) -> bool {
        let (x, y) = (&self.bodies[a], &self.bodies[b]);
        let mut forbidden: Vec<(i64, i64)> = Vec::new();
        for p in &x.parts {
            for q in y.parts.iter().filter(|q| p.lower < q.upper && q.lower < p.upper) {
                forbidden.push((p.offset - q.offset - q.size, p.offset + p.size - q.offset));
            }
        }
        forbidden.sort_unstable();
        let mut end = i64::MIN;
        let mut first = true;
        for (from, to) in forbidden {
            if !first && from >= end {
                return true;
            }
            first = false;
            end = end.max(to);
        }
        false
    }

    /// Returns the size of the exact search: members of all live sets, and pairs of bodies alive together.
    pub(super) fn search_size(&self) -> usize {
        let mut events: Vec<(u64, bool)> = Vec::new();
        for body in self.bodies.iter().filter(|b| !b.parts.is_empty()) {
            events.push((body.lower, true));
            events.push((body.upper, false));
        }
        events.sort_unstable();
        let (mut alive, mut size, mut grew) = (0usize, 0usize, false);
        for (_, begins) in events {
            if begins {
                size += alive;
                alive += 1;
            } else {
                size += if grew { alive } else { 0 };
                alive -= 1;
            }
            grew = begins;
        }
        size
    }

    /// Returns the greatest common divisor of all bodies' alignments.
    pub(super) fn common_alignment(&self) -> i64 {
        let used = self.bodies.iter().filter(|b| !b.parts.is_empty());
        used.fold(0, |common, body| gcd(common, body.align as u64)).max(1) as i64
    }
}

fn is_acyclic(count: usize, edges: &[(usize, usize)]) -> bool {
    let mut incoming = vec![0usize; count];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &(a, b) in edges {
        incoming[b] += 1;
        next[a].push(b);
    }
    let mut ready: Vec<usize> = (0..count).filter(|&i| incoming[i] == 0).collect();
    let mut seen = 0;
    while let Some(a) = ready.pop() {
        seen += 1;
        for &b in &next[a] {
            incoming[b] -= 1;
            if incoming[b] == 0 {
                ready.push(b);
            }
        }
    }
    seen == count
}
