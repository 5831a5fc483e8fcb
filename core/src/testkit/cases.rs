//! Generated operators. A seed gives the same case everywhere, and cases are small enough for a board with 16 KiB of RAM.

use super::random::Random;
use crate::arena::Slot;
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::elementwise::Loop;
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::ops::low_bit::MOST_FACTOR;
use crate::ops::packed_sum::PackedSumS8;
use crate::ops::pool2d::PoolInt;
use crate::ops::svdf::{SvdfS8, SvdfShape};
use crate::ops::window::Window2d;
use crate::quant::Multiplier;
use crate::tensor::DType;

/// The most elements of a sum.
const SUM: u32 = 200;

/// Use of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Convolution,
    /// A convolution of one pixel.
    Dense,
    /// The same, of channels that are requantised alike.
    Alike,
    /// The same of one channel of more inputs than are widened at once.
    Tiles,
    Depthwise,
    /// The same over an image that is much longer one way than the other, and an output as large.
    Long,
    /// A convolution of 3 x 3 windows, each a step from the next, over channels by fours.
    Neighbours,
    Pool,
}

pub(super) fn window(random: &mut Random, form: Form, float: bool) -> Window2d {
    // f32 takes four times the memory.
    let (most, deep, wide) = if float { (4, 5, 6) } else { (6, 8, 8) };
    if form == Form::Long {
        let (long, short) = (random.between(4, 2 * most), random.between(1, 2));
        let channels = random.one_of([4, 8, 8, random.last() as u16 % 8 + 1]);
        let extents = if random.coin() {
            [long, short, channels]
        } else {
            [short, long, channels]
        };
        return Window2d {
            batch: 1 + u16::from(long <= 6 && random.coin()),
            input: extents,
            output: extents,
            kernel: [3, 3],
            stride: [1, 1],
            dilation: [1, 1],
            padding: [1, 1],
        };
    }
    if form == Form::Neighbours {
        let [height, width] = [0; 2].map(|_| random.between(1, most));
        let padding = [0; 2].map(|_| random.below(3) as u8);
        let inputs = random.one_of([4, 4, 8, 12]);
        let outputs = random.between(1, if inputs == 4 { 9 } else { 4 });
        // From one to all windows that start inside.
        let [rows, columns] = [random.between(1, height), random.between(1, width)];
        return Window2d {
            batch: 1 + u16::from(height * width <= 6 && random.coin()),
            input: [height, width, inputs],
            output: [rows, columns, outputs],
            kernel: [3, 3],
            stride: [1, 1],
            dilation: [1, 1],
            padding,
        };
    }
    let dense = matches!(form, Form::Dense | Form::Alike | Form::Tiles);
    let pointwise = dense || (form == Form::Convolution && random.below(4) == 0);
    let kernel = match (pointwise, random.coin()) {
        (true, _) => [1, 1],
        (false, true) => [3, 3],
        (false, false) => [0; 2].map(|_| random.between(1, 3)),
    };
    let stride = [1 + random.below(2) as u8; 2];
    let dilated = !pointwise && form != Form::Pool && random.below(8) == 0;
    let dilation = [if dilated { 2 } else { 1 }; 2];
    let padding = kernel.map(|k| if random.coin() { (k / 2) as u8 } else { 0 });
    let [height, width] = match form {
        _ if dense => [1, 1],
        _ => [0; 2].map(|_| random.between(1, most)),
    };
    let extent = |input: u16, axis: [u16; 3], stride: u8| {
        let [kernel, dilation, padding] = axis;
        let reach = (kernel - 1) * dilation + 1;
        let stride = u16::from(stride).max(1);
        // All windows that lie inside the padded input; where there is none, all that start inside.
        match (input + 2 * padding).checked_sub(reach) {
            Some(room) => room / stride + 1,
            None => (input + padding - 1) / stride + 1,
        }
    };
    let axis = |i: usize| -> [u16; 3] {
        [
            kernel.get(i).copied().unwrap_or(1),
            dilation.get(i).copied().map_or(1, u16::from),
            padding.get(i).copied().map_or(0, u16::from),
        ]
    };
    let [stride, _] = if dense || (pointwise && random.coin()) {
        [1, 1]
    } else {
        stride
    };
    let (input, output) = match form {
        Form::Depthwise | Form::Long | Form::Pool => {
            // Of four, eight and others, as vector kernels like or refuse them.
            let channels = random.one_of([4, 8, 8, random.last() as u16 % 8 + 1]);
            (channels, channels)
        }
        Form::Tiles => (random.between(1025, 1040), 1),
        Form::Alike => {
            // Whole vectors mostly.
            let inputs = random.one_of([16, 32, 48, random.last() as u16 % 48 + 1]);
            (inputs, random.between(1, 2 * wide))
        }
        _ if pointwise => (random.between(1, 6 * deep), random.between(1, 2 * wide)),
        _ => (random.between(1, deep), random.between(1, wide)),
    };
    Window2d {
        batch: 1 + u16::from(height * width <= 6 && form != Form::Tiles && random.coin()),
        input: [height, width, input],
        output: [extent(height, axis(0), stride), extent(width, axis(1), stride), output],
        kernel,
        stride: [stride, stride],
        dilation,
        padding,
    }
}

