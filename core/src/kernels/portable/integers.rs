//! Integer elements as i32, whatever their width.

use crate::arena::{Mem, Slot};
use crate::cells::{Dst, Element, Src};
use crate::tensor::DType;

/// An element that i32 holds.
pub(crate) trait Int: Element {
    fn widen(self) -> i32;
    /// The low bits: callers have clamped.
    fn narrow(value: i32) -> Self;
}

macro_rules! int {
    ($($t:ty)*) => {$(
        impl Int for $t {
            #[inline]
            fn widen(self) -> i32 {
                self as i32
            }
            #[inline]
            fn narrow(value: i32) -> Self {
                value as $t
            }
        }
    )*};
}
int!(i8 u8 i16 i32);

/// Elements to read, of a type known at run time.
pub(crate) enum IntSrc<'a> {
    I8(Src<'a, i8>),
    U8(Src<'a, u8>),
    I16(Src<'a, i16>),
    I32(Src<'a, i32>),
}

/// Elements to write, of a type known at run time.
pub(crate) enum IntDst<'a> {
    I8(Dst<'a, i8>),
    U8(Dst<'a, u8>),
    I16(Dst<'a, i16>),
    I32(Dst<'a, i32>),
}

impl<'a> IntSrc<'a> {
    pub(crate) fn new(mem: &Mem<'a>, slot: Slot, dtype: DType, count: u32) -> Option<Self> {
        Some(match dtype {
            DType::I8 => Self::I8(mem.src(slot, count)?),
            DType::U8 | DType::Bool => Self::U8(mem.src(slot, count)?),
            DType::I16 => Self::I16(mem.src(slot, count)?),
            DType::I32 => Self::I32(mem.src(slot, count)?),
            DType::F32 | DType::I64 => return None,
        })
    }

    pub(crate) fn get(&self, i: usize) -> Option<i32> {
        match self {
            Self::I8(x) => x.get(i).map(Int::widen),
            Self::U8(x) => x.get(i).map(Int::widen),
            Self::I16(x) => x.get(i).map(Int::widen),
            Self::I32(x) => x.get(i),
        }
    }
}

impl<'a> IntDst<'a> {
    pub(crate) fn new(mem: &Mem<'a>, slot: Slot, dtype: DType, count: u32) -> Option<Self> {
        Some(match dtype {
            DType::I8 => Self::I8(mem.dst(slot, count)?),
            DType::U8 | DType::Bool => Self::U8(mem.dst(slot, count)?),
            DType::I16 => Self::I16(mem.dst(slot, count)?),
            DType::I32 => Self::I32(mem.dst(slot, count)?),
            DType::F32 | DType::I64 => return None,
        })
    }

    pub(crate) fn set(&self, i: usize, value: i32) -> Option<()> {
        match self {
            Self::I8(y) => y.set(i, Int::narrow(value)),
            Self::U8(y) => y.set(i, Int::narrow(value)),
            Self::I16(y) => y.set(i, Int::narrow(value)),
            Self::I32(y) => y.set(i, value),
        }
    }
}
