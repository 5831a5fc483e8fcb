//! Tokenizers: against the reference's loop on any text, and files and sections that were damaged or forged.

use std::collections::HashMap;

use arenite::Target;
use arenite::text::layout::{HEAD, field};
use arenite::text::{Stop, TextError, Tokenizer};
use arenite_host::pack::pack;
use arenite_tests::properties;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::given::Given;

/// The reference's `encode`: the best score first, the leftmost of equal ones, every pair looked at anew.
fn naive(text: &str, vocabulary: &[(Vec<u8>, f32)]) -> Vec<u32> {
    let mut index: HashMap<&[u8], u32> = HashMap::new();
    for (token, (piece, _)) in vocabulary.iter().enumerate().rev() {
        index.insert(piece, token as u32);
    }
    let mut ids = vec![1];
    let spaced = if text.is_empty() {
        String::new()
    } else {
        format!(" {text}")
    };
    for c in spaced.chars() {
        let bytes = c.to_string().into_bytes();
        match index.get(&bytes[..]) {
            Some(&token) => ids.push(token),
            None => ids.extend(bytes.iter().map(|&byte| u32::from(byte) + 3)),
        }
    }
    loop {
        let mut best: Option<(f32, usize, u32)> = None;
        for at in 0..ids.len() - 1 {
            let pair = [&vocabulary[ids[at] as usize].0[..], &vocabulary[ids[at + 1] as usize].0].concat();
            if let Some(&token) = index.get(&pair[..]) {
                let score = vocabulary[token as usize].1;
                if best.is_none_or(|(other, ..)| score > other) {
                    best = Some((score, at, token));
                }
            }
        }
        let Some((_, at, token)) = best else { return ids };
        ids.splice(at..at + 2, [token]);
    }
}

#[test]
fn texts_become_the_references_tokens_and_come_back() {
    let Some(given) = Given::open("tokens of texts") else {
        return;
    };
    let file = given.packed(Target::Portable, Some(4));
    let model = file.load().expect("it loads");
    let (tokenizer, vocabulary) = (Tokenizer::of(&model).expect("a tokenizer"), given.vocabulary());
    const WORDS: &[&str] = &[
        "Once", " upon", "  ", "\n", "the", "é", "€", "汉", "🙂", "Tom's", "<s>", "<0x41>", "!\"'", "zzzz", "and then",
    ];
    let texts = prop_oneof![
        prop::collection::vec(prop::sample::select(WORDS), 0..12).prop_map(|words| words.concat()),
        ".{0,24}",
        "[a-z ]{0,60}",
    ];
    let mut runner = TestRunner::new(properties::config("language", 1.0));
    let checked = runner.run(&texts, |text| {
        let mut room = vec![0; text.len() + 2];
        let tokens = tokenizer.encode(text.as_bytes(), &mut room).expect("tokens").to_vec();
        prop_assert_eq!(&tokens, &naive(&text, &vocabulary));
        let mut back: Vec<u8> = Vec::new();
        for pair in tokens.windows(2) {
            back.extend(tokenizer.text(Some(pair[0]), pair[1]));
        }
        prop_assert_eq!(String::from_utf8_lossy(&back), text);
        Ok(())
    });
    checked.expect("the same tokens");
}

#[test]
fn bytes_that_are_no_text_are_tokens_of_bytes() {
    let Some(given) = Given::open("no text") else { return };
    let file = given.packed(Target::Portable, Some(4));
    let model = file.load().expect("it loads");
    let tokenizer = Tokenizer::of(&model).expect("a tokenizer");
    let mut room = [0; 16];
    for bytes in [&[0xFF, b'a', 0xC3][..], &[0xE2, 0x82], &[0xF0, 0x9F, 0x99], &[0]] {
        let tokens = tokenizer.encode(bytes, &mut room).expect("tokens").to_vec();
        let mut back: Vec<u8> = Vec::new();
        for pair in tokens.windows(2) {
            back.extend(tokenizer.text(Some(pair[0]), pair[1]));
        }
        assert_eq!(back, bytes);
    }
    assert_eq!(tokenizer.text(None, 512), b"");
    assert_eq!(tokenizer.piece(u32::MAX), None);
}

