//! Links shared by the passes: the writer and the readers of each tensor, kept up to date while nodes merge and new ones go in between.
//!
//! Nodes keep their ids as long as a pass runs. One that is merged away leaves a gap, one that is added gets an id behind all others and a
//! place in the order; [`Rewriter::finish`] brings the graph's nodes into that order. So every change costs what it touches, not what
//! the graph holds.

use std::collections::HashSet;

use crate::graph::{Graph, Node, NodeId, TensorId, TensorKind};

/// A graph under rewriting.
pub(super) struct Rewriter<'g> {
    pub(super) graph: &'g mut Graph,
    /// By tensor.
    writer: Vec<Option<NodeId>>,
    readers: Vec<Readers>,
    outputs: HashSet<TensorId>,
    /// By node: where it stands, and whether it is still there.
    places: Vec<Option<Position>>,
    /// Whether a node has come or gone.
    reordered: bool,
}

/// The operands that read a tensor: how many, and the exclusive or of their nodes, which is the node itself where there is one.
#[derive(Clone, Copy, Default)]
struct Readers {
    count: usize,
    nodes: usize,
}

/// At an original node's place: those inserted before it, itself, those inserted behind it, each in the order of insertion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    at: usize,
    side: Side,
    number: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Before,
    Itself,
    Behind,
}

/// A pass that is one rewrite: tries it on every node until it applies nowhere.
pub(super) fn rewrite_all(graph: &mut Graph, rewrite: impl FnMut(&mut Rewriter<'_>, NodeId) -> bool) {
    let mut net = Rewriter::new(graph);
    net.until_stable(rewrite);
    net.finish();
}

impl<'g> Rewriter<'g> {
    pub(super) fn new(graph: &'g mut Graph) -> Self {
        let mut net = Self {
            writer: vec![None; graph.tensors.len()],
            readers: vec![Readers::default(); graph.tensors.len()],
            outputs: graph.outputs.iter().copied().collect(),
            places: Vec::with_capacity(graph.nodes.len()),
            reordered: false,
            graph,
        };
        for index in 0..net.graph.nodes.len() {
            net.places.push(Some(Position {
                at: index,
                side: Side::Itself,
                number: 0,
            }));
            net.link(NodeId(index));
        }
        net
    }

    /// The node that writes `tensor`.
    pub(super) fn producer(&self, tensor: TensorId) -> Option<NodeId> {
        self.writer.get(tensor.0).copied().flatten()
    }

    /// The node that writes `tensor`, where a single operand, of the node `reader`, reads it and it is no output of the network: the two
    /// can merge.
    pub(super) fn feeder(&self, tensor: TensorId, reader: NodeId) -> Option<NodeId> {
        let readers = self.readers.get(tensor.0).copied().unwrap_or_default();
        let sole = readers.count == 1 && readers.nodes == reader.0 && !self.outputs.contains(&tensor);
        self.producer(tensor).filter(|_| sole)
    }

    /// How many operands are this tensor; the network's own reading of an output is none.
    pub(super) fn reads(&self, tensor: TensorId) -> usize {
        self.readers.get(tensor.0).map_or(0, |readers| readers.count)
    }

    /// Replaces a node.
    pub(super) fn set(&mut self, id: NodeId, node: Node) {
        self.unlink(id);
        self.graph.nodes[id.0] = node;
        self.link(id);
    }

    /// Replaces the neighbours `first` and `second` by `merged`, at the place of `second`: its operands are all written by then.
    pub(super) fn merge(&mut self, first: NodeId, second: NodeId, merged: Node) {
        self.unlink(first);
        self.places[first.0] = None;
        self.reordered = true;
        self.set(second, merged);
    }

    /// Adds a node right before `id`, behind those added there already.
    pub(super) fn insert_before(&mut self, id: NodeId, node: Node) {
        self.insert(id, Side::Before, node);
    }

    /// Adds a node right behind `id`, behind those added there already.
    pub(super) fn insert_behind(&mut self, id: NodeId, node: Node) {
        self.insert(id, Side::Behind, node);
    }

    /// Tries `rewrite` on every node of the graph until it applies nowhere; it says whether it changed the graph.
    pub(super) fn until_stable(&mut self, mut rewrite: impl FnMut(&mut Self, NodeId) -> bool) {
        for index in 0..self.graph.nodes.len() {
            // A changed node may be fusable with the one before it now.
            while self.places[index].is_some() && rewrite(self, NodeId(index)) {}
        }
    }

    /// Brings the graph's nodes into their new order.
    pub(super) fn finish(self) {
        if !self.reordered {
            return;
        }
        let nodes = std::mem::take(&mut self.graph.nodes);
        let mut placed: Vec<(Position, Node)> = (self.places.into_iter().zip(nodes))
            .filter_map(|(place, node)| Some((place?, node)))
            .collect();
        placed.sort_by_key(|(place, _)| *place);
        self.graph.nodes = placed.into_iter().map(|(_, node)| node).collect();
    }

    fn insert(&mut self, at: NodeId, side: Side, node: Node) {
        self.reordered = true;
        let number = self.graph.nodes.len();
        let at = self.places[at.0].map_or(at.0, |place| place.at);
        self.places.push(Some(Position { at, side, number }));
        self.graph.nodes.push(node);
        self.link(NodeId(number));
    }

    fn link(&mut self, id: NodeId) {
        let tensors = self.graph.tensors.len();
        self.writer.resize(tensors, None);
        self.readers.resize(tensors, Readers::default());
        let node = &self.graph.nodes[id.0];
        for input in node.inputs.iter().flatten() {
            let readers = &mut self.readers[input.0];
            readers.count += 1;
            readers.nodes ^= id.0;
        }
        for output in &node.outputs {
            self.writer[output.0] = Some(id);
        }
    }

    fn unlink(&mut self, id: NodeId) {
        let node = &self.graph.nodes[id.0];
        for input in node.inputs.iter().flatten() {
            let readers = &mut self.readers[input.0];
            readers.count -= 1;
            readers.nodes ^= id.0;
        }
        for output in &node.outputs {
            let writer = &mut self.writer[output.0];
            *writer = writer.filter(|writer| *writer != id);
        }
    }
}

/// Whether the tensor is a constant.
pub(super) fn is_const(graph: &Graph, id: TensorId) -> bool {
    matches!(graph.tensor(id).kind, TensorKind::Const(_))
}
