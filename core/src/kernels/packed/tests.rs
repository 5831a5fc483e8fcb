//! Every kernel against the scalar one, on random layers; overlaps against separate buffers.

extern crate std;

use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::channel_record::{
    BLOCK, BLOCK2, BLOCK3, BLOCK4, BLOCK8, CONSTANT, GENERAL, LEAST_BITS, Record, SINGLE, is_packed, single_bits,
    single_code,
};
use super::linear_s8_layout::{Bytes, Halves, Layout};
use super::pack::blocks_fit;
use super::{conv2d_s8, dwconv_s8, linear_s8, linear_s8_dot};
use crate::arena::{Mem, Rounding, Slot};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::window::Window2d;

/// Bytes behind the operands that nothing may write.
const GUARD: usize = 64;

type Pack = fn(&Conv2dS8, &[i8], &[Record], &mut [u8], &mut [Record]) -> Option<()>;

/// A layer with its data.
#[derive(Debug, Clone)]
struct Layer {
    op: Conv2dS8,
    weights: Vec<i8>,
    channels: Vec<Record>,
    input: Vec<i8>,
}

/// Weights, filled up to a word, and the records behind them.
fn constants(weights: &[u8], records: &[Record]) -> Vec<u32> {
    let weights = weights.chunks(4).map(|bytes| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    });
    weights
        .chain(records.iter().flatten().map(|&word| word as u32))
        .collect()
}

fn bytes(words: &[u32]) -> &[u8] {
    // SAFETY: every word is four bytes, initialised and borrowed as long as the slice.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 4 * words.len()) }
}

impl Layer {
    /// The kernel's output with the output `below` bytes below the input (`None`: apart).
    fn run<K: Kernel<Op = Conv2dS8>>(&self, weights: &[u8], records: &[Record], below: Option<i64>) -> Option<Vec<i8>> {
        let (inputs, outputs) = (self.input.len(), self.op.window.output_len()? as usize);
        // Offsets within one aligned buffer: scratch, then output and input.
        let scratch = (K::needs(&self.op).scratch as usize).next_multiple_of(16);
        let (out_at, in_at) = match below {
            None => (scratch + inputs, scratch),
            Some(d) if d >= 0 => (scratch, scratch + d as usize),
            Some(d) => (scratch + d.unsigned_abs() as usize, scratch),
        };
        let end = (out_at + outputs).max(in_at + inputs);
        let len = end + GUARD;
        let arena = vec![Cell::new(0x5a_5a_5a_5a_5a_5a_5a_5au64); len.div_ceil(8)];
        let constants = constants(weights, records);
        // SAFETY: `arena` has `len` bytes in words of eight, which outlive the cells.
        let cells = unsafe { core::slice::from_raw_parts(arena.as_ptr().cast::<Cell<u8>>(), len) };
        cells[in_at..]
            .iter()
            .zip(&self.input)
            .for_each(|(cell, &x)| cell.set(x as u8));
        let slot = |offset: usize| Slot {
            region: 0,
            offset: offset as u32,
        };
        let op = Conv2dS8 {
            output: slot(out_at),
            input: slot(in_at),
            scratch: slot(0),
            weights: 0,
            channels: weights.len().next_multiple_of(4) as u32,
            ..self.op
        };
        let mem = Mem {
            regions: [cells, &[], &[], &[]],
            state: &[],
            weights: bytes(&constants),
            rounding: Rounding::default(),
            turning: Default::default(),
        };
        let ran = K::run(&op, &mem);
        assert!(
            cells[end..].iter().all(|cell| cell.get() == 0x5a),
            "written behind the output"
        );
        ran?;
        Some(cells[out_at..][..outputs].iter().map(|cell| cell.get() as i8).collect())
    }

    fn reference(&self) -> Vec<i8> {
        let weights: Vec<u8> = self.weights.iter().map(|&w| w as u8).collect();
        self.run::<portable::conv2d::S8>(&weights, &self.channels, None)
            .unwrap()
    }

    fn packed<K: Kernel<Op = Conv2dS8>>(&self, pack: Pack) -> Option<(Vec<u8>, Vec<Record>)> {
        let mut weights = vec![0xff; K::needs(&self.op).weights as usize];
        let mut records = vec![[-1; 3]; self.channels.len()];
        pack(&self.op, &self.weights, &self.channels, &mut weights, &mut records)?;
        Some((weights, records))
    }

