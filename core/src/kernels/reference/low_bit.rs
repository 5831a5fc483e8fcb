//! Convolutions whose weights are stored in few bits: [`crate::ops::low_bit`].

use super::conv2d::{filter, input_shape, output_shape, products};
use super::{at, constant, indices, len, read, within, written};
use crate::arena::Mem;
use crate::ops::low_bit::{Conv2dS8W4, WeightOnlyF32};
use crate::ops::pointwise::clamp;
use crate::quant::Multiplier;

/// Weight `index` of output `o`, of a filter of so many weights, as an f32: of 16 bits a half, of fewer a whole number.
fn value(bytes: &[u8], bits: u32, filter: usize, o: usize, index: usize) -> Option<f32> {
    if bits != 16 {
        return weight(bytes, bits, filter, o, index).map(f32::from);
    }
    let at = 2 * (o * filter + index);
    let half = u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
    let (exponent, mantissa) = (half >> 10 & 31, half & 1023);
    let power = |exponent: i32| f32::from_bits(((exponent + 127) as u32) << 23);
    let magnitude = match exponent {
        0 => f32::from(mantissa) * power(-24),
        _ => f32::from(1024 + mantissa) * power(i32::from(exponent) - 25),
    };
    Some(if half >> 15 == 1 { -magnitude } else { magnitude })
}

/// The same of fewer bits: a byte each, or of 4 bits two in a byte, the first in the low half.
fn weight(bytes: &[u8], bits: u32, filter: usize, o: usize, index: usize) -> Option<i8> {
    if bits == 8 {
        return bytes.get(o * filter + index).map(|&byte| byte as i8);
    }
    let byte = *bytes.get(o * filter.div_ceil(2) + index / 2)?;
    let half = if index.is_multiple_of(2) { byte & 15 } else { byte >> 4 };
    // Two's complement of four bits.
    Some(if half < 8 { half as i8 } else { half as i8 - 16 })
}

/// Bytes of all weights.
fn bytes(bits: u32, filter: usize, outputs: usize) -> usize {
    let of_one = match bits {
        16 => 2 * filter,
        8 => filter,
        _ => filter.div_ceil(2),
    };
    outputs * of_one
}

pub(crate) fn f32<const BITS: u32>(op: &WeightOnlyF32, mem: &Mem<'_>) -> Option<()> {
    let (window, filter, share) = (&op.window, filter(&op.window, op.groups)?, op.share as usize);
    let (from, to) = (input_shape(window), output_shape(window));
    let scales_of_output = filter.div_ceil(share);
    let input = read::<f32>(mem, op.input, len(&from))?;
    let output = written::<f32>(mem, op.output, len(&to))?;
    let weights = constant::<u8>(mem, op.weights, bytes(BITS, filter, to[3]))?;
    let scales = constant::<f32>(mem, op.scales, to[3] * scales_of_output)?;
    for i in 0..len(&to) {
        let index = indices(to, i);
        let [.., o] = index;
        let mut sum = match op.bias {
            Some(bias) => *constant::<f32>(mem, bias, to[3])?.get(o)?,
            None => 0.0,
        };
        products(window, op.groups, index, |x, w| {
            let scale = scales.get(at([to[3], scales_of_output], [o, w / share]))?;
            sum += input.get(x)? * (scale * value(weights, BITS, filter, o, w)?);
            Some(())
        })?;
        if let Some(residual) = op.residual {
            sum += read::<f32>(mem, residual, len(&to))?.get(i)?;
        }
        output.set(i, clamp(sum, op.clamp))?;
    }
    Some(())
}

pub(crate) fn s8_w4(op: &Conv2dS8W4, mem: &Mem<'_>) -> Option<()> {
    let (window, filter, share) = (&op.window, filter(&op.window, op.groups)?, op.share as usize);
    let (from, to) = (input_shape(window), output_shape(window));
    let factors_of_output = filter.div_ceil(share);
    let input = read::<i8>(mem, op.input, len(&from))?;
    let output = written::<i8>(mem, op.output, len(&to))?;
    let weights = constant::<u8>(mem, op.weights, bytes(4, filter, to[3]))?;
    let factors = constant::<u8>(mem, op.factors, to[3] * factors_of_output)?;
    let records = constant::<i32>(mem, op.channels, to[3] * 3)?;
    let zero_point = i32::from(op.input_zero_point);
    for i in 0..len(&to) {
        let index = indices(to, i);
        let [.., o] = index;
        let record = |field: usize| records.get(at([to[3], 3], [o, field])).copied();
        let mut sum = record(0)?;
        products(window, op.groups, index, |x, w| {
            let factor = i32::from(*factors.get(at([to[3], factors_of_output], [o, w / share]))?);
            let weight = i32::from(weight(weights, 4, filter, o, w)?) * factor;
            sum = sum.wrapping_add((i32::from(input.get(x)?) - zero_point) * weight);
            Some(())
        })?;
        let multiplier = Multiplier {
            mantissa: record(1)?,
            shift: record(2)? as i8,
        };
        let stored = multiplier.apply(sum).wrapping_add(op.output_zero_point.into());
        output.set(i, within(stored, op.clamp.map(i32::from)) as i8)?;
    }
    Some(())
}
