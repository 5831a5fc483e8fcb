//! Context of lowering an operator: the program so far, the values of parameters, the operands of a node.

use std::collections::BTreeSet;
use std::sync::Arc;

use arenite::{DType, Declaration, KernelId, Step, Target};

use crate::error::{Error, Result};
use crate::graph::{Data, Expr, Graph, Node, Tensor, TensorId, TensorKind};
use crate::program::{Content, LoweredStep, Place, Program};
use crate::weights::Weights;

/// Cost of a step on a target's cores, with its constants in these weights, where it is known: cycles, or instructions where cores have no timings.
pub type Cost = fn(Target, &Step, &[u8]) -> Option<u64>;

/// Context of lowering an operator.
pub struct Lower<'a> {
    /// The program so far; its graph is complete.
    pub program: Program,
    /// Values of parameters.
    pub weights: &'a Weights,
    /// [`Preferences::spend`](super::Preferences::spend).
    pub spend: Option<&'a BTreeSet<String>>,
    /// [`Preferences::cost`](super::Preferences::cost).
    pub cost: Cost,
    /// [`Preferences::without`](super::Preferences::without), and those that take more flash than they gain speed.
    pub without: Vec<KernelId>,
    /// The accelerator that takes the node at hand.
    pub handed: Option<Declaration>,
}

impl Lower<'_> {
    /// Whether the constants of `node` may be larger than the network's own.
    pub fn spends(&self, node: &Node) -> bool {
        self.spend.is_some_and(|without| !without.contains(&node.name))
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.program.graph
    }

    /// Appends a step of `node`.
    pub fn push(&mut self, node: &Node, kind: &'static str, step: Step<Place>, macs: u64) {
        let completes = node.outputs.first().copied();
        let page = self.program.weights.page();
        let handed = self.handed.is_some_and(|to| to.takes(step.kernel()));
        self.program.steps.push(LoweredStep {
            name: node.name.clone(),
            kind,
            step,
            macs,
            completes,
            page,
            handed,
            own: None,
        });
    }

    /// The place of an operand: the arena, the state, or the weights for a constant.
    ///
    /// # Errors
    /// Errors of reading the constant.
    pub fn place(&mut self, id: TensorId) -> Result<Place> {
        match self.graph().tensor(id).kind {
            TensorKind::Const(_) => Ok(Place::Constant(self.constant(id)?)),
            _ => Ok(Place::Tensor(id, 0)),
        }
    }

    /// The offset of a constant tensor in the weights, as it is stored in the graph; added once.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::DoesNotFit`] beyond 4 GiB of weights.
    pub fn constant(&mut self, id: TensorId) -> Result<u32> {
        if let Some(&offset) = self.program.weights.tensors.get(&id) {
            return Ok(offset);
        }
        let tensor = self.graph().tensor(id);
        let TensorKind::Const(data) = tensor.kind.clone() else {
            return Err(Error::internal(format!("`{}` is no constant", tensor.name)));
        };
        let offset = match data {
            Data::Bytes(bytes) => self.program.weights.add_bytes(bytes.to_vec())?,
            Data::Lazy(expr) => {
                let len = tensor.bytes();
                self.program.weights.add(len, Content::Expr(expr))?
            }
        };
        self.program.weights.tensors.insert(id, offset);
        Ok(offset)
    }

    /// The offset of weights `[out, ...]` in the layout `[out / channels, ..., channels]`; added once. `channels` divides `out`. They
    /// stream like all weights, so that a large network's are never in memory together.
    ///
    /// # Errors
    /// As [`Lower::constant`].
    pub fn blocked(&mut self, id: TensorId, channels: usize) -> Result<u32> {
        if let Some(&offset) = self.program.weights.blocked.get(&(id, channels)) {
            return Ok(offset);
        }
        let tensor = self.graph().tensor(id);
        let (TensorKind::Const(data), Some(&out)) = (&tensor.kind, tensor.shape.first()) else {
            return Err(Error::internal(format!("`{}` is no constant", tensor.name)));
        };
        let (bytes, taps) = (tensor.bytes(), tensor.elements() / out.max(1));
        let rows = Expr::Reshape {
            of: data.to_expr(&tensor.shape),
            shape: vec![out / channels, channels, taps],
        };
        let expr = Expr::Permute {
            of: Arc::new(rows),
            perm: vec![0, 2, 1],
        };
        let offset = self.program.weights.add(bytes, Content::Expr(Arc::new(expr)))?;
        self.program.weights.blocked.insert((id, channels), offset);
        Ok(offset)
    }

    /// The offset of an f32 bias; zeros where there is none.
    ///
    /// # Errors
    /// As [`Lower::constant`].
    pub fn bias_f32(&mut self, bias: Option<TensorId>, len: usize) -> Result<u32> {
        match bias {
            Some(bias) => self.constant(bias),
            None => self.program.weights.add_f32(&vec![0.0; len]),
        }
    }

    /// The f32 values of a small constant.
    ///
    /// # Errors
    /// Where it is no f32 constant, or its parameters cannot be read.
    pub fn values(&self, id: TensorId) -> Result<Vec<f32>> {
        let tensor = self.graph().tensor(id);
        match &tensor.kind {
            TensorKind::Const(data) if tensor.dtype == DType::F32 => {
                self.weights.evaluate(&data.to_expr(&tensor.shape))
            }
            _ => {
                Err(Error::unsupported(format!("`{}` is computed by the network", tensor.name)).expected("a constant"))
            }
        }
    }

    /// The bytes of a constant.
    ///
    /// # Errors
    /// As [`Lower::values`].
    pub fn bytes(&self, id: TensorId) -> Result<Vec<u8>> {
        let tensor = self.graph().tensor(id);
        match &tensor.kind {
            TensorKind::Const(Data::Bytes(bytes)) => Ok(bytes.to_vec()),
            TensorKind::Const(Data::Lazy(expr)) => Ok(self
                .weights
                .evaluate(expr)?
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect()),
            _ => {
                Err(Error::unsupported(format!("`{}` is computed by the network", tensor.name)).expected("a constant"))
            }
        }
    }

    /// A tensor for part `index` of a node's work that the network does not have: of the shape of `shaped`, with the values' meaning of `like`.
    pub fn temporary(&mut self, like: TensorId, shaped: TensorId, index: usize) -> TensorId {
        let shape = self.graph().tensor(shaped).shape.clone();
        self.temporary_of(like, shaped, &shape, index)
    }

    /// The same of another shape; `of` names it.
    pub fn temporary_of(&mut self, like: TensorId, of: TensorId, shape: &[usize], index: usize) -> TensorId {
        let graph = &mut self.program.graph;
        let name = format!("{}/part {index} of {}", graph.tensor(of).name, graph.tensors.len());
        let quant = graph.tensor(like).quant.clone();
        let tensor = Tensor::activation(name, shape, graph.tensor(like).dtype);
        graph.add_tensor(Tensor { quant, ..tensor })
    }

    /// Lets `part` lie inside `whole`, from byte `offset` on, if nothing speaks against it: whoever writes it then writes there.
    pub fn place_inside(&mut self, part: TensorId, whole: TensorId, offset: u32) -> bool {
        let graph = self.graph();
        let (part_tensor, whole_tensor) = (graph.tensor(part), graph.tensor(whole));
        let free = matches!(part_tensor.kind, TensorKind::Activation)
            && matches!(whole_tensor.kind, TensorKind::Activation)
            && !graph.outputs.contains(&part);
        // A view of another tensor, or a tensor that lies inside another one already, has its place.
        let root = self.program.root(part) == (part, 0) && self.program.root(whole) == (whole, 0);
        let same = part_tensor.quant == whole_tensor.quant && part_tensor.dtype == whole_tensor.dtype;
        if self.program.share && free && root && same {
            self.view(part, whole, offset);
            return true;
        }
        false
    }

    /// `output` is `input` seen otherwise, from byte `offset` on.
    pub fn view(&mut self, output: TensorId, input: TensorId, offset: u32) {
        // A view of a view is one of what that sees, so that a chain of them is no longer than it must be.
        let (root, at) = self.program.root(input);
        self.program.views.insert(output, (root, at + offset));
    }
}

