//! Integers in a trace that stand for real numbers: what they mean, by hand, and what is refused, by its text.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arenite::Target;
use arenite_host::graph::facts::params;
use arenite_host::import::{ImportOptions, import_content};
use arenite_host::model::run;
use arenite_tests::golden::packed;
use serde_json::{Value, json};

/// Weights of three outputs, and a bias; the second has a zero point.
const WEIGHTS: [[i8; 2]; 3] = [[100, -50], [-128, 127], [3, 0]];
const STORED: [[u8; 2]; 3] = [[228, 78], [0, 255], [131, 128]];
const BIAS: [i32; 3] = [7, -2000, 100_000];

/// A file of arrays, as safetensors has them.
fn arrays(of: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data: Vec<u8> = Vec::new();
    for (name, dtype, shape, bytes) in of {
        let offsets = [data.len(), data.len() + bytes.len()];
        header.insert(
            (*name).into(),
            json!({"dtype": dtype, "shape": shape, "data_offsets": offsets}),
        );
        data.extend(bytes);
    }
    let header = Value::Object(header).to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.extend(data);
    file
}

/// A folder with the values of [`trace`].
pub(super) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let words = BIAS.iter().flat_map(|b| b.to_le_bytes()).collect();
        let signed = WEIGHTS.iter().flatten().map(|w| *w as u8).collect();
        let file = arrays(&[
            ("w", "I8", &[3, 2], signed),
            ("b", "I32", &[3], words),
            ("u", "U8", &[3, 2], STORED.concat()),
        ]);
        std::fs::write(folder.join("n.safetensors"), file).expect("it is written");
        folder
    })
}

/// Quantised and back, then two layers of one input: of int8 weights with a scale for each output, and of uint8 ones.
pub(super) fn trace() -> Value {
    let tensor = |shape: &[usize], dtype: &str, role: &str| json!({"shape": shape, "dtype": dtype, "role": role});
    let of = |mut tensor: Value, quant: Value| {
        tensor["quant"] = quant;
        tensor
    };
    json!({
        "arenite_trace": 3, "name": "n", "inputs": ["x"], "outputs": ["y", "z"], "parameters": "n.safetensors",
        "tensors": {
            "x": tensor(&[1, 2], "f32", "input"),
            "q": of(tensor(&[1, 2], "u8", "activation"), json!({"scale": [0.5], "zero_point": 3, "axis": 1})),
            "r": tensor(&[1, 2], "f32", "activation"),
            "w": of(tensor(&[3, 2], "i8", "parameter"), json!({"scale": [0.25, 0.5, 2.0], "axis": 0})),
            "b": of(tensor(&[3], "i32", "parameter"), json!({"scale": [0.125]})),
            "u": of(tensor(&[3, 2], "u8", "constant"), json!({"scale": [1.0, 0.5], "zero_point": 128, "axis": -1})),
            "y": tensor(&[1, 3], "f32", "activation"),
            "z": tensor(&[1, 3], "f32", "activation"),
        },
        "ops": [
            {"name": "quantize", "op": "quantize", "inputs": ["x"], "outputs": ["q"]},
            {"name": "dequantize", "op": "dequantize", "inputs": ["q"], "outputs": ["r"]},
            {"name": "linear", "op": "linear", "inputs": ["r", "w", "b"], "outputs": ["y"]},
            {"name": "other", "op": "linear", "inputs": ["r", "u"], "outputs": ["z"]},
        ],
    })
}

