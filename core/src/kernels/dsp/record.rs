//! A channel's requantisation in a packed stream: four words.
//!
//! Short forms: `m, c, k, d` of [`Short`]. General: mantissa, shift, zero point, and the clamp's ends in the halves of the last word.

use super::instructions::{halves, split};
use super::requant::{Requantize, Short};
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
    // A shift that the host never writes must not end the process either.
    Short {
        offset: 0,
        k: k & 31,
        m: m as i32,
        c: c as i32,
        d: d as i32,
    }
}