/// An int8 convolution, without constants.
pub(super) fn conv2d_s8(random: &mut Random, form: Form) -> Conv2dS8 {
    let window = window(random, form, false);
    let output_zero_point = random.one_of([-128, -128, 3, random.last() as i8]);
    Conv2dS8 {
        output: Slot::default(),
        input: Slot::default(),
        scratch: Slot::default(),
        weights: 0,
        channels: 0,
        window,
        groups: if matches!(form, Form::Depthwise | Form::Long) {
            window.input[2]
        } else {
            1
        },
        input_zero_point: random.byte(),
        output_zero_point,
        clamp: random.one_of([[-128, 127], [-128, 127], [output_zero_point, 127], [-100, 90]]),
        flags: 0,
    }
}

/// `[bias, mantissa, shift]` of a channel: outputs of some tens mostly, and now and then extremes.
pub(super) fn channel(random: &mut Random) -> [i32; 3] {
    let bias = random.below(20_000) as i32 - 10_000;
    let mantissa = (1 << 30) + random.below(1 << 30) as i32;
    let usual = -6 - random.below(4) as i32;
    [
        bias,
        mantissa,
        random.one_of([usual, usual, usual, -(random.last() as i32 & 31)]),
    ]
}

/// Weights of a channel are at most this: kernels that put two products in one word choose their loops by it.
pub(super) fn limit(random: &mut Random) -> u32 {
    random.one_of([127, 60, 20, 5])
}

/// The same of weights that four bits hold.
pub(super) fn limit_of_four_bits(random: &mut Random) -> u32 {
    random.one_of([7, 7, 5, 1])
}

/// Multiplies weights of four bits, so many to a filter, by factors of their groups: how many weights share one, and how many factors were used.
pub(super) fn grouped(random: &mut Random, weights: &mut [u8], filter: usize, factors: &mut [u8]) -> (usize, usize) {
    let (share, mut used) = (random.one_of([8, 16, 32, 48]), 0);
    let filters = weights.chunks_mut(filter.max(1));
    let groups = filters.flat_map(|filter| filter.chunks_mut(share));
    for (group, to) in groups.zip(factors) {
        *to = 1 + random.below(MOST_FACTOR.into()) as u8;
        used += 1;
        for weight in group {
            *weight = weight.wrapping_mul(*to);
        }
    }
    (share, used)
}

/// An f32 convolution, without constants.
pub(super) fn conv2d_f32(random: &mut Random, form: Form) -> Conv2dF32 {
    let window = window(random, form, true);
    Conv2dF32 {
        output: Slot::default(),
        input: Slot::default(),
        residual: (random.below(3) == 0).then(Slot::default),
        scratch: Slot::default(),
        weights: 0,
        // Absent now and then.
        bias: (random.below(4) > 0).then_some(0),
        window,
        groups: if matches!(form, Form::Depthwise | Form::Long) {
            window.input[2]
        } else {
            1
        },
        clamp: if random.coin() {
            [0.0, 6.0]
        } else {
            [f32::NEG_INFINITY, f32::INFINITY]
        },
    }
}

