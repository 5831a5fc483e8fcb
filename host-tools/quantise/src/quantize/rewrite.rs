//! The float graph with its scales as a graph of integers, in the form in which a quantised .tflite file is imported. Where a layer that stays in f32 meets
//! one that does not, a step converts; so does one where stored numbers of two scales meet.

use std::collections::{BTreeMap, HashMap};

use arenite::DType;
use arenite::ops::special_int::SpecialIntOp;

use super::activations::Activations;
use super::form::{Form, concerns, form, is_real};
use super::parameters::{self, Stored};
use crate::error::{Error, Result};
use crate::graph::composite::{lookup, real};
use crate::graph::facts::IMPLIED;
use crate::graph::{BinaryOp, Data, Graph, Node, Op, Origin, Quant, Role, Tensor, TensorId, TensorKind, UnaryKind};
use crate::weights::Weights;

/// Plan by which the graph is rewritten.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The integers that each node computes with; none: it stays in f32.
    pub(super) nodes: Vec<Option<Activations>>,
    /// The integers that the network's inputs and outputs become.
    pub(super) ports: Activations,
    /// The quantisation of every activation that is of integers somewhere, by what it is there.
    pub(super) quant: Quants,
    /// The integers of each layer, by its node.
    pub(super) layers: BTreeMap<usize, Stored>,
}

/// Quantisations of activations, by the integers that they become.
pub(super) type Quants = BTreeMap<Activations, BTreeMap<TensorId, Quant>>;

impl Plan {
    /// The scale of a node's first operand; 1 where that has none.
    pub(super) fn input_scale(&self, index: usize, node: &Node) -> f32 {
        self.scale(index, node.inputs.first().copied().flatten())
    }

    /// The scale of a node's first result; 1 where that has none.
    pub(super) fn output_scale(&self, index: usize, node: &Node) -> f32 {
        self.scale(index, node.outputs.first().copied())
    }

    fn scale(&self, index: usize, id: Option<TensorId>) -> f32 {
        let quants = self.nodes[index].and_then(|kind| self.quant.get(&kind));
        let quant = quants.and_then(|quants| quants.get(&id?));
        quant.map_or(1.0, |quant| quant.scale[0])
    }
}

/// Rewrites `graph`.
pub(super) fn run(graph: &Graph, weights: &Weights, plan: &Plan) -> Result<Graph> {
    let mut out = graph.clone();
    let nodes = std::mem::take(&mut out.nodes);
    let mut rewrite = Rewrite {
        out,
        weights,
        plan,
        versions: HashMap::new(),
        float: vec![false; graph.tensors.len()],
        readers: vec![0; graph.tensors.len()],
    };
    for id in graph.nodes.iter().flat_map(|node| node.inputs.iter().flatten()) {
        rewrite.readers[id.0] += 1;
    }
    for &id in &graph.inputs {
        rewrite.becomes_integers(id, plan.ports);
    }
    for (index, mut node) in nodes.into_iter().enumerate() {
        let at = (node.name.clone(), node.kind.clone(), node.origin.clone());
        let done = match (concerns(graph, &node), plan.nodes[index]) {
            (false, _) => Ok(()),
            (true, None) => rewrite.keep(graph, &mut node),
            (true, Some(kind)) => rewrite.quantise(graph, index, &mut node, kind),
        };
        done.map_err(|e| e.at(format_args!("`{}` ({}), {}", at.0, at.1, at.2)))?;
        rewrite.out.nodes.push(node);
    }
    rewrite.outputs(graph)?;
    Ok(rewrite.out)
}

/// The ends of f32.
const EVERYTHING: [f32; 2] = [f32::MIN, f32::MAX];

/// f32, or such integers with the bits of this scale and this zero point.
type Version = Option<(Activations, u32, i32)>;

struct Rewrite<'a> {
    out: Graph,
    weights: &'a Weights,
    plan: &'a Plan,
    /// Other forms of a tensor that are there by now.
    versions: HashMap<(TensorId, Version), TensorId>,
    /// Tensors that a node in f32 writes.
    float: Vec<bool>,
    /// Operands that each tensor of the float graph is.
    readers: Vec<usize>,
}

