//! The order of rows. Within a segment each row is made when one behind it wants it; between segments one tensor is whole. The best segments are a shortest
//! path over the tensors past which no step reads, by the bytes that are alive at most.

use super::chain::reads;
use super::places::{Roll, RolledTensor};
use crate::error::{Error, Result};
use crate::program::{Place, Program};

/// A segment, and the bytes alive at most in it.
struct Segment {
    turns: Vec<u8>,
    peak: u64,
}

/// Tensors that each step reads, and the step that makes each of them.
struct Net<'a> {
    program: &'a Program,
    tensors: &'a [RolledTensor],
    /// By step: the tensor that it makes, and those that it reads.
    steps: Vec<(usize, Vec<usize>)>,
    /// By tensor: the steps that read it.
    readers: Vec<Vec<usize>>,
}

/// The tensor of which each turn makes the next row.
///
/// # Errors
/// [`crate::error::ErrorKind::Internal`].
pub(super) fn order(program: &Program, roll: &Roll) -> Result<Vec<u8>> {
    let net = Net::of(program, roll);
    let count = roll.steps;
    // Ends of segments: no later step reads what was made before, but of the tensor itself.
    let is_cut = |end: usize| {
        let later = &net.steps[end + 1..];
        let of = |tensor: &usize| net.tensors[*tensor].step;
        end + 1 == count
            || later
                .iter()
                .flat_map(|(_, read)| read)
                .all(|tensor| of(tensor).is_some_and(|step| step >= end))
    };
    let mut best: Vec<(u64, usize, Vec<u8>)> = vec![(0, 0, Vec::new())];
    let mut ends = vec![0];
    for end in (0..count).filter(|&end| is_cut(end)).map(|end| end + 1) {
        let mut found: Option<(u64, usize, Vec<u8>)> = None;
        for (at, &begin) in ends.iter().enumerate() {
            let segment = net.segment(begin, end);
            let peak = segment.peak.max(best[at].0);
            // Longer segments, where they are as low, keep fewer tensors whole.
            if found.as_ref().is_none_or(|&(known, ..)| peak < known) {
                found = Some((peak, at, segment.turns));
            }
        }
        ends.push(end);
        best.extend(found);
    }
    let mut turns = Vec::new();
    let mut at = best.len() - 1;
    while at > 0 {
        turns.push(&best[at].2);
        at = best[at].1;
    }
    let turns: Vec<u8> = turns.into_iter().rev().flatten().copied().collect();
    let resident = |tensor: &RolledTensor| tensor.step.is_none() && tensor.fed.is_none();
    let all: usize = net
        .tensors
        .iter()
        .filter(|tensor| !resident(tensor))
        .map(|tensor| tensor.rows)
        .sum();
    if turns.len() == all {
        Ok(turns)
    } else {
        Err(Error::internal(format!("{} turns make {all} rows", turns.len())))
    }
}

impl<'a> Net<'a> {
    fn of(program: &'a Program, roll: &'a Roll) -> Self {
        let tensors = &roll.tensors[..];
        let mut readers = vec![Vec::new(); tensors.len()];
        let steps = (0..roll.steps).map(|index| {
            let made = tensors
                .iter()
                .position(|tensor| tensor.step == Some(index))
                .unwrap_or(0);
            let mut read: Vec<usize> = Vec::new();
            for place in program.steps[index].places().into_iter().skip(1) {
                let Place::Tensor(id, _) = place else { continue };
                let id = program.root(id).0;
                let of = tensors.iter().position(|tensor| tensor.id == id);
                read.extend(of.filter(|of| !read.contains(of)));
            }
            read.iter().for_each(|&of| readers[of].push(index));
            (made, read)
        });
        let steps = steps.collect();
        Self {
            program,
            tensors,
            steps,
            readers,
        }
    }

