//! int8 convolution and fully connected layers on the DSP extension, of weights of four bits: -7 to 7, two in a byte.
//!
//! As [`super::conv2d_s8`], which has the windows and the blocks. A byte is `16 q1 + q0 + 8` of the weights q0, q1 of two channels. SXTB16 widens two of a
//! word to halves, of which one SMLAD sums `16 s1 + s0 + 8 x`, x the activations' sum; the halves' low four bits are `q0 + 8`, of which one sums
//! `s0 + 8 x`. The difference is `16 s1`, a number that requantising shifts left by 4 less; `8 x` is the same for all channels, and is summed once a
//! block. Exact while `s1` fits 28 bits.
//!
//! Of four pixels, 16 MACs take 8 SMLAD, 1 SXTB16, 1 AND, 1 LDR of weights and 2 LDRD of activations, 0.81 a MAC, and what sums the activations. One pixel
//! takes 18 instructions for 16 MACs, 1.13.
//!
//! **The stream**, for every pair of output channels: the biases `b0` and `16 b1 + b0`; a word for each two pairs of activations (a, b), (c, d), bytes a, c,
//! b, d; two records (`channel_record.rs`), the second one's `k` less by 4. An activation that is not there has weights of zero, and so has a channel beside an
//! odd last one.

use super::channel::Channel;
use super::conv2d_s8::Plain;
use super::conv2d_s8_w4_loops::W4Loops;
use super::requantize::PAIRS_SHIFT;
use super::windows::{Layout, lanes, staged_stride};
use super::{channel_record, conv2d_s8};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};
use crate::ops::window::Window2d;

/// The largest weight.
const LARGEST: i8 = 7;

/// Sums of a second channel stay below: 16 times them is a word.
const MOST_SUM: i64 = 1 << 27;

/// Bits that a second channel's sums are shifted left by.
pub(super) const SECOND: u32 = 4;

/// A byte of no weights.
pub(super) const NOTHING: u32 = 0x08;

/// int8, one group, weights of -7 to 7.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedConv2dS8;

    fn needs(op: &PackedConv2dS8) -> Needs {
        let channels = u32::from(op.window.output[2]);
        let stream = match op.form {
            Form::Folded => None,
            _ => stream_words(&op.window).checked_mul(channels.div_ceil(2)),
        };
        let staged = staged_stride(channels) * 4;
        Needs {
            scratch: (pairs(&op.window) * 4 * lanes(&op.window)).saturating_add(staged),
            weights: stream.and_then(|words| words.checked_mul(4)).unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &PackedConv2dS8, index: usize) -> Option<i64> {
        conv2d_s8::S8::distance(op, index)
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedConv2dS8, weights: &[u8]) -> bool {
        packed(op, weights) == Some(true)
    }

    fn run(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
        conv2d_s8::run::<W4Loops>(op, mem, |_| Self::needs(op), 0, u32::MAX)
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8W4);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedConv2dS8<P>> {
        let (op, plain) = job.conv2d_s8_w4()?;
        Some(PackedConv2dS8::of(&op, form(&op, (plain.weights, plain.channels))?))
    }

    fn pack(job: &Job<'_>, _: &PackedConv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8_w4()?;
        pack(&op, plain.weights, plain.channels, packed).map(|_| ())
    }

    fn bound(op: &PackedConv2dS8, _: &Machine) -> Option<u64> {
        Some(conv2d_s8::bound(op, [13, 18]))
    }
}

/// Pairs of activations in a pixel, by twos.
fn pairs(window: &Window2d) -> u32 {
    Layout::of(window).pairs().next_multiple_of(2)
}

/// Words of the stream for two channels.
fn stream_words(window: &Window2d) -> u32 {
    2 + pairs(window) / 2 + 2 * channel_record::WORDS as u32
}

/// Bits of the last word of weights whose activations are not there.
fn missing(window: &Window2d) -> u32 {
    let layout = Layout::of(window);
    let half = (layout.runs * layout.tail()) % 2 == 1;
    match (layout.pairs() % 2 == 1, half) {
        (true, true) => 0xffff_ff00,
        (true, false) => 0xff00_ff00,
        (false, true) => 0xff00_0000,
        (false, false) => 0,
    }
}

