//! Vocabularies whose pairs are joined by a list of merges, as GPT-2's: the pieces are bytes.

use std::collections::HashMap;

use arenite::text::Tokenizer;
use arenite::text::layout::{DIGITS, MERGES, MOST_PIECES};

use super::{check, checked, ends, head, order};
use crate::error::{Error, Result};

/// Bytes of a name that is looked for in a template's text, at most.
const LONGEST_NAME: usize = 256;

/// The pieces of a vocabulary, the pairs that are joined, and the tokens that mean something else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Merges {
    /// By their numbers.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// Pairs of tokens, the first joined first.
    pub(crate) pairs: Vec<[u16; 2]>,
    /// The token that begins a text.
    pub(crate) begin: Option<u32>,
    /// The token that ends a text.
    pub(crate) end: Option<u32>,
    /// Tokens that are no text, in their order.
    pub(crate) silent: Vec<u16>,
    /// Whether each number is a word of its own.
    pub(crate) digits: bool,
    /// Tokens in front of a turn of a talk, and behind it.
    pub(crate) around: [Vec<u16>; 2],
}

impl Merges {
    /// The section, for a network of so many tokens.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Input`], [`crate::error::ErrorKind::Unsupported`].
    pub(crate) fn section(&self, tokens: usize) -> Result<Vec<u8>> {
        let pieces: Vec<&[u8]> = self.pieces.iter().map(|piece| &**piece).collect();
        check(&pieces, tokens)?;
        let [front, behind] = &self.around;
        for (what, count) in [
            ("merges", self.pairs.len()),
            ("tokens in front of a turn of a talk", front.len()),
            ("tokens behind a turn of a talk", behind.len()),
        ] {
            if count > MOST_PIECES {
                return Err(Error::unsupported(format!("a tokenizer of {count} {what}"))
                    .expected(format!("at most {MOST_PIECES}")));
            }
        }
        let mut out = head(
            MERGES,
            if self.digits { DIGITS } else { 0 },
            &pieces,
            [self.begin, self.end, None, None],
        );
        let counts = [self.pairs.len(), self.silent.len(), front.len(), behind.len()];
        out.extend(counts.into_iter().flat_map(|count| (count as u32).to_le_bytes()));
        out.extend(ends(&pieces));
        out.extend(order(&pieces));
        let mut merges: Vec<([u16; 2], u16)> = self.pairs.iter().copied().zip(0..).collect();
        merges.sort_unstable();
        if let Some([(pair, _), _]) = merges.array_windows().find(|[a, b]| a.0 == b.0) {
            return Err(Error::input(format!(
                "tokens {} and {} are merged twice",
                pair[0], pair[1]
            )));
        }
        let merge = |([first, second], rank): ([u16; 2], u16)| [first, second, rank].map(u16::to_le_bytes).concat();
        out.extend(merges.into_iter().flat_map(merge));
        for tokens in [&self.silent, front, behind] {
            out.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
        }
        pieces.iter().for_each(|piece| out.extend(*piece));
        checked(out)
    }

    /// The tokens of a template's texts in front of a turn and behind it; `plain` is the section without them. A token that begins texts stands first.
    ///
    /// # Errors
    /// Text that has no tokens.
    pub(crate) fn around(&self, plain: &[u8], texts: &[String; 2]) -> std::result::Result<[Vec<u16>; 2], String> {
        let plain = Tokenizer::new(plain).map_err(|error| error.to_string())?;
        let [front, behind] = texts.each_ref().map(|text| self.talked(&plain, text));
        let (mut front, behind) = (front?, behind?);
        let begin = self.begin.map(|token| token as u16);
        front.splice(..0, begin.filter(|token| front.first() != Some(token)));
        Ok([front, behind])
    }

