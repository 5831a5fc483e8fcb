//! `arenite generate`: a language model writes, on this machine or on a board.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use arenite::text::{Ended, Sampler, Stop, TextError, Tokenizer, context, generate};
use arenite::{Access, Model, Slot, Step};

use super::machine::{Machine, ready, warn};
use super::program::Verdict;
use super::progress::Shown;
use crate::board::{self, GenerateOptions, protocol};
use crate::files::print;
use crate::model::{Memories, ModelFile, ModelView};
use crate::report::grouped;
use crate::{Error, ErrorKind, Result};

/// Arguments of `arenite generate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The model file, packed with --tokenizer.
    model: PathBuf,
    /// What the text begins with.
    #[arg(long, value_name = "TEXT")]
    prompt: OsString,
    /// Tokens behind the prompt, at most.
    #[arg(long, value_name = "N")]
    tokens: u32,
    /// How much is left to chance: 0 takes the likeliest token.
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Chooses among the K likeliest tokens alone; 0: among all.
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: u32,
    /// Chooses among the likeliest tokens alone that together have this share of the probability.
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f32,
    /// Ends before this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    stop: OsString,
    /// The prompt is a user's turn of a talk: what the model's template puts around it is added.
    #[arg(long)]
    chat: bool,
    /// Of the choices: the same seed writes the same text.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Where to run: host, or qemu:BOARD.
    #[arg(long, value_name = "host|qemu:BOARD", default_value = "host")]
    on: Machine,
    /// The wall time that a board gets.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

/// Cost of a generated text.
struct Written {
    tokens: u32,
    runs: u32,
    ended: protocol::Ended,
    /// Of each run; none on the host, which does not count.
    instructions: Vec<u64>,
}

pub(super) fn run(args: &Args) -> Result<Verdict> {
    args.check()?;
    let file = ModelFile::open(&args.model)?;
    let model = file.load()?;
    let [prompt, stop] = [&args.prompt, &args.stop].map(|text| text.as_encoded_bytes().to_vec());
    let options = GenerateOptions {
        prompt,
        stop,
        tokens: args.tokens,
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: args.top_p,
        seed: args.seed,
        chat: args.chat,
        timeout: Duration::from_secs(args.timeout),
    };
    let at = |e: Error| e.in_file(file.path());
    // A prompt that a board would refuse is refused here, before anything is built.
    let tokenizer = Tokenizer::of(&model).map_err(|e| at(refused(e)))?;
    let positions = context(&model);
    let too_long = |tokens: usize| match positions.filter(|&room| tokens >= room as usize) {
        Some(room) => Err(at(refused(TextError::TooLong { room }))),
        None => Ok(()),
    };
    // Joining takes the square of the length.
    too_long(fewest_tokens(&tokenizer, options.prompt.len()))?;
    let turn = tokenizer.turn_tokens(options.prompt.len()).filter(|_| args.chat);
    let mut room = vec![0; turn.unwrap_or(options.prompt.len() + 4)];
    let encoded = if args.chat {
        tokenizer.encode_turn(&options.prompt, &mut room)
    } else {
        tokenizer.encode(&options.prompt, &mut room)
    };
    let tokens = encoded.map_err(|e| at(refused(e)))?;
    too_long(tokens.len())?;
    let mut stream = Stream::default();
    let written = match args.on {
        Machine::Host => on_host(&model, &tokenizer, tokens, &options, &mut stream).map_err(at)?,
        Machine::Board(board) => on_board(&file, board, &options, &mut stream)?,
        Machine::Serial(_) => return Err(args.on.not_over_serial("text is generated on the host and in qemu")),
    };
    stream.finish()?;
    print::note(told(&written, &model, &file.view()?)?);
    Ok(Verdict::Good)
}

/// As many tokens as a text of so many bytes has at least.
fn fewest_tokens(tokenizer: &Tokenizer<'_>, bytes: usize) -> usize {
    // Tokens of single bytes, and the unknown one, stand for fewer bytes than their pieces have.
    let longest = (0..)
        .map_while(|token| tokenizer.piece(token))
        .map(<[u8]>::len)
        .fold(1, usize::max);
    bytes.div_ceil(longest)
}

impl Args {
    fn check(&self) -> Result<()> {
        let usage = |message: String, expected: &str| Err(Error::new(ErrorKind::Usage, message).expected(expected));
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            return usage(
                format!("--temperature {}", self.temperature),
                "a number that is not below zero",
            );
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return usage(format!("--top-p {}", self.top_p), "a number above 0, up to 1");
        }
        if self.temperature == 0.0 && (self.top_k > 0 || self.top_p < 1.0 || self.seed > 0) {
            return usage(
                "--top-k, --top-p and --seed choose by chance, and --temperature 0 takes the likeliest token".into(),
                "a temperature above 0 with them",
            );
        }
        Ok(())
    }
}

/// Text that is shown as it comes: characters whose bytes come in several pieces are whole.
#[derive(Default)]
struct Stream {
    rest: Vec<u8>,
    failed: Option<Error>,
}

impl Stream {
    fn push(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
        let mut text = String::new();
        let mut left = 0;
        for chunk in self.rest.utf8_chunks() {
            text.push_str(chunk.valid());
            // At the end a character may be under way.
            let whole = self.rest.len() - left - chunk.valid().len() - chunk.invalid().len();
            left += chunk.valid().len();
            if chunk.invalid().is_empty() || (whole == 0 && chunk.invalid().len() < 4 && is_beginning(chunk.invalid()))
            {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            left += chunk.invalid().len();
        }
        self.rest.drain(..left);
        self.show(&text);
    }

    fn finish(mut self) -> Result<()> {
        let mut text = String::from_utf8_lossy(&self.rest).into_owned();
        text.push('\n');
        self.show(&text);
        self.failed.map_or(Ok(()), Err)
    }

    fn show(&mut self, text: &str) {
        if self.failed.is_none() && !text.is_empty() {
            self.failed = print::out(text).err();
        }
    }
}

/// Whether bytes are the beginning of a character.
fn is_beginning(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.valid_up_to() == 0 && error.error_len().is_none())
}

