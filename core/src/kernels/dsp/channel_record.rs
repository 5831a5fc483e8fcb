//! A channel's requantisation in a packed stream: four words.
//!
//! Short forms: `m, c, k, d` of [`Short`]. General: mantissa, shift, zero point, and the clamp's ends in the halves of the last word.

use super::requantize::Short;
use crate::blocks::blocks;
use crate::kernels::isa::dsp::{halves, split};
use crate::kernels::primitives::requantize::steps::Requantize;
use crate::ops::packed_conv2d::Form;
use crate::quant::Multiplier;

/// Words of a record.
pub(crate) const WORDS: usize = 4;

/// The record of a short form.
pub(crate) fn from_short(short: &Short) -> [u32; WORDS] {
    [short.m as u32, short.c as u32, short.k, short.d as u32]
}

/// The record of the reference's form.
pub(crate) fn from_general(r: &Requantize) -> [u32; WORDS] {
    let [low, high] = r.clamp;
    [
        r.multiplier.mantissa as u32,
        r.multiplier.shift as u32,
        r.zero_point as u32,
        halves(low, high),
    ]
}

/// Whether the host can have written these bits of the reference's form: a shift that the arithmetic has, a zero point and limits of an int8.
#[inline(never)]
pub(crate) fn is_general(&[_, shift, zero_point, clamp]: &[u32; WORDS]) -> bool {
    let [low, high] = split(clamp);
    let byte = -128..=127;
    (-31..=31).contains(&(shift as i32))
        && byte.contains(&(zero_point as i32))
        && byte.contains(&low)
        && (low..=127).contains(&high)
}

/// Bits of a short record that the host leaves zero: shifts beyond a word, and the sign's correction in a form that has none.
#[inline(always)]
pub(crate) fn reserved(&[_, _, k, d]: &[u32; WORDS], form: Form) -> u32 {
    k & !31 | if form == Form::Positive { d } else { 0 }
}

/// Whether all records of a form are as the host writes them; the loops shift by what they say.
#[inline(never)]
pub(crate) fn are_packed(records: &[[u32; WORDS]], form: Form) -> bool {
    match form {
        // Two factors in the place of a record; any will do.
        Form::Folded => true,
        Form::Positive | Form::Signed => records.iter().fold(0, |bits, record| bits | reserved(record, form)) == 0,
        Form::General => records.iter().all(is_general),
    }
}

/// Whether blocks of `words` that end in a word and the records of two channels are as the host writes them: the records, and nothing in the `unused` bits of
/// that word. Load asks it of every channel: without a branch for each, in a function of its own, for speed.
#[inline(never)]
pub(crate) fn pairs_are_packed(stream: &[u32], words: usize, unused: u32, form: Form) -> bool {
    let signs = if form == Form::Positive { u32::MAX } else { 0 };
    let (mut bits, mut general) = (0, true);
    for block in blocks(stream, words) {
        let Some(&[_, a, b, c, d, e, f, g, h]) = block.last_chunk() else {
            return false;
        };
        match form {
            Form::Folded => {}
            Form::Positive | Form::Signed => bits |= (c | g) & !31 | (d | h) & signs,
            Form::General => general &= is_general(&[a, b, c, d]) && is_general(&[e, f, g, h]),
        }
    }
    let fronts = || {
        let front = |block: &[u32]| block.last_chunk().map_or(0, |&[front, ..]: &[u32; 9]| front);
        blocks(stream, words).fold(0, |bits, block| bits | front(block))
    };
    bits == 0 && general && (unused == 0 || fronts() & unused == 0)
}

/// The output of a sum by a general record. Once for all loops, for their size: what takes it is slow in any case.
///
/// # Safety
/// Four words are readable at `record`.
#[inline(never)]
pub(crate) unsafe fn general(record: *const u32, sum: i32) -> i8 {
    // SAFETY: four words are readable at `record` (fn docs).
    let [mantissa, shift, zero_point, clamp] = unsafe { *record.cast::<[u32; WORDS]>() };
    let requantize = Requantize {
        multiplier: Multiplier {
            mantissa: mantissa as i32,
            shift: shift as i8,
        },
        zero_point: zero_point as i32,
        clamp: split(clamp),
    };
    requantize.apply(sum)
}

/// Reads a short record. The offset is in the bias.
///
/// # Safety
/// Four words are readable at `record`.
#[cfg(not(kernel_isa = "dsp"))]
pub(crate) unsafe fn short(record: *const u32) -> Short {
    // SAFETY: four words are readable at `record` (fn docs).
    let [m, c, k, d] = unsafe { *record.cast::<[u32; WORDS]>() };
    Short {
        offset: 0,
        k,
        m: m as i32,
        c: c as i32,
        d: d as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valid block of each form, every bit of it flipped: pairs are what their records are one by one, and what the word before them may hold.
    #[test]
    fn pairs_are_packed_where_their_records_are() {
        let general = [0x4000_0000, 0, 3, halves(-128, 127)];
        for form in [Form::Folded, Form::Positive, Form::Signed, Form::General] {
            let record = if form == Form::General { general } else { [5, 6, 7, 0] };
            let mut stream = [0; 22];
            for block in stream.as_chunks_mut::<11>().0 {
                block[3..7].copy_from_slice(&record);
                block[7..].copy_from_slice(&record);
            }
            for (word, bit, unused) in (0..22 * 32 * 2).map(|i| (i / 64, i / 2 % 32, [0, 0xffff_0000][i % 2])) {
                let mut changed = stream;
                changed[word] ^= 1 << bit;
                let packed = changed.as_chunks::<11>().0.iter().all(|block| {
                    let (records, _) = block[3..].as_chunks();
                    are_packed(records, form) && block[2] & unused == 0
                });
                assert_eq!(
                    pairs_are_packed(&changed, 11, unused, form),
                    packed,
                    "{form:?} {word} {bit}"
                );
            }
            assert!(!pairs_are_packed(&stream, 8, 0, form), "no word before the records");
        }
    }
}
