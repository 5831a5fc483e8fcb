//! Scope of the subgraph that is being translated: places of its tensors in the graph, and its known values.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::constant::Constant;
use super::schema::{Model, Room, Subgraph};
use crate::graph::{Quant, TensorId};

/// A parameter of the file, by its number among the tensors of all subgraphs, and its elements.
pub(super) type Parameter = (usize, u64);

/// A subgraph under translation.
pub(super) struct Scope<'m, 'a> {
    /// Its number in the file; 0 is the main one.
    pub(super) number: usize,
    pub(super) graph: &'m Subgraph<'a>,
    /// Prefix of its names: the operators that run it, each with a slash behind it.
    pub(super) place: String,
    /// Whether it has been translated before.
    pub(super) again: bool,
    /// Its tensors that are in the graph.
    pub(super) map: Vec<Option<TensorId>>,
    /// Tensors whose value the import has computed.
    pub(super) folded: HashMap<usize, Constant<'a>>,
    /// Of these, those that the subgraph does not hold: the parameter that each repeats, if any.
    pub(super) made: HashMap<usize, Option<Parameter>>,
    /// The dense bytes of constants that the file stores sparsely, and of what DENSIFY makes of float16, which is no [`Constant`].
    pub(super) dense: HashMap<usize, Cow<'a, [u8]>>,
    /// Shapes that are not those that the file states: of what it leaves open, and of what is computed from that.
    pub(super) shapes: HashMap<usize, Vec<usize>>,
    /// Float32 constants that are made of int8 ones: those, and what these mean.
    pub(super) bytes: HashMap<usize, (usize, Quant)>,
    /// Of these, the numbers and the offsets of those that are kept apart from their zero points.
    pub(super) apart: HashMap<usize, (TensorId, Vec<f32>)>,
    /// INT64 tensors that are int32 on the device.
    pub(super) narrowed: HashSet<usize>,
    /// Handles: tensor -> variable.
    pub(super) handles: HashMap<usize, usize>,
}

impl<'m, 'a> Scope<'m, 'a> {
    /// Subgraph `number`, of which nothing is translated yet.
    pub(super) fn new(model: &'m Model<'a>, number: usize, place: String) -> Self {
        let graph = &model.subgraphs[number];
        Self {
            number,
            graph,
            place,
            again: false,
            map: vec![None; graph.tensors.len()],
            folded: HashMap::new(),
            made: HashMap::new(),
            dense: HashMap::new(),
            shapes: HashMap::new(),
            bytes: HashMap::new(),
            apart: HashMap::new(),
            narrowed: HashSet::new(),
            handles: HashMap::new(),
        }
    }

    /// The same subgraph, translated once more: what the file holds of it is in the graph already.
    pub(super) fn again(mut self) -> Self {
        let graph = self.graph;
        let bytes = &self.bytes;
        let held = |index: usize| graph.tensors[index].data.is_some() || bytes.contains_key(&index);
        for (index, id) in self.map.iter_mut().enumerate() {
            *id = id.filter(|_| held(index));
        }
        self.folded.retain(|&index, _| held(index));
        self.dense.retain(|&index, _| held(index));
        self.made.retain(|index, _| bytes.contains_key(index));
        self.shapes.clear();
        self.handles.clear();
        self.again = true;
        self
    }
}

/// Operators that all runs of subgraphs may become, those of conditions counted.
pub(super) const OPERATORS: usize = 1 << 14;
/// Subgraphs that run each other.
pub(super) const DEPTH: usize = 16;
/// So many times the file's bytes, and so many bytes besides, may the constants take that are read in all runs: some operators keep a copy of their own.
pub(super) const TIMES: usize = 1 << 10;
const BESIDES: usize = 64 << 20;

/// The subgraphs that operators run.
pub(super) struct Control<'m, 'a> {
    /// Those that have been translated, by number.
    pub(super) known: Vec<Option<Scope<'m, 'a>>>,
    /// How many run each other at the moment.
    pub(super) depth: usize,
    /// Operators that are left of [`OPERATORS`].
    pub(super) operators: usize,
    /// Bytes of constants that may still be read.
    pub(super) room: Room,
}

impl Control<'_, '_> {
    pub(super) fn new(model: &Model<'_>) -> Self {
        Self {
            known: Vec::new(),
            depth: 0,
            operators: OPERATORS,
            room: Room::new(model.len, TIMES, BESIDES),
        }
    }
}
