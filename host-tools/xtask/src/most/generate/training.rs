//! Steps of training. Labels and positions are constants: classes, and taps inside the input, of which most is done.

use arenite::ops::activation_grad::{Activated, ActivationGradF32};
use arenite::ops::batch_norm::{BatchNormF32, BatchNormGradF32, BatchStatisticsF32};
use arenite::ops::conv2d_train::{Conv2dInputGradF32, Conv2dWeightSgdF32, TrainedConv2dF32};
use arenite::ops::linear_train::{BiasSgdF32, LinearInputGradF32, LinearWeightSgdF32};
use arenite::ops::locally_connected_train::{
    LocallyConnectedGainGradF32, LocallyConnectedInputGradF32, LocallyConnectedWeightSgdF32, TrainedLocallyConnectedF32,
};
use arenite::ops::loss::{SoftmaxCrossEntropyF32, SquaredErrorF32};
use arenite::ops::lrn_grad::LrnGradF32;
use arenite::ops::pool2d_train::{AvgPoolGradF32, MaxPoolGradF32, MaxPoolPositionsF32};
use arenite::ops::window::Window2d;
use arenite::{KernelId, Slot, Step};

use super::convolution::groups;
use super::local;
use super::shapes::{Form, Random, affordable};

/// The step and its constants, which are to lie from `base` on; `None` of other kernels.
pub(super) fn step(kernel: KernelId, random: &mut Random, form: Form, base: u32) -> Option<(Step, Vec<u8>)> {
    let constant = Slot {
        region: Slot::WEIGHTS,
        offset: base,
    };
    Some(match family(kernel)? {
        Family::Convolution => (convolution(kernel, random, form), Vec::new()),
        Family::Linear => (linear(kernel, random)?, Vec::new()),
        Family::Pool => pool(kernel, random, constant)?,
        Family::LocallyConnected => (locally_connected(kernel, random)?, Vec::new()),
        Family::Lrn => (normalising(random), Vec::new()),
        Family::BatchNorm => (batch_norm(kernel, random), Vec::new()),
        Family::Elements => elements(kernel, random, constant),
    })
}

/// Whether a kernel is one of training. Its cost bounds the slowest way through it on any core, and no step of it is split.
pub fn trains(kernel: KernelId) -> bool {
    family(kernel).is_some()
}

/// Kernels of training whose steps are drawn alike.
enum Family {
    Convolution,
    Linear,
    Pool,
    LocallyConnected,
    Lrn,
    BatchNorm,
    Elements,
}

fn family(kernel: KernelId) -> Option<Family> {
    Some(match kernel {
        KernelId::TrainedConv2dF32 | KernelId::Conv2dInputGradF32 | KernelId::Conv2dWeightSgdF32 => Family::Convolution,
        KernelId::LinearInputGradF32 | KernelId::LinearWeightSgdF32 | KernelId::BiasSgdF32 => Family::Linear,
        KernelId::MaxPoolPositionsF32 | KernelId::MaxPoolGradF32 | KernelId::AvgPoolGradF32 => Family::Pool,
        KernelId::TrainedLocallyConnectedF32
        | KernelId::LocallyConnectedInputGradF32
        | KernelId::LocallyConnectedWeightSgdF32
        | KernelId::LocallyConnectedGainGradF32 => Family::LocallyConnected,
        KernelId::LrnGradF32 => Family::Lrn,
        KernelId::BatchNormF32 | KernelId::BatchStatisticsF32 | KernelId::BatchNormGradF32 => Family::BatchNorm,
        KernelId::ActivationGradF32 | KernelId::SoftmaxCrossEntropyF32 | KernelId::SquaredErrorF32 => Family::Elements,
        _ => return None,
    })
}

fn convolution(kernel: KernelId, random: &mut Random, form: Form) -> Step {
    let form = if random.chance(4) { Form::Depthwise } else { form };
    let window = affordable(random, form, 4);
    let groups = groups(random, form, &window);
    let slot = Slot::default();
    match kernel {
        KernelId::TrainedConv2dF32 => Step::TrainedConv2dF32(TrainedConv2dF32 {
            output: slot,
            input: slot,
            weights: slot,
            bias: random.chance(2).then_some(slot),
            window,
            groups,
            clamp: random.one_of(&[[f32::NEG_INFINITY, f32::INFINITY], [0.0, 6.0]]),
        }),
        KernelId::Conv2dInputGradF32 => Step::Conv2dInputGradF32(Conv2dInputGradF32 {
            output: slot,
            gradient: slot,
            weights: slot,
            window,
            groups,
        }),
        _ => Step::Conv2dWeightSgdF32(Conv2dWeightSgdF32 {
            weights: slot,
            gradient: slot,
            input: slot,
            rate: slot,
            window,
            groups,
        }),
    }
}

