//! Weights of few bits against the plain kernels on the weights that they stand for, and what load refuses of them.

extern crate std;

use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use crate::arena::{Mem, Rounding, Slot};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::{conv2d, low_bit};
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::low_bit::{Conv2dS8W4, MOST_FACTOR, WeightOnlyF32};
use crate::ops::operator::Operator;
use crate::ops::window::Window2d;

fn run<K: Kernel>(op: &K::Op, arena: &mut [u8], weights: &[u8]) -> Option<()> {
    let mem = Mem {
        regions: [Cell::from_mut(arena).as_slice_of_cells(), &[], &[], &[]],
        state: &[],
        weights,
        rounding: Rounding::default(),
        turning: Default::default(),
    };
    K::run(op, &mem)
}

/// A fixed sequence (xorshift).
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// `from..=to`.
    fn between(&mut self, from: u32, to: u32) -> u32 {
        from + self.next() % (to - from + 1)
    }

    fn float(&mut self) -> f32 {
        self.next() as f32 / (1_u32 << 31) as f32 - 1.0
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.float()).collect()
    }
}

/// Bytes at a multiple of 16, with a room of as many in front of them for what is written.
#[derive(Default)]
struct Memory(Vec<u128>, usize);

impl Memory {
    fn add(&mut self, bytes: &[u8]) -> u32 {
        let at = self.1.next_multiple_of(16);
        self.1 = at + bytes.len();
        self.0.resize(self.1.div_ceil(16), 0);
        self.bytes()[at..at + bytes.len()].copy_from_slice(bytes);
        at as u32
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = self.0.len() * 16;
        // SAFETY: every word is 16 bytes, initialised and borrowed mutably as long as the slice.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast::<u8>(), len) }
    }

    fn slot(&mut self, bytes: &[u8]) -> Slot {
        let offset = self.add(bytes);
        Slot { region: 0, offset }
    }
}

fn of_floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|&word| f32::from_le_bytes(word)).collect()
}

/// A window of any kind, and its groups.
fn window(random: &mut Random) -> (Window2d, u16) {
    loop {
        let kind = random.between(0, 3);
        let channels = random.between(1, 7) as u16;
        let (groups, input, output) = match kind {
            0 => (channels, channels, channels * random.between(1, 2) as u16),
            1 => (2, 2 * channels, 2 * random.between(1, 3) as u16),
            _ => (1, channels, random.between(1, 6) as u16),
        };
        let byte = |random: &mut Random, from: u32, to: u32| random.between(from, to) as u8;
        let mut window = Window2d {
            batch: random.between(1, 2) as u16,
            input: [random.between(1, 7) as u16, random.between(1, 6) as u16, input],
            output: [0, 0, output],
            kernel: [random.between(1, 3) as u16, random.between(1, 4) as u16],
            stride: [byte(random, 1, 2), byte(random, 1, 3)],
            dilation: [byte(random, 1, 2), byte(random, 1, 2)],
            padding: [byte(random, 0, 2), byte(random, 0, 2)],
        };
        for axis in 0..2 {
            let reach = (window.kernel[axis] - 1) * u16::from(window.dilation[axis]) + 1;
            let room = (window.input[axis] + 2 * u16::from(window.padding[axis])).saturating_sub(reach);
            window.output[axis] = room / u16::from(window.stride[axis]) + 1;
        }
        if window.check().is_ok() {
            return (window, groups);
        }
    }
}

/// Numbers of four bits as their kernels read them.
fn nibbles(numbers: &[i8], filter: usize) -> Vec<u8> {
    let pairs = numbers.chunks(filter).flat_map(|filter| filter.chunks(2));
    let half = |number: Option<&i8>| number.map_or(0, |&number| number as u8 & 15);
    pairs.map(|pair| half(pair.first()) | half(pair.get(1)) << 4).collect()
}

fn filter(window: &Window2d, groups: u16) -> usize {
    usize::from(window.kernel[0]) * usize::from(window.kernel[1]) * usize::from(window.input[2] / groups)
}

