//! Calls that compute element by element.

use super::call::{Call, Made};
use super::names::called;
use super::program::Arg;
use crate::onnx::{Attribute, ElementType};
use arenite::ops::pointwise::{Aten, Function};

/// The row of `core/src/ops/pointwise.rs` that a call is.
pub(super) fn row(call: &super::program::Node) -> Option<&'static str> {
    let (name, _) = called(&call.target);
    let is = |aten: &Aten| {
        let stated = |(argument, value): &(&str, &str)| match call.argument(argument) {
            None => true,
            Some(Arg::Text(text)) => value.trim_matches('\'') == text,
            Some(Arg::Int(number)) => value.parse() == Ok(*number),
            Some(Arg::Float(number)) => value.parse() == Ok(*number),
            Some(_) => false,
        };
        aten.name == name && aten.arguments.iter().all(stated)
    };
    let mut rows = Function::rows();
    let found = rows.find(|(_, names)| names.aten.as_ref().is_some_and(is));
    found.map(|(_, names)| names.name)
}

/// A function that has a row.
pub(super) fn function(call: &mut Call<'_>) -> Made {
    let row = row(call.node).unwrap_or_default();
    let x = real_operand(call, "self")?;
    Ok(call.pointwise(row, &x))
}

/// An operand of a function of real numbers: integers become real where the result is.
fn real_operand(call: &mut Call<'_>, name: &str) -> Made {
    let elem = call.result_elem();
    call.operand(name, elem)
}

/// An operator of ONNX on the first operand.
fn unary(call: &mut Call<'_>, op: &'static str, attributes: &[(&'static str, Attribute<'_>)]) -> Made {
    let x = real_operand(call, "self")?;
    Ok(call.add(op, &[&x], attributes))
}

pub(super) fn relu(call: &mut Call<'_>) -> Made {
    unary(call, "Relu", &[])
}

pub(super) fn selu(call: &mut Call<'_>) -> Made {
    unary(call, "Selu", &[])
}

pub(super) fn silu(call: &mut Call<'_>) -> Made {
    unary(call, "Swish", &[])
}

pub(super) fn mish(call: &mut Call<'_>) -> Made {
    unary(call, "Mish", &[])
}

pub(super) fn reciprocal(call: &mut Call<'_>) -> Made {
    unary(call, "Reciprocal", &[])
}

pub(super) fn atan(call: &mut Call<'_>) -> Made {
    unary(call, "Atan", &[])
}

pub(super) fn is_nan(call: &mut Call<'_>) -> Made {
    let x = call.x("self")?;
    Ok(call.add("IsNaN", &[&x], &[]))
}

pub(super) fn is_inf(call: &mut Call<'_>) -> Made {
    let x = call.x("self")?;
    Ok(call.add("IsInf", &[&x], &[]))
}

pub(super) fn not(call: &mut Call<'_>) -> Made {
    let x = call.operand("self", ElementType::BOOL)?;
    Ok(call.add("Not", &[&x], &[]))
}

/// `~x` of truth values.
pub(super) fn bitwise_not(call: &mut Call<'_>) -> Made {
    if call.elem("self")? != ElementType::BOOL {
        return Err(call.refused("self", "truth values"));
    }
    not(call)
}

/// The operand as it is.
pub(super) fn same(call: &mut Call<'_>) -> Made {
    call.x(if call.has("self") { "self" } else { "input" })
}

pub(super) fn dropout(call: &mut Call<'_>) -> Made {
    if call.flag("train", false)? && call.float("p", 0.5)? > 0.0 {
        return Err(call.refused("train", "false: export the module in its inference mode (model.eval())"));
    }
    call.x(if call.has("input") { "input" } else { "self" })
}

pub(super) fn relu6(call: &mut Call<'_>) -> Made {
    clipped(call, "self", Some(0.0), Some(6.0))
}

pub(super) fn hardtanh(call: &mut Call<'_>) -> Made {
    let (low, high) = (call.float("min_val", -1.0)?, call.float("max_val", 1.0)?);
    clipped(call, "self", Some(low), Some(high))
}