#[test]
fn integers_stand_for_their_real_numbers() {
    let folder = folder();
    let path = folder.join("n.trace.json");
    let text = trace().to_string();
    std::fs::write(&path, &text).expect("it is written");
    let (_, imported) = import_content(&path, text.as_bytes(), None, &ImportOptions::default()).expect("it is read");
    assert!(imported.in_pairs);
    assert_eq!(params(&imported.graph), 9, "the weights and the bias");
    let file = packed(&path, folder, Target::Portable).expect("it is packed");
    let model = file.load().expect("it loads");
    // 3.2 is between two numbers, and the second beyond the last one.
    let input: Vec<u8> = [3.2f32, 1e6].iter().flat_map(|x| x.to_le_bytes()).collect();
    let results = run(&model, &[vec![input]], true, &mut |_, _, _| {}).expect("it runs");
    let x = [3.0f32, (255.0 - 3.0) * 0.5];
    let scale = [0.25f32, 0.5, 2.0];
    let y = (0..3).map(|o| {
        let sum = WEIGHTS[o]
            .iter()
            .zip(x)
            .map(|(w, x)| f32::from(*w) * scale[o] * x)
            .sum::<f32>();
        sum + BIAS[o] as f32 * 0.125
    });
    let z = STORED
        .iter()
        .map(|row| (f32::from(row[0]) - 128.0) * x[0] + (f32::from(row[1]) - 128.0) * 0.5 * x[1]);
    let floats = |bytes: &[u8]| -> Vec<f32> {
        let words = bytes.chunks_exact(4);
        words.map(|b| f32::from_le_bytes(b.try_into().expect("four"))).collect()
    };
    assert_eq!(floats(&results[0][0]), y.collect::<Vec<_>>());
    assert_eq!(floats(&results[0][1]), z.collect::<Vec<_>>());
}

#[test]
fn what_means_nothing_is_refused_by_its_text() {
    let path = folder().join("n.trace.json");
    let mut checked = 0;
    for (place, value, said) in [
        (
            "/arenite_trace",
            json!(2),
            "`quant` is of version 3, the trace of version 2",
        ),
        (
            "/tensors/q/quant",
            json!({"scale": [0.5, 0.5]}),
            "2 scales; expected one",
        ),
        ("/tensors/q/quant/scale", json!([]), "0 scales; expected one"),
        (
            "/tensors/q/quant/scale",
            json!([0.0]),
            "scale 0; expected 1e-30 to 1e30",
        ),
        (
            "/tensors/q/quant/zero_point",
            json!(256),
            "zero_point 256 of u8; expected 0 to 255",
        ),
        (
            "/tensors/b/quant/zero_point",
            json!(1),
            "zero_point 1 of i32; expected 0 to 0",
        ),
        (
            "/tensors/w/quant/scale",
            json!([0.5, 0.5]),
            "2 scales for 3 channels; expected one, or one for each index of the axis",
        ),
        ("/tensors/w/quant/axis", json!(2), "axis 2 of an operand of 2 axes"),
        ("/tensors/w/quant/unit", json!(2), "unit"),
        (
            "/tensors/x/quant",
            json!({"scale": [0.5]}),
            "`quant` of f32 with another role or type",
        ),
        (
            "/tensors/q/dtype",
            json!("i32"),
            "`quant` of int32 with another role or type; expected i8 or u8",
        ),
        (
            "/ops/1/inputs",
            json!(["w"]),
            "`w` has no `quant`, or is a parameter or constant",
        ),
        (
            "/ops/1/inputs",
            json!(["x"]),
            "`x` has no `quant`, or is a parameter or constant",
        ),
        (
            "/ops/2/inputs",
            json!(["q", "w", "b"]),
            "operand 0 is uint8; expected f32",
        ),
        (
            "/tensors/q",
            json!({"shape": [1, 2], "dtype": "u8", "role": "activation"}),
            "`q` has no `quant`",
        ),
        (
            "/tensors/w",
            json!({"shape": [3, 2], "dtype": "i8", "role": "parameter"}),
            "operand 1 is int8; expected f32",
        ),
    ] {
        let mut other = trace();
        let (parent, name) = place.rsplit_once('/').expect("a place");
        let parent = if parent.is_empty() {
            &mut other
        } else {
            other.pointer_mut(parent).expect("a parent")
        };
        parent[name] = value;
        let text = other.to_string();
        let error = import_content(&path, text.as_bytes(), None, &ImportOptions::default()).map(drop);
        let error = error.expect_err(place).to_string();
        assert!(error.contains(said), "{place}: {error}");
        checked += 1;
    }
    assert_eq!(checked, 16);
}
