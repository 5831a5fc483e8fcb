//! The native dialect: traced networks of `tests/models`, and what the schema refuses.

use std::path::{Path, PathBuf};

use arenite_host::graph::{Op, TensorKind, facts};
use arenite_host::import::{ImportOptions, Imported, import};
use arenite_host::weights::Weights;
use arenite_host::{Error, ErrorKind};

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits")
}

fn read(path: &Path, batch: impl Into<Option<usize>>) -> Result<Imported, Error> {
    let options = ImportOptions {
        batch: batch.into(),
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
    read(&path, None)
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
        ("\"arenite_trace\": 1", "\"arenite_trace\": 4", "version 4"),
        ("\"arenite_trace\": 1", "\"arenite_trace\": 0", "version 0"),
        ("\"op\": \"linear\"", "\"op\": \"matmul\"", "of version 2"),
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
        // Of another number of axes; of the right number, and unknown.
        (
            "\"w\": {",
            "\"w\": {\"layout\": \"OIHW\", ",
            "layout `OIHW` of shape [2, 4]",
        ),
        (
            "\"w\": {",
            "\"w\": {\"layout\": \"IO\", ",
            "layout `IO` of shape [2, 4]",
        ),
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
    let mut y = tensor(result, "activation");
    if op == "argmax" {
        y["dtype"] = "i32".into();
    }
    tensors.insert("y".into(), y);
    let trace = serde_json::json!({"arenite_trace": 3, "name": "one", "inputs": ["t0"], "outputs": ["y"], "tensors": tensors,
        "ops": [{"name": "op", "op": op, "inputs": inputs, "outputs": ["y"], "attrs": attrs}]});
    let graph = text(&trace.to_string())?.graph;
    let nodes = graph.nodes.iter().map(|node| {
        let shapes: Vec<_> = node.outputs.iter().map(|&id| &graph.tensor(id).shape).collect();
        format!("{:?} {shapes:?}", node.op)
    });
    Ok(nodes.collect::<Vec<_>>().join("; "))
}

/// The default that docs/trace-schema.md states for an absent attribute is the one that is imported, and another value is another network.
#[test]
fn an_absent_attribute_has_the_default_of_the_schema() {
    use serde_json::json;
    let (image, filter): (&[usize], &[usize]) = (&[1, 4, 7, 9], &[6, 4, 3, 2]);
    type Shapes<'a> = &'a [&'a [usize]];
    let (one, conv, line): (Shapes<'_>, Shapes<'_>, Shapes<'_>) = (&[image], &[image, filter], &[&[1, 4]]);
    let up: Shapes<'_> = &[image, &[4, 6, 3, 2]];
    let (kernel, size) = (json!({"kernel": [2, 3]}), json!({"size": [5, 3]}));
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
        ("conv_transpose2d", up, json!({}), "strides", json!([1, 1]), &[1, 6, 9, 10], Some((json!([2, 3]), &[1, 6, 15, 26]))),
        ("conv_transpose2d", up, json!({}), "padding", json!([0, 0, 0, 0]), &[1, 6, 9, 10], Some((json!([1, 0, 1, 0]), &[1, 6, 8, 9]))),
        ("conv_transpose2d", up, json!({}), "output_padding", json!([0, 0]), &[1, 6, 9, 10], Some((json!([1, 0]), &[1, 6, 10, 10]))),
        ("conv_transpose2d", up, json!({}), "dilation", json!([1, 1]), &[1, 6, 9, 10], Some((json!([1, 2]), &[1, 6, 9, 11]))),
        ("conv_transpose2d", up, json!({}), "groups", json!(1), &[1, 6, 9, 10], None),
        ("argmax", one, json!({"axis": 1}), "keepdims", json!(false), &[1, 7, 9], Some((json!(true), &[1, 1, 7, 9]))),
        ("resize_nearest", one, size.clone(), "half_pixel_centers", json!(false), &[1, 4, 5, 3], Some((json!(true), &[1, 4, 5, 3]))),
        ("resize_nearest", one, size.clone(), "layout", json!("NCHW"), &[1, 4, 5, 3], Some((json!("NHWC"), &[1, 5, 3, 9]))),
        ("resize_bilinear", one, size, "align_corners", json!(false), &[1, 4, 5, 3], Some((json!(true), &[1, 4, 5, 3]))),
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

/// Faults of an operator of version 2 or 3 are reported, and nothing panics.
#[test]
fn malformed_operators_of_later_versions_are_refused() {
    use serde_json::json;
    let image: &[usize] = &[1, 4, 7, 9];
    let matrix: &[usize] = &[1, 4];
    let filter: &[usize] = &[4, 6, 3, 2];
    type Case<'a> = (&'a str, &'a [&'a [usize]], serde_json::Value, &'a str);
    let cases: &[Case<'_>] = &[
        ("matmul", &[image], json!({}), "1 operands"),
        (
            "matmul",
            &[image, &[4, 8, 5]],
            json!({}),
            "rows of 9 elements and columns of 8",
        ),
        ("matmul", &[image, &[3, 9, 5]], json!({}), "[3]"),
        ("matmul", &[image, &[]], json!({}), "operands of shape"),
        ("matmul", &[matrix, &[4, 2]], json!({"transpose": true}), "`transpose`"),
        ("embedding", &[matrix, &[4, 2]], json!({}), "indices of f32"),
        ("rfft", &[image], json!({}), "`length` is missing"),
        ("rfft", &[image], json!({"length": 14}), "length 14"),
        ("rfft", &[image], json!({"length": 8}), "at most 8 along the last axis"),
        ("rfft", &[image], json!({"length": 15}), "even"),
        ("rfft", &[image], json!({"length": 131_072}), "length"),
        ("rfft", &[image], json!({"length": 16, "inverse": true}), "`inverse`"),
        ("cast", &[image], json!({}), "operand 0 is f32"),
        ("keep", &[image, &[3, 9]], json!({}), "[3, 9]"),
        ("less", &[image, image], json!({"or": "equal"}), "`or`"),
        ("argmax", &[image], json!({}), "`axis` is missing"),
        ("argmax", &[image], json!({"axis": 4}), "axis 4"),
        ("argmax", &[image], json!({"axis": 1, "keepdims": 1}), "keepdims"),
        ("resize_nearest", &[image], json!({}), "`size` is missing"),
        ("resize_nearest", &[image], json!({"size": [5]}), "[rows, columns]"),
        ("resize_nearest", &[image], json!({"size": [0, 5]}), "size"),
        (
            "resize_nearest",
            &[image],
            json!({"size": [5, 5], "align_corners": true}),
            "`align_corners`",
        ),
        (
            "resize_bilinear",
            &[image],
            json!({"size": [5, 5], "half_pixel_centers": true}),
            "`half_pixel_centers`",
        ),
        ("resize_bilinear", &[matrix], json!({"size": [5, 5]}), "four axes"),
        ("conv_transpose2d", &[image], json!({}), "1 operands"),
        (
            "conv_transpose2d",
            &[image, &[6, 4, 3, 2]],
            json!({}),
            "4 channels in 1 groups",
        ),
        (
            "conv_transpose2d",
            &[image, filter],
            json!({"groups": 3}),
            "4 channels in 3 groups",
        ),
        ("conv_transpose2d", &[image, filter], json!({"groups": 0}), "groups"),
        (
            "conv_transpose2d",
            &[image, filter],
            json!({"padding": [3, 0, 0, 0]}),
            "padding 3 of a kernel that reaches 2",
        ),
        (
            "conv_transpose2d",
            &[image, filter],
            json!({"output_padding": [1]}),
            "[rows, columns]",
        ),
        ("conv_transpose2d", &[image, filter], json!({"layout": "NHWC"}), "NHWC"),
        ("conv_transpose2d", &[image, filter, &[5]], json!({}), "[5]"),
        ("conv_transpose2d", &[matrix, filter], json!({}), "four axes"),
        (
            "conv_transpose2d",
            &[image, filter],
            json!({"strides": [16_777_216, 16_777_216]}),
            "4 GiB",
        ),
    ];
    for (op, operands, attrs, said) in cases {
        let error = of_one(op, operands, attrs, image).expect_err(said).to_string();
        assert!(error.contains(said), "{op} {attrs}: {error}");
        let placed = error.contains("line 1") || error.contains("tensor `y");
        assert!(placed, "{op} {attrs}: {error}");
    }
}

/// With an operand too few or too many each operator is refused, before anything else of it is looked at.
#[test]
fn every_operator_counts_its_operands() {
    use serde_json::json;
    let none = json!({});
    let one = [
        "avg_pool2d",
        "max_pool2d",
        "relu",
        "silu",
        "identity",
        "softmax",
        "log_softmax",
        "mean",
        "sum",
        "max",
        "min",
        "argmax",
        "resize_nearest",
        "resize_bilinear",
        "rfft",
        "reshape",
        "flatten",
        "transpose",
        "pad",
        "slice",
        "leaky_relu",
        "dropout",
        "tanh",
        "sigmoid",
        "exp",
        "sin",
        "cast",
    ];
    let two = [
        "matmul",
        "embedding",
        "prelu",
        "add",
        "sub",
        "mul",
        "div",
        "less",
        "keep",
        "power",
        "floor_mod",
    ];
    let up_to_three = ["conv2d", "conv_transpose2d", "linear"];
    let rows = one.map(|op| (op, 1, 1, none.clone()));
    let rows = rows.into_iter().chain(two.map(|op| (op, 2, 2, none.clone())));
    let rows = rows.chain(up_to_three.map(|op| (op, 2, 3, none.clone())));
    let more = [("clamp", 1, 1, json!({"min": 0.5})), ("batch_norm", 5, 5, none.clone())];
    for (op, least, most, attrs) in rows.chain(more) {
        for count in [least - 1, most + 1].into_iter().filter(|&count| count > 0) {
            let operands: &[usize] = &[1, 4];
            let error = of_one(op, &vec![operands; count], &attrs, operands)
                .expect_err(op)
                .to_string();
            let said = match (least, most) {
                (2, 3) => format!("{count} operands; expected 2 to 3"),
                _ => format!("{count} operands; expected {least}"),
            };
            assert!(error.contains(&said), "{op} of {count}: {error}");
        }
    }
}

/// The kernel of a transposed convolution is turned round, group by group, and its products are those of the kernel.
#[test]
fn a_transposed_convolution_reads_its_weights_turned() {
    let trace = r#"{"arenite_trace": 2, "name": "up", "inputs": ["x"], "outputs": ["y"], "tensors": {
      "x": {"shape": [1, 4, 2, 3], "dtype": "f32", "role": "input"},
      "w": {"shape": [4, 1, 1, 2], "dtype": "f32", "role": "parameter", "layout": "IOHW"},
      "y": {"shape": [1, 2, 2, 6], "dtype": "f32", "role": "activation"}},
     "ops": [{"name": "up", "op": "conv_transpose2d", "inputs": ["x", "w"], "outputs": ["y"],
      "attrs": {"strides": [1, 2], "groups": 2}}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let graph = text(trace).unwrap().graph;
    assert_eq!(facts::macs_per_element(&graph), 4 * 2 * 3 * 2);
    let header = r#"{"w":{"dtype":"F32","shape":[4,1,1,2],"data_offsets":[0,32]}}"#;
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend((0..8u8).flat_map(|i| f32::from(i).to_le_bytes()));
    let path = folder.path().join("w.safetensors");
    std::fs::write(&path, file).unwrap();
    let weights = Weights::file(&path, &graph).unwrap();
    let conv = graph
        .nodes
        .iter()
        .find(|node| matches!(node.op, Op::Conv2d(_)))
        .unwrap();
    let tensor = graph.tensor(conv.inputs[1].unwrap());
    assert_eq!(tensor.shape, [2, 1, 2, 2]);
    let TensorKind::Const(data) = &tensor.kind else {
        panic!("{tensor:?}")
    };
    let values = weights.evaluate(&data.to_expr(&tensor.shape)).unwrap();
    // [out, rows, columns, in of its group]: output 0 reads inputs 0 and 1.
    assert_eq!(values, [1.0, 3.0, 0.0, 2.0, 5.0, 7.0, 4.0, 6.0]);
}