fn clipped(call: &mut Call<'_>, name: &str, low: Option<f64>, high: Option<f64>) -> Made {
    let x = real_operand(call, name)?;
    let elem = call.result_elem();
    let bounds: Vec<String> = [low, high]
        .into_iter()
        .map(|bound| bound.map_or_else(String::new, |bound| call.number(bound, elem)))
        .collect();
    Ok(call.add("Clip", &[&x, &bounds[0], &bounds[1]], &[]))
}

/// `clamp` and its kin, whose bounds are numbers or tensors.
pub(super) fn clamp(call: &mut Call<'_>) -> Made {
    let is_tensor = |name: &str| matches!(call.node.argument(name), Some(Arg::Tensor(_)));
    if is_tensor("min") || is_tensor("max") {
        let elem = call.result_elem();
        let mut y = real_operand(call, "self")?;
        for (name, op) in [("min", "Max"), ("max", "Min")] {
            if call.has(name) {
                let bound = call.operand(name, elem)?;
                y = call.add(op, &[&y, &bound], &[]);
            }
        }
        return Ok(y);
    }
    let bound = |name: &str| call.has(name).then(|| call.float(name, 0.0)).transpose();
    let (low, high) = (bound("min")?, bound("max")?);
    clipped(call, "self", low, high)
}

pub(super) fn leaky_relu(call: &mut Call<'_>) -> Made {
    let slope = call.float("negative_slope", 0.01)?;
    unary(call, "LeakyRelu", &[("alpha", Attribute::Float(slope as f32))])
}

pub(super) fn elu(call: &mut Call<'_>) -> Made {
    for name in ["scale", "input_scale"] {
        if call.float(name, 1.0)? != 1.0 {
            return Err(call.refused(name, "1"));
        }
    }
    let alpha = call.float("alpha", 1.0)?;
    unary(call, "Elu", &[("alpha", Attribute::Float(alpha as f32))])
}

pub(super) fn celu(call: &mut Call<'_>) -> Made {
    let alpha = call.float("alpha", 1.0)?;
    unary(call, "Celu", &[("alpha", Attribute::Float(alpha as f32))])
}

/// `x` where it is above a threshold, else a value.
pub(super) fn threshold(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    // No element is above a NaN, and none is below it.
    call.float("threshold", 0.0)?;
    let x = call.x("self")?;
    let (least, value) = (call.operand("threshold", elem)?, call.operand("value", elem)?);
    let above = call.add("Greater", &[&x, &least], &[]);
    Ok(call.add("Where", &[&above, &x, &value], &[]))
}

/// `x` where its magnitude is above `lambd`, else 0.
pub(super) fn hardshrink(call: &mut Call<'_>) -> Made {
    let (x, bound) = (call.x("self")?, call.float("lambd", 0.5)?);
    let (bound, zero) = (call.real(bound), call.real(0.0));
    let size = call.add("Abs", &[&x], &[]);
    let above = call.add("Greater", &[&size, &bound], &[]);
    Ok(call.add("Where", &[&above, &x, &zero], &[]))
}

/// `x - min(max(x, -lambd), lambd)`
pub(super) fn softshrink(call: &mut Call<'_>) -> Made {
    let bound = call.float("lambd", 0.5)?;
    let (x, inner) = (call.x("self")?, clipped(call, "self", Some(-bound), Some(bound))?);
    Ok(call.add("Sub", &[&x, &inner], &[]))
}

/// `log(sigmoid(x))`
pub(super) fn log_sigmoid(call: &mut Call<'_>) -> Made {
    let x = unary(call, "Sigmoid", &[])?;
    Ok(call.add("Log", &[&x], &[]))
}

/// `a * sigmoid(b)` of the two halves of an axis.
pub(super) fn glu(call: &mut Call<'_>) -> Made {
    let (x, axis) = (call.x("self")?, call.int("dim", -1)?);
    let halves = call.adds(
        "Split",
        &[&x],
        &[("axis", Attribute::Int(axis)), ("num_outputs", Attribute::Int(2))],
        2,
    );
    let gate = call.add("Sigmoid", &[&halves[1]], &[]);
    Ok(call.add("Mul", &[&halves[0], &gate], &[]))
}

