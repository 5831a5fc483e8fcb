//! Resizing, straight from the formula.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::candidate::Candidate;
use crate::kernels::kernel::Kernel;
use crate::ops::resize::{Interpolation, Resize};
use crate::tensor::DType;

/// f32 and int8.
#[derive(Debug)]
pub struct ResizeKernel;

impl Kernel for ResizeKernel {
    type Op = Resize;

    fn run(op: &Resize, mem: &Mem<'_>) -> Option<()> {
        match (op.dtype, op.interpolation) {
            (DType::F32, Interpolation::Nearest) => each::<f32>(op, mem, |[x, ..], _, _| x),
            (DType::F32, Interpolation::Bilinear) => each::<f32>(op, mem, |[ll, lh, hl, hh], y, x| {
                let (y, x) = (f32::from_bits(y as u32), f32::from_bits(x as u32));
                ll * (1.0 - y) * (1.0 - x) + hl * y * (1.0 - x) + lh * (1.0 - y) * x + hh * y * x
            }),
            (_, Interpolation::Nearest) => each::<i8>(op, mem, |[x, ..], _, _| x),
            (_, Interpolation::Bilinear) => each::<i8>(op, mem, |corners, y, x| {
                let [ll, lh, hl, hh] = corners.map(i64::from);
                let (y, x) = (i64::from(y.clamp(0, 1024)), i64::from(x.clamp(0, 1024)));
                let sum = ll * (1024 - y) * (1024 - x) + hl * y * (1024 - x) + lh * (1024 - y) * x + hh * y * x;
                let half = if sum > 0 { 1 << 19 } else { -(1 << 19) };
                ((sum + half) / (1 << 20)) as i8
            }),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for ResizeKernel {}

/// Calls `pixel([low low, low high, high low, high high], row fraction, column fraction)`, corners named row first.
fn each<T: Element>(op: &Resize, mem: &Mem<'_>, pixel: impl Fn([T; 4], i32, i32) -> T) -> Option<()> {
    let (input_len, output_len) = op.lens()?;
    let input = mem.src::<T>(op.input, input_len)?;
    let output = mem.dst::<T>(op.output, output_len)?;
    let (table, _) = mem.weights::<i32>(op.table, op.table_len())?.as_chunks::<3>();
    let (rows, columns) = table.split_at_checked(op.to[0] as usize)?;
    let [h, w] = op.from.map(|n| n as usize);
    let channels = op.channels as usize;
    // The table is data: an index beyond the image means its edge.
    let within = |index: i32, extent: usize| (index.max(0) as usize).min(extent.saturating_sub(1));
    let mut at = 0;
    for image in 0..op.batch as usize {
        for &[y0, y1, y] in rows {
            for &[x0, x1, x] in columns {
                let start = |y: i32, x: i32| ((image * h + within(y, h)) * w + within(x, w)) * channels;
                let corners = [start(y0, x0), start(y0, x1), start(y1, x0), start(y1, x1)];
                for channel in 0..channels {
                    let [a, b, c, d] = corners.map(|corner| input.get(corner + channel));
                    output.set(at, pixel([a?, b?, c?, d?], y, x))?;
                    at += 1;
                }
            }
        }
    }
    Some(())
}
