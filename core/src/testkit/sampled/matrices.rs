//! Products of matrices.

use super::elementwise::loops;
use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::linear::LinearF32;
use crate::ops::matmul::MatMulInt;
use crate::quant::Multiplier;
use crate::tensor::DType;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data};

impl Generated for LinearF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = LinearF32 {
            output: Slot::default(),
            input: Slot::default(),
            weights: Slot::default(),
            bias: Slot::default(),
            rows: draw.extent(4),
            inputs: draw.extent(30),
            outputs: draw.extent(9),
            clamp: draw.float_limits(),
        };
        Some((op, Data::floats(draw.seed(), Alike::NEAR_FLOATS)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::linear_f32::f32
    }
}

impl Generated for MatMulInt {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::I8, DType::I16])?;
        let wide = dtype == DType::I16;
        let shape = [draw.extent(7), draw.extent(24), draw.extent(20)];
        let [mut zeros, of_result] = [[draw.zero(), draw.zero()], [draw.zero(), 0]];
        if wide && !draw.one_in(4) {
            zeros = [0, 0];
        }
        if draw.one_in(8) {
            zeros = [draw.pick(&[-0x8000, 0x7fff])?, draw.pick(&[-0x8000, 0x7fff, 0])?];
        }
        let [zero_a, zero_b] = zeros;
        let multiplier = draw.multiplier(if wide { [-18, -12] } else { [-9, -5] });
        let op = MatMulInt {
            output: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            loops: loops(draw, 3),
            dtype,
            shape,
            transpose_a: draw.coin(),
            transpose_b: draw.coin(),
            zero: [zero_a, zero_b, of_result[0]],
            multiplier: Multiplier {
                shift: if wide {
                    multiplier.shift.min(7)
                } else {
                    multiplier.shift
                },
                ..multiplier
            },
            clamp: draw.limits(dtype),
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::matmul::quantised
    }
}
