//! Detections: TensorFlow Lite's custom operator `TFLite_Detection_PostProcess`. Boxes are decoded from their anchors; boxes that overlap a better one by too
//! much are dropped.

use serde::{Deserialize, Serialize};

use crate::arena::{Access, Operand, Place};
use crate::ops::cost::{Cost, of_operands};
use crate::ops::fault::Fault;
use crate::ops::operator::operator;
use crate::ops::operator::{Needs, Operator};
use crate::ops::size::{checked_size, size};

/// Boxes that are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Suppression {
    /// All, by the score of each one's best class.
    Fast {
        /// Classes that are told of each box, the best ones first.
        classes: u32,
    },
    /// Those of one class after the other; the best of all classes are kept.
    Regular {
        /// The most boxes of a class.
        boxes: u32,
    },
}

operator! {
    /// Detections, the best one first; zeros behind the last.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[cfg_attr(feature = "defmt", derive(defmt::Format))]
    pub struct Detections<P> {
        /// Least y, least x, largest y, largest x of each: `[rows, 4]`, f32 as all others.
        pub output: P,
        /// The class of each, `[rows]`: a whole number, in which a background class does not count.
        pub classes: P,
        /// The score of each, `[rows]`.
        pub scores: P,
        /// Number of boxes, `[1]`.
        pub count: P,
        /// `[anchors, width]`: centre y, centre x, height, width, and columns that are not read.
        pub encodings: P,
        /// Scores of the classes, `[anchors, background + labels]`.
        pub predictions: P,
        /// Centre y, centre x, height, width: `[anchors, 4]`.
        pub anchors: P,
        /// Candidates in the order of their scores, and those taken.
        pub scratch: P;
        /// Boxes before any is dropped.
        pub candidates: u32,
        /// Numbers of an encoding.
        pub width: u32,
        /// Classes.
        pub labels: u32,
        /// Whether a class stands before them that is none.
        pub background: bool,
        /// The most boxes.
        pub most: u32,
        /// Boxes that are compared with each other.
        pub suppression: Suppression,
        /// The least score.
        pub threshold: f32,
        /// The largest intersection over union of two boxes.
        pub overlap: f32,
        /// Divisors of the encodings: y, x, height, width.
        pub scale: [f32; 4],
    }
}

impl<P> Detections<P> {
    /// Rows of the results.
    pub fn rows(&self) -> u32 {
        match self.suppression {
            Suppression::Fast { classes } => self.most.saturating_mul(classes),
            Suppression::Regular { .. } => self.most,
        }
    }

    /// Numbers of a row of predictions.
    pub fn row(&self) -> u32 {
        self.labels.saturating_add(self.background.into())
    }

    /// The most boxes that one pass takes.
    pub fn taken(&self) -> u32 {
        let most = match self.suppression {
            Suppression::Fast { .. } => self.most,
            Suppression::Regular { boxes } => boxes,
        };
        most.min(self.candidates)
    }

    /// Words of scratch: a score and an index of each candidate, an index of each box taken; where a pass is one of many, the box too.
    pub fn words(&self) -> u32 {
        let each = match self.suppression {
            Suppression::Fast { .. } => 1,
            Suppression::Regular { .. } => 5,
        };
        let of_taken = self.taken().saturating_mul(each);
        self.candidates.saturating_mul(2).saturating_add(of_taken)
    }
}

impl<P: Place> Operator for Detections<P> {
    fn check(&self) -> Result<(), Fault> {
        checked_size(&[self.candidates, self.width, 4])?;
        checked_size(&[self.candidates, 16])?;
        checked_size(&[self.candidates, self.row(), 4])?;
        checked_size(&[self.rows(), 16])?;
        checked_size(&[self.words(), 4])?;
        let known = match self.suppression {
            Suppression::Fast { classes } => classes <= self.labels,
            Suppression::Regular { boxes } => boxes > 0,
        };
        if self.width < 4 || self.labels == 0 || !known {
            return Err(Fault::Shape);
        }
        if self.overlap > 0.0 && self.overlap <= 1.0 {
            Ok(())
        } else {
            Err(Fault::Unsupported)
        }
    }

    fn operands(&self, needs: Needs, visit: &mut dyn FnMut(Operand<P>)) {
        let len = |extents: &[u32]| size(extents).unwrap_or(u32::MAX);
        let rows = self.rows();
        for (place, count) in [
            (self.output, len(&[rows, 4])),
            (self.classes, rows),
            (self.scores, rows),
            (self.count, 1),
        ] {
            visit(Operand::of::<f32>(Access::Write, place, count));
        }
        for (place, row) in [
            (self.encodings, self.width),
            (self.predictions, self.row()),
            (self.anchors, 4),
        ] {
            visit(Operand::of::<f32>(Access::Read, place, len(&[self.candidates, row])));
        }
        visit(Operand::scratch(self.scratch, needs.scratch));
    }

    /// A pass looks at all candidates, orders them, decodes each and compares it with all boxes that it has taken.
    fn cost(&self, needs: Needs) -> Cost {
        let [candidates, taken, labels] = [self.candidates, self.taken(), self.labels].map(u64::from);
        let levels = u64::from(32 - self.candidates.leading_zeros());
        // An exponential of f64 takes as long as hundreds of products.
        let each = levels.saturating_mul(8).saturating_add(512);
        let boxes = candidates.saturating_mul(taken.saturating_mul(32).saturating_add(each));
        let (passes, classes, merged) = match self.suppression {
            Suppression::Fast { classes } => (
                1,
                candidates,
                taken.saturating_mul(classes.into()).saturating_mul(labels),
            ),
            Suppression::Regular { .. } => (labels, 0, taken.saturating_add(self.most.into()).saturating_mul(64)),
        };
        let scores = classes.saturating_mul(labels);
        let pass = boxes.saturating_add(merged).saturating_add(scores);
        let products = passes.saturating_mul(pass);
        of_operands(|visit| self.operands(needs, visit)).plus(Cost {
            products,
            reads: products,
            writes: 0,
        })
    }
}
