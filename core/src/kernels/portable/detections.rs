//! Detections. Candidates lie in a heap, so that no more of them are put in order, decoded and compared than are needed.

use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::detections::{Detections, Suppression};
use crate::ops::operator::Needs;
use crate::ops::size::size;

/// f32.
#[derive(Debug)]
pub struct DetectionsKernel;

impl Kernel for DetectionsKernel {
    type Op = Detections;

    fn needs(op: &Detections) -> Needs {
        Needs {
            scratch: op.words().saturating_mul(4),
            weights: 0,
        }
    }

    fn run(op: &Detections, mem: &Mem<'_>) -> Option<()> {
        let rows = op.rows();
        let found = Found {
            boxes: mem.dst(op.output, size(&[rows, 4])?)?,
            classes: mem.dst(op.classes, rows)?,
            scores: mem.dst(op.scores, rows)?,
        };
        let candidates = op.candidates as usize;
        let indices = mem.dst::<i32>(op.scratch, op.words())?;
        let all = Candidates {
            op,
            encodings: mem.src(op.encodings, size(&[op.candidates, op.width])?)?,
            anchors: mem.src(op.anchors, size(&[op.candidates, 4])?)?,
            scores: mem.dst::<f32>(op.scratch, op.candidates)?,
            order: indices.slice(candidates, candidates)?,
        };
        let taken = indices.slice(candidates * 2, op.taken() as usize)?;
        let predictions = mem.src::<f32>(op.predictions, size(&[op.candidates, op.row()])?)?;
        let classes = |index: usize| {
            let row = op.row() as usize;
            predictions.slice(index * row + usize::from(op.background), op.labels as usize)
        };
        let (boxes, told) = match op.suppression {
            Suppression::Fast { classes: each } => {
                for (index, score) in all.scores.cells().iter().enumerate() {
                    score.set(next_best(classes(index)?, None)?.0);
                }
                let each = each as usize;
                let count = all.suppress(found.boxes, each * 4, taken)?;
                for (at, index) in taken.cells().get(..count)?.iter().enumerate() {
                    let place = read(found.boxes.as_src(), at * each)?;
                    let scores = classes(index.get() as usize)?;
                    let mut last = None;
                    for row in at * each..(at + 1) * each {
                        // Of scores that are no numbers there is no best.
                        let (score, class) = next_best(scores, last).unwrap_or_default();
                        last = Some((score, class));
                        found.set(row, (place, class, score))?;
                    }
                }
                (count, count * each)
            }
            Suppression::Regular { .. } => {
                // Behind the indices of those taken.
                let words = mem.dst::<f32>(op.scratch, op.words())?;
                let places = words.slice(candidates * 2 + taken.cells().len(), taken.cells().len() * 4)?;
                let mut count = 0;
                for class in 0..op.labels as usize {
                    for (index, score) in all.scores.cells().iter().enumerate() {
                        score.set(classes(index)?.get(class)?);
                    }
                    let fresh = all.suppress(places, 4, taken)?;
                    count = found.merge(count, fresh, class, |at| {
                        let index = taken.as_src().get(at)?;
                        Some((read(places.as_src(), at)?, all.score(index)?))
                    })?;
                }
                (count, count)
            }
        };
        for row in told..rows as usize {
            found.set(row, ([0.0; 4], 0, 0.0))?;
        }
        mem.dst::<f32>(op.count, 1)?.set(0, boxes as f32)
    }
}

#[cfg(any(test, packing))]
impl Candidate for DetectionsKernel {}

/// Least y, least x, largest y, largest x.
type Corners = [f32; 4];

/// Boxes that are in question, with their scores of now.
struct Candidates<'a> {
    op: &'a Detections,
    encodings: Src<'a, f32>,
    anchors: Src<'a, f32>,
    scores: Dst<'a, f32>,
    /// Indices of candidates; those that are left are a heap, each before its children.
    order: Dst<'a, i32>,
}

