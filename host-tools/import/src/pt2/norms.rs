//! Normalisations, softmax and reductions.

use super::call::{Call, Made};
use super::program::Arg;
use crate::error::Result;
use crate::onnx::{Attribute, ElementType};

/// Default epsilon of normalisations.
const EPSILON: f64 = 1e-5;

fn epsilon(call: &Call<'_>, default: f64) -> Result<(&'static str, Attribute<'static>)> {
    Ok(("epsilon", Attribute::Float(call.float("eps", default)? as f32)))
}

/// A vector of one number for each channel of the operand, where the call has none.
fn channels(call: &mut Call<'_>, given: Option<String>, value: f64) -> Made {
    if let Some(given) = given {
        return Ok(given);
    }
    let count = call.extent("input", 1)?;
    let (value, shape) = (call.real(value), call.whole_list(&[count]));
    Ok(call.add("Expand", &[&value, &shape], &[]))
}

/// Batch norms by stored statistics: the result, and two that nobody reads.
pub(super) fn batch_norm(call: &mut Call<'_>) -> Result<Vec<String>> {
    for name in ["training", "train"] {
        if call.flag(name, false)? {
            return Err(call.refused(name, "false: export the module in its inference mode (model.eval())"));
        }
    }
    let x = call.x("input")?;
    let (weight, bias) = (call.maybe("weight")?, call.maybe("bias")?);
    let (scale, bias) = (channels(call, weight, 1.0)?, channels(call, bias, 0.0)?);
    let (mean, variance) = (call.x("running_mean")?, call.x("running_var")?);
    let attributes = [epsilon(call, EPSILON)?];
    Ok(vec![call.add(
        "BatchNormalization",
        &[&x, &scale, &bias, &mean, &variance],
        &attributes,
    )])
}

