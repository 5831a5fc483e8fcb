//! The five reference traces at full size: packed within time and memory, compared layer by layer with an independent evaluation, and run on a
//! board. `docs/full-size.md` holds what they take; `cargo xtask long` runs them.

mod int8;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use arenite_host::compare;
use ndarray::ArrayD;
use serde_json::Value;

/// Of the packer, beyond copying the blob: seconds with weights from a file, and with seeded ones.
const FILE_SECONDS: f64 = 10.0;
const SEEDED_SECONDS: f64 = 20.0;

/// Relative error of every layer against the reference, and of a board's output against the host's.
const LAYERS: f64 = 1e-4;
const BOARDS: f64 = 1e-5;

struct Case {
    trace: &'static str,
    params: u64,
    /// Layers that the comparison must find: all but those that fusion leaves no tensor of.
    layers: u64,
    /// `--target` and the boards that run it.
    boards: &'static [(&'static str, &'static str)],
}

#[test]
#[ignore = "long: a minute"]
fn alexnet() {
    check(&Case {
        trace: "alexnet-tf-shapes.trace.txt",
        params: 2_469_696,
        layers: 10,
        boards: &[("cortex-m4", "mps2-an386")],
    });
}

#[test]
#[ignore = "long: minutes"]
fn resnet50_megengine() {
    check(&Case {
        trace: "resnet50-megengine.trace.json",
        params: 25_526_632,
        layers: 58,
        boards: &[("aarch64", "aarch64-virt")],
    });
}

#[test]
#[ignore = "long: minutes"]
fn resnet50_keras() {
    check(&Case {
        trace: "resnet50-keras-order.trace.txt",
        params: 25_636_712,
        layers: 56,
        boards: &[("aarch64", "aarch64-virt")],
    });
}

#[test]
#[ignore = "long: ten minutes"]
fn vgg19() {
    check(&Case {
        trace: "vgg19-chainer.trace.txt",
        params: 143_667_240,
        layers: 25,
        boards: &[("aarch64", "aarch64-virt")],
    });
}

#[test]
#[ignore = "long: minutes, 6 GB of disk"]
fn local_net() {
    check(&Case {
        trace: "localnet-rects.trace.txt",
        params: 293_629_250,
        layers: 4,
        boards: &[("aarch64", "aarch64-virt")],
    });
}

