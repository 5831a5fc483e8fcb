//! int8 SVDF on Helium: the features as [`super::dense`] has them, filters by eights.

use super::dense;
use crate::kernels::svdf::{Dense, Over};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::packed_conv2d::Form;

/// int8.
pub type S8 = Over<dense::S8>;

impl Dense for dense::S8 {
    fn of(layer: &Conv2dS8, _: Form) -> Conv2dS8 {
        *layer
    }
}
