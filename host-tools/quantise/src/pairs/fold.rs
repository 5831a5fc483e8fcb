//! Float operators between conversions become operators on int8.

use std::collections::HashMap;

use arenite::DType;
use arenite::quant::quantize;

use super::constants;
use super::lookup;
use super::nodes::{as_int8, drop_unread, ends, moves};
use crate::error::Result;
use crate::graph::composite::{self, Composite, Links};
use crate::graph::{Activation, Graph, Node, Op, Quant, ReduceKind, Tensor, TensorId, TensorKind, facts};
use crate::lower::elementwise_int::arithmetic;
use crate::lower::numbers;
use crate::quantize::{Form, activations, conversion, on_int8};
use crate::weights::Weights;

/// How many operators a note lists.
const LISTED: usize = 5;

/// Rewrites the graph, and says which operators between conversions stay in f32.
///
/// # Errors
/// Weights that are no numbers.
pub fn fold(graph: &mut Graph, weights: &Weights) -> Result<Option<String>> {
    let links = Links::of(graph);
    let mut fold = Fold {
        links,
        // An output of the network is read by the caller.
        outputs: graph.outputs.clone(),
        weights,
        stored: HashMap::new(),
        signed: HashMap::new(),
        done: vec![false; graph.nodes.len()],
        nodes: Vec::with_capacity(graph.nodes.len()),
        left: Vec::new(),
        graph,
    };
    for index in 0..fold.graph.nodes.len() {
        if !fold.done[index] {
            fold.node(index)?;
        }
    }
    let Fold { nodes, left, graph, .. } = fold;
    graph.nodes = nodes;
    drop_unread(graph);
    if left.is_empty() {
        return Ok(None);
    }
    let more = match left.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let listed: Vec<String> = left.into_iter().map(|(_, reason)| reason).take(LISTED).collect();
    Ok(Some(format!(
        "operators between dequantised operands and a quantised result that compute in f32: {}{more}",
        listed.join("; ")
    )))
}

struct Fold<'g> {
    graph: &'g mut Graph,
    weights: &'g Weights,
    outputs: Vec<TensorId>,
    /// Who writes and reads each tensor, of the nodes as they were.
    links: Links,
    /// Of real tensors: the int8 tensor that holds the same values.
    stored: HashMap<TensorId, TensorId>,
    /// Of unsigned bytes: the int8 tensor that holds the same values.
    signed: HashMap<TensorId, TensorId>,
    /// Nodes that are part of another by now.
    done: Vec<bool>,
    nodes: Vec<Node>,
    /// By node: why it computes in f32.
    left: Vec<(usize, String)>,
}

/// A Quantize: the node, what it writes, and that one's grid as int8.
struct Behind {
    node: usize,
    to: TensorId,
    quant: Quant,
    /// The clamp ahead of it, a node and its function: on the same grid it gives the same numbers.
    clamp: Option<(usize, Composite)>,
}

/// Outcome for a node.
enum Outcome {
    /// It is on int8.
    Done,
    /// Its values are on int8 as well; who reads real ones still has them.
    Both,
    /// It computes in f32, for this reason.
    Left(String),
}

