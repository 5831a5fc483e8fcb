//! The network as steps: what lowering makes of a graph, before offsets are known.

use std::collections::HashMap;
use std::sync::Arc;

use arenite::{Operand, Step, Target};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{DType, Data, Expr, Graph, Node, TensorId, TensorKind};
use crate::weights::Weights;

/// Steps in order, with the weights they read.
#[derive(Debug, Clone)]
pub struct Program {
    /// The graph after all passes.
    pub graph: Graph,
    /// What the blob is packed for.
    pub target: Target,
    /// Whether small code and weights are preferred over speed.
    pub size: bool,
    /// Whether tensors may share memory: operands placed inside a concatenation's or padding's result.
    pub share: bool,
    /// The steps.
    pub steps: Vec<LoweredStep>,
    /// Tensors that are a view of another one: the other, and the bytes from its start.
    pub views: HashMap<TensorId, (TensorId, u32)>,
    /// The weights section.
    pub weights: Section,
    /// The state slice: where each state tensor lies, and the initial bytes of all.
    pub state: State,
}

/// A step over places whose memory is still to be planned.
#[derive(Debug, Clone)]
pub struct LoweredStep {
    /// The operator's name in the trace.
    pub name: String,
    /// The kind in the summary: `conv2d`, `add` …
    pub kind: &'static str,
    /// The kernel, its places and its parameters.
    pub step: Step<Place>,
    /// Multiply-accumulates.
    pub macs: u64,
    /// The tensor that is complete after this step, for `arenite diff`.
    pub completes: Option<TensorId>,
}

/// Where an operand is, before memory is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Bytes of a tensor, from this byte on.
    Tensor(TensorId, u32),
    /// A constant at this offset of the weights.
    Constant(u32),
    /// The kernel's scratch.
    Scratch,
}

impl arenite::Place for Place {
    fn constant(offset: u32) -> Self {
        Place::Constant(offset)
    }
}

/// The weights section: pieces at offsets.
#[derive(Debug, Clone, Default)]
pub struct Section {
    pieces: Vec<Piece>,
    len: u32,
    tensors: HashMap<TensorId, u32>,
    blocked: HashMap<(TensorId, usize), u32>,
    literals: HashMap<Arc<[u8]>, u32>,
}

/// A piece of the weights section.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Bytes from the section's start.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
    /// Where they come from.
    pub content: Content,
}

/// Where the bytes of a piece come from.
#[derive(Debug, Clone)]
pub enum Content {
    /// They are here.
    Bytes(Arc<[u8]>),
    /// f32 values that stream from the weights source.
    Expr(Arc<Expr>),
}

/// The state slice.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Offset of each state tensor.
    pub offsets: HashMap<TensorId, u32>,
    /// The bytes after a reset.
    pub initial: Vec<u8>,
}

/// What lowering an operator needs at hand.
pub struct Lower<'a> {
    /// The program so far; its graph is complete.
    pub program: Program,
    /// Values of parameters.
    pub weights: &'a Weights,
}

/// What lowering goes by.
#[derive(Debug, Clone, Copy)]
pub struct Preferences {
    /// What the blob is packed for.
    pub target: Target,
    /// Whether its smallest kernels are wanted and not its fastest.
    pub size: bool,
    /// Whether operands may lie inside results.
    pub share: bool,
}

