//! A text of a language model: what is asked for, and why it is at its end.

use serde::{Deserialize, Serialize};

/// A language model that is in memory already, and what it is to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generate {
    /// Where the blob lies on the board.
    pub blob_address: u64,
    /// Its length in bytes.
    pub blob_length: u64,
    /// Bytes of the prompt, which [`INPUT_FILE`](crate::INPUT_FILE) begins with.
    pub prompt: u32,
    /// Bytes of the text that ends it, which follow; 0 for none.
    pub stop: u32,
    /// Tokens behind the prompt, at most.
    pub tokens: u32,
    /// The bits of the temperature, an f32; 0 takes the likeliest token.
    pub temperature: u32,
    /// The likeliest tokens that are chosen among; 0 for all.
    pub top_k: u32,
    /// The bits of the share of the probability that is chosen among, an f32.
    pub top_p: u32,
    /// Of the choices.
    pub seed: u64,
    /// Whether the prompt is a turn of a talk.
    pub chat: bool,
}

/// Why a text is at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// It has as many tokens as were asked for.
    Tokens,
    /// The model has ended it.
    Model,
    /// The context is full.
    Context,
    /// The text that was to end it has come.
    Stop,
}