fn on_host(
    model: &Model<'_>,
    tokenizer: &Tokenizer<'_>,
    prompt: &[u32],
    options: &GenerateOptions,
    stream: &mut Stream,
) -> Result<Written> {
    let mut memories = Memories::of(model);
    let mut session = memories.session(model)?;
    let mut sampler = Sampler::seeded(options.temperature, options.seed)
        .top_k(options.top_k)
        .top_p(options.top_p);
    let mut stop = Stop::at(&options.stop);
    let each = &mut |text: &[u8]| {
        let mut bytes = Vec::new();
        let stopped = stop.push(text, &mut |part| bytes.extend(part));
        stream.push(&bytes);
        !stopped && stream.failed.is_none()
    };
    let written = generate(&mut session, tokenizer, prompt, options.tokens, &mut sampler, each).map_err(refused)?;
    let ended = match written.ended {
        Ended::Tokens => protocol::Ended::Tokens,
        Ended::Model => protocol::Ended::Model,
        Ended::Context => protocol::Ended::Context,
        Ended::Caller => protocol::Ended::Stop,
    };
    if ended != protocol::Ended::Stop {
        stop.finish(&mut |part| stream.push(part));
    }
    Ok(Written {
        tokens: written.tokens,
        runs: written.runs,
        ended,
        instructions: Vec::new(),
    })
}

fn on_board(
    file: &ModelFile,
    board: &'static board::Board,
    options: &GenerateOptions,
    stream: &mut Stream,
) -> Result<Written> {
    ready(board)?;
    warn(board, &file.view()?)?;
    // A bar would stand between the words.
    let shown = RefCell::new(Some(Shown::new(&format!("starting on {}", board.name))));
    let report = board::generate(
        board,
        file.blob(),
        options,
        &mut |now| {
            if let Some(shown) = &*shown.borrow() {
                shown.running(board.name, 1, now);
            }
        },
        &mut |text| {
            shown.take();
            stream.push(text);
        },
    )?;
    shown.take();
    Ok(Written {
        tokens: report.tokens,
        runs: u32::try_from(report.instructions.len()).unwrap_or(u32::MAX),
        ended: report.ended.unwrap_or(protocol::Ended::Tokens),
        instructions: report.instructions,
    })
}

/// Returns the line on the text's cost.
fn told(written: &Written, model: &Model<'_>, view: &ModelView<'_>) -> Result<String> {
    let ended = match written.ended {
        protocol::Ended::Tokens => "as many as asked for".to_string(),
        protocol::Ended::Model => "the model has ended its text".to_string(),
        protocol::Ended::Context => format!("the context of {} is full", context(model).unwrap_or(0)),
        protocol::Ended::Stop => "the text that ends it has come".to_string(),
    };
    let [weights, cache] = read_bytes(view, written.runs)?;
    let mut text = format!(
        "{} tokens, {} runs of the model ({ended}); a token reads {} bytes of weights, at position {} {} bytes of keys and values",
        grouped(written.tokens.into()),
        grouped(written.runs.into()),
        grouped(weights),
        written.runs.saturating_sub(1),
        grouped(cache),
    );
    if let Some(last) = written.instructions.last() {
        let sum: u64 = written.instructions.iter().sum();
        let mean = sum / written.instructions.len() as u64;
        text += &format!(
            "; {} instructions a token, {} at position {}",
            grouped(mean),
            grouped(*last),
            written.runs.saturating_sub(1)
        );
    }
    Ok(text)
}

/// Bytes of constants that a run reads, each once, and of states over so many lines.
fn read_bytes(view: &ModelView<'_>, lines: u32) -> Result<[u64; 2]> {
    let (mut weights, mut cache) = (0, 0);
    for step in view.steps()? {
        let lines = match &step {
            Step::AttentionF32(op) => Some((op.capacity, lines.min(op.capacity))),
            _ => None,
        };
        // Of tables a row is read.
        let rows = match &step {
            Step::Embedding(op) => Some((op.rows, op.count)),
            Step::EmbeddingW8(op) => Some((op.rows, op.count)),
            Step::RotaryF32(op) => Some((op.positions, 1)),
            _ => None,
        };
        step.operands(&mut |operand| {
            let part = |(of, read): (u32, u32)| u64::from(operand.bytes) / u64::from(of.max(1)) * u64::from(read);
            match operand.place.region {
                Slot::WEIGHTS => weights += rows.map_or(operand.bytes.into(), part),
                Slot::STATE if operand.access == Access::Read => cache += lines.map_or(operand.bytes.into(), part),
                _ => {}
            }
        });
    }
    Ok([weights, cache])
}

/// Returns the runtime's error as one of the command, with advice.
fn refused(error: TextError) -> Error {
    let told = Error::input(error.to_string());
    match error {
        TextError::NoChat => told.help("leave --chat out: the model goes on with the prompt as it is"),
        TextError::NoTokenizer => told.help("pack the network again with --tokenizer FILE"),
        TextError::TooLong { .. } => told.help("pass a shorter prompt, or pack the network with a larger --context"),
        _ => told,
    }
}