    /// The tokens of a text in which tokens that are no text stand by their names.
    fn talked(&self, plain: &Tokenizer<'_>, text: &str) -> std::result::Result<Vec<u16>, String> {
        let names: HashMap<&[u8], u16> = self
            .silent
            .iter()
            .map(|&token| (&*self.pieces[usize::from(token)], token))
            .collect();
        // The longest first: one name may begin with another.
        let mut lengths: Vec<usize> = names
            .keys()
            .map(|name| name.len())
            .filter(|&len| len <= LONGEST_NAME)
            .collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        let named = |rest: &[u8]| {
            let prefixes = lengths.iter().filter_map(|&len| rest.get(..len));
            prefixes.filter_map(|name| Some((name.len(), *names.get(name)?))).next()
        };
        let (mut tokens, mut rest) = (Vec::new(), text.as_bytes());
        while !rest.is_empty() {
            let next = (0..rest.len()).find_map(|at| Some((at, named(&rest[at..])?)));
            let (before, behind) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
            let mut room = vec![0; before.len() + 1];
            let encoded = plain.encode(before, &mut room).map_err(|error| error.to_string())?;
            let begun = usize::from(self.begin.is_some());
            tokens.extend(encoded[begun..].iter().map(|&token| token as u16));
            tokens.extend(next.map(|(_, (_, token))| token));
            rest = &behind[next.map_or(0, |(_, (len, _))| len)..];
        }
        Ok(tokens)
    }
}

/// The bytes of a piece as GPT-2's vocabulary writes it: a character for each byte, its own where it can be seen.
pub(crate) fn bytes_of(written: &str) -> Option<Vec<u8>> {
    let seen = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let byte = |character: char| {
        let number = u32::from(character);
        match u8::try_from(number) {
            Ok(byte) if seen(byte) => Some(byte),
            Ok(_) => None,
            // The others in their order from U+0100 on.
            Err(_) => (0..=u8::MAX).filter(|byte| !seen(*byte)).nth(number as usize - 0x100),
        }
    };
    written.chars().map(byte).collect()
}

/// The tokens of the pairs `first second`, by their pieces as the vocabulary writes them.
///
/// # Errors
/// [`crate::error::ErrorKind::Input`] for a line that is no pair, or has a piece that there is not.
pub(crate) fn pairs(lines: &[&[u8]], numbers: &HashMap<&[u8], u16>) -> Result<Vec<[u16; 2]>> {
    let token = |piece: &[u8]| {
        let known = numbers.get(piece).copied();
        known.ok_or_else(|| Error::input(format!("a merge of `{}`, which is no token", piece.escape_ascii())))
    };
    let pair = |line: &&[u8]| {
        let space = line.iter().position(|byte| *byte == b' ').filter(|at| *at > 0);
        let (first, second) = space.and_then(|at| line.split_at_checked(at)).ok_or_else(|| {
            Error::input(format!("the merge `{}`", line.escape_ascii())).expected("two tokens with a space between")
        })?;
        let whole = [first, second.get(1..).unwrap_or_default()];
        if !numbers.contains_key(&*whole.concat()) {
            let told = whole.concat();
            return Err(Error::input(format!(
                "a merge to `{}`, which is no token",
                told.escape_ascii()
            )));
        }
        Ok([token(whole[0])?, token(whole[1])?])
    };
    lines.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_written_with_a_character_a_byte() {
        assert_eq!(bytes_of("\u{120}the\u{10A}").as_deref(), Some(&b" the\n"[..]));
        assert_eq!(bytes_of("\u{C3}\u{A9}").as_deref(), Some("\u{E9}".as_bytes()));
        assert_eq!(bytes_of("\u{143}").as_deref(), Some(&[0xAD][..]));
        assert_eq!((bytes_of(" "), bytes_of("\u{144}")), (None, None));
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let mut written: Vec<u8> = (0x21..0x144)
            .filter_map(char::from_u32)
            .filter_map(|one| bytes_of(&one.to_string()))
            .flatten()
            .collect();
        written.sort_unstable();
        assert_eq!(written, all);
    }
}
