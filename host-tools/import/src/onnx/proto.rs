//! The part of `onnx.proto` that an import reads, borrowed from the file. Attributes (`attributes`) and values of tensors are read where they are needed.

use super::wire::{Budget, Field, Message};
use crate::error::{Error, Result};
use crate::graph::facts::IMPLIED;

/// The largest rank.
pub(super) const MOST_AXES: usize = 64;
/// The domain of operators that ONNX has not, in networks that are made of another format: no file has it.
pub(super) const OWN: &str = "arenite";
/// Deepest nesting of the branches and bodies of control flow.
const DEEPEST: usize = 16;

/// `ModelProto`
#[derive(Debug, Default)]
pub(super) struct Model<'a> {
    /// Domain and version of each operator set.
    pub(super) opsets: Vec<(&'a str, i64)>,
    pub(super) graph: Graph<'a>,
    /// Names of the functions that the file defines.
    pub(super) functions: usize,
}

/// `GraphProto`
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    pub(super) name: &'a str,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) initializers: Vec<Tensor<'a>>,
    pub(super) sparse: usize,
    pub(super) inputs: Vec<ValueInfo<'a>>,
    pub(super) outputs: Vec<ValueInfo<'a>>,
    /// Values between nodes of which the file states a shape.
    pub(super) values: Vec<ValueInfo<'a>>,
}

/// `NodeProto`
#[derive(Debug, Default)]
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) op: &'a str,
    pub(super) domain: &'a str,
    /// An empty name is an operand that is not given.
    pub(super) inputs: Vec<&'a str>,
    pub(super) outputs: Vec<&'a str>,
    pub(super) attributes: Vec<(&'a str, &'a [u8])>,
    /// Attributes that are graphs: the branches of If, the bodies of loops.
    pub(super) graphs: Vec<(&'a str, Graph<'a>)>,
    /// The node of another format that it was made of.
    pub(super) source: Option<Source<'a>>,
}

/// A node of another format, which became nodes of ONNX.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    /// Its place in that format.
    pub(super) index: usize,
    /// Its operator there.
    pub(super) op: &'a str,
    /// Whether this is the last of its nodes, which stands for it.
    pub(super) is_last: bool,
    /// Why it could not be written.
    pub(super) refusal: Option<&'a Error>,
}

/// `TensorProto`
#[derive(Debug, Default, Clone)]
pub(super) struct Tensor<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Vec<i64>,
    /// `TensorProto.DataType`
    pub(super) elem: i64,
    pub(super) raw: Option<&'a [u8]>,
    /// Keys and values of `external_data`, where the location is external.
    pub(super) external: Option<Vec<(&'a str, &'a str)>>,
    /// All of the message, for the fields of typed values.
    pub(super) message: &'a [u8],
}

/// An extent: stated, named, or neither.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Extent<'a> {
    Known(i64),
    Named(&'a str),
    Unknown,
}

/// `ValueInfoProto`
#[derive(Debug)]
pub(super) struct ValueInfo<'a> {
    pub(super) name: &'a str,
    /// `TensorProto.DataType`; 0 where it is no tensor.
    pub(super) elem: i64,
    pub(super) shape: Option<Vec<Extent<'a>>>,
}

impl<'a> Model<'a> {
    pub(super) fn read(content: &'a [u8]) -> Result<Self> {
        let budget = Budget::new();
        let mut model = Model::default();
        let mut message = Message::new(content, "model");
        let mut graph = None;
        while let Some((number, field)) = message.next()? {
            match number {
                7 => graph = Some(field.bytes("graph")?),
                8 => {
                    budget.spend()?;
                    model.opsets.push(opset(field)?);
                }
                25 => model.functions += 1,
                _ => {}
            }
        }
        let graph = graph.ok_or_else(|| {
            Error::input("the file has no graph").help("the file is cut off, or no ONNX model: export it again")
        })?;
        model.graph = Graph::read(graph, &budget, 0)?;
        Ok(model)
    }
}