/// An int8 pooling.
pub(super) fn pool(random: &mut Random) -> PoolInt {
    PoolInt {
        output: Slot::default(),
        input: Slot::default(),
        dtype: DType::I8,
        window: window(random, Form::Pool, false),
        clamp: random.one_of([[-128, 127], [-128, 127], [0, 127], [-90, 100]]),
    }
}

/// An int8 sum as the model states it: one operand has the larger scale, so its multiplier is one half.
pub(super) fn binary(random: &mut Random) -> BinaryInt {
    let half = Multiplier {
        mantissa: 1 << 30,
        shift: 0,
    };
    let mut mantissa = || (1 << 30) + random.below(1 << 30) as i32;
    let other = Multiplier {
        mantissa: mantissa(),
        shift: -1,
    };
    let result = Multiplier {
        mantissa: mantissa(),
        shift: -18,
    };
    let scale = Multiplier {
        mantissa: mantissa(),
        shift: -(random.below(13) as i8),
    };
    let count = 1 + random.below(SUM);
    let [a, b] = if random.coin() { [half, other] } else { [other, half] };
    let mut loops = heapless::Vec::new();
    let product = random.coin();
    // There is room for two axes.
    if product && random.coin() {
        let inner = 1 + random.below(count.min(40));
        let [[a, inner_a], [b, inner_b]] = [0, 1].map(|_| random.one_of([[inner, 1], [0, 1], [1, 0], [0, 0]]));
        let _ = loops.push(Loop {
            count: count / inner,
            a,
            b,
        });
        let _ = loops.push(Loop {
            count: inner,
            a: inner_a,
            b: inner_b,
        });
    } else {
        let _ = loops.push(Loop { count, a: 1, b: 1 });
    }
    BinaryInt {
        output: Slot::default(),
        a: Slot::default(),
        b: Slot::default(),
        loops,
        dtype: DType::I8,
        op: if product { IntOp::Mul } else { IntOp::Add },
        zero: [0; 3].map(|_| i32::from(random.byte())),
        shift: if product { 0 } else { 20 },
        multipliers: if product {
            [Multiplier::ONE, Multiplier::ONE, scale]
        } else {
            [a, b, result]
        },
        clamp: if product {
            random.one_of([[-128, 127], [-128, 127], [0, 127], [-90, 101]])
        } else {
            [-128, 127]
        },
    }
}

/// An int8 sum in its linear form.
pub(super) fn packed_sum(random: &mut Random) -> PackedSumS8 {
    let mut signed = |bits: u32| (random.next() >> (32 - bits)) as i32 - (1 << (bits - 1));
    PackedSumS8 {
        output: Slot::default(),
        a: Slot::default(),
        b: Slot::default(),
        factors: [signed(30), signed(29)],
        offset: signed(28),
        count: 1 + random.below(SUM),
    }
}

/// An int8 SVDF of state around 0, without constants.
pub(super) fn svdf(random: &mut Random) -> SvdfS8 {
    let [zero_in, zero_out] = [0; 2].map(|_| i32::from(random.byte()));
    let (features, words, odd) = (random.between(1, 40), random.between(1, 4), random.between(1, 17));
    let rank = random.one_of([1, 1, 2, 3]);
    let shape = SvdfShape {
        batch: random.one_of([1, 1, 1, 2]),
        // Whole vectors mostly.
        features: random.one_of([16, 16, 32, features]).into(),
        units: u32::from(random.between(1, 12)) / rank + 1,
        rank,
        memory: random.one_of([8, 8, 4 * words, odd]).into(),
    };
    let mut multiplier = |shift: i32| Multiplier {
        mantissa: (1 << 30) + random.below(1 << 30) as i32,
        shift: (shift - random.below(4) as i32) as i8,
    };
    let multipliers = [multiplier(-6), multiplier(-5)];
    SvdfS8 {
        output: Slot::default(),
        input: Slot::default(),
        state: Slot::default(),
        shape,
        state_type: DType::I8,
        weights: 0,
        time_weights: 0,
        bias: 0,
        zero: [zero_in, 0, random.one_of([-128, -128, 3, zero_out])],
        multipliers,
    }
}
