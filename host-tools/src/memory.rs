//! From steps to a memory plan: lifetimes, sizes and permitted overlaps go to the planner, offsets come back.

use std::collections::HashMap;

use arenite::{Access, Operand, Slot};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{TensorId, TensorKind};
use crate::plan::{self, Buffer, Options, Plan, Problem, Relation};
use crate::program::{Place, Program};

/// Where everything lies.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The problem that was solved.
    pub problem: Problem,
    /// Its solution.
    pub plan: Plan,
    /// The buffer of each root tensor that lives in the arena.
    tensors: HashMap<TensorId, usize>,
    /// The buffer of each step's scratch.
    scratch: HashMap<usize, usize>,
    /// Largest sum of the bytes of buffers alive during one step; in-place pairs count both.
    pub max_live: u64,
}

/// Builds the planner's problem: one buffer for each root tensor and each step's scratch. A tensor lives from the step that
/// first writes it (a network input from the start) to the step that last reads it (a network output to the end).
///
/// # Errors
/// [`ErrorKind::Internal`] where a step reads what nothing has written.
pub fn problem(program: &Program, in_place: bool) -> Result<Memory> {
    let graph = &program.graph;
    let last = program.steps.len().saturating_sub(1);
    let mut spans: Vec<(TensorId, usize, usize)> = Vec::new();
    let mut index_of = HashMap::new();
    let mut touch = |id: TensorId, step: usize| {
        let (root, _) = program.root(id);
        if matches!(graph.tensor(root).kind, TensorKind::Activation | TensorKind::Input) {
            let index = *index_of.entry(root).or_insert_with(|| {
                spans.push((root, step, step));
                spans.len() - 1
            });
            spans[index].2 = spans[index].2.max(step);
        }
    };
    graph.inputs.iter().for_each(|&id| touch(id, 0));
    for (index, step) in program.steps.iter().enumerate() {
        for place in &step.places {
            if let Place::Tensor(id, _) = *place {
                touch(id, index);
            }
        }
    }
    graph.outputs.iter().for_each(|&id| touch(id, last));

    let mut problem = Problem::default();
    for &(id, lower, upper) in &spans {
        let tensor = graph.tensor(id);
        let size = tensor.bytes() as u64;
        let buffer =
            Buffer::new(&tensor.name, lower as u64, upper as u64 + 1, size).aligned(alignment(tensor.dtype.bytes()));
        problem.buffers.push(buffer);
    }
    let mut scratch = HashMap::new();
    for (index, step) in program.steps.iter().enumerate() {
        let bytes = u64::from(step.step.needs().scratch);
        if bytes > 0 {
            scratch.insert(index, problem.buffers.len());
            let name = format!("{} (scratch)", step.name);
            problem
                .buffers
                .push(Buffer::new(name, index as u64, index as u64 + 1, bytes).aligned(arenite::ARENA_ALIGN as u64));
        }
    }
    if in_place {
        relate(program, &spans, &index_of, &mut problem);
    }
    let max_live = max_live(&problem, last as u64 + 1);
    let offsets = Vec::new();
    let plan = Plan {
        offsets,
        height: 0,
        lower_bound: 0,
        proven_optimal: false,
        proof: plan::Proof::None,
        nodes: 0,
    };
    Ok(Memory {
        problem,
        plan,
        tensors: index_of,
        scratch,
        max_live,
    })
}

/// Solves the problem.
///
/// # Errors
/// [`ErrorKind::Internal`] where the independent checker finds fault with the plan.
pub fn solve(mut memory: Memory, options: &Options) -> Result<Memory> {
    memory.plan = plan::solve(&memory.problem, options).map_err(|e| Error::internal(e.to_string()))?;
    plan::check(&memory.problem, &memory.plan).map_err(|e| {
        Error::new(ErrorKind::Internal, format!("the planner made an invalid plan: {e}")).help("please report it")
    })?;
    Ok(memory)
}

