//! int8 fully connected layers whose channels are requantised alike: one factor in the place of four words for each. Sums start from their
//! biases, and the last five vectors of a row stay in registers for all channels.
//!
//! **Layout.** Mantissa, right shift (0 or negative), two words of nothing. Then groups of eight output channels as `gemm_s8.rs` has them, halves of even
//! and of odd channels, but with eight biases for a table. One to four channels that are left are half a group: in order, and four biases. Rows of activations
//! are multiplied where they lie: of whole vectors.

use super::args::Alike;
use super::gemm_s8::{BLOCK, GROUP, half_bytes};
use super::loops::{rows1_alike_fast, rows1_alike_general, rows1_alike_unlimited, rows1_four};
use super::{HEADER, Output};
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;

/// Bytes of a group's biases.
const BIASES: usize = GROUP * 4;

/// Channels of half a group.
const HALF: usize = GROUP / 2;

/// Bytes that have to be saved: what this kernel adds to a program.
#[cfg(any(test, packing))]
const LEAST_SAVED: u32 = 1024;

/// int8, rows of whole vectors.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        let window = &op.window;
        op.is_one_pixel()
            && window.kernel == [1, 1]
            && window.padding == [0, 0]
            && op.groups == 1
            && usize::from(window.input[2]).is_multiple_of(BLOCK)
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(u64::from);
        let Groups { eights, four } = Groups::of(outputs as usize);
        let channels = (eights * GROUP + if four > 0 { HALF } else { 0 }) as u64;
        let bytes = channels * (inputs + 4) + HEADER as u64;
        Needs {
            scratch: 0,
            weights: u32::try_from(bytes).unwrap_or(u32::MAX),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        // A row is read for every group of its outputs.
        let lead = u32::from(op.window.output[2]) - 1;
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        is_packed(op, weights) == Some(true)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let [rows, inputs, outputs] = [window.batch, window.input[2], window.output[2]].map(u32::from);
        // Sixteen bits each.
        let input = mem.src::<i8>(op.input, rows * inputs)?;
        let output = mem.dst::<i8>(op.output, rows * outputs)?;
        let weights = mem.weights::<i32>(op.weights, Self::needs(op).weights / 4)?;
        let (&[mantissa, shift, ..], groups) = weights.split_first_chunk::<{ HEADER / 4 }>()?;
        let [inputs, outputs] = [inputs, outputs].map(|count| count as usize);
        let requantize = Output::new(op.output_zero_point, op.clamp, false);
        let full = outputs / GROUP;
        let mut args = Alike {
            out: output.as_mut_ptr(),
            x: input.as_ptr(),
            groups: full as u32,
            blocks: (inputs / BLOCK) as u32,
            weights: groups.as_ptr().cast(),
            zero_point: requantize.zero_point,
            factor: [mantissa, shift],
            low: requantize.low,
            high: requantize.high,
        };
        for _ in 0..rows {
            // SAFETY: `supports` asks for whole vectors of inputs; `groups` holds all groups (`needs`), and a row of inputs and one of outputs are left.
            unsafe {
                if full > 0 {
                    multiply(&args, &requantize);
                }
                if outputs > full * GROUP {
                    last(&args, outputs % GROUP, &requantize);
                }
            }
            (args.x, args.out) = (args.x.wrapping_add(inputs), args.out.wrapping_add(outputs));
        }
        Some(())
    }
}

/// Multiplies a row by groups of eight channels.
///
/// # Safety
/// The row is valid for reads of its blocks, the weights of the groups, of which there is one at least; the outputs for writes of as many eights.
unsafe fn multiply(args: &Alike, requantize: &Output) {
    // SAFETY: the loops have the contract of this function.
    unsafe {
        match *requantize {
            Output { fast: true, .. } => rows1_alike_fast(args),
            Output {
                low: -128, high: 127, ..
            } => rows1_alike_unlimited(args),
            Output { .. } => rows1_alike_general(args),
        }
    }
}

