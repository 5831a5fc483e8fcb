//! One graph for a network, whatever the door: networks of all kinds as a trace, as ONNX by PyTorch's two exporters, as programs of `torch.export`,
//! and as `.tflite` where that converter takes them, become the same steps and the same int8 file. Differences stand in `docs/onnx.md`, with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use arenite::{DType, Target};
use arenite_host::compare;
use arenite_host::import::{ImportOptions, Samples, import};
use arenite_host::model::{ModelFile, run};
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::{self, AUTO};
use arenite_tests::golden::difference;
use arenite_tests::oracle::compared;
use arenite_tests::skip;
use ndarray::{ArrayD, Axis, IxDyn};

/// Doors: name, and what their files end with. The others are compared with the first.
const DOORS: [(&str, &str); 5] = [
    ("trace", "trace.json"),
    ("TorchScript", "torchscript.onnx"),
    ("dynamo", "dynamo.onnx"),
    ("tflite", "tflite"),
    ("export", "pt2"),
];

/// Why a network is not the same through each door, by its name.
const REASONS: &[(&str, &str)] = &[
    (
        "attention",
        "ONNX: two reshapes joined ahead of the last layer hide its rows, and its sum stays a step",
    ),
    (
        "attention_written_out",
        "ONNX: as `attention`; .tflite: the scale is a product behind its own reshapes",
    ),
    (
        "flattened",
        ".tflite: a transpose of its own ahead of the flattening, which the layer's weights do not take up",
    ),
    (
        "group_norm",
        ".tflite: the converter's form, root, weight and mean of each group joined ahead of the product",
    ),
    (
        "pixel_shuffle",
        ".tflite: the converter moves the ReLU ahead of the shuffle, into the convolution",
    ),
    ("rms_norm", ".tflite: the square is a product of two operands"),
    ("rms_norm_written_out", ".tflite: as `rms_norm`"),
    (
        "squeeze_excite",
        ".tflite: the sum of the hard sigmoid is in the layer ahead of it, its quotient a step",
    ),
    ("tcn", ".tflite: the padding stands ahead of a reshape and a transpose"),
    (
        "u_net",
        ".tflite: zeros are put between elements of channels last, elsewhere of channels first",
    ),
    ("u_net_1d", ".tflite: as `u_net`"),
    (
        "vision_transformer",
        "ONNX: queries and keys are scaled behind a transpose of the three; .tflite: as ONNX, and roundings",
    ),
    ("weight_norm", "ONNX: as `attention`"),
];

/// By how much int8 answers may differ where numbers were rounded otherwise, of the largest: a few steps of 1/128.
const MOST_ROUNDED: f64 = 0.05;

/// The most bytes that a network and its runs may take in the tree.
const LARGEST: u64 = 120_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn folder() -> PathBuf {
    root().join("tests/models/doors")
}

/// The networks, each with the bytes of its files.
fn networks() -> BTreeMap<String, u64> {
    let mut networks = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).expect("the folder") {
        let entry = entry.expect("an entry");
        let file = entry.file_name().into_string().expect("a name");
        let name = file.split('.').next().unwrap_or_default().to_string();
        *networks.entry(name).or_insert(0) += entry.metadata().expect("a size").len();
    }
    networks
}

/// Through which doors a network goes.
fn doors(name: &str) -> Vec<(&'static str, PathBuf)> {
    let files = DOORS.map(|(door, ending)| (door, folder().join(format!("{name}.{ending}"))));
    files.into_iter().filter(|(_, path)| path.is_file()).collect()
}

/// The kernels of a file's steps, sorted: the order of two that do not read each other is nobody's.
fn kernels(file: &ModelFile) -> Vec<&'static str> {
    let steps = file.view().expect("a view").steps().expect("steps");
    let mut kernels: Vec<_> = steps.iter().map(|step| step.kernel().name()).collect();
    kernels.sort_unstable();
    kernels
}

/// Returns a file without its names: its ports and steps as text, and its weights.
fn nameless(file: &ModelFile) -> (Vec<String>, Vec<u8>) {
    let view = file.view().expect("a view");
    let steps = view.steps().expect("steps");
    let mut text: Vec<String> = steps.iter().map(|step| format!("{step:?}")).collect();
    for port in view.inputs.iter().chain(&view.outputs) {
        let shape = port.shape.as_slice().to_vec();
        text.push(format!("{:?} {shape:?} {} {}", port.dtype, port.scale, port.zero_point));
    }
    (text, view.weights().to_vec())
}

fn samples(name: &str) -> Samples {
    let trace = folder().join(format!("{name}.trace.json"));
    let (_, imported) = import(&trace, None, &ImportOptions::default()).expect("it is imported");
    imported.samples.expect("runs")
}