impl Candidates<'_> {
    /// Writes the best boxes to `places`, `apart` numbers from each to the next, and their indices to `taken`, as many as there is room for: how many.
    #[inline(never)]
    fn suppress(&self, places: Dst<'_, f32>, apart: usize, taken: Dst<'_, i32>) -> Option<usize> {
        let mut left = 0;
        for (index, score) in self.scores.cells().iter().enumerate() {
            if score.get() >= self.op.threshold {
                self.order.set(left, index as i32)?;
                left += 1;
            }
        }
        for at in (0..left / 2).rev() {
            self.sink(at, left)?;
        }
        let mut count = 0;
        while left > 0 && count < taken.cells().len() {
            let best = self.order.as_src().get(0)?;
            left -= 1;
            self.order.set(0, self.order.as_src().get(left)?)?;
            self.sink(0, left)?;
            let corners = self.decode(best as usize)?;
            let known = places.as_src();
            let mut others = (0..count).filter_map(|at| known.slice(at * apart, 4));
            if others.any(|other| read(other, 0).is_some_and(|other| overlap(other, corners) > self.op.overlap)) {
                continue;
            }
            write(places.tail(count * apart)?, 0, corners)?;
            taken.set(count, best)?;
            count += 1;
        }
        Some(count)
    }

    /// Exchanges the candidate at `at` with the better one of its children, until none of the first `len` is better.
    fn sink(&self, mut at: usize, len: usize) -> Option<()> {
        let order = self.order.as_src();
        while 2 * at + 1 < len {
            let mut child = 2 * at + 1;
            if child + 1 < len && self.precedes(order.get(child + 1)?, order.get(child)?)? {
                child += 1;
            }
            let (above, below) = (order.get(at)?, order.get(child)?);
            if !self.precedes(below, above)? {
                break;
            }
            self.order.set(at, below)?;
            self.order.set(child, above)?;
            at = child;
        }
        Some(())
    }

    /// The better score goes first, of equal ones that of the lower index.
    fn precedes(&self, a: i32, b: i32) -> Option<bool> {
        let (x, y) = (self.score(a)?, self.score(b)?);
        Some(x > y || (x == y && a < b))
    }

    fn score(&self, index: i32) -> Option<f32> {
        self.scores.as_src().get(index as usize)
    }

    /// The corners of candidate `index`, in f64 as TensorFlow Lite computes them.
    fn decode(&self, index: usize) -> Option<Corners> {
        let [y, x, height, width] = read(self.encodings.slice(index * self.op.width as usize, 4)?, 0)?.map(f64::from);
        let [anchor_y, anchor_x, anchor_height, anchor_width] = read(self.anchors, index)?.map(f64::from);
        let [by_y, by_x, by_height, by_width] = self.op.scale.map(f64::from);
        let half = |logarithm: f64, extent: f64| (0.5 * libm::exp(logarithm) * extent) as f32;
        let centre_y = (y / by_y * anchor_height + anchor_y) as f32;
        let centre_x = (x / by_x * anchor_width + anchor_x) as f32;
        let half_height = half(height / by_height, anchor_height);
        let half_width = half(width / by_width, anchor_width);
        Some([
            centre_y - half_height,
            centre_x - half_width,
            centre_y + half_height,
            centre_x + half_width,
        ])
    }
}

/// The results.
struct Found<'a> {
    boxes: Dst<'a, f32>,
    classes: Dst<'a, f32>,
    scores: Dst<'a, f32>,
}

impl Found<'_> {
    fn set(&self, row: usize, (corners, class, score): (Corners, usize, f32)) -> Option<()> {
        write(self.boxes, row, corners)?;
        self.classes.set(row, class as f32)?;
        self.scores.set(row, score)
    }

    /// Merges `fresh` boxes of `class` into the `count` that are there, both in the order of their scores; of equal ones those that are there go first. The
    /// worst are dropped where there is no room. How many there are then.
    fn merge(
        &self,
        count: usize,
        fresh: usize,
        class: usize,
        of: impl Fn(usize) -> Option<(Corners, f32)>,
    ) -> Option<usize> {
        let room = self.scores.cells().len();
        let (mut old, mut new) = (0, 0);
        while old + new < room && (old < count || new < fresh) {
            let better = new < fresh && (old == count || of(new)?.1 > self.scores.as_src().get(old)?);
            if better { new += 1 } else { old += 1 }
        }
        let whole = old + new;
        for row in (0..whole).rev() {
            if new == 0 {
                break;
            }
            let (corners, score) = of(new - 1)?;
            if old == 0 || score <= self.scores.as_src().get(old - 1)? {
                self.set(row, (corners, class, score))?;
                new -= 1;
            } else {
                old -= 1;
                write(self.boxes, row, read(self.boxes.as_src(), old)?)?;
                self.classes.set(row, self.classes.as_src().get(old)?)?;
                self.scores.set(row, self.scores.as_src().get(old)?)?;
            }
        }
        Some(whole)
    }
}

/// The best of `scores` and its class, or the best behind `last`; of equal ones the first.
fn next_best(scores: Src<'_, f32>, last: Option<(f32, usize)>) -> Option<(f32, usize)> {
    let mut best = None;
    for (class, score) in scores.iter().enumerate() {
        let told = last.is_some_and(|(least, of)| !(score < least || (score == least && class > of)));
        if !told && best.is_none_or(|(most, _)| score > most) {
            best = Some((score, class));
        }
    }
    best
}

/// Intersection over union; boxes without an area overlap none.
fn overlap([top, left, bottom, right]: Corners, [y0, x0, y1, x1]: Corners) -> f32 {
    let area = (bottom - top) * (right - left);
    let other = (y1 - y0) * (x1 - x0);
    if area <= 0.0 || other <= 0.0 {
        return 0.0;
    }
    let larger = |a: f32, b: f32| if a < b { b } else { a };
    let smaller = |a: f32, b: f32| if b < a { b } else { a };
    let rows = larger(smaller(bottom, y1) - larger(top, y0), 0.0);
    let columns = larger(smaller(right, x1) - larger(left, x0), 0.0);
    let common = rows * columns;
    common / (area + other - common)
}

/// Four numbers, `at` times four behind the first.
fn read(numbers: Src<'_, f32>, at: usize) -> Option<Corners> {
    let four = numbers.slice(at.checked_mul(4)?, 4)?;
    Some([four.get(0)?, four.get(1)?, four.get(2)?, four.get(3)?])
}

fn write(numbers: Dst<'_, f32>, at: usize, corners: Corners) -> Option<()> {
    let four = numbers.slice(at.checked_mul(4)?, 4)?;
    for (cell, number) in four.cells().iter().zip(corners) {
        cell.set(number);
    }
    Some(())
}
