//! Gives the tensors of a region another form.

use std::collections::HashMap;
use std::sync::Arc;

use super::frame::{Frame, Move};
use super::region::{Border, Member, Region, Regions, operands};
use crate::graph::{Data, Expr, Graph, Node, NodeId, Op, Origin, Role, Tensor, TensorId, TensorKind};

/// A graph of which regions change.
pub(super) struct Rewrite<'g> {
    graph: &'g mut Graph,
    /// New nodes, each with the index of the node that it comes before.
    added: Vec<(usize, Node)>,
    changed: bool,
}

impl<'g> Rewrite<'g> {
    pub(super) fn new(graph: &'g mut Graph) -> Self {
        Self {
            graph,
            added: Vec::new(),
            changed: false,
        }
    }

    pub(super) fn graph(&self) -> &Graph {
        self.graph
    }

    /// Puts the new nodes where they belong; whether any region changed.
    pub(super) fn finish(self) -> bool {
        if !self.added.is_empty() {
            let mut added = self.added;
            added.sort_by_key(|(at, _)| *at);
            let mut added = added.into_iter().peekable();
            let old = std::mem::take(&mut self.graph.nodes);
            for (index, node) in old.into_iter().enumerate() {
                while let Some((_, new)) = added.next_if(|(at, _)| *at <= index) {
                    self.graph.nodes.push(new);
                }
                self.graph.nodes.push(node);
            }
            self.graph.nodes.extend(added.map(|(_, node)| node));
        }
        self.changed
    }

    /// Gives the region this form.
    pub(super) fn region(&mut self, regions: &Regions, region: &Region, frame: &Frame) {
        self.changed = true;
        let members = regions.members(self.graph, region, frame);
        let mut forms: HashMap<TensorId, TensorId> = HashMap::new();
        for member in &members {
            let form = if member.stays {
                self.enter(regions, member, frame)
            } else {
                self.keep_name(regions, member, frame);
                member.id
            };
            forms.insert(member.id, form);
            if member.exits {
                self.exit(regions, member, frame);
            }
        }
        for &id in &region.nodes {
            self.operator(id, frame, &forms);
        }
        for member in &members {
            if let Some(border) = &member.before {
                let source = self.graph.tensor(border.other).shape.clone();
                self.border(border, [&source, &member.moved]);
            }
            for border in &member.behind {
                let result = self.graph.tensor(border.other).shape.clone();
                if !member.stays {
                    self.border(border, [&member.moved, &result]);
                } else if border.vanishes {
                    let node = &mut self.graph.nodes[border.node.0];
                    node.op = Op::Identity;
                    node.inputs = vec![forms.get(&member.id).copied()];
                }
            }
            if !member.stays {
                self.graph.tensor_mut(member.id).shape.clone_from(&member.moved);
            }
        }
    }

    /// A tensor of the new form, made of one that stays.
    fn enter(&mut self, regions: &Regions, member: &Member, frame: &Frame) -> TensorId {
        let tensor = self.graph.tensor(member.id).clone();
        let form = self.graph.add_tensor(Tensor {
            name: format!("{} (moved)", tensor.name),
            shape: member.moved.clone(),
            kind: TensorKind::Activation,
            traced_perm: None,
            ..tensor
        });
        let at = regions.writer(member.id).map_or(0, |node| node.0 + 1);
        self.make(
            at,
            &frame.forth(&member.shape),
            [member.id, form],
            [&member.shape, &member.moved],
        );
        form
    }

    /// A tensor of the old form, made of one that takes the new one.
    fn exit(&mut self, regions: &Regions, member: &Member, frame: &Frame) {
        let tensor = self.graph.tensor(member.id).clone();
        let name = format!("{} (moved)", tensor.name);
        let old = self.graph.add_tensor(tensor);
        self.graph.tensor_mut(member.id).name = name;
        for id in self.graph.outputs.iter_mut().filter(|id| **id == member.id) {
            *id = old;
        }
        for reader in &member.foreign {
            for input in self.graph.nodes[reader.0].inputs.iter_mut().flatten() {
                if *input == member.id {
                    *input = old;
                }
            }
        }
        let at = regions.writer(member.id).map_or(0, |node| node.0 + 1);
        self.make(
            at,
            &frame.back(&member.shape),
            [member.id, old],
            [&member.moved, &member.shape],
        );
    }

