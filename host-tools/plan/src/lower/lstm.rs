//! LSTM.

use arenite::ops::lstm::{Gate, LstmF32, LstmInt, LstmShape};
use arenite::quant::SigmoidI16;
use arenite::{DType, Step};

use super::context::{Lower, fit, input, output};
use super::numbers::{factor, per_tensor};
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::program::Place;

/// Scale of the gates before their functions, and after.
const GATE: f64 = 1.0 / 4096.0;
const UNIT: f64 = 1.0 / 32768.0;

/// Lowers an LSTM of f32, int8 or int16 activations; operands in the order of TensorFlow Lite's schema.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, time_major: bool, clip: f32) -> Result<()> {
    let (x, hidden, cell, y) = (input(node, 0)?, input(node, 18)?, input(node, 19)?, output(node)?);
    let graph = lower.graph();
    let (tx, th) = (graph.tensor(x), graph.tensor(hidden));
    let dtype = tx.dtype;
    let (&[a, b, features], &[batch, cells]) = (tx.shape.as_slice(), th.shape.as_slice()) else {
        return Err(Error::input(format!("input {:?} and state {:?}", tx.shape, th.shape)));
    };
    let time = if time_major { a } else { b };
    let mut gates = [Gate::default(); 4];
    for (index, gate) in gates.iter_mut().enumerate() {
        *gate = Gate {
            weights: lower.constant(input(node, 1 + index)?)?,
            recurrent: lower.constant(input(node, 5 + index)?)?,
            bias: lower.constant(input(node, 12 + index)?)?,
        };
    }
    let shape = LstmShape {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        hidden: lower.place(hidden)?,
        cell: lower.place(cell)?,
        batch: fit(batch, "the batch")?,
        time: fit(time, "the number of steps")?,
        features: fit(features, "the number of features")?,
        cells: fit(cells, "the number of cells")?,
        time_major,
        gates,
    };
    let macs = (batch * time * cells * 4 * (features + cells)) as u64;
    if dtype == DType::F32 {
        let step = LstmF32 { shape, clip };
        lower.push(node, "lstm", Step::LstmF32(step), macs);
        return Ok(());
    }
    let graph = lower.graph();
    let (qx, qh, qc) = (
        per_tensor(graph.tensor(x))?,
        per_tensor(graph.tensor(hidden))?,
        per_tensor(graph.tensor(cell))?,
    );
    let mut multipliers = [[arenite::quant::Multiplier::ONE; 2]; 4];
    for (index, pair) in multipliers.iter_mut().enumerate() {
        let weights = [input(node, 1 + index)?, input(node, 5 + index)?];
        for ((multiplier, weights), scale) in pair.iter_mut().zip(weights).zip([qx.0, qh.0]) {
            let (weight_scale, zero_point) = per_tensor(graph.tensor(weights))?;
            if zero_point != 0 {
                return Err(Error::unsupported(format!("weights with zero point {zero_point}")).expected("0"));
            }
            // The product of the two scales is taken in f32, as in TensorFlow Lite Micro.
            *multiplier = factor(f64::from(scale * weight_scale) / GATE)?;
        }
    }
    let cell_scale = f64::from(qc.0);
    let log2 = cell_scale.log2();
    if qc.1 != 0 || (log2 - log2.round()).abs() > 1e-3 {
        return Err(
            Error::input(format!("a cell state of scale {} and zero point {}", qc.0, qc.1))
                .expected("a power of two, and 0"),
        );
    }
    // tanh takes the cell state through a shift: left above 2^-12; below it the table's own multiplier goes to the right.
    let shift = 12 + log2.round() as i32;
    let tanh = match shift {
        0..=15 => SigmoidI16::power_of_two(shift as u8),
        -31..0 => SigmoidI16::below_table(shift.unsigned_abs() as u8),
        _ => return Err(Error::input(format!("a cell state of scale {}", qc.0))),
    };
    let products = [
        factor(UNIT * cell_scale / cell_scale)?,
        factor(UNIT * UNIT / cell_scale)?,
        factor(UNIT * UNIT / f64::from(qh.0))?,
    ];
    let zero = [qx.1, qh.1];
    if dtype == DType::I16 && zero != [0; 2] {
        return Err(Error::input(format!("int16 activations of zero points {zero:?}")).expected("0"));
    }
    if let Some(product) = products.iter().find(|product| !product.narrows()) {
        return Err(Error::input(format!(
            "a cell state of scale {} and a hidden state of scale {}, whose products are scaled by {}",
            qc.0,
            qh.0,
            product.to_real()
        ))
        .expected("a factor below 0.5, and of 2^-31 at least"));
    }
    let step = LstmInt {
        shape,
        dtype,
        zero,
        gates: multipliers,
        products,
        tanh,
        clip: (f64::from(clip) / cell_scale).clamp(0.0, 32767.0) as i16,
    };
    lower.push(node, "lstm", Step::LstmInt(step), macs);
    Ok(())
}
