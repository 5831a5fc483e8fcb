//! Steps over several cores that share the memory: a step becomes a part for each core, and all of them meet before the next one.
//!
//! A part is a step of the same kernel with some rows of the output (or pixels, where windows are single pixels; or elements), so that nothing is computed
//! twice or copied. The memory of all parts of one step is alive at one moment: no part's output lies where another core still reads. That takes more memory
//! than a step by itself, whose output may run after what it has read; where that is too much, a step is computed in several turns, each over all cores.

use std::convert::Infallible;
use std::ops::Range;

use arenite::{Access, BARRIER};

use super::bodies::{Bodies, bodies};
use super::fit::Cuttable;
use super::in_place;
use super::place::{Placed, Request, place};
use super::plan;
use super::shares::Shares;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::TensorId;
use crate::program::{LoweredStep, Place, Program};
use crate::stage::Progress;

/// Least cost of a part, in terms of [`arenite::Cost::total`]: below, the time to begin it counts for more than it saves.
const LEAST_COST: u64 = 2000;
/// Turns of one step, at most.
const MOST_TURNS: usize = 16;
/// Elements of a part are so many times this: vectors begin where the arena's do.
const ELEMENTS: usize = 64;
/// Blocks of neighbouring pixels, or of channels, that kernels take at a time, the most first.
pub const BLOCKS: [usize; 4] = [16, 8, 4, 2];

/// Divides the steps of `program`, whose tensors are not merged in place yet, over so many cores, and places what they touch: in as few turns as keep the arena
/// within five quarters of what one core takes, and within its region.
///
/// # Errors
/// Parts that do not fit.
pub fn divide(
    program: &Program,
    cores: usize,
    request: &Request,
    progress: &mut Progress<'_>,
) -> Result<(Program, Placed)> {
    let height = |all: &Bodies| {
        let plan = plan::estimate(&all.problem).map_err(|e| Error::internal(e.to_string()))?;
        Ok::<_, Error>(plan.height)
    };
    let (mut alone, mut shared) = (program.clone(), program.clone());
    if request.in_place {
        in_place::merge(&mut alone);
        in_place::merge_shared(&mut shared);
    }
    let alone = place(bodies(&alone, request.in_place), request, progress)?.arena_bytes();
    let most = alone + alone / 4;
    let most = match &request.regions[..] {
        [only] => only.size.map_or(most, |size| size.min(most)),
        _ => most,
    };
    let merged = |id: &TensorId| shared.views.contains_key(id) && !program.views.contains_key(id);
    let mut turns = vec![1; program.steps.len()];
    let mut best: Option<(u64, Program, Bodies)> = None;
    loop {
        let (divided, from) = divided((&shared, &merged), cores, &turns);
        let all = bodies(&divided, request.in_place);
        let height = height(&all)?;
        let profile = plan::profile(&all.problem).map_err(|e| Error::internal(e.to_string()))?;
        if best.as_ref().is_none_or(|&(known, ..)| height < known) {
            best = Some((height, divided, all));
        }
        if height <= most {
            break;
        }
        // Where too much is alive at once, or most of all.
        let peak = profile.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
        let limit = most.min(peak.saturating_sub(1));
        let mut more = false;
        for &(at, bytes) in &profile {
            let step = from.get(at as usize).filter(|_| bytes > limit);
            if let Some(turn) = step
                .and_then(|&step| turns.get_mut(step))
                .filter(|turn| **turn < MOST_TURNS)
            {
                *turn *= 2;
                more = true;
            }
        }
        if !more {
            break;
        }
    }
    let (_, divided, all) = best.ok_or_else(|| Error::internal("no way to divide the steps"))?;
    let placed = place(all, request, progress).map_err(|e| match e.kind() {
        ErrorKind::DoesNotFit => e.help("several cores take more memory than one: leave --cores out, or give more"),
        _ => e,
    })?;
    Ok((divided, placed))
}

/// The share of the estimated cost that the core with most of it has, and the groups of steps between barriers.
pub fn shares(program: &Program) -> (f64, usize) {
    let mut costs = [0; arenite::MAX_CORES];
    for (step, on) in program.steps.iter().zip(&program.assigned.steps) {
        if let Some(cost) = costs.get_mut(usize::from(on & !BARRIER)) {
            *cost += step.step.work().total();
        }
    }
    let (all, busiest) = (
        costs.iter().sum::<u64>().max(1),
        costs.iter().max().copied().unwrap_or(0),
    );
    let barriers = program.assigned.steps.iter().filter(|&on| on & BARRIER != 0);
    (busiest as f64 / all as f64, 1 + barriers.count())
}

