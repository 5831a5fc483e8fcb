//! The tokenizer of a file: by scores (`llama`) or by merges (`gpt2`), with the template of a chat.

use std::collections::HashMap;

use super::file::File;
use crate::error::{Error, Result};
use crate::tokenizer::chat;
use crate::tokenizer::merges::{Merges, bytes_of, pairs};
use crate::tokenizer::{Piece, Vocabulary, check_count};

/// Types of tokens, as the file numbers them.
const NORMAL: i64 = 1;
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const UNUSED: i64 = 5;
const BYTE: i64 = 6;

/// The section of a file's tokenizer, which has no bytes where there is none, and what is to be said of it.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) section: Vec<u8>,
    pub(super) warning: Option<String>,
}

impl Read {
    fn none(warning: String) -> Self {
        Self {
            section: Vec::new(),
            warning: Some(warning),
        }
    }
}

/// Reads the tokenizer of a network of so many tokens.
pub(super) fn read(file: &File<'_>, tokens: usize) -> Result<Read> {
    match file.text("tokenizer.ggml.model")? {
        Some("llama") => Ok(Read {
            section: scores(file)?.section(tokens)?,
            warning: file.text(TEMPLATE)?.map(|_| {
                "the template of a chat is left out: it is read with a tokenizer of merges (`gpt2`)".to_owned()
            }),
        }),
        Some("gpt2") => merged(file, tokens),
        Some(other) => Ok(Read::none(format!(
            "the tokenizer `{other}` is not read: the file gets none; pass one of llama2.c with --tokenizer"
        ))),
        None => Ok(Read::none(
            "the file has no tokenizer: pass one of llama2.c with --tokenizer".into(),
        )),
    }
}

const TEMPLATE: &str = "tokenizer.chat_template";

fn missing(key: &str) -> Error {
    Error::input("the tokenizer is not whole").expected(key.to_string())
}

/// The tokens as they are written.
fn written<'a>(file: &File<'a>) -> Result<Vec<&'a [u8]>> {
    const TOKENS: &str = "tokenizer.ggml.tokens";
    file.texts(TOKENS)?.ok_or_else(|| missing(TOKENS))
}

/// The token that a key names.
fn named(file: &File<'_>, key: &str, tokens: usize) -> Result<Option<u32>> {
    let token = file.count(&format!("tokenizer.ggml.{key}"))?;
    match token {
        Some(token) if token >= tokens => {
            Err(Error::input(format!("tokenizer.ggml.{key} is {token}")).expected(format!("below {tokens}")))
        }
        token => Ok(token.map(|token| token as u32)),
    }
}

/// The vocabulary of a tokenizer whose pairs are joined by scores.
fn scores(file: &File<'_>) -> Result<Vocabulary> {
    let tokens = written(file)?;
    let scores = file
        .floats("tokenizer.ggml.scores")?
        .ok_or_else(|| missing("tokenizer.ggml.scores"))?;
    if scores.len() != tokens.len() {
        return Err(Error::input(format!(
            "{} scores of {} tokens",
            scores.len(),
            tokens.len()
        )));
    }
    let types = file.integers("tokenizer.ggml.token_type")?.unwrap_or_default();
    let piece = |(text, score): (&&[u8], &f32)| Piece {
        text: spaced(text),
        score: *score,
    };
    let unknown = types.iter().position(|&kind| kind == UNKNOWN).map(|token| token as u32);
    let is_byte = |(token, byte): (usize, u8)| {
        tokens
            .get(token)
            .is_some_and(|text| *text == format!("<0x{byte:02X}>").as_bytes())
    };
    let first = types
        .iter()
        .position(|&kind| kind == BYTE)
        .or_else(|| tokens.iter().position(|text| *text == b"<0x00>"));
    let bytes = first.filter(|&first| (first..).zip(0..=u8::MAX).all(is_byte));
    if bytes.is_none() && first.is_some() {
        return Err(Error::unsupported("tokens of bytes that do not follow each other")
            .expected("`<0x00>` to `<0xFF>` in order"));
    }
    let named = |key: &str| named(file, key, tokens.len());
    Ok(Vocabulary {
        pieces: tokens.iter().zip(&scores).map(piece).collect(),
        begin: named("bos_token_id")?,
        end: named("eos_token_id")?,
        unknown: named("unknown_token_id")?.or(unknown),
        bytes: bytes.map(|token| token as u32),
        space: file.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true),
    })
}

