//! Which kernel does a job: the first candidate, in the order of the target's backends, that is meant for it, or of int8 convolutions one that takes fewer
//! cycles. The one place that chooses; what there is to choose from, the kernels say themselves (`arenite::kernels::api::candidate`).

use std::convert::Infallible;

use arenite::kernels::api::candidate::{Job, JobKind, Layout, PlainS8, PlainSvdf};
use arenite::kernels::dsp::linear_s8;
use arenite::kernels::packed::conv2d_s8_winograd;
use arenite::kernels::{mve, portable};
use arenite::ops::conv2d::{Conv2dF32, Conv2dS8};
use arenite::ops::elementwise_int::BinaryInt;
use arenite::ops::linear::LinearF32;
use arenite::ops::pool2d::PoolInt;
use arenite::ops::svdf::PackedSvdfS8;
use arenite::{KernelId, Slot, Step, Target};

use super::context::Cost;
use super::linear_sums;
use crate::error::{Error, Result};
use crate::program::{Place, Program};

/// A step whose constants are still to be added to the program's, and what they are.
pub(super) struct Choice {
    pub(super) step: Step<Place>,
    pub(super) constants: Constants,
}

/// Constants that a kernel wants in the weights section.
pub(super) enum Constants {
    /// The weights as the graph has them, and the channel records.
    Plain,
    /// The weights in blocks of this many output channels: [`Lower::blocked`](super::context::Lower::blocked) streams them.
    Blocks(usize),
    /// In the kernel's own layout; the records are empty for kernels that pack them with the weights.
    Packed { weights: Vec<u8>, records: Vec<i32> },
}

/// The kernels that packing may choose from for `program`, best first; with `spend` those, too, that take flash for speed.
fn candidates(program: &Program, spend: bool) -> impl Iterator<Item = KernelId> {
    let spend = spend && spends_flash(program.target);
    KernelId::candidates(program.target, program.size).filter(move |kernel| spend || !kernel.spends_flash())
}

/// Whether flash buys instructions: on cores without multiplications of several bytes at once. The others' kernels come before.
pub const fn spends_flash(target: Target) -> bool {
    matches!(target, Target::CortexM0 | Target::CortexM3 | Target::Riscv32imac)
}

/// Whether `int`'s kernels are the first of a target: its cores multiply one number at a time.
pub(super) fn has_no_vectors(target: Target) -> bool {
    let mut kernels = KernelId::candidates(target, false).filter(|kernel| kernel.job() == Some(JobKind::Conv2dS8));
    kernels.find(|kernel| !kernel.spends_flash()) == Some(KernelId::IntConv2dS8)
}

/// Whether what a step spends of the flash buys instructions, or what it adds to a program saves memory.
fn pays(step: &Step<Place>) -> bool {
    match step {
        Step::DspDenseS8(op) => linear_s8::pays(op),
        Step::DenseS8(op) => portable::linear_s8::pays(op),
        Step::MveDenseS8(op) => mve::linear_s8::pays(op),
        Step::IntWinogradConv2dS8(op) => conv2d_s8_winograd::pays(&op.window),
        _ => true,
    }
}

/// The first step that one of the candidates of `program` makes of what `state` says of its kind of job.
fn first<'a>(
    (program, kernels): (&Program, impl Iterator<Item = KernelId>),
    mut state: impl FnMut(JobKind) -> Option<Job<'a, Place>>,
    mut pack: impl FnMut(&Step<Place>, &Job<'a, Place>) -> Result<Option<Constants>>,
) -> Result<Choice> {
    for kernel in kernels {
        let Some(job) = kernel.job().and_then(&mut state) else {
            continue;
        };
        let Some(step) = Step::candidate(kernel, &job).filter(pays) else {
            continue;
        };
        if let Some(constants) = pack(&step, &job)? {
            return Ok(Choice { step, constants });
        }
    }
    Err(Error::internal(format!(
        "no backend of {} computes it",
        program.target.name()
    )))
}

