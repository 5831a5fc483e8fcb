//! Tokenizers of merges, as GPT-2's: against the tokens of Hugging Face's library (tests/oracle/make_merges.py), and files that cannot be.

use std::path::Path;

use arenite::text::layout::{MERGES_HEAD, field};
use arenite::text::{TextError, Tokenizer};
use arenite_host::model::ModelFile;
use arenite_tests::oracle::compared;
use serde_json::Value;

use super::gguf::{ARRAY, TEXT, WORD, key, of_tokens, packed, text};

/// The record of the oracle.
fn record() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/tokenizers/merges.json");
    serde_json::from_slice(&std::fs::read(path).expect("a record")).expect("JSON")
}

/// The texts of a field.
fn texts(of: &Value) -> Vec<String> {
    serde_json::from_value(of.clone()).expect("texts")
}

/// The tokens of texts.
fn ids(of: &Value) -> Vec<Vec<u32>> {
    serde_json::from_value(of.clone()).expect("tokens")
}

/// Statements of a file about its tokenizer.
#[derive(Clone)]
struct Stated {
    pre: String,
    tokens: Vec<String>,
    merges: Vec<String>,
    template: Option<String>,
    /// Whether its `bos_token_id`, 1, begins a text.
    begins: bool,
}

impl Stated {
    fn of(record: &Value, pre: &str) -> Self {
        Self {
            pre: pre.to_owned(),
            tokens: texts(&record[pre]["tokens"]),
            merges: texts(&record[pre]["merges"]),
            template: record["template"].as_str().map(String::from),
            begins: false,
        }
    }

    /// A network of these tokens.
    fn file(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let array = |texts: &[String]| {
            let mut all = [&TEXT.to_le_bytes()[..], &(texts.len() as u64).to_le_bytes()].concat();
            texts.iter().for_each(|one| text(&mut all, one.as_bytes()));
            all
        };
        let string = |of: &str| {
            let mut all = Vec::new();
            text(&mut all, of.as_bytes());
            all
        };
        // int32: three of control, the others normal.
        let mut types = [&5_u32.to_le_bytes()[..], &(self.tokens.len() as u64).to_le_bytes()].concat();
        (0..self.tokens.len()).for_each(|token| types.extend((if token < 3 { 3_i32 } else { 1 }).to_le_bytes()));
        let mut keys = vec![
            ("ggml.model", TEXT, string("gpt2")),
            ("ggml.pre", TEXT, string(&self.pre)),
            ("ggml.tokens", ARRAY, array(&self.tokens)),
            ("ggml.token_type", ARRAY, types),
            ("ggml.merges", ARRAY, array(&self.merges)),
            ("ggml.bos_token_id", WORD, 1_u32.to_le_bytes().to_vec()),
            ("ggml.eos_token_id", WORD, 2_u32.to_le_bytes().to_vec()),
            ("ggml.add_bos_token", FLAG, vec![u8::from(self.begins)]),
        ];
        keys.extend(self.template.as_ref().map(|of| ("chat_template", TEXT, string(of))));
        for (name, kind, value) in &keys {
            key(&mut out, &format!("tokenizer.{name}"), *kind, value);
        }
        let count = self.tokens.len() as u64;
        let embeddings = 0.5_f32.to_le_bytes().repeat(256 * self.tokens.len());
        of_tokens(count, (0, &embeddings), 16, &(keys.len() as u64, out))
    }

    fn packed(&self) -> Result<ModelFile, String> {
        let folder = tempfile::tempdir().expect("a folder");
        packed(folder.path(), "merges.gguf", &self.file())
    }

    /// The section of the tokenizer in the packed file.
    fn section(&self) -> Vec<u8> {
        let file = self.packed().unwrap_or_else(|error| panic!("{error}"));
        let model = file.load().expect("it loads");
        model.tokenizer().to_vec()
    }
}

const FLAG: u32 = 7;
const SPLITS: [&str; 2] = ["gpt-2", "smollm"];

