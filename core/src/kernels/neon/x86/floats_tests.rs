//! The kernels of f32 against sums in the order in which they are defined: bit by bit, rounded after every product, or fused where that is allowed; with
//! the output as near to its operands as the kernels say that it may be.

extern crate std;
use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use crate::arena::{Mem, Rounding, Slot};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::mve::tests::{Random, window};
use crate::kernels::neon::{conv2d_f32, dwconv_f32};
use crate::kernels::x86::Level;
use crate::ops::conv2d::Conv2dF32;
use crate::ops::window::Window2d;

/// Numbers between -2 and 2, and, where there are `ends`, one in twenty of those that computations end in.
fn some_floats(random: &mut Random, count: usize, ends: bool) -> Vec<f32> {
    const ENDS: [f32; 6] = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE];
    let one = |random: &mut Random| match random.below(120) as usize {
        end @ 0..=5 if ends => ENDS[end],
        _ => random.below(4001) as f32 / 1000.0 - 2.0,
    };
    (0..count).map(|_| one(random)).collect()
}

/// Operator and operands of a case.
struct Case {
    op: Conv2dF32,
    input: Vec<f32>,
    /// OHWI.
    weights: Vec<f32>,
    bias: Vec<f32>,
    residual: Vec<f32>,
}

impl Case {
    fn new(window: Window2d, depthwise: bool, random: &mut Random, [biased, residual, ends]: [bool; 3]) -> Self {
        let channels = window.output[2];
        let op = Conv2dF32 {
            output: Slot::default(),
            input: Slot::default(),
            residual: residual.then(Slot::default),
            scratch: Slot::default(),
            weights: 0,
            bias: biased.then_some(0),
            window,
            groups: if depthwise { channels } else { 1 },
            clamp: [-1.5, 6.0],
        };
        Self {
            input: some_floats(random, window.input_len().unwrap() as usize, ends),
            weights: some_floats(random, op.weights_len().unwrap() as usize, ends),
            bias: some_floats(random, channels.into(), ends),
            residual: some_floats(random, window.output_len().unwrap() as usize, ends),
            op,
        }
    }

    /// The outputs by `mac`, tap by tap, and of each the sum of its products' magnitudes.
    fn defined(&self, mac: impl Fn(f32, f32, f32) -> f32) -> Vec<(f32, f32)> {
        let window = &self.op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let [oh, ow, channels] = window.output.map(usize::from);
        let [kh, kw] = window.kernel.map(usize::from);
        let deep = self.op.groups > 1;
        let each = if deep { 1 } else { c };
        let mut outputs = Vec::new();
        for index in 0..usize::from(window.batch) * oh * ow * channels {
            let (pixel, channel) = (index / channels, index % channels);
            let [image, y, x] = [pixel / (oh * ow), pixel / ow % oh, pixel % ow];
            let mut sum = if self.op.bias.is_some() {
                self.bias[channel]
            } else {
                0.0
            };
            let mut magnitude = sum.abs();
            for tap in 0..kh * kw {
                let place = |at: usize, tap: usize, axis: usize| {
                    let [stride, dilation, padding] =
                        [window.stride, window.dilation, window.padding].map(|pair| usize::from(pair[axis]));
                    (at * stride + tap * dilation).checked_sub(padding)
                };
                let inside = place(y, tap / kw, 0)
                    .zip(place(x, tap % kw, 1))
                    .filter(|&(row, column)| row < ih && column < iw);
                for i in 0..each {
                    let of = if deep { channel } else { i };
                    let x = inside.map_or(0.0, |(row, column)| {
                        self.input[((image * ih + row) * iw + column) * c + of]
                    });
                    let w = self.weights[(channel * kh * kw + tap) * each + i];
                    sum = mac(x, w, sum);
                    magnitude += (x * w).abs();
                }
            }
            if self.op.residual.is_some() {
                sum += self.residual[index];
            }
            let [low, high] = self.op.clamp;
            // A NaN stays one.
            let value = if sum < low { low } else { sum };
            outputs.push((if value > high { high } else { value }, magnitude));
        }
        outputs
    }

