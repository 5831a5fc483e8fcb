//! Pieces of the code of [`super::conv2d_s8`], a bit each.

#[cfg(any(test, packing))]
use super::channel_record::{CONSTANT, GENERAL, Record};
#[cfg(any(test, packing))]
use super::conv2d_s8::pointwise_pixels;
#[cfg(any(test, packing))]
use super::im2col_4_pixels::Patches;
#[cfg(any(test, packing))]
use crate::ops::conv2d::Conv2dS8;

/// Records that load has not checked.
pub(super) const RECORDS: u32 = 1;
/// Limits of the outputs.
pub(super) const LIMITED: u32 = 2;
/// Pixels without a window.
pub(super) const POINTS: u32 = 4;
/// Windows.
pub(super) const WINDOWS: u32 = 8;
/// Two or three pixels at the end.
pub(super) const SOME: u32 = 16;
/// Channels at which the loop stops.
pub(super) const OTHERS: u32 = 32;
/// Windows that lie inside the image.
pub(super) const WHOLE: u32 = 64;
/// Rows of windows that do.
pub(super) const ROWS: u32 = 128;
/// Rows of windows that are copied with the border.
pub(super) const COPIES: u32 = 256;
/// Rows of windows tap by tap.
pub(super) const TAPS: u32 = 512;

/// The pieces of a step that load has checked.
#[cfg(any(test, packing))]
pub(super) fn of(op: &Conv2dS8, records: Option<&[Record]>) -> u32 {
    let Some(records) = records else { return u32::MAX };
    let window = &op.window;
    let others = records.iter().any(|record| record[2] & (GENERAL | CONSTANT) != 0);
    let is = |holds: bool, piece: u32| if holds { piece } else { 0 };
    let mut pieces = is(others, OTHERS) | is(op.clamp != [i8::MIN, i8::MAX], LIMITED);
    let (pixels, points) = match pointwise_pixels(window) {
        Some(pixels) => (pixels as usize, true),
        None => (usize::from(window.output[0]) * usize::from(window.output[1]), false),
    };
    pieces |= is(matches!(pixels % 4, 2 | 3), SOME) | if points { POINTS } else { WINDOWS };
    if !points {
        let nowhere = core::ptr::null();
        let mut patches = Patches::new(window, nowhere, nowhere, 0);
        let mut left = pixels;
        while left > 0 {
            let count = left.min(4);
            pieces |= patches.pieces(count);
            left -= count;
        }
    }
    pieces
}