    /// Of a reshape that vanishes the result's name stays, which the trace has; one whose elements are in another order has another name.
    fn keep_name(&mut self, regions: &Regions, member: &Member, frame: &Frame) {
        if member.exits {
            return;
        }
        if !frame.keeps_order(&member.shape) {
            let tensor = self.graph.tensor_mut(member.id);
            tensor.name = format!("{} (moved)", tensor.name);
            return;
        }
        let Some(border) = member.before.as_ref().filter(|border| border.vanishes) else {
            return;
        };
        let sole = regions.readers(border.other).len() == 1 && !regions.is_output(border.other);
        if sole && matches!(self.graph.tensor(border.other).kind, TensorKind::Activation) {
            let name = std::mem::take(&mut self.graph.tensor_mut(member.id).name);
            let other = std::mem::replace(&mut self.graph.tensor_mut(border.other).name, name);
            self.graph.tensor_mut(member.id).name = other;
        }
    }

    /// An operator of the region.
    fn operator(&mut self, id: NodeId, frame: &Frame, forms: &HashMap<TensorId, TensorId>) {
        let mut node = self.graph.nodes[id.0].clone();
        let rank = self.graph.tensor(node.outputs[0]).shape.len();
        let count = operands(&node).count();
        for input in node.inputs.iter_mut().take(count).flatten() {
            let tensor = self.graph.tensor(*input);
            *input = match forms.get(input) {
                Some(&form) => form,
                None if tensor.elements() == 1 && !matches!(node.op, Op::Concat { .. }) => *input,
                None => {
                    let name = format!("{} (moved for {})", tensor.name, node.name);
                    let constant = constant(tensor, rank, frame);
                    self.graph.add_tensor(Tensor { name, ..constant })
                }
            };
        }
        frame.reframe(&mut node.op);
        self.graph.nodes[id.0] = node;
    }

    /// Rewrites a border between tensors of these extents.
    fn border(&mut self, border: &Border, [source, result]: [&[usize]; 2]) {
        let (wide, op) = border.view.operator(source, result);
        if let (Some(wide), Some(from)) = (wide, self.graph.nodes[border.node.0].inputs[0]) {
            let wide = self.wide(border.node.0, from, wide);
            self.graph.nodes[border.node.0].inputs = vec![Some(wide)];
        }
        self.graph.nodes[border.node.0].op = op;
    }

    /// Makes `to` of `from`, which have these extents, in front of the node `at`.
    fn make(&mut self, at: usize, view: &Move, [from, to]: [TensorId; 2], [source, result]: [&[usize]; 2]) {
        let (wide, op) = view.operator(source, result);
        let from = match wide {
            Some(wide) => self.wide(at, from, wide),
            None => from,
        };
        self.add(at, op, from, to);
    }

    fn wide(&mut self, at: usize, from: TensorId, shape: Vec<usize>) -> TensorId {
        let tensor = self.graph.tensor(from).clone();
        let wide = self.graph.add_tensor(Tensor {
            name: format!("{} (reshaped)", tensor.name),
            shape,
            kind: TensorKind::Activation,
            traced_perm: None,
            ..tensor
        });
        self.add(at, Op::Reshape, from, wide);
        wide
    }

    fn add(&mut self, at: usize, op: Op, from: TensorId, to: TensorId) {
        let node = Node {
            name: self.graph.tensor(to).name.clone(),
            kind: "layout".into(),
            op,
            inputs: vec![Some(from)],
            outputs: vec![to],
            role: Role::Forward,
            origin: Origin::default(),
        };
        self.added.push((at, node));
    }
}

/// A constant operand of `rank` axes, those that it lacks counted, in this form.
fn constant(tensor: &Tensor, rank: usize, frame: &Frame) -> Tensor {
    let mut shape = vec![1; rank.saturating_sub(tensor.shape.len())];
    shape.extend(&tensor.shape);
    let moved = frame.shape(&shape);
    let kind = match &tensor.kind {
        TensorKind::Const(Data::Bytes(bytes)) if frame.keeps_order(&shape) => {
            TensorKind::Const(Data::Bytes(Arc::clone(bytes)))
        }
        TensorKind::Const(data) => {
            let of = data.to_expr(&tensor.shape);
            let of = Arc::new(Expr::Reshape { of, shape });
            let perm = frame.order();
            let of = if perm.is_sorted() {
                of
            } else {
                Arc::new(Expr::Permute { of, perm })
            };
            let shape = moved.clone();
            TensorKind::Const(Data::Lazy(Arc::new(Expr::Reshape { of, shape })))
        }
        other => other.clone(),
    };
    Tensor {
        shape: moved,
        kind,
        traced_perm: None,
        ..tensor.clone()
    }
}
