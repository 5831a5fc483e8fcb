//! Convolutions and poolings.

use super::call::{Call, Made};
use crate::error::Result;
use crate::onnx::Attribute;

/// Most results along an axis of a pooling whose windows differ in length.
const MOST_WINDOWS: i64 = 256;

/// Adds `op` over an operand that may lack the axis of the batch.
fn batched(
    call: &mut Call<'_>,
    op: &'static str,
    operands: &[&str],
    attributes: &[(&'static str, Attribute<'_>)],
    has_batch: bool,
) -> String {
    let x = if has_batch {
        operands[0].to_string()
    } else {
        call.unsqueezed(operands[0], &[0])
    };
    let operands: Vec<&str> = std::iter::once(x.as_str())
        .chain(operands[1..].iter().copied())
        .collect();
    let y = call.add(op, &operands, attributes);
    if has_batch { y } else { call.squeezed(&y, &[0]) }
}

/// All convolutions, transposed ones among them.
pub(super) fn conv(call: &mut Call<'_>) -> Made {
    let (x, w, bias) = (call.x("input")?, call.x("weight")?, call.maybe("bias")?);
    let weights = call.shape("weight")?;
    let rank = weights.len().saturating_sub(2);
    let transposed = call.flag("transposed", call.node.target.contains("conv_transpose"))?;
    let stride = call.each("stride", rank, 1)?;
    let dilation = call.each("dilation", rank, 1)?;
    let groups = call.int("groups", 1)?;
    let mut pads = match call.text("padding", "").as_deref() {
        Ok("valid") => vec![0; 2 * rank],
        Ok("same") => {
            let total = |axis: usize| dilation[axis].saturating_mul(weights[axis + 2] - 1);
            let before = (0..rank).map(|axis| total(axis) / 2);
            before
                .chain((0..rank).map(|axis| total(axis) - total(axis) / 2))
                .collect()
        }
        _ => call.each("padding", rank, 0)?.repeat(2),
    };
    pads.truncate(2 * rank);
    let mut attributes = vec![
        ("strides", Attribute::Ints(&stride)),
        ("dilations", Attribute::Ints(&dilation)),
        ("pads", Attribute::Ints(&pads)),
        ("group", Attribute::Int(groups)),
    ];
    let more = call.each("output_padding", rank, 0)?;
    if transposed {
        attributes.push(("output_padding", Attribute::Ints(&more)));
    }
    let op = if transposed { "ConvTranspose" } else { "Conv" };
    let has_batch = call.rank("input")? == weights.len();
    let bias = bias.unwrap_or_default();
    Ok(batched(call, op, &[&x, &w, &bias], &attributes, has_batch))
}

/// The spatial axes of a pooling, by its name.
fn spatial(call: &Call<'_>) -> usize {
    let (name, _) = super::names::called(&call.node.target);
    let digit = name.chars().find_map(|letter| letter.to_digit(10));
    digit.unwrap_or(1) as usize
}

pub(super) fn max_pool(call: &mut Call<'_>) -> Result<Vec<String>> {
    let rank = spatial(call);
    let dilation = call.each("dilation", rank, 1)?;
    let (kernel, stride, pads) = pooling(call, rank)?;
    let attributes = [
        ("kernel_shape", Attribute::Ints(&kernel)),
        ("strides", Attribute::Ints(&stride)),
        ("pads", Attribute::Ints(&pads)),
        ("dilations", Attribute::Ints(&dilation)),
        ("ceil_mode", Attribute::Int(i64::from(call.flag("ceil_mode", false)?))),
    ];
    let x = call.x("self")?;
    if call.is_read(1) {
        return Ok(call.adds("MaxPool", &[&x], &attributes, 2));
    }
    let has_batch = call.rank("self")? > rank + 1;
    Ok(vec![batched(call, "MaxPool", &[&x], &attributes, has_batch)])
}

