//! `--from`, `--until` and `--set`: a network cut in two computes what it computes whole, whatever its format, and what lies outside may be anything.

use std::path::{Path, PathBuf};

use arenite::DType;
use arenite_host::graph::{Role, TensorKind};
use arenite_host::import::{ImportOptions, import};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_tests::writers::Random;

use super::onnx_file::{File, floats, int, longs, stored, value};
use super::tflite_numbers::types_of_inputs;

/// The type of text in TensorFlow Lite files.
const STRING: u8 = 5;

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A network of the file, packed; or the refusal.
pub(crate) fn packed(path: &Path, options: ImportOptions) -> Result<ModelFile, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        import: options,
        plan_nodes: 100,
        ..Options::new(path, folder.path().join("m.bin"))
    };
    pack(&options, &mut |_, _, _| {}).map_err(|e| e.to_string())?;
    ModelFile::open(&options.output).map_err(|e| e.to_string())
}

/// The names of a model's inputs.
pub(crate) fn inputs(file: &ModelFile) -> Vec<String> {
    let view = file.view().expect("a model");
    view.inputs.iter().map(|port| port.name.to_owned()).collect()
}

/// The outputs for these inputs.
pub(crate) fn computed(file: &ModelFile, inputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let model = file.load().expect("it loads");
    run(&model, &[inputs], true, &mut |_, _, _| {})
        .expect("it runs")
        .swap_remove(0)
}

/// Whether two results are the same: floats within 1e-5 of the largest, bytes within so many steps.
fn close(a: &[u8], b: &[u8], float: bool, steps: u8) -> bool {
    if !float {
        let near = |(a, b): (&u8, &u8)| (*a as i8).abs_diff(*b as i8) <= steps;
        return a.len() == b.len() && a.iter().zip(b).all(near);
    }
    let values = |bytes: &[u8]| -> Vec<f32> {
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| f32::from_le_bytes(*word))
            .collect()
    };
    let (a, b) = (values(a), values(b));
    let largest = b.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-5 * largest.max(1e-3))
}

/// Cuts a network at each of its tensors: how many there are. Its bytes may be so many steps off.
fn halves(path: &Path, steps: u8) -> usize {
    let (_, imported) = import(path, None, &ImportOptions::default()).expect("it imports");
    let graph = imported.graph;
    let forward = graph.nodes.iter().filter(|node| node.role == Role::Forward);
    let written = forward.flat_map(|node| &node.outputs);
    let between =
        written.filter(|id| !graph.outputs.contains(id) && matches!(graph.tensor(**id).kind, TensorKind::Activation));
    let names: Vec<String> = between.map(|&id| graph.tensor(id).name.clone()).collect();
    let whole = packed(path, ImportOptions::default()).expect("the whole network");
    let mut random = Random::new(7);
    let model = whole.load().expect("it loads");
    let given: Vec<Vec<u8>> = (0..usize::from(model.header().inputs))
        .map_while(|index| model.input(index))
        .map(|port| match port.dtype {
            DType::F32 => stored(
                &(0..port.bytes().unwrap_or(0) / 4)
                    .map(|_| random.below(4096) as f32 / 2048.0 - 1.0)
                    .collect::<Vec<_>>(),
            ),
            _ => (0..port.bytes().unwrap_or(0))
                .map(|_| random.below(200) as u8)
                .collect(),
        })
        .collect();
    let float = model.output(0).expect("an output").dtype == DType::F32;
    let names_of_whole = inputs(&whole);
    let expected = computed(&whole, given.clone());
    let mut count = 0;
    for name in names {
        let until = ImportOptions {
            until: named(&[&name]),
            ..ImportOptions::default()
        };
        let ahead = match packed(path, until) {
            Ok(file) => file,
            // Tensors that the importer makes have no name in the file.
            Err(text) if text.contains("there is no such tensor") => continue,
            Err(text) => panic!("{}: --until {name}: {text}", path.display()),
        };
        let from = ImportOptions {
            from: named(&[&name]),
            ..ImportOptions::default()
        };
        let behind = packed(path, from).unwrap_or_else(|text| panic!("{}: --from {name}: {text}", path.display()));
        let of =
            |wanted: &String| given[names_of_whole.iter().position(|name| name == wanted).expect("an input")].clone();
        let between = computed(&ahead, inputs(&ahead).iter().map(of).collect());
        let names = inputs(&behind);
        assert_eq!(names[0], name, "{}", path.display());
        let all = std::iter::once(between[0].clone())
            .chain(names[1..].iter().map(of))
            .collect();
        let found = computed(&behind, all);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                close(found, expected, float, steps),
                "{} cut at {name}: {found:?}, {expected:?}",
                path.display()
            );
        }
        count += 1;
    }
    count
}

