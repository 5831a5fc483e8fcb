//! Residual sums by rows, without being asked: where a sum's two operands are what makes the arena as large as it is, the layer that gives the one is computed
//! a few rows at a time, and these are added to the other's rows in place.
//!
//! Nothing is computed twice and no row is copied, so that it costs what the additional steps cost: their records in the file, and the time to begin them.

use super::bands::{self, Carry, Cut};
use super::split::split;
use super::stage::{self, LONGEST_CHAIN};
use super::trial::{estimated, skeleton};
use crate::error::{Error, Result};
use crate::memory::bodies::bodies;
use crate::memory::place::{Request, whole_words};
use crate::memory::{in_place, plan};
use crate::program::{Place, Program};
use crate::report::Sums;

/// Into how many parts sums are cut: the fewest that bring the most.
const PARTS: [usize; 6] = [2, 4, 8, 16, 32, 64];
/// Bytes of a file that a step takes, with its name for the tools: what is given for fewer bytes of arena.
const STEP_BYTES: u64 = 96;
/// Cost of beginning a step, in terms of [`arenite::Cost::total`].
const STEP_COST: u64 = 1000;
/// Of a network's cost the hundredth may be added.
const SHARE: u64 = 100;

/// Bytes that a plan needs: a lower bound, and a height found in no time.
struct Height {
    least: u64,
    found: u64,
    profile: Vec<(u64, u64)>,
}

/// The cuts that lower the arena of `program`, whose tensors are not merged in place yet, in the order in which they are made; none, where that is too little
/// for what they cost.
///
/// # Errors
/// Errors of the planner.
pub fn sums(program: &Program, request: &Request) -> Result<(Vec<Cut>, Option<Sums>)> {
    let chains = chains(program);
    if chains.is_empty() || !request.in_place {
        return Ok((Vec::new(), None));
    }
    let small = skeleton(program);
    let whole = height(&small, &[], request)?.least;
    let unsplit = Request {
        max_step: None,
        ..request.clone()
    };
    // Below what is alive in other steps there is no need to go.
    let profile = height(&small, &[], &unsplit)?.profile;
    let inside = |step: u64| {
        let own = |&(first, length): &(usize, usize)| (first as u64..(first + length) as u64).contains(&step);
        chains.iter().any(own)
    };
    let others = profile.iter().filter(|&&(step, _)| !inside(step));
    let floor = others.map(|&(_, bytes)| bytes).max().unwrap_or(0);
    if floor >= whole {
        return Ok((Vec::new(), None));
    }
    let high = |&(first, length): &(usize, usize)| {
        let steps = first as u64..(first + length) as u64;
        profile
            .iter()
            .any(|&(step, bytes)| steps.contains(&step) && bytes > floor)
    };
    let chains: Vec<(usize, usize)> = chains.iter().copied().filter(high).collect();
    let cost: u64 = program.steps.iter().map(|step| step.step.work().total()).sum();
    let mut best: Option<(u64, Vec<Cut>)> = None;
    for parts in PARTS {
        let cuts = in_parts(&small, &chains, parts);
        let steps = more_steps(&small, &cuts) as u64;
        if cuts.is_empty() || steps * STEP_COST > cost / SHARE {
            break;
        }
        let found = height(&small, &cuts, request)?.found;
        let price = found + steps * STEP_BYTES;
        if price < whole && best.as_ref().is_none_or(|&(known, _)| price < known) {
            best = Some((price, cuts));
        }
    }
    let Some((_, mut cuts)) = best else {
        return Ok((Vec::new(), None));
    };
    // A cut that brings nothing beside the others stays whole.
    let lowest = height(&small, &cuts, request)?.found;
    for index in (0..cuts.len()).rev() {
        let mut fewer = cuts.clone();
        fewer.remove(index);
        if height(&small, &fewer, request)?.found <= lowest {
            cuts = fewer;
        }
    }
    let told = Sums {
        sums: cuts.len(),
        more_steps: more_steps(&small, &cuts),
        whole_arena_bytes: whole_words(whole),
    };
    Ok((cuts, Some(told)))
}

/// `program` with these cuts.
///
/// # Errors
/// One that cannot be made.
pub fn cut(program: &Program, cuts: &[Cut], in_place: bool) -> Result<Program> {
    let mut whole = program.clone();
    for cut in cuts {
        whole =
            bands::cut(&whole, cut, in_place).ok_or_else(|| Error::internal("a cut that was found cannot be made"))?;
    }
    Ok(whole)
}

/// The sums of two tensors, each with the layer before it that gives one of them, and with what stands between them.
fn chains(program: &Program) -> Vec<(usize, usize)> {
    let mut chains: Vec<(usize, usize)> = Vec::new();
    let elementwise = |step: usize| program.steps[step].step.elements().is_some();
    let adds = |step: usize| {
        let tensors = |place: &Place| matches!(place, Place::Tensor(..));
        program.steps[step]
            .places()
            .iter()
            .skip(1)
            .filter(|&place| tensors(place))
            .count()
            == 2
    };
    // From a sum back to the layer before it, which is near: long chains without one are passed over.
    for last in (1..program.steps.len()).filter(|&last| elementwise(last) && adds(last)) {
        let mut first = last;
        while first > 0 && last + 1 - first < LONGEST_CHAIN && elementwise(first) {
            first -= 1;
        }
        let length = last + 1 - first;
        let found = stage::chain(program, first, length).and_then(|stages| stages.last()?.side);
        if first < last && found.is_some() {
            // One that goes on behind a sum includes it.
            chains.retain(|&(known, _)| known != first);
            chains.push((first, length));
        }
    }
    chains
}

/// The chains in so many parts, as near as their rows allow; the last one first, so that those before it stay where they are.
fn in_parts(program: &Program, chains: &[(usize, usize)], parts: usize) -> Vec<Cut> {
    let cut = |&(first, length): &(usize, usize)| {
        let rows = usize::from(stage::chain(program, first, length)?.last()?.window.output[0]);
        let cut = Cut {
            first,
            length,
            rows: rows.div_ceil(parts),
            columns: None,
            carry: Carry::Halo,
        };
        bands::cut(program, &cut, true).is_some().then_some(cut)
    };
    chains.iter().rev().filter_map(cut).collect()
}

fn more_steps(program: &Program, cuts: &[Cut]) -> usize {
    let steps = |cut: &Cut| {
        let stages = stage::chain(program, cut.first, cut.length);
        let rows = stages.and_then(|stages| Some(usize::from(stages.last()?.window.output[0])));
        cut.length * (rows.unwrap_or(1).div_ceil(cut.rows) - 1)
    };
    cuts.iter().map(steps).sum()
}

fn height(program: &Program, cuts: &[Cut], request: &Request) -> Result<Height> {
    let mut program = cut(program, cuts, request.in_place)?;
    if let Some(limit) = request.max_step {
        split(&mut program, limit)?;
    }
    in_place::merge(&mut program);
    let problem = bodies(&program, true).problem;
    let profile = plan::profile(&problem).map_err(|e| Error::internal(e.to_string()))?;
    Ok(Height {
        least: profile.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0),
        found: estimated(&problem)?,
        profile,
    })
}
