//! Damaged traces of every dialect: an error, or exactly the network that was there; never a panic, never another network.

use std::path::Path;

use arenite_host::graph::check::check;
use arenite_host::graph::{Graph, Role, facts};
use arenite_host::import::{DIALECTS, ImportOptions, import};
use arenite_host::memory::lifetimes;
use arenite_host::passes::prune;
use arenite_tests::developers_words;
use arenite_tests::writers::{Chain, Layer, Random, chainer, keras_order, megengine, rects, tf_shapes};

/// The native dialect, a record a line: what is removed or doubled is a whole tensor or operator.
const NATIVE: &str = r#"{"arenite_trace": 1,
 "name": "small",
 "inputs": ["image"],
 "outputs": ["p"],
 "tensors": {
  "image": {"shape": [2, 3, 9, 9], "dtype": "f32", "role": "input", "layout": "NCHW"},
  "conv.weight": {"shape": [4, 3, 3, 3], "dtype": "f32", "role": "parameter", "layout": "OIHW"},
  "conv.bias": {"shape": [4], "dtype": "f32", "role": "parameter"},
  "point.weight": {"shape": [4, 4, 1, 1], "dtype": "f32", "role": "parameter", "layout": "OIHW"},
  "fc.weight": {"shape": [5, 16], "dtype": "f32", "role": "parameter", "layout": "OI"},
  "conv": {"shape": [2, 4, 5, 5], "dtype": "f32", "role": "activation"},
  "relu": {"shape": [2, 4, 5, 5], "dtype": "f32", "role": "activation"},
  "point": {"shape": [2, 4, 5, 5], "dtype": "f32", "role": "activation"},
  "sum": {"shape": [2, 4, 5, 5], "dtype": "f32", "role": "activation"},
  "pool": {"shape": [2, 4, 2, 2], "dtype": "f32", "role": "activation"},
  "flat": {"shape": [2, 16], "dtype": "f32", "role": "activation"},
  "fc": {"shape": [2, 5], "dtype": "f32", "role": "activation"},
  "p": {"shape": [2, 5], "dtype": "f32", "role": "activation"}},
 "ops": [
  {"name": "1", "op": "conv2d", "inputs": ["image", "conv.weight", "conv.bias"], "outputs": ["conv"], "attrs": {"strides": [2, 2], "padding": [1, 1, 1, 1]}},
  {"name": "2", "op": "relu", "inputs": ["conv"], "outputs": ["relu"]},
  {"name": "3", "op": "conv2d", "inputs": ["relu", "point.weight"], "outputs": ["point"]},
  {"name": "4", "op": "add", "inputs": ["relu", "point"], "outputs": ["sum"]},
  {"name": "5", "op": "max_pool2d", "inputs": ["sum"], "outputs": ["pool"], "attrs": {"kernel": [3, 3], "strides": [2, 2]}},
  {"name": "6", "op": "flatten", "inputs": ["pool"], "outputs": ["flat"]},
  {"name": "7", "op": "linear", "inputs": ["flat", "fc.weight"], "outputs": ["fc"]},
  {"name": "8", "op": "softmax", "inputs": ["fc"], "outputs": ["p"]}]}
"#;

struct Sample {
    dialect: &'static str,
    text: String,
    /// Structure of the network that it states.
    network: String,
}

/// Returns the text of the network's computation: operators, names, shapes.
fn fingerprint(graph: &Graph) -> String {
    let mut text = String::new();
    for node in graph.nodes.iter().filter(|node| node.role == Role::Forward) {
        let shapes = node.inputs.iter().flatten().chain(&node.outputs).map(|&id| {
            let tensor = graph.tensor(id);
            format!("{}{:?}", tensor.name, tensor.shape)
        });
        text += &format!("{:?} {}\n", node.op, shapes.collect::<Vec<_>>().join(" "));
    }
    text
}

