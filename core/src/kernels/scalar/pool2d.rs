//! Pooling straight from the formula.

use super::{clamp, taps};
use crate::arena::Mem;
use crate::kernels::cells::Src;
use crate::ops::Kernel;
use crate::ops::pool2d::PoolF32;

/// f32 maximum.
#[derive(Debug)]
pub struct MaxF32;

/// f32 average.
#[derive(Debug)]
pub struct AvgF32;

impl Kernel for MaxF32 {
    type Op = PoolF32;

    fn distance(op: &PoolF32, index: usize) -> Option<i64> {
        pool_distance(op, index)
    }

    fn run(op: &PoolF32, mem: &Mem<'_>) -> Option<()> {
        each_output(
            op,
            mem,
            f32::NEG_INFINITY,
            |max, x| if x > max || x.is_nan() { x } else { max },
            |max, _| max,
        )
    }
}

impl Kernel for AvgF32 {
    type Op = PoolF32;

    fn distance(op: &PoolF32, index: usize) -> Option<i64> {
        pool_distance(op, index)
    }

    fn run(op: &PoolF32, mem: &Mem<'_>) -> Option<()> {
        let [kh, kw] = op.window.kernel.map(f32::from);
        let whole = kh * kw;
        each_output(
            op,
            mem,
            0.0,
            |sum, x| sum + x,
            |sum, n| sum / if op.count_include_pad { whole } else { n as f32 },
        )
    }
}

/// A channel reads only its own channel, but pixels share rows: the channels written before are the lead.
fn pool_distance(op: &PoolF32, index: usize) -> Option<i64> {
    (index == 1).then(|| op.window.consumed_distance(4, u32::from(op.window.output[2]) - 1))
}

fn each_output(
    op: &PoolF32,
    mem: &Mem<'_>,
    initial: f32,
    fold: impl Fn(f32, f32) -> f32,
    finish: impl Fn(f32, usize) -> f32,
) -> Option<()> {
    let window = &op.window;
    let input: Src<'_, f32> = mem.src(op.input, window.input_len()?)?;
    let output = mem.dst::<f32>(op.output, window.output_len()?)?;
    let [h, w, c] = window.input.map(usize::from);
    let [oh, ow, _] = window.output.map(usize::from);
    let mut at = 0;
    for image in 0..usize::from(window.batch) {
        for y in 0..oh {
            let (_, rows, iy) = taps(y, window, 0)?;
            for x in 0..ow {
                let (_, columns, ix) = taps(x, window, 1)?;
                for channel in 0..c {
                    let mut value = initial;
                    for r in 0..rows {
                        for k in 0..columns {
                            value = fold(value, input.get(((image * h + iy + r) * w + ix + k) * c + channel)?);
                        }
                    }
                    output.set(at, clamp(finish(value, rows * columns), op.clamp))?;
                    at += 1;
                }
            }
        }
    }
    Some(())
}
