//! Local response normalisation straight from the formula.

use super::row;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::lrn::{LrnF32, LrnS8};

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = LrnF32;

    fn run(op: &LrnF32, mem: &Mem<'_>) -> Option<()> {
        let len = op.pixels.checked_mul(op.channels)?;
        let (channels, radius) = (op.channels as usize, usize::from(op.radius));
        let input = mem.src::<f32>(op.input, len)?;
        let output = mem.dst::<f32>(op.output, len)?;
        for pixel in 0..op.pixels as usize {
            let x = row(input, pixel, channels)?;
            let y = output.slice(pixel * channels, channels)?;
            for (c, y) in y.cells().iter().enumerate() {
                let low = c.saturating_sub(radius);
                let near = x.slice(low, (c + radius + 1).min(channels) - low)?;
                let squares: f32 = near.iter().map(|x| x * x).sum();
                y.set(x.get(c)? / libm::powf(op.bias + op.alpha * squares, op.beta));
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}

/// int8, the squares' sum kept from one channel to the next.
#[derive(Debug)]
pub struct S8;

impl Kernel for S8 {
    type Op = LrnS8;

    fn run(op: &LrnS8, mem: &Mem<'_>) -> Option<()> {
        let len = op.pixels.checked_mul(op.channels)?;
        let (channels, radius) = (op.channels as usize, usize::from(op.radius));
        let input = mem.src::<i8>(op.input, len)?;
        let output = mem.dst::<i8>(op.output, len)?;
        let (powers, octaves) = mem.weights::<i32>(op.table, op.lrn.words())?.split_first_chunk()?;
        let (octaves, _) = octaves.as_chunks();
        let zero_point = i32::from(op.input_zero_point);
        for pixel in 0..op.pixels as usize {
            let x = row(input, pixel, channels)?;
            let y = output.slice(pixel * channels, channels)?;
            let square = |at: usize| {
                // Beyond the ends there is nothing.
                let d = x.get(at).map_or(0, |x| i32::from(x) - zero_point);
                (d * d) as u32
            };
            let mut squares = (0..radius.min(channels)).map(square).fold(0, u32::wrapping_add);
            for (c, y) in y.cells().iter().enumerate() {
                squares = squares.wrapping_add(square(c + radius));
                if let Some(gone) = c.checked_sub(radius + 1) {
                    squares = squares.wrapping_sub(square(gone));
                }
                let normal = op
                    .lrn
                    .apply(i32::from(x.get(c)?) - zero_point, squares, powers, octaves);
                let stored = normal.wrapping_add(i32::from(op.output_zero_point));
                y.set(stored.clamp(-128, 127) as i8);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for S8 {}
