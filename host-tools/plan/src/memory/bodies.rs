//! Bodies that want a place in the arena: one for each root tensor, one for each step's scratch, and their permitted overlaps.
//!
//! Liveness is kept per byte range: a tensor that is written or read piece by piece (a concatenation's operands inside its result, rows
//! that stream through a line buffer) is a body of parts, each alive only from its first to its last use.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arenite::{Access, Declaration};

use super::lifetimes::{self, Life, Moment, Touch, in_arena};
use super::plan::{Buffer, Part, Problem, Relation};
use crate::graph::TensorId;
use crate::program::{Place, Program};

/// Everything that wants a place, and what may overlap.
#[derive(Debug, Clone)]
pub struct Bodies {
    /// The planner's problem over all of them.
    pub problem: Problem,
    /// The body of each root tensor in the arena.
    tensors: HashMap<TensorId, usize>,
    /// The body of each step's scratch.
    scratch: HashMap<usize, usize>,
    /// Bytes that steps read and write in each body, over the whole run.
    pub traffic: Vec<u64>,
    /// The regions that each body may lie in, a bit for each.
    pub regions: Vec<u8>,
    /// Number of steps, at least 1.
    steps: usize,
}

/// Any region.
const ANYWHERE: u8 = u8::MAX;

/// Collects the bodies of a program: one for each root tensor that lives in the arena, one for each step's scratch.
pub fn bodies(program: &Program, in_place: bool) -> Bodies {
    let graph = &program.graph;
    let steps = program.steps.len().max(1);
    let mut touches: HashMap<TensorId, Vec<Touch>> = HashMap::new();
    let mut order: Vec<TensorId> = Vec::new();
    for touch in lifetimes::of_program(program) {
        if in_arena(graph, touch.root) {
            let known = touches.entry(touch.root).or_default();
            if known.is_empty() {
                order.push(touch.root);
            }
            known.push(touch);
        }
    }
    let mut bodies = Bodies {
        problem: Problem::default(),
        tensors: HashMap::new(),
        scratch: HashMap::new(),
        traffic: Vec::new(),
        regions: Vec::new(),
        steps,
    };
    let (handed, wanted) = (Handed::of(program), alignments(program));
    for &root in &order {
        let touches = &touches[&root];
        let tensor = graph.tensor(root);
        let by_steps = touches.iter().filter(|t| t.access.is_some());
        bodies.tensors.insert(root, bodies.problem.buffers.len());
        let (regions, least) = handed.wants(handed.roots.contains(&root));
        bodies.regions.push(regions);
        bodies.traffic.push(by_steps.map(|t| t.bytes.end - t.bytes.start).sum());
        bodies.problem.buffers.push(Buffer {
            name: tensor.name.clone(),
            align: alignment(tensor.dtype.bytes())
                .max(least)
                .max(wanted.get(&root).copied().unwrap_or(1)),
            parts: parts(touches, tensor.bytes() as u64, steps),
            fixed: None,
        });
    }
    let moments = program.moments();
    for (index, step) in program.steps.iter().enumerate() {
        let bytes = u64::from(step.step.needs().scratch);
        if bytes > 0 {
            bodies.scratch.insert(index, bodies.problem.buffers.len());
            bodies.regions.push(handed.wants(step.handed).0);
            bodies.traffic.push(bytes);
            let life = lifetimes::of_scratch(moments[index]).steps(steps);
            let buffer = Buffer::new(format!("{} (scratch)", step.name), life.start, life.end, bytes);
            bodies.problem.buffers.push(buffer.aligned(arenite::ARENA_ALIGN as u64));
        }
    }
    if in_place {
        let lives = lifetimes::lives(touches.values().flatten());
        bodies.problem.relations = relations(program, &bodies, &lives, 0);
    }
    bodies
}

impl Bodies {
    /// No bodies, for a run of so many steps.
    pub(super) fn empty(steps: usize) -> Self {
        Self {
            problem: Problem::default(),
            tensors: HashMap::new(),
            scratch: HashMap::new(),
            traffic: Vec::new(),
            regions: Vec::new(),
            steps,
        }
    }

    /// Adds a body that may lie anywhere.
    pub(super) fn add(&mut self, buffer: Buffer) -> usize {
        self.regions.push(ANYWHERE);
        self.traffic.push(buffer.bytes());
        self.problem.buffers.push(buffer);
        self.problem.buffers.len() - 1
    }

