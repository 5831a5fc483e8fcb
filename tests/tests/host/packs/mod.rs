//! All that `pack` makes of small models in many ways is on record as digests: the tables beside this file have a line for each model and way.
//!
//! A digest is of everything at once: the file's bytes, the summary, warnings, `--explain`, the graph behind a stage, the page; or of all that an error says.
//! It holds nothing to be right, which others do, and notices what a change changes. Where it is meant, `ARENITE_BLESS=1` writes the file anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use arenite::{DType, Target};
use arenite_host::graph::LowBits;
use arenite_host::memory::Region;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::page::{Extra, page};
use arenite_host::quantize::{Activations, Request, WeightOnly};
use arenite_host::stage::Stage;
use arenite_tests::record::{Digest, held};
use arenite_tests::writers::{Chain, Layer, chainer, keras_order, megengine, rects};
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::NpzWriter;

/// Nodes of the planner's searches: what they find is not what is asked here.
const NODES: u64 = 300;

/// Everything that comes of packing: a digest, and a `!` where it is an error.
fn digest(options: &Options, folder: &Path) -> String {
    let mut sum = Digest::default();
    let mut mark = "";
    match pack(options, &mut |_, _, _| {}) {
        Err(error) => {
            mark = "!";
            let said = error.to_string().replace(&folder.display().to_string(), "");
            let _ = write!(sum, "{:?} {said}", error.kind());
        }
        Ok(mut packed) => {
            // They are measured anew whenever a kernel changes.
            packed.summary.stack_bytes.clear();
            packed.summary.load_stack_bytes.clear();
            packed.summary.code_bytes_estimate = None;
            let bytes = std::fs::read(&options.output).expect("just written");
            let file = ModelFile::open(&options.output).expect("just written");
            let view = file.view().expect("it is whole");
            let extra = Extra {
                trace: packed.dump.clone(),
                ..Extra::default()
            };
            let page = page(&view, &packed.summary, &extra).expect("a page");
            sum.bytes(&bytes);
            let _ = write!(sum, "{packed:?} {page}");
            std::fs::remove_file(&options.output).expect("it is there");
        }
    }
    mark.to_string() + &sum.text()
}

/// Holds the lines of one test to those on record.
fn compared(kind: &str, found: &[String]) {
    held(
        &format!("tests/host/packs/{kind}.txt"),
        &(found.join("\n") + "\n"),
        "packs::",
    );
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder").map_while(Result::ok);
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.to_string_lossy().ends_with(extension) {
            found.push(path);
        }
    }
}

/// As they lie in the package, so that no message names a folder of this machine.
fn models(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(Path::new(folder), extension, &mut found);
    found.sort();
    assert!(!found.is_empty(), "{folder}");
    found
}

fn named(path: &Path) -> String {
    let text = path.with_extension("").display().to_string().replace('\\', "/");
    text.trim_start_matches("models/")
        .trim_end_matches(".trace")
        .to_string()
}

fn options(path: &Path, folder: &Path) -> Options {
    Options {
        plan_nodes: NODES,
        explain: true,
        ..Options::new(path, folder.join("m.bin"))
    }
}

fn regions(sizes: &[Option<u64>]) -> Vec<Region> {
    let named = sizes.iter().enumerate().map(|(index, &size)| Region {
        name: format!("r{index}"),
        size,
    });
    named.collect()
}

/// The ways of packing that any network has.
fn ways(path: &Path, folder: &Path) -> Vec<(&'static str, Options)> {
    let plain = options(path, folder);
    let few = |bits, group| WeightOnly {
        bits: LowBits { bits, group },
        keep_f32: Vec::new(),
    };
    let stage = |stage| Options {
        dump_after: Some(stage),
        ..plain.clone()
    };
    vec![
        ("import", stage(Stage::Import)),
        ("fuse", stage(Stage::Fuse)),
        ("plan", stage(Stage::Plan)),
        (
            "m4",
            Options {
                target: Target::CortexM4,
                size: true,
                ..plain.clone()
            },
        ),
        (
            "m55",
            Options {
                target: Target::CortexM55,
                keep_dead_channels: true,
                in_place: false,
                dump_after: Some(Stage::Schedule),
                ..plain.clone()
            },
        ),
        (
            "two",
            Options {
                regions: regions(&[Some(600), None]),
                max_step: Some(36_000),
                ..plain.clone()
            },
        ),
        (
            "eight",
            Options {
                weight_only: Some(few(8, None)),
                ..plain.clone()
            },
        ),
        (
            "four",
            Options {
                weight_only: Some(few(4, Some(32))),
                ..plain.clone()
            },
        ),
        (
            "batch",
            Options {
                import: arenite_host::import::ImportOptions {
                    batch: Some(3),
                    ..Default::default()
                },
                ..plain
            },
        ),
    ]
}

fn lines(paths: &[PathBuf], wanted: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |path: &PathBuf| {
        let ways = ways(path, folder.path()).into_iter();
        let digests = ways
            .filter(|(way, _)| wanted.contains(way))
            .map(|(way, options)| format!(" {way}={}", digest(&options, folder.path())));
        format!("{}{}", named(path), digests.collect::<String>())
    };
    paths.iter().map(line).collect()
}

#[test]
fn onnx_models_pack_as_on_record() {
    let all = ["import", "fuse", "m4", "two", "four", "batch"];
    compared("onnx", &lines(&models("models/onnx", ".onnx"), &all));
}

#[test]
fn tflite_models_pack_as_on_record() {
    let mut paths = models("models/tflite_ops", ".tflite");
    paths.extend(models("models/tflite_signal", ".tflite"));
    compared("tflite", &lines(&paths, &["fuse", "m55", "two"]));
}

