//! Tensors that pointwise operators join, and what stands at their borders.

use std::collections::BTreeMap;

use super::frame::{Frame, Move};
use super::layout::follows;
use crate::graph::{Graph, Node, NodeId, Op, Role, TensorId, TensorKind};

/// Tensors of one rank that pointwise operators join.
pub(super) struct Region {
    pub(super) tensors: Vec<TensorId>,
    /// The operators, in order.
    pub(super) nodes: Vec<NodeId>,
}

/// A tensor of a region whose form changes.
pub(super) struct Member {
    pub(super) id: TensorId,
    /// Whether it is an input or written by what knows the old form alone: then it stays, and a tensor of the new form is made of it.
    pub(super) stays: bool,
    /// Whether it does not, and is an output or read by what knows the old form alone: then a tensor of that is made of it.
    pub(super) exits: bool,
    /// The reshape or transpose that writes it.
    pub(super) before: Option<Border>,
    /// Those that read it.
    pub(super) behind: Vec<Border>,
    /// Others that read it and know the old form alone.
    pub(super) foreign: Vec<NodeId>,
    /// Its extents, and those of the new form.
    pub(super) shape: Vec<usize>,
    pub(super) moved: Vec<usize>,
}

/// A reshape or transpose between a tensor of a region and another.
pub(super) struct Border {
    pub(super) node: NodeId,
    /// The tensor on the other side.
    pub(super) other: TensorId,
    /// Effect of the border once the region has the new form; perhaps none.
    pub(super) view: Move,
    pub(super) vanishes: bool,
}

/// The regions of a graph, and who writes and reads its tensors.
pub(super) struct Regions {
    /// By tensor: another one of its region with a lower index, or itself.
    roots: Vec<usize>,
    /// By tensor: whether it may be of a region.
    eligible: Vec<bool>,
    joins: Vec<bool>,
    writers: Vec<Option<NodeId>>,
    readers: Vec<Vec<NodeId>>,
    outputs: Vec<bool>,
}

impl Regions {
    pub(super) fn of(graph: &Graph) -> Self {
        let eligible = |id: usize| {
            let tensor = &graph.tensors[id];
            let kind = matches!(tensor.kind, TensorKind::Activation | TensorKind::Input);
            kind && tensor.quant.as_ref().is_none_or(|quant| quant.axis.is_none())
        };
        let eligible: Vec<bool> = (0..graph.tensors.len()).map(eligible).collect();
        let mut outputs = vec![false; graph.tensors.len()];
        graph.outputs.iter().for_each(|id| outputs[id.0] = true);
        let mut regions = Self {
            roots: (0..graph.tensors.len()).collect(),
            joins: graph.nodes.iter().map(|node| joins(graph, &eligible, node)).collect(),
            eligible,
            writers: graph.producers(),
            readers: graph.consumers(),
            outputs,
        };
        for (index, node) in graph.nodes.iter().enumerate() {
            if !regions.joins[index] {
                continue;
            }
            for id in operands(node).filter(|&id| !graph.tensor(id).is_const()) {
                regions.join(id.0, node.outputs[0].0);
            }
        }
        for id in 0..regions.roots.len() {
            regions.roots[id] = regions.root(id);
        }
        regions
    }

    /// All of them, in the order of their first tensors.
    pub(super) fn all(&self) -> Vec<Region> {
        let mut regions: BTreeMap<usize, Region> = BTreeMap::new();
        for id in (0..self.roots.len()).filter(|&id| self.eligible[id]) {
            let region = regions.entry(self.root(id)).or_insert(Region {
                tensors: Vec::new(),
                nodes: Vec::new(),
            });
            region.tensors.push(TensorId(id));
            region.nodes.extend(self.writers[id].filter(|node| self.joins[node.0]));
        }
        regions.into_values().collect()
    }

    /// The region's tensors in another form, and what becomes of their borders.
    pub(super) fn members(&self, graph: &Graph, region: &Region, frame: &Frame) -> Vec<Member> {
        region.tensors.iter().map(|&id| self.member(graph, id, frame)).collect()
    }