    /// Runs with output, input and residual at these elements of an arena.
    fn run<K: Kernel<Op = Conv2dF32>>(
        &self,
        [output, input, residual]: [usize; 3],
        packed: &[[u8; 4]],
        fused: bool,
    ) -> Vec<f32> {
        let needs = K::needs(&self.op);
        let outputs = self.residual.len();
        let end = [input + self.input.len(), output + outputs, residual + outputs]
            .into_iter()
            .max()
            .unwrap_or(0);
        let scratch = end.next_multiple_of(4);
        let words = (scratch + needs.scratch as usize / 4 + 4).div_ceil(4);
        let mut memory = vec![0u128; words];
        let mut constants: Vec<f32> = packed.iter().map(|&word| f32::from_le_bytes(word)).collect();
        let bias = 4 * constants.len() as u32;
        constants.extend(&self.bias);
        let at = |element: usize| Slot {
            region: 0,
            offset: 4 * element as u32,
        };
        let mut op = self.op;
        (op.output, op.input, op.scratch) = (at(output), at(input), at(scratch));
        op.residual = op.residual.map(|_| at(residual));
        op.bias = op.bias.map(|_| bias);
        // SAFETY: `memory` has `16 * words` bytes, `4 * words` floats, aligned for both; each view ends before the next begins.
        unsafe {
            let arena = core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<f32>(), 4 * words);
            arena.fill(f32::NAN);
            if op.residual.is_some() {
                arena[residual..residual + outputs].copy_from_slice(&self.residual);
            }
            arena[input..input + self.input.len()].copy_from_slice(&self.input);
            let bytes = core::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>(), 16 * words);
            let mem = Mem {
                regions: [Cell::from_mut(bytes).as_slice_of_cells(), &[], &[], &[]],
                state: &[],
                weights: core::slice::from_raw_parts(constants.as_ptr().cast(), 4 * constants.len()),
                rounding: Rounding { fused },
                turning: Default::default(),
            };
            K::run(&op, &mem).expect("operands of the right sizes");
            let arena = core::slice::from_raw_parts(memory.as_ptr().cast::<f32>(), 4 * words);
            arena[output..output + outputs].to_vec()
        }
    }

    /// Runs with everything apart, with the output before the input as near as `K` says, and on or before the residual.
    fn check<K: Kernel<Op = Conv2dF32>>(&self, packed: &[[u8; 4]]) {
        let (inputs, outputs) = (self.input.len(), self.residual.len());
        let mut places = vec![[0, outputs, outputs + inputs], [inputs + 3, 0, inputs + outputs + 3]];
        let near = |distance: i64| (distance.max(0) as usize).div_ceil(4);
        if let Some(distance) = K::distance(&self.op, 1) {
            let least = if distance < 0 {
                distance.unsigned_abs() as usize / 4
            } else {
                0
            };
            places.push([least, near(distance), outputs + inputs + least + near(distance)]);
        }
        if let Some(distance) = K::distance(&self.op, 2).filter(|_| self.op.residual.is_some()) {
            places.push([0, outputs + near(distance), near(distance)]);
        }
        if K::in_place(&self.op, 2) {
            places.push([inputs, 0, inputs]);
        }
        let window = &self.op.window;
        let ordered = self.defined(|x, w, sum| sum + x * w);
        let fused = self.defined(f32::mul_add);
        for at in places {
            let found = self.run::<K>(at, packed, false);
            let other = found.iter().zip(&ordered).position(|(a, (b, _))| !is_same(*a, *b));
            assert_eq!(other, None, "{window:?} at {at:?}, in order");
            if Level::get() < Level::Avx2 {
                continue;
            }
            let found = self.run::<K>(at, packed, true);
            let other = found.iter().zip(&fused).position(|(a, (b, _))| !is_same(*a, *b));
            assert_eq!(other, None, "{window:?} at {at:?}, fused");
            for (a, (b, magnitude)) in found
                .iter()
                .zip(&ordered)
                .filter(|(a, (b, _))| a.is_finite() && b.is_finite())
            {
                let finite = magnitude.is_finite() && magnitude.abs() < 1e6;
                assert!(
                    !finite || (a - b).abs() <= 1e-5 * (1.0 + magnitude),
                    "{a} {b} {magnitude}"
                );
            }
        }
    }
}

