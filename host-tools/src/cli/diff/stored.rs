//! Real numbers in the trace's layout as a tensor's bytes.

use arenite::quant::quantize;
use arenite::{DType, Port};

use super::traced::{Traced, ends, is_quantised};
use crate::Result;
use crate::array::Array;
use crate::metadata::{Channel, Metadata, TensorMeta};

/// The bytes of a tensor that holds these numbers; what they do not know stays as it is in `memory`. `None` for what is no real number.
pub(super) fn bytes(
    metadata: &Metadata,
    step: usize,
    tensor: &TensorMeta,
    memory: &[u8],
    real: &Traced,
) -> Option<Vec<u8>> {
    let ends = match tensor.dtype {
        DType::F32 => None,
        _ if is_quantised(tensor) => ends(tensor.dtype),
        _ => return None,
    };
    let (size, channels) = (tensor.dtype.bytes(), metadata.channels(step));
    let mut bytes = memory.to_vec();
    let mut places = bytes.chunks_exact_mut(size);
    let (values, known) = real.as_in_memory(tensor)?;
    let innermost = values.shape().last().copied().unwrap_or(1);
    let kinds = channels.map(|channels| channels.each().collect::<Vec<_>>());
    for (at, (&value, &known)) in values.iter().zip(&known).enumerate() {
        let kind = kinds.as_ref().map(|kinds| kinds.get(at % innermost.max(1)).copied());
        let here = match kind {
            None => true,
            Some(kind) => {
                let kind = kind?;
                if !kind.in_memory() {
                    continue;
                }
                kind == Channel::Kept
            }
        };
        let place = places.next()?;
        if known && here {
            let number = match ends {
                None => (value as f32).to_le_bytes(),
                Some([low, high]) => quantize(value as f32, tensor.scale, tensor.zero_point, low, high).to_le_bytes(),
            };
            place.copy_from_slice(number.get(..size)?);
        }
    }
    Some(bytes)
}

/// A model's inputs as another model of the same network takes them.
pub(super) fn inputs(run: &[Vec<u8>], from: &[Port<'_>], to: &[Port<'_>]) -> Result<Vec<Vec<u8>>> {
    let each = run.iter().zip(from).zip(to).map(|((bytes, from), to)| {
        let shape: Vec<usize> = from.shape.iter().map(|&n| n as usize).collect();
        let (runs, _) = Array::of_bytes(&shape, from.dtype, bytes).runs(to)?;
        Ok(runs.runs.into_iter().next().unwrap_or_default())
    });
    each.collect()
}

/// The float model's inputs after the int8 model has stored them: what its first layers read.
pub(super) fn inputs_as_read(stored: &[Vec<u8>], run: &[Vec<u8>], ports: &[Port<'_>]) -> Vec<Vec<u8>> {
    let each = stored.iter().zip(run).zip(ports).map(|((stored, run), port)| {
        let numbers: Vec<i32> = match port.dtype {
            DType::I8 => stored.iter().map(|&byte| i32::from(byte as i8)).collect(),
            DType::U8 => stored.iter().map(|&byte| i32::from(byte)).collect(),
            DType::I16 => {
                let words = stored.as_chunks().0.iter();
                words.map(|&word| i32::from(i16::from_le_bytes(word))).collect()
            }
            _ => Vec::new(),
        };
        if port.scale <= 0.0 || numbers.len() * size_of::<f32>() != run.len() {
            return run.clone();
        }
        let real = |number: i32| (f64::from(number - port.zero_point) * f64::from(port.scale)) as f32;
        numbers
            .into_iter()
            .flat_map(|number| real(number).to_le_bytes())
            .collect()
    });
    each.collect()
}
