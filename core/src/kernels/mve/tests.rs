//! Every kernel against the scalar one, bit by bit, through the same operator and memory; overlaps at the smallest distance included.

use core::cell::Cell;

use super::{add_s8, conv2d, dwconv_f32, dwconv_s8, dwconv_s8_indirection, linear_s8, pool2d_s8};
use crate::arena::{MAX_REGIONS, Mem, Rounding, Slot};
use crate::cells::{Dst, Src};
use crate::kernels::api::candidate::{Candidate, Job, PlainS8};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable;
use crate::ops::conv2d::{Conv2dF32, Conv2dS8};
use crate::ops::elementwise::Loop;
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::ops::pool2d::PoolInt;
use crate::ops::window::Window2d;
use crate::quant::Multiplier;
use crate::tensor::DType;

extern crate std;
use std::vec;
use std::vec::Vec;

/// A fixed sequence (SplitMix64), so that a failure repeats.
pub(in crate::kernels) struct Random(pub(in crate::kernels) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(in crate::kernels) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn bytes(&mut self, n: usize) -> Vec<i8> {
        (0..n).map(|_| self.next() as i8).collect()
    }
}

/// Memory of one region and constants.
fn mem<'a>(arena: &'a [Cell<u8>], weights: &'a [u8]) -> Mem<'a> {
    let mut regions: [&[Cell<u8>]; MAX_REGIONS] = [&[]; MAX_REGIONS];
    regions[0] = arena;
    Mem {
        regions,
        state: &[],
        weights,
        rounding: Rounding::default(),
        turning: Default::default(),
    }
}

fn at(offset: usize) -> Slot {
    Slot {
        region: 0,
        offset: offset as u32,
    }
}

fn to_bytes(values: &[i8]) -> Vec<u8> {
    values.iter().map(|&v| v as u8).collect()
}

/// Runs a kernel with `arena` bytes, `fill`ed at `op.input`; words keep constants and arena aligned. Returns the output, and checks that
/// nothing else but scratch is written.
fn run<K: Kernel<Op = Conv2dS8>>(op: &Conv2dS8, arena: usize, input: &[i8], weights: &[u8]) -> Vec<i8> {
    let mut words: Vec<u32> = vec![0; weights.len().div_ceil(4)];
    // SAFETY: every word is four bytes, initialised and borrowed mutably as long as the view.
    let constants = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), words.len() * 4) };
    constants[..weights.len()].copy_from_slice(weights);
    let guard = 64;
    let mut memory = vec![0x5Au8; arena + guard];
    memory[op.input.offset as usize..][..input.len()].copy_from_slice(&to_bytes(input));
    let cells = Cell::from_mut(memory.as_mut_slice()).as_slice_of_cells();
    K::run(op, &mem(&cells[..arena], constants)).expect("operands within bounds");
    assert!(memory[arena..].iter().all(|&b| b == 0x5A), "beyond the arena");
    let length = op.window.output_len().unwrap() as usize;
    memory[op.output.offset as usize..][..length]
        .iter()
        .map(|&b| b as i8)
        .collect()
}

/// Scalar and Helium kernel on one operator, apart and at the smallest distance.
pub(in crate::kernels) fn compare<S: Kernel<Op = Conv2dS8>, V: Kernel<Op = Conv2dS8>>(
    op: Conv2dS8,
    random: &mut Random,
    left: bool,
    pack: impl Fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8]) -> Option<()>,
) {
    compare_changed::<S, V>(op, random, left, |_| {}, pack);
}

