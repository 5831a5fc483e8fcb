//! Weights and biases as integers: a scale for each output channel, biases in the scale of the products.

use arenite::DType;

use super::activations::Activations;
use crate::error::{Error, Result};
use crate::graph::{Data, Graph, Quant, Tensor, TensorId, TensorKind};
use crate::weights::Weights;

/// The weights of a layer, `[outputs, inputs of one output]`, and its bias, as the network has them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) weights: Vec<f32>,
    pub(super) bias: Vec<f32>,
    /// Weights of one output.
    pub(super) inputs: usize,
    /// The weights' extents.
    pub(super) shape: Vec<usize>,
}

/// A layer in integers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored {
    /// By output.
    pub(super) scales: Vec<f32>,
    pub(super) weights: Vec<i8>,
    pub(super) bias: Vec<i64>,
}

/// The f32 values of a constant.
pub(super) fn values(graph: &Graph, weights: &Weights, id: TensorId) -> Result<Vec<f32>> {
    let tensor = graph.tensor(id);
    match &tensor.kind {
        TensorKind::Const(data) => {
            let found = weights.evaluate(&data.to_expr(&tensor.shape))?;
            match found.iter().position(|value| !value.is_finite()) {
                None => Ok(found),
                Some(at) => Err(
                    Error::input(format!("element {at} of `{}` is {}", tensor.name, found[at]))
                        .expected("finite values"),
                ),
            }
        }
        _ => Err(Error::internal(format!("`{}` is no constant", tensor.name))),
    }
}

impl Layer {
    /// Of a convolution or linear layer.
    pub(super) fn of(graph: &Graph, weights: &Weights, operands: &[Option<TensorId>]) -> Result<Self> {
        let operand = |index: usize| operands.get(index).copied().flatten();
        let id = operand(1).ok_or_else(|| Error::internal("a layer without weights"))?;
        let shape = graph.tensor(id).shape.clone();
        let outputs = shape[0];
        let bias = match operand(2) {
            Some(bias) => values(graph, weights, bias)?,
            None => vec![0.0; outputs],
        };
        Ok(Self {
            weights: values(graph, weights, id)?,
            bias,
            inputs: shape[1..].iter().product(),
            shape,
        })
    }

    /// The scale of each output for operands of scale `input`: the largest weight is 127. An output without weights gets one that stores its bias well;
    /// one whose bias would not fit gets a larger one.
    pub(super) fn scales(&self, input: f32, name: &str, activations: Activations) -> Result<Vec<f32>> {
        let rows = self.weights.chunks(self.inputs.max(1));
        let outputs = rows.zip(&self.bias).enumerate().map(|(output, (row, &bias))| {
            let largest = row.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
            let bias = f64::from(bias.abs());
            let scale = match (largest > 0.0, bias > 0.0) {
                (true, _) => f64::from(largest) / 127.0,
                (false, true) => bias / f64::from(input) / f64::from(1 << 24),
                (false, false) => 1.0,
            };
            let scale = scale.max(bias / f64::from(input) / activations.most_bias()) as f32;
            // With the operand's it must be a scale as well, and not lose its digits.
            let product = f64::from(scale) * f64::from(input);
            let usable = |v: f64| v.is_finite() && (f64::from(f32::MIN_POSITIVE)..f64::from(f32::MAX)).contains(&v);
            if usable(product) && usable(f64::from(scale)) {
                return Ok(scale);
            }
            Err(Error::input(format!(
                "no scale of f32 holds the weights of output {output} of `{name}`, at most {largest:e}"
            ))
            .help("scale the layer's weights, or leave it in f32 with --keep-f32"))
        });
        outputs.collect()
    }

    /// Every weight at the nearest integer.
    pub(super) fn nearest(&self, input: f32, scales: Vec<f32>, activations: Activations) -> Stored {
        let rows = self.weights.chunks(self.inputs.max(1)).zip(&scales);
        let weights = rows.flat_map(|(row, &scale)| row.iter().map(move |&weight| round(weight / scale)));
        let weights = weights.collect();
        let bias = self.stored_bias(input, &scales, &self.bias, activations);
        Stored { scales, weights, bias }
    }

