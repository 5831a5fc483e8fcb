//! Networks of very many operators pack, and are the networks that were traced. Nothing here measures time: a step of the packer that compares all operators
//! with all would take these tests from seconds to hours.

use std::fmt::Write as _;
use std::path::Path;

use arenite_host::pack::{Options, Packed, pack};
use arenite_tests::writers::{Chain, Layer, chainer, keras_order, megengine};

fn packed(text: &str, edit: impl Fn(&mut Options)) -> Packed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.trace");
    std::fs::write(&path, text).unwrap();
    let mut options = Options::new(&path, folder.path().join("large.bin"));
    edit(&mut options);
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"))
}

/// Tensors and operators of a native trace.
#[derive(Default)]
struct Native {
    tensors: Vec<String>,
    ops: Vec<String>,
}

impl Native {
    fn tensor(&mut self, name: &str, shape: &[usize], role: &str) {
        self.tensors.push(format!(
            r#""{name}": {{"shape": {shape:?}, "dtype": "f32", "role": "{role}"}}"#
        ));
    }

    fn op(&mut self, op: &str, inputs: &[&str], output: &str, shape: &[usize], attrs: &str) {
        self.tensor(output, shape, "activation");
        self.ops.push(format!(
            r#"{{"name": "{output}", "op": "{op}", "inputs": {inputs:?}, "outputs": ["{output}"]{attrs}}}"#
        ));
    }

    fn write(&self, outputs: &[&str]) -> String {
        let mut text = String::from("{\"arenite_trace\": 1, \"name\": \"large\", \"inputs\": [\"x\"],\n");
        writeln!(text, "\"outputs\": {outputs:?},").unwrap();
        writeln!(text, "\"tensors\": {{\n{}}},", self.tensors.join(",\n")).unwrap();
        writeln!(text, "\"ops\": [\n{}]}}", self.ops.join(",\n")).unwrap();
        text
    }
}

const LARGE: usize = 30_000;

#[test]
fn a_native_chain() {
    let mut trace = Native::default();
    trace.tensor("x", &[1, 8], "input");
    let mut last = ["x".to_string(), String::new()];
    for index in 0..LARGE {
        let name = format!("t{index}");
        match index % 3 {
            0 => trace.op("tanh", &[&last[0]], &name, &[1, 8], ""),
            1 => trace.op("add", &[&last[0], &last[1]], &name, &[1, 8], ""),
            _ => trace.op(
                "reshape",
                &[&last[0]],
                &name,
                &[1, 8],
                r#", "attrs": {"shape": [1, 8]}"#,
            ),
        }
        last = if index % 3 == 0 {
            [name, last[0].clone()]
        } else {
            [name, String::new()]
        };
    }
    let found = packed(&trace.write(&[&last[0]]), |_| {});
    // Reshapes are views.
    assert_eq!(found.summary.steps, LARGE / 3 * 2);
    assert_eq!(found.summary.arena_bytes, 64);
}

fn chain(layers: usize) -> Chain {
    let conv = Layer::Conv {
        out: 2,
        kernel: [1; 2],
        stride: [1; 2],
        pad: [0; 2],
        groups: 1,
        dilation: [1; 2],
    };
    Chain {
        batch: 1,
        image: [2, 3, 2],
        layers: [conv, Layer::Relu].into_iter().cycle().take(layers).collect(),
    }
}

#[test]
fn chains_of_other_dialects() {
    let seeded = |options: &mut Options| options.weights = Some("seeded:1".into());
    let found = packed(&chainer::write(&chain(4000), 5), |options| {
        seeded(options);
        options.import.assume = vec![("image".into(), "2x3x2".into())];
    });
    // Between two changes of layout.
    assert_eq!((found.summary.dialect.as_str(), found.summary.steps), ("chainer", 2002));
    let found = packed(&megengine::write(&chain(4000)), seeded);
    assert_eq!(
        (found.summary.dialect.as_str(), found.summary.steps),
        ("megengine", 2002)
    );
    let found = packed(&keras_order::write("resnet", &[300, 2]), |options| {
        seeded(options);
        options.import.input_shape = Some(vec![1, 16, 24, 3]);
    });
    assert_eq!(found.summary.ops["Conv2D"], 1 + 302 * 3 + 2);
}

/// Branches of three operators from one input, wide in the middle.
fn heads(count: usize, joined: bool) -> String {
    let mut trace = Native::default();
    trace.tensor("x", &[1, 16], "input");
    let names = |stage: usize| (0..count).map(move |head| format!("h{stage}_{head}"));
    for (head, name) in names(0).enumerate() {
        let wide = 40 + head % 7;
        trace.tensor(&format!("{name}.w"), &[wide, 16], "parameter");
        trace.op("linear", &["x", &format!("{name}.w")], &name, &[1, wide], "");
    }
    for (head, (from, name)) in names(0).zip(names(1)).enumerate() {
        trace.op("tanh", &[&from], &name, &[1, 40 + head % 7], "");
    }
    for (head, (from, name)) in names(1).zip(names(2)).enumerate() {
        trace.tensor(&format!("{name}.w"), &[2, 40 + head % 7], "parameter");
        trace.op("linear", &[&from, &format!("{name}.w")], &name, &[1, 2], "");
    }
    let last: Vec<String> = names(2).collect();
    let last: Vec<&str> = last.iter().map(String::as_str).collect();
    if !joined {
        return trace.write(&last);
    }
    trace.op("concat", &last, "all", &[1, 2 * count], r#", "attrs": {"axis": 1}"#);
    trace.write(&["all"])
}

#[test]
fn wide_networks_are_ordered_within_the_nodes() {
    let seeded = |options: &mut Options| options.weights = Some("seeded:1".into());
    let found = packed(&heads(300, true), seeded);
    // The traced order keeps 300 rows of at least 40 numbers alive at once.
    assert!(
        found.summary.arena_bytes < 300 * 40 * 4 / 10,
        "{}",
        found.summary.arena_bytes
    );
    let traced = packed(&heads(300, true), |options| {
        seeded(options);
        options.plan_nodes = 0;
    });
    assert!(
        traced.summary.arena_bytes >= 300 * 40 * 4,
        "{}",
        traced.summary.arena_bytes
    );
    let found = packed(&heads(40, false), seeded);
    assert_eq!(found.summary.outputs.len(), 40);
    assert!(
        found.summary.arena_bytes < 40 * 40 * 4 / 4,
        "{}",
        found.summary.arena_bytes
    );
}

/// A trace beyond the limit is refused with its length; the test's file is sparse.
#[test]
fn a_trace_beyond_the_limit_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.trace");
    let file = std::fs::File::create(&path).unwrap();
    std::io::Write::write_all(&mut &file, b"{\"arenite_trace\": 1").unwrap();
    file.set_len((256 << 20) + 1).unwrap();
    let options = Options::new(&path, Path::new(folder.path()).join("x.bin"));
    let error = pack(&options, &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(
        error.contains("268435457 bytes") && error.contains("at most 268435456"),
        "{error}"
    );
}
