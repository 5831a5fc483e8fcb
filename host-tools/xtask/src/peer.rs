//! The same models run by the crate microflow on the Cortex-M4F, to stand beside Arenite's counts: `firmware/peer`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use arenite::Target;
use arenite_host::board::{Blob, Board, BoardError, Firmware, RunOptions, count, run};
use arenite_host::files;
use arenite_host::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::results::{Configuration, packed};

/// The version that `firmware/peer/Cargo.toml` asks for.
pub const VERSION: &str = "microflow 0.1.3";

/// The board.
const BOARD: &str = "mps2-an386";

/// The int8 models that it is tried on, in the shared data.
pub const MODELS: [&str; 6] = [
    "tflm_hello_world_int8",
    "tflm_micro_speech_quantized",
    "ad01_int8",
    "kws_ref_model",
    "vww_96_int8",
    "pretrainedResnet_quant",
];

/// A model, in both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// File stem of the model.
    pub model: String,
    /// Instructions of one inference by Arenite.
    pub instructions: u64,
    /// Its arena and stack bytes.
    pub ram_bytes: u64,
    /// Memory and instructions that microflow needs, or why it does not run the model.
    pub microflow: std::result::Result<Figures, String>,
}

/// Memory and instructions that microflow needs for a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Instructions of one inference.
    pub instructions: u64,
    /// Stack bytes, where its tensors are.
    pub stack_bytes: u64,
    /// Bytes of the program's code; weights are in its constants, which are not counted.
    pub text_bytes: u64,
    /// Outputs that differ from Arenite's, and by how many quantisation steps at most. The input is zeros.
    pub differ: usize,
    /// See `differ`.
    pub steps: f64,
}

/// Counts `model`, a .tflite file, in both.
///
/// # Errors
/// Those of Arenite's own run; what stops microflow is in the result.
pub fn compare(model: &Path) -> Result<Peer> {
    let board = Board::find(BOARD).ok_or_else(|| Error::internal(format!("no board {BOARD}")))?;
    let folder = files::Scratch::new().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder", &e))?;
    let configuration = Configuration {
        board,
        target: Target::CortexM4,
        size: false,
    };
    let file = packed(model, configuration, folder.path())?;
    let view = file.view()?;
    let inputs = vec![0; view.header().input_bytes as usize];
    let ours = run(board, Blob::File(file.path()), &inputs, &RunOptions::default())?;
    let summary = view.summary()?;
    let (scale, zero_point) = summary.outputs.first().map_or((1.0, 0), |output| {
        (output.scale.unwrap_or(1.0), output.zero_point.unwrap_or(0))
    });
    let real = |byte: &u8| f64::from(scale) * f64::from(i32::from(*byte as i8) - zero_point);
    let expected: Vec<f64> = ours.outputs.iter().map(real).collect();
    let microflow = inference(board, model)
        .map_err(|e| reason(&e))
        .and_then(|(figures, outputs)| {
            if outputs.len() != expected.len() {
                return Err(format!("{} outputs instead of {}", outputs.len(), expected.len()));
            }
            let steps = outputs
                .iter()
                .zip(&expected)
                .map(|(a, b)| ((f64::from(*a) - b) / f64::from(scale)).abs().round());
            let steps: Vec<f64> = steps.collect();
            Ok(Figures {
                differ: steps.iter().filter(|&&steps| steps > 0.0).count(),
                steps: steps.into_iter().fold(0.0, f64::max),
                ..figures
            })
        });
    Ok(Peer {
        model: model.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        instructions: ours.instructions.first().copied().unwrap_or_default(),
        ram_bytes: ours.arena_bytes + u64::from(ours.stack_bytes),
        microflow,
    })
}

/// The first error of a compiler, or the whole message.
fn reason(error: &BoardError) -> String {
    let text = error.to_string();
    let line = text.lines().find(|line| line.starts_with("error"));
    line.unwrap_or(&text).to_owned()
}

/// Builds microflow's program for `model` and runs it on zeros; its outputs are dequantised.
fn inference(board: &'static Board, model: &Path) -> std::result::Result<(Figures, Vec<f32>), BoardError> {
    let firmware = build(board, model)?;
    let counted = count(&firmware, Duration::from_secs(600))?;
    let outputs = counted
        .outputs
        .as_chunks()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    let figures = Figures {
        instructions: counted.instructions,
        stack_bytes: counted.stack_bytes.into(),
        text_bytes: firmware.section_bytes(".text"),
        differ: 0,
        steps: 0.0,
    };
    Ok((figures, outputs))
}

fn build(board: &'static Board, model: &Path) -> std::result::Result<Firmware, BoardError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = root.join("target/boards/peer");
    let model = model.canonicalize().map_err(|source| BoardError::File {
        path: model.to_owned(),
        source,
    })?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--quiet", "--release", "--target", board.triple])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root.join("firmware/peer"))
        .env("ARENITE_MODEL", &model);
    for inherited in ["RUSTFLAGS", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(inherited);
    }
    let output = cargo.output().map_err(|error| BoardError::ToolMissing {
        tool: "cargo".to_owned(),
        how: format!("get it from https://rustup.rs ({error})"),
    })?;
    if !output.status.success() {
        return Err(BoardError::Build {
            board: board.name,
            program: VERSION.to_owned(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    Firmware::open(board, &target.join(board.triple).join("release/peer"))
}

/// Reads the tracked figures; none where there is no file.
///
/// # Errors
/// [`arenite_host::ErrorKind::Io`], [`arenite_host::ErrorKind::Input`].
pub fn read(path: &Path) -> Result<Vec<Peer>> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(|e| Error::io(path, "read the results", &e))?;
    serde_json::from_str(&text).map_err(|e| Error::input(format!("no results: {e}")).in_file(path))
}

/// Writes the tracked figures.
///
/// # Errors
/// [`arenite_host::ErrorKind::Io`].
pub fn write(path: &Path, peers: &[Peer]) -> Result<()> {
    let text = serde_json::to_string_pretty(peers).unwrap_or_default() + "\n";
    files::write(path, text.as_bytes())
}
