//! Language models that write on a board.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use arenite_protocol::{Command, Ended, Generate, INPUT_FILE, OUTPUT_FILE, Record};

use super::error::BoardError;
use super::exchange::Exchange;
use super::firmware::Firmware;
use super::progress::Progress;
use super::table::Board;
use crate::model::Blob;

/// Request of a text to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateOptions {
    /// Text that the model continues.
    pub prompt: Vec<u8>,
    /// Text that ends the generation; empty for none.
    pub stop: Vec<u8>,
    /// Tokens behind the prompt, at most.
    pub tokens: u32,
    /// 0 takes the likeliest token.
    pub temperature: f32,
    /// The likeliest tokens that are chosen among; 0 for all.
    pub top_k: u32,
    /// The share of the probability that is chosen among.
    pub top_p: f32,
    /// Of the choices.
    pub seed: u64,
    /// Whether the prompt is a user's turn of a talk, around which the model's template stands.
    pub chat: bool,
    /// The run is stopped after this much wall time.
    pub timeout: Duration,
}

/// Text that a board wrote, and its cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GenerateReport {
    /// Instructions of each run: those of the prompt's tokens, then those of its own.
    pub instructions: Vec<u64>,
    /// Tokens behind the prompt.
    pub tokens: u32,
    /// Why there are no more.
    pub ended: Option<Ended>,
    /// Bytes of all arena regions.
    pub arena_bytes: u64,
    /// Bytes of state.
    pub state_bytes: u64,
    /// Stack bytes of the deepest run.
    pub stack_bytes: u32,
}

/// How often new text is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Lets the language model in `blob` write on a board; its text goes to `text` as it comes.
///
/// # Errors
/// As [`run`](super::run()).
pub fn generate(
    board: &'static Board,
    blob: Blob<'_>,
    options: &GenerateOptions,
    progress: &mut dyn FnMut(Progress),
    text: &mut dyn FnMut(&[u8]),
) -> Result<GenerateReport, BoardError> {
    let firmware = Firmware::build_generate(board, progress)?;
    let exchange = Exchange::new()?;
    let (blob_address, blob_length, loader) = exchange.place_blob(&firmware, blob)?;
    exchange.write(INPUT_FILE, &[&options.prompt[..], &options.stop].concat())?;
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let command = Command::Generate(Generate {
        blob_address,
        blob_length,
        prompt: length(&options.prompt),
        stop: length(&options.stop),
        tokens: options.tokens,
        temperature: options.temperature.to_bits(),
        top_k: options.top_k,
        top_p: options.top_p.to_bits(),
        seed: options.seed,
        chat: options.chat,
    });
    let (output, mut shown) = (exchange.path(OUTPUT_FILE), 0);
    let mut show = || {
        let new = behind(&output, shown);
        shown += new.len() as u64;
        if !new.is_empty() {
            text(&new);
        }
    };
    let mut report = GenerateReport::default();
    let times = (options.timeout, LOOK);
    let looked = |_| {
        show();
        false
    };
    exchange.carry_out_until(&firmware, command, &loader, times, looked, |record| match *record {
        Record::Loaded {
            arena_bytes,
            state_bytes,
            ..
        } => (report.arena_bytes, report.state_bytes) = (arena_bytes, state_bytes),
        Record::Ran { instructions } => report.instructions.push(instructions),
        Record::Generated { tokens, ended } => (report.tokens, report.ended) = (tokens, Some(ended)),
        Record::Finished { stack, .. } => report.stack_bytes = stack,
        _ => (),
    })?;
    show();
    Ok(report)
}

/// The bytes of a growing file from `offset` on; none where there is no file yet.
fn behind(path: &Path, offset: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(mut file) = fs::File::open(path)
        && file.seek(SeekFrom::Start(offset)).is_ok()
    {
        // Bytes that cannot be read now are read with the next look.
        let _ = file.read_to_end(&mut bytes);
    }
    bytes
}
