//! Operators of training: gradients, steps of gradient descent, losses.

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::activation_grad::{Activated, ActivationGradF32};
use crate::ops::batch_norm::{BatchNormF32, BatchNormGradF32, BatchStatisticsF32};
use crate::ops::conv2d_train::{Conv2dInputGradF32, Conv2dWeightSgdF32, TrainedConv2dF32};
use crate::ops::linear_train::{BiasSgdF32, LinearInputGradF32, LinearWeightSgdF32};
use crate::ops::locally_connected_train::{
    LocallyConnectedGainGradF32, LocallyConnectedInputGradF32, LocallyConnectedWeightSgdF32, TrainedLocallyConnectedF32,
};
use crate::ops::loss::{SoftmaxCrossEntropyF32, SquaredErrorF32};
use crate::ops::lrn_grad::LrnGradF32;
use crate::ops::pool2d_train::{AvgPoolGradF32, MaxPoolGradF32, MaxPoolPositionsF32};
use crate::ops::window::Window2d;
use crate::testkit::cases::{self, Form};
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

use super::convolutions::locally_connected;

/// A convolution's window and groups: plain, of two groups, depthwise, of one pixel, or over a long image.
fn convolution(draw: &mut Draw<'_>) -> Option<(Window2d, u16)> {
    let form = draw.pick(&[
        Form::Convolution,
        Form::Convolution,
        Form::Depthwise,
        Form::Dense,
        Form::Long,
    ])?;
    let op = cases::conv2d_f32(draw.random, form);
    let both = [op.window.input[2], op.window.output[2]];
    let halves = op.groups == 1 && both.iter().all(|channels| channels.is_multiple_of(2)) && draw.coin();
    Some((op.window, if halves { 2 } else { op.groups }))
}

fn near(draw: &mut Draw<'_>) -> Data {
    Data::floats(draw.seed(), Alike::NEAR_FLOATS)
}

/// A learning rate; now and then one that is no number.
fn rate(draw: &mut Draw<'_>) -> Option<Numbers> {
    draw.pick(&[
        Numbers::Floats(1.0),
        Numbers::Floats(1.0),
        Numbers::Positive(0.1),
        Numbers::Special(0.5),
    ])
}

impl Generated for TrainedConv2dF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (window, groups) = convolution(draw)?;
        let op = TrainedConv2dF32 {
            output: Slot::default(),
            input: Slot::default(),
            weights: Slot::default(),
            bias: draw.coin().then(Slot::default),
            window,
            groups,
            clamp: draw.float_limits(),
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::conv2d_train::forward
    }
}

impl Generated for Conv2dInputGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (window, groups) = convolution(draw)?;
        let op = Conv2dInputGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            weights: Slot::default(),
            window,
            groups,
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::conv2d_train::input_grad
    }
}

impl Generated for Conv2dWeightSgdF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (window, groups) = convolution(draw)?;
        let op = Conv2dWeightSgdF32 {
            weights: Slot::default(),
            gradient: Slot::default(),
            input: Slot::default(),
            rate: Slot::default(),
            window,
            groups,
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::conv2d_train::weight_sgd
    }
}

impl Generated for LinearInputGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = LinearInputGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            weights: Slot::default(),
            rows: draw.extent(3),
            inputs: draw.extent(20),
            outputs: draw.extent(12),
        };
        // More outputs than terms of a sum that is a term itself.
        let op = if draw.one_in(6) {
            LinearInputGradF32 {
                rows: 1,
                inputs: draw.extent(4),
                outputs: 60 + draw.extent(12),
                ..op
            }
        } else {
            op
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::linear_train::input_grad
    }
}

impl Generated for LinearWeightSgdF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let long = draw.one_in(6);
        let op = LinearWeightSgdF32 {
            weights: Slot::default(),
            gradient: Slot::default(),
            input: Slot::default(),
            rate: Slot::default(),
            rows: if long { 30 + draw.extent(40) } else { draw.extent(4) },
            inputs: draw.extent(if long { 3 } else { 20 }),
            outputs: draw.extent(if long { 3 } else { 12 }),
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::linear_train::weight_sgd
    }
}

