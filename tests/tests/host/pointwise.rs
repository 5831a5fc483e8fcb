//! The rows of the pointwise operators: what is generated from them is as tracked, and the runtime computes what the named oracles do.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use arenite::ops::binary::{BinaryNames, BinaryOp, SpecialBinaryOp};
use arenite::ops::pointwise::{Aten, Function, Names, Tflite};
use arenite_host::board::{self, Blob, RunOptions};
use arenite_host::model::{self, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_tests::skip;
use safetensors::SafeTensors;
use serde_json::{Value, json};

/// Against f64: the runtime's functions are within 3 units in the last place (libm), their arguments are rounded to f32 once more (an exponent of 25
/// makes 1.5e-6 of that).
const RELATIVE: f64 = 1e-5;
/// Where PyTorch's own formula cancels in f64 (`1 + tanh`), its value has no more digits than this.
const ABSOLUTE: f64 = 1e-14;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn traced() -> Vec<(&'static str, &'static Names)> {
    Function::rows()
        .filter_map(|(_, names)| Some((names.trace?, names)))
        .collect()
}

/// Those of every version, then those of version 3.
fn binary() -> [Vec<(&'static str, &'static BinaryNames)>; 2] {
    let stated = |names: &'static BinaryNames| Some((names.trace?, names));
    [
        BinaryOp::ROWS.iter().filter_map(|(_, names)| stated(names)).collect(),
        SpecialBinaryOp::ROWS
            .iter()
            .filter_map(|(_, names)| stated(names))
            .collect(),
    ]
}

/// Operators of TensorFlow Lite, of one operand and of two.
fn tflite() -> impl Iterator<Item = Tflite> {
    let unary = Function::rows().filter_map(|(_, names)| names.tflite);
    unary.chain(BinaryOp::ROWS.iter().filter_map(|(_, names)| names.tflite))
}

/// Compares a tracked text with what the rows make of it, or writes it with `ARENITE_BLESS=1`.
fn same(path: &str, made: impl FnOnce(&str) -> String) {
    let file = root().join(path);
    let tracked = fs::read_to_string(&file).unwrap_or_default();
    let made = made(&tracked);
    if std::env::var_os("ARENITE_BLESS").is_some() {
        fs::write(&file, made).unwrap_or_else(|e| panic!("{path}: {e}"));
        return;
    }
    assert_eq!(
        tracked, made,
        "{path} is generated: ARENITE_BLESS=1 cargo test -p arenite-tests --test host pointwise::"
    );
}

/// Replaces what lies between the markers of a document.
fn between_markers(text: &str, what: &str, lines: &str) -> String {
    let (from, to) = (format!("<!-- {what}: generated -->\n"), "<!-- end -->");
    let start = text.find(&from).expect("a start marker") + from.len();
    let end = start + text[start..].find(to).expect("an end marker");
    format!("{}{lines}{}", &text[..start], &text[end..])
}

#[test]
fn what_is_generated_from_the_rows_is_as_tracked() {
    same("docs/trace-schema.md", |text| {
        let mut lines = "| op | y |\n| --- | --- |\n".to_owned();
        for (op, names) in traced() {
            let formula = names.formula.replace('|', "\\|");
            let _ = writeln!(lines, "| `{op}` | {formula} |");
        }
        let text = between_markers(text, "pointwise", &lines);
        let [plain, special] = binary().map(|rows| {
            let mut lines = "| op | y |\n| --- | --- |\n".to_owned();
            for (op, names) in rows {
                let _ = writeln!(lines, "| `{op}` | {} |", names.formula);
            }
            lines
        });
        between_markers(&between_markers(&text, "binary", &plain), "special", &special)
    });
    same("docs/operators.md", |text| {
        let mut lines = "| operator | version | types |\n| --- | ---: | --- |\n".to_owned();
        for tflite in tflite() {
            let types: Vec<_> = tflite.types.iter().map(|dtype| dtype.name()).collect();
            let _ = writeln!(lines, "| {} | {} | {} |", tflite.name, tflite.version, types.join(", "));
        }
        between_markers(text, "pointwise", &lines)
    });
    same("tests/reference/pointwise.json", |_| {
        let rows: Vec<Value> = traced()
            .iter()
            .map(|(op, names)| json!({"trace": op, "operands": 1, "oracle": names.oracle}))
            .chain(
                (binary().concat().iter())
                    .map(|(op, names)| json!({"trace": op, "operands": 2, "oracle": names.oracle})),
            )
            .collect();
        format!("{}\n", serde_json::to_string_pretty(&rows).expect("rows are text"))
    });
    same("host-tools/python/arenite_trace/_pointwise.py", |_| {
        let mut text = "\"\"\"Generated from the rows of core/src/ops/pointwise.rs and binary.rs:\n\
            ATen call, its further arguments, operator of trace.json.\"\"\"\n\n\
            from typing import Any\n\nPOINTWISE: tuple[tuple[str, dict[str, Any], str], ...] = (\n"
            .to_owned();
        let row = |text: &mut String, op: &str, aten: Option<Aten>| {
            let Some(aten) = aten else { return };
            let arguments: Vec<_> = aten
                .arguments
                .iter()
                .map(|(name, value)| format!("\"{name}\": {}", value.replace('\'', "\"")))
                .collect();
            let _ = writeln!(text, "    (\"{}\", {{{}}}, \"{op}\"),", aten.name, arguments.join(", "));
        };
        traced().iter().for_each(|(op, names)| row(&mut text, op, names.aten));
        text += ")\n\nBINARY: tuple[tuple[str, dict[str, Any], str], ...] = (\n";
        (binary().concat().iter()).for_each(|(op, names)| row(&mut text, op, names.aten));
        text + ")\n"
    });
}

#[test]
fn names_of_rows_are_names_of_one_row() {
    let all = |pick: fn(&Names) -> Option<String>| {
        let mut seen = Vec::new();
        for (function, names) in Function::rows() {
            let Some(name) = pick(names) else { continue };
            assert!(!seen.contains(&name), "{name} twice, again in {function:?}");
            seen.push(name);
        }
        assert!(seen.len() > 8, "{seen:?}");
    };
    let tflite: Vec<_> = tflite().map(|tflite| tflite.name).collect();
    let ops: Vec<_> = (traced().iter().map(|(op, _)| *op))
        .chain(binary().concat().iter().map(|(op, _)| *op))
        .collect();
    for names in [tflite, ops] {
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
    }
    all(|names| Some(names.name.to_owned()));
    all(|names| names.trace.map(str::to_owned));
    all(|names| names.tflite.map(|tflite| tflite.name.to_owned()));
    all(|names| names.aten.map(|aten| format!("{aten:?}")));
}

/// A network of all operators on one input, an output each: packed, with the values of its input and of the oracles.
struct Network {
    file: ModelFile,
    x: Vec<u8>,
    other: Vec<u8>,
    expected: Vec<(&'static str, Vec<f64>)>,
    _folder: tempfile::TempDir,
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}

fn network() -> Network {
    let values = fs::read(root().join("tests/models/pointwise/values.safetensors")).expect("the oracles' values");
    let values = SafeTensors::deserialize(&values).expect("safetensors");
    let x = values.tensor("x").expect("arguments");
    let shape = json!([1, x.shape()[0]]);
    let tensor = |role: &str| json!({"shape": shape, "dtype": "f32", "role": role});
    let mut tensors = serde_json::Map::new();
    tensors.insert("x".into(), tensor("input"));
    tensors.insert("other".into(), tensor("input"));
    let (mut ops, mut outputs, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    let unary = traced().into_iter().map(|(op, names)| (op, names.oracle, json!(["x"])));
    let both = (binary().concat())
        .into_iter()
        .map(|(op, names)| (op, names.oracle, json!(["x", "other"])));
    for (op, by, inputs) in unary.chain(both) {
        let y = format!("{op}.y");
        tensors.insert(y.clone(), tensor("activation"));
        ops.push(json!({"name": op, "op": op, "inputs": inputs, "outputs": [y], "attrs": {}}));
        outputs.push(y);
        let oracle = values.tensor(op).unwrap_or_else(|_| {
            panic!("no values of {op}: python tests/oracle/make_pointwise.py computes them by {by}")
        });
        let oracle = oracle.data().as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b));
        expected.push((op, oracle.collect()));
    }
    let trace = json!({
        "arenite_trace": 3, "name": "pointwise", "inputs": ["x", "other"], "outputs": outputs, "tensors": tensors, "ops": ops,
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, output) = (
        folder.path().join("pointwise.trace.json"),
        folder.path().join("pointwise.bin"),
    );
    fs::write(&input, trace.to_string()).expect("a trace");
    pack(&Options::new(input, &output), &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"));
    Network {
        file: ModelFile::open(&output).unwrap_or_else(|e| panic!("{e}")),
        x: x.data().to_vec(),
        other: values.tensor("other").expect("second arguments").data().to_vec(),
        expected,
        _folder: folder,
    }
}

#[test]
fn every_function_is_the_named_oracles_on_the_host() {
    let network = network();
    let model = network.file.load().unwrap_or_else(|e| panic!("{e}"));
    let outputs = model::run(
        &model,
        &[vec![network.x.clone(), network.other.clone()]],
        true,
        &mut |_, _, _| {},
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let x = floats(&network.x);
    for (bytes, (op, expected)) in outputs[0].iter().zip(&network.expected) {
        let got = floats(bytes);
        assert_eq!(got.len(), expected.len(), "{op}");
        for ((x, &got), &expected) in x.iter().zip(&got).zip(expected) {
            let got = f64::from(got);
            let close = (got - expected).abs() <= RELATIVE * expected.abs() + ABSOLUTE;
            // Beyond the largest f32 the result is infinite.
            assert!(
                close || got == f64::from(expected as f32) || (got.is_nan() && expected.is_nan()),
                "{op}({x}) is {got}, not {expected}"
            );
        }
    }
}

#[test]
fn every_function_has_the_hosts_bits_on_a_board() {
    let test = "every_function_has_the_hosts_bits_on_a_board";
    let m4f = board::BOARDS
        .iter()
        .find(|board| board.name == "mps2-an386")
        .expect("a row");
    if let Err(reason) = board::ready(m4f) {
        return skip(test, &reason.to_string());
    }
    let network = network();
    let model = network.file.load().unwrap_or_else(|e| panic!("{e}"));
    let host = model::run(
        &model,
        &[vec![network.x.clone(), network.other.clone()]],
        true,
        &mut |_, _, _| {},
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let report = board::run(
        m4f,
        Blob::Bytes(network.file.bytes()),
        &[network.x.clone(), network.other.clone()].concat(),
        &RunOptions::default(),
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let (x, board, host) = (floats(&network.x), floats(&report.outputs), floats(&host[0].concat()));
    assert_eq!(board.len(), host.len());
    for (i, (board, host)) in board.iter().zip(&host).enumerate() {
        // Which NaN an invalid operation gives is the processor's choice.
        let same = board.to_bits() == host.to_bits() || (board.is_nan() && host.is_nan());
        assert!(
            same,
            "{}({}): {board} and {host}",
            network.expected[i / x.len()].0,
            x[i % x.len()]
        );
    }
}
