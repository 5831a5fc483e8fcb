//! The rows, sorted by what they are.

use std::collections::{BTreeMap, HashMap};

use crate::build::{LARGEST_EXTENT, refuse_unknown};
use crate::error::{Error, Result};
use crate::graph::Role;

/// Edges are found by comparing operators with each other, so their number is bounded.
const LARGEST_NETWORK: usize = 5000;

/// A profile.
pub(super) struct Trace<'a> {
    /// Operators of the network, in the order of the file.
    pub(super) forward: Vec<Node<'a>>,
    /// Variables and placeholders: name -> shape and line.
    pub(super) sources: BTreeMap<&'a str, (Vec<usize>, usize)>,
    /// Every other row, with its role.
    pub(super) outside: Vec<(Row<'a>, Role)>,
    /// Rows of no known kind.
    unknown: Vec<String>,
}

/// An operator of the network.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    pub(super) op: Kernel,
    /// The kernel's name.
    pub(super) kind: &'a str,
    /// Shape of the data input.
    pub(super) input: Vec<usize>,
    /// Shape of the filter or of the bias.
    pub(super) parameter: Option<Vec<usize>>,
    pub(super) output: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Conv2d,
    BiasAdd,
    Relu,
    Lrn,
    MaxPool,
    AvgPool,
}

#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) line: usize,
    pub(super) name: &'a str,
    pub(super) inputs: Vec<Field>,
    pub(super) output: Field,
    pub(super) control: Vec<&'a str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// `(1)`, `(no input)`, `(no output)`, `(output N bytes)`
    Nothing,
    Shape(Vec<usize>),
    Integers,
}

impl<'a> Trace<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let mut rows = Vec::new();
        let mut lines = HashMap::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let row = row(index + 1, line)?;
            if let Some(first) = lines.insert(row.name, row.line) {
                return Err(at(row.line, format!("`{}` stands on line {first} already", row.name)));
            }
            rows.push(row);
        }
        // `X:Op` rows tell the kernel of node X.
        let mut kernels: HashMap<&str, &str> = HashMap::new();
        for row in &rows {
            if let Some((node, kernel)) = row.name.split_once(':').filter(|(_, kernel)| *kernel != "MEMCPYDtoH") {
                if !lines.contains_key(node) {
                    return Err(at(
                        row.line,
                        format!("kernel {kernel} of node `{node}`, which has no row"),
                    ));
                }
                if let Some(other) = kernels.insert(node, kernel) {
                    return Err(at(
                        row.line,
                        format!("node `{node}` launched {other} and also {kernel}"),
                    ));
                }
            }
        }
        for row in &rows {
            for node in trained(row) {
                if !lines.contains_key(node) {
                    return Err(at(
                        row.line,
                        format!("`{}` belongs to node `{node}`, which has no row", row.name),
                    )
                    .expected("the rows of every node that is trained, fetched or transposed"));
                }
            }
        }
        let mut trace = Self {
            forward: Vec::new(),
            sources: BTreeMap::new(),
            outside: Vec::new(),
            unknown: Vec::new(),
        };
        let mut unsupported = Vec::new();
        for row in rows {
            trace.sort_in(row, &kernels, &mut unsupported)?;
        }
        refuse_unknown(
            unsupported,
            "build the network from other operators, or trace it in another dialect",
        )?;
        if trace.forward.is_empty() {
            return Err(Error::input("no row is an operator of a network").expected("rows such as `conv1/Conv2D, …`"));
        }
        if trace.forward.len() > LARGEST_NETWORK || trace.sources.len() > LARGEST_NETWORK {
            let count = trace.forward.len().max(trace.sources.len());
            return Err(Error::unsupported(format!("{count} operators or variables"))
                .expected(format!("at most {LARGEST_NETWORK}")));
        }
        Ok(trace)
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        if self.unknown.is_empty() {
            Vec::new()
        } else {
            vec![format!(
                "{} rows are of no known kind and count as bookkeeping: {}",
                self.unknown.len(),
                self.unknown.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
            )]
        }
    }

    fn sort_in(
        &mut self,
        row: Row<'a>,
        kernels: &HashMap<&str, &'a str>,
        unsupported: &mut Vec<(String, String)>,
    ) -> Result<()> {
        let name = row.name;
        if let Some(role) = known_role(name) {
            self.outside.push((row, role));
            return Ok(());
        }
        let kernel = kernels.get(name).copied();
        let last = name.rsplit('/').next().unwrap_or(name);
        if let Some((op, kind)) = kernel.or(Some(last)).and_then(|k| Some((operator(k)?, k))) {
            let node = node(&row, op, kind)?;
            self.forward.push(node);
            return Ok(());
        }
        if let Some(kernel) = kernel {
            unsupported.push((kernel.to_string(), format!("line {}", row.line)));
            return Ok(());
        }
        match (row.inputs.as_slice(), &row.output) {
            // A node without inputs: a variable or a placeholder. Its `/read` is the identity.
            ([] | [Field::Nothing], Field::Shape(shape)) => {
                self.sources.insert(name, (shape.clone(), row.line));
            }
            ([Field::Shape(x)], Field::Shape(y)) if x == y && last == "read" => {}
            ([Field::Shape(x)], Field::Shape(_)) if x.len() == 4 => {
                return Err(
                    Error::input(format!("no `{name}:…` row says what node `{name}` computes"))
                        .at(format!("line {}", row.line)),
                );
            }
            _ => self.unknown.push(format!("`{name}` (line {})", row.line)),
        }
        self.outside.push((row, Role::Bookkeeping));
        Ok(())
    }
}

