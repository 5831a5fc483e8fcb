//! SVDF.

use arenite::ops::svdf::{SvdfF32, SvdfS8, SvdfShape};
use arenite::{DType, Step};

use super::context::{Lower, fit, input, optional, output};
use super::numbers::{clamp, factor, per_tensor};
use crate::error::{Error, Result};
use crate::graph::{Activation, Node};
use crate::program::Place;

/// Lowers an SVDF of f32 or int8 activations.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, rank: usize, activation: Activation) -> Result<()> {
    let (x, w, v, state, y) = (
        input(node, 0)?,
        input(node, 1)?,
        input(node, 2)?,
        input(node, 4)?,
        output(node)?,
    );
    let bias = optional(node, 3);
    let graph = lower.graph();
    let (tx, tw, tv) = (graph.tensor(x), graph.tensor(w), graph.tensor(v));
    let filters = tw.shape[0];
    let shape = SvdfShape {
        batch: fit(tx.shape[0], "the batch")?,
        features: fit(tx.shape[1], "the number of features")?,
        units: fit(filters / rank, "the number of units")?,
        rank: fit(rank, "the rank")?,
        memory: fit(tv.shape[1], "the memory")?,
    };
    let macs = (tx.shape[0] * filters * (tx.shape[1] + tv.shape[1])) as u64;
    let quantised = tx.dtype == DType::I8;
    let (to, from, memory) = (Place::Tensor(y, 0), lower.place(x)?, lower.place(state)?);
    let (weights, time_weights) = (lower.constant(w)?, lower.constant(v)?);
    if !quantised {
        let step = SvdfF32 {
            output: to,
            input: from,
            state: memory,
            shape,
            weights,
            time_weights,
            bias: lower.bias_f32(bias, filters / rank)?,
            clamp: clamp(activation),
        };
        lower.push(node, "svdf", Step::SvdfF32(step), macs);
        return Ok(());
    }
    let graph = lower.graph();
    let [qx, qw, qv, qs, qy] = [x, w, v, state, y].map(|id| per_tensor(graph.tensor(id)));
    let (qx, qw, qv, qs, qy) = (qx?, qw?, qv?, qs?, qy?);
    if (qw.1, qv.1) != (0, 0) {
        return Err(Error::unsupported(format!("weights with zero points {} and {}", qw.1, qv.1)).expected("0"));
    }
    // Both are products of f32, as in TensorFlow Lite Micro. It ignores the fused activation: the result's range stands for it.
    let multipliers = [
        factor(f64::from(qx.0 * qw.0 / qs.0))?,
        factor(f64::from(qs.0 * qv.0 / qy.0))?,
    ];
    let state_type = graph.tensor(state).dtype;
    let bias = match bias {
        Some(bias) => lower.constant(bias)?,
        None => lower.program.weights.add_i32(&vec![0; filters / rank])?,
    };
    let step = SvdfS8 {
        output: to,
        input: from,
        state: memory,
        shape,
        state_type,
        weights,
        time_weights,
        bias,
        zero: [qx.1, qs.1, qy.1],
        multipliers,
    };
    lower.push(node, "svdf", Step::SvdfS8(step), macs);
    Ok(())
}
