//! Greedy placement in several orders, and its improvement by moving what stands on top to the front.

use super::instance::Instance;
use super::random::Random;
use super::units::round_up;

/// Comparisons of pairs that improvement may spend: it bounds the time for large problems.
const IMPROVEMENT_WORK: u64 = 60_000_000;

/// Bodies below which all are compared with all.
const FEW: usize = 512;

/// Pairs of bodies alive together that are kept.
pub(super) const MOST_PAIRS: usize = 20_000_000;

/// A placement of some of the instance's bodies.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// Scaled offsets, in the order of the bodies given.
    pub(super) offsets: Vec<i64>,
    pub(super) height: i64,
}

#[derive(Clone, Copy)]
enum Fit {
    /// The lowest gap that is large enough.
    Lowest,
    /// The gap that leaves the least room.
    Tightest,
}

/// The largest sum of bytes alive together with each body.
pub(super) fn contention(instance: &Instance, bodies: &[u32]) -> Vec<i64> {
    let mut events: Vec<(u64, i64)> = Vec::with_capacity(2 * bodies.len());
    for &body in bodies {
        for part in &instance.bodies[body as usize].parts {
            events.push((part.lower, part.size));
            events.push((part.upper, -part.size));
        }
    }
    events.sort_unstable();
    let mut times: Vec<u64> = Vec::new();
    let mut levels: Vec<Vec<i64>> = vec![Vec::new()];
    let mut live = 0;
    for (time, change) in events {
        live += change;
        if times.last() == Some(&time) {
            levels[0].pop();
        } else {
            times.push(time);
        }
        levels[0].push(live);
    }
    // Sparse table: levels[k][i] is the largest of 2^k values from i.
    let mut width = 1;
    while 2 * width <= times.len() {
        let below = &levels[levels.len() - 1];
        let level = (0..=times.len() - 2 * width)
            .map(|i| below[i].max(below[i + width]))
            .collect();
        levels.push(level);
        width *= 2;
    }
    let largest = |from: usize, to: usize| {
        let level = (to - from).ilog2() as usize;
        levels[level][from].max(levels[level][to - (1 << level)])
    };
    bodies
        .iter()
        .map(|&body| {
            let body = &instance.bodies[body as usize];
            let from = times.partition_point(|&t| t < body.lower);
            let to = times.partition_point(|&t| t < body.upper);
            if from < to { largest(from, to) } else { 0 }
        })
        .collect()
}

/// Orders of preference of `bodies`, one for each word: the letters name what decides, first to last.
///
/// T: contention, W: lifetime, C: lifetime in live sets, A: area, Z: size, U: end, L: begin, each from large to small.
pub(super) fn orders(instance: &Instance, bodies: &[u32], words: &[&str]) -> Vec<Vec<u32>> {
    let total = contention(instance, bodies);
    let peaks = peaks(instance, bodies);
    let key = |index: usize, letter: char| {
        let body = &instance.bodies[bodies[index] as usize];
        let peaks_before = |time: u64| peaks.partition_point(|&peak| peak < time);
        match letter {
            'T' => total[index] as f64,
            'W' => (body.upper - body.lower) as f64,
            'C' => (peaks_before(body.upper) - peaks_before(body.lower)) as f64,
            'A' => body.area(),
            'Z' => body.height as f64,
            'U' => body.upper as f64,
            _ => body.lower as f64,
        }
    };
    words
        .iter()
        .map(|letters| {
            let keys: Vec<Vec<f64>> = (0..bodies.len())
                .map(|i| letters.chars().map(|letter| key(i, letter)).collect())
                .collect();
            let mut order: Vec<usize> = (0..bodies.len()).collect();
            order.sort_by(|&a, &b| keys[b].partial_cmp(&keys[a]).unwrap_or(std::cmp::Ordering::Equal));
            order.into_iter().map(|i| bodies[i]).collect()
        })
        .collect()
}