/// A layer of so many products that a core without an FPU is done in time.
fn linear(kernel: KernelId, random: &mut Random) -> Option<Step> {
    let slot = Slot::default();
    let rows = if random.chance(3) { 1 } else { random.wide(80) };
    let rows = random.extent("rows", rows);
    let (inputs, outputs) = (random.axis("inputs", 300), random.axis("outputs", 150));
    if kernel == KernelId::BiasSgdF32 {
        return Some(Step::BiasSgdF32(BiasSgdF32 {
            bias: slot,
            gradient: slot,
            rate: slot,
            rows,
            channels: outputs,
        }));
    }
    (rows * inputs * outputs <= local::most(random, 64 << 10)).then_some(())?;
    Some(match kernel {
        KernelId::LinearInputGradF32 => Step::LinearInputGradF32(LinearInputGradF32 {
            output: slot,
            gradient: slot,
            weights: slot,
            rows,
            inputs,
            outputs,
        }),
        _ => Step::LinearWeightSgdF32(LinearWeightSgdF32 {
            weights: slot,
            gradient: slot,
            input: slot,
            rate: slot,
            rows,
            inputs,
            outputs,
        }),
    })
}

/// A pooling whose taps are fewer than a byte counts.
fn pool(kernel: KernelId, random: &mut Random, constant: Slot) -> Option<(Step, Vec<u8>)> {
    let slot = Slot::default();
    let window = affordable(random, Form::Pool, 4);
    Some(match kernel {
        KernelId::MaxPoolPositionsF32 => {
            let op = MaxPoolPositionsF32 {
                output: slot,
                positions: slot,
                input: slot,
                window,
                clamp: random.one_of(&[[f32::NEG_INFINITY, f32::INFINITY], [0.0, 6.0]]),
            };
            (Step::MaxPoolPositionsF32(op), Vec::new())
        }
        KernelId::MaxPoolGradF32 => {
            let op = MaxPoolGradF32 {
                output: slot,
                gradient: slot,
                positions: constant,
                window,
            };
            (Step::MaxPoolGradF32(op), positions(&window)?)
        }
        _ => {
            let op = AvgPoolGradF32 {
                output: slot,
                gradient: slot,
                window,
                count_include_pad: random.chance(2),
            };
            (Step::AvgPoolGradF32(op), Vec::new())
        }
    })
}

/// The last tap inside the input, for each element of the output; `None` where one is no byte.
fn positions(window: &Window2d) -> Option<Vec<u8>> {
    let last = |axis: usize, at: u16| {
        let first = i64::from(at) * i64::from(window.stride[axis]) - i64::from(window.padding[axis]);
        (i64::from(window.input[axis]) - 1 - first).min(i64::from(window.kernel[axis]) - 1)
    };
    let mut all = Vec::new();
    for _ in 0..window.batch {
        for y in 0..window.output[0] {
            for x in 0..window.output[1] {
                let tap = last(0, y) * i64::from(window.kernel[1]) + last(1, x);
                let tap = u8::try_from(tap).ok()?;
                all.extend(std::iter::repeat_n(tap, window.output[2].into()));
            }
        }
    }
    Some(all)
}

