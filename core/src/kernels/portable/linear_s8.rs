//! int8 fully connected layers whose channels are requantised alike: a bias for each, and one factor.
//!
//! The weights: mantissa and shift, the biases, then the rows of the layer, [`Conv2dS8`]'s OHWI. Of many channels, records of their own would make the file
//! larger than the network's.

use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dot_s8::{MOST, rows_s8};
use crate::kernels::primitives::requantize::lines::Rescaled;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::quant::Multiplier;

/// Bytes of the factor.
const FACTOR: u32 = 8;

/// Bytes that the records have to save: what this kernel adds to a program.
#[cfg(any(test, packing))]
const LEAST_SAVED: u32 = 1024;

/// int8, one pixel.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.is_one_pixel()
            && op.window.kernel == [1, 1]
            && op.window.padding == [0, 0]
            && op.groups == 1
            && op.flags == 0
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(u32::from);
        let weights = (inputs + 4)
            .checked_mul(outputs)
            .and_then(|bytes| bytes.checked_add(FACTOR));
        Needs {
            scratch: 0,
            weights: weights.unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // A row is read until its last outputs are written.
        let lead = u32::from(op.window.output[2]) - 1;
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        let factor = Mem::of_weights(weights).weights::<i32>(op.weights, FACTOR / 4);
        matches!(factor, Some(&[_, shift]) if shift.unsigned_abs() <= Multiplier::MAX_SHIFT.unsigned_abs().into())
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let input = mem.src::<i8>(op.input, window.input_len()?)?;
        let output = mem.dst::<i8>(op.output, window.output_len()?)?;
        let [inputs, outputs] = [window.input[2], window.output[2]].map(usize::from);
        let (&[mantissa, shift], biases) = mem
            .weights::<i32>(op.weights, FACTOR / 4 + outputs as u32)?
            .split_first_chunk()?;
        let rows = op.weights.checked_add(FACTOR + 4 * outputs as u32)?;
        let weights = mem.weights::<i8>(rows, op.weights_len()?)?;
        let [low, high] = op.clamp.map(i32::from);
        let factor = Multiplier {
            mantissa,
            shift: shift as i8,
        };
        let into_output = Rescaled::new(factor, op.output_zero_point.into(), (low, high), 0);
        for pixel in 0..usize::from(window.batch) {
            let (x, y) = (
                input.slice(pixel * inputs, inputs)?,
                output.slice(pixel * outputs, outputs)?,
            );
            let (blocks, rest) = biases.as_chunks::<MOST>();
            let mut biases = blocks.iter().map(<[i32; MOST]>::as_slice).chain([rest]);
            let mut first = 0;
            rows_s8(x, op.input_zero_point.into(), weights, outputs, |sums| {
                for (sum, bias) in sums.iter_mut().zip(biases.next()?) {
                    *sum = sum.wrapping_add(*bias);
                }
                into_output.put(sums, y, first, 1)?;
                first += sums.len();
                Some(())
            })?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        // Its operands name records, which it has not: as many bytes of weights stand in for them.
        let shallow = op.window.input[2] < 8;
        (!shallow
            && plain
                .channels
                .windows(2)
                .all(|pair| matches!(pair, [[_, a, b], [_, c, d]] if (a, b) == (c, d))))
        .then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (_, plain) = job.conv2d_s8()?;
        let &[_, mantissa, shift] = plain.channels.first()?;
        let words = [mantissa, shift]
            .into_iter()
            .chain(plain.channels.iter().map(|&[bias, ..]| bias));
        let bytes = words
            .flat_map(i32::to_le_bytes)
            .chain(plain.weights.iter().map(|&weight| weight as u8));
        if packed.len() != FACTOR as usize + 4 * plain.channels.len() + plain.weights.len() {
            return None;
        }
        packed.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        Some(())
    }
}

/// Whether a step's records would take more bytes than a kernel that a program may not have otherwise.
#[cfg(any(test, packing))]
pub fn pays<P>(op: &Conv2dS8<P>) -> bool {
    u32::from(op.window.output[2]) * 8 >= LEAST_SAVED
}

#[cfg(feature = "testkit")]
#[cfg(test)]
mod tests {
    extern crate std;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::arena::Slot;
    use crate::kernels::api::candidate::PlainS8;
    use crate::kernels::portable::conv2d;
    use crate::ops::window::Window2d;
    use crate::testkit::run;

