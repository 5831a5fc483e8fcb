//! Tokens of a text, and text of tokens.

use core::cmp::Ordering;

use super::error::TextError;
use super::layout::{DIGITS, HEAD, MERGE, MERGES, MERGES_HEAD, MOST_PIECES, NO_RANK, NONE, SCORES, SPACE, field};
use super::words;
use crate::blob::Model;
use crate::kernels::table::Kernels;

/// A checked tokenizer. It borrows the model file.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tokenizer<'a> {
    /// Where each piece ends among the bytes of all.
    ends: &'a [[u8; 4]],
    joins: Joins<'a>,
    /// The pieces in the order of their bytes, of equal ones the lower first.
    order: &'a [[u8; 2]],
    text: &'a [u8],
    longest: usize,
    begin: Option<u32>,
    end: Option<u32>,
    unknown: Option<u32>,
    bytes: Option<u32>,
}

/// Results of joined pairs of tokens.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
enum Joins<'a> {
    /// A piece, by its rank, in the whole text.
    Scores {
        ranks: &'a [[u8; 2]],
        /// Whether a space is put in front of a text.
        space: bool,
    },
    /// A token that the merges state, in each word by itself.
    Merges {
        /// First token, second token and rank, in the order of the tokens.
        merges: &'a [[[u8; 2]; 3]],
        /// Whether each number is a word of its own.
        digits: bool,
        /// Tokens without a text, in their order.
        silent: &'a [[u8; 2]],
        /// Tokens in front of a turn of a talk, and behind it.
        around: [&'a [[u8; 2]]; 2],
    },
}

/// All bytes, for the text of tokens that are one.
static BYTES: [u8; 256] = {
    let (mut bytes, mut at) = ([0; 256], 0);
    while at < 256 {
        bytes[at] = at as u8;
        at += 1;
    }
    bytes
};

/// The rank of a pair that makes no piece, in the upper half of its first token while a text is encoded.
const APART: u32 = (NO_RANK as u32) << 16;

impl<'a> Tokenizer<'a> {
    /// The tokenizer of a model.
    ///
    /// # Errors
    /// [`TextError::NoTokenizer`], [`TextError::Tokenizer`].
    pub fn of<K: Kernels>(model: &Model<'a, K>) -> Result<Self, TextError> {
        match model.tokenizer() {
            [] => Err(TextError::NoTokenizer),
            section => Self::new(section),
        }
    }

    /// Checks a section: every length, every offset, and that the pieces are in order.
    ///
    /// # Errors
    /// [`TextError::Tokenizer`].
    pub fn new(section: &'a [u8]) -> Result<Self, TextError> {
        Self::read(section).ok_or(TextError::Tokenizer)
    }

    fn read(section: &'a [u8]) -> Option<Self> {
        let kind = *section.get(field::KIND)?;
        let flags = *section.get(field::FLAGS)?;
        let (head, flag) = match kind {
            SCORES => (HEAD, SPACE),
            MERGES => (MERGES_HEAD, DIGITS),
            _ => return None,
        };
        let (head, rest) = section.split_at_checked(head)?;
        let word = |at: usize| {
            head.get(at..)
                .and_then(|head| head.first_chunk())
                .map(|word| u32::from_le_bytes(*word))
        };
        let count = word(field::COUNT)? as usize;
        if flags & !flag != 0 || count == 0 || count > MOST_PIECES {
            return None;
        }
        let (ends, rest) = rest.split_at_checked(count * 4)?;
        let (joins, order, text) = if kind == SCORES {
            let (ranks, rest) = rest.split_at_checked(count * 2)?;
            let (order, text) = rest.split_at_checked(count * 2)?;
            let (ranks, space) = (ranks.as_chunks().0, flags == SPACE);
            (Joins::Scores { ranks, space }, order, text)
        } else {
            let (order, rest) = rest.split_at_checked(count * 2)?;
            let many = |at: usize| word(at).map(|many| many as usize).filter(|many| *many <= MOST_PIECES);
            let (merges, rest) = rest.split_at_checked(many(field::MERGES)? * MERGE)?;
            let (silent, rest) = rest.split_at_checked(many(field::SILENT)? * 2)?;
            let (front, rest) = rest.split_at_checked(many(field::FRONT)? * 2)?;
            let (behind, text) = rest.split_at_checked(many(field::BEHIND)? * 2)?;
            let joins = Joins::Merges {
                merges: merges.as_chunks().0.as_chunks().0,
                digits: flags == DIGITS,
                silent: silent.as_chunks().0,
                around: [front.as_chunks().0, behind.as_chunks().0],
            };
            (joins, order, text)
        };
        let token = |at: usize, following: u32| match word(at)? {
            NONE => Some(None),
            token if token.checked_add(following)? < count as u32 => Some(Some(token)),
            _ => None,
        };
        let tokenizer = Self {
            ends: ends.as_chunks().0,
            joins,
            order: order.as_chunks().0,
            text,
            longest: word(field::LONGEST)? as usize,
            begin: token(field::BEGIN, 0)?,
            end: token(field::END, 0)?,
            unknown: token(field::UNKNOWN, 0)?,
            bytes: token(field::BYTES, 255)?,
        };
        let whole = word(field::TEXT)? as usize == text.len() && tokenizer.is_whole() && tokenizer.joins_are_whole();
        whole.then_some(tokenizer)
    }