    fn check<K: Kernel<Op = Conv2dS8>>(&self, pack: Pack) -> Result<(), TestCaseError> {
        let (weights, records) = self.packed::<K>(pack).unwrap();
        let expected = self.reference();
        prop_assert_eq!(
            self.run::<K>(&weights, &records, None).unwrap(),
            expected.clone(),
            "apart"
        );
        if let Some(distance) = K::distance(&self.op, 1) {
            prop_assert_eq!(
                self.run::<K>(&weights, &records, Some(distance)).unwrap(),
                expected.clone(),
                "{} below",
                distance
            );
        }
        if K::in_place(&self.op, 1) {
            prop_assert_eq!(
                self.run::<K>(&weights, &records, Some(0)).unwrap(),
                expected,
                "in place"
            );
        }
        Ok(())
    }
}

/// Weights of several magnitudes meet every block; multipliers of several sizes every requantising.
fn layer(depthwise: bool, max_kernel: u16) -> impl Strategy<Value = Layer> {
    let shape = (1..=2u16, 1..=9u16, 1..=9u16, 1..=26u16, 1..=9u16);
    let window = (1..=max_kernel, 1..=max_kernel, 1..=3u8, 1..=2u8, 1..=2u8, any::<bool>());
    let values = (any::<i8>(), any::<i8>(), 0..4, 0..3, any::<u64>());
    (shape, window, values).prop_map(
        move |((batch, h, w, c, o), (kh, kw, stride, down, right, pad), (zin, zout, clamp, size, seed))| {
            let mut random = Random(seed);
            let o = if depthwise { c } else { o };
            let reach = |k: u16, d: u8| (k - 1) * u16::from(d) + 1;
            let padding = [(kh, down), (kw, right)].map(|(k, d)| if pad { (reach(k, d) / 2) as u8 } else { 0 });
            let extent = |n: u16, k: u16, d: u8, p: u8| {
                let (n, k) = (n.max(reach(k, d)), reach(k, d));
                (n, (n + 2 * u16::from(p) - k) / u16::from(stride) + 1)
            };
            let (h, oh) = extent(h, kh, down, padding[0]);
            let (w, ow) = extent(w, kw, right, padding[1]);
            let window = Window2d {
                batch,
                input: [h, w, c],
                output: [oh, ow, o],
                kernel: [kh, kw],
                stride: [stride, stride],
                dilation: [down, right],
                padding,
            };
            let groups = if depthwise { c } else { 1 };
            let inputs = usize::from(kh * kw * c / groups);
            let mut weights = Vec::new();
            let mut channels = Vec::new();
            for _ in 0..o {
                let limit = [127, 127, 60, 30, 10, 0][random.below(6)];
                weights.extend((0..inputs).map(|_| (random.below(2 * limit + 1) as i32 - limit as i32) as i8));
                let shift = match size {
                    0 => -(random.below(10) as i32),
                    1 => -(random.below(32) as i32),
                    _ => random.below(7) as i32 - 5,
                };
                let mantissa = (1 << 30) + random.below(1 << 30) as i32;
                let bias = match random.below(8) {
                    0 => random.next() as i32,
                    _ => random.below(20_000) as i32 - 10_000,
                };
                channels.push([bias, mantissa, shift]);
            }
            let op = Conv2dS8 {
                output: Slot::default(),
                input: Slot::default(),
                scratch: Slot::default(),
                weights: 0,
                channels: 0,
                window,
                groups,
                input_zero_point: zin,
                output_zero_point: zout,
                clamp: match clamp {
                    0 => [zout, 127],
                    1 => [-100, 100],
                    _ => [-128, 127],
                },
                flags: 0,
            };
            let input = (0..window.input_len().unwrap()).map(|_| random.next() as i8).collect();
            Layer {
                op,
                weights,
                channels,
                input,
            }
        },
    )
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { ProptestConfig::default().cases * 3 / 2 }))]

    #[test]
    fn convolutions_equal_the_scalar_kernel(layer in layer(false, 3)) {
        layer.check::<conv2d_s8::S8>(conv2d_s8::pack)?;
    }

    #[test]
    fn pointwise_convolutions_equal_the_scalar_kernel(layer in layer(false, 1)) {
        layer.check::<conv2d_s8::S8>(conv2d_s8::pack)?;
    }

    #[test]
    fn dense_layers_equal_the_scalar_kernel(layer in layer(false, 1)) {
        if conv2d_s8::pointwise_pixels(&layer.op.window).is_some() {
            layer.check::<linear_s8::S8>(linear_s8::pack::<Halves>)?;
            layer.check::<linear_s8::Narrow>(linear_s8::pack::<Bytes>)?;
        } else {
            prop_assert!(layer.packed::<linear_s8::S8>(linear_s8::pack::<Halves>).is_none());
            prop_assert!(layer.packed::<linear_s8::Narrow>(linear_s8::pack::<Bytes>).is_none());
        }
    }

    #[test]
    fn depthwise_convolutions_equal_the_scalar_kernel(layer in layer(true, 5)) {
        layer.check::<dwconv_s8::S8>(dwconv_s8::pack)?;
    }

    #[test]
    fn three_by_three_depthwise_convolutions_equal_the_scalar_kernel(mut layer in layer(true, 3), wide in 3..12u16) {
        let window = &mut layer.op.window;
        let stride = u16::from(window.stride[1]);
        window.dilation = [1, 1];
        window.kernel = [3, 3];
        window.padding = [1, 1];
        window.input[1] = wide;
        window.output[0] = (window.input[0] - 1) / u16::from(window.stride[0]) + 1;
        window.output[1] = (wide - 1) / stride + 1;
        let mut random = Random(u64::from(wide));
        layer.input = (0..layer.op.window.input_len().unwrap()).map(|_| random.next() as i8).collect();
        layer.weights = (0..9 * usize::from(layer.op.groups)).map(|_| random.next() as i8).collect();
        layer.check::<dwconv_s8::S8>(dwconv_s8::pack)?;
    }
}