#[test]
fn a_network_cut_in_two_computes_what_it_computes_whole() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let counts = [
        ("digits/digits.trace.json", 11),
        ("digits/residual.trace.json", 20),
        ("pytorch/detection.trace.json", 20),
        ("tflite_ops/legacy_network.tflite", 7),
        ("onnx_mixed/n035_quantised/model.onnx", 10),
        ("onnx_mixed/n011_quantised/model.onnx", 10),
    ]
    // A cut between DequantizeLinear and QuantizeLinear leaves a step of f32.
    .map(|(name, least)| {
        (
            name,
            least,
            halves(&models.join(name), u8::from(name.contains("quantised"))),
        )
    });
    println!("{counts:?}");
    assert!(counts.iter().all(|(_, least, count)| count >= least), "{counts:?}");
}

/// Between operators that nobody has: `x` to `a` by one, `b` to `c`, `c` to `y` by another.
fn foreign() -> File {
    File::default()
        .input(&value("x", 1, &[2, 3]))
        .node("Nowhere", &["x"], "a", &[])
        .holding(&floats("two", &[], &[2.0]))
        .node("Mul", &["a", "two"], "b", &[])
        .node("Relu", &["b"], "c", &[])
        .node("Neither", &["c", "a"], "y", &[])
        .output(&value("y", 1, &[2, 3]))
}

fn file(folder: &tempfile::TempDir, file: &File) -> PathBuf {
    let path = folder.path().join("m.onnx");
    std::fs::write(&path, file.bytes(13)).expect("written");
    path
}

#[test]
fn what_lies_outside_may_be_anything() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, &foreign().stating(&value("a", 1, &[2, 3])));
    let part = ImportOptions {
        from: named(&["a"]),
        until: named(&["c", "b"]),
        ..ImportOptions::default()
    };
    let part = packed(&path, part).expect("the part alone");
    assert_eq!(inputs(&part), ["a"]);
    let found = computed(&part, vec![stored(&[1.0, -2.0, 3.0, -4.0, 5.0, -6.0])]);
    assert_eq!(found[0], stored(&[2.0, 0.0, 6.0, 0.0, 10.0, 0.0]));
    assert_eq!(found[1], stored(&[2.0, -4.0, 6.0, -8.0, 10.0, -12.0]));
    // Without the shape, what computes the tensor would have to say it.
    let path = file(&folder, &foreign());
    let part = ImportOptions {
        from: named(&["a"]),
        until: named(&["c"]),
        ..ImportOptions::default()
    };
    let text = packed(&path, part).map(drop).expect_err("no shape");
    assert!(text.contains("Nowhere"), "{text}");
    let path = file(&folder, &foreign().stating(&value("c", 1, &[2, 3])));
    let part = ImportOptions {
        from: named(&["c"]),
        ..ImportOptions::default()
    };
    assert!(
        packed(&path, part)
            .map(drop)
            .expect_err("still needed")
            .contains("Neither")
    );
}

#[test]
fn an_input_that_is_set_is_a_constant() {
    let folder = tempfile::tempdir().expect("a folder");
    let network = File::default()
        .input(&value("rate", 7, &[]))
        .input(&value("gain", 1, &[3]))
        .input(&value("x", 1, &[2, 3]))
        .holding(&longs("fast", &[16_000]))
        .node("Equal", &["rate", "fast"], "same", &[]);
    let branch = |factor: &str| {
        File::default()
            .node("Mul", &["x", factor], "z", &[])
            .output(&value("z", 1, &[2, 3]))
    };
    let network = network
        .holding(&floats("half", &[], &[0.5]))
        .node(
            "If",
            &["same"],
            "chosen",
            &[
                branch("gain").attribute("then_branch"),
                branch("half").attribute("else_branch"),
            ],
        )
        .node("Cast", &["chosen"], "y", &[int("to", 1)])
        .output(&value("y", 1, &[2, 3]));
    let path = file(&folder, &network);
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for (rate, gain, expected) in [
        ("16000", "1,10,100", [1.0, 20.0, 300.0, 4.0, 50.0, 600.0]),
        ("16000", "[2]", [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]),
        ("8000", "0", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]),
    ] {
        let set = [("rate", rate), ("gain", gain)].map(|(name, text)| (name.to_owned(), text.to_owned()));
        let model = packed(
            &path,
            ImportOptions {
                set: set.to_vec(),
                ..ImportOptions::default()
            },
        )
        .expect("packs");
        assert_eq!(inputs(&model), ["x"]);
        assert_eq!(computed(&model, vec![stored(&x)]), [stored(&expected)]);
    }
}

