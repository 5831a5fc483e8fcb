//! Sets of steps done, and a layer of the search over them: the sets of one step more.
//!
//! A layer holds each set as the set before it and the step that came last. Only the sets that are kept are written out, so that a node of the search costs
//! about the same in a network of fifty steps and in one of fifty thousand.

use std::cmp::Ordering;
use std::collections::HashMap;

/// A set of steps: words of which all bits are set, and the words behind them up to the last that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    full: usize,
    words: Vec<u64>,
    /// The hashes of its steps, one over the other.
    hash: u64,
}

impl Set {
    /// The set of no step.
    pub(super) fn empty() -> Self {
        Self {
            full: 0,
            words: Vec::new(),
            hash: 0,
        }
    }

    pub(super) fn has(&self, step: usize) -> bool {
        match (step / 64).checked_sub(self.full) {
            None => true,
            Some(word) => self.words.get(word).is_some_and(|word| word >> (step % 64) & 1 == 1),
        }
    }

    pub(super) fn with(&self, step: usize) -> Self {
        let mut set = self.clone();
        let word = step / 64 - set.full;
        set.words.resize(set.words.len().max(word + 1), 0);
        set.words[word] |= 1 << (step % 64);
        let full = set.words.iter().take_while(|&&word| word == u64::MAX).count();
        set.words.drain(..full);
        set.full += full;
        set.hash ^= hash(step);
        set
    }

    fn word(&self, index: usize) -> u64 {
        match index.checked_sub(self.full) {
            None => u64::MAX,
            Some(word) => self.words.get(word).copied().unwrap_or(0),
        }
    }
}

/// A number for each step that looks like chance (Steele et al. 2014, "Fast Splittable Pseudorandom Number Generators").
fn hash(step: usize) -> u64 {
    let mut z = (step as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Peak, live bytes and last step of a set of steps done.
#[derive(Clone)]
pub(super) struct Reached {
    pub(super) peak: u64,
    pub(super) live: u64,
    /// The last step, and the index of the set before it in the layer before.
    pub(super) last: (usize, usize),
}

/// A layer that grows.
pub(super) struct Layer<'a> {
    /// The sets of the layer before, and the steps that each allows.
    before: &'a [(Set, Vec<usize>)],
    found: Vec<Reached>,
    /// Where a set is among the found ones, by its hash; a set whose hash is taken has the next free number.
    index: HashMap<u64, usize>,
}

impl<'a> Layer<'a> {
    pub(super) fn behind(before: &'a [(Set, Vec<usize>)]) -> Self {
        Self {
            before,
            found: Vec::new(),
            index: HashMap::new(),
        }
    }

    /// Takes a way to a set, where none with as low a peak is known.
    pub(super) fn offer(&mut self, reached: Reached) {
        let (step, from) = reached.last;
        let mut key = self.before[from].0.hash ^ hash(step);
        while let Some(&at) = self.index.get(&key) {
            if self.order(&self.found[at], &reached).is_eq() {
                if reached.peak < self.found[at].peak {
                    self.found[at] = reached;
                }
                return;
            }
            key = key.wrapping_add(1);
        }
        self.index.insert(key, self.found.len());
        self.found.push(reached);
    }

    /// The sets in order; of more than `width` the best alone, best first. Whether all were kept.
    pub(super) fn best(mut self, width: usize) -> (Vec<(Set, Reached)>, bool) {
        let mut found = std::mem::take(&mut self.found);
        let all = found.len() <= width;
        if all {
            found.sort_unstable_by(|a, b| self.order(a, b));
        } else {
            let by_peak =
                |a: &Reached, b: &Reached| (a.peak, a.live).cmp(&(b.peak, b.live)).then_with(|| self.order(a, b));
            found.select_nth_unstable_by(width, by_peak);
            found.truncate(width);
            found.sort_unstable_by(by_peak);
        }
        let set = |reached: &Reached| self.before[reached.last.1].0.with(reached.last.0);
        let best = found.into_iter().map(|reached| (set(&reached), reached));
        (best.collect(), all)
    }

    /// The order of two sets: that of the numbers that their bits spell, word by word from the first.
    fn order(&self, a: &Reached, b: &Reached) -> Ordering {
        let ((step_a, from_a), (step_b, from_b)) = (a.last, b.last);
        let (set_a, set_b) = (&self.before[from_a].0, &self.before[from_b].0);
        let last = |set: &Set, step: usize| (set.full + set.words.len()).max(step / 64 + 1);
        let with = |set: &Set, step: usize, index: usize| {
            set.word(index) | if step / 64 == index { 1 << (step % 64) } else { 0 }
        };
        let words = set_a.full.min(set_b.full)..last(set_a, step_a).max(last(set_b, step_b));
        words
            .map(|index| with(set_a, step_a, index).cmp(&with(set_b, step_b, index)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}
