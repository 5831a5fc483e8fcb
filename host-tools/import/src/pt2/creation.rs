//! Calls that make tensors of numbers.

use super::call::{Call, Made};
use super::program::Arg;
use crate::onnx::{Attribute, ElementType};

/// A tensor of one value: of a shape that is given.
fn of_shape(call: &mut Call<'_>, shape: &str, value: f64) -> Made {
    let elem = call.result_elem();
    let value = call.number(value, elem);
    let y = call.add("Expand", &[&value, shape], &[]);
    Ok(y)
}

fn sized(call: &mut Call<'_>, value: f64) -> Made {
    let shape = call.sizes("size")?;
    of_shape(call, &shape, value)
}

/// A tensor of one value, of the shape that the operand has.
fn like(call: &mut Call<'_>, value: f64) -> Made {
    let x = call.x("self")?;
    let shape = call.add("Shape", &[&x], &[]);
    of_shape(call, &shape, value)
}

pub(super) fn zeros(call: &mut Call<'_>) -> Made {
    sized(call, 0.0)
}

pub(super) fn ones(call: &mut Call<'_>) -> Made {
    sized(call, 1.0)
}

pub(super) fn full(call: &mut Call<'_>) -> Made {
    let value = call.any_float("fill_value", 0.0)?;
    sized(call, value)
}

pub(super) fn zeros_like(call: &mut Call<'_>) -> Made {
    like(call, 0.0)
}

pub(super) fn ones_like(call: &mut Call<'_>) -> Made {
    like(call, 1.0)
}

pub(super) fn full_like(call: &mut Call<'_>) -> Made {
    let name = if call.has("fill_value") { "fill_value" } else { "value" };
    if let Some(Arg::Tensor(_)) = call.node.argument(name) {
        let elem = call.result_elem();
        let (x, value) = (call.x("self")?, call.operand(name, elem)?);
        let shape = call.add("Shape", &[&x], &[]);
        return Ok(call.add("Expand", &[&value, &shape], &[]));
    }
    let value = call.any_float(name, 0.0)?;
    like(call, value)
}

pub(super) fn scalar(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    call.operand("s", elem)
}

/// Numbers from a first one up to an end, by a step.
pub(super) fn arange(call: &mut Call<'_>) -> Made {
    let elem = call.result_elem();
    let mut bounds = Vec::new();
    for (name, default) in [("start", 0.0), ("end", 0.0), ("step", 1.0)] {
        let bound = if call.has(name) {
            call.operand(name, elem)?
        } else {
            call.number(default, elem)
        };
        // Extents are lists of one integer.
        bounds.push(match call.node.argument(name) {
            Some(Arg::Symbol(_)) => call.squeezed(&bound, &[0]),
            _ => bound,
        });
    }
    Ok(call.add("Range", &[&bounds[0], &bounds[1], &bounds[2]], &[]))
}

/// Ones on the diagonal.
pub(super) fn eye(call: &mut Call<'_>) -> Made {
    let rows = call.int("n", 1)?;
    let columns = call.int("m", rows)?;
    let one = call.real(1.0);
    let shape = call.whole_list(&[rows, columns]);
    let mut y = call.add("Expand", &[&one, &shape], &[]);
    let diagonal = call.number(0.0, ElementType::INT64);
    for upper in [0, 1] {
        y = call.add("Trilu", &[&y, &diagonal], &[("upper", Attribute::Int(upper))]);
    }
    let elem = call.result_elem();
    Ok(if elem.is_float() { y } else { call.cast(&y, elem) })
}

/// A vector for each number: 1 in its place, 0 elsewhere.
pub(super) fn one_hot(call: &mut Call<'_>) -> Made {
    let depth = call.int("num_classes", -1)?;
    if depth < 1 {
        return Err(call.refused("num_classes", "the number of classes"));
    }
    let (x, depth, values) = (call.x("self")?, call.whole_list(&[depth]), call.whole_list(&[0, 1]));
    Ok(call.add("OneHot", &[&x, &depth, &values], &[]))
}
