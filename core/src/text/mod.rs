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

mod error;
mod generate;
pub mod layout;
mod letters;
mod sampler;
mod stop;
mod tokenizer;
mod words;

pub use error::TextError;
pub use generate::{Ended, Generated, context, generate, generate_with};
pub use sampler::{Logits, Sampler};
pub use stop::Stop;
pub use tokenizer::Tokenizer;
