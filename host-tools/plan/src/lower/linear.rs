//! Linear layers. An int8 one is a convolution of one row of pixels with a 1 x 1 kernel: the arithmetic is the same. So is an f32 one where that
//! is faster.

use arenite::ops::conv2d::Conv2dF32;
use arenite::ops::linear::LinearF32;
use arenite::ops::window::Window2d;
use arenite::{DType, Target};

use super::context::{Lower, fit, input, optional, output, want_f32};
use super::conv2d::{choose_f32, convolution_bias_f32, push_f32, push_s8, push_s16};
use super::low_bit;
use super::numbers::{clamp_s8, linear_multipliers, per_tensor};
use super::s8::S8;
use super::select::{Constants, linear_f32};
use crate::error::Result;
use crate::graph::{Activation, Graph, Node, Op, TensorId, TensorKind};
use crate::program::Place;

/// Lowers a linear layer of f32, int8 or int16 activations.
pub(super) fn lower(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    match lower.graph().tensor(input(node, 0)?).dtype {
        DType::I8 => return lower_s8(lower, node, activation),
        DType::I16 => return lower_s16(lower, node, activation),
        _ => {}
    }
    want_f32(lower.graph(), node)?;
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let (outputs, inputs) = (lower.graph().tensor(w).shape[0], lower.graph().tensor(w).shape[1]);
    let rows = lower.graph().tensor(x).elements() / inputs.max(1);
    let macs = (rows * inputs * outputs) as u64;
    if let Some(&bits) = lower.graph().low_bits.get(&node.name) {
        let window = one_row(
            fit(rows, "the number of rows")?,
            fit(inputs, "the number of inputs")?,
            fit(outputs, "the number of outputs")?,
        );
        return low_bit::push_f32(lower, node, (window, 1), bits, activation, ("linear", macs));
    }
    if let Some(op) = as_convolution(lower, node, [rows, inputs, outputs], activation)? {
        let choice = choose_f32(lower, node, op)?;
        // A kernel of plain weights is no better than the dot products of a linear layer.
        if !matches!(choice.constants, Constants::Plain) {
            return push_f32(lower, node, "linear", choice, macs);
        }
    }
    let bias = match optional(node, 2) {
        Some(bias) => lower.place(bias)?,
        None => Place::Constant(lower.bias_f32(None, outputs)?),
    };
    let op = LinearF32 {
        output: Place::Tensor(y, 0),
        input: lower.place(x)?,
        weights: lower.place(w)?,
        bias,
        rows: fit(rows, "the number of rows")?,
        inputs: fit(inputs, "the number of inputs")?,
        outputs: fit(outputs, "the number of outputs")?,
        clamp: activation.bounds(),
    };
    let step = linear_f32(&lower.program, op)?;
    lower.push(node, "linear", step, macs);
    Ok(())
}

/// An f32 layer of constant weights as a convolution of one row of pixels, for cores whose convolutions take fewer instructions than the scalar dot
/// product: 1.25 a MAC with an FPU, against 3, and 0.36 with NEON.
fn as_convolution(
    lower: &mut Lower<'_>,
    node: &Node,
    [rows, inputs, outputs]: [usize; 3],
    activation: Activation,
) -> Result<Option<Conv2dF32<Place>>> {
    let constant = |id: TensorId| matches!(lower.graph().tensor(id).kind, TensorKind::Const(_));
    let bias = optional(node, 2);
    let sizes = [rows, inputs, outputs].map(u16::try_from);
    let faster = matches!(
        lower.program.target,
        Target::CortexM4
            | Target::CortexM7
            | Target::CortexM33
            | Target::CortexM55
            | Target::Aarch64
            | Target::Aarch64Dotprod
            | Target::Aarch64I8mm
            | Target::Aarch64Sme
            | Target::X8664
    );
    let [Ok(rows), Ok(inputs), Ok(outs)] = sizes else {
        return Ok(None);
    };
    // A table that is read by its rows as well stays as it is, once.
    let shared = is_table(lower.graph(), input(node, 1)?);
    if !faster || shared || lower.program.size || !constant(input(node, 1)?) || !bias.is_none_or(constant) {
        return Ok(None);
    }
    Ok(Some(Conv2dF32 {
        output: Place::Tensor(output(node)?, 0),
        input: lower.place(input(node, 0)?)?,
        residual: None,
        scratch: Place::Scratch,
        weights: 0,
        bias: convolution_bias_f32(lower, bias, outputs)?,
        window: one_row(rows, inputs, outs),
        groups: 1,
        clamp: activation.bounds(),
    }))
}

/// Whether rows of a tensor are looked up.
fn is_table(graph: &Graph, id: TensorId) -> bool {
    let mut nodes = graph.nodes.iter();
    nodes.any(|node| matches!(node.op, Op::Embedding) && node.inputs.get(1) == Some(&Some(id)))
}

/// The window of a linear layer: `rows` pixels in one row.
fn one_row(rows: u16, inputs: u16, outputs: u16) -> Window2d {
    Window2d {
        batch: 1,
        input: [1, rows, inputs],
        output: [1, rows, outputs],
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    }
}

fn lower_s8(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    let (x, w, y) = (input(node, 0)?, input(node, 1)?, output(node)?);
    let graph = lower.graph();
    let (outputs, inputs) = (graph.tensor(w).shape[0], graph.tensor(w).shape[1]);
    let rows = graph.tensor(x).elements() / inputs.max(1);
    let (input_q, output_q) = (per_tensor(graph.tensor(x))?, per_tensor(graph.tensor(y))?);
    let multipliers = linear_multipliers(graph.tensor(w), outputs, input_q.0, output_q.0)?;
    let clamp = clamp_s8(activation, output_q)?;
    let window = one_row(
        fit(rows, "the number of rows")?,
        fit(inputs, "the number of inputs")?,
        fit(outputs, "the number of outputs")?,
    );
    let conv = S8 {
        window,
        groups: 1,
        input_q,
        output_q,
        clamp,
        multipliers,
    };
    push_s8(lower, node, "linear", conv, (rows * inputs * outputs) as u64)
}

fn lower_s16(lower: &mut Lower<'_>, node: &Node, activation: Activation) -> Result<()> {
    let (x, w) = (input(node, 0)?, input(node, 1)?);
    let (outputs, inputs) = (lower.graph().tensor(w).shape[0], lower.graph().tensor(w).shape[1]);
    let rows = lower.graph().tensor(x).elements() / inputs.max(1);
    let window = one_row(
        fit(rows, "the number of rows")?,
        fit(inputs, "the number of features")?,
        fit(outputs, "the number of features")?,
    );
    push_s16(
        lower,
        node,
        window,
        1,
        activation,
        ("linear", (rows * inputs * outputs) as u64),
    )
}
