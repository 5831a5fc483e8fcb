//! Element types.

use serde::{Deserialize, Serialize};

/// Element type of a tensor. The discriminant is its number in the blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum DType {
    /// IEEE 754 single precision.
    F32 = 0,
    /// Signed 8-bit, usually quantised.
    I8 = 1,
    /// Unsigned 8-bit, usually quantised.
    U8 = 2,
    /// Signed 16-bit, usually quantised.
    I16 = 3,
    /// Signed 32-bit.
    I32 = 4,
    /// Signed 64-bit.
    I64 = 5,
    /// One byte, 0 or 1.
    Bool = 6,
}

impl DType {
    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            DType::I8 | DType::U8 | DType::Bool => 1,
            DType::I16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::I64 => 8,
        }
    }

    /// The name used in summaries and messages.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::I8 => "int8",
            DType::U8 => "uint8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::Bool => "bool",
        }
    }
}