    fn member(&self, graph: &Graph, id: TensorId, frame: &Frame) -> Member {
        let shape = graph.tensor(id).shape.clone();
        let moved = frame.shape(&shape);
        let keeps_order = frame.keeps_order(&shape);
        let straight = |node: NodeId| keeps_order && graph.nodes[node.0].op == Op::Reshape;
        let before = self.view_before(graph, id).and_then(|(node, view)| {
            let other = graph.nodes[node.0].inputs[0]?;
            let view = view.then(&frame.forth(&shape));
            let vanishes = view.operator(&graph.tensor(other).shape, &moved).1 == Op::Identity;
            Some(Border {
                node,
                other,
                view,
                vanishes,
            })
        });
        let written = self.writer(id).is_some_and(|node| self.joins[node.0] || straight(node));
        let behind = self.views_behind(graph, id).map(|(node, view)| {
            let other = graph.nodes[node.0].outputs[0];
            let view = frame.back(&shape).then(&view);
            let vanishes = view.operator(&moved, &graph.tensor(other).shape).1 == Op::Identity;
            Border {
                node,
                other,
                view,
                vanishes,
            }
        });
        let behind: Vec<Border> = behind.collect();
        let own =
            |node: NodeId| self.joins[node.0] || straight(node) || behind.iter().any(|border| border.node == node);
        let foreign: Vec<NodeId> = self.readers(id).iter().copied().filter(|&node| !own(node)).collect();
        let stays = before.is_none() && !written;
        Member {
            id,
            stays,
            exits: !stays && (self.is_output(id) || !foreign.is_empty()),
            before,
            behind,
            foreign,
            shape,
            moved,
        }
    }

    /// The reshape or transpose that writes a tensor.
    pub(super) fn view_before(&self, graph: &Graph, id: TensorId) -> Option<(NodeId, Move)> {
        let writer = self.writer(id)?;
        Some((writer, self.view(graph, writer)?))
    }

    /// The reshapes and transposes that read a tensor.
    pub(super) fn views_behind<'a>(
        &'a self,
        graph: &'a Graph,
        id: TensorId,
    ) -> impl Iterator<Item = (NodeId, Move)> + 'a {
        let readers = self.readers(id).iter();
        readers.filter_map(|&reader| Some((reader, self.view(graph, reader)?)))
    }

    /// Returns the move of a node between two regions; none where it computes, or where both are one.
    pub(super) fn view(&self, graph: &Graph, id: NodeId) -> Option<Move> {
        let node = &graph.nodes[id.0];
        let view = Move::of(graph, node)?;
        let (x, y) = (node.inputs[0]?, node.outputs[0]);
        (self.root(x.0) != self.root(y.0)).then_some(view)
    }

    pub(super) fn writer(&self, id: TensorId) -> Option<NodeId> {
        self.writers.get(id.0).copied().flatten()
    }

    pub(super) fn readers(&self, id: TensorId) -> &[NodeId] {
        self.readers.get(id.0).map_or(&[], Vec::as_slice)
    }

    pub(super) fn is_output(&self, id: TensorId) -> bool {
        self.outputs.get(id.0).copied().unwrap_or(false)
    }

    /// Tensors that a rewrite has added since are each for themselves.
    fn root(&self, mut id: usize) -> usize {
        while let Some(&root) = self.roots.get(id)
            && root != id
        {
            id = root;
        }
        id
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.roots[a.max(b)] = a.min(b);
    }
}

/// The operands that have the result's axes.
pub(super) fn operands(node: &Node) -> impl Iterator<Item = TensorId> + '_ {
    let most = if matches!(node.op, Op::BatchNorm { .. }) {
        1
    } else {
        node.inputs.len()
    };
    node.inputs[..most].iter().copied().flatten()
}

/// A layer, which takes up pointwise operators beside it.
pub(super) fn is_layer(graph: &Graph, id: NodeId) -> bool {
    matches!(
        graph.nodes[id.0].op,
        Op::Conv2d(_) | Op::Linear { .. } | Op::LocallyConnected2d { .. }
    )
}

/// Whether an operator works on any order of axes, all of its tensors in the same.
fn joins(graph: &Graph, eligible: &[bool], node: &Node) -> bool {
    let integers = matches!(node.op, Op::SpecialInt { .. } | Op::Compare { .. } | Op::Choose);
    let &[output] = &node.outputs[..] else { return false };
    let rank = graph.tensor(output).shape.len();
    (follows(&node.op) || integers)
        && node.role == Role::Forward
        && eligible[output.0]
        && operands(node).all(|id| {
            let tensor = graph.tensor(id);
            if tensor.is_const() {
                tensor.shape.len() <= rank
            } else {
                eligible[id.0] && tensor.shape.len() == rank
            }
        })
}
