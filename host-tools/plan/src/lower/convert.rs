//! Quantise, dequantise, requantise, cast.

use arenite::ops::convert::{Convert, Rescale, Table};
use arenite::quant::{Multiplier, requantize};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output};
use super::copies::alias;
use super::numbers::{Affine, factor, limits, per_tensor};
use crate::error::{Error, Result};
use crate::graph::{Node, Tensor, TensorId};
use crate::program::Place;

/// Returns the operand and result of a conversion, which have as many elements: the shapes are those that the file states.
fn ends(lower: &Lower<'_>, node: &Node) -> Result<(TensorId, TensorId)> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    if tx.elements() != ty.elements() {
        return Err(Error::input(format!("output `{}` has shape {:?}", ty.name, ty.shape))
            .expected(format!("{:?}, that of `{}`", tx.shape, tx.name)));
    }
    Ok((x, y))
}

/// Lowers a change of quantisation: from f32, or between integer types.
pub(super) fn lower_quantize(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (x, y) = ends(lower, node)?;
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    let qy = per_tensor(ty)?;
    if tx.dtype == DType::F32 {
        return push(lower, node, "quantize", qy);
    }
    let qx = per_tensor(tx)?;
    let bytes = |dtype| matches!(dtype, DType::I8 | DType::U8);
    if bytes(tx.dtype) && bytes(ty.dtype) {
        let table = requantisation([tx.dtype, ty.dtype], qx, qy)?;
        return push_table(lower, node, "requantize", &table);
    }
    let scaled = factor(f64::from(qx.0) / f64::from(qy.0))?;
    let count = fit(tx.elements(), "the number of elements")?;
    let places = [Place::Tensor(y, 0), lower.place(x)?];
    let (tx, ty) = (lower.graph().tensor(x), lower.graph().tensor(y));
    let step = rescale(places, count, tx, ty, [qx.1, qy.1], scaled)?;
    lower.push(node, "requantize", Step::Rescale(step), 0);
    Ok(())
}

/// From bytes of one type and quantisation to bytes of another: the table, by the operand's unsigned value.
pub(crate) fn requantisation([from, to]: [DType; 2], qx: Affine, qy: Affine) -> Result<[u8; 256]> {
    let scaled = factor(f64::from(qx.0) / f64::from(qy.0))?;
    let [low, high] = limits(to)?;
    let mut table = [0; 256];
    for (byte, entry) in (0_u8..=255).zip(&mut table) {
        let q = if from == DType::I8 {
            i32::from(byte as i8)
        } else {
            i32::from(byte)
        };
        *entry = requantize(q, qx.1, scaled, qy.1, low, high) as u8;
    }
    Ok(table)
}

/// Lowers a conversion to real numbers.
pub(super) fn lower_dequantize(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (x, _) = ends(lower, node)?;
    let quant = per_tensor(lower.graph().tensor(x))?;
    push(lower, node, "dequantize", quant)
}

/// Lowers a plain conversion of stored numbers.
pub(super) fn lower_cast(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (x, y) = ends(lower, node)?;
    if lower.graph().tensor(x).dtype == lower.graph().tensor(y).dtype {
        return alias(lower, node, x, y);
    }
    push(lower, node, "cast", (0.0, 0))
}

/// Appends a step that maps bytes through `table`, which is ordered by the operand's unsigned value.
pub(super) fn push_table(lower: &mut Lower<'_>, node: &Node, name: &'static str, table: &[u8; 256]) -> Result<()> {
    push_table_of(lower, node, name, input(node, 0)?, table)
}

/// The same of the node's operand `x`, which need not be its first.
pub(super) fn push_table_of(
    lower: &mut Lower<'_>,
    node: &Node,
    name: &'static str,
    x: TensorId,
    table: &[u8; 256],
) -> Result<()> {
    let y = output(node)?;
    let step = Table {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        count: fit(lower.graph().tensor(x).elements(), "the number of elements")?,
        table: lower.program.weights.add_bytes(table.to_vec())?,
    };
    lower.push(node, name, Step::Table(step), 0);
    Ok(())
}

/// A rescaling with one multiplier.
pub(super) fn rescale(
    [output, input]: [Place; 2],
    count: u32,
    from: &Tensor,
    to: &Tensor,
    [zero_in, zero_out]: [i32; 2],
    scaled: Multiplier,
) -> Result<Rescale<Place>> {
    Ok(Rescale {
        output,
        input,
        count,
        from: from.dtype,
        to: to.dtype,
        zero_in,
        zero_out,
        absolute: false,
        positive: scaled,
        negative: scaled,
        clamp: limits(to.dtype)?,
    })
}

fn push(lower: &mut Lower<'_>, node: &Node, name: &'static str, (scale, zero_point): Affine) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (from, to) = (lower.graph().tensor(x).dtype, lower.graph().tensor(y).dtype);
    if [from, to].contains(&DType::I64) {
        return Err(
            Error::unsupported(format!("{name} from {} to {}", from.name(), to.name())).expected("at most 32 bits"),
        );
    }
    let at = lower.place(x)?;
    let step = Convert {
        output: Place::Tensor(y, 0),
        input: at,
        count: fit(lower.graph().tensor(x).elements(), "the number of elements")?,
        from,
        to,
        scale,
        zero_point,
    };
    lower.push(node, name, Step::Convert(step), 0);
    Ok(())
}
