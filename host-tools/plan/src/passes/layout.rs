//! Channels last: rewrites the activations of NCHW operators to NHWC, the order of the device's kernels.
//!
//! A tensor of four axes that an NCHW operator reads or writes is stored as NHWC, and so is everything that meets it element by
//! element. Where an operator or the network's interface needs the traced order, a transpose (a reshape, where it moves nothing)
//! stands in between. A reshape into a linear layer costs nothing either: the layer's constant weights are permuted instead.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::Result;
use crate::graph::{DType, Data, Expr, Graph, Layout, Node, Op, Origin, Role, Tensor, TensorId, TensorKind};

/// NHWC axis `i` is NCHW axis `TO_NHWC[i]`.
const TO_NHWC: [usize; 4] = [0, 2, 3, 1];
/// NCHW axis `i` is NHWC axis `TO_NCHW[i]`.
const TO_NCHW: [usize; 4] = [0, 3, 1, 2];

pub(super) fn run(graph: &mut Graph) -> Result<()> {
    let stored = choose(graph);
    if !stored.contains(&true) {
        return Ok(());
    }
    let free = free_reshapes(graph, &stored);
    for (tensor, _) in graph.tensors.iter_mut().zip(&stored).filter(|(_, stored)| **stored) {
        tensor.shape = permute(&tensor.shape, &TO_NHWC);
        tensor.traced_perm = Some(TO_NCHW.to_vec());
        if let Some(quant) = &mut tensor.quant {
            quant.axis = quant.axis.map(|axis| TO_NCHW[axis]);
        }
    }
    let nodes = std::mem::take(&mut graph.nodes);
    let mut pass = Rewrite {
        stored,
        free,
        transposed: HashMap::new(),
        nodes: Vec::new(),
        graph,
    };
    for node in nodes {
        pass.node(node);
    }
    pass.outputs();
    let Rewrite { nodes, graph, .. } = pass;
    graph.nodes = nodes;
    Ok(())
}

/// Which tensors are to be stored as NHWC.
fn choose(graph: &Graph) -> Vec<bool> {
    let mut stored = vec![false; graph.tensors.len()];
    let eligible =
        |id: TensorId| matches!(graph.tensor(id).kind, TensorKind::Activation) && graph.tensor(id).shape.len() == 4;
    for node in &graph.nodes {
        if spatial_nchw(&node.op) {
            for &id in node
                .inputs
                .iter()
                .take(1)
                .chain(node.inputs.get(3))
                .flatten()
                .chain(&node.outputs)
            {
                stored[id.0] |= eligible(id);
            }
        }
    }
    // Tensors that one of the following operators reads or writes are stored alike: they are joined, and one that must be NHWC decides.
    let mut joined = Joined((0..graph.tensors.len()).collect());
    for node in graph.nodes.iter().filter(|node| follows(&node.op)) {
        let mut meet = (node.inputs.iter().flatten().chain(&node.outputs)).filter(|&&id| eligible(id));
        if let Some(first) = meet.next() {
            meet.for_each(|other| joined.join(first.0, other.0));
        }
    }
    let mut decided = vec![false; graph.tensors.len()];
    for id in (0..stored.len()).filter(|&id| stored[id]) {
        decided[joined.root(id)] = true;
    }
    (0..stored.len()).map(|id| decided[joined.root(id)]).collect()
}

/// Disjoint sets of tensors, each with the lowest index as its root.
struct Joined(Vec<usize>);

