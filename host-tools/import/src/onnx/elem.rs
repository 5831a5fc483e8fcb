//! Element types of ONNX (`TensorProto.DataType`).

use crate::error::{Error, Result};
use crate::graph::DType;

/// An element type, by its number in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elem(pub(super) i64);

const NAMES: &[&str] = &[
    "undefined",
    "float",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "float16",
    "double",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "bfloat16",
    "float8e4m3fn",
    "float8e4m3fnuz",
    "float8e5m2",
    "float8e5m2fnuz",
    "uint4",
    "int4",
    "float4e2m1",
    "float8e8m0",
    "uint2",
    "int2",
];

impl Elem {
    pub(crate) const UNDEFINED: Self = Self(0);
    pub(crate) const FLOAT: Self = Self(1);
    pub(crate) const UINT8: Self = Self(2);
    pub(crate) const INT8: Self = Self(3);
    pub(crate) const UINT16: Self = Self(4);
    pub(crate) const INT16: Self = Self(5);
    pub(crate) const INT32: Self = Self(6);
    pub(crate) const INT64: Self = Self(7);
    pub(crate) const BOOL: Self = Self(9);
    pub(crate) const FLOAT16: Self = Self(10);
    pub(crate) const DOUBLE: Self = Self(11);
    pub(crate) const UINT32: Self = Self(12);
    pub(crate) const UINT64: Self = Self(13);
    pub(crate) const COMPLEX: Self = Self(14);
    pub(crate) const BFLOAT16: Self = Self(16);
    pub(crate) const UINT4: Self = Self(21);
    pub(crate) const INT4: Self = Self(22);

    /// Its number in the format.
    pub(crate) fn number(self) -> i64 {
        self.0
    }

    pub(crate) fn name(self) -> String {
        match usize::try_from(self.0).ok().and_then(|i| NAMES.get(i)) {
            Some(name) => (*name).to_string(),
            None => format!("number {}", self.0),
        }
    }

    /// Whether two elements share a byte.
    pub(super) fn is_nibble(self) -> bool {
        matches!(self, Self::UINT4 | Self::INT4)
    }

    /// Bytes of so many elements in `raw_data`; `None` for types whose constants are not read.
    pub(super) fn bytes_of(self, count: usize) -> Option<usize> {
        if self.is_nibble() {
            return Some(count.div_ceil(2));
        }
        count.checked_mul(self.bytes()?)
    }

    /// Bytes of an element in `raw_data`; `None` for types whose constants are not read, or share bytes.
    pub(crate) fn bytes(self) -> Option<usize> {
        match self {
            Self::UINT8 | Self::INT8 | Self::BOOL => Some(1),
            Self::UINT16 | Self::INT16 | Self::FLOAT16 | Self::BFLOAT16 => Some(2),
            Self::FLOAT | Self::INT32 | Self::UINT32 => Some(4),
            Self::INT64 | Self::UINT64 | Self::DOUBLE => Some(8),
            _ => None,
        }
    }

    /// Whether constants of it are read as f32.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::FLOAT | Self::FLOAT16 | Self::DOUBLE | Self::BFLOAT16)
    }

    /// The type of a tensor that is computed.
    pub(super) fn dtype(self) -> Result<DType> {
        Ok(match self {
            Self::FLOAT => DType::F32,
            Self::INT8 => DType::I8,
            Self::UINT8 => DType::U8,
            Self::INT16 => DType::I16,
            Self::INT32 => DType::I32,
            Self::INT64 => DType::I64,
            Self::BOOL => DType::Bool,
            _ => return Err(unsupported(self, "a tensor that is computed")),
        })
    }

    /// The type whose runtime form is `dtype`.
    pub(super) fn of(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::FLOAT,
            DType::I8 => Self::INT8,
            DType::U8 => Self::UINT8,
            DType::I16 => Self::INT16,
            DType::I32 => Self::INT32,
            DType::I64 => Self::INT64,
            DType::Bool => Self::BOOL,
        }
    }

    /// `value` as this integer type stores it.
    pub(super) fn wrap(self, value: i64) -> i64 {
        match self {
            Self::INT8 => i64::from(value as i8),
            Self::UINT8 => i64::from(value as u8),
            Self::INT16 => i64::from(value as i16),
            Self::UINT16 => i64::from(value as u16),
            Self::INT32 => i64::from(value as i32),
            Self::UINT32 => i64::from(value as u32),
            Self::BOOL => i64::from(value != 0),
            Self::UINT4 => value & 0xF,
            Self::INT4 => ((value & 0xF) ^ 8) - 8,
            _ => value,
        }
    }
}

/// The refusal of a type.
pub(crate) fn unsupported(elem: Elem, what: &str) -> Error {
    let help = match elem {
        Elem::FLOAT16 | Elem::BFLOAT16 | Elem::DOUBLE => "convert the model to float32 (weights alone may be float16)",
        Elem::INT64 | Elem::UINT64 | Elem::UINT32 | Elem::UINT16 => "use float32, int8, uint8, int16 or int32",
        _ => "use float32, int8 or uint8",
    };
    Error::unsupported(format!("element type {} of {what}", elem.name())).help(help)
}
