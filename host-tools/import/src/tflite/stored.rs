//! Bytes of the file's constants.

use std::borrow::Cow;

use super::constant::unpacked;
use super::importer::Importer;
use crate::error::{Error, Result};

impl<'a> Importer<'_, 'a> {
    /// All elements of a constant of the file, `element` bytes each. One that is stored sparsely has been made dense for the operator that reads it.
    pub(super) fn stored(&self, index: usize, element: usize) -> Result<Option<Cow<'a, [u8]>>> {
        let bytes = self.stored_bytes(index, element)?;
        // A legacy uint8 number is 128 above the int8 one of the same value.
        Ok(match bytes {
            Some(bytes) if self.info(index).legacy => Some(bytes.iter().map(|byte| byte ^ 0x80).collect()),
            bytes => bytes,
        })
    }

    fn stored_bytes(&self, index: usize, element: usize) -> Result<Option<Cow<'a, [u8]>>> {
        if let Some(dense) = self.scope.dense.get(&index) {
            return Ok(Some(dense.clone()));
        }
        let info = self.info(index);
        let Some(data) = info.data else { return Ok(None) };
        let shape = self.shape(index)?;
        if info.sparsity.is_some() {
            return Err(
                Error::unsupported(format!("`{}` is stored sparsely, and no operator reads it", info.name))
                    .expected("sparse weights as operands alone"),
            );
        }
        let elements = shape.iter().product::<usize>();
        let bytes = if info.nibbles {
            elements.div_ceil(2)
        } else {
            elements * element
        };
        if data.len() != bytes {
            return Err(
                Error::input(format!("`{}` has {} bytes of data", info.name, data.len()))
                    .expected(format!("{bytes} for {} {shape:?}", info.type_name())),
            );
        }
        if info.nibbles {
            self.budget.take(&"INT4", &shape, 1)?;
            return Ok(Some(unpacked(data, elements).into()));
        }
        Ok(Some(Cow::Borrowed(data)))
    }
}
