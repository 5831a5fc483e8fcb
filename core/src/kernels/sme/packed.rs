//! Constants of a convolution as the loop reads them.
//!
//! **Layout.** Four lines of a word for each output channel: the biases, the shifts left, the mantissas, the shifts right (0 or negative). Behind them the
//! weights: for every four elements of a row of the window, the last ones zeros where a row has not as many, a line of four bytes for each output channel. The
//! bias holds the correction for the input's zero point: bias - zero point * sum of the weights, so that activations are multiplied as stored, and padding is
//! the zero point. Lines have no gaps: a vector takes as many channels of one as it has room for, whatever its length.

use crate::arena::Mem;
use crate::cells::cast_slice;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::window::Window2d;

/// Words of a channel.
const WORDS: u32 = 4;

/// Elements that are multiplied at once.
pub(super) const FOUR: u32 = 4;

/// Bytes of a row of a window; saturates.
pub(super) fn run(window: &Window2d) -> u32 {
    u32::from(window.kernel[1]).saturating_mul(window.input[2].into())
}

/// Fours of a window, row by row; saturates.
pub(super) fn fours(window: &Window2d) -> u32 {
    u32::from(window.kernel[0]).saturating_mul(run(window).div_ceil(FOUR))
}

/// Bytes of the constants; saturates.
pub(super) fn bytes(window: &Window2d) -> u32 {
    let words = fours(window).saturating_add(WORDS);
    words.saturating_mul(window.output[2].into()).saturating_mul(4)
}

/// The words, and the weights behind them. `None` where there are not as many.
pub(super) fn parts<'a>(mem: &Mem<'a>, op: &Conv2dS8) -> Option<(&'a [i32], &'a [i32])> {
    let all = cast_slice::<i32>(mem.weights::<u8>(op.weights, bytes(&op.window))?)?;
    all.split_at_checked(WORDS as usize * usize::from(op.window.output[2]))
}

/// Packs OHWI weights and the channel records `{ bias, mantissa, shift }`; `dst` has [`bytes`]. `None` where a slice is too short.
pub(super) fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    let (count, run, four) = (channels.len(), run(&op.window) as usize, FOUR as usize);
    let (depth, each_row) = (op.window.depth() as usize, run.div_ceil(four));
    dst.fill(0);
    let (table, lines) = dst.split_at_mut_checked(4 * WORDS as usize * count)?;
    for (channel, &[bias, mantissa, shift]) in channels.iter().enumerate() {
        let mut sum = 0i32;
        for (i, &value) in weights.get(channel * depth..)?.get(..depth)?.iter().enumerate() {
            let (row, at) = (i / run.max(1), i % run.max(1));
            sum = sum.wrapping_add(i32::from(value));
            *lines.get_mut(((row * each_row + at / four) * count + channel) * four + at % four)? = value as u8;
        }
        let bias = bias.wrapping_sub(i32::from(op.input_zero_point).wrapping_mul(sum));
        for (line, value) in [bias, shift.max(0), mantissa, shift.min(0)].into_iter().enumerate() {
            let word = table.get_mut(4 * (line * count + channel)..)?.get_mut(..4)?;
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    Some(())
}

/// Whether constants of [`bytes`] are as [`pack`] writes them in what the loop trusts: shifts that are shifts, to one side only, and zeros beyond the elements
/// of a row, where vectors have what was read before.
pub(super) fn is_packed(op: &Conv2dS8, weights: &[u8]) -> bool {
    let Some((table, lines)) = parts(&Mem::of_weights(weights), op) else {
        return false;
    };
    let channels = usize::from(op.window.output[2]);
    let line = |number: usize| table.get(number * channels..).unwrap_or(&[]).iter().take(channels);
    let (mut shifts, mut both) = (0, 0);
    for (&left, &right) in line(1).zip(line(3)) {
        shifts |= left | right.wrapping_neg();
        both |= i32::from(left != 0 && right != 0);
    }
    let used = run(&op.window) % FOUR;
    let each_row = run(&op.window).div_ceil(FOUR) as usize;
    let mut beyond = 0;
    if used > 0 {
        for row in 1..=usize::from(op.window.kernel[0]) {
            let last = lines.get((row * each_row).saturating_sub(1) * channels..);
            let words = last.unwrap_or(&[]).iter().take(channels);
            beyond |= words.fold(0, |bits, &word| bits | (word as u32) >> (8 * used));
        }
    }
    shifts & !31 == 0 && both == 0 && beyond == 0
}
