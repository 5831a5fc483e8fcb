//! The archive of a saved program: which layout it has, the program's text, and the values of its parameters, buffers and constants.
//!
//! PyTorch 2.9 and newer write `models/NAME.json`, raw elements as `data/weights/weight_N`, and what they are in `data/weights/NAME_weights_config.json`;
//! PyTorch 2.8 has `data/weights/NAME.pt` instead, and older ones `serialized_exported_program.json` beside `serialized_state_dict.pt`, files of
//! `torch.save` both. Constants lie likewise in `data/constants` or `serialized_constants.pt`.

use std::collections::HashMap;
use std::io::Cursor;

use super::elements::{Meta, Strided};
use super::pickle::{self, DAMAGED, damaged};
use crate::error::{Error, Result};
use crate::files::json::Json;
use crate::files::zip::Zip;
use crate::fold_budget::FoldBudget;

/// Bytes that any archive may unpack to, beside its entries that are stored as they are.
const ALWAYS: u64 = 64 << 20;

const OLD_PROGRAM: &str = "serialized_exported_program.json";

/// Whether entries of these names are those of a saved program.
pub(super) fn is_program(names: &[String]) -> bool {
    names
        .iter()
        .any(|name| name == OLD_PROGRAM || program_of(name).is_some())
}

/// Returns the prefix in front of `models/` in the name of a program's entry, and the program's name.
fn program_of(name: &str) -> Option<(&str, &str)> {
    let (front, rest) = match name.strip_prefix("models/") {
        Some(rest) => ("", rest),
        None => {
            let (root, rest) = name.split_once('/')?;
            (&name[..=root.len()], rest.strip_prefix("models/")?)
        }
    };
    let own = rest.strip_suffix(".json")?;
    (!own.is_empty() && !own.contains('/')).then_some((front, own))
}

/// The error, in an entry of the archive.
pub(super) fn within(error: Error, entry: &str) -> Error {
    let place = error
        .place()
        .map_or_else(|| entry.to_string(), |place| format!("{entry}, {place}"));
    let mut placed = Error::new(error.kind(), error.message()).at(place);
    if let Some(expectation) = error.expectation() {
        placed = placed.expected(expectation);
    }
    if let Some(remedy) = error.remedy() {
        placed = placed.help(remedy);
    }
    placed
}

/// An open archive.
pub(super) struct Archive<'c> {
    zip: Zip<Cursor<&'c [u8]>>,
    /// Prefix of all names, and the program's own name; `None` of the old layout.
    program: Option<(String, String)>,
    /// Bytes that its entries may still unpack to.
    left: u64,
}

/// Where values lie: the configuration of raw ones, and the file of `torch.save`, by their names.
struct Kind {
    folder: &'static str,
    config: &'static str,
    old: &'static str,
}

/// Values of a kind, by the name that the module gives them.
pub(super) type Values = HashMap<String, Strided>;

impl<'c> Archive<'c> {
    pub(super) fn open(content: &'c [u8]) -> Result<Self> {
        let zip = Zip::open(Cursor::new(content)).map_err(|e| damaged(&e))?;
        let mut programs = Vec::new();
        for name in zip.names() {
            let leads_out = name.starts_with('/') || name.contains('\\') || name.split('/').any(|part| part == "..");
            if leads_out {
                return Err(Error::input(format!("the entry `{name}` leads out of the archive")).help(DAMAGED));
            }
            programs.extend(program_of(name).map(|(front, own)| (front.to_string(), own.to_string())));
        }
        if programs.len() > 1 {
            let names: Vec<String> = programs.iter().map(|(_, own)| format!("`{own}`")).collect();
            return Err(Error::unsupported(format!(
                "the archive holds {} programs: {}",
                names.len(),
                names.join(", ")
            ))
            .expected("one")
            .help("save each alone, with torch.export.save, and pack them together for a bundle"));
        }
        Ok(Self {
            program: programs.pop(),
            left: ALWAYS.saturating_add(content.len() as u64),
            zip,
        })
    }

