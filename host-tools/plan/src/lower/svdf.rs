//! SVDF.

use arenite::kernels::api::candidate::{PlainS8, PlainSvdf};
use arenite::ops::packed_conv2d::Form;
use arenite::ops::svdf::{PackedSvdfS8, SvdfF32, SvdfS8, SvdfShape};
use arenite::quant::Multiplier;
use arenite::{DType, Step};

use super::context::{Lower, fit, input, optional, output};
use super::numbers::{factor, per_tensor};
use super::select::{self, Choice, Constants};
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
    if !quantised {
        let (weights, time_weights) = (lower.constant(w)?, lower.constant(v)?);
        let step = SvdfF32 {
            output: to,
            input: from,
            state: memory,
            shape,
            weights,
            time_weights,
            bias: lower.bias_f32(bias, filters / rank)?,
            clamp: activation.bounds(),
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
    let zeros = [qx.1, qs.1, qy.1].map(i8::try_from);
    if let (DType::I8, [Ok(zero), Ok(0), Ok(zero_out)]) = (state_type, zeros) {
        let packed = PackedSvdfS8 {
            output: to,
            input: from,
            state: memory,
            scratch: Place::Scratch,
            shape,
            weights: 0,
            form: Form::General,
            zero: [zero, zero_out],
            multiplier: multipliers[1],
        };
        if let Some(step) = packed_step(lower, node, packed, multipliers[0])? {
            lower.push(node, "svdf", step, macs);
            return Ok(());
        }
    }
    let (weights, time_weights) = (lower.constant(w)?, lower.constant(v)?);
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

/// The step of a kernel that has the constants in a layout of its own, and these added; `None` where there is none for them. `into_state` scales the sums over
/// the features.
fn packed_step(
    lower: &mut Lower<'_>,
    node: &Node,
    op: PackedSvdfS8<Place>,
    into_state: Multiplier,
) -> Result<Option<Step<Place>>> {
    let signed = |bytes: Vec<u8>| -> Vec<i8> { bytes.into_iter().map(|byte| byte as i8).collect() };
    let (weights, times) = (
        signed(lower.bytes(input(node, 1)?)?),
        signed(lower.bytes(input(node, 2)?)?),
    );
    let bias = match optional(node, 3) {
        Some(bias) => {
            let bytes = lower.bytes(bias)?;
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| i32::from_le_bytes(*b))
                .collect()
        }
        None => vec![0; op.shape.units as usize],
    };
    let record = [0, into_state.mantissa, into_state.shift.into()];
    let channels = vec![record; (op.shape.units * op.shape.rank) as usize];
    let plain = PlainSvdf {
        features: PlainS8 {
            weights: &weights,
            channels: &channels,
        },
        times: &times,
        bias: &bias,
    };
    let Some(Choice { mut step, constants }) = select::svdf_s8(&lower.program, op, plain) else {
        return Ok(None);
    };
    let Constants::Packed { weights, .. } = constants else {
        return Err(Error::internal("a packed SVDF of plain constants"));
    };
    let weights = lower.program.weights.add_bytes(weights)?;
    step.set_constants(weights, weights);
    Ok(Some(step))
}