/// The scalar kernel of weights of `BITS` bits, and the one of f32 weights, on a generated case.
fn weight_only<const BITS: u32>(seed: u32) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9) | 1);
    let (window, groups) = window(&mut random);
    let (filter, outputs) = (filter(&window, groups), usize::from(window.output[2]));
    let share = random.between(1, filter as u32) as usize;
    let parts = filter.div_ceil(share);
    let largest = if BITS == 4 { 15 } else { 255 };
    let numbers: Vec<i8> = (0..outputs * filter)
        .map(|_| (random.between(0, largest) as i32 - (largest as i32 + 1) / 2) as i8)
        .collect();
    let scales: Vec<f32> = (0..outputs * parts).map(|_| 0.01 + random.float().abs()).collect();
    let scale = |at: usize| scales[at / filter * parts + at % filter / share];
    let wide: Vec<f32> = numbers
        .iter()
        .enumerate()
        .map(|(at, &q)| f32::from(q) * scale(at))
        .collect();
    let bias = (random.between(0, 2) > 0).then(|| random.floats(outputs));
    let input = random.floats(window.input_len().unwrap() as usize);
    let output = vec![0; 4 * window.output_len().unwrap() as usize];
    let residual = (random.between(0, 2) == 0).then(|| random.floats(output.len() / 4));
    let clamp = if random.between(0, 1) == 0 {
        [0.0, 6.0]
    } else {
        [f32::NEG_INFINITY, f32::INFINITY]
    };

    let (mut arena, mut constants) = (Memory::default(), Memory::default());
    let stored = if BITS == 4 {
        nibbles(&numbers, filter)
    } else {
        numbers.iter().map(|&q| q as u8).collect()
    };
    let op = WeightOnlyF32 {
        output: arena.slot(&output),
        input: arena.slot(&of_floats(&input)),
        residual: residual.map(|values| arena.slot(&of_floats(&values))),
        weights: constants.add(&stored),
        scales: constants.add(&of_floats(&scales)),
        bias: bias.map(|values| constants.add(&of_floats(&values))),
        window,
        groups,
        share: share as u32,
        clamp,
    };
    op.check().expect("a step that is right");
    assert_eq!(low_bit::F32::<BITS>::needs(&op).weights as usize, stored.len());
    assert!(low_bit::F32::<BITS>::trusts(&op, constants.bytes()));
    let plain = Conv2dF32 {
        output: op.output,
        input: op.input,
        residual: op.residual,
        scratch: Slot::default(),
        weights: constants.add(&of_floats(&wide)),
        bias: op.bias,
        window,
        groups,
        clamp,
    };
    let mut result = |of: &mut dyn FnMut(&mut [u8], &[u8])| {
        of(arena.bytes(), constants.bytes());
        floats(&arena.bytes()[..output.len()])
    };
    let found = result(&mut |arena, weights| run::<low_bit::F32<BITS>>(&op, arena, weights).expect("runs"));
    let expected = result(&mut |arena, weights| run::<conv2d::F32>(&plain, arena, weights).expect("runs"));
    let largest = wide.iter().fold(1.0_f32, |most, weight| most.max(weight.abs()));
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let error = (found - expected).abs();
        assert!(
            error <= 2e-6 * largest * (1.0 + filter as f32),
            "{seed}, {at}: {found} {expected}"
        );
    }
}

#[test]
fn widened_weights_give_what_f32_ones_give() {
    for seed in 0..1500 {
        weight_only::<8>(seed);
        weight_only::<4>(seed);
    }
}

/// An int8 step with weights of four bits, its constants, and the same with the products as int8 weights.
fn four_bits(random: &mut Random, arena: &mut Memory, constants: &mut Memory) -> (Conv2dS8W4, Conv2dS8) {
    let (window, groups) = window(random);
    let (filter, outputs) = (filter(&window, groups), usize::from(window.output[2]));
    let share = random.between(1, filter as u32) as usize;
    let parts = filter.div_ceil(share);
    let numbers: Vec<i8> = (0..outputs * filter).map(|_| random.between(0, 14) as i8 - 7).collect();
    let factors: Vec<u8> = (0..outputs * parts)
        .map(|_| random.between(1, MOST_FACTOR.into()) as u8)
        .collect();
    let factor = |at: usize| factors[at / filter * parts + at % filter / share] as i8;
    let products: Vec<u8> = numbers
        .iter()
        .enumerate()
        .map(|(at, &q)| (q * factor(at)) as u8)
        .collect();
    let records: Vec<u8> = (0..outputs)
        .flat_map(|_| {
            let bias = random.between(0, 20_000) as i32 - 10_000;
            let mantissa = (1 << 30) + (random.next() >> 2) as i32;
            [bias, mantissa, -(random.between(5, 12) as i32)]
        })
        .flat_map(i32::to_le_bytes)
        .collect();
    let input: Vec<u8> = (0..window.input_len().unwrap()).map(|_| random.next() as u8).collect();
    let op = Conv2dS8W4 {
        output: arena.slot(&vec![0; window.output_len().unwrap() as usize]),
        input: arena.slot(&input),
        weights: constants.add(&nibbles(&numbers, filter)),
        factors: constants.add(&factors),
        channels: constants.add(&records),
        window,
        groups,
        share: share as u32,
        input_zero_point: random.next() as i8,
        output_zero_point: random.next() as i8,
        clamp: if random.between(0, 1) == 0 {
            [-128, 127]
        } else {
            [-100, 90]
        },
    };
    op.check().expect("a step that is right");
    let plain = Conv2dS8 {
        output: op.output,
        input: op.input,
        scratch: Slot::default(),
        weights: constants.add(&products),
        channels: op.channels,
        window,
        groups,
        input_zero_point: op.input_zero_point,
        output_zero_point: op.output_zero_point,
        clamp: op.clamp,
        flags: 0,
    };
    (op, plain)
}