/// Roles that the name alone tells.
fn known_role(name: &str) -> Option<Role> {
    let starts = |prefix: &str| name.starts_with(prefix);
    if starts("gradients/") || starts("gradients_") {
        return Some(Role::Backward);
    }
    let node = name.split(':').next().unwrap_or(name);
    let is_bookkeeping = name.contains(':')
        || starts("ConstantFolding/")
        || starts("PermConst")
        || starts("_retval_")
        || starts("edge_")
        || name == "_SOURCE"
        || name == "_SINK"
        || node.ends_with("-LayoutOptimizer");
    is_bookkeeping.then_some(Role::Bookkeeping)
}

/// The nodes that a row outside the forward half says there are: those whose gradient it computes, whose result it fetches or
/// transposes, and those that a gradient's shapes wait for.
fn trained<'r>(row: &'r Row<'_>) -> Vec<&'r str> {
    let name = row.name.split(':').next().unwrap_or(row.name);
    let mut nodes = Vec::new();
    if let Some((_, scope)) = name.split_once("gradients")
        && let Some((_, node)) = scope.split_once('/')
        && let Some((node, _)) = node.split_once("_grad/")
    {
        nodes.push(node);
        nodes.extend(&row.control);
    }
    if let Some(fetched) = name.strip_prefix("_retval_") {
        nodes.extend(numberless(fetched, '_', 2));
    }
    if let Some((_, copied)) = name.strip_prefix("edge_").and_then(|rest| rest.split_once('_')) {
        nodes.push(copied);
    }
    if let Some(moved) = name.strip_suffix("-LayoutOptimizer") {
        let moved = match moved.rsplit_once('-') {
            Some((rest, what)) if what.bytes().all(|b| b.is_ascii_alphabetic()) => rest,
            _ => moved,
        };
        nodes.extend(numberless(moved, '-', 2).or_else(|| numberless(moved, '-', 1)));
    }
    nodes
}