fn opset(field: Field<'_>) -> Result<(&str, i64)> {
    let (mut domain, mut version) = ("", 0);
    let mut message = Message::new(field.bytes("operator set")?, "operator set");
    while let Some((number, field)) = message.next()? {
        match number {
            1 => domain = field.text("domain")?,
            2 => version = field.integer("version")?,
            _ => {}
        }
    }
    Ok((domain, version))
}

impl<'a> Graph<'a> {
    /// A graph that is nested `depth` levels deep.
    fn read(content: &'a [u8], budget: &Budget, depth: usize) -> Result<Self> {
        if depth > DEEPEST {
            return Err(
                Error::unsupported(format!("control flow nested more than {DEEPEST} levels deep"))
                    .help("export the network unrolled, or with torch.export"),
            );
        }
        let mut graph = Graph::default();
        let mut message = Message::new(content, "graph");
        while let Some((number, field)) = message.next()? {
            budget.spend()?;
            match number {
                1 => graph.nodes.push(Node::read(field.bytes("node")?, budget, depth)?),
                2 => graph.name = field.text("graph's name")?,
                5 => graph.initializers.push(Tensor::read(field.bytes("initializer")?)?),
                11 => graph.inputs.push(ValueInfo::read(field.bytes("input")?)?),
                12 => graph.outputs.push(ValueInfo::read(field.bytes("output")?)?),
                13 => graph.values.push(ValueInfo::read(field.bytes("value info")?)?),
                15 => graph.sparse += 1,
                _ => {}
            }
        }
        Ok(graph)
    }

    /// Visits its nodes and those of the graphs within it.
    pub(super) fn each_node(&self, visit: &mut dyn FnMut(&Node<'a>)) {
        for node in &self.nodes {
            visit(node);
            node.graphs.iter().for_each(|(_, graph)| graph.each_node(visit));
        }
    }
}

impl<'a> Node<'a> {
    fn read(content: &'a [u8], budget: &Budget, depth: usize) -> Result<Self> {
        let mut node = Node::default();
        let mut message = Message::new(content, "node");
        while let Some((number, field)) = message.next()? {
            budget.spend()?;
            match number {
                1 => node.inputs.push(field.text("name of an operand")?),
                2 => node.outputs.push(field.text("name of a result")?),
                3 => node.name = field.text("node's name")?,
                4 => node.op = field.text("operator")?,
                5 => {
                    let content = field.bytes("attribute")?;
                    let (name, graph) = name_and_graph(content)?;
                    node.attributes.push((name, content));
                    if let Some(graph) = graph {
                        node.graphs.push((name, Graph::read(graph, budget, depth + 1)?));
                    }
                }
                7 => node.domain = field.text("domain")?,
                _ => {}
            }
        }
        Ok(node)
    }

    /// The operator as the user's file names it.
    pub(super) fn called(&self) -> &'a str {
        self.source.map_or(self.op, |source| source.op)
    }

    /// Returns the kind in summaries: of the nodes that stand for one of another format the last has its kind.
    pub(super) fn kind(&self) -> &'a str {
        match self.source {
            Some(source) if !source.is_last => IMPLIED,
            _ => self.called(),
        }
    }

    /// Its place in the user's file, where `index` is that among the nodes of ONNX.
    pub(super) fn place(&self, index: usize) -> usize {
        self.source.map_or(index, |source| source.index)
    }
}

/// Name of an attribute, and the graph that it is, if it is one.
fn name_and_graph(content: &[u8]) -> Result<(&str, Option<&[u8]>)> {
    let (mut name, mut graph) = ("", None);
    let mut message = Message::new(content, "attribute");
    while let Some((number, field)) = message.next()? {
        match number {
            1 => name = field.text("attribute's name")?,
            6 => graph = Some(field.bytes("graph of an attribute")?),
            _ => {}
        }
    }
    Ok((name, graph))
}

