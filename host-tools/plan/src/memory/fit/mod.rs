//! Making a network fit a memory: chains of windowed steps are cut into bands of rows or into tiles, so that what lies between them is a
//! few rows, or a few pixels, and not a whole tensor.
//!
//! A band or a tile is a step like any other (the same kernel with smaller extents), so every backend runs it, bit-exact. Three ways of
//! cutting:
//!
//! - [`Carry::Lines`]: line buffers. Rows that the next band needs again are kept; nothing is computed twice.
//! - [`Carry::Halo`]: each band computes all the rows it needs. No row is kept or moved; the rows at the seams are computed again, which
//!   is stated as extra MACs.
//! - The same with columns cut as well: tiles. Smaller still between the chain's ends, but copied in and out, and there are more seams.
//!
//! [`sums()`] cuts residual sums without being asked, where it lowers the arena and costs nothing that counts.

mod bands;
mod split;
mod stage;
mod sums;
mod trial;

pub use bands::{Carry, Cut};
pub use split::{Cuttable, Tile, split};
pub use sums::{cut, sums};

pub use crate::report::{Point, Sums};

use trial::{estimated, skeleton};

use super::bodies::bodies;
use super::in_place;
use super::place::{Placed, Request, place, whole_words};
use super::plan::{self, Problem};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::TensorId;
use crate::program::Program;
use crate::stage::Progress;

/// Result of the search.
pub struct Fitted {
    /// The program, cut where that was needed and merged in place where that was asked for.
    pub program: Program,
    /// Its memory plan.
    pub memory: Placed,
    /// Cuts that were made.
    pub cuts: Vec<Cut>,
    /// Multiply-accumulates beyond those of the uncut network.
    pub extra_macs: u64,
    /// The Pareto front of arena against extra MACs, the uncut network first.
    pub front: Vec<Point>,
}

/// Band heights that are tried.
const HEIGHTS: [usize; 4] = [1, 2, 4, 8];
/// Tile widths that are tried.
const WIDTHS: [usize; 4] = [2, 4, 8, 16];
/// Cuts of one network.
const MOST_CUTS: usize = 8;
/// Candidates that are placed in one round, at most.
const MOST_PLACED: usize = 64;

/// Searches for the cheapest way to run `program`, whose tensors are not merged in place yet, in `capacity` bytes: extra MACs first, then
/// steps. With no capacity, it only surveys what a single cut would bring, and cuts nothing. It begins with the cuts `made`, and without them where that leads
/// to nothing.
///
/// Cut after cut is made, each the one that leaves the least above the capacity, summed over the sets of buffers alive together; as soon as
/// one cut can bring all of it below, the cheapest one that does is taken. That is a greedy search over cuts: where it fails, a combination
/// that it did not try may still fit. Where long steps are split as well, and their rows wait for each other in more bytes than there are, it goes on to
/// lower ways.
///
/// # Errors
/// [`ErrorKind::DoesNotFit`] with the smallest arena that was found and how.
pub fn fit(
    (program, made): (&Program, &[Cut]),
    request: &Request,
    capacity: Option<u64>,
    progress: &mut Progress<'_>,
) -> Result<Fitted> {
    match search(program, made, request, capacity, progress) {
        Err(error) if error.kind() == ErrorKind::DoesNotFit && !made.is_empty() => {
            search(program, &[], request, capacity, progress).map_err(|_| error)
        }
        found => found,
    }
}

fn search(
    program: &Program,
    made: &[Cut],
    request: &Request,
    capacity: Option<u64>,
    progress: &mut Progress<'_>,
) -> Result<Fitted> {
    let search = Search {
        in_place: request.in_place,
        base_macs: macs(program),
        made: made.len(),
    };
    let mut current = search.candidate(cut(&skeleton(program), made, request.in_place)?, made.to_vec())?;
    let mut height = current.height()?;
    let mut points = vec![current.point(height)];
    let Some(capacity) = capacity else {
        points.extend(search.survey(&current, height, progress)?);
        let whole = current.whole(program, request)?;
        let memory = place(bodies(&whole, request.in_place), request, progress)?;
        return Ok(current.fitted(whole, memory, points));
    };
    let mut lowest = points[0].clone();
    let mut lowest_split: Option<u64> = None;
    let mut within = capacity;
    loop {
        while height > within && current.cuts.len() < MOST_CUTS + made.len() {
            let Some((next, next_height)) = search.next(&current, within, progress)? else {
                break;
            };
            (current, height) = (next, next_height);
            points.push(current.point(height));
            if height < lowest.arena_bytes {
                lowest = current.point(height);
            }
        }
        if height > within {
            let error = match (lowest_split, request.max_step) {
                (Some(bytes), Some(limit)) => above_when_split(bytes, limit),
                _ => above(&lowest, ports(program), capacity),
            };
            return Err(error.expected(format!("at most {capacity}")));
        }
        let whole = current.whole(program, request)?;
        let split = bodies(&whole, request.in_place);
        let bytes = estimated(&split.problem)?;
        match place(split, request, progress) {
            Ok(memory) if request.max_step.is_none() || height == 0 || total(&memory) <= capacity => {
                return Ok(current.fitted(whole, memory, points));
            }
            Err(error) if request.max_step.is_none() || height == 0 || error.kind() != ErrorKind::DoesNotFit => {
                return Err(error);
            }
            _ => {
                lowest_split = Some(lowest_split.map_or(bytes, |known| known.min(bytes)));
                within = height - 1;
            }
        }
    }
}