/// With and without biases and residuals, with and without numbers that computations end in.
fn forms() -> [[bool; 3]; 4] {
    [
        [true, false, false],
        [false, true, false],
        [true, true, true],
        [false, false, true],
    ]
}

#[test]
fn convolutions_are_sums_in_order() {
    let mut random = Random(13);
    for window in [
        // Single pixels: one, groups side by side, tiles and what is left, strides.
        window(1, [1, 1, 65], 20, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [1, 1, 33], 149, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [5, 7, 8], 16, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 3, 17], 47, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [7, 5, 19], 24, [1, 1], [2, 2], [0, 0], [0, 0]),
        window(1, [23, 29, 9], 8, [1, 1], [1, 1], [0, 0], [0, 0]),
        // Windows of taps: several blocks, edges on all sides, more images.
        window(1, [7, 8, 16], 12, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [8, 9, 16], 8, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [13, 11, 20], 37, [3, 2], [1, 1], [1, 0], [1, 1]),
        window(1, [6, 7, 17], 34, [1, 1], [2, 2], [1, 1], [0, 0]),
        window(1, [11, 13, 17], 5, [8, 9], [1, 1], [3, 4], [4, 4]),
        // Windows of rows, copied at the edges.
        window(2, [9, 7, 3], 25, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [19, 10, 1], 30, [10, 4], [2, 2], [4, 1], [4, 1]),
        window(1, [21, 17, 3], 64, [7, 7], [2, 2], [3, 3], [2, 3]),
        window(1, [9, 40, 15], 3, [5, 13], [1, 1], [2, 6], [2, 6]),
        // Windows that only scratch has a place for.
        window(1, [30, 19, 2], 7, [29, 18], [1, 1], [4, 5], [4, 5]),
    ] {
        for form in forms() {
            let case = Case::new(window, false, &mut random, form);
            let mut packed = vec![[0; 4]; conv2d_f32::F32::needs(&case.op).weights as usize / 4];
            conv2d_f32::pack(&case.op, &case.weights, &mut packed).expect("weights of the right size");
            case.check::<conv2d_f32::F32>(&packed);
        }
    }
}

#[test]
fn depthwise_convolutions_are_sums_in_order() {
    let mut random = Random(14);
    let mut spread = window(1, [9, 11, 20], 20, [3, 3], [1, 1], [2, 2], [2, 2]);
    (spread.dilation, spread.output) = ([2, 3], [9, 9, 20]);
    for window in [
        window(1, [6, 9, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [9, 7, 6], 6, [5, 3], [2, 1], [2, 1], [2, 1]),
        window(1, [4, 4, 4], 4, [4, 4], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 12, 37], 37, [2, 3], [1, 2], [0, 1], [1, 1]),
        window(1, [7, 14, 27], 27, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [6, 13, 8], 8, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [6, 13, 45], 45, [3, 3], [2, 2], [0, 0], [1, 1]),
        spread,
    ] {
        for form in forms() {
            let case = Case::new(window, true, &mut random, form);
            let mut packed = vec![[0; 4]; case.weights.len()];
            dwconv_f32::pack(&case.op, &case.weights, &mut packed).expect("weights of the right size");
            case.check::<dwconv_f32::F32>(&packed);
        }
    }
}

/// Whether two outputs are the same bits; of numbers that are none the bits are the processor's.
fn is_same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}
