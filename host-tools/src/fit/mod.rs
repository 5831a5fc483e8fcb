//! Making a network fit a memory: chains of windowed steps are cut into bands of rows, so that what lies between them is a few rows and
//! not a whole tensor.
//!
//! A band is a step like any other (the same kernel with fewer rows), so every backend runs it, bit-exact. Two ways of cutting:
//!
//! - [`Carry::Lines`]: line buffers. Rows that the next band needs again are kept; nothing is computed twice.
//! - [`Carry::Halo`]: each band computes all the rows it needs. No row is kept or moved; the rows at the seams are computed again, which
//!   is stated as extra MACs.

mod bands;

use std::collections::HashSet;

pub use bands::Carry;

use crate::error::{Error, ErrorKind, Result};
use crate::memory::{self, Memory, Request};
use crate::program::Program;

/// A cut of a chain of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The chain's first step and its length.
    pub first: usize,
    /// Steps in the chain.
    pub length: usize,
    /// Rows of the last step's output in a band.
    pub rows: usize,
    /// How bands share rows.
    pub carry: Carry,
}

/// A way of running the network: what it needs and what it costs.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// What was cut, for people.
    pub cuts: String,
    /// Bytes of arena.
    pub arena_bytes: u64,
    /// Multiply-accumulates beyond those of the uncut network.
    pub extra_macs: u64,
    /// Steps.
    pub steps: usize,
}

/// What the search found.
pub struct Fitted {
    /// The program, cut where that was needed.
    pub program: Program,
    /// Its memory plan.
    pub memory: Memory,
    /// What was cut.
    pub cuts: Vec<Cut>,
    /// Multiply-accumulates beyond those of the uncut network.
    pub extra_macs: u64,
    /// The Pareto front of arena against extra MACs, the uncut network first.
    pub front: Vec<Point>,
}

/// The longest chain that is cut.
const LONGEST_CHAIN: usize = 8;
/// Band heights that are tried.
const HEIGHTS: [usize; 4] = [1, 2, 4, 8];
/// Cuts of one network.
const MOST_CUTS: usize = 4;

/// Searches for the cheapest way to run `program` in `capacity` bytes: extra MACs first, then steps. With no capacity, it only surveys.
///
/// # Errors
/// [`ErrorKind::DoesNotFit`] with the smallest arena that was found and how.
pub fn fit(program: &Program, request: &Request, capacity: Option<u64>) -> Result<Fitted> {
    let base_macs = macs(program);
    let whole = candidate(program.clone(), Vec::new(), request, base_macs)?;
    let mut points = vec![whole.point()];
    let mut current = whole;
    let fits = |c: &Candidate| capacity.is_some_and(|capacity| c.height <= capacity);
    // Without a capacity one round surveys what a cut would bring, and nothing is cut.
    let rounds = if capacity.is_some() { MOST_CUTS } else { 1 };
    for _ in 0..rounds {
        if fits(&current) {
            break;
        }
        let mut found: Vec<Candidate> = Vec::new();
        for cut in cuts(&current.program, request) {
            let Some(program) = bands::cut(&current.program, &cut) else {
                continue;
            };
            let mut cuts = current.cuts.clone();
            cuts.push(cut);
            let next = candidate(program, cuts, request, base_macs)?;
            if next.height < current.height {
                points.push(next.point());
                found.push(next);
            }
        }
        let best = match found.iter().any(&fits) {
            true => found
                .into_iter()
                .filter(&fits)
                .min_by_key(|c| (c.extra_macs, c.program.steps.len(), c.height)),
            false => found
                .into_iter()
                .min_by_key(|c| (c.height, c.extra_macs, c.program.steps.len())),
        };
        match best {
            Some(best) if capacity.is_some() => current = best,
            _ => break,
        }
    }
    let front = pareto(points);
    if let Some(capacity) = capacity.filter(|_| !fits(&current)) {
        let how = current.point().cuts;
        return Err(Error::new(
            ErrorKind::DoesNotFit,
            format!("the smallest arena found is {} bytes ({how})", current.height),
        )
        .expected(format!("at most {capacity}"))
        .help("give more memory, or pass --explain to see what makes the peak"));
    }
    let memory = memory::place(memory::bodies(&current.program, request.in_place), request)?;
    Ok(Fitted {
        program: current.program,
        memory,
        cuts: current.cuts,
        extra_macs: current.extra_macs,
        front,
    })
}

/// All MACs of a program's steps.
pub fn macs(program: &Program) -> u64 {
    program.steps.iter().map(|step| step.macs).sum()
}

struct Candidate {
    program: Program,
    cuts: Vec<Cut>,
    height: u64,
    extra_macs: u64,
}

impl Candidate {
    fn point(&self) -> Point {
        let name = |cut: &Cut| {
            let way = match cut.carry {
                Carry::Lines => "line buffers",
                Carry::Halo => "recomputed halos",
            };
            format!(
                "{} steps from step {} in bands of {} rows, {way}",
                cut.length, cut.first, cut.rows
            )
        };
        let cuts: Vec<String> = self.cuts.iter().map(name).collect();
        Point {
            cuts: if cuts.is_empty() {
                "uncut".into()
            } else {
                cuts.join("; ")
            },
            arena_bytes: self.height,
            extra_macs: self.extra_macs,
            steps: self.program.steps.len(),
        }
    }
}

fn candidate(program: Program, cuts: Vec<Cut>, request: &Request, base_macs: u64) -> Result<Candidate> {
    let bodies = memory::bodies(&program, request.in_place);
    let plan = crate::plan::estimate(&bodies.problem).map_err(|e| Error::internal(e.to_string()))?;
    let extra_macs = macs(&program).saturating_sub(base_macs);
    Ok(Candidate {
        program,
        cuts,
        height: plan.height,
        extra_macs,
    })
}

/// Cuts that could lower the peak: chains that have the step of the highest use, or lie next to it.
fn cuts(program: &Program, request: &Request) -> Vec<Cut> {
    let live = memory::bodies(program, request.in_place).live();
    let highest = live.iter().copied().max().unwrap_or(0);
    let hot: HashSet<usize> = (0..live.len()).filter(|&step| live[step] * 4 >= highest * 3).collect();
    let mut cuts = Vec::new();
    for first in 0..program.steps.len() {
        for length in 2..=LONGEST_CHAIN {
            if !bands::is_chain(program, first, length) {
                break;
            }
            if !(first..first + length).any(|step| hot.contains(&step)) {
                continue;
            }
            for rows in HEIGHTS {
                for carry in [Carry::Lines, Carry::Halo] {
                    cuts.push(Cut {
                        first,
                        length,
                        rows,
                        carry,
                    });
                }
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
