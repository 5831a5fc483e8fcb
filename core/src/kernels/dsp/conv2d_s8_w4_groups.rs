//! int8 convolution and fully connected layers on the DSP extension, of weights of four bits that share factors: -7 to 7 times 1 to 18.
//!
//! As [`super::conv2d_s8_w4`], whose bytes and loops these are: sums end with each group, are multiplied by its factor and added up. Of four pixels a group
//! takes 25 instructions beside its pairs' 13 each, of one pixel 11.
//!
//! **The stream**, for every pair of output channels: the biases `b0` and `16 b1`; of every group the words of its weights, as in `conv2d_s8_w4`, and a word
//! with the factors of both channels in its lower bytes; two records (`channel_record.rs`), the second one's `k` less by 4. Activations come by eights: what is
//! not there has weights of zero, and so has a channel beside an odd last one, whose factors are 1.

use super::conv2d_s8_w4::NOTHING;
#[cfg(any(test, packing))]
use super::conv2d_s8_w4::{Pair, SECOND, form_of_pairs};
use super::conv2d_s8_w4_groups_loops::W4GroupsLoops;
use super::windows::{Layout, lanes, staged_stride};
use super::{channel_record, conv2d_s8};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
use crate::blocks::blocks;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, GroupsS8, Job, JobKind, Machine, PlainS8};
use crate::kernels::api::kernel::Kernel;
#[cfg(any(test, packing))]
use crate::ops::conv2d::Conv2dS8;
use crate::ops::low_bit::MOST_FACTOR;
use crate::ops::operator::Needs;
#[cfg(any(test, packing))]
use crate::ops::packed_conv2d::PackedConv2dS8;
use crate::ops::packed_conv2d::{Form, PackedGroupsS8};
use crate::ops::window::Window2d;

/// int8, weights of -7 to 7, 8 to 32 of which share a factor of 1 to 18.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = PackedGroupsS8;

    fn supports(op: &PackedGroupsS8) -> bool {
        is_share(op.share) && in_order(&op.conv.window)
    }

    fn needs(op: &PackedGroupsS8) -> Needs {
        let (conv, window) = (&op.conv, &op.conv.window);
        let channels = u32::from(window.output[2]);
        let stream = match conv.form {
            Form::Folded => None,
            _ => stream_words(op).checked_mul(channels.div_ceil(2)),
        };
        let lanes = lanes(window);
        let kept = groups(op) * (lanes + 1) * 4;
        let staged = staged_stride(channels) * 4;
        Needs {
            scratch: (pairs(window) * 4 * lanes).saturating_add(staged).saturating_add(kept),
            weights: stream.and_then(|words| words.checked_mul(4)).unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &PackedGroupsS8, index: usize) -> Option<i64> {
        conv2d_s8::S8::distance(&op.conv, index)
    }

    const TRUSTS: bool = true;

    fn trusts(op: &PackedGroupsS8, weights: &[u8]) -> bool {
        packed(op, weights) == Some(true)
    }

    fn run(op: &PackedGroupsS8, mem: &Mem<'_>) -> Option<()> {
        conv2d_s8::run::<W4GroupsLoops>(&op.conv, mem, |_| Self::needs(op), op.share, u32::MAX)
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8Groups);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<PackedGroupsS8<P>> {
        let (op, plain, of) = job.conv2d_s8_groups()?;
        packed_form(&op, plain, of)
    }

    fn pack(job: &Job<'_>, _: &PackedGroupsS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain, of) = job.conv2d_s8_groups()?;
        pack(&op, plain, of, packed).map(|_| ())
    }

    fn bound(op: &PackedGroupsS8, _: &Machine) -> Option<u64> {
        Some(conv2d_s8::bound(&op.conv, [13, 18]))
    }
}

/// Whether the loops take so many weights as a group.
fn is_share(share: u32) -> bool {
    share.is_multiple_of(8) && (8..=32).contains(&share)
}

/// Whether windows are widened in the order of their weights: whole words or none.
fn in_order(window: &Window2d) -> bool {
    let layout = Layout::of(window);
    layout.tail() == 0 || layout.words() == 0
}

/// Pairs of activations in a pixel, by fours.
fn pairs(window: &Window2d) -> u32 {
    Layout::of(window).pairs().next_multiple_of(4)
}

/// Groups of a window; without a share that is one, none.
fn groups(op: &PackedGroupsS8) -> u32 {
    (2 * pairs(&op.conv.window))
        .saturating_add(op.share.saturating_sub(1))
        .checked_div(op.share)
        .unwrap_or(0)
}