fn packed(options: &Options, what: &str) -> ModelFile {
    pack(options, &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{what}: {e}"));
    ModelFile::open(&options.output).expect("a file")
}

/// `pack --dtype int8 --calibrate SAMPLES --keep-f32 auto`
fn quantised(path: &Path, samples: &Path, output: PathBuf) -> Options {
    Options {
        target: Target::CortexM4,
        plan_nodes: 2000,
        dtype: Some(DType::I8),
        quantize: Some(quantize::Request {
            samples: samples.to_path_buf(),
            keep_f32: vec![AUTO.to_string()],
            threads: Some(1),
            ..quantize::Request::default()
        }),
        ..Options::new(path, output)
    }
}

/// The runs' inputs as an array of NumPy, one behind the other.
fn write_samples(samples: &Samples, shape: &[usize], path: &Path) {
    let arrays: Vec<ArrayD<f32>> = (samples.runs.iter())
        .map(|run| {
            let bytes = run.inputs[0].1.as_chunks::<4>().0;
            let values = bytes.iter().map(|b| f32::from_le_bytes(*b)).collect();
            ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many values")
        })
        .collect();
    let views: Vec<_> = arrays.iter().map(|array| array.view()).collect();
    let stacked = ndarray::stack(Axis(0), &views).expect("equal shapes");
    ndarray_npy::write_npy(path, &stacked).expect("written");
}

/// Results of the doors for a network.
struct Row {
    /// The kernels in f32 and in int8, a door each.
    steps: [Vec<Vec<&'static str>>; 2],
    /// How a door's int8 file differs from the first one's.
    files: Vec<&'static str>,
}

impl Row {
    fn is_one_graph(&self) -> bool {
        let equal = |steps: &Vec<Vec<&str>>| steps.iter().all(|kernels| *kernels == steps[0]);
        self.steps.iter().all(equal)
    }

    fn is_one_file(&self) -> bool {
        self.is_one_graph() && self.files.iter().all(|file| *file == "=")
    }
}

/// How the second file differs from the first: not at all but for names, in numbers that were rounded otherwise, or in its steps.
fn apart(first: &ModelFile, second: &ModelFile) -> &'static str {
    if kernels(first) != kernels(second) {
        "steps"
    } else if nameless(first) == nameless(second) {
        "="
    } else {
        "roundings"
    }
}

/// Returns the answers of an int8 network, in real numbers.
fn answers(file: &ModelFile, runs: &[Vec<Vec<u8>>]) -> Vec<f64> {
    let view = file.view().expect("a view");
    let [input, output] = [&view.inputs[0], &view.outputs[0]];
    let stored = |run: &Vec<Vec<u8>>| -> Vec<Vec<u8>> {
        let values = run[0].as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b));
        let bytes = values.flat_map(|value| match input.dtype {
            DType::I8 => vec![((value / input.scale).round() as i32 + input.zero_point).clamp(-128, 127) as u8],
            _ => value.to_le_bytes().to_vec(),
        });
        vec![bytes.collect()]
    };
    let stored: Vec<_> = runs.iter().map(stored).collect();
    let answers = run(&file.load().expect("it loads"), &stored, true, &mut |_, _, _| {}).expect("it runs");
    let real = |value: f64| match output.dtype {
        DType::F32 => value,
        _ => f64::from(output.scale) * (value - f64::from(output.zero_point)),
    };
    let values = answers
        .iter()
        .flat_map(|answer| compare::to_f64(output.dtype, &answer[0]));
    values.map(real).collect()
}

/// The largest difference, of the largest answer.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let largest = a.iter().fold(f64::MIN_POSITIVE, |most, value| most.max(value.abs()));
    a.iter().zip(b).fold(0.0_f64, |most, (a, b)| most.max((a - b).abs())) / largest
}

/// Packs a network through each door; in f32 it computes what PyTorch does.
fn through_doors(name: &str, wrong: &Mutex<Vec<String>>) -> Row {
    let scratch = tempfile::tempdir().expect("a folder");
    let runs = samples(name);
    let inputs: Vec<Vec<Vec<u8>>> = (runs.runs.iter()).map(|run| vec![run.inputs[0].1.clone()]).collect();
    let calibration = scratch.path().join("samples.npy");
    let mut row = Row {
        steps: [Vec::new(), Vec::new()],
        files: Vec::new(),
    };
    let mut first = None;
    for (door, path) in doors(name) {
        let what = format!("{name}, {door}");
        let options = Options {
            plan_nodes: 2000,
            ..Options::new(&path, scratch.path().join(format!("{door}.f32")))
        };
        let file = packed(&options, &what);
        let model = file.load().expect("it loads");
        let results = run(&model, &inputs, true, &mut |_, _, _| {}).expect("it runs");
        let input = model.input(0).expect("an input");
        let shape: Vec<usize> = input.shape.as_slice().iter().map(|&n| n as usize).collect();
        for (result, expected) in results.iter().zip(&runs.runs) {
            if let Some(text) = difference(DType::F32, &result[0], &expected.outputs[0].1) {
                wrong.lock().expect("no panic").push(format!("{what}: {text}"));
            }
        }
        row.steps[0].push(kernels(&file));
        write_samples(&runs, &shape, &calibration);
        let file = packed(
            &quantised(&path, &calibration, scratch.path().join(format!("{door}.int8"))),
            &what,
        );
        row.steps[1].push(kernels(&file));
        let found = answers(&file, &inputs);
        let (first, expected) = first.get_or_insert_with(|| {
            let file = ModelFile::open(&scratch.path().join(format!("{door}.int8"))).expect("a file");
            (file, found.clone())
        });
        let class = apart(first, &file);
        let far = distance(expected, &found);
        if class == "roundings" && far > MOST_ROUNDED {
            wrong
                .lock()
                .expect("no panic")
                .push(format!("{what}: int8 answers are {far} away from the trace's"));
        }
        row.files.push(class);
    }
    row
}

