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

/// Operators and shapes of what a network of one operator is imported as.
fn of_one(op: &str, operands: &[&[usize]], attrs: &serde_json::Value, result: &[usize]) -> Result<String, Error> {
    let tensor = |shape: &[usize], role: &str| serde_json::json!({"shape": shape, "dtype": "f32", "role": role});
    let mut tensors = serde_json::Map::new();
    let mut inputs = Vec::new();
    for (index, shape) in operands.iter().enumerate() {
        let name = format!("t{index}");
        tensors.insert(
            name.clone(),
            tensor(shape, if index == 0 { "input" } else { "parameter" }),
        );
        inputs.push(name);
    }
    tensors.insert("y".into(), tensor(result, "activation"));
    let trace = serde_json::json!({"arenite_trace": 1, "name": "one", "inputs": ["t0"], "outputs": ["y"], "tensors": tensors,
        "ops": [{"name": "op", "op": op, "inputs": inputs, "outputs": ["y"], "attrs": attrs}]});
    let graph = text(&trace.to_string())?.graph;
    let nodes = graph.nodes.iter().map(|node| {
        let shapes: Vec<_> = node.outputs.iter().map(|&id| &graph.tensor(id).shape).collect();
        format!("{:?} {shapes:?}", node.op)
    });
    Ok(nodes.collect::<Vec<_>>().join("; "))
}