/// The fingerprint of a consistent network, or the error's text. A file without end is the test command's to notice.
fn read(dialect: &str, content: &[u8]) -> Result<String, String> {
    let found = DIALECTS.iter().find(|d| d.name == dialect).unwrap();
    let result = (found.import)(Path::new("x.trace"), content, &ImportOptions::default());
    let consistent = result.map(|imported| {
        check(&imported.graph).unwrap_or_else(|e| panic!("{dialect} returned an inconsistent network: {e}"));
        fingerprint(&imported.graph)
    });
    consistent.map_err(|e| {
        let text = e.to_string();
        assert_eq!(developers_words(&text), None, "{text}");
        text
    })
}

fn samples() -> Vec<Sample> {
    let conv = |out, kernel, pad| Layer::Conv {
        out,
        kernel: [kernel; 2],
        stride: [1; 2],
        pad: [pad; 2],
        groups: 1,
        dilation: [1; 2],
    };
    let pool = Layer::MaxPool {
        kernel: [3; 2],
        stride: [2; 2],
        ceiling: false,
    };
    let chain = |layers: &[Layer]| Chain {
        batch: 2,
        image: [3, 17, 17],
        layers: layers.to_vec(),
    };
    let classifier = chain(&[
        conv(4, 3, 1),
        Layer::Relu,
        pool,
        Layer::Flatten,
        Layer::Linear { out: 5 },
    ]);
    let features = chain(&[
        conv(4, 3, 1),
        Layer::Relu,
        Layer::Lrn,
        pool,
        conv(6, 3, 1),
        Layer::Relu,
        pool,
    ]);
    let local = rects::Local {
        batch: 12,
        image: [1, 11, 11],
        layers: vec![(4, 3), (5, 4)],
        classes: 9,
    };
    let texts = [
        ("chainer", chainer::write(&classifier, 4)),
        ("megengine", megengine::write(&classifier)),
        ("tf-shapes", tf_shapes::write(&features, None)),
        ("keras-order", keras_order::write("resnet50", &[1, 1])),
        ("rects", local.write()),
        ("native", NATIVE.to_string()),
    ];
    let sample = |(dialect, text): (&'static str, String)| Sample {
        network: read(dialect, text.as_bytes()).unwrap(),
        dialect,
        text,
    };
    texts.into_iter().map(sample).collect()
}

fn same_or_error(sample: &Sample, content: &[u8], what: &str) {
    if let Ok(network) = read(sample.dialect, content) {
        assert_eq!(
            network, sample.network,
            "{} with {what} became another network",
            sample.dialect
        );
    }
}

#[test]
fn truncation_at_any_byte() {
    for sample in samples() {
        let step = (sample.text.len() / 400).max(1);
        for end in (0..sample.text.len()).step_by(step) {
            // Whole rows of a profile that is sorted by name may state a network without its last operators.
            let at_row = sample.text.as_bytes()[end] == b'\n' || sample.text[..end].ends_with('\n');
            if sample.dialect == "tf-shapes" && at_row {
                drop(read(sample.dialect, &sample.text.as_bytes()[..end]));
                continue;
            }
            same_or_error(&sample, &sample.text.as_bytes()[..end], &format!("{end} bytes left"));
        }
    }
}

#[test]
fn a_line_removed_or_doubled() {
    for sample in samples().into_iter().filter(|s| s.dialect != "megengine") {
        let lines: Vec<&str> = sample.text.lines().collect();
        for index in 0..lines.len() {
            let mut fewer = lines.clone();
            let line = fewer.remove(index);
            same_or_error(
                &sample,
                fewer.join("\n").as_bytes(),
                &format!("line {} removed: {line}", index + 1),
            );
            let mut more = lines.clone();
            more.insert(index, line);
            same_or_error(
                &sample,
                more.join("\n").as_bytes(),
                &format!("line {} doubled: {line}", index + 1),
            );
        }
    }
}

#[test]
fn numbers_replaced_and_bytes_flipped() {
    let mut random = Random::new(1);
    for sample in samples() {
        let bytes = sample.text.as_bytes();
        let digits: Vec<usize> = (0..bytes.len()).filter(|&i| bytes[i].is_ascii_digit()).collect();
        for _ in 0..300 {
            let mut damaged = bytes.to_vec();
            damaged[digits[random.below(digits.len())]] = b'0' + random.below(10) as u8;
            // Another number may state another network, as long as that one is consistent.
            drop(read(sample.dialect, &damaged));
            let at = random.below(damaged.len());
            damaged[at] = random.below(256) as u8;
            drop(read(sample.dialect, &damaged));
        }
    }
}