/// Words of the stream for two channels.
fn stream_words(op: &PackedGroupsS8) -> u32 {
    2 + pairs(&op.conv.window) / 2 + groups(op) + 2 * channel_record::WORDS as u32
}

/// The activations of two pairs, whose word has the bytes a, c, b, d of them.
fn of_word(layout: &Layout, word: u32) -> [Option<u32>; 4] {
    let [(a, b), (c, d)] = [2 * word, 2 * word + 1].map(|at| {
        if at >= layout.pairs() {
            return (None, None);
        }
        let (low, high) = layout.pair(at);
        (Some(low), high)
    });
    [a, c, b, d]
}

/// Whether the stream is as the host writes it: its records, its factors, and the weights of what is not there, in whose place scratch holds anything.
fn packed(op: &PackedGroupsS8, weights: &[u8]) -> Option<bool> {
    let stream = Mem::of_weights(weights).weights::<u32>(op.conv.weights, S8::needs(op).weights / 4)?;
    let words = stream_words(op) as usize;
    let layout = Layout::of(&op.conv.window);
    let all = pairs(&op.conv.window) / 2;
    let unused = [all - 2, all - 1].map(|word| {
        let bytes = of_word(&layout, word).map(|at| if at.is_none() { 0xff } else { 0 });
        u32::from_le_bytes(bytes)
    });
    // The words of a group, and its factors behind them.
    let of_group = (op.share / 4 + 1) as usize;
    let mut right = channel_record::pairs_are_packed(stream, words, 0, op.conv.form);
    for block in blocks(stream, words) {
        let (_, groups) = block.split_at_checked(2)?;
        let groups = groups.get(..groups.len().checked_sub(2 * channel_record::WORDS)?)?;
        let mut left = groups;
        while !left.is_empty() {
            let (group, rest) = left.split_at_checked(of_group.min(left.len()))?;
            left = rest;
            let factors = *group.last()?;
            let least = factors.wrapping_sub(0x0101);
            let is_factor = |byte: u32| (byte & 0xff) < u32::from(MOST_FACTOR);
            right &= factors <= 0xffff && is_factor(least) && is_factor(least >> 8);
        }
        let &[.., a, b, _] = groups else { return None };
        let wrong = |word: u32, unused: u32| (word ^ (NOTHING * 0x0101_0101)) & unused;
        right &= wrong(a, unused[0]) | wrong(b, unused[1]) == 0;
    }
    Some(right)
}

/// The share of the step: that of the weights, or what divides it where the loops take no such groups. `None` where none does.
#[cfg(any(test, packing))]
fn share_of(share: u32) -> Option<u32> {
    [32, 24, 16, 8].into_iter().find(|&part| share.is_multiple_of(part))
}

/// The step of `op`; `None` where the loops do not take its groups, or a weight or a sum does not fit.
#[cfg(any(test, packing))]
fn packed_form<P: Place>(op: &Conv2dS8<P>, plain: PlainS8<'_>, of: GroupsS8<'_>) -> Option<PackedGroupsS8<P>> {
    let channels = (plain.weights, plain.channels);
    let apart = conv2d_s8::form(op, plain.weights, plain.channels)?;
    let share = share_of(of.share)?;
    let form = if of.fit(&plain) {
        form_of_pairs(op, channels, apart)?
    } else {
        return None;
    };
    Some(PackedGroupsS8 {
        conv: PackedConv2dS8::of(op, form),
        share,
    })
}

