//! Windows over rows that lie apart: one row of a rolled tensor, from the rows under its windows wherever these are.

use super::conv2d::{S8, each_output, each_pixel, stored};
use super::taps;
use crate::arena::{Mem, Slot};
use crate::cells::{Element, Src};
use crate::kernels::api::kernel::Kernel;
use crate::ops::conv2d::Conv2dS8;
use crate::ops::window::{Window2d, three, two};
use crate::rolled::MAX_TURN_ROWS;

/// The rows that a turn reads, each looked up once.
struct Rows<'a, T: Element>([Option<Src<'a, T>>; MAX_TURN_ROWS]);

impl<'a, T: Element> Rows<'a, T> {
    /// The rows of a window's input.
    fn of(mem: &Mem<'a>, input: Slot, window: &Window2d) -> Option<Self> {
        let [count, columns, channels] = three::<_, u32>(window.input);
        let mut rows = Self([None; MAX_TURN_ROWS]);
        for (row, place) in (0..count).zip(&mut rows.0) {
            *place = Some(mem.row(input, row, columns.checked_mul(channels)?)?);
        }
        Some(rows)
    }

    fn get(&self, row: usize) -> Option<Src<'a, T>> {
        *self.0.get(row)?
    }
}

/// [`S8`] of one row.
pub(super) fn conv2d(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
    let window = &op.window;
    let input = Rows::<i8>::of(mem, op.input, window)?;
    let output = mem.dst::<i8>(op.output, window.output_len()?)?;
    let stage = mem.dst::<i8>(op.scratch, S8::needs(op).scratch)?;
    let weights = mem.weights::<i8>(op.weights, op.weights_len()?)?;
    let records = mem.weights::<i32>(op.channels, u32::from(window.output[2]).checked_mul(3)?)?;
    let (records, _) = records.as_chunks::<3>();
    let channels = op.group_channels() as usize;
    let all_channels = usize::from(window.input[2]);
    let zero_point = i32::from(op.input_zero_point);
    let [kh, kw] = two::<_, usize>(window.kernel);
    let [dh, dw] = two::<_, usize>(window.dilation);
    let (ky, rows, iy) = taps(0, window, 0)?;
    let value = |_: usize, _: usize, _: usize, x: usize, o: usize, first_channel: usize| {
        let record = records.get(o)?;
        let [mut sum, ..] = *record;
        let (kx, columns, ix) = taps(x, window, 1)?;
        for r in 0..rows {
            let row = input.get(iy + r * dh)?;
            let tap = (o * kh + ky + r) * kw + kx;
            for k in 0..columns {
                let x = row.slice((ix + k * dw) * all_channels + first_channel, channels)?;
                let w = weights.get((tap + k) * channels..)?.get(..channels)?;
                for (x, &w) in x.iter().zip(w) {
                    sum = sum.wrapping_add((i32::from(x) - zero_point) * i32::from(w));
                }
            }
        }
        Some(stored(op, record, sum))
    };
    if op.is_staged() {
        each_pixel(window, op.groups, output, stage, value)
    } else {
        each_output(window, op.groups, output, value)
    }
}

/// Pooling of one row.
pub(super) fn pool<T: Element, A: Copy>(
    (window, input, output): (&Window2d, Slot, Slot),
    mem: &Mem<'_>,
    initial: A,
    fold: impl Fn(A, T) -> A,
    finish: impl Fn(A, usize) -> T,
) -> Option<()> {
    let input = Rows::<T>::of(mem, input, window)?;
    let output = mem.dst::<T>(output, window.output_len()?)?;
    let [_, _, channels] = three::<_, usize>(window.input);
    let (_, rows, iy) = taps(0, window, 0)?;
    let mut at = 0;
    for x in 0..usize::from(window.output[1]) {
        let (_, columns, ix) = taps(x, window, 1)?;
        for channel in 0..channels {
            let mut value = initial;
            for r in 0..rows {
                let row = input.get(iy + r)?;
                for k in 0..columns {
                    value = fold(value, row.get((ix + k) * channels + channel)?);
                }
            }
            output.set(at, finish(value, rows * columns))?;
            at += 1;
        }
    }
    Some(())
}
