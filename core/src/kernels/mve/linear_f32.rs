//! Fully connected layers of f32 whose weights have no layout of their own: products of matrices that are computed, and of constants that several steps share.
//!
//! **Loop.** Four outputs of a row at a time: a vector of the row is multiplied by a vector of each of four rows of weights. Sums are four lanes, which are
//! added at the end. The last four outputs of a row, of a number that is no multiple of four, overlap those before. Of fewer than four outputs, operands
//! change places: an output of four rows at a time.

use super::args::LinearF32 as Args;
use super::loops::row_f32;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::arena::Place;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::ops::linear::LinearF32;

/// Outputs at a time.
const FOUR: usize = 4;

/// f32; weights `[out, in]`.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LinearF32;

    fn run(op: &LinearF32, mem: &Mem<'_>) -> Option<()> {
        let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(|extent| extent as usize);
        let x = mem.src::<f32>(op.input, op.rows.checked_mul(op.inputs)?)?;
        let y = mem.dst::<f32>(op.output, op.rows.checked_mul(op.outputs)?)?;
        let weights = mem.src::<f32>(op.weights, op.outputs.checked_mul(op.inputs)?)?;
        let bias = mem.src::<f32>(op.bias, op.outputs)?;
        let mut args = Args {
            x: x.as_ptr(),
            weights: weights.as_ptr(),
            stride: op.inputs.wrapping_mul(size_of::<f32>() as u32),
            inputs: op.inputs,
            bias: bias.as_ptr(),
            out: y.as_mut_ptr(),
            groups: op.outputs / FOUR as u32,
            limited: u32::from(op.clamp != [f32::NEG_INFINITY, f32::INFINITY]),
            limits: op.clamp,
        };
        if args.groups == 0 {
            return few_outputs(args, [rows, inputs, outputs]);
        }
        let last = (outputs % FOUR > 0).then(|| outputs.wrapping_sub(FOUR));
        for r in 0..rows {
            args.x = x.as_ptr().wrapping_add(r.wrapping_mul(inputs));
            args.out = y.as_mut_ptr().wrapping_add(r.wrapping_mul(outputs));
            // SAFETY: `x`, `y`, weights and biases have `rows` rows and `outputs` channels; `groups` fours are whole, and the last four begin at `outputs - 4`.
            unsafe {
                row_f32(&args);
                if let Some(last) = last {
                    row_f32(&Args {
                        weights: args.weights.wrapping_add(last.wrapping_mul(inputs)),
                        bias: args.bias.wrapping_add(last),
                        out: args.out.wrapping_add(last),
                        groups: 1,
                        ..args
                    });
                }
            }
        }
        Some(())
    }
}

/// One output of four rows at a time, or of the last row four times: `args` has all of the operands, which are of these extents and not empty.
fn few_outputs(args: Args, [rows, inputs, outputs]: [usize; 3]) -> Option<()> {
    for o in 0..outputs {
        // SAFETY: `o < outputs`, the number of biases of `args` (fn docs).
        let bias = [unsafe { args.bias.wrapping_add(o).read() }; FOUR];
        let mut r = 0;
        while r < rows {
            let left = rows.wrapping_sub(r);
            let mut found = [0.0; FOUR];
            // Fewer than four rows go one by one, each four times.
            let (count, stride) = if left < FOUR { (1, 0) } else { (FOUR, args.stride) };
            // SAFETY: row `o < outputs` of the weights and `count` rows of `x` from `r` on are those of `args`; `bias` and `found` have four elements.
            unsafe {
                row_f32(&Args {
                    x: args.weights.wrapping_add(o.wrapping_mul(inputs)),
                    weights: args.x.wrapping_add(r.wrapping_mul(inputs)),
                    stride,
                    bias: bias.as_ptr(),
                    out: found.as_mut_ptr(),
                    groups: 1,
                    ..args
                });
            }
            for (i, found) in found.into_iter().enumerate().take(count) {
                let at = r.wrapping_add(i).wrapping_mul(outputs).wrapping_add(o);
                // SAFETY: `r + i < rows` and `o < outputs`, an output of `args` (fn docs).
                unsafe { args.out.wrapping_add(at).write(found) };
            }
            r = r.wrapping_add(count);
        }
    }
    Some(())
}

#[cfg(any(test, packing))]
impl Candidate for F32 {
    const JOB: Option<JobKind> = Some(JobKind::LinearF32);

    fn step<P: Place>(job: &Job<'_, P>) -> Option<LinearF32<P>> {
        job.linear_f32()
    }

    fn bound(op: &LinearF32, _: &Machine) -> Option<u64> {
        let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(u64::from);
        let groups = outputs.div_ceil(FOUR as u64).saturating_mul(rows);
        Some(groups.saturating_mul(10 * inputs.div_ceil(4) + 31))
    }
}