impl Fold<'_> {
    fn node(&mut self, index: usize) -> Result<()> {
        let node = self.graph.nodes[index].clone();
        match (&node.op, ends(self.graph, index)) {
            (Op::Dequantize, Some((x, y))) => {
                if let Some(own) = self.int8(x) {
                    self.stored.insert(y, own);
                }
            }
            (Op::Quantize, Some((x, y))) if as_int8(self.graph.tensor(y)).is_some() => {
                let from = self.stored.get(&x).copied().unwrap_or(x);
                let to = self.target(y);
                self.convert(from, to);
                self.finish(y, to);
                return Ok(());
            }
            (op, Some((x, y))) if moves(op) && self.signed.contains_key(&x) => {
                let from = self.signed[&x];
                let to = self.target(y);
                self.push(&node, vec![Some(from)], to);
                self.finish(y, to);
                return Ok(());
            }
            (Op::Quantize, _) => {}
            _ if self.looked_up(index, &node) => return Ok(()),
            _ if self.reads_stored(&node) => match self.on_int8(index, &node)? {
                Outcome::Done => return Ok(()),
                Outcome::Both => {}
                Outcome::Left(reason) => {
                    let reason = format!("{}: {reason}", facts::described(self.graph, &node));
                    self.left.push((index, reason));
                }
            },
            _ => {}
        }
        self.nodes.push(node);
        Ok(())
    }

    /// The tensor as int8: itself, or a copy with another zero point.
    fn int8(&mut self, id: TensorId) -> Option<TensorId> {
        let quant = as_int8(self.graph.tensor(id))?;
        if self.graph.tensor(id).dtype == DType::I8 {
            return Some(id);
        }
        if let Some(&signed) = self.signed.get(&id) {
            return Some(signed);
        }
        let signed = self.like(id, "int8", quant);
        self.convert(id, signed);
        self.signed.insert(id, signed);
        Some(signed)
    }

    /// Returns the result tensor for a byte tensor: itself, or an int8 tensor of the same values.
    fn target(&mut self, id: TensorId) -> TensorId {
        match as_int8(self.graph.tensor(id)).filter(|_| self.graph.tensor(id).dtype != DType::I8) {
            Some(quant) => self.like(id, "int8", quant),
            None => id,
        }
    }

    /// Behind the writer of `target(id)`: who wants unsigned bytes has them.
    fn finish(&mut self, id: TensorId, target: TensorId) {
        if id != target {
            self.signed.insert(id, target);
            self.convert(target, id);
        }
    }

    /// An activation of int8 in the shape of another.
    fn like(&mut self, id: TensorId, what: &str, quant: Quant) -> TensorId {
        let tensor = self.graph.tensor(id);
        let tensor = Tensor {
            name: format!("{} ({what})", tensor.name),
            dtype: DType::I8,
            quant: Some(quant),
            kind: TensorKind::Activation,
            ..tensor.clone()
        };
        self.graph.add_tensor(tensor)
    }

    fn convert(&mut self, from: TensorId, to: TensorId) {
        let (a, b) = (self.graph.tensor(from), self.graph.tensor(to));
        let same = a.dtype == b.dtype && a.quant == b.quant;
        let op = if same { Op::Reshape } else { Op::Quantize };
        let name = b.name.clone();
        self.nodes.push(conversion(name, op, from, to));
    }

    fn push(&mut self, node: &Node, inputs: Vec<Option<TensorId>>, output: TensorId) {
        self.nodes.push(Node {
            inputs,
            outputs: vec![output],
            ..node.clone()
        });
    }

    fn reads_stored(&self, node: &Node) -> bool {
        node.inputs.iter().flatten().any(|id| self.stored.contains_key(id))
    }

    /// Returns the node behind the one that writes `y`, where that is nothing but a Quantize to bytes.
    fn quantised(&self, y: TensorId) -> Option<Behind> {
        let [node] = self.links.readers(y)[..] else {
            return None;
        };
        let (_, to) = ends(self.graph, node).filter(|_| self.graph.nodes[node].op == Op::Quantize)?;
        let quant = as_int8(self.graph.tensor(to)).filter(|_| !self.outputs.contains(&y))?;
        let clamp = None;
        Some(Behind { node, to, quant, clamp })
    }

    /// As [`quantised`](Self::quantised), where a clamp may stand between.
    fn clamped(&self, y: TensorId) -> Option<Behind> {
        let [reader] = self.links.readers(y)[..] else {
            return None;
        };
        let node = &self.graph.nodes[reader];
        if !lookup::is_clamp(&node.op) || self.outputs.contains(&y) {
            return self.quantised(y);
        }
        let &[clamped] = &node.outputs[..] else {
            return None;
        };
        let clamp = self.functions(reader).into_iter().next()?;
        let behind = self.quantised(clamped)?;
        Some(Behind {
            clamp: Some((reader, clamp)),
            ..behind
        })
    }

    fn on_int8(&mut self, index: usize, node: &Node) -> Result<Outcome> {
        let graph = &*self.graph;
        let real: Vec<TensorId> = activations(graph, node).collect();
        let &[y] = &node.outputs[..] else {
            return Ok(Outcome::Both);
        };
        if !real.iter().all(|id| *id == y || self.stored.contains_key(id)) {
            return Ok(Outcome::Both);
        }
        let form = match on_int8(graph, node) {
            Ok(form) => form,
            Err(reason) => return Ok(Outcome::Left(reason)),
        };
        let mut inputs = node.inputs.clone();
        for input in inputs.iter_mut().flatten() {
            *input = self.stored.get(input).copied().unwrap_or(*input);
        }
        let behind = if self.functions(index).is_empty() {
            self.clamped(y)
        } else {
            self.quantised(y)
        };
        match (form, behind) {
            (Form::Index, _) => {
                self.push(node, inputs, y);
                Ok(Outcome::Done)
            }
            (Form::Shared, behind) => self.shared(node, inputs, y, behind),
            (Form::Free, Some(behind)) => self.free(node, inputs, &behind),
            (Form::Fixed(scale, zero), Some(behind)) => {
                Ok(self.through(node, inputs, &behind, Quant::per_tensor(scale, zero)))
            }
            (_, None) => Ok(Outcome::Left("its result is not quantised right behind it".into())),
        }
    }

    /// The functions of one operand that end at the node.
    fn functions(&self, index: usize) -> Vec<Composite> {
        lookup::functions(self.graph, &self.links, self.weights, index)
    }

    /// The function of a stored operand that ends at the node, by a table.
    fn looked_up(&mut self, index: usize, node: &Node) -> bool {
        let &[y] = &node.outputs[..] else {
            return false;
        };
        let Some(behind) = self.quantised(y) else {
            return false;
        };
        for function in self.functions(index).into_iter().rev() {
            let stored = self.stored.get(&function.source).copied();
            let Some((x, from)) = stored.and_then(|x| Some((x, self.graph.tensor(x).quant.clone()?))) else {
                continue;
            };
            let same_grid = from == behind.quant && function.nodes.len() == 1;
            let Some(name) = lookup::name(&node.op, same_grid) else {
                return false;
            };
            let op = composite::lookup(name, &|x| function.apply(x), &from, &behind.quant);
            self.left.retain(|(part, _)| !function.nodes.contains(part));
            self.write(&Node { op, ..node.clone() }, vec![Some(x)], &behind);
            return true;
        }
        false
    }

    /// The node on int8, whose result is what the Quantize behind it writes.
    fn write(&mut self, node: &Node, inputs: Vec<Option<TensorId>>, behind: &Behind) -> Outcome {
        let own = self.landing(behind);
        self.push(node, inputs, own);
        self.landed(behind, own);
        Outcome::Done
    }

    /// The int8 tensor that a node ahead of the Quantize writes.
    fn landing(&mut self, behind: &Behind) -> TensorId {
        match behind.clamp {
            Some(_) => self.like(behind.to, "before its clamp", behind.quant.clone()),
            None => self.target(behind.to),
        }
    }

    /// Once it is written.
    fn landed(&mut self, behind: &Behind, own: TensorId) {
        let mut target = own;
        if let Some((clamp, function)) = &behind.clamp {
            target = self.target(behind.to);
            let op = composite::lookup("clamp", &|x| function.apply(x), &behind.quant, &behind.quant);
            let node = self.graph.nodes[*clamp].clone();
            self.push(&Node { op, ..node }, vec![Some(own)], target);
            self.done[*clamp] = true;
        }
        self.finish(behind.to, target);
        self.done[behind.node] = true;
    }

    /// The node with a result of `quant`, and the Quantize behind it from that.
    fn through(&mut self, node: &Node, inputs: Vec<Option<TensorId>>, behind: &Behind, quant: Quant) -> Outcome {
        if quant == behind.quant {
            return self.write(node, inputs, behind);
        }
        // Half a step of each is at most one of the result's.
        let [own, result] = [quant.scale[0], behind.quant.scale[0]];
        if own > result {
            return Outcome::Left(format!(
                "its int8 form has steps of {own}, coarser than the result's, {result}"
            ));
        }
        let own = self.like(behind.to, "before it is rescaled", quant);
        self.push(node, inputs, own);
        let landing = self.landing(behind);
        self.convert(own, landing);
        self.landed(behind, landing);
        Outcome::Done
    }

    /// An operator whose operands and result have one grid.
    fn shared(
        &mut self,
        node: &Node,
        mut inputs: Vec<Option<TensorId>>,
        y: TensorId,
        behind: Option<Behind>,
    ) -> Result<Outcome> {
        if inputs.iter().flatten().any(|id| self.graph.tensor(*id).is_const()) {
            return Ok(Outcome::Left("one of its operands is a constant".into()));
        }
        let quants: Vec<Quant> = (inputs.iter().flatten())
            .filter_map(|id| self.graph.tensor(*id).quant.clone())
            .collect();
        let Some(own) = quants.first().cloned() else {
            return Ok(Outcome::Both);
        };
        if quants.iter().any(|quant| *quant != own) {
            let Some(behind) = behind else {
                return Ok(Outcome::Left("its operands have different scales".into()));
            };
            for input in inputs.iter_mut().flatten() {
                *input = self.rescaled(*input, &behind.quant);
            }
            return Ok(self.write(node, inputs, &behind));
        }
        let mut node = node.clone();
        if let Op::Pad { value, .. } = &mut node.op {
            let (scale, zero) = (own.scale[0], own.zero_point[0]);
            let stored = quantize(*value, scale, zero, -128, 127);
            if (stored - zero) as f32 * scale != *value {
                return Ok(Outcome::Left(format!(
                    "its operand's scale does not hold the padding {value}"
                )));
            }
            *value = stored as f32;
        }
        match behind {
            Some(behind) if behind.quant == own => Ok(self.write(&node, inputs, &behind)),
            Some(behind) if !is_exact(&node.op) => Ok(self.through(&node, inputs, &behind, own)),
            None if !is_exact(&node.op) => Ok(Outcome::Left("its result is not quantised right behind it".into())),
            _ => {
                let twin = self.like(y, "int8", own);
                self.push(&node, inputs, twin);
                self.stored.insert(y, twin);
                Ok(Outcome::Both)
            }
        }
    }

    /// An int8 tensor on another grid.
    fn rescaled(&mut self, id: TensorId, quant: &Quant) -> TensorId {
        if self.graph.tensor(id).quant.as_ref() == Some(quant) {
            return id;
        }
        let other = self.like(id, "rescaled", quant.clone());
        self.convert(id, other);
        other
    }

    /// An operator that rescales by itself.
    fn free(&mut self, node: &Node, mut inputs: Vec<Option<TensorId>>, behind: &Behind) -> Result<Outcome> {
        // The step's own arithmetic says whether it has factors for these scales.
        let result = Tensor {
            quant: Some(behind.quant.clone()),
            ..Tensor::activation("", &self.graph.tensor(behind.to).shape, DType::I8)
        };
        match (&node.op, &inputs[..]) {
            (Op::Conv2d(_) | Op::Linear { .. }, &[Some(x), Some(w), ..]) => {
                let input = self.graph.tensor(x).quant.as_ref().map_or(1.0, |quant| quant.scale[0]);
                let Some(weights) = constants::layer(self.graph, self.weights, w)? else {
                    return Ok(Outcome::Left(
                        "its weights are no int8 with zero point 0 and a scale for each output".into(),
                    ));
                };
                let own = inputs.get(2).copied().flatten();
                let Some(bias) = constants::bias(self.graph, self.weights, own, &weights, input)? else {
                    return Ok(Outcome::Left(
                        "its bias does not fit into 31 bits of the products' scale".into(),
                    ));
                };
                let output = f64::from(behind.quant.scale[0]);
                if let Err(error) = numbers::multipliers(&weights, weights.shape[0], input.into(), output) {
                    return Ok(Outcome::Left(error.message().into()));
                }
                inputs.truncate(1);
                inputs.extend([weights, bias].map(|tensor| Some(self.graph.add_tensor(tensor))));
            }
            (Op::Binary { kind, activation }, &[Some(a), Some(b)]) => {
                for (position, id) in [a, b].into_iter().enumerate() {
                    if self.graph.tensor(id).is_const() {
                        let Some(tensor) = constants::operand(self.graph, self.weights, id)? else {
                            return Ok(Outcome::Left("one of its operands is a constant in f32".into()));
                        };
                        inputs[position] = Some(self.graph.add_tensor(tensor));
                    }
                }
                if let &[Some(a), Some(b)] = &inputs[..] {
                    let tensors = [self.graph.tensor(a), self.graph.tensor(b), &result];
                    if let Err(error) = arithmetic(&node.kind, *kind, *activation, tensors) {
                        return Ok(Outcome::Left(error.message().into()));
                    }
                }
            }
            _ if inputs.iter().flatten().any(|id| self.graph.tensor(*id).is_const()) => {
                return Ok(Outcome::Left("one of its operands is a constant".into()));
            }
            _ => {}
        }
        Ok(self.write(node, inputs, behind))
    }
}

/// Whether the result's elements are elements of the operands, so that rounding them once more loses nothing.
fn is_exact(op: &Op) -> bool {
    match op {
        Op::MaxPool2d(attrs) => matches!(attrs.activation, Activation::None | Activation::Relu),
        Op::Reduce { kind, .. } => matches!(kind, ReduceKind::Max | ReduceKind::Min),
        Op::Pad { .. } | Op::Concat { .. } | Op::ResizeNearest { .. } | Op::Binary { .. } => true,
        op => moves(op),
    }
}