/// The first of the normalised axes.
fn first_axis(call: &Call<'_>) -> Result<Attribute<'static>> {
    let axes = call.ints("normalized_shape")?.unwrap_or_default().len();
    Ok(Attribute::Int(-(axes as i64)))
}

pub(super) fn layer_norm(call: &mut Call<'_>) -> Result<Vec<String>> {
    let attributes = [("axis", first_axis(call)?), epsilon(call, EPSILON)?];
    let (x, weight, bias) = (call.x("input")?, call.maybe("weight")?, call.maybe("bias")?);
    let scale = weight.unwrap_or_else(|| call.real(1.0));
    let bias = bias.unwrap_or_default();
    let results = if call.is_read(1) || call.is_read(2) { 3 } else { 1 };
    Ok(call.adds("LayerNormalization", &[&x, &scale, &bias], &attributes, results))
}

pub(super) fn rms_norm(call: &mut Call<'_>) -> Result<Vec<String>> {
    let attributes = [("axis", first_axis(call)?), epsilon(call, f64::from(f32::EPSILON))?];
    let (x, weight) = (call.x("input")?, call.maybe("weight")?);
    let scale = weight.unwrap_or_else(|| call.real(1.0));
    Ok(vec![call.add("RMSNormalization", &[&x, &scale], &attributes)])
}

pub(super) fn group_norm(call: &mut Call<'_>) -> Result<Vec<String>> {
    let name = if call.has("group") { "group" } else { "num_groups" };
    let attributes = [
        ("num_groups", Attribute::Int(call.int(name, 1)?)),
        epsilon(call, EPSILON)?,
    ];
    let (x, weight, bias) = (call.x("input")?, call.maybe("weight")?, call.maybe("bias")?);
    let (scale, bias) = (channels(call, weight, 1.0)?, channels(call, bias, 0.0)?);
    Ok(vec![call.add("GroupNormalization", &[&x, &scale, &bias], &attributes)])
}

pub(super) fn instance_norm(call: &mut Call<'_>) -> Made {
    if !call.flag("use_input_stats", true)? {
        return Ok(batch_norm(call)?.swap_remove(0));
    }
    let attributes = [epsilon(call, EPSILON)?];
    let (x, weight, bias) = (call.x("input")?, call.maybe("weight")?, call.maybe("bias")?);
    let (scale, bias) = (channels(call, weight, 1.0)?, channels(call, bias, 0.0)?);
    Ok(call.add("InstanceNormalization", &[&x, &scale, &bias], &attributes))
}

pub(super) fn softmax(call: &mut Call<'_>) -> Made {
    normalised(call, "Softmax")
}

pub(super) fn log_softmax(call: &mut Call<'_>) -> Made {
    normalised(call, "LogSoftmax")
}

fn normalised(call: &mut Call<'_>, op: &'static str) -> Made {
    let elem = call.result_elem();
    let (x, axis) = (call.operand("self", elem)?, call.int("dim", -1)?);
    Ok(call.add(op, &[&x], &[("axis", Attribute::Int(axis))]))
}

/// The axes of a reduction, all where none are given, and whether they stay.
fn over(call: &Call<'_>) -> Result<(Vec<i64>, bool)> {
    let rank = call.rank("self")?;
    let axes = call.axes("dim", rank)?.filter(|axes| !axes.is_empty());
    let mut axes: Vec<i64> = axes.map_or_else(
        || (0..rank as i64).collect(),
        |axes| axes.iter().map(|&axis| axis as i64).collect(),
    );
    axes.sort_unstable();
    if rank == 0 {
        axes.clear();
    }
    Ok((axes, call.flag("keepdim", false)?))
}

/// `op` over axes of `x`.
fn reduced(call: &mut Call<'_>, op: &'static str, x: &str, axes: &[i64], keep: bool) -> String {
    if axes.is_empty() {
        return x.to_string();
    }
    let axes = call.whole_list(axes);
    call.add(op, &[x, &axes], &[("keepdims", Attribute::Int(i64::from(keep)))])
}

fn reduction(call: &mut Call<'_>, op: &'static str) -> Made {
    let elem = call.result_elem();
    let (axes, keep) = over(call)?;
    let x = call.operand("self", elem)?;
    Ok(reduced(call, op, &x, &axes, keep))
}

pub(super) fn mean(call: &mut Call<'_>) -> Made {
    reduction(call, "ReduceMean")
}

pub(super) fn sum(call: &mut Call<'_>) -> Made {
    reduction(call, "ReduceSum")
}

pub(super) fn prod(call: &mut Call<'_>) -> Made {
    reduction(call, "ReduceProd")
}

pub(super) fn amax(call: &mut Call<'_>) -> Made {
    reduction(call, "ReduceMax")
}

pub(super) fn amin(call: &mut Call<'_>) -> Made {
    reduction(call, "ReduceMin")
}

pub(super) fn logsumexp(call: &mut Call<'_>) -> Made {
    reduction(call, "ReduceLogSumExp")
}

/// Whether any element holds, or all.
fn truth(call: &mut Call<'_>, op: &'static str) -> Made {
    let (axes, keep) = over(call)?;
    let x = call.operand("self", ElementType::BOOL)?;
    let x = call.cast(&x, ElementType::FLOAT);
    let y = reduced(call, op, &x, &axes, keep);
    Ok(call.cast(&y, ElementType::BOOL))
}

pub(super) fn any(call: &mut Call<'_>) -> Made {
    truth(call, "ReduceMax")
}

pub(super) fn all(call: &mut Call<'_>) -> Made {
    truth(call, "ReduceMin")
}

/// The greatest of all, of an axis with its places, or of two operands.
pub(super) fn max(call: &mut Call<'_>) -> Result<Vec<String>> {
    extreme(call, ["ReduceMax", "ArgMax", "Max"])
}

pub(super) fn min(call: &mut Call<'_>) -> Result<Vec<String>> {
    extreme(call, ["ReduceMin", "ArgMin", "Min"])
}

fn extreme(call: &mut Call<'_>, [reduce, place, of_two]: [&'static str; 3]) -> Result<Vec<String>> {
    if call.has("other") {
        let (a, b) = (call.x("self")?, call.x("other")?);
        return Ok(vec![call.add(of_two, &[&a, &b], &[])]);
    }
    let (axes, keep) = over(call)?;
    let x = call.x("self")?;
    let y = reduced(call, reduce, &x, &axes, keep);
    if !call.has("dim") {
        return Ok(vec![y]);
    }
    let axis = Attribute::Int(axes.first().copied().unwrap_or(0));
    let at = call.add(
        place,
        &[&x],
        &[("axis", axis), ("keepdims", Attribute::Int(i64::from(keep)))],
    );
    Ok(vec![y, at])
}

