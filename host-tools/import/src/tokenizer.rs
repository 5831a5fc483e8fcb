//! Tokenizers: the vocabulary of a file, and the section of a model file that is made of it (docs/format.md).
//!
//! `merges`: vocabularies whose pairs are joined as GPT-2's   `chat`: what a template puts around a turn of a talk

#[cfg(feature = "gguf")]
pub(crate) mod chat;
#[cfg(feature = "gguf")]
pub(crate) mod merges;

use std::path::Path;

use arenite::text::Tokenizer;
use arenite::text::layout::{MOST_PIECES, NO_RANK, NONE, SCORES, SPACE};

use crate::error::{Error, Result};
use crate::files;

/// The pieces of a vocabulary, and the tokens that mean something else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vocabulary {
    /// By their numbers.
    pub(crate) pieces: Vec<Piece>,
    /// The token that begins a text.
    pub(crate) begin: Option<u32>,
    /// The token that ends a text.
    pub(crate) end: Option<u32>,
    /// The token of what has no other.
    pub(crate) unknown: Option<u32>,
    /// The token of byte 0, which those of the other bytes follow.
    pub(crate) bytes: Option<u32>,
    /// Whether a space is put in front of a text.
    pub(crate) space: bool,
}

/// A piece of text.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) text: Vec<u8>,
    /// The best score is joined first.
    pub(crate) score: f32,
}

/// The longest piece that a vocabulary may have.
const LONGEST: usize = 1024;

/// The section of the tokenizer in a file of llama2.c, `tok512.bin`, for a network of so many tokens.
///
/// # Errors
/// [`crate::error::ErrorKind::Io`]; [`crate::error::ErrorKind::Input`] for a file that is cut, or has other pieces than tokens, or pieces that cannot be.
pub(crate) fn read(path: &Path, tokens: usize) -> Result<Vec<u8>> {
    let content = files::read(path, "read the tokenizer")?;
    let section = llama2c(&content).and_then(|vocabulary| vocabulary.section(tokens));
    section.map_err(|e| e.in_file(path))
}

/// The longest piece's length, then for each piece its score, its length and its bytes. 0 is the unknown token, 1 begins a text, 2 ends it, those of
/// bytes follow.
fn llama2c(content: &[u8]) -> Result<Vocabulary> {
    let cut = |at: usize| {
        Error::input(format!("the file ends inside of the piece at byte {at}")).expected(
            "a tokenizer of llama2.c: the longest length (int32), then f32 score, int32 length and bytes of each piece",
        )
    };
    let word = |at: usize| content.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
    let mut at = word(0).map(|_| 4).ok_or_else(|| cut(0))?;
    let mut pieces = Vec::new();
    while at < content.len() {
        let (score, len) = word(at).zip(word(at + 4)).ok_or_else(|| cut(at))?;
        let (score, len) = (f32::from_le_bytes(score), i32::from_le_bytes(len));
        let number = pieces.len();
        let len = usize::try_from(len)
            .ok()
            .filter(|len| (1..=LONGEST).contains(len))
            .ok_or_else(|| {
                Error::input(format!("piece {number}, at byte {at}, has {len} bytes"))
                    .expected(format!("1 to {LONGEST}"))
            })?;
        let text = content.get(at + 8..at + 8 + len).ok_or_else(|| cut(at))?;
        pieces.push(Piece {
            text: text.to_vec(),
            score,
        });
        at += 8 + len;
    }
    let is_byte = |(byte, piece): (usize, &Piece)| piece.text == format!("<0x{byte:02X}>").into_bytes();
    let bytes = pieces.len() >= 259 && pieces[3..259].iter().enumerate().all(is_byte);
    Ok(Vocabulary {
        unknown: (!pieces.is_empty()).then_some(0),
        begin: (pieces.len() > 1).then_some(1),
        end: (pieces.len() > 2).then_some(2),
        bytes: bytes.then_some(3),
        space: true,
        pieces,
    })
}

