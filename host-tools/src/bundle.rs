//! Several networks in one file: packed one by one, run in turn in one arena, each with a state of its own.

use std::path::Path;

use arenite::bundle::BUNDLE_NAME;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::files::{Draft, Output};
pub use crate::joined::assemble;
use crate::pack::{self, Options, Packed, Progress};
use crate::report::Summary;

/// Memory that a bundle needs; all sizes in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BundleSummary {
    /// Arena that serves every model in turn.
    pub arena_bytes: u64,
    /// States of all models together; each keeps its own.
    pub state_bytes: u64,
    /// Whether no arena is smaller: the largest model's plan is proven minimal.
    pub plan_proven_optimal: bool,
    /// The file.
    pub model_bytes: u64,
    /// The models, in order.
    pub models: Vec<Summary>,
}

/// Packs several networks into one bundle at `output`.
///
/// # Errors
/// As [`pack::pack`], naming the network; [`ErrorKind::Usage`] for two networks of one name. The output file is then as it was
/// before.
pub fn bundle(
    networks: &[Options],
    output: &Path,
    progress: &mut Progress<'_>,
) -> Result<(BundleSummary, Vec<Packed>)> {
    let (summary, packed, draft) = draft(networks, output, progress)?;
    draft.publish()?;
    Ok((summary, packed))
}

/// Packs a bundle and leaves it to the caller when the file appears.
///
/// # Errors
/// As [`bundle`]; nothing is left behind then.
pub fn draft(
    networks: &[Options],
    output: &Path,
    progress: &mut Progress<'_>,
) -> Result<(BundleSummary, Vec<Packed>, Draft)> {
    let place = Output::to(output)?;
    let io = |e: std::io::Error| Error::io(place.path(), "write the bundle", &e);
    networks
        .iter()
        .try_for_each(|network| pack::refuse_inputs(&place, network))?;
    if networks.len() > 1 && networks.iter().any(|network| network.stream.is_some()) {
        return Err(
            Error::new(ErrorKind::Usage, "--region NAME=SIZE:stream with several inputs")
                .expected("one network that becomes pieces"),
        );
    }
    if networks.len() > 1 && networks.iter().any(|network| network.cores > 1) {
        return Err(Error::new(ErrorKind::Usage, "--cores with several inputs")
            .expected("one input")
            .help("a bundle's models run on one core: pack a network for several by itself"));
    }
    if networks.len() > 1 && networks.iter().any(|network| network.accelerator.is_some()) {
        return Err(Error::new(ErrorKind::Usage, "--accelerator with several inputs")
            .expected("one input")
            .help("a bundle's models run on the core alone: pack a network for an accelerator by itself"));
    }
    let (mut packed, mut files) = (Vec::new(), Vec::new());
    for network in networks {
        let network = Options {
            output: output.to_path_buf(),
            sign: None,
            ..network.clone()
        };
        let (summary, part) = pack::draft(&network, progress)?;
        packed.push(summary);
        files.push(part.bytes().map_err(io)?);
    }
    let names: Vec<String> = packed.iter().map(|p| short_name(&p.summary.name)).collect();
    if let Some(twice) = names
        .iter()
        .enumerate()
        .find(|(index, name)| names[..*index].contains(name))
    {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("two networks of a bundle are named `{}`", twice.1),
        )
        .help(
            "rename one of the files, or pack the signatures alone: a network takes the name of its file unless the trace or --signature names it",
        ));
    }

    let mut bytes = assemble(&names, &files)?;
    if let Some(signer) = networks.iter().find_map(|network| network.sign.as_ref()) {
        bytes = signer.sign(&bytes)?;
    }
    let draft = place.draft_of(&bytes).map_err(io)?;

    let models: Vec<Summary> = packed.iter().map(|p| p.summary.clone()).collect();
    let largest = models.iter().max_by_key(|m| m.arena_bytes);
    let summary = BundleSummary {
        arena_bytes: largest.map_or(0, |m| m.arena_bytes),
        state_bytes: models.iter().map(|m| m.state_bytes).sum(),
        plan_proven_optimal: largest.is_none_or(|m| m.plan_proven_optimal),
        model_bytes: bytes.len() as u64,
        models,
    };
    Ok((summary, packed, draft))
}

/// The name in the directory: cut to what an entry holds, at a character's border.
fn short_name(name: &str) -> String {
    let mut end = name.len().min(BUNDLE_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_characters() {
        assert_eq!(short_name("kws"), "kws");
        assert_eq!(short_name(&"ä".repeat(20)), "ä".repeat(12));
    }
}
