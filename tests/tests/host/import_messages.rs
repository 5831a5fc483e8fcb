//! Messages on an input that cannot be packed: its file, its place, every cause at once and no later one.

use std::path::{Path, PathBuf};

use arenite_host::Error;
use arenite_host::import::{ImportOptions, import};
use arenite_host::pack::{Options, pack};
use arenite_tests::writers::{Chain, Layer, chainer, keras_order, megengine, rects, tf_shapes};

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

/// The lines of a Chainer record, by its direction and class.
fn record<'a>(lines: &'a mut [String], direction: &str, class: &str) -> &'a mut [String] {
    let starts: Vec<usize> = (0..lines.len())
        .filter(|&at| ["forward", "backward"].contains(&lines[at].as_str()))
        .chain([lines.len()])
        .collect();
    let is_it =
        |pair: &&[usize]| lines[pair[0]] == direction && lines[pair[0]..pair[1]].iter().any(|line| line == class);
    let found = starts.windows(2).find(is_it).expect("a record");
    let (from, to) = (found[0], found[1]);
    &mut lines[from..to]
}

/// Records of a Chainer trace that contradict each other.
#[test]
fn records_that_contradict_each_other_are_refused() {
    let chain = Chain {
        batch: 2,
        image: [3, 10, 8],
        layers: vec![Layer::Flatten, Layer::Relu, Layer::Linear { out: 5 }],
    };
    let text = chainer::write(&chain, 1);
    let changed = |change: &dyn Fn(&mut [String])| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        assert!(lines.join("\n") + "\n" != text);
        lines.join("\n") + "\n"
    };
    let rank = |lines: &mut [String], from: usize, to: usize| {
        let (from, to) = (format!("\"rank\": {from},"), format!("\"rank\": {to},"));
        lines.iter_mut().for_each(|line| *line = line.replace(&from, &to));
    };
    expect(
        changed(&|lines| rank(lines, 1, 0)).as_bytes(),
        &["rank 0 is also that of line"],
    );
    expect(
        changed(&|lines| rank(lines, 1, 9)).as_bytes(),
        &["before a record of lower rank writes it", "(LinearFunction)"],
    );
    expect(
        changed(&|lines| rank(record(lines, "backward", "ReLU"), 1, 9)).as_bytes(),
        &["no forward record has rank 9", "(ReLU)"],
    );
    let tag = changed(&|lines| {
        let read = &mut record(lines, "forward", "ReLU")[2];
        *read = read.replace(" _", " input");
    });
    expect(tag.as_bytes(), &["tag `input` in a forward record; expected `_`"]);
    // Lines of a record with one operand: direction, counts, the operand, the result.
    let result = |lines: &mut [String], class: &str| record(lines, "forward", class)[3].clone();
    let twice = changed(&|lines| record(lines, "forward", "ReLU")[3] = result(lines, "Reshape"));
    expect(
        twice.as_bytes(),
        &["which is no intermediate or is written already", "(ReLU)"],
    );
    let image = text.lines().find(|line| line.ends_with(" 0")).expect("the image");
    let image = image.split(' ').next().expect("its number").to_owned();
    let over = changed(&|lines| record(lines, "forward", "ReLU")[3].clone_from(&image));
    expect(
        over.as_bytes(),
        &[&format!("it writes buffer {image}"), "no intermediate"],
    );
}

/// Where sizes are searched for, a trace is limited in what makes the search long.
#[test]
fn traces_beyond_the_limits_of_a_search_are_refused() {
    let conv = Layer::Conv {
        out: 2,
        kernel: [1; 2],
        stride: [1; 2],
        pad: [0; 2],
        groups: 1,
        dilation: [1; 2],
    };
    let chain = |layers| Chain {
        batch: 1,
        image: [2, 3, 2],
        layers: [conv, Layer::Relu].into_iter().cycle().take(layers).collect(),
    };
    let text = tf_shapes::write(&chain(4000), None);
    expect(text.as_bytes(), &["6000 operators or variables; expected at most 5000"]);
    let local = rects::Local {
        batch: 2,
        image: [3, 6, 5],
        layers: vec![(4, 2)],
        classes: 3,
    };
    let words = |count: usize| (0..count).fold(local.write(), |text, word| text + &format!("q{word:05}q\n"));
    expect(words(4001).as_bytes(), &["too many words are no name of the grammar"]);
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
