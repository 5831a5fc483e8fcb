//! An accelerator as a file declares it to `pack`: which steps it takes, how their weights are laid out, what memory it reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arenite::{ARENA_ALIGN, Declaration, Name, Target};
use toml::{Table, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, Node, Op, facts};
use crate::program::Shared;
use crate::spelling::meant;

/// Operators that can be handed over: those whose kernels read and write whole tensors and keep nothing.
const OPERATORS: [&str; 9] = [
    "conv2d",
    "depthwise_conv2d",
    "linear",
    "max_pool2d",
    "avg_pool2d",
    "add",
    "sub",
    "mul",
    "softmax",
];

/// Keys of the file.
const KEYS: [&str; 8] = [
    "name",
    "version",
    "kernels",
    "operators",
    "least_work",
    "alignment",
    "regions",
    "share",
];

/// Contents of an accelerator's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accelerator {
    /// The file.
    pub path: PathBuf,
    /// Its name, which the board's implementation has as well.
    pub name: Name,
    /// Its version, likewise.
    pub version: u16,
    /// The target whose kernels and weight layouts its steps have.
    pub kernels: Target,
    /// The operators that it takes.
    pub operators: Vec<&'static str>,
    /// The least work of an operator that it takes: multiply-accumulates, or elements of the output where there are none.
    pub least_work: u64,
    /// Required alignment of its operands' addresses, in bytes.
    pub alignment: u8,
    /// The regions that it reaches, by name; all where none is named.
    pub regions: Vec<String>,
    /// Whether the core computes a part of its steps meanwhile.
    pub share: bool,
}

/// How an accelerator that shares its steps does so.
#[derive(Debug, Clone, Default)]
pub struct Sharing {
    /// Layers that it has whole.
    pub whole: BTreeSet<String>,
    /// Layers that are parts of others, by output channels: whether each is the accelerator's.
    pub sides: BTreeMap<String, bool>,
    /// Layers of which they are parts, by their channels.
    pub channels: Vec<Shared>,
}

/// Accelerator that steps are handed to, with its rules.
#[derive(Debug, Clone, Copy)]
pub struct Handing<'a> {
    /// The accelerator.
    pub accelerator: &'a Accelerator,
    /// Declaration of it in the model file.
    pub declared: Declaration,
    /// Shares of the core.
    pub sharing: &'a Sharing,
}

impl Handing<'_> {
    /// Whether node `index` of a graph is handed over.
    pub fn takes(&self, graph: &Graph, index: usize) -> bool {
        let side = graph
            .nodes
            .get(index)
            .and_then(|node| self.sharing.sides.get(&node.name));
        side.copied().unwrap_or_else(|| self.accelerator.takes(graph, index))
    }

    /// Whether the steps of a node that is may be cut for both.
    pub fn shares(&self, node: &Node) -> bool {
        let Sharing { whole, sides, .. } = self.sharing;
        self.accelerator.share && !whole.contains(&node.name) && !sides.contains_key(&node.name)
    }
}

