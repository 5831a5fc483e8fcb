//! docs/trace.schema.json says of the form of a trace what the reader says: every trace of the tests is valid, and what is changed about one is refused by
//! both or by neither, but for what no schema can say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use arenite_host::import::{ImportOptions, import_content, trace_schema};
use arenite_tests::json_schema::check_trace;
use arenite_tests::record::held;
use serde_json::{Value, json};

/// Refusals of the reader with these words that are of no form: numbers that contradict each other, names that mean nothing, files.
const BEYOND: &[(&str, &str)] = &[
    ("is not among `tensors`", "a name of no tensor"),
    ("nothing uses tensor", "a tensor that nothing mentions"),
    ("before any operator writes it", "an order of operators that is none"),
    ("has another role", "a role that does not go with the place"),
    ("operators are named", "two operators of one name"),
    ("which operator `", "a shape or dtype that is not the operator's"),
    ("`s` is f32", "a state of another shape than its value"),
    ("needs more than 4 GiB", "a product of extents"),
    ("of an operand of", "an axis or a rank beyond the operand's"),
    ("do not fit", "shapes that contradict each other"),
    ("an operand has shape", "another rank than four"),
    ("` has shape", "weights of another rank"),
    ("groups and weights", "channels against groups"),
    ("slopes for an operand", "channels against slopes"),
    ("the weights have shape", "weights against the bias"),
    ("operands of shape", "a scalar as a matrix"),
    ("rows of", "a matrix against another"),
    ("matrices; expected at most", "more matrices than are read"),
    ("a table of", "more rows than are read"),
    ("samples of shape", "samples against the transform"),
    ("of a kernel that reaches", "a padding against a turned kernel"),
    ("cannot be reshaped into", "a number of elements"),
    ("is no permutation of the axes", "axes of another rank"),
    ("none of them twice", "an axis by two numbers"),
    ("flatten from axis", "axes in the wrong order"),
    ("a slice from", "places in the wrong order"),
    ("/attrs/start): found", "a place beyond the axis"),
    ("/attrs/stop): found", "a place beyond the axis"),
    ("at most half the kernel", "a padding against the kernel"),
    ("does not fit into", "a window against the image"),
    ("clamp from", "bounds in the wrong order"),
    ("entry `", "a shape that is not the file's"),
    ("parameter `", "a name that is not in the file"),
    ("cannot read the samples", "no file of the name"),
    ("cannot read the weights", "no file of the name"),
    ("the value of constant", "no file of values"),
    ("scales for", "scales against channels"),
    ("has no `quant`", "a conversion of what has no scale"),
    ("expected f32", "integers that stand for nothing"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path, text: &str) -> Result<(), String> {
    let read = import_content(path, text.as_bytes(), Some("native"), &ImportOptions::default());
    read.map(drop).map_err(|error| error.to_string())
}

/// Files of the repository, but for what is built and what others wrote.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
    {
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            files(&path, into);
        } else if kind.is_file() {
            into.push(path);
        }
    }
}

/// Traces in files and in the text of sources and documents, with where they stand.
fn written() -> Vec<(PathBuf, String)> {
    let mut paths = Vec::new();
    for folder in ["host-tools", "tests", "docs"] {
        files(&root().join(folder), &mut paths);
    }
    let mut found = Vec::new();
    for path in paths {
        let name = path.to_string_lossy().into_owned();
        let blocks = match path.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => Some(("r#\"", "\"#")),
            Some("md") => Some(("```json\n", "```")),
            _ if name.ends_with(".trace.json") || name.contains("/corpus/native/") => None,
            _ => continue,
        };
        let text = fs::read_to_string(&path).expect("text");
        match blocks {
            None => found.push((path, text)),
            Some((from, to)) => {
                let blocks = text.split(from).skip(1).filter_map(|rest| rest.split(to).next());
                let traces = blocks.filter(|block| {
                    block.trim_start().starts_with("{\"arenite_trace") || block.contains("\"arenite_trace\": ")
                });
                found.extend(traces.map(|block| (path.clone(), block.to_string())));
            }
        }
    }
    found
}

#[test]
fn the_tracked_schema_is_what_the_rows_make() {
    let text = serde_json::to_string_pretty(&trace_schema()).expect("text");
    held("../docs/trace.schema.json", &format!("{text}\n"), "native_shapes::");
}

