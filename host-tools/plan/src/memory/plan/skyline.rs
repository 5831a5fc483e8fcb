//! Placement of very many bodies: the skyline of what is placed grows from its lowest stretch.
//!
//! Over the lowest stretch of steps that body is placed that lives within it and comes first in an order; where none does, the stretch is raised to the lower
//! one of its neighbours. The orders weigh lifetimes against sizes: bodies that are long, large or both come first, and those that fit anywhere are left for
//! the end. A sweep over the steps is tried as well: what begins goes into the smallest hole that what has ended leaves, which is exact where bodies of one
//! size follow each other.
//!
//! The work is about the number of bodies times its logarithm for each order, however many are alive together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::greedy::Placement;
use super::instance::Instance;
use super::units::round_up;

/// Bodies from which the skyline is tried.
pub(super) const LARGE: usize = 16_384;

/// Bodies from which it is enough to be within a hundredth of what is wanted.
pub(super) const LARGEST: usize = 300_000;

/// Bodies placed in all orders together, about: it bounds the time.
const WORK: usize = 3_000_000;

/// Orders: exponents of lifetime and size. Bodies with the largest product come first.
const ORDERS: [(u32, u32); 6] = [(2, 1), (1, 1), (0, 1), (1, 0), (3, 1), (1, 2)];

/// A body, padded to whole alignments.
#[derive(Clone, Copy)]
struct Rect {
    lower: u64,
    upper: u64,
    size: i64,
}

/// The lowest placement found; stops at `target` (scaled). `None` where bodies are more than rectangles, or fixed, or aligned to different grids.
pub(super) fn place(instance: &Instance, bodies: &[u32], target: i64) -> Option<Placement> {
    let own = || bodies.iter().map(|&body| &instance.bodies[body as usize]);
    let grid = own().map(|body| body.align).max()?;
    if !own().all(|body| body.plain && body.fixed.is_none() && grid % body.align == 0) {
        return None;
    }
    let rects: Vec<Rect> = own()
        .map(|body| Rect {
            lower: body.lower,
            upper: body.upper,
            size: round_up(body.height, grid),
        })
        .collect();
    let height = |offsets: &[i64]| own().zip(offsets).map(|(body, offset)| offset + body.height).max();
    let offsets = sweep(&rects);
    let mut best = Placement {
        height: height(&offsets)?,
        offsets,
    };
    let mut unplaced = Unplaced::new(&rects);
    for (long, large) in ORDERS.into_iter().take((WORK / rects.len()).max(2)) {
        if best.height <= target {
            break;
        }
        unplaced.order(&rects, long, large);
        if let Some(offsets) = from_below(&rects, &mut unplaced, round_up(best.height, grid))
            && let Some(height) = height(&offsets)
            && height < best.height
        {
            best = Placement { offsets, height };
        }
    }
    Some(best)
}

/// Offsets of bodies placed as they begin, the largest first, each in the smallest hole.
fn sweep(rects: &[Rect]) -> Vec<i64> {
    let mut begin: Vec<u32> = (0..rects.len() as u32).collect();
    let mut end = begin.clone();
    begin.sort_by_key(|&index| (rects[index as usize].lower, Reverse(rects[index as usize].size)));
    end.sort_by_key(|&index| rects[index as usize].upper);
    let mut end = end.into_iter().peekable();
    let mut offsets = vec![0; rects.len()];
    // Holes by their first byte, and by their length; the last one has no end.
    let mut holes = BTreeMap::from([(0, i64::MAX)]);
    let mut lengths = BTreeSet::from([(i64::MAX, 0)]);
    for index in begin {
        let rect = rects[index as usize];
        while let Some(gone) = end.next_if(|&gone| rects[gone as usize].upper <= rect.lower) {
            let mut from = offsets[gone as usize];
            let mut to = from + rects[gone as usize].size;
            if let Some((&before, _)) = holes.range(..from).next_back().filter(|&(_, &end)| end == from) {
                holes.remove(&before);
                lengths.remove(&(from - before, before));
                from = before;
            }
            if let Some(behind) = holes.remove(&to) {
                lengths.remove(&(behind - to, to));
                to = behind;
            }
            holes.insert(from, to);
            lengths.insert((to - from, from));
        }
        let Some(&(length, from)) = lengths.range((rect.size, 0)..).next() else {
            continue;
        };
        lengths.remove(&(length, from));
        let to = from + length;
        holes.remove(&from);
        offsets[index as usize] = from;
        if rect.size < length {
            holes.insert(from + rect.size, to);
            lengths.insert((length - rect.size, from + rect.size));
        }
    }
    offsets
}