#[test]
fn sections_with_changed_bytes_are_refused_or_keep_to_their_bounds() {
    let Some(given) = Given::open("changed sections") else {
        return;
    };
    let file = given.packed(Target::Portable, Some(4));
    let model = file.load().expect("it loads");
    let section = model.tokenizer();
    assert!(matches!(Tokenizer::new(&[]), Err(TextError::Tokenizer)));
    for len in [1, HEAD - 1, HEAD, HEAD + 7, section.len() / 2, section.len() - 1] {
        assert!(
            matches!(Tokenizer::new(&section[..len]), Err(TextError::Tokenizer)),
            "{len} bytes"
        );
    }
    let longer = [section, &[0]].concat();
    assert!(matches!(Tokenizer::new(&longer), Err(TextError::Tokenizer)));
    let (mut refused, mut taken) = (0, 0);
    for at in 0..section.len() {
        for bits in [1_u8, 0x80, 0xFF] {
            let mut changed = section.to_vec();
            changed[at] ^= bits;
            match Tokenizer::new(&changed) {
                Err(TextError::Tokenizer) => refused += 1,
                Err(other) => panic!("{other:?}"),
                Ok(tokenizer) => {
                    taken += 1;
                    let mut room = [0; 24];
                    if let Ok(tokens) = tokenizer.encode("Once upon é".as_bytes(), &mut room) {
                        let all = tokens.iter().all(|&token| tokenizer.piece(token).is_some());
                        assert!(all, "byte {at}: {tokens:?}");
                    }
                }
            }
        }
    }
    assert!(refused > 1000 && taken > 1000, "{refused} refused, {taken} taken");
    for (at, word) in [
        (field::COUNT, 513_u32),
        (field::BEGIN, 512),
        (field::BYTES, 257),
        (field::TEXT, 7),
        (field::LONGEST, 1),
    ] {
        let mut forged = section.to_vec();
        forged[at..at + 4].copy_from_slice(&word.to_le_bytes());
        assert!(
            matches!(Tokenizer::new(&forged), Err(TextError::Tokenizer)),
            "word {word} at {at}"
        );
    }
}

#[test]
fn tokenizer_files_that_cannot_be_are_refused_by_name() {
    let Some(given) = Given::open("tokenizer files") else {
        return;
    };
    let whole = std::fs::read(given.folder.join("tok512.bin")).expect("a file");
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |name: &str, bytes: &[u8]| {
        let mut options = given.options("no.bin");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        options.import.tokenizer = Some(path);
        let error = pack(&options, &mut |_, _, _| {}).expect_err("no tokenizer").to_string();
        assert!(error.contains(name) && !options.output.exists(), "{error}");
        error
    };
    let piece = |score: f32, text: &[u8]| [&score.to_le_bytes()[..], &(text.len() as i32).to_le_bytes(), text].concat();
    assert!(refused("cut.bin", &whole[..whole.len() - 1]).contains("ends inside of the piece"));
    assert!(refused("short.bin", &whole[..3]).contains("ends inside of the piece at byte 0"));
    assert!(
        refused("few.bin", &[&[9, 0, 0, 0][..], &piece(0.0, b"a")].concat()).contains("has 1 pieces; expected 512")
    );
    assert!(
        refused("empty.bin", &[&[9, 0, 0, 0][..], &piece(0.0, b"")].concat())
            .contains("piece 0, at byte 4, has 0 bytes")
    );
    let mut forged = whole.clone();
    forged[8..12].copy_from_slice(&(-1_i32).to_le_bytes());
    assert!(
        refused("below.bin", &forged).contains("piece 0, at byte 4, has 0 bytes")
            || refused("below.bin", &forged).contains("piece 0")
    );
    let mut no_number = whole.clone();
    no_number[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(refused("nan.bin", &no_number).contains("score of piece 0 is NaN"));
}

#[test]
fn a_text_that_ends_is_found_wherever_pieces_part() {
    let strategy = (
        prop::collection::vec(prop::sample::select(&b"aab"[..]), 0..40),
        prop::collection::vec(prop::sample::select(&b"ab"[..]), 0..5),
        1_usize..5,
    );
    let mut runner = TestRunner::new(properties::config("language", 1.0));
    let checked = runner.run(&strategy, |(text, stop, chunk)| {
        let (mut given, mut found, mut end) = (Vec::<u8>::new(), false, Stop::at(&stop));
        for piece in text.chunks(chunk) {
            found = end.push(piece, &mut |bytes| given.extend(bytes));
            if found {
                break;
            }
        }
        if !found {
            end.finish(&mut |bytes| given.extend(bytes));
        }
        let at = (!stop.is_empty())
            .then(|| text.windows(stop.len()).position(|part| part == stop))
            .flatten();
        prop_assert_eq!(found, at.is_some());
        prop_assert_eq!(&given[..], &text[..at.unwrap_or(text.len())]);
        Ok(())
    });
    checked.expect("the same end");
}
