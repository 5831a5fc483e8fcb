//! Which kernel computes an int8 step: the first of the target's backends that supports it. The one place that chooses.
//!
//! A candidate turns the operator and its plain weights (OHWI, with the model's own bias) into a step and the bytes that its kernel
//! reads. To add a kernel: a function here and its line in the list of its operator.

use arenite::kernels::kernel::Kernel;
use arenite::kernels::{Backend, compact, dsp, fpu, int, mve};
use arenite::ops::conv2d::{Conv2dF32, Conv2dS8};
use arenite::ops::elementwise_int::BinaryInt;
use arenite::ops::operator::{Needs, Placed};
use arenite::ops::packed_conv2d::{Form, PackedConv2dS8};
use arenite::ops::packed_sum::PackedSumS8;
use arenite::ops::pool2d::PoolInt;
use arenite::{KernelId, Step, Target};

use crate::error::{Error, Result};
use crate::program::{Place, Program};

/// The constants of an int8 convolution in their plain form.
pub(super) struct Plain<'a> {
    /// OHWI.
    pub(super) weights: &'a [i8],
    /// `[bias, mantissa, shift]` of each output channel; the bias is the model's own.
    pub(super) channels: &'a [[i32; 3]],
}

/// A kernel's choice: what to put in the weights section, and the step once the offsets are known.
pub(super) struct Choice {
    /// Packed weights, in the kernel's layout.
    pub(super) weights: Vec<u8>,
    /// Channel records for kernels that keep them apart; empty for those that pack them with the weights.
    pub(super) records: Vec<i32>,
    /// The step, from the offsets of `weights` and `records`.
    pub(super) step: Box<dyn Fn(u32, u32) -> Step<Place>>,
}

/// The backends whose kernels are tried for a program, best first.
pub(super) fn backends(program: &Program) -> &'static [Backend] {
    match program.target {
        _ if program.size => &[Backend::Compact, Backend::Scalar],
        Target::CortexM0 | Target::CortexM3 | Target::Riscv32imac | Target::Riscv64gc => {
            &[Backend::Int, Backend::Scalar]
        }
        Target::CortexM4 | Target::CortexM7 | Target::CortexM33 => &[Backend::Dsp, Backend::Fpu, Backend::Scalar],
        Target::CortexM55 => &[Backend::Mve, Backend::Scalar],
        // Blocks of sums in registers: less than half of the scalar kernel's instructions (docs/full-size.md).
        Target::Aarch64 => &[Backend::Fpu, Backend::Scalar],
        _ => &[Backend::Scalar],
    }
}

/// Chooses the kernel of a convolution, depthwise convolution or (as a convolution of one pixel) fully connected layer.
pub(super) fn conv2d_s8(program: &Program, op: Conv2dS8<Place>, plain: &Plain<'_>) -> Option<Choice> {
    let rules = op.parameters();
    let depthwise = op.groups > 1 && op.groups == op.window.input[2];
    let one_pixel = op.window.output[..2] == [1, 1] && op.window.input[..2] == [1, 1];
    backends(program).iter().find_map(|backend| match (backend, depthwise) {
        (Backend::Scalar, _) => Some(scalar(op, plain, depthwise)),
        (Backend::Compact, _) if compact::conv2d::supports(&rules) => {
            records::<compact::conv2d::S8>(op, plain, compact::conv2d::pack, Step::CompactConv2dS8)
        }
        (Backend::Int, false) if one_pixel => records::<int::dense::S8>(op, plain, int::dense::pack, Step::IntDenseS8),
        (Backend::Int, false) => records::<int::conv2d::S8>(op, plain, int::conv2d::pack, Step::IntConv2dS8),
        (Backend::Int, true) => records::<int::depthwise::S8>(op, plain, int::depthwise::pack, Step::IntDepthwiseS8),
        (Backend::Mve, false) if mve::conv2d::supports(&rules) => {
            packed::<mve::conv2d::S8>(op, plain, mve::conv2d::pack, Step::MveConv2dS8)
        }
        (Backend::Mve, true) if mve::depthwise::supports(&rules) => {
            packed::<mve::depthwise::S8>(op, plain, mve::depthwise::pack, Step::MveDepthwiseS8)
        }
        (Backend::Dsp, false) if dsp::conv2d::supports(&rules) => {
            stream::<dsp::conv2d::S8>(op, plain, dsp::conv2d::pack, Step::DspConv2dS8)
        }
        (Backend::Dsp, true) if dsp::depthwise::supports(&rules) => {
            stream::<dsp::depthwise::S8>(op, plain, dsp::depthwise::pack, Step::DspDepthwiseS8)
        }
        (Backend::Mve | Backend::Dsp | Backend::Fpu | Backend::Compact, _) => None,
    })
}

