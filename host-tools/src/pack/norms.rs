//! Batch norms of a network that is trained: which stay operators, and the momentum of their statistics.

use super::options::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::gradient;
use crate::graph::{Assumption, Graph};
use crate::import::ImportOptions;

/// The assumption that training adds to those of an import.
const MOMENTUM: &str = "bn.momentum";

/// Options of an import, and the momentum that was given for training.
pub(super) fn asked(options: &Options) -> Result<(ImportOptions, Option<f32>)> {
    let mut import = options.import.clone();
    let is_momentum = |(key, _): &(String, String)| key == MOMENTUM;
    let place = import
        .assume
        .iter()
        .position(is_momentum)
        .filter(|_| options.train.is_some());
    let Some((key, text)) = place.map(|place| import.assume.remove(place)) else {
        return Ok((import, None));
    };
    let momentum = text.parse().ok().filter(|momentum| (0.0..=1.0).contains(momentum));
    let wrong = || Error::new(ErrorKind::Usage, format!("--assume {key}={text}")).expected("a number from 0 to 1");
    Ok((import, Some(momentum.ok_or_else(wrong)?)))
}

/// Keeps the batch norms that are trained; the momentum of their statistics as an assumption.
///
/// # Errors
/// A momentum that nobody wants.
pub(super) fn keep(graph: &mut Graph, options: &Options, given: Option<f32>) -> Result<Option<Assumption>> {
    let Some(training) = &options.train else {
        return Ok(None);
    };
    let found = gradient::keep_batch_norms(graph, &training.trainable, given);
    if let (None, Some(momentum)) = (found, given) {
        let message = format!("--assume {MOMENTUM}={momentum}: no batch norm is trained");
        return Err(Error::new(ErrorKind::Usage, message).help("leave it out"));
    }
    Ok(found.map(|momentum| Assumption {
        key: MOMENTUM.into(),
        value: momentum.to_string(),
        applies_to: "moving statistics of batch norms".into(),
        reason: match given {
            Some(_) => "given".into(),
            None => "the network's, or the default of its framework".into(),
        },
    }))
}