    /// Whether merges and tokens without a text stand once, in their order, and there is a piece for each of their numbers.
    fn joins_are_whole(&self) -> bool {
        let Joins::Merges {
            merges, silent, around, ..
        } = self.joins
        else {
            return true;
        };
        let known = |token: &[u8; 2]| usize::from(u16::from_le_bytes(*token)) < self.len();
        let rises = |pair: &[[u8; 2]]| matches!(pair, [a, b] if u16::from_le_bytes(*a) < u16::from_le_bytes(*b));
        let pair = |merge: &[[u8; 2]; 3]| {
            let [first, second, _] = merge.map(u16::from_le_bytes);
            (first, second)
        };
        let merges_rise = merges.windows(2).all(|two| matches!(two, [a, b] if pair(a) < pair(b)));
        let ranked = |merge: &[[u8; 2]; 3]| matches!(merge, [first, second, rank] if known(first) && known(second) && u16::from_le_bytes(*rank) != NO_RANK);
        merges_rise
            && merges.iter().all(ranked)
            && silent.windows(2).all(rises)
            && silent.iter().chain(around.into_iter().flatten()).all(known)
    }

    /// Whether pieces have bytes, no more than the longest, all of the text is theirs, and each stands once at its place in the order.
    fn is_whole(&self) -> bool {
        let mut at = 0;
        for end in self.ends {
            let end = u32::from_le_bytes(*end) as usize;
            if end <= at || end > self.text.len() || end - at > self.longest {
                return false;
            }
            at = end;
        }
        let pieces = self.order.iter().map(|token| u32::from(u16::from_le_bytes(*token)));
        let mut before: Option<(u32, &[u8])> = None;
        for token in pieces {
            let Some(piece) = self.piece(token) else {
                return false;
            };
            if before.is_some_and(|(other, bytes)| bytes.cmp(piece).then(other.cmp(&token)) != Ordering::Less) {
                return false;
            }
            before = Some((token, piece));
        }
        at == self.text.len()
    }

    /// Number of tokens.
    #[expect(clippy::len_without_is_empty, reason = "a tokenizer has pieces")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The token that begins a text.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// Whether the token ends a text: what follows is another one.
    pub fn ends(&self, token: u32) -> bool {
        [self.end, self.begin].contains(&Some(token))
    }