/// What docs/trace-schema.md states for an attribute that is absent is what it is imported as, and another value is another network.
#[test]
fn an_absent_attribute_has_the_default_of_the_schema() {
    use serde_json::json;
    let (image, filter): (&[usize], &[usize]) = (&[1, 4, 7, 9], &[6, 4, 3, 2]);
    type Shapes<'a> = &'a [&'a [usize]];
    let (one, conv, line): (Shapes<'_>, Shapes<'_>, Shapes<'_>) = (&[image], &[image, filter], &[&[1, 4]]);
    let kernel = json!({"kernel": [2, 3]});
    let padded = json!({"kernel": [2, 3], "padding": [1, 0, 1, 1]});
    let statistics: &[&[usize]] = &[&[1, 3, 3, 5], &[3], &[3], &[3], &[3]];
    type Case<'a> = (
        &'a str,
        &'a [&'a [usize]],
        serde_json::Value,
        &'a str,
        serde_json::Value,
        &'a [usize],
        Option<(serde_json::Value, &'a [usize])>,
    );
    #[rustfmt::skip]
    let cases: Vec<Case<'_>> = vec![
        ("conv2d", conv, json!({}), "strides", json!([1, 1]), &[1, 6, 5, 8], Some((json!([2, 1]), &[1, 6, 3, 8]))),
        ("conv2d", conv, json!({}), "padding", json!([0, 0, 0, 0]), &[1, 6, 5, 8], Some((json!([0, 1, 1, 0]), &[1, 6, 6, 9]))),
        ("conv2d", conv, json!({}), "dilation", json!([1, 1]), &[1, 6, 5, 8], Some((json!([1, 2]), &[1, 6, 5, 7]))),
        ("conv2d", conv, json!({}), "groups", json!(1), &[1, 6, 5, 8], None),
        ("conv2d", conv, json!({}), "layout", json!("NCHW"), &[1, 6, 5, 8], None),
        ("max_pool2d", one, kernel.clone(), "strides", json!([2, 3]), &[1, 4, 3, 3], Some((json!([1, 3]), &[1, 4, 6, 3]))),
        ("max_pool2d", one, kernel.clone(), "padding", json!([0, 0, 0, 0]), &[1, 4, 3, 3], Some((json!([1, 0, 0, 0]), &[1, 4, 4, 3]))),
        ("max_pool2d", one, kernel.clone(), "dilation", json!([1, 1]), &[1, 4, 3, 3], None),
        ("max_pool2d", one, kernel.clone(), "ceil_mode", json!(false), &[1, 4, 3, 3], Some((json!(true), &[1, 4, 4, 3]))),
        ("max_pool2d", one, kernel.clone(), "layout", json!("NCHW"), &[1, 4, 3, 3], Some((json!("NHWC"), &[1, 2, 2, 9]))),
        ("avg_pool2d", one, kernel.clone(), "strides", json!([2, 3]), &[1, 4, 3, 3], Some((json!([1, 3]), &[1, 4, 6, 3]))),
        ("avg_pool2d", one, kernel.clone(), "padding", json!([0, 0, 0, 0]), &[1, 4, 3, 3], Some((json!([1, 0, 0, 0]), &[1, 4, 4, 3]))),
        ("avg_pool2d", one, kernel.clone(), "ceil_mode", json!(false), &[1, 4, 3, 3], Some((json!(true), &[1, 4, 4, 3]))),
        ("avg_pool2d", one, kernel, "layout", json!("NCHW"), &[1, 4, 3, 3], Some((json!("NHWC"), &[1, 2, 2, 9]))),
        ("avg_pool2d", one, padded, "count_include_pad", json!(true), &[1, 4, 4, 3], Some((json!(false), &[1, 4, 4, 3]))),
        ("clamp", one, json!({"max": 3}), "min", json!(null), image, Some((json!(0), image))),
        ("clamp", one, json!({"min": 2}), "max", json!(null), image, Some((json!(6), image))),
        ("leaky_relu", one, json!({}), "negative_slope", json!(0.01), image, Some((json!(0.011), image))),
        ("dropout", one, json!({}), "ratio", json!(0.5), image, None),
        ("batch_norm", statistics, json!({}), "eps", json!(1e-5), &[1, 3, 3, 5], Some((json!(1.1e-5), &[1, 3, 3, 5]))),
        ("batch_norm", statistics, json!({}), "axis", json!(1), &[1, 3, 3, 5], Some((json!(2), &[1, 3, 3, 5]))),
        ("softmax", one, json!({}), "axis", json!(-1), image, Some((json!(1), image))),
        ("log_softmax", one, json!({}), "axis", json!(-1), image, Some((json!(2), image))),
        ("mean", one, json!({"axes": [1]}), "keepdims", json!(false), &[1, 7, 9], Some((json!(true), &[1, 1, 7, 9]))),
        ("max", one, json!({"axes": [-1, 2]}), "keepdims", json!(false), &[1, 4], Some((json!(true), &[1, 4, 1, 1]))),
        ("flatten", one, json!({}), "start_axis", json!(1), &[1, 252], Some((json!(2), &[1, 4, 63]))),
        ("flatten", one, json!({}), "end_axis", json!(-1), &[1, 252], Some((json!(2), &[1, 28, 9]))),
        ("pad", line, json!({"padding": [[0, 0], [1, 2]]}), "value", json!(0.0), &[1, 7], Some((json!(0.5), &[1, 7]))),
        ("slice", one, json!({"axis": 2}), "start", json!(0), image, Some((json!(1), &[1, 4, 6, 9]))),
        ("slice", one, json!({"axis": 2}), "stop", json!(null), image, Some((json!(6), &[1, 4, 6, 9]))),
        ("slice", one, json!({"axis": -1}), "step", json!(1), image, Some((json!(2), &[1, 4, 7, 5]))),
    ];
    for (op, operands, attrs, name, default, result, other) in cases {
        let with = |value: serde_json::Value| {
            let mut attrs = attrs.clone();
            attrs[name] = value;
            attrs
        };
        let absent = of_one(op, operands, &attrs, result).unwrap_or_else(|e| panic!("{op} without {name}: {e}"));
        let stated = of_one(op, operands, &with(default), result).unwrap_or_else(|e| panic!("{op} with {name}: {e}"));
        assert_eq!(absent, stated, "{op} without {name}");
        if let Some((value, result)) = other {
            let other =
                of_one(op, operands, &with(value), result).unwrap_or_else(|e| panic!("{op}, other {name}: {e}"));
            assert_ne!(absent, other, "{op}, other {name}");
        }
    }
}