impl Vocabulary {
    /// The section, for a network of so many tokens.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Input`], [`crate::error::ErrorKind::Unsupported`].
    pub(crate) fn section(&self, tokens: usize) -> Result<Vec<u8>> {
        let pieces: Vec<&[u8]> = self.pieces.iter().map(|piece| &*piece.text).collect();
        check(&pieces, tokens)?;
        if let Some((number, piece)) = self.pieces.iter().enumerate().find(|(_, piece)| piece.score.is_nan()) {
            return Err(Error::input(format!("the score of piece {number} is {}", piece.score)).expected("a number"));
        }
        let known = [self.begin, self.end, self.unknown, self.bytes];
        let mut out = head(SCORES, if self.space { SPACE } else { 0 }, &pieces, known);
        out.extend(ends(&pieces));
        out.extend(self.ranks().into_iter().flat_map(u16::to_le_bytes));
        out.extend(order(&pieces));
        pieces.iter().for_each(|piece| out.extend(*piece));
        checked(out)
    }

    /// The rank of each piece: 0 is the best score, equal scores have equal ranks. Tokens that mean something else than text are not joined to.
    fn ranks(&self) -> Vec<u16> {
        let mut scores: Vec<f32> = self.pieces.iter().map(|piece| piece.score).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        scores.dedup_by(|a, b| a == b);
        let special = |token: u32| {
            let byte = self.bytes.is_some_and(|first| (first..first + 256).contains(&token));
            byte || [self.begin, self.end, self.unknown].contains(&Some(token))
        };
        let rank = |(token, piece): (usize, &Piece)| {
            if special(token as u32) {
                return NO_RANK;
            }
            // In order, the best first.
            scores.partition_point(|score| *score > piece.score) as u16
        };
        self.pieces.iter().enumerate().map(rank).collect()
    }
}

/// Checks that there are as many pieces as a network has tokens, no more than a section holds.
pub(crate) fn check_count(count: usize, tokens: usize) -> Result<()> {
    if count != tokens {
        return Err(Error::input(format!("the tokenizer has {count} pieces"))
            .expected(format!("{tokens}, as the network has tokens"))
            .help("pass the tokenizer that belongs to the network"));
    }
    if count > MOST_PIECES {
        return Err(
            Error::unsupported(format!("a tokenizer of {count} pieces")).expected(format!("at most {MOST_PIECES}"))
        );
    }
    Ok(())
}

/// Checks the number of pieces, and that each has bytes.
fn check(pieces: &[&[u8]], tokens: usize) -> Result<()> {
    check_count(pieces.len(), tokens)?;
    match pieces.iter().position(|piece| piece.is_empty()) {
        Some(number) => {
            Err(Error::input(format!("piece {number} of the tokenizer has no bytes")).expected("at least one"))
        }
        None => Ok(()),
    }
}

/// The head that all kinds begin with; `known` are the tokens that begin a text, end it, stand for what is unknown and for byte 0.
fn head(kind: u8, flags: u8, pieces: &[&[u8]], known: [Option<u32>; 4]) -> Vec<u8> {
    let text: usize = pieces.iter().map(|piece| piece.len()).sum();
    let longest = pieces.iter().map(|piece| piece.len()).max().unwrap_or(0);
    let words = [pieces.len() as u32]
        .into_iter()
        .chain(known.map(|token| token.unwrap_or(NONE)))
        .chain([longest as u32, text as u32]);
    let mut out = vec![kind, flags, 0, 0];
    out.extend(words.flat_map(u32::to_le_bytes));
    out
}

/// Where each piece ends among the bytes of all.
fn ends(pieces: &[&[u8]]) -> Vec<u8> {
    let sums = pieces.iter().scan(0_u32, |end, piece| {
        *end += piece.len() as u32;
        Some(*end)
    });
    sums.flat_map(u32::to_le_bytes).collect()
}

/// The pieces' numbers in the order of their bytes, of equal ones the lower first.
fn order(pieces: &[&[u8]]) -> Vec<u8> {
    let mut order: Vec<u16> = (0..pieces.len() as u16).collect();
    order.sort_by_key(|&token| (pieces[usize::from(token)], token));
    order.into_iter().flat_map(u16::to_le_bytes).collect()
}

/// A section, as the runtime takes it.
fn checked(section: Vec<u8>) -> Result<Vec<u8>> {
    match Tokenizer::new(&section) {
        Ok(_) => Ok(section),
        Err(error) => Err(Error::internal(error.to_string())),
    }
}
