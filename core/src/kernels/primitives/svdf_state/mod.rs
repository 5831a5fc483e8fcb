//! One pass over the state of an SVDF: see [`super::svdf`].

use super::delay_line::advance;
use super::dot_s8::lines;
use super::requantize::bounded::Rescale;
use super::requantize::lines::Rescaled;
use crate::cells::{Dst, Src};
use crate::quant::Multiplier;

// The cores with loops of their own; the others take the products of `dot`.
mod armv6m;
mod armv7m;
mod dsp;
mod rv32im;

#[cfg(kernel_isa = "armv6m")]
use armv6m as loops;
#[cfg(all(kernel_isa = "armv7m", not(any(kernel_isa = "dsp", kernel_isa = "mve"))))]
use armv7m as loops;
#[cfg(all(kernel_isa = "dsp", not(kernel_isa = "mve")))]
use dsp as loops;
#[cfg(kernel_isa = "rv32im")]
use rv32im as loops;

#[cfg(any(kernel_isa = "armv6m", kernel_isa = "armv7m_gpr", kernel_isa = "rv32im"))]
mod args;
#[cfg(kernel_isa = "mve")]
mod mve;
#[cfg(kernel_isa = "gpr32")]
pub(in crate::kernels) mod s16;
pub(in crate::kernels) mod s16_args;
#[cfg(kernel_isa = "armv6m")]
mod s16_armv6m;
#[cfg(kernel_isa = "armv7m_gpr")]
mod s16_armv7m;
#[cfg(kernel_isa = "mve")]
mod s16_mve;
#[cfg(kernel_isa = "rv32im")]
mod s16_rv32im;

/// A row of an SVDF.
pub(in crate::kernels) struct Times<'a> {
    /// An output for each unit.
    pub(in crate::kernels) y: Dst<'a, i8>,
    /// The memories of all filters.
    pub(in crate::kernels) state: Dst<'a, i8>,
    /// The newest value of each filter.
    pub(in crate::kernels) newest: Src<'a, i8>,
    /// A weight for each element of the state.
    pub(in crate::kernels) weights: &'a [i8],
    /// One for each unit.
    pub(in crate::kernels) bias: &'a [i32],
    /// Filters of a unit.
    pub(in crate::kernels) rank: usize,
    /// Elements of a filter's memory.
    pub(in crate::kernels) memory: usize,
    /// Into the output: what [`Rescale`] has a form for.
    pub(in crate::kernels) multiplier: Multiplier,
    /// Of the output.
    pub(in crate::kernels) zero: i8,
    /// No sum is larger.
    pub(in crate::kernels) magnitude: i64,
}

/// Moves every memory on by one, takes the newest in, and writes the outputs. `None` where lengths disagree.
// A function by itself, or the loops would have no registers.
#[inline(never)]
pub(in crate::kernels) fn times(row: Times<'_>) -> Option<()> {
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
    #[cfg(any(kernel_isa = "armv6m", kernel_isa = "armv7m_gpr", kernel_isa = "rv32im"))]
    if loops::takes(memory) {
        let filters = bias.len().checked_mul(rank)?;
        let elements = filters.checked_mul(memory)?;
        let fits = [y.cells().len() == bias.len(), newest.len() == filters, elements > 0];
        if fits != [true; 3] || state.cells().len() != elements || weights.len() != elements {
            return None;
        }
        let (mantissa, addend, right) = scale.parts();
        let args = args::SvdfS8Args {
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
        // SAFETY: `y` has `bias.len()` elements, `newest` one for each of the `filters`, `state` and `weights` have `elements > 0`, as just checked.
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
        if cfg!(kernel_isa = "mve") {
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
    #[cfg(kernel_isa = "mve")]
    if newest.len().checked_mul(memory)? <= state.cells().len() && newest.len() > 0 {
        let place = state.as_mut_ptr().wrapping_add(last);
        // SAFETY: an element of the state for each of the newest, as just checked.
        unsafe { mve::append(place, newest.as_ptr(), newest.len(), memory) };
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
    #[cfg(kernel_isa = "mve")]
    {
        let (y, state, weights, bias) = row;
        let (fours, elements) = (bias.len() / 4, bias.len().checked_mul(len)?);
        if y.cells().len() < bias.len() || state.len() < elements || weights.len() < elements {
            return None;
        }
        if (1..=16).contains(&len) && fours > 0 {
            let (multiplier, zero) = scale;
            let args = mve::SvdfS8MveArgs {
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
            // SAFETY: `4 * fours <= bias.len()` units, not none, each with an output and `len` elements of state and weights, as just checked; `len` is 1 to
            // 16.
            unsafe {
                match len {
                    8 => mve::eights(&args),
                    16 => mve::sixteens(&args),
                    _ => mve::rows(&args),
                }
            }
            return Some(4 * fours);
        }
    }
    let _ = (row, len, scale);
    Some(0)
}
