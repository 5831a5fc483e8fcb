//! The native dialect: traced networks of `tests/models`, and what the schema refuses.

use std::path::{Path, PathBuf};

use arenite_host::graph::facts;
use arenite_host::import::{ImportOptions, Imported, import};
use arenite_host::weights::Weights;
use arenite_host::{Error, ErrorKind};

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits")
}

fn read(path: &Path, batch: usize) -> Result<Imported, Error> {
    let options = ImportOptions {
        batch,
        ..ImportOptions::default()
    };
    import(path, None, &options).map(|(dialect, imported)| {
        assert_eq!(dialect, "native");
        imported
    })
}

/// Imports a trace given as text, without sidecars.
fn text(trace: &str) -> Result<Imported, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.trace.json");
    std::fs::write(&path, trace).unwrap();
    read(&path, 1)
}

#[test]
fn digit_networks_import_with_weights_and_samples() {
    for name in ["digits", "mlp", "residual"] {
        let imported = read(&models().join(format!("{name}.trace.json")), 1).unwrap();
        let samples = imported.samples.unwrap();
        assert_eq!(samples.runs.len(), 8);
        assert_eq!(samples.runs[7].inputs[0].1.len(), 64 * 4);
        let weights = Weights::file(&imported.weights.unwrap(), &imported.graph).unwrap();
        assert!(weights.unused(&imported.graph).is_empty());
        let mut count = 0;
        for (key, shape) in arenite_host::weights::params(&imported.graph) {
            let (key, shape) = (key.to_string(), shape.to_vec());
            let expr = arenite_host::graph::Expr::Param { key, shape };
            count += weights.evaluate(&expr).unwrap().len();
        }
        assert_eq!(count as u64, facts::params(&imported.graph), "{name}");
    }
}

#[test]
fn another_batch_drops_the_samples_and_says_so() {
    let imported = read(&models().join("digits.trace.json"), 3).unwrap();
    assert_eq!(imported.graph.tensor(imported.graph.inputs[0]).shape[0], 3);
    assert_eq!(imported.graph.tensor(imported.graph.outputs[0]).shape[0], 3);
    assert!(imported.samples.is_none() && imported.warnings.len() == 1);
}

const SMALL: &str = r#"{"arenite_trace": 1, "name": "small", "inputs": ["x"], "outputs": ["y"],
 "tensors": {
  "x": {"shape": [1, 4], "dtype": "f32", "role": "input"},
  "w": {"shape": [2, 4], "dtype": "f32", "role": "parameter"},
  "h": {"shape": [1, 2], "dtype": "f32", "role": "activation"},
  "y": {"shape": [1, 2], "dtype": "f32", "role": "activation"}},
 "ops": [
  {"name": "fc", "op": "linear", "inputs": ["x", "w"], "outputs": ["h"]},
  {"name": "act", "op": "leaky_relu", "inputs": ["h"], "outputs": ["y"], "attrs": {"negative_slope": 0.1}}]}"#;

#[test]
fn what_the_schema_does_not_define_is_refused_by_name_and_place() {
    assert!(text(SMALL).is_ok());
    let cases = [
        ("\"name\": \"small\"", "\"nmae\": \"small\"", "`nmae`"),
        ("\"arenite_trace\": 1", "\"arenite_trace\": 2", "version 2"),
        ("\"negative_slope\": 0.1", "\"slope\": 0.1", "`slope`"),
        ("\"negative_slope\": 0.1", "\"negative_slope\": NaN", "line 9"),
        ("\"negative_slope\": 0.1", "\"negative_slope\": 1e999", "line 9"),
        ("\"op\": \"linear\"", "\"op\": \"liner\"", "`liner`"),
        ("[2, 4]", "[2, 5]", "fc"),
        ("\"h\": {\"shape\": [1, 2]", "\"h\": {\"shape\": [1, 3]", "[1, 2]"),
        (
            "\"inputs\": [\"x\", \"w\"]",
            "\"inputs\": [\"y\", \"w\"]",
            "before any operator writes it",
        ),
        ("\"inputs\": [\"x\", \"w\"]", "\"inputs\": [\"x\", \"v\"]", "`v`"),
        (
            "\"outputs\": [\"y\"], \"attrs\"",
            "\"outputs\": [\"h\"], \"attrs\"",
            "`h`",
        ),
        ("\"role\": \"parameter\"", "\"role\": \"weight\"", "role `weight`"),
        (
            "\"x\": {",
            "\"w\": {\"shape\": [1], \"dtype\": \"f32\", \"role\": \"input\"}, \"x\": {",
            "twice",
        ),
    ];
    for (from, to, said) in cases {
        let broken = SMALL.replacen(from, to, 1);
        assert_ne!(broken, SMALL, "{from}");
        let error = text(&broken).expect_err(to).to_string();
        assert!(error.contains(said) && error.contains("x.trace.json"), "{to}: {error}");
        assert!(error.contains("line ") || error.contains("fc"), "{to}: {error}");
    }
}

#[test]
fn missing_weights_are_named() {
    let imported = text(SMALL).unwrap();
    let error = Weights::nothing(&imported.graph).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Weights);
    assert!(
        error.to_string().contains("`w`") && error.to_string().contains("seeded"),
        "{error}"
    );
}
