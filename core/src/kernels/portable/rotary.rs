//! Rotary positions.

use super::row;
use crate::arena::Mem;
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
use crate::ops::position::{OutOfRange, index_at};
use crate::ops::rotary::RotaryF32;
use crate::ops::size::size;

/// f32.
#[derive(Debug)]
pub struct F32;

impl Kernel for F32 {
    type Op = RotaryF32;

    const INDEXED: bool = true;

    fn out_of_range(op: &RotaryF32, mem: &Mem<'_>) -> Option<OutOfRange> {
        index_at(mem, op.position, op.positions)?.err()
    }

    /// Neighbours are read before they are written; of others the second ones lie ahead.
    fn distance(op: &RotaryF32, index: usize) -> Option<i64> {
        (index == 1 && op.interleaved).then_some(0)
    }

    fn in_place(_: &RotaryF32, index: usize) -> bool {
        index == 1
    }

    fn run(op: &RotaryF32, mem: &Mem<'_>) -> Option<()> {
        let position = index_at(mem, op.position, op.positions)?.ok()?;
        let (width, half) = (op.width as usize, op.width as usize / 2);
        let (all, table) = (size(&[op.rows, op.width])?, size(&[op.positions, op.width / 2])?);
        let input = mem.src::<f32>(op.input, all)?;
        let output = mem.dst::<f32>(op.output, all)?;
        let cosines = row(mem.src::<f32>(op.cosines, table)?, position, half)?;
        let sines = row(mem.src::<f32>(op.sines, table)?, position, half)?;
        let (step, apart) = if op.interleaved { (2, 1) } else { (1, half) };
        for r in 0..op.rows as usize {
            let x = row(input, r, width)?;
            let y = output.slice(r.wrapping_mul(width), width)?;
            let mut first = 0_usize;
            for (cosine, sine) in cosines.iter().zip(sines.iter()) {
                let second = first.wrapping_add(apart);
                let (a, b) = (x.get(first)?, x.get(second)?);
                y.set(first, a * cosine - b * sine)?;
                y.set(second, a * sine + b * cosine)?;
                first = first.wrapping_add(step);
            }
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for F32 {}
