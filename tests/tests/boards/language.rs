//! A language model (stories260K) writes on a board what its NumPy reference says.

use std::time::Duration;

use arenite::Target;
use arenite_host::board::{self, BOARDS, GenerateOptions};
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_tests::{shared, skip};

/// Text of the reference behind its prompt, of 35 tokens.
const STORY: &str =
    ", there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big,";

#[test]
fn a_board_writes_the_references_story() {
    const NAME: &str = "a_board_writes_the_references_story";
    let folder = shared().map(|shared| shared.join("data/language"));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        return skip(NAME, "shared data is missing");
    };
    let board = BOARDS.iter().find(|board| board.name == "mps2-an386").expect("a board");
    if let Err(reason) = board::ready(board) {
        return skip(NAME, &format!("qemu: {reason}"));
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let mut options = Options::new(folder.join("stories260K.bin"), scratch.path().join("story.bin"));
    options.target = Target::CortexM4;
    options.import.tokenizer = Some(folder.join("tok512.bin"));
    options.import.context = Some(64);
    pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
    let file = ModelFile::open(&options.output).expect("a model");
    let options = GenerateOptions {
        chat: false,
        prompt: b"Once upon a time".to_vec(),
        stop: Vec::new(),
        tokens: 35,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        seed: 0,
        timeout: Duration::from_secs(600),
    };
    let generated = |options: &GenerateOptions| {
        let mut text = Vec::new();
        let report = board::generate(board, file.blob(), options, &mut |_| (), &mut |piece| {
            text.extend(piece)
        });
        report.map(|report| (report, String::from_utf8(text).expect("text")))
    };
    let (report, text) = generated(&options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(text, STORY);
    assert_eq!((report.tokens, report.instructions.len()), (35, 39));
    // Work follows the lines that are there.
    assert!(report.instructions[1] < report.instructions[38]);
    // A text that ends it is not shown, nor is what follows.
    let stop = b"named".to_vec();
    let (report, text) = generated(&GenerateOptions {
        stop,
        ..options.clone()
    })
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.ended, Some(board::protocol::Ended::Stop));
    assert_eq!(text, STORY.split("named").next().expect("a beginning"));
    // A prompt that fills the context is the runtime's refusal.
    let prompt = b"x".repeat(200);
    let error = generated(&GenerateOptions { prompt, ..options }).expect_err("no room");
    assert!(error.to_string().contains("more tokens than the 64"), "{error}");
}