fn locally_connected(kernel: KernelId, random: &mut Random) -> Option<Step> {
    let slot = Slot::default();
    let (window, [height, width]) = local::connected_extents(random, 8);
    let weights = LocallyConnectedWeightSgdF32 {
        weights: slot,
        gradient: slot,
        input: slot,
        rate: slot,
        gain: random.chance(2).then_some(slot),
        batch: local::batch(random),
        input_shape: [local::channels(random, "inputs"), height, width],
        channels: local::channels(random, "outputs"),
        kernel: window,
    };
    let LocallyConnectedWeightSgdF32 {
        gain,
        batch,
        input_shape,
        channels,
        ..
    } = weights;
    let extents = weights.output_shape().into_iter().chain(window).chain([input_shape[0]]);
    let count: u32 = extents.map(u32::from).product();
    (count <= local::most(random, 12 << 10)).then_some(())?;
    Some(match kernel {
        KernelId::TrainedLocallyConnectedF32 => Step::TrainedLocallyConnectedF32(TrainedLocallyConnectedF32 {
            output: slot,
            input: slot,
            weights: slot,
            bias: Some(slot),
            gain,
            batch,
            input_shape,
            channels,
            kernel: window,
            clamp: [0.0, f32::INFINITY],
        }),
        KernelId::LocallyConnectedInputGradF32 => Step::LocallyConnectedInputGradF32(LocallyConnectedInputGradF32 {
            output: slot,
            gradient: slot,
            weights: slot,
            gain,
            batch,
            input_shape,
            channels,
            kernel: window,
        }),
        KernelId::LocallyConnectedGainGradF32 => Step::LocallyConnectedGainGradF32(LocallyConnectedGainGradF32 {
            output: slot,
            gradient: slot,
            input: slot,
            weights: slot,
            batch,
            input_shape,
            channels,
            kernel: window,
        }),
        _ => Step::LocallyConnectedWeightSgdF32(weights),
    })
}

fn normalising(random: &mut Random) -> Step {
    let slot = Slot::default();
    Step::LrnGradF32(LrnGradF32 {
        output: slot,
        gradient: slot,
        input: slot,
        scratch: slot,
        pixels: random.axis("pixels", 60),
        channels: random.axis("channels", 64),
        radius: {
            let radius = random.between(0, 4);
            random.extent("radius", radius) as u16
        },
        bias: 1.0,
        alpha: 0.0001,
        beta: random.one_of(&[0.75, 0.75, 0.5]),
    })
}

fn batch_norm(kernel: KernelId, random: &mut Random) -> Step {
    let slot = Slot::default();
    let (rows, channels) = (random.axis("rows", 120), random.axis("channels", 64));
    match kernel {
        KernelId::BatchNormF32 => Step::BatchNormF32(BatchNormF32 {
            output: slot,
            input: slot,
            gain: slot,
            shift: slot,
            mean: slot,
            variance: slot,
            scratch: slot,
            rows,
            channels,
            epsilon: 0.001,
        }),
        KernelId::BatchStatisticsF32 => Step::BatchStatisticsF32(BatchStatisticsF32 {
            mean: slot,
            variance: slot,
            moving_mean: slot,
            moving_variance: slot,
            input: slot,
            rows,
            channels,
            momentum: 0.99,
        }),
        _ => Step::BatchNormGradF32(BatchNormGradF32 {
            output: slot,
            gain_gradient: slot,
            shift_gradient: slot,
            gradient: slot,
            input: slot,
            gain: slot,
            mean: slot,
            variance: slot,
            scratch: slot,
            rows,
            channels,
            epsilon: 0.001,
        }),
    }
}

fn elements(kernel: KernelId, random: &mut Random, constant: Slot) -> (Step, Vec<u8>) {
    let slot = Slot::default();
    match kernel {
        KernelId::ActivationGradF32 => {
            let clamp = Activated::Clamp { min: 0.0, max: 6.0 };
            let op = ActivationGradF32 {
                output: slot,
                gradient: slot,
                result: slot,
                count: random.axis("count", 2000),
                activation: random.one_of(&[clamp, Activated::Tanh, Activated::Logistic]),
            };
            (Step::ActivationGradF32(op), Vec::new())
        }
        KernelId::SoftmaxCrossEntropyF32 => {
            let (rows, classes) = (random.axis("rows", 20), random.axis("classes", 100));
            let op = SoftmaxCrossEntropyF32 {
                output: slot,
                loss: slot,
                ignored: slot,
                logits: slot,
                labels: constant,
                rate: slot,
                rows,
                classes,
            };
            let label = classes as i32 - 1;
            (
                Step::SoftmaxCrossEntropyF32(op),
                label.to_le_bytes().repeat(rows as usize),
            )
        }
        _ => {
            let op = SquaredErrorF32 {
                output: slot,
                loss: slot,
                input: slot,
                target: random.chance(2).then_some(slot),
                rate: slot,
                count: random.axis("count", 2000),
                factor: 0.5,
            };
            (Step::SquaredErrorF32(op), Vec::new())
        }
    }
}
