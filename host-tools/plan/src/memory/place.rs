//! From bodies to places: the planner is asked region by region, offsets come back.

use arenite::{MAX_REGIONS, Slot};

use super::bodies::Bodies;
use super::plan::{self, Options, Plan, Problem, Proof, Relation};
use super::roll::places::RolledPlaces;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::TensorId;
use crate::program::{Place, Program};
use crate::stage::Progress;

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
    /// Limit of a step's cost: longer ones are split.
    pub max_step: Option<u64>,
}

/// Where everything lies.
#[derive(Debug, Clone)]
pub struct Placed {
    /// Bodies that were placed.
    pub bodies: Bodies,
    /// The region of each body.
    pub region: Vec<usize>,
    /// The offset of each body in its region.
    pub offsets: Vec<u64>,
    /// The plan of each region.
    pub plans: Vec<(Region, Plan)>,
    /// The rows of what rolls.
    pub rolled: Option<RolledPlaces>,
}

/// Places all bodies: in the first region if they fit there; otherwise those with the most traffic for each byte first, each in the
/// first region that still has room.
///
/// # Errors
/// [`ErrorKind::DoesNotFit`] naming what is missing where; [`ErrorKind::Internal`] where the independent checker finds fault.
pub fn place(bodies: Bodies, request: &Request, progress: &mut Progress<'_>) -> Result<Placed> {
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
        let mut spent = |nodes| progress("planning the arena", nodes, options.nodes);
        let plan = plan::solve_watched(&problem, &options, &mut spent).map_err(|e| Error::internal(e.to_string()))?;
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
    Ok(Placed {
        bodies,
        region,
        offsets,
        plans,
        rolled: None,
    })
}

impl Placed {
    /// The slot of one of the step's places.
    ///
    /// # Errors
    /// As [`Placed::slot`].
    pub fn slot_of(&self, program: &Program, step: usize, place: Place) -> Result<Slot> {
        match place {
            Place::Tensor(id, 0)
                if let Some(slot) = self.rolled_slot(program.root(id).0, |places| step < places.roll.steps) =>
            {
                Ok(slot)
            }
            Place::Tensor(id, bytes) => self.slot(program, id, bytes),
            Place::Constant(offset) => Ok(arenite::Place::constant(offset)),
            // A kernel that needs none has its scratch anywhere.
            Place::Scratch => Ok(self
                .bodies
                .scratch(step)
                .map_or(Slot::default(), |body| self.body(body, 0))),
        }
    }

    /// The slot of byte `bytes` of a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for a tensor that no step touches.
    pub fn slot(&self, program: &Program, id: TensorId, bytes: u32) -> Result<Slot> {
        let (root, view) = program.root(id);
        if let Some(slot) = self.rolled_slot(root, |_| self.bodies.tensor(root).is_none()) {
            return Ok(slot);
        }
        if let Some(&offset) = program.state.offsets.get(&root) {
            return Ok(Slot {
                region: Slot::STATE,
                offset: offset + view + bytes,
            });
        }
        match self.bodies.tensor(root) {
            Some(body) => Ok(self.body(body, view + bytes)),
            None => Err(Error::internal(format!(
                "`{}` has no place in the arena",
                program.graph.tensor(id).name
            ))),
        }
    }

    /// The slot of a tensor as one that rolls, where `is` says so.
    fn rolled_slot(&self, id: TensorId, is: impl Fn(&RolledPlaces) -> bool) -> Option<Slot> {
        let places = self.rolled.as_ref().filter(|places| is(places))?;
        places.index(id).map(|index| Slot {
            region: Slot::ROLLED,
            offset: index as u32,
        })
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
    let may = |body: usize, region: usize| {
        bodies
            .regions
            .get(body)
            .is_none_or(|regions| regions & (1 << region) != 0)
    };
    let in_first = (0..count).all(|body| may(body, 0));
    if request.regions.len() == 1 || (in_first && fits(&request.regions[0], &bodies.problem)?) {
        return Ok(vec![0; count]);
    }
    let size = |body: usize| bodies.problem.buffers[body].bytes().max(1);
    let mut order: Vec<usize> = (0..count).collect();
    // More traffic for each byte first; then the smaller one.
    order.sort_by(|&a, &b| {
        let heat = |x: usize, y: usize| u128::from(bodies.traffic[x]) * u128::from(size(y));
        heat(b, a).cmp(&heat(a, b)).then(size(a).cmp(&size(b))).then(a.cmp(&b))
    });
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); request.regions.len()];
    for body in order {
        let mut placed = false;
        for (index, region) in request
            .regions
            .iter()
            .enumerate()
            .filter(|&(index, _)| may(body, index))
        {
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
    let mut index = vec![None; problem.buffers.len()];
    for (position, &member) in members.iter().enumerate() {
        index[member] = Some(position);
    }
    let at = |body: usize| index[body];
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
    let (peak, _) = bodies.peak();
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
mod tests;
