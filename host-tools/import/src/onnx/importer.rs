//! An import under way: the values by name, the graph so far, and the node that is translated.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::array::Array;
use super::elem::Elem;
use super::external::Folder;
use super::proto::{self, Model};
use super::report::Findings;
pub(super) use super::view::View;
use crate::build::elements;
use crate::error::{Error, Result};
use crate::fold_budget::FoldBudget;
use crate::graph::facts::IMPLIED;
use crate::graph::infer::{infer, infer_dtype};
use crate::graph::{self, DType, Graph, Op, Origin, Role, Tensor, TensorId, TensorKind};

/// Value of the file: known, or a tensor of the graph.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// Known when importing.
    Array(Rc<Array>),
    /// Computed at run time.
    Tensor(TensorId),
    /// Booleans that are computed at run time, as f32 0 and 1.
    Mask(TensorId),
}

/// The state of one import.
pub(super) struct Importer<'m, 'a> {
    pub(super) model: &'m Model<'a>,
    pub(super) folder: &'m Folder<'m>,
    pub(super) out: Graph,
    /// Values by their name in the file; `None` for the results of nodes that cannot be translated.
    pub(super) values: HashMap<&'a str, Option<Value>>,
    /// Initializers by name: their index among `tensors`.
    pub(super) initializers: HashMap<&'a str, usize>,
    /// The initializers of the network, and of branches that are taken.
    tensors: Vec<&'m proto::Tensor<'a>>,
    /// Float types that the file has and the device has not, by the name of what is of them: half and double precision.
    pub(super) floats: HashMap<&'a str, Elem>,
    /// Types of half precision that the network computes in.
    pub(super) halves: Vec<Elem>,
    /// Shapes that the file states of results.
    pub(super) stated: HashMap<&'a str, Vec<usize>>,
    /// The same, of which some extents may be open.
    pub(super) declared: HashMap<&'a str, Vec<Option<usize>>>,
    /// Types that the file states of results.
    pub(super) declared_types: HashMap<&'a str, Elem>,
    names: HashSet<String>,
    node_names: HashSet<String>,
    /// Constants in the graph, by the address of the array that they hold, which is kept alive.
    constants: HashMap<*const Array, (Rc<Array>, TensorId)>,
    pub(super) warnings: Vec<String>,
    /// Where the nodes under translation are, to follow the place of one: empty of the network's own.
    pub(super) place: String,
    pub(super) findings: Findings<'a>,
    /// Work that folding may still do.
    pub(super) budget: FoldBudget,
    scope: Scope,
}

/// The node under translation.
#[derive(Debug, Default)]
struct Scope {
    /// Its name in the graph.
    name: String,
    kind: String,
    origin: String,
    /// The first tensor and node that belong to it.
    first_tensor: usize,
    first_node: usize,
    /// How many of its parts have a name.
    parts: usize,
    /// Whether a node of the graph stands for it already.
    counted: bool,
}

