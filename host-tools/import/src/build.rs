//! Graph under construction, shared by all importers: its shapes are inferred and bounded as it grows.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::facts::IMPLIED;
use crate::graph::infer::infer;
use crate::graph::{DType, Data, Expr, Graph, Node, Op, Origin, Quant, Role, Tensor, TensorId, TensorKind};

/// The largest trace that is read: 100,000 operators of the wordiest dialect, which has its kernels' times as well.
const LARGEST_TRACE: usize = 256 << 20;

/// The largest extent, kernel, stride or padding that a trace may state; products of two stay far from overflow.
pub(super) const LARGEST_EXTENT: usize = 1 << 24;

/// The content as text.
///
/// # Errors
/// Names the line of the first byte that is no UTF-8, or the size where there is too much of it.
pub(super) fn text(content: &[u8]) -> Result<&str> {
    if content.len() > LARGEST_TRACE {
        return Err(Error::unsupported(format!("the trace has {} bytes", content.len()))
            .expected(format!("at most {LARGEST_TRACE}")));
    }
    std::str::from_utf8(content).map_err(|e| {
        let before = content.get(..e.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
        let byte = content.get(e.valid_up_to()).copied().unwrap_or_default();
        Error::input(format!("byte {byte:#04x} is no UTF-8 text"))
            .at(format!("line {line}, column {column}"))
            .help("save the file as UTF-8")
    })
}

/// Refuses operators that no importer knows: all kinds at once, each once with the number of its nodes and the place of the first.
pub(super) fn refuse_unknown(unknown: impl IntoIterator<Item = (String, String)>, help: &str) -> Result<()> {
    let mut kinds: Vec<(String, String, usize)> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    for (kind, place) in unknown {
        match index.get(&kind) {
            Some(&known) => kinds[known].2 += 1,
            None => {
                index.insert(kind.clone(), kinds.len());
                kinds.push((kind, place, 1));
            }
        }
    }
    let nodes = |count: usize| match count {
        1 => "1 node".to_string(),
        count => format!("{count} nodes"),
    };
    match kinds.as_slice() {
        [] => Ok(()),
        [(kind, place, count)] => {
            let message = format!("operator `{kind}` is not supported ({})", nodes(*count));
            Err(Error::unsupported(message).at(place).help(help))
        }
        several => {
            let list = several
                .iter()
                .map(|(kind, place, count)| format!("`{kind}` ({}, {place})", nodes(*count)));
            let list: Vec<_> = list.collect();
            let message = format!(
                "{} kinds of operators are not supported: {}",
                several.len(),
                list.join(", ")
            );
            Err(Error::unsupported(message).help(help))
        }
    }
}

/// Whether the content starts as a JSON object does.
pub(super) fn is_json_object(content: &[u8]) -> bool {
    content.trim_ascii_start().first() == Some(&b'{')
}

/// Whether `needle` stands anywhere in the first 4 MiB.
pub(super) fn contains(content: &[u8], needle: &[u8]) -> bool {
    let head = content.get(..4 << 20).unwrap_or(content);
    head.windows(needle.len().max(1)).any(|window| window == needle)
}

/// Number of elements of a shape whose tensor stays below the 4 GiB that a blob can address.
pub(super) fn elements(shape: &[usize]) -> Result<usize> {
    (shape.iter())
        .try_fold(4usize, |bytes, &extent| bytes.checked_mul(extent))
        .filter(|&bytes| u32::try_from(bytes).is_ok())
        .map(|bytes| bytes / 4)
        .ok_or_else(|| Error::unsupported(format!("shape {shape:?} needs more than 4 GiB")))
}

/// A graph under construction.
#[derive(Debug, Default)]
pub(super) struct Builder {
    graph: Graph,
    names: Names,
    node_names: Names,
    params: HashMap<String, (Vec<usize>, HashMap<String, TensorId>)>,
}

/// How the weights of an operator are laid out in the trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Weights {
    /// As the operator wants them.
    Same,
    /// Reshaped first, then permuted: axis `i` of the operator's weights is axis `perm[i]` of the reshaped parameter.
    Moved {
        /// Extents after reshaping.
        shape: Vec<usize>,
        /// The permutation.
        perm: Vec<usize>,
    },
    /// Those of a transposed convolution, `[in, out / groups, rows, columns]`, as `[out, rows, columns, in / groups]` of the convolution that
    /// computes it: every kernel is turned round.
    Turned {
        /// Groups of channels.
        groups: usize,
    },
}

