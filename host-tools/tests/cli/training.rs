//! `arenite train` as a program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Output;

use ndarray::{Array, ArrayD, Axis};
use ndarray_npy::{NpzReader, NpzWriter, read_npy, write_npy};

use crate::common::{ARENITE, Bench, PACK, digits, done, json, models, refused, run};

const SAMPLES: usize = 5;

/// Digits packed with steps of training, and a few samples beside them.
struct Learner {
    bench: Bench,
    model: PathBuf,
    images: PathBuf,
    labels: PathBuf,
}

impl Learner {
    fn new(changed: impl Fn(String) -> String) -> Self {
        let bench = Bench::new();
        let [trace, model, images, labels] = ["t.json", "m.bin", "x.npy", "y.npy"].map(|name| bench.path(name));
        let text = std::fs::read_to_string(digits("digits.trace.json")).expect("a trace");
        std::fs::write(&trace, changed(text)).expect("written");
        let samples = "digits.samples.safetensors";
        std::fs::copy(digits(samples), bench.path(samples)).expect("copied");
        done(run(
            PACK,
            &[
                trace.as_os_str(),
                "--weights".as_ref(),
                digits("digits.safetensors").as_os_str(),
                "--train".as_ref(),
                "--loss".as_ref(),
                "cross-entropy".as_ref(),
                "-o".as_ref(),
                model.as_os_str(),
            ],
        ));
        let all: ArrayD<u8> = read_npy(digits("train_images.npy")).expect("images");
        let few = all
            .slice_axis(Axis(0), (0..SAMPLES).into())
            .mapv(|x| f32::from(x) / 16.0);
        write_npy(&images, &few.to_shape((SAMPLES, 1, 8, 8)).expect("a shape")).expect("written");
        let all: ArrayD<u8> = read_npy(digits("train_labels.npy")).expect("labels");
        let few = all.slice_axis(Axis(0), (0..SAMPLES).into()).mapv(i64::from);
        write_npy(&labels, &few).expect("written");
        Self {
            bench,
            model,
            images,
            labels,
        }
    }

    fn train(&self, state: &Path, rest: &[&str]) -> Output {
        let given = [
            ("--inputs", &*self.images),
            ("--labels", &*self.labels),
            ("--state-out", state),
        ];
        let mut arguments = vec!["train".to_string(), self.model.display().to_string()];
        for (option, path) in given {
            arguments.extend([option.to_string(), path.display().to_string()]);
        }
        arguments.extend(rest.iter().map(|word| word.to_string()));
        run(ARENITE, &arguments)
    }
}