/// A stretch of the skyline: steps, and the height at which they are free.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    height: i64,
    from: u64,
    to: u64,
}

/// Offsets of bodies placed on the skyline's lowest stretches; `None` if something would end above `limit`.
fn from_below(rects: &[Rect], unplaced: &mut Unplaced, limit: i64) -> Option<Vec<i64>> {
    let mut offsets = vec![0; rects.len()];
    let from = rects.iter().map(|rect| rect.lower).min()?;
    let to = rects.iter().map(|rect| rect.upper).max()?;
    let mut skyline = Skyline::default();
    skyline.insert(Stretch { height: 0, from, to });
    for _ in 0..rects.len() {
        let (stretch, index) = loop {
            let stretch = skyline.lowest()?;
            match unplaced.take(stretch.from, stretch.to) {
                Some(index) => break (stretch, index as usize),
                None => skyline.raise(stretch)?,
            }
        };
        let Rect { lower, upper, size } = rects[index];
        let Stretch { height, from, to } = stretch;
        if height + size > limit {
            return None;
        }
        offsets[index] = height;
        skyline.by_start.remove(&from);
        for (from, to) in [(from, lower), (upper, to)] {
            if from < to {
                skyline.insert(Stretch { height, from, to });
            }
        }
        skyline.insert(Stretch {
            height: height + size,
            from: lower,
            to: upper,
        });
    }
    Some(offsets)
}

/// The stretches, no two neighbours of one height.
#[derive(Default)]
struct Skyline {
    by_start: BTreeMap<u64, Stretch>,
    /// All stretches, and some that are gone.
    by_height: BinaryHeap<Reverse<Stretch>>,
}

impl Skyline {
    /// Inserts a stretch where there is none, joined with neighbours of its height.
    fn insert(&mut self, mut stretch: Stretch) {
        let before = self
            .by_start
            .range(..stretch.from)
            .next_back()
            .map(|(_, &before)| before);
        if let Some(before) = before.filter(|before| before.to == stretch.from && before.height == stretch.height) {
            self.by_start.remove(&before.from);
            stretch.from = before.from;
        }
        let behind = self.by_start.get(&stretch.to).copied();
        if let Some(behind) = behind.filter(|behind| behind.height == stretch.height) {
            self.by_start.remove(&behind.from);
            stretch.to = behind.to;
        }
        self.by_start.insert(stretch.from, stretch);
        self.by_height.push(Reverse(stretch));
    }

    fn lowest(&mut self) -> Option<Stretch> {
        while let Some(Reverse(stretch)) = self.by_height.pop() {
            if self.by_start.get(&stretch.from) == Some(&stretch) {
                return Some(stretch);
            }
        }
        None
    }

    /// Raises a stretch to the lower one of its neighbours; `None` where it has none.
    fn raise(&mut self, stretch: Stretch) -> Option<()> {
        let before = self.by_start.range(..stretch.from).next_back();
        let behind = self.by_start.get(&stretch.to);
        let heights = before.map(|(_, before)| before.height).into_iter();
        let height = heights.chain(behind.map(|behind| behind.height)).min()?;
        self.by_start.remove(&stretch.from);
        self.insert(Stretch { height, ..stretch });
        Some(())
    }
}

/// Some of the unplaced bodies, as a node of the tree knows them.
#[derive(Clone, Copy)]
struct Node {
    /// The first in the order has the largest number; 0 where there is no body.
    first: u32,
    /// The latest begin of any.
    lower: u64,
    /// The earliest end of any.
    upper: u64,
}

const NOTHING: Node = Node {
    first: 0,
    lower: 0,
    upper: u64::MAX,
};

/// The unplaced bodies by begin and end: a tree whose levels divide them by the one and the other in turn.
struct Unplaced {
    /// The root is node 1, the children of node n are 2 n and 2 n + 1.
    nodes: Vec<Node>,
    /// Bodies in the order of the leaves, and where each is.
    leaves: Vec<u32>,
    leaf: Vec<u32>,
    /// Bodies from the last in the order to the first, whose numbers begin with 1.
    order: Vec<u32>,
}

