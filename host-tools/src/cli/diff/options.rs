//! Options of `pack` that may bring an int8 model nearer to its float model, each tried: packed, and compared on the same samples.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;

use crate::cli::pack;
use crate::cli::program::{Verdict, read};
use crate::files::print::captured;
use crate::report::Summary;
use crate::{Error, ErrorKind, Result};

/// Options that were tried.
#[derive(Debug, Serialize)]
pub(super) struct Options {
    /// Signal over noise of the model packed without any of them, in dB.
    pub(super) snr_db: Option<f64>,
    pub(super) model_bytes: u64,
    /// The board of which instructions are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) board: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions_at_most: Option<u64>,
    /// By falling gain.
    pub(super) tried: Vec<Tried>,
}

/// An option, and what comes of it beside the model without it.
#[derive(Debug, Serialize)]
pub(super) struct Tried {
    /// As on the command line.
    pub(super) option: String,
    pub(super) snr_db: Option<f64>,
    pub(super) gain_db: Option<f64>,
    pub(super) more_bytes: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) more_instructions: Option<i64>,
    /// Why it cannot be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refused: Option<String>,
}

/// Options that say where the result goes and how it is told: a trial has its own.
const OUTPUT: [&str; 2] = ["-o", "--output"];

/// Signal over noise of a model's answers, in dB.
pub(super) type Answers<'a> = &'a dyn Fn(&Path) -> Result<Option<f64>>;

/// Tries what may help these layers. `packed_by` are the words of the `pack` that made the model, as in a shell.
///
/// # Errors
/// [`ErrorKind::Usage`] for words that are no command line; those of `pack` without any option.
pub(super) fn tried(packed_by: &str, worst: &[&str], answers: Answers<'_>) -> Result<Options> {
    let words = words(packed_by)?;
    let folder = tempfile::tempdir().map_err(|e| Error::io(&std::env::temp_dir(), "make a folder there", &e))?;
    let file = folder.path().join("tried.bin");
    let plain = packed(&words, &[], &file)?;
    let snr_db = answers(&file)?;
    let board = plain.instructions_at_most.iter().find(|(_, most)| most.total.is_some());
    let board = board.map(|(board, _)| board.clone());
    let most = |summary: &Summary| summary.instructions_at_most.get(board.as_deref()?)?.total;
    let mut tried = Vec::new();
    for option in candidates(&words, worst) {
        let shown = shown(&option);
        let (snr, packed) = match packed(&words, &option, &file).and_then(|made| Ok((answers(&file)?, made))) {
            Ok(done) => done,
            Err(error) => {
                tried.push(Tried {
                    option: shown,
                    snr_db: None,
                    gain_db: None,
                    more_bytes: 0,
                    more_instructions: None,
                    refused: Some(error.to_string()),
                });
                continue;
            }
        };
        let more = |now: u64, before: u64| now.cast_signed() - before.cast_signed();
        tried.push(Tried {
            option: shown,
            snr_db: snr,
            gain_db: snr
                .zip(snr_db)
                .map(|(now, before)| ((now - before) * 100.0).round() / 100.0),
            more_bytes: more(packed.model_bytes, plain.model_bytes),
            more_instructions: most(&packed).zip(most(&plain)).map(|(now, before)| more(now, before)),
            refused: None,
        });
    }
    tried.sort_by(|a, b| {
        b.gain_db
            .unwrap_or(f64::NEG_INFINITY)
            .total_cmp(&a.gain_db.unwrap_or(f64::NEG_INFINITY))
    });
    Ok(Options {
        snr_db,
        model_bytes: plain.model_bytes,
        instructions_at_most: most(&plain),
        board,
        tried,
    })
}

/// The words of a command line, without the program's name and the options that a trial has of its own.
fn words(packed_by: &str) -> Result<Vec<String>> {
    let usage = |message: &str| {
        Error::new(ErrorKind::Usage, format!("--packed-by: {message}"))
            .expected("the words of the `pack` that made the model: its network and its options")
    };
    let all = shlex::split(packed_by).ok_or_else(|| usage("a quotation mark has no other"))?;
    let mut kept = Vec::new();
    let mut all = all.into_iter().peekable();
    all.next_if(|word| word == "pack");
    while let Some(word) = all.next() {
        if OUTPUT.contains(&word.as_str()) {
            all.next();
        } else if word != "--json" && !is_output(&word) {
            kept.push(word);
        }
    }
    if kept.is_empty() {
        return Err(usage("there is no network"));
    }
    Ok(kept)
}