/// The steps over cores, each in so many turns, and the step that each of them is of. `merged` are outputs that take an operand's place.
fn divided(
    (program, merged): (&Program, &dyn Fn(&TensorId) -> bool),
    cores: usize,
    turns: &[usize],
) -> (Program, Vec<usize>) {
    let mut made = Program {
        steps: Vec::new(),
        ..program.clone()
    };
    let (mut on, mut from, mut down) = (Vec::new(), Vec::new(), true);
    for (index, (step, &turns)) in program.steps.iter().zip(turns).enumerate() {
        let mut groups = groups(program, step, cores, turns);
        // As with steps that are split for their cost: every other one runs from the bottom.
        if groups.len() > 1 {
            if !down {
                groups.reverse();
            }
            down = !down;
        }
        let last = groups.iter().map(Vec::len).sum::<usize>() - 1;
        // An output that takes an operand's place does so part by part.
        if let (1.., Some(Place::Tensor(output, _))) = (last, step.places().first())
            && merged(output)
        {
            made.over.insert(*output);
        }
        let parts = groups.into_iter().flat_map(|group| group.into_iter().enumerate());
        for (at, (core, part)) in parts.enumerate() {
            on.push(core as u8 | if core == 0 && !on.is_empty() { BARRIER } else { 0 });
            from.push(index);
            made.steps.push(LoweredStep {
                completes: step.completes.filter(|_| at == last),
                ..part
            });
        }
    }
    made.assigned.cores = cores;
    made.assigned.steps = on;
    (made, from)
}

/// A step as groups of parts, one part for each core; itself where it cannot be cut, or is not worth it.
fn groups(program: &Program, step: &LoweredStep, cores: usize, turns: usize) -> Vec<Vec<LoweredStep>> {
    let whole = || vec![vec![step.clone()]];
    let worth = usize::try_from(step.step.work().total() / LEAST_COST).unwrap_or(usize::MAX);
    if worth < 2 {
        return whole();
    }
    let count = cores.min(worth) * turns;
    let shares = Shares::equal(count);
    let ways = WAYS.map(|way| way(step, &shares));
    let apart = |groups: &Vec<Vec<LoweredStep>>| groups.iter().all(|group| are_apart(program, group));
    // The one whose longest parts are the shortest; of equal ones the first.
    let cost = |groups: &Vec<Vec<LoweredStep>>| -> u64 {
        let longest = |group: &Vec<LoweredStep>| group.iter().map(|part| part.step.work().total()).max();
        groups.iter().filter_map(longest).sum()
    };
    let found = ways
        .into_iter()
        .flatten()
        .map(|parts| in_turns(parts, cores))
        .filter(apart);
    let best = found.min_by_key(cost);
    best.filter(|groups| cost(groups) < step.step.work().total())
        .unwrap_or_else(whole)
}

/// Parts one behind the other, a group of them at a time.
fn in_turns(parts: Vec<LoweredStep>, cores: usize) -> Vec<Vec<LoweredStep>> {
    let groups = Shares::equal(parts.len().div_ceil(cores));
    let mut parts = parts.into_iter();
    let pieces = groups.pieces(parts.len()).into_iter();
    pieces.map(|piece| parts.by_ref().take(piece.len()).collect()).collect()
}

