//! The dump as records, forward ones by rank.

use std::collections::{HashMap, HashSet};

use crate::build::LARGEST_EXTENT;
use crate::error::{Error, Result};
use crate::files::json::{Json, Object};

/// Operators that compare the network's output with labels.
pub(super) const LOSSES: [&str; 4] = [
    "SoftmaxCrossEntropy",
    "MeanSquaredError",
    "SigmoidCrossEntropy",
    "Accuracy",
];

/// A dump whose edges are consistent.
pub(super) struct Trace<'a> {
    pub(super) buffers: HashMap<u64, Buffer>,
    /// By rank.
    pub(super) forward: Vec<Record<'a>>,
    /// By descending rank.
    pub(super) backward: Vec<Record<'a>>,
}

#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) line: usize,
    pub(super) bytes: usize,
    pub(super) name: BufferName,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BufferName {
    Intermediate,
    Parameter(String),
    /// The n-th input.
    Input(String),
}

pub(super) struct Record<'a> {
    pub(super) line: usize,
    pub(super) is_forward: bool,
    /// Buffer and tag.
    pub(super) inputs: Vec<(u64, &'a str)>,
    pub(super) outputs: Vec<u64>,
    pub(super) class: &'a str,
    pub(super) attrs: Object<'a>,
    pub(super) rank: usize,
}

impl<'a> Trace<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let mut lines = Lines {
            text,
            lines: text.lines().enumerate(),
            last: 0,
        };
        let [buffer_count, record_count] = lines.numbers("the number of buffers and of records")?;
        let mut buffers = HashMap::new();
        for _ in 0..buffer_count {
            let (line, text) = lines.next("a buffer: id, bytes, name")?;
            let (id, buffer) = buffer(line, text)?;
            if buffers.insert(id, buffer).is_some() {
                return Err(at(line, format!("buffer {id} is listed twice")));
            }
        }
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        for _ in 0..record_count {
            let record = lines.record()?;
            for id in record.inputs.iter().map(|(id, _)| id).chain(&record.outputs) {
                if !buffers.contains_key(id) {
                    return Err(record.error(format!("buffer {id} is not in the table")));
                }
            }
            if record.is_forward {
                forward.push(record)
            } else {
                backward.push(record)
            }
        }
        if let Some((index, rest)) = lines.lines.find(|(_, line)| !line.trim().is_empty()) {
            return Err(at(index + 1, format!("`{}` after the last record", excerpt(rest)))
                .expected(format!("{record_count} records, as the first line says")));
        }
        forward.sort_by_key(|r| r.rank);
        backward.sort_by_key(|r| std::cmp::Reverse(r.rank));
        let trace = Self {
            buffers,
            forward,
            backward,
        };
        trace.check()?;
        Ok(trace)
    }

    pub(super) fn buffer(&self, id: u64) -> Result<&Buffer> {
        self.buffers
            .get(&id)
            .ok_or_else(|| Error::internal(format!("buffer {id} is not in the table")))
    }

    /// f32 elements of a buffer.
    pub(super) fn elements(&self, id: u64) -> Result<usize> {
        let buffer = self.buffer(id)?;
        match buffer.bytes % 4 {
            0 => Ok(buffer.bytes / 4),
            _ => Err(at(buffer.line, format!("buffer {id} has {} bytes", buffer.bytes)).expected("whole f32 elements")),
        }
    }

    /// One writer a buffer, written before it is read, one record a rank; the backward half mirrors the forward one.
    fn check(&self) -> Result<()> {
        if let Some(pair) = self.forward.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
            return Err(pair[1].error(format!("rank {} is also that of line {}", pair[1].rank, pair[0].line)));
        }
        let mut written = HashSet::new();
        for record in &self.forward {
            for (id, tag) in &record.inputs {
                if *tag != "_" {
                    return Err(record.error(format!("tag `{tag}` in a forward record")).expected("`_`"));
                }
                if self.buffer(*id)?.name == BufferName::Intermediate && !written.contains(id) {
                    return Err(record
                        .error(format!("it reads buffer {id} before a record of lower rank writes it"))
                        .help("the record that writes it is missing, or the ranks form a cycle"));
                }
            }
            for id in &record.outputs {
                if self.buffer(*id)?.name != BufferName::Intermediate || !written.insert(*id) {
                    return Err(record.error(format!(
                        "it writes buffer {id}, which is no intermediate or is written already"
                    )));
                }
            }
        }
        let mut ranks: HashMap<usize, &Record<'a>> = self.forward.iter().map(|r| (r.rank, r)).collect();
        for record in &self.backward {
            let Some(forward) = ranks.remove(&record.rank) else {
                let message = format!(
                    "no forward record has rank {}, or two backward records have it",
                    record.rank
                );
                return Err(record.error(message));
            };
            record.check_mirror(forward)?;
        }
        Ok(())
    }
}