impl Weights {
    /// Returns the operator's form of a value as traced.
    pub(super) fn of(&self, traced: Expr) -> Result<Arc<Expr>> {
        let (shape, perm) = match self {
            Weights::Same => return Ok(Arc::new(traced)),
            Weights::Turned { groups } => return turned(traced, *groups),
            Weights::Moved { shape, perm } => (shape, perm),
        };
        let from = traced.shape();
        if elements(shape)? != elements(&from)? || perm.iter().any(|&axis| axis >= shape.len()) {
            return Err(Error::internal(format!(
                "a value of shape {from:?} cannot be read as {shape:?}"
            )));
        }
        let mut of = Arc::new(traced);
        if *shape != from {
            let shape = shape.clone();
            of = Arc::new(Expr::Reshape { of, shape });
        }
        if !perm.iter().copied().eq(0..shape.len()) {
            let perm = perm.clone();
            of = Arc::new(Expr::Permute { of, perm });
        }
        Ok(of)
    }
}

/// As [`Weights::Turned`].
fn turned(traced: Expr, groups: usize) -> Result<Arc<Expr>> {
    let from = traced.shape();
    let &[inputs, outputs, rows, columns] = from.as_slice() else {
        return Err(Error::internal(format!("a value of shape {from:?}")).expected("four axes"));
    };
    if groups == 0 || !inputs.is_multiple_of(groups) {
        return Err(Error::input(format!("weights of {inputs} channels in {groups} groups")));
    }
    let each = inputs / groups;
    let reshaped = |of: Arc<Expr>, shape: Vec<usize>| Arc::new(Expr::Reshape { of, shape });
    let flat = reshaped(Arc::new(traced), vec![inputs, outputs, rows * columns]);
    let of = Arc::new(Expr::Reversed { of: flat });
    let of = reshaped(of, vec![groups, each, outputs, rows, columns]);
    let perm = vec![0, 2, 3, 4, 1];
    let of = Arc::new(Expr::Permute { of, perm });
    Ok(reshaped(of, vec![groups * outputs, rows, columns, each]))
}

/// An operator to be added.
#[derive(Debug)]
pub(super) struct NewNode<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    pub(super) op: Op,
    pub(super) inputs: &'a [Option<TensorId>],
    pub(super) output: &'a str,
    pub(super) origin: Origin,
}