    fn layer(batch: u16, inputs: u16, outputs: u16) -> Conv2dS8 {
        Conv2dS8 {
            output: Slot::default(),
            input: Slot {
                region: 0,
                offset: u32::from(batch) * u32::from(outputs),
            },
            scratch: Slot::default(),
            weights: 0,
            channels: 0,
            window: Window2d {
                batch,
                input: [1, 1, inputs],
                output: [1, 1, outputs],
                kernel: [1, 1],
                stride: [1, 1],
                dilation: [1, 1],
                padding: [0, 0],
            },
            groups: 1,
            input_zero_point: -7,
            output_zero_point: 11,
            clamp: [-100, 120],
            flags: 0,
        }
    }

    fn packed(op: &Conv2dS8, plain: PlainS8<'_>) -> Option<Vec<u8>> {
        let job = Job::Conv2dS8(*op, plain);
        S8::step(&job).filter(S8::supports)?;
        let mut bytes = vec![0; S8::needs(op).weights as usize];
        S8::pack(&job, op, &mut bytes, &mut [])?;
        Some(bytes)
    }

    /// Words in front keep them aligned.
    fn aligned(bytes: &[u8]) -> Vec<u32> {
        bytes
            .chunks(4)
            .map(|word| word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte)))
            .collect()
    }

    proptest! {
        #[test]
        fn layers_equal_the_scalar_kernel(
            batch in 1u16..3, inputs in 8u16..45, outputs in 1u16..40, mantissa in (1 << 30)..i32::MAX, shift in -12i32..=2,
            numbers in prop::collection::vec(any::<i8>(), 45 * 40 + 90), bias in -20_000i32..20_000,
        ) {
            let op = layer(batch, inputs, outputs);
            let (len, count) = (usize::from(inputs) * usize::from(outputs), usize::from(outputs));
            let (weights, x) = numbers.split_at(len);
            let channels: Vec<[i32; 3]> = (0..count).map(|c| [bias + 97 * c as i32, mantissa, shift]).collect();
            let plain = PlainS8 { weights, channels: &channels };
            let mut arena = [vec![0; usize::from(batch) * count], x[..usize::from(batch * inputs)].iter().map(|&x| x as u8).collect()].concat();
            let mut own = arena.clone();

            let mut scalar = op;
            scalar.channels = len.next_multiple_of(4) as u32;
            let mut constants: Vec<u8> = weights.iter().map(|&w| w as u8).collect();
            constants.resize(scalar.channels as usize, 0);
            constants.extend(channels.iter().flatten().flat_map(|word| word.to_le_bytes()));
            run::<conv2d::S8>(&scalar, &mut arena, bytes(&aligned(&constants))).expect("it runs");

            let constants = aligned(&packed(&op, plain).expect("channels alike"));
            prop_assert!(S8::trusts(&op, bytes(&constants)));
            run::<S8>(&op, &mut own, bytes(&constants)).expect("it runs");
            prop_assert_eq!(own, arena);
        }
    }

    fn bytes(words: &[u32]) -> &[u8] {
        // SAFETY: every word is four bytes, initialised and borrowed as long as the slice.
        #[expect(unsafe_code, reason = "aligned bytes")]
        unsafe {
            core::slice::from_raw_parts(words.as_ptr().cast(), words.len() * 4)
        }
    }

    #[test]
    fn layers_are_taken_where_their_channels_are_alike() {
        let op = layer(1, 9, 130);
        let weights = vec![3; 9 * 130];
        let mut channels = vec![[5, 1 << 30, -4]; 130];
        let of = |op: &Conv2dS8, channels: &[[i32; 3]]| {
            packed(
                op,
                PlainS8 {
                    weights: &weights,
                    channels,
                },
            )
        };
        let mut words = aligned(&of(&op, &channels).expect("alike"));
        for (shift, valid) in [(31, true), (-31, true), (32, false), (-32, false), (i32::MIN, false)] {
            words[1] = shift as u32;
            assert_eq!(S8::trusts(&op, bytes(&words)), valid, "{shift}");
        }
        assert!(
            of(&layer(1, 7, 130), &channels).is_none(),
            "too few inputs for the records that its operands name"
        );
        let mut grouped = op;
        grouped.groups = 2;
        assert!(of(&grouped, &channels).is_none());
        channels[129][2] = -5;
        assert!(of(&op, &channels).is_none());
        assert!(pays(&layer(1, 9, 128)) && !pays(&layer(1, 9, 127)));
    }
}
