//! From steps to a memory plan: lifetimes, sizes and permitted overlaps go to the planner, offsets come back.
//!
//! Liveness is kept per byte range: a tensor that is written or read piece by piece (a concatenation's operands inside its result, rows
//! that stream through a line buffer) is a body of parts, each alive only from its first to its last use.

use std::collections::{BTreeSet, HashMap};

use arenite::{Access, MAX_REGIONS, Operand, Slot};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::{TensorId, TensorKind};
use crate::plan::{self, Buffer, Options, Part, Plan, Problem, Proof, Relation};
use crate::program::{Place, Program};

/// A memory that arenas can lie in, in order of preference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its name in messages and summaries.
    pub name: String,
    /// Bytes; `None` for no limit.
    pub size: Option<u64>,
}

/// How memory is to be planned.
#[derive(Debug, Clone)]
pub struct Request {
    /// The memories; at least one, at most [`MAX_REGIONS`].
    pub regions: Vec<Region>,
    /// Whether outputs may overlap inputs.
    pub in_place: bool,
    /// The search budget of the planner, in nodes.
    pub nodes: u64,
}

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
    traffic: Vec<u64>,
    /// Number of steps.
    steps: u64,
}

/// Where everything lies.
#[derive(Debug, Clone)]
pub struct Memory {
    /// What was placed.
    pub bodies: Bodies,
    /// The region of each body.
    pub region: Vec<usize>,
    /// The offset of each body in its region.
    pub offsets: Vec<u64>,
    /// The plan of each region.
    pub plans: Vec<(Region, Plan)>,
}

/// Collects the bodies of a program: one for each root tensor that lives in the arena, one for each step's scratch.
pub fn bodies(program: &Program, in_place: bool) -> Bodies {
    let mut touches: HashMap<TensorId, Vec<Touch>> = HashMap::new();
    let mut order: Vec<TensorId> = Vec::new();
    let mut touch = |root: TensorId, touch: Touch| {
        touches.entry(root).or_insert_with(|| {
            order.push(root);
            Vec::new()
        });
        touches.entry(root).or_default().push(touch);
    };
    let graph = &program.graph;
    let in_arena = |root: TensorId| matches!(graph.tensor(root).kind, TensorKind::Activation | TensorKind::Input);
    let whole = |id: TensorId, step: usize| {
        let (root, offset) = program.root(id);
        let from = u64::from(offset);
        (
            root,
            Touch {
                step: step as u64,
                from,
                to: from + graph.tensor(id).bytes() as u64,
                moves: 0,
            },
        )
    };
    for &id in graph.inputs.iter().filter(|&&id| in_arena(program.root(id).0)) {
        let (root, t) = whole(id, 0);
        touch(root, t);
    }
    for (index, step) in program.steps.iter().enumerate() {
        for (place, operand) in step.places.iter().zip(operands(step)) {
            if let Place::Tensor(id, bytes) = *place {
                let (root, offset) = program.root(id);
                if in_arena(root) {
                    let (from, len) = (u64::from(offset + bytes), u64::from(operand.bytes));
                    touch(
                        root,
                        Touch {
                            step: index as u64,
                            from,
                            to: from + len,
                            moves: len,
                        },
                    );
                }
            }
        }
    }
    let last = program.steps.len().saturating_sub(1);
    for &id in graph.outputs.iter().filter(|&&id| in_arena(program.root(id).0)) {
        let (root, t) = whole(id, last);
        touch(root, t);
    }

    let mut bodies = Bodies {
        problem: Problem::default(),
        tensors: HashMap::new(),
        scratch: HashMap::new(),
        traffic: Vec::new(),
        steps: last as u64 + 1,
    };
    for root in order {
        let touches = &touches[&root];
        let tensor = graph.tensor(root);
        bodies.tensors.insert(root, bodies.problem.buffers.len());
        bodies.traffic.push(touches.iter().map(|t| t.moves).sum());
        bodies.problem.buffers.push(Buffer {
            name: tensor.name.clone(),
            align: alignment(tensor.dtype.bytes()),
            parts: parts(touches, tensor.bytes() as u64),
            fixed: None,
        });
    }
    for (index, step) in program.steps.iter().enumerate() {
        let bytes = u64::from(step.step.needs().scratch);
        if bytes > 0 {
            bodies.scratch.insert(index, bodies.problem.buffers.len());
            bodies.traffic.push(bytes);
            let buffer = Buffer::new(
                format!("{} (scratch)", step.name),
                index as u64,
                index as u64 + 1,
                bytes,
            );
            bodies.problem.buffers.push(buffer.aligned(arenite::ARENA_ALIGN as u64));
        }
    }
    if in_place {
        relate(program, &mut bodies);
    }
    bodies
}