#[test]
fn four_bits_give_what_their_products_give_bit_for_bit() {
    for seed in 1..3000_u32 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9) | 1);
        let (mut arena, mut constants) = (Memory::default(), Memory::default());
        let (op, plain) = four_bits(&mut random, &mut arena, &mut constants);
        assert!(low_bit::S8W4::trusts(&op, constants.bytes()), "{seed}");
        let len = op.window.output_len().unwrap() as usize;
        run::<low_bit::S8W4>(&op, arena.bytes(), constants.bytes()).expect("runs");
        let found = arena.bytes()[..len].to_vec();
        run::<conv2d::S8>(&plain, arena.bytes(), constants.bytes()).expect("runs");
        assert_eq!(found, arena.bytes()[..len], "{seed}");
    }
}

/// A step of five weights an output, so that half a byte is left over, and its constants: weights, then what else it has.
const WINDOW: Window2d = Window2d {
    batch: 1,
    input: [1, 2, 5],
    output: [1, 2, 3],
    kernel: [1, 1],
    stride: [1, 1],
    dilation: [1, 1],
    padding: [0, 0],
};

#[test]
fn scales_that_are_none_and_padding_that_is_not_zero_are_refused() {
    let op = WeightOnlyF32 {
        output: Slot::default(),
        input: Slot::default(),
        residual: None,
        weights: 0,
        scales: 16,
        bias: None,
        window: WINDOW,
        groups: 1,
        share: 2,
        clamp: [0.0, 6.0],
    };
    op.check().expect("a step that is right");
    let mut constants = Memory::default();
    constants.add(&[0x77; 16]);
    constants.add(&of_floats(&[0.5; 9]));
    for last in [2, 5, 8] {
        constants.bytes()[last] = 0x07;
    }
    let trusts = |constants: &mut Memory| low_bit::F32::<4>::trusts(&op, constants.bytes());
    assert!(trusts(&mut constants));
    for last in [2, 5, 8] {
        for bit in 4..8 {
            constants.bytes()[last] ^= 1 << bit;
            assert!(!trusts(&mut constants), "byte {last}, bit {bit}");
            constants.bytes()[last] ^= 1 << bit;
        }
    }
    for at in 0..9 {
        for wrong in [0.0, -0.0, -0.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            constants.bytes()[16 + 4 * at..][..4].copy_from_slice(&wrong.to_le_bytes());
            assert!(!trusts(&mut constants), "scale {at}: {wrong}");
        }
        constants.bytes()[16 + 4 * at..][..4].copy_from_slice(&f32::from_bits(1).to_le_bytes());
        assert!(trusts(&mut constants), "scale {at}");
    }
    // Of eight bits nothing is left over.
    constants.bytes()[2] = 0xFF;
    assert!(low_bit::F32::<8>::trusts(&op, constants.bytes()));
    let wrong = [0, 6, u32::MAX].map(|share| WeightOnlyF32 { share, ..op }.check().is_err());
    assert_eq!(wrong, [true; 3]);
    assert!(WeightOnlyF32 { groups: 2, ..op }.check().is_err() && WeightOnlyF32 { groups: 0, ..op }.check().is_err());
    assert!(
        WeightOnlyF32 {
            clamp: [f32::NAN, 6.0],
            ..op
        }
        .check()
        .is_err()
    );
}

#[test]
fn factors_shifts_and_padding_of_four_bits_are_checked() {
    let op = Conv2dS8W4 {
        output: Slot::default(),
        input: Slot::default(),
        weights: 0,
        factors: 16,
        channels: 32,
        window: WINDOW,
        groups: 1,
        share: 2,
        input_zero_point: 3,
        output_zero_point: -4,
        clamp: [-128, 127],
    };
    op.check().expect("a step that is right");
    let mut constants = Memory::default();
    constants.add(&[0x07; 9]);
    constants.add(&[MOST_FACTOR; 9]);
    constants.add(
        &[[1, 1 << 30, -5]; 3]
            .concat()
            .into_iter()
            .flat_map(i32::to_le_bytes)
            .collect::<Vec<u8>>(),
    );
    let trusts = |constants: &mut Memory| low_bit::S8W4::trusts(&op, constants.bytes());
    assert!(trusts(&mut constants));
    for (at, right, wrong) in [
        (8, 0x07, 0x17),
        (16, 1, 0),
        (24, MOST_FACTOR, MOST_FACTOR + 1),
        (32 + 11, 255, 0),
    ] {
        constants.bytes()[at] = wrong;
        assert!(!trusts(&mut constants), "byte {at}");
        constants.bytes()[at] = right;
        assert!(trusts(&mut constants), "byte {at}");
    }
    let wrong = [0, 6].map(|share| Conv2dS8W4 { share, ..op }.check().is_err());
    assert_eq!(wrong, [true; 2]);
    assert!(Conv2dS8W4 { clamp: [5, 4], ..op }.check().is_err());
}
