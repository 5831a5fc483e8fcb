//! int8 convolution and fully connected layers: an element of several pixels' windows at a time, times its weights for as many output channels as a vector has
//! room for. Windows are read where they are (`indirection`).

use core::ptr;

use super::args::ConvArgs;
use super::indirection::{Table, plain, rows_contiguous};
use super::loops::convolution;
use super::packed;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::dwconv_indirection::ADDRESS;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::operator::Needs;
use crate::ops::window::Window2d;

/// int8, one group. Constants of `packed`; the channel records are in them.
#[derive(Debug)]
pub struct S8;

/// Bytes of padding, which a tap outside points at; saturates.
fn padding(window: &Window2d) -> u32 {
    let columns = if rows_contiguous(window) { window.kernel[1] } else { 1 };
    u32::from(columns).saturating_mul(window.input[2].into())
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn supports(op: &Conv2dS8) -> bool {
        op.groups == 1
    }

    fn needs(op: &Conv2dS8) -> Needs {
        let table = op.window.taps().saturating_mul(ADDRESS);
        Needs {
            scratch: if plain(&op.window) {
                0
            } else {
                table.saturating_add(padding(&op.window))
            },
            weights: packed::bytes(op.window.output[2].into(), op.window.depth()),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        let lead = packed::lead(op.window.output[2].into());
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    const TRUSTS: bool = true;

    fn trusts(op: &Conv2dS8, weights: &[u8]) -> bool {
        packed::is_packed(op, weights, Self::needs(op).weights)
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let window = &op.window;
        let needs = Self::needs(op);
        let input = mem.src::<i8>(op.input, window.input_len()?)?.as_ptr();
        let output = mem.dst::<i8>(op.output, window.output_len()?)?.as_mut_ptr();
        let (table, weights) = packed::parts(mem, op, needs.weights)?;
        let [depth, channels] = [window.input[2], window.output[2]].map(usize::from);
        let [low, high] = op.clamp.map(i32::from);
        let mut args = ConvArgs {
            entries: &input,
            taps: 1,
            elements: depth,
            weights: weights.as_ptr(),
            table: table.as_ptr(),
            out: output,
            pixels: 1,
            step: usize::from(window.stride[1]) * depth,
            channels,
            outside: ptr::null(),
            zero_point: i32::from(op.output_zero_point),
            low,
            high,
        };
        if plain(window) {
            let [rows, columns, _] = window.output.map(usize::from);
            args.pixels = usize::from(window.batch) * rows * columns;
            // SAFETY: `plain` windows have one element and no padding: the pixels of both go in order; constants have the layout of `packed`.
            unsafe { convolution(&args) };
            return Some(());
        }
        let scratch = mem.dst::<u8>(op.scratch, needs.scratch)?.as_mut_ptr();
        let outside = scratch.wrapping_add((window.taps() * ADDRESS) as usize).cast::<i8>();
        // SAFETY: `needs` counts `padding(window)` bytes behind the table of addresses, and scratch was taken with that length.
        unsafe { outside.write_bytes(op.input_zero_point as u8, padding(window) as usize) };
        let table = Table {
            input,
            outside,
            entries: scratch.cast(),
        };
        (args.entries, args.outside) = (table.entries, outside);
        // SAFETY: scratch is aligned for any kernel and has as many addresses as taps; a run's taps and outputs lie in the input, in scratch and in the output.
        unsafe {
            table.each_run(window, rows_contiguous(window), |run| {
                args.out = output.wrapping_add(run.first * channels);
                (args.pixels, args.taps, args.elements) = (run.count, run.taps, run.together * depth);
                convolution(&args);
            });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {
    const JOB: Option<JobKind> = Some(JobKind::Conv2dS8);
    const CHANNELS: usize = 16;

    fn step<P: Place>(job: &Job<'_, P>) -> Option<Conv2dS8<P>> {
        let (op, _) = job.conv2d_s8()?;
        Some(op)
    }

    fn pack(job: &Job<'_>, _: &Conv2dS8, packed: &mut [u8], _: &mut [[i32; 3]]) -> Option<()> {
        let (op, plain) = job.conv2d_s8()?;
        pack(&op, plain.weights, plain.channels, packed)
    }

    /// Of every element of a tile: its weights loaded, widened and passed, and for every pixel a load and a product.
    fn bound(op: &Conv2dS8, on: &Machine) -> Option<u64> {
        let [rows, columns, channels] = op.window.output.map(u64::from);
        let pixels = u64::from(op.window.batch) * rows * columns;
        let terms = u64::from(op.window.depth());
        Some(packed::bound(pixels, channels, on.vector_bits, |tile| {
            terms * (3 + 2 * tile)
        }))
    }
}

/// Packs OHWI weights and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where a slice is too short.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    let terms = op.window.depth() as usize;
    let weight = |channel: usize, term: usize| weights.get(channel * terms + term).copied();
    packed::pack(terms, op.input_zero_point, channels, weight, dst)
}