#[test]
fn traces_pack_as_on_record() {
    let mut paths = models("models/pytorch", ".trace.json");
    paths.extend(models("models/digits", ".trace.json"));
    paths.extend(models("models/mfcc", ".trace.json"));
    let all = ["import", "fuse", "plan", "m4", "m55", "two", "eight", "four", "batch"];
    compared("traces", &lines(&paths, &all));
}

#[test]
fn written_traces_pack_with_seeded_weights_as_on_record() {
    let conv = |out, kernel, stride, pad, groups| Layer::Conv {
        out,
        kernel,
        stride,
        pad,
        groups,
        dilation: [1, 1],
    };
    let pool = Layer::MaxPool {
        kernel: [3, 2],
        stride: [2, 2],
        ceiling: false,
    };
    let chain = Chain {
        batch: 3,
        image: [3, 17, 26],
        layers: vec![
            conv(8, [3, 5], [1, 2], [2, 1], 1),
            Layer::Relu,
            pool,
            conv(12, [3, 2], [1, 1], [1, 0], 4),
            Layer::Relu,
            Layer::Flatten,
            Layer::Linear { out: 9 },
            Layer::Relu,
            Layer::Linear { out: 5 },
        ],
    };
    let local = rects::Local {
        batch: 48,
        image: [2, 21, 19],
        layers: vec![(8, 5), (6, 3)],
        classes: 35,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut found = Vec::new();
    for (name, text) in [
        ("chainer", chainer::write(&chain, 4)),
        ("megengine", megengine::write(&chain)),
        ("keras", keras_order::write("resnet8", &[2, 1])),
        ("rects", local.write()),
    ] {
        let path = folder.path().join(format!("{name}.trace"));
        std::fs::write(&path, text).expect("written");
        let mut line = name.to_string();
        for (way, mut options) in ways(&path, folder.path()) {
            options.weights = Some("seeded:5".to_string());
            if name == "keras" {
                options.import.input_shape = (way != "batch").then(|| vec![1, 40, 56, 3]);
            }
            let _ = write!(line, " {way}={}", digest(&options, folder.path()));
        }
        found.push(line);
    }
    compared("written", &found);
}

/// Three samples of each input, waves of another length each.
fn samples(path: &Path, folder: &Path) -> Option<PathBuf> {
    let plain = options(path, folder);
    pack(&plain, &mut |_, _, _| {}).ok()?;
    let file = ModelFile::open(&plain.output).ok()?;
    let summary = file.view().ok()?.summary().ok()?;
    let samples = folder.join("samples.npz");
    let mut archive = NpzWriter::new(std::fs::File::create(&samples).ok()?);
    for (port, input) in summary.inputs.iter().enumerate() {
        if input.dtype != DType::F32.name() {
            return None;
        }
        let shape: Vec<usize> = std::iter::once(3).chain(input.shape.iter().copied()).collect();
        let count: usize = shape.iter().product();
        // Numbers that every host computes to the bit: no function of a library.
        let value = |at: usize| ((at * 7919 + port * 104_729 + at / 13 * 31) % 2003) as f32 / 1001.5 - 0.9;
        let values = ArrayD::from_shape_vec(IxDyn(&shape), (0..count).map(value).collect()).ok()?;
        archive.add_array(&input.name, &values).ok()?;
    }
    archive.finish().ok()?;
    Some(samples)
}

#[test]
fn calibrated_networks_pack_as_on_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut paths = models("models/onnx", ".onnx");
    // A third of them, without loops of many steps, which take long.
    let sum = |path: &Path| named(path).bytes().map(usize::from).sum::<usize>();
    let long = |path: &Path| ["gru", "lstm", "rnn"].iter().any(|kind| named(path).contains(kind));
    paths.retain(|path| !long(path) && sum(path) % 3 == 0);
    paths.extend(models("models/digits", ".trace.json"));
    let mut found = BTreeMap::new();
    for path in paths {
        let Some(samples) = samples(&path, folder.path()) else {
            continue;
        };
        let request = Request {
            samples,
            threads: Some(1),
            ..Request::default()
        };
        let low_bits = Some(LowBits {
            bits: 4,
            group: Some(32),
        });
        let ways = [
            ("int8", DType::I8, request.clone()),
            (
                "int16",
                DType::I16,
                Request {
                    activations: Activations::Int16,
                    float_ports: [true, false],
                    ..request.clone()
                },
            ),
            (
                "int4",
                DType::I8,
                Request {
                    low_bits,
                    optimise_rounding: true,
                    ..request
                },
            ),
        ];
        let name = named(&path);
        // One way each, chosen by the name; the networks of several layers have all.
        let all = name.starts_with("digits");
        let chosen = sum(&path) / 3 % ways.len();
        let ways = ways
            .into_iter()
            .enumerate()
            .filter(|&(index, _)| all || index == chosen);
        let digests = ways.map(|(_, (way, dtype, request))| {
            let float_ports = request.float_ports;
            let wanted = Options {
                dtype: Some(dtype),
                quantize: Some(request),
                dump_after: Some(Stage::Quantize),
                input_dtype: float_ports[0].then_some(DType::F32),
                ..options(&path, folder.path())
            };
            format!(" {way}={}", digest(&wanted, folder.path()))
        });
        found.insert(name, digests.collect::<String>());
    }
    let lines: Vec<String> = found.into_iter().map(|(name, digests)| name + &digests).collect();
    compared("calibrated", &lines);
}