impl Joined {
    fn root(&mut self, mut id: usize) -> usize {
        while self.0[id] != id {
            self.0[id] = self.0[self.0[id]];
            id = self.0[id];
        }
        id
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

fn spatial_nchw(op: &Op) -> bool {
    match op {
        Op::Conv2d(attrs) => attrs.layout == Layout::Nchw,
        Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => attrs.layout == Layout::Nchw,
        _ => false,
    }
}

/// Operators that work on any axis order once their attributes are permuted: their tensors are stored alike.
pub(super) fn follows(op: &Op) -> bool {
    matches!(
        op,
        Op::Binary { .. }
            | Op::SpecialBinary { .. }
            | Op::Unary(_)
            | Op::Affine
            | Op::BatchNorm { .. }
            | Op::Lrn { .. }
            | Op::Pad { .. }
            | Op::Concat { .. }
            | Op::Slice { .. }
            | Op::Quantize
            | Op::Dequantize
            | Op::Cast
            | Op::Identity
            | Op::Softmax { .. }
            | Op::LogSoftmax { .. }
            | Op::Reduce { keep_dims: true, .. }
    )
}

/// The reshapes (by output) of stored tensors that need no transpose: those that give the same order of elements either way, and
/// those that flatten into linear layers alone, whose constant weights are permuted here.
fn free_reshapes(graph: &mut Graph, stored: &[bool]) -> HashSet<TensorId> {
    let mut free = HashSet::new();
    let consumers = graph.consumers();
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        let (Op::Reshape, [Some(x)], [output]) = (&node.op, &node.inputs[..], &node.outputs[..]) else {
            continue;
        };
        let (x, output) = (*x, *output);
        let [n, c, h, w] = graph.tensor(x).shape[..] else {
            continue;
        };
        if !stored[x.0] || stored[output.0] {
            continue;
        }
        if c == 1 || h * w == 1 {
            free.insert(output);
            continue;
        }
        let readers: Vec<usize> = consumers[output.0].iter().map(|reader| reader.0).collect();
        let linear = |&i: &usize| {
            let reader = &graph.nodes[i];
            let constant = |id: TensorId| graph.tensor(id).is_const() && graph.tensor(id).dtype == DType::F32;
            matches!(reader.op, Op::Linear { .. })
                && reader.inputs[0] == Some(output)
                && reader.inputs.get(1).copied().flatten().is_some_and(constant)
        };
        if graph.tensor(output).shape != [n, c * h * w]
            || graph.outputs.contains(&output)
            || !readers.iter().all(linear)
        {
            continue;
        }
        for reader in readers {
            let Some(weights) = graph.nodes[reader].inputs[1] else {
                continue;
            };
            let old = graph.tensor(weights).clone();
            let TensorKind::Const(data) = &old.kind else { continue };
            let outputs = old.shape[0];
            let expr = Expr::Reshape {
                of: data.to_expr(&old.shape),
                shape: vec![outputs, c, h, w],
            };
            let expr = Expr::Permute {
                of: Arc::new(expr),
                perm: TO_NHWC.to_vec(),
            };
            let expr = Expr::Reshape {
                of: Arc::new(expr),
                shape: old.shape.clone(),
            };
            let permuted = graph.add_tensor(Tensor {
                name: format!("{} (NHWC columns for {})", old.name, graph.nodes[reader].name),
                kind: TensorKind::Const(Data::Lazy(Arc::new(expr))),
                ..old
            });
            graph.nodes[reader].inputs[1] = Some(permuted);
        }
        free.insert(output);
    }
    free
}

struct Rewrite<'g> {
    graph: &'g mut Graph,
    stored: Vec<bool>,
    free: HashSet<TensorId>,
    /// The transposed copy of a tensor, once one is needed.
    transposed: HashMap<TensorId, TensorId>,
    nodes: Vec<Node>,
}

