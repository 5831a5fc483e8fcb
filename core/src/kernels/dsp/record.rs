//! A channel's requantisation in a packed stream: four words.
//!
//! Short forms: `m, c, k, d` of [`Short`]. General: mantissa, shift, zero point, and the clamp's ends in the halves of the last word.

use super::instructions::{halves, split};
use super::requant::{Requantize, Short};
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
#[inline(always)]
pub(crate) fn are_packed(records: &[[u32; WORDS]], form: Form) -> bool {
    match form {
        // Two factors in the place of a record; any will do.
        Form::Folded => true,
        Form::Positive | Form::Signed => records.iter().fold(0, |bits, record| bits | reserved(record, form)) == 0,
        Form::General => records.iter().all(is_general),
    }
}

/// Reads a general record.
///
/// # Safety
/// Four readable words.
pub(crate) unsafe fn general(record: *const u32) -> Requantize {
    // SAFETY: as the caller promises.
    let [mantissa, shift, zero_point, clamp] = unsafe { *record.cast::<[u32; WORDS]>() };
    Requantize {
        multiplier: Multiplier {
            mantissa: mantissa as i32,
            shift: shift as i8,
        },
        zero_point: zero_point as i32,
        clamp: split(clamp),
    }
}

/// Reads a short record. The offset is in the bias.
///
/// # Safety
/// Four readable words.
#[cfg(not(all(cortex_m = "dsp", feature = "dsp")))]
pub(crate) unsafe fn short(record: *const u32) -> Short {
    // SAFETY: as the caller promises.
    let [m, c, k, d] = unsafe { *record.cast::<[u32; WORDS]>() };
    Short {
        offset: 0,
        k,
        m: m as i32,
        c: c as i32,
        d: d as i32,
    }
}
