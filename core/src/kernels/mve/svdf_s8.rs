//! int8 SVDF on Helium: the features as [`super::linear_s8`] has them, filters by eights.

use super::linear_s8;
use crate::kernels::primitives::svdf::{Dense, Over};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::packed_conv2d::Form;

/// int8.
pub type S8 = Over<linear_s8::S8>;

impl Dense for linear_s8::S8 {
    fn of(layer: &Conv2dS8, _: Form) -> Conv2dS8 {
        *layer
    }
}