    /// Steps `begin` to before `end`: their rows in the order in which those of the last one want them.
    fn segment(&self, begin: usize, end: usize) -> Segment {
        let mut made = vec![0; self.tensors.len()];
        for (tensor, made) in self.tensors.iter().zip(&mut made) {
            let before = tensor
                .step
                .map_or(tensor.fed.is_none() || begin > 0, |step| step < begin);
            *made = if before { tensor.rows } else { 0 };
        }
        let mut turns = Vec::new();
        let last = self.steps[end - 1].0;
        for row in 0..self.tensors[last].rows {
            self.make(last, row, &mut made, &mut turns);
        }
        // Rows that nothing wants are made all the same.
        for index in 0..self.tensors.len() {
            let within = self.tensors[index].step.is_none_or(|step| step < end);
            let rows = if within { self.tensors[index].rows } else { 0 };
            (made[index]..rows).for_each(|row| self.make(index, row, &mut made, &mut turns));
        }
        let peak = self.peak(&turns, begin, end);
        Segment { turns, peak }
    }

    /// Makes the rows of a tensor up to this one, those that they want before them.
    fn make(&self, tensor: usize, row: usize, made: &mut [usize], turns: &mut Vec<u8>) {
        while made[tensor] <= row {
            if let Some(step) = self.tensors[tensor].step {
                let read = reads(&self.program.steps[step].step, made[tensor]);
                for &input in &self.steps[step].1 {
                    if read.end > 0 {
                        self.make(input, read.end - 1, made, turns);
                    }
                }
            }
            turns.push(tensor as u8);
            made[tensor] += 1;
        }
    }

    /// The most bytes alive at one turn of a segment, an output over the row that it is made of counted once.
    fn peak(&self, turns: &[u8], begin: usize, end: usize) -> u64 {
        // Of each tensor the rows that every reader within the segment is done with.
        let mut passed: Vec<Vec<usize>> = self.readers.iter().map(|readers| vec![0; readers.len()]).collect();
        let mut made = vec![0; self.tensors.len()];
        let mut alive: u64 = 0;
        for (tensor, made) in self.tensors.iter().zip(&mut made) {
            let resident = tensor.step.is_none() && tensor.fed.is_none() && begin == 0;
            if resident || (begin > 0 && tensor.step == Some(begin - 1)) {
                *made = tensor.rows;
                alive += tensor.bytes * tensor.rows as u64;
            }
        }
        let mut peak = alive;
        for &turn in turns {
            let tensor = usize::from(turn);
            let of = &self.tensors[tensor];
            let sums = of
                .step
                .filter(|_| of.summed)
                .map(|step| self.program.steps[step].step.needs().scratch.into());
            alive += match sums {
                Some(sums) if made[tensor] == 0 => of.bytes + sums,
                Some(_) => 0,
                None => of.bytes,
            };
            made[tensor] += 1;
            let Some(step) = of.step else {
                peak = peak.max(alive);
                continue;
            };
            let row = made[tensor] - 1;
            let read = reads(&self.program.steps[step].step, row);
            let next = if row + 1 < of.rows {
                reads(&self.program.steps[step].step, row + 1).start
            } else {
                usize::MAX
            };
            let mut shared = 0;
            let mut freed = 0;
            for &input in &self.steps[step].1 {
                let low = |passed: &[Vec<usize>]| passed[input].iter().copied().min().unwrap_or(0).min(made[input]);
                let before = low(&passed);
                if let Some(at) = self.readers[input].iter().position(|&reader| reader == step) {
                    passed[input][at] = next;
                }
                let gone = (low(&passed) - before) as u64 * self.tensors[input].bytes;
                if !(self.tensors[input].whole) {
                    freed += gone;
                    if read.len() == 1 && gone > 0 && !of.summed {
                        shared = shared.max(of.bytes.min(self.tensors[input].bytes));
                    }
                }
            }
            peak = peak.max(alive - shared);
            alive -= freed;
            if made[tensor] == of.rows {
                alive -= sums.unwrap_or(0);
            }
            // The tensor that the segment is for stays.
            let last = self.tensors[tensor].step == Some(end - 1);
            if self.readers[tensor].is_empty() && !last && !of.whole {
                alive -= of.bytes;
            }
        }
        peak
    }
}
