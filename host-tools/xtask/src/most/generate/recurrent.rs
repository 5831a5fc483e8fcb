//! Generated steps of recurrent operators.

use arenite::kernels::api::candidate::{Job, PlainS8, PlainSvdf};
use arenite::ops::lstm::{Gate, LstmF32, LstmInt, LstmShape};
use arenite::ops::packed_conv2d::Form;
use arenite::ops::svdf::{PackedSvdfS8, SvdfF32, SvdfS8, SvdfShape};
use arenite::quant::SigmoidI16;
use arenite::{DType, KernelId, Slot, Step};

use super::shapes::{Random, multiplier};

/// The step and its constants, which are to lie from `base` on.
pub(super) fn step(kernel: KernelId, random: &mut Random, base: u32) -> (Step, Vec<u8>) {
    match kernel {
        KernelId::SvdfS8 | KernelId::SvdfF32 => svdf(kernel, random, base),
        _ => lstm(kernel, random, base),
    }
}

fn svdf(kernel: KernelId, random: &mut Random, base: u32) -> (Step, Vec<u8>) {
    let (output, input, state) = (Slot::default(), Slot::default(), Slot::default());
    let mut constants = Vec::new();
    let shape = SvdfShape {
        batch: batch(random),
        features: random.axis("features", 100),
        units: random.axis("units", 40),
        // Three are no divisor of a block.
        rank: {
            let rank = if random.chance(4) { random.one_of(&[2, 3]) } else { 1 };
            random.extent("rank", rank)
        },
        memory: random.axis("memory", 20),
    };
    let state_type = random.one_of(&[DType::I16, DType::I16, DType::I8]);
    let (element, of_time) = match kernel {
        KernelId::SvdfF32 => (4, 4),
        _ => (1, state_type.bytes() as u32),
    };
    let filters = shape.filters();
    let mut put = |elements: u32, bytes: u32| {
        let at = base + constants.len() as u32;
        match bytes {
            // Floating point where all are: any others are integers.
            4 => constants.extend((0..elements).flat_map(|_| random.float().to_le_bytes())),
            _ => constants.extend((0..elements * bytes).map(|_| random.byte())),
        }
        constants.resize(constants.len().next_multiple_of(16), 0);
        at
    };
    let weights = put(filters * shape.features, element);
    let time_weights = put(filters * shape.memory, of_time);
    let bias = put(shape.units, 4);
    let step = match kernel {
        KernelId::SvdfF32 => Step::SvdfF32(SvdfF32 {
            output,
            input,
            state,
            shape,
            weights,
            time_weights,
            bias,
            clamp: [0.0, f32::INFINITY],
        }),
        _ => Step::SvdfS8(SvdfS8 {
            output,
            input,
            state,
            shape,
            state_type,
            weights,
            time_weights,
            bias,
            zero: [-3, 0, 5],
            multipliers: [multiplier(random, -8), multiplier(random, -10)],
        }),
    };
    (step, constants)
}

/// A step of a kernel that packs its constants, and these from `base` on; `None` where it cannot pack them.
pub(super) fn packed_svdf(kernel: KernelId, random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let slot = Slot::default();
    let features = random.axis("features", 100);
    let drawn = random.wide(20);
    let shape = SvdfShape {
        batch: batch(random),
        // Helium takes whole vectors alone.
        features: if random.chance(2) {
            features.next_multiple_of(16)
        } else {
            features
        },
        units: random.axis("units", 40),
        rank: {
            let rank = if random.chance(4) { 2 } else { 1 };
            random.extent("rank", rank)
        },
        memory: {
            let memory = random.one_of(&[8, 8, drawn, drawn.next_multiple_of(4)]);
            random.extent("memory", memory)
        },
    };
    let filters = shape.filters();
    let into_state = multiplier(random, -8);
    let mut bytes = |count: u32| -> Vec<i8> { (0..count).map(|_| random.byte() as i8 / 2).collect() };
    let (weights, times) = (bytes(filters * shape.features), bytes(filters * shape.memory));
    let bias: Vec<i32> = bytes(shape.units)
        .into_iter()
        .map(|bias| 20 * i32::from(bias))
        .collect();
    let channels = vec![[0, into_state.mantissa, into_state.shift.into()]; filters as usize];
    let op = PackedSvdfS8 {
        output: slot,
        input: slot,
        state: slot,
        scratch: slot,
        shape,
        weights: 0,
        form: Form::General,
        zero: [-3, random.one_of(&[-128, 5])],
        multiplier: multiplier(random, -8),
    };
    let plain = PlainSvdf {
        features: PlainS8 {
            weights: &weights,
            channels: &channels,
        },
        times: &times,
        bias: &bias,
    };
    let job = Job::SvdfS8(op, plain);
    let mut step = Step::candidate(kernel, &job)?;
    let mut constants = vec![0; step.needs().weights as usize];
    step.pack(&job, &mut constants, &mut [])?;
    step.set_constants(base, base);
    Some((step, constants))
}

fn batch(random: &mut Random) -> u32 {
    let batch = if random.chance(8) { 2 } else { 1 };
    random.extent("batch", batch)
}

fn lstm(kernel: KernelId, random: &mut Random, base: u32) -> (Step, Vec<u8>) {
    let (output, input, state) = (Slot::default(), Slot::default(), Slot::default());
    let mut constants = Vec::new();
    // More than 511 int16 inputs, or large biases, have sums of any size.
    let is_general = random.chance(6);
    let (features, cells) = (random.axis("features", 40), random.axis("cells", 40));
    let float = kernel == KernelId::LstmF32;
    let dtype = random.one_of(&[DType::I8, DType::I16]);
    let of_bias = match dtype {
        _ if float => 4,
        DType::I8 => 4,
        _ => 8,
    };
    let element = if float { 4 } else { 1 };
    let mut put = |elements: u32, bytes: u32| {
        let at = base + constants.len() as u32;
        match bytes {
            4 if float => constants.extend((0..elements).flat_map(|_| random.float().to_le_bytes())),
            // Biases are small.
            4 | 8 => (0..elements).for_each(|_| {
                let bias = i64::from(random.byte() as i8) << if is_general { 25 } else { 0 };
                constants.extend(bias.to_le_bytes().iter().take(bytes as usize));
            }),
            _ => constants.extend((0..elements).map(|_| random.byte())),
        }
        constants.resize(constants.len().next_multiple_of(16), 0);
        at
    };
    let gates = [0; 4].map(|_| Gate {
        weights: put(cells * features, element),
        recurrent: put(cells * cells, element),
        bias: put(cells, of_bias),
    });
    let shape = LstmShape {
        output,
        input,
        hidden: state,
        cell: state,
        batch: batch(random),
        time: random.axis("time", 6),
        features,
        cells,
        time_major: random.chance(2),
        gates,
    };
    let step = if float {
        Step::LstmF32(LstmF32 {
            shape,
            clip: if random.chance(3) { 10.0 } else { 0.0 },
        })
    } else {
        Step::LstmInt(LstmInt {
            shape,
            dtype,
            zero: if dtype == DType::I8 { [-1, 2] } else { [0; 2] },
            gates: [[0; 2]; 4].map(|both| both.map(|_: i32| multiplier(random, -2))),
            products: [0; 3].map(|_: i32| multiplier(random, -15)),
            tanh: SigmoidI16::power_of_two(0),
            clip: if random.chance(3) { 20_000 } else { 0 },
        })
    };
    (step, constants)
}