/// Packs `op` for this kernel, as [`super::conv2d_s8::pack`]: the weights are products.
#[cfg(any(test, packing))]
pub(super) fn pack(op: &Conv2dS8, plain: PlainS8<'_>, of: GroupsS8<'_>, stream: &mut [u8]) -> Option<PackedGroupsS8> {
    let packed = packed_form(op, plain, of)?;
    if stream.len() != S8::needs(&packed).weights as usize {
        return None;
    }
    let layout = Layout::of(&op.window);
    let count = plain.channels.len();
    let filter = plain.weights.len().checked_div(count)?;
    let all = pairs(&op.window) / 2;
    let of_group = packed.share / 4;
    let mut words = stream.chunks_exact_mut(4);
    let mut put = |word: u32| {
        if let Some(out) = words.next() {
            out.copy_from_slice(&word.to_le_bytes());
        }
    };
    for first in (0..count).step_by(2) {
        let pair = Pair::of(op, (plain.weights, plain.channels), first, packed.conv.form)?;
        let [b0, b1] = pair.biases;
        put(b0 as u32);
        put((b1 << SECOND) as u32);
        for group in (0..all).step_by(of_group as usize) {
            let at = 4 * group as usize;
            let factors = [first, first + 1].map(|channel| of.of(channel, at, filter).unwrap_or(1));
            for word in group..(group + of_group).min(all) {
                put(u32::from_le_bytes(
                    of_word(&layout, word).map(|at| pair.byte(at, factors)),
                ));
            }
            put(u32::from_le_bytes([factors[0] as u8, factors[1] as u8, 0, 0]));
        }
        pair.records.into_iter().flatten().for_each(&mut put);
    }
    Some(packed)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

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

    /// The stream of a step with such groups, as words, and the step. `None` where the loops do not take it.
    fn stream(op: &Conv2dS8, share: u32) -> Option<(Vec<u32>, PackedGroupsS8)> {
        let window = &op.window;
        let filter = usize::from(window.kernel[0] * window.kernel[1] * window.input[2]);
        let (outputs, share_of) = (usize::from(window.output[2]), share as usize);
        let factors: Vec<u8> = (0..outputs * filter.div_ceil(share_of))
            .map(|at| 1 + (at * 7 % 18) as u8)
            .collect();
        let groups = GroupsS8 {
            share,
            factors: &factors,
        };
        let weights: Vec<i8> = (0..outputs * filter)
            .map(|at| {
                let factor = groups.of(at / filter, at % filter, filter).expect("a factor");
                ((at * 5 % 15) as i8 - 7) * factor
            })
            .collect();
        let plain = PlainS8 {
            weights: &weights,
            channels: &vec![[9, 1 << 30, -6]; outputs],
        };
        let step = packed_form(op, plain, groups)?;
        if !S8::supports(&step) {
            return None;
        }
        let mut bytes = vec![0; S8::needs(&step).weights as usize];
        let step = pack(op, plain, groups, &mut bytes)?;
        let words = bytes
            .as_chunks()
            .0
            .iter()
            .map(|&word| u32::from_le_bytes(word))
            .collect();
        Some((words, step))
    }

    fn trusts(words: &[u32], step: &PackedGroupsS8) -> bool {
        // SAFETY: every word is four bytes, initialised and borrowed as long as the view.
        let bytes = unsafe { core::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 4 * words.len()) };
        S8::trusts(step, bytes)
    }

    /// Every bit of factors, and of weights whose activations are not there, for all ends that windows have.
    #[test]
    fn factors_and_weights_of_nothing_are_checked() {
        for (kernel, inputs, share, unused) in [
            ([1, 1], 16, 8, [0, 0]),
            ([1, 2], 12, 16, [0, 0]),
            ([1, 1], 20, 16, [0, u32::MAX]),
            // Nine.
            ([3, 1], 3, 8, [0xffff_ff00, u32::MAX]),
            ([3, 3], 3, 16, [0, 0]),
        ] {
            let op = op(kernel, inputs, 3);
            let Some((words, step)) = stream(&op, share) else {
                assert_eq!((kernel, inputs), ([3, 3], 3), "rows of words and bytes");
                continue;
            };
            assert!(trusts(&words, &step), "{kernel:?} {inputs}");
            let block = stream_words(&step) as usize;
            for (back, unused) in [(11, unused[0]), (10, unused[1])] {
                for bit in 0..32 {
                    let mut changed = words.clone();
                    changed[block - back] ^= 1 << bit;
                    assert_eq!(
                        !trusts(&changed, &step),
                        unused >> bit & 1 == 1,
                        "{kernel:?} {back} {bit}"
                    );
                }
            }
            // The first group's factors, and the last one's.
            for at in [2 + share as usize / 4, block - 9] {
                for (factors, right) in [
                    (0x0101, true),
                    (0x1212, true),
                    (0x0100, false),
                    (0x0001, false),
                    (0x0113, false),
                    (0x1301, false),
                    (0x1_0101, false),
                ] {
                    let mut changed = words.clone();
                    changed[at] = factors;
                    assert_eq!(trusts(&changed, &step), right, "{kernel:?} {at} {factors:x}");
                }
            }
        }
    }

    #[test]
    fn groups_are_cut_to_what_the_loops_take() {
        let found = [4, 8, 12, 16, 24, 32, 40, 48, 64, 96, 100].map(share_of);
        let expected = [
            None,
            Some(8),
            None,
            Some(16),
            Some(24),
            Some(32),
            Some(8),
            Some(24),
            Some(32),
            Some(32),
            None,
        ];
        assert_eq!(found, expected);
    }
}
