//! Classifiers as scikit-learn's exporter writes them: their scores, by plain formulas.

use std::path::Path;

use arenite_host::import::ImportOptions;
use arenite_host::import::onnx::import;
use arenite_tests::onnx::Writer;

use super::onnx_file::{File, computed, floats, imported, int, ints, stored, value};

const X: [f32; 3] = [0.5, -1.5, 2.0];
const COEFFICIENTS: [f32; 9] = [1.0, 0.5, -0.25, -1.0, 0.75, 0.5, 0.0, -2.0, 1.5];
const INTERCEPTS: [f32; 3] = [0.1, -0.2, 0.3];

fn reals(name: &str, values: &[f32]) -> Vec<u8> {
    let mut list = Writer::default().bytes(1, name.as_bytes()).done();
    for value in values {
        list.push(7 << 3 | 5);
        list.extend(value.to_le_bytes());
    }
    list.extend(Writer::default().int(20, 6).done());
    list
}

fn text(name: &str, value: &str) -> Vec<u8> {
    let attribute = Writer::default().bytes(1, name.as_bytes()).bytes(4, value.as_bytes());
    attribute.int(20, 3).done()
}

/// A node of `ai.onnx.ml`.
fn node(op: &str, inputs: &[&str], outputs: [&str; 2], attributes: &[Vec<u8>]) -> Vec<u8> {
    let [first, second] = outputs;
    let mut node = Writer::node(op, inputs, first).bytes(7, b"ai.onnx.ml");
    if !second.is_empty() {
        node = node.bytes(2, second.as_bytes());
    }
    attributes.iter().fold(node, |node, a| node.bytes(5, a)).done()
}

