//! The main job: networks traced from PyTorch, packed, and run on boards over the whole held-out set.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::DType;
use arenite_host::board::{self, BOARDS, Blob, Board, RunOptions};
use arenite_host::compare;
use arenite_host::memory::prove;
use arenite_host::model::{self, ModelFile};
use arenite_host::pack::pack;
use arenite_tests::{boards_by_turns, digits_options, oracle};
use ndarray::ArrayD;

const IMAGES: usize = 360;
const IMAGE_BYTES: usize = 8 * 8 * 4;
const CLASSES: usize = 10;

struct Network {
    name: &'static str,
    /// PyTorch's outputs.
    expected: &'static str,
    /// Images that PyTorch classifies right.
    right: usize,
}

const NETWORKS: [Network; 3] = [
    Network {
        name: "digits",
        expected: "digits.test_logits.npy",
        right: 355,
    },
    Network {
        name: "residual",
        expected: "residual.test_probability.npy",
        right: 356,
    },
    Network {
        name: "mlp",
        expected: "mlp.test_logits.npy",
        right: 350,
    },
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits").join(name)
}

fn floats(name: &str) -> Vec<f32> {
    let array: ArrayD<f32> = ndarray_npy::read_npy(data(name)).expect("a committed file");
    array.iter().copied().collect()
}

fn labels() -> Vec<i64> {
    let array: ArrayD<i64> = ndarray_npy::read_npy(data("test_labels.npy")).expect("a committed file");
    array.iter().copied().collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn packed(name: &str, folder: &Path) -> ModelFile {
    let path = folder.join(format!("{name}.bin"));
    pack(&digits_options(name, &path), &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    ModelFile::open(&path).expect("just written")
}

fn largest(scores: &[f64]) -> usize {
    (0..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}

/// Every output within 1e-5 of PyTorch's, and as many images right.
fn check(network: &Network, outputs: &[u8], images: usize, place: &str) {
    let ours = compare::to_f64(DType::F32, outputs);
    let theirs = compare::to_f64(DType::F32, &bytes(&floats(network.expected)[..images * CLASSES]));
    assert_eq!(ours.len(), theirs.len(), "{} on {place}", network.name);
    let (mut right, mut right_in_pytorch) = (0, 0);
    for (image, label) in labels()[..images].iter().enumerate() {
        let (a, b) = (
            &ours[image * CLASSES..][..CLASSES],
            &theirs[image * CLASSES..][..CLASSES],
        );
        let error = compare::relative_f64(a, b);
        assert!(
            error <= 1e-5,
            "{} on {place}: image {image} differs by {error:e}",
            network.name
        );
        assert_eq!(largest(a), largest(b), "{} on {place}: image {image}", network.name);
        right += usize::from(largest(a) as i64 == *label);
        right_in_pytorch += usize::from(largest(b) as i64 == *label);
    }
    assert_eq!(right, right_in_pytorch);
    if images == IMAGES {
        assert_eq!(right, network.right, "{} on {place}", network.name);
    }
    oracle::compared("PyTorch", images, 8);
}

#[test]
fn the_whole_held_out_set_on_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let images = bytes(&floats("test_images.npy"));
    let runs: Vec<_> = images.chunks(IMAGE_BYTES).map(|image| vec![image.to_vec()]).collect();
    assert_eq!(runs.len(), IMAGES);
    for network in &NETWORKS {
        let file = packed(network.name, folder.path());
        let outputs = model::run(&file.load().expect("loads"), &runs, false, &mut |_, _, _| {}).expect("runs");
        check(network, &outputs.concat().concat(), IMAGES, "host");
    }
}

fn on_board(network: &Network, board: &'static Board, images: usize, folder: &Path) {
    if let Err(reason) = board::ready(board) {
        arenite_tests::skip(&format!("{} on {}", network.name, board.name), &reason.to_string());
        return;
    }
    let file = packed(network.name, folder);
    let inputs = &bytes(&floats("test_images.npy"))[..images * IMAGE_BYTES];
    let options = RunOptions {
        runs: images as u32,
        timeout: Duration::from_secs(600),
        ..RunOptions::default()
    };
    let report = board::run(board, Blob::File(file.path()), inputs, &options).unwrap_or_else(|e| panic!("{e}"));
    check(network, &report.outputs, images, board.name);
    assert!(report.arena_touched_bytes <= report.arena_bytes);
}

#[test]
fn the_whole_held_out_set_on_the_m4f() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = Board::find("mps2-an386").expect("a known board");
    on_board(&NETWORKS[0], board, IMAGES, folder.path());
}

#[test]
fn every_network_on_every_board() {
    let folder = tempfile::tempdir().expect("a folder");
    for board in boards_by_turns("every_network_on_every_board", &BOARDS) {
        for network in &NETWORKS {
            on_board(network, board, 8, folder.path());
        }
    }
}

#[test]
fn every_plan_is_proven_and_keeps_its_overhead() {
    let folder = tempfile::tempdir().expect("a folder");
    for network in &NETWORKS {
        let file = packed(network.name, folder.path());
        let view = file.view().expect("loads");
        let proof = prove::prove(&view).unwrap_or_else(|e| panic!("{}: {e}", network.name));
        let summary = view.summary().expect("a summary");
        assert!(proof.reads >= summary.steps && proof.arena_touched <= summary.arena_bytes);
        let weights: u64 = 4 * summary.params;
        assert!(
            summary.model_bytes < weights + 16 * 1024,
            "{}: {} bytes for {weights} of weights",
            network.name,
            summary.model_bytes
        );
        assert!(
            summary.arena_bytes <= summary.liveness_as_traced_bytes,
            "{}",
            network.name
        );
    }
}

#[test]
fn packing_is_reproducible_and_in_place_changes_no_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let (a, b, c) = (
        folder.path().join("a"),
        folder.path().join("b"),
        folder.path().join("c"),
    );
    for network in &NETWORKS {
        for path in [&a, &b] {
            pack(&digits_options(network.name, path), &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(
            std::fs::read(&a).unwrap(),
            std::fs::read(&b).unwrap(),
            "{}",
            network.name
        );
        let mut separate = digits_options(network.name, &c);
        separate.in_place = false;
        pack(&separate, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
        let images = bytes(&floats("test_images.npy")[..8 * 64]);
        let runs: Vec<_> = images.chunks(IMAGE_BYTES).map(|image| vec![image.to_vec()]).collect();
        let run = |path: &Path| {
            let file = ModelFile::open(path).expect("just written");
            let model = file.load().expect("loads");
            model::run(&model, &runs, false, &mut |_, _, _| {}).expect("runs")
        };
        assert_eq!(run(&a), run(&c), "{}", network.name);
    }
}