/// A step in two parts, the first of the first of these steps, which compute the same with kernels of unlike cores and `take` so much for all of it; and what
/// the part takes that takes longer. `None` where it cannot be cut.
pub(super) fn unlike(program: &Program, steps: [&LoweredStep; 2], takes: [u64; 2]) -> Option<([LoweredStep; 2], u64)> {
    let shares = Shares::of_two(takes);
    let output = |part: &LoweredStep| part.operands().first().map(|operand| (operand.place, operand.bytes));
    let cut = |way: Way| {
        let [first, second] = steps.map(|step| <[LoweredStep; 2]>::try_from(way(step, &shares)?).ok());
        let ([first, rest], [begun, second]) = (first?, second?);
        // Each kernel says by itself which parts it computes.
        let same = output(&rest) == output(&second) && output(&first) == output(&begun);
        let parts = [first, second];
        (same && are_apart(program, &parts)).then_some(parts)
    };
    let longest = |parts: &[LoweredStep; 2]| {
        let takes = parts.iter().zip(steps).zip(takes).map(|((part, whole), takes)| {
            let [part, whole] = [part, whole].map(|step| u128::from(step.step.work().total()));
            (u128::from(takes) * part).div_ceil(whole.max(1)) as u64
        });
        takes.max().unwrap_or(0)
    };
    let found = WAYS.into_iter().filter_map(cut);
    found
        .map(|parts| (longest(&parts), parts))
        .min_by_key(|(longest, _)| *longest)
        .map(|(longest, parts)| (parts, longest))
}

/// A way to cut a step into parts of these shares, or some more.
type Way = fn(&LoweredStep, &Shares) -> Option<Vec<LoweredStep>>;

/// All of them; of equal ones the first is taken.
const WAYS: [Way; 3] = [pixels, rows, elements];

/// Whether no part touches what another one writes. All but scratch, which each has for itself.
pub(super) fn are_apart(program: &Program, group: &[LoweredStep]) -> bool {
    let touches = |part: &LoweredStep| -> Vec<(TensorId, Range<u64>, bool)> {
        let of = |operand: arenite::Operand<Place>| match operand.place {
            Place::Tensor(id, bytes) => {
                let (root, offset) = program.root(id);
                let from = u64::from(offset) + u64::from(bytes);
                let bytes = from..from + u64::from(operand.bytes);
                Some((root, bytes, operand.access != Access::Read))
            }
            _ => None,
        };
        part.operands().into_iter().filter_map(of).collect()
    };
    let all: Vec<_> = group.iter().map(touches).collect();
    all.iter().enumerate().all(|(index, one)| {
        all.iter().skip(index + 1).flatten().all(|(root, bytes, writes)| {
            one.iter().all(|(other, others, written)| {
                let meet = root == other && bytes.start < others.end && others.start < bytes.end;
                !(meet && (*writes || *written))
            })
        })
    })
}

/// By rows of the output.
fn rows(step: &LoweredStep, shares: &Shares) -> Option<Vec<LoweredStep>> {
    let cut = Cuttable::of(step)?;
    let tiles = cut.tiles(shares);
    tiles.iter().map(|tile| cut.part(tile)).collect()
}

/// By pixels of the output, where each comes from the same one of the input.
fn pixels(step: &LoweredStep, shares: &Shares) -> Option<Vec<LoweredStep>> {
    let cut = Cuttable::of_pixels(step)?;
    let pieces = shares.pieces_of_blocks(cut.columns(), &BLOCKS).into_iter();
    pieces.map(|piece| cut.part(&cut.tile(piece))).collect()
}

/// By elements, where each comes from the same ones of all operands.
fn elements(step: &LoweredStep, shares: &Shares) -> Option<Vec<LoweredStep>> {
    let all = step.step.elements()?;
    let operands = step.operands();
    let blocks = shares
        .pieces((all as usize).div_ceil(ELEMENTS))
        .into_iter()
        .filter(|piece| !piece.is_empty());
    let edge = |block: usize| ((block * ELEMENTS) as u32).min(all);
    let part = |piece: Range<usize>| {
        let (start, end) = (edge(piece.start), edge(piece.end));
        let part = step.step.clone().of_elements(end - start)?;
        let mut at = 0..;
        let mut whole = true;
        let mut moved = |place| {
            let operand = at.next().and_then(|at: usize| operands.get(at));
            Ok::<_, Infallible>(match (place, operand) {
                (Place::Tensor(id, from), Some(operand)) if operand.bytes % all == 0 => {
                    Place::Tensor(id, from + operand.bytes / all * start)
                }
                (other, _) => {
                    whole &= matches!(other, Place::Scratch);
                    other
                }
            })
        };
        let Ok(part) = part.map(&mut moved);
        let macs = |n: u32| (u128::from(step.macs) * u128::from(n) / u128::from(all)) as u64;
        whole.then(|| LoweredStep {
            step: part,
            macs: macs(end) - macs(start),
            ..step.clone()
        })
    };
    blocks.map(part).collect()
}
