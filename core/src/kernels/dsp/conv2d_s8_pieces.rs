//! Pieces of the code of [`super::conv2d_s8`]: what a step takes of it, and steps of single pixels, which take little.

use super::conv2d_s8_loops::{ConvBlockArgs, Loops};
use super::im2col_s16::widen;
#[cfg(feature = "rolling")]
use super::im2col_s16_loops::{Im2col4Args, widen_4};
use super::staged_output::copy;
#[cfg(feature = "rolling")]
use super::staged_output::unstage;
use super::windows::staged_stride;
#[cfg(any(test, packing))]
use super::windows::{Geometry, pointwise_pixels};
use crate::arena::Mem;
use crate::ops::packed_conv2d::PackedConv2dS8;
#[cfg(feature = "rolling")]
use crate::ops::window::three;

/// Blocks of four pixels.
pub(super) const FOUR: u32 = 1;
/// Pixels one at a time.
pub(super) const ONE: u32 = 2;
/// Four windows of a row at a time.
pub(super) const ROWS: u32 = 4;
/// Rows of such windows above or below the image.
pub(super) const OUTSIDE: u32 = 8;
/// Windows word by word, in all rows.
pub(super) const COLUMNS: u32 = 16;
/// Windows row by row.
pub(super) const PIXELS: u32 = 32;
/// An odd number of output channels.
pub(super) const STAGED: u32 = 64;
/// Pixels without a window, fewer than four: [`points`] alone.
pub(super) const POINTS: u32 = 128;

/// Whether these pieces are those of [`points`].
#[inline(always)]
pub(super) fn are_points(pieces: u32) -> bool {
    pieces & !(ONE | STAGED | POINTS) == 0
}

/// The pieces of a step: the pixel loop of [`super::conv2d_s8`] without what it computes.
#[cfg(any(test, packing))]
pub(super) fn of(op: &PackedConv2dS8) -> u32 {
    let g = Geometry::of(op);
    let staged = if g.staged() > 0 { STAGED } else { 0 };
    if pointwise_pixels(&op.window).is_some_and(|pixels| pixels < 4) {
        return ONE | POINTS | staged;
    }
    let [height, width, _] = g.output;
    let direct = g.is_direct();
    let alone = if direct { g.alone() } else { 0 };
    let (from, to) = g.inside;
    // Pixels stand alone for the sake of rows.
    let mut pieces = staged | if alone > 0 { ROWS } else { 0 };
    let (mut y, mut x, mut left) = (0, 0, height * width);
    while left > 0 {
        let (top, _) = g.corner(y, x);
        let rows = g.rows_at_once(direct && left >= 4 && x >= from, top);
        let mut pixels = if rows.is_empty() {
            0
        } else {
            to.saturating_sub(x) / 4 * 4
        };
        if pixels > 0 {
            let outside = if rows.len() < g.runs { OUTSIDE } else { 0 };
            pieces |= FOUR | ROWS | outside;
            x += pixels;
        } else {
            pixels = if left >= 4 && (y > 0 || x >= alone) { 4 } else { 1 };
            pieces |= if pixels == 4 { FOUR } else { ONE };
            for pixel in 0..pixels {
                let (_, column) = g.corner(y, x);
                pieces |= if g.shares_words(column) { COLUMNS } else { PIXELS };
                x += 1;
                if x == width && pixel + 1 < pixels {
                    (y, x) = (y + 1, 0);
                }
            }
        }
        left -= pixels;
        if x == width {
            (y, x) = (y + 1, 0);
        }
    }
    pieces
}