impl Accelerator {
    /// Reads the text of the file at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] naming what is wrong, with the nearest of what could be meant.
    pub fn parse(text: &str, path: &Path) -> Result<Self> {
        let read = || {
            let table: Table = text.parse().map_err(|e: toml::de::Error| {
                let line = e
                    .span()
                    .map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
                Error::input(format!("it is no TOML: {}", e.message())).at(format_args!("line {line}"))
            })?;
            if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
                return Err(unknown("key", key, &KEYS));
            }
            Self::of(&table, path)
        };
        read().map_err(|e| e.in_file(path))
    }

    fn of(table: &Table, path: &Path) -> Result<Self> {
        let name = text(table, "name")?;
        let targets = Target::ALL.map(Target::name);
        let kernels = text(table, "kernels")?;
        let operators = texts(table, "operators")?.ok_or_else(|| missing("operators"))?;
        if operators.is_empty() {
            return Err(Error::input("operators = []").expected(OPERATORS.join(", ")));
        }
        let operator = |operator: &&str| {
            let known = OPERATORS.iter().find(|known| *known == operator).copied();
            known.ok_or_else(|| unknown("operator", operator, &OPERATORS))
        };
        let alignment = number(table, "alignment", 1, ARENA_ALIGN as u64)?.unwrap_or(1);
        if !alignment.is_power_of_two() {
            return Err(Error::input(format!("alignment = {alignment}"))
                .expected("1, 2, 4, 8 or 16")
                .help("arenas begin at multiples of 16 bytes"));
        }
        let regions = texts(table, "regions")?.unwrap_or_default();
        Ok(Self {
            path: path.to_path_buf(),
            name: Name::new(name).ok_or_else(|| {
                Error::input(format!("name = \"{name}\"")).expected("at most 16 of a to z, 0 to 9 and -")
            })?,
            version: number(table, "version", 0, u16::MAX.into())?.ok_or_else(|| missing("version"))? as u16,
            kernels: Target::ALL
                .into_iter()
                .find(|target| target.name() == kernels)
                .ok_or_else(|| unknown("target", kernels, &targets))?,
            operators: operators.iter().map(operator).collect::<Result<_>>()?,
            least_work: number(table, "least_work", 0, i64::MAX as u64)?.unwrap_or(0),
            alignment: alignment as u8,
            regions: regions.into_iter().map(str::to_string).collect(),
            share: flag(table, "share")?.unwrap_or(false),
        })
    }

    /// Returns the declaration in a model file for this accelerator, of an arena in regions of these names.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a region that the arena has not.
    pub fn declaration(&self, names: &[&str]) -> Result<Declaration> {
        let mut reached = if self.regions.is_empty() {
            (1 << names.len()) - 1
        } else {
            0
        };
        for region in &self.regions {
            let at = names.iter().position(|name| name == region);
            let at = at.ok_or_else(|| unknown("region", region, names).in_file(&self.path))?;
            reached |= 1 << at;
        }
        Ok(Declaration {
            name: self.name,
            version: self.version,
            layout: self.kernels,
            alignment: self.alignment,
            regions: reached,
        })
    }

    /// Whether it takes node `index` of a graph.
    pub fn takes(&self, graph: &Graph, index: usize) -> bool {
        let Some(node) = graph.nodes.get(index) else {
            return false;
        };
        let outputs = node.outputs.first().map_or(0, |&id| graph.tensor(id).elements() as u64);
        let work = match facts::macs(graph, index) {
            0 => outputs,
            macs => macs,
        };
        let claimed = operator(graph, node).is_some_and(|operator| self.operators.contains(&operator));
        claimed && work >= self.least_work
    }
}

/// Returns the name of an operator in the file.
fn operator(graph: &Graph, node: &Node) -> Option<&'static str> {
    Some(match &node.op {
        Op::Conv2d(attrs) => {
            let input = node.inputs.first().copied().flatten().map(|id| &graph.tensor(id).shape);
            let output = node.outputs.first().map(|&id| &graph.tensor(id).shape);
            // A group for each channel; channels are the second axis or the last.
            let has = |shape: Option<&Vec<usize>>| {
                shape.is_some_and(|shape| [shape.get(1), shape.last()].contains(&Some(&attrs.groups)))
            };
            if attrs.groups > 1 && has(input) && has(output) {
                "depthwise_conv2d"
            } else {
                "conv2d"
            }
        }
        Op::Linear { .. } => "linear",
        Op::MaxPool2d(_) => "max_pool2d",
        Op::AvgPool2d(_) => "avg_pool2d",
        Op::Binary { kind, .. } => {
            let name = kind.names().name;
            return OPERATORS.iter().find(|known| **known == name).copied();
        }
        Op::Softmax { .. } => "softmax",
        _ => return None,
    })
}

fn text<'t>(table: &'t Table, key: &str) -> Result<&'t str> {
    match table.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(Error::input(format!("{key} = {}", shown(other))).expected("a string")),
        None => Err(missing(key)),
    }
}

fn texts<'t>(table: &'t Table, key: &str) -> Result<Option<Vec<&'t str>>> {
    let wrong = |other: &Value| Error::input(format!("{key} = {}", shown(other))).expected("a list of strings");
    match table.get(key) {
        None => Ok(None),
        Some(all @ Value::Array(values)) => {
            let each = values.iter().map(|value| value.as_str().ok_or_else(|| wrong(all)));
            each.collect::<Result<_>>().map(Some)
        }
        Some(other) => Err(wrong(other)),
    }
}

