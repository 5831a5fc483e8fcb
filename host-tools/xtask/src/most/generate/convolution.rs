//! Generated convolutions.

use arenite::kernels::api::candidate::{GroupsS8, Job, JobKind, Layout, PlainS8};
use arenite::ops::conv2d::{Conv2dF32, Conv2dS8, Conv2dS16};
use arenite::ops::low_bit::{Conv2dS8W4, MOST_FACTOR, WeightOnlyF32};
use arenite::ops::window::Window2d;
use arenite::{KernelId, Slot, Step};

use super::shapes::{Form, Random, affordable};

/// An int8 convolution with its packed weights, which are to lie from `base` on.
pub(super) fn conv2d_s8(kernel: KernelId, random: &mut Random, form: Form, base: u32) -> Option<(Step, Vec<u8>)> {
    let window = affordable(random, form, 1);
    let zero_point = random.one_of(&[-128, -128, 3, -1]);
    let op = Conv2dS8 {
        output: Slot::default(),
        input: Slot::default(),
        scratch: Slot::default(),
        weights: 0,
        channels: 0,
        window,
        groups: groups(random, form, &window),
        input_zero_point: random.byte() as i8,
        output_zero_point: zero_point,
        clamp: random.one_of(&[[-128, 127], [-128, 127], [zero_point, 127]]),
        flags: 0,
    };
    let (len, count) = (op.weights_len()? as usize, usize::from(window.output[2]));
    let uncommon = random.chance(4);
    let of_groups = kernel.job() == Some(JobKind::Conv2dS8Groups);
    let of_four_bits = of_groups || kernel.job() == Some(JobKind::Conv2dS8W4);
    let most = if of_four_bits { 7 } else { 127 };
    let spread = random.one_of(&[127, 127, 60, 30, 8]).min(most);
    let mut values = vec![0i8; len];
    let terms = (len / count).max(1);
    for row in values.chunks_mut(terms) {
        let random = random.contents();
        let spread = if random.chance(8) { most } else { spread };
        row.fill_with(|| (random.between(0, 2 * spread) as i32 - spread as i32) as i8);
    }
    let (share, mut factors) = (random.one_of(&[8, 16, 16, 32]), Vec::new());
    if of_groups {
        for group in values.chunks_mut(terms).flat_map(|row| row.chunks_mut(share)) {
            let factor = random.contents().between(1, MOST_FACTOR.into()) as i8;
            group.iter_mut().for_each(|value| *value *= factor);
            factors.push(factor as u8);
        }
    }
    // Sums of so many products are of the order of the outputs' range.
    let spread = if of_groups { spread * 10 } else { spread };
    let usual = -((terms as f32).sqrt() * spread as f32 / 2.0).log2() as i32;
    let mut channels: Vec<[i32; 3]> = (0..count)
        .map(|_| {
            let random = random.contents();
            let bias = random.between(0, 8000) as i32 - 4000;
            let mantissa = (1 << 30) + random.between(0, (1 << 30) - 1) as i32;
            let shift = if uncommon && random.chance(3) {
                -(random.between(0, 31) as i32)
            } else {
                usual - random.between(0, 2) as i32
            };
            [bias, mantissa, shift]
        })
        .collect();
    // Some layers are for channels that are requantised alike.
    if let ("DspDenseS8" | "DenseS8" | "MveDenseS8", &[[_, mantissa, shift], ..]) = (kernel.name(), &channels[..]) {
        channels
            .iter_mut()
            .for_each(|channel| *channel = [channel[0], mantissa, shift]);
    }
    let plain = PlainS8 {
        weights: &values,
        channels: &channels,
    };
    let groups = GroupsS8 {
        share: share as u32,
        factors: &factors,
    };
    let job = if of_groups {
        Job::Conv2dS8Groups(op, plain, groups)
    } else if of_four_bits {
        Job::Conv2dS8W4(op, plain)
    } else {
        Job::Conv2dS8(op, plain)
    };
    let mut step = Step::candidate(kernel, &job)?;
    let (mut packed, mut records) = (values.iter().map(|&v| v as u8).collect::<Vec<u8>>(), channels.clone());
    if step.layout() != Layout::Plain {
        packed = vec![0; step.needs().weights as usize];
        records = vec![[0; 3]; if step.has_records() { count } else { 0 }];
        step.pack(&job, &mut packed, &mut records)?;
    }
    packed.resize(packed.len().next_multiple_of(4), 0);
    let at = packed.len() as u32;
    packed.extend(records.iter().flatten().flat_map(|word| word.to_le_bytes()));
    // Kernels with records in their weights have none of their own.
    let own = step.layout() != Layout::Plain && !step.has_records();
    step.set_constants(base, if own { base } else { base + at });
    Some((step, packed))
}