/// `name` without its last `count` numbers.
fn numberless(name: &str, separator: char, count: usize) -> Option<&str> {
    (0..count).try_fold(name, |name, _| {
        let (rest, number) = name.rsplit_once(separator)?;
        (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(rest)
    })
}

fn operator(kernel: &str) -> Option<Kernel> {
    Some(match kernel {
        "Conv2D" => Kernel::Conv2d,
        "BiasAdd" => Kernel::BiasAdd,
        "Relu" => Kernel::Relu,
        "LRN" => Kernel::Lrn,
        "MaxPool" => Kernel::MaxPool,
        "AvgPool" => Kernel::AvgPool,
        _ => return None,
    })
}

/// Checks the shapes of an operator against each other.
fn node<'a>(row: &Row<'a>, op: Kernel, kind: &'a str) -> Result<Node<'a>> {
    let error = |message: String| at(row.line, format!("`{}` ({kind}): {message}", row.name));
    let shape = |field: Option<&Field>| match field {
        Some(Field::Shape(shape)) => Some(shape.clone()),
        _ => None,
    };
    let counts = match op {
        Kernel::Conv2d | Kernel::BiasAdd => 2,
        // TensorFlow's ReLU in place shows its input twice, as its gradient does.
        _ => 1,
    };
    let (Some(input), Some(output)) = (shape(row.inputs.first()), shape(Some(&row.output))) else {
        return Err(error("its shapes are missing".to_string()));
    };
    if row.inputs.len() != counts {
        return Err(error(format!("{} inputs", row.inputs.len())).expected(counts));
    }
    let parameter = shape(row.inputs.get(1)).map(|mut shape| {
        // A vector is printed with a second extent of 1.
        if op == Kernel::BiasAdd && shape.len() == 2 && shape.last() == Some(&1) {
            shape.pop();
        }
        shape
    });
    if input.len() != 4 || output.len() != 4 || input.first() != output.first() {
        return Err(error(format!("shapes {input:?} and {output:?}")).expected("four axes, the same batch"));
    }
    let same = matches!(op, Kernel::BiasAdd | Kernel::Relu | Kernel::Lrn);
    if same && input != output {
        return Err(error(format!("its input has shape {input:?}, its output {output:?}")).expected("equal shapes"));
    }
    Ok(Node {
        name: row.name,
        line: row.line,
        op,
        kind,
        input,
        parameter,
        output,
    })
}

fn row(line: usize, text: &str) -> Result<Row<'_>> {
    let start: String = text.chars().take(60).collect();
    let malformed = || at(line, format!("found `{start}`")).expected("a row: name, (input), …, (output), device, 0");
    let fields: Vec<&str> = text.trim_end().split(", ").collect();
    let [name, middle @ .., device, number] = fields.as_slice() else {
        return Err(malformed());
    };
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && b != b',' && b != b'(');
    if !plain(name) || !plain(device) || number.parse::<u64>().is_err() {
        return Err(malformed());
    }
    let mut inputs = Vec::new();
    let mut control = Vec::new();
    for text in middle {
        match text.strip_prefix('^') {
            Some(name) if plain(name) => control.push(name),
            Some(_) => return Err(malformed()),
            None => inputs.push(field(text).ok_or_else(|| at(line, format!("found `{text}`")).expected("(shape)"))?),
        }
    }
    let output = inputs.pop().ok_or_else(malformed)?;
    Ok(Row {
        line,
        name,
        inputs,
        output,
        control,
    })
}

fn field(text: &str) -> Option<Field> {
    let inside = text.strip_prefix('(')?.strip_suffix(')')?;
    if let "1" | "no input" | "no output" = inside {
        return Some(Field::Nothing);
    }
    if let Some(bytes) = inside.strip_prefix("output ") {
        let bytes = bytes.strip_suffix(" bytes")?;
        return bytes.parse::<u64>().ok().map(|_| Field::Nothing);
    }
    let extents = |text: &str| -> Option<Vec<usize>> {
        let extents = text
            .split('x')
            .map(|n| n.parse().ok().filter(|n| (1..=LARGEST_EXTENT).contains(n)));
        extents.collect::<Option<Vec<_>>>().filter(|extents| extents.len() <= 8)
    };
    match inside.strip_prefix("int32 ") {
        Some(shape) => extents(shape).map(|_| Field::Integers),
        None => extents(inside).map(Field::Shape),
    }
}

pub(super) fn at(line: usize, message: impl Into<String>) -> Error {
    Error::input(message).at(format!("line {line}"))
}
