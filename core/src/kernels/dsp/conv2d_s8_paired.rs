//! int8 convolution and fully connected layers on the DSP extension, the weights of two output channels in one number.
//!
//! As [`super::conv2d_s8`], which has the windows, the blocks and the order of the stream; the word of two activations holds halves `256 w1 + w0` of the
//! weights w0, w1 of two channels. One SMLAD takes the word as it is, and sums `256 s1 + s0`; one takes its low bytes, which one SXTB16 widens,
//! and sums `s0`. The difference is `256 s1`, a number that requantising shifts left by 8 less. Exact while `s1` fits 24 bits, whatever
//! overflows on the way; `s0` has all 32.
//!
//! Of four pixels, 16 MACs take 8 SMLAD, 1 SXTB16, 1 LDM of activations and 1 VMOV of a weight word, which wait in registers of the FPU sixteen at
//! a time: 0.69 a MAC, 0.71 with the loop; where there is no FPU, LDR and 2 LDRD, 0.75. One pixel takes 14 instructions for 16 MACs, 0.88.
//!
//! **The stream** is that of [`super::conv2d_s8`], but for: halves `256 w1 + w0`; the second bias, which is `256 b1 + b0`; and the second record, whose
//! `k` is less by 8. An odd last channel has weights of zero beside it.

use super::channel::Channel;
use super::conv2d_s8::Plain;
use super::conv2d_s8_paired_loops::Paired;
use super::requantize::PAIRS_SHIFT;
use super::{channel_record, conv2d_s8};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::isa::dsp::usada8;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::packed_conv2d::{Form, PackedConv2dS8};

/// Least sum of a second channel that no longer fits 24 bits.
const TOO_LARGE: u32 = 1 << 23;

/// The largest magnitude of an activation.
const BYTE: u32 = 128;

/// The most that a word can have of [`reach`].
const MOST_REACH: u32 = 258;

/// Words of two channels' windows whose reach is a number of 32 bits.
const MOST_WORDS: usize = 1 << 23;

/// int8, one group, second channels whose sums fit 24 bits.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedConv2dS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Rows;

    fn needs(op: &PackedConv2dS8) -> Needs {
        conv2d_s8::S8::needs(op)
    }

    fn distance(op: &PackedConv2dS8, index: usize) -> Option<i64> {
        conv2d_s8::S8::distance(op, index)
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedConv2dS8, weights: &[u8]) -> bool {
        conv2d_s8::packed(op, weights).is_some_and(|(stream, words)| all_fit(stream, words))
    }

    fn run(op: &PackedConv2dS8, mem: &Mem<'_>) -> Option<()> {
        conv2d_s8::run::<Paired>(op, mem, |g| conv2d_s8::needs(g, op.form), 0, u32::MAX)
    }

    const PIECES: bool = true;

    #[inline(always)]
    fn run_pieces(op: &PackedConv2dS8, mem: &Mem<'_>, pieces: u32) -> Option<()> {
        conv2d_s8::run_pieces::<Paired>(op, mem, pieces)
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const CHANNELS: usize = <conv2d_s8::S8 as Candidate>::CHANNELS;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedConv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        Some(PackedConv2dS8::of(&op, form(&op, (plain.weights, plain.channels))?))
    }

    fn pack(job: &Job<'_>, _: &PackedConv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed).map(|_| ())
    }

    fn pieces(op: &PackedConv2dS8, _: &[u8]) -> u32 {
        super::conv2d_s8_pieces::of(op)
    }

    fn bound(op: &PackedConv2dS8, _: &Machine) -> Option<u64> {
        Some(conv2d_s8::bound(op, [11, 14]))
    }
}