/// Whether a word has the output in it: `--output=FILE`, `-oFILE`, `-o=FILE`.
fn is_output(word: &str) -> bool {
    word.starts_with("--output=") || word.starts_with("-o")
}

/// Each of the worst layers in f32, all of them, weights rounded for the samples, activations of 16 bits: as far as the words do not say so already.
fn candidates(words: &[String], worst: &[&str]) -> Vec<Vec<String>> {
    let keep = |layer: &&str| ["--keep-f32".to_owned(), (*layer).to_owned()];
    let mut all: Vec<Vec<String>> = worst.iter().map(|layer| keep(layer).to_vec()).collect();
    if worst.len() > 1 {
        all.push(worst.iter().flat_map(keep).collect());
    }
    if !words.iter().any(|word| word == "--optimise-rounding") {
        all.push(vec!["--optimise-rounding".into()]);
    }
    if is_int8(words) {
        all.push(vec!["--dtype".into(), "int16x8".into()]);
    }
    all
}

fn is_int8(words: &[String]) -> bool {
    words.windows(2).any(|two| two[0] == "--dtype" && two[1] == "int8")
        || words.iter().any(|word| word == "--dtype=int8")
}

/// The words with these options; another `--dtype` takes the place of the one that is there.
fn with(words: &[String], option: &[String]) -> Vec<String> {
    let mut all = words.to_vec();
    if let [name, value] = option
        && name == "--dtype"
    {
        for at in 0..all.len() {
            if all[at] == "--dtype=int8" {
                all[at] = format!("--dtype={value}");
            } else if all[at] == "--dtype" && at + 1 < all.len() {
                all[at + 1].clone_from(value);
            }
        }
        return all;
    }
    all.extend_from_slice(option);
    all
}

/// Packs; gives the summary.
fn packed(words: &[String], option: &[String], output: &Path) -> Result<Summary> {
    let mut line: Vec<OsString> = vec!["pack".into()];
    line.extend(with(words, option).into_iter().map(OsString::from));
    line.extend(["-o".into(), output.into(), "--json".into()]);
    let (verdict, printed) = captured(|| read(line).and_then(pack::run));
    if verdict? != Verdict::Good {
        return Err(Error::internal("a pack that says no"));
    }
    serde_json::from_str(&printed.out).map_err(|_| Error::internal("a summary that cannot be read"))
}

fn shown(option: &[String]) -> String {
    let quoted = |word: &String| shlex::try_quote(word).map_or_else(|_| word.clone(), Into::into);
    option.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        words(text).expect("words")
    }

    #[test]
    fn the_words_of_a_pack_lose_its_name_and_its_output() {
        let expected = ["net.onnx", "--dtype", "int8", "--calibrate", "a b.npz"];
        for text in [
            "pack net.onnx --dtype int8 --calibrate 'a b.npz' -o m.bin",
            "net.onnx -o m.bin --dtype int8 --json --calibrate \"a b.npz\"",
            "net.onnx -om.bin --dtype int8 --calibrate 'a b.npz'",
            "net.onnx --output=m.bin --dtype int8 --calibrate a\\ b.npz",
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
        for (text, said) in [
            ("net.onnx 'a", "quotation"),
            ("pack -o m.bin", "no network"),
            ("", "no network"),
        ] {
            let error = words(text).expect_err("no words").to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn options_are_added_once_and_another_type_takes_the_place_of_the_first() {
        let worst = ["conv 1", "fc"];
        let all = |text: &str| {
            candidates(&split(text), &worst)
                .iter()
                .map(|option| shown(option))
                .collect::<Vec<_>>()
        };
        let kept = [
            "--keep-f32 'conv 1'",
            "--keep-f32 fc",
            "--keep-f32 'conv 1' --keep-f32 fc",
        ];
        assert_eq!(
            all("n --dtype=int8"),
            [&kept[..], &["--optimise-rounding", "--dtype int16x8"]].concat()
        );
        assert_eq!(all("n --dtype int16x8 --optimise-rounding"), kept);
        let wide = ["--dtype".to_owned(), "int16x8".to_owned()];
        for (text, made) in [
            ("n --dtype int8 --x", "n --dtype int16x8 --x"),
            ("--dtype=int8 n", "--dtype=int16x8 n"),
        ] {
            assert_eq!(with(&split(text), &wide), split(made));
        }
    }
}