/// The same, with a change to the channels' `{ bias, mantissa, shift }`.
fn compare_changed<S: Kernel<Op = Conv2dS8>, V: Kernel<Op = Conv2dS8>>(
    mut op: Conv2dS8,
    random: &mut Random,
    left: bool,
    change: impl Fn(&mut [[i32; 3]]),
    pack: impl Fn(&Conv2dS8, &[i8], &[[i32; 3]], &mut [u8]) -> Option<()>,
) {
    let (inputs, outputs) = (
        op.window.input_len().unwrap() as usize,
        op.window.output_len().unwrap() as usize,
    );
    let input = random.bytes(inputs);
    let weights: Vec<i8> = random
        .bytes(op.weights_len().unwrap() as usize)
        .iter()
        .map(|&w| w.max(-127))
        .collect();
    let taps = op.weights_len().unwrap() / u32::from(op.window.output[2]);
    let mut channels: Vec<[i32; 3]> = (0..op.window.output[2])
        .map(|_| {
            let bias = random.below(20_000) as i32 - 10_000;
            let mantissa = (1 << 30) + random.below(1 << 30) as i32;
            // Outputs of some tens, and now and then extremes.
            let shift = match random.below(8) {
                0 => 0,
                1 => -31,
                2 if left => 2,
                _ => -(6 + (taps as f32).sqrt().log2() as i32),
            };
            [bias, mantissa, shift]
        })
        .collect();
    change(&mut channels);

    let mut plain = to_bytes(&weights);
    plain.resize(plain.len().next_multiple_of(4), 0);
    op.weights = 0;
    op.channels = plain.len() as u32;
    plain.extend(channels.iter().flatten().flat_map(|v| v.to_le_bytes()));
    op.input = at(0);
    op.output = at(inputs);
    let expected = run::<S>(&op, inputs + outputs, &input, &plain);

    let needs = V::needs(&op);
    let mut packed = vec![0xEE; needs.weights as usize];
    pack(&op, &weights, &channels, &mut packed).expect("slices of the right sizes");
    op.channels = 0;
    let scratch = needs.scratch as usize;
    op.scratch = at(0);
    op.input = at(scratch);
    op.output = at(scratch + inputs);
    let apart = run::<V>(&op, scratch + inputs + outputs, &input, &packed);
    assert_eq!(apart, expected, "{op:?}");

    // As close as allowed: the output `distance` below the input, or above it where the distance is negative.
    let distance = V::distance(&op, 1).unwrap();
    let (output, input_at) = match distance {
        0.. => (scratch, scratch + distance as usize),
        _ => (scratch + distance.unsigned_abs() as usize, scratch),
    };
    op.output = at(output);
    op.input = at(input_at);
    let arena = (output + outputs).max(input_at + inputs);
    let close = run::<V>(&op, arena, &input, &packed);
    assert_eq!(close, expected, "overlapping by distance {distance}: {op:?}");
}

pub(in crate::kernels) fn window(
    batch: u16,
    input: [u16; 3],
    channels: u16,
    kernel: [u16; 2],
    stride: [u8; 2],
    padding: [u8; 2],
    below: [u16; 2],
) -> Window2d {
    let extent = |axis: usize| {
        (input[axis] + u16::from(padding[axis]) + below[axis] - kernel[axis]) / u16::from(stride[axis]) + 1
    };
    Window2d {
        batch,
        input,
        output: [extent(0), extent(1), channels],
        kernel,
        stride,
        dilation: [1, 1],
        padding,
    }
}

/// Zero points and limits: the fast form, and others.
pub(in crate::kernels) fn forms(window: Window2d, groups: u16) -> [Conv2dS8; 3] {
    let form = |input_zero_point, output_zero_point, clamp| Conv2dS8 {
        output: Slot::default(),
        input: Slot::default(),
        scratch: Slot::default(),
        weights: 0,
        channels: 0,
        window,
        groups,
        input_zero_point,
        output_zero_point,
        clamp,
        flags: 0,
    };
    [
        form(-128, -128, [-128, 127]),
        form(83, 14, [-128, 127]),
        form(0, -5, [-5, 90]),
    ]
}

