//! The ranges of the real numbers among an operator's parameters, for every importer and after every pass.

use super::{Op, UnaryKind};
use crate::error::{Error, Result};

/// Numbers that an attribute may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// Any number that is finite.
    Finite,
    /// A finite number that is not below zero.
    NotNegative,
    /// A finite number above zero.
    Positive,
    /// Any number, or none: an infinity.
    Bound,
}

impl Range {
    /// Refuses a number outside the range.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`], with the parameter's name.
    pub fn check(self, name: &str, value: f32) -> Result<f32> {
        let (holds, expected) = match self {
            Self::Finite => (value.is_finite(), "a finite number"),
            Self::NotNegative => (
                value.is_finite() && value >= 0.0,
                "a finite number that is not below zero",
            ),
            Self::Positive => (value.is_finite() && value > 0.0, "a finite number above zero"),
            Self::Bound => (!value.is_nan(), "a number"),
        };
        if holds {
            return Ok(value);
        }
        Err(Error::input(format!("{name} is {value}")).expected(expected))
    }
}

/// The real parameters of an operator: name, value, range.
fn parameters(op: &Op) -> Vec<(&'static str, f32, Range)> {
    use Range::{Bound, Finite, NotNegative, Positive};
    match op {
        Op::Unary(UnaryKind::Clamp { min, max }) => {
            vec![("the lower bound", *min, Bound), ("the upper bound", *max, Bound)]
        }
        Op::Unary(UnaryKind::LeakyRelu { alpha }) => vec![("the slope (alpha)", *alpha, Finite)],
        Op::BatchNorm { epsilon, momentum, .. } => {
            vec![("epsilon", *epsilon, NotNegative), ("momentum", *momentum, NotNegative)]
        }
        Op::Lrn { bias, alpha, beta, .. } => vec![
            ("bias", *bias, Finite),
            ("alpha", *alpha, Finite),
            ("beta", *beta, Finite),
        ],
        Op::Attention { scale } => vec![("the scale", *scale, Finite)],
        Op::RmsNorm { epsilon } => vec![("epsilon", *epsilon, NotNegative)],
        Op::Softmax { beta, .. } => vec![("beta", *beta, Finite)],
        Op::Pad { value, .. } => vec![("the padding's value", *value, Bound)],
        Op::UnidirectionalLstm { cell_clip, .. } => vec![("cell_clip", *cell_clip, NotNegative)],
        Op::Detections(detector) => {
            let scales = ["y_scale", "x_scale", "h_scale", "w_scale"]
                .into_iter()
                .zip(detector.scale);
            let limits = [
                ("nms_score_threshold", detector.threshold, Bound),
                ("nms_iou_threshold", detector.overlap, Finite),
            ];
            limits
                .into_iter()
                .chain(scales.map(|(name, scale)| (name, scale, Positive)))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Refuses an operator with a number that has no sense.
///
/// # Errors
/// [`crate::ErrorKind::Input`], naming the first of them.
pub(super) fn check(op: &Op) -> Result<()> {
    let mut numbers = parameters(op).into_iter();
    numbers.try_for_each(|(name, value, range)| range.check(name, value).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::train::MOMENTUM;

    #[test]
    fn numbers_outside_their_range_are_named() {
        let batch_norm = |epsilon| {
            check(&Op::BatchNorm {
                axis: 1,
                epsilon,
                momentum: MOMENTUM,
                trained: false,
            })
        };
        assert!(batch_norm(0.0).is_ok() && batch_norm(f32::MAX).is_ok());
        for epsilon in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1e-9] {
            let text = batch_norm(epsilon).expect_err("no epsilon").to_string();
            assert!(text.contains(&format!("epsilon is {epsilon}")), "{text}");
        }
        let clamp = |min, max| check(&Op::Unary(UnaryKind::Clamp { min, max }));
        assert!(clamp(f32::NEG_INFINITY, f32::INFINITY).is_ok());
        assert!(clamp(f32::NAN, 1.0).is_err() && clamp(0.0, f32::NAN).is_err());
        let softmax = |beta| check(&Op::Softmax { axis: 0, beta });
        assert!(softmax(-1.0).is_ok() && softmax(f32::INFINITY).is_err());
    }
}