pub(super) fn avg_pool(call: &mut Call<'_>) -> Made {
    if call.has("divisor_override") {
        return Err(call.refused("divisor_override", "none"));
    }
    let rank = spatial(call);
    let (kernel, stride, pads) = pooling(call, rank)?;
    let attributes = [
        ("kernel_shape", Attribute::Ints(&kernel)),
        ("strides", Attribute::Ints(&stride)),
        ("pads", Attribute::Ints(&pads)),
        ("ceil_mode", Attribute::Int(i64::from(call.flag("ceil_mode", false)?))),
        (
            "count_include_pad",
            Attribute::Int(i64::from(call.flag("count_include_pad", true)?)),
        ),
    ];
    let has_batch = call.rank("self")? > rank + 1;
    let x = call.x("self")?;
    Ok(batched(call, "AveragePool", &[&x], &attributes, has_batch))
}

type Lists = (Vec<i64>, Vec<i64>, Vec<i64>);

/// Kernel, stride and paddings.
fn pooling(call: &Call<'_>, rank: usize) -> Result<Lists> {
    let kernel = call.each("kernel_size", rank, 1)?;
    let stride = match call.ints("stride")?.filter(|stride| !stride.is_empty()) {
        Some(_) => call.each("stride", rank, 1)?,
        None => kernel.clone(),
    };
    Ok((kernel, stride, call.each("padding", rank, 0)?.repeat(2)))
}

pub(super) fn adaptive_avg_pool(call: &mut Call<'_>) -> Made {
    adaptive(call, "ReduceMean", "AveragePool")
}

pub(super) fn adaptive_max_pool(call: &mut Call<'_>) -> Result<Vec<String>> {
    if call.is_read(1) {
        return Err(call.refused("output_size", "a pooling whose indices nobody reads"));
    }
    Ok(vec![adaptive(call, "ReduceMax", "MaxPool")?])
}

/// A pooling to so many elements: one reduction, equal windows, or a reduction for each window.
fn adaptive(call: &mut Call<'_>, reduce: &'static str, pool: &'static str) -> Made {
    let (count, rank) = (spatial(call), call.rank("self")?);
    let first = rank.saturating_sub(count);
    let mut to = Vec::new();
    for (axis, size) in call.each("output_size", count, 1)?.into_iter().enumerate() {
        to.push(if size > 0 {
            size
        } else {
            call.extent("self", first + axis)?
        });
    }
    let x = call.x("self")?;
    if to.iter().all(|&size| size == 1) {
        let axes: Vec<i64> = (first as i64..rank as i64).collect();
        let axes = call.whole_list(&axes);
        return Ok(call.add(reduce, &[&x, &axes], &[]));
    }
    let mut from = Vec::new();
    for axis in first..rank {
        from.push(call.extent("self", axis)?);
    }
    if from.iter().zip(&to).all(|(from, to)| from % to == 0) {
        let kernel: Vec<i64> = from.iter().zip(&to).map(|(from, to)| from / to).collect();
        let windows = [
            ("kernel_shape", Attribute::Ints(&kernel)),
            ("strides", Attribute::Ints(&kernel)),
        ];
        return Ok(batched(call, pool, &[&x], &windows, rank > count + 1));
    }
    let mut y = x;
    for (at, (&from, &to)) in from.iter().zip(&to).enumerate().filter(|(_, (from, to))| from != to) {
        if to > MOST_WINDOWS {
            return Err(call.refused("output_size", "at most 256 elements where windows differ in length"));
        }
        let axes = call.whole_list(&[(first + at) as i64]);
        let mut parts = Vec::new();
        for window in 0..to {
            let (begin, end) = (window * from / to, ((window + 1) * from + to - 1) / to);
            let part = call.sliced(&y, first + at, [begin, end, 1]);
            parts.push(call.add(reduce, &[&part, &axes], &[]));
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        y = call.add("Concat", &parts, &[("axis", Attribute::Int((first + at) as i64))]);
    }
    Ok(y)
}