#[test]
fn convolutions_equal_the_scalar_kernel() {
    let mut cases = vec![
        // Pixels: one, odd numbers, K and channels that fill no block or group, strides.
        window(1, [1, 1, 640], 128, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [1, 1, 8], 5, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 5, 64], 64, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [3, 5, 24], 20, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [7, 6, 8], 16, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [4, 4, 1], 3, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [8, 9, 16], 24, [1, 1], [2, 2], [0, 0], [0, 0]),
        window(1, [5, 5, 10], 12, [1, 1], [2, 1], [0, 0], [0, 0]),
        // Strips.
        window(1, [8, 8, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [7, 9, 16], 8, [3, 3], [2, 2], [0, 1], [1, 1]),
        window(1, [6, 5, 32], 12, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [5, 5, 20], 9, [2, 3], [1, 2], [0, 1], [1, 1]),
        window(1, [9, 4, 18], 8, [5, 1], [2, 3], [2, 0], [2, 0]),
        window(1, [4, 4, 64], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [6, 6, 17], 8, [1, 1], [2, 2], [1, 1], [0, 0]),
        // Windows: first layers.
        window(1, [12, 12, 3], 8, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [9, 9, 3], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [19, 10, 1], 16, [10, 4], [2, 2], [4, 1], [4, 1]),
        window(2, [6, 7, 8], 11, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [10, 10, 3], 8, [7, 7], [2, 2], [3, 3], [3, 3]),
        window(1, [5, 40, 2], 8, [5, 5], [1, 3], [2, 2], [2, 2]),
        window(1, [3, 3, 4], 7, [3, 3], [1, 1], [0, 0], [0, 0]),
    ];
    // Dilated: the windows reach as far as kernels of more taps, of which each axis has its own.
    let dilations: [(Window2d, [u16; 2]); 7] = [
        (window(1, [9, 12, 16], 9, [5, 7], [1, 1], [2, 3], [2, 3]), [2, 3]),
        (window(2, [7, 8, 3], 8, [5, 5], [2, 1], [2, 1], [1, 2]), [2, 2]),
        (window(1, [1, 30, 24], 24, [1, 9], [1, 1], [0, 8], [0, 0]), [1, 4]),
        (window(1, [11, 6, 5], 7, [5, 3], [1, 2], [0, 1], [0, 1]), [2, 1]),
        (window(1, [13, 3, 20], 8, [13, 1], [1, 1], [6, 0], [6, 0]), [6, 1]),
        (window(1, [4, 5, 37], 12, [7, 9], [1, 1], [3, 4], [3, 4]), [3, 4]),
        (window(1, [5, 5, 16], 4, [1, 1], [1, 1], [0, 0], [0, 0]), [2, 5]),
    ];
    cases.extend(dilations.map(|(mut window, dilation)| {
        for (axis, by) in dilation.into_iter().enumerate() {
            window.kernel[axis] = (window.kernel[axis] - 1) / by + 1;
            window.dilation[axis] = by as u8;
        }
        window
    }));
    let mut random = Random(1);
    for window in cases {
        for op in forms(window, 1) {
            for left in [false, true] {
                compare::<portable::conv2d::S8, conv2d::S8>(op, &mut random, left, conv2d::pack::<false>);
            }
        }
    }
}

/// Rows, channels that fill no group, one block and many; factors of the first channel for all, at the ends of the shifts.
#[test]
fn layers_of_channels_alike_equal_the_scalar_kernel() {
    let mut random = Random(5);
    for (batch, inputs, outputs) in [
        (1, 640, 128),
        (3, 16, 5),
        (1, 32, 8),
        (2, 144, 21),
        (1, 4000, 4),
        (2, 48, 9),
        (1, 16, 1),
        (1, 32, 18),
    ] {
        for op in forms(
            window(batch, [1, 1, inputs], outputs, [1, 1], [1, 1], [0, 0], [0, 0]),
            1,
        ) {
            for shift in [None, Some(0), Some(-31)] {
                let alike = |channels: &mut [[i32; 3]]| {
                    let [_, mantissa, own] = channels[0];
                    channels
                        .iter_mut()
                        .for_each(|[_, m, s]| (*m, *s) = (mantissa, shift.unwrap_or(own)));
                };
                compare_changed::<portable::conv2d::S8, linear_s8::S8>(op, &mut random, false, alike, linear_s8::pack);
            }
        }
    }
}