    /// A bias in the scale of the products.
    pub(super) fn stored_bias(&self, input: f32, scales: &[f32], bias: &[f32], activations: Activations) -> Vec<i64> {
        let most = activations.most_bias();
        let of = |(&bias, &scale): (&f32, &f32)| {
            let stored = f64::from(bias) / (f64::from(input) * f64::from(scale));
            stored.round().clamp(-most, most) as i64
        };
        bias.iter().zip(scales).map(of).collect()
    }
}

/// As a stored weight; -128 is left out, as TensorFlow Lite wants it.
pub(super) fn round(stored: f32) -> i8 {
    stored.round().clamp(-127.0, 127.0) as i8
}

impl Stored {
    /// The constants of the graph: weights and bias.
    pub(super) fn tensors(
        &self,
        graph: &Graph,
        operands: &[Option<TensorId>],
        input: f32,
        activations: Activations,
    ) -> [Tensor; 2] {
        let weights = operands.get(1).copied().flatten().map(|id| graph.tensor(id).clone());
        let weights = weights.unwrap_or_else(|| Tensor::activation("", &[], DType::I8));
        let outputs = self.scales.len();
        let bytes: Vec<u8> = self.weights.iter().map(|&weight| weight as u8).collect();
        let words = self.bias.iter();
        let (of_bias, stored_bias): (DType, Vec<u8>) = match activations {
            Activations::Int8 => (
                DType::I32,
                words.flat_map(|&bias| (bias as i32).to_le_bytes()).collect(),
            ),
            Activations::Int16 => (DType::I64, words.flat_map(|bias| bias.to_le_bytes()).collect()),
        };
        let stored_bias = Data::Bytes(stored_bias.into());
        let bias = operands
            .get(2)
            .copied()
            .flatten()
            .map(|id| graph.tensor(id).name.clone());
        let bias = Tensor {
            quant: Some(Quant {
                scale: self.scales.iter().map(|scale| scale * input).collect(),
                zero_point: vec![0; outputs],
                axis: Some(0),
            }),
            kind: TensorKind::Const(stored_bias),
            ..Tensor::activation(
                bias.unwrap_or_else(|| format!("{} (bias)", weights.name)),
                &[outputs],
                of_bias,
            )
        };
        let weights = Tensor {
            dtype: DType::I8,
            quant: Some(Quant {
                scale: self.scales.clone(),
                zero_point: vec![0; outputs],
                axis: Some(0),
            }),
            kind: TensorKind::Const(Data::Bytes(bytes.into())),
            ..weights
        };
        [weights, bias]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(weights: &[f32], bias: &[f32]) -> Layer {
        Layer {
            weights: weights.to_vec(),
            bias: bias.to_vec(),
            inputs: weights.len() / bias.len(),
            shape: vec![bias.len(), weights.len() / bias.len()],
        }
    }

    #[test]
    fn every_output_has_a_scale_of_its_own() {
        let layer = layer(&[1.27, -0.5, 0.0127, 0.0], &[0.5, -1.0]);
        let scales = layer.scales(0.1, "l", Activations::Int8).expect("scales");
        let stored = layer.nearest(0.1, scales.clone(), Activations::Int8);
        assert!(
            (scales[0] - 0.01).abs() < 1e-6 && (scales[1] - 1e-4).abs() < 1e-8,
            "{scales:?}"
        );
        assert_eq!(stored.weights, [127, -50, 127, 0]);
        assert_eq!(stored.bias, [500, -100_000]);
    }

    #[test]
    fn outputs_without_weights_and_with_large_biases_keep_their_bias() {
        let cases = [(0.0, 3.0), (0.0, 0.0), (1e-9, 1.0), (1e-9, -1e3)];
        let both = [Activations::Int8, Activations::Int16];
        for ((weight, bias), activations) in cases.into_iter().flat_map(|case| both.map(|kind| (case, kind))) {
            let layer = layer(&[weight, 0.0], &[bias]);
            let scales = layer.scales(0.01, "l", activations).expect("scales");
            let stored = layer.nearest(0.01, scales.clone(), activations);
            let real = stored.bias[0] as f64 * 0.01_f32 as f64 * f64::from(scales[0]);
            assert!(
                scales[0] > 0.0 && (real - f64::from(bias)).abs() <= 1e-6 * f64::from(bias.abs()),
                "{real} {bias}"
            );
        }
        let error = layer(&[1e-38], &[0.0])
            .scales(1e-9, "fc9", Activations::Int8)
            .expect_err("no scale")
            .to_string();
        assert!(error.contains("fc9") && error.contains("--keep-f32"), "{error}");
    }
}