pub(super) fn argmax(call: &mut Call<'_>) -> Made {
    place(call, "ArgMax")
}

pub(super) fn argmin(call: &mut Call<'_>) -> Made {
    place(call, "ArgMin")
}

fn place(call: &mut Call<'_>, op: &'static str) -> Made {
    let mut x = call.x("self")?;
    let keep = ("keepdims", Attribute::Int(i64::from(call.flag("keepdim", false)?)));
    if !call.has("dim") {
        x = call.reshaped(&x, &[-1]);
    }
    let axis = ("axis", Attribute::Int(call.int("dim", 0)?));
    Ok(call.add(op, &[&x], &[axis, keep]))
}

pub(super) fn topk(call: &mut Call<'_>) -> Result<Vec<String>> {
    let (x, count) = (call.x("self")?, call.int("k", 1)?);
    let count = call.whole_list(&[count]);
    let attributes = [
        ("axis", Attribute::Int(call.int("dim", -1)?)),
        ("largest", Attribute::Int(i64::from(call.flag("largest", true)?))),
    ];
    Ok(call.adds("TopK", &[&x, &count], &attributes, 2))
}

pub(super) fn cumsum(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    let (x, axis) = (call.operand("self", elem)?, call.int("dim", 0)?);
    let axis = call.number(axis as f64, ElementType::INT64);
    Ok(call.add("CumSum", &[&x, &axis], &[]))
}

/// The variance, with its mean kept as an axis: the sum of squares over the number of elements less a correction.
fn spread(call: &mut Call<'_>) -> Result<[String; 2]> {
    let (axes, keep) = over(call)?;
    let correction = match call.node.argument("unbiased") {
        Some(Arg::Bool(unbiased)) => f64::from(u8::from(*unbiased)),
        _ => call.float("correction", 1.0)?,
    };
    let mut count = 1.0;
    for &axis in &axes {
        count *= call.extent("self", axis as usize)? as f64;
    }
    let x = call.x("self")?;
    let mean = reduced(call, "ReduceMean", &x, &axes, true);
    let centred = call.add("Sub", &[&x, &mean], &[]);
    let squares = call.add("Mul", &[&centred, &centred], &[]);
    let variance = reduced(call, "ReduceMean", &squares, &axes, keep);
    let mean = if keep {
        mean
    } else {
        reduced(call, "ReduceMean", &x, &axes, false)
    };
    if correction == 0.0 {
        return Ok([variance, mean]);
    }
    if count <= correction {
        return Err(call.refused("correction", "less than the number of elements"));
    }
    let factor = call.real(count / (count - correction));
    Ok([call.add("Mul", &[&variance, &factor], &[]), mean])
}

pub(super) fn var(call: &mut Call<'_>) -> Result<Vec<String>> {
    spread(call).map(|results| results.to_vec())
}

pub(super) fn std(call: &mut Call<'_>) -> Result<Vec<String>> {
    let [variance, mean] = spread(call)?;
    Ok(vec![call.add("Sqrt", &[&variance], &[]), mean])
}

/// The length of vectors along axes, by the sum of squares or of magnitudes, or by the greatest.
pub(super) fn norm(call: &mut Call<'_>) -> Made {
    let (axes, keep) = over(call)?;
    let name = if call.has("ord") { "ord" } else { "p" };
    let x = call.x("self")?;
    let order = call.float(name, 2.0)?;
    if order == f64::INFINITY {
        let size = call.add("Abs", &[&x], &[]);
        return Ok(reduced(call, "ReduceMax", &size, &axes, keep));
    }
    let op = if order == 2.0 {
        "ReduceL2"
    } else if order == 1.0 {
        "ReduceL1"
    } else {
        return Err(call.refused(name, "1, 2 or infinity"));
    };
    Ok(reduced(call, op, &x, &axes, keep))
}
