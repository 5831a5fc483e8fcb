//! The network as steps: what lowering makes of a graph, before offsets are known.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arenite::{Declaration, Operand, Step, Target};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Expr, Graph, TensorId};

/// Steps in order, with the weights they read.
#[derive(Debug, Clone)]
pub struct Program {
    /// The graph after all passes.
    pub graph: Graph,
    /// Target that the blob is packed for.
    pub target: Target,
    /// Whether small code and weights are preferred over speed.
    pub size: bool,
    /// Whether tensors may share memory: operands placed inside a concatenation's or padding's result.
    pub share: bool,
    /// The steps.
    pub steps: Vec<LoweredStep>,
    /// Tensors that are a view of another one: the other, and the bytes from its start.
    pub views: HashMap<TensorId, (TensorId, u32)>,
    /// Those that take the other one's place piece by piece, while other pieces of it are still read: a proof tells their bytes apart.
    pub over: HashSet<TensorId>,
    /// The weights section.
    pub weights: Constants,
    /// The state slice: where each state tensor lies, and the initial bytes of all.
    pub state: State,
    /// Which core runs which step.
    pub assigned: Assigned,
}

/// Which core runs each step, where several do.
#[derive(Debug, Clone, Default)]
pub struct Assigned {
    /// How many cores; 0 where one runs all.
    pub cores: usize,
    /// A byte for each step, as the file has it: its core, and [`arenite::BARRIER`]. None where one core runs all.
    pub steps: Vec<u8>,
    /// The accelerator that has the steps of core 1; the number of cores is 0 then.
    pub accelerator: Option<Declaration>,
    /// The steps of which it has a part.
    pub shared: Vec<Shared>,
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
    /// The page of the weights that its constants lie on.
    pub page: u32,
    /// Whether it is handed to an accelerator.
    pub handed: bool,
    /// The same step as the core would compute it, where the accelerator may leave a part of it to the core.
    pub own: Option<Box<Own>>,
}

/// A step that is handed over, with the core's kernels.
#[derive(Debug, Clone)]
pub struct Own {
    /// The step.
    pub step: LoweredStep,
    /// Bytes of weights that it has for itself.
    pub bytes: u32,
    /// Cost of the whole step on the accelerator and on the core, in the same terms; `None` where that is not known.
    pub takes: Option<[u64; 2]>,
}

/// The name of part `index`, of `count`, of a layer or its tensor that is computed by output channels.
pub fn name_of_part(whole: &str, index: usize, count: usize) -> String {
    format!("{whole} ({}/{count})", index + 1)
}

/// A step that an accelerator and the core compute in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// The operator's name in the trace.
    pub name: String,
    /// Multiply-accumulates of the accelerator's part and of the core's.
    pub macs: [u64; 2],
    /// Cost of the whole step on each of them ([`Own::takes`]).
    pub takes: [u64; 2],
    /// Cost of its part on the one that takes longer.
    pub longest: u64,
    /// Bytes of weights that are there for the core's part alone.
    pub bytes: u64,
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

/// The constants of the weights section: pieces at offsets. In pages, each of which begins at offset 0, where the steps are to become a model in pieces.
#[derive(Debug, Clone, Default)]
pub struct Constants {
    pieces: Vec<Piece>,
    len: u32,
    page: u32,
    /// Offsets of tensors that are there as the graph has them.
    pub tensors: HashMap<TensorId, u32>,
    /// Offsets of weights in blocks of so many output channels.
    pub blocked: HashMap<(TensorId, usize), u32>,
    literals: HashMap<Arc<[u8]>, u32>,
}

/// A piece of the weights section.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The page.
    pub page: u32,
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
    /// The first step of those that run at one time with each step: itself, where one core runs all.
    pub fn moments(&self) -> Vec<usize> {
        let mut first = 0;
        let of = |index: usize| {
            let on = self.assigned.steps.get(index);
            if on.is_none_or(|on| on & arenite::BARRIER != 0) {
                first = index;
            }
            first
        };
        (0..self.steps.len()).map(of).collect()
    }

    /// The tensor whose bytes those of `id` are: the one that owns the memory, or one that is written over it.
    pub fn owner(&self, mut id: TensorId) -> TensorId {
        while let Some(&(of, _)) = self.views.get(&id).filter(|_| !self.over.contains(&id)) {
            id = of;
        }
        id
    }

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

impl Constants {
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
        self.pieces.push(Piece {
            page: self.page,
            offset,
            len,
            content,
        });
        Ok(offset)
    }

    /// Adds bytes, unless the same bytes are there already; returns their offset.
    ///
    /// # Errors
    /// As [`Constants::add`].
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
    /// As [`Constants::add`].
    pub fn add_f32(&mut self, values: &[f32]) -> Result<u32> {
        self.add_bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// Adds i32 values.
    ///
    /// # Errors
    /// As [`Constants::add`].
    pub fn add_i32(&mut self, values: &[i32]) -> Result<u32> {
        self.add_bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// Begins a page, if there is anything on this one: what was added so far is not there for the steps that follow.
    pub fn turn_page(&mut self) {
        if self.len == 0 {
            return;
        }
        (self.page, self.len) = (self.page + 1, 0);
        self.tensors.clear();
        self.blocked.clear();
        self.literals.clear();
    }

    /// The page that constants are added to.
    pub fn page(&self) -> u32 {
        self.page
    }

    /// The bytes of a section of one page; zeros where they are not here.
    pub fn known(&self) -> Vec<u8> {
        let mut known = vec![0; self.len as usize];
        for piece in &self.pieces {
            let place = known.get_mut(piece.offset as usize..).unwrap_or_default();
            if let Content::Bytes(bytes) = &piece.content {
                place.iter_mut().zip(bytes.iter()).for_each(|(to, from)| *to = *from);
            }
        }
        known
    }

    /// The pieces, in the order of their pages and offsets.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Bytes of the section, or of its last page.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no weights.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