fn fixed(inputs: u16, outputs: u16, weight: impl Fn(usize, usize) -> i8) -> Layer {
    let window = Window2d {
        batch: 1,
        input: [5, 5, inputs],
        output: [5, 5, outputs],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    };
    let op = Conv2dS8 {
        output: Slot::default(),
        input: Slot::default(),
        scratch: Slot::default(),
        weights: 0,
        channels: 0,
        window,
        groups: 1,
        input_zero_point: -128,
        output_zero_point: 3,
        clamp: [-128, 127],
        flags: 0,
    };
    let mut random = Random(7);
    Layer {
        op,
        weights: (0..usize::from(outputs))
            .flat_map(|o| (0..usize::from(inputs)).map(move |i| (o, i)))
            .map(|(o, i)| weight(o, i))
            .collect(),
        channels: vec![[1000, 1_500_000_000, -7]; usize::from(outputs)],
        input: (0..25 * usize::from(inputs))
            .map(|_| [-128, 127][random.below(2)])
            .collect(),
    }
}

/// Each block at the edge of what it may hold, on inputs of the type's limits: +-128 * 255 fits, one more does not.
#[test]
fn blocks_hold_their_largest_sums() {
    let sums = [
        [-64, 64, 63, -64],
        [-127, 127, 0, 0],
        [85, -85, 85, 0],
        [32, -32, 31, 32],
    ];
    let layer = fixed(24, 5, |o, i| match o {
        0 => sums[0][i % 4],
        1 => {
            if i % 8 < 3 {
                sums[1][i % 4]
            } else {
                -120
            }
        }
        2 => [85, -85, 85][i % 3],
        3 => {
            if i % 8 == 7 {
                31
            } else {
                sums[3][i % 2]
            }
        }
        _ => 127,
    });
    let (weights, records) = layer.packed::<conv2d_s8::S8>(conv2d_s8::pack).unwrap();
    let mut blocks: Vec<_> = records.iter().map(|r| (r[2] >> 16, r[2] & BLOCK)).collect();
    blocks.sort();
    assert_eq!(
        blocks,
        [(0, BLOCK4), (1, BLOCK2), (2, BLOCK3), (3, BLOCK8), (4, BLOCK2)]
    );
    assert_eq!(
        layer.run::<conv2d_s8::S8>(&weights, &records, None).unwrap(),
        layer.reference()
    );
    let neighbours = fixed(4, 1, |_, _| -128);
    assert!(
        neighbours.packed::<conv2d_s8::S8>(conv2d_s8::pack).is_none(),
        "two -128 exceed 16 bits"
    );
}

