//! Why text is not encoded or generated.

#[cfg(feature = "error-text")]
use core::fmt;

use crate::codes::{Code, number};
use crate::error::RunError;

/// The first check of a text, or of the model that is to write it, that failed.
#[cfg_attr(feature = "error-text", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum TextError {
    /// The model file has no tokenizer.
    NoTokenizer,
    /// The tokenizer contradicts itself.
    Tokenizer,
    /// The tokenizer does not say what stands around a turn of a talk.
    NoChat,
    /// A character has neither a piece nor bytes, and there is no token for what is unknown.
    NoPiece {
        /// Its first byte.
        byte: u8,
    },
    /// The text has more characters than there is room for, or than the model's context has positions.
    TooLong {
        /// Tokens that there is room for.
        room: u32,
    },
    /// There is nothing to begin with: the text is empty, and the tokenizer has no token that begins one.
    Empty,
    /// The model is not one of tokens: its inputs are not one int32 called `token` and one called `position`, or its output is not logits of the tokenizer's
    /// vocabulary.
    Model,
    /// A logit is no number, or there are none.
    Logits,
    /// The run failed.
    Run(RunError),
}

impl TextError {
    /// The error as four bytes; see [`crate::codes`].
    pub const fn code(&self) -> u32 {
        let cause = match *self {
            TextError::NoTokenizer => number::NO_TOKENIZER,
            TextError::Tokenizer => number::TOKENIZER,
            TextError::NoChat => number::NO_CHAT,
            TextError::NoPiece { .. } => number::NO_PIECE,
            TextError::TooLong { .. } => number::TEXT_TOO_LONG,
            TextError::Empty => number::NO_TEXT,
            TextError::Model => number::NO_LANGUAGE_MODEL,
            TextError::Logits => number::LOGITS,
            TextError::Run(error) => return error.code(),
        };
        Code::of(cause).to_u32()
    }
}

impl From<RunError> for TextError {
    fn from(error: RunError) -> Self {
        TextError::Run(error)
    }
}

#[cfg(feature = "error-text")]
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::NoTokenizer => f.write_str("the model has no tokenizer: pack it with `--tokenizer FILE`"),
            TextError::Tokenizer => f.write_str("the model's tokenizer contradicts itself: pack the model again"),
            TextError::NoChat => f.write_str("the model's tokenizer has no template of a talk: give it a plain text"),
            TextError::NoPiece { byte } => write!(
                f,
                "a character that begins with byte {byte:#04x} has no token, and the tokenizer has none for bytes"
            ),
            TextError::TooLong { room } => write!(f, "the text has more tokens than the {room} that there is room for"),
            TextError::Empty => f.write_str("the prompt is empty, and the tokenizer has no token that begins a text"),
            TextError::Model => f.write_str(
                "the model does not go from tokens to logits: its inputs are `token` and `position`, one int32 each, its output a number for each token",
            ),
            TextError::Logits => f.write_str("the model's logits are not numbers"),
            TextError::Run(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TextError {}
