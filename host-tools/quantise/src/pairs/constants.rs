//! Constants of layers as the integers that they are multiples of.

use std::sync::Arc;

use arenite::DType;

use crate::error::Result;
use crate::graph::data::{Expr, ExprOp};
use crate::graph::{Data, Graph, Quant, Tensor, TensorId, TensorKind};
use crate::quantize::Activations;
use crate::weights::Weights;

/// Origin of a dequantised constant: whole numbers, and the step of each.
struct Multiples {
    whole: Vec<f32>,
    steps: Vec<f32>,
}

/// The factors of a product that was only moved since.
fn factors(expr: &Expr) -> Option<[Arc<Expr>; 2]> {
    let each = |of: &Arc<Expr>, moved: &dyn Fn(Arc<Expr>) -> Expr| Some(factors(of)?.map(|part| Arc::new(moved(part))));
    match expr {
        Expr::Binary {
            op: ExprOp::Mul, a, b, ..
        } if a.shape() == b.shape() => Some([Arc::clone(a), Arc::clone(b)]),
        Expr::Permute { of, perm } => each(of, &|of| Expr::Permute { of, perm: perm.clone() }),
        Expr::Reshape { of, shape } => each(of, &|of| Expr::Reshape {
            of,
            shape: shape.clone(),
        }),
        _ => None,
    }
}

fn multiples(graph: &Graph, weights: &Weights, id: TensorId) -> Result<Option<Multiples>> {
    let TensorKind::Const(Data::Lazy(expr)) = &graph.tensor(id).kind else {
        return Ok(None);
    };
    let Some([whole, steps]) = factors(expr) else {
        return Ok(None);
    };
    let (whole, steps) = (weights.evaluate(&whole)?, weights.evaluate(&steps)?);
    let integers = whole.iter().all(|value| value.fract() == 0.0 && value.abs() <= 255.0);
    Ok(integers.then_some(Multiples { whole, steps }))
}

/// The weights of a layer as int8 with a scale for each output, `None` where they are no such.
pub(super) fn layer(graph: &Graph, weights: &Weights, id: TensorId) -> Result<Option<Tensor>> {
    let Some(found) = multiples(graph, weights, id)? else {
        return Ok(None);
    };
    let tensor = graph.tensor(id).clone();
    let outputs = tensor.shape[0];
    let row = found.steps.len() / outputs.max(1);
    let scale: Vec<f32> = found.steps.iter().step_by(row.max(1)).copied().collect();
    let one_each = found
        .steps
        .chunks(row.max(1))
        .all(|row| row.iter().all(|step| *step == row[0]));
    if !one_each || !found.whole.iter().all(|value| (-128.0..=127.0).contains(value)) {
        return Ok(None);
    }
    let bytes: Vec<u8> = found.whole.iter().map(|&value| value as i8 as u8).collect();
    Ok(Some(Tensor {
        dtype: DType::I8,
        quant: Some(Quant {
            zero_point: vec![0; outputs],
            scale,
            axis: Some(0),
        }),
        kind: TensorKind::Const(Data::Bytes(bytes.into())),
        ..tensor
    }))
}

/// A layer's bias in the units of its products, `None` where one of them has no room.
pub(super) fn bias(
    graph: &Graph,
    weights: &Weights,
    id: Option<TensorId>,
    layer: &Tensor,
    input: f32,
) -> Result<Option<Tensor>> {
    let scales = layer.quant.as_ref().map_or(&[][..], |quant| &quant.scale);
    let (name, values) = match id {
        None => (format!("{} (bias)", layer.name), vec![0.0; scales.len()]),
        Some(id) => {
            let tensor = graph.tensor(id);
            let TensorKind::Const(data) = &tensor.kind else {
                return Ok(None);
            };
            (tensor.name.clone(), weights.evaluate(&data.to_expr(&tensor.shape))?)
        }
    };
    let unit = |scale: &f32| f64::from(input) * f64::from(*scale);
    let stored = values
        .iter()
        .zip(scales)
        .map(|(value, scale)| (f64::from(*value) / unit(scale)).round());
    let stored: Vec<f64> = stored.collect();
    if values.len() != scales.len() || !stored.iter().all(|value| value.abs() <= Activations::Int8.most_bias()) {
        return Ok(None);
    }
    let stored: Vec<i32> = stored.iter().map(|&value| value as i32).collect();
    Ok(Some(Tensor {
        quant: Some(Quant {
            scale: scales.iter().map(|scale| unit(scale) as f32).collect(),
            zero_point: vec![0; scales.len()],
            axis: Some(0),
        }),
        kind: TensorKind::Const(Data::from_i32(&stored)),
        ..Tensor::activation(name, &[scales.len()], DType::I32)
    }))
}

/// A constant operand as int8: the integers that it is made of, or a single number. `None` for others: rounding them would be a guess.
pub(super) fn operand(graph: &Graph, weights: &Weights, id: TensorId) -> Result<Option<Tensor>> {
    let tensor = graph.tensor(id).clone();
    let TensorKind::Const(data) = &tensor.kind else {
        return Ok(None);
    };
    let (quant, stored) = match multiples(graph, weights, id)? {
        Some(found) if found.steps.iter().all(|step| *step == found.steps[0]) => {
            let least = found.whole.iter().fold(0.0_f32, |least, value| least.min(*value));
            // The zero point of the file's own bytes may have been anywhere that leaves room for all.
            let zero = (-128.0 - least).min(127.0);
            let stored: Vec<f32> = found.whole.iter().map(|value| value + zero).collect();
            (Quant::per_tensor(found.steps[0], zero as i32), stored)
        }
        Some(_) => return Ok(None),
        None if tensor.elements() == 1 => match weights.evaluate(&data.to_expr(&tensor.shape))?[0] {
            value if value != 0.0 => (Quant::per_tensor(value.abs() / 127.0, 0), vec![127.0 * value.signum()]),
            _ => (Quant::per_tensor(1.0, 0), vec![0.0]),
        },
        None => return Ok(None),
    };
    if !stored.iter().all(|value| (-128.0..=127.0).contains(value)) {
        return Ok(None);
    }
    let bytes: Vec<u8> = stored.iter().map(|&value| value as i8 as u8).collect();
    Ok(Some(Tensor {
        dtype: DType::I8,
        quant: Some(quant),
        kind: TensorKind::Const(Data::Bytes(bytes.into())),
        ..tensor
    }))
}
