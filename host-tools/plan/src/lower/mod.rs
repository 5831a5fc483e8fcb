//! From the graph to steps: one file an operator, named as in `core/src/ops`.
//!
//! Shared parts of the operators lie below them, in leaves: [`context`] (the program so far, a node's operands), `numbers` (scales and multipliers), `loops`,
//! `windows`, `copies`, and `select`, which chooses kernels.

mod arg_max;
mod attention;
mod choose;
mod concat;
pub mod context;
mod conv2d;
pub(crate) mod convert;
pub mod copies;
mod detections;
mod elementwise;
pub mod elementwise_int;
mod embedding;
mod ethos_u;
mod l2_norm;
mod linear;
mod linear_sums;
mod locally_connected;
mod loops;
pub mod low_bit;
mod lrn;
mod lstm;
mod matmul;
pub mod numbers;
mod pad;
mod pool2d;
mod position;
pub(crate) mod reduce;
mod resize;
mod rms_norm;
mod rotary;
mod s8;
pub mod select;
pub(crate) mod signal;
mod slice;
mod softmax;
mod special_int;
mod svdf;
mod table_s16;
mod train;
mod transpose;
mod windows;
mod write_line;

use std::collections::{BTreeSet, HashMap, HashSet};

pub use select::constant_bytes;
pub use select::spends_flash;

use arenite::ops::resize::Interpolation;
use arenite::{KernelId, Target};

use self::context::{Lower, input, output};
use crate::accelerator::Handing;
use crate::error::{Error, Result};
use crate::graph::{Activation, Data, Graph, Node, Op, TensorId, TensorKind, facts};
use crate::program::{Assigned, Constants, LoweredStep, Own, Program, State};
use crate::weights::Weights;

/// Preferences of lowering.
#[derive(Debug, Clone, Copy)]
pub struct Preferences<'a> {
    /// Target that the blob is packed for.
    pub target: Target,
    /// Whether its smallest kernels are wanted and not its fastest.
    pub size: bool,
    /// Whether operands may lie inside results.
    pub share: bool,
    /// Whether kernels may take larger constants for speed: those of all layers but these.
    pub spend: Option<&'a BTreeSet<String>>,
    /// Cost by which kernels are compared.
    pub cost: context::Cost,
    /// Kernels that int8 convolutions are not to have.
    pub without: &'a [KernelId],
    /// Whether the constants of each node lie on a page of their own.
    pub paged: bool,
    /// Accelerator that steps are handed to.
    pub accelerator: Option<Handing<'a>>,
}

/// Lowers every node of `graph`.
///
/// # Errors
/// [`crate::error::ErrorKind::Unsupported`] naming the operator.
pub fn lower(graph: Graph, preferences: Preferences<'_>, weights: &Weights) -> Result<Program> {
    lower_beside(graph, preferences, weights, Constants::default())
}

/// As [`lower`], with constants behind those of another program, whose tensors have the same numbers: both read one section of weights.
///
/// # Errors
/// As [`lower`].
pub fn lower_beside(
    graph: Graph,
    preferences: Preferences<'_>,
    weights: &Weights,
    constants: Constants,
) -> Result<Program> {
    let Preferences {
        target,
        size,
        share,
        spend,
        cost,
        without,
        paged,
        accelerator,
    } = preferences;
    let state = state_of(&graph, weights)?;
    let nodes = graph.nodes.clone();
    let mut without = without.to_vec();
    if select::has_no_vectors(target) && !facts::doubles_weights(&graph) {
        without.push(KernelId::IntDenseS8);
    }
    let program = Program {
        graph,
        target,
        size,
        share,
        steps: Vec::new(),
        views: HashMap::new(),
        over: HashSet::new(),
        weights: constants,
        state,
        assigned: Assigned::default(),
    };
    let mut lower = Lower {
        program,
        weights,
        spend,
        cost,
        without,
        handed: None,
    };
    for (index, node) in nodes.iter().enumerate() {
        let taken = accelerator.filter(|handing| handing.takes(&lower.program.graph, index));
        lower.handed = taken.map(|handing| handing.declared);
        // Its kernels and its layout of weights.
        lower.program.target = taken.map_or(target, |handing| handing.accelerator.kernels);
        if paged {
            lower.program.weights.turn_page();
        }
        let first = lower.program.steps.len();
        let shared = taken.is_some_and(|handing| handing.shares(node));
        lower_node(&mut lower, node)
            .and_then(|()| {
                if shared {
                    add_own(&mut lower, node, first, target)
                } else {
                    Ok(())
                }
            })
            .map_err(|e| e.at(facts::place(&lower.program.graph, node)))?;
    }
    lower.program.target = target;
    Ok(lower.program)
}

/// The state slice of a graph: its states one behind the other, each at an address for any kernel; trained parameters whose length would leave a gap come last.
fn state_of(graph: &Graph, weights: &Weights) -> Result<State> {
    let mut state = State::default();
    for last in [false, true] {
        for (index, tensor) in graph.tensors.iter().enumerate() {
            let TensorKind::State(data) = &tensor.kind else {
                continue;
            };
            let leaves_gap = matches!(data, Data::Lazy(_)) && !tensor.bytes().is_multiple_of(arenite::ARENA_ALIGN);
            if leaves_gap != last {
                continue;
            }
            let at = state.initial.len().next_multiple_of(arenite::ARENA_ALIGN);
            state.initial.resize(at, 0);
            match data {
                Data::Bytes(bytes) => state.initial.extend_from_slice(bytes),
                Data::Lazy(expr) => {
                    let values = weights.evaluate(expr)?;
                    state.initial.extend(values.iter().flat_map(|v| v.to_le_bytes()));
                }
            }
            state.offsets.insert(TensorId(index), at as u32);
        }
    }
    Ok(state)
}

