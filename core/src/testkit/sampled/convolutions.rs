//! Convolutions with a kernel each: of int16, with weights of few bits, and locally connected.

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::conv2d::Conv2dS16;
use crate::ops::locally_connected::{LocallyConnectedF32, LocallyConnectedS8};
use crate::ops::low_bit::{Conv2dS8W4, MOST_FACTOR, WeightOnlyF32, filter_bytes};
use crate::ops::window::Window2d;
use crate::testkit::cases::{Form, window};
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data};

/// A window, and how many groups its channels are in: one, as many as there are, or some.
fn grouped(draw: &mut Draw<'_>) -> Option<(Window2d, u16)> {
    let form = draw.pick(&[
        Form::Convolution,
        Form::Convolution,
        Form::Depthwise,
        Form::Dense,
        Form::Long,
    ])?;
    let mut window = window(draw.random, form, true);
    let [.., inputs] = window.input;
    let outputs = window.output.last_mut()?;
    let groups = match form {
        // Now and then several outputs of an input.
        Form::Depthwise | Form::Long => {
            *outputs *= draw.pick(&[1, 1, 1, 2, 3])?;
            inputs
        }
        _ => {
            let groups = draw.pick(&[1, 1, 2, 3])?;
            if inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups) {
                groups
            } else {
                1
            }
        }
    };
    Some((window, groups))
}

/// Weights of an output's filter.
fn filter(window: &Window2d, groups: u16) -> u32 {
    let [rows, columns] = window.kernel.map(u32::from);
    let [.., inputs] = window.input;
    rows * columns * u32::from(inputs / groups.max(1))
}

impl Generated for Conv2dS16 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (window, groups) = grouped(draw)?;
        let outputs = u32::from(window.output[2]);
        let shift = draw.pick(&[-10, -8, -4, 0])?;
        let (large, wild) = (draw.one_in(8), draw.one_in(4));
        let limits = draw.limits(crate::tensor::DType::I16).map(|limit| limit as i16);
        let op = Conv2dS16 {
            output: Slot::default(),
            input: Slot::default(),
            weights: draw.weights(outputs * filter(&window, groups))?,
            bias: draw.constants(outputs, |random| {
                let bias = i64::from(random.next() as i32);
                // Some sums need more than 32 bits.
                (if large { bias << 8 } else { bias >> 8 }).to_le_bytes()
            })?,
            channels: draw.constants(outputs, |random| {
                let [mantissa, shift] = Draw::record(random, shift, wild).map(i32::to_le_bytes);
                let mut bytes = [0; 8];
                bytes
                    .iter_mut()
                    .zip(mantissa.into_iter().chain(shift))
                    .for_each(|(to, byte)| *to = byte);
                bytes
            })?,
            window,
            groups,
            clamp: limits,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::conv2d::s16
    }
}

/// Number of weights that share a scale or factor.
fn share(draw: &mut Draw<'_>, filter: u32) -> u32 {
    let any = 1 + draw.random.below(filter);
    draw.pick(&[filter, filter, any, 1, any.min(8)]).unwrap_or(filter)
}

/// Weights of 4 bits, -7 to 7 or now and then -8, or bytes; a half that is left over is zero.
fn low_bit(draw: &mut Draw<'_>, bits: u32, filter: u32, outputs: u32) -> Option<u32> {
    let bytes = filter_bytes(filter, bits);
    let mut at = 0;
    draw.constants(outputs * bytes, |random| {
        at += 1;
        let last = at % bytes == 0;
        let byte = random.byte() as u8;
        [if bits == 4 && last && filter % 2 == 1 {
            byte & 15
        } else {
            byte
        }]
    })
}

/// Halves below 2, now and then subnormal ones.
fn halves(draw: &mut Draw<'_>, filter: u32, outputs: u32) -> Option<u32> {
    draw.constants(outputs * filter, |random| {
        let bits = random.next() as u16;
        let exponents = if bits & 0x70 == 0 { 0x83FF } else { 0xBFFF };
        (random.next() as u16 & exponents).to_le_bytes()
    })
}