/// Gradients are those of the last step: what it changed, divided by the rate; and whoever keeps them trains the same bits.
#[test]
fn gradients_are_kept_by_name() {
    let learner = Learner::new(|text| text);
    let path = |name: &str| learner.bench.path(name);
    let report = json(&done(learner.train(&path("plain"), &["--rate", "0.05", "--json"])));
    assert_eq!(report["steps"], SAMPLES);
    let npz = path("gradients.npz");
    let kept = npz.display().to_string();
    done(learner.train(&path("kept"), &["--rate", "0.05", "--keep-gradients", &kept]));
    let read = |name: &str| std::fs::read(path(name)).expect("a file");
    assert_eq!(read("plain"), read("kept"));
    // One step more, by a rate of which every product is exact.
    let before = read("kept");
    let again = ["--rate=-1", "--steps", "1", "--keep-gradients", &kept, "--state"];
    let state = path("kept").display().to_string();
    done(learner.train(&path("after"), &[&again[..], &[&state]].concat()));
    let after = read("after");
    let mut archive = NpzReader::new(std::fs::File::open(&npz).expect("gradients")).expect("an archive");
    let mut names = archive.names().expect("names");
    names.sort();
    let expected =
        ["conv1", "conv2", "conv3", "fc1", "fc2"].map(|layer| [format!("{layer}.bias"), format!("{layer}.weight")]);
    assert_eq!(names, expected.concat());
    let conv2: ArrayD<f32> = archive.by_name("conv2.weight").expect("a gradient");
    assert_eq!(conv2.shape(), [16, 8, 3, 3]);
    let bias: ArrayD<f32> = archive.by_name("conv2.bias").expect("a gradient");
    assert!(bias.iter().any(|dw| *dw != 0.0));
    // A state is behind a head of its file; wherever the bias is, the step by -1 has added the gradient to it.
    let words = |bytes: &[u8], at: usize| -> Option<Vec<f32>> {
        let words = bytes.get(at..at + 4 * bias.len())?;
        Some(
            words
                .as_chunks()
                .0
                .iter()
                .map(|&word| f32::from_le_bytes(word))
                .collect(),
        )
    };
    let moved = |at: usize| {
        let (Some(old), Some(new)) = (words(&before, at), words(&after, at)) else {
            return false;
        };
        old.iter().zip(&new).zip(&bias).all(|((old, new), dw)| *new == old + dw)
    };
    assert!((0..before.len()).step_by(4).any(moved));
    // In the layout of the network, and not in that of the memory.
    let conv = words_of(&before, &after, conv2.len());
    let first: Vec<f32> = (0..8).map(|channel| conv2[[0, channel, 0, 0]]).collect();
    assert!(
        conv.windows(8)
            .any(|run| run.iter().zip(&first).all(|(a, b)| (a - b).abs() <= 1e-6)),
        "{first:?}"
    );
    // A bench takes that state, and then wants a board; it takes no file of something else.
    let bench = |state: &Path| {
        let (model, state) = (learner.model.as_os_str(), state.as_os_str());
        let words = ["--on", "host", "--state"].map(OsStr::new);
        run(ARENITE, &[&[OsStr::new("bench"), model][..], &words, &[state]].concat())
    };
    assert!(refused(bench(&path("after")), 2).contains("counts no instructions"));
    assert!(refused(bench(&learner.images), 1).contains("x.npy"));
    let on_board = learner.train(
        &path("board"),
        &["--rate", "1", "--keep-gradients", &kept, "--on", "qemu:mps2-an386"],
    );
    assert!(refused(on_board, 2).contains("--on host"));
}

/// Differences of the numbers of two states.
fn words_of(before: &[u8], after: &[u8], least: usize) -> Vec<f32> {
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes
            .as_chunks()
            .0
            .iter()
            .map(|&word| f32::from_le_bytes(word))
            .collect()
    };
    let found: Vec<f32> = floats(before)
        .iter()
        .zip(floats(after))
        .map(|(old, new)| new - old)
        .collect();
    assert!(found.len() > least);
    found
}

/// The loss, the labels and the rate are known by their places, whatever the network's own tensors are called.
#[test]
fn names_of_the_network_are_its_own() {
    for (old, new) in [
        ("\"image\"", "\"learning_rate\""),
        ("\"logits\"", "\"loss\""),
        ("\"image\"", "\"labels\""),
    ] {
        let learner = Learner::new(|text| text.replace(old, new));
        let report = done(learner.train(&learner.bench.path("s"), &["--rate", "0.1", "--json"]));
        let losses = json(&report)["losses"].as_array().expect("losses").len();
        assert_eq!(losses, SAMPLES, "{new}");
        let image = Array::from_elem((SAMPLES, 1, 8, 8), f32::NAN);
        write_npy(&learner.images, &image).expect("written");
        let state = learner.bench.path("none");
        assert!(
            refused(learner.train(&state, &["--rate", "0.1"]), 1).contains("the loss is NaN"),
            "{new}"
        );
        assert!(!state.exists());
    }
}