/// Several kinds of damage at once, as the fuzz targets find them without coverage to guide them: what is still a network must be
/// consistent, before and after pruning. `ARENITE_ROUNDS` says how many for each dialect; a failure prints the round, which is the seed.
#[test]
fn stacked_mutations() {
    let rounds = std::env::var("ARENITE_ROUNDS").map_or(100, |n| n.parse().expect("ARENITE_ROUNDS is a number"));
    let mut networks = 0;
    for sample in samples() {
        for round in 0..rounds {
            let damaged = mutated(sample.text.as_bytes(), round);
            let found = DIALECTS.iter().find(|d| d.name == sample.dialect).unwrap();
            let result = (found.import)(Path::new("x.trace"), &damaged, &ImportOptions::default());
            let dialect = sample.dialect;
            let Ok(imported) = result else { continue };
            let mut graph = imported.graph;
            check(&graph).unwrap_or_else(|e| panic!("{dialect}, round {round}: {e}"));
            let _ = (
                facts::params(&graph),
                facts::macs_per_element(&graph),
                lifetimes::max_live(&graph),
            );
            let pruned = prune::run(&mut graph).and_then(|_| check(&graph));
            pruned.unwrap_or_else(|e| panic!("{dialect}, round {round}, pruned: {e}"));
            networks += 1;
        }
    }
    println!("{networks} damaged traces still stated a network");
}

/// One to six changes: bytes replaced, cut out, repeated elsewhere, or exchanged for numbers that overflow.
fn mutated(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(6) {
        let from = random.below(bytes.len().max(1)).min(bytes.len());
        let to = (from + random.below(40)).min(bytes.len());
        let part = bytes[from..to].to_vec();
        match random.below(5) {
            0 => bytes
                .iter_mut()
                .skip(from)
                .take(1)
                .for_each(|b| *b = random.below(256) as u8),
            1 => drop(bytes.drain(from..to)),
            2 => {
                let at = random.below(bytes.len() + 1);
                bytes.splice(at..at, part);
            }
            3 => {
                let numbers = ["0", "-1", "65536", "4294967295", "9223372036854775808", "1e999", "nan"];
                let end = (from..bytes.len())
                    .find(|&i| !bytes[i].is_ascii_digit())
                    .unwrap_or(from);
                bytes.splice(from..end, numbers[random.below(numbers.len())].bytes());
            }
            _ => {
                let lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
                let (a, b) = (random.below(lines.len()), random.below(lines.len()));
                let mut lines = lines.clone();
                lines.swap(a, b);
                bytes = lines.join(&b'\n');
            }
        }
    }
    bytes
}

#[test]
fn hugest_numbers() {
    for sample in samples() {
        for huge in [
            "0",
            "4294967296",
            "18446744073709551615",
            "99999999999999999999999999",
            "-1",
        ] {
            let mut rest = 0;
            while let Some(at) = sample.text[rest..]
                .find(|c: char| c.is_ascii_digit())
                .map(|at| rest + at)
            {
                let end = sample.text[at..]
                    .find(|c: char| !c.is_ascii_digit())
                    .map_or(sample.text.len(), |n| at + n);
                let damaged = format!("{}{huge}{}", &sample.text[..at], &sample.text[end..]);
                drop(read(sample.dialect, damaged.as_bytes()));
                rest = end + sample.text.len() / 200;
                while !sample.text.is_char_boundary(rest.min(sample.text.len())) {
                    rest += 1;
                }
                if rest >= sample.text.len() {
                    break;
                }
            }
        }
    }
}

