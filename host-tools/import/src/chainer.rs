//! Chainer's graph dump: buffers with byte sizes, and forward and backward records in no useful order.
//!
//! Shapes are solved, not read ([`shapes`]): the batch, the channels of a convolution from its bias, spatial sizes from bytes and
//! attributes. Backward records must mirror their forward record.

mod batch;
mod build;
mod parse;
mod shapes;

use std::path::Path;

use super::assume::Assumptions;
use super::build as shared;
use super::imported::{ImportOptions, Imported};
use crate::error::Result;

/// The first line holds two counts, the second a buffer: an id, a size, a name.
pub(super) fn recognises(content: &[u8]) -> bool {
    let head = content.get(..4096).unwrap_or(content);
    // The cut may split a character; what stands before it decides.
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines().map(str::split_whitespace);
    let number = |word: Option<&str>| word.is_some_and(|w| w.parse::<u64>().is_ok());
    let (Some(mut counts), Some(mut buffer)) = (lines.next(), lines.next()) else {
        return false;
    };
    number(counts.next())
        && number(counts.next())
        && counts.next().is_none()
        && number(buffer.next())
        && number(buffer.next())
        && buffer.next().is_some()
        && buffer.next().is_none()
}

/// Reads a dump.
pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let trace = parse::Trace::parse(shared::text(content)?)?;
    let mut assumptions = Assumptions::new(options);
    let solution = shapes::solve(&trace, options.input_shape.as_deref(), &mut assumptions)?;
    let graph = build::build(
        &trace,
        &solution,
        &shared::stem(path),
        options.batch.unwrap_or(1).max(1),
        &mut assumptions,
    )?;
    Ok(Imported {
        graph,
        assumptions: assumptions.finish()?,
        ..Imported::default()
    })
}