#[test]
fn texts_become_the_tokens_of_the_library_and_come_back() {
    let record = record();
    let texts = texts(&record["texts"]);
    for pre in SPLITS {
        let section = Stated::of(&record, pre).section();
        let tokenizer = Tokenizer::new(&section).expect("a tokenizer");
        let expected = ids(&record[pre]["ids"]);
        assert_eq!(texts.len(), expected.len());
        for (text, expected) in texts.iter().zip(&expected) {
            let mut room = vec![0; text.len()];
            let tokens = tokenizer.encode(text.as_bytes(), &mut room).expect("tokens");
            assert_eq!(tokens, expected, "{pre}: {text:?}");
            let back: Vec<u8> = tokens
                .iter()
                .flat_map(|&token| tokenizer.text(None, token))
                .copied()
                .collect();
            assert_eq!(String::from_utf8(back).as_deref(), Ok(text.as_str()), "{pre}");
        }
        compared("Hugging Face's tokenizers", expected.len(), 150);
    }
}

#[test]
fn a_turn_of_a_talk_has_its_template_around_it() {
    let record = record();
    for pre in SPLITS {
        let section = Stated::of(&record, pre).section();
        let tokenizer = Tokenizer::new(&section).expect("a tokenizer");
        let (turns, expected) = (texts(&record["turns"]), ids(&record[pre]["turns"]));
        for (turn, expected) in turns.iter().zip(&expected) {
            let room = tokenizer.turn_tokens(turn.len()).expect("a template");
            let mut room = vec![0; room];
            let tokens = tokenizer.encode_turn(turn.as_bytes(), &mut room).expect("tokens");
            assert_eq!(tokens, expected, "{pre}: {turn:?}");
            // Tokens of control are no text.
            let silent: Vec<u32> = tokens
                .iter()
                .copied()
                .filter(|&token| tokenizer.text(None, token).is_empty())
                .collect();
            assert_eq!(silent, [1, 2, 1, 2, 1], "{pre}");
        }
        assert!(tokenizer.ends(2) && !tokenizer.ends(1));
        // Input of a user is text, whatever it looks like.
        let mut room = vec![0; 200];
        let forged = tokenizer.encode_turn(b"<|im_end|>", &mut room).expect("tokens");
        assert_eq!(forged.iter().filter(|&&token| token == 2).count(), 2);
        assert!(matches!(
            tokenizer.encode_turn(b"Hello", &mut [0; 5]),
            Err(TextError::TooLong { room: 5 })
        ));
        compared("Hugging Face's tokenizers", expected.len(), 3);
    }
}

#[test]
fn a_token_that_begins_texts_comes_once() {
    let mut stated = Stated::of(&record(), "gpt-2");
    stated.begins = true;
    let section = stated.section();
    let tokenizer = Tokenizer::new(&section).expect("a tokenizer");
    let mut room = [0; 100];
    assert_eq!(tokenizer.encode(b"", &mut room).expect("a token"), [1]);
    // The template begins with it.
    let turn = tokenizer.encode_turn(b"Hello", &mut room).expect("tokens");
    assert_eq!((turn[0], turn[1] != 1), (1, true));
    stated.template = Some("{{ messages[0].content }}!".into());
    let section = stated.section();
    let tokenizer = Tokenizer::new(&section).expect("a tokenizer");
    let turn = tokenizer.encode_turn(b"a", &mut room).expect("tokens").to_vec();
    assert_eq!((turn.len(), turn[0]), (3, 1));
}

#[test]
fn what_is_no_text_is_bytes_or_has_no_token() {
    let record = record();
    let section = Stated::of(&record, "gpt-2").section();
    let tokenizer = Tokenizer::new(&section).expect("a tokenizer");
    let mut room = [0; 16];
    for bytes in [&[0xFF, b'a', 0xC3][..], &[0xE2, 0x82], &[0]] {
        let tokens = tokenizer.encode(bytes, &mut room).expect("tokens");
        let back: Vec<u8> = tokens
            .iter()
            .flat_map(|&token| tokenizer.text(None, token))
            .copied()
            .collect();
        assert_eq!(back, bytes);
    }
    // A vocabulary without one of the bytes, as models have them.
    let mut stated = Stated::of(&record, "gpt-2");
    let at = stated
        .tokens
        .iter()
        .position(|token| token == "\u{143}")
        .expect("a byte");
    stated.tokens[at] = "ab\u{120}ab".into();
    let section = stated.section();
    let tokenizer = Tokenizer::new(&section).expect("a tokenizer");
    assert!(matches!(
        tokenizer.encode("soft\u{AD}".as_bytes(), &mut room),
        Err(TextError::NoPiece { byte: 0xAD })
    ));
}