/// An f32 convolution with its weights, which are to lie from `base` on.
pub(super) fn conv2d_f32(kernel: KernelId, random: &mut Random, form: Form, base: u32) -> Option<(Step, Vec<u8>)> {
    let window = affordable(random, form, 4);
    let wide = f32::INFINITY;
    let op = Conv2dF32 {
        output: Slot::default(),
        input: Slot::default(),
        residual: random.chance(5).then(Slot::default),
        scratch: Slot::default(),
        weights: 0,
        bias: Some(base),
        window,
        groups: groups(random, form, &window),
        clamp: random.one_of(&[[-wide, wide], [0.0, wide], [0.0, 6.0]]),
    };
    let mut values = vec![0.0; op.weights_len()? as usize];
    values.fill_with(|| random.float());
    let job = Job::Conv2dF32(op, &values);
    let mut step = Step::candidate(kernel, &job)?;
    let bias: Vec<f32> = (0..window.output[2]).map(|_| random.float()).collect();
    let mut constants = floats(&bias);
    constants.resize(constants.len().next_multiple_of(16), 0);
    let at = constants.len() as u32;
    if step.layout() == Layout::Plain {
        constants.extend(floats(&values));
    } else {
        let mut packed = vec![0; step.needs().weights as usize];
        step.pack(&job, &mut packed, &mut [])?;
        constants.extend(packed);
    }
    step.set_constants(base + at, 0);
    Some((step, constants))
}

/// An int16 convolution with its weights, which are to lie from `base` on.
pub(super) fn conv2d_s16(random: &mut Random, form: Form, base: u32) -> (Step, Vec<u8>) {
    let window = affordable(random, form, 2);
    let groups = groups(random, form, &window);
    let outputs = window.output[2];
    let mut op = Conv2dS16 {
        output: Slot::default(),
        input: Slot::default(),
        weights: 0,
        bias: base,
        channels: 0,
        window,
        groups,
        clamp: [i16::MIN, i16::MAX],
    };
    let mut constants: Vec<u8> = (0..outputs)
        .flat_map(|_| i64::from(random.byte()).to_le_bytes())
        .collect();
    op.channels = base + constants.len() as u32;
    for _ in 0..outputs {
        let random = random.contents();
        let mantissa = (1 << 30) + random.between(0, (1 << 30) - 1) as i32;
        let shift = -(random.between(4, 12) as i32);
        constants.extend([mantissa, shift].iter().flat_map(|word| word.to_le_bytes()));
    }
    op.weights = base + constants.len() as u32;
    constants.extend((0..op.weights_len().unwrap_or(0)).map(|_| random.byte()));
    (Step::Conv2dS16(op), constants)
}