/// A step of single pixels without a window: a fully connected layer of few rows.
#[inline(always)]
pub(super) fn points<L: Loops>(
    op: &PackedConv2dS8,
    mem: &Mem<'_>,
    stream: u32,
    share: u32,
    is_staged: bool,
) -> Option<()> {
    let inputs = usize::from(op.window.input[2]);
    let outputs = usize::from(op.window.output[2]);
    let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
    let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
    let weights = mem.weights::<u32>(op.weights, stream / 4)?;
    let pairs = inputs.div_ceil(2).next_multiple_of(L::PAIRS);
    let staged = if is_staged {
        staged_stride(outputs as u32) as usize
    } else {
        0
    };
    let scratch = mem.dst::<u32>(op.scratch, (pairs + staged) as u32)?.as_mut_ptr();
    let stage = scratch.wrapping_add(pairs).cast::<i8>();
    let (mut from, mut to) = (input.as_ptr(), output.as_mut_ptr());
    for _ in 0..input.len() / inputs.max(1) {
        let out = if staged > 0 { stage } else { to };
        // SAFETY: a pixel of the input and its pairs in scratch; the stream of all channels; a pixel of the output, or of the stage, which has one more
        // channel.
        unsafe {
            widen(from, scratch, inputs);
            L::mac_1x2(&ConvBlockArgs {
                out,
                stride: 0,
                stride3: 0,
                out_end: out.add(if staged > 0 { staged } else { outputs }),
                x: scratch,
                x_end: scratch,
                weights: weights.as_ptr(),
                pairs,
                form: op.form as usize,
                share: share as usize / 2,
                groups: stage.wrapping_add(staged * 4).cast(),
            });
            if staged > 0 {
                copy(stage, to, outputs);
            }
        }
        (from, to) = (from.wrapping_add(inputs), to.wrapping_add(outputs));
    }
    Some(())
}

/// A row of a tensor that rolls, without a window: four pixels at a time, then single ones. `stream`: bytes of the weights.
#[cfg(feature = "rolling")]
#[inline(always)]
pub(super) fn row_of_points<L: Loops>(op: &PackedConv2dS8, mem: &Mem<'_>, stream: u32) -> Option<()> {
    let [_, pixels, inputs] = three::<_, usize>(op.window.input);
    let outputs = usize::from(op.window.output[2]);
    let input = mem.src::<i8>(op.input, op.window.input_len()?)?;
    let output = mem.dst::<i8>(op.output, op.window.output_len()?)?;
    let weights = mem.weights::<u32>(op.weights, stream / 4)?;
    let pairs = inputs.div_ceil(2).next_multiple_of(L::PAIRS);
    let staged = staged_stride(outputs as u32) as usize;
    let lanes = if pixels < 4 { 1 } else { 4 };
    let scratch = mem
        .dst::<u32>(op.scratch, (pairs * lanes + staged) as u32)?
        .as_mut_ptr();
    let stage = scratch.wrapping_add(pairs * lanes).cast::<i8>();
    let stride = if staged > 0 { staged } else { outputs };
    let windows = Im2col4Args {
        to: scratch,
        step: inputs,
        words: inputs / 4,
        runs: 1,
        gap: 0,
        tail: inputs % 4,
        tails: scratch.wrapping_add(inputs / 4 * 8).cast(),
    };
    let mut block = ConvBlockArgs {
        out: stage,
        stride,
        stride3: 3 * stride,
        out_end: stage,
        x: scratch,
        x_end: scratch.wrapping_add(pairs * 4),
        weights: weights.as_ptr(),
        pairs,
        form: op.form as usize,
        share: 0,
        groups: stage.wrapping_add(staged * 4).cast(),
    };
    let (mut from, mut to) = (input.as_ptr(), output.as_mut_ptr());
    let mut left = pixels;
    while left > 0 {
        let pixels = if left < 4 { 1 } else { 4 };
        block.out = if staged > 0 { stage } else { to };
        block.out_end = block.out.wrapping_add(stride);
        // SAFETY: `pixels` of the input from `from` on, which become `pairs * pixels` words of scratch; the stream of all channels; as many pixels of the
        // output from `to` on, or of the stage, which has one more channel.
        unsafe {
            if pixels == 4 {
                widen_4(&windows, from);
                L::mac_4x2(&block);
            } else {
                widen(from, scratch, inputs);
                L::mac_1x2(&block);
            }
            if staged > 0 {
                unstage(stage, to, outputs, pixels);
            }
        }
        left -= pixels;
        (from, to) = (from.wrapping_add(pixels * inputs), to.wrapping_add(pixels * outputs));
    }
    Some(())
}
