//! Programs of torch.export: archives of stored or forged entries, and a program's JSON of its calls.

use serde_json::{Map, Value, json};

/// An entry of an archive: what its headers say may differ from what it holds.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Bytes of the entry in the archive.
    pub packed: Vec<u8>,
    /// 0 for stored, 8 for deflated.
    pub method: u16,
    /// The checksum of the content.
    pub crc: u32,
    /// The claimed bytes of the content.
    pub size: u32,
}

impl Entry {
    /// A stored entry.
    #[must_use]
    pub fn stored(name: &str, content: &[u8]) -> Self {
        Self {
            name: name.to_string(),
            packed: content.to_vec(),
            method: 0,
            crc: crc32fast::hash(content),
            size: content.len() as u32,
        }
    }
}

/// A zip archive.
#[must_use]
pub fn zip(entries: &[Entry]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let at = bytes.len() as u32;
        let common = [
            &[20, 0, 0, 0][..],
            &entry.method.to_le_bytes(),
            &[0; 4],
            &entry.crc.to_le_bytes(),
            &(entry.packed.len() as u32).to_le_bytes(),
            &entry.size.to_le_bytes(),
            &(entry.name.len() as u16).to_le_bytes(),
            &[0, 0],
        ]
        .concat();
        bytes.extend([&b"PK\x03\x04"[..], &common, entry.name.as_bytes(), &entry.packed].concat());
        let place = [&[0; 10][..], &at.to_le_bytes()].concat();
        directory.extend([&b"PK\x01\x02\x14\0"[..], &common, &place, entry.name.as_bytes()].concat());
    }
    let count = (entries.len() as u16).to_le_bytes();
    let [start, length] = [bytes.len(), directory.len()].map(|n| (n as u32).to_le_bytes());
    let end = [&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &length, &start, &[0, 0]].concat();
    [bytes, directory, end].concat()
}

/// Returns the schema's metadata of a tensor of f32.
#[must_use]
pub fn meta(sizes: &[i64]) -> Value {
    let strides = (0..sizes.len()).map(|axis| sizes[axis + 1..].iter().product::<i64>());
    let ints = |values: Vec<i64>| -> Vec<Value> { values.iter().map(|n| json!({"as_int": n})).collect() };
    json!({
        "dtype": 7, "sizes": ints(sizes.to_vec()), "requires_grad": false, "device": {"type": "cpu", "index": null},
        "strides": ints(strides.collect()), "storage_offset": {"as_int": 0}, "layout": 7,
    })
}

/// A tensor as an argument.
#[must_use]
pub fn tensor(name: &str) -> Value {
    json!({"as_tensor": {"name": name}})
}

/// A call of one result; arguments by name.
#[must_use]
pub fn call(target: &str, arguments: &[(&str, Value)], result: &str) -> Value {
    let inputs: Vec<Value> = arguments
        .iter()
        .map(|(name, arg)| json!({"name": name, "arg": arg, "kind": 1}))
        .collect();
    json!({"target": format!("torch.ops.{target}"), "inputs": inputs, "outputs": [tensor(result)], "metadata": {}})
}

/// The program of these calls over the input `x [2, 3]` and the parameter `w [3]`, which the module calls `layer.w`; each result has the shape of `x`, the last
/// one is the output.
#[must_use]
pub fn program(calls: &[Value]) -> Value {
    let mut values = Map::new();
    values.insert("x".into(), meta(&[2, 3]));
    values.insert("w".into(), meta(&[3]));
    let mut last = json!(null);
    for call in calls {
        for output in call["outputs"].as_array().into_iter().flatten() {
            last = output.clone();
            if let Some(name) = output["as_tensor"]["name"].as_str() {
                values.insert(name.into(), meta(&[2, 3]));
            }
        }
    }
    json!({
        "graph_module": {
            "graph": {
                "inputs": [tensor("w"), tensor("x")], "outputs": [last.clone()], "nodes": calls, "tensor_values": values,
                "sym_int_values": {}, "sym_bool_values": {},
            },
            "signature": {
                "input_specs": [
                    {"parameter": {"arg": {"name": "w"}, "parameter_name": "layer.w"}},
                    {"user_input": {"arg": tensor("x")}},
                ],
                "output_specs": [{"user_output": {"arg": last}}],
            },
            "module_call_graph": [],
        },
        "opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 17},
    })
}

/// `relu(x * w) + x`
#[must_use]
pub fn small() -> Value {
    program(&[
        call(
            "aten.mul.Tensor",
            &[("self", tensor("x")), ("other", tensor("w"))],
            "mul",
        ),
        call("aten.relu.default", &[("self", tensor("mul"))], "relu"),
        call(
            "aten.add.Tensor",
            &[("self", tensor("relu")), ("other", tensor("x"))],
            "add",
        ),
    ])
}

/// The entries of an archive with a program and `layer.w`.
#[must_use]
pub fn entries(document: &str) -> Vec<Entry> {
    let config = json!({"config": {"layer.w": {
        "path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": meta(&[3]),
    }}});
    let weights: Vec<u8> = [0.5_f32, -2.0, 3.0].iter().flat_map(|w| w.to_le_bytes()).collect();
    vec![
        Entry::stored("m/data/weights/weight_0", &weights),
        Entry::stored(
            "m/data/weights/model_weights_config.json",
            config.to_string().as_bytes(),
        ),
        Entry::stored("m/models/model.json", document.as_bytes()),
        Entry::stored("m/archive_format", b"pt2"),
    ]
}

/// The archive of a program.
#[must_use]
pub fn archive(program: &Value) -> Vec<u8> {
    zip(&entries(&program.to_string()))
}
