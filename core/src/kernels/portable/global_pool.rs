//! Averages by sums that outlive a row.

use super::pool2d::mean;
use super::row;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::ops::global_pool::GlobalAvgPoolS8;
use crate::ops::operator::Needs;
use crate::ops::size::size;

/// int8.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = GlobalAvgPoolS8;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn needs(op: &GlobalAvgPoolS8) -> Needs {
        Needs {
            scratch: op.sums(),
            weights: 0,
        }
    }

    fn run(op: &GlobalAvgPoolS8, mem: &Mem<'_>) -> Option<()> {
        let [rows, columns, channels] = op.extents.map(u32::from);
        let input = mem.src::<i8>(op.input, size(&[rows, columns, channels])?)?;
        let output = mem.dst::<i8>(op.output, channels)?;
        let sums = mem.dst::<i32>(op.scratch, channels)?;
        // Of a turn the operator is that of one row, which is one of so many.
        #[cfg(feature = "rolling")]
        let (rows, [is_first, is_last]) = match mem.turning.turn {
            Some(turn) => {
                let all = u32::from(turn.made()?.rows);
                (all, [turn.row() == 0, turn.row().checked_add(1)? == all])
            }
            None => (rows, [true; 2]),
        };
        #[cfg(not(feature = "rolling"))]
        let [is_first, is_last] = [true; 2];
        if is_first {
            sums.cells().iter().for_each(|sum| sum.set(0));
        }
        let channels = channels as usize;
        for pixel in 0..input.len().checked_div(channels)? {
            for (sum, x) in sums.cells().iter().zip(row(input, pixel, channels)?.iter()) {
                sum.set(sum.get().wrapping_add(x.into()));
            }
        }
        if is_last {
            let count = i32::try_from(size(&[rows, columns])?).ok()?;
            for (y, sum) in output.cells().iter().zip(sums.cells()) {
                let mean = mean(sum.get(), count);
                y.set(mean.max(op.clamp[0].into()).min(op.clamp[1].into()) as i8);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {}
