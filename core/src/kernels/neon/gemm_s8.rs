//! Rows of activations times packed weights.
//!
//! **Layout.** Output channels come in groups of sixteen, the last of as many as are left, rounded up to four; K is rounded up to a multiple of eight. A
//! group is the biases of its channels; for every four elements of K the four weights of each of its channels (for every eight the eight, as
//! [`Multiply::DEPTH`] says); and for every four channels four shifts left, four mantissas and four shifts right (0 or negative). Weights beyond K and words of
//! channels beyond the last are zero. The bias holds the correction for the input's zero point: bias - zero point * sum of the
//! weights, so that activations are multiplied as stored.
//!
//! A vector of weights, elements of K of some channels, serves all rows of a tile, and one of a row's elements all channels of a group. They are multiplied
//! by a [`Multiply`]: `SDOT` takes such a vector at once, `SMMLA` two rows of it; without them `SMULL` and `SMLAL` make 16-bit products of two vectors' bytes,
//! which `SADALP` adds in pairs, two sums to a channel.

use core::marker::PhantomData;

use super::args::Product;
use super::dwconv_s8::shifts_are_packed;
use crate::blocks::blocks;
use crate::cells::cast_slice;

/// Product of tiles of rows and packed weights.
pub(in crate::kernels) trait Multiply: core::fmt::Debug + 'static {
    /// Rows of a tile.
    const TILE: usize;

    /// Elements of K that a channel has side by side: four or eight.
    const DEPTH: usize;

    /// Whether weights may be -128.
    const FULL_RANGE: bool;

    /// Tiles of [`Multiply::TILE`] rows.
    ///
    /// # Safety
    /// As for [`Matrix::multiply`], with at least one tile, and arguments of packed weights.
    unsafe fn tiles(args: &Product);

    /// Tiles of one row.
    ///
    /// # Safety
    /// As for [`Multiply::tiles`].
    unsafe fn rows(args: &Product);

    /// The least instructions for the elements of a tile and a group: `eights` times eight elements of `rows` rows against `vectors` vectors of four channels,
    /// sums and biases included.
    #[cfg(any(test, packing))]
    fn bound(rows: u64, vectors: u64, eights: u64) -> u64;
}

/// Elements that the loops take at least.
pub(in crate::kernels) const BLOCK: u32 = 8;

/// Output channels of a group.
const GROUP: usize = 16;

/// Output channels of a vector of sums.
pub(in crate::kernels) const LANES: usize = 4;

/// Words of a channel beside its weights: bias, shift left, mantissa, shift right.
const WORDS: u32 = 4;

/// K rounded up to what the loops take; saturates.
const fn padded(k: u32) -> u32 {
    k.saturating_add(BLOCK - 1) / BLOCK * BLOCK
}

/// Bytes of packed weights; saturates.
pub(in crate::kernels) const fn packed_bytes(channels: u32, k: u32) -> u32 {
    let channel = padded(k).saturating_add(4 * WORDS);
    let channels = channels.div_ceil(LANES as u32).saturating_mul(LANES as u32);
    channels.saturating_mul(channel)
}

