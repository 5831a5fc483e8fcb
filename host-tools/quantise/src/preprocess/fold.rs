//! Factors and additions in front of the first convolution go into its weights and bias, where this is exact: a factor always, for padding is zero and stays
//! zero; an addition where there is no padding.

use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Conv2dAttrs, DType, Data, Graph, NodeId, Op, Padding2d, Tensor, TensorId, TensorKind};
use crate::weights::Weights;

/// Folds the steps that [`super::insert`] made, one after the other from the convolution on.
///
/// # Errors
/// Weights that cannot be read.
pub fn fold(graph: &mut Graph, weights: &Weights) -> Result<()> {
    for kind in [BinaryOp::Mul, BinaryOp::Add] {
        let found = graph.nodes.iter().position(|node| {
            let ours = node.kind == "preprocess";
            ours && matches!(node.op, Op::Binary { kind: own, .. } if own == kind)
        });
        if let Some(index) = found {
            into_convolution(graph, weights, index, kind)?;
        }
    }
    Ok(())
}

fn into_convolution(graph: &mut Graph, weights: &Weights, index: usize, kind: BinaryOp) -> Result<()> {
    let node = &graph.nodes[index];
    let (&[Some(x), Some(constant)], &[output]) = (&node.inputs[..], &node.outputs[..]) else {
        return Ok(());
    };
    let &[NodeId(reader)] = &graph.consumers()[output.0][..] else {
        return Ok(());
    };
    let convolution = &graph.nodes[reader];
    let Op::Conv2d(attrs) = &convolution.op else {
        return Ok(());
    };
    let padded = attrs.padding != Padding2d::default();
    if graph.outputs.contains(&output) || convolution.inputs[0] != Some(output) || (kind == BinaryOp::Add && padded) {
        return Ok(());
    }
    let Some(own) = convolution
        .inputs
        .get(1)
        .copied()
        .flatten()
        .filter(|id| graph.tensor(*id).is_const())
    else {
        return Ok(());
    };
    let bias = convolution.inputs.get(2).copied().flatten();
    if bias.is_some_and(|id| !graph.tensor(id).is_const()) {
        return Ok(());
    }
    let factors = values(graph, weights, constant)?;
    let taps = Taps::of(graph, attrs, own, values(graph, weights, own)?);
    let name = convolution.name.clone();
    match kind {
        BinaryOp::Mul => {
            let scaled = taps.scaled(&factors);
            let shape = graph.tensor(own).shape.clone();
            let id = f32_constant(graph, format!("{name}: weights of bytes"), &shape, &scaled);
            graph.nodes[reader].inputs[1] = Some(id);
        }
        _ => {
            let before = bias.map(|bias| values(graph, weights, bias)).transpose()?;
            let sums = taps.sums(&factors);
            let both = sums.iter().enumerate().map(|(channel, sum)| {
                let bias = before.as_ref().map_or(0.0, |bias| bias[channel]);
                (f64::from(bias) + sum) as f32
            });
            let both: Vec<f32> = both.collect();
            let id = f32_constant(graph, format!("{name}: bias of bytes"), &[both.len()], &both);
            let inputs = &mut graph.nodes[reader].inputs;
            inputs.resize(inputs.len().max(3), None);
            inputs[2] = Some(id);
        }
    }
    graph.nodes[reader].inputs[0] = Some(x);
    graph.nodes.remove(index);
    Ok(())
}

fn values(graph: &Graph, weights: &Weights, id: TensorId) -> Result<Vec<f32>> {
    let tensor = graph.tensor(id);
    match &tensor.kind {
        TensorKind::Const(data) => weights.evaluate(&data.to_expr(&tensor.shape)),
        _ => Err(Error::internal(format!("`{}` is no constant", tensor.name))),
    }
}

/// Weights OHWI, with the input channel of each.
struct Taps {
    values: Vec<f32>,
    /// Weights of an output channel.
    each: usize,
    /// Input channels of a group.
    inner: usize,
    /// Output channels of a group.
    outer: usize,
}

impl Taps {
    fn of(graph: &Graph, attrs: &Conv2dAttrs, id: TensorId, values: Vec<f32>) -> Self {
        let shape = &graph.tensor(id).shape;
        Self {
            each: shape[1..].iter().product(),
            inner: shape[3],
            outer: shape[0] / attrs.groups.max(1),
            values,
        }
    }

    fn input_of(&self, at: usize) -> usize {
        at / self.each / self.outer.max(1) * self.inner + at % self.inner
    }

    fn scaled(&self, factors: &[f32]) -> Vec<f32> {
        let each = self.values.iter().enumerate();
        each.map(|(at, value)| value * factors[self.input_of(at)]).collect()
    }

    /// Returns the contribution of a constant of each input channel to each output channel.
    fn sums(&self, offsets: &[f32]) -> Vec<f64> {
        let mut sums = vec![0.0; self.values.len() / self.each.max(1)];
        for (at, value) in self.values.iter().enumerate() {
            sums[at / self.each] += f64::from(*value) * f64::from(offsets[self.input_of(at)]);
        }
        sums
    }
}

fn f32_constant(graph: &mut Graph, name: String, shape: &[usize], values: &[f32]) -> TensorId {
    graph.add_tensor(Tensor {
        kind: TensorKind::Const(Data::from_f32(values)),
        ..Tensor::activation(name, shape, DType::F32)
    })
}