/// The section of a tokenizer whose pairs are joined by merges.
fn merged(file: &File<'_>, network: usize) -> Result<Read> {
    // How a text is split into words differs from model to model.
    let digits = match file.text("tokenizer.ggml.pre")? {
        Some("gpt-2") => false,
        Some("smollm") => true,
        other => {
            let told = other.map_or("without a name of how it splits words".to_owned(), |name| {
                format!("that splits words as `{name}`")
            });
            return Ok(Read::none(format!(
                "a tokenizer `gpt2` {told} is not read (`gpt-2` and `smollm` are): the file gets none"
            )));
        }
    };
    if file.flag("tokenizer.ggml.add_space_prefix")? == Some(true) {
        let told = "a tokenizer `gpt2` that puts a space in front of a text is not read: the file gets none";
        return Ok(Read::none(told.to_owned()));
    }
    let tokens = written(file)?;
    check_count(tokens.len(), network)?;
    let mut read = merges(file, &tokens)?;
    read.digits = digits;
    let (begin, end) = (
        named(file, "bos_token_id", tokens.len())?,
        named(file, "eos_token_id", tokens.len())?,
    );
    let begins = file.flag("tokenizer.ggml.add_bos_token")? == Some(true);
    (read.begin, read.end) = (begin.filter(|_| begins), end);
    let section = read.section(network)?;
    let Some(template) = file.text(TEMPLATE)? else {
        return Ok(Read { section, warning: None });
    };
    let text = |token: Option<u32>| {
        let text = token.and_then(|token| tokens.get(token as usize));
        text.map_or(String::new(), |text| String::from_utf8_lossy(text).into_owned())
    };
    let around = chat::around(template, &text(begin), &text(end)).and_then(|around| read.around(&section, &around));
    match around {
        Ok(around) => {
            read.around = around;
            Ok(Read {
                section: read.section(network)?,
                warning: None,
            })
        }
        Err(reason) => Ok(Read {
            section,
            warning: Some(format!(
                "the template of a chat is left out, `--chat` will be refused: {reason}"
            )),
        }),
    }
}

/// The pieces of these tokens and the pairs that are joined.
fn merges(file: &File<'_>, tokens: &[&[u8]]) -> Result<Merges> {
    let types = file.integers("tokenizer.ggml.token_type")?.unwrap_or_default();
    let (mut numbers, mut read) = (HashMap::new(), Merges::default());
    for (number, text) in (0_u16..).zip(tokens) {
        let kind = types.get(usize::from(number)).copied().unwrap_or(NORMAL);
        if kind != NORMAL {
            read.pieces.push(text.to_vec());
            read.silent.extend([CONTROL, UNUSED].contains(&kind).then_some(number));
            continue;
        }
        let bytes = std::str::from_utf8(text).ok().and_then(bytes_of);
        read.pieces.push(bytes.ok_or_else(|| {
            Error::input(format!("token {number} is `{}`", text.escape_ascii()))
                .expected("characters that stand for bytes, as GPT-2's vocabulary has them")
        })?);
        numbers.entry(*text).or_insert(number);
    }
    const MERGES: &str = "tokenizer.ggml.merges";
    let lines = file.texts(MERGES)?.ok_or_else(|| missing(MERGES))?;
    read.pairs = pairs(&lines, &numbers)?;
    Ok(read)
}

/// Spaces are written as a character of their own (U+2581).
fn spaced(text: &[u8]) -> Vec<u8> {
    const SPACE: &[u8] = "\u{2581}".as_bytes();
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, others)) = rest.split_first() {
        match rest.strip_prefix(SPACE) {
            Some(behind) => {
                out.push(b' ');
                rest = behind;
            }
            None => {
                out.push(*first);
                rest = others;
            }
        }
    }
    out
}