/// Packs weights `[out][k]`, read through `weight(out, k)`; `None` where a slice is too short. See the module for the layout.
pub(in crate::kernels) fn pack<L: Multiply>(
    k: usize,
    input_zero_point: i8,
    channels: &[[i32; 3]],
    weight: impl Fn(usize, usize) -> Option<i8>,
    dst: &mut [u8],
) -> Option<()> {
    let steps = padded(k as u32) as usize / LANES;
    dst.fill(0);
    let mut group = dst;
    for (number, channels) in channels.chunks(GROUP).enumerate() {
        let width = channels.len().next_multiple_of(LANES);
        let (biases, rest) = group.split_at_mut_checked(4 * width)?;
        let (weights, rest) = rest.split_at_mut_checked(steps * 4 * width)?;
        let (table, rest) = rest.split_at_mut_checked(12 * width)?;
        group = rest;
        for (channel, &[bias, mantissa, shift]) in channels.iter().enumerate() {
            let mut sum = 0i32;
            for i in 0..k {
                let value = weight(number * GROUP + channel, i)?;
                sum = sum.wrapping_add(i32::from(value));
                *weights.get_mut((i / L::DEPTH * width + channel) * L::DEPTH + i % L::DEPTH)? = value as u8;
            }
            let bias = bias.wrapping_sub(i32::from(input_zero_point).wrapping_mul(sum));
            biases
                .get_mut(4 * channel..)?
                .get_mut(..4)?
                .copy_from_slice(&bias.to_le_bytes());
            for (part, value) in [shift.max(0), mantissa, shift.min(0)].into_iter().enumerate() {
                let at = (channel / LANES * 3 + part) * 4 * LANES + channel % LANES * 4;
                table.get_mut(at..)?.get_mut(..4)?.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Some(())
}

/// Whether weights of [`packed_bytes`] are as [`pack`] writes them in what the loops trust: shifts that are shifts, to one side only, and zeros beyond K, where
/// rows are read as well.
pub(in crate::kernels) fn is_packed<L: Multiply>(weights: &[u8], channels: usize, k: usize) -> bool {
    let Some(words) = cast_slice::<u32>(weights) else {
        return false;
    };
    let steps = padded(k as u32) as usize / LANES;
    let whole = channels / GROUP * GROUP;
    let Some((groups, last)) = words.split_at_checked(whole * (WORDS as usize + steps)) else {
        return false;
    };
    let rest = (channels - whole).next_multiple_of(LANES);
    let group = |words: &[u32], width: usize| group_is_packed::<L>(words, width, steps, k);
    blocks(groups, GROUP * (WORDS as usize + steps)).all(|words| group(words, GROUP))
        && (rest == 0 || group(last, rest))
}

fn group_is_packed<L: Multiply>(group: &[u32], width: usize, steps: usize, k: usize) -> bool {
    let parts = group
        .split_at_checked(width)
        .and_then(|(_, rest)| rest.split_at_checked(steps * width));
    let Some((weights, table)) = parts else {
        return false;
    };
    // Of the last eight elements, what lies beyond K.
    let beyond = |step: usize| match k.saturating_sub(4 * step) {
        4.. => 0,
        used => u32::MAX << (8 * used),
    };
    let first = steps.saturating_sub(2);
    let Some(last) = weights.get(first * width..) else {
        return false;
    };
    let bits = if L::DEPTH == LANES {
        let (first, second) = last.split_at_checked(width).unwrap_or_default();
        [first, second].map(|words| words.iter().fold(0, |bits, word| bits | word))
    } else {
        let pairs = last.as_chunks::<2>().0.iter();
        pairs.fold([0; 2], |[first, second], pair| [first | pair[0], second | pair[1]])
    };
    let [first_beyond, second_beyond] = [first, first + 1].map(beyond);
    bits[0] & first_beyond == 0 && bits[1] & second_beyond == 0 && shifts_are_packed(table)
}

/// Packed weights and what they are multiplied to.
#[derive(Debug)]
pub(in crate::kernels) struct Matrix<'a, L> {
    weights: &'a [u8],
    k: usize,
    channels: usize,
    zero_point: i8,
    limits: [i8; 2],
    loops: PhantomData<L>,
}

impl<'a, L: Multiply> Matrix<'a, L> {
    /// `weights` are [`packed_bytes`].
    pub(in crate::kernels) fn new(weights: &'a [u8], k: u32, channels: u32, zero_point: i8, limits: [i8; 2]) -> Self {
        Self {
            weights,
            k: k as usize,
            channels: channels as usize,
            zero_point,
            limits,
            loops: PhantomData,
        }
    }

    /// Multiplies `rows` rows of x, `x_stride` bytes apart, to `rows` rows of contiguous outputs.
    ///
    /// Rows are done in order, a tile at a time; before the last read of a row all earlier rows and less than a tile more are written.
    ///
    /// # Safety
    /// Every row of x is valid for reads up to the next multiple of eight bytes after its K elements; what lies beyond K is multiplied by zero. `out` is valid
    /// for writes of `rows` times the channels.
    pub(in crate::kernels) unsafe fn multiply(&self, x: *const i8, x_stride: usize, rows: usize, out: *mut i8) {
        let padded = padded(self.k as u32) as usize;
        let mut args = Product {
            x,
            x_stride,
            weights: self.weights.as_ptr(),
            out,
            out_stride: self.channels,
            groups: self.channels / GROUP,
            rest: self.channels % GROUP,
            blocks: padded / 16,
            half: padded / 8 % 2,
            tiles: rows / L::TILE,
            zero_point: i32::from(self.zero_point),
            low: i32::from(self.limits[0]),
            high: i32::from(self.limits[1]),
        };
        if args.tiles > 0 {
            // SAFETY: at least one tile; groups are those of the packed weights, and the contract guarantees `rows >= L::TILE` rows at `x` and their outputs.
            unsafe { L::tiles(&args) };
        }
        let done = args.tiles * L::TILE;
        if done < rows {
            args.tiles = rows - done;
            args.x = x.wrapping_add(done * x_stride);
            args.out = out.wrapping_add(done * self.channels);
            // SAFETY: `rows - done > 0` rows are left, from `args.x` and `args.out` on; this function's contract guarantees all `rows`.
            unsafe { L::rows(&args) };
        }
    }
}

/// The least instructions of a product: elements, and requantising of the outputs.
#[cfg(any(test, packing))]
pub(in crate::kernels) fn bound<L: Multiply>(rows: u64, k: u32, channels: u64) -> u64 {
    let eights = u64::from(padded(k) / 8);
    // Of a tile of rows and a group of channels, in vectors of sums: elements, requantising, narrowing and storing.
    let group = |rows: u64, vectors: u64| {
        L::bound(rows, vectors, eights) + vectors * (1 + 6 * rows) + rows * (vectors + vectors.div_ceil(2) + 3)
    };
    let vectors = channels.div_ceil(LANES as u64);
    let tile = |rows: u64| {
        let rest = vectors % 4;
        vectors / 4 * group(rows, 4) + if rest > 0 { group(rows, rest) } else { 0 }
    };
    let unit = L::TILE as u64;
    rows / unit * tile(unit) + rows % unit * tile(1)
}