/// Accepted values of a factor are those a packer writes, and no others; layers that the kernel takes.
#[test]
fn factors_are_checked_and_layers_chosen() {
    let [op, ..] = forms(window(1, [1, 1, 16], 90, [1, 1], [1, 1], [0, 0], [0, 0]), 1);
    let (weights, mut channels) = (vec![1; 16 * 90], vec![[7, 1 << 30, -3]; 90]);
    let candidate = |op: &Conv2dS8, channels: &[[i32; 3]]| {
        let job = Job::Conv2dS8(
            *op,
            PlainS8 {
                weights: &weights,
                channels,
            },
        );
        <linear_s8::S8 as Candidate>::step(&job).is_some_and(|op| <linear_s8::S8 as Kernel>::supports(&op))
    };
    let mut packed = vec![0; <linear_s8::S8 as Kernel>::needs(&op).weights as usize];
    linear_s8::pack(&op, &weights, &channels, &mut packed).expect("a layer for it");
    let mut words: Vec<i32> = packed
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| i32::from_le_bytes(*word))
        .collect();
    let trusts = |words: &[i32]| {
        // SAFETY: every word is four bytes, initialised and borrowed as long as the view.
        let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 4) };
        <linear_s8::S8 as Kernel>::trusts(&op, bytes)
    };
    assert!(trusts(&words));
    for (word, value, trusted) in [
        (1, 0, true),
        (1, -31, true),
        (1, 1, false),
        (1, -32, false),
        (1, i32::MIN, false),
        (2, 1, false),
        (3, 1, false),
    ] {
        let was = core::mem::replace(&mut words[word], value);
        assert_eq!(trusts(&words), trusted, "{word}: {value}");
        words[word] = was;
    }
    assert!(candidate(&op, &channels));
    let changes: [fn(&mut Conv2dS8); 3] = [
        |op| op.window.input[2] = 15,
        |op| op.groups = 2,
        |op| op.window.input[1] = 2,
    ];
    for change in changes {
        let mut other = op;
        change(&mut other);
        assert!(!candidate(&other, &channels));
    }
    channels[89][1] += 1;
    assert!(!candidate(&op, &channels), "a factor of its own");
    channels.fill([7, 1 << 30, 1]);
    assert!(!candidate(&op, &channels), "a shift to the left");
    assert!(linear_s8::pays(&op), "90 channels");
    for (inputs, outputs, pays) in [
        (16, 85, false),
        (16, 82, true),
        (240, 4, false),
        (256, 4, true),
        (4000, 5, false),
        (224, 10, false),
        (240, 10, true),
    ] {
        let [few, ..] = forms(window(1, [1, 1, inputs], outputs, [1, 1], [1, 1], [0, 0], [0, 0]), 1);
        assert_eq!(linear_s8::pays(&few), pays, "{inputs} {outputs}");
    }
}