#[test]
fn borders_that_are_not_there_are_refused_with_the_nearest_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let onnx = File::default()
        .input(&value("x", 1, &[2, 3]))
        .input(&value("rate", 7, &[1]))
        .holding(&floats("two", &[], &[2.0]))
        .node("Mul", &["x", "two"], "relu1", &[])
        .node("Relu", &["relu1"], "logits", &[])
        .node("Sigmoid", &["relu1"], "beside", &[])
        .output(&value("logits", 1, &[2, 3]));
    let onnx = file(&folder, &onnx);
    let of_large = tempfile::tempdir().expect("a folder");
    let large = File::default()
        .input(&value("x", 1, &[1 << 30, 4]))
        .node("Relu", &["x"], "y", &[])
        .output(&value("y", 1, &[1 << 30, 4]));
    let large = file(&of_large, &large);
    let digits = models.join("digits/digits.trace.json");
    let tflite = models.join("tflite_ops/legacy_network.tflite");
    // An input of text.
    let mut content = std::fs::read(models.join("tflite_ops/dequantize_int8.tflite")).expect("a file");
    let at = types_of_inputs(&content)[0];
    content[at] = STRING;
    let text_input = of_large.path().join("text.tflite");
    std::fs::write(&text_input, content).expect("written");
    let options = |set: &[(&str, &str)], from: &[&str], until: &[&str]| ImportOptions {
        set: set
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
        from: named(from),
        until: named(until),
        ..ImportOptions::default()
    };
    let mut cases = Vec::new();
    for path in [&onnx, &digits] {
        cases.extend([
            (
                path,
                options(&[], &[], &["relu"]),
                "--until relu: there is no such tensor",
            ),
            (path, options(&[], &["logit"], &[]), "the nearest are `logits`"),
            (path, options(&[], &["relu1", "relu1"], &[]), "`relu1` is given twice"),
            (path, options(&[], &["relu1"], &["relu1"]), "--from relu1 --until relu1"),
            (
                path,
                options(&[], &["logits"], &["relu1"]),
                "--from logits: no output of the network depends on `logits`",
            ),
            (
                path,
                options(&[("relu1", "1")], &[], &[]),
                "--set relu1: there is no such input",
            ),
        ]);
    }
    cases.extend([
        (&onnx, options(&[], &[], &["two"]), "`two` is a constant"),
        (&onnx, options(&[], &["x"], &[]), "`x` is an input"),
        (
            &onnx,
            options(&[("rate", "1.5")], &[], &[]),
            "whole numbers of int64, separated by commas",
        ),
        (&onnx, options(&[("rate", "9223372036854775807")], &[], &[]), " holds "),
        (
            &large,
            options(&[("x", "1")], &[], &[]),
            "a tensor of at most 16777216 elements",
        ),
        (&tflite, options(&[("t0", "1")], &[], &[]), "no input is left"),
        (
            &text_input,
            options(&[("t0", "1")], &[], &[]),
            "--set t0: `t0` is STRING",
        ),
        (
            &onnx,
            options(&[("x", "1,2")], &[], &[]),
            "one number, or 6 for shape [2, 3], not 2",
        ),
        (
            &onnx,
            options(&[("x", "1"), ("rate", "1")], &[], &[]),
            "no input is left",
        ),
        (&digits, options(&[("image", "1")], &[], &[]), "no input is left"),
        (&digits, options(&[], &[], &["image"]), "`image` is an input"),
        (&tflite, options(&[], &[], &["t"]), "there is no such tensor"),
        (&tflite, options(&[("t9", "1")], &[], &[]), "there is no such input"),
    ]);
    for (path, options, part) in cases {
        let text = packed(path, options.clone()).map(drop).expect_err(part);
        assert!(text.contains(part), "{part} of {options:?}: {text}");
    }
}
