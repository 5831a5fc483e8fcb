//! Generated steps of int8 operators that TensorFlow Lite has not: locally connected layers, local response normalisation, averages by sums.

use arenite::ops::global_pool::GlobalAvgPoolS8;
use arenite::ops::locally_connected::LocallyConnectedS8;
use arenite::ops::lrn::LrnS8;
use arenite::quant::LrnI8;
use arenite::{Slot, Step};

use super::shapes::Random;

/// An average of a whole image.
pub(super) fn averaged(random: &mut Random) -> Step {
    Step::GlobalAvgPoolS8(GlobalAvgPoolS8 {
        output: Slot::default(),
        input: Slot::default(),
        scratch: Slot::default(),
        extents: [("rows", 20), ("columns", 20), ("channels", 60)].map(|(name, to)| random.axis(name, to) as u16),
        clamp: random.one_of(&[[-128, 127], [0, 127]]),
    })
}

/// A locally connected layer with its constants, which are to lie from `base` on.
pub(super) fn connected(random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let (kernel, [height, width]) = connected_extents(random, 19);
    let mut op = LocallyConnectedS8 {
        output: Slot::default(),
        input: Slot::default(),
        weights: base,
        bias: base,
        multipliers: base,
        batch: batch(random),
        input_shape: [channels(random, "inputs"), height, width],
        channels: channels(random, "outputs"),
        kernel,
        input_zero_point: random.byte() as i8,
        output_zero_point: random.byte() as i8,
        clamp: random.one_of(&[[-128, 127], [-100, 90]]),
    };
    let biases: u32 = op.output_shape().map(u32::from).iter().product();
    let [rows, columns] = op.kernel.map(u32::from);
    let weights = biases * u32::from(op.input_shape[0]) * rows * columns;
    (weights + 4 * biases <= most(random, 40 << 10)).then_some(())?;
    let mut constants = Vec::new();
    for _ in 0..op.channels {
        let random = random.contents();
        let mantissa = (1 << 30) + random.between(0, (1 << 30) - 1) as i32;
        let record = [mantissa, -(random.between(4, 9) as i32)];
        constants.extend(record.iter().flat_map(|word| word.to_le_bytes()));
    }
    op.bias = base + constants.len() as u32;
    let all = (0..biases).map(|_| random.contents().between(0, 8000) as i32 - 4000);
    constants.extend(all.flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
    op.weights = base + constants.len() as u32;
    constants.extend((0..weights).map(|_| random.byte()));
    Some((Step::LocallyConnectedS8(op), constants))
}

/// The window and the image of a locally connected layer.
pub(super) fn connected_extents(random: &mut Random, more: u32) -> ([u16; 2], [u16; 2]) {
    let kernel = [1, 2, 3].map(|_| random.between(1, 3));
    let [height, width] = [kernel[0], kernel[1]].map(|least| least + random.between(0, more));
    let kernel = [
        random.extent("kernel rows", kernel[0]),
        random.extent("kernel columns", kernel[1]),
    ];
    let image = [random.extent("height", height), random.extent("width", width)];
    (kernel.map(|n| n as u16), image.map(|n| n as u16))
}

pub(super) fn batch(random: &mut Random) -> u16 {
    let batch = if random.chance(6) { 2 } else { 1 };
    random.extent("batch", batch) as u16
}

pub(super) fn channels(random: &mut Random, name: &'static str) -> u16 {
    let channels = random.between(1, 6);
    random.extent(name, channels) as u16
}

/// The most constants: more where an axis is scaled.
pub(super) fn most(random: &Random, drawn: u32) -> u32 {
    if random.axes().is_empty() { drawn } else { 16 * drawn }
}

/// A normalisation with its table.
pub(super) fn normalising(random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let (channels, radius) = (random.axis("channels", 64), random.between(0, 4));
    let radius = random.extent("radius", radius) as u16;
    let (bias, beta, scales) = (1.0, random.one_of(&[0.75, 0.75, 0.5]), [0.05, 0.05]);
    let near = (2 * u32::from(radius) + 1).min(channels);
    let lrn = LrnI8::new([bias, random.one_of(&[0.0001, 0.2]), beta], scales, near)?;
    let mut table = vec![0; lrn.words() as usize];
    lrn.write([bias, beta], scales, &mut table)?;
    let op = LrnS8 {
        output: Slot::default(),
        input: Slot::default(),
        table: base,
        pixels: random.axis("pixels", 60),
        channels,
        radius,
        lrn,
        input_zero_point: random.byte() as i8,
        output_zero_point: random.byte() as i8,
    };
    let table = table.iter().flat_map(|word| word.to_le_bytes());
    Some((Step::LrnS8(op), table.collect()))
}