fn number(table: &Table, key: &str, least: u64, most: u64) -> Result<Option<u64>> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
    let inside = number.filter(|number| (least..=most).contains(number));
    let wrong = || Error::input(format!("{key} = {}", shown(value))).expected(format!("{least} to {most}"));
    inside.map(Some).ok_or_else(wrong)
}

fn flag(table: &Table, key: &str) -> Result<Option<bool>> {
    let wrong = |other: &Value| Error::input(format!("{key} = {}", shown(other))).expected("true or false");
    let value = table.get(key);
    value
        .map(|value| value.as_bool().ok_or_else(|| wrong(value)))
        .transpose()
}

/// A value in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::String(text) => format!("\"{text}\""),
        Value::Array(_) => "[...]".into(),
        other => format!("({})", other.type_str()),
    }
}

fn missing(key: &str) -> Error {
    Error::input(format!("it has no {key}")).help("docs/accelerators.md says what the file holds")
}

fn unknown(what: &str, word: &str, names: &[&str]) -> Error {
    let error = Error::new(ErrorKind::Input, format!("there is no {what} `{word}`")).expected(names.join(", "));
    match meant(word, names.iter().copied()) {
        Some(near) => error.help(near),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"npu\"\nversion = 3\nkernels = \"cortex-m33\"\noperators = [\"conv2d\", \"add\"]\nleast_work = 1000\n\
        alignment = 8\nregions = [\"sram\"]\n";

    fn parse(text: &str) -> Result<Accelerator> {
        Accelerator::parse(text, Path::new("npu.toml"))
    }

    #[test]
    fn a_declaration_is_read() {
        let read = parse(GOOD).expect("it is read");
        assert_eq!((read.kernels, read.operators.len()), (Target::CortexM33, 2));
        let declared = read.declaration(&["tcm", "sram"]).expect("a region");
        assert_eq!((declared.regions, declared.alignment, declared.version), (0b10, 8, 3));
        let short =
            parse("name = \"npu\"\nversion = 0\nkernels = \"portable\"\noperators = [\"add\"]").expect("it is read");
        let declared = short.declaration(&["tcm", "sram"]).expect("all");
        assert_eq!((declared.regions, declared.alignment), (0b11, 1));
        let shares = ["", "share = false", "share = true"].map(|line| parse(&format!("{GOOD}{line}")));
        assert_eq!(shares.map(|read| read.expect("it is read").share), [false, false, true]);
    }

    #[test]
    fn what_is_wrong_is_refused_by_name() {
        for (from, to, said) in [
            ("version", "versoin", "there is no key `versoin`"),
            ("cortex-m33", "cortex-m34", "there is no target `cortex-m34`"),
            ("\"add\"", "\"conv3d\"", "there is no operator `conv3d`"),
            ("alignment = 8", "alignment = 12", "alignment = 12"),
            ("alignment = 8", "alignment = 32", "alignment = 32"),
            ("version = 3", "version = 65536", "version = 65536"),
            ("version = 3", "version = -1", "version = -1"),
            ("\"npu\"", "\"NPU\"", "name = \"NPU\""),
            ("\"npu\"", "3", "name = 3"),
            ("name", "#", "it has no name"),
            ("[\"conv2d\", \"add\"]", "[]", "operators = []"),
            ("[\"conv2d\", \"add\"]", "[1]", "operators = [...]"),
            ("version = 3", "version = ", "it is no TOML"),
            ("version = 3", "version = 3\nshare = 1", "share = 1"),
            ("version = 3", "version = 3\nshares = true", "there is no key `shares`"),
        ] {
            let error = parse(&GOOD.replacen(from, to, 1)).expect_err(to);
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.to_string().contains(said), "{to}: {error}");
        }
        let near = parse(&GOOD.replace("versio", "versoi")).expect_err("no such key");
        assert!(near.to_string().contains("npu.toml"), "{near}");
        let error = parse(GOOD).expect("read").declaration(&["srom"]).expect_err("none");
        assert!(error.to_string().contains("there is no region `sram`"), "{error}");
    }
}