/// Places all bodies: in the first region if they fit there; otherwise those with the most traffic for each byte first, each in the
/// first region that still has room.
///
/// # Errors
/// [`ErrorKind::DoesNotFit`] naming what is missing where; [`ErrorKind::Internal`] where the independent checker finds fault.
pub fn place(bodies: Bodies, request: &Request) -> Result<Memory> {
    let region = assign(&bodies, request)?;
    let mut offsets = vec![0; region.len()];
    let mut plans = Vec::new();
    for (index, of) in request.regions.iter().enumerate() {
        let members: Vec<usize> = (0..region.len()).filter(|&body| region[body] == index).collect();
        let problem = subproblem(&bodies.problem, &members);
        let options = Options {
            nodes: request.nodes,
            ..Options::default()
        };
        let plan = plan::solve(&problem, &options).map_err(|e| Error::internal(e.to_string()))?;
        plan::check(&problem, &plan).map_err(|e| {
            Error::new(ErrorKind::Internal, format!("the planner made an invalid plan: {e}")).help("please report it")
        })?;
        let bytes = whole_words(plan.height);
        if of.size.is_some_and(|size| bytes > size) {
            return Err(does_not_fit(&bodies, of, bytes, plan.proven_optimal));
        }
        for (&member, &offset) in members.iter().zip(&plan.offsets) {
            offsets[member] = offset;
        }
        plans.push((of.clone(), plan));
    }
    Ok(Memory {
        bodies,
        region,
        offsets,
        plans,
    })
}

impl Bodies {
    /// Largest sum of the bytes alive during one step; in-place pairs count both.
    pub fn max_live(&self) -> u64 {
        self.live().into_iter().max().unwrap_or(0)
    }

    /// Bytes alive during each step.
    pub fn live(&self) -> Vec<u64> {
        let mut change = vec![0i64; self.steps as usize + 1];
        for part in self.problem.buffers.iter().flat_map(|b| &b.parts) {
            change[part.lower as usize] += part.size as i64;
            change[part.upper as usize] -= part.size as i64;
        }
        let mut live = 0;
        let mut sums: Vec<u64> = change
            .iter()
            .map(|delta| {
                live += delta;
                live as u64
            })
            .collect();
        sums.pop();
        sums
    }
}

impl Memory {
    /// The slot of each of the step's places.
    ///
    /// # Errors
    /// As [`Memory::slot`].
    pub fn slots(&self, program: &Program, step: usize) -> Result<Vec<Slot>> {
        let place = |place: &Place| match *place {
            Place::Tensor(id, bytes) => self.slot(program, id, bytes),
            Place::Constant(offset) => Ok(Slot {
                region: Slot::WEIGHTS,
                offset,
            }),
            Place::Scratch => Ok(self
                .bodies
                .scratch
                .get(&step)
                .map_or(Slot::default(), |&body| self.body(body, 0))),
        };
        program.steps[step].places.iter().map(place).collect()
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
        match self.bodies.tensors.get(&root) {
            Some(&body) => Ok(self.body(body, view + bytes)),
            None => Err(Error::internal(format!(
                "`{}` has no place in the arena",
                program.graph.tensor(id).name
            ))),
        }
    }

    /// Bytes of arena, over all regions, as the caller must give them.
    pub fn arena_bytes(&self) -> u64 {
        self.region_bytes().into_iter().sum()
    }

    /// Bytes of arena in each region, as the header has them: a multiple of 4.
    pub fn region_bytes(&self) -> [u64; MAX_REGIONS] {
        std::array::from_fn(|region| self.plans.get(region).map_or(0, |(_, plan)| whole_words(plan.height)))
    }

    /// No plan of these bodies in these regions is lower, summed over the regions.
    pub fn lower_bound(&self) -> u64 {
        self.plans.iter().map(|(_, plan)| whole_words(plan.lower_bound)).sum()
    }

    /// Whether every region's plan is proven to be the lowest.
    pub fn proven_optimal(&self) -> bool {
        self.plans
            .iter()
            .all(|(_, plan)| plan.proven_optimal && plan.proof != Proof::None)
    }

