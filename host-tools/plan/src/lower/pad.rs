//! Paddings that stay operators of their own.

use arenite::DType;

use super::context::{Lower, fit, input, output};
use super::copies::{copy, is_one_run, strides};
use crate::error::{Error, Result};
use crate::graph::{Data, Node, Tensor, TensorKind};

/// A padding that nothing could fold: the value everywhere, then the operand in its place.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, pads: &[(usize, usize)], value: f32) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (source, result) = (lower.graph().tensor(x).clone(), lower.graph().tensor(y).clone());
    let bytes: Vec<u8> = match source.dtype {
        DType::F32 => value.to_le_bytes().to_vec(),
        DType::I8 => (value as i8).to_le_bytes().to_vec(),
        DType::U8 => (value as u8).to_le_bytes().to_vec(),
        DType::I16 => (value as i16).to_le_bytes().to_vec(),
        DType::I32 => (value as i32).to_le_bytes().to_vec(),
        dtype => return Err(Error::unsupported(format!("padding of {}", dtype.name()))),
    };
    let constant = lower.program.graph.add_tensor(Tensor {
        kind: TensorKind::Const(Data::Bytes(bytes.into())),
        ..Tensor::activation(format!("{}:value", node.name), &[1], source.dtype)
    });
    let (from, to) = (strides(&source), strides(&result));
    let start: usize = pads.iter().zip(&to).map(|((before, _), stride)| before * stride).sum();
    let axes: Vec<_> = (0..source.shape.len())
        .map(|i| (source.shape[i], to[i], from[i] as isize))
        .collect();
    let bytes = fit(start * source.dtype.bytes(), "the offset")?;
    if is_one_run(&axes) && lower.place_inside(x, y, bytes) {
        let end = start + source.elements();
        for (from, to) in [(0, start), (end, result.elements())] {
            if from < to {
                copy(lower, node, "pad", (constant, 0), (y, from), &[(to - from, 1, 0)])?;
            }
        }
        return Ok(());
    }
    copy(lower, node, "pad", (constant, 0), (y, 0), &[(result.elements(), 1, 0)])?;
    copy(lower, node, "pad", (x, 0), (y, start), &axes)
}
