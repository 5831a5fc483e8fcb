//! From the picture's sizes to the graph, at any batch.

use super::names::Name;
use super::read::Picture;
use super::sizes::Network;
use crate::build::{Builder, NewNode, Weights, elements, line};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::facts::IMPLIED;
use crate::graph::{Activation, DType, Graph, Op, Role, TensorId, UnaryKind};

pub(super) fn build(
    picture: &Picture,
    network: &Network,
    name: &str,
    batch: usize,
    nonlinearity: &str,
) -> Result<Graph> {
    let nonlinearity = match nonlinearity {
        "relu" => Op::Unary(UnaryKind::Relu),
        "tanh" => Op::Unary(UnaryKind::TANH),
        "sigmoid" => Op::Unary(UnaryKind::LOGISTIC),
        "none" => Op::Identity,
        other => {
            return Err(Error::new(ErrorKind::Usage, format!("--assume nonlinearity={other}"))
                .expected("relu, tanh, sigmoid or none"));
        }
    };
    let mut work = Work {
        builder: Builder::new(name),
        picture,
    };
    let image = network.levels.first().copied().unwrap_or_default();
    let shape: Vec<usize> = std::iter::once(batch).chain(image).collect();
    let mut x = work.builder.input(&Name::RawOutput.to_string(), &shape)?;
    let data = work.line_of(Name::Data);
    work.builder
        .opaque("data", "data", Role::Bookkeeping, &[], &[x], line(data));
    for (layer, pair) in network.levels.windows(2).enumerate() {
        let &[[c, h, w], [out, oh, ow]] = pair else { continue };
        let (kh, kw) = (h + 1 - oh.min(h), w + 1 - ow.min(w));
        let traced = [out, 1, 1, c, kh, kw, oh, ow];
        let filters = Weights::Moved {
            shape: vec![out, c, kh, kw, oh, ow],
            perm: (0..6).collect(),
        };
        let filters = work.param(Name::Weights(layer), &traced, &filters)?;
        let op = Op::LocallyConnected2d {
            activation: Activation::None,
        };
        x = work.node(
            "filter",
            op,
            &[x, filters],
            Name::Filter(layer),
            Name::FilterOutput(layer),
        )?;
        let gain = work.param(Name::Gain(layer), &[1], &Weights::Same)?;
        let bias = work.param(Name::Bias(layer), &[1, out, oh, ow], &Weights::Same)?;
        x = work.node(
            "filterA",
            Op::Affine,
            &[x, gain, bias],
            Name::FilterA(layer),
            Name::FilterAOutput(layer),
        )?;
        let op = nonlinearity.clone();
        x = work.node("filterNL", op, &[x], Name::FilterNl(layer), Name::FilterNlOutput(layer))?;
    }
    let output = work.classifier(x, network, batch)?;
    work.outside(output, network, batch);
    work.builder.finish(&[output])
}

struct Work<'p> {
    builder: Builder,
    picture: &'p Picture,
}

impl Work<'_> {
    /// A dot product over all units, and the softmax over the classes.
    fn classifier(&mut self, x: TensorId, network: &Network, batch: usize) -> Result<TensorId> {
        let [c, h, w] = network.levels.last().copied().unwrap_or_default();
        let units = elements(&[c, h, w])?;
        let classes = network.classes;
        let flat = self.reshape(x, "classifier.linear1.flatten", &[batch, units])?;
        let weights = Weights::Moved {
            shape: vec![classes, units],
            perm: vec![0, 1],
        };
        let weights = self.param(Name::Weights1, &[classes, c, h, w], &weights)?;
        let origin = line(self.line_of(Name::Linear1));
        let y = self.builder.node(NewNode {
            name: &Name::Linear1.to_string(),
            kind: "linear1",
            op: Op::Linear {
                activation: Activation::None,
            },
            inputs: &[Some(flat), Some(weights)],
            output: "classifier.linear1.flat",
            origin,
        })?;
        let y = self.reshape(y, &Name::Linear1Output.to_string(), &[batch, classes, 1, 1])?;
        let op = Op::Softmax { axis: 1, beta: 1.0 };
        self.node("softmax", op, &[y], Name::Softmax, Name::Probability)
    }

    fn reshape(&mut self, x: TensorId, name: &str, shape: &[usize]) -> Result<TensorId> {
        let new = NewNode {
            name,
            kind: IMPLIED,
            op: Op::Reshape,
            inputs: &[Some(x)],
            output: name,
            origin: line(self.line_of(Name::Linear1)),
        };
        self.builder.node_of_shape(new, shape)
    }

    fn node(&mut self, kind: &str, op: Op, inputs: &[TensorId], name: Name, output: Name) -> Result<TensorId> {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.builder.node(NewNode {
            name: &name.to_string(),
            kind,
            op,
            inputs: &inputs,
            output: &output.to_string(),
            origin: line(self.line_of(name)),
        })
    }

    fn param(&mut self, name: Name, traced: &[usize], weights: &Weights) -> Result<TensorId> {
        self.builder.param(&name.to_string(), traced, weights)
    }

    /// The metric and the training half.
    fn outside(&mut self, probability: TensorId, network: &Network, batch: usize) {
        let seen = |name: Name| self.picture.seen.get(&name).copied();
        if let Some(number) = seen(Name::Evaluate).or(seen(Name::EvaluateOutput)) {
            let labels = self.builder.outside(
                &Name::Labels.to_string(),
                &[batch.max(network.batch), 1, 1, 1],
                DType::F32,
            );
            let result = self
                .builder
                .outside(&Name::EvaluateOutput.to_string(), &[4, 1, 1, 1], DType::F32);
            let inputs = [labels, probability];
            self.builder.opaque(
                &Name::Evaluate.to_string(),
                "evaluate",
                Role::Loss,
                &inputs,
                &[result],
                line(number),
            );
        }
        for (name, role, number) in self.picture.training() {
            let kind = name.rsplit('.').next().unwrap_or(&name);
            self.builder.opaque(&name, kind, role, &[], &[], line(number));
        }
    }

    fn line_of(&self, name: Name) -> usize {
        self.picture.seen.get(&name).copied().unwrap_or(0)
    }
}
