//! Weights and biases as integers: a scale for each output channel, biases in the scale of the products.

use arenite::DType;
use arenite::ops::low_bit::MOST_FACTOR;
use arenite::quant::Multiplier;

use super::activations::Activations;
use crate::error::{Error, Result};
use crate::graph::{Data, Graph, LowBits, Quant, Tensor, TensorId, TensorKind};
use crate::lower::low_bit;
use crate::weights::Weights;

/// The weights of a layer, `[outputs, inputs of one output]`, and its bias, as the network has them. An output is a channel; in a locally connected layer
/// it has weights and a bias for each position, which have one scale together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) weights: Vec<f32>,
    /// `[outputs, positions]`
    pub(super) bias: Vec<f32>,
    /// Biases of one output.
    pub(super) positions: usize,
    /// Weights of one output.
    pub(super) inputs: usize,
    /// The weights' extents.
    pub(super) shape: Vec<usize>,
}

/// Extents of a locally connected layer's weights, `[out, in, kh, kw, oh, ow]`; other layers have fewer.
const LOCAL: usize = 6;

/// A layer in integers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stored {
    /// By output.
    pub(super) scales: Vec<f32>,
    /// Products of a factor and a number of few bits.
    pub(super) weights: Vec<i8>,
    pub(super) lattice: Lattice,
    pub(super) bias: Vec<i64>,
}

/// Possible values of a layer's weights: whole numbers, those of a part times its factor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lattice {
    /// By output, by part.
    pub(super) factors: Vec<u8>,
    /// Weights of an output, and of a part.
    pub(super) filter: usize,
    pub(super) share: usize,
    /// The largest number.
    pub(super) largest: i8,
}

impl Lattice {
    /// All numbers of eight bits but -128, which TensorFlow Lite leaves out.
    fn of_bytes(outputs: usize, filter: usize) -> Self {
        Self {
            factors: vec![1; outputs],
            filter,
            share: filter.max(1),
            largest: 127,
        }
    }

    /// The factor of weight `at` of an output.
    pub(super) fn factor(&self, output: usize, at: usize) -> i8 {
        let parts = self.filter.div_ceil(self.share).max(1);
        let factor = self.factors.get(output * parts + at / self.share);
        factor.map_or(1, |&factor| factor as i8)
    }

    /// Weight `at` of an output, nearest to a real number of its scale.
    pub(super) fn nearest(&self, output: usize, at: usize, wanted: f32) -> i8 {
        let (factor, largest) = (self.factor(output, at), f32::from(self.largest));
        let number = (wanted / f32::from(factor)).round().clamp(-largest, largest);
        number as i8 * factor
    }
}

/// Bits at the end of a factor's mantissa that are to be zero. The loops that sum two channels at once shift their sums left by 8 and take off the mantissa
/// what the factor wants less: of a factor of 2^-15, six bits. Where these are zero nothing is lost, and all channels have the short form.
const EVEN_BITS: u32 = 6;

/// So many neighbours of a scale are looked at: at most 6e-5 of it, where a weight's rounding is up to 4e-3.
const NEIGHBOURS: u32 = 512;

