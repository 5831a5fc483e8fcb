//! Text from a model of tokens.

use super::error::TextError;
use super::sampler::{Logits, Sampler};
use super::tokenizer::Tokenizer;
use crate::blob::Model;
use crate::error::RunError;
use crate::fields::Fields;
use crate::kernels::table::{KernelId, Kernels};
use crate::ops::position::Position;
use crate::session::Session;
use crate::tensor::DType;

/// Why a text is at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ended {
    /// It has as many tokens as were asked for.
    Tokens,
    /// The model has ended it.
    Model,
    /// The context is full.
    Context,
    /// The caller has stopped it.
    Caller,
}

/// Tokens and text of one generation, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Generated {
    /// Tokens behind the prompt.
    pub tokens: u32,
    /// Runs of the model: those of the prompt as well.
    pub runs: u32,
    /// Why there are no more.
    pub ended: Ended,
}

/// Positions that the model's cache has; `None` where it has none by position.
pub fn context<K: Kernels>(model: &Model<'_, K>) -> Option<u32> {
    let positions = model
        .steps()
        .flatten()
        .filter(|(id, _)| *id == KernelId::Position as u8);
    let capacity = |(_, params): (u8, &[u8])| Fields::only::<Position>(params).ok().map(|op| op.capacity);
    positions.filter_map(capacity).min()
}

/// Gives the model a prompt from position 0 on, and then its own tokens: up to `tokens` of them, whose text goes to `each`, which says false to stop.
/// State left by earlier runs is not read.
///
/// The model has two inputs of one int32, `token` and `position`, and logits for its output.
///
/// # Errors
/// [`TextError::Empty`] for a prompt of no tokens; [`TextError::TooLong`] for one that fills the context; [`TextError::Model`],
/// [`TextError::Logits`]; what a run says.
pub fn generate<K: Kernels>(
    session: &mut Session<'_, '_, K>,
    tokenizer: &Tokenizer<'_>,
    prompt: &[u32],
    tokens: u32,
    sampler: &mut Sampler,
    each: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<Generated, TextError> {
    generate_with(session, tokenizer, prompt, tokens, sampler, &mut Session::run, each)
}

/// As [`generate`]; each run, whose inputs are set, is made by `run`.
///
/// # Errors
/// As [`generate`], and those of `run`.
pub fn generate_with<'m, 's, K: Kernels>(
    session: &mut Session<'m, 's, K>,
    tokenizer: &Tokenizer<'_>,
    prompt: &[u32],
    tokens: u32,
    sampler: &mut Sampler,
    run: &mut dyn FnMut(&mut Session<'m, 's, K>) -> Result<(), RunError>,
    each: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<Generated, TextError> {
    let ports = Ports::of(session.model(), tokenizer)?;
    let room = context(session.model()).unwrap_or(u32::MAX);
    if prompt.len() as u64 >= u64::from(room) {
        return Err(TextError::TooLong { room });
    }
    let mut done = Generated {
        tokens: 0,
        runs: 0,
        ended: Ended::Tokens,
    };
    let mut before = None;
    for &token in prompt {
        ports.set(session, token, done.runs)?;
        run(session)?;
        done.runs += 1;
        before = Some(token);
    }
    let mut last = before.ok_or(TextError::Empty)?;
    while done.tokens < tokens {
        let token = ports.choose(session, sampler)?;
        if tokenizer.ends(token) {
            done.ended = Ended::Model;
            break;
        }
        done.tokens += 1;
        if !each(tokenizer.text(Some(last), token)) {
            done.ended = Ended::Caller;
            break;
        }
        if done.tokens == tokens {
            break;
        }
        if done.runs >= room {
            done.ended = Ended::Context;
            break;
        }
        ports.set(session, token, done.runs)?;
        run(session)?;
        done.runs += 1;
        last = token;
    }
    Ok(done)
}

/// Where a model takes tokens.
#[derive(Debug, Clone, Copy)]
struct Ports {
    token: usize,
    position: usize,
    /// Of int8 logits.
    scale: f32,
}

impl Ports {
    fn of<K: Kernels>(model: &Model<'_, K>, tokenizer: &Tokenizer<'_>) -> Result<Self, TextError> {
        let named = |name: &str| {
            let is = |index: &usize| {
                model
                    .input(*index)
                    .is_some_and(|port| port.name == name && port.dtype == DType::I32 && port.bytes() == Some(4))
            };
            (0..2).find(is)
        };
        let output = model.output(0).ok_or(TextError::Model)?;
        let logits = output.bytes().map_or(0, |bytes| bytes as usize / output.dtype.bytes());
        let typed = matches!(output.dtype, DType::F32 | DType::I8);
        match (named("token"), named("position"), model.input(2)) {
            (Some(token), Some(position), None) if typed && logits == tokenizer.len() => Ok(Self {
                token,
                position,
                scale: output.scale,
            }),
            _ => Err(TextError::Model),
        }
    }

    fn set<K: Kernels>(self, session: &mut Session<'_, '_, K>, token: u32, position: u32) -> Result<(), RunError> {
        session.set_input(self.token, &token.to_le_bytes())?;
        session.set_input(self.position, &position.to_le_bytes())
    }

    fn choose<K: Kernels>(self, session: &Session<'_, '_, K>, sampler: &mut Sampler) -> Result<u32, TextError> {
        let is_float = session.model().output(0).is_some_and(|port| port.dtype == DType::F32);
        let bytes = session.output(0)?;
        let logits = if is_float {
            crate::cells::cast_slice(bytes).map(Logits::F32)
        } else {
            crate::cells::cast_slice(bytes).map(|values| Logits::I8(values, self.scale))
        };
        logits.and_then(|logits| sampler.pick(logits)).ok_or(TextError::Logits)
    }
}
