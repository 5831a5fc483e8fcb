//! Resizing, straight from the formula.

use crate::arena::Mem;
use crate::cells::Element;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::primitives::resize::Pixels;
use crate::ops::resize::{Interpolation, Resize};
use crate::tensor::DType;

/// f32 and int8.
#[derive(Debug)]
pub struct ResizeKernel;

impl Kernel for ResizeKernel {
    type Op = Resize;

    fn run(op: &Resize, mem: &Mem<'_>) -> Option<()> {
        match (op.dtype, op.interpolation) {
            (DType::F32, Interpolation::Nearest) => pixels::<f32>(op, mem)?.nearest(),
            (DType::F32, Interpolation::Bilinear) => pixels::<f32>(op, mem)?.means(|fractions| {
                let [y, x] = fractions.map(|fraction| f32::from_bits(fraction as u32));
                move |[ll, lh, hl, hh]| {
                    ll * (1.0 - y) * (1.0 - x) + hl * y * (1.0 - x) + lh * (1.0 - y) * x + hh * y * x
                }
            }),
            (_, Interpolation::Nearest) => pixels::<i8>(op, mem)?.nearest(),
            (_, Interpolation::Bilinear) => pixels::<i8>(op, mem)?.means(|fractions| {
                // All weights together are 2^20: sums have 28 bits.
                let [y, x] = fractions.map(|fraction| fraction.clamp(0, 1024));
                let weights = [(1024 - y) * (1024 - x), (1024 - y) * x, y * (1024 - x), y * x];
                move |corners| {
                    let products = corners.into_iter().zip(weights).map(|(x, w)| i32::from(x) * w);
                    let sum = products.fold(0_i32, i32::wrapping_add);
                    // Ties away from zero: below it the half is one less.
                    ((sum + (1 << 19) + (sum >> 31)) >> 20) as i8
                }
            }),
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for ResizeKernel {}

fn pixels<'a, T: Element>(op: &Resize, mem: &Mem<'a>) -> Option<Pixels<'a, T>> {
    let (input_len, output_len) = op.lens()?;
    let (table, _) = mem.weights::<i32>(op.table, op.table_len())?.as_chunks::<3>();
    let (rows, columns) = table.split_at_checked(op.to[0] as usize)?;
    Some(Pixels {
        input: mem.src(op.input, input_len)?,
        output: mem.dst(op.output, output_len)?,
        batch: op.batch,
        from: op.from,
        channels: op.channels,
        rows,
        columns,
    })
}