/// Multiplies a row by the last channels, behind the groups of `args`.
///
/// # Safety
/// As for [`multiply`], of one group more, or half of one; `rest` more outputs are writable.
#[inline(never)]
unsafe fn last(args: &Alike, rest: usize, requantize: &Output) {
    let [groups, blocks] = [args.groups, args.blocks].map(|count| count as usize);
    let group = 2 * half_bytes::<false>(blocks * BLOCK) + BIASES;
    let out = args.out.wrapping_add(groups * GROUP);
    let mut last = Alike {
        out,
        groups: rest as u32,
        weights: args.weights.wrapping_add(groups * group),
        ..*args
    };
    // SAFETY: `last` is the group, or half of one, behind those of `args`, which the contract guarantees; a whole group is written to a place of its own.
    unsafe {
        if rest <= HALF {
            rows1_four(&last);
            return;
        }
        let mut some = [0; GROUP];
        (last.out, last.groups) = (some.as_mut_ptr(), 1);
        multiply(&last, requantize);
        some.as_ptr().copy_to_nonoverlapping(out, rest);
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, plain) = job.conv2d_s8()?;
        let &[_, mantissa, shift] = plain.channels.first()?;
        let alike = |&[_, own, by]: &[i32; 3]| (own, by) == (mantissa, shift);
        (shift <= 0 && plain.channels.iter().all(alike)).then_some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed)
    }

    fn bound(op: &Conv2dS8, _: &Machine) -> Option<u64> {
        let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(u64::from);
        let (groups, blocks) = (Groups::of(outputs as usize), inputs / BLOCK as u64);
        let of_four = if groups.four > 0 { blocks * 10 + 20 } else { 0 };
        // The part of the row that does not stay in registers is loaded again for every group.
        let of_eight = blocks * 16 + blocks.saturating_sub(5) + 16;
        Some(u64::from(op.window.batch) * (groups.eights as u64 * of_eight + of_four))
    }
}

/// Packs OHWI weights and channels `{ bias, mantissa, shift }`; `None` where a slice is too short.
#[cfg(any(test, packing))]
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let inputs = usize::from(op.window.input[2]);
    let &[_, mantissa, shift] = channels.first()?;
    dst.fill(0);
    let mut put = |at: usize, word: i32| {
        dst.get_mut(at..at + 4)?.copy_from_slice(&word.to_le_bytes());
        Some(())
    };
    put(0, mantissa)?;
    put(4, shift)?;
    let Groups { eights, .. } = Groups::of(channels.len());
    let (half, (_, groups)) = (half_bytes::<false>(inputs), dst.split_at_mut_checked(HEADER)?);
    for (channel, &[bias, ..]) in channels.iter().enumerate() {
        let (group, within) = (channel / GROUP, channel % GROUP);
        // Of half a group, all channels are in order, and their biases behind them.
        let (odd, lane, weights_bytes) = if group < eights {
            (within % 2, within / 2, 2 * half)
        } else {
            (0, within, half)
        };
        let dst = groups.get_mut(group * (2 * half + BIASES)..)?;
        let row = weights.get(channel * inputs..)?.get(..inputs)?;
        for (i, &weight) in row.iter().enumerate() {
            *dst.get_mut(odd * half + (i / BLOCK * HALF + lane) * BLOCK + i % BLOCK)? = weight as u8;
        }
        let sum = row.iter().fold(0i32, |sum, &weight| sum.wrapping_add(weight.into()));
        let bias = bias.wrapping_sub(i32::from(op.input_zero_point).wrapping_mul(sum));
        let at = weights_bytes + odd * BIASES / 2 + lane * 4;
        dst.get_mut(at..at + 4)?.copy_from_slice(&bias.to_le_bytes());
    }
    Some(())
}

/// Whether a step's factors, or the channels that would fill its last group, would take more bytes than a kernel that a program may not have otherwise.
#[cfg(any(test, packing))]
pub fn pays<P>(op: &Conv2dS8<P>) -> bool {
    let [inputs, outputs] = [op.window.input[2], op.window.output[2]].map(u32::from);
    let filled = if Groups::of(outputs as usize).four > 0 {
        HALF as u32 * inputs
    } else {
        0
    };
    outputs * 12 + filled >= LEAST_SAVED
}

/// The groups of a layer's channels.
struct Groups {
    /// Of eight, the last of which may have five to seven.
    eights: usize,
    /// Channels of half a group behind them, if there is one.
    four: usize,
}

impl Groups {
    fn of(outputs: usize) -> Self {
        match outputs % GROUP {
            rest @ 1..=HALF => Self {
                eights: outputs / GROUP,
                four: rest,
            },
            _ => Self {
                eights: outputs.div_ceil(GROUP),
                four: 0,
            },
        }
    }
}

/// Whether the factor is as [`pack`] writes it: the loops trust nothing else. Lanes beside the last channels are computed, and not written.
fn is_packed(op: &Conv2dS8, weights: &[u8]) -> Option<bool> {
    let words = Mem::of_weights(weights).weights::<i32>(op.weights, S8::needs(op).weights / 4)?;
    let &[_, shift, a, b] = words.first_chunk()?;
    Some((-31..=0).contains(&shift) && [a, b] == [0; 2])
}
