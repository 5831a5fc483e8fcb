//! How an f32 network became int8, for summaries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Report of a quantisation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantization {
    /// Samples that calibrated it.
    pub samples: usize,
    /// Samples that judged networks of mixed precision, where that is not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<usize>,
    /// Signal-to-noise ratio of the quantised network on these samples, before the last softmax, in dB; none where the signal is zero or the noise is.
    pub snr_db: Option<f64>,
    /// The same where no sample judges ranges that it has calibrated itself, every weight at its nearest integer. Ranges were chosen by it: others give less.
    pub cross_snr_db: Option<f64>,
    /// Estimate of the same on samples that nothing was chosen by; none of one sample, and where precision was chosen layer by layer. Files do not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Activations with a scale by the way in which it was chosen.
    pub ranges: BTreeMap<String, usize>,
    /// Pairs of layers whose channels were brought to like sizes.
    #[serde(default)]
    pub equalised: usize,
    /// Steps of recurrent layers and of normalisations, and sums that these normalise, whose activations are int16 in a network of int8.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub int16_inside: usize,
    /// Whether biases take up what rounded weights add on average.
    pub bias_corrected: bool,
    /// Whether weights are rounded for their layer's output.
    pub rounding_optimised: bool,
    /// Activations that never left their range. Files do not hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_left_range: Vec<String>,
    /// Activations that did, and the share of their values. Files do not hold them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_range: BTreeMap<String, f64>,
    /// Bits of a weight, where they are not eight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bits: Option<u8>,
    /// Neighbouring weights that share a factor; none: all of an output's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    /// Layers with such weights; the others' have eight bits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub low_bit_layers: usize,
    /// Layers that were to stay in f32.
    pub kept_f32: Vec<String>,
    /// Where precision was chosen layer by layer: how many layers have which.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub precisions: BTreeMap<String, usize>,
    /// Each layer's, and what its own rounding adds to the answers. Files do not hold it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layers: BTreeMap<String, LayerPrecision>,
    /// The networks that were measured and that no other beats in both size and noise, by rising size. Files do not hold them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub front: Vec<FrontPoint>,
}

/// Estimate of the quality on samples that no choice has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Signal-to-noise ratio, in dB.
    pub snr_db: f64,
    /// Margin by which such samples may have less, or more, in dB.
    pub spread_db: f64,
    /// Samples that judged.
    pub samples: usize,
    /// Parts of the samples, of which each was judged by a network of the others.
    pub folds: usize,
}

/// Number format of a layer, and the outputs' signal over noise, in dB, where nothing else of the network is rounded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerPrecision {
    /// `int4`, `int8`, `int16x8` or `f32`.
    pub precision: String,
    /// With its weights in four bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub int4_weights_snr_db: Option<f64>,
    /// With its weights in eight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub int8_weights_snr_db: Option<f64>,
    /// With its result in int8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub int8_result_snr_db: Option<f64>,
}

/// A network of several precisions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FrontPoint {
    /// Bytes of its file.
    pub model_bytes: u64,
    /// Signal to noise of its answers.
    pub snr_db: Option<f64>,
    /// Layers by precision.
    pub layers: BTreeMap<String, usize>,
    /// Whether it is the one that was taken.
    pub chosen: bool,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Quantization {
    /// Returns the part that a file holds: it lies in a device's flash.
    pub fn brief(&self) -> Self {
        Self {
            estimate: None,
            never_left_range: Vec::new(),
            left_range: BTreeMap::new(),
            layers: BTreeMap::new(),
            front: Vec::new(),
            ..self.clone()
        }
    }
}

/// How the weights of an f32 network are stored in fewer bits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WeightOnlyReport {
    /// Bits of a weight.
    pub bits: u8,
    /// Neighbouring weights that share a scale; none: all of an output's.
    pub group: Option<usize>,
    /// Layers whose weights are stored so.
    pub layers: usize,
    /// Squares of their weights over squares of what rounding changed, in dB; none where it changed nothing.
    pub weights_snr_db: Option<f64>,
    /// The layer whose weights it changed most, and its own ratio.
    pub worst: Option<(String, f64)>,
    /// Layers that were to keep theirs.
    pub kept_f32: Vec<String>,
}
