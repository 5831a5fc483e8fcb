//! Every option of `pack`, seen to change the file, what is said, or another file, or to be refused: none is taken and ignored. An option without a row fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{ARENITE, Bench, PACK, digits, done, models, run};

/// Effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The bytes of the model.
    File,
    /// Standard output, while the model stays.
    Said,
    /// Another file is written.
    Written,
    /// The run ends with this status and names the option or its value.
    Refused(i32, &'static str),
}
use Change::{File, Refused, Said, Written};

/// Network that the run with the option begins from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The digits in f32.
    Float,
    /// In int8, calibrated.
    Int8,
    /// The same for a core with kernels of its own.
    OnM0,
    /// An int8 network with channels that cannot change the output.
    Dead,
    /// A file of several networks, of which the first is packed.
    Named,
}

struct Row {
    option: &'static str,
    base: Base,
    /// Given to both runs.
    with: &'static [&'static str],
    /// The option's values; `@NAME` is a file of the bench.
    values: &'static [&'static str],
    change: Change,
}

const fn row(option: &'static str, base: Base, values: &'static [&'static str], change: Change) -> Row {
    let with: &[&str] = &[];
    Row {
        option,
        base,
        with,
        values,
        change,
    }
}

const fn with(row: Row, with: &'static [&'static str]) -> Row {
    Row { with, ..row }
}

const ROWS: [Row; 55] = [
    row("assume", Base::Float, &["nothing=3"], Refused(2, "nothing")),
    row("set", Base::Float, &["image=0.5"], Refused(2, "no input is left")),
    row("from", Base::Float, &["relu1"], File),
    row("until", Base::Float, &["relu4"], File),
    row("state", Base::Float, &["image=logits"], Refused(2, "as `image` is")),
    row("accelerator", Base::Int8, &["@accelerator.toml"], File),
    row("batch", Base::Float, &["2"], File),
    row("budget", Base::Int8, &["flash=7K"], File),
    row("calibrate", Base::Int8, &["@few.npy"], File),
    row("cores", Base::OnM0, &["2"], File),
    row("train", Base::Float, &[], Refused(2, "--loss")),
    row("loss", Base::Float, &["l2"], Refused(2, "--train")),
    with(
        row("trainable", Base::Float, &["fc*"], File),
        &["--train", "--loss", "cross-entropy"],
    ),
    with(
        row("optimiser", Base::Float, &["adam"], File),
        &["--train", "--loss", "cross-entropy"],
    ),
    with(
        row("micro-batches", Base::Float, &["2"], File),
        &["--train", "--loss", "cross-entropy", "--batch", "2"],
    ),
    row("context", Base::Float, &["5"], Refused(2, "no keys and values")),
    row("tokenizer", Base::Float, &["@labels.txt"], Refused(1, "labels.txt")),
    row("dialect", Base::Float, &["onnx"], Refused(1, "protocol buffer")),
    row("dtype", Base::Float, &["int8"], File),
    row("dump-after", Base::Float, &["fold"], Said),
    row("explain", Base::Float, &[], Said),
    row("fit", Base::Float, &["sram=2400"], File),
    with(
        row("group", Base::Float, &["8"], File),
        &["--dtype", "f32", "--weight-bits", "4"],
    ),
    row("input-dtype", Base::Int8, &["f32"], File),
    row("input-shape", Base::Float, &["1,1,9,8"], Refused(2, "input-shape")),
    row("json", Base::Float, &[], Said),
    row("keep-dead-channels", Base::Dead, &[], File),
    row("keep-f32", Base::Int8, &["conv1"], File),
    row("labels", Base::Float, &["@labels.txt"], File),
    row("max-flash", Base::Float, &["1K"], Refused(1, "max-flash")),
    row("max-step", Base::Float, &["610000"], File),
    row("name", Base::Float, &["another"], File),
    row("no-in-place", Base::Float, &[], File),
    row("optimise-rounding", Base::Int8, &[], File),
    row("output", Base::Float, &["@elsewhere.bin"], Written),
    row("output-dtype", Base::Int8, &["f32"], File),
    row("plan-nodes", Base::Float, &["1"], Said),
    row("preprocess", Base::Float, &["u8 size=8x8 mean=8 scale=0.125"], File),
    row("region", Base::Float, &["fast=1K"], Refused(1, "fast")),
    with(row("region", Base::Float, &["fast=64K"], Said), &["--json"]),
    row("report", Base::Float, &["@page.html"], Written),
    row("emit", Base::Float, &["c", "@c"], Written),
    row("emit", Base::Float, &["rust", "@rust"], Refused(2, "--emit rust")),
    row("stream-input", Base::Int8, &[], File),
    row("self-test", Base::Float, &["@few.npy"], File),
    row("sign", Base::Float, &["@key.pem"], File),
    row("sign-counter", Base::Float, &["7"], File),
    row("signature", Base::Named, &["shift"], File),
    row("size", Base::OnM0, &[], File),
    row("target", Base::Int8, &["cortex-m3"], File),
    row("target-snr", Base::Int8, &["20"], File),
    row("weight-bits", Base::Float, &["8"], File),
    row("weights", Base::Float, &["seeded:1"], Refused(1, "differs")),
    row("winograd", Base::OnM0, &[], File),
    row("help", Base::Float, &[], Said),
];