fn check(case: &Case) {
    let (stem, _) = case.trace.split_once('.').expect("a trace's name");
    let Some(tools) = Tools::find(stem) else { return };
    let trace = tools.traces.join(case.trace);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (weights, model, copy) = (file("weights.safetensors"), file("model.bin"), file("copy.bin"));

    let (seed, to) = (["--seed".as_ref(), "1".as_ref()], "-o".as_ref());
    let drawn = tools.arenite(&["weights".as_ref(), &trace, seed[0], seed[1], to, &weights]);
    let packed = tools.pack(&trace, &weights, "portable", &model);
    let summary: Value = serde_json::from_str(&packed.stdout).expect("pack --json");
    assert_eq!(summary["params"], case.params);
    let start = Instant::now();
    std::fs::copy(&model, &copy).expect("copies");
    let copied = start.elapsed().as_secs_f64();
    std::fs::remove_file(&copy).expect("removes");
    let seeded = tools.pack(&trace, Path::new("seeded:1"), "portable", &copy);
    assert!(
        same_bytes(&model, &copy),
        "{stem}: weights from the file of seed 1 pack otherwise than seeded:1"
    );
    std::fs::remove_file(&copy).expect("removes");
    let limit = 1.3 * 4.0 * case.params as f64 + 64e6;
    for (what, run, seconds) in [("file", &packed, FILE_SECONDS), ("seeded", &seeded, SEEDED_SECONDS)] {
        let more = run.seconds - copied;
        assert!(
            more <= seconds,
            "{stem}, weights of {what}: {more:.1} s more than copying the blob, over {seconds}"
        );
        assert!(
            run.peak_bytes <= limit,
            "{stem}, weights of {what}: {} bytes of memory, over {limit}",
            run.peak_bytes
        );
    }
    row(
        stem,
        "weights drawn",
        drawn.seconds,
        &format!("{} parameters", case.params),
    );
    row(stem, "cp of the blob", copied, "");
    row(stem, "packed, file", packed.seconds, &mib(packed.peak_bytes));
    row(stem, "packed, seeded", seeded.seconds, &mib(seeded.peak_bytes));

    let (x, reference, y) = (file("x.npy"), file("reference.npz"), file("y.npy"));
    let start = Instant::now();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/reference.py");
    let status = Command::new(&tools.python)
        .arg(script)
        .arg(&trace)
        .arg("--weights")
        .arg(&weights)
        .args(["--seed", "1", "--save-input"])
        .arg(&x)
        .arg("-o")
        .arg(&reference)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("Python starts").success(), "{stem}: the reference");
    row(stem, "reference", start.elapsed().as_secs_f64(), "NumPy, float64");

    let tolerance = LAYERS.to_string();
    let options = ["--json".as_ref(), "--tolerance".as_ref(), tolerance.as_ref()];
    let compared = tools.arenite(&[&["diff".as_ref(), model.as_path(), &reference], &options[..]].concat());
    let report: Value = serde_json::from_str(&compared.stdout).expect("diff --json");
    assert!(
        report["first_difference"].is_null(),
        "{stem}: {}",
        report["first_difference"]
    );
    assert_eq!(
        report["compared"], case.layers,
        "{stem}: layers compared; others are {}",
        report["not_in_model"]
    );
    row(
        stem,
        "host, all layers",
        compared.seconds,
        &format!("{} layers, at most {}", case.layers, report["worst"]["error"]),
    );

    let (host, output) = tools.run(&model, &x, &y, "host");
    let expected: ArrayD<f32> = ndarray_npy::NpzReader::new(std::fs::File::open(&reference).expect("opens"))
        .and_then(|mut npz| npz.by_name(&output.name))
        .expect("the reference holds the output");
    let expected: Vec<f64> = expected.iter().map(|&v| f64::from(v)).collect();
    assert!(
        compare::relative_f64(&output.values, &expected) <= LAYERS,
        "{stem}: the output"
    );
    assert_eq!(top_1(&output.values), top_1(&expected), "{stem}: top-1");
    row(stem, "host", host.seconds, &format!("top-1 {}", top_1(&output.values)));

    for &(target, board) in case.boards {
        tools.pack(&trace, &weights, target, &model);
        let (run, found) = tools.run(&model, &x, &y, &format!("qemu:{board}"));
        let error = compare::relative_f64(&found.values, &output.values);
        assert!(error <= BOARDS, "{stem} on {board}: {error:e} from the host");
        assert_eq!(top_1(&found.values), top_1(&output.values), "{stem} on {board}: top-1");
        let instructions = found.instructions;
        row(
            stem,
            board,
            run.seconds,
            &format!("{instructions} instructions, {error:.1e} from the host"),
        );
    }
}

/// A line of the table in `docs/full-size.md`.
fn row(network: &str, what: &str, seconds: f64, note: &str) {
    println!("| {network} | {what} | {seconds:.1} | {note} |");
}

fn mib(bytes: f64) -> String {
    format!("{:.0} MiB at its peak", bytes / f64::from(1 << 20))
}

fn top_1(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, at| if values[at] > values[best] { at } else { best })
}

fn same_bytes(a: &Path, b: &Path) -> bool {
    let checksum = |path: &Path| {
        let mut file = std::fs::File::open(path).expect("opens");
        let (mut hash, mut buffer) = (crc32fast::Hasher::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer).expect("reads") {
                0 => break (hash.finalize(), file.metadata().expect("a file").len()),
                n => hash.update(&buffer[..n]),
            }
        }
    };
    checksum(a) == checksum(b)
}

