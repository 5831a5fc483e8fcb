//! The oracle: every operator in plain loops, straight from its formula in [`crate::ops`] and the arithmetic of [`crate::quant`].
//!
//! The files are named as those of the portable kernels. They import no kernel and no primitive, have no code for an instruction set and no `unsafe`, and
//! take constants in their plain form. An element is found by its indices, one for each axis, and never by a walk. Only the test kit and tests have them:
//! what is fast is compared with what is plainly right.
#![deny(unsafe_code)]

pub(crate) mod activation_grad;
pub(crate) mod add_s8_linear;
pub(crate) mod arg_max;
pub(crate) mod attention;
pub(crate) mod batch_norm;
pub(crate) mod compare;
pub(crate) mod conv2d;
pub(crate) mod conv2d_train;
pub(crate) mod convert;
pub(crate) mod detections;
pub(crate) mod elementwise;
pub(crate) mod elementwise_s8_s16;
pub(crate) mod embedding;
pub(crate) mod fft;
pub(crate) mod frames;
pub(crate) mod gather;
pub(crate) mod global_pool;
pub(crate) mod l2_norm;
pub(crate) mod linear_f32;
pub(crate) mod linear_train;
pub(crate) mod locally_connected;
pub(crate) mod locally_connected_train;
pub(crate) mod loss;
pub(crate) mod low_bit;
pub(crate) mod lrn;
pub(crate) mod lrn_grad;
pub(crate) mod lstm;
pub(crate) mod matmul;
pub(crate) mod pool2d;
pub(crate) mod pool2d_train;
pub(crate) mod position;
pub(crate) mod reduce;
pub(crate) mod resize;
pub(crate) mod rms_norm;
pub(crate) mod rotary;
pub(crate) mod select;
pub(crate) mod signal;
pub(crate) mod softmax;
pub(crate) mod special_s8_s16;
pub(crate) mod strided_copy;
pub(crate) mod svdf;
pub(crate) mod write_line;

use crate::arena::{Mem, Slot};
use crate::cells::{Dst, Element, Src};
use crate::ops::elementwise::Loop;
use crate::tensor::DType;

/// Index of an element of a contiguous tensor, the last axis innermost.
fn at<const N: usize>(shape: [usize; N], index: [usize; N]) -> usize {
    shape
        .iter()
        .zip(index)
        .fold(0, |at, (extent, index)| at * extent + index)
}

/// Indices of element `at` of a contiguous tensor: [`at`] the other way round.
fn indices<const N: usize>(shape: [usize; N], at: usize) -> [usize; N] {
    let (mut rest, mut index) = (at, [0; N]);
    for (index, extent) in index.iter_mut().zip(shape).rev() {
        *index = rest.checked_rem(extent).unwrap_or(0);
        rest = rest.checked_div(extent).unwrap_or(0);
    }
    index
}

/// Elements of a contiguous tensor.
fn len(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Positions of the elements of both operands that make element `number` of a broadcast result.
fn meeting(loops: &[Loop], number: usize) -> Option<[usize; 2]> {
    let (mut rest, mut a, mut b) = (number, 0, 0);
    for axis in loops.iter().rev() {
        let count = axis.count as usize;
        let index = rest.checked_rem(count)?;
        rest = rest.checked_div(count)?;
        a += index * axis.a as usize;
        b += index * axis.b as usize;
    }
    Some([a, b])
}

/// An operand that is read, all of it.
fn read<'a, T: Element>(mem: &Mem<'a>, slot: Slot, count: usize) -> Option<Src<'a, T>> {
    mem.src(slot, u32::try_from(count).ok()?)
}

/// An operand that is written, all of it.
fn written<'a, T: Element>(mem: &Mem<'a>, slot: Slot, count: usize) -> Option<Dst<'a, T>> {
    mem.dst(slot, u32::try_from(count).ok()?)
}

/// A constant, all of it.
fn constant<'a, T: Element>(mem: &Mem<'a>, offset: u32, count: usize) -> Option<&'a [T]> {
    mem.weights(offset, u32::try_from(count).ok()?)
}

/// Integers to read, of a type that the operator states.
enum IntsRead<'a> {
    I8(Src<'a, i8>),
    U8(Src<'a, u8>),
    I16(Src<'a, i16>),
    I32(Src<'a, i32>),
}

impl<'a> IntsRead<'a> {
    fn new(mem: &Mem<'a>, slot: Slot, dtype: DType, count: usize) -> Option<Self> {
        Some(match dtype {
            DType::I8 => Self::I8(read(mem, slot, count)?),
            DType::U8 | DType::Bool => Self::U8(read(mem, slot, count)?),
            DType::I16 => Self::I16(read(mem, slot, count)?),
            DType::I32 => Self::I32(read(mem, slot, count)?),
            DType::F32 | DType::I64 => return None,
        })
    }

    fn get(&self, i: usize) -> Option<i32> {
        match self {
            Self::I8(x) => x.get(i).map(i32::from),
            Self::U8(x) => x.get(i).map(i32::from),
            Self::I16(x) => x.get(i).map(i32::from),
            Self::I32(x) => x.get(i),
        }
    }
}

/// Integers to write, likewise.
enum IntsWritten<'a> {
    I8(Dst<'a, i8>),
    U8(Dst<'a, u8>),
    I16(Dst<'a, i16>),
    I32(Dst<'a, i32>),
}

impl<'a> IntsWritten<'a> {
    fn new(mem: &Mem<'a>, slot: Slot, dtype: DType, count: usize) -> Option<Self> {
        Some(match dtype {
            DType::I8 => Self::I8(written(mem, slot, count)?),
            DType::U8 | DType::Bool => Self::U8(written(mem, slot, count)?),
            DType::I16 => Self::I16(written(mem, slot, count)?),
            DType::I32 => Self::I32(written(mem, slot, count)?),
            DType::F32 | DType::I64 => return None,
        })
    }

    /// Writes the low bits of `value`.
    fn set(&self, i: usize, value: i32) -> Option<()> {
        match self {
            Self::I8(y) => y.set(i, value as i8),
            Self::U8(y) => y.set(i, value as u8),
            Self::I16(y) => y.set(i, value as i16),
            Self::I32(y) => y.set(i, value),
        }
    }
}

/// The least and the largest number of a type.
fn range(dtype: DType) -> [i32; 2] {
    match dtype {
        DType::I8 => [i8::MIN.into(), i8::MAX.into()],
        DType::U8 | DType::Bool => [u8::MIN.into(), u8::MAX.into()],
        DType::I16 => [i16::MIN.into(), i16::MAX.into()],
        DType::I32 | DType::F32 | DType::I64 => [i32::MIN, i32::MAX],
    }
}

/// `value` within limits that are in order.
fn within(value: i32, [low, high]: [i32; 2]) -> i32 {
    value.max(low).min(high)
}