impl Memory {
    /// The slot of each of the step's places.
    pub fn slots(&self, program: &Program, step: usize) -> Result<Vec<Slot>> {
        let arena = |offset: u64| Slot {
            region: 0,
            offset: offset as u32,
        };
        program.steps[step]
            .places
            .iter()
            .map(|place| match *place {
                Place::Tensor(id, bytes) => self.slot(program, id, bytes),
                Place::Constant(offset) => Ok(Slot {
                    region: Slot::WEIGHTS,
                    offset,
                }),
                Place::Scratch => Ok(self
                    .scratch
                    .get(&step)
                    .map_or(Slot::default(), |&b| arena(self.plan.offsets[b]))),
            })
            .collect()
    }

    /// The slot of byte `bytes` of a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for a tensor that no step touches.
    pub fn slot(&self, program: &Program, id: TensorId, bytes: u32) -> Result<Slot> {
        let (root, view) = program.root(id);
        if let Some(&offset) = program.state.offsets.get(&root) {
            return Ok(Slot {
                region: Slot::STATE,
                offset: offset + view + bytes,
            });
        }
        match self.tensors.get(&root) {
            Some(&buffer) => Ok(Slot {
                region: 0,
                offset: self.plan.offsets[buffer] as u32 + view + bytes,
            }),
            None => Err(Error::internal(format!(
                "`{}` has no place in the arena",
                program.graph.tensor(id).name
            ))),
        }
    }

    /// Bytes of arena.
    pub fn arena_bytes(&self) -> u64 {
        self.plan.height
    }
}

/// Kernels load words: a tensor of single bytes starts at a word all the same.
fn alignment(element: usize) -> u64 {
    element.max(4) as u64
}

/// Permits a step's output to overlap an input that dies there, at the distance that the kernel states.
fn relate(
    program: &Program,
    spans: &[(TensorId, usize, usize)],
    index_of: &HashMap<TensorId, usize>,
    problem: &mut Problem,
) {
    for (index, step) in program.steps.iter().enumerate() {
        let mut operands: Vec<Operand> = Vec::new();
        step.step.operands(&mut |operand| operands.push(operand));
        let buffer = |place: &Place| match *place {
            Place::Tensor(id, bytes) => {
                let (root, view) = program.root(id);
                index_of.get(&root).map(|&index| (index, i64::from(view + bytes)))
            }
            _ => None,
        };
        let Some((output, output_at)) = step.places.first().and_then(buffer) else {
            continue;
        };
        if spans[output].1 != index || operands.first().map(|o| o.access) != Some(Access::Write) {
            continue;
        }
        for (operand, place) in step.places.iter().enumerate().skip(1) {
            let Some((input, input_at)) = buffer(place) else {
                continue;
            };
            let dies = spans[input].2 == index && input != output;
            // Read twice by the same step, an input must satisfy the rule of both operands.
            let distances = step
                .places
                .iter()
                .enumerate()
                .skip(1)
                .filter(|(_, p)| buffer(p).map(|b| b.0) == Some(input));
            let distances: Option<Vec<i64>> = distances.map(|(o, _)| step.step.distance(o)).collect();
            if let (true, Some(distances), Access::Read) = (dies, distances, operands[operand].access)
                && let Some(distance) = distances.into_iter().max()
            {
                let relation = Relation {
                    below: output,
                    above: input,
                    distance: distance + output_at - input_at,
                };
                if !problem.relations.iter().any(|r| (r.below, r.above) == (output, input)) {
                    problem.relations.push(relation);
                }
            }
        }
    }
}

fn max_live(problem: &Problem, steps: u64) -> u64 {
    let live = |step: u64| -> u64 {
        let parts = problem.buffers.iter().flat_map(|b| &b.parts);
        parts
            .filter(|p| p.lower <= step && step < p.upper)
            .map(|p| p.size)
            .sum()
    };
    (0..steps).map(live).max().unwrap_or(0)
}
