//! Training: networks packed with `--train`, trained here, beside PyTorch in f64 and beside loops of these files in f64. On a board: `boards/training.rs`.

mod adapted;
mod learning;
mod micro;
mod norms;
mod optimisers;
mod pointwise;
mod recomputed;
mod refused;
mod squared;
mod steps;
mod traced;

use std::collections::BTreeMap;

use arenite_host::model::{self, ModelFile, derived};
use arenite_tests::training::*;

const CLASSES: usize = 10;

/// How many of the held-out images, turned, the inference of a state gets right.
fn right(file: &ModelFile, state: &[u8], turned: fn(&[f32]) -> Vec<f32>) -> usize {
    let file = ModelFile::made(
        &derived::with_state(&file.view().expect("intact"), state).expect("a file"),
        file.path(),
    );
    let images: Vec<f32> = array("digits/test_images.npy");
    let runs: Vec<_> = images.chunks(PIXELS).map(|image| vec![bytes(&turned(image))]).collect();
    let outputs = model::run(&file.load().expect("loads"), &runs, false, &mut |_, _, _| {}).expect("runs");
    let largest = |scores: &[f32]| (0..CLASSES).fold(0, |best, at| if scores[at] > scores[best] { at } else { best });
    let labels: Vec<i64> = array("digits/test_labels.npy");
    let pairs = outputs.iter().zip(labels);
    pairs
        .filter(|(output, label)| largest(&floats(&output[0])) as i64 == *label)
        .count()
}

/// The parameters of a state in PyTorch's layout, by name, in the network's order: convolutions OIHW, linear layers as `columns` says.
fn parameters(file: &ModelFile, state: &[u8], images: &BTreeMap<&str, [usize; 3]>) -> Vec<(String, Vec<f32>)> {
    let metadata = file.view().expect("intact").metadata().expect("metadata");
    let trained = metadata.training.expect("steps of training").parameters;
    let of = |parameter: &arenite_host::metadata::TrainedMeta| {
        let shape: Vec<usize> = parameter.shape.iter().map(|&n| n as usize).collect();
        let count = shape.iter().product::<usize>();
        let values = floats(&state[parameter.offset as usize..][..4 * count]);
        let moved = match (&shape[..], images.get(parameter.name.as_str())) {
            (&[o, h, w, i], _) => nchw(&values, [o, h, w, i]),
            (&[o, _], Some(&[h, w, c])) => nchw(&values, [o, h, w, c]),
            _ => values,
        };
        (parameter.name.clone(), moved)
    };
    trained.iter().map(of).collect()
}

/// Channels of NHWC in front of rows and columns.
fn nchw(values: &[f32], [n, h, w, c]: [usize; 4]) -> Vec<f32> {
    let from = |at: usize| {
        let (x, y) = (at % w, at / w % h);
        let (channel, image) = (at / (w * h) % c, at / (w * h * c));
        ((image * h + y) * w + x) * c + channel
    };
    (0..n * h * w * c).map(|at| values[from(at)]).collect()
}

/// The images that linear layers of digits flatten.
fn flattened() -> BTreeMap<&'static str, [usize; 3]> {
    BTreeMap::from([("fc1.weight", [2, 2, 24])])
}
