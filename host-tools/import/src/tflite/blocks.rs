//! Weights of four bits: two in a byte, with a scale for each channel as those of int8 have them, or for each block of a row.

use super::constant::Constant;
use super::importer::Importer;
use super::schema::Blocks;
use super::widen::FLOAT16;
use crate::error::{Error, Result};
use crate::graph::{DType, LowBits};
use crate::half;

impl Importer<'_, '_> {
    /// Real numbers of the constant `w`, where it has a scale for each block: the name of `to` then stores its bits.
    pub(super) fn values_of_blocks(
        &mut self,
        [w, to]: [usize; 2],
        constant: &Constant<'_>,
    ) -> Result<Option<Vec<f32>>> {
        let info = self.info(w);
        let Some(blocks) = info.blocks else { return Ok(None) };
        let at = |e: Error| e.at(format_args!("tensor {w} `{}`", info.name));
        let &[rows, columns] = constant.shape.as_slice() else {
            let shape = &constant.shape;
            return Err(at(
                Error::unsupported(format!("scales of blocks for shape {shape:?}")).expected("two axes")
            ));
        };
        let size = usize::try_from(blocks.size)
            .ok()
            .filter(|&size| size > 0 && columns.is_multiple_of(size));
        let size = size.ok_or_else(|| {
            at(Error::input(format!("blocks of {} in rows of {columns}", blocks.size)).expected("whole blocks"))
        })?;
        let scales = self.scales_of_blocks(blocks, [rows, columns / size]).map_err(at)?;
        let group = Some(size);
        self.out
            .low_bits
            .insert(self.info(to).name.clone(), LowBits { bits: 4, group });
        let numbers = constant.bytes.iter().enumerate();
        Ok(Some(
            numbers
                .map(|(at, &number)| f32::from(number as i8) * scales[at / size])
                .collect(),
        ))
    }

    fn scales_of_blocks(&mut self, blocks: Blocks, shape: [usize; 2]) -> Result<Vec<f32>> {
        let count = self.scope.graph.tensors.len();
        let tensor = |index: i32, what: &str| {
            let index = usize::try_from(index).ok().filter(|&index| index < count);
            index.ok_or_else(|| Error::input(format!("the {what} of its blocks are no tensor")))
        };
        if blocks.zero_points > 0 {
            let zeros = tensor(blocks.zero_points, "zero points")?;
            let of = self.constant(zeros)?.and_then(|constant| constant.integers());
            if of.is_none_or(|zeros| zeros.iter().any(|&zero| zero != 0)) {
                return Err(Error::unsupported("blocks with zero points").expected("zero points of 0"));
            }
        }
        let index = tensor(blocks.scales, "scales")?;
        let stated = self.shape(index)?;
        if stated != shape {
            return Err(Error::input(format!("scales of shape {stated:?}")).expected(format!("{shape:?}")));
        }
        let missing = || Error::input("the scales of its blocks are no constant");
        let scales: Vec<f32> = if self.info(index).kind == FLOAT16 {
            let halves = self.stored(index, 2)?.ok_or_else(missing)?;
            let halves = halves.as_chunks::<2>().0.iter();
            halves.map(|half| half::to_f32(u16::from_le_bytes(*half))).collect()
        } else {
            self.expect_type(index, DType::F32)?;
            let words = self.stored(index, 4)?.ok_or_else(missing)?;
            words
                .as_chunks::<4>()
                .0
                .iter()
                .map(|word| f32::from_le_bytes(*word))
                .collect()
        };
        match scales.iter().find(|scale| !(scale.is_finite() && **scale >= 0.0)) {
            Some(scale) => {
                Err(Error::input(format!("scale {scale}")).expected("a finite scale that is not below zero"))
            }
            None => Ok(scales),
        }
    }
}

/// Of a layer that computes with integers.
pub(super) fn under_integers() -> Error {
    Error::unsupported("weights with a scale for each block").expected("fully connected layers of float32 activations")
}