/// The programs under test, the traces, and a Python with NumPy and safetensors.
struct Tools {
    programs: PathBuf,
    traces: PathBuf,
    python: PathBuf,
}

/// A program that ran well.
struct Ran {
    stdout: String,
    seconds: f64,
    peak_bytes: f64,
}

/// The only output of a run.
struct Output {
    name: String,
    values: Vec<f64>,
    /// 0 on the host.
    instructions: u64,
}

impl Tools {
    /// Builds the programs; `None`, said by name, where shared data or Python is missing.
    fn find(test: &str) -> Option<Self> {
        let skip = |reason| {
            arenite_tests::skip(test, reason);
            None
        };
        let Some(shared) = arenite_tests::shared() else {
            return skip("no shared data");
        };
        let python = std::env::var_os("ARENITE_PYTHON").map_or("python3".into(), PathBuf::from);
        let imports = Command::new(&python)
            .args(["-c", "import numpy, safetensors"])
            .stderr(Stdio::null())
            .status();
        if !imports.is_ok_and(|status| status.success()) {
            return skip("no Python with NumPy and safetensors (ARENITE_PYTHON)");
        }
        Some(Self {
            programs: arenite_tests::programs(),
            traces: shared.join("traces"),
            python,
        })
    }

    fn pack(&self, trace: &Path, weights: &Path, target: &str, model: &Path) -> Ran {
        let arguments = [
            "--weights".as_ref(),
            weights,
            "--target".as_ref(),
            target.as_ref(),
            "-o".as_ref(),
            model,
        ];
        self.program("pack", &[&[trace, "--json".as_ref()], &arguments[..]].concat())
    }

    fn arenite(&self, arguments: &[&Path]) -> Ran {
        self.program("arenite", arguments)
    }

    /// Runs a model of one input and one output.
    fn run(&self, model: &Path, x: &Path, y: &Path, on: &str) -> (Ran, Output) {
        let arguments = [
            "--on".as_ref(),
            on.as_ref(),
            "--timeout".as_ref(),
            "7200".as_ref(),
            "--json".as_ref(),
        ];
        let files = ["run".as_ref(), model, "--input".as_ref(), x, "--output".as_ref(), y];
        let ran = self.arenite(&[&files[..], &arguments[..]].concat());
        let report: Value = serde_json::from_str(&ran.stdout).expect("run --json");
        let values: ArrayD<f32> = ndarray_npy::read_npy(y).expect("an f32 output");
        let output = Output {
            name: report["outputs"][0]["name"].as_str().expect("a name").to_owned(),
            values: values.iter().map(|&v| f64::from(v)).collect(),
            instructions: report["instructions"][0].as_u64().unwrap_or(0),
        };
        (ran, output)
    }

    /// Runs a program to a good end.
    #[expect(clippy::zombie_processes, reason = "`wait` waits, and reads the peak of the memory")]
    fn program(&self, name: &str, arguments: &[&Path]) -> Ran {
        let start = Instant::now();
        let mut child = Command::new(self.programs.join(name))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // Both are read to their ends: a full pipe would stop the program.
        let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let messages = std::thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text).map(|_| text)
        });
        let mut stdout = String::new();
        out.read_to_string(&mut stdout).expect("text");
        let (good, peak_bytes) = wait(child.id());
        let messages = messages.join().expect("no panic").expect("text");
        assert!(good, "{name} {arguments:?}:\n{messages}{stdout}");
        Ran {
            stdout,
            seconds: start.elapsed().as_secs_f64(),
            peak_bytes,
        }
    }
}

/// Waits for a child; whether it ended well, and the largest resident set that it had.
fn wait(child: u32) -> (bool, f64) {
    let mut status = 0;
    // SAFETY: plain old data, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are ours, and nobody else waits for this child.
    let id = unsafe { libc::wait4(child.cast_signed(), &raw mut status, 0, &raw mut usage) };
    // Linux counts in KiB.
    (
        id == child.cast_signed() && status == 0,
        usage.ru_maxrss as f64 * 1024.0,
    )
}