/// The same of fully connected layers, whose groups of four channels have blocks of up to 32; a channel with one weight more makes its group's smaller.
#[test]
fn dense_blocks_hold_their_largest_sums() {
    const BLOCKS: [usize; 6] = [32, 16, 8, 4, 3, 2];
    let weight = |block: usize, i: usize| match block {
        3 => 85,
        2 => 127,
        // 255 in all.
        _ => (256 / block - usize::from(i % block == block / 2)) as i8,
    };
    for more in [false, true] {
        let mut layer = fixed(96, 24, |o, i| {
            let block = BLOCKS[o / 4];
            let one = i8::from(more && block > 2 && o % 4 == 2 && i == block / 2);
            // 256 times 127 and -128 are within 16 bits, 256 times 128 is not.
            let sign = if o % 4 == 2 { -1 } else { 1 };
            sign * (weight(block, i) + one)
        });
        (layer.op.window.input, layer.op.window.output) = ([1, 1, 96], [1, 1, 24]);
        layer.input = (0..96).map(|i| [i8::MIN, i8::MIN, i8::MAX][i % 3]).collect();
        let numbers = |records: &[Record]| -> Vec<u32> {
            let firsts = records.iter().step_by(4);
            firsts.map(|record| linear_s8_dot::number(record[2])).collect()
        };
        let (weights, records) = layer.packed::<linear_s8::Narrow>(linear_s8::pack::<Bytes>).unwrap();
        assert_eq!(
            numbers(&records),
            if more { [4, 3, 0, 1, 1, 1] } else { [4, 4, 3, 0, 1, 1] }
        );
        assert_eq!(
            layer.run::<linear_s8::Narrow>(&weights, &records, None).unwrap(),
            layer.reference()
        );
        // It has no loops for blocks of three and of 32.
        for code in [BLOCK3, BLOCK8 | 2 << 16] {
            let mut wrong = records.clone();
            wrong
                .iter_mut()
                .take(4)
                .for_each(|record| record[2] = record[2] & 0xff | code);
            let op = Conv2dS8 {
                channels: weights.len() as u32,
                ..layer.op
            };
            assert!(
                !linear_s8::Narrow::trusts(&op, bytes(&constants(&weights, &wrong))),
                "{code:#x}"
            );
            assert_eq!(
                layer.run::<linear_s8::Narrow>(&weights, &wrong, None),
                None,
                "{code:#x}"
            );
        }
        let (weights, records) = layer.packed::<linear_s8::S8>(linear_s8::pack::<Halves>).unwrap();
        assert_eq!(
            numbers(&records),
            if more { [4, 3, 0, 1, 1, 1] } else { [5, 4, 3, 0, 1, 1] }
        );
        assert_eq!(
            layer.run::<linear_s8::S8>(&weights, &records, None).unwrap(),
            layer.reference()
        );
        // Blocks of three, which older files have.
        let mut older = records.clone();
        older
            .iter_mut()
            .skip(16)
            .take(4)
            .for_each(|record| record[2] = record[2] & !BLOCK | BLOCK3);
        assert_eq!(
            layer.run::<linear_s8::S8>(&weights, &older, None).unwrap(),
            layer.reference()
        );
        // No packer doubles blocks of four, nor those of eight three times.
        for code in [BLOCK4 | 1 << 16, BLOCK8 | 3 << 16] {
            let mut wrong = records.clone();
            wrong
                .iter_mut()
                .take(4)
                .for_each(|record| record[2] = record[2] & 0xff | code);
            let op = Conv2dS8 {
                channels: weights.len() as u32,
                ..layer.op
            };
            assert!(
                !linear_s8::S8::trusts(&op, bytes(&constants(&weights, &wrong))),
                "{code:#x}"
            );
        }
    }
}

/// Products of positive weights go further below zero than above it, those of negative ones the other way round.
#[test]
fn both_ends_of_a_block_are_looked_at() {
    let fits = |weights: [i8; 3]| blocks_fit(weights.into_iter(), 3);
    // 200 * 128 + 56 * 127 is 32,712, and 32,839 with 57.
    assert!(fits([100, 100, -56]) && !fits([100, 100, -57]));
    assert!(fits([-100, -100, 56]) && !fits([-100, -100, 57]));
}

/// Load looks at all that a dense layer's packer leaves zero or equal, where no kernel looks again.
#[test]
fn a_dense_layers_records_and_filling_are_looked_at() {
    let mut layer = fixed(6, 7, |o, i| (o * i) as i8);
    (layer.op.window.input, layer.op.window.output) = ([1, 1, 6], [1, 1, 7]);
    looked_at::<Halves>(&layer, |at| (at / 64, at / 8 % 8, at / 2 % 4));
    looked_at::<Bytes>(&layer, |at| (at / 32, at / 4 % 8, [0, 2, 1, 3][at % 4]));
    // Without blocks.
    let mut layer = fixed(6, 7, |_, _| i8::MIN);
    (layer.op.window.input, layer.op.window.output) = ([1, 1, 6], [1, 1, 7]);
    looked_at::<Bytes>(&layer, |at| (at / 32, at / 4 % 8, at % 4));
}

