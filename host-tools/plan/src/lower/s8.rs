//! Parameters of int8 layers with weights.

use arenite::ops::window::Window2d;
use arenite::quant::Multiplier;

use super::numbers::Affine;

/// Parameters of an int8 convolution or fully connected layer beside its operands.
pub(super) struct S8 {
    pub(super) window: Window2d,
    pub(super) groups: u16,
    /// Scale and zero point.
    pub(super) input_q: Affine,
    /// Scale and zero point.
    pub(super) output_q: Affine,
    pub(super) clamp: [i8; 2],
    /// One for each output channel.
    pub(super) multipliers: Vec<Multiplier>,
}
