//! Imported ONNX models against ONNX Runtime: small networks of every operator, and real ones on the host and on a board.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::Target;
use arenite_host::ErrorKind;
use arenite_host::board::{self, Blob, Board, RunOptions};
use arenite_host::import::onnx::{classic, contributed, operators, qonnx};
use arenite_host::import::{ImportOptions, import};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::pack;
use arenite_tests::golden::{Archive, options, packed};
use arenite_tests::onnx::{Outcome, cases, run_case, run_packed};
use arenite_tests::{shared, skip};

/// Real models, their parameters and multiply-accumulates.
const MODELS: [(&str, u64, u64); 3] = [
    ("burn_mnist", 376_802, 2_756_960),
    ("onnx2c_atmega_mnist", 3_750, 33_020),
    ("st_yamnet_256_64x96_tl", 134_730, 23_902_720),
];

const BOARD: (&str, Target) = ("mps2-an386", Target::CortexM4);

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/onnx")
}

#[test]
fn small_networks_are_what_onnx_runtime_makes_of_them() {
    let scratch = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let names = cases(&committed());
    for name in &names {
        let steps = if name.ends_with("_quantised") { 1.0 } else { 0.0 };
        for target in [Target::Portable, Target::CortexM4] {
            let outcome = run_case(&committed().join(name), scratch.path(), target, steps);
            if outcome != Outcome::Passed {
                wrong.push(format!("{name}, {}: {outcome:?}", target.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names.len() >= 90, "{}", names.len());
}

/// Networks of `make_onnx_mixed.py`: f32 steps in front of roundings, and transposed convolutions with strides, groups, dilations and output paddings.
fn mixed() -> PathBuf {
    committed().with_file_name("onnx_mixed")
}

/// Dead channels go from such networks, or none is there to go: neither is a reason to refuse one, for any target. Each target has every fourth network.
#[test]
fn networks_partly_in_f32_are_packed_for_every_target_and_right() {
    let scratch = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    let (mut packed, mut ran, mut lost) = (0, 0, 0);
    let names = cases(&mixed());
    for (index, name) in names.iter().enumerate() {
        let case = mixed().join(name);
        let targets = Target::ALL.into_iter().enumerate();
        for (_, target) in targets.filter(|(at, _)| (index / 4 + at) % 4 == 0) {
            let options = options(&case.join("model.onnx"), scratch.path(), target);
            let summary = match pack(&options, &mut |_, _, _| {}) {
                Ok(packed) => packed.summary,
                Err(error) => {
                    wrong.push(format!("{name}, {}: {error}", target.name()));
                    continue;
                }
            };
            packed += 1;
            lost += usize::from(summary.dead_channels.is_some_and(|removed| removed.channels > 0));
            let file = ModelFile::open(&options.output).expect("a file");
            match file.load().map(drop) {
                // No kernels of this target on this host.
                Err(error) if error.kind() == ErrorKind::Unsupported => continue,
                loaded => loaded.unwrap_or_else(|e| panic!("{name}: {e}")),
            }
            let outcome = run_packed(&case, &file, 1.0);
            ran += 1;
            if outcome != Outcome::Passed {
                wrong.push(format!("{name}, {}: {outcome:?}", target.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        names.len() >= 48 && 2 * ran > packed && 10 * lost > packed,
        "{ran} ran and {lost} lost channels of {packed}"
    );
}

#[test]
fn networks_that_were_refused_for_channels_are_packed() {
    let test = "networks_that_were_refused_for_channels_are_packed";
    let Some(defects) = shared().map(|s| s.join("data/defects")) else {
        return skip(test, "no shared data");
    };
    let scratch = tempfile::tempdir().unwrap();
    for (name, input) in [
        ("qdq_convtranspose_stride2", "in_x"),
        ("deadchannels_clip6", "in_0"),
        ("deadchannels_min", "in_0"),
    ] {
        let mut archive = Archive::open(&defects.join(name).with_extension("npz"));
        let (inputs, expected) = (archive.runs(input).0, archive.runs("out_0").0);
        let run_of = |parts: &[Vec<u8>]| vec![vec![parts.concat()]];
        let expected = f32s(&expected.concat());
        for target in Target::ALL {
            let what = format!("{name} for {}", target.name());
            let path = defects.join(name).with_extension("onnx");
            let file = packed(&path, scratch.path(), target).unwrap_or_else(|e| panic!("{what}: {e}"));
            let Ok(model) = file.load() else { continue };
            let found = run(&model, &run_of(&inputs), true, &mut |_, _, _| {}).expect("it runs");
            let found = f32s(&found[0][0]);
            assert_eq!(found.len(), expected.len(), "{what}");
            // Results are multiples of a step, or of the product of two.
            let mut sorted = expected.clone();
            sorted.sort_by(f32::total_cmp);
            let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
            let step = steps.filter(|&step| step > 1e-4).fold(f32::MAX, f32::min);
            let error = found
                .iter()
                .zip(&expected)
                .fold(0f32, |most, (a, b)| most.max((a - b).abs()));
            assert!(error <= 1.01 * step, "{what}: {error}, a step is {step}");
        }
    }
}

/// Networks between QuantizeLinear and DequantizeLinear, and what of them computes in f32.
const IN_PAIRS: [(&str, &[&str]); 9] = [
    ("qdq_conv_quantised", &[]),
    ("qdq_residual_quantised", &[]),
    ("qdq_1d_quantised", &[]),
    ("qdq_joined_quantised", &[]),
    ("qdq_bytes_in_and_out_quantised", &[]),
    ("qdq_shared_result_quantised", &[]),
    ("qlinear_chain_quantised", &[]),
    // Its weights have a zero point.
    ("qlinear_conv_quantised", &["t1"]),
    // A mean that counts padding unevenly is a sum and a quotient.
    ("qoperators_quantised", &["t8"]),
];

#[test]
fn between_conversions_operators_compute_on_int8() {
    let scratch = tempfile::tempdir().unwrap();
    for (name, in_f32) in IN_PAIRS {
        let path = committed().join(name).join("model.onnx");
        let options = options(&path, scratch.path(), Target::CortexM4);
        let packed = pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
        let note = packed.warnings.join("\n");
        assert_eq!(note.is_empty(), in_f32.is_empty(), "{name}: {note}");
        assert!(
            in_f32.iter().all(|op| note.contains(&format!("`{op}`"))),
            "{name}: {note}"
        );
        let real = packed.summary.ops_final.contains_key("dequantize");
        assert_eq!(real, !in_f32.is_empty(), "{name}: {:?}", packed.summary.ops_final);
    }
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

fn near(what: &str, got: &[u8], expected: &[u8]) {
    let (got, expected) = (f32s(got), f32s(expected));
    assert_eq!(got.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0f32, |a, b| a.max(b.abs()));
    let error = got.iter().zip(&expected).fold(0f32, |a, (x, y)| a.max((x - y).abs()));
    assert!(error <= 1e-5 * largest, "{what}: {error} of {largest}");
}

#[test]
fn real_models_are_what_onnx_runtime_makes_of_them_on_host_and_board() {
    let Some(models) = shared().map(|s| s.join("data/models")) else {
        return skip("real_models_are_what_onnx_runtime_makes_of_them", "no shared data");
    };
    let scratch = tempfile::tempdir().unwrap();
    for (name, ..) in MODELS {
        let path = models.join(name).with_extension("onnx");
        let mut archive = Archive::open(&models.join("golden").join(name).with_extension("npz"));
        let (inputs, expected) = (archive.runs("in_rand_0").0, archive.runs("out_rand_ort_0").0);
        for target in [Target::Portable, BOARD.1, Target::CortexM55] {
            let file = packed(&path, scratch.path(), target).unwrap_or_else(|e| panic!("{e}"));
            let runs: Vec<_> = inputs.iter().map(|input| vec![input.clone()]).collect();
            let results = run(&file.load().expect("it loads"), &runs, true, &mut |_, _, _| {}).expect("it runs");
            for (result, expected) in results.iter().zip(&expected) {
                near(&format!("{name} for {}", target.name()), &result[0], expected);
            }
        }
        let board = Board::find(BOARD.0).expect("a board");
        if let Err(reason) = board::ready(board) {
            skip(&format!("{name} on {}", board.name), &reason.to_string());
            continue;
        }
        let file = packed(&path, scratch.path(), BOARD.1).unwrap_or_else(|e| panic!("{e}"));
        let options = RunOptions {
            runs: 1,
            timeout: Duration::from_secs(600),
            ..RunOptions::default()
        };
        let report = board::run(board, Blob::File(file.path()), &inputs[0], &options).unwrap_or_else(|e| panic!("{e}"));
        near(&format!("{name} on {}", board.name), &report.outputs, &expected[0]);
    }
}

#[test]
fn facts_of_real_models_are_the_files_own() {
    let Some(models) = shared().map(|s| s.join("data/models")) else {
        return skip("facts_of_real_models_are_the_files_own", "no shared data");
    };
    for (name, params, macs) in MODELS {
        let path = models.join(name).with_extension("onnx");
        let (dialect, imported) = import(&path, None, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let graph = &imported.graph;
        let found = (
            arenite_host::graph::facts::params(graph),
            arenite_host::graph::facts::macs_per_element(graph),
        );
        assert_eq!((dialect, found), ("onnx", (params, macs)), "{name}");
    }
    let (_, imported) = import(&models.join("burn_mnist.onnx"), None, &ImportOptions::default()).unwrap();
    let ops = arenite_host::graph::facts::operators(&imported.graph);
    let ops: Vec<(&str, usize)> = ops.iter().map(|(op, n)| (op.as_str(), *n)).collect();
    assert_eq!(
        ops,
        [("Conv", 3), ("Flatten", 1), ("Gemm", 2), ("LogSoftmax", 1), ("Relu", 4)]
    );
}

/// Every operator of the table stands in a committed network, but those that only ONNX's own suite has.
#[test]
fn every_operator_is_documented_with_its_versions() {
    let mut lines = "| operator | versions | limits |\n| --- | --- | --- |\n".to_string();
    let own = operators().map(|(op, versions, limits)| (op.to_string(), versions, limits));
    let contributed = contributed().map(|(op, versions, limits)| (format!("com.microsoft.{op}"), versions, limits));
    let classic = classic().map(|(op, versions, limits)| (format!("ai.onnx.ml.{op}"), versions, limits));
    let qonnx = qonnx().map(|(op, versions, limits)| (format!("qonnx.custom_op.general.{op}"), versions, limits));
    for (op, versions, limits) in own.chain(contributed).chain(classic).chain(qonnx) {
        let versions: Vec<String> = versions.iter().map(ToString::to_string).collect();
        lines += &format!("| {op} | {} | {limits} |\n", versions.join(", "));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/onnx.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let from = "<!-- operators: generated -->\n";
    let start = text.find(from).expect("a start marker") + from.len();
    let end = start + text[start..].find("<!-- end -->").expect("an end marker");
    let made = format!("{}{lines}{}", &text[..start], &text[end..]);
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(
        text == made,
        "ARENITE_BLESS=1 cargo test -p arenite-tests --test host onnx_run:: writes docs/onnx.md"
    );
}