#[test]
fn mixed_dialects() {
    let samples = samples();
    for a in &samples {
        for b in &samples {
            if a.dialect != b.dialect {
                assert!(
                    read(a.dialect, b.text.as_bytes()).is_err(),
                    "{} read as {}",
                    b.dialect,
                    a.dialect
                );
                same_or_error(a, format!("{}\n{}", a.text, b.text).as_bytes(), b.dialect);
                let half = a.text.len() / 2;
                same_or_error(a, format!("{}\n{}", &a.text[..half], b.text).as_bytes(), b.dialect);
            }
        }
    }
}

#[test]
fn garbage_of_every_kind() {
    let mut random = Random::new(3);
    let noise: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
    let inputs = [
        Vec::new(),
        b"\n\n\n".to_vec(),
        noise,
        "[".repeat(1 << 20).into_bytes(),
        "{\"a\":".repeat(1 << 18).into_bytes(),
        "forward\n".repeat(1 << 17).into_bytes(),
        "L0.filter ".repeat(1 << 16).into_bytes(),
        "dim=[".repeat(1 << 16).into_bytes(),
        "a, (1x1x1x1), (1x1x1x1), GPU, 0\n".repeat(1 << 14).into_bytes(),
        (0..1 << 15)
            .flat_map(|i| {
                format!("n{i}, (1x1x1x1), (1x1x1x1), GPU, 0\nn{i}:Relu, (no input), (no output), GPU, 0\n").into_bytes()
            })
            .collect(),
        (0..1 << 16)
            .flat_map(|i| format!("resnet50/conv2_block{i}_1_conv/Conv2D\n").into_bytes())
            .collect(),
        vec![0xFF; 1 << 20],
        vec![b' '; 100 << 20],
    ];
    for content in &inputs {
        for dialect in DIALECTS {
            assert!(read(dialect.name, content).is_err(), "{} accepts garbage", dialect.name);
            let _ = (dialect.recognises)(content);
        }
    }
}

/// The reference traces, one line less and cut off anywhere.
#[test]
fn the_reference_traces_damaged() {
    let Some(shared) = arenite_tests::shared() else {
        arenite_tests::skip("the_reference_traces_damaged", "no shared data");
        return;
    };
    let mut random = Random::new(8);
    for (dialect, file) in [
        ("chainer", "vgg19-chainer.trace.txt"),
        ("megengine", "resnet50-megengine.trace.json"),
        ("tf-shapes", "alexnet-tf-shapes.trace.txt"),
        ("keras-order", "resnet50-keras-order.trace.txt"),
        ("rects", "localnet-rects.trace.txt"),
    ] {
        let text = std::fs::read_to_string(shared.join("traces").join(file)).unwrap();
        let network = read(dialect, text.as_bytes()).unwrap();
        let sample = Sample { dialect, text, network };
        let lines: Vec<&str> = sample.text.lines().collect();
        for _ in 0..100 {
            let end = random.below(sample.text.len());
            same_or_error(&sample, &sample.text.as_bytes()[..end], &format!("{end} bytes left"));
            if lines.len() > 1 {
                let mut fewer = lines.clone();
                let index = random.below(fewer.len());
                let line = fewer.remove(index);
                same_or_error(
                    &sample,
                    fewer.join("\n").as_bytes(),
                    &format!("line {} removed: {line}", index + 1),
                );
            }
        }
    }
}

/// An import names the file, and where it can the line.
#[test]
fn errors_name_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.trace");
    for sample in samples() {
        std::fs::write(&path, &sample.text[..sample.text.len() / 4]).unwrap();
        let error = import(&path, Some(sample.dialect), &ImportOptions::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("cut.trace") && error.contains("line"), "{error}");
    }
}

/// Seeds for the fuzz targets: `ARENITE_CORPUS=FOLDER` writes the small traces to `FOLDER/<target>/`.
#[test]
#[ignore = "writes files: ARENITE_CORPUS says where"]
fn write_the_small_traces() {
    let Some(folder) = std::env::var_os("ARENITE_CORPUS") else {
        return arenite_tests::skip("write_the_small_traces", "no ARENITE_CORPUS");
    };
    for sample in samples() {
        let folder = Path::new(&folder).join(sample.dialect.replace('-', "_"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("small"), sample.text).unwrap();
    }
}
