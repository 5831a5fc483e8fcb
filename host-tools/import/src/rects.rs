//! The graph picture of a distributed-array framework, read back by OCR: nodes with dimensions and rectangles, names full of noise.
//!
//! Three steps: [`read`] turns the text into names (matched against the network's grammar) and readings of sizes; [`sizes`] lets
//! all readings vote under the constraints between neighbouring shapes; [`build`] makes the graph. Every repaired reading is an
//! assumption.

mod build;
mod names;
mod read;
mod sizes;

use std::path::Path;

use super::assume::Assumptions;
use super::build as shared;
use super::imported::{ImportOptions, Imported};
use crate::error::{Error, Result};

/// Dimensions and rectangles, the words that every node of the picture has.
pub(super) fn recognises(content: &[u8]) -> bool {
    let head = content.get(..64 << 10).unwrap_or(content);
    let count = |needle: &[u8]| head.windows(needle.len()).filter(|w| *w == needle).count();
    !shared::is_json_object(content) && count(b"dim=[") >= 2 && count(b"Rect(") >= 2
}

/// The largest picture that is read: names are matched one by one.
const LARGEST: usize = 1 << 20;

/// Reads a picture.
pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let text = shared::text(content)?;
    if text.len() > LARGEST {
        return Err(
            Error::unsupported(format!("the picture's text has {} bytes", text.len()))
                .expected(format!("at most {LARGEST}")),
        );
    }
    let mut assumptions = Assumptions::new(options);
    let picture = read::read(text)?;
    let network = sizes::solve(&picture, &mut assumptions)?;
    let nonlinearity = assumptions.or_default(
        "nonlinearity",
        "relu".to_string(),
        "every filterNL",
        "the trace does not name it; relu, tanh, sigmoid or none",
    )?;
    picture.report(&mut assumptions);
    let batch = options.batch.unwrap_or(1).max(1);
    let graph = build::build(&picture, &network, &shared::stem(path), batch, &nonlinearity)?;
    if let Some(&input) = graph.inputs.first() {
        shared::check_input_shape(options.input_shape.as_deref(), &graph.tensor(input).shape)?;
    }
    Ok(Imported {
        graph,
        assumptions: assumptions.finish()?,
        warnings: picture.warnings(),
        ..Imported::default()
    })
}
