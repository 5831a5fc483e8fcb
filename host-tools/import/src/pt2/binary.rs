//! Calls of two operands, element by element with broadcasting, and choices between them.

use super::call::{Call, Made};
use super::pointwise::truncated;
use super::program::Arg;
use crate::error::Result;
use crate::onnx::{Attribute, ElementType};

/// Both operands, as the result's type.
fn pair(call: &mut Call<'_>) -> Result<[String; 2]> {
    let elem = call.result_elem();
    Ok([call.operand("self", elem)?, call.operand("other", elem)?])
}

fn of_pair(call: &mut Call<'_>, op: &'static str) -> Made {
    let [a, b] = pair(call)?;
    Ok(call.add(op, &[&a, &b], &[]))
}

/// `x` times argument `name`, where that is not 1.
fn times(call: &mut Call<'_>, x: String, name: &str) -> Made {
    let factor = call.float(name, 1.0)?;
    if factor == 1.0 {
        return Ok(x);
    }
    let elem = call.result_elem();
    let factor = call.number(factor, elem);
    Ok(call.add("Mul", &[&x, &factor], &[]))
}

pub(super) fn add(call: &mut Call<'_>) -> Made {
    let [a, b] = pair(call)?;
    let b = times(call, b, "alpha")?;
    Ok(call.add("Add", &[&a, &b], &[]))
}

pub(super) fn sub(call: &mut Call<'_>) -> Made {
    let [a, b] = pair(call)?;
    let b = times(call, b, "alpha")?;
    Ok(call.add("Sub", &[&a, &b], &[]))
}

pub(super) fn rsub(call: &mut Call<'_>) -> Made {
    let [a, b] = pair(call)?;
    let a = times(call, a, "alpha")?;
    Ok(call.add("Sub", &[&b, &a], &[]))
}

pub(super) fn mul(call: &mut Call<'_>) -> Made {
    of_pair(call, "Mul")
}

pub(super) fn maximum(call: &mut Call<'_>) -> Made {
    of_pair(call, "Max")
}

pub(super) fn minimum(call: &mut Call<'_>) -> Made {
    of_pair(call, "Min")
}

pub(super) fn div(call: &mut Call<'_>) -> Made {
    match call.text("rounding_mode", "")?.as_str() {
        "" => of_pair(call, "Div"),
        "floor" => floor_divide(call),
        _ => {
            let y = of_pair(call, "Div")?;
            // Integers are rounded so by ONNX.
            Ok(if call.result_elem().is_float() {
                truncated(call, &y)
            } else {
                y
            })
        }
    }
}

pub(super) fn floor_divide(call: &mut Call<'_>) -> Made {
    if call.result_elem().is_float() {
        let y = of_pair(call, "Div")?;
        return Ok(call.add("Floor", &[&y], &[]));
    }
    let [a, b] = pair(call)?;
    let rest = call.add("Mod", &[&a, &b], &[]);
    let whole = call.add("Sub", &[&a, &rest], &[]);
    Ok(call.add("Div", &[&whole, &b], &[]))
}

/// `a - b * floor(a / b)`
pub(super) fn remainder(call: &mut Call<'_>) -> Made {
    if !call.result_elem().is_float() {
        return of_pair(call, "Mod");
    }
    let [a, b] = pair(call)?;
    let quotient = call.add("Div", &[&a, &b], &[]);
    let quotient = call.add("Floor", &[&quotient], &[]);
    let whole = call.add("Mul", &[&b, &quotient], &[]);
    Ok(call.add("Sub", &[&a, &whole], &[]))
}

/// `a - b * trunc(a / b)`
pub(super) fn fmod(call: &mut Call<'_>) -> Made {
    let [a, b] = pair(call)?;
    let quotient = call.add("Div", &[&a, &b], &[]);
    let quotient = if call.result_elem().is_float() {
        truncated(call, &quotient)
    } else {
        quotient
    };
    let whole = call.add("Mul", &[&b, &quotient], &[]);
    Ok(call.add("Sub", &[&a, &whole], &[]))
}

pub(super) fn pow(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    let base = call.operand("self", elem)?;
    let power = call.operand("exponent", elem)?;
    Ok(call.add("Pow", &[&base, &power], &[]))
}

fn compared(call: &mut Call<'_>, op: &'static str) -> Made {
    let elem = call.common(["self", "other"]);
    let (a, b) = (call.operand("self", elem)?, call.operand("other", elem)?);
    Ok(call.add(op, &[&a, &b], &[]))
}

pub(super) fn eq(call: &mut Call<'_>) -> Made {
    compared(call, "Equal")
}

pub(super) fn ne(call: &mut Call<'_>) -> Made {
    let equal = compared(call, "Equal")?;
    Ok(call.add("Not", &[&equal], &[]))
}

pub(super) fn lt(call: &mut Call<'_>) -> Made {
    compared(call, "Less")
}

pub(super) fn le(call: &mut Call<'_>) -> Made {
    compared(call, "LessOrEqual")
}

pub(super) fn gt(call: &mut Call<'_>) -> Made {
    compared(call, "Greater")
}