/// Whether the stream is as the host writes it: its records, and the weights of what is not there, in whose place scratch holds anything.
fn packed(op: &PackedConv2dS8, weights: &[u8]) -> Option<bool> {
    let stream = Mem::of_weights(weights).weights::<u32>(op.weights, S8::needs(op).weights / 4)?;
    let words = stream_words(&op.window) as usize;
    let unused = missing(&op.window);
    let wrong = |block: &[u32]| {
        let front = block.last_chunk().map_or(unused, |&[front, ..]: &[u32; 9]| front);
        (front ^ (NOTHING * 0x0101_0101)) & unused
    };
    let fronts = || blocks(stream, words).fold(0, |bits, block| bits | wrong(block));
    Some(channel_record::pairs_are_packed(stream, words, 0, op.form) && (unused == 0 || fronts() == 0))
}

/// Packs `op` for this kernel, as [`super::conv2d_s8::pack`].
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], stream: &mut [u8]) -> Option<PackedConv2dS8> {
    let plain = (weights, channels);
    let packed = PackedConv2dS8::of(op, form(op, plain)?);
    if stream.len() != S8::needs(&packed).weights as usize {
        return None;
    }
    let layout = Layout::of(&op.window);
    let mut words = stream.chunks_exact_mut(4);
    let mut put = |word: u32| {
        if let Some(out) = words.next() {
            out.copy_from_slice(&word.to_le_bytes());
        }
    };
    for first in (0..channels.len()).step_by(2) {
        let pair = Pair::of(op, plain, first, packed.form)?;
        let [b0, b1] = pair.biases;
        put(b0 as u32);
        put((b1 << SECOND).wrapping_add(b0) as u32);
        for two in 0..pairs(&op.window) / 2 {
            let [(a, b), (c, d)] = [2 * two, 2 * two + 1].map(|at| match layout.pair(at) {
                _ if at >= layout.pairs() => (None, None),
                (low, high) => (Some(low), high),
            });
            put(u32::from_le_bytes([a, c, b, d].map(|at| pair.byte(at, [1; 2]))));
        }
        pair.records.into_iter().flatten().for_each(&mut put);
    }
    Some(packed)
}

/// The form that all channels allow. `None` where a weight or a sum does not fit.
fn form<P>(op: &Conv2dS8<P>, plain: Plain<'_>) -> Option<Form> {
    let apart = conv2d_s8::form(op, plain.0, plain.1)?;
    let fit = plain.0.iter().all(|weight| (-LARGEST..=LARGEST).contains(weight));
    if fit { form_of_pairs(op, plain, apart) } else { None }
}

/// The form that all pairs of channels allow, where they would allow `apart` each by itself.
pub(super) fn form_of_pairs<P>(op: &Conv2dS8<P>, plain: Plain<'_>, apart: Form) -> Option<Form> {
    let all = |form: &Form| {
        let firsts = (0..plain.1.len()).step_by(2);
        firsts
            .into_iter()
            .all(|first| Pair::of(op, plain, first, *form).is_some())
    };
    let forms: &[Form] = match apart {
        Form::General => &[Form::General],
        _ => &[Form::Positive, Form::Signed, Form::General],
    };
    forms.iter().copied().find(all)
}

/// The stream's contents for two channels; sums of the second one are 16 times as large.
pub(super) struct Pair<'p> {
    windows: [&'p [i8]; 2],
    pub(super) biases: [i64; 2],
    pub(super) records: [[u32; channel_record::WORDS]; 2],
}

impl<'p> Pair<'p> {
    /// Channels `first` and the next one, if there is one. `None` where they have no such form, or the second one's sums no room.
    pub(super) fn of<P>(op: &Conv2dS8<P>, plain: Plain<'p>, first: usize, form: Form) -> Option<Self> {
        let (w0, channel) = conv2d_s8::window_of(op, plain, first);
        let (w1, next) = if first + 1 < plain.1.len() {
            conv2d_s8::window_of(op, plain, first + 1)
        } else {
            // Nobody reads it.
            (&[][..], [0, channel[1], channel[2]])
        };
        let part = |window: &[i8], channel, k: u32| {
            let channel = Channel::new(op, window.iter().copied(), channel);
            let room = channel.range.0 > -MOST_SUM && channel.range.1 < MOST_SUM;
            if k > 0 && !room {
                return None;
            }
            if form == Form::General {
                return Some((channel.bias, channel_record::from_general(&channel.requantize)));
            }
            let mut short = channel.short(PAIRS_SHIFT, k..=31, form == Form::Signed)?;
            short.k -= k;
            // Without a factor, any bias will do.
            let bias = if short.m == 0 { 0 } else { channel.bias + short.offset };
            Some((bias, channel_record::from_short(&short)))
        };
        let ((b0, r0), (b1, r1)) = (part(w0, channel, 0)?, part(w1, next, SECOND)?);
        Some(Self {
            windows: [w0, w1],
            biases: [b0, b1],
            records: [r0, r1],
        })
    }

