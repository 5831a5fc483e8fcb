//! A network of another format, written with ONNX's operators in memory: what that format's importer fills, and what the import of ONNX reads.

use super::elem::Elem;
use super::proto::{self, Extent, Graph, Model, Node, Source, Tensor, ValueInfo};
use crate::error::Error;

/// The operator set that drafts are written in.
const OPSET: i64 = 25;

/// A network under writing.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    /// Values between nodes of which type and shape are stated.
    pub(crate) values: Vec<Port>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) nodes: Vec<Step>,
    /// The nodes of the other format, in its order.
    pub(crate) sources: Vec<Origin>,
}

/// A value, with what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) elem: Elem,
    pub(crate) shape: Vec<Size>,
}

/// An extent: stated, named, or neither.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Size {
    Known(i64),
    Named(String),
    Unknown,
}

/// A parameter: its elements in little-endian order, row by row.
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) elem: Elem,
    pub(crate) shape: Vec<i64>,
    pub(crate) data: Vec<u8>,
}

/// A node of the other format.
pub(crate) struct Origin {
    pub(crate) op: String,
    /// Why it cannot be written.
    pub(crate) refusal: Option<Error>,
}

/// A node of ONNX.
pub(crate) struct Step {
    op: &'static str,
    domain: &'static str,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    attributes: Vec<(&'static str, Vec<u8>)>,
    /// The node of the other format that it is of.
    source: usize,
}

/// The value of an attribute.
pub(crate) enum Attribute<'v> {
    Int(i64),
    Float(f32),
    Ints(&'v [i64]),
    Text(&'v str),
    Texts(&'v [&'v str]),
    /// Element type, extents and elements.
    Tensor(Elem, &'v [i64], &'v [u8]),
}

impl Attribute<'_> {
    /// Its field of the message `AttributeProto`.
    fn encoded(&self) -> Vec<u8> {
        let mut field = Vec::new();
        match self {
            Self::Float(value) => {
                field.push(2 << 3 | 5);
                field.extend(value.to_le_bytes());
            }
            Self::Int(value) => {
                field.push(3 << 3);
                varint(&mut field, *value as u64);
            }
            Self::Text(text) => bytes(&mut field, 4, text.as_bytes()),
            Self::Texts(texts) => texts.iter().for_each(|text| bytes(&mut field, 9, text.as_bytes())),
            Self::Ints(values) => packed(&mut field, 8, values),
            Self::Tensor(elem, shape, data) => {
                let mut tensor = Vec::new();
                packed(&mut tensor, 1, shape);
                tensor.push(2 << 3);
                varint(&mut tensor, elem.0 as u64);
                bytes(&mut tensor, 9, data);
                bytes(&mut field, 5, &tensor);
            }
        }
        field
    }
}

fn varint(field: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        field.push(value as u8 | 0x80);
        value >>= 7;
    }
    field.push(value as u8);
}

fn bytes(field: &mut Vec<u8>, number: u8, content: &[u8]) {
    field.push(number << 3 | 2);
    varint(field, content.len() as u64);
    field.extend(content);
}

fn packed(field: &mut Vec<u8>, number: u8, values: &[i64]) {
    let mut content = Vec::new();
    values.iter().for_each(|&value| varint(&mut content, value as u64));
    bytes(field, number, &content);
}

impl Draft {
    /// Adds a node of ONNX's own domain that is of the last of the other format's nodes.
    pub(crate) fn add(
        &mut self,
        op: &'static str,
        inputs: Vec<String>,
        outputs: Vec<String>,
        attributes: &[(&'static str, Attribute<'_>)],
    ) {
        self.add_of("", op, inputs, outputs, attributes);
    }

    /// Adds a function of `core/src/ops/pointwise.rs`, by its name there.
    pub(crate) fn add_pointwise(&mut self, name: &'static str, input: String, output: String) {
        self.add_of(proto::OWN, name, vec![input], vec![output], &[]);
    }

    /// Adds a fully connected layer: its weights have a row for each output.
    pub(crate) fn add_linear(&mut self, inputs: Vec<String>, output: String) {
        self.add_of(proto::OWN, "linear", inputs, vec![output], &[]);
    }

    fn add_of(
        &mut self,
        domain: &'static str,
        op: &'static str,
        inputs: Vec<String>,
        outputs: Vec<String>,
        attributes: &[(&'static str, Attribute<'_>)],
    ) {
        self.nodes.push(Step {
            op,
            domain,
            inputs,
            outputs,
            attributes: attributes
                .iter()
                .map(|(name, value)| (*name, value.encoded()))
                .collect(),
            source: self.sources.len().saturating_sub(1),
        });
    }

    /// The network as the import of ONNX reads it.
    pub(super) fn model(&self) -> Model<'_> {
        let next = self.nodes.iter().skip(1).map(|next| Some(next.source)).chain([None]);
        let nodes = self.nodes.iter().zip(next).map(|(step, next)| {
            let origin = self.sources.get(step.source);
            Node {
                op: step.op,
                domain: step.domain,
                inputs: step.inputs.iter().map(String::as_str).collect(),
                outputs: step.outputs.iter().map(String::as_str).collect(),
                attributes: step
                    .attributes
                    .iter()
                    .map(|(name, field)| (*name, field.as_slice()))
                    .collect(),
                source: origin.map(|origin| Source {
                    index: step.source,
                    op: &origin.op,
                    is_last: next != Some(step.source),
                    refusal: origin.refusal.as_ref(),
                }),
                ..Node::default()
            }
        });
        let constants = self.constants.iter().map(|constant| Tensor {
            name: &constant.name,
            shape: constant.shape.clone(),
            elem: constant.elem.0,
            raw: Some(&constant.data),
            ..Tensor::default()
        });
        Model {
            opsets: vec![("", OPSET)],
            graph: Graph {
                nodes: nodes.collect(),
                initializers: constants.collect(),
                inputs: self.inputs.iter().map(Port::info).collect(),
                outputs: self.outputs.iter().map(Port::info).collect(),
                values: self.values.iter().map(Port::info).collect(),
                ..Graph::default()
            },
            functions: 0,
        }
    }
}

impl Port {
    fn info(&self) -> ValueInfo<'_> {
        let extents = self.shape.iter().map(|size| match size {
            Size::Known(extent) => Extent::Known(*extent),
            Size::Named(name) => Extent::Named(name),
            Size::Unknown => Extent::Unknown,
        });
        ValueInfo {
            name: &self.name,
            elem: self.elem.0,
            shape: Some(extents.collect()),
        }
    }
}
