//! Generated detections that cost as much as any of their shapes: all boxes are candidates, each is compared with all that are taken, and no box fills the
//! last place, which would end it.

use arenite::ops::detections::{Detections, Suppression};
use arenite::{Slot, Step};

use super::shapes::Random;

/// The step and its operands, which are constants from `base` on.
pub(super) fn step(random: &mut Random, base: u32) -> (Step, Vec<u8>) {
    let candidates = random.axis("candidates", 160);
    let labels = random.between(1, 12);
    let (labels, background) = (random.extent("labels", labels), random.chance(2));
    let most = random.axis("most", 60);
    let suppression = if random.chance(2) {
        Suppression::Fast {
            classes: {
                let drawn = random.unscaled("labels", labels).min(3);
                let classes = random.between(1, drawn);
                random.extent("classes", classes).min(labels)
            },
        }
    } else {
        Suppression::Regular {
            boxes: random.axis("boxes", 40),
        }
    };
    let width = random.one_of(&[4, 4, 8]);
    let mut step = Detections {
        output: Slot::default(),
        classes: Slot::default(),
        scores: Slot::default(),
        count: Slot::default(),
        encodings: Slot::default(),
        predictions: Slot::default(),
        anchors: Slot::default(),
        scratch: Slot::default(),
        candidates,
        width,
        labels,
        background,
        most,
        suppression,
        threshold: -1.0,
        overlap: 0.5,
        scale: [10.0, 10.0, 5.0, 5.0],
    };
    // The last one that is taken; all behind it are like it.
    let last = step.taken().saturating_sub(2);
    let mut order: Vec<u32> = (0..candidates).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.between(0, at as u32) as usize);
    }
    let [mut encodings, mut predictions, mut anchors] = [const { Vec::new() }; 3];
    for &rank in &order {
        encodings.extend((0..width).map(|n| 0.37 + 0.01 * n as f32));
        anchors.extend([rank.min(last) as f32 * 3.1 + 0.7, 0.3, 0.9, 0.8]);
        // The last class is the best, so that those before it are exceeded one after the other.
        let score = |class: u32| 1.0 - rank as f32 / 512.0 + class as f32 / 4096.0;
        predictions.extend((0..step.row()).map(score));
    }
    let mut constants: Vec<u8> = Vec::new();
    for (slot, numbers) in [
        (&mut step.encodings, encodings),
        (&mut step.predictions, predictions),
        (&mut step.anchors, anchors),
    ] {
        *slot = Slot {
            region: Slot::WEIGHTS,
            offset: base + constants.len() as u32,
        };
        constants.extend(numbers.into_iter().flat_map(f32::to_le_bytes));
    }
    (Step::Detections(step), constants)
}