#[test]
fn depthwise_convolutions_equal_the_scalar_kernel() {
    let square = |size: u16, c, k: u16, stride, before, after| {
        window(
            1,
            [size, size, c],
            c,
            [k, k],
            [stride, stride],
            [before, before],
            [after, after],
        )
    };
    let mut cases = vec![
        window(1, [25, 5, 64], 64, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(3, [5, 6, 8], 8, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [9, 7, 20], 20, [3, 3], [2, 2], [1, 0], [1, 1]),
        window(1, [7, 9, 5], 5, [2, 3], [1, 1], [0, 2], [1, 0]),
        window(1, [1, 12, 16], 16, [1, 3], [1, 1], [0, 1], [0, 1]),
        window(1, [12, 1, 3], 3, [4, 1], [1, 1], [3, 0], [3, 0]),
        window(1, [9, 11, 33], 33, [4, 4], [1, 3], [1, 2], [2, 1]),
        window(1, [8, 8, 4], 4, [4, 2], [3, 1], [0, 0], [0, 0]),
    ];
    for size in 1..8 {
        cases.push(square(size, 16, 3, 1, 1, 1));
        cases.push(square(size, 40, 3, 2, 0, 2));
    }
    cases.push(square(48, 8, 3, 1, 1, 1));
    cases.push(square(24, 16, 3, 2, 0, 1));
    cases.push(square(13, 24, 3, 1, 1, 1));
    let mut random = Random(2);
    for window in cases {
        for op in forms(window, window.input[2]) {
            for left in [false, true] {
                compare::<portable::conv2d::DepthwiseS8, dwconv_s8::S8>(op, &mut random, left, dwconv_s8::pack);
            }
        }
    }
}

#[test]
fn depthwise_convolutions_of_any_window_equal_the_scalar_kernel() {
    let mut cases = vec![
        window(1, [9, 7, 16], 16, [5, 5], [1, 1], [2, 2], [2, 2]),
        window(2, [8, 9, 37], 37, [7, 3], [2, 1], [3, 1], [3, 1]),
        window(1, [30, 1, 40], 40, [3, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [13, 1, 48], 48, [13, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [17, 1, 21], 21, [4, 1], [2, 3], [1, 0], [2, 0]),
        window(1, [1, 12, 5], 5, [1, 9], [1, 3], [0, 4], [0, 4]),
        window(1, [4, 5, 33], 33, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(3, [5, 6, 21], 21, [2, 2], [1, 2], [1, 0], [0, 1]),
    ];
    let mut dilated = window(1, [12, 11, 18], 18, [3, 5], [1, 1], [0, 0], [2, 4]);
    (dilated.dilation, dilated.padding, dilated.output) = ([2, 2], [1, 3], [10, 9, 18]);
    cases.push(dilated);
    let mut random = Random(5);
    for window in cases {
        for op in forms(window, window.input[2]) {
            for left in [false, true] {
                compare::<portable::conv2d::DepthwiseS8, dwconv_s8_indirection::S8>(
                    op,
                    &mut random,
                    left,
                    dwconv_s8_indirection::pack,
                );
            }
        }
    }
}

/// Scalar and Helium kernel on one f32 operator; sums in another order may differ in the last bits.
pub(in crate::kernels) fn compare_f32<V: Kernel<Op = Conv2dF32>>(
    window: Window2d,
    groups: u16,
    random: &mut Random,
    pack: impl Fn(&Conv2dF32, &[f32], &mut [[u8; 4]]) -> Option<()>,
) {
    for (with_residual, clamp) in [(false, [f32::NEG_INFINITY, f32::INFINITY]), (true, [0.0, 6.0])] {
        let mut op = Conv2dF32 {
            output: Slot::default(),
            input: Slot::default(),
            residual: None,
            scratch: Slot::default(),
            weights: 0,
            bias: Some(0),
            window,
            groups,
            clamp,
        };
        let mut floats = |n: usize| -> Vec<f32> { (0..n).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect() };
        let (inputs, outputs) = (
            window.input_len().unwrap() as usize,
            window.output_len().unwrap() as usize,
        );
        let weights = floats(op.weights_len().unwrap() as usize);
        let (input, residual, bias) = (floats(inputs), floats(outputs), floats(usize::from(window.output[2])));
        let mut packed = vec![f32::NAN.to_le_bytes(); V::needs(&op).weights as usize / 4];
        pack(&op, &weights, &mut packed).unwrap();
        let packed: Vec<f32> = packed.into_iter().map(f32::from_le_bytes).collect();
        let run = |op: &mut Conv2dF32,
                   kernel: fn(&Conv2dF32, &Mem<'_>) -> Option<()>,
                   gap: usize,
                   scratch: usize,
                   weights: &[f32]| {
            let scratch = scratch.next_multiple_of(4);
            op.bias = Some(weights.len() as u32 * 4);
            op.input = at(scratch);
            op.output = at(scratch + inputs * 4);
            op.residual = with_residual.then(|| at(scratch + (inputs + gap) * 4));
            // Whatever is read by mistake poisons the result.
            let mut memory: Vec<f32> = vec![f32::NAN; scratch / 4];
            memory.extend(&input);
            memory.extend(vec![f32::NAN; gap + outputs]);
            memory[scratch / 4 + inputs + gap..].copy_from_slice(&residual);
            let constants: Vec<f32> = weights.iter().chain(&bias).copied().collect();
            // SAFETY: every float is four bytes, initialised; the vectors are touched through these views alone while the kernel runs.
            let (memory_bytes, constant_bytes) = unsafe {
                (
                    core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>(), memory.len() * 4),
                    core::slice::from_raw_parts(constants.as_ptr().cast::<u8>(), constants.len() * 4),
                )
            };
            let cells = Cell::from_mut(memory_bytes).as_slice_of_cells();
            kernel(op, &mem(cells, constant_bytes)).expect("operands within bounds");
            memory[scratch / 4 + inputs..][..outputs].to_vec()
        };
        let expected = run(&mut op, portable::conv2d::F32::run, outputs, 0, &weights);
        let scratch = V::needs(&op).scratch as usize;
        let largest = expected.iter().fold(1e-6f32, |max, x| max.max(x.abs()));
        // Behind the output, and as near to it as the kernel allows.
        let near = V::distance(&op, 2).map(|bytes| bytes as usize / 4);
        let nearer = near.into_iter().flat_map(|near| near..near + 20);
        let in_place = V::in_place(&op, 2).then_some(0);
        for gap in [outputs].into_iter().chain(nearer).chain(in_place) {
            let found = run(&mut op, V::run, gap, scratch, &packed);
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-5 * largest,
                    "{found} for {expected}, {gap}: {op:?}"
                );
            }
        }
    }
}

#[test]
fn f32_convolutions_equal_the_scalar_kernel() {
    let mut random = Random(5);
    for window in [
        window(1, [1, 1, 65], 20, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [5, 5, 8], 16, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [6, 5, 7], 3, [1, 1], [2, 2], [0, 0], [0, 0]),
        window(1, [7, 8, 5], 12, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [8, 9, 16], 8, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [9, 9, 3], 9, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [19, 10, 1], 16, [10, 4], [2, 2], [4, 1], [4, 1]),
    ] {
        compare_f32::<conv2d::F32>(window, 1, &mut random, conv2d::pack_f32);
    }
    for window in [
        window(1, [6, 5, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [9, 7, 6], 6, [5, 3], [2, 1], [2, 1], [2, 1]),
        window(1, [4, 4, 3], 3, [4, 4], [1, 1], [0, 0], [0, 0]),
    ] {
        compare_f32::<dwconv_f32::F32>(window, window.input[2], &mut random, dwconv_f32::pack);
    }
}

#[test]
fn sums_and_pools_equal_the_scalar_kernels_as_steps() {
    let mut random = Random(6);
    let mut both = |run: &dyn Fn(&Mem<'_>) -> Option<()>, oracle: &dyn Fn(&Mem<'_>) -> Option<()>, bytes: usize| {
        let start = to_bytes(&random.bytes(bytes));
        let [found, expected] = [run, oracle].map(|run| {
            let mut memory = start.clone();
            run(&mem(Cell::from_mut(memory.as_mut_slice()).as_slice_of_cells(), &[])).expect("operands within bounds");
            memory
        });
        assert_eq!(found, expected);
    };
    let half = add_s8::HALF;
    let other = Multiplier::from_real(0.37).unwrap();
    for multipliers in [[half, other], [other, half], [half, half]] {
        let mut op = BinaryInt {
            output: at(0),
            a: at(0),
            b: at(45),
            loops: [Loop { count: 45, a: 1, b: 1 }].into_iter().collect(),
            dtype: DType::I8,
            op: IntOp::Add,
            zero: [-128, 4, -128],
            shift: 20,
            multipliers: [
                multipliers[0],
                multipliers[1],
                Multiplier::from_real(1.9 / 1048576.0).unwrap(),
            ],
            clamp: [-128, 127],
        };
        assert!(add_s8::SumS8::supports(&op));
        both(
            &|mem| add_s8::SumS8::run(&op, mem),
            &|mem| portable::elementwise_s8_s16::Binary::run(&op, mem),
            90,
        );
        op.loops[0].b = 0;
        assert!(!add_s8::SumS8::supports(&op));
    }
    for window in [
        window(1, [7, 6, 20], 20, [3, 2], [2, 1], [1, 1], [1, 0]),
        window(2, [4, 4, 9], 9, [2, 2], [2, 2], [0, 0], [0, 0]),
    ] {
        let op = PoolInt {
            output: at(window.input_len().unwrap() as usize),
            input: at(0),
            dtype: DType::I8,
            window,
            clamp: [-100, 100],
        };
        assert!(pool2d_s8::MaxS8::supports(&op));
        let bytes = (window.input_len().unwrap() + window.output_len().unwrap()) as usize;
        both(
            &|mem| pool2d_s8::AvgS8::run(&op, mem),
            &|mem| portable::pool2d::AvgInt::run(&op, mem),
            bytes,
        );
        both(
            &|mem| pool2d_s8::MaxS8::run(&op, mem),
            &|mem| portable::pool2d::MaxInt::run(&op, mem),
            bytes,
        );
        let wide = PoolInt {
            dtype: DType::I16,
            ..op
        };
        assert!(!pool2d_s8::MaxS8::supports(&wide));
    }
}

#[test]
fn what_the_kernels_do_not_support_is_refused_by_its_needs() {
    let mut dilated = forms(window(1, [9, 9, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]), 16)[0];
    dilated.window.dilation = [2, 2];
    assert_eq!(dwconv_s8::S8::needs(&dilated).weights, u32::MAX);
    let wide = forms(window(1, [9, 9, 16], 16, [5, 5], [1, 1], [2, 2], [2, 2]), 16)[0];
    assert_eq!(dwconv_s8::S8::needs(&wide).weights, u32::MAX);
    let grouped = forms(window(1, [9, 9, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]), 4)[0];
    assert_eq!(conv2d::S8::needs(&grouped).weights, u32::MAX);
    assert_eq!(dwconv_s8::S8::needs(&grouped).weights, u32::MAX);
}

#[test]
fn sums_follow_the_reference() {
    let reference =
        |q: i8, term: &add_s8::Term| term.multiplier.apply((i32::from(q) - i32::from(term.zero_point)) << 20);
    let mut random = Random(3);
    let smaller = [0.49, 0.25, 0.3, 0.004, 0.5];
    for (case, zero_points) in [[-128i8, 4, -128], [-17, 0, 38], [127, -128, -5]]
        .into_iter()
        .enumerate()
    {
        for factor in smaller {
            let other = Multiplier::from_real(factor).unwrap();
            let [za, zb, zo] = zero_points;
            let half = add_s8::Term {
                zero_point: za,
                multiplier: add_s8::HALF,
            };
            let term = add_s8::Term {
                zero_point: zb,
                multiplier: other,
            };
            let result = Multiplier::from_real(1.7 / f64::from(1 << 20)).unwrap();
            let count = 67;
            let (a, b) = (random.bytes(count), random.bytes(count));
            for limits in [[-128, 127], [zo, 100.max(zo)]] {
                let expected: Vec<i8> = (a.iter().zip(&b))
                    .map(|(&a, &b)| {
                        let sum = reference(a, &half) + reference(b, &term);
                        (result.apply(sum) + i32::from(zo)).clamp(limits[0].into(), limits[1].into()) as i8
                    })
                    .collect();
                for swapped in [false, true] {
                    // In place of the first operand.
                    let mut memory: Vec<i8> = if swapped { b.clone() } else { a.clone() };
                    let cells = Cell::from_mut(memory.as_mut_slice()).as_slice_of_cells();
                    // SAFETY: `Cell<i8>` and `Cell<u8>` have the size and the alignment of a byte, and any byte is a value of both.
                    let bytes = unsafe { &*(core::ptr::from_ref(cells) as *const [Cell<u8>]) };
                    let first = Src::from_cells(bytes).unwrap();
                    let out = Dst::from_cells(bytes).unwrap();
                    let (first, second) = if swapped {
                        ((first, &term), (Src::from_slice(a.as_slice()), &half))
                    } else {
                        ((first, &half), (Src::from_slice(b.as_slice()), &term))
                    };
                    add_s8::add(first, second, result, zo, limits, out).unwrap();
                    assert_eq!(memory, expected, "case {case}, factor {factor}, limits {limits:?}");
                }
            }
        }
    }
}

#[test]
fn pools_follow_the_reference() {
    let cases = [
        window(1, [25, 5, 64], 64, [25, 5], [25, 5], [0, 0], [0, 0]),
        window(2, [3, 3, 20], 20, [3, 3], [3, 3], [0, 0], [0, 0]),
        window(1, [7, 6, 9], 9, [3, 2], [2, 1], [1, 1], [1, 0]),
        window(1, [40, 20, 3], 3, [40, 20], [1, 1], [0, 0], [0, 0]),
        window(1, [1, 700, 2], 2, [1, 700], [1, 1], [0, 0], [0, 0]),
    ];
    let mut random = Random(4);
    for window in cases {
        for limits in [[-128i8, 127], [-3, 40]] {
            let input = random.bytes(window.input_len().unwrap() as usize);
            let [ih, iw, c] = window.input.map(i32::from);
            let [oh, ow, _] = window.output.map(i32::from);
            let (mut means, mut maxima) = (Vec::new(), Vec::new());
            for (n, y) in (0..i32::from(window.batch)).flat_map(|n| (0..oh).map(move |y| (n, y))) {
                for (x, channel) in (0..ow).flat_map(|x| (0..c).map(move |channel| (x, channel))) {
                    let mut inside = Vec::new();
                    for ky in 0..i32::from(window.kernel[0]) {
                        for kx in 0..i32::from(window.kernel[1]) {
                            let row = y * i32::from(window.stride[0]) + ky - i32::from(window.padding[0]);
                            let column = x * i32::from(window.stride[1]) + kx - i32::from(window.padding[1]);
                            if (0..ih).contains(&row) && (0..iw).contains(&column) {
                                let at = ((n * ih + row) * iw + column) * c + channel;
                                inside.push(i32::from(input[at as usize]));
                            }
                        }
                    }
                    let (sum, count) = (inside.iter().sum::<i32>(), inside.len() as i32);
                    let mean = (f64::from(sum) / f64::from(count)).round() as i32;
                    let [low, high] = limits.map(i32::from);
                    means.push(mean.clamp(low, high) as i8);
                    maxima.push((*inside.iter().max().unwrap()).clamp(low, high) as i8);
                }
            }
            let mut out = vec![0u8; means.len()];
            let cells = Cell::from_mut(out.as_mut_slice()).as_slice_of_cells();
            let src = Src::from_slice(input.as_slice());
            pool2d_s8::average(&window, src, Dst::from_cells(cells).unwrap(), limits).unwrap();
            assert_eq!(out, to_bytes(&means), "average, {window:?}");
            let cells = Cell::from_mut(out.as_mut_slice()).as_slice_of_cells();
            pool2d_s8::max(&window, src, Dst::from_cells(cells).unwrap(), limits).unwrap();
            assert_eq!(out, to_bytes(&maxima), "maximum, {window:?}");
        }
    }
}