impl Generated for BiasSgdF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = BiasSgdF32 {
            bias: Slot::default(),
            gradient: Slot::default(),
            rate: Slot::default(),
            rows: draw.extent(70),
            channels: draw.extent(9),
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::linear_train::bias_sgd
    }
}

impl Generated for TrainedLocallyConnectedF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (batch, input_shape, channels, kernel, _) = locally_connected(draw);
        let op = TrainedLocallyConnectedF32 {
            output: Slot::default(),
            input: Slot::default(),
            weights: Slot::default(),
            bias: draw.coin().then(Slot::default),
            gain: draw.coin().then(Slot::default),
            batch,
            input_shape,
            channels,
            kernel,
            clamp: draw.float_limits(),
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::locally_connected_train::forward
    }
}

impl Generated for LocallyConnectedInputGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (batch, input_shape, channels, kernel, _) = locally_connected(draw);
        let op = LocallyConnectedInputGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            weights: Slot::default(),
            gain: draw.coin().then(Slot::default),
            batch,
            input_shape,
            channels,
            kernel,
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::locally_connected_train::input_grad
    }
}

impl Generated for LocallyConnectedWeightSgdF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (batch, input_shape, channels, kernel, _) = locally_connected(draw);
        let op = LocallyConnectedWeightSgdF32 {
            weights: Slot::default(),
            gradient: Slot::default(),
            input: Slot::default(),
            rate: Slot::default(),
            gain: draw.coin().then(Slot::default),
            batch,
            input_shape,
            channels,
            kernel,
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::locally_connected_train::weight_sgd
    }
}

impl Generated for LocallyConnectedGainGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (batch, input_shape, channels, kernel, _) = locally_connected(draw);
        let op = LocallyConnectedGainGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            input: Slot::default(),
            weights: Slot::default(),
            batch,
            input_shape,
            channels,
            kernel,
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::locally_connected_train::gain_grad
    }
}

impl Generated for MaxPoolPositionsF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = MaxPoolPositionsF32 {
            output: Slot::default(),
            positions: Slot::default(),
            input: Slot::default(),
            window: cases::window(draw.random, Form::Pool, true),
            clamp: draw.float_limits(),
        };
        let numbers = draw.pick(&[Numbers::Special(8.0), Numbers::Steps])?;
        let data = Data::floats(draw.seed(), Alike::EXACT_FLOATS).of(&[numbers]);
        Some((op, data.by_bytes(&[1])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::pool2d_train::max_positions
    }
}

impl Generated for MaxPoolGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let window = cases::window(draw.random, Form::Pool, true);
        let op = MaxPoolGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            positions: Slot::default(),
            window,
        };
        // Bytes of words below this number: taps among them, and others.
        let [rows, columns] = window.kernel.map(i32::from);
        let positions = draw.pick(&[Numbers::Words([0, rows * columns]), Numbers::Truths, Numbers::Bytes])?;
        Some((op, near(draw).of(&[Numbers::Floats(1.0), positions])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::pool2d_train::max_grad
    }
}

impl Generated for AvgPoolGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = AvgPoolGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            window: cases::window(draw.random, Form::Pool, true),
            count_include_pad: draw.coin(),
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::pool2d_train::average_grad
    }
}

impl Generated for ActivationGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [min, max] = draw.float_limits();
        let activation = draw.pick(&[
            Activated::Clamp { min, max },
            Activated::Clamp { min, max },
            Activated::Tanh,
            Activated::Logistic,
        ])?;
        let op = ActivationGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            result: Slot::default(),
            count: draw.extent(120),
            activation,
        };
        let results = draw.pick(&[Numbers::Floats(1.0), Numbers::Steps, Numbers::Special(8.0)])?;
        let data = Data::floats(draw.seed(), Alike::EXACT_FLOATS);
        Some((op, data.of(&[Numbers::Special(1.0), results])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::activation_grad::f32
    }
}