/// No way that was found is low enough.
fn above(lowest: &Point, ports: u64, capacity: u64) -> Error {
    let (bytes, how) = (lowest.arena_bytes, &lowest.cuts);
    let mut message = format!("the smallest arena found is {bytes} bytes ({how})");
    if ports > capacity {
        message = format!("{message}, and the network's inputs or its outputs alone take {ports}");
    }
    Error::new(ErrorKind::DoesNotFit, message)
        .help("give more memory, or pass --explain without --fit to see what makes the peak")
}

/// None is with steps of at most `limit`.
fn above_when_split(bytes: u64, limit: u64) -> Error {
    Error::new(
        ErrorKind::DoesNotFit,
        format!("with steps split for --max-step {limit} the smallest arena found is {bytes} bytes"),
    )
    .help("rows of a split step wait for each other: allow longer steps or more memory")
}

/// Bytes of all regions.
fn total(memory: &Placed) -> u64 {
    memory.plans.iter().map(|(_, plan)| whole_words(plan.height)).sum()
}

/// Bytes of all inputs together, or of all outputs: whatever is cut, they are alive at one time.
fn ports(program: &Program) -> u64 {
    let bytes = |ids: &[TensorId]| {
        ids.iter()
            .map(|&id| program.graph.tensor(id).bytes() as u64)
            .sum::<u64>()
    };
    bytes(&program.graph.inputs).max(bytes(&program.graph.outputs))
}

/// All MACs of a program's steps.
pub fn macs(program: &Program) -> u64 {
    program.steps.iter().map(|step| step.macs).sum()
}

struct Search {
    in_place: bool,
    base_macs: u64,
    /// How many cuts it begins with.
    made: usize,
}

/// A program cut in some way, with what is known before anything is placed.
struct Candidate {
    program: Program,
    cuts: Vec<Cut>,
    /// How many of them the search began with.
    made: usize,
    extra_macs: u64,
    problem: Problem,
    /// Steps, and bytes below which no plan can hold what is alive there.
    profile: Vec<(u64, u64)>,
}

impl Search {
    fn candidate(&self, program: Program, cuts: Vec<Cut>) -> Result<Candidate> {
        let problem = if self.in_place {
            let mut merged = program.clone();
            in_place::merge(&mut merged);
            bodies(&merged, true).problem
        } else {
            bodies(&program, false).problem
        };
        let profile = plan::profile(&problem).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Candidate {
            extra_macs: macs(&program).saturating_sub(self.base_macs),
            program,
            cuts,
            made: self.made,
            problem,
            profile,
        })
    }

    /// The best of all that one more cut makes of `current` to fit `capacity` bytes, and its height.
    fn next(
        &self,
        current: &Candidate,
        capacity: u64,
        progress: &mut Progress<'_>,
    ) -> Result<Option<(Candidate, u64)>> {
        let above = |c: &Candidate| -> u64 { c.profile.iter().map(|&(_, b)| b.saturating_sub(capacity)).sum() };
        // Where the bounds are low enough already and only the plan is not, whatever is highest may be cut.
        let hot = capacity.min(current.bound().saturating_sub(1));
        let mut best: Option<((u64, u64, usize, u64), Candidate)> = None;
        let mut low: Vec<Candidate> = Vec::new();
        let before = above(current);
        for next in self.cut_once(current, hot, progress) {
            let next = next?;
            let left = above(&next);
            if left == 0 {
                low.push(next);
                continue;
            }
            let key = (left, next.extra_macs, next.program.steps.len(), next.bound());
            if left < before && best.as_ref().is_none_or(|(known, _)| key < *known) {
                best = Some((key, next));
            }
        }
        // Candidates that may fit are placed, the cheapest first, until one does.
        low.sort_by_key(|c| (c.extra_macs, c.program.steps.len(), c.bound()));
        let mut lowest: Option<(Candidate, u64)> = None;
        for next in low.into_iter().take(MOST_PLACED) {
            let height = next.height()?;
            if height <= capacity {
                return Ok(Some((next, height)));
            }
            if lowest.as_ref().is_none_or(|&(_, known)| height < known) {
                lowest = Some((next, height));
            }
        }
        match (lowest, best) {
            (Some(found), _) if found.1 < current.height()? => Ok(Some(found)),
            (_, Some((_, next))) => {
                let height = next.height()?;
                Ok(Some((next, height)))
            }
            _ => Ok(None),
        }
    }

    /// The single cuts that no other beats in both arena and extra MACs.
    fn survey(&self, whole: &Candidate, height: u64, progress: &mut Progress<'_>) -> Result<Vec<Point>> {
        // A cut helps only if nothing outside its chain is as high as the whole.
        let mut found = self
            .cut_once(whole, whole.bound().saturating_sub(1), progress)
            .collect::<Result<Vec<Candidate>>>()?;
        found.sort_by_key(|c| (c.extra_macs, c.bound(), c.program.steps.len()));
        let (mut best, mut points) = (height, Vec::new());
        for next in found {
            if next.bound() >= best {
                continue;
            }
            let height = next.height()?;
            if height < best {
                best = height;
                points.push(next.point(height));
            }
        }
        Ok(points)
    }

    /// All ways to cut one more chain that has a set of buffers of more than `hot` bytes.
    fn cut_once<'a>(
        &'a self,
        current: &'a Candidate,
        hot: u64,
        progress: &'a mut Progress<'_>,
    ) -> impl Iterator<Item = Result<Candidate>> + 'a {
        let over: Vec<usize> = current
            .profile
            .iter()
            .filter(|&&(_, bound)| bound > hot)
            .map(|&(step, _)| step as usize)
            .collect();
        let cuts = cuts(&current.program, &over);
        let (stage, all) = (
            format!("trying cut {}", current.cuts.len() + 1 - self.made),
            cuts.len() as u64,
        );
        (0..).zip(cuts).filter_map(move |(done, cut)| {
            progress(&stage, done, all);
            let program = bands::cut(&current.program, &cut, self.in_place)?;
            let mut cuts = current.cuts.clone();
            cuts.push(cut);
            Some(self.candidate(program, cuts))
        })
    }
}