fn network() -> File {
    File::default()
        .input(&value("x", 1, &[1, 3]))
        .output(&value("label", 7, &[1]))
        .output(&Writer::default().bytes(1, b"probabilities").done())
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

fn linear(x: &[f32]) -> Vec<f64> {
    let score = |c: usize| {
        let terms = x
            .iter()
            .enumerate()
            .map(|(i, &x)| f64::from(x) * f64::from(COEFFICIENTS[c * 3 + i]));
        terms.sum::<f64>() + f64::from(INTERCEPTS[c])
    };
    (0..3).map(score).collect()
}

fn close(y: &[f32], right: &[f64]) {
    let near = y
        .iter()
        .zip(right)
        .all(|(y, right)| (f64::from(*y) - right).abs() < 1e-6);
    assert!(y.len() == right.len() && near, "{y:?}, expected {right:?}");
}

/// A scaled logistic regression, one class against all others: ZipMap and label are cut, and said.
#[test]
fn a_logistic_regression() {
    let (offset, scale) = ([0.25, 0.5, -1.0], [2.0, 1.0, 0.5]);
    let attributes = [
        reals("coefficients", &COEFFICIENTS),
        reals("intercepts", &INTERCEPTS),
        ints("classlabels_ints", &[0, 1, 2]),
        text("post_transform", "LOGISTIC"),
        int("multi_class", 1),
    ];
    let file = network()
        .raw(&node(
            "Scaler",
            &["x"],
            ["scaled", ""],
            &[reals("offset", &offset), reals("scale", &scale)],
        ))
        .raw(&node("LinearClassifier", &["scaled"], ["found", "raw"], &attributes))
        .raw(&node("Normalizer", &["raw"], ["scores", ""], &[text("norm", "L1")]))
        .node("Cast", &["found"], "label", &[int("to", 7)])
        .raw(&node("ZipMap", &["scores"], ["probabilities", ""], &[]));
    let bytes = file.bytes(17);
    let y = computed(&bytes, &stored(&X)).expect("it packs");
    let scaled: Vec<f32> = (0..3).map(|i| (X[i] - offset[i]) * scale[i]).collect();
    let each: Vec<f64> = linear(&scaled).iter().map(|s| 1.0 / (1.0 + (-s).exp())).collect();
    let sum: f64 = each.iter().sum();
    close(&numbers(&y), &each.iter().map(|p| p / sum).collect::<Vec<_>>());
    let imported = import(Path::new("nowhere/m.onnx"), &bytes, &ImportOptions::default()).expect("it is read");
    for part in [
        "`probabilities` (ZipMap) is cut",
        "the scores `scores`",
        "the output `label` is cut",
    ] {
        assert!(
            imported.warnings.iter().any(|w| w.contains(part)),
            "{:?} lacks {part}",
            imported.warnings
        );
    }
    assert_eq!(imported.graph.outputs.len(), 1);
}

/// A network of layers whose label is chosen of a list.
#[test]
fn a_network_of_layers() {
    let file = network()
        .holding(&floats("w", &[3, 3], &COEFFICIENTS))
        .holding(&floats("b", &[3], &INTERCEPTS))
        .holding(&super::onnx_file::longs("classes", &[7, 8, 9]))
        .node("Gemm", &["x", "w", "b"], "layer", &[int("transB", 1)])
        .node("Softmax", &["layer"], "scores", &[])
        .node("ArgMax", &["scores"], "place", &[int("axis", 1)])
        .raw(&node(
            "ArrayFeatureExtractor",
            &["classes", "place"],
            ["chosen", ""],
            &[],
        ))
        .node("Cast", &["chosen"], "label", &[int("to", 7)])
        .raw(&node("ZipMap", &["scores"], ["probabilities", ""], &[]));
    let y = computed(&file.bytes(17), &stored(&X)).expect("it packs");
    let scores = linear(&X);
    let sum: f64 = scores.iter().map(|s| s.exp()).sum();
    close(&numbers(&y), &scores.iter().map(|s| s.exp() / sum).collect::<Vec<_>>());
}

#[test]
fn rows_of_zeros_stay_and_regressions_are_linear() {
    for (norm, x) in [("L1", [0.0; 3]), ("L2", [0.0; 3]), ("L1", X), ("L2", X)] {
        let file = File::default()
            .input(&value("x", 1, &[1, 3]))
            .output(&value("y", 1, &[1, 3]))
            .raw(&node("Normalizer", &["x"], ["y", ""], &[text("norm", norm)]));
        let y = computed(&file.bytes(17), &stored(&x)).expect(norm);
        let each = x.map(f64::from);
        let size: f64 = match norm {
            "L1" => each.iter().map(|x| x.abs()).sum(),
            _ => each.iter().map(|x| x * x).sum::<f64>().sqrt(),
        };
        close(&numbers(&y), &each.map(|x| if size == 0.0 { x } else { x / size }));
    }
    let attributes = [
        reals("coefficients", &COEFFICIENTS),
        reals("intercepts", &INTERCEPTS),
        int("targets", 3),
    ];
    let file = File::default()
        .input(&value("x", 1, &[1, 3]))
        .output(&value("y", 1, &[1, 3]))
        .raw(&node("LinearRegressor", &["x"], ["y", ""], &attributes));
    close(
        &numbers(&computed(&file.bytes(17), &stored(&X)).expect("it packs")),
        &linear(&X),
    );
}

#[test]
fn what_is_no_network_of_layers_is_refused_by_name() {
    let classifier = |attributes: &[Vec<u8>]| {
        network()
            .raw(&node("LinearClassifier", &["x"], ["label", "raw"], attributes))
            .raw(&node("ZipMap", &["raw"], ["probabilities", ""], &[]))
    };
    let labels = || ints("classlabels_ints", &[0, 1]);
    for (file, wanted) in [
        (
            classifier(&[reals("coefficients", &COEFFICIENTS), labels()]),
            "3 scores of 2 classes",
        ),
        (
            classifier(&[reals("coefficients", &COEFFICIENTS[..4])]),
            "4 coefficients for rows [1, 3]",
        ),
        (
            classifier(&[reals("coefficients", &COEFFICIENTS), text("post_transform", "PROBIT")]),
            "the transform `PROBIT`",
        ),
        (
            classifier(&[
                reals("coefficients", &COEFFICIENTS),
                reals("intercepts", &INTERCEPTS[..2]),
            ]),
            "2 intercepts of 3 scores",
        ),
        (
            File::default()
                .input(&value("x", 1, &[1, 3]))
                .output(&value("y", 1, &[1, 3]))
                .raw(&node("Normalizer", &["x"], ["y", ""], &[])),
            "the norm `MAX`",
        ),
        (
            File::default()
                .input(&value("x", 1, &[1, 3]))
                .output(&value("y", 1, &[1, 3]))
                .raw(&node("Scaler", &["x"], ["y", ""], &[reals("offset", &X[..2])])),
            "2 of `offset` for rows of 3 elements",
        ),
        (
            File::default()
                .input(&value("x", 1, &[1, 3]))
                .output(&value("label", 7, &[1]))
                .raw(&node(
                    "LinearClassifier",
                    &["x"],
                    ["label", "raw"],
                    &[reals("coefficients", &COEFFICIENTS)],
                )),
            "labels of a classifier",
        ),
        (
            network()
                .raw(&node("TreeEnsembleClassifier", &["x"], ["label", "raw"], &[]))
                .raw(&node("ZipMap", &["raw"], ["probabilities", ""], &[])),
            "(TreeEnsembleClassifier)",
        ),
    ] {
        let text = imported(&file.bytes(17), &ImportOptions::default()).expect_err(wanted);
        assert!(text.contains(wanted), "{text} lacks `{wanted}`");
    }
}
