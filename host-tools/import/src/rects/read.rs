//! The text as names and readings of sizes.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{self, Name, Training, Vocabulary, Word, digit};
use crate::assume::Assumptions;
use crate::error::{Error, Result};
use crate::graph::Role;

/// Distinct words that are matched letter by letter; a real picture has a few dozen.
const MOST_GARBLED: usize = 4000;

/// Contents of the picture.
#[derive(Debug)]
pub(super) struct Picture {
    /// Number of layers, counted from 0.
    pub(super) layers: usize,
    /// Nodes of the forward half and the line of their name.
    pub(super) seen: BTreeMap<Name, usize>,
    /// Nodes of the training half and the line of their name.
    training: BTreeMap<Training, usize>,
    pub(super) readings: Vec<Reading>,
    /// Words that were matched although they were spelled differently: line, word, name.
    repaired: Vec<(usize, String, String)>,
    /// Lines with words that are no name of the grammar.
    illegible: BTreeSet<usize>,
}

/// A list of extents at a node.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) name: Name,
    pub(super) what: What,
    pub(super) extents: Vec<usize>,
    pub(super) line: usize,
}

/// Which array a reading is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The data node itself, or the operator's result.
    Own,
    /// The operator's input.
    Input,
    /// The operator's filters.
    Filters,
}

pub(super) fn read(text: &str) -> Result<Picture> {
    let lines: Vec<(usize, &str)> = text.lines().enumerate().map(|(i, line)| (i + 1, line)).collect();
    let words = || {
        lines
            .iter()
            .filter(|(_, line)| !line.contains("Rect("))
            .flat_map(|(_, line)| line.split_whitespace())
    };
    let layers = names::layers(words());
    let count = layers.len();
    check_training(&lines, &layers)?;
    if !layers.into_iter().eq(0..count) || count == 0 {
        return Err(Error::input("the layers are not L0, L1 and so on")
            .expected("nodes such as `L0.filter`, `L0.filterA`, `L0.filterNL` with their outputs, for each layer"));
    }
    let mut reader = Reader {
        vocabulary: Vocabulary::new(0..count),
        garbled: BTreeMap::new(),
        picture: Picture {
            layers: count,
            seen: BTreeMap::new(),
            training: BTreeMap::new(),
            readings: Vec::new(),
            repaired: Vec::new(),
            illegible: BTreeSet::new(),
        },
    };
    // The names that the attributes of the following lines belong to.
    let mut current: Vec<Option<Name>> = Vec::new();
    for &(number, line) in &lines {
        let entries = entries(line);
        if !entries.is_empty() {
            reader.attributes(number, line, &current, entries);
        } else if line.contains("->") || line.contains("=>") || line.trim_start().starts_with('>') {
            // Ports: the grammar says which there are.
        } else if line.split_whitespace().next().is_some() {
            let found = reader.name_line(number, line)?;
            if !found.is_empty() {
                current = found;
            }
        }
    }
    Ok(reader.picture)
}

struct Reader {
    vocabulary: Vocabulary,
    garbled: BTreeMap<String, Option<Word>>,
    picture: Picture,
}