/// Chooses the kernel of a convolution, depthwise convolution or (as a convolution of one pixel) fully connected layer: the first candidate, or the one
/// behind it that takes the fewest cycles, as the tracked tables estimate them, where they are a twentieth fewer, and neither more flash nor more scratch. With
/// `--size` the first.
///
/// `spend`: whether one may be taken that spends flash; `cost`: the estimate; `without`: those that may not be taken.
pub(super) fn conv2d_s8(
    program: &Program,
    op: Conv2dS8<Place>,
    plain: PlainS8<'_>,
    spend: bool,
    (cost, without): (Cost, &[KernelId]),
) -> Result<Choice> {
    let wanted = |kernel: &KernelId| !without.contains(kernel);
    let job = Job::Conv2dS8(op, plain);
    let state = |kind| (kind == JobKind::Conv2dS8).then_some(job.clone());
    let choice = |step: Step<Place>| {
        let constants = match step.layout() {
            Layout::Plain => Some(Constants::Plain),
            // int8 weights are in memory anyway.
            Layout::Own | Layout::Blocks(_) => packed(&step, &job, plain.channels.len()),
        };
        constants.map(|constants| Choice { step, constants })
    };
    let mut best = first(
        (program, candidates(program, spend).filter(wanted)),
        state,
        |step, _| Ok(choice(step.clone()).map(|choice| choice.constants)),
    )?;
    let least_of = |choice: &Choice| match &choice.constants {
        Constants::Packed { weights, records } => {
            let (step, constants) = unplaced(&choice.step, weights, records);
            cost(program.target, &step, &constants)
        }
        Constants::Plain | Constants::Blocks(_) => None,
    };
    if program.size || spend {
        return Ok(best);
    }
    let Some(mut least) = least_of(&best) else {
        return Ok(best);
    };
    let first = best.step.kernel();
    let kernels = candidates(program, false).filter(|kernel| wanted(kernel) && kernel.job() == Some(JobKind::Conv2dS8));
    for kernel in kernels.skip_while(|&kernel| kernel != first).skip(1) {
        let fits = |step: &Step<Place>| {
            step.layout() == Layout::Own
                && pays(step)
                && constant_bytes(step) <= constant_bytes(&best.step)
                && step.needs().scratch <= best.step.needs().scratch
        };
        let Some(other) = Step::candidate(kernel, &job).filter(fits).and_then(&choice) else {
            continue;
        };
        match least_of(&other) {
            Some(found) if found.saturating_mul(20) < least.saturating_mul(19) => (best, least) = (other, found),
            _ => {}
        }
    }
    Ok(best)
}

/// Bytes of the constants of a convolution whose kernel has them in a layout of its own: weights, and a record for each output channel.
pub fn constant_bytes<P: arenite::Place>(step: &Step<P>) -> u64 {
    let outputs = step.clone().window_mut().map_or(0, |window| window.output[2]);
    let records = if step.has_records() {
        size_of::<[i32; 3]>() as u64 * u64::from(outputs)
    } else {
        0
    };
    u64::from(step.needs().weights) + records
}

/// A step without places in memory, and its constants from 0 on.
fn unplaced(step: &Step<Place>, weights: &[u8], records: &[i32]) -> (Step, Vec<u8>) {
    let Ok(mut step) = step.clone().map(&mut |_| Ok::<_, Infallible>(Slot::default()));
    let mut constants = weights.to_vec();
    constants.resize(constants.len().next_multiple_of(4), 0);
    step.set_constants(0, constants.len() as u32);
    constants.extend(records.iter().flat_map(|word| word.to_le_bytes()));
    (step, constants)
}

/// Chooses a kernel for the weights of four bits that `job` states, where the target has one for them: the scalar one takes weights and factors of its own.
pub(super) fn low_bits_s8(program: &Program, job: &Job<'_, Place>) -> Option<Choice> {
    let (kind, outputs) = match job {
        Job::Conv2dS8W4(_, plain) => (JobKind::Conv2dS8W4, plain.channels.len()),
        Job::Conv2dS8Groups(_, plain, _) => (JobKind::Conv2dS8Groups, plain.channels.len()),
        _ => return None,
    };
    let kernels = candidates(program, false).filter(|kernel| kernel.job() == Some(kind));
    let mut steps = kernels.filter_map(|kernel| Step::candidate(kernel, job));
    steps.find_map(|step| {
        let constants = packed(&step, job, outputs)?;
        Some(Choice { step, constants })
    })
}