/// Numbers that are none leave no state behind, though a label is ignored; nor is a file of samples written over.
#[test]
fn no_state_is_written_where_training_failed() {
    let learner = Learner::new(|text| text);
    let state = learner.bench.path("s");
    write_npy(&learner.labels, &Array::from_elem(SAMPLES, -1i64)).expect("written");
    let report = json(&done(learner.train(&state, &["--rate", "0.1", "--json"])));
    assert_eq!(report["ignored_labels"], SAMPLES);
    std::fs::remove_file(&state).expect("removed");
    for value in [f32::NAN, f32::INFINITY] {
        write_npy(&learner.images, &Array::from_elem((SAMPLES, 1, 8, 8), value)).expect("written");
        refused(learner.train(&state, &["--rate", "0.1"]), 1);
        assert!(!state.exists());
    }
    for samples in [&learner.images, &learner.labels] {
        let before = std::fs::read(samples).expect("samples");
        assert!(refused(learner.train(samples, &["--rate", "0.1"]), 2).contains("is the input"));
        assert_eq!(std::fs::read(samples).expect("samples"), before);
    }
}

/// Parameters of branches, in the order in which PyTorch's gradients lie in `branches.gradients.npy` behind the loss.
const BRANCHES: [&str; 11] = [
    "stem.weight",
    "stem.bias",
    "depthwise.weight",
    "depthwise.bias",
    "grouped.weight",
    "dilated.weight",
    "dilated.bias",
    "pointwise.weight",
    "pointwise.bias",
    "fc.weight",
    "fc.bias",
];

/// Gradients in f64 by PyTorch, of a network at batch 2: none differs, and one that is changed is named with its step and its place.
#[test]
fn a_step_of_training_is_compared_with_pytorchs() {
    let bench = Bench::new();
    let of = |file: &str| models().join("training").join(file);
    let [model, state, kept, reference] = ["m.bin", "s", "kept.npz", "reference.npz"].map(|name| bench.path(name));
    let trace = of("branches.trace.json");
    let options = ["--train", "--loss", "cross-entropy", "-o"].map(OsStr::new);
    done(run(
        PACK,
        &[&[trace.as_os_str()], &options[..], &[model.as_os_str()]].concat(),
    ));
    // The shapes of the parameters.
    let files = [
        ("--inputs", of("branches.images.npy")),
        ("--labels", of("branches.labels.npy")),
        ("--state-out", state),
        ("--keep-gradients", kept.clone()),
    ];
    let mut arguments = ["train", &*model.display().to_string(), "--rate=0.1"]
        .map(String::from)
        .to_vec();
    for (option, path) in &files {
        arguments.extend([option.to_string(), path.display().to_string()]);
    }
    done(run(ARENITE, &arguments));
    let mut archive = NpzReader::new(std::fs::File::open(&kept).expect("gradients")).expect("an archive");
    let theirs: ArrayD<f64> = read_npy(of("branches.gradients.npy")).expect("gradients");
    let images: ArrayD<f32> = read_npy(of("branches.images.npy")).expect("images");
    let labels: ArrayD<i64> = read_npy(of("branches.labels.npy")).expect("labels");
    // Writes the reference, in which the last number of one gradient is larger by one.
    let mut written = |changed: Option<&str>, labels: Option<&ArrayD<i64>>| {
        let mut npz = NpzWriter::new(std::fs::File::create(&reference).expect("creates"));
        npz.add_array("image", &images).expect("images");
        if let Some(labels) = labels {
            npz.add_array("labels", labels).expect("labels");
        }
        npz.add_array("loss", &theirs.slice_axis(Axis(0), (0..1).into()))
            .expect("a loss");
        let mut at = 1;
        for name in BRANCHES {
            let own: ArrayD<f32> = archive.by_name(name).expect("a gradient");
            let values = theirs.slice_axis(Axis(0), (at..at + own.len()).into());
            at += own.len();
            let mut values = values.to_shape(own.shape()).expect("a shape").into_owned();
            if changed == Some(name) {
                *values.last_mut().expect("not empty") += 1.0;
            }
            npz.add_array(name, &values).expect("a gradient");
        }
        assert_eq!(at, theirs.len());
        npz.finish().expect("written");
    };
    let compared = |rest: &[&str]| {
        let paths = [OsStr::new("diff"), model.as_os_str(), reference.as_os_str()];
        let rest: Vec<_> = ["--train", "--tolerance=1e-5"]
            .iter()
            .chain(rest)
            .map(OsStr::new)
            .collect();
        run(ARENITE, &[&paths[..], &rest].concat())
    };
    written(None, Some(&labels));
    let report = json(&done(compared(&["--json"])));
    assert_eq!(report["compared"], BRANCHES.len() + 1, "{report}");
    assert_eq!(report["first_difference"], serde_json::Value::Null);
    let names: Vec<_> = report["layers"]
        .as_array()
        .expect("layers")
        .iter()
        .map(|layer| layer["name"].as_str())
        .collect();
    // Gradients go from the last layer to the first; the loss is behind all steps.
    let [of_last, .., of_first, loss] = &names[..] else {
        panic!("{names:?}")
    };
    let of = [of_last, of_first, loss].map(|name| name.unwrap_or_default().split('.').next().unwrap_or_default());
    assert_eq!(of, ["fc", "stem", "loss"]);
    written(Some("grouped.weight"), Some(&labels));
    let other = compared(&[]);
    assert_eq!(other.status.code(), Some(1));
    let text = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(text.contains("differs first: `grouped.weight`"), "{text}");
    // Without labels there is no loss to begin with; a board holds no gradient; a model of inference learns nothing.
    written(None, None);
    assert!(refused(compared(&[]), 1).contains("it does not hold the input `labels`"));
    assert!(refused(compared(&["--on", "qemu:mps2-an386"]), 2).contains("no board holds a gradient"));
    let infers = bench.packed("mlp");
    let paths = [
        "diff".as_ref(),
        infers.as_os_str(),
        reference.as_os_str(),
        "--train".as_ref(),
    ];
    assert!(refused(run(ARENITE, &paths), 1).contains("no steps of training"));
}

