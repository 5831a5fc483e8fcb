//! The digit networks in int8 and in int16: as many right as in f32 but for one, the same answers everywhere, the same file whatever the threads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite_host::board::{self, Blob, Board, RunOptions};
use arenite_host::model::ModelFile;
use arenite_host::pack::pack;
use arenite_host::quantize::Activations;
use arenite_tests::oracle;
use ndarray::{ArrayD, Axis};

use crate::quantise::network::{answers, calibrated_to, stored};

/// Every ninth image of the held-out set calibrates; all of them judge.
const STEP: usize = 9;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits").join(name)
}

fn images() -> Vec<ArrayD<f32>> {
    let array: ArrayD<f32> = ndarray_npy::read_npy(data("test_images.npy")).expect("a committed file");
    array.axis_iter(Axis(0)).map(|image| image.to_owned()).collect()
}

fn labels() -> Vec<usize> {
    let array: ArrayD<i64> = ndarray_npy::read_npy(data("test_labels.npy")).expect("a committed file");
    array.iter().map(|&label| label as usize).collect()
}

fn largest(scores: &[f64]) -> usize {
    (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}

fn packed(name: &str, activations: Activations, folder: &Path, threads: usize) -> ModelFile {
    let samples: Vec<_> = images().into_iter().step_by(STEP).collect();
    let mut options = calibrated_to(activations, &data(&format!("{name}.trace.json")), folder, &samples, &[]);
    options.output = folder.join(format!("{name}.{threads}.arenite"));
    if let Some(request) = &mut options.quantize {
        request.threads = Some(threads);
    }
    let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
    let report = packed.summary.quantization.expect("what was done");
    assert_eq!(report.samples, samples.len());
    let file = ModelFile::open(&options.output).expect("just written");
    // The file has no lists of names: it lies in a device's flash.
    let of_file = file.view().and_then(|view| view.summary()).expect("a summary");
    let of_file = of_file.quantization.expect("what was done");
    assert_eq!((of_file.samples, of_file.snr_db), (report.samples, report.snr_db));
    assert!(of_file.never_left_range.is_empty() && !report.never_left_range.is_empty());
    file
}

#[test]
fn at_most_one_image_fewer_is_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let (images, labels) = (images(), labels());
    let networks = [("digits", 355), ("residual", 356), ("mlp", 350)];
    let both = [Activations::Int8, Activations::Int16];
    for ((name, right_in_f32), activations) in networks.into_iter().flat_map(|n| both.map(|kind| (n, kind))) {
        let file = packed(name, activations, folder.path(), 2);
        let answers = answers(&file, &images);
        let right = answers
            .iter()
            .zip(&labels)
            .filter(|(scores, label)| largest(scores) == **label)
            .count();
        assert!(
            right + 1 >= right_in_f32,
            "{name}, {activations:?}: {right} right, {right_in_f32} in f32"
        );
        oracle::compared("PyTorch", images.len(), 360);
    }
}

#[test]
fn the_file_does_not_depend_on_the_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    for activations in [Activations::Int8, Activations::Int16] {
        let [one, three] = [1, 3].map(|threads| packed("residual", activations, folder.path(), threads));
        assert!(one.bytes() == three.bytes(), "{activations:?}");
    }
}

#[test]
fn the_m4f_answers_as_the_host_does() {
    let board = Board::find("mps2-an386").expect("a known board");
    if let Err(reason) = board::ready(board) {
        arenite_tests::skip("int8 digits on mps2-an386", &reason.to_string());
        return;
    }
    let images = images();
    for activations in [Activations::Int8, Activations::Int16] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = packed("digits", activations, folder.path(), 2);
        // int16 takes a scalar kernel there: fewer will do.
        let count = if activations == Activations::Int8 {
            images.len()
        } else {
            60
        };
        answers_on(board, &file, &images[..count]);
    }
}

/// The board's answers are the host's.
fn answers_on(board: &'static Board, file: &ModelFile, images: &[ArrayD<f32>]) {
    let view = file.view().expect("a model");
    let values = images.iter().flatten();
    let inputs: Vec<u8> = values.flat_map(|&value| stored(value, &view.inputs[0])).collect();
    let options = RunOptions {
        runs: images.len() as u32,
        timeout: Duration::from_secs(600),
        ..RunOptions::default()
    };
    let report = board::run(board, Blob::File(file.path()), &inputs, &options).unwrap_or_else(|e| panic!("{e}"));
    let output = &view.outputs[0];
    let numbers = arenite_host::compare::to_f64(output.dtype, &report.outputs);
    let of_board = numbers.into_iter().map(|number| {
        let stored = number - f64::from(output.zero_point);
        f64::from(output.scale) * stored
    });
    let on_host: Vec<f64> = answers(file, images).concat();
    assert_eq!(of_board.collect::<Vec<_>>(), on_host);
}
