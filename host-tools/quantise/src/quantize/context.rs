//! Context that all parts of a calibration read.

use super::activations::Activations;
use super::evaluate::Samples;
use super::grid::Grid;
use crate::graph::LowBits;
use crate::weights::Weights;

/// Common part of the network's forms.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) weights: &'a Weights,
    pub(super) kept: &'a [bool],
    pub(super) samples: &'a Samples,
    pub(super) threads: usize,
    pub(super) grid: Option<Grid>,
    pub(super) activations: Activations,
    pub(super) low_bits: Option<LowBits>,
    pub(super) float_ports: [bool; 2],
    /// Whether the caller gives integers: an input has one scale then, whatever its columns are.
    pub(super) integer_inputs: bool,
    /// Whether normalisations may be of int16.
    pub(super) widens: bool,
    /// Multiply-accumulates that a search may take.
    pub(super) spend: u64,
}