/// The writer knows of versions what the reader knows.
#[test]
fn the_python_package_has_the_operators_of_each_version() {
    let path = root().join("host-tools/python/arenite_trace/_schema.py");
    let text = fs::read_to_string(path).expect("a source");
    let schema = trace_schema();
    let versions = schema["allOf"].as_array().expect("a list");
    for (place, version) in versions.iter().enumerate() {
        let begins = format!("SINCE_{} = (", place + 2);
        let line = text.lines().find(|line| line.starts_with(&begins));
        let written: BTreeSet<&str> = line.expect("its list").split('"').skip(1).step_by(2).collect();
        let added = &version["then"]["properties"]["ops"]["items"]["properties"]["op"]["not"]["enum"];
        let added = added.as_array().expect("a list").iter();
        let added: BTreeSet<&str> = added.map(|op| op.as_str().expect("a name")).collect();
        assert_eq!(written, added);
    }
    assert_eq!(versions.len(), 2);
}

#[test]
fn every_trace_of_the_tests_is_valid() {
    let mut valid = 0;
    for (path, text) in written() {
        // Pieces of traces, and what is completed where it is used.
        let Ok(trace) = serde_json::from_str::<Value>(&text) else {
            continue;
        };
        match check_trace(&trace) {
            Ok(()) => valid += 1,
            // Wrong on purpose.
            Err(_) if path.extension().is_some_and(|is| is == "rs") && read(&path, &text).is_err() => {}
            Err(broken) => panic!("{}: {broken}\n{text}", path.display()),
        }
    }
    assert!(valid >= 25, "{valid} traces");
    for (op, computed, operands, attrs, result) in super::rows() {
        let trace = serde_json::from_str(&super::trace(op, computed, operands, &attrs, result)).expect("JSON");
        assert_eq!(check_trace(&trace), Ok(()), "{op} {attrs}");
    }
}

/// An operator, the shapes of its operands, its attributes, the shape of its result, and the tensor of integers.
type Example<'a> = (&'a str, &'a [&'a [usize]], Value, &'a [usize], &'a str);

/// Traces that both take, with the folder of their files: every operator is in one, and every field.
fn taken() -> Vec<(PathBuf, Value)> {
    let here = root().join("n.trace.json");
    let mut traces = Vec::new();
    let mut seen = BTreeSet::new();
    for (op, computed, operands, attrs, result) in super::rows() {
        seen.insert(op.to_string());
        let text = super::trace(op, computed, operands, &attrs, result);
        traces.push((here.clone(), serde_json::from_str(&text).expect("JSON")));
    }
    // Of integers, which no row has.
    let indices: [Example<'_>; 3] = [
        ("cast", &[&[2, 3]], json!({}), &[2, 3], "t0"),
        ("embedding", &[&[2, 3], &[7, 5]], json!({}), &[2, 3, 5], "t0"),
        ("argmax", &[&[2, 3]], json!({"axis": 1}), &[2], "y"),
    ];
    for (op, operands, attrs, result, integer) in indices {
        seen.insert(op.to_string());
        let text = super::trace(op, 1, operands, &attrs, result);
        let mut trace: Value = serde_json::from_str(&text).expect("JSON");
        trace["tensors"][integer]["dtype"] = "i32".into();
        traces.push((here.clone(), trace));
    }
    seen.extend(["quantize", "dequantize"].map(String::from));
    let schema = trace_schema();
    let every = schema["$defs"]["operator"]["properties"]["op"]["enum"]
        .as_array()
        .expect("a list");
    for op in every
        .iter()
        .map(|op| op.as_str().expect("a name"))
        .filter(|op| !seen.contains(*op))
    {
        let operands: [&[usize]; 2] = [&[2, 3], &[2, 3]];
        let each = super::trace(op, 1, &operands[..1], &json!({}), operands[0]);
        let both = super::trace(op, 2, &operands, &json!({}), operands[0]);
        let reduced = super::trace(op, 1, &operands[..1], &json!({"axes": [1]}), &[2]);
        let text = [each, both, reduced].into_iter().find(|text| read(&here, text).is_ok());
        let text = text.unwrap_or_else(|| panic!("`{op}` is in no row"));
        traces.push((here.clone(), serde_json::from_str(&text).expect("JSON")));
    }
    let folder = root().join("tests/models/digits");
    let path = folder.join("mlp.trace.json");
    let mlp = fs::read_to_string(&path).expect("a trace");
    traces.push((path, serde_json::from_str(&mlp).expect("JSON")));
    let mut stateful = json!({"arenite_trace": 1, "producer": "hand", "name": "n", "inputs": ["x"], "outputs": ["y"],
        "state": [{"input": "s", "output": "y"}],
        "tensors": {"x": {"shape": [1, 2], "dtype": "f32", "role": "input"}, "s": {"shape": [1, 2], "dtype": "f32", "role": "state"},
            "y": {"shape": [1, 2], "dtype": "f32", "role": "activation"}},
        "ops": [{"name": "it", "op": "add", "inputs": ["x", "s"], "outputs": ["y"], "attrs": {}, "source": "line 1"}]});
    traces.push((here.clone(), stateful.clone()));
    stateful["arenite_trace"] = 2.into();
    stateful["tensors"]["x"]["layout"] = "OI".into();
    traces.push((here, stateful));
    let quantised = super::quant::trace();
    traces.push((super::quant::folder().join("n.trace.json"), quantised));
    traces
}

