//! The host's half of each operator: how it is lowered to steps. One file an operator, named as in `core/src/ops`.

mod arg_max;
mod conv2d;
mod conv2d_int;
mod convert;
mod elementwise;
mod elementwise_int;
mod linear;
mod locally_connected;
mod lrn;
mod lstm;
mod movement;
mod pool2d;
mod reduce;
mod resize;
mod select;
mod softmax;
mod svdf;

use arenite::ops::resize::Interpolation;

use crate::error::{Error, Result};
use crate::graph::{Activation, Graph, Node, Op, TensorId};
use crate::program::{Lower, Place};

/// Appends the steps of `node`.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] for what no kernel computes.
pub fn lower(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    match &node.op {
        Op::Conv2d(attrs) => conv2d::lower(lower, node, attrs),
        Op::LocallyConnected2d { activation } => locally_connected::lower(lower, node, *activation),
        Op::Linear { activation } => linear::lower(lower, node, *activation),
        Op::MaxPool2d(attrs) => pool2d::lower(lower, node, attrs, true),
        Op::AvgPool2d(attrs) => pool2d::lower(lower, node, attrs, false),
        Op::Binary { kind, activation } => elementwise::lower_binary(lower, node, *kind, *activation),
        Op::Unary(kind) => elementwise::lower_unary(lower, node, *kind),
        Op::Lrn {
            axis,
            radius,
            bias,
            alpha,
            beta,
        } => lrn::lower(lower, node, *axis, *radius, [*bias, *alpha, *beta]),
        Op::Softmax { axis, beta } => softmax::lower(lower, node, *axis, *beta, false),
        Op::LogSoftmax { axis } => softmax::lower(lower, node, *axis, 1.0, true),
        Op::Reduce { kind, axes, .. } => reduce::lower(lower, node, *kind, axes),
        Op::Reshape | Op::Identity => {
            let (input, output) = (input(node, 0)?, output(node)?);
            movement::alias(lower, node, input, output)
        }
        Op::Transpose { perm } => movement::lower_transpose(lower, node, perm),
        Op::Pad { pads, value } => movement::lower_pad(lower, node, pads, *value),
        Op::Concat { axis, activation } => movement::lower_concat(lower, node, *axis, *activation),
        Op::Slice { begin, stride } => movement::lower_slice(lower, node, begin, stride),
        Op::ArgMax { axis } => arg_max::lower(lower, node, *axis),
        Op::ResizeNearest {
            align_corners,
            half_pixel_centers,
        } => resize::lower(lower, node, Interpolation::Nearest, *align_corners, *half_pixel_centers),
        Op::ResizeBilinear {
            align_corners,
            half_pixel_centers,
        } => resize::lower(
            lower,
            node,
            Interpolation::Bilinear,
            *align_corners,
            *half_pixel_centers,
        ),
        Op::Quantize => convert::lower_quantize(lower, node),
        Op::Dequantize => convert::lower_dequantize(lower, node),
        Op::Cast => convert::lower_cast(lower, node),
        Op::Svdf { rank, activation } => svdf::lower(lower, node, *rank, *activation),
        Op::UnidirectionalLstm { time_major, cell_clip } => lstm::lower(lower, node, *time_major, *cell_clip),
        Op::ReadState => {
            let (state, output) = (input(node, 0)?, output(node)?);
            movement::copy_all(lower, node, "read_state", state, output)
        }
        Op::AssignState => {
            let (state, value) = (input(node, 0)?, input(node, 1)?);
            movement::copy_all(lower, node, "assign_state", value, state)
        }
        Op::MatMul { .. } | Op::Affine | Op::BatchNorm { .. } | Op::Opaque => {
            Err(Error::unsupported(format!("no kernel computes {}", node.kind))
                .help("leave it out of the network, or compute it in the application"))
        }
    }
}

/// A copy to the first place from the second, along axes of (extent, stride in the destination, stride in the source), in elements of `element` bytes, outermost first; it
/// begins at element `from` of a source of `len` elements.
pub(crate) fn copy_elements(
    places: [Place; 2],
    element: usize,
    from: usize,
    len: usize,
    axes: &[(usize, usize, usize)],
) -> Option<arenite::Step<Place>> {
    movement::copy_elements(places, element, from, len, axes)
}

/// Operand `index`.
pub(crate) fn input(node: &Node, index: usize) -> Result<TensorId> {
    let missing = || Error::input(format!("operand {index} is missing"));
    node.inputs.get(index).copied().flatten().ok_or_else(missing)
}

/// The only result.
pub(crate) fn output(node: &Node) -> Result<TensorId> {
    match node.outputs[..] {
        [output] => Ok(output),
        _ => Err(Error::input(format!("{} results", node.outputs.len())).expected("one")),
    }
}

/// The clamp of a fused activation on real numbers.
pub(crate) fn clamp(activation: Activation) -> [f32; 2] {
    match activation {
        Activation::None => [f32::NEG_INFINITY, f32::INFINITY],
        Activation::Relu => [0.0, f32::INFINITY],
        Activation::Relu6 => [0.0, 6.0],
        Activation::ReluN1To1 => [-1.0, 1.0],
    }
}

/// `value` in the narrower type of a step's field.
pub(crate) fn fit<T: TryFrom<usize>>(value: usize, what: &str) -> Result<T> {
    let too_large = || Error::unsupported(format!("{what} is {value}"));
    T::try_from(value).map_err(|_| too_large().expected(format!("at most {} bits", 8 * size_of::<T>())))
}

/// Refuses a node whose tensors are not all f32.
pub(crate) fn want_f32(graph: &Graph, node: &Node) -> Result<()> {
    let all = node.inputs.iter().flatten().chain(&node.outputs);
    match all.map(|&id| graph.tensor(id)).find(|t| t.dtype != arenite::DType::F32) {
        None => Ok(()),
        Some(t) => Err(Error::unsupported(format!(
            "no kernel computes {} on {} (`{}`)",
            node.kind,
            t.dtype.name(),
            t.name
        ))),
    }
}