/// Lowers `node`, whose steps from `first` on are handed over, for the core as well, where both are one step and touch the same tensors.
fn add_own(lower: &mut Lower<'_>, node: &Node, first: usize, target: Target) -> Result<()> {
    if !matches!(&lower.program.steps[first..], [step] if step.handed) {
        return Ok(());
    }
    let before = lower.program.clone();
    // Flash is spent on speed for whole steps alone.
    let spend = lower.spend.take();
    (lower.handed, lower.program.target) = (None, target);
    let lowered = lower_node(lower, node);
    lower.spend = spend;
    lowered?;
    let made = &mut lower.program;
    let alike = made.views.len() == before.views.len() && made.graph.tensors.len() == before.graph.tensors.len();
    let bytes = made.weights.len() - before.weights.len();
    let own = made.steps.split_off(first + 1);
    match (<[LoweredStep; 1]>::try_from(own), made.steps.last_mut()) {
        (Ok([step]), Some(handed)) if alike => {
            let takes = None;
            handed.own = Some(Box::new(Own { step, bytes, takes }));
        }
        _ => lower.program = before,
    }
    Ok(())
}

/// Whether the first operand of `node` is of quantised integers.
fn integers(lower: &Lower<'_>, node: &Node) -> Result<bool> {
    let dtype = lower.graph().tensor(input(node, 0)?).dtype;
    Ok(matches!(dtype, arenite::DType::I8 | arenite::DType::I16))
}

/// Appends the steps of `node`.
fn lower_node(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    match &node.op {
        Op::Conv2d(attrs) => conv2d::lower(lower, node, attrs),
        Op::LocallyConnected2d { activation } => locally_connected::lower(lower, node, *activation),
        Op::Linear { activation } => linear::lower(lower, node, *activation),
        Op::MaxPool2d(attrs) => pool2d::lower(lower, node, attrs, true),
        Op::AvgPool2d(attrs) => pool2d::lower(lower, node, attrs, false),
        Op::Binary { kind, activation } => elementwise::lower_binary(lower, node, *kind, *activation),
        Op::SpecialBinary { kind } => elementwise::lower_special_binary(lower, node, *kind),
        Op::SpecialInt { kind, activation } => special_int::lower(lower, node, *kind, *activation),
        Op::Compare { kind } => choose::lower_compare(lower, node, *kind),
        Op::Choose => choose::lower(lower, node),
        Op::Gather { axis } => choose::lower_gather(lower, node, *axis),
        Op::Broadcast => copies::broadcast(lower, node),
        Op::MatMul {
            transpose_a,
            transpose_b,
        } if integers(lower, node)? => matmul::lower(lower, node, *transpose_a, *transpose_b),
        // Rows by rows of a second activation are a linear layer's loop.
        Op::MatMul {
            transpose_a: false,
            transpose_b: true,
        } if lower.graph().tensor(input(node, 1)?).shape.len() == 2 => linear::lower(lower, node, Activation::None),
        Op::Unary(kind) => elementwise::lower_unary(lower, node, *kind),
        Op::Lookup { name, table } => convert::push_table(lower, node, name, table),
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
            copies::alias(lower, node, input, output)
        }
        Op::Transpose { perm } => transpose::lower(lower, node, perm),
        Op::Pad { pads, value } => pad::lower(lower, node, pads, *value),
        Op::Concat { axis, activation } => concat::lower(lower, node, *axis, *activation),
        Op::Slice { begin, stride } => slice::lower(lower, node, begin, stride),
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
        Op::Signal(signal) => signal::lower(lower, node, signal),
        Op::L2Norm => l2_norm::lower(lower, node),
        Op::Detections(detector) => detections::lower(lower, node, detector),
        Op::EthosU(attrs) => ethos_u::lower(lower, node, attrs),
        Op::Train(op) => train::lower(lower, node, op),
        Op::Attention { scale } => attention::lower(lower, node, *scale),
        Op::Embedding => embedding::lower(lower, node),
        Op::RmsNorm { epsilon } => rms_norm::lower(lower, node, *epsilon),
        Op::Rotary { interleaved } => rotary::lower(lower, node, *interleaved),
        Op::Position { capacity } => position::lower(lower, node, *capacity),
        Op::WriteLine => write_line::lower(lower, node),
        Op::ReadState => {
            let (state, output) = (input(node, 0)?, output(node)?);
            copies::copy_all(lower, node, "read_state", state, output)
        }
        Op::AssignState => {
            let (state, value) = (input(node, 0)?, input(node, 1)?);
            copies::copy_all(lower, node, "assign_state", value, state)
        }
        Op::BatchNorm {
            axis,
            epsilon,
            trained: true,
            ..
        } => train::batch_norm(lower, node, *axis, *epsilon),
        Op::MatMul { .. } | Op::Affine | Op::BatchNorm { .. } | Op::Opaque => {
            Err(Error::unsupported(format!("no kernel computes {}", node.kind))
                .help("leave it out of the network, or compute it in the application"))
        }
    }
}
