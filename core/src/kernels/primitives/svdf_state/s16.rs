//! int8 SVDF of int16 state on the cores that have loops for it: a block of filters at a time, whose newest values go from their sums straight into the pass
//! over the state, which moves every memory on by one and multiplies it.

#[cfg(not(kernel_isa = "armv7m"))]
use super::s16_args::Scale;
use super::s16_args::{BLOCK, Constants, Row, SvdfS16Args, short};
#[cfg(kernel_isa = "armv6m")]
use super::s16_armv6m as loops;
#[cfg(kernel_isa = "armv7m_gpr")]
use super::s16_armv7m as loops;
#[cfg(kernel_isa = "mve")]
use super::s16_mve as loops;
#[cfg(target_arch = "riscv32")]
use super::s16_rv32im as loops;
use crate::kernels::primitives::dot_s8::block_s8;
#[cfg(kernel_isa = "armv7m_gpr")]
use crate::kernels::primitives::lstm_gates::armv7m::halves;
#[cfg(kernel_isa = "mve")]
use crate::kernels::primitives::lstm_gates::mve::halves;
use crate::ops::size::product;
use crate::ops::svdf::SvdfS8;

/// Runs a row; `false` where the loops do not take the layer, of which nothing has been done then. `None` where lengths disagree.
#[inline(never)]
pub(crate) fn run(op: &SvdfS8, row: Row<'_, i16>, constants: Constants<'_, i16>) -> Option<bool> {
    let (x, y, state) = row;
    let ([zero_in, _, zero], [_, into_output]) = (op.zero, op.multipliers);
    let Some(scale) = short(op).filter(|_| loops::takes(op.shape.memory as usize)) else {
        return Some(false);
    };
    let (mut weights, times, bias) = constants;
    let [units, rank, memory] = [op.shape.units, op.shape.rank, op.shape.memory];
    let filters = product(units, rank)?;
    let elements = product(filters, memory)? as usize;
    let [units, rank, memory, filters, features] =
        [units, rank, memory, filters, op.shape.features].map(|extent| extent as usize);
    if y.cells().len() != units || bias.len() != units || state.cells().len() != elements || times.len() != elements {
        return None;
    }
    let mut sums = [0; BLOCK];
    #[cfg(kernel_isa = "armv7m")]
    let mut newest = [0; BLOCK];
    #[cfg(not(kernel_isa = "armv7m"))]
    let scale = Scale::new(&scale);
    // Divisions are functions on some cores.
    let outputs = if rank == 1 { BLOCK } else { BLOCK.checked_div(rank)? };
    let (mut state, mut times) = (state.as_mut_ptr(), times.as_ptr());
    let (mut bias, mut y, end) = (bias.as_ptr(), y.as_mut_ptr(), y.as_mut_ptr().wrapping_add(units));
    let mut left = filters;
    while left > 0 {
        let count = left.min(BLOCK);
        block_s8(x, zero_in, weights, count, &mut sums)?;
        #[cfg(not(kernel_isa = "armv7m"))]
        let newest = &mut sums;
        left -= count;
        let args = SvdfS16Args {
            state,
            weights: times,
            newest: newest.as_mut_ptr(),
            bias,
            y,
            end: if left > 0 { y.wrapping_add(outputs) } else { end },
            mantissa: into_output.mantissa,
            places: i32::from(into_output.shift).wrapping_neg().wrapping_sub(1) as u32,
            zero,
            memory,
            rank,
        };
        // SAFETY: a block of filters, which are those of whole units and not none, as just checked.
        unsafe {
            #[cfg(kernel_isa = "armv7m")]
            {
                halves(sums.as_ptr(), &scale, newest.as_mut_ptr(), count);
                loops::times(&args);
            }
            #[cfg(not(kernel_isa = "armv7m"))]
            loops::times(&args, &scale);
        }
        weights = weights.get(count.wrapping_mul(features)..)?;
        let done = count.wrapping_mul(memory);
        (state, times) = (state.wrapping_add(done), times.wrapping_add(done));
        (bias, y) = (bias.wrapping_add(outputs), y.wrapping_add(outputs));
    }
    Some(true)
}
