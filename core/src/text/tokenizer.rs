//! Tokens of a text, and text of tokens.

use core::cmp::Ordering;

use super::error::TextError;
use super::layout::{HEAD, MOST_PIECES, NO_RANK, NONE, PIECE, SCORES, SPACE, field};
use crate::blob::Model;
use crate::kernels::table::Kernels;

/// A checked tokenizer. It borrows the model file.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tokenizer<'a> {
    /// Where each piece ends among the bytes of all.
    ends: &'a [[u8; 4]],
    ranks: &'a [[u8; 2]],
    /// The pieces in the order of their bytes, of equal ones the lower first.
    order: &'a [[u8; 2]],
    text: &'a [u8],
    longest: usize,
    space: bool,
    begin: Option<u32>,
    end: Option<u32>,
    unknown: Option<u32>,
    bytes: Option<u32>,
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
        let (head, rest) = section.split_first_chunk::<HEAD>()?;
        let word = |at: usize| {
            head.get(at..)
                .and_then(|head| head.first_chunk())
                .map(|word| u32::from_le_bytes(*word))
        };
        let count = word(field::COUNT)? as usize;
        let [kind, flags] = [head.get(field::KIND)?, head.get(field::FLAGS)?];
        if *kind != SCORES || *flags & !SPACE != 0 || count == 0 || count > MOST_PIECES {
            return None;
        }
        let (table, text) = rest.split_at_checked(count.checked_mul(PIECE)?)?;
        let (ends, table) = table.split_at_checked(count.checked_mul(4)?)?;
        let (ranks, order) = table.split_at_checked(count.checked_mul(2)?)?;
        let token = |at: usize, following: u32| match word(at)? {
            NONE => Some(None),
            token if token.checked_add(following)? < count as u32 => Some(Some(token)),
            _ => None,
        };
        let tokenizer = Self {
            ends: ends.as_chunks().0,
            ranks: ranks.as_chunks().0,
            order: order.as_chunks().0,
            text,
            longest: word(field::LONGEST)? as usize,
            space: *flags & SPACE != 0,
            begin: token(field::BEGIN, 0)?,
            end: token(field::END, 0)?,
            unknown: token(field::UNKNOWN, 0)?,
            bytes: token(field::BYTES, 255)?,
        };
        (word(field::TEXT)? as usize == text.len() && tokenizer.is_whole()).then_some(tokenizer)
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
        if self.ends(token) || self.unknown == Some(token) {
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
            [b' ', rest @ ..] if self.space && before.is_some() && before == self.begin => rest,
            piece => piece,
        }
    }

    /// The tokens of a text, in `room`: as sentencepiece does it, each character first and then the best pair joined, the leftmost of equal ones, until
    /// there is none. A character without a piece is its bytes; so is each byte that is no UTF-8. The token that begins a text comes first, where there is one.
    ///
    /// # Errors
    /// [`TextError::TooLong`] where the text has more characters (or bytes of those without a piece) than there is room; [`TextError::NoPiece`].
    pub fn encode<'r>(&self, text: &[u8], room: &'r mut [u32]) -> Result<&'r mut [u32], TextError> {
        let too_long = TextError::TooLong {
            room: room.len() as u32,
        };
        let mut count = 0;
        let mut push = |token: u32| {
            let place = room.get_mut(count).ok_or(too_long)?;
            *place = token;
            count += 1;
            Ok(())
        };
        self.begin.map_or(Ok(()), &mut push)?;
        if self.space && !text.is_empty() {
            self.character(b" ", &mut push)?;
        }
        for chunk in text.utf8_chunks() {
            for character in chunk.valid().chars() {
                self.character(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut push)?;
            }
            chunk
                .invalid()
                .iter()
                .try_for_each(|byte| self.byte(*byte, &mut push))?;
        }
        let tokens = room.get_mut(..count).ok_or(too_long)?;
        let left = self.join(tokens);
        tokens.get_mut(..left).ok_or(too_long)
    }

    fn character(&self, bytes: &[u8], push: &mut impl FnMut(u32) -> Result<(), TextError>) -> Result<(), TextError> {
        match self.find(bytes, &[]) {
            Some(token) => push(token),
            None => bytes.iter().try_for_each(|byte| self.byte(*byte, push)),
        }
    }

    fn byte(&self, byte: u8, push: &mut impl FnMut(u32) -> Result<(), TextError>) -> Result<(), TextError> {
        match (self.bytes, self.unknown) {
            // The tokens of all bytes are below the number of pieces.
            (Some(first), _) => push(first.wrapping_add(byte.into())),
            (None, Some(unknown)) => push(unknown),
            (None, None) => Err(TextError::NoPiece { byte }),
        }
    }

    /// Joins pairs until none makes a piece: the number of tokens that are left. Tokens have 16 bits; the rank of each with the next one stands above it.
    fn join(&self, tokens: &mut [u32]) -> usize {
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
        count
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
        let token = self.find(self.piece(first)?, self.piece(second)?)?;
        let rank = u16::from_le_bytes(*self.ranks.get(token as usize)?);
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