/// The weights of an f32 kernel that has a layout of its own.
pub(super) enum PackedF32 {
    /// The whole of them.
    Values(Vec<f32>),
    /// OHWI in blocks of this many channels, channel innermost: [`Lower::blocked`](super::context::Lower::blocked) streams them.
    Blocks(usize),
}

/// A kernel of an f32 convolution: the step that it makes, and its weights.
pub(super) type ChoiceF32 = (fn(Conv2dF32<Place>) -> Step<Place>, PackedF32);

/// Chooses the kernel of an f32 convolution or depthwise convolution whose OHWI weights `weights` reads; `None` for the scalar kernel, which reads
/// them as they are.
pub(super) fn conv2d_f32(
    program: &Program,
    placed: &Conv2dF32<Place>,
    weights: impl FnOnce() -> Result<Vec<f32>>,
) -> Result<Option<ChoiceF32>> {
    type Pack = fn(&Conv2dF32, &[f32], &mut [f32]) -> Option<()>;
    type Make = fn(Conv2dF32<Place>) -> Step<Place>;
    let op = &placed.parameters();
    let candidate: Option<(Needs, Pack, Make)> = backends(program).iter().find_map(|backend| match backend {
        Backend::Fpu if fpu::conv2d::supports(op) => Some((
            fpu::conv2d::F32::needs(op),
            fpu::conv2d::pack as Pack,
            Step::FpuConv2dF32 as Make,
        )),
        Backend::Fpu if fpu::depthwise::supports(op) => Some((
            fpu::depthwise::F32::needs(op),
            fpu::depthwise::pack,
            Step::FpuDepthwiseF32,
        )),
        Backend::Mve if mve::conv2d::supports_f32(op) => {
            Some((mve::conv2d::F32::needs(op), mve::conv2d::pack_f32, Step::MveConv2dF32))
        }
        Backend::Mve if mve::depthwise_f32::supports(op) => Some((
            mve::depthwise_f32::F32::needs(op),
            mve::depthwise_f32::pack,
            Step::MveDepthwiseF32,
        )),
        _ => None,
    });
    let Some((needs, pack, step)) = candidate else {
        return Ok(None);
    };
    let blocked = step(*placed).kernel() == KernelId::FpuConv2dF32;
    if blocked && usize::from(op.window.output[2]).is_multiple_of(fpu::products::CHANNELS) {
        return Ok(Some((step, PackedF32::Blocks(fpu::products::CHANNELS))));
    }
    let mut packed = vec![0.0; needs.weights as usize / 4];
    pack(op, &weights()?, &mut packed).ok_or_else(|| Error::internal("weights of another length than the window's"))?;
    Ok(Some((step, PackedF32::Values(packed))))
}

/// Chooses the kernel of an integer maximum (`max`) or average pooling.
pub(super) fn pool_int(program: &Program, op: PoolInt<Place>, max: bool) -> Step<Place> {
    first_pool_int(backends(program), op, max)
}