/// `of`: the group, the input and the channel of a byte of the weights.
fn looked_at<L: Layout>(layer: &Layer, of: fn(usize) -> (usize, usize, usize)) {
    let (weights, records) = layer.packed::<linear_s8::Dense<L>>(linear_s8::pack::<L>).unwrap();
    let op = Conv2dS8 {
        channels: weights.len() as u32,
        ..layer.op
    };
    let trusts =
        |weights: &[u8], records: &[Record]| linear_s8::Dense::<L>::trusts(&op, bytes(&constants(weights, records)));
    assert!(trusts(&weights, &records));
    for channel in 0..records.len() {
        for bit in [BLOCK & -BLOCK, 1 << 16, i32::MIN] {
            let mut records = records.clone();
            records[channel][2] ^= bit;
            assert!(!trusts(&weights, &records), "channel {channel}, bit {bit:#x}");
        }
    }
    // Eight inputs of four channels, of which two inputs and, in the second group, the last channel are not there.
    let mut filled = 0;
    for at in 0..weights.len() {
        let (group, input, channel) = of(at);
        let is_there = input < 6 && group * 4 + channel < 7;
        let mut weights = weights.clone();
        weights[at] ^= 0x40;
        assert_eq!(trusts(&weights, &records), is_there, "byte {at}");
        filled += usize::from(!is_there);
    }
    assert_eq!(filled, L::WORDS as usize * (2 * 8 + 6));
}

/// Every output is written, and once: records that name a channel twice leave another one's outputs as the arena has them.
#[test]
fn records_name_each_channel_once() {
    // Rows of several blocks, and a constant one.
    let layer = fixed(16, 12, |o, i| match o % 4 {
        0 => 3,
        1 => 127,
        2 if i % 8 == 7 => 31,
        2 => -85,
        _ => i8::from(o != 7) * i as i8,
    });
    let (weights, records) = layer.packed::<conv2d_s8::S8>(conv2d_s8::pack).unwrap();
    let op = Conv2dS8 {
        channels: weights.len() as u32,
        ..layer.op
    };
    let trusts = |records: &[Record]| conv2d_s8::S8::trusts(&op, bytes(&constants(&weights, records)));
    assert!(trusts(&records));
    for (row, channel) in (0..12).flat_map(|row| (0..12).map(move |channel| (row, channel))) {
        let mut changed = records.clone();
        changed[row][2] = changed[row][2] & 0xffff | channel << 16;
        assert_eq!(
            trusts(&changed),
            changed == records,
            "row {row} names channel {channel}"
        );
    }
}

/// Behind a fused ReLU channels round once, with what cores without 64-bit products want of the record.
#[test]
fn records_that_round_once_are_looked_at() {
    let mut layer = fixed(8, 3, |o, i| (40 * o + i) as i8);
    layer.op.output_zero_point = -128;
    let (weights, records) = layer.packed::<conv2d_s8::S8>(conv2d_s8::pack).unwrap();
    assert!(records.iter().all(|record| record[2] & SINGLE != 0), "{records:?}");
    let op = Conv2dS8 {
        channels: weights.len() as u32,
        ..layer.op
    };
    let trusts = |op: &Conv2dS8, records: &[Record]| conv2d_s8::S8::trusts(op, bytes(&constants(&weights, records)));
    assert!(trusts(&op, &records));
    let changed = |record: usize, word: usize, value: i32| {
        let mut records = records.clone();
        records[record][word] = value;
        trusts(&op, &records)
    };
    let [bias, multiplier, code] = records[1];
    let bits = single_bits(code);
    // Other bits than the other channels'; a shift by nothing or by more than a word has; a negative mantissa, and one with bits that are dropped.
    assert!(!changed(1, 2, code ^ 0x1000));
    assert!(!changed(1, 2, code & !0xff) && !changed(1, 2, code & !0xff | 31) && changed(1, 2, code & !0xff | 30));
    assert!(!changed(1, 1, multiplier | i32::MIN) && !changed(1, 1, multiplier | 1 << (14 - bits)));
    assert!(changed(1, 1, multiplier ^ 1 << (15 - bits)));
    // A bias that leaves no room for the sum of any weights.
    let room = (1 << (30 - bits)) - 8 * (1 << 14);
    assert!(changed(1, 0, room - 1) && !changed(1, 0, room) && !changed(1, 0, -room) && bias.abs() < room);
    // The other forms have no bits; outputs below the zero point count for this one.
    assert!(!changed(1, 2, code & !SINGLE | 0x1000));
    let both_sides = Conv2dS8 {
        output_zero_point: -127,
        ..op
    };
    assert!(!trusts(&both_sides, &records));
}

