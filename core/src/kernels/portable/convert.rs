//! Tables, rescalings and changes of type, straight from the formula.

use super::integers::{Int, IntDst, IntSrc};
use crate::arena::Mem;
use crate::cells::{Dst, Src};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::Candidate;
use crate::kernels::api::kernel::Kernel;
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::Rolls;
use crate::kernels::primitives::quantize_f32::quantised;
use crate::kernels::primitives::requantize::bounded;
use crate::kernels::primitives::requantize::bounded::Either;
use crate::ops::convert::{Convert, Rescale, SigmoidS16, Table, TableS16};
use crate::ops::softmax::TABLE_LEN;
use crate::quant::{dequantize, leaky_relu, lookup_i16, quantize};
use crate::tensor::DType;

/// 256 bytes.
#[derive(Debug)]
pub struct TableKernel;

/// Integer to integer.
#[derive(Debug)]
pub struct RescaleKernel;

/// int16.
#[derive(Debug)]
pub struct SigmoidKernel;

/// int16, with lines between the values.
#[derive(Debug)]
pub struct TableS16Kernel;

/// f32 to integer and back, and casts.
#[derive(Debug)]
pub struct ConvertKernel;

impl Kernel for TableKernel {
    type Op = Table;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(_: &Table, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &Table, mem: &Mem<'_>) -> Option<()> {
        let table: &[u8; 256] = mem.weights::<u8>(op.table, 256)?.try_into().ok()?;
        let input = mem.src::<u8>(op.input, op.count)?;
        let output = mem.dst::<u8>(op.output, op.count)?;
        for (y, x) in output.cells().iter().zip(input.iter()) {
            y.set(*table.get(usize::from(x))?);
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for TableKernel {}

impl Kernel for RescaleKernel {
    type Op = Rescale;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(op: &Rescale, index: usize) -> Option<i64> {
        (index == 1).then(|| in_order(op.from, op.to, op.count))
    }

    fn run(op: &Rescale, mem: &Mem<'_>) -> Option<()> {
        // Without a look at the type for each element.
        match (op.from, op.to) {
            (DType::I8, DType::I8) => return rescaled::<i8, i8>(op, mem),
            (DType::U8, DType::I8) => return rescaled::<u8, i8>(op, mem),
            (DType::I8, DType::U8) => return rescaled::<i8, u8>(op, mem),
            (DType::I16, DType::I16) => return rescaled::<i16, i16>(op, mem),
            (DType::I16, DType::I8) => return rescaled::<i16, i8>(op, mem),
            (DType::I8, DType::I16) => return rescaled::<i8, i16>(op, mem),
            _ => {}
        }
        let input = IntSrc::new(mem, op.input, op.from, op.count)?;
        let output = IntDst::new(mem, op.output, op.to, op.count)?;
        for i in 0..op.count as usize {
            let mut x = input.get(i)?.wrapping_sub(op.zero_in);
            if op.absolute {
                x = x.wrapping_abs();
            }
            let [low, high] = op.clamp;
            output.set(
                i,
                leaky_relu(x, 0, op.positive, op.negative, op.zero_out, (low, high.max(low))),
            )?;
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for RescaleKernel {}

fn rescaled<X: Int, Y: Int>(op: &Rescale, mem: &Mem<'_>) -> Option<()> {
    let input = mem.src::<X>(op.input, op.count)?;
    let output = mem.dst::<Y>(op.output, op.count)?;
    let (zero, low, high) = (op.zero_in, op.clamp[0], op.clamp[1].max(op.clamp[0]));
    // Of 16 bits, and as much as the zero point.
    let magnitude = (1 << 16) + i64::from(zero).abs();
    let plain = !op.absolute && op.positive == op.negative;
    let shrink = bounded::Rescale::new(op.positive, magnitude, op.zero_out).filter(|_| plain);
    let enlarge = bounded::Enlarge::new(op.positive, magnitude, op.zero_out).filter(|_| plain);
    if let Some(shrink) = shrink {
        apply(input, output, [low, high], |x| shrink.apply(x.wrapping_sub(zero)));
    } else if let Some(enlarge) = enlarge {
        apply(input, output, [low, high], |x| {
            enlarge.of_twice(x.wrapping_sub(zero) << 1)
        });
    } else if let [Some(above), Some(below)] = [op.positive, op.negative].map(|m| Either::new(m, magnitude)) {
        let Rescale { absolute, zero_out, .. } = *op;
        apply(input, output, [low, high], |x| {
            let x = x.wrapping_sub(zero);
            // A branch each, in which the parameters are in registers.
            let scaled = if x >= 0 {
                above.apply(x)
            } else if absolute {
                above.apply(x.wrapping_neg())
            } else {
                below.apply(x)
            };
            scaled.wrapping_add(zero_out)
        });
    } else {
        apply(input, output, [low, high], |x| {
            let x = x.wrapping_sub(zero);
            let x = if op.absolute { x.wrapping_abs() } else { x };
            leaky_relu(x, 0, op.positive, op.negative, op.zero_out, (low, high))
        });
    }
    Some(())
}

/// Writes what `f` makes of each element, within limits.
#[inline(always)]
fn apply<X: Int, Y: Int>(input: Src<'_, X>, output: Dst<'_, Y>, [low, high]: [i32; 2], f: impl Fn(i32) -> i32) {
    for (y, x) in output.cells().iter().zip(input.iter()) {
        y.set(Y::narrow(f(x.widen()).max(low).min(high)));
    }
}

impl Kernel for SigmoidKernel {
    type Op = SigmoidS16;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(_: &SigmoidS16, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &SigmoidS16, mem: &Mem<'_>) -> Option<()> {
        let input = mem.src::<i16>(op.input, op.count)?;
        let output = mem.dst::<i16>(op.output, op.count)?;
        for (y, x) in output.cells().iter().zip(input.iter()) {
            y.set(if op.tanh {
                op.sigmoid.tanh(x)
            } else {
                op.sigmoid.logistic(x)
            });
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for SigmoidKernel {}

impl Kernel for TableS16Kernel {
    type Op = TableS16;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(_: &TableS16, index: usize) -> Option<i64> {
        (index == 1).then_some(0)
    }

    fn run(op: &TableS16, mem: &Mem<'_>) -> Option<()> {
        let table = mem.weights::<i16>(op.table, TABLE_LEN)?;
        let input = mem.src::<i16>(op.input, op.count)?;
        let output = mem.dst::<i16>(op.output, op.count)?;
        for (y, x) in output.cells().iter().zip(input.iter()) {
            y.set(lookup_i16(x, table));
        }
        Some(())
    }
}

#[cfg(any(test, packing))]
impl Candidate for TableS16Kernel {}

impl Kernel for ConvertKernel {
    type Op = Convert;

    #[cfg(feature = "rolling")]
    const ROLLS: Rolls = Rolls::Row;

    fn distance(op: &Convert, index: usize) -> Option<i64> {
        (index == 1).then(|| in_order(op.from, op.to, op.count))
    }

    fn run(op: &Convert, mem: &Mem<'_>) -> Option<()> {
        let count = op.count as usize;
        match (op.from, op.to) {
            (DType::F32, DType::F32) => None,
            (DType::F32, to) => {
                let input = mem.src::<f32>(op.input, op.count)?;
                let output = IntDst::new(mem, op.output, to, op.count)?;
                let (low, high) = range(to);
                if let (IntDst::I8(output), true) = (&output, op.scale > 0.0) {
                    // The conversions that networks begin with: the type is looked at once and not for each element.
                    quantised(input, *output, op.scale, op.zero_point);
                    return Some(());
                }
                for (i, x) in input.iter().enumerate() {
                    output.set(
                        i,
                        if op.scale > 0.0 {
                            quantize(x, op.scale, op.zero_point, low, high)
                        } else {
                            x as i32
                        },
                    )?;
                }
                Some(())
            }
            // The conversions that networks end with, likewise.
            (DType::I8, DType::F32) if op.scale > 0.0 => dequantised::<i8>(op, mem),
            (DType::I16, DType::F32) if op.scale > 0.0 => dequantised::<i16>(op, mem),
            (from, DType::F32) => {
                let input = IntSrc::new(mem, op.input, from, op.count)?;
                let output = mem.dst::<f32>(op.output, op.count)?;
                for i in 0..count {
                    let q = input.get(i)?;
                    output.set(
                        i,
                        if op.scale > 0.0 {
                            dequantize(q, op.scale, op.zero_point)
                        } else {
                            q as f32
                        },
                    )?;
                }
                Some(())
            }
            (from, to) => {
                let input = IntSrc::new(mem, op.input, from, op.count)?;
                let output = IntDst::new(mem, op.output, to, op.count)?;
                (0..count).try_for_each(|i| output.set(i, input.get(i)?))
            }
        }
    }
}

#[cfg(any(test, packing))]
impl Candidate for ConvertKernel {}

fn dequantised<X: Int>(op: &Convert, mem: &Mem<'_>) -> Option<()> {
    let input = mem.src::<X>(op.input, op.count)?;
    let output = mem.dst::<f32>(op.output, op.count)?;
    let Convert { scale, zero_point, .. } = *op;
    for (y, x) in output.cells().iter().zip(input.iter()) {
        y.set(dequantize(x.widen(), scale, zero_point));
    }
    Some(())
}

/// [`Kernel::distance`] of elements taken in order: a wider result runs ahead of its operand.
fn in_order(from: DType, to: DType, count: u32) -> i64 {
    let (from, to) = (from.bytes() as i64, to.bytes() as i64);
    let last = i64::from(count.saturating_sub(1));
    ((to - from) * last).max(0) + (to - from).max(0)
}

fn range(dtype: DType) -> (i32, i32) {
    match dtype {
        DType::I8 => (-128, 127),
        DType::U8 | DType::Bool => (0, 255),
        DType::I16 => (-32768, 32767),
        DType::F32 | DType::I32 | DType::I64 => (i32::MIN, i32::MAX),
    }
}