impl Builder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            graph: Graph {
                name: name.to_string(),
                ..Graph::default()
            },
            ..Self::default()
        }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(super) fn shape(&self, id: TensorId) -> &[usize] {
        &self.graph.tensor(id).shape
    }

    /// States the multiply-accumulates of a node, where the graph's operator has others than the trace's.
    pub(super) fn state_macs(&mut self, node: &str, macs: u64) {
        self.graph.stated.macs.insert(node.to_string(), macs);
    }

    /// A tensor whose name must be new.
    pub(super) fn tensor(&mut self, tensor: Tensor) -> Result<TensorId> {
        elements(&tensor.shape).map_err(|e| e.at(format!("tensor `{}`", tensor.name)))?;
        if !self.names.insert(&tensor.name) {
            return Err(Error::input(format!("two tensors are named `{}`", tensor.name)));
        }
        Ok(self.graph.add_tensor(tensor))
    }

    /// A network input of f32.
    pub(super) fn input(&mut self, name: &str, shape: &[usize]) -> Result<TensorId> {
        let id = self.tensor(Tensor {
            kind: TensorKind::Input,
            ..Tensor::activation(name, shape, DType::F32)
        })?;
        self.graph.inputs.push(id);
        Ok(id)
    }

    /// Inputs are f32 unless their dtype is set.
    pub(super) fn set_dtype(&mut self, id: TensorId, dtype: DType) {
        self.graph.tensor_mut(id).dtype = dtype;
    }

    /// States what the integers of a tensor stand for.
    pub(super) fn set_quant(&mut self, id: TensorId, quant: Quant) {
        self.graph.tensor_mut(id).quant = Some(quant);
    }

    /// Notes that a constant is made of the parameter of this number and so many elements.
    pub(super) fn state_param(&mut self, id: TensorId, parameter: (usize, u64)) {
        let name = self.graph.tensor(id).name.clone();
        self.graph.stated.params.insert(name, parameter);
    }

    /// A tensor outside inference (labels, gradients, shapes): its name is made free, its extent matters to nobody.
    pub(super) fn outside(&mut self, name: &str, shape: &[usize], dtype: DType) -> TensorId {
        let name = self.names.insert_free(name);
        self.graph.add_tensor(Tensor::activation(name, shape, dtype))
    }

    /// The parameter `key`, of `traced` shape in the weights file, as the operator wants it.
    pub(super) fn param(&mut self, key: &str, traced: &[usize], weights: &Weights) -> Result<TensorId> {
        elements(traced).map_err(|e| e.at(format!("parameter `{key}`")))?;
        let (shape, views) = self
            .params
            .entry(key.to_string())
            .or_insert_with(|| (traced.to_vec(), HashMap::new()));
        if shape != traced {
            return Err(Error::input(format!(
                "parameter `{key}` has shape {shape:?} and also {traced:?}"
            )));
        }
        let view = format!("{weights:?}");
        if let Some(&id) = views.get(&view) {
            return Ok(id);
        }
        let traced_value = Expr::Param {
            key: key.to_string(),
            shape: traced.to_vec(),
        };
        let value = weights
            .of(traced_value)
            .map_err(|e| e.at(format!("parameter `{key}`")))?;
        let name = self.names.insert_free(key);
        let id = self.graph.add_tensor(Tensor {
            kind: TensorKind::Const(Data::Lazy(value.clone())),
            ..Tensor::activation(name, &value.shape(), DType::F32)
        });
        if let Some((_, views)) = self.params.get_mut(key) {
            views.insert(view, id);
        }
        Ok(id)
    }

    /// A constant tensor under a free name.
    pub(super) fn constant(&mut self, name: &str, shape: &[usize], dtype: DType, data: Data) -> TensorId {
        let name = self.names.insert_free(name);
        self.graph.add_tensor(Tensor {
            kind: TensorKind::Const(data),
            ..Tensor::activation(name, shape, dtype)
        })
    }

    /// An operator without an output: it writes a state.
    pub(super) fn effect(&mut self, name: &str, kind: &str, op: Op, inputs: &[TensorId], origin: Origin) {
        let name = self.node_names.insert_free(name);
        self.graph.add_node(Node {
            name,
            kind: kind.to_string(),
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: Vec::new(),
            role: Role::Forward,
            origin,
        });
    }

    /// A forward operator whose output shape follows from its inputs.
    pub(super) fn node(&mut self, node: NewNode<'_>) -> Result<TensorId> {
        let inputs: Vec<_> = node
            .inputs
            .iter()
            .map(|id| id.map(|id| self.graph.tensor(id)))
            .collect();
        let shape = infer(&node.op, &inputs)
            .and_then(|shape| shape.ok_or_else(|| Error::internal("its shape does not follow from its inputs")))
            .map_err(|e| e.at(place(&node)))?;
        self.node_of_shape(node, &shape)
    }

    /// A forward operator whose output has a given shape.
    pub(super) fn node_of_shape(&mut self, node: NewNode<'_>, shape: &[usize]) -> Result<TensorId> {
        let at = place(&node);
        if shape.contains(&0) {
            return Err(Error::input(format!("its output has shape {shape:?}, which holds nothing")).at(at));
        }
        let dtype = match node.op {
            Op::ArgMax { .. } => DType::I32,
            Op::Embedding => {
                (node.inputs.get(1).copied().flatten()).map_or(DType::F32, |id| self.graph.tensor(id).dtype)
            }
            // Of a trace's integers, what is looked up in a table of floats.
            Op::Cast => DType::F32,
            _ => (node.inputs.iter().flatten().next()).map_or(DType::F32, |&id| self.graph.tensor(id).dtype),
        };
        if !self.node_names.insert(node.name) {
            return Err(Error::input(format!("two operators are named `{}`", node.name)).at(at));
        }
        let output = self
            .tensor(Tensor::activation(node.output, shape, dtype))
            .map_err(|e| e.at(at))?;
        self.graph.add_node(Node {
            name: node.name.to_string(),
            kind: node.kind.to_string(),
            op: node.op,
            inputs: node.inputs.to_vec(),
            outputs: vec![output],
            role: Role::Forward,
            origin: node.origin,
        });
        Ok(output)
    }

    /// A record outside inference, with the edges that the trace states.
    pub(super) fn opaque(
        &mut self,
        name: &str,
        kind: &str,
        role: Role,
        inputs: &[TensorId],
        outputs: &[TensorId],
        origin: Origin,
    ) {
        let name = self.node_names.insert_free(name);
        self.graph.add_node(Node {
            name,
            kind: kind.to_string(),
            op: Op::Opaque,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: outputs.to_vec(),
            role,
            origin,
        });
    }

    /// The graph with its outputs, checked.
    ///
    /// # Errors
    /// As [`crate::graph::check::check`].
    pub(super) fn finish(mut self, outputs: &[TensorId]) -> Result<Graph> {
        if self.graph.inputs.is_empty() {
            return Err(Error::input("the network has no input"));
        }
        self.graph.outputs = outputs.to_vec();
        crate::graph::check::check(&self.graph)?;
        Ok(self.graph)
    }
}