impl Reader {
    /// The names on a line; `None` for one of the training half.
    fn name_line(&mut self, number: usize, line: &str) -> Result<Vec<Option<Name>>> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut found = Vec::new();
        let mut index = 0;
        while let Some(&word) = words.get(index) {
            index += 1;
            // A space may be lost between two names, or stand inside one.
            if let Some(name) = self.vocabulary.exact(word) {
                found.push(self.saw(number, word, name));
            } else if let Some((first, second)) = self.split(word) {
                for name in [first, second] {
                    self.picture.repaired.push((number, word.to_string(), name.to_string()));
                    self.picture.seen.entry(name).or_insert(number);
                    found.push(Some(name));
                }
            } else if let Some((name, joined)) = self.joined(word, words.get(index)) {
                index += 1;
                found.push(self.saw(number, &joined, Word::Node(name)));
            } else if let Some(name) = self.near(word)? {
                found.push(self.saw(number, word, name));
            } else if is_gradient(word) {
                found.push(None);
            } else if word.chars().filter(|c| c.is_alphanumeric()).count() > 3 {
                self.picture.illegible.insert(number);
            }
        }
        Ok(found)
    }

    /// Notes a name; returns it where it is one of the forward half.
    fn saw(&mut self, number: usize, word: &str, name: Word) -> Option<Name> {
        let spelled = name.to_string();
        if word != spelled {
            self.picture.repaired.push((number, word.to_string(), spelled));
        }
        match name {
            Word::Node(name) => {
                self.picture.seen.entry(name).or_insert(number);
                Some(name)
            }
            Word::Training(name) => {
                self.picture.training.entry(name).or_insert(number);
                None
            }
        }
    }

    fn near(&mut self, word: &str) -> Result<Option<Word>> {
        if let Some(name) = self.garbled.get(word) {
            return Ok(*name);
        }
        if self.garbled.len() >= MOST_GARBLED {
            return Err(Error::input("too many words are no name of the grammar").expected("a graph picture's text"));
        }
        let name = self.vocabulary.near(word);
        self.garbled.insert(word.to_string(), name);
        Ok(name)
    }

    fn split(&self, word: &str) -> Option<(Name, Name)> {
        if word.len() > 64 {
            return None;
        }
        let cuts = word.char_indices().map(|(at, _)| word.split_at(at));
        cuts.skip(1)
            .find_map(|(a, b)| Some((self.vocabulary.node(a)?, self.vocabulary.node(b)?)))
    }

    fn joined(&self, word: &str, next: Option<&&str>) -> Option<(Name, String)> {
        let joined = format!("{word}{}", next?);
        Some((self.vocabulary.node(&joined)?, joined))
    }

    /// Readings of a line, one for each name above it.
    fn attributes(&mut self, line: usize, text: &str, current: &[Option<Name>], entries: Vec<Entry>) {
        for word in text.split_whitespace().filter(|word| !word.contains('[')) {
            // Nodes of the training half stand beside the attributes of others.
            if let Some(name @ Word::Training(_)) = self.vocabulary.exact(word) {
                self.saw(line, word, name);
            }
        }
        if entries.len() != current.len() {
            return;
        }
        for (name, entry) in current.iter().zip(entries) {
            let (Some(name), Some(extents)) = (name, entry.extents) else {
                continue;
            };
            let before = text.get(..entry.at).unwrap_or_default();
            let keyword = before
                .rsplit([' ', '='])
                .find(|word| word.len() > 2 && !word.starts_with("Rect"))
                .unwrap_or_default();
            self.picture.readings.push(Reading {
                name: *name,
                what: what(*name, keyword),
                extents,
                line,
            });
        }
    }
}

impl Picture {
    /// The operators of the training half with their roles and lines. Where one of a kind is legible, the grammar says which others there
    /// are, so that noise takes none away; the line of such a one is 0.
    pub(super) fn training(&self) -> Vec<(String, Role, usize)> {
        let kind = |name: &Training| std::mem::discriminant(name);
        let operators = Training::operators(self.layers);
        let kinds: Vec<_> = operators
            .iter()
            .filter(|name| self.training.contains_key(name))
            .map(kind)
            .collect();
        let all = operators.into_iter().filter(|name| kinds.contains(&kind(name)));
        all.map(|name| {
            let role = match name {
                Training::Update(_) => Role::Optimizer,
                Training::Gradient(_) | Training::SetZero(_) => Role::Backward,
            };
            (name.to_string(), role, self.training.get(&name).copied().unwrap_or(0))
        })
        .collect()
    }

    /// Puts repaired names into the assumptions.
    pub(super) fn report(&self, assumptions: &mut Assumptions<'_>) {
        for (line, word, name) in &self.repaired {
            let reason = format!("line {line} spells it `{word}`; the graph's grammar knows no other name like it");
            assumptions.record("name", name, &format!("line {line}"), &reason);
        }
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        match self.illegible.len() {
            0 => Vec::new(),
            n => {
                let lines: Vec<_> = self.illegible.iter().take(20).map(usize::to_string).collect();
                vec![format!(
                    "{n} lines have words that are no name of the graph's grammar and are not read: lines {}",
                    lines.join(", ")
                )]
            }
        }
    }
}

