//! Live sets: what is alive together, and how high it stands at least.

use super::instance::Instance;
use super::units::{gcd, round_up};

/// Part of one body in one live set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) body: u32,
    /// Lowest occupied byte, relative to the body's offset.
    pub(super) low: i64,
    /// Bytes that the body is certain to add to the live set's height.
    pub(super) weight: i64,
    /// How much of `weight` is padding that alignment enforces; it is not needed above the topmost member.
    pub(super) pad: i64,
}

/// A maximal set of bodies that are alive at one time.
#[derive(Clone, Debug)]
pub(super) struct LiveSet {
    /// The step at which it is complete.
    pub(super) at: u64,
    pub(super) members: Vec<Member>,
    /// Lower bound on the height of this live set alone.
    pub(super) bound: i64,
}

impl Instance {
    /// The most bytes that two bodies can share within their windows of one live set.
    fn shared(&self, a: &Member, b: &Member) -> i64 {
        let (x, y) = (a.body, b.body);
        let one_way = |below: &Member, above: &Member| {
            self.relations.get(&(below.body, above.body)).map_or(0, |&distance| {
                let top = self.bodies[below.body as usize].height + below.pad;
                (top - above.low - distance).clamp(0, below.weight.min(above.weight))
            })
        };
        if self.bodies[x as usize].plain || self.bodies[y as usize].plain {
            return 0;
        }
        one_way(a, b).max(one_way(b, a))
    }

    /// The maximal sets of bodies alive together, in order of time.
    pub(super) fn live_sets(&self) -> Vec<LiveSet> {
        let mut live_sets = Vec::new();
        self.visit_live_sets(&mut |live_set| {
            live_sets.push(live_set);
            i64::MIN
        });
        live_sets
    }

    /// Calls `visit` with live sets, in order of time. It returns a height: sets whose bytes and padding do not exceed it are left out from then on.
    pub(super) fn visit_live_sets(&self, visit: &mut dyn FnMut(LiveSet) -> i64) {
        let mut events: Vec<(u64, bool, u32, u32)> = Vec::new();
        for (index, body) in self.bodies.iter().enumerate() {
            for (part, rect) in body.parts.iter().enumerate() {
                events.push((rect.upper, false, index as u32, part as u32));
                events.push((rect.lower, true, index as u32, part as u32));
            }
        }
        events.sort_unstable();
        let mut alive: std::collections::BTreeSet<(u32, u32)> = Default::default();
        let (mut grew, mut at) = (false, 0);
        let (mut total, mut least) = (0_i64, i64::MIN);
        for (time, starts, body, part) in events {
            let body_of = &self.bodies[body as usize];
            let padded = round_up(body_of.parts[part as usize].size, body_of.align);
            if starts {
                alive.insert((body, part));
                total += padded;
                (grew, at) = (true, time);
            } else {
                // A set is maximal exactly when something begins before it and ends after it.
                if grew && total > least {
                    least = visit(self.live_set(&alive, at));
                }
                grew = false;
                alive.remove(&(body, part));
                total -= padded;
            }
        }
    }

    fn live_set(&self, alive: &std::collections::BTreeSet<(u32, u32)>, at: u64) -> LiveSet {
        let mut members: Vec<Member> = Vec::new();
        let mut windows: Vec<(i64, i64)> = Vec::new();
        let mut iter = alive.iter().peekable();
        let mut grid = 0u64;
        while let Some(&(body, part)) = iter.next() {
            let rect = &self.bodies[body as usize].parts[part as usize];
            windows.push((rect.offset, rect.offset + rect.size));
            if iter.peek().is_some_and(|next| next.0 == body) {
                continue;
            }
            windows.sort_unstable();
            let low = windows.first().map_or(0, |w| w.0);
            let (mut weight, mut end) = (0, i64::MIN);
            for &(from, to) in &windows {
                weight += (to - from.max(end)).max(0);
                end = end.max(to);
            }
            // Padding is only certain where the occupied bytes are contiguous.
            let contiguous = weight == end - low;
            grid = gcd(grid, self.bodies[body as usize].align as u64);
            grid = gcd(grid, low.unsigned_abs());
            grid = if contiguous { grid } else { 1 };
            windows.clear();
            members.push(Member {
                body,
                low,
                weight,
                pad: 0,
            });
        }
        if grid > 1 {
            for member in &mut members {
                let padded = round_up(member.weight, grid as i64);
                member.pad = padded - member.weight;
                member.weight = padded;
            }
        }
        self.discount(&mut members);
        let total: i64 = members.iter().map(|m| m.weight).sum();
        let spare = members.iter().map(|m| m.pad).max().unwrap_or(0);
        let highest = members
            .iter()
            .map(|m| self.bodies[m.body as usize].fixed.unwrap_or(0) + self.bodies[m.body as usize].height)
            .max()
            .unwrap_or(0);
        LiveSet {
            at,
            members,
            bound: (total - spare).max(highest),
        }
    }

    /// Takes from the weights what related members may share.
    ///
    /// Counting members in any order, each adds at least its own bytes minus what it may share with those counted
    /// before. Those with the most relations are counted last, so that the output of an operator that may lie over either of two
    /// inputs is discounted once, and never below zero.
    fn discount(&self, members: &mut [Member]) {
        let special: Vec<usize> = (0..members.len())
            .filter(|&m| !self.bodies[members[m].body as usize].plain)
            .collect();
        if special.len() < 2 {
            return;
        }
        // Only related bodies share anything. Members stand in the order of their bodies.
        let original: Vec<Member> = members.to_vec();
        let mut sharing = vec![Vec::new(); members.len()];
        for &a in &special {
            let partners = self.related[original[a].body as usize].iter();
            let shared = partners.filter_map(|body| {
                let b = original.binary_search_by_key(body, |member| member.body).ok()?;
                let bytes = self.shared(&original[a], &original[b]);
                (b != a && bytes > 0).then_some((b, bytes))
            });
            sharing[a] = shared.collect();
        }
        let mut order: Vec<usize> = special;
        order.sort_unstable_by_key(|a| (sharing[*a].len(), -original[*a].weight, *a));
        let mut counted = vec![false; members.len()];
        for a in order {
            let before = sharing[a].iter().filter(|(b, _)| counted[*b]);
            let taken: i64 = before.map(|(_, bytes)| bytes).sum();
            members[a].weight = (members[a].weight - taken).max(0);
            counted[a] = true;
        }
    }
}