/// The steps at which a set of bodies alive together is complete, one for each live set.
fn peaks(instance: &Instance, bodies: &[u32]) -> Vec<u64> {
    let mut events: Vec<(u64, bool)> = Vec::with_capacity(2 * bodies.len());
    for body in bodies.iter().map(|&body| &instance.bodies[body as usize]) {
        events.push((body.lower, true));
        events.push((body.upper, false));
    }
    events.sort_unstable();
    let mut peaks = Vec::new();
    for pair in events.windows(2) {
        if pair[0].1 && !pair[1].1 {
            peaks.push(pair[0].0);
        }
    }
    peaks
}

/// The best placement found; stops at `target` (scaled).
pub(super) fn place(instance: &Instance, bodies: &[u32], orders: &[Vec<u32>], target: i64) -> Placement {
    let mut greedy = Greedy::new(instance, bodies);
    let mut best: Option<(Placement, Vec<u32>, Fit)> = None;
    for order in orders {
        for fit in [Fit::Lowest, Fit::Tightest] {
            let limit = best.as_ref().map_or(i64::MAX, |(placement, ..)| placement.height);
            if limit <= target {
                break;
            }
            if let Some(placement) = greedy.run(order, fit, limit) {
                best = Some((placement, order.clone(), fit));
            }
        }
    }
    let Some((mut best, order, fit)) = best else {
        return Placement {
            offsets: vec![0; bodies.len()],
            height: 0,
        };
    };
    let rounds = (IMPROVEMENT_WORK / (bodies.len() as u64).pow(2).max(1)).clamp(1, 150);
    let (mut current, mut random) = (order.clone(), Random::new(bodies.len() as u64));
    for _ in 0..rounds {
        if best.height <= target {
            break;
        }
        let mut trial = current.clone();
        greedy.promote(&mut trial, &best, &mut random);
        // Equal height is accepted: it lets the order drift.
        if let Some(placement) = greedy.run(&trial, fit, best.height + 1) {
            best = placement;
            current = trial;
        }
    }
    best
}

/// State of one placed body, kept in order of offset.
#[derive(Clone, Copy)]
struct Placed {
    offset: i64,
    end: i64,
    lower: u64,
    upper: u64,
    body: u32,
    plain: bool,
}

struct Greedy<'a> {
    instance: &'a Instance,
    bodies: &'a [u32],
    local: Vec<u32>,
    /// In order of offset, of equal ones the last placed first.
    placed: Vec<Placed>,
    gaps: Vec<(i64, i64)>,
    /// Where bodies meet few of the others: of each body those that live at a time with it. Then `placed` holds only those.
    neighbours: Option<Neighbours>,
}

/// Bodies that live at a time with each body, and where those that are placed lie.
struct Neighbours {
    of: Vec<Vec<u32>>,
    /// By index within the bodies: the offset, and how many were placed before.
    placed: Vec<Option<(i64, u32)>>,
    count: u32,
}

impl Neighbours {
    /// The neighbours of `bodies`, unless they are so many that going through all bodies is as good.
    fn of(instance: &Instance, bodies: &[u32], local: &[u32]) -> Option<Self> {
        let all = bodies.len() * bodies.len();
        let mut is_own = vec![false; instance.bodies.len()];
        bodies.iter().for_each(|&body| is_own[body as usize] = true);
        let mut pairs = 0usize;
        instance.visit_pairs(&mut |a, _| pairs += usize::from(is_own[a]));
        if bodies.len() < FEW || pairs > all / 16 || pairs > MOST_PAIRS {
            return None;
        }
        let mut of = vec![Vec::new(); bodies.len()];
        instance.visit_pairs(&mut |a, b| {
            if is_own[a] && is_own[b] {
                of[local[a] as usize].push(b as u32);
                of[local[b] as usize].push(a as u32);
            }
        });
        Some(Self {
            of,
            placed: vec![None; bodies.len()],
            count: 0,
        })
    }
}