    /// The byte of an activation, of weights that are products of whole numbers and `factors`; of none, nothing.
    pub(super) fn byte(&self, at: Option<u32>, factors: [i8; 2]) -> u8 {
        let number = |window: &[i8], factor: i8| {
            let weight = at.and_then(|at| window.get(at as usize));
            weight.and_then(|w| w.checked_div(factor)).map_or(0, i32::from)
        };
        let ([w0, w1], [f0, f1]) = (self.windows, factors);
        (16 * number(w1, f1) + number(w0, f0) + NOTHING as i32) as u8
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;

    use super::*;
    use crate::arena::Slot;

    fn op(kernel: [u16; 2], inputs: u16, outputs: u16) -> Conv2dS8 {
        let window = Window2d {
            batch: 1,
            input: [4, 5, inputs],
            output: [5 - kernel[0], 6 - kernel[1], outputs],
            kernel,
            stride: [1, 1],
            dilation: [1, 1],
            padding: [0, 0],
        };
        Conv2dS8 {
            output: Slot::default(),
            input: Slot::default(),
            scratch: Slot::default(),
            weights: 0,
            channels: 0,
            window,
            groups: 1,
            input_zero_point: 3,
            output_zero_point: -5,
            clamp: [-128, 127],
            flags: 0,
        }
    }

    /// Weights of activations that are not there: every bit of the last word changed, for all ends that windows have.
    #[test]
    fn weights_of_nothing_are_nothing() {
        for (kernel, inputs, bits) in [
            // Pairs: 2, 1, 2 (one alone), 1 (alone), 5, 3 (one alone).
            ([1, 1], 4, 0),
            ([1, 1], 2, 16),
            ([1, 1], 3, 8),
            ([1, 1], 1, 24),
            ([1, 2], 5, 16),
            ([1, 1], 5, 24),
        ] {
            let op = op(kernel, inputs, 3);
            let taps = usize::from(kernel[0] * kernel[1] * inputs);
            let weights: vec::Vec<i8> = (0..3 * taps).map(|at| (at * 5 % 15) as i8 - 7).collect();
            let packed_op = PackedConv2dS8::of(&op, Form::General);
            let mut stream = vec![0; S8::needs(&packed_op).weights as usize];
            let packed_op = pack(&op, &weights, &[[9, 1 << 30, -4]; 3], &mut stream).expect("packed");
            // As load has them, at the address of a word.
            let words: vec::Vec<u32> = stream
                .as_chunks()
                .0
                .iter()
                .map(|&word| u32::from_le_bytes(word))
                .collect();
            let is_packed = |words: &[u32]| {
                // SAFETY: every word is four bytes, initialised and borrowed as long as the view.
                let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 4 * words.len()) };
                packed(&packed_op, bytes) == Some(true)
            };
            assert!(is_packed(&words), "{kernel:?} {inputs}");
            let block = stream_words(&op.window) as usize;
            let mut refused = 0;
            for bit in 0..32 {
                let mut changed = words.clone();
                changed[block - 9] ^= 1 << bit;
                refused += u32::from(!is_packed(&changed));
                assert_eq!(!is_packed(&changed), missing(&op.window) >> bit & 1 == 1);
            }
            assert_eq!(refused, bits, "{kernel:?} {inputs}");
        }
    }

    #[test]
    fn weights_and_sums_that_do_not_fit_have_no_form() {
        let op = op([1, 1], 2, 2);
        let of = |weight: i8, bias: i32| form(&op, (&[1, weight, 2, 3], &[[bias, 1 << 30, -4]; 2]));
        assert!(of(7, 100).is_some() && of(-7, 100).is_some());
        assert_eq!([of(8, 100), of(-8, 100)], [None; 2]);
        assert!(of(7, (1 << 27) - 2000).is_some() && of(7, 2000 - (1 << 27)).is_some());
        assert_eq!([of(7, 1 << 27), of(7, -(1 << 27))], [None; 2]);
    }
}
