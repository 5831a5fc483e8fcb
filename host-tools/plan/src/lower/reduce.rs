//! Reductions.

use arenite::ops::reduce::{ReduceF32, ReduceInt, Reduction};
use arenite::quant::Multiplier;
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output, want_f32};
use super::numbers::{Affine, factor, per_tensor};
use crate::error::{Error, Result};
use crate::graph::{Node, ReduceKind};
use crate::program::Place;

/// Lowers a reduction whose axes form at most two groups of neighbours.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, kind: ReduceKind, axes: &[usize]) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let shape = group(&lower.graph().tensor(x).shape, axes)?;
    let mut fields = [1u32; 5];
    for (field, extent) in fields.iter_mut().zip(shape) {
        *field = fit(extent, "an extent")?;
    }
    let (kind, name) = match kind {
        ReduceKind::Mean => (Reduction::Mean, "mean"),
        ReduceKind::Sum => (Reduction::Sum, "sum"),
        ReduceKind::Max => (Reduction::Max, "reduce_max"),
        ReduceKind::Min => (Reduction::Min, "reduce_min"),
    };
    if lower.graph().tensor(x).dtype != DType::F32 {
        return lower_int(lower, node, kind, name, fields);
    }
    want_f32(lower.graph(), node)?;
    let op = ReduceF32 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        shape: fields,
        kind,
    };
    lower.push(node, name, Step::ReduceF32(op), 0);
    Ok(())
}

fn lower_int(lower: &mut Lower<'_>, node: &Node, kind: Reduction, name: &'static str, shape: [u32; 5]) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    let dtype = tx.dtype;
    if !matches!(dtype, DType::I8 | DType::I16) || ty.dtype != dtype {
        return Err(Error::unsupported(format!("{name} of {}", dtype.name())).expected("f32, int8 or int16"));
    }
    let (qx, qy) = (per_tensor(tx)?, per_tensor(ty)?);
    let count = i64::from(shape[1]) * i64::from(shape[3]);
    let multiplier = multiplier(kind == Reduction::Mean, count, qx, qy)?;
    let op = ReduceInt {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        dtype,
        shape,
        kind,
        zero_in: qx.1,
        multiplier,
        zero_out: qy.1,
    };
    lower.push(node, name, Step::ReduceInt(op), 0);
    Ok(())
}

/// Returns the multiplier of a sum of `count` elements, or of their mean.
pub(crate) fn multiplier(mean: bool, count: i64, qx: Affine, qy: Affine) -> Result<Multiplier> {
    let scaled = factor(f64::from(qx.0) / f64::from(qy.0))?;
    if !mean {
        return Ok(scaled);
    }
    // The division by the number of elements becomes part of the mantissa, shifted up first by the bits that it loses.
    let bits = (63 - count.leading_zeros() as i32)
        .min(32)
        .min(31 + i32::from(scaled.shift));
    Ok(Multiplier {
        mantissa: ((i64::from(scaled.mantissa) << bits) / count) as i32,
        shift: (i32::from(scaled.shift) - bits) as i8,
    })
}

/// Merges neighbouring axes into `[kept, reduced, kept, reduced, kept]`; axes of extent 1 join either kind.
pub(super) fn group(shape: &[usize], axes: &[usize]) -> Result<[usize; 5]> {
    let mut groups = [1usize; 5];
    let mut at = 0;
    for (axis, &extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != 1) {
        // Even groups are kept, odd ones reduced.
        if (at % 2 == 1) != axes.contains(&axis) {
            at += 1;
        }
        match groups.get_mut(at) {
            Some(group) => *group *= extent,
            None => {
                return Err(Error::unsupported(format!("a reduction of {shape:?} over {axes:?}"))
                    .expected("reduced axes in at most two groups of neighbours")
                    .help("reduce in two operators"));
            }
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::group;

    #[test]
    fn neighbouring_axes_merge() {
        assert_eq!(group(&[1, 7, 7, 64], &[1, 2]).unwrap(), [1, 49, 64, 1, 1]);
        assert_eq!(group(&[2, 7, 7, 64], &[1, 2]).unwrap(), [2, 49, 64, 1, 1]);
        assert_eq!(group(&[2, 3, 4], &[2]).unwrap(), [6, 4, 1, 1, 1]);
        assert_eq!(group(&[2, 3, 4, 5, 6], &[1, 3]).unwrap(), [2, 3, 4, 5, 6]);
        assert!(group(&[2, 3, 4, 5, 6, 7], &[0, 2, 4]).is_err());
    }
}
