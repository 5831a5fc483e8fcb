//! int8 SVDF of int16 state on the cores that have loops for it: a block of filters at a time, whose newest values go from their sums straight into the pass
//! over the state, which moves every memory on by one and multiplies it.

#[cfg(not(cortex_m = "mainline"))]
use super::wide_args::Scale;
use super::wide_args::{Args, BLOCK, Constants, Row, short};
#[cfg(all(cortex_m = "mve", feature = "mve"))]
use super::wide_helium as loops;
#[cfg(cortex_m = "baseline")]
use super::wide_m0 as loops;
#[cfg(all(cortex_m = "mainline", not(all(cortex_m = "mve", feature = "mve"))))]
use super::wide_mainline as loops;
#[cfg(target_arch = "riscv32")]
use super::wide_rv32 as loops;
use crate::kernels::dot::block_s8;
#[cfg(all(cortex_m = "mve", feature = "mve"))]
use crate::kernels::gates_helium::halves;
#[cfg(all(cortex_m = "mainline", not(all(cortex_m = "mve", feature = "mve"))))]
use crate::kernels::gates_mainline::halves;
use crate::ops::svdf::{SvdfS8, SvdfShape};

/// Runs a row; `false` where the loops do not take the layer, of which nothing has been done then. `None` where lengths disagree.
#[inline(never)]
pub(crate) fn run(op: &SvdfS8, row: Row<'_, i16>, constants: Constants<'_, i16>) -> Option<bool> {
    let (x, y, state) = row;
    let SvdfShape {
        features,
        units,
        rank,
        memory,
        ..
    } = op.shape;
    let ([zero_in, _, zero], [_, into_output]) = (op.zero, op.multipliers);
    let [units, rank, memory, features] = [units, rank, memory, features].map(|extent| extent as usize);
    let Some(scale) = short(op).filter(|_| loops::takes(memory)) else {
        return Some(false);
    };
    let (weights, times, bias) = constants;
    let filters = units.checked_mul(rank)?;
    let elements = filters.checked_mul(memory)?;
    if y.cells().len() != units || bias.len() != units || state.cells().len() != elements || times.len() != elements {
        return None;
    }
    let mut sums = [0; BLOCK];
    #[cfg(cortex_m = "mainline")]
    let mut newest = [0; BLOCK];
    #[cfg(not(cortex_m = "mainline"))]
    let scale = Scale::new(&scale);
    for first in (0..filters).step_by(BLOCK) {
        let count = (filters - first).min(BLOCK);
        let unit = first.checked_div(rank)?;
        block_s8(
            x,
            zero_in,
            weights.get(first.checked_mul(features)?..)?,
            count,
            &mut sums,
        )?;
        let y = y.as_mut_ptr().wrapping_add(unit);
        #[cfg(not(cortex_m = "mainline"))]
        let newest = &mut sums;
        let args = Args {
            state: state.as_mut_ptr().wrapping_add(first * memory),
            weights: times.as_ptr().wrapping_add(first * memory),
            newest: newest.as_mut_ptr(),
            bias: bias.as_ptr().wrapping_add(unit),
            y,
            end: y.wrapping_add(count.checked_div(rank)?),
            mantissa: into_output.mantissa,
            places: i32::from(into_output.shift).wrapping_neg().wrapping_sub(1) as u32,
            zero,
            memory,
            rank,
        };
        // SAFETY: a block of filters, which are those of whole units and not none, as just checked.
        unsafe {
            #[cfg(cortex_m = "mainline")]
            {
                halves(sums.as_ptr(), &scale, newest.as_mut_ptr(), count);
                loops::times(&args);
            }
            #[cfg(not(cortex_m = "mainline"))]
            loops::times(&args, &scale);
        }
    }
    Some(true)
}