impl Generated for WeightOnlyF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let bits = match draw.kernel {
            KernelId::W4Conv2dF32 => 4,
            KernelId::W16Conv2dF32 => 16,
            _ => 8,
        };
        let (window, groups) = grouped(draw)?;
        let (outputs, filter) = (u32::from(window.output[2]), filter(&window, groups));
        let share = share(draw, filter);
        let op = WeightOnlyF32 {
            output: Slot::default(),
            input: Slot::default(),
            residual: draw.one_in(3).then(Slot::default),
            weights: match bits {
                16 => halves(draw, filter, outputs)?,
                _ => low_bit(draw, bits, filter, outputs)?,
            },
            scales: draw.constants(outputs * filter.div_ceil(share), |random| {
                (0.001 + random.float().abs() / 8.0).to_le_bytes()
            })?,
            bias: if draw.coin() { Some(draw.floats(outputs)?) } else { None },
            window,
            groups,
            share,
            clamp: draw.float_limits(),
        };
        Some((op, Data::floats(draw.seed(), Alike::NEAR_FLOATS)))
    }

    fn reference(kernel: KernelId) -> Reference<Self> {
        match kernel {
            KernelId::W4Conv2dF32 => reference::low_bit::f32::<4>,
            KernelId::W16Conv2dF32 => reference::low_bit::f32::<16>,
            _ => reference::low_bit::f32::<8>,
        }
    }
}

/// `[bias, multiplier, shift]`.
fn records(draw: &mut Draw<'_>, outputs: u32) -> Option<u32> {
    let wild = draw.one_in(4);
    draw.constants(outputs, |random| {
        let bias = random.next() as i32 >> 18;
        let [mantissa, shift] = Draw::record(random, -6, wild);
        let mut bytes = [0; 12];
        let words = [bias, mantissa, shift].into_iter().flat_map(i32::to_le_bytes);
        bytes.iter_mut().zip(words).for_each(|(to, byte)| *to = byte);
        bytes
    })
}

impl Generated for Conv2dS8W4 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (window, groups) = grouped(draw)?;
        let (outputs, filter) = (u32::from(window.output[2]), filter(&window, groups));
        let share = share(draw, filter);
        let limits = draw.limits(crate::tensor::DType::I8).map(|limit| limit as i8);
        let op = Conv2dS8W4 {
            output: Slot::default(),
            input: Slot::default(),
            weights: low_bit(draw, 4, filter, outputs)?,
            factors: draw.constants(outputs * filter.div_ceil(share), |random| {
                [1 + random.below(MOST_FACTOR.into()) as u8]
            })?,
            channels: records(draw, outputs)?,
            window,
            groups,
            share,
            input_zero_point: draw.zero() as i8,
            output_zero_point: draw.zero() as i8,
            clamp: limits,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::low_bit::s8_w4
    }
}

/// Images, input shape, output channels and kernel of a locally connected layer, and how many outputs and weights it has.
pub(super) fn locally_connected(draw: &mut Draw<'_>) -> (u16, [u16; 3], u16, [u16; 2], [u32; 2]) {
    let [rows, columns] = [draw.extent(3), draw.extent(3)];
    // A row of outputs is made sixteen at a time.
    let long = draw.one_in(6);
    let [oh, ow] = [draw.extent(4), if long { 15 + draw.extent(4) } else { draw.extent(5) }];
    let (c, o) = (draw.extent(3), draw.extent(3));
    let outputs = o * oh * ow;
    let input = [c, oh + rows - 1, ow + columns - 1].map(|extent| extent as u16);
    let batch = if draw.one_in(4) { 2 } else { 1 };
    let kernel = [rows, columns].map(|extent| extent as u16);
    (batch, input, o as u16, kernel, [outputs, outputs * c * rows * columns])
}

impl Generated for LocallyConnectedF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (batch, input_shape, channels, kernel, [outputs, weights]) = locally_connected(draw);
        let op = LocallyConnectedF32 {
            output: Slot::default(),
            input: Slot::default(),
            weights: draw.floats(weights)?,
            bias: draw.floats(outputs)?,
            batch,
            input_shape,
            channels,
            kernel,
            gain: draw.pick(&[1.0, 0.25, -2.0])?,
            clamp: draw.float_limits(),
        };
        Some((op, Data::floats(draw.seed(), Alike::EXACT_FLOATS)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::locally_connected::f32
    }
}

impl Generated for LocallyConnectedS8 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (batch, input_shape, channels, kernel, [outputs, weights]) = locally_connected(draw);
        let wild = draw.one_in(4);
        let limits = draw.limits(crate::tensor::DType::I8).map(|limit| limit as i8);
        let op = LocallyConnectedS8 {
            output: Slot::default(),
            input: Slot::default(),
            weights: draw.weights(weights)?,
            bias: draw.biases(outputs)?,
            multipliers: draw.constants(channels.into(), |random| {
                let [mantissa, shift] = Draw::record(random, -5, wild).map(i32::to_le_bytes);
                let mut bytes = [0; 8];
                bytes
                    .iter_mut()
                    .zip(mantissa.into_iter().chain(shift))
                    .for_each(|(to, byte)| *to = byte);
                bytes
            })?,
            batch,
            input_shape,
            channels,
            kernel,
            input_zero_point: draw.zero() as i8,
            output_zero_point: draw.zero() as i8,
            clamp: limits,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::locally_connected::s8
    }
}