fn first_pool_int(backends: &[Backend], op: PoolInt<Place>, max: bool) -> Step<Place> {
    let candidate = |backend: &Backend| match (backend, max) {
        (Backend::Dsp, true) => kernel::<dsp::pool2d::Max>(op, Step::DspMaxPoolS8),
        (Backend::Dsp, false) => kernel::<dsp::pool2d::Average>(op, Step::DspAvgPoolS8),
        (Backend::Mve, true) => kernel::<mve::pool2d::MaxS8>(op, Step::MveMaxPoolS8),
        (Backend::Mve, false) => kernel::<mve::pool2d::AvgS8>(op, Step::MveAvgPoolS8),
        (Backend::Int, true) => kernel::<int::pool2d::Max>(op, Step::IntMaxPoolS8),
        (Backend::Int, false) => kernel::<int::pool2d::Average>(op, Step::IntAvgPoolS8),
        (Backend::Compact, true) => kernel::<compact::pool2d::Max>(op, Step::CompactMaxPoolS8),
        (Backend::Compact, false) => kernel::<compact::pool2d::Average>(op, Step::CompactAvgPoolS8),
        (Backend::Scalar | Backend::Fpu, _) => None,
    };
    let scalar = if max { Step::MaxPoolInt } else { Step::AvgPoolInt };
    backends.iter().find_map(candidate).unwrap_or_else(|| scalar(op))
}

/// The step of a kernel, where it computes the operator.
fn kernel<K: Kernel<Op = PoolInt>>(op: PoolInt<Place>, step: fn(PoolInt<Place>) -> Step<Place>) -> Option<Step<Place>> {
    K::supports(&op.parameters()).then(|| step(op))
}

/// Chooses the kernel of an integer operator of two operands.
pub(super) fn binary_int(program: &Program, op: BinaryInt<Place>) -> Step<Place> {
    let rules = op.clone().parameters();
    let backend = backends(program).iter().find(|_| int::elementwise::supports(&rules));
    let sum = match backend {
        Some(Backend::Dsp | Backend::Int | Backend::Compact) => linear_sum(&op),
        _ => None,
    };
    match (backend, sum) {
        (Some(Backend::Dsp), Some(sum)) => Step::DspSumS8(sum),
        // Less code than the scalar kernel of all integer operators.
        (Some(Backend::Int | Backend::Compact), Some(sum)) => Step::IntSumS8(sum),
        (Some(Backend::Int | Backend::Compact), None) => Step::IntAddS8(op),
        (Some(Backend::Mve), _) if mve::elementwise::supports_sum(&rules) => Step::MveSumS8(op),
        _ => Step::BinaryInt(op),
    }
}

/// The linear form of an int8 sum of two tensors of one shape, where one gives the same bits.
fn linear_sum(op: &BinaryInt<Place>) -> Option<PackedSumS8<Place>> {
    let narrow = |n: i32| i8::try_from(n).ok();
    let [za, zb, zy] = op.zero.map(narrow);
    let [low, high] = op.clamp.map(narrow);
    let [ma, mb, my] = op.multipliers;
    let sum = dsp::sum::Sum {
        zero_points: [za?, zb?],
        multipliers: [ma, mb],
        output_multiplier: my,
        output_zero_point: zy?,
        clamp: [low?, high?],
    };
    let (factors, offset) = sum.find()?;
    let count = arenite::ops::elementwise::output_len(&op.loops)?;
    Some(PackedSumS8 {
        output: op.output,
        a: op.a,
        b: op.b,
        count,
        factors,
        offset,
    })
}

fn scalar(op: Conv2dS8<Place>, plain: &Plain<'_>, depthwise: bool) -> Choice {
    let step = if depthwise { Step::DepthwiseS8 } else { Step::Conv2dS8 };
    Choice {
        weights: plain.weights.iter().map(|&w| w as u8).collect(),
        records: plain.channels.as_flattened().to_vec(),
        step: Box::new(move |weights, channels| {
            step(Conv2dS8 {
                weights,
                channels,
                ..op
            })
        }),
    }
}

/// Packs plain weights (OHWI) and channel records into a kernel's stream.
type Pack = fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8]) -> Option<()>;

/// A kernel that packs weights and channel records into one stream.
fn packed<K: Kernel<Op = Conv2dS8>>(
    op: Conv2dS8<Place>,
    plain: &Plain<'_>,
    pack: Pack,
    step: fn(Conv2dS8<Place>) -> Step<Place>,
) -> Option<Choice> {
    let mut weights = room(K::needs(&op.parameters()))?;
    pack(&op.parameters(), plain.weights, plain.channels, &mut weights)?;
    // The records are in the stream: their field points at it too.
    let step = Box::new(move |weights, _| {
        step(Conv2dS8 {
            weights,
            channels: weights,
            ..op
        })
    });
    Some(Choice {
        weights,
        records: Vec::new(),
        step,
    })
}