impl Record<'_> {
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        self.locate(Error::input(message))
    }

    pub(super) fn locate(&self, error: Error) -> Error {
        error.at(format!("line {} ({})", self.line, self.class))
    }

    /// The place of a record, for assumptions.
    pub(super) fn place(&self) -> String {
        format!("{} of rank {}", self.class, self.rank)
    }

    /// An attribute in `least..`.
    pub(super) fn size(&self, name: &str, least: usize) -> Result<usize> {
        self.attrs.need(name)?.size(least..=LARGEST_EXTENT)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        self.attrs.need(name)?.boolean()
    }

    /// Refuses attributes that could change what the operator computes.
    pub(super) fn only(&self, names: &[&str]) -> Result<()> {
        let known = |name: &str| {
            let common = ["rank", "lazy_grad_sum"];
            name.starts_with('_') || common.contains(&name) || names.contains(&name)
        };
        match self.attrs.fields().iter().find(|(name, _)| !known(name)) {
            Some((name, json)) => Err(self.locate(
                Error::unsupported(format!("attribute `{name}` (line {})", json.line())).expected(match names {
                    [] => "none here".to_string(),
                    _ => names.join(", "),
                }),
            )),
            None => Ok(()),
        }
    }

    /// A backward record has the class and the attributes of its forward record, reads its buffers and gives gradients of its inputs.
    fn check_mirror(&self, forward: &Record<'_>) -> Result<()> {
        if self.class != forward.class {
            return Err(self.error(format!(
                "rank {} is a {} on line {}",
                self.rank, forward.class, forward.line
            )));
        }
        for (name, json) in self.attrs.fields() {
            let same = forward.attrs.get(name).is_some_and(|other| other.text() == json.text());
            if !same && !name.starts_with('_') {
                let message = format!(
                    "attribute `{name}` is {}, but not so in the forward record",
                    excerpt(json.text())
                );
                return Err(self.error(message).expected(format!("what line {} says", forward.line)));
            }
        }
        let is_input = |id: &u64| forward.inputs.iter().any(|(input, _)| input == id);
        for (id, tag) in &self.inputs {
            let fits = match *tag {
                "gradient" | "output" => forward.outputs.contains(id),
                "input" => is_input(id),
                other => {
                    return Err(self
                        .error(format!("tag `{other}`"))
                        .expected("gradient, input or output"));
                }
            };
            if !fits {
                return Err(self.error(format!(
                    "buffer {id} is no {tag} of the forward record on line {}",
                    forward.line
                )));
            }
        }
        match self.outputs.iter().find(|id| !is_input(id)) {
            Some(id) => Err(self.error(format!(
                "buffer {id} is no input of the forward record on line {}",
                forward.line
            ))),
            None => Ok(()),
        }
    }
}

struct Lines<'a> {
    text: &'a str,
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    last: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self, expected: &str) -> Result<(usize, &'a str)> {
        let Some((index, line)) = self.lines.next() else {
            return Err(at(self.last + 1, "the file ends here").expected(expected));
        };
        self.last = index + 1;
        Ok((index + 1, line))
    }

    fn numbers<const N: usize>(&mut self, expected: &str) -> Result<[usize; N]> {
        let (line, text) = self.next(expected)?;
        let numbers: Option<Vec<usize>> = text.split_whitespace().map(|w| w.parse().ok()).collect();
        numbers
            .and_then(|numbers| numbers.try_into().ok())
            .ok_or_else(|| at(line, format!("found `{}`", excerpt(text))).expected(expected))
    }

    fn record(&mut self) -> Result<Record<'a>> {
        let (line, direction) = self.next("`forward` or `backward`")?;
        let is_forward = match direction.trim() {
            "forward" => true,
            "backward" => false,
            other => return Err(at(line, format!("found `{}`", excerpt(other))).expected("`forward` or `backward`")),
        };
        let [input_count, output_count] = self.numbers("the number of inputs and of outputs")?;
        let mut inputs = Vec::new();
        for _ in 0..input_count {
            let (line, text) = self.next("an input: buffer and tag")?;
            let mut words = text.split_whitespace();
            let found = (words.next().and_then(|w| w.parse().ok()), words.next(), words.next());
            let (Some(id), Some(tag), None) = found else {
                return Err(at(line, format!("found `{}`", excerpt(text))).expected("an input: buffer and tag"));
            };
            inputs.push((id, tag));
        }
        let mut outputs = Vec::new();
        for _ in 0..output_count {
            let [id] = self.numbers("an output: a buffer")?;
            outputs.push(id as u64);
        }
        let (class_line, class) = self.next("the operator's class")?;
        let class = class.trim();
        if class.is_empty() || !class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(at(class_line, format!("found `{}`", excerpt(class))).expected("the operator's class"));
        }
        let (_, json) = self.next("the operator's attributes")?;
        let attrs = Json::parse_part(self.text, json)?.object()?;
        Ok(Record {
            line,
            is_forward,
            inputs,
            outputs,
            class,
            rank: attrs.need("rank")?.size(0..=usize::MAX >> 1)?,
            attrs,
        })
    }
}

fn buffer(line: usize, text: &str) -> Result<(u64, Buffer)> {
    let malformed = || at(line, format!("found `{}`", excerpt(text))).expected("a buffer: id, bytes, name");
    let mut words = text.split_whitespace();
    let (Some(id), Some(bytes), Some(name), None) = (words.next(), words.next(), words.next(), words.next()) else {
        return Err(malformed());
    };
    let (Ok(id), Ok(bytes)) = (id.parse(), bytes.parse()) else {
        return Err(malformed());
    };
    let name = match name {
        "_" => BufferName::Intermediate,
        path if path.starts_with('/') => BufferName::Parameter(path.to_string()),
        digits if digits.parse::<u32>().is_ok() => BufferName::Input(digits.to_string()),
        _ => return Err(malformed().expected("`_`, a parameter's path or an input's number as the name")),
    };
    if bytes == 0 || bytes > u32::MAX as usize {
        return Err(at(line, format!("buffer {id} has {bytes} bytes")).expected("1 to 4294967295"));
    }
    Ok((id, Buffer { line, bytes, name }))
}

pub(super) fn at(line: usize, message: impl Into<String>) -> Error {
    Error::input(message).at(format!("line {line}"))
}

fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}