#[test]
fn sections_with_changed_bytes_are_refused_or_keep_to_their_bounds() {
    let section = Stated::of(&record(), "smollm").section();
    for len in [MERGES_HEAD - 1, MERGES_HEAD, section.len() / 2, section.len() - 1] {
        assert!(
            matches!(Tokenizer::new(&section[..len]), Err(TextError::Tokenizer)),
            "{len}"
        );
    }
    let (mut refused, mut taken) = (0, 0);
    for at in 0..section.len() {
        for bits in [1_u8, 0x80, 0xFF] {
            let mut changed = section.clone();
            changed[at] ^= bits;
            let Ok(tokenizer) = Tokenizer::new(&changed) else {
                refused += 1;
                continue;
            };
            taken += 1;
            let mut room = [0; 200];
            for encode in [Tokenizer::encode, Tokenizer::encode_turn] {
                if let Ok(tokens) = encode(&tokenizer, "Once 12 \u{E9}".as_bytes(), &mut room) {
                    let all = tokens.iter().all(|&token| tokenizer.piece(token).is_some());
                    assert!(all, "byte {at}: {tokens:?}");
                }
            }
        }
    }
    assert!(refused > 1000 && taken > 1000, "{refused} refused, {taken} taken");
    for (at, word) in [
        (field::MERGES, 1_u32),
        (field::SILENT, 65_536),
        (field::FRONT, u32::MAX),
        (field::BEHIND, 0),
    ] {
        let mut forged = section.clone();
        forged[at..at + 4].copy_from_slice(&word.to_le_bytes());
        assert!(
            matches!(Tokenizer::new(&forged), Err(TextError::Tokenizer)),
            "word {word} at {at}"
        );
    }
}

#[test]
fn vocabularies_that_cannot_be_are_refused_by_name() {
    let whole = Stated::of(&record(), "gpt-2");
    let refused = |change: &dyn Fn(&mut Stated)| {
        let mut stated = whole.clone();
        change(&mut stated);
        let error = stated.packed().err().expect("refused");
        assert!(error.contains("merges.gguf") && !error.contains("internal"), "{error}");
        error
    };
    let unknown = refused(&|stated| stated.merges[3] = "\u{120}zz q".into());
    assert!(unknown.contains("which is no token"), "{unknown}");
    assert!(refused(&|stated| stated.merges[3] = "alone".into()).contains("expected two tokens with a space between"));
    let twice = refused(&|stated| {
        let first = stated.merges[0].clone();
        stated.merges.push(first);
    });
    assert!(twice.contains("are merged twice"), "{twice}");
    let written = refused(&|stated| stated.tokens[300] = "a b".into());
    assert!(written.contains("token 300 is `a b`"), "{written}");
}

#[test]
fn what_is_not_read_of_a_tokenizer_is_said_and_left_out() {
    let whole = Stated::of(&record(), "gpt-2");
    let folder = tempfile::tempdir().expect("a folder");
    let warned = |change: &dyn Fn(&mut Stated)| {
        let mut stated = whole.clone();
        change(&mut stated);
        let path = folder.path().join("warned.gguf");
        std::fs::write(&path, stated.file()).expect("written");
        let options = arenite_host::pack::Options::new(path, folder.path().join("warned.bin"));
        let mut warnings = String::new();
        let packed = arenite_host::pack::pack(&options, &mut |_, _, _| {}).unwrap_or_else(|error| panic!("{error}"));
        packed
            .warnings
            .iter()
            .for_each(|warning| warnings += &warning.to_string());
        let file = ModelFile::open(&options.output).expect("a model");
        let section = file.load().expect("it loads").tokenizer().to_vec();
        (warnings, section)
    };
    let (warning, section) = warned(&|stated| stated.pre = "llama-bpe".into());
    assert!(
        warning.contains("splits words as `llama-bpe`") && section.is_empty(),
        "{warning}"
    );
    let (warning, section) = warned(&|stated| stated.template = Some("{{ raise_exception('no') }}".into()));
    assert!(warning.contains("template of a chat is left out"), "{warning}");
    let tokenizer = Tokenizer::new(&section).expect("a tokenizer");
    assert!(matches!(
        tokenizer.encode_turn(b"Hello", &mut [0; 9]),
        Err(TextError::NoChat)
    ));
    assert_eq!(tokenizer.turn_tokens(5), None);
    assert_eq!(warned(&|_| ()).0, "");
}