/// Lowers every node of `graph`.
///
/// # Errors
/// [`ErrorKind::Unsupported`] naming the operator.
pub fn lower(graph: Graph, preferences: Preferences, weights: &Weights) -> Result<Program> {
    let Preferences { target, size, share } = preferences;
    let mut state = State::default();
    for (index, tensor) in graph.tensors.iter().enumerate() {
        if let TensorKind::State(data) = &tensor.kind {
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
    let nodes = graph.nodes.clone();
    let program = Program {
        graph,
        target,
        size,
        share,
        steps: Vec::new(),
        views: HashMap::new(),
        weights: Section::default(),
        state,
    };
    let mut lower = Lower { program, weights };
    for node in &nodes {
        crate::ops::lower(&mut lower, node)
            .map_err(|e| e.at(format_args!("`{}` ({}), {}", node.name, node.kind, node.origin)))?;
    }
    Ok(lower.program)
}

impl Lower<'_> {
    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.program.graph
    }

    /// Appends a step of `node`.
    pub fn push(&mut self, node: &Node, kind: &'static str, step: Step<Place>, macs: u64) {
        let completes = node.outputs.first().copied();
        self.program.steps.push(LoweredStep {
            name: node.name.clone(),
            kind,
            step,
            macs,
            completes,
        });
    }

    /// The place of an operand: the arena, the state, or the weights for a constant.
    ///
    /// # Errors
    /// What reading the constant says.
    pub fn place(&mut self, id: TensorId) -> Result<Place> {
        match self.graph().tensor(id).kind {
            TensorKind::Const(_) => Ok(Place::Constant(self.constant(id)?)),
            _ => Ok(Place::Tensor(id, 0)),
        }
    }

    /// The offset of a constant tensor in the weights, as it is stored in the graph; added once.
    ///
    /// # Errors
    /// [`ErrorKind::DoesNotFit`] beyond 4 GiB of weights.
    pub fn constant(&mut self, id: TensorId) -> Result<u32> {
        if let Some(&offset) = self.program.weights.tensors.get(&id) {
            return Ok(offset);
        }
        let tensor = self.graph().tensor(id);
        let TensorKind::Const(data) = tensor.kind.clone() else {
            return Err(Error::internal(format!("`{}` is no constant", tensor.name)));
        };
        let offset = match data {
            Data::Bytes(bytes) => self.program.weights.add_bytes(bytes.to_vec())?,
            Data::Lazy(expr) => {
                let len = tensor.bytes();
                self.program.weights.add(len, Content::Expr(expr))?
            }
        };
        self.program.weights.tensors.insert(id, offset);
        Ok(offset)
    }

    /// The offset of weights `[out, ...]` in the layout `[out / channels, ..., channels]`; added once. `channels` divides `out`. They
    /// stream like all weights, so that a large network's are never in memory together.
    ///
    /// # Errors
    /// As [`Lower::constant`].
    pub fn blocked(&mut self, id: TensorId, channels: usize) -> Result<u32> {
        if let Some(&offset) = self.program.weights.blocked.get(&(id, channels)) {
            return Ok(offset);
        }
        let tensor = self.graph().tensor(id);
        let (TensorKind::Const(data), Some(&out)) = (&tensor.kind, tensor.shape.first()) else {
            return Err(Error::internal(format!("`{}` is no constant", tensor.name)));
        };
        let (bytes, taps) = (tensor.bytes(), tensor.elements() / out.max(1));
        let rows = Expr::Reshape {
            of: data.to_expr(&tensor.shape),
            shape: vec![out / channels, channels, taps],
        };
        let expr = Expr::Permute {
            of: Arc::new(rows),
            perm: vec![0, 2, 1],
        };
        let offset = self.program.weights.add(bytes, Content::Expr(Arc::new(expr)))?;
        self.program.weights.blocked.insert((id, channels), offset);
        Ok(offset)
    }

    /// The f32 values of a small constant.
    ///
    /// # Errors
    /// Where it is no f32 constant, or its parameters cannot be read.
    pub fn values(&self, id: TensorId) -> Result<Vec<f32>> {
        let tensor = self.graph().tensor(id);
        match &tensor.kind {
            TensorKind::Const(data) if tensor.dtype == DType::F32 => {
                self.weights.evaluate(&data.to_expr(&tensor.shape))
            }
            _ => {
                Err(Error::unsupported(format!("`{}` is computed by the network", tensor.name)).expected("a constant"))
            }
        }
    }

    /// The bytes of a constant.
    ///
    /// # Errors
    /// As [`Lower::values`].
    pub fn bytes(&self, id: TensorId) -> Result<Vec<u8>> {
        let tensor = self.graph().tensor(id);
        match &tensor.kind {
            TensorKind::Const(Data::Bytes(bytes)) => Ok(bytes.to_vec()),
            TensorKind::Const(Data::Lazy(expr)) => Ok(self
                .weights
                .evaluate(expr)?
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .collect()),
            _ => {
                Err(Error::unsupported(format!("`{}` is computed by the network", tensor.name)).expected("a constant"))
            }
        }
    }

    /// Lets `part` lie inside `whole`, from byte `offset` on, if nothing speaks against it: whoever writes it then writes there.
    pub fn place_inside(&mut self, part: TensorId, whole: TensorId, offset: u32) -> bool {
        let graph = self.graph();
        let (part_tensor, whole_tensor) = (graph.tensor(part), graph.tensor(whole));
        let free = matches!(part_tensor.kind, TensorKind::Activation)
            && matches!(whole_tensor.kind, TensorKind::Activation)
            && !graph.outputs.contains(&part);
        // A view of another tensor, or a tensor that lies inside another one already, has its place.
        let root = self.program.root(part) == (part, 0) && self.program.root(whole) == (whole, 0);
        let same = part_tensor.quant == whole_tensor.quant && part_tensor.dtype == whole_tensor.dtype;
        if self.program.share && free && root && same {
            self.view(part, whole, offset);
            return true;
        }
        false
    }

    /// `output` is `input` seen otherwise, from byte `offset` on.
    pub fn view(&mut self, output: TensorId, input: TensorId, offset: u32) {
        // A view of a view is one of what that sees, so that a chain of them is no longer than it must be.
        let (root, at) = self.program.root(input);
        self.program.views.insert(output, (root, at + offset));
    }
}

