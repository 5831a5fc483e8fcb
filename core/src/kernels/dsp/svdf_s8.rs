//! int8 SVDF on the DSP extension: the features as [`super::linear_s8`] has them, two filters in a number.

use super::linear_s8;
use crate::kernels::primitives::svdf::{Dense, Over};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};

/// int8.
pub type S8 = Over<linear_s8::S8>;

impl Dense for linear_s8::S8 {
    fn of(layer: &Conv2dS8, form: Form) -> PackedConv2dS8 {
        PackedConv2dS8::of(layer, form)
    }

    fn form(op: &PackedConv2dS8) -> Form {
        op.form
    }
}
