//! One pass over the state of an SVDF: see [`super::svdf`].

use super::delay::advance;
use super::dot::lines;
use super::rescale::Rescale;
use super::rescaled::Rescaled;
use crate::cells::{Dst, Src};
use crate::quant::Multiplier;

// The cores with loops of their own; the others take the products of `dot`.
#[cfg(all(cortex_m = "dsp", feature = "dsp", not(all(cortex_m = "mve", feature = "mve"))))]
#[path = "dsp.rs"]
mod loops;
#[cfg(all(
    cortex_m = "mainline",
    not(any(all(cortex_m = "dsp", feature = "dsp"), all(cortex_m = "mve", feature = "mve")))
))]
#[path = "m3.rs"]
mod loops;
#[cfg(cortex_m = "baseline")]
#[path = "m0.rs"]
mod loops;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
#[path = "rv32.rs"]
mod loops;

#[cfg(any(
    cortex_m = "baseline",
    all(cortex_m = "mainline", not(all(cortex_m = "mve", feature = "mve"))),
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
))]
mod args;
#[cfg(all(cortex_m = "mve", feature = "mve"))]
mod helium;
#[cfg(any(
    cortex_m = "baseline",
    cortex_m = "mainline",
    all(target_arch = "riscv32", target_feature = "m", target_os = "none")
))]
pub(super) mod wide;
pub(super) mod wide_args;
#[cfg(all(cortex_m = "mve", feature = "mve"))]
mod wide_helium;
#[cfg(cortex_m = "baseline")]
mod wide_m0;
#[cfg(all(cortex_m = "mainline", not(all(cortex_m = "mve", feature = "mve"))))]
mod wide_mainline;
#[cfg(all(target_arch = "riscv32", target_feature = "m", target_os = "none"))]
mod wide_rv32;

/// A row of an SVDF.
pub(super) struct Times<'a> {
    /// An output for each unit.
    pub(super) y: Dst<'a, i8>,
    /// The memories of all filters.
    pub(super) state: Dst<'a, i8>,
    /// The newest value of each filter.
    pub(super) newest: Src<'a, i8>,
    /// A weight for each element of the state.
    pub(super) weights: &'a [i8],
    /// One for each unit.
    pub(super) bias: &'a [i32],
    /// Filters of a unit.
    pub(super) rank: usize,
    /// Elements of a filter's memory.
    pub(super) memory: usize,
    /// Into the output: what [`Rescale`] has a form for.
    pub(super) multiplier: Multiplier,
    /// Of the output.
    pub(super) zero: i8,
    /// No sum is larger.
    pub(super) magnitude: i64,
}

/// Moves every memory on by one, takes the newest in, and writes the outputs. `None` where lengths disagree.
// A function by itself, or the loops would have no registers.
#[inline(never)]
pub(super) fn times(row: Times<'_>) -> Option<()> {
    let Times {
        y,
        state,
        newest,
        weights,
        bias,
        rank,
        memory,
        multiplier,
        zero,
        magnitude,
    } = row;
    let scale = Rescale::new(multiplier, magnitude, zero.into())?;
    #[cfg(any(
        cortex_m = "baseline",
        all(cortex_m = "mainline", not(all(cortex_m = "mve", feature = "mve"))),
        all(target_arch = "riscv32", target_feature = "m", target_os = "none")
    ))]
    if loops::takes(memory) {
        let filters = bias.len().checked_mul(rank)?;
        let elements = filters.checked_mul(memory)?;
        let fits = [y.cells().len() == bias.len(), newest.len() == filters, elements > 0];
        if fits != [true; 3] || state.cells().len() != elements || weights.len() != elements {
            return None;
        }
        let (mantissa, addend, right) = scale.parts();
        let args = args::Args {
            state: state.as_mut_ptr(),
            weights: weights.as_ptr(),
            newest: newest.as_ptr(),
            y: y.as_mut_ptr(),
            bias: bias.as_ptr(),
            mantissa,
            addend,
            right,
            end: y.as_mut_ptr().wrapping_add(bias.len()),
            less_one: loops::less_one(memory),
            rank,
        };
        // SAFETY: as many of each as there are units and filters, which are not none, as just checked.
        unsafe {
            if (rank, memory) == (1, 8) {
                loops::eights(&args);
            } else {
                loops::any(&args);
            }
        }
        return Some(());
    }
    advance(state);
    append(state, newest, memory)?;
    let len = rank.checked_mul(memory)?;
    let done = vectors((y, state.as_src(), weights, bias), len, (multiplier, zero))?;
    let (weights, bias) = (weights.get(done.checked_mul(len)?..)?, bias.get(done..)?);
    let state = state.slice(done * len, bias.len().checked_mul(len)?)?;
    let mut first = done;
    lines(state.as_src(), 0, weights, bias, len, |sums| {
        if cfg!(all(cortex_m = "mve", feature = "mve")) {
            Rescaled::new(multiplier, zero.into(), (-128, 127), 0).put(sums, y, first, 1)?;
        } else {
            let y = y.slice(first, sums.len())?;
            for (y, &sum) in y.cells().iter().zip(sums) {
                y.set(scale.apply(sum).clamp(-128, 127) as i8);
            }
        }
        first = first.wrapping_add(sums.len());
        Some(())
    })
}

/// Writes the newest value of each filter to the end of its memory.
#[inline(always)]
fn append(state: Dst<'_, i8>, newest: Src<'_, i8>, memory: usize) -> Option<()> {
    let last = memory.checked_sub(1)?;
    #[cfg(all(cortex_m = "mve", feature = "mve"))]
    if newest.len().checked_mul(memory)? <= state.cells().len() && newest.len() > 0 {
        let place = state.as_mut_ptr().wrapping_add(last);
        // SAFETY: an element of the state for each of the newest, as just checked.
        unsafe { helium::append(place, newest.as_ptr(), newest.len(), memory) };
        return Some(());
    }
    let mut place = last;
    for newest in newest.iter() {
        state.set(place, newest)?;
        place = place.wrapping_add(memory);
    }
    Some(())
}

/// The outputs of as many units as vectors are for, from the first on: their number.
#[inline(always)]
fn vectors(row: (Dst<'_, i8>, Src<'_, i8>, &[i8], &[i32]), len: usize, scale: (Multiplier, i8)) -> Option<usize> {
    #[cfg(all(cortex_m = "mve", feature = "mve"))]
    {
        let (y, state, weights, bias) = row;
        let (fours, elements) = (bias.len() / 4, bias.len().checked_mul(len)?);
        if y.cells().len() < bias.len() || state.len() < elements || weights.len() < elements {
            return None;
        }
        if (1..=16).contains(&len) && fours > 0 {
            let (multiplier, zero) = scale;
            let args = helium::Args {
                state: state.as_ptr(),
                weights: weights.as_ptr(),
                bias: bias.as_ptr(),
                y: y.as_mut_ptr(),
                fours,
                len,
                mantissa: multiplier.mantissa,
                right: multiplier.shift.into(),
                zero: zero.into(),
            };
            // SAFETY: as many of each as there are units, four times `fours` of them at least, as just checked.
            unsafe {
                match len {
                    8 => helium::eights(&args),
                    16 => helium::sixteens(&args),
                    _ => helium::rows(&args),
                }
            }
            return Some(4 * fours);
        }
    }
    let _ = (row, len, scale);
    Some(0)
}
