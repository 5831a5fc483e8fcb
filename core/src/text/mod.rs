//! Text on the device (feature `text`): a tokenizer that lies in the model file, sampling in integers, and the loop that puts them round a model of tokens.
//!
//! Nothing is allocated: the caller gives room for the tokens of a prompt. Work is bounded: encoding takes at most as many passes over the tokens as the
//! text has bytes, a choice at most 80 passes over the logits.
//!
//! ```
//! # fn story<K: arenite::Kernels>(session: &mut arenite::Session<'_, '_, K>) -> Result<(), arenite::text::TextError> {
//! use arenite::text::{Sampler, Tokenizer, generate};
//!
//! let tokenizer = Tokenizer::of(session.model())?;
//! let mut room = [0; 64];
//! let prompt = tokenizer.encode(b"Once upon a time", &mut room)?;
//! let mut sampler = Sampler::greedy();
//! generate(session, &tokenizer, prompt, 100, &mut sampler, &mut |text| {
//!     // print(text)
//!     # let _ = text;
//!     true
//! })?;
//! # Ok(())
//! # }
//! ```

mod generate;
pub mod layout;
mod sampler;
mod stop;
mod tokenizer;

use core::fmt;

use crate::error::RunError;

pub use generate::{Ended, Generated, context, generate, generate_with};
pub use sampler::{Logits, Sampler};
pub use stop::Stop;
pub use tokenizer::Tokenizer;

/// Why text is not encoded or generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum TextError {
    /// The model file has no tokenizer.
    NoTokenizer,
    /// The tokenizer contradicts itself.
    Tokenizer,
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

impl From<RunError> for TextError {
    fn from(error: RunError) -> Self {
        TextError::Run(error)
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::NoTokenizer => f.write_str("the model has no tokenizer: pack it with `--tokenizer FILE`"),
            TextError::Tokenizer => f.write_str("the model's tokenizer contradicts itself: pack the model again"),
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