impl Unplaced {
    fn new(rects: &[Rect]) -> Self {
        let mut leaves: Vec<u32> = (0..rects.len() as u32).collect();
        divide(&mut leaves, rects, true);
        let mut leaf = vec![0; rects.len()];
        for (at, &index) in leaves.iter().enumerate() {
            leaf[index as usize] = at as u32;
        }
        Self {
            nodes: vec![NOTHING; 2 * rects.len().next_power_of_two()],
            leaves,
            leaf,
            order: Vec::new(),
        }
    }

    /// Takes all bodies again, in this order.
    fn order(&mut self, rects: &[Rect], long: u32, large: u32) {
        // Products alone, so that the order is the same on every machine.
        let power = |value: f64, times: u32| (0..times).fold(1.0, |product, _| product * value);
        let weight = |index: u32| {
            let rect = &rects[index as usize];
            power((rect.upper - rect.lower) as f64, long) * power(rect.size as f64, large)
        };
        let mut order: Vec<(f64, u32)> = (0..rects.len() as u32).map(|index| (weight(index), index)).collect();
        // Of equal ones the first is preferred.
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        self.order = order.into_iter().map(|(_, index)| index).collect();
        let mut numbers = vec![0; rects.len()];
        for (number, &index) in (1..).zip(&self.order) {
            numbers[index as usize] = number;
        }
        self.fill(1, 0..self.leaves.len(), rects, &numbers);
    }

    fn fill(&mut self, node: usize, leaves: std::ops::Range<usize>, rects: &[Rect], numbers: &[u32]) {
        if leaves.len() == 1 {
            let index = self.leaves[leaves.start] as usize;
            self.nodes[node] = Node {
                first: numbers[index],
                lower: rects[index].lower,
                upper: rects[index].upper,
            };
            return;
        }
        let middle = leaves.start + leaves.len() / 2;
        self.fill(2 * node, leaves.start..middle, rects, numbers);
        self.fill(2 * node + 1, middle..leaves.end, rects, numbers);
        self.join(node);
    }

    fn join(&mut self, node: usize) {
        let (a, b) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        self.nodes[node] = Node {
            first: a.first.max(b.first),
            lower: a.lower.max(b.lower),
            upper: a.upper.min(b.upper),
        };
    }

    /// Takes the first body that lives within these steps.
    fn take(&mut self, from: u64, to: u64) -> Option<u32> {
        let mut first = 0;
        self.find(1, (from, to), &mut first);
        let index = *self.order.get(first.checked_sub(1)? as usize)?;
        // From the root to the leaf, and back.
        let (at, mut leaves, mut node) = (self.leaf[index as usize] as usize, 0..self.leaves.len(), 1);
        while leaves.len() > 1 {
            let middle = leaves.start + leaves.len() / 2;
            (node, leaves) = if at < middle {
                (2 * node, leaves.start..middle)
            } else {
                (2 * node + 1, middle..leaves.end)
            };
        }
        self.nodes[node] = NOTHING;
        while node > 1 {
            node /= 2;
            self.join(node);
        }
        Some(index)
    }

    fn find(&self, node: usize, (from, to): (u64, u64), first: &mut u32) {
        let this = self.nodes[node];
        if this.first <= *first || this.lower < from || this.upper > to {
            return;
        }
        let (Some(a), Some(b)) = (self.nodes.get(2 * node), self.nodes.get(2 * node + 1)) else {
            *first = this.first;
            return;
        };
        if a.first == 0 && b.first == 0 {
            *first = this.first;
        } else if a.first >= b.first {
            self.find(2 * node, (from, to), first);
            self.find(2 * node + 1, (from, to), first);
        } else {
            self.find(2 * node + 1, (from, to), first);
            self.find(2 * node, (from, to), first);
        }
    }
}

/// Brings bodies into the order of the leaves.
fn divide(leaves: &mut [u32], rects: &[Rect], by_begin: bool) {
    if leaves.len() < 2 {
        return;
    }
    let middle = leaves.len() / 2;
    leaves.select_nth_unstable_by_key(middle, |&index| {
        let rect = &rects[index as usize];
        (if by_begin { rect.lower } else { rect.upper }, index)
    });
    let (low, high) = leaves.split_at_mut(middle);
    divide(low, rects, !by_begin);
    divide(high, rects, !by_begin);
}