    fn body(&self, body: usize, bytes: u32) -> Slot {
        Slot {
            region: self.region[body] as u8,
            offset: self.offsets[body] as u32 + bytes,
        }
    }
}

/// The size of an arena that holds this many bytes: arenas are whole words.
pub fn whole_words(bytes: u64) -> u64 {
    bytes.next_multiple_of(4)
}

/// A use of bytes of a tensor.
#[derive(Debug, Clone, Copy)]
struct Touch {
    step: u64,
    from: u64,
    to: u64,
    /// Bytes read or written.
    moves: u64,
}

/// Cuts a tensor where touches begin and end; every piece lives from its first to its last touch. Neighbours with the same life are one
/// part. Bytes that nothing touches (the gap of an alignment) are in no part.
fn parts(touches: &[Touch], bytes: u64) -> Vec<Part> {
    let mut cuts: BTreeSet<u64> = touches.iter().flat_map(|t| [t.from, t.to.min(bytes)]).collect();
    cuts.insert(0);
    cuts.insert(bytes);
    let cuts: Vec<u64> = cuts.into_iter().collect();
    let mut parts: Vec<Part> = Vec::new();
    for pair in cuts.windows(2) {
        let over = touches.iter().filter(|t| t.from <= pair[0] && pair[1] <= t.to);
        let (first, last) = over.fold((u64::MAX, 0), |(first, last), t| (first.min(t.step), last.max(t.step)));
        if first == u64::MAX {
            continue;
        }
        match parts.last_mut() {
            Some(p) if p.lower == first && p.upper == last + 1 && p.offset + p.size == pair[0] => {
                p.size += pair[1] - pair[0]
            }
            _ => parts.push(Part {
                lower: first,
                upper: last + 1,
                offset: pair[0],
                size: pair[1] - pair[0],
            }),
        }
    }
    parts
}

fn operands(step: &crate::program::LoweredStep) -> Vec<Operand> {
    let mut operands = Vec::new();
    step.step.operands(&mut |operand| operands.push(operand));
    operands
}

/// Kernels load words: a tensor of single bytes starts at a word all the same.
fn alignment(element: usize) -> u64 {
    element.max(4) as u64
}

/// Permits a step's output to overlap an input, at the distance that the kernel states, where the output's life begins and the
/// input's ends with this step: then they share no other step.
fn relate(program: &Program, bodies: &mut Bodies) {
    let life = |body: usize| {
        let parts = &bodies.problem.buffers[body].parts;
        (
            parts.iter().map(|p| p.lower).min().unwrap_or(0),
            parts.iter().map(|p| p.upper).max().unwrap_or(0),
        )
    };
    // The caller reads these after the last step, which may be their last reader.
    let outputs: Vec<usize> = (program.graph.outputs.iter())
        .filter_map(|&id| bodies.tensors.get(&program.root(id).0).copied())
        .collect();
    let mut relations = Vec::new();
    for (index, step) in program.steps.iter().enumerate() {
        let operands = operands(step);
        let body = |place: &Place| match *place {
            Place::Tensor(id, bytes) => {
                let (root, view) = program.root(id);
                bodies.tensors.get(&root).map(|&body| (body, i64::from(view + bytes)))
            }
            _ => None,
        };
        let Some((output, output_at)) = step.places.first().and_then(body) else {
            continue;
        };
        if life(output).0 != index as u64 || operands.first().map(|o| o.access) != Some(Access::Write) {
            continue;
        }
        let mut inputs: Vec<(usize, Option<i64>)> = Vec::new();
        for (operand, place) in step.places.iter().enumerate().skip(1) {
            let Some((input, input_at)) = body(place) else { continue };
            let readable = operands.get(operand).is_some_and(|o| o.access == Access::Read);
            let distance = step
                .step
                .distance(operand)
                .filter(|_| readable)
                .map(|d| d + output_at - input_at);
            match inputs.iter_mut().find(|(known, _)| *known == input) {
                // Read twice by the same step, it must satisfy the rule of both operands.
                Some((_, known)) => *known = known.zip(distance).map(|(a, b)| a.max(b)),
                None => inputs.push((input, distance)),
            }
        }
        for (input, distance) in inputs {
            if let Some(distance) = distance
                && input != output
                && !outputs.contains(&input)
                && life(input).1 == index as u64 + 1
            {
                relations.push(Relation {
                    below: output,
                    above: input,
                    distance,
                });
            }
        }
    }
    bodies.problem.relations = relations;
}