    /// The body is that of a root tensor.
    pub(super) fn set_tensor(&mut self, root: TensorId, body: usize) {
        self.tensors.insert(root, body);
    }

    /// The body is that of a step's scratch.
    pub(super) fn set_scratch(&mut self, step: usize, body: usize) {
        self.scratch.insert(step, body);
    }

    /// Bodies of no program.
    #[cfg(test)]
    pub(super) fn made_up(problem: Problem, traffic: Vec<u64>) -> Self {
        let steps = problem.buffers.iter().map(|buffer| buffer.life().end as usize);
        Self {
            steps: steps.max().unwrap_or(0).max(1),
            problem,
            tensors: HashMap::new(),
            scratch: HashMap::new(),
            regions: vec![ANYWHERE; traffic.len()],
            traffic,
        }
    }

    /// The body of a root tensor; `None` for one that no step touches, or that is not in the arena.
    pub fn tensor(&self, root: TensorId) -> Option<usize> {
        self.tensors.get(&root).copied()
    }

    /// The body of a step's scratch.
    pub fn scratch(&self, step: usize) -> Option<usize> {
        self.scratch.get(&step).copied()
    }

    /// Largest sum of the bytes alive during one step; in-place pairs count both.
    pub fn max_live(&self) -> u64 {
        self.peak().1
    }

    /// The first step during which most bytes are alive, and how many.
    pub fn peak(&self) -> (usize, u64) {
        let parts = self.problem.buffers.iter().flat_map(|b| &b.parts);
        let live = lifetimes::live_bytes(self.steps, parts.map(|p| (p.lower..p.upper, p.size)));
        let peak = (0..live.len()).max_by_key(|&step| (live[step], std::cmp::Reverse(step)));
        peak.map_or((0, 0), |step| (step, live[step]))
    }
}

/// Memory that an accelerator touches, and its requirements.
struct Handed {
    roots: HashSet<TensorId>,
    declared: Option<Declaration>,
}

impl Handed {
    fn of(program: &Program) -> Self {
        let operands = program
            .steps
            .iter()
            .filter(|step| step.handed)
            .flat_map(|step| step.operands());
        let root = |operand: arenite::Operand<Place>| match operand.place {
            Place::Tensor(id, _) => Some(program.root(id).0),
            _ => None,
        };
        Self {
            roots: operands.filter_map(root).collect(),
            declared: program.assigned.accelerator,
        }
    }

    /// The regions and the alignment of what it touches, or of anything else.
    fn wants(&self, touches: bool) -> (u8, u64) {
        match self.declared {
            Some(declared) if touches => (declared.regions, declared.alignment.into()),
            _ => (ANYWHERE, 1),
        }
    }
}

