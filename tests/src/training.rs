//! Networks that are trained: committed digits, turned, and what a training step takes.

use std::path::{Path, PathBuf};

use arenite_host::gradient::{Loss, Optimiser, Request};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, Packed, pack};
use ndarray::ArrayD;

use crate::digits_options;

/// Pixels of an image.
pub const PIXELS: usize = 64;

/// A file of the committed models.
pub fn models(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

/// The elements of a committed NumPy file.
pub fn array<T: ndarray_npy::ReadableElement>(name: &str) -> Vec<T> {
    let array: ArrayD<T> = ndarray_npy::read_npy(models(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    array.into_raw_vec_and_offset().0
}

/// Numbers as models hold them.
pub fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The numbers of an output.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&word| f32::from_le_bytes(word))
        .collect()
}

/// `np.rot90(x, 1, (2, 3))` of an image.
pub fn sideways(image: &[f32]) -> Vec<f32> {
    (0..PIXELS).map(|at| image[at % 8 * 8 + 7 - at / 8]).collect()
}

/// `x[..., ::-1]` of an image.
pub fn mirrored(image: &[f32]) -> Vec<f32> {
    (0..PIXELS).map(|at| image[at / 8 * 8 + 7 - at % 8]).collect()
}

/// The images that digits was trained with, turned.
pub fn training_images(turned: fn(&[f32]) -> Vec<f32>) -> Vec<Vec<f32>> {
    let pixels: Vec<f32> = array::<u8>("digits/train_images.npy")
        .into_iter()
        .map(|x| f32::from(x) / 16.0)
        .collect();
    pixels.chunks(PIXELS).map(turned).collect()
}

/// Their labels.
pub fn training_labels() -> Vec<i32> {
    array::<u8>("digits/train_labels.npy")
        .into_iter()
        .map(i32::from)
        .collect()
}

/// The inputs of a step: image, label, rate.
pub fn step_inputs(image: &[f32], label: i32, rate: f32) -> Vec<Vec<u8>> {
    vec![bytes(image), label.to_le_bytes().to_vec(), bytes(&[rate])]
}

/// Returns the request of `--train`.
pub fn request(loss: Loss, trainable: &[&str]) -> Option<Request> {
    Some(Request {
        loss,
        trainable: trainable.iter().map(|pattern| pattern.to_string()).collect(),
        micro_batches: 1,
        optimiser: Optimiser::Sgd,
    })
}

/// A network as a file, and what packing tells.
pub fn packed(options: Options) -> (ModelFile, Packed) {
    let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    (ModelFile::open(&options.output).expect("just written"), packed)
}

/// One of the networks of `models/digits`, to be trained.
pub fn digits(name: &str, folder: &Path, loss: Loss, trainable: &[&str]) -> (ModelFile, Packed) {
    let output = folder.join(format!("{name}-{}.bin", trainable.len()));
    packed(Options {
        train: request(loss, trainable),
        ..digits_options(name, &output)
    })
}

/// The state that a file begins with.
pub fn initial(file: &ModelFile) -> Vec<u8> {
    file.view().expect("intact").state_init().bytes().collect()
}
