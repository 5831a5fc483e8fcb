//! A channel as the reference computes it, and the short forms of its requantising.

use core::ops::RangeInclusive;

use super::requantize::Short;
use crate::kernels::primitives::requantize::steps::Requantize;
use crate::ops::conv2d::Conv2dS8;
use crate::quant::Multiplier;

/// A channel's reference arithmetic, and the accumulators that its weights allow.
pub(super) struct Channel {
    /// With the zero-point correction.
    pub bias: i64,
    pub requantize: Requantize,
    pub range: (i64, i64),
}

impl Channel {
    pub(super) fn new<P>(
        op: &Conv2dS8<P>,
        weights: impl Iterator<Item = i8>,
        [bias, mantissa, shift]: [i32; 3],
    ) -> Self {
        let mut bias = i64::from(bias);
        let (mut least, mut largest) = (0, 0);
        for w in weights.map(i64::from) {
            bias -= w * i64::from(op.input_zero_point);
            least += (w * 127).min(w * -128);
            largest += (w * 127).max(w * -128);
        }
        let requantize = Requantize {
            multiplier: Multiplier {
                mantissa,
                shift: shift as i8,
            },
            zero_point: i32::from(op.output_zero_point),
            clamp: op.clamp.map(i32::from),
        };
        Self {
            bias,
            requantize,
            range: (bias + least, bias + largest),
        }
    }

    pub(super) fn short(&self, shift: u32, k: RangeInclusive<u32>, signed: bool) -> Option<Short> {
        Short::find(&self.requantize, self.range, shift, k, signed)
    }
}