/// Cuts a tensor where touches begin and end; every piece lives from its first to its last touch. Neighbours with the same life are one
/// part. Bytes that nothing touches (the gap of an alignment) are in no part.
fn parts(touches: &[Touch], bytes: u64, steps: usize) -> Vec<Part> {
    let ends = touches.iter().flat_map(|t| [t.bytes.start, t.bytes.end.min(bytes)]);
    let mut cuts: BTreeSet<u64> = ends.collect();
    cuts.extend([0, bytes]);
    let cuts: Vec<u64> = cuts.into_iter().collect();
    // Moments of the touches over the piece at hand, by how many touches: pieces are passed from the first byte to the last.
    let mut over: BTreeMap<Moment, usize> = BTreeMap::new();
    let mut begin: Vec<&Touch> = touches.iter().filter(|t| !t.bytes.is_empty()).collect();
    let mut end = begin.clone();
    begin.sort_by_key(|t| std::cmp::Reverse(t.bytes.start));
    end.sort_by_key(|t| std::cmp::Reverse(t.bytes.end));
    let mut parts: Vec<Part> = Vec::new();
    for pair in cuts.windows(2) {
        while let Some(touch) = begin.pop_if(|t| t.bytes.start <= pair[0]) {
            *over.entry(touch.at).or_default() += 1;
        }
        while let Some(touch) = end.pop_if(|t| t.bytes.end <= pair[0]) {
            if let Entry::Occupied(mut entry) = over.entry(touch.at) {
                *entry.get_mut() -= 1;
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
        let (Some((&first, _)), Some((&last, _))) = (over.first_key_value(), over.last_key_value()) else {
            continue;
        };
        let life = Life { first, last };
        let alive = life.steps(steps);
        match parts.last_mut() {
            Some(p) if (p.lower, p.upper, p.offset + p.size) == (alive.start, alive.end, pair[0]) => {
                p.size += pair[1] - pair[0]
            }
            _ => parts.push(Part {
                lower: alive.start,
                upper: alive.end,
                offset: pair[0],
                size: pair[1] - pair[0],
            }),
        }
    }
    parts
}

/// Returns the alignment that steps want of the roots that they touch from the first byte on.
fn alignments(program: &Program) -> HashMap<TensorId, u64> {
    let mut wanted = HashMap::new();
    for operand in program.steps.iter().flat_map(|step| step.operands()) {
        if let Place::Tensor(id, 0) = operand.place
            && let (root, 0) = program.root(id)
        {
            let most: &mut u64 = wanted.entry(root).or_insert(1);
            *most = (*most).max(operand.align.into());
        }
    }
    wanted
}

/// Kernels load words: a tensor of single bytes starts at a word all the same.
fn alignment(element: usize) -> u64 {
    element.max(4) as u64
}

/// Where the output of a step, from `first` on, may overlap an input, at the distance that the kernel states: the output's life begins and the input's ends
/// with the step, so that they share no other.
pub(super) fn relations(
    program: &Program,
    bodies: &Bodies,
    lives: &HashMap<TensorId, Life>,
    first: usize,
) -> Vec<Relation> {
    let mut relations = Vec::new();
    let moments = program.moments();
    for (index, step) in program.steps.iter().enumerate().skip(first) {
        // The output of one of several cores must not lie where another one reads, whatever its kernel allows; that of an accelerator not where it reads.
        let next = index + 1;
        if step.handed || moments[index] != index || moments.get(next).is_some_and(|&moment| moment != next) {
            continue;
        }
        let now = Moment::Step(index);
        let operands = step.operands();
        let at = |place: Place| match place {
            Place::Tensor(id, bytes) => {
                let (root, view) = program.root(id);
                let body = bodies.tensor(root)?;
                Some((root, body, i64::from(view + bytes)))
            }
            _ => None,
        };
        let Some(output_operand) = operands.first() else {
            continue;
        };
        let Some((output, below, output_at)) = at(output_operand.place) else {
            continue;
        };
        if lives[&output].first != now || output_operand.access != Access::Write {
            continue;
        }
        // Each input's body, with the distance that it must keep.
        let mut inputs: Vec<(TensorId, usize, Option<i64>)> = Vec::new();
        for (index, operand) in operands.iter().enumerate().skip(1) {
            let Some((input, above, input_at)) = at(operand.place) else {
                continue;
            };
            let distance = step.step.distance(index).filter(|_| operand.access == Access::Read);
            let distance = distance.map(|d| d + output_at - input_at);
            match inputs.iter_mut().find(|(known, ..)| *known == input) {
                // Read twice by the same step, it must satisfy the rule of both operands.
                Some((.., known)) => *known = known.zip(distance).map(|(a, b)| a.max(b)),
                None => inputs.push((input, above, distance)),
            }
        }
        for (input, above, distance) in inputs {
            if let Some(distance) = distance
                && input != output
                && lives[&input].last == now
            {
                relations.push(Relation { below, above, distance });
            }
        }
    }
    relations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(step: usize, from: u64, to: u64) -> Touch {
        Touch {
            root: TensorId(0),
            bytes: from..to,
            at: Moment::Step(step),
            access: None,
        }
    }

    #[test]
    fn a_tensor_touched_as_a_whole_is_one_part() {
        let parts = parts(&[touch(2, 0, 64), touch(5, 0, 64), touch(3, 16, 32)], 64, 6);
        assert_eq!(
            parts,
            [Part {
                lower: 2,
                upper: 6,
                offset: 0,
                size: 64
            }]
        );
    }

    #[test]
    fn rows_live_on_their_own() {
        let parts = parts(&[touch(0, 0, 10), touch(1, 10, 20), touch(3, 5, 20)], 20, 4);
        let expected = [(0, 1, 0, 5), (0, 4, 5, 5), (1, 4, 10, 10)];
        let expected = expected.map(|(lower, upper, offset, size)| Part {
            lower,
            upper,
            offset,
            size,
        });
        assert_eq!(parts, expected);
    }
}
