//! The fewest instructions that a step's loops could take: its MACs through the kernel's inner loop, and the least requantising of every output.
//!
//! The figures are the kernels' own, beside their loops (`bound` in `core/src/kernels`); here is only which one belongs to a step.

use arenite::kernels::{Backend, compact, dsp, fpu, int, mve, scalar};
use arenite::ops::elementwise;
use arenite::{Step, Target};

use super::table::Board;

/// The bound of `step`, which has `macs` multiply-accumulates, packed for `target`, on `board`; `None` for steps without any whose kernel states
/// no other: softmax, copies, and pooling and sums of the scalar and the `int` backend.
pub fn bound(step: &Step, target: Target, board: &Board, macs: u64) -> Option<u64> {
    // What compilers vectorise by themselves.
    let vectors = matches!(board.timings, super::table::Core::A64 | super::table::Core::M55);
    let core = match target {
        Target::CortexM0 => int::Core::CortexM0,
        Target::Riscv32imac | Target::Riscv64gc => int::Core::Riscv32,
        _ => int::Core::CortexM3,
    };
    Some(match step {
        Step::IntConv2dS8(op) => int::conv2d::bound(op, core),
        Step::IntDepthwiseS8(op) => int::depthwise::bound(op, core),
        Step::IntDenseS8(op) => int::dense::bound(op, core),
        Step::IntSumS8(op) => int::sum::bound(op, core),
        Step::IntAddS8(op) => int::elementwise::bound(u64::from(elementwise::output_len(&op.loops)?), core),
        Step::DspConv2dS8(op) => dsp::conv2d::bound(op),
        Step::DspDepthwiseS8(op) => dsp::depthwise::bound(op),
        Step::DspSumS8(op) => dsp::sum::bound(op),
        Step::DspAvgPoolS8(op) | Step::DspMaxPoolS8(op) => dsp::pool2d::bound(&op.window),
        // Left shifts, which few channels have, only cost more.
        Step::MveConv2dS8(op) => mve::conv2d::bound(op, false),
        Step::MveDepthwiseS8(op) => mve::depthwise::bound(op, false),
        Step::MveConv2dF32(op) => mve::conv2d::bound_f32(op),
        Step::MveDepthwiseF32(op) => mve::depthwise_f32::bound(op),
        Step::MveSumS8(op) => {
            let limits = op.clamp.map(|limit| limit as i8);
            mve::elementwise::bound(u64::from(elementwise::output_len(&op.loops)?), op.zero[2] as i8, limits)
        }
        Step::MveAvgPoolS8(op) => mve::pool2d::bound(&op.window, true),
        Step::MveMaxPoolS8(op) => mve::pool2d::bound(&op.window, false),
        Step::CompactConv2dS8(op) => compact::conv2d::bound(op),
        Step::FpuConv2dF32(op) => fpu::conv2d::bound(op, target == Target::Aarch64),
        Step::FpuDepthwiseF32(op) => fpu::depthwise::bound(op, vectors),
        _ if macs > 0 && step.kernel().backend() == Backend::Scalar => scalar::bound(macs, vectors),
        _ => return None,
    })
}