/// The shape that `target`, with at most one -1, stands for.
pub(super) fn resolve(target: &[i64], elements: usize) -> Option<Vec<usize>> {
    let known = (target.iter().filter(|&&n| n != -1))
        .try_fold(1usize, |product, &n| product.checked_mul(usize::try_from(n).ok()?))?;
    let free = target.iter().filter(|&&n| n == -1).count();
    let rest = match free {
        0 => (known == elements).then_some(1)?,
        1 => (known > 0 && elements.is_multiple_of(known)).then(|| elements / known)?,
        _ => return None,
    };
    target
        .iter()
        .map(|&n| if n == -1 { Some(rest) } else { usize::try_from(n).ok() })
        .collect()
}

/// A line of a text trace.
pub(super) fn line(number: usize) -> Origin {
    Origin {
        line: Some(number),
        path: String::new(),
    }
}

/// The file's stem, the network's name where the trace states none.
pub(super) fn stem(path: &std::path::Path) -> String {
    let stem = path
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let stem = stem.split('.').next().unwrap_or_default();
    match stem {
        "" => "network".to_string(),
        stem => stem.to_string(),
    }
}

/// Refuses `--input-shape` that contradicts the shape that the trace states.
pub(super) fn check_input_shape(asked: Option<&[usize]>, stated: &[usize]) -> Result<()> {
    match asked {
        Some(asked) if asked != stated => Err(Error::new(
            ErrorKind::Usage,
            format!("--input-shape {asked:?} contradicts the trace"),
        )
        .expected(format!(
            "{stated:?}, which the trace states (--batch changes its first extent)"
        ))),
        _ => Ok(()),
    }
}

fn place(node: &NewNode<'_>) -> String {
    match node.kind {
        IMPLIED => format!("`{}`, which the file implies, {}", node.output, node.origin),
        kind => format!("`{}` ({kind}), {}", node.name, node.origin),
    }
}

/// Names in use, each with the suffix that its next namesake gets.
#[derive(Debug, Default)]
struct Names(HashMap<String, u64>);

impl Names {
    /// Whether the name was free.
    fn insert(&mut self, name: &str) -> bool {
        let taken = self.0.contains_key(name);
        if !taken {
            self.0.insert(name.to_string(), 2);
        }
        !taken
    }

    /// Takes the name, with a suffix where it is in use.
    fn insert_free(&mut self, name: &str) -> String {
        if self.insert(name) {
            return name.to_string();
        }
        loop {
            let next = self.0.entry(name.to_string()).or_insert(2);
            let candidate = format!("{name}#{next}");
            *next = next.saturating_add(1);
            if self.insert(&candidate) {
                return candidate;
            }
        }
    }
}