    /// The program's entry: its name and text.
    pub(super) fn program(&mut self) -> Result<(String, String)> {
        let name = match &self.program {
            Some((front, own)) => format!("{front}models/{own}.json"),
            None => OLD_PROGRAM.to_string(),
        };
        let text = self.text(&name)?;
        Ok((name, text))
    }

    /// Parameters and buffers.
    pub(super) fn weights(&mut self, wanted: &[&str], budget: &FoldBudget) -> Result<Values> {
        self.values(
            &Kind {
                folder: "weights",
                config: "weights_config",
                old: "serialized_state_dict.pt",
            },
            wanted,
            budget,
        )
    }

    /// Constants, and buffers that are not saved with the module's state.
    pub(super) fn constants(&mut self, wanted: &[&str], budget: &FoldBudget) -> Result<Values> {
        self.values(
            &Kind {
                folder: "constants",
                config: "constants_config",
                old: "serialized_constants.pt",
            },
            wanted,
            budget,
        )
    }

    fn values(&mut self, kind: &Kind, wanted: &[&str], budget: &FoldBudget) -> Result<Values> {
        if wanted.is_empty() {
            return Ok(Values::new());
        }
        let Some((front, own)) = self.program.clone() else {
            return self.saved(kind.old, budget);
        };
        let folder = format!("{front}data/{}/", kind.folder);
        let whole = format!("{folder}{own}.pt");
        if self.zip.size(&whole).is_some() {
            return self.saved(&whole, budget);
        }
        let config = format!("{folder}{own}_{}.json", kind.config);
        let text = self.text(&config)?;
        let at = |e: Error| within(e, &config);
        let mut values = Values::new();
        let entries = Json::parse(&text).and_then(|json| json.object()?.need("config")?.object());
        for (name, entry) in entries.map_err(at)?.fields() {
            if !wanted.contains(&name.as_str()) {
                continue;
            }
            let value = self
                .value(entry, &folder, budget)
                .map_err(|e| at(within(e, &format!("`{name}`"))))?;
            values.insert(name.clone(), value);
        }
        Ok(values)
    }

    /// The value that an entry of a configuration describes.
    fn value(&mut self, entry: &Json<'_>, folder: &str, budget: &FoldBudget) -> Result<Strided> {
        let entry = entry.object()?;
        let path = format!("{folder}{}", entry.need("path_name")?.string()?);
        if entry.need("use_pickle")?.boolean()? {
            let content = self.read(&path)?;
            return pickle::tensor(&content, budget);
        }
        let meta = Meta::read(entry.need("tensor_meta")?)?;
        let storage = self.read(&path)?;
        Strided::read(&meta, &storage, budget)
    }

    /// The values of a file of `torch.save`.
    fn saved(&mut self, name: &str, budget: &FoldBudget) -> Result<Values> {
        let content = self.read(name)?;
        if content.is_empty() {
            return Ok(Values::new());
        }
        pickle::tensors(&content, budget).map_err(|e| within(e, name))
    }

    fn text(&mut self, name: &str) -> Result<String> {
        let content = self.read(name)?;
        let text = crate::build::text(&content).map_err(|e| within(e, name))?;
        Ok(text.to_string())
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>> {
        let Some(size) = self.zip.size(name) else {
            return Err(Error::input(format!("the archive has no entry `{name}`")).help(DAMAGED));
        };
        let Some(left) = self.left.checked_sub(size) else {
            return Err(Error::input(format!("the entry `{name}` unpacks to {size} bytes"))
                .expected(format!("at most {} for a file of this size", self.left))
                .help(DAMAGED));
        };
        self.left = left;
        let content = self.zip.read(name).unwrap_or_else(|| Ok(Vec::new()));
        content.map_err(|e| damaged(&e))
    }
}