impl<'a> Greedy<'a> {
    fn new(instance: &'a Instance, bodies: &'a [u32]) -> Self {
        let mut local = vec![0; instance.bodies.len()];
        for (index, &body) in bodies.iter().enumerate() {
            local[body as usize] = index as u32;
        }
        Greedy {
            neighbours: Neighbours::of(instance, bodies, &local),
            instance,
            bodies,
            local,
            placed: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Places all bodies in this order; `None` if the height would reach `limit`.
    fn run(&mut self, order: &[u32], fit: Fit, limit: i64) -> Option<Placement> {
        self.placed.clear();
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.placed.fill(None);
            neighbours.count = 0;
        }
        let mut placement = Placement {
            offsets: vec![0; self.bodies.len()],
            height: 0,
        };
        let (fixed, free): (Vec<u32>, Vec<u32>) = order
            .iter()
            .partition(|&&b| self.instance.bodies[b as usize].fixed.is_some());
        for body in fixed.into_iter().chain(free) {
            self.gather(body);
            let offset = self.instance.bodies[body as usize]
                .fixed
                .unwrap_or_else(|| self.offset_for(body, fit));
            let info = &self.instance.bodies[body as usize];
            let end = offset + info.height;
            if end >= limit {
                return None;
            }
            placement.height = placement.height.max(end);
            let index = self.local[body as usize] as usize;
            placement.offsets[index] = offset;
            if let Some(neighbours) = &mut self.neighbours {
                neighbours.placed[index] = Some((offset, neighbours.count));
                neighbours.count += 1;
                continue;
            }
            let (lower, upper, plain) = (info.lower, info.upper, info.plain);
            let at = self.placed.partition_point(|p| p.offset < offset);
            self.placed.insert(
                at,
                Placed {
                    offset,
                    end,
                    lower,
                    upper,
                    body,
                    plain,
                },
            );
        }
        Some(placement)
    }

    /// Lets `placed` hold the neighbours of `body` that are placed, where neighbours are known.
    fn gather(&mut self, body: u32) {
        let Some(neighbours) = &self.neighbours else { return };
        let mut around: Vec<(i64, std::cmp::Reverse<u32>, u32)> = (neighbours.of[self.local[body as usize] as usize]
            .iter())
        .filter_map(|&other| {
            let (offset, number) = neighbours.placed[self.local[other as usize] as usize]?;
            Some((offset, std::cmp::Reverse(number), other))
        })
        .collect();
        around.sort_unstable();
        self.placed.clear();
        self.placed.extend(around.into_iter().map(|(offset, _, other)| {
            let info = &self.instance.bodies[other as usize];
            Placed {
                offset,
                end: offset + info.height,
                lower: info.lower,
                upper: info.upper,
                body: other,
                plain: info.plain,
            }
        }));
    }

    fn offset_for(&mut self, body: u32, fit: Fit) -> i64 {
        let info = &self.instance.bodies[body as usize];
        if !info.plain {
            self.collect_gaps(body);
            return self.offset_among_gaps(info.align, fit);
        }
        // Plain bodies, the common case: what is placed is already in order of offset.
        let (lower, upper, size, align) = (info.lower, info.upper, info.height, info.align);
        let (mut top, mut best, mut best_room) = (0i64, None, i64::MAX);
        for placed in &self.placed {
            if placed.lower >= upper || lower >= placed.upper {
                continue;
            }
            if !placed.plain {
                self.collect_gaps(body);
                return self.offset_among_gaps(align, fit);
            }
            let offset = round_up(top, align);
            let room = placed.offset - offset - size;
            if room >= 0 && room < best_room {
                (best, best_room) = (Some(offset), room);
                if matches!(fit, Fit::Lowest) || room == 0 {
                    break;
                }
            }
            top = top.max(placed.end);
        }
        best.unwrap_or_else(|| round_up(top, align))
    }

    /// The ranges of offsets that placed bodies forbid for `body`, in order of their beginning.
    fn collect_gaps(&mut self, body: u32) {
        self.gaps.clear();
        for placed in &self.placed {
            if let Some((above, below)) = self.instance.separation(placed.body as usize, body as usize) {
                // Offsets strictly between these two overlap.
                self.gaps.push((placed.offset - below, placed.offset + above));
            }
        }
        self.gaps.sort_unstable();
    }

    fn offset_among_gaps(&self, align: i64, fit: Fit) -> i64 {
        let (mut least, mut best, mut best_room) = (0i64, None, i64::MAX);
        for &(from, to) in &self.gaps {
            if from >= to {
                continue;
            }
            let offset = round_up(least, align);
            let room = from - offset;
            if room >= 0 && room < best_room {
                (best, best_room) = (Some(offset), room);
                if matches!(fit, Fit::Lowest) || room == 0 {
                    break;
                }
            }
            least = least.max(to);
        }
        best.unwrap_or_else(|| round_up(least, align))
    }

    /// Moves what reaches the top, and a few chosen at random, towards the front of an order.
    fn promote(&self, order: &mut Vec<u32>, placement: &Placement, random: &mut Random) {
        let end = |body: u32| {
            placement.offsets[self.local[body as usize] as usize] + self.instance.bodies[body as usize].height
        };
        let tops: Vec<usize> = (0..order.len())
            .filter(|&i| end(order[i]) == placement.height)
            .collect();
        for from in tops {
            let to = random.below(from as u64 + 1) as usize;
            let body = order.remove(from);
            order.insert(to, body);
        }
        for _ in 0..random.below(3) {
            let from = random.below(order.len() as u64) as usize;
            let to = random.below(order.len() as u64) as usize;
            let body = order.remove(from);
            order.insert(to, body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::plan::{Buffer, Part, Problem, Relation};

    /// A long chain with branches: lives of a few steps, some bodies of two parts, and outputs that may overlap what they are made of.
    fn chain(seed: u64, bodies: usize) -> Problem {
        let mut random = Random::new(seed);
        let mut problem = Problem::default();
        for index in 0..bodies {
            let lower = (index as u64).saturating_sub(random.below(3));
            let (middle, upper) = (lower + 1 + random.below(3), lower + 4 + random.below(5));
            let size = 4 * (1 + random.below(40));
            let mut buffer = Buffer::new(format!("b{index}"), lower, upper, size);
            if random.below(4) == 0 {
                let part = |lower, upper, offset| Part {
                    lower,
                    upper,
                    offset,
                    size,
                };
                buffer.parts = vec![part(lower, middle, 0), part(middle, upper, size)];
            }
            problem.buffers.push(buffer.aligned(4));
            if index > 0 && random.below(2) == 0 {
                problem.relations.push(Relation {
                    below: index,
                    above: index - 1,
                    distance: 4 * random.below(8) as i64,
                });
            }
        }
        problem
    }

    #[test]
    fn comparing_with_neighbours_alone_changes_nothing() {
        for seed in 0..6 {
            let instance = Instance::new(&chain(seed, FEW + 50)).unwrap();
            let bodies: Vec<u32> = (0..instance.bodies.len() as u32).collect();
            let mut near = Greedy::new(&instance, &bodies);
            assert!(near.neighbours.is_some());
            let mut all = Greedy::new(&instance, &bodies);
            all.neighbours = None;
            for order in orders(&instance, &bodies, &["TWA", "WAT", "UZ", "ZW", "LZ"]) {
                for fit in [Fit::Lowest, Fit::Tightest] {
                    let [near, all] = [&mut near, &mut all].map(|greedy| greedy.run(&order, fit, i64::MAX).unwrap());
                    assert_eq!((near.height, near.offsets), (all.height, all.offsets), "seed {seed}");
                }
            }
        }
    }
}