impl Candidate {
    fn bound(&self) -> u64 {
        self.profile.iter().map(|&(_, bound)| bound).max().unwrap_or(0)
    }

    fn height(&self) -> Result<u64> {
        estimated(&self.problem)
    }

    /// The whole program cut in this way, with long steps split and tensors merged in place where that was asked for.
    fn whole(&self, program: &Program, request: &Request) -> Result<Program> {
        let mut whole = cut(program, &self.cuts, request.in_place)?;
        if let Some(limit) = request.max_step {
            split(&mut whole, limit)?;
        }
        if request.in_place {
            in_place::merge(&mut whole);
        }
        Ok(whole)
    }

    fn fitted(self, program: Program, memory: Placed, points: Vec<Point>) -> Fitted {
        Fitted {
            program,
            memory,
            cuts: self.cuts,
            extra_macs: self.extra_macs,
            front: pareto(points),
        }
    }

    fn point(&self, height: u64) -> Point {
        let name = |cut: &Cut| {
            let way = match cut.carry {
                Carry::Lines => "line buffers",
                Carry::Halo => "recomputed halos",
            };
            let (first, length, rows) = (cut.first, cut.length, cut.rows);
            let s = if rows == 1 { "" } else { "s" };
            let shape = match cut.columns {
                None => format!("bands of {rows} row{s}"),
                Some(columns) => format!("tiles of {rows} row{s} and {columns} columns"),
            };
            format!("{length} steps from step {first} in {shape}, {way}")
        };
        let cuts: Vec<String> = self.cuts.iter().skip(self.made).map(name).collect();
        Point {
            cuts: if cuts.is_empty() {
                "uncut".into()
            } else {
                cuts.join("; ")
            },
            arena_bytes: height,
            extra_macs: self.extra_macs,
            steps: self.program.steps.len(),
        }
    }
}

/// Chains that have one of the steps `over`, in all heights and both ways.
fn cuts(program: &Program, over: &[usize]) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for first in 0..program.steps.len() {
        for length in 2..=stage::LONGEST_CHAIN {
            let chain = first..first + length;
            if !over
                .iter()
                .any(|&step| first <= step && step < first + stage::LONGEST_CHAIN)
            {
                break;
            }
            if stage::chain(program, first, length).is_none() {
                break;
            }
            if !over.iter().any(|step| chain.contains(step)) {
                continue;
            }
            for rows in HEIGHTS {
                let bands = [(None, Carry::Lines), (None, Carry::Halo)];
                let tiles = WIDTHS.map(|columns| (Some(columns), Carry::Halo));
                cuts.extend(bands.into_iter().chain(tiles).map(|(columns, carry)| Cut {
                    first,
                    length,
                    rows,
                    columns,
                    carry,
                }));
            }
        }
    }
    cuts
}

/// The points that no other beats in both arena and extra MACs, by falling arena.
fn pareto(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by_key(|p| (p.extra_macs, p.arena_bytes, p.steps));
    let mut front: Vec<Point> = Vec::new();
    for point in points {
        if front.last().is_none_or(|last| point.arena_bytes < last.arena_bytes) {
            front.push(point);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point that costs more and takes as many bytes is on no front.
    #[test]
    fn a_front_falls_with_every_point() {
        let point = |extra_macs, arena_bytes, steps| Point {
            cuts: String::new(),
            arena_bytes,
            extra_macs,
            steps,
        };
        let points = vec![
            point(9, 60, 4),
            point(0, 90, 3),
            point(5, 90, 3),
            point(9, 70, 2),
            point(7, 80, 5),
            point(12, 60, 1),
            point(0, 90, 7),
        ];
        let front = [point(0, 90, 3), point(7, 80, 5), point(9, 60, 4)];
        assert_eq!(pareto(points), front);
    }
}