/// Whether the sums of every block of `words` of a stream [fit](sums_fit).
#[inline(never)]
fn all_fit(stream: &[u32], words: usize) -> bool {
    blocks(stream, words).all(|block| {
        let Some((&[first, second], rest)) = block.split_first_chunk() else {
            return false;
        };
        let Some((halves, _)) = rest.split_last_chunk::<8>() else {
            return false;
        };
        let bias = second.wrapping_sub(first) as i32;
        halves.len() <= MOST_WORDS && bias & 255 == 0 && sums_fit(bias >> 8, halves.len(), halves.iter().copied())
    })
}

/// Whether no sum of a second channel of this bias and so many words, at most [`MOST_WORDS`], leaves 24 bits, whatever the activations.
#[inline(always)]
pub(super) fn sums_fit(bias: i32, len: usize, mut words: impl Iterator<Item = u32>) -> bool {
    let limit = reach_below(bias);
    // As many words as show it: most layers are so short that none is looked at.
    let mut most = len as u32 * MOST_REACH;
    while most >= limit {
        let Some(word) = words.next() else {
            return false;
        };
        most = reach(word, most) - MOST_REACH;
    }
    true
}

/// The half of activation `at` of the weights of two channels; what is not there is 0. `None` where it has no room, which takes a second weight of -128.
pub(super) fn half(windows: [&[i8]; 2], at: usize) -> Option<u16> {
    let [w0, w1] = windows.map(|window| window.get(at).map_or(0, |&w| i32::from(w)));
    i16::try_from(256 * w1 + w0).ok().map(|half| half as u16)
}

/// Bound of the magnitudes of a second channel's weights beside this bias, exclusive.
#[inline(always)]
fn reach_below(bias: i32) -> u32 {
    TOO_LARGE.saturating_sub(bias.unsigned_abs()).div_ceil(BYTE)
}

/// No less than the magnitudes of the second channel's weights in `word`, added to `sum`: the high byte of a half is the weight, or one less where the first
/// channel's is negative.
#[inline(always)]
fn reach(word: u32, sum: u32) -> u32 {
    usada8(word & 0xff00_ff00 ^ 0x8000_8000, 0x8000_8000, sum) + 2
}

/// Packs `op` for this kernel, as [`super::conv2d_s8::pack`].
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], stream: &mut [u8]) -> Option<PackedConv2dS8> {
    let plain = (weights, channels);
    let form = form(op, plain)?;
    let packed = PackedConv2dS8::of(op, form);
    let mut fits = true;
    conv2d_s8::put_pairs(&packed, stream, |first, put| {
        let pair = Pair::of(op, plain, first, form);
        fits &= pair.is_some();
        if let Some(pair) = pair {
            put(pair.biases, &|at| pair.half(at).unwrap_or(0), pair.records);
        }
    })?;
    fits.then_some(packed)
}

/// The form that all channels allow. `None` where a pair of channels does not fit, or where [`super::conv2d_s8`] has a faster form.
fn form<P>(op: &Conv2dS8<P>, plain: Plain<'_>) -> Option<Form> {
    let apart = conv2d_s8::form(op, plain.0, plain.1)?;
    let count = usize::from(op.window.output[2]);
    let all = |form: &Form| {
        (0..count)
            .step_by(2)
            .all(|first| Pair::of(op, plain, first, *form).is_some())
    };
    let forms = match apart {
        Form::General => [Form::General].as_slice(),
        _ => &[Form::Positive, Form::Signed],
    };
    forms.iter().copied().find(all)
}

/// The stream's contents for two channels.
struct Pair<'p> {
    windows: [&'p [i8]; 2],
    biases: [u32; 2],
    records: [[u32; channel_record::WORDS]; 2],
}

