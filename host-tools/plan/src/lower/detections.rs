//! Detections.

use arenite::Step;
use arenite::ops::detections::Detections;

use super::context::{Lower, fit, input, want_f32};
use crate::error::{Error, Result};
use crate::graph::{Detector, Node};
use crate::program::Place;

/// Lowers the choice of a detector's boxes.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, detector: &Detector) -> Result<()> {
    want_f32(lower.graph(), node)?;
    let &[output, classes, scores, count] = node.outputs.as_slice() else {
        return Err(Error::input(format!("{} results", node.outputs.len())).expected("four"));
    };
    let [encodings, predictions, anchors] = [input(node, 0)?, input(node, 1)?, input(node, 2)?];
    let last = |id| lower.graph().tensor(id).shape.last().copied().unwrap_or(0);
    let (width, row) = (last(encodings), last(predictions));
    let candidates = lower.graph().tensor(anchors).elements() / 4;
    let step = Detections {
        output: Place::Tensor(output, 0),
        classes: Place::Tensor(classes, 0),
        scores: Place::Tensor(scores, 0),
        count: Place::Tensor(count, 0),
        encodings: lower.place(encodings)?,
        predictions: lower.place(predictions)?,
        anchors: lower.place(anchors)?,
        scratch: Place::Scratch,
        candidates: fit(candidates, "the number of anchors")?,
        width: fit(width, "the number of encodings")?,
        labels: fit(detector.labels, "the number of classes")?,
        background: row > detector.labels,
        most: fit(detector.most, "the number of detections")?,
        suppression: detector.suppression,
        threshold: detector.threshold,
        overlap: detector.overlap,
        scale: detector.scale,
    };
    lower.push(node, "detections", Step::Detections(step), 0);
    Ok(())
}
