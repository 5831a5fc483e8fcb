//! The layouts of a fully connected layer's weights: those of four channels for each input.

use super::linear_s8_dot;
use super::linear_s8_single_loop::{self, SingleLoopArgs};

/// Layout of four channels' weights for one input.
pub trait Layout: 'static + Sized {
    /// Words of an input.
    const WORDS: u32;
    /// A bit for each [number](linear_s8_dot::number) of a block that has a loop.
    const BLOCKS: u32;
    /// The number of the loop that has no blocks: no sum leaves 32 bits.
    const PLAIN: Option<u32>;

    /// [`linear_s8_dot::sums`] of this layout, of the first `channels` at least.
    ///
    /// # Safety
    /// `words` has [`Self::WORDS`], `x` a byte for each of `inputs`, a multiple of 4; its [`divisors`](linear_s8_dot::divisors) and [`Self::BLOCKS`] have the
    /// number.
    unsafe fn sums(
        words: *const i32,
        x: *const i8,
        inputs: usize,
        number_and_channels: (u32, usize),
        sums: &mut [i32; 4],
    );

    /// All outputs of a pixel by one loop: [`linear_s8_single_loop`].
    ///
    /// # Safety
    /// 1. [`Self::WORDS`] for each input and every four outputs, the last ones filled up with zeros; the inputs before the end are readable.
    /// 2. A record of the short form and room for each output.
    unsafe fn single_loop(args: &mut SingleLoopArgs);

    /// The weights of one of the four channels, from the words of all inputs for the loop of this number.
    #[cfg(any(test, packing))]
    fn channel(words: &[i32], number: u32, channel: usize) -> impl Iterator<Item = i8>;

    /// Writes an input's weights, as bytes of its words, for the loop of this number.
    fn put(weights: [i8; 4], number: u32, words: &mut [u8]);

    /// Whether all weights of these inputs are 0, of channel `first` of the four on, as the loop of this number takes them.
    fn are_zero(words: &[i32], number: u32, first: usize) -> bool;
}

/// Two words, the weights of channels 0 and 1, and of 2 and 3, each in a half: the first one's sign is borrowed from the other.
#[derive(Debug)]
pub struct Halves;

impl Layout for Halves {
    const WORDS: u32 = 2;
    const BLOCKS: u32 = 0b11_1111;
    const PLAIN: Option<u32> = None;

    #[inline(always)]
    unsafe fn sums(words: *const i32, x: *const i8, inputs: usize, (number, _): (u32, usize), sums: &mut [i32; 4]) {
        // SAFETY: `linear_s8_dot::sums` has the contract of this function.
        unsafe { linear_s8_dot::sums(words, x, inputs, number, sums) }
    }

    #[inline(always)]
    unsafe fn single_loop(args: &mut SingleLoopArgs) {
        // SAFETY: the loop has the contract of this function, with two words for each input.
        unsafe { linear_s8_single_loop::halves(args) };
    }

    #[cfg(any(test, packing))]
    fn channel(words: &[i32], _: u32, channel: usize) -> impl Iterator<Item = i8> {
        let of = move |word: i32| {
            let low = word as i8;
            if channel.is_multiple_of(2) {
                low
            } else {
                (word.wrapping_sub(low.into()) >> 16) as i8
            }
        };
        words.iter().skip(channel / 2).step_by(2).copied().map(of)
    }

    fn put(weights: [i8; 4], _: u32, words: &mut [u8]) {
        let [a, b, c, d] = weights.map(i32::from);
        for (word, [low, high]) in words.chunks_exact_mut(4).zip([[a, b], [c, d]]) {
            word.copy_from_slice(&low.wrapping_add(high << 16).to_le_bytes());
        }
    }

    fn are_zero(words: &[i32], _: u32, first: usize) -> bool {
        let (pairs, _) = words.as_chunks::<2>();
        let single = |w: i32| w == i32::from(w as i16);
        match first {
            0 => words.iter().all(|&w| w == 0),
            1 => pairs.iter().all(|&[a, b]| single(a) && b == 0),
            2 => pairs.iter().all(|&[_, b]| b == 0),
            _ => pairs.iter().all(|&[_, b]| single(b)),
        }
    }
}

/// A word of bytes: the weights in order, or, for loops in blocks, each with 128 added, those of channels 0 and 1 in the even bytes, of 2 and 3 in the
/// odd ones.
#[derive(Debug)]
pub struct Bytes;

impl Bytes {
    /// Byte position of each channel, and the number added to each byte.
    const fn bytes(number: u32) -> ([usize; 4], u8) {
        match number {
            1 => ([0, 1, 2, 3], 0),
            _ => ([0, 2, 1, 3], 0x80),
        }
    }

    /// The bytes of the channels from `first` on, as bits of a word.
    fn mask(places: [usize; 4], first: usize) -> u32 {
        let bits = places
            .into_iter()
            .skip(first)
            .map(|place| 0xff_u32.wrapping_shl(8 * place as u32));
        bits.fold(0, |mask, byte| mask | byte)
    }
}

impl Layout for Bytes {
    const WORDS: u32 = 1;
    // Blocks of 3 are no packer's, and of 32 save little.
    const BLOCKS: u32 = 0b01_1011;
    const PLAIN: Option<u32> = Some(1);

    #[inline(always)]
    unsafe fn sums(words: *const i32, x: *const i8, inputs: usize, how: (u32, usize), sums: &mut [i32; 4]) {
        // SAFETY: `linear_s8_dot::narrow` has the contract of this function.
        unsafe { linear_s8_dot::narrow(words, x, inputs, how, sums) }
    }

    #[inline(always)]
    unsafe fn single_loop(args: &mut SingleLoopArgs) {
        // SAFETY: the loop has the contract of this function, with one word for each input.
        unsafe { linear_s8_single_loop::bytes(args) };
    }

    #[cfg(any(test, packing))]
    fn channel(words: &[i32], number: u32, channel: usize) -> impl Iterator<Item = i8> {
        let (places, more) = Self::bytes(number);
        let place = places.get(channel).map_or(0, |place| 8 * place);
        words
            .iter()
            .map(move |word| ((word >> place) as u8).wrapping_sub(more) as i8)
    }

    fn put(weights: [i8; 4], number: u32, words: &mut [u8]) {
        let (places, more) = Self::bytes(number);
        for (weight, place) in weights.into_iter().zip(places) {
            if let Some(byte) = words.get_mut(place) {
                *byte = (weight as u8).wrapping_add(more);
            }
        }
    }

    fn are_zero(words: &[i32], number: u32, first: usize) -> bool {
        let (places, zero) = Self::bytes(number);
        let (mask, zero) = (Self::mask(places, first), u32::from_ne_bytes([zero; 4]));
        words.iter().all(|&word| (word as u32 ^ zero) & mask == 0)
    }
}