/// Chooses a kernel for an SVDF where the target has one for its constants: the scalar one takes them as they are.
pub(super) fn svdf_s8(program: &Program, op: PackedSvdfS8<Place>, plain: PlainSvdf<'_>) -> Option<Choice> {
    let kernels = candidates(program, false).filter(|kernel| kernel.job() == Some(JobKind::SvdfS8));
    let job = Job::SvdfS8(op, plain);
    let mut steps = kernels.filter_map(|kernel| Step::candidate(kernel, &job));
    steps.find_map(|step| {
        let constants = packed(&step, &job, 0)?;
        Some(Choice { step, constants })
    })
}

/// Chooses the kernel of an f32 convolution or depthwise convolution whose OHWI weights `weights` reads.
pub(super) fn conv2d_f32(
    program: &Program,
    op: Conv2dF32<Place>,
    weights: impl Fn() -> Result<Vec<f32>>,
) -> Result<Choice> {
    let state = |kind| (kind == JobKind::Conv2dF32).then_some(Job::Conv2dF32(op, &[]));
    first((program, candidates(program, false)), state, |step, _| {
        match step.layout() {
            Layout::Plain => Ok(Some(Constants::Plain)),
            Layout::Blocks(channels) => Ok(Some(Constants::Blocks(channels))),
            Layout::Own => {
                let wrong = || Error::internal("weights of another length than the window's");
                let constants = packed(step, &Job::Conv2dF32(op, &weights()?), 0);
                constants.map(Some).ok_or_else(wrong)
            }
        }
    })
}

/// Whether a candidate for f32 convolutions wants a bias where the model has none.
pub(super) fn wants_bias_f32(program: &Program) -> bool {
    candidates(program, false).any(|kernel| kernel.job() == Some(JobKind::Conv2dF32) && kernel.wants_bias())
}

/// The constants of `step` in the layout of its kernel, with as many records as `channels` where it keeps them apart. `None` where the kernel cannot run the
/// step at all, which its needs say, or cannot pack these values.
fn packed(step: &Step<Place>, job: &Job<'_, Place>, channels: usize) -> Option<Constants> {
    let needs = step.needs();
    let mut weights =
        (needs.weights < u32::MAX && needs.scratch < u32::MAX).then(|| vec![0; needs.weights as usize])?;
    let mut records = vec![[0; 3]; if step.has_records() { channels } else { 0 }];
    step.pack(&job.parameters(), &mut weights, &mut records)?;
    Some(Constants::Packed {
        weights,
        records: records.into_flattened(),
    })
}

/// The number of channels that the kernels of int8 convolutions take at a time.
pub fn channels_at_a_time(target: Target, size: bool) -> usize {
    let candidates = KernelId::candidates(target, size);
    let convolutions = candidates.filter(|kernel| kernel.job() == Some(JobKind::Conv2dS8));
    convolutions.map(KernelId::channels).max().unwrap_or(1)
}

/// Chooses the kernel of an integer maximum (`max`) or average pooling.
pub(super) fn pool_int(program: &Program, op: PoolInt<Place>, max: bool) -> Result<Step<Place>> {
    let state = |kind| match kind {
        JobKind::MaxPoolInt if max => Some(Job::MaxPoolInt(op)),
        JobKind::AvgPoolInt if !max => Some(Job::AvgPoolInt(op)),
        _ => None,
    };
    first((program, candidates(program, false)), state, |_, _| {
        Ok(Some(Constants::Plain))
    })
    .map(|choice| choice.step)
}

/// Chooses the kernel of a fully connected layer of f32 whose weights stay as they are.
pub(super) fn linear_f32(program: &Program, op: LinearF32<Place>) -> Result<Step<Place>> {
    let state = |kind| (kind == JobKind::LinearF32).then_some(Job::LinearF32(op));
    first((program, candidates(program, false)), state, |_, _| {
        Ok(Some(Constants::Plain))
    })
    .map(|choice| choice.step)
}

