//! Training: networks packed with `--train`, trained here and on a board, beside PyTorch in f64 and beside loops of these files in f64.

mod learning;
mod refused;
mod squared;
mod steps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arenite_host::gradient::{Loss, Request};
use arenite_host::model::{self, ModelFile, derived};
use arenite_host::pack::{Options, Packed, pack};
use arenite_tests::digits_options;
use ndarray::ArrayD;

const PIXELS: usize = 64;
const CLASSES: usize = 10;

fn models(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

fn array<T: ndarray_npy::ReadableElement>(name: &str) -> Vec<T> {
    let array: ArrayD<T> = ndarray_npy::read_npy(models(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    array.into_raw_vec_and_offset().0
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&word| f32::from_le_bytes(word))
        .collect()
}

/// `np.rot90(x, 1, (2, 3))` of an image.
fn sideways(image: &[f32]) -> Vec<f32> {
    (0..PIXELS).map(|at| image[at % 8 * 8 + 7 - at / 8]).collect()
}

/// `x[..., ::-1]` of an image.
fn mirrored(image: &[f32]) -> Vec<f32> {
    (0..PIXELS).map(|at| image[at / 8 * 8 + 7 - at % 8]).collect()
}

fn training_images(turned: fn(&[f32]) -> Vec<f32>) -> Vec<Vec<f32>> {
    let pixels: Vec<f32> = array::<u8>("digits/train_images.npy")
        .into_iter()
        .map(|x| f32::from(x) / 16.0)
        .collect();
    pixels.chunks(PIXELS).map(turned).collect()
}

fn training_labels() -> Vec<i32> {
    array::<u8>("digits/train_labels.npy")
        .into_iter()
        .map(i32::from)
        .collect()
}

/// The inputs of a step: image, label, rate.
fn step_inputs(image: &[f32], label: i32, rate: f32) -> Vec<Vec<u8>> {
    vec![bytes(image), label.to_le_bytes().to_vec(), bytes(&[rate])]
}

fn request(loss: Loss, trainable: &[&str]) -> Option<Request> {
    Some(Request {
        loss,
        trainable: trainable.iter().map(|pattern| pattern.to_string()).collect(),
    })
}

fn packed(options: Options) -> (ModelFile, Packed) {
    let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    (ModelFile::open(&options.output).expect("just written"), packed)
}

fn digits(name: &str, folder: &Path, loss: Loss, trainable: &[&str]) -> (ModelFile, Packed) {
    let output = folder.join(format!("{name}-{}.bin", trainable.len()));
    packed(Options {
        train: request(loss, trainable),
        ..digits_options(name, &output)
    })
}

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

fn initial(file: &ModelFile) -> Vec<u8> {
    file.view().expect("intact").state_init().bytes().collect()
}
