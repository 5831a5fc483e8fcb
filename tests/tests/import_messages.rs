//! What is said of an input that cannot be packed: its file, its place, every cause at once and no later one.

use std::path::{Path, PathBuf};

use arenite_host::Error;
use arenite_host::import::{ImportOptions, import};
use arenite_host::pack::{Options, pack};
use arenite_tests::writers::{Chain, Layer, chainer, keras_order, megengine, tf_shapes};

fn refused(content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input.trace");
    std::fs::write(&path, content).unwrap();
    let error: Error = import(&path, None, &ImportOptions::default()).expect_err("refused");
    let text = error.to_string();
    assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
    text.replace(&format!("{}: ", path.display()), "")
}

fn expect(content: &[u8], words: &[&str]) {
    let text = refused(content);
    for word in words {
        assert!(text.contains(word), "`{word}` is missing from: {text}");
    }
}

const NATIVE: &str = r#"{"arenite_trace": 1, "name": "small", "inputs": ["x"], "outputs": ["c"],
 "tensors": {
  "x": {"shape": [1, 6], "dtype": "f32", "role": "input"},
  "a": {"shape": [1, 6], "dtype": "f32", "role": "activation"},
  "b": {"shape": [1, 6], "dtype": "f32", "role": "activation"},
  "c": {"shape": [1, 6], "dtype": "f32", "role": "activation"}},
 "ops": [
  {"name": "1", "op": "OP1", "inputs": ["x"], "outputs": ["a"]},
  {"name": "2", "op": "OP2", "inputs": ["a"], "outputs": ["b"]},
  {"name": "3", "op": "OP3", "inputs": ["b"], "outputs": ["c"]}]}
"#;

fn native(ops: [&str; 3]) -> String {
    NATIVE
        .replace("OP1", ops[0])
        .replace("OP2", ops[1])
        .replace("OP3", ops[2])
}

#[test]
fn what_is_no_text_is_named() {
    expect(b"", &["the file is empty"]);
    expect(
        b"\xEF\xBB\xBF{\"arenite_trace\": 1}",
        &["byte-order mark", "UTF-8 without"],
    );
    expect(b"\xFF\xFE{\0\"\0", &["byte-order mark of UTF-16"]);
    expect(
        b"{\"arenite_trace\": 1, \"name\": \"\xFF\"}",
        &["line 1, column 31", "0xff", "UTF-8"],
    );
}

#[test]
fn unknown_operators_are_named_all_at_once() {
    expect(
        native(["relu", "frobnicate", "relu"]).as_bytes(),
        &["line 9", "`frobnicate` is not supported (1 node)"],
    );
    let words = [
        "2 kinds of operators are not supported",
        "`frobnicate` (2 nodes, line 8)",
        "`twiddle` (1 node, line 9)",
    ];
    expect(native(["frobnicate", "twiddle", "frobnicate"]).as_bytes(), &words);
    // A later trouble does not hide them.
    expect(
        native(["frobnicate", "relu", "add"]).as_bytes(),
        &["`frobnicate` is not supported"],
    );

    let conv = Layer::Conv {
        out: 4,
        kernel: [3; 2],
        stride: [1; 2],
        pad: [1; 2],
        groups: 1,
        dilation: [1; 2],
    };
    let chain = Chain {
        batch: 2,
        image: [3, 10, 8],
        layers: vec![conv, Layer::Relu, conv, Layer::Relu],
    };
    let text = chainer::write(&chain, 1).replace("ReLU", "Swish");
    expect(text.as_bytes(), &["`Swish` is not supported (2 nodes)"]);
    let text = megengine::write(&chain).replace("\"ConvolutionForward\"", "\"Warp\"");
    expect(text.as_bytes(), &["`Warp` is not supported (2 nodes)"]);
    let text = tf_shapes::write(&chain, None)
        .replace(":Relu,", ":Elu,")
        .replace(":BiasAdd,", ":Bias3D,");
    expect(
        text.as_bytes(),
        &["2 kinds of operators", "`Elu` (2 nodes", "`Bias3D` (2 nodes"],
    );
    let text = keras_order::write("resnet8", &[1]).replace("/Relu\n", "/Swish\n");
    expect(text.as_bytes(), &["`Swish` is not supported (4 nodes)"]);
}

#[test]
fn a_cause_is_not_hidden_behind_a_later_one() {
    let conv = Layer::Conv {
        out: 4,
        kernel: [3; 2],
        stride: [1; 2],
        pad: [1; 2],
        groups: 1,
        dilation: [1; 2],
    };
    let chain = Chain {
        batch: 2,
        image: [3, 10, 8],
        layers: vec![conv, Layer::Relu, Layer::Flatten, Layer::Linear { out: 5 }],
    };
    let text = chainer::write(&chain, 1);
    for (attribute, value) in [("sy", "1"), ("dx", "1"), ("groups", "1")] {
        let zero = text.replace(&format!("\"{attribute}\": {value}"), &format!("\"{attribute}\": 0"));
        assert_ne!(zero, text);
        expect(zero.as_bytes(), &[&format!("({attribute})"), "found `0`", "from 1 to"]);
    }
}

fn digits(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/digits").join(name)
}

#[test]
fn a_number_that_is_none_names_the_weights_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut weights = std::fs::read(digits("digits.safetensors")).unwrap();
    let header = u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize + 8;
    weights[header + 40..header + 44].copy_from_slice(&f32::NAN.to_le_bytes());
    let path = folder.path().join("broken.safetensors");
    std::fs::write(&path, weights).unwrap();
    let mut options = Options::new(digits("digits.trace.json"), folder.path().join("out.bin"));
    options.weights = Some(path.display().to_string());
    let text = pack(&options, &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
    assert!(text.contains(" of parameter `") && text.contains("NaN"), "{text}");
}