/// A convolution with weights of `bits` bits and scales for several of them, from `base` on.
pub(super) fn low_bit(kernel: KernelId, random: &mut Random, form: Form, base: u32) -> Option<(Step, Vec<u8>)> {
    let window = affordable(random, form, 4);
    let groups = groups(random, form, &window);
    let [rows, columns] = window.kernel.map(u32::from);
    let filter = rows * columns * u32::from(window.input[2] / groups);
    let outputs = u32::from(window.output[2]);
    let share = random.one_of(&[u32::MAX, u32::MAX, 32, 8, 16]);
    let share = if share == u32::MAX {
        share
    } else {
        random.extent("share", share)
    };
    let share = share.min(filter);
    let parts = outputs * filter.div_ceil(share);
    let bytes = match kernel {
        KernelId::W16Conv2dF32 => 2 * outputs * filter,
        KernelId::W8Conv2dF32 => outputs * filter,
        _ => outputs * filter.div_ceil(2),
    };
    let of_nibbles = ![KernelId::W16Conv2dF32, KernelId::W8Conv2dF32].contains(&kernel);
    let nibble_left = of_nibbles && !filter.is_multiple_of(2);
    let mut weights: Vec<u8> = (0..bytes).map(|_| random.byte()).collect();
    if nibble_left {
        // The half that holds no weight is zero.
        let last = weights
            .chunks_mut(filter.div_ceil(2) as usize)
            .filter_map(<[u8]>::last_mut);
        last.for_each(|byte| *byte &= 0xf);
    }
    let (output, input) = (Slot::default(), Slot::default());
    let mut constants = Vec::new();
    Some(match kernel {
        KernelId::W4Conv2dS8 => {
            for _ in 0..outputs {
                let random = random.contents();
                let bias = random.between(0, 8000) as i32 - 4000;
                let mantissa = (1 << 30) + random.between(0, (1 << 30) - 1) as i32;
                let record = [bias, mantissa, -(random.between(4, 9) as i32)];
                constants.extend(record.iter().flat_map(|word| word.to_le_bytes()));
            }
            let factors = base + constants.len() as u32;
            constants.extend((0..parts).map(|_| random.contents().between(1, 15) as u8));
            let weights_at = base + constants.len() as u32;
            constants.extend(weights);
            let op = Conv2dS8W4 {
                output,
                input,
                weights: weights_at,
                factors,
                channels: base,
                window,
                groups,
                share,
                input_zero_point: random.byte() as i8,
                output_zero_point: -1,
                clamp: [-128, 127],
            };
            (Step::W4Conv2dS8(op), constants)
        }
        _ => {
            let bias: Vec<f32> = (0..outputs).map(|_| random.float()).collect();
            constants.extend(floats(&bias));
            let scales = base + constants.len() as u32;
            let factors: Vec<f32> = (0..parts).map(|_| 0.001 + random.float().abs()).collect();
            constants.extend(floats(&factors));
            let weights_at = base + constants.len() as u32;
            constants.extend(weights);
            let op = WeightOnlyF32 {
                output,
                input,
                residual: None,
                weights: weights_at,
                scales,
                bias: Some(base),
                window,
                groups,
                share,
                clamp: [0.0, f32::INFINITY],
            };
            let step = match kernel {
                KernelId::W16Conv2dF32 => Step::W16Conv2dF32(op),
                KernelId::W8Conv2dF32 => Step::W8Conv2dF32(op),
                KernelId::W4Conv2dF32 => Step::W4Conv2dF32(op),
                _ => return None,
            };
            (step, constants)
        }
    })
}

/// One a channel of a depthwise convolution; of others one, and now and then several.
pub(super) fn groups(random: &mut Random, form: Form, window: &Window2d) -> u16 {
    match form {
        Form::Depthwise => window.input[2],
        Form::Convolution if random.chance(12) => {
            let [inputs, outputs] = [("inputs", 0), ("outputs", 1)]
                .map(|(name, at)| random.unscaled(name, [window.input[2], window.output[2]][at].into()));
            let both = |groups: &u32| inputs.is_multiple_of(*groups) && outputs.is_multiple_of(*groups);
            let groups = [4, 2, 3].into_iter().find(both).unwrap_or(1);
            random.extent("groups", groups) as u16
        }
        _ => 1,
    }
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