/// From a saved state the gradients are those that training keeps from there on, and not those of the model's own parameters.
#[test]
fn a_step_from_a_saved_state_is_compared() {
    let learner = Learner::new(|text| text);
    let path = |name: &str| learner.bench.path(name);
    let words = |name: &str| path(name).display().to_string();
    done(learner.train(&path("trained"), &["--rate=0.05", "--steps=5"]));
    let (state, kept) = (words("trained"), words("kept.npz"));
    let once = ["--rate=0.05", "--steps=1", "--state", &state, "--keep-gradients", &kept];
    done(learner.train(&path("after"), &once));
    let mut archive = NpzReader::new(std::fs::File::open(&kept).expect("gradients")).expect("an archive");
    let reference = words("reference.npz");
    let mut npz = NpzWriter::new(std::fs::File::create(&reference).expect("creates"));
    for name in archive.names().expect("names") {
        let gradient: ArrayD<f32> = archive.by_name(&name).expect("a gradient");
        npz.add_array(name, &gradient).expect("a gradient");
    }
    let images: ArrayD<f32> = read_npy(&learner.images).expect("images");
    let labels: ArrayD<i64> = read_npy(&learner.labels).expect("labels");
    npz.add_array("image", &images.slice_axis(Axis(0), (0..1).into()))
        .expect("an image");
    npz.add_array("labels", &labels.slice_axis(Axis(0), (0..1).into()))
        .expect("a label");
    npz.finish().expect("written");
    let model = learner.model.display().to_string();
    let compared = |rest: &[&str]| {
        let all = [
            &["diff", &model, &reference, "--train", "--tolerance=0", "--json"],
            rest,
        ]
        .concat();
        run(ARENITE, &all)
    };
    let report = json(&done(compared(&["--state", &state])));
    assert_eq!(
        (report["compared"].as_u64(), &report["first_difference"]),
        (Some(10), &serde_json::Value::Null)
    );
    let own = compared(&[]);
    assert_eq!(own.status.code(), Some(1));
    let told = String::from_utf8(own.stdout).expect("UTF-8");
    assert!(json(&told)["first_difference"]["name"].is_string(), "{told}");
    let other = words("x.npy");
    assert!(refused(compared(&["--state", &other]), 1).contains("x.npy"));
}
