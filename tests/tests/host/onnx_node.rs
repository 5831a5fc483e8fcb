//! The node tests of ONNX's own backend suite: what passes, and what is refused with which reason, on record; none is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use arenite::Target;
use arenite_tests::onnx::{Outcome, cases, operators, run_case};
use arenite_tests::{shared, skip};

/// The only reasons for which a node of the suite may be refused.
const REASONS: [&str; 5] = [
    "element type",
    "more than two spatial axes",
    "training mode",
    "dynamic shape",
    "batchwise layout",
];

/// Least number of cases that pass.
const PASSING: usize = 190;

#[test]
fn none_is_wrong_and_what_is_refused_is_on_record() {
    let Some(folder) = shared().map(|s| s.join("data/onnx-node")).filter(|f| f.is_dir()) else {
        return skip("onnx_node", "no shared data");
    };
    let scratch = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    let (mut counts, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for name in cases(&folder) {
        let said = match run_case(&folder.join(&name), scratch.path(), Target::Portable, 0.0) {
            Outcome::Passed => "passed".to_string(),
            Outcome::Refused(text) => match REASONS.iter().find(|reason| text.contains(**reason)) {
                Some(reason) => format!("refused: {reason}"),
                None => {
                    wrong.push(format!("{name}: refused for another reason: {text}"));
                    continue;
                }
            },
            Outcome::Wrong(text) => {
                wrong.push(format!("{name}: {text}"));
                continue;
            }
        };
        writeln!(lines, "{name} {said}").unwrap();
        *counts.entry(said).or_default() += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut text = String::new();
    for (said, count) in &counts {
        writeln!(text, "# {count} {said}").unwrap();
    }
    text += &lines;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/onnx-node.txt");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        known, text,
        "where this is meant: ARENITE_BLESS=1 cargo test -p arenite-tests --test host onnx_node::"
    );
    assert!(counts["passed"] >= PASSING, "{counts:?}");
}

/// Operators that must pass at least once. Those of Einsum are all of double.
const NEEDED: &str = "conv convtranspose gemm matmul lstm gru simple_rnn layer_normalization softmax gelu resize gather slice pad reduce_mean \
                      averagepool maxpool batchnorm qlinearconv qlinearmatmul quantizelinear dequantizelinear less where";

/// Cases whose data contradict the operator's text and ONNX Runtime: `align_corners` with the length that a scale gives before it is rounded down, where the
/// text has the length of the result. Here they are as ONNX Runtime and PyTorch compute them. And an input of no elements: files state 0 for an open batch.
const CONTRADICTED: [&str; 3] = [
    "test_resize_downsample_scales_cubic_align_corners_known",
    "test_resize_downsample_scales_linear_align_corners_known",
    "test_triu_zero_known",
];

/// All node tests of the package `onnx`, as `tests/oracle/make_onnx_nodes.py` writes them.
#[test]
#[ignore = "long: needs the cases that tests/oracle/make_onnx_nodes.py writes into ARENITE_ONNX_NODES"]
fn all_node_tests_of_the_package() {
    let Some(folder) = std::env::var_os("ARENITE_ONNX_NODES").map(std::path::PathBuf::from) else {
        return skip("all_node_tests_of_the_package", "no node tests of the package onnx");
    };
    let scratch = tempfile::tempdir().unwrap();
    let (mut passed, mut refused, mut wrong) = (BTreeSet::new(), BTreeMap::<String, usize>::new(), Vec::new());
    // Passed, refused and wrong, by operator.
    let mut each: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for name in cases(&folder) {
        let outcome = run_case(&folder.join(&name), scratch.path(), Target::Portable, 0.0);
        let kind = match outcome {
            Outcome::Passed => 0,
            Outcome::Refused(_) => 1,
            Outcome::Wrong(_) => 2,
        };
        for op in operators(&std::fs::read(folder.join(&name).join("model.onnx")).unwrap()) {
            each.entry(op).or_default()[kind] += 1;
        }
        match outcome {
            Outcome::Passed => drop(passed.insert(name)),
            Outcome::Refused(text) => {
                let reason = REASONS.iter().find(|reason| text.contains(**reason)).copied();
                *refused
                    .entry(reason.unwrap_or("not supported").to_string())
                    .or_default() += 1;
            }
            Outcome::Wrong(text) => wrong.push(format!("{name}: {text}")),
        }
    }
    println!("{} passed, refused: {refused:?}, {} wrong", passed.len(), wrong.len());
    let mut text = String::from("# Node tests of the package onnx, by operator: passed, refused, wrong\n");
    for (op, [passed, refused, wrong]) in &each {
        writeln!(text, "{op} {passed} {refused} {wrong}").unwrap();
    }
    print!("{text}");
    if std::env::var_os("ARENITE_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/onnx-package.txt");
        std::fs::write(&path, &text).unwrap();
    }
    let contradicted = |text: &String| CONTRADICTED.iter().any(|name| text.starts_with(&format!("{name}: ")));
    let before = wrong.len();
    wrong.retain(|text| !contradicted(text));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        before,
        CONTRADICTED.len(),
        "a case that is otherwise than its data passes"
    );
    let missing = NEEDED
        .split_whitespace()
        .filter(|op| !passed.iter().any(|name| name.contains(op)));
    let missing: Vec<&str> = missing.collect();
    assert!(missing.is_empty(), "no test of {missing:?} passes");
    assert!(passed.len() >= 1_100, "{}", passed.len());
}
