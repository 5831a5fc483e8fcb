//! `--signature`: which subgraph of a file is packed.

use super::schema::{Model, Signature};
use crate::borders::{nearest, usage};
use crate::error::{Error, Result};
use crate::imported::ImportOptions;

/// Names that a refusal or a warning lists at most.
const LISTED: usize = 16;

/// Makes the subgraph of `--signature` the main one. Where nobody chose it is subgraph 0, which interpreters run: a warning where there are others.
pub(super) fn choose(model: &mut Model<'_>, options: &ImportOptions) -> Result<Option<String>> {
    let Some(wanted) = &options.signature else {
        return Ok(unchosen(&model.signatures));
    };
    let names = || model.signatures.iter().map(|signature| signature.name.as_str());
    let Some(found) = model.signatures.iter().find(|signature| signature.name == *wanted) else {
        let error = usage(format!("--signature {wanted}: the file has no such signature"));
        let near = nearest(wanted, names());
        return Err(if near.is_empty() {
            error.help("leave --signature out: the file has none")
        } else {
            error.expected(format!("one of {}", listed(&near)))
        });
    };
    let count = model.subgraphs.len();
    let number = usize::try_from(found.subgraph).ok().filter(|&number| number < count);
    model.main = number.ok_or_else(|| {
        Error::input(format!("signature `{wanted}` names subgraph {}", found.subgraph))
            .expected(format!("0 to {}", count - 1))
    })?;
    Ok(None)
}

/// Returns the note on the signatures that are not packed where nobody chose among several.
fn unchosen(signatures: &[Signature]) -> Option<String> {
    let (packed, others): (Vec<&Signature>, Vec<_>) = signatures.iter().partition(|signature| signature.subgraph == 0);
    let names = |of: &[&Signature]| of.iter().map(|signature| signature.name.clone()).collect::<Vec<_>>();
    (!others.is_empty()).then(|| {
        let packed = match packed.first() {
            Some(first) => format!("signature `{}`", first.name),
            None => "subgraph 0, which no signature names,".to_string(),
        };
        format!(
            "{packed} is packed alone; the file has {} too: --signature NAME packs another, several of them a bundle",
            listed(&names(&others))
        )
    })
}

fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
