//! Choices by constants and under masks that are infinite, as ONNX has them.

use arenite_host::model::ModelFile;
use arenite_host::pack::pack;
use arenite_host::quantize::Activations;
use arenite_tests::onnx::Writer;
use arenite_tests::oracle;
use arenite_tests::writers::Random;
use ndarray::{ArrayD, IxDyn};

use crate::quantise::network::{answers, calibrated_to};

/// Rows.
const ROWS: usize = 5;

/// The softmax of int16 goes by a table of powers that ends at -10: e^-10, and a step.
const LEAST_SHARE: f64 = 1e-4;

/// Numbers of a row.
const LONG: usize = 7;

/// Results of the softmax of each row of scores, with `fill` at the places that are taken.
fn shares(x: &[f32], taken: &[bool], fill: f32) -> Vec<f64> {
    let score = |row: usize, column: usize| {
        let of = |row: usize| &x[row * LONG..][..LONG];
        of(row)
            .iter()
            .zip(of(column))
            .map(|(a, b)| f64::from(a * b))
            .sum::<f64>()
    };
    let line = |row: usize| {
        let filled = |column: usize| {
            if taken[row * ROWS + column] {
                f64::from(fill)
            } else {
                score(row, column)
            }
        };
        let line: Vec<f64> = (0..ROWS).map(filled).collect();
        let largest = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = line.into_iter().map(|value| f64::exp(value - largest)).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(move |power| power / sum)
    };
    (0..ROWS).flat_map(line).collect()
}

/// `last(Where(taken, fill, x · xᵀ))`
fn model(last: &str, taken: &[bool], fill: f32) -> Vec<u8> {
    let extents = [1, ROWS as i64, LONG as i64];
    let constant = |name: &str, kind: u64, dims: &[i64], data: &[u8]| {
        let mut tensor = Writer::default();
        for &dim in dims {
            tensor = tensor.int(1, dim);
        }
        tensor
            .int(2, kind as i64)
            .bytes(8, name.as_bytes())
            .bytes(9, data)
            .done()
    };
    let bools: Vec<u8> = taken.iter().map(|&taken| u8::from(taken)).collect();
    let permutation = Writer::default()
        .bytes(1, b"perm")
        .int(8, 0)
        .int(8, 2)
        .int(8, 1)
        .int(20, 7)
        .done();
    let nodes = [
        Writer::node("Transpose", &["x"], "t").bytes(5, &permutation).done(),
        Writer::node("MatMul", &["x", "t"], "s").done(),
        Writer::node("Where", &["taken", "fill", "s"], "m").done(),
        Writer::node(last, &["m"], "y").done(),
    ];
    let square = [ROWS as i64, ROWS as i64];
    let mut graph = Writer::default();
    for node in &nodes {
        graph = graph.bytes(1, node);
    }
    let graph = graph
        .bytes(2, b"choices")
        .bytes(5, &constant("taken", 9, &square, &bools))
        .bytes(5, &constant("fill", 1, &[], &fill.to_le_bytes()))
        .bytes(11, &Writer::value("x", &extents))
        .bytes(12, &Writer::value("y", &[1, square[0], square[1]]))
        .done();
    Writer::model(&graph, 17)
}

#[test]
fn places_that_a_mask_takes_have_no_share_and_others_keep_their_range() {
    let mut random = Random::new(9);
    // Each row keeps itself.
    let taken: Vec<bool> = (0..ROWS * ROWS)
        .map(|at| at % (ROWS + 1) != 0 && random.below(3) == 0)
        .collect();
    assert!(taken.contains(&true));
    let mut sample = || {
        let values = (0..ROWS * LONG)
            .map(|_| random.below(2001) as f32 / 1000.0 - 1.0)
            .collect();
        ArrayD::from_shape_vec(IxDyn(&[1, ROWS, LONG]), values).expect("as many values")
    };
    let (samples, judged): (Vec<_>, Vec<_>) = ((0..48).map(|_| sample()).collect(), (0..8).map(|_| sample()).collect());
    let mut compared = 0;
    for fill in [f32::NEG_INFINITY, f32::MIN, -1e4, -2.5] {
        for (activations, farthest) in [(Activations::Int8, 0.02), (Activations::Int16, 0.004)] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("choices.onnx");
            std::fs::write(&path, model("Softmax", &taken, fill)).expect("written");
            let options = calibrated_to(activations, &path, folder.path(), &samples, &[]);
            pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{fill} {activations:?}: {e}"));
            let file = ModelFile::open(&options.output).expect("just written");
            for (x, found) in judged.iter().zip(answers(&file, &judged)) {
                let x: Vec<f32> = x.iter().copied().collect();
                for (at, (expected, found)) in shares(&x, &taken, fill).into_iter().zip(found).enumerate() {
                    let far = (expected - found).abs();
                    assert!(
                        far <= farthest,
                        "{fill} {activations:?} at {at}: {found} for {expected}"
                    );
                    assert!(
                        fill > -100.0 || !taken[at] || found <= LEAST_SHARE,
                        "{fill}: {found} at {at}"
                    );
                    compared += 1;
                }
            }
        }
    }
    oracle::compared("a softmax in f64", compared, 1600);
}

/// Scores that no softmax reads have no infinities: those are refused by name, and no number stands for them.
#[test]
fn infinities_elsewhere_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("choices.onnx");
    let taken: Vec<bool> = (0..ROWS * ROWS).map(|at| at % 3 == 1).collect();
    std::fs::write(&path, model("Sigmoid", &taken, f32::NEG_INFINITY)).expect("written");
    let samples = [ArrayD::from_elem(IxDyn(&[1, ROWS, LONG]), 0.5)];
    let options = calibrated_to(Activations::Int8, &path, folder.path(), &samples, &[]);
    let error = pack(&options, &mut |_, _, _| {}).map(|_| ()).expect_err("an infinity");
    let error = error.to_string();
    assert!(error.contains("-inf") && error.contains("finite values"), "{error}");
    assert!(!options.output.exists());
}
