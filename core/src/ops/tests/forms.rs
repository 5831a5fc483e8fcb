//! Int8 forms of operators that TensorFlow Lite has in f32 alone, or not at all.

use super::{AT, accepted, broken};
use crate::ops::fault::Fault;
use crate::ops::locally_connected::LocallyConnectedS8;
use crate::ops::lrn::LrnS8;
use crate::quant::LrnI8;

#[test]
fn int8_forms_of_float_operators_have_limits() {
    let local = LocallyConnectedS8 {
        output: AT,
        input: AT,
        weights: 0,
        bias: 0,
        multipliers: 0,
        batch: 1,
        input_shape: [1, 3, 4],
        channels: 2,
        kernel: [2, 3],
        input_zero_point: 0,
        output_zero_point: 0,
        clamp: [7, 7],
    };
    broken(&local, Fault::Quantisation, &[|op| op.clamp = [8, 7]]);
    broken(
        &local,
        Fault::Shape,
        &[
            |op| op.input_shape[1] = u16::MAX,
            |op| op.input_shape[2] = u16::MAX,
            |op| op.kernel[0] = 0,
            |op| op.kernel[1] = 0,
            |op| op.channels = 0,
        ],
    );
    accepted(&local, &[|op| op.input_shape[1] = u16::MAX - 1]);
    let lrn = LrnS8 {
        output: AT,
        input: AT,
        table: 0,
        pixels: 3,
        channels: 1 << 20,
        radius: 2,
        lrn: LrnI8 {
            growth: 1 << 30,
            shift: 63,
            octaves: 44,
        },
        input_zero_point: 0,
        output_zero_point: 0,
    };
    broken(
        &lrn,
        Fault::Quantisation,
        &[
            |op| op.lrn.shift = 64,
            |op| op.lrn.octaves = 0,
            |op| op.lrn.octaves = 45,
        ],
    );
    // Squares of 66,051 differences have 32 bits.
    accepted(&lrn, &[|op| op.radius = 33_025]);
    broken(
        &lrn,
        Fault::Shape,
        &[|op| op.radius = 33_026, |op| op.channels = 0, |op| op.pixels = 1 << 12],
    );
}