impl<'p> Pair<'p> {
    /// Channels `first` and the next one, if there is one. `None` where they have no such form, or the second one's sums no room.
    fn of<P>(op: &Conv2dS8<P>, plain: Plain<'p>, first: usize, form: Form) -> Option<Self> {
        let (w0, channel) = conv2d_s8::window_of(op, plain, first);
        let (w1, next) = if first + 1 < usize::from(op.window.output[2]) {
            conv2d_s8::window_of(op, plain, first + 1)
        } else {
            // Nobody reads it.
            (&[][..], [0, channel[1], channel[2]])
        };
        let part = |window: &[i8], channel, k: u32| {
            let channel = Channel::new(op, window.iter().copied(), channel);
            if form == Form::General {
                return Some((channel.bias, channel_record::from_general(&channel.requantize)));
            }
            let mut short = channel.short(PAIRS_SHIFT, k..=31, form == Form::Signed)?;
            short.k -= k;
            // Without a factor, any bias will do.
            let bias = if short.m == 0 { 0 } else { channel.bias + short.offset };
            Some((bias, channel_record::from_short(&short)))
        };
        let ((b0, r0), (b1, r1)) = (part(w0, channel, 0)?, part(w1, next, 8)?);
        let pair = Self {
            windows: [w0, w1],
            biases: [b0 as u32, (b1 << 8).wrapping_add(b0) as u32],
            records: [r0, r1],
        };
        let mut most = 0_u32;
        for at in 0..w0.len() {
            most = reach(pair.half(at)?.into(), most.min(TOO_LARGE));
        }
        // An activation without a second one counts too.
        let below = i32::try_from(b1).map_or(0, reach_below);
        (w0.len() / 2 < MOST_WORDS && most < below).then_some(pair)
    }

    fn half(&self, at: usize) -> Option<u16> {
        half(self.windows, at)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;

    use super::*;

    /// A block of one pair of channels: biases, `words`, records of nothing.
    fn block(bias: i32, words: &[u32]) -> std::vec::Vec<u32> {
        let mut block = vec![7, (bias << 8).wrapping_add(7) as u32];
        block.extend(words);
        block.extend([0; 8]);
        block
    }

    /// At the limit and beyond, by one: biases, and weights of both signs.
    #[test]
    fn sums_of_24_bits_fit_and_no_others() {
        let half = |w1: i32, w0: i32| (256 * w1 + w0) as u16;
        let word = |a: u16, b: u16| u32::from(a) | u32::from(b) << 16;
        for (w1, w0) in [(127, -128), (-127, 127), (-127, -5), (64, 3), (-1, -1), (0, 0)] {
            for len in [1, 300, 3000] {
                let words = vec![word(half(w1, w0), half(w1, -w0 - 1)); len];
                // The packer's bound: the high bytes, and one for each.
                let high = |w0: i32| i64::from(((256 * w1 + w0) >> 8).abs() + 1);
                let room = i64::from(TOO_LARGE) - len as i64 * (high(w0) + high(-w0 - 1)) * 128;
                assert!(room <= i64::from(TOO_LARGE) - 2 * len as i64 * i64::from(w1.abs()) * 128);
                for (bias, expected) in [(room - 1, true), (1 - room, true), (room, false), (-room, false)] {
                    if room > 0 {
                        let mut stream = block(bias as i32, &words);
                        let len = stream.len();
                        assert_eq!(all_fit(&stream, len), expected, "{w1} {w0} {bias} {len}");
                        // A bias that is no whole number.
                        stream[1] ^= 1;
                        assert!(!all_fit(&stream, len));
                    } else {
                        let stream = block(0, &words);
                        assert!(!all_fit(&stream, stream.len()));
                    }
                }
            }
        }
        assert!(!all_fit(&[0; 9], 9), "no words before the records");
    }

    /// Every half: no weight is larger than its reach, and what no packer writes neither.
    #[test]
    fn a_reach_is_no_less_than_the_weights() {
        for half in 0..=u32::from(u16::MAX) {
            let w1 = |half: u32| (i32::from(half as i16) - i32::from(half as i8)) >> 8;
            let other = half.rotate_left(7) & 0xffff;
            let [a, b] = [half, other].map(|half| w1(half).unsigned_abs());
            let found = reach(half | other << 16, 5) - 5;
            assert!((a + b..=a + b + 4).contains(&found) && found <= MOST_REACH, "{half:x}");
        }
    }
}
