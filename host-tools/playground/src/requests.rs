//! Requests of the page, and the answers: the same library calls as behind `pack`, `arenite report` and `arenite run`.

use std::path::Path;

use arenite::Port;
use arenite_host::board::tell_worst;
use arenite_host::compare::to_f64;
use arenite_host::files;
use arenite_host::memory::prove;
use arenite_host::model::{self, ModelFile};
use arenite_host::pack::{Options, pack, target_named};
use arenite_host::page::{Extra, page};
use arenite_host::report::Summary;
use arenite_host::stage::{Stage, unwatched};
use arenite_host::{Error, ErrorKind, Result, samples, sign};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The model that the page shows.
const MODEL: &str = "shown/model.bin";

/// Values of an output, and runs, that an answer tells at most.
const VALUES: usize = 1000;
const RUNS: usize = 100;

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Request {
    /// Packs a network, or takes a model file as it is.
    Open {
        file: String,
        target: String,
        weights: Option<String>,
    },
    /// Runs the model on the arrays of a file.
    Run { file: String },
    /// The bytes of the model file.
    Model,
}

#[derive(Serialize)]
struct Opened {
    summary: Summary,
    /// Whether it was packed here.
    packed: bool,
    warnings: Vec<String>,
    /// Why it does not run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<String>,
    sha256: String,
    /// The page that `arenite report` makes.
    page: String,
}

#[derive(Serialize)]
struct Ran {
    /// By run and output.
    runs: Vec<Vec<Output>>,
    notes: Vec<String>,
    labels: Vec<String>,
}

#[derive(Serialize)]
struct Output {
    name: String,
    dtype: &'static str,
    shape: Vec<u32>,
    /// Of the raw little-endian bytes, as in `arenite run --json`.
    sha256: String,
    /// The first ones as real numbers.
    values: Vec<f64>,
}

/// The answer to a request in JSON; it is JSON, too, but for the model.
pub(crate) fn answer(request: &[u8]) -> Result<Vec<u8>> {
    let request: Request = serde_json::from_slice(request).map_err(|e| Error::internal(format!("a request: {e}")))?;
    match request {
        Request::Open { file, target, weights } => json(&open(Path::new(&file), &target, weights)?),
        Request::Run { file } => json(&run(Path::new(&file))?),
        Request::Model => files::read(Path::new(MODEL), "read the model"),
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|e| Error::internal(format!("an answer: {e}")))
}

fn open(path: &Path, target: &str, weights: Option<String>) -> Result<Opened> {
    let content = files::read(path, "read the file")?;
    let made = [&b"ARENITE\n"[..], b"ARENSIG\n", b"ARENBND\n"];
    let (mut warnings, mut trace) = (Vec::new(), None);
    let packed = !made.iter().any(|magic| content.starts_with(magic));
    if packed {
        let options = Options {
            target: target_named(target)?,
            weights,
            dump_after: Some(Stage::Import),
            ..Options::new(path, MODEL)
        };
        let done = pack(&options, &mut unwatched)?;
        (warnings, trace) = (done.warnings, done.dump);
    }
    let shown = if packed { Path::new(MODEL) } else { path };
    let file = ModelFile::open(shown)?;
    let elsewhere = match file.load() {
        Ok(_) => None,
        Err(e) if e.kind() == ErrorKind::Unsupported => Some(e.to_string()),
        Err(e) => return Err(e),
    };
    let view = file.view()?;
    prove::prove(&view).map_err(|e| Error::input(e.to_string()).in_file(path))?;
    let mut summary = view.summary()?;
    summary.model_bytes += file.envelope().map_or(0, |_| sign::ENVELOPE_BYTES);
    tell_worst(&mut summary, view.target_name(), &view.steps()?, view.weights());
    let extra = Extra {
        trace,
        ..Extra::default()
    };
    let page = page(&view, &summary, &extra)?;
    let sha256 = hex(file.whole());
    if !packed {
        files::write(Path::new(MODEL), &content)?;
    }
    Ok(Opened {
        summary,
        packed,
        warnings,
        elsewhere,
        sha256,
        page,
    })
}

fn run(path: &Path) -> Result<Ran> {
    let file = ModelFile::open(Path::new(MODEL))?;
    let model = file.load()?;
    let view = file.view()?;
    let mut notes = Vec::new();
    let inputs = samples::inputs(path, &view.inputs, &mut |note| notes.push(note))?;
    let count = inputs.len();
    let inputs = &inputs[..count.min(RUNS)];
    if count > RUNS {
        notes.push(format!("the first {RUNS} of {count} runs"));
    }
    let outputs = model::run(&model, inputs, false, &mut |_, _, _| {})?;
    let told = |outputs: &Vec<Vec<u8>>| view.outputs.iter().zip(outputs).map(output).collect();
    Ok(Ran {
        runs: outputs.iter().map(told).collect(),
        notes,
        labels: view.metadata()?.labels,
    })
}

fn output((port, bytes): (&Port<'_>, &Vec<u8>)) -> Output {
    let real = |value: f64| match port.scale {
        0.0 => value,
        scale => (value - f64::from(port.zero_point)) * f64::from(scale),
    };
    Output {
        name: port.name.to_owned(),
        dtype: port.dtype.name(),
        shape: port.shape.to_vec(),
        sha256: hex(bytes),
        values: to_f64(port.dtype, bytes).into_iter().take(VALUES).map(real).collect(),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
