//! As its parent: detections.

use super::{AT, accepted, broken};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::detections::DetectionsKernel;
use crate::ops::detections::{Detections, Suppression};
use crate::ops::fault::Fault;

#[test]
fn detections() {
    let detections = Detections {
        output: AT,
        classes: AT,
        scores: AT,
        count: AT,
        encodings: AT,
        predictions: AT,
        anchors: AT,
        scratch: AT,
        candidates: 12,
        width: 4,
        labels: 3,
        background: true,
        most: 5,
        suppression: Suppression::Fast { classes: 3 },
        threshold: 0.5,
        overlap: 1.0,
        scale: [1.0; 4],
    };
    let regular = |op: &mut Detections, boxes| op.suppression = Suppression::Regular { boxes };
    broken(
        &detections,
        Fault::Shape,
        &[
            |op| op.candidates = 0,
            |op| op.candidates = 1 << 28,
            |op| op.width = 3,
            |op| op.width = 1 << 28,
            |op| op.labels = 0,
            |op| (op.labels, op.background) = (u32::MAX, true),
            |op| op.most = 0,
            |op| op.most = 1 << 28,
            |op| op.suppression = Suppression::Fast { classes: 0 },
            |op| op.suppression = Suppression::Fast { classes: 4 },
            |op| op.suppression = Suppression::Regular { boxes: 0 },
        ],
    );
    broken(
        &detections,
        Fault::Unsupported,
        &[
            |op| op.overlap = 0.0,
            |op| op.overlap = -0.5,
            |op| op.overlap = 1.001,
            |op| op.overlap = f32::NAN,
        ],
    );
    accepted(
        &detections,
        &[
            |op| op.width = 7,
            |op| op.background = false,
            |op| op.overlap = 1e-3,
            |op| op.threshold = f32::NAN,
            |op| op.suppression = Suppression::Regular { boxes: 100 },
        ],
    );
    let words = |op: &Detections| (op.rows(), op.taken(), DetectionsKernel::needs(op).scratch / 4);
    assert_eq!(words(&detections), (15, 5, 12 + 12 + 5));
    let mut each = detections;
    regular(&mut each, 2);
    assert_eq!(words(&each), (5, 2, 12 + 12 + 2 * 5));
    regular(&mut each, 100);
    assert_eq!(words(&each), (5, 12, 12 + 12 + 12 * 5));
}
