//! Buffers of a traced step, and how many bytes of them are alive at once.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::graph::{Graph, Node, Op, Role, TensorId};

/// A buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Value {
    /// An input or an activation.
    Tensor(TensorId),
    /// The gradient of one, or of a parameter.
    Gradient(TensorId),
    /// A part of the gradient of an activation that several operators read.
    Part(TensorId, usize),
    /// Mean and variance of the batch, of a batch norm's result.
    Statistics(TensorId),
    /// An int32 for each row of these logits.
    Labels(TensorId),
    /// The gradient of logits before it is scaled, or of a mean before it is divided.
    Unscaled(TensorId),
}

/// An operator of the step.
pub(super) struct Operator {
    /// Its place in the order.
    pub(super) place: usize,
    /// Names of the trace, and what they are; none of the forward half.
    pub(super) names: Vec<(String, &'static str)>,
    pub(super) reads: Vec<Value>,
    pub(super) writes: Vec<Value>,
}

/// The forward half while its gradients are made, back to front.
pub(super) struct Backward<'g> {
    pub(super) graph: &'g Graph,
    /// Of a tensor that is another name, the one that it names.
    alias: HashMap<TensorId, TensorId>,
    /// Operators of the forward half, in order.
    pub(super) forward: Vec<&'g Node>,
    /// Tensors that depend on a parameter: there are gradients of no others.
    trained: HashSet<TensorId>,
    /// How many of them read each tensor.
    readers: HashMap<TensorId, usize>,
    /// Parts of the gradient of each tensor.
    parts: HashMap<TensorId, Vec<Value>>,
    pub(super) operators: Vec<Operator>,
}

impl<'g> Backward<'g> {
    /// The forward half, each operator at the place that `place` gives it.
    pub(super) fn new(graph: &'g Graph, place: impl Fn(usize, &Node) -> usize) -> Self {
        let mut this = Self {
            graph,
            alias: HashMap::new(),
            forward: Vec::new(),
            trained: HashSet::new(),
            readers: HashMap::new(),
            parts: HashMap::new(),
            operators: Vec::new(),
        };
        for (index, node) in graph.nodes.iter().enumerate() {
            if node.role != Role::Forward {
                continue;
            }
            let names = matches!(node.op, Op::Reshape | Op::Transpose { .. });
            if let (true, Some(x), Some(&y)) = (names, this.operand(node), node.outputs.first()) {
                this.alias.insert(y, x);
                continue;
            }
            let reads: Vec<TensorId> = this.activations(node);
            let mut writes: Vec<Value> = node.outputs.iter().map(|&id| Value::Tensor(id)).collect();
            if matches!(node.op, Op::BatchNorm { .. }) {
                writes.extend(node.outputs.first().map(|&id| Value::Statistics(id)));
            }
            if !this.parameters(node).is_empty() || reads.iter().any(|id| this.trained.contains(id)) {
                this.trained.extend(&node.outputs);
            }
            for &id in &reads {
                *this.readers.entry(id).or_insert(0) += 1;
            }
            this.operators.push(Operator {
                place: place(index, node),
                names: Vec::new(),
                reads: reads.into_iter().map(Value::Tensor).collect(),
                writes,
            });
            this.forward.push(node);
        }
        this
    }

    /// The buffer that a tensor is a name of.
    pub(super) fn root(&self, id: TensorId) -> TensorId {
        self.alias.get(&id).copied().unwrap_or(id)
    }

    /// The first operand's buffer.
    pub(super) fn operand(&self, node: &Node) -> Option<TensorId> {
        let id = node.inputs.first().copied().flatten()?;
        (!self.graph.tensor(id).is_const()).then(|| self.root(id))
    }

    /// Buffers of operands that are no parameters.
    pub(super) fn activations(&self, node: &Node) -> Vec<TensorId> {
        let operands = node.inputs.iter().flatten();
        operands
            .filter(|&&id| !self.graph.tensor(id).is_const())
            .map(|&id| self.root(id))
            .collect()
    }

    /// Parameters among the operands.
    pub(super) fn parameters(&self, node: &Node) -> Vec<TensorId> {
        let operands = node.inputs.iter().flatten();
        operands
            .filter(|&&id| self.graph.tensor(id).is_const())
            .copied()
            .collect()
    }

    /// Whether a gradient of it is computed: what depends on no parameter has none.
    pub(super) fn wants(&self, id: TensorId) -> bool {
        self.trained.contains(&id)
    }

    /// Where an operator writes its part of the gradient of `id`.
    pub(super) fn part(&mut self, id: TensorId) -> Value {
        let several = self.readers.get(&id).is_some_and(|&readers| readers > 1);
        let parts = self.parts.entry(id).or_default();
        let value = if several {
            Value::Part(id, parts.len())
        } else {
            Value::Gradient(id)
        };
        parts.push(value);
        value
    }

    /// The gradient of `id` is this one, too.
    pub(super) fn pass(&mut self, id: TensorId, gradient: Value) {
        self.parts.entry(id).or_default().push(gradient);
    }

    /// Parts of the gradient of `id`.
    pub(super) fn parts(&mut self, id: TensorId) -> Vec<Value> {
        self.parts.remove(&id).unwrap_or_default()
    }

    /// Adds an operator.
    pub(super) fn push(
        &mut self,
        place: usize,
        names: Vec<(String, &'static str)>,
        (reads, writes): (Vec<Value>, Vec<Value>),
    ) {
        self.operators.push(Operator {
            place,
            names,
            reads,
            writes,
        });
    }
}

/// The most bytes that are alive while one of the operators runs.
pub(super) fn most(graph: &Graph, operators: &[Operator]) -> u64 {
    let mut order: Vec<&Operator> = operators.iter().collect();
    order.sort_by_key(|operator| operator.place);
    let mut spans: BTreeMap<Value, [usize; 2]> = BTreeMap::new();
    let mut read: BTreeMap<Value, bool> = BTreeMap::new();
    for (at, operator) in order.iter().enumerate() {
        for &value in &operator.writes {
            let span = spans.entry(value).or_insert([at, at]);
            *span = [span[0].min(at), span[1].max(at)];
        }
    }
    for (at, operator) in order.iter().enumerate() {
        for &value in &operator.reads {
            // Nobody writes what the caller gives. One trace has a record before what it reads.
            let span = spans.entry(value).or_insert([0, at]);
            *span = [span[0].min(at), span[1].max(at)];
            read.insert(value, true);
        }
    }
    let last = order.len().saturating_sub(1);
    let mut change = vec![0_i64; order.len() + 1];
    for (&value, &[from, to]) in &spans {
        let is_result =
            matches!(value, Value::Gradient(id) if graph.tensor(id).is_const()) && !read.contains_key(&value);
        let to = if is_result { last } else { to };
        change[from] += bytes(graph, value) as i64;
        change[to + 1] -= bytes(graph, value) as i64;
    }
    let mut alive = 0;
    let sums = change.into_iter().map(|change| {
        alive += change;
        alive
    });
    sums.max().map_or(0, i64::unsigned_abs)
}

fn bytes(graph: &Graph, value: Value) -> u64 {
    let of = |id: TensorId| graph.tensor(id).bytes() as u64;
    let last = |id: TensorId| graph.tensor(id).shape.last().copied().unwrap_or(1) as u64;
    match value {
        Value::Tensor(id) | Value::Gradient(id) | Value::Part(id, _) | Value::Unscaled(id) => of(id),
        Value::Statistics(id) => 8 * last(id),
        Value::Labels(id) => of(id) / last(id).max(1),
    }
}