impl LoweredStep {
    /// Its operands; the output comes first, and constants beside those that could be elsewhere come last.
    pub fn operands(&self) -> Vec<Operand<Place>> {
        let mut operands = Vec::new();
        self.step.operands(&mut |operand| operands.push(operand));
        operands
    }

    /// The places that the step states, without the constants that are always in the weights.
    pub fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        self.step.each_place(&mut |place| places.push(place));
        places
    }
}

impl Program {
    /// The tensor that owns the memory of `id`, and the bytes from its start.
    pub fn root(&self, id: TensorId) -> (TensorId, u32) {
        let (mut id, mut offset) = (id, 0);
        while let Some(&(of, bytes)) = self.views.get(&id) {
            id = of;
            offset += bytes;
        }
        (id, offset)
    }
}

impl Section {
    /// Adds `len` bytes, aligned for any kernel; returns their offset.
    ///
    /// # Errors
    /// [`ErrorKind::DoesNotFit`] beyond 4 GiB.
    pub fn add(&mut self, len: usize, content: Content) -> Result<u32> {
        let too_large = || Error::new(ErrorKind::DoesNotFit, "the weights need more than 4 GiB");
        let offset = self
            .len
            .checked_next_multiple_of(arenite::MODEL_ALIGN as u32)
            .ok_or_else(too_large)?;
        let len = u32::try_from(len).map_err(|_| too_large())?;
        self.len = offset.checked_add(len).ok_or_else(too_large)?;
        self.pieces.push(Piece { offset, len, content });
        Ok(offset)
    }

    /// Adds bytes, unless the same bytes are there already; returns their offset.
    ///
    /// # Errors
    /// As [`Section::add`].
    pub fn add_bytes(&mut self, bytes: Vec<u8>) -> Result<u32> {
        if let Some(&offset) = self.literals.get(bytes.as_slice()) {
            return Ok(offset);
        }
        let bytes: Arc<[u8]> = bytes.into();
        let offset = self.add(bytes.len(), Content::Bytes(bytes.clone()))?;
        self.literals.insert(bytes, offset);
        Ok(offset)
    }

    /// Adds f32 values.
    ///
    /// # Errors
    /// As [`Section::add`].
    pub fn add_f32(&mut self, values: &[f32]) -> Result<u32> {
        self.add_bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// Adds i32 values.
    ///
    /// # Errors
    /// As [`Section::add`].
    pub fn add_i32(&mut self, values: &[i32]) -> Result<u32> {
        self.add_bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// The pieces, in the order of their offsets.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Bytes of the section.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no weights.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
