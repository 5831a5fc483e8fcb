//! Constants of a convolution as the loops read them.
//!
//! **Layout.** Four lines of a word for each output channel: the biases, the shifts left, the mantissas, the shifts right (0 or positive). Behind them the
//! weights: for every element under a window a line of a byte for each output channel, in the order in which the elements lie in the input; zeros up to whole
//! words. The bias holds the correction for the input's zero point: bias - zero point * sum of the weights, so that activations are multiplied as stored, and
//! padding is the zero point. Lines have no gaps and groups: a vector takes as many channels of one as it has room for.

use crate::arena::Mem;
use crate::cells::cast_slice;
use crate::ops::conv2d::Conv2dS8;

/// Words of a channel.
const WORDS: u32 = 4;

/// Channels whose sums fit eight registers of the shortest vectors.
const AT_ONCE: u32 = 32;

/// Pixels of a tile that is computed by several such parts of the channels.
const TILE: u32 = 3;

/// Bytes of the constants of `channels` output channels with sums of `terms` products; saturates.
pub(super) fn bytes(channels: u32, terms: u32) -> u32 {
    let words = terms.saturating_mul(channels).saturating_add(3) / 4;
    words.saturating_add(WORDS * channels).saturating_mul(4)
}

/// The words, and the weights behind them. `None` where there are not as many bytes.
pub(super) fn parts<'a>(mem: &Mem<'a>, op: &Conv2dS8, bytes: u32) -> Option<(&'a [i32], &'a [u8])> {
    let all = mem.weights::<u8>(op.weights, bytes)?;
    let (words, weights) = all.split_at_checked(4 * WORDS as usize * usize::from(op.window.output[2]))?;
    Some((cast_slice::<i32>(words)?, weights))
}

/// Packs weights, which `weight(channel, term)` gives, and the channel records `{ bias, mantissa, shift }`; `dst` has [`bytes`]. `None` where a slice is too
/// short.
pub(super) fn pack(
    terms: usize,
    input_zero_point: i8,
    channels: &[[i32; 3]],
    weight: impl Fn(usize, usize) -> Option<i8>,
    dst: &mut [u8],
) -> Option<()> {
    let count = channels.len();
    dst.fill(0);
    let (table, weights) = dst.split_at_mut_checked(4 * WORDS as usize * count)?;
    for (channel, &[bias, mantissa, shift]) in channels.iter().enumerate() {
        let mut sum = 0i32;
        for term in 0..terms {
            let value = weight(channel, term)?;
            sum = sum.wrapping_add(i32::from(value));
            *weights.get_mut(term * count + channel)? = value as u8;
        }
        let bias = bias.wrapping_sub(i32::from(input_zero_point).wrapping_mul(sum));
        let right = shift.min(0).wrapping_neg();
        for (line, value) in [bias, shift.max(0), mantissa, right].into_iter().enumerate() {
            let word = table.get_mut(4 * (line * count + channel)..)?.get_mut(..4)?;
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    Some(())
}

/// Whether constants of [`bytes`] are as [`pack`] writes them in what the loops trust: shifts that are shifts.
pub(super) fn is_packed(op: &Conv2dS8, weights: &[u8], bytes: u32) -> bool {
    let channels = usize::from(op.window.output[2]);
    parts(&Mem::of_weights(weights), op, bytes).is_some_and(|(words, _)| {
        let line = |number: usize| words.get(number * channels..).unwrap_or(&[]).iter().take(channels);
        line(1).chain(line(3)).fold(0, |all, shift| all | shift) & !31 == 0
    })
}

/// Elements of the output that are written before the last read for a pixel, beside all earlier pixels. All channels at once are written after they are
/// computed; where they are not, other parts of a tile's pixels are read again.
pub(super) fn lead(channels: u32) -> u32 {
    if channels <= AT_ONCE { 0 } else { TILE * channels - 1 }
}

/// The fewest instructions of loops over `pixels` and `channels`, which fit registers of `bits`, where a tile of so many pixels takes so many beside its
/// requantising.
#[cfg(any(test, packing))]
pub(super) fn bound(pixels: u64, channels: u64, bits: u32, tile: impl Fn(u64) -> u64) -> u64 {
    // Four registers of sums, and all eight.
    let (few, many) = (u64::from(bits) / 8, u64::from(bits) / 4);
    // For each pixel: two vectors to shift, one to multiply, two and more to round, an addition, two to narrow, two to limit, one to store.
    let requantised = |tile_pixels: u64| 10 + 10 * tile_pixels;
    let of = |count: u64| tile(count) + requantised(count);
    if channels <= few {
        let left = pixels % 6;
        return pixels / 6 * of(6) + left / 2 * of(2) + left % 2 * of(1);
    }
    channels.div_ceil(many) * (pixels / 3 * of(3) + pixels % 3 * of(1))
}