#[test]
fn mantissas_have_as_many_bits_as_their_code_says() {
    for bits in LEAST_BITS..16 {
        let (code, least) = (single_code(20, bits), 1 << (15 - bits));
        let packed = |multiplier| is_packed(&[0, multiplier, code], 1, -128);
        assert!(packed(1 << 30) && packed(least | 1 << 30) && packed(i32::MAX & -least));
        assert!((0..15 - bits).all(|bit| !packed(1 << 30 | 1 << bit)), "{bits}");
    }
}

#[test]
fn channels_that_never_change_cost_no_products() {
    let mut layer = fixed(16, 3, |o, i| if o == 1 { 0 } else { i as i8 });
    layer.channels[1] = [1 << 30, 1_500_000_000, -27];
    layer.channels[2] = [-(1 << 20), 1_500_000_000, -3];
    let (weights, records) = layer.packed::<conv2d_s8::S8>(conv2d_s8::pack).unwrap();
    let constant: Vec<_> = records
        .iter()
        .filter(|r| r[2] & CONSTANT != 0)
        .map(|r| r[2] >> 16)
        .collect();
    assert_eq!(constant, [1, 2]);
    // Their rows come last and hold zeros: a loop of two channels may go past them.
    let (products, none) = weights.split_at(16);
    assert!(products.iter().any(|&w| w != 0) && none.iter().all(|&w| w == 0));
    assert!(records.iter().all(|r| r[2] & GENERAL == 0));
    assert_eq!(
        layer.run::<conv2d_s8::S8>(&weights, &records, None).unwrap(),
        layer.reference()
    );
}

/// A record that a packer never writes ends the step, and not the memory behind it.
#[test]
fn false_records_are_refused() {
    let layer = fixed(4, 2, |_, i| i as i8);
    let (weights, records) = layer.packed::<conv2d_s8::S8>(conv2d_s8::pack).unwrap();
    for code in [2 << 16, -1, BLOCK3, BLOCK8] {
        let mut records = records.clone();
        records[1][2] |= code;
        assert_eq!(layer.run::<conv2d_s8::S8>(&weights, &records, None), None, "{code:#x}");
    }
}

/// The last pixels of an image are fewer than a group of four: the loop hands all their sums back, whatever form the records say.
#[test]
fn a_group_of_fewer_than_four_pixels_stores_no_more() {
    let layer = fixed(4, 2, |_, i| i as i8);
    let (weights, mut records) = layer.packed::<conv2d_s8::S8>(conv2d_s8::pack).unwrap();
    records.iter_mut().for_each(|record| record[2] = 0);
    for (height, width) in [(1, 1), (1, 2), (1, 3), (1, 5), (2, 3), (7, 1)] {
        let mut layer = layer.clone();
        layer.op.window.input = [height, width, 4];
        layer.op.window.output = [height, width, 2];
        layer.input.truncate(usize::from(4 * height * width));
        layer.run::<conv2d_s8::S8>(&weights, &records, None);
    }
}

/// The loops of cores take one row at least: where the last channel is of the general form they are not called again.
#[test]
fn the_last_channel_may_be_of_the_general_form() {
    for kernel in [1, 3] {
        let mut layer = fixed(4, 3, |o, i| (o + i) as i8);
        if kernel == 3 {
            layer.op.window.kernel = [3, 3];
            layer.op.window.padding = [1, 1];
            layer.weights = (0..3 * 36).map(|at| at as i8).collect();
        }
        for general in 0..8_usize {
            let mut layer = layer.clone();
            // A multiplier above 1 has no other form.
            (0..3)
                .filter(|c| general >> c & 1 == 1)
                .for_each(|c| layer.channels[c] = [1000, 1_500_000_000, 2]);
            let (weights, records) = layer.packed::<conv2d_s8::S8>(conv2d_s8::pack).unwrap();
            let found = records.iter().filter(|record| record[2] & GENERAL != 0).count();
            assert_eq!(found, general.count_ones() as usize);
            assert_eq!(
                layer.run::<conv2d_s8::S8>(&weights, &records, None).unwrap(),
                layer.reference(),
                "{kernel}, {general:#b}"
            );
        }
    }
}

