//! The given model, its tokenizer and its reference, and a second reading of the tokenizer that shares no code with ours.

use std::path::PathBuf;

use arenite::Target;
use arenite_host::graph::LowBits;
use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::quantize::WeightOnly;
use arenite_tests::golden::Archive;
use arenite_tests::{shared, skip};

/// The folder of the shared data.
pub(crate) struct Given {
    pub(crate) folder: PathBuf,
    /// Where models are packed to.
    scratch: tempfile::TempDir,
}

impl Given {
    /// `None` where the data is not here: the test is skipped.
    pub(crate) fn open(test: &str) -> Option<Self> {
        let folder = shared()
            .map(|shared| shared.join("data/language"))
            .filter(|folder| folder.is_dir());
        let Some(folder) = folder else {
            skip(test, "shared data is missing");
            return None;
        };
        let scratch = tempfile::tempdir().expect("a folder");
        Some(Self { folder, scratch })
    }

    /// The options of `pack stories260K.bin --dialect llama2c --tokenizer tok512.bin`.
    pub(crate) fn options(&self, name: &str) -> Options {
        let mut options = Options::new(self.folder.join("stories260K.bin"), self.scratch.path().join(name));
        options.dialect = Some("llama2c".into());
        options.import.tokenizer = Some(self.folder.join("tok512.bin"));
        options
    }

    pub(crate) fn packed(&self, target: Target, context: Option<usize>) -> ModelFile {
        self.packed_with(target, |options| options.import.context = context)
    }

    pub(crate) fn packed_with(&self, target: Target, change: impl FnOnce(&mut Options)) -> ModelFile {
        let mut options = self.options("model.bin");
        options.target = target;
        change(&mut options);
        pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
        ModelFile::open(&options.output).expect("a model")
    }

    fn archive(&self, key: &str) -> Vec<Vec<u8>> {
        Archive::open(&self.folder.join("stories260K.npz")).runs(key).0
    }

    pub(crate) fn prompt(&self) -> Vec<i32> {
        self.archive("prompt")
            .iter()
            .map(|row| i32::from_le_bytes(row[..].try_into().expect("a word")))
            .collect()
    }

    /// 256 greedy tokens, the prompt in front.
    pub(crate) fn story(&self) -> Vec<i32> {
        self.archive("story")
            .iter()
            .map(|row| i32::from_le_bytes(row[..].try_into().expect("a word")))
            .collect()
    }

    /// Of the first 64 positions.
    pub(crate) fn logits(&self) -> Vec<Vec<f64>> {
        let row = |row: &Vec<u8>| {
            row.as_chunks::<8>()
                .0
                .iter()
                .map(|word| f64::from_le_bytes(*word))
                .collect()
        };
        self.archive("logits").iter().map(row).collect()
    }

    /// The vocabulary: bytes and score of each token.
    pub(crate) fn vocabulary(&self) -> Vec<(Vec<u8>, f32)> {
        let raw = std::fs::read(self.folder.join("tok512.bin")).expect("a file");
        let word = |at: usize| <[u8; 4]>::try_from(&raw[at..at + 4]).expect("a word");
        let (mut at, mut all) = (4, Vec::new());
        while at < raw.len() {
            let len = i32::from_le_bytes(word(at + 4)) as usize;
            all.push((raw[at + 8..at + 8 + len].to_vec(), f32::from_le_bytes(word(at))));
            at += 8 + len;
        }
        all
    }

    /// The text of tokens that begin with the one that begins a text: the space in front of it is left out, as are tokens that are no text.
    pub(crate) fn text_of(&self, tokens: &[i32]) -> Vec<u8> {
        let vocabulary = self.vocabulary();
        let text = tokens
            .iter()
            .filter(|&&token| token > 2)
            .flat_map(|&token| match token {
                3..259 => vec![(token - 3) as u8],
                token => vocabulary[token as usize].0.clone(),
            });
        let text: Vec<u8> = text.collect();
        text.strip_prefix(b" ").map_or(text.clone(), <[u8]>::to_vec)
    }
}

/// `--weight-bits 8`.
pub(crate) fn eight_bits() -> WeightOnly {
    WeightOnly {
        bits: LowBits { bits: 8, group: None },
        keep_f32: Vec::new(),
    }
}

pub(crate) fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| f32::from_le_bytes(*word))
        .collect()
}
