//! A step's tensor as the trace has it.

use arenite::DType;
use ndarray::{ArrayD, ArrayViewD, IxDyn};

use crate::compare;
use crate::error::{Error, Result};
use crate::metadata::{Metadata, TensorMeta};

/// A tensor as the trace has it.
#[derive(Clone)]
pub(super) struct Traced {
    pub(super) values: ArrayD<f64>,
    /// Of each element in that order, whether the model computes it.
    pub(super) known: ArrayD<bool>,
    /// Channels that it does not.
    pub(super) unread: usize,
}

impl Traced {
    /// Removed channels put back, and axes in the traced order.
    pub(super) fn of(metadata: &Metadata, step: usize, tensor: &TensorMeta, bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::input(format!("the metadata of `{}` contradicts itself", tensor.names[0]));
        let restored = metadata.traced(step, bytes).ok_or_else(wrong)?;
        let mut shape: Vec<usize> = tensor.shape.iter().map(|&n| n as usize).collect();
        if let (Some(channels), Some(last)) = (metadata.channels(step), shape.last_mut()) {
            *last = channels.traced();
        }
        let values = compare::to_f64(tensor.dtype, &restored.bytes);
        let known = (0..values.len()).map(|index| restored.is_known(index)).collect();
        let values = ArrayD::from_shape_vec(IxDyn(&shape), values).map_err(|_| wrong())?;
        let known = ArrayD::from_shape_vec(IxDyn(&shape), known).map_err(|_| wrong())?;
        let unread = restored.known.iter().filter(|known| !**known).count();
        if tensor.traced_perm.is_empty() {
            return Ok(Self { values, known, unread });
        }
        let axes: Vec<usize> = tensor.traced_perm.iter().map(|&axis| usize::from(axis)).collect();
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..shape.len()) {
            return Err(wrong());
        }
        Ok(Self {
            values: values.permuted_axes(IxDyn(&axes)),
            known: known.permuted_axes(IxDyn(&axes)),
            unread,
        })
    }

    /// The values, and which are known, in the order of the axes that the tensor has in memory, with the channels of the trace.
    pub(super) fn as_in_memory(&self, tensor: &TensorMeta) -> Option<(ArrayViewD<'_, f64>, ArrayViewD<'_, bool>)> {
        let (values, known) = (self.values.view(), self.known.view());
        if tensor.traced_perm.is_empty() {
            return Some((values, known));
        }
        let back = |axis: usize| tensor.traced_perm.iter().position(|&from| usize::from(from) == axis);
        let axes: Vec<usize> = (0..values.ndim()).map(back).collect::<Option<_>>()?;
        Some((values.permuted_axes(IxDyn(&axes)), known.permuted_axes(IxDyn(&axes))))
    }
}

/// Whether a tensor stores real numbers with a scale.
pub(super) fn is_quantised(tensor: &TensorMeta) -> bool {
    matches!(tensor.dtype, DType::I8 | DType::I16) && tensor.scale > 0.0
}

/// The least and the greatest number that an integer tensor stores.
pub(super) fn ends(dtype: DType) -> Option<[i32; 2]> {
    match dtype {
        DType::I8 => Some([-128, 127]),
        DType::I16 => Some([-32768, 32767]),
        _ => None,
    }
}

/// The real number that a stored one stands for.
pub(super) fn real(tensor: &TensorMeta, stored: f64) -> f64 {
    if is_quantised(tensor) {
        (stored - f64::from(tensor.zero_point)) * f64::from(tensor.scale)
    } else {
        stored
    }
}

/// The axis of the traced tensor that is innermost in memory: its channels; none of a scalar.
pub(super) fn channel_axis(tensor: &TensorMeta, rank: usize) -> Option<usize> {
    let last = rank.checked_sub(1)?;
    if tensor.traced_perm.is_empty() {
        return Some(last);
    }
    tensor.traced_perm.iter().position(|&axis| usize::from(axis) == last)
}

/// The index along each axis.
pub(super) fn unravel(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&n| {
            let i = at % n.max(1);
            at /= n.max(1);
            i
        })
        .collect();
    index.reverse();
    index
}