/// Operand `index`.
pub(super) fn input(node: &Node, index: usize) -> Result<TensorId> {
    let missing = || Error::input(format!("operand {index} is missing"));
    optional(node, index).ok_or_else(missing)
}

/// Operand `index`, where there is one.
pub(super) fn optional(node: &Node, index: usize) -> Option<TensorId> {
    node.inputs.get(index).copied().flatten()
}

/// The only result.
pub(super) fn output(node: &Node) -> Result<TensorId> {
    match node.outputs[..] {
        [output] => Ok(output),
        _ => Err(Error::input(format!("{} results", node.outputs.len())).expected("one")),
    }
}

/// `value` in the narrower type of a step's field.
pub(super) fn fit<T: TryFrom<usize>>(value: usize, what: &str) -> Result<T> {
    let too_large = || Error::unsupported(format!("{what} is {value}"));
    T::try_from(value).map_err(|_| too_large().expected(format!("at most {} bits", 8 * size_of::<T>())))
}

/// Refuses a node whose tensors are not all f32.
pub(super) fn want_f32(graph: &Graph, node: &Node) -> Result<()> {
    let all = node.inputs.iter().flatten().chain(&node.outputs);
    match all.map(|&id| graph.tensor(id)).find(|t| t.dtype != DType::F32) {
        None => Ok(()),
        Some(t) => Err(Error::unsupported(format!(
            "no kernel computes {} on {} (`{}`)",
            node.kind,
            t.dtype.name(),
            t.name
        ))),
    }
}