mod sums {
    use super::*;
    use crate::cells::{Dst, Src};
    use crate::kernels::packed::add_s8::{Term, add};
    use crate::quant::Multiplier;

    fn cells(bytes: &[i8]) -> Vec<Cell<u8>> {
        bytes.iter().map(|&x| Cell::new(x as u8)).collect()
    }

    proptest! {
        #[test]
        fn equal_the_reference(
            scales in (0.01_f64..1.0, 0.01_f64..1.0, 0.01_f64..1.0), zero_points in any::<(i8, i8, i8)>(), clamp: bool, same in 0..4, seed: u64,
        ) {
            let mut random = Random(seed);
            let (a_scale, b_scale, y_scale) = (scales.0, if same == 0 { scales.0 } else { scales.1 }, scales.2);
            let twice = 2.0 * a_scale.max(b_scale);
            let of = |real: f64| Multiplier::from_real(real).unwrap();
            let a_term = Term { zero_point: zero_points.0, multiplier: of(a_scale / twice) };
            let b_term = Term { zero_point: zero_points.1, multiplier: of(b_scale / twice) };
            let multiplier = of(twice / (f64::from(1 << 20) * y_scale));
            let limits = if clamp { [-50, 90] } else { [-128, 127] };
            let a: Vec<i8> = (0..300).map(|_| random.next() as i8).collect();
            let b: Vec<i8> = (0..300).map(|_| random.next() as i8).collect();
            let expected: Vec<i8> = a.iter().zip(&b).map(|(&a, &b)| {
                let scale = |x: i8, term: &Term| term.multiplier.apply((i32::from(x) - i32::from(term.zero_point)) << 20);
                let sum = multiplier.apply(scale(a, &a_term) + scale(b, &b_term)) + i32::from(zero_points.2);
                sum.clamp(limits[0], limits[1]) as i8
            }).collect();
            let buffer = cells(&a);
            let in_place = Dst::<i8>::from_cells(&buffer).unwrap();
            let limits = limits.map(|l| l as i8);
            add((in_place.as_src(), &a_term), (Src::from_slice(&b), &b_term), multiplier, zero_points.2, limits, in_place).unwrap();
            prop_assert_eq!(in_place.as_src().iter().collect::<Vec<_>>(), expected);
        }
    }
}

mod pools {
    use super::*;
    use crate::cells::{Dst, Src};
    use crate::kernels::packed::pool2d_s8;

    proptest! {
        #[test]
        fn equal_the_formula(layer in layer(true, 4)) {
            let mut window = layer.op.window;
            window.dilation = [1, 1];
            let [h, w, c] = window.input.map(usize::from);
            for axis in 0..2 {
                let room = window.input[axis] + 2 * u16::from(window.padding[axis]) - window.kernel[axis];
                window.padding[axis] = window.padding[axis].min((window.kernel[axis] - 1) as u8);
                window.output[axis] = room / u16::from(window.stride[axis]) + 1;
            }
            prop_assume!(window.check().is_ok());
            let buffer = vec![Cell::new(0u8); window.output_len().unwrap() as usize];
            let output = Dst::<i8>::from_cells(&buffer).unwrap();
            let input = Src::from_slice(&layer.input);
            let mut elements = Vec::new();
            let [oh, ow, _] = window.output.map(usize::from);
            for n in 0..usize::from(window.batch) {
                for (y, x) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
                    for channel in 0..c {
                        let mut inside = Vec::new();
                        for (ky, kx) in (0..window.kernel[0]).flat_map(|ky| (0..window.kernel[1]).map(move |kx| (ky, kx))) {
                            let at = |o: usize, k: u16, axis: usize| {
                                let place = o * usize::from(window.stride[axis]) + usize::from(k);
                                place.checked_sub(usize::from(window.padding[axis]))
                            };
                            if let (Some(iy), Some(ix)) = (at(y, ky, 0), at(x, kx, 1)) && iy < h && ix < w {
                                inside.push(i32::from(layer.input[((n * h + iy) * w + ix) * c + channel]));
                            }
                        }
                        elements.push(inside);
                    }
                }
            }
            prop_assume!(elements.iter().all(|e| !e.is_empty()));
            pool2d_s8::average(&window, input, output, [-90, 100]).unwrap();
            let means: Vec<i8> = elements.iter().map(|e| {
                let (sum, n) = (e.iter().sum::<i32>(), e.len() as i32);
                (if sum > 0 { (sum + n / 2) / n } else { (sum - n / 2) / n }).clamp(-90, 100) as i8
            }).collect();
            prop_assert_eq!(output.as_src().iter().collect::<Vec<_>>(), means);
            pool2d_s8::max(&window, input, output, [-90, 100]).unwrap();
            let maxima: Vec<i8> = elements.iter().map(|e| (*e.iter().max().unwrap()).clamp(-90, 100) as i8).collect();
            prop_assert_eq!(output.as_src().iter().collect::<Vec<_>>(), maxima);
        }
    }
}