    /// The bytes of a piece, as the vocabulary has them; `None` for a number beyond it.
    pub fn piece(&self, token: u32) -> Option<&'a [u8]> {
        let end = |index: usize| self.ends.get(index).map(|end| u32::from_le_bytes(*end) as usize);
        let index = token as usize;
        let start = index.checked_sub(1).map_or(Some(0), end)?;
        self.text.get(start..end(index)?)
    }

    /// The text of `token` behind `before`: a token of a byte is that byte, tokens that begin or end a text and the unknown one are nothing, and the space
    /// in front of a text is left out. Nothing for a number beyond the vocabulary.
    pub fn text(&self, before: Option<u32>, token: u32) -> &'a [u8] {
        if self.ends(token) || self.unknown == Some(token) || self.is_silent(token) {
            return &[];
        }
        if let Some(byte) = self
            .bytes
            .and_then(|first| token.checked_sub(first))
            .filter(|&byte| byte < 256)
        {
            return BYTES
                .get(byte as usize..)
                .and_then(|bytes| bytes.get(..1))
                .unwrap_or_default();
        }
        let piece = self.piece(token).unwrap_or_default();
        match piece {
            [b' ', rest @ ..] if self.puts_a_space() && before.is_some() && before == self.begin => rest,
            piece => piece,
        }
    }

    fn is_silent(&self, token: u32) -> bool {
        match self.joins {
            Joins::Scores { .. } => false,
            Joins::Merges { silent, .. } => silent
                .binary_search_by_key(&token, |silent| u16::from_le_bytes(*silent).into())
                .is_ok(),
        }
    }

    fn puts_a_space(&self) -> bool {
        matches!(self.joins, Joins::Scores { space: true, .. })
    }

    /// The tokens of a text, in `room`; the token that begins a text comes first, where there is one. A byte that is no UTF-8 is a token of its own.
    ///
    /// By scores it is done as sentencepiece does it: each character first and then the best pair joined, the leftmost of equal ones, until there is none; a
    /// character without a piece is its bytes. By merges as GPT-2 does it: the text is split into words, and each is its bytes first.
    ///
    /// # Errors
    /// [`TextError::TooLong`] where the text has more characters (or bytes of those without a piece, or of words) than there is room for;
    /// [`TextError::NoPiece`].
    pub fn encode<'r>(&self, text: &[u8], room: &'r mut [u32]) -> Result<&'r mut [u32], TextError> {
        let mut tokens = Tokens { room, count: 0 };
        self.begin.map_or(Ok(()), |token| tokens.push(token))?;
        self.add(text, &mut tokens)?;
        tokens.taken()
    }

    /// The tokens of what a user says in a talk, and of what the model's template puts in front of it and behind it, so that an answer follows. The text is
    /// split by itself, and none of it is taken for a token without a text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; [`TextError::NoChat`].
    pub fn encode_turn<'r>(&self, text: &[u8], room: &'r mut [u32]) -> Result<&'r mut [u32], TextError> {
        let [front, behind] = self.around().ok_or(TextError::NoChat)?;
        let mut tokens = Tokens { room, count: 0 };
        let push = |tokens: &mut Tokens<'_>, token: &[u8; 2]| tokens.push(u16::from_le_bytes(*token).into());
        front.iter().try_for_each(|token| push(&mut tokens, token))?;
        self.add(text, &mut tokens)?;
        behind.iter().try_for_each(|token| push(&mut tokens, token))?;
        tokens.taken()
    }

    /// Tokens that [`Tokenizer::encode_turn`] wants room for at most, for a text of so many bytes; `None` without a template of a talk.
    pub fn turn_tokens(&self, text: usize) -> Option<usize> {
        let [front, behind] = self.around()?;
        Some(text.saturating_add(front.len()).saturating_add(behind.len()))
    }

    /// The tokens in front of a turn of a talk and behind it.
    fn around(&self) -> Option<[&'a [[u8; 2]]; 2]> {
        match self.joins {
            Joins::Merges { around, .. } if around.iter().any(|tokens| !tokens.is_empty()) => Some(around),
            _ => None,
        }
    }

    /// Adds the tokens of a text.
    fn add(&self, text: &[u8], tokens: &mut Tokens<'_>) -> Result<(), TextError> {
        let from = tokens.count;
        if self.puts_a_space() && !text.is_empty() {
            self.character(b" ", tokens)?;
        }
        for chunk in text.utf8_chunks() {
            match self.joins {
                Joins::Scores { .. } => chunk
                    .valid()
                    .chars()
                    .try_for_each(|one| self.character(one.encode_utf8(&mut [0; 4]).as_bytes(), tokens))?,
                Joins::Merges { digits, .. } => self.words(chunk.valid(), digits, tokens)?,
            }
            chunk.invalid().iter().try_for_each(|byte| self.byte(*byte, tokens))?;
        }
        match self.joins {
            Joins::Scores { .. } => self.join(from, tokens),
            Joins::Merges { .. } => Ok(()),
        }
    }

    /// Adds the tokens of words, each joined by itself.
    fn words(&self, text: &str, digits: bool, tokens: &mut Tokens<'_>) -> Result<(), TextError> {
        let mut rest = text;
        while !rest.is_empty() {
            let (word, behind) = words::first(rest, digits);
            let from = tokens.count;
            word.bytes().try_for_each(|byte| self.byte(byte, tokens))?;
            self.join(from, tokens)?;
            rest = behind;
        }
        Ok(())
    }

    fn character(&self, bytes: &[u8], tokens: &mut Tokens<'_>) -> Result<(), TextError> {
        match self.find(bytes, &[]) {
            Some(token) => tokens.push(token),
            None => bytes.iter().try_for_each(|byte| self.byte(*byte, tokens)),
        }
    }

    fn byte(&self, byte: u8, tokens: &mut Tokens<'_>) -> Result<(), TextError> {
        let token = match (self.joins, self.bytes) {
            // Its pieces are bytes; a text of others is not what was meant.
            (Joins::Merges { .. }, _) => self.find(&[byte], &[]),
            // The tokens of all bytes are below the number of pieces.
            (Joins::Scores { .. }, Some(first)) => Some(first.wrapping_add(byte.into())),
            (Joins::Scores { .. }, None) => self.unknown,
        };
        tokens.push(token.ok_or(TextError::NoPiece { byte })?)
    }

    /// Joins pairs of the tokens behind the first `from` until none makes a piece. Tokens have 16 bits; the rank of each with the next one stands above it.
    fn join(&self, from: usize, all: &mut Tokens<'_>) -> Result<(), TextError> {
        let too_long = all.too_long();
        let tokens = all.room.get_mut(from..all.count).ok_or(too_long)?;
        let mut count = tokens.len();
        for at in 0..count {
            self.rank(tokens, at, count);
        }
        // Each pass leaves one token fewer.
        while let Some(at) = least(tokens, count) {
            let pair = [at, at + 1].map(|at| tokens.get(at).map_or(0, |token| token & 0xFFFF));
            let joined = self.pair(pair).map_or(0, |(token, _)| token);
            tokens.iter_mut().skip(at).take(1).for_each(|first| *first = joined);
            let mut behind = None;
            for token in tokens.iter_mut().take(count).skip(at + 1).rev() {
                behind = Some(core::mem::replace(token, behind.unwrap_or(0)));
            }
            count -= 1;
            self.rank(tokens, at, count);
            if let Some(before) = at.checked_sub(1) {
                self.rank(tokens, before, count);
            }
        }
        tokens.iter_mut().take(count).for_each(|token| *token &= 0xFFFF);
        all.count = from + count;
        Ok(())
    }

    /// Writes the rank of token `at`, of `count`, with the next one above it.
    fn rank(&self, tokens: &mut [u32], at: usize, count: usize) {
        let next = tokens
            .get(at + 1)
            .filter(|_| at + 1 < count)
            .map(|token| token & 0xFFFF);
        if let Some(token) = tokens.get_mut(at) {
            *token &= 0xFFFF;
            let pair = next.and_then(|next| self.pair([*token, next]));
            *token |= pair.map_or(APART, |(_, rank)| u32::from(rank) << 16);
        }
    }

    /// The piece that two tokens make, and its rank.
    fn pair(&self, [first, second]: [u32; 2]) -> Option<(u32, u16)> {
        let find = || self.find(self.piece(first)?, self.piece(second)?);
        let (token, rank) = match self.joins {
            Joins::Scores { ranks, .. } => {
                let token = find()?;
                (token, *ranks.get(token as usize)?)
            }
            Joins::Merges { merges, .. } => {
                let pair = [first, second].map(|token| token as u16);
                let at = merges.binary_search_by_key(&pair, |[a, b, _]| [*a, *b].map(u16::from_le_bytes));
                let [.., rank] = *merges.get(at.ok()?)?;
                (find()?, rank)
            }
        };
        let rank = u16::from_le_bytes(rank);
        (rank != NO_RANK).then_some((token, rank))
    }

    /// The first piece of these bytes, one behind the other.
    fn find(&self, first: &[u8], second: &[u8]) -> Option<u32> {
        let len = first.len().checked_add(second.len())?;
        if len > self.longest {
            return None;
        }
        let wanted = || first.iter().chain(second);
        let token = |at: usize| self.order.get(at).map(|token| u32::from(u16::from_le_bytes(*token)));
        let before = self.order.partition_point(|token| {
            let piece = self.piece(u32::from(u16::from_le_bytes(*token))).unwrap_or_default();
            piece.iter().cmp(wanted()) == Ordering::Less
        });
        let found = token(before)?;
        self.piece(found)?.iter().eq(wanted()).then_some(found)
    }
}

/// Tokens in the caller's room.
struct Tokens<'r> {
    room: &'r mut [u32],
    count: usize,
}

impl<'r> Tokens<'r> {
    fn push(&mut self, token: u32) -> Result<(), TextError> {
        let too_long = self.too_long();
        *self.room.get_mut(self.count).ok_or(too_long)? = token;
        self.count += 1;
        Ok(())
    }

    fn too_long(&self) -> TextError {
        TextError::TooLong {
            room: self.room.len() as u32,
        }
    }

    fn taken(self) -> Result<&'r mut [u32], TextError> {
        let too_long = self.too_long();
        self.room.get_mut(..self.count).ok_or(too_long)
    }
}

/// The first of the pairs with the least rank, among `count` tokens.
fn least(tokens: &[u32], count: usize) -> Option<usize> {
    let mut best = (APART >> 16, None);
    for (at, token) in tokens.iter().take(count).enumerate() {
        if token >> 16 < best.0 {
            best = (token >> 16, Some(at));
        }
    }
    best.1
}