/// Packs plain weights (OHWI) and channel records into a stream, and gives the operator that reads it.
type PackStream = fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8]) -> Option<PackedConv2dS8>;

/// A kernel with an operator of its own for packed streams.
fn stream<K: Kernel<Op = PackedConv2dS8>>(
    op: Conv2dS8<Place>,
    plain: &Plain<'_>,
    pack: PackStream,
    step: fn(PackedConv2dS8<Place>) -> Step<Place>,
) -> Option<Choice> {
    // Packing chooses the form, and the stream's size may depend on it: the first form whose size packing accepts.
    [Form::Folded, Form::Positive, Form::Signed, Form::General]
        .into_iter()
        .find_map(|form| {
            let sizing = PackedConv2dS8 {
                output: op.output,
                input: op.input,
                scratch: op.scratch,
                weights: 0,
                window: op.window,
                input_zero_point: op.input_zero_point,
                form,
            };
            let mut weights = room(K::needs(&sizing.parameters()))?;
            let packed = pack(&op.parameters(), plain.weights, plain.channels, &mut weights)?;
            let form = packed.form;
            let step = Box::new(move |weights, _| {
                step(PackedConv2dS8 {
                    weights,
                    form,
                    ..sizing
                })
            });
            Some(Choice {
                weights,
                records: Vec::new(),
                step,
            })
        })
}

/// Packs plain weights (OHWI) and channel records into a kernel's weights and records.
type PackRecords = fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8], &mut [[i32; 3]]) -> Option<()>;

/// A kernel that keeps channel records beside its weights.
fn records<K: Kernel<Op = Conv2dS8>>(
    op: Conv2dS8<Place>,
    plain: &Plain<'_>,
    pack: PackRecords,
    step: fn(Conv2dS8<Place>) -> Step<Place>,
) -> Option<Choice> {
    let mut weights = room(K::needs(&op.parameters()))?;
    let mut records = vec![[0; 3]; plain.channels.len()];
    pack(
        &op.parameters(),
        plain.weights,
        plain.channels,
        &mut weights,
        &mut records,
    )?;
    let step = Box::new(move |weights, channels| {
        step(Conv2dS8 {
            weights,
            channels,
            ..op
        })
    });
    Some(Choice {
        weights,
        records: records.into_flattened(),
        step,
    })
}

/// Room for packed weights; `None` where the kernel's needs say that it cannot run the step at all.
fn room(needs: Needs) -> Option<Vec<u8>> {
    (needs.weights < u32::MAX && needs.scratch < u32::MAX).then(|| vec![0; needs.weights as usize])
}

#[cfg(test)]
mod tests {
    use arenite::DType;
    use arenite::ops::window::Window2d;

    use super::*;

    /// A pooling of the whole of an input.
    fn global(input: [u16; 3]) -> PoolInt<Place> {
        PoolInt {
            output: Place::Scratch,
            input: Place::Scratch,
            dtype: DType::I8,
            window: Window2d {
                batch: 1,
                input,
                output: [1, 1, input[2]],
                kernel: [input[0], input[1]],
                stride: [1, 1],
                dilation: [1, 1],
                padding: [0, 0],
            },
            clamp: [-128, 127],
        }
    }

    #[test]
    fn averages_beyond_32_bits_go_to_the_kernel_that_has_64() {
        for backend in [Backend::Int, Backend::Dsp, Backend::Mve, Backend::Compact] {
            let kernel = |op, max| first_pool_int(&[backend, Backend::Scalar], op, max).kernel().backend();
            assert_eq!(kernel(global([4095, 4081, 1]), false), backend);
            assert_eq!(kernel(global([4096, 4081, 1]), false), Backend::Scalar);
            // A maximum sums nothing.
            assert_eq!(kernel(global([4096, 4081, 1]), true), backend);
        }
    }
}