/// The kernels that hand part of their operator to the scalar one.
mod wrappers {
    use super::*;
    use crate::kernels::packed::{add_s8, add_s8_linear, pool2d_s8};
    use crate::kernels::portable::elementwise_s8_s16::Binary;
    use crate::kernels::portable::pool2d::{AvgInt, MaxInt};
    use crate::ops::elementwise::Loop;
    use crate::ops::elementwise_int::{BinaryInt, IntOp};
    use crate::ops::packed_sum::PackedSumS8;
    use crate::ops::pool2d::PoolInt;
    use crate::quant::Multiplier;
    use crate::tensor::DType;

    const COUNT: u32 = 96;

    fn slot(offset: u32) -> Slot {
        Slot { region: 0, offset }
    }

    /// Runs on operands at 0 and `COUNT` with the output at `2 * COUNT`.
    fn run<K: Kernel>(op: &K::Op) -> Option<Vec<u8>> {
        let mut random = Random(11);
        let arena: Vec<_> = (0..3 * COUNT).map(|_| Cell::new(random.next() as u8)).collect();
        let mem = Mem {
            regions: [&arena, &[], &[], &[]],
            state: &[],
            weights: &[],
            rounding: Rounding::default(),
            turning: Default::default(),
        };
        K::run(op, &mem)?;
        Some(arena.iter().map(Cell::get).collect())
    }

    #[test]
    fn sums() {
        let of = |real: f64| Multiplier::from_real(real).unwrap();
        let mut op = BinaryInt {
            output: slot(2 * COUNT),
            a: slot(0),
            b: slot(COUNT),
            loops: [Loop {
                count: COUNT,
                a: 1,
                b: 1,
            }]
            .into_iter()
            .collect(),
            dtype: DType::I8,
            op: IntOp::Add,
            zero: [4, -128, 7],
            shift: 20,
            multipliers: [of(0.19), of(0.5), of(2.0 / f64::from(1 << 20))],
            clamp: [-128, 127],
        };
        assert!(add_s8::has_loop(&op));
        assert_eq!(run::<add_s8::S8>(&op).unwrap(), run::<Binary>(&op).unwrap());
        op.op = IntOp::Mul;
        op.multipliers[2] = of(0.01);
        assert!(!add_s8::has_loop(&op));
        assert_eq!(run::<add_s8::S8>(&op).unwrap(), run::<Binary>(&op).unwrap());
    }

    #[test]
    fn linear_sums() {
        let op = PackedSumS8 {
            output: slot(2 * COUNT),
            a: slot(0),
            b: slot(COUNT),
            count: COUNT,
            factors: [207_560_833, 549_000_001],
            offset: -3_000_000,
        };
        let dsp = run::<crate::kernels::dsp::add_s8_linear::S8>(&op).unwrap();
        assert_eq!(run::<add_s8_linear::S8>(&op).unwrap(), dsp);
        assert_eq!(run::<crate::kernels::mve::add_s8_linear::S8>(&op).unwrap(), dsp);
    }

    #[test]
    fn pools() {
        let op = |dtype| PoolInt {
            output: slot(2 * COUNT),
            input: slot(0),
            dtype,
            window: Window2d {
                batch: 1,
                input: [4, 4, 3],
                output: [2, 2, 3],
                kernel: [3, 3],
                stride: [2, 2],
                dilation: [1, 1],
                padding: [1, 1],
            },
            clamp: [-30, 60],
        };
        let int8 = op(DType::I8);
        assert_eq!(run::<pool2d_s8::Average>(&int8).unwrap(), run::<AvgInt>(&int8).unwrap());
        assert_eq!(run::<pool2d_s8::Max>(&int8).unwrap(), run::<MaxInt>(&int8).unwrap());
        let int16 = op(DType::I16);
        assert!(pool2d_s8::Average::supports(&int8) && pool2d_s8::Max::supports(&int8));
        assert!(!pool2d_s8::Average::supports(&int16) && !pool2d_s8::Max::supports(&int16));
    }
}
