//! Detections: [`crate::ops::detections`]. Boxes are looked for anew for each one that is taken.

use super::{at, read, written};
use crate::arena::Mem;
use crate::cells::Src;
use crate::ops::detections::{Detections, Suppression};

/// The most candidates; an operator of more is none for the oracle.
pub(crate) const MOST: usize = 32;

/// Least y, least x, largest y, largest x.
type Corners = [f32; 4];

struct Operands<'a> {
    op: &'a Detections,
    encodings: Src<'a, f32>,
    predictions: Src<'a, f32>,
    anchors: Src<'a, f32>,
}

impl Operands<'_> {
    /// The score of a class, the background not counted.
    fn score(&self, candidate: usize, class: usize) -> Option<f32> {
        let shape = [self.op.candidates as usize, self.op.row() as usize];
        self.predictions
            .get(at(shape, [candidate, class + usize::from(self.op.background)]))
    }

    /// The class of rank `rank` by its score, of equal ones the first.
    fn class(&self, candidate: usize, rank: usize) -> Option<usize> {
        let labels = self.op.labels as usize;
        let better = |class: usize, than: usize| {
            let (a, b) = (self.score(candidate, class)?, self.score(candidate, than)?);
            Some(a > b || (a == b && class < than))
        };
        (0..labels).find(|&class| {
            let before = (0..labels).filter(|&other| better(other, class) == Some(true));
            before.count() == rank
        })
    }

    fn corners(&self, candidate: usize) -> Option<Corners> {
        let of =
            |numbers: Src<'_, f32>, width: usize, index: usize| numbers.get(candidate * width + index).map(f64::from);
        let mut centre = [0.0; 2];
        let mut half = [0.0; 2];
        for axis in 0..2 {
            let by = |index: usize| self.op.scale.get(index).copied().map(f64::from);
            let encoded = |index: usize| of(self.encodings, self.op.width as usize, index);
            let (anchor, extent) = (of(self.anchors, 4, axis)?, of(self.anchors, 4, axis + 2)?);
            *centre.get_mut(axis)? = (encoded(axis)? / by(axis)? * extent + anchor) as f32;
            *half.get_mut(axis)? = (0.5 * libm::exp(encoded(axis + 2)? / by(axis + 2)?) * extent) as f32;
        }
        let ([y, x], [height, width]) = (centre, half);
        Some([y - height, x - width, y + height, x + width])
    }

    /// Takes the candidates of the best scores that overlap none taken before by too much: as many as `taken` has room for.
    fn suppress(&self, score: impl Fn(usize) -> Option<f32>, taken: &mut [usize]) -> Option<usize> {
        let (mut done, mut count) = ([false; MOST], 0);
        while count < taken.len() {
            let mut best: Option<usize> = None;
            for candidate in 0..self.op.candidates as usize {
                let (own, done) = (score(candidate)?, *done.get(candidate)?);
                let first = match best {
                    Some(best) => own > score(best)?,
                    None => true,
                };
                if !done && own >= self.op.threshold && first {
                    best = Some(candidate);
                }
            }
            let Some(best) = best else { break };
            *done.get_mut(best)? = true;
            let corners = self.corners(best)?;
            let mut is_new = true;
            for &other in taken.get(..count)? {
                is_new &= overlap(self.corners(other)?, corners) <= self.op.overlap;
            }
            if is_new {
                *taken.get_mut(count)? = best;
                count += 1;
            }
        }
        Some(count)
    }
}

/// Intersection over union; boxes without an area overlap none.
fn overlap([top, left, bottom, right]: Corners, [y0, x0, y1, x1]: Corners) -> f32 {
    let area = (bottom - top) * (right - left);
    let other = (y1 - y0) * (x1 - x0);
    if area <= 0.0 || other <= 0.0 {
        return 0.0;
    }
    let along = |from: f32, to: f32, a: f32, b: f32| libm::fmaxf(libm::fminf(to, b) - libm::fmaxf(from, a), 0.0);
    let common = along(top, bottom, y0, y1) * along(left, right, x0, x1);
    common / (area + other - common)
}

pub(crate) fn f32(op: &Detections, mem: &Mem<'_>) -> Option<()> {
    let (candidates, rows) = (op.candidates as usize, op.rows() as usize);
    if candidates > MOST {
        return None;
    }
    let operands = Operands {
        op,
        encodings: read(mem, op.encodings, candidates * op.width as usize)?,
        predictions: read(mem, op.predictions, candidates * op.row() as usize)?,
        anchors: read(mem, op.anchors, candidates * 4)?,
    };
    let boxes = written::<f32>(mem, op.output, rows * 4)?;
    let (classes, scores) = (
        written::<f32>(mem, op.classes, rows)?,
        written::<f32>(mem, op.scores, rows)?,
    );
    for row in 0..rows {
        for corner in 0..4 {
            boxes.set(at([rows, 4], [row, corner]), 0.0)?;
        }
        classes.set(row, 0.0)?;
        scores.set(row, 0.0)?;
    }
    let tell = |row: usize, candidate: usize, class: usize| {
        for (corner, value) in operands.corners(candidate)?.into_iter().enumerate() {
            boxes.set(at([rows, 4], [row, corner]), value)?;
        }
        classes.set(row, class as f32)?;
        scores.set(row, operands.score(candidate, class)?)
    };
    let mut taken = [0; MOST];
    let taken = taken.get_mut(..op.taken() as usize)?;
    let count = match op.suppression {
        Suppression::Fast { classes } => {
            let best = |candidate: usize| operands.score(candidate, operands.class(candidate, 0)?);
            let count = operands.suppress(best, taken)?;
            for (number, &candidate) in taken.iter().take(count).enumerate() {
                for rank in 0..classes as usize {
                    let class = operands.class(candidate, rank)?;
                    tell(number * classes as usize + rank, candidate, class)?;
                }
            }
            count
        }
        Suppression::Regular { .. } => {
            // The best of all classes, of equal ones that of the class before: those of every class, put in order.
            let mut best = [(0, 0); MOST];
            let mut count = 0;
            for class in 0..op.labels as usize {
                let fresh = operands.suppress(|candidate| operands.score(candidate, class), taken)?;
                for &candidate in taken.get(..fresh)? {
                    let own = operands.score(candidate, class)?;
                    let mut place = 0;
                    while place < count {
                        let &(other, of) = best.get(place)?;
                        if operands.score(other, of)? < own {
                            break;
                        }
                        place += 1;
                    }
                    if place >= rows {
                        continue;
                    }
                    count = (count + 1).min(rows);
                    best.get_mut(place..count)?.rotate_right(1);
                    *best.get_mut(place)? = (candidate, class);
                }
            }
            for (row, &(candidate, class)) in best.iter().take(count).enumerate() {
                tell(row, candidate, class)?;
            }
            count
        }
    };
    written::<f32>(mem, op.count, 1)?.set(0, count as f32)
}