/// A layer of the training half is one of the forward half. A single mention is more likely a doubled digit.
fn check_training(lines: &[(usize, &str)], layers: &BTreeSet<usize>) -> Result<()> {
    let all = Vocabulary::new(0..names::MOST_LAYERS);
    let mut mentions: BTreeMap<usize, BTreeMap<Training, usize>> = BTreeMap::new();
    for &(number, line) in lines.iter().filter(|(_, line)| !line.contains("Rect(")) {
        for word in line.split_whitespace() {
            if let Some(Word::Training(name)) = all.exact(word)
                && let Some(layer) = names::layer(name.of()).filter(|layer| !layers.contains(layer))
            {
                mentions.entry(layer).or_default().entry(name).or_insert(number);
            }
        }
    }
    let missing = mentions.into_iter().find(|(_, names)| names.len() >= 2);
    let Some((layer, (name, number))) = missing.and_then(|(layer, names)| Some((layer, names.into_iter().next()?)))
    else {
        return Ok(());
    };
    Err(
        Error::input(format!("`{name}` trains layer L{layer}, which has no forward half"))
            .at(format!("line {number}"))
            .expected(format!("`L{layer}.filter`, `L{layer}.filterA` and `L{layer}.filterNL`")),
    )
}

/// A data node of the training half.
fn is_gradient(word: &str) -> bool {
    word.contains(".grad") || word.contains("delta")
}

/// A bracketed list, or a pair of them in a rectangle, or `None`.
struct Entry {
    /// Byte offset of its first bracket.
    at: usize,
    extents: Option<Vec<usize>>,
}

/// All dimensions and rectangles of a line, in order.
fn entries(line: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut low: Option<(usize, Option<Vec<usize>>)> = None;
    let mut rest = 0;
    while let Some(part) = line.get(rest..) {
        let bracket = part.find('[').map(|at| rest + at);
        let none = part.find("=None").map(|at| rest + at);
        match (bracket, none) {
            (None, None) => break,
            (bracket, Some(none)) if bracket.is_none_or(|b| none < b) => {
                entries.push(Entry {
                    at: none,
                    extents: None,
                });
                rest = none + "=None".len();
            }
            (Some(open), _) => {
                let inside = line.get(open + 1..).unwrap_or_default();
                let Some(length) = inside.find([']', '[', '=']) else {
                    break;
                };
                let extents = extents(inside.get(..length).unwrap_or_default());
                rest = open + 1 + length;
                let is_array = line.get(..open).is_some_and(|before| before.ends_with('('));
                match (is_array, low.take()) {
                    (false, _) => entries.push(Entry { at: open, extents }),
                    (true, None) => low = Some((open, extents)),
                    (true, Some((at, low))) => {
                        // Only a rectangle from the origin tells the array's extents.
                        let from_origin = low.is_some_and(|low| low.iter().all(|&n| n == 0));
                        entries.push(Entry {
                            at,
                            extents: extents.filter(|_| from_origin),
                        });
                    }
                }
            }
            (None, Some(_)) => break,
        }
    }
    entries
}

/// Numbers separated by spaces or commas, letters that look like digits among them.
fn extents(text: &str) -> Option<Vec<usize>> {
    let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
    let number = |word: &str| -> Option<usize> {
        let digits: Option<String> = word.chars().map(digit).collect();
        digits?.parse().ok().filter(|&n| n <= crate::build::LARGEST_EXTENT)
    };
    words.map(number).collect()
}

fn what(name: Name, keyword: &str) -> What {
    match name {
        Name::Filter(_) if keyword.contains("filters") || keyword.contains("f1lters") => What::Filters,
        Name::Filter(_) if keyword.contains("input") || keyword.contains("1nput") => What::Input,
        Name::Linear1 if keyword.starts_with("read") => What::Input,
        _ => What::Own,
    }
}
