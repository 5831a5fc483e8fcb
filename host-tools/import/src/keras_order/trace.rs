//! The lines of a trace, sorted by what they are.

use std::collections::{BTreeMap, HashMap};

use super::roles;
use crate::build::{self, Builder, line};
use crate::error::{Error, Result};

/// The lines, sorted by what they are.
pub(super) struct Trace<'a> {
    /// The first path element of the forward half, such as `resnet50`.
    pub(super) network: String,
    /// Forward operators `layer/Op` in the order of execution, with their lines.
    pub(super) forward: Vec<(&'a str, usize)>,
    /// Line of each forward operator.
    pub(super) lines: HashMap<&'a str, usize>,
    /// Layers that any name under the network mentions, with the first line.
    pub(super) layers: BTreeMap<&'a str, usize>,
    /// Everything else: name and line.
    pub(super) outside: Vec<(&'a str, usize)>,
}

/// Operators of the forward half, by the last path element.
pub(super) const OPERATORS: [&str; 11] = [
    "Pad",
    "Conv2D",
    "BiasAdd",
    "FusedBatchNormV3",
    "Relu",
    "add",
    "AddV2",
    "MaxPool",
    "Mean",
    "MatMul",
    "Softmax",
];

impl<'a> Trace<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self> {
        let names: Vec<(&str, usize)> = (text.lines().enumerate())
            .map(|(index, name)| (name.trim_end(), index + 1))
            .filter(|(name, _)| !name.is_empty())
            .collect();
        let mut seen = HashMap::new();
        for &(name, number) in &names {
            if !is_node_name(name) {
                let start: String = name.chars().take(60).collect();
                return Err(at(number, format!("`{start}` is no TensorFlow node name")));
            }
            if let Some(first) = seen.insert(name, number) {
                return Err(at(number, format!("`{name}` stands on line {first} already")));
            }
        }
        let stems: Vec<_> = names
            .iter()
            .filter_map(|(name, number)| Some((name.strip_suffix("/conv1_conv/Conv2D")?, number)))
            .collect();
        let stems: Vec<_> = stems
            .into_iter()
            .filter(|(network, _)| !network.contains('/'))
            .collect();
        let network = match stems.as_slice() {
            [(network, _)] => network.to_string(),
            [] => return Err(Error::input("no `…/conv1_conv/Conv2D`").expected("the names of a Keras ResNet")),
            [_, (_, number), ..] => return Err(at(**number, "a second network")),
        };
        let mut trace = Self {
            forward: Vec::new(),
            lines: HashMap::new(),
            layers: BTreeMap::new(),
            outside: Vec::new(),
            network,
        };
        let mut unsupported = Vec::new();
        for (name, number) in names {
            let inside = name
                .strip_prefix(trace.network.as_str())
                .and_then(|rest| rest.strip_prefix('/'));
            let Some((layer, op)) = inside.and_then(|inside| inside.split_once('/')) else {
                trace.outside.push((name, number));
                continue;
            };
            trace.layers.entry(layer).or_insert(number);
            if OPERATORS.contains(&op) {
                let inside = inside.unwrap_or_default();
                trace.forward.push((inside, number));
                trace.lines.insert(inside, number);
            } else if roles::of_layer(op).is_some() {
                trace.outside.push((name, number));
            } else {
                unsupported.push((op.to_string(), format!("line {number}, layer `{layer}`")));
            }
        }
        build::refuse_unknown(unsupported, "Keras's ResNets have no such operators")?;
        Ok(trace)
    }

    /// Records of the training step: by role, without edges, since the trace states none.
    pub(super) fn outside(&self, builder: &mut Builder, warnings: &mut Vec<String>) {
        let mut unknown = Vec::new();
        for &(name, number) in &self.outside {
            let role = roles::of(name, &self.network);
            if role.is_none() {
                unknown.push(format!("`{name}` (line {number})"));
            }
            let kind = name.rsplit('/').next().unwrap_or(name);
            let role = role.unwrap_or(crate::graph::Role::Bookkeeping);
            builder.opaque(name, kind, role, &[], &[], line(number));
        }
        if !unknown.is_empty() {
            warnings.push(format!(
                "{} names outside the network are of no known kind and count as bookkeeping: {}",
                unknown.len(),
                unknown.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
            ));
        }
    }
}

/// TensorFlow's rule for node names.
fn is_node_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || "_.\\/>-:".contains(c))
}

pub(super) fn at(line: usize, message: impl Into<String>) -> Error {
    Error::input(message).at(format!("line {line}"))
}