impl Rewrite<'_> {
    fn quant(&self, id: TensorId, kind: Activations) -> Result<Quant> {
        let missing = || Error::internal(format!("`{}` has no scale", self.out.tensor(id).name));
        let quants = self.plan.quant.get(&kind);
        quants.and_then(|quants| quants.get(&id)).cloned().ok_or_else(missing)
    }

    fn becomes_integers(&mut self, id: TensorId, kind: Activations) {
        if let Some(quant) = self.plan.quant.get(&kind).and_then(|quants| quants.get(&id)) {
            let tensor = self.out.tensor_mut(id);
            tensor.dtype = kind.dtype();
            tensor.quant = Some(quant.clone());
        }
    }

    /// A node that stays: its operands in f32.
    fn keep(&mut self, graph: &Graph, node: &mut Node) -> Result<()> {
        for input in node.inputs.iter_mut().flatten() {
            if is_real(graph, *input) && !self.float[input.0] {
                *input = self.as_float(*input);
            }
        }
        for output in node.outputs.iter().filter(|id| is_real(graph, **id)) {
            self.float[output.0] = true;
        }
        Ok(())
    }

    /// A node on integers.
    fn quantise(&mut self, graph: &Graph, index: usize, node: &mut Node, kind: Activations) -> Result<()> {
        let form = form(graph, node, kind).map_err(Error::internal)?;
        let own = node.inputs.clone();
        // Stored numbers are passed on: what comes in has the result's scale.
        let shared = match (form, node.outputs.first()) {
            (Form::Shared, Some(&output)) => Some(self.quant(output, kind)?),
            _ => None,
        };
        for input in node.inputs.iter_mut().flatten() {
            if is_real(graph, *input) {
                let own = self.quant(*input, kind)?;
                *input = self.as_integers(*input, kind, shared.as_ref().unwrap_or(&own));
            }
        }
        match (&mut node.op, self.plan.layers.get(&index)) {
            (Op::Conv2d(_) | Op::Linear { .. } | Op::LocallyConnected2d { .. }, Some(stored)) => {
                let x = node.inputs[0].and_then(|id| self.out.tensor(id).quant.clone());
                let input = x.map_or(1.0, |quant| quant.scale[0]);
                let [weights, bias] = stored.tensors(graph, &node.inputs, input, kind);
                let own = [1, 2].map(|operand| node.inputs.get(operand).copied().flatten());
                let tensors = [self.replace(own[0], weights), self.replace(own[1], bias)];
                node.inputs = [&node.inputs[..1], &tensors.map(Some)].concat();
            }
            (op, _) => {
                let added = matches!(
                    op,
                    Op::Binary {
                        kind: BinaryOp::Add,
                        ..
                    }
                );
                let ends = if added {
                    self.ends_of_a_term(graph, &own, node.outputs[0], kind)
                } else {
                    EVERYTHING
                };
                let mut operands = node.inputs.iter().flatten().map(|&id| self.out.tensor(id));
                let other = operands.find_map(|tensor| Activations::of(tensor).map(|(_, quant)| quant.scale[0]));
                for input in node.inputs.iter_mut().flatten() {
                    let tensor = self.out.tensor(*input);
                    if tensor.is_const() && tensor.dtype == DType::F32 {
                        *input = self.constant(graph, *input, (kind, other, ends), shared.as_ref())?;
                    }
                }
                if let &mut Op::Binary {
                    kind: BinaryOp::Div,
                    activation,
                } = op
                {
                    *op = Op::SpecialInt {
                        kind: SpecialIntOp::Div,
                        activation,
                    };
                }
                if let (Op::Pad { value, .. }, Some(quant)) = (op, &shared) {
                    *value = kind.quantize(*value, quant) as f32;
                }
            }
        }
        for &output in node.outputs.iter().filter(|id| is_real(graph, **id)) {
            self.becomes_integers(output, kind);
        }
        self.look_up(node, kind);
        Ok(())
    }

    /// A function of one operand becomes a table of the nearest numbers: TensorFlow Lite's own forms round twice.
    fn look_up(&self, node: &mut Node, kind: Activations) {
        let (&Op::Unary(function), Some(Some(x)), Some(&y)) = (&node.op, node.inputs.first(), node.outputs.first())
        else {
            return;
        };
        let twice = matches!(
            function,
            UnaryKind::LeakyRelu { .. }
                | UnaryKind::HARD_SWISH
                | UnaryKind::LOGISTIC
                | UnaryKind::TANH
                | UnaryKind::RSQRT
        );
        let scales = [*x, y].map(|id| self.out.tensor(id).quant.as_ref());
        if let ([Some(from), Some(to)], Activations::Int8, true) = (scales, kind, twice) {
            node.op = lookup(function.name(), &|x| real(function, x), from, to);
        }
    }

    /// A layer's constant in the place of its own, where nobody else reads that.
    fn replace(&mut self, own: Option<TensorId>, tensor: Tensor) -> TensorId {
        match own.filter(|id| self.readers[id.0] == 1) {
            Some(id) => {
                *self.out.tensor_mut(id) = tensor;
                id
            }
            None => self.out.add_tensor(tensor),
        }
    }

    /// Bounds of a constant term: with more, as masks have it, the sum is at the end of its range whatever the other operand holds.
    fn ends_of_a_term(&self, graph: &Graph, inputs: &[Option<TensorId>], sum: TensorId, kind: Activations) -> [f32; 2] {
        let held = |id: TensorId| self.quant(id, kind).ok().map(|quant| kind.held(&quant));
        let other = inputs.iter().flatten().copied().find(|&id| is_real(graph, id));
        match (other.and_then(held), held(sum)) {
            (Some([low, high]), Some([least, most])) => [(least - high) as f32, (most - low) as f32],
            _ => EVERYTHING,
        }
    }

    /// A constant operand as stored numbers: of the scale that it shares, or of its own.
    fn constant(
        &mut self,
        graph: &Graph,
        id: TensorId,
        (activations, other, [low, high]): (Activations, Option<f32>, [f32; 2]),
        shared: Option<&Quant>,
    ) -> Result<TensorId> {
        let tensor = graph.tensor(id).clone();
        let mut values = parameters::values(graph, self.weights, id)?;
        values.iter_mut().for_each(|value| *value = value.clamp(low, high));
        let quant = match (shared, other) {
            (Some(quant), _) => quant.clone(),
            // A scale of its own would be any number.
            (None, Some(scale)) if values.iter().all(|&value| value == 0.0) => Quant::per_tensor(scale, 0),
            (None, _) => activations.affine(ends(&values), &tensor.name)?,
        };
        let stored = activations.stored(values.into_iter(), &quant);
        let kind = TensorKind::Const(Data::Bytes(stored.into()));
        Ok(self.out.add_tensor(Tensor {
            dtype: activations.dtype(),
            quant: Some(quant),
            kind,
            ..tensor
        }))
    }

    /// The tensor as f32.
    fn as_float(&mut self, id: TensorId) -> TensorId {
        if let Some(&version) = self.versions.get(&(id, None)) {
            return version;
        }
        let tensor = Tensor {
            name: format!("{} (f32)", self.out.tensor(id).name),
            dtype: DType::F32,
            quant: None,
            kind: TensorKind::Activation,
            ..self.out.tensor(id).clone()
        };
        let version = self.converted(id, tensor, Op::Dequantize);
        self.versions.insert((id, None), version);
        version
    }

    /// The tensor as such integers of this scale and zero point.
    fn as_integers(&mut self, id: TensorId, kind: Activations, quant: &Quant) -> TensorId {
        let dtype = kind.dtype();
        let tensor = self.out.tensor(id);
        if !self.float[id.0] && tensor.dtype == dtype && tensor.quant.as_ref() == Some(quant) {
            return id;
        }
        let key = (id, Some((kind, quant.scale[0].to_bits(), quant.zero_point[0])));
        if let Some(&version) = self.versions.get(&key) {
            return version;
        }
        let tensor = Tensor {
            name: format!("{} ({})", self.out.tensor(id).name, dtype.name()),
            dtype,
            quant: Some(quant.clone()),
            kind: TensorKind::Activation,
            ..self.out.tensor(id).clone()
        };
        let version = self.converted(id, tensor, Op::Quantize);
        self.versions.insert(key, version);
        version
    }

    /// Adds a step that makes `tensor` of `id`.
    fn converted(&mut self, id: TensorId, tensor: Tensor, op: Op) -> TensorId {
        let name = tensor.name.clone();
        let to = self.out.add_tensor(tensor);
        self.out.nodes.push(conversion(name, op, id, to));
        to
    }

    /// Outputs of real numbers are integers, and keep their names.
    fn outputs(&mut self, graph: &Graph) -> Result<()> {
        for index in 0..self.out.outputs.len() {
            let id = self.out.outputs[index];
            let other = self.float[id.0] || self.out.tensor(id).dtype != self.plan.ports.dtype();
            if is_real(graph, id) && other {
                let quant = self.quant(id, self.plan.ports)?;
                let output = self.as_integers(id, self.plan.ports, &quant);
                let name = self.out.tensor(id).name.clone();
                let own = self.out.tensor(id).dtype.name();
                self.out.tensor_mut(id).name = format!("{name} ({own})");
                self.out.tensor_mut(output).name = name;
                self.out.outputs[index] = output;
            }
        }
        Ok(())
    }
}

/// A step that changes the element type or the scale.
pub(crate) fn conversion(name: String, op: Op, from: TensorId, to: TensorId) -> Node {
    Node {
        name,
        kind: IMPLIED.to_string(),
        op,
        inputs: vec![Some(from)],
        outputs: vec![to],
        role: Role::Forward,
        origin: Origin {
            line: None,
            path: "a conversion".to_string(),
        },
    }
}

/// The least and the greatest of some values, and zero.
pub(super) fn ends(values: &[f32]) -> [f64; 2] {
    let wide = |[low, high]: [f64; 2], &value: &f32| [low.min(f64::from(value)), high.max(f64::from(value))];
    values.iter().fold([0.0, 0.0], wide)
}