impl<'m, 'a> Importer<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>, folder: &'m Folder<'m>, bytes: usize) -> Self {
        Self {
            model,
            folder,
            out: Graph::default(),
            values: HashMap::new(),
            initializers: HashMap::new(),
            tensors: Vec::new(),
            floats: HashMap::new(),
            halves: Vec::new(),
            stated: HashMap::new(),
            declared: HashMap::new(),
            declared_types: HashMap::new(),
            names: HashSet::new(),
            node_names: HashSet::new(),
            constants: HashMap::new(),
            warnings: Vec::new(),
            place: String::new(),
            findings: Findings::default(),
            budget: FoldBudget::of(bytes),
            scope: Scope::default(),
        }
    }

    pub(super) fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// Starts the translation of a node.
    pub(super) fn enter(&mut self, view: View<'_, '_>) {
        let node = view.node;
        let output = view.node.outputs.iter().find(|name| !name.is_empty());
        let name = match node.name {
            "" => output.copied().unwrap_or(node.op),
            name => name,
        };
        self.scope = Scope {
            name: name.to_string(),
            kind: node.kind().to_string(),
            origin: format!("node {}{}", node.place(view.index), self.place),
            first_tensor: self.out.tensors.len(),
            first_node: self.out.nodes.len(),
            parts: 0,
            counted: false,
        };
    }

    /// Drops what the node under translation has left in the graph: it cannot be translated.
    pub(super) fn abandon(&mut self) {
        let first = self.scope.first_tensor;
        self.constants.retain(|_, (_, id)| id.0 < first);
        for tensor in self.out.tensors.drain(first..) {
            self.names.remove(&tensor.name);
            self.out.stated.params.remove(&tensor.name);
        }
        for node in self.out.nodes.drain(self.scope.first_node..) {
            self.node_names.remove(&node.name);
        }
    }

    fn free(names: &mut HashSet<String>, name: &str) -> String {
        let mut candidate = name.to_string();
        let mut number = 1;
        while !names.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{name}#{number}");
        }
        candidate
    }

    /// A network input.
    pub(super) fn add_input(&mut self, name: &str, shape: &[usize], dtype: DType) -> TensorId {
        let name = Self::free(&mut self.names, name);
        let id = self.out.add_tensor(Tensor {
            kind: TensorKind::Input,
            ..Tensor::activation(name, shape, dtype)
        });
        self.out.inputs.push(id);
        id
    }

    /// Remembers the initializers of a graph, until they are read.
    pub(super) fn hold(&mut self, graph: &'m proto::Graph<'a>) -> Result<()> {
        if graph.sparse > 0 {
            return Err(Error::unsupported(format!("{} sparse initializers", graph.sparse))
                .help("make the weights dense before exporting the model"));
        }
        for tensor in &graph.initializers {
            let index = self.tensors.len();
            if self.values.contains_key(tensor.name) || self.initializers.insert(tensor.name, index).is_some() {
                return Err(Error::input(format!("two initializers are named `{}`", tensor.name)));
            }
            self.tensors.push(tensor);
        }
        Ok(())
    }

    /// The value of this name; `None` where what computes it cannot be translated.
    pub(super) fn value(&mut self, name: &str) -> Result<Option<Value>> {
        if let Some(value) = self.values.get(name) {
            return Ok(value.clone());
        }
        let Some(&index) = self.initializers.get(name) else {
            return Err(Error::input(format!("it reads `{name}` before anything writes it"))
                .help("the nodes are in no order of execution, or one is missing: export the model again"));
        };
        let tensor = self.tensors[index];
        let bytes = tensor
            .external
            .as_deref()
            .map(|pairs| self.folder.read(tensor, pairs))
            .transpose()?;
        let bytes = bytes.map(|(bytes, first)| {
            self.budget.add(if first { bytes.len() } else { 0 });
            bytes
        });
        let mut array = Array::read(tensor, bytes.as_deref(), &self.budget)?;
        array.param = Some((index, array.len() as u64));
        let value = Value::Array(Rc::new(array));
        self.note_float(tensor.name, Elem(tensor.elem));
        self.values.insert(tensor.name, Some(value.clone()));
        Ok(Some(value))
    }

    /// Operand `position`.
    pub(super) fn operand(&mut self, view: View<'_, '_>, position: usize) -> Result<Value> {
        let name = view.input(position)?;
        self.value(name)?
            .ok_or_else(|| Error::internal(format!("`{name}` could not be translated")))
    }

    pub(super) fn optional(&mut self, view: View<'_, '_>, position: usize) -> Result<Option<Value>> {
        match view.optional(position) {
            None => Ok(None),
            Some(_) => self.operand(view, position).map(Some),
        }
    }

    /// Operand `position` where it must be known: axes, extents, paddings.
    pub(super) fn known(&mut self, view: View<'_, '_>, position: usize, what: &str) -> Result<Option<Rc<Array>>> {
        match self.optional(view, position)? {
            None => Ok(None),
            Some(Value::Array(array)) => Ok(Some(array)),
            Some(_) => Err(Error::unsupported(format!(
                "dynamic shape: the {what} `{}` are computed at run time",
                view.input(position)?
            ))
            .help("make them constants of the model (onnxsim folds what is constant)")),
        }
    }

    /// The integers of an operand, or of the attribute `name` that older operator sets have instead.
    pub(super) fn integers(
        &mut self,
        view: View<'_, '_>,
        position: usize,
        name: &str,
        what: &str,
    ) -> Result<Option<Vec<i64>>> {
        if let Some(values) = view.node.ints(name)? {
            return Ok(Some(values));
        }
        self.known(view, position, what)?
            .map(|array| array.whole(what))
            .transpose()
    }

    pub(super) fn shape(&self, value: &Value) -> Vec<usize> {
        match value {
            Value::Array(array) => array.shape.clone(),
            Value::Tensor(id) | Value::Mask(id) => self.out.tensor(*id).shape.clone(),
        }
    }

    pub(super) fn elem(&self, value: &Value) -> Elem {
        match value {
            Value::Array(array) => array.elem,
            Value::Tensor(id) => Elem::of(self.out.tensor(*id).dtype),
            Value::Mask(_) => Elem::BOOL,
        }
    }

    /// The tensor of the graph that holds a value.
    pub(super) fn tensor(&mut self, value: &Value) -> Result<TensorId> {
        match value {
            Value::Tensor(id) => Ok(*id),
            Value::Mask(id) => self.emit_as(Op::Cast, &[*id], &self.out.tensor(*id).shape.clone(), DType::Bool),
            Value::Array(array) => self.constant(array),
        }
    }

    fn constant(&mut self, array: &Rc<Array>) -> Result<TensorId> {
        if let Some((_, id)) = self.constants.get(&Rc::as_ptr(array)) {
            return Ok(*id);
        }
        let (dtype, data) = array.stored(&self.budget)?;
        let name = match array.param {
            Some((index, _)) => self.tensors[index].name.to_string(),
            None => format!("{}/constant", self.scope.name),
        };
        let name = Self::free(&mut self.names, &name);
        if let Some(param) = array.param {
            self.out.stated.params.insert(name.clone(), param);
        }
        let id = self.out.add_tensor(Tensor {
            kind: TensorKind::Const(data),
            ..Tensor::activation(name, &array.shape, dtype)
        });
        self.constants.insert(Rc::as_ptr(array), (array.clone(), id));
        Ok(id)
    }

    /// Adds an operator whose result's shape follows from its operands.
    pub(super) fn emit(&mut self, op: Op, inputs: &[TensorId]) -> Result<TensorId> {
        let operands: Vec<_> = inputs.iter().map(|&id| Some(self.out.tensor(id))).collect();
        let shape =
            infer(&op, &operands)?.ok_or_else(|| Error::internal("a shape does not follow from the operands"))?;
        let dtype = infer_dtype(&op, &operands).unwrap_or(DType::F32);
        self.emit_as(op, inputs, &shape, dtype)
    }

    /// Adds an operator whose result is of `shape`, and of the first operand's type.
    pub(super) fn emit_shape(&mut self, op: Op, inputs: &[TensorId], shape: &[usize]) -> Result<TensorId> {
        let dtype = inputs.first().map_or(DType::F32, |&id| self.out.tensor(id).dtype);
        self.emit_as(op, inputs, shape, dtype)
    }

    pub(super) fn emit_as(&mut self, op: Op, inputs: &[TensorId], shape: &[usize], dtype: DType) -> Result<TensorId> {
        elements(shape)?;
        if shape.contains(&0) {
            return Err(
                Error::unsupported(format!("dynamic shape: a tensor of shape {shape:?} holds nothing"))
                    .help("a microcontroller's plan has no room for tensors that may be empty"),
            );
        }
        self.scope.parts += 1;
        let part = format!("{}/{}", self.scope.name, self.scope.parts);
        let name = Self::free(&mut self.names, &part);
        // Operators that move elements keep the meaning of these.
        let quant = match (&op, inputs.first()) {
            (Op::Reshape | Op::Transpose { .. } | Op::Slice { .. } | Op::Concat { .. }, Some(&x)) => {
                self.out.tensor(x).quant.clone()
            }
            _ => None,
        };
        let output = self.out.add_tensor(Tensor {
            quant,
            ..Tensor::activation(name, shape, dtype)
        });
        let name = Self::free(&mut self.node_names, &part);
        self.out.add_node(graph::Node {
            name,
            kind: IMPLIED.to_string(),
            op,
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![output],
            role: Role::Forward,
            origin: Origin {
                line: None,
                path: self.scope.origin.clone(),
            },
        });
        Ok(output)
    }

    /// States the multiply-accumulates of the node that writes `id`, where the graph's operator has others than the file's.
    pub(super) fn macs(&mut self, id: TensorId, macs: u64) {
        let node = self.out.nodes.iter().rev().find(|node| node.outputs.contains(&id));
        if let Some(node) = node {
            self.out.stated.macs.insert(node.name.clone(), macs);
        }
    }

    /// Names result `position` of the node under translation.
    pub(super) fn bind(&mut self, view: View<'_, 'a>, position: usize, value: Value) -> Result<()> {
        let Some(name) = view.output(position) else {
            return Ok(());
        };
        if self.values.get(name).is_some_and(Option::is_some) || self.initializers.contains_key(name) {
            return Err(Error::input(format!("it writes `{name}`, which has a value already")));
        }
        let shape = self.shape(&value);
        self.as_declared(Some(view), name, &shape)?;
        let value = self.in_own_precision(view, name, value)?;
        self.has_declared_type(name, self.elem(&value))?;
        let value = match value {
            Value::Array(_) => value,
            Value::Tensor(id) => Value::Tensor(self.named(id, name)?),
            // The booleans are made where somebody wants them.
            Value::Mask(id) => Value::Mask(self.named(id, &format!("{name}/mask"))?),
        };
        self.values.insert(name, Some(value));
        Ok(())
    }

    /// The tensor under the name that it has in the file.
    fn named(&mut self, id: TensorId, name: &str) -> Result<TensorId> {
        let own = |out: &Graph| {
            let nodes = out.nodes[self.scope.first_node..].iter();
            nodes.rev().position(|node| node.outputs == [id])
        };
        let prefix = format!("{}/", self.scope.name);
        let unnamed = self.out.tensor(id).name.starts_with(&prefix) && id.0 >= self.scope.first_tensor;
        let (id, back) = match own(&self.out) {
            Some(back) if unnamed => (id, back),
            _ => {
                let shape = self.out.tensor(id).shape.clone();
                (self.emit_shape(Op::Identity, &[id], &shape)?, 0)
            }
        };
        self.rename(id, name);
        if !self.scope.counted {
            self.scope.counted = true;
            let index = self.out.nodes.len() - 1 - back;
            let old = self.out.nodes[index].name.clone();
            self.node_names.remove(&old);
            let name = Self::free(&mut self.node_names, &self.scope.name);
            if let Some(macs) = self.out.stated.macs.remove(&old) {
                self.out.stated.macs.insert(name.clone(), macs);
            }
            let node = &mut self.out.nodes[index];
            node.name = name;
            node.kind.clone_from(&self.scope.kind);
        }
        Ok(id)
    }

    /// Gives a tensor a name, as far as it is free.
    pub(super) fn rename(&mut self, id: TensorId, name: &str) {
        let old = self.out.tensor(id).name.clone();
        self.names.remove(&old);
        let name = Self::free(&mut self.names, name);
        self.out.tensor_mut(id).name = name;
    }

    /// Whether a node of the graph stands for the node under translation.
    pub(super) fn counted(&self) -> bool {
        self.scope.counted
    }
}