impl Rewrite<'_> {
    fn node(&mut self, mut node: Node) {
        let reads_stored = node
            .inputs
            .first()
            .copied()
            .flatten()
            .is_some_and(|id| self.is_stored(id));
        let writes_stored = node.outputs.iter().any(|&id| self.is_stored(id));
        if spatial_nchw(&node.op) {
            match &mut node.op {
                Op::Conv2d(attrs) => attrs.layout = Layout::Nhwc,
                Op::MaxPool2d(attrs) | Op::AvgPool2d(attrs) => attrs.layout = Layout::Nhwc,
                _ => {}
            }
            for operand in [0, 3] {
                if let Some(Some(id)) = node.inputs.get(operand).copied() {
                    node.inputs[operand] = Some(self.as_nhwc(id, &node.name));
                }
            }
        } else if follows(&node.op) && writes_stored {
            permute_attributes(&mut node.op);
            // Statistics of a batch norm are vectors along the channels, not broadcast operands.
            let elementwise = if matches!(node.op, Op::BatchNorm { .. }) {
                1
            } else {
                node.inputs.len()
            };
            for operand in 0..elementwise {
                if let Some(id) = node.inputs[operand] {
                    node.inputs[operand] = Some(self.as_nhwc(id, &node.name));
                }
            }
        } else if let (Op::Transpose { perm }, [Some(x)], [output]) =
            (&mut node.op, &node.inputs[..], &node.outputs[..])
            && (reads_stored || writes_stored)
        {
            if writes_stored {
                *perm = TO_NHWC.map(|axis| perm[axis]).to_vec();
            }
            if reads_stored {
                perm.iter_mut().for_each(|axis| *axis = TO_NCHW[*axis]);
            }
            debug_assert_eq!(self.graph.tensor(*output).shape.len(), 4);
            if moves_nothing(perm, &self.graph.tensor(*x).shape) {
                node.op = Op::Reshape;
            }
        } else if let (Op::Reduce { axes, .. }, true) = (&mut node.op, reads_stored)
            && (axes[..] == [2, 3] || axes[..] == [1, 2, 3])
        {
            // The axes that stay are in the same order either way.
            axes.iter_mut().for_each(|axis| *axis = TO_NCHW[*axis]);
            axes.sort_unstable();
        } else if !node.outputs.iter().any(|id| self.free.contains(id)) {
            for operand in 0..node.inputs.len() {
                if let Some(id) = node.inputs[operand].filter(|&id| self.is_stored(id)) {
                    node.inputs[operand] = Some(self.as_traced(id));
                }
            }
            return self.push_traced(node);
        }
        self.nodes.push(node);
    }

    /// Adds a node that knows the traced order alone; a result that is stored as NHWC is transposed behind it.
    fn push_traced(&mut self, mut node: Node) {
        let mut behind = Vec::new();
        for output in &mut node.outputs {
            if self.stored.get(output.0) != Some(&true) {
                continue;
            }
            let stored = self.graph.tensor(*output).clone();
            let traced = self.graph.add_tensor(Tensor {
                name: format!("{} (NCHW)", stored.name),
                shape: permute(&stored.shape, &TO_NCHW),
                traced_perm: None,
                ..stored
            });
            behind.push((traced, std::mem::replace(output, traced)));
        }
        self.nodes.push(node);
        for (from, to) in behind {
            self.transposed.insert(to, from);
            let name = format!("{} (NHWC)", self.graph.tensor(to).name);
            self.push_transpose(name, from, to, TO_NHWC);
        }
    }

    fn is_stored(&self, id: TensorId) -> bool {
        self.stored.get(id.0).copied().unwrap_or(false)
    }

    /// `id` in NHWC order; a constant is permuted, after leading axes of extent 1 were added.
    fn as_nhwc(&mut self, id: TensorId, reader: &str) -> TensorId {
        let tensor = self.graph.tensor(id).clone();
        if self.is_stored(id) || tensor.elements() == 1 {
            return id;
        }
        if let TensorKind::Const(data) = &tensor.kind {
            let mut shape = vec![1; 4usize.saturating_sub(tensor.shape.len())];
            shape.extend(&tensor.shape);
            let four = Arc::new(Expr::Reshape {
                of: data.to_expr(&tensor.shape),
                shape,
            });
            let expr = Arc::new(Expr::Permute {
                of: four,
                perm: TO_NHWC.to_vec(),
            });
            let name = format!("{} (NHWC for {reader})", tensor.name);
            let (shape, kind) = (expr.shape(), TensorKind::Const(Data::Lazy(expr)));
            return self.graph.add_tensor(Tensor {
                name,
                shape,
                kind,
                ..tensor
            });
        }
        self.transpose(id, TO_NHWC, "NHWC", Some(TO_NCHW.to_vec()))
    }

    /// `id`, which is stored as NHWC, in its traced order.
    fn as_traced(&mut self, id: TensorId) -> TensorId {
        self.transpose(id, TO_NCHW, "NCHW", None)
    }

    fn transpose(&mut self, id: TensorId, perm: [usize; 4], order: &str, traced_perm: Option<Vec<usize>>) -> TensorId {
        if let Some(&copy) = self.transposed.get(&id) {
            return copy;
        }
        let tensor = self.graph.tensor(id).clone();
        let name = format!("{} ({order})", tensor.name);
        let shape = permute(&tensor.shape, &perm);
        let kind = TensorKind::Activation;
        let copy = self.graph.add_tensor(Tensor {
            name: name.clone(),
            shape,
            kind,
            traced_perm,
            ..tensor
        });
        self.push_transpose(name, id, copy, perm);
        self.transposed.insert(id, copy);
        copy
    }

    fn push_transpose(&mut self, name: String, from: TensorId, to: TensorId, perm: [usize; 4]) {
        let shape = &self.graph.tensor(from).shape;
        let op = if moves_nothing(&perm, shape) {
            Op::Reshape
        } else {
            Op::Transpose { perm: perm.to_vec() }
        };
        self.nodes.push(Node {
            name,
            kind: "layout".into(),
            op,
            inputs: vec![Some(from)],
            outputs: vec![to],
            role: Role::Forward,
            origin: Origin::default(),
        });
    }

    /// The network's outputs keep the traced order and name; what is computed in NHWC gets another name.
    fn outputs(&mut self) {
        for index in 0..self.graph.outputs.len() {
            let id = self.graph.outputs[index];
            if self.is_stored(id) {
                let name = self.graph.tensor(id).name.clone();
                let copy = self.as_traced(id);
                self.graph.tensor_mut(id).name = format!("{name} (NHWC)");
                self.graph.tensor_mut(copy).name = name;
                self.graph.outputs[index] = copy;
            }
        }
    }
}

fn permute_attributes(op: &mut Op) {
    let pick = |axis: &mut usize| *axis = TO_NCHW[*axis];
    match op {
        Op::BatchNorm { axis, .. }
        | Op::Lrn { axis, .. }
        | Op::Concat { axis, .. }
        | Op::Softmax { axis, .. }
        | Op::LogSoftmax { axis } => pick(axis),
        Op::Reduce { axes, .. } => {
            axes.iter_mut().for_each(pick);
            axes.sort_unstable();
        }
        Op::Pad { pads, .. } => *pads = TO_NHWC.map(|axis| pads[axis]).to_vec(),
        Op::Slice { begin, stride } => {
            *begin = TO_NHWC.map(|axis| begin[axis]).to_vec();
            *stride = TO_NHWC.map(|axis| stride[axis]).to_vec();
        }
        _ => {}
    }
}

/// Whether a transpose leaves the order of elements as it is: axes of extent 1 may move freely.
pub(super) fn moves_nothing(perm: &[usize], shape: &[usize]) -> bool {
    perm.iter().filter(|&&axis| shape[axis] != 1).is_sorted()
}

fn permute(shape: &[usize], perm: &[usize; 4]) -> Vec<usize> {
    perm.iter().map(|&axis| shape[axis]).collect()
}