/// The first scale from this one on with which the factor that requantises, `input * scale / output`, ends in zero bits; of those
/// without, the one with the most.
fn with_even_factor(scale: f32, input: f32, output: f32) -> f32 {
    let zeros = |scale: f32| {
        let real = f64::from(input) * f64::from(scale) / f64::from(output);
        Multiplier::from_real(real).map_or(EVEN_BITS, |factor| factor.mantissa.trailing_zeros().min(EVEN_BITS))
    };
    let mut best = (scale, zeros(scale));
    let mut next = scale;
    for _ in 0..NEIGHBOURS {
        if best.1 == EVEN_BITS {
            break;
        }
        next = next.next_up();
        let found = zeros(next);
        if found > best.1 {
            best = (next, found);
        }
    }
    best.0
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
    /// Of a convolution, linear or locally connected layer; the last one's gain is in its weights.
    pub(super) fn of(graph: &Graph, weights: &Weights, operands: &[Option<TensorId>]) -> Result<Self> {
        let operand = |index: usize| operands.get(index).copied().flatten();
        let id = operand(1).ok_or_else(|| Error::internal("a layer without weights"))?;
        let shape = graph.tensor(id).shape.clone();
        let local = shape.len() == LOCAL;
        let positions = if local { shape[LOCAL - 2..].iter().product() } else { 1 };
        let bias = match operand(2) {
            Some(bias) => values(graph, weights, bias)?,
            None => vec![0.0; shape[0] * positions],
        };
        let mut all = values(graph, weights, id)?;
        if let Some(gain) = operand(3).filter(|_| local) {
            let gain = values(graph, weights, gain)?[0];
            all.iter_mut().for_each(|weight| *weight *= gain);
        }
        Ok(Self {
            weights: all,
            bias,
            positions,
            inputs: shape[1..].iter().product(),
            shape,
        })
    }

    /// The scale of each output for operands of scale `input`: the largest weight is 127. An output without weights gets one that stores its bias well;
    /// one whose bias would not fit gets a larger one.
    pub(super) fn scales(&self, input: f32, name: &str, activations: Activations) -> Result<Vec<f32>> {
        let rows = self.weights.chunks(self.inputs.max(1));
        let biases = self.bias.chunks(self.positions.max(1));
        let outputs = rows.zip(biases).enumerate().map(|(output, (row, biases))| {
            let largest = |of: &[f32]| of.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let (largest, bias) = (largest(row), f64::from(largest(biases)));
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

    /// In integers for an operand and a result of such scales: weights at their nearest, in four bits where that says how.
    ///
    /// # Errors
    /// Weights that no scale holds.
    pub(super) fn stored(
        &self,
        [input, output]: [f32; 2],
        name: &str,
        activations: Activations,
        bits: Option<LowBits>,
    ) -> Result<Stored> {
        let scales = self.scales(input, name, activations)?;
        Ok(match bits {
            Some(bits) => self.of_four_bits(input, &scales, bits, activations),
            None if activations == Activations::Int8 => {
                let even = scales.into_iter().map(|scale| with_even_factor(scale, input, output));
                self.nearest(input, even.collect(), activations)
            }
            None => self.nearest(input, scales, activations),
        })
    }

    /// Every weight at the nearest integer.
    pub(super) fn nearest(&self, input: f32, scales: Vec<f32>, activations: Activations) -> Stored {
        let lattice = Lattice::of_bytes(scales.len(), self.inputs);
        self.on(lattice, input, scales, activations)
    }

    fn on(&self, lattice: Lattice, input: f32, scales: Vec<f32>, activations: Activations) -> Stored {
        let rows = self.weights.chunks(self.inputs.max(1)).zip(&scales).enumerate();
        let weights = rows.flat_map(|(output, (row, &scale))| {
            let lattice = &lattice;
            let row = row.iter().enumerate();
            row.map(move |(at, &weight)| lattice.nearest(output, at, weight / scale))
        });
        let weights = weights.collect();
        let bias = self.stored_bias(input, &scales, &self.bias, activations);
        Stored {
            scales,
            weights,
            lattice,
            bias,
        }
    }

    /// Whether weights of four bits, with their factors, take less than weights of eight.
    pub(super) fn gains(&self, bits: LowBits) -> bool {
        self.four_bit_bytes(bits) < self.weights.len()
    }

    /// Bytes of weights of four bits with their factors.
    pub(super) fn four_bit_bytes(&self, bits: LowBits) -> usize {
        let parts = self.inputs.div_ceil(bits.share(self.inputs));
        self.shape[0] * (self.inputs.div_ceil(2) + parts)
    }

    /// Every weight as four bits times the factor of its part, nearest to what it was; `scales` are those of eight bits.
    pub(super) fn of_four_bits(&self, input: f32, scales: &[f32], bits: LowBits, activations: Activations) -> Stored {
        let share = bits.share(self.inputs);
        let largest = low_bit::largest(bits.bits);
        let most = if share < self.inputs { MOST_FACTOR } else { 1 };
        let mut factors = Vec::new();
        let rows = self.weights.chunks(self.inputs.max(1)).zip(&self.bias).zip(scales);
        let own = rows.map(|((row, &bias), &eight)| {
            if row.iter().all(|&weight| weight == 0.0) {
                factors.resize(factors.len() + row.len().div_ceil(share), 1);
                return eight;
            }
            let parts = row
                .chunks(share)
                .filter(|part| part.iter().any(|&weight| weight != 0.0));
            let widest = parts
                .map(|part| low_bit::scale(part, bits.bits))
                .fold(0.0_f32, f32::max);
            // The bias fits beside the products.
            let least = f64::from(bias.abs()) / f64::from(input) / activations.most_bias();
            let scale = (f64::from(widest) / f64::from(most)).max(least) as f32;
            factors.extend(row.chunks(share).map(|part| {
                let error = |factor: u8| low_bit::at_scale(part, scale * f32::from(factor), largest).1;
                let mut best = (1, error(1));
                for factor in 2..=most {
                    let error = error(factor);
                    if error < best.1 {
                        best = (factor, error);
                    }
                }
                best.0
            }));
            scale
        });
        let scales = own.collect();
        let lattice = Lattice {
            factors,
            filter: self.inputs,
            share,
            largest,
        };
        self.on(lattice, input, scales, activations)
    }

    /// A bias in the scale of the products.
    pub(super) fn stored_bias(&self, input: f32, scales: &[f32], bias: &[f32], activations: Activations) -> Vec<i64> {
        let most = activations.most_bias();
        let of = |bias: f32, scale: f32| {
            let stored = f64::from(bias) / (f64::from(input) * f64::from(scale));
            stored.round().clamp(-most, most) as i64
        };
        let biases = bias.chunks(self.positions.max(1)).zip(scales);
        let all = biases.flat_map(|(biases, &scale)| biases.iter().map(move |&bias| of(bias, scale)));
        all.collect()
    }
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
        // A bias for each output, or for each position of it.
        let positions = weights.shape.get(LOCAL - 2..).unwrap_or_default();
        let biases = [&[outputs], positions].concat();
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
                &biases,
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
            positions: 1,
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
    fn factors_end_in_zero_bits_and_scales_hardly_move() {
        let (input, output) = (|at: u16| 0.0231 * f32::from(at).cbrt(), 0.117_f32);
        let zeros = |at: u16, scale: f32| {
            let factor = Multiplier::from_real(f64::from(input(at)) * f64::from(scale) / f64::from(output));
            factor.expect("a factor").mantissa.trailing_zeros().min(EVEN_BITS)
        };
        let mut even = 0;
        for at in 1..200_u16 {
            let own = f32::from(at).sqrt() * 3e-4;
            let scale = with_even_factor(own, input(at), output);
            assert!(zeros(at, scale) >= zeros(at, own), "{at}: {own} {scale}");
            assert!(scale >= own && scale <= own * (1.0 + 6.2e-5), "{at}: {own} {scale}");
            even += usize::from(zeros(at, scale) == EVEN_BITS);
        }
        // Where steps of a scale are nearly steps of whole mantissas, there may be none near by.
        assert!(even >= 190, "{even}");
        // A scale without a factor stays.
        assert_eq!(with_even_factor(1e-30, 1e-6, 1e9), 1e-30);
    }

    #[test]
    fn weights_of_four_bits_are_products_that_fit_eight() {
        let weights: Vec<f32> = (0..44)
            .map(|i| ((i * i) as f32 * 0.37).sin() * (1 + i / 4 % 3) as f32)
            .collect();
        let layer = layer(&weights, &[0.5, -1.0]);
        let eight = layer.scales(0.1, "l", Activations::Int8).expect("scales");
        for group in [None, Some(4), Some(5), Some(64)] {
            let bits = LowBits { bits: 4, group };
            let stored = layer.of_four_bits(0.1, &eight, bits, Activations::Int8);
            let parts = 22_usize.div_ceil(bits.share(22));
            assert_eq!(stored.lattice.factors.len(), 2 * parts);
            for (at, &weight) in stored.weights.iter().enumerate() {
                let factor = stored.lattice.factors[at / 22 * parts + at % 22 / bits.share(22)] as i8;
                assert!((1..=18).contains(&factor) && weight % factor == 0 && (weight / factor).abs() <= 7);
            }
            let noise = |stored: &Stored| -> f64 {
                let all = stored.weights.iter().zip(&weights).enumerate();
                all.map(|(at, (&q, &w))| f64::from(w - f32::from(q) * stored.scales[at / 22]).powi(2))
                    .sum()
            };
            let none = layer.of_four_bits(0.1, &eight, LowBits { bits: 4, group: None }, Activations::Int8);
            assert!(noise(&stored) <= noise(&none), "{group:?}");
            // A channel of nothing keeps its bias, and all that has no gain is left at eight.
            assert_eq!(stored.bias.len(), 2);
        }
        assert!(layer.gains(LowBits {
            bits: 4,
            group: Some(4)
        }));
        assert!(!layer.gains(LowBits {
            bits: 4,
            group: Some(1)
        }));
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