/// A slope for each channel, or one.
pub(super) fn prelu(call: &mut Call<'_>) -> Made {
    let (x, slope) = (call.x("self")?, call.x("weight")?);
    let rank = call.rank("self")?;
    if call.rank("weight")? == 1 && rank > 2 {
        let mut shape = vec![-1];
        shape.resize(rank - 1, 1);
        let slope = call.reshaped(&slope, &shape);
        return Ok(call.add("PRelu", &[&x, &slope], &[]));
    }
    Ok(call.add("PRelu", &[&x, &slope], &[]))
}

/// `op(x + a) * b`, or without the sum or the product.
fn around(call: &mut Call<'_>, sum: Option<f64>, op: &'static str, factor: Option<f64>) -> Made {
    let mut x = real_operand(call, "self")?;
    if let Some(sum) = sum {
        let sum = call.real(sum);
        x = call.add("Add", &[&x, &sum], &[]);
    }
    x = call.add(op, &[&x], &[]);
    if let Some(factor) = factor {
        let factor = call.real(factor);
        x = call.add("Mul", &[&x, &factor], &[]);
    }
    Ok(x)
}

pub(super) fn log1p(call: &mut Call<'_>) -> Made {
    around(call, Some(1.0), "Log", None)
}

pub(super) fn log2(call: &mut Call<'_>) -> Made {
    around(call, None, "Log", Some(std::f64::consts::LOG2_E))
}

pub(super) fn log10(call: &mut Call<'_>) -> Made {
    around(call, None, "Log", Some(std::f64::consts::LOG10_E))
}

pub(super) fn expm1(call: &mut Call<'_>) -> Made {
    let (x, one) = (around(call, None, "Exp", None)?, call.real(1.0));
    Ok(call.add("Sub", &[&x, &one], &[]))
}

pub(super) fn exp2(call: &mut Call<'_>) -> Made {
    let (x, factor) = (real_operand(call, "self")?, call.real(std::f64::consts::LN_2));
    let x = call.add("Mul", &[&x, &factor], &[]);
    Ok(call.add("Exp", &[&x], &[]))
}

pub(super) fn erfc(call: &mut Call<'_>) -> Made {
    let (x, one) = (around(call, None, "Erf", None)?, call.real(1.0));
    Ok(call.add("Sub", &[&one, &x], &[]))
}

pub(super) fn tan(call: &mut Call<'_>) -> Made {
    let x = real_operand(call, "self")?;
    let (sine, cosine) = (call.add("Sin", &[&x], &[]), call.add("Cos", &[&x], &[]));
    Ok(call.add("Div", &[&sine, &cosine], &[]))
}

/// `sign(x) * floor(|x|)`
pub(super) fn trunc(call: &mut Call<'_>) -> Made {
    let x = real_operand(call, "self")?;
    Ok(truncated(call, &x))
}

pub(super) fn truncated(call: &mut Call<'_>, x: &str) -> String {
    let (sign, size) = (call.add("Sign", &[x], &[]), call.add("Abs", &[x], &[]));
    let whole = call.add("Floor", &[&size], &[]);
    call.add("Mul", &[&sign, &whole], &[])
}

pub(super) fn frac(call: &mut Call<'_>) -> Made {
    let x = real_operand(call, "self")?;
    let whole = truncated(call, &x);
    Ok(call.add("Sub", &[&x, &whole], &[]))
}

/// `log(x / (1 - x))`, of `x` between `eps` and `1 - eps`.
pub(super) fn logit(call: &mut Call<'_>) -> Made {
    let x = match call.float("eps", -1.0)? {
        none if none < 0.0 => real_operand(call, "self")?,
        eps => clipped(call, "self", Some(eps), Some(1.0 - eps))?,
    };
    let one = call.real(1.0);
    let rest = call.add("Sub", &[&one, &x], &[]);
    let odds = call.add("Div", &[&x, &rest], &[]);
    Ok(call.add("Log", &[&odds], &[]))
}

/// The operand in another type of elements.
pub(super) fn converted(call: &mut Call<'_>) -> Made {
    let to = match call.dtype("dtype")? {
        Some(to) => to,
        None => call.result_elem(),
    };
    let from = call.elem("self")?;
    let x = call.x("self")?;
    Ok(if from == to { x } else { call.cast(&x, to) })
}
