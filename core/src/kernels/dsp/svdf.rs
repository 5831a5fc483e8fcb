//! int8 SVDF on the DSP extension: the features as [`super::dense`] has them, two filters in a number.

use super::dense;
use crate::kernels::svdf::{Dense, Over};
use crate::ops::conv2d::Conv2dS8;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};

/// int8.
pub type S8 = Over<dense::S8>;

impl Dense for dense::S8 {
    fn of(layer: &Conv2dS8, form: Form) -> PackedConv2dS8 {
        PackedConv2dS8::of(layer, form)
    }

    fn form(op: &PackedConv2dS8) -> Form {
        op.form
    }
}