/// Result of a run.
struct Ended {
    status: Option<i32>,
    file: Option<Vec<u8>>,
    said: Vec<u8>,
    error: String,
}

/// The bench's files beside the networks.
fn prepare(bench: &Bench) {
    // A header of 128 bytes at most, and the first pictures.
    let all = fs::read(digits("test_images.npy")).expect("pictures");
    let header = 10 + usize::from(u16::from_le_bytes([all[8], all[9]]));
    let text = String::from_utf8_lossy(&all[10..header]).into_owned();
    let count: usize = text
        .split_once("'shape': (")
        .and_then(|(_, shape)| shape.split_once(','))
        .and_then(|(first, _)| first.trim().parse().ok())
        .expect("a shape");
    let picture = (all.len() - header) / count;
    let few = text.replacen(&format!("({count},"), "(3,", 1);
    let mut file = all[..10].to_vec();
    file.extend(format!("{:<width$}\n", few.trim_end(), width = header - 11).bytes());
    file.extend(&all[header..header + 3 * picture]);
    fs::write(bench.path("few.npy"), file).expect("written");
    let labels: String = (0..10).map(|label| format!("digit {label}\n")).collect();
    fs::write(bench.path("labels.txt"), labels).expect("written");
    let accelerator = "name = 'npu'\nversion = 2\nkernels = 'cortex-m33'\noperators = ['conv2d', 'linear']\n";
    fs::write(bench.path("accelerator.toml"), accelerator).expect("written");
    done(run(
        ARENITE,
        &[Path::new("keygen"), Path::new("-o"), &bench.path("key.pem")],
    ));
}

/// `None` where it is one of the shared models, which are not there.
fn network(base: Base) -> Option<PathBuf> {
    match base {
        Base::Dead => {}
        Base::Named => return Some(models().join("tflite_made/named_networks.tflite")),
        _ => return Some(digits("digits.trace.json")),
    }
    let given = std::env::var_os("ARENITE_SHARED").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let model = given.unwrap_or_else(beside).join("data/models/vww_96_int8.tflite");
    model.exists().then_some(model)
}

fn ended(bench: &Bench, row: &Row, network: &Path, option: bool) -> Ended {
    let model = bench.path("model.bin");
    _ = fs::remove_file(&model);
    let mut pack = Command::new(PACK);
    pack.arg(network).args(row.with);
    let given = |name: &str| option && row.option == name;
    if !given("output") {
        pack.arg("-o").arg(&model);
    }
    if matches!(row.base, Base::Int8 | Base::OnM0) {
        pack.args(["--dtype", "int8"]);
        if !given("calibrate") {
            pack.arg("--calibrate").arg(digits("test_images.npy"));
        }
    }
    if row.base == Base::OnM0 {
        pack.args(["--target", "cortex-m0"]);
    }
    if option {
        pack.arg(format!("--{}", row.option));
        for value in row.values {
            match value.strip_prefix('@') {
                Some(name) => pack.arg(bench.path(name)),
                None => pack.arg(value),
            };
        }
        match row.option {
            // int8 wants samples, few bits a type, and a signature both.
            "dtype" => _ = pack.arg("--calibrate").arg(digits("test_images.npy")),
            "weight-bits" => _ = pack.args(["--dtype", "f32"]),
            "sign" => _ = pack.args(["--sign-counter", "5"]),
            "sign-counter" => _ = pack.arg("--sign").arg(bench.path("key.pem")),
            _ => {}
        }
    }
    let output = pack.output().expect("it starts");
    Ended {
        status: output.status.code(),
        file: fs::read(&model).ok(),
        said: output.stdout,
        error: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn every_option_changes_something_or_is_refused() {
    let bench = Bench::new();
    prepare(&bench);
    let mut faults = Vec::new();
    let mut bases: BTreeMap<String, Ended> = BTreeMap::new();
    for row in &ROWS {
        let what = format!("--{} {:?}", row.option, row.values);
        let key = format!("{:?} {:?}", row.base, row.with);
        let Some(network) = network(row.base) else {
            eprintln!("skipped: {what}: no shared data");
            continue;
        };
        let base = bases.entry(key).or_insert_with(|| ended(&bench, row, &network, false));
        assert_eq!(base.status, Some(0), "{what}: {}", base.error);
        let found = ended(&bench, row, &network, true);
        let held = match row.change {
            File => found.status == Some(0) && found.file.is_some() && found.file != base.file,
            Said => found.status == Some(0) && found.said != base.said,
            Written => {
                let file = row.values.iter().find_map(|value| value.strip_prefix('@'));
                let written = |file: &str| fs::metadata(bench.path(file)).is_ok_and(|file| file.len() > 0);
                found.status == Some(0) && file.is_some_and(written)
            }
            Refused(status, named) => {
                found.status == Some(status) && found.file.is_none() && found.error.contains(named)
            }
        };
        if !held {
            faults.push(format!("{what}: {:?}, {}", found.status, found.error));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_option_has_a_row() {
    let [pack, _] = arenite_host::cli::commands();
    let options = pack.get_arguments().filter_map(|argument| argument.get_long());
    let missing: Vec<&str> = options
        .filter(|option| ROWS.iter().all(|row| row.option != *option))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "options of pack without a row");
}