/// Chooses the kernel of an integer operator of two operands.
pub(super) fn binary_int(program: &Program, op: &BinaryInt<Place>) -> Result<Step<Place>> {
    // Searched for once, and only where a kernel would run it.
    let mut linear = None;
    let state = |kind| match kind {
        JobKind::LinearSumS8 => linear.get_or_insert_with(|| linear_sums::of(op)).map(Job::LinearSumS8),
        JobKind::BinaryInt => Some(Job::BinaryInt(op.clone())),
        _ => None,
    };
    first((program, candidates(program, false)), state, |_, _| {
        Ok(Some(Constants::Plain))
    })
    .map(|choice| choice.step)
}

/// Whether `op` has a linear form and `program` a kernel for it.
pub(super) fn has_linear_sum(program: &Program, op: &BinaryInt<Place>) -> bool {
    let is_for_sums = |kernel: KernelId| kernel.job() == Some(JobKind::LinearSumS8);
    candidates(program, false).any(is_for_sums) && linear_sums::of(op).is_some()
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

    /// A convolution without padding's zero point.
    fn convolution(window: Window2d, groups: u16) -> Conv2dS8<Place> {
        Conv2dS8 {
            output: Place::Scratch,
            input: Place::Scratch,
            scratch: Place::Scratch,
            weights: 0,
            channels: 0,
            window,
            groups,
            input_zero_point: 0,
            output_zero_point: 0,
            clamp: [-128, 127],
            flags: 0,
        }
    }

    /// The candidates that compute a job, best first.
    fn chosen(target: Target, size: bool, job: &Job<'_, Place>) -> Vec<&'static str> {
        KernelId::candidates(target, size)
            .filter(|kernel| !kernel.spends_flash())
            .filter_map(|kernel| Step::candidate(kernel, job))
            .map(|step| step.kernel().name())
            .collect()
    }

    #[test]
    fn averages_beyond_32_bits_go_to_the_kernel_that_has_64() {
        for (target, size, first) in [
            (Target::CortexM0, false, "Int"),
            (Target::CortexM4, false, "Dsp"),
            (Target::CortexM55, false, "Mve"),
            (Target::CortexM55, true, "Compact"),
        ] {
            let average = |input| chosen(target, size, &Job::AvgPoolInt(global(input)));
            assert_eq!(average([4095, 4081, 1])[0], format!("{first}AvgPoolS8"));
            assert_eq!(average([4096, 4081, 1]), ["AvgPoolInt"]);
            // A maximum sums nothing.
            let maximum = chosen(target, size, &Job::MaxPoolInt(global([4096, 4081, 1])));
            assert_eq!(maximum[0], format!("{first}MaxPoolS8"));
        }
    }

    /// Windows of one pixel are fully connected layers where there is a kernel for these; groups of one channel are depthwise.
    #[test]
    fn convolutions_go_to_the_kernel_that_is_meant_for_them() {
        let plain = PlainS8 {
            weights: &[1; 64],
            channels: &[[0, 1 << 30, -4]; 8],
        };
        let job = |extent, groups| {
            let mut window = global([extent, extent, 8]).window;
            (window.kernel, window.output) = ([1, 1], [extent, extent, 8]);
            let weights = if groups == 1 { 64 } else { 8 };
            let op = convolution(window, groups);
            let weights = &plain.weights[..weights];
            Job::Conv2dS8(op, PlainS8 { weights, ..plain })
        };
        for (target, convolution, dense, depthwise) in [
            (Target::CortexM0, "IntConv2dS8", "IntDenseS8", "IntDepthwiseS8"),
            (Target::CortexM4, "DspPairsConv2dS8", "DspDenseS8", "DspDepthwiseS8"),
            (Target::CortexM55, "MveConv2dS8", "MveConv2dS8", "MveDepthwiseS8"),
            (Target::Aarch64, "NeonConv2dS8", "NeonConv2dS8", "NeonDepthwiseS8"),
            (
                Target::Aarch64Dotprod,
                "DotprodConv2dS8",
                "DotprodConv2dS8",
                "NeonDepthwiseS8",
            ),
            (Target::Aarch64I8mm, "I8mmConv2dS8", "I8mmConv2dS8", "NeonDepthwiseS8"),
            (Target::Aarch64Sme, "SmeConv2dS8", "I8mmConv2dS8", "NeonDepthwiseS8"),
            (Target::Riscv64gcv, "RvvConv2dS8", "RvvConv2dS8", "RvvDepthwiseS8"),
            (Target::Riscv32imacv, "RvvConv2dS8", "RvvConv2dS8", "RvvDepthwiseS8"),
            (Target::X8664, "DotprodConv2dS8", "DotprodConv2dS8", "NeonDepthwiseS8"),
            (Target::Portable, "Conv2dS8", "DenseS8", "DepthwiseS8"),
        ] {
            let of = |extent, groups| chosen(target, false, &job(extent, groups))[0];
            assert_eq!([of(3, 1), of(1, 1), of(3, 8)], [convolution, dense, depthwise]);
        }
        assert_eq!(chosen(Target::Portable, true, &job(3, 8))[0], "CompactConv2dS8");
    }

    /// Fewer cycles win over the order of the backends where flash and scratch allow it, and not with `--size`.
    #[test]
    fn what_takes_fewer_cycles_comes_first() {
        // Cost of each kernel.
        fn cost(_: Target, step: &Step, constants: &[u8]) -> Option<u64> {
            assert!(constants.len() >= step.needs().weights as usize);
            match step.kernel().name() {
                "MveConv2dS8" | "MveDepthwiseS8" => Some(1000),
                "DspPairsConv2dS8" => Some(951),
                "DspConv2dS8" => Some(950),
                "IntDenseS8" | "MveTapsDepthwiseS8" => Some(940),
                "DspDepthwiseS8" => Some(800),
                _ => None,
            }
        }
        let kernel = |target, size, window: Window2d, groups: u16| {
            let program = Program {
                graph: crate::graph::Graph::default(),
                target,
                size,
                share: true,
                steps: Vec::new(),
                views: std::collections::HashMap::new(),
                over: std::collections::HashSet::new(),
                weights: crate::program::Constants::default(),
                state: crate::program::State::default(),
                assigned: crate::program::Assigned::default(),
            };
            let outputs = usize::from(window.output[2]);
            let taps: usize = window.kernel.map(usize::from).iter().product();
            let weights = vec![1; outputs * taps * usize::from(window.input[2] / groups)];
            // No two alike, so that no layer has one factor.
            let channels: Vec<_> = (0..outputs as i32).map(|n| [0, (1 << 30) + (n << 16), -4]).collect();
            let plain = PlainS8 {
                weights: &weights,
                channels: &channels,
            };
            let choice = conv2d_s8(&program, convolution(window, groups), plain, false, (cost, &[])).unwrap();
            choice.step.kernel().name()
        };
        let dense = |inputs, outputs| Window2d {
            output: [1, 1, outputs],
            ..global([1, 1, inputs]).window
        };
        let m55 = |window, groups| kernel(Target::CortexM55, false, window, groups);
        // Of many inputs the weights, twice as large, take more flash; those of the others more scratch.
        assert_eq!(
            [m55(dense(24, 2), 1), m55(dense(240, 12), 1)],
            ["IntDenseS8", "MveConv2dS8"]
        );
        assert_eq!(kernel(Target::CortexM55, true, dense(24, 2), 1), "CompactConv2dS8");
        // A kernel that takes less time still takes more flash.
        let mut window = global([3, 3, 440]).window;
        (window.kernel, window.output, window.padding) = ([3, 3], [3, 3, 440], [1, 1]);
        assert_eq!(m55(window, 440), "MveTapsDepthwiseS8");
    }

    #[test]
    fn channels_come_by_the_word_where_kernels_take_words() {
        let at_a_time = |target| channels_at_a_time(target, false);
        assert_eq!([Target::CortexM0, Target::Portable].map(at_a_time), [1, 1]);
        assert_eq!([Target::CortexM4, Target::CortexM55].map(at_a_time), [4, 8]);
        assert_eq!(channels_at_a_time(Target::CortexM4, true), 1);
    }
}
