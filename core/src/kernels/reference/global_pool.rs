//! Averages of whole images: [`crate::ops::global_pool`].

use super::{read, within, written};
use crate::arena::Mem;
use crate::ops::global_pool::GlobalAvgPoolS8;

pub(crate) fn s8(op: &GlobalAvgPoolS8, mem: &Mem<'_>) -> Option<()> {
    let [rows, columns, channels] = op.extents.map(usize::from);
    let pixels = rows * columns;
    let (input, output) = (
        read::<i8>(mem, op.input, pixels * channels)?,
        written::<i8>(mem, op.output, channels)?,
    );
    for channel in 0..channels {
        let mut sum = 0_i64;
        for pixel in 0..pixels {
            sum += i64::from(input.get(pixel * channels + channel)?);
        }
        // The magnitude and a half, rounded down.
        let count = pixels as i64;
        let magnitude = (2 * sum.abs() + count).checked_div(2 * count)?;
        let mean = if sum < 0 { -magnitude } else { magnitude };
        output.set(channel, within(mean as i32, op.clamp.map(i32::from)) as i8)?;
    }
    Some(())
}