impl<'a> Tensor<'a> {
    pub(super) fn read(content: &'a [u8]) -> Result<Self> {
        let mut tensor = Tensor {
            message: content,
            ..Tensor::default()
        };
        let (mut external, mut is_external) = (Vec::new(), false);
        let mut message = Message::new(content, "tensor");
        while let Some((number, field)) = message.next()? {
            match number {
                1 => field.integers(&mut tensor.shape, MOST_AXES, "extents of a tensor")?,
                2 => tensor.elem = field.integer("element type")?,
                8 => tensor.name = field.text("tensor's name")?,
                9 => tensor.raw = Some(field.bytes("tensor's data")?),
                13 => {
                    if external.len() > MOST_AXES {
                        return Err(Error::input("more external data of a tensor than has a meaning"));
                    }
                    external.push(pair(field.bytes("external data")?)?);
                }
                14 => is_external = field.integer("location of data")? == 1,
                _ => {}
            }
        }
        tensor.external = is_external.then_some(external);
        Ok(tensor)
    }

    /// The values of the typed fields, at most `most`: floats, doubles, and the integers of any of the three fields.
    pub(super) fn typed(&self, most: usize) -> Result<(Vec<f32>, Vec<i64>)> {
        let (mut floats, mut integers) = (Vec::new(), Vec::new());
        let mut message = Message::new(self.message, "tensor");
        while let Some((number, field)) = message.next()? {
            match number {
                4 => field.floats(&mut floats, most, "elements of a tensor")?,
                5 | 7 | 11 => field.integers(&mut integers, most, "elements of a tensor")?,
                10 => field.doubles(&mut floats, most, "elements of a tensor")?,
                _ => {}
            }
        }
        Ok((floats, integers))
    }
}

fn pair(content: &[u8]) -> Result<(&str, &str)> {
    let (mut key, mut value) = ("", "");
    let mut message = Message::new(content, "pair");
    while let Some((number, field)) = message.next()? {
        match number {
            1 => key = field.text("key")?,
            2 => value = field.text("value")?,
            _ => {}
        }
    }
    Ok((key, value))
}

impl<'a> ValueInfo<'a> {
    fn read(content: &'a [u8]) -> Result<Self> {
        let mut info = ValueInfo {
            name: "",
            elem: 0,
            shape: None,
        };
        let mut message = Message::new(content, "value info");
        while let Some((number, field)) = message.next()? {
            match number {
                1 => info.name = field.text("value's name")?,
                2 => info.read_type(field.bytes("type")?)?,
                _ => {}
            }
        }
        Ok(info)
    }

    fn read_type(&mut self, content: &'a [u8]) -> Result<()> {
        let mut message = Message::new(content, "type");
        while let Some((number, field)) = message.next()? {
            if number != 1 {
                continue;
            }
            let mut tensor = Message::new(field.bytes("tensor type")?, "tensor type");
            while let Some((number, field)) = tensor.next()? {
                match number {
                    1 => self.elem = field.integer("element type")?,
                    2 => self.shape = Some(shape(field.bytes("shape")?)?),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn shape(content: &[u8]) -> Result<Vec<Extent<'_>>> {
    let mut shape = Vec::new();
    let mut message = Message::new(content, "shape");
    while let Some((number, field)) = message.next()? {
        if number != 1 {
            continue;
        }
        if shape.len() >= MOST_AXES {
            return Err(Error::input(format!("a shape of more than {MOST_AXES} axes")));
        }
        let mut extent = Extent::Unknown;
        let mut dimension = Message::new(field.bytes("extent")?, "extent");
        while let Some((number, field)) = dimension.next()? {
            match number {
                1 => extent = Extent::Known(field.integer("extent")?),
                2 => extent = Extent::Named(field.text("extent's name")?),
                _ => {}
            }
        }
        shape.push(extent);
    }
    Ok(shape)
}
