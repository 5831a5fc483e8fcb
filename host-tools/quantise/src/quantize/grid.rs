//! The values of a picture's bytes.

use arenite::Port;

use crate::array::{Array, Values};
use crate::error::{Error, Result};

/// The real values of a picture's bytes: `scale * (byte - zero)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    /// From one byte to the next.
    pub scale: f32,
    /// The byte that is zero.
    pub zero: u8,
}

impl Grid {
    /// The values of the least and the greatest byte.
    pub(super) fn ends(self) -> [f64; 2] {
        let value = |byte: f64| f64::from(self.scale) * (byte - f64::from(self.zero));
        let [a, b] = [value(0.0), value(255.0)];
        [a.min(b), a.max(b)]
    }

    /// A sample of bytes as the network's input.
    pub(super) fn values(self, array: Array, port: &Port<'_>) -> Result<Array> {
        let Values::U8(bytes) = array.values else {
            return Err(
                Error::input(format!("the samples of `{}` are no unsigned bytes", port.name))
                    .expected("uint8, as --preprocess u8 says"),
            );
        };
        let values = bytes
            .into_iter()
            .map(|byte| self.scale * (f32::from(byte) - f32::from(self.zero)));
        Ok(Array {
            shape: array.shape,
            values: Values::F32(values.collect()),
        })
    }
}