impl Generated for LrnGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = LrnGradF32 {
            output: Slot::default(),
            gradient: Slot::default(),
            input: Slot::default(),
            scratch: Slot::default(),
            pixels: draw.extent(5),
            channels: draw.extent(20),
            radius: draw.pick(&[2, 0, 1, 5, 200])?,
            bias: draw.pick(&[1.0, 2.0, 0.5])?,
            alpha: draw.pick(&[1e-4, 0.1, 1.0])?,
            beta: draw.pick(&[0.75, 0.5, 1.0, 2.0])?,
        };
        Some((op, near(draw).of(&[Numbers::Floats(1.0), Numbers::Floats(4.0)])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::lrn_grad::f32
    }
}

/// A variance is not negative, and a gain near one.
const STATISTICS: [Numbers; 2] = [Numbers::Floats(1.0), Numbers::Positive(2.0)];

impl Generated for BatchNormF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = BatchNormF32 {
            output: Slot::default(),
            input: Slot::default(),
            gain: Slot::default(),
            shift: Slot::default(),
            mean: Slot::default(),
            variance: Slot::default(),
            scratch: Slot::default(),
            rows: draw.extent(30),
            channels: draw.extent(20),
            epsilon: draw.pick(&[0.05, 0.1, 0.5])?,
        };
        let [any, positive] = STATISTICS;
        Some((op, near(draw).of(&[Numbers::Floats(2.0), any, any, any, positive])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::batch_norm::f32
    }
}

impl Generated for BatchStatisticsF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = BatchStatisticsF32 {
            mean: Slot::default(),
            variance: Slot::default(),
            moving_mean: Slot::default(),
            moving_variance: Slot::default(),
            input: Slot::default(),
            rows: draw.extent(80),
            channels: draw.extent(20),
            momentum: draw.pick(&[0.9, 0.99, 0.0])?,
        };
        Some((op, near(draw)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::batch_norm::statistics
    }
}

impl Generated for BatchNormGradF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = BatchNormGradF32 {
            output: Slot::default(),
            gain_gradient: Slot::default(),
            shift_gradient: Slot::default(),
            gradient: Slot::default(),
            input: Slot::default(),
            gain: Slot::default(),
            mean: Slot::default(),
            variance: Slot::default(),
            scratch: Slot::default(),
            rows: draw.extent(80),
            channels: draw.extent(20),
            epsilon: draw.pick(&[0.05, 0.1, 0.5])?,
        };
        let [any, positive] = STATISTICS;
        Some((op, near(draw).of(&[any, any, any, any, positive])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::batch_norm::grad
    }
}

impl Generated for SoftmaxCrossEntropyF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = SoftmaxCrossEntropyF32 {
            output: Slot::default(),
            loss: Slot::default(),
            ignored: Slot::default(),
            logits: Slot::default(),
            labels: Slot::default(),
            rate: Slot::default(),
            rows: draw.extent(5),
            classes: draw.extent(20),
        };
        let last = op.classes as i32 - 1;
        let labels = draw.pick(&[
            Numbers::Words([0, last]),
            Numbers::Words([-1, last + 1]),
            Numbers::Scaled,
        ])?;
        let logits = draw.pick(&[Numbers::Floats(1.0), Numbers::Floats(10.0), Numbers::Floats(100.0)])?;
        let rate = rate(draw)?;
        Some((op, near(draw).of(&[logits, labels, rate]).by_bytes(&[2])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::loss::softmax_cross_entropy
    }
}

impl Generated for SquaredErrorF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = SquaredErrorF32 {
            output: Slot::default(),
            loss: Slot::default(),
            input: Slot::default(),
            target: draw.coin().then(Slot::default),
            rate: Slot::default(),
            count: draw.extent(150),
            factor: draw.pick(&[0.5, 1.0, 0.01])?,
        };
        let last = rate(draw)?;
        let numbers = match op.target {
            Some(_) => [Numbers::Floats(1.0), Numbers::Floats(1.0), last],
            None => [Numbers::Floats(1.0), last, last],
        };
        Some((op, near(draw).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::loss::squared_error
    }
}