/// The region of each body.
fn assign(bodies: &Bodies, request: &Request) -> Result<Vec<usize>> {
    let count = bodies.problem.buffers.len();
    if request.regions.is_empty() || request.regions.len() > MAX_REGIONS {
        return Err(
            Error::new(ErrorKind::Usage, format!("{} regions", request.regions.len()))
                .expected(format!("1 to {MAX_REGIONS}")),
        );
    }
    let estimate = |problem: &Problem| plan::estimate(problem).map_err(|e| Error::internal(e.to_string()));
    let fits = |region: &Region, problem: &Problem| -> Result<bool> {
        let Some(size) = region.size else { return Ok(true) };
        Ok(whole_words(estimate(problem)?.height) <= size)
    };
    if request.regions.len() == 1 || fits(&request.regions[0], &bodies.problem)? {
        return Ok(vec![0; count]);
    }
    let size = |body: usize| -> u64 {
        bodies.problem.buffers[body]
            .parts
            .iter()
            .map(|p| p.offset + p.size)
            .max()
            .unwrap_or(0)
            .max(1)
    };
    let mut order: Vec<usize> = (0..count).collect();
    // More traffic for each byte first; then the smaller one.
    order.sort_by(|&a, &b| {
        let heat = |x: usize, y: usize| u128::from(bodies.traffic[x]) * u128::from(size(y));
        heat(b, a).cmp(&heat(a, b)).then(size(a).cmp(&size(b))).then(a.cmp(&b))
    });
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); request.regions.len()];
    for body in order {
        let mut placed = false;
        for (index, region) in request.regions.iter().enumerate() {
            members[index].push(body);
            members[index].sort_unstable();
            if fits(region, &subproblem(&bodies.problem, &members[index]))? {
                placed = true;
                break;
            }
            members[index].retain(|&member| member != body);
        }
        if !placed {
            let buffer = &bodies.problem.buffers[body];
            let message = format!(
                "`{}` ({} bytes) fits in no region beside what is there",
                buffer.name,
                size(body)
            );
            let sizes: Vec<_> = request
                .regions
                .iter()
                .map(|r| format!("{}={}", r.name, r.size.unwrap_or(0)))
                .collect();
            return Err(Error::new(ErrorKind::DoesNotFit, message)
                .at(sizes.join(" "))
                .help("give a larger region, or pass --explain to see what makes the peak"));
        }
    }
    let mut region = vec![0; count];
    for (index, members) in members.iter().enumerate() {
        members.iter().for_each(|&body| region[body] = index);
    }
    Ok(region)
}

/// The problem over some of the bodies.
fn subproblem(problem: &Problem, members: &[usize]) -> Problem {
    let at = |body: usize| members.iter().position(|&m| m == body);
    let relations = problem.relations.iter().filter_map(|r| {
        Some(Relation {
            below: at(r.below)?,
            above: at(r.above)?,
            distance: r.distance,
        })
    });
    Problem {
        buffers: members.iter().map(|&m| problem.buffers[m].clone()).collect(),
        relations: relations.collect(),
    }
}

fn does_not_fit(bodies: &Bodies, region: &Region, height: u64, proven: bool) -> Error {
    let size = region.size.unwrap_or(0);
    let live = bodies.live();
    let peak = (0..live.len())
        .max_by_key(|&step| (live[step], std::cmp::Reverse(step)))
        .unwrap_or(0);
    let how = if proven {
        "no plan of these steps is smaller"
    } else {
        "the smallest plan found"
    };
    Error::new(ErrorKind::DoesNotFit, format!("the arena needs {height} bytes ({how})"))
        .at(format_args!("region {}", region.name))
        .expected(format!("at most {size}"))
        .help(format!(
            "the peak is at step {peak}; --explain names its tensors, --fit {}={size} searches for a way",
            region.name
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(step: u64, from: u64, to: u64) -> Touch {
        Touch {
            step,
            from,
            to,
            moves: 0,
        }
    }

    #[test]
    fn a_tensor_touched_as_a_whole_is_one_part() {
        let parts = parts(&[touch(2, 0, 64), touch(5, 0, 64), touch(3, 16, 32)], 64);
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
        let parts = parts(&[touch(0, 0, 10), touch(1, 10, 20), touch(3, 5, 20)], 20);
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