pub(super) fn ge(call: &mut Call<'_>) -> Made {
    compared(call, "GreaterOrEqual")
}

fn logical(call: &mut Call<'_>, op: &'static str) -> Made {
    let (a, b) = (
        call.operand("self", ElementType::BOOL)?,
        call.operand("other", ElementType::BOOL)?,
    );
    Ok(call.add(op, &[&a, &b], &[]))
}

pub(super) fn and(call: &mut Call<'_>) -> Made {
    logical(call, "And")
}

pub(super) fn or(call: &mut Call<'_>) -> Made {
    logical(call, "Or")
}

pub(super) fn xor(call: &mut Call<'_>) -> Made {
    logical(call, "Xor")
}

/// `&`, `|` and `^` of truth values.
fn bitwise(call: &mut Call<'_>, op: &'static str) -> Made {
    if call.elem("self")? != ElementType::BOOL || call.result_elem() != ElementType::BOOL {
        return Err(call.refused("self", "truth values"));
    }
    logical(call, op)
}

pub(super) fn bitwise_and(call: &mut Call<'_>) -> Made {
    bitwise(call, "And")
}

pub(super) fn bitwise_or(call: &mut Call<'_>) -> Made {
    bitwise(call, "Or")
}

pub(super) fn bitwise_xor(call: &mut Call<'_>) -> Made {
    bitwise(call, "Xor")
}

/// `self + value * tensor1 * tensor2`
pub(super) fn addcmul(call: &mut Call<'_>) -> Made {
    added(call, "Mul")
}

/// `self + value * tensor1 / tensor2`
pub(super) fn addcdiv(call: &mut Call<'_>) -> Made {
    added(call, "Div")
}

fn added(call: &mut Call<'_>, op: &'static str) -> Made {
    let elem = call.result_elem();
    let [x, a, b] = ["self", "tensor1", "tensor2"].map(|name| call.operand(name, elem));
    let y = call.add(op, &[&a?, &b?], &[]);
    let y = times(call, y, "value")?;
    Ok(call.add("Add", &[&x?, &y], &[]))
}

/// `self + weight * (end - self)`
pub(super) fn lerp(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    let [x, end, weight] = ["self", "end", "weight"].map(|name| call.operand(name, elem));
    let (x, end, weight) = (x?, end?, weight?);
    let way = call.add("Sub", &[&end, &x], &[]);
    let way = call.add("Mul", &[&way, &weight], &[]);
    Ok(call.add("Add", &[&x, &way], &[]))
}

/// `self` where the condition holds, else `other`.
pub(super) fn choice(call: &mut Call<'_>) -> Made {
    let condition = call.operand("condition", ElementType::BOOL)?;
    let [a, b] = pair(call)?;
    Ok(call.add("Where", &[&condition, &a, &b], &[]))
}

pub(super) fn masked_fill(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    let (x, mask) = (call.x("self")?, call.operand("mask", ElementType::BOOL)?);
    let value = call.operand("value", elem)?;
    Ok(call.add("Where", &[&mask, &value, &x], &[]))
}

/// Another tensor's elements, in the shape and type of the first.
pub(super) fn copy(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    let source = call.operand("src", elem)?;
    let x = call.x("self")?;
    let shape = call.add("Shape", &[&x], &[]);
    Ok(call.add("Expand", &[&source, &shape], &[]))
}

/// Elements on one side of a diagonal.
fn triangle(call: &mut Call<'_>, upper: i64) -> Made {
    let (x, diagonal) = (call.x("self")?, call.int("diagonal", 0)?);
    let diagonal = call.number(diagonal as f64, ElementType::INT64);
    Ok(call.add("Trilu", &[&x, &diagonal], &[("upper", Attribute::Int(upper))]))
}

pub(super) fn tril(call: &mut Call<'_>) -> Made {
    triangle(call, 0)
}

pub(super) fn triu(call: &mut Call<'_>) -> Made {
    triangle(call, 1)
}

/// Integers that the program computes of extents: `_operator.add` and its kin, by their places.
pub(super) fn of_symbols(call: &mut Call<'_>) -> Made {
    let op = match call.node.target.rsplit('.').next().unwrap_or_default() {
        "add" => "Add",
        "sub" => "Sub",
        "mul" => "Mul",
        "sym_max" => "Max",
        "sym_min" => "Min",
        // Of extents, which are not below zero.
        _ => "Div",
    };
    let names: Vec<String> = call.node.arguments.iter().map(|(name, _)| name.clone()).collect();
    let mut operands = Vec::new();
    for name in names {
        operands.push(match call.node.argument(&name) {
            Some(Arg::Int(_) | Arg::Symbol(_)) => call.sizes(&name)?,
            _ => return Err(call.refused(&name, "an integer")),
        });
    }
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    Ok(call.add(op, &operands, &[]))
}

/// The extent of an axis, as a list of one integer.
pub(super) fn size(call: &mut Call<'_>) -> Made {
    let axis = call.axis("dim", 0, call.rank("self")?)? as i64;
    let x = call.x("self")?;
    Ok(call.add(
        "Shape",
        &[&x],
        &[("start", Attribute::Int(axis)), ("end", Attribute::Int(axis + 1))],
    ))
}