fn rows() -> BTreeMap<String, Row> {
    let (todo, done) = (
        Mutex::new(networks().into_keys().collect::<Vec<_>>()),
        Mutex::new(BTreeMap::new()),
    );
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().expect("no other thread panicked").pop();
                    let Some(name) = next else { break };
                    let row = through_doors(&name, &wrong);
                    done.lock().expect("no other thread panicked").insert(name, row);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    done.into_inner().expect("no panic")
}

/// One number where the doors' kernels are the same, else one a door.
fn counts(steps: &[Vec<&str>]) -> String {
    if steps.iter().all(|kernels| *kernels == steps[0]) {
        return steps[0].len().to_string();
    }
    let counts: Vec<String> = steps.iter().map(|kernels| kernels.len().to_string()).collect();
    counts.join(", ")
}

/// The table of the document.
fn table(rows: &BTreeMap<String, Row>) -> String {
    let reasons: BTreeMap<_, _> = REASONS.iter().copied().collect();
    let graphs = rows.values().filter(|row| row.is_one_graph()).count();
    let files = rows.values().filter(|row| row.is_one_file()).count();
    let mut lines = format!(
        "{graphs} of {} networks are one graph through all their doors, {files} one int8 file.\n\n\
         | network | doors | steps, f32 | steps, int8 | int8 file | why |\n| --- | ---: | --- | --- | --- | --- |\n",
        rows.len()
    );
    for (name, row) in rows {
        let doors = row.files.len();
        let [float, int8] = row.steps.each_ref().map(|steps| counts(steps));
        let files = if row.is_one_file() {
            "=".to_string()
        } else {
            row.files[1..].join(", ")
        };
        let why = reasons.get(name.as_str()).unwrap_or(&"");
        let _ = writeln!(lines, "| {name} | {doors} | {float} | {int8} | {files} | {why} |");
    }
    lines
}

#[test]
fn a_network_is_one_graph_through_every_door() {
    let rows = rows();
    if std::env::var_os("ARENITE_SHOW").is_some() {
        for (name, row) in rows.iter().filter(|(_, row)| !row.is_one_file()) {
            eprintln!("{name}: {:#?} {:?}", row.steps, row.files);
        }
    }
    let differing: BTreeSet<&str> = (rows.iter().filter(|(_, row)| !row.is_one_graph()))
        .map(|(name, _)| name.as_str())
        .collect();
    let path = root().join("docs/onnx.md");
    let text = std::fs::read_to_string(&path).expect("the document");
    let from = "<!-- doors: generated -->\n";
    let start = text.find(from).expect("a start marker") + from.len();
    let end = start + text[start..].find("<!-- end -->").expect("an end marker");
    let made = format!("{}{}{}", &text[..start], table(&rows), &text[end..]);
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let tracked: BTreeSet<&str> = text.lines().collect();
    let new: Vec<&str> = made.lines().filter(|line| !tracked.contains(line)).collect();
    assert!(
        text == made,
        "docs/onnx.md says otherwise of\n{}\nwhere this is meant: ARENITE_BLESS=1 cargo test -p arenite-tests --test host doors::",
        new.join("\n")
    );
    let explained: BTreeSet<&str> = REASONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(differing, explained, "networks that differ, and those with a reason");
    compared("PyTorch", rows.values().map(|row| row.files.len() * 3).sum(), 400);
}

#[test]
fn each_network_is_small_and_has_its_doors() {
    let networks = networks();
    assert!(networks.len() >= 40, "{}", networks.len());
    for (name, bytes) in &networks {
        assert!(*bytes <= LARGEST, "{name}: {bytes} bytes");
        assert!(doors(name).len() >= 3, "{name}: {:?}", doors(name));
    }
}

#[test]
#[ignore = "long: needs PyTorch and its exporters"]
fn made_anew_they_are_the_same() {
    let test = "made_anew_they_are_the_same";
    let python = std::env::var("ARENITE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(arguments).current_dir(root());
        command.env("PYTHONPATH", root().join("host-tools/python")).output()
    };
    if !run(&["-c", "import torch, onnx, onnxscript"]).is_ok_and(|output| output.status.success()) {
        return skip(test, "no PyTorch with onnx and onnxscript");
    }
    let output = run(&["tests/oracle/make_doors.py", "--check"]).expect("it runs");
    let said = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
    compared("PyTorch", networks().len(), 40);
}