/// Returns the values that may stand instead of one.
fn instead() -> Vec<Value> {
    let long = vec![1; 7];
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(2),
        json!(3),
        json!(-7),
        json!(6),
        json!(0.5),
        json!(16_777_217),
        json!(4_294_967_296_u64),
        json!(""),
        json!("x"),
        json!("a\nb"),
        json!(".."),
        json!("a/b"),
        json!("NHWC"),
        json!("IOHW"),
        json!("rfft"),
        json!("relu"),
        json!([]),
        json!([1, 1]),
        json!([0, 0, 0, 0]),
        json!([-1, -1]),
        json!([null]),
        json!(["t0", null]),
        json!(long),
        json!({}),
        json!({"t0": 1}),
    ]
}

/// Every place of a value, its own first.
fn places(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_string());
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{}", escaped(name)), into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{index}"), into);
            }
        }
        _ => {}
    }
}

/// Each change of one place.
fn changed(trace: &Value) -> Vec<(String, Value)> {
    let mut changes = Vec::new();
    let mut at = Vec::new();
    places(trace, "", &mut at);
    let change = |place: &str, what: String, with: &dyn Fn(&mut Value)| {
        let mut other = trace.clone();
        with(other.pointer_mut(place).expect("a place"));
        (format!("{place}: {what}"), other)
    };
    for place in at {
        for value in instead() {
            changes.push(change(&place, format!("{value}"), &|at| *at = value.clone()));
        }
        match trace.pointer(&place).expect("a place") {
            Value::Object(fields) => {
                for name in fields.keys() {
                    changes.push(change(&place, format!("without {name}"), &|at| {
                        at.as_object_mut().expect("fields").remove(name);
                    }));
                }
                changes.push(change(&place, "with another name".into(), &|at| {
                    at["unheard"] = json!(1)
                }));
            }
            Value::Array(items) => {
                let items = items.clone();
                changes.push(change(&place, "one less".into(), &|at| {
                    at.as_array_mut().expect("items").pop();
                }));
                for more in [items.last().cloned().unwrap_or_default(), Value::Null] {
                    changes.push(change(&place, format!("with {more}"), &|at| {
                        at.as_array_mut().expect("items").push(more.clone());
                    }));
                }
            }
            _ => {}
        }
    }
    changes
}

#[test]
fn what_is_changed_about_a_trace_is_refused_by_schema_and_reader() {
    let mut met = BTreeSet::new();
    let (mut both, mut neither) = (0, 0);
    let mut wrong = std::collections::BTreeMap::new();
    for (path, trace) in taken() {
        assert_eq!(check_trace(&trace), Ok(()), "{trace:#}");
        read(&path, &trace.to_string()).unwrap_or_else(|error| panic!("{error}\n{trace:#}"));
        for (what, other) in changed(&trace) {
            let (form, reader) = (check_trace(&other), read(&path, &other.to_string()));
            let op = &trace["ops"][0]["op"];
            match (form, reader) {
                (Ok(()), Ok(())) => neither += 1,
                (Err(_), Err(_)) => both += 1,
                (Err(broken), Ok(())) => {
                    wrong.insert(format!("the reader takes {broken}"), format!("{op} {what}"));
                }
                (Ok(()), Err(error)) => match BEYOND.iter().find(|(words, _)| error.contains(words)) {
                    Some((words, _)) => drop(met.insert(*words)),
                    None => {
                        let key = error.rsplit("): ").next().unwrap_or_default().to_string();
                        wrong.insert(key, format!("{op} {what}: {error}"));
                    }
                },
            }
        }
    }
    println!("{both} refused by both, {neither} by neither");
    assert!(wrong.is_empty(), "{} differences\n{wrong:#?}", wrong.len());
    let unmet: Vec<_> = BEYOND.iter().filter(|(words, _)| !met.contains(words)).collect();
    assert!(unmet.is_empty(), "no change meets {unmet:?}");
}
