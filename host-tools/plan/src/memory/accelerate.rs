//! Steps that are handed to an accelerator: in which order and between which barriers, so that the core runs its own steps meanwhile.
//!
//! A group of steps between two barriers is alive at one moment, as with several [`cores`]. The steps keep the order of the schedule but
//! for those of one group, of which none touches what one of the other side writes. A step that both have kernels for may be cut in two parts, which are a
//! group.

use std::collections::HashSet;

use arenite::{Access, BARRIER, Declaration, KernelId, Target};

use super::bodies::bodies;
use super::lifetimes::in_arena;
use super::place::{Placed, Request, place};
use super::{cores, in_place};
use crate::error::{Error, ErrorKind, Result};
use crate::program::{LoweredStep, Own, Place, Program, Shared, name_of_part};
use crate::stage::Progress;

/// Steps of a group, at most.
const MOST_STEPS: usize = 12;
/// Operands of a group, at most: load compares no more.
const MOST_OPERANDS: usize = 60;
/// Least gain of a step in two parts over the accelerator alone: there is one step more to begin.
pub const LEAST_WON: u64 = 2000;

/// Gives each step of `program`, whose tensors are not merged in place yet, to the core or to the accelerator, and places what they touch: side by side where
/// that takes at most five quarters of the arena and fits, one after the other else.
///
/// # Errors
/// Steps that do not fit; a step that the accelerator cannot have, and that has kernels which the core has not.
pub fn hand_over(
    program: &Program,
    declared: Declaration,
    request: &Request,
    progress: &mut Progress<'_>,
) -> Result<(Program, Placed)> {
    let mut program = program.clone();
    refuse_unreached(&mut program, declared)?;
    program.assigned.accelerator = Some(declared);
    if request.in_place {
        in_place::merge(&mut program);
    }
    let steps = in_parts(&mut program);
    let apart = arranged(&program, steps.clone());
    let placed = place(bodies(&apart, request.in_place), request, progress)?;
    let together = arranged(&program, groups(&program, steps));
    if together.assigned.steps == apart.assigned.steps {
        return Ok((apart, placed));
    }
    match place(bodies(&together, request.in_place), request, progress) {
        Ok(beside) if 4 * beside.arena_bytes() <= 5 * placed.arena_bytes() => Ok((together, beside)),
        Err(e) if e.kind() != ErrorKind::DoesNotFit => Err(e),
        _ => Ok((apart, placed)),
    }
}

/// Tells `program` which of these layers, in parts by output channels, are computed by both at one time.
pub fn tell(program: &mut Program, channels: &[Shared]) {
    let moments = program.moments();
    let moment = |layer: &Shared, part: usize| {
        let name = name_of_part(&layer.name, part, 2);
        let step = program.steps.iter().position(|step| step.name == name)?;
        moments.get(step).copied()
    };
    let together = |layer: &&Shared| moment(layer, 0).is_some() && moment(layer, 0) == moment(layer, 1);
    let shared: Vec<Shared> = channels.iter().filter(together).cloned().collect();
    program.assigned.shared.extend(shared);
}

/// The part of the estimated cost that is handed over, and the part of that beside which the core has steps of its own to run.
pub fn shares(program: &Program) -> (f64, f64) {
    let (mut all, mut handed, mut beside) = (0, 0, 0);
    let mut group = [0; 2];
    let mut end = |group: &mut [u64; 2]| {
        beside += group[0].min(group[1]);
        *group = [0; 2];
    };
    for (step, on) in program.steps.iter().zip(&program.assigned.steps) {
        if on & BARRIER != 0 {
            end(&mut group);
        }
        let cost = step.step.work().total();
        all += cost;
        handed += if step.handed { cost } else { 0 };
        group[usize::from(step.handed)] += cost;
    }
    end(&mut group);
    let part = |of: u64, whole: u64| of as f64 / whole.max(1) as f64;
    (part(handed, all), part(beside, handed))
}

/// Leaves steps to the core that the accelerator cannot have: those that touch the state, or begin where it wants other multiples.
fn refuse_unreached(program: &mut Program, declared: Declaration) -> Result<()> {
    let own = own_kernels(program.target, program.size);
    for index in 0..program.steps.len() {
        let step = &program.steps[index];
        let reached = step.operands().into_iter().all(|operand| match operand.place {
            Place::Tensor(id, bytes) => {
                let (root, offset) = program.root(id);
                let aligned = (offset + bytes).is_multiple_of(declared.alignment.into());
                aligned && in_arena(&program.graph, root) && operand.access != Access::Update
            }
            _ => true,
        });
        if !step.handed || reached {
            continue;
        }
        if let Some(own) = step.own.clone() {
            program.steps[index] = own.step;
            continue;
        }
        if !own.contains(&step.step.kernel().backend()) {
            return Err(Error::unsupported(format!(
                "`{}` cannot be handed to {}, and has the kernel {}, which {} has not",
                step.name,
                declared.name,
                step.step.kernel().name(),
                program.target.name()
            ))
            .help("an operand of it is in the state, or lies inside another tensor at other multiples than the accelerator wants: pass --no-in-place"));
        }
        program.steps[index].handed = false;
    }
    Ok(())
}

fn own_kernels(target: Target, size: bool) -> Vec<arenite::kernels::Backend> {
    KernelId::candidates(target, size)
        .map(KernelId::backend)
        .chain([arenite::kernels::Backend::Scalar])
        .collect()
}

/// Cuts steps that both sides have kernels for in two parts, where that is worth it: the accelerator's first, which begins where the whole does. Each step as
/// the indices of what it became.
fn in_parts(program: &mut Program) -> Vec<Vec<usize>> {
    let (mut steps, mut shared, mut indices) = (Vec::new(), Vec::new(), Vec::new());
    for mut step in std::mem::take(&mut program.steps) {
        let first = steps.len();
        match step.own.take().and_then(|own| parts(program, &step, &own)) {
            Some((parts, told)) => {
                steps.extend(parts);
                shared.push(told);
            }
            None => steps.push(step),
        }
        indices.push((first..steps.len()).collect());
    }
    (program.steps, program.assigned.shared) = (steps, shared);
    indices
}

/// The two parts of a step that is handed over.
fn parts(program: &Program, step: &LoweredStep, own: &Own) -> Option<([LoweredStep; 2], Shared)> {
    let takes = own.takes.filter(|_| step.handed)?;
    let (parts, longest) = cores::unlike(program, [step, &own.step], takes)?;
    let macs = [parts[0].macs, parts[1].macs];
    (longest + LEAST_WON <= takes[0]).then_some((
        parts,
        Shared {
            name: step.name.clone(),
            macs,
            takes,
            longest,
            bytes: own.bytes.into(),
        },
    ))
}

/// Steps that follow each other and can run side by side: as many as none of the core's touches what one of the accelerator's writes, nor the other way round.
/// Steps of the core alone are groups by themselves, so that nothing is alive for longer than it must be. The parts of a step stay together.
fn groups(program: &Program, steps: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for parts in steps {
        let of = |indices: &[usize]| -> Vec<&LoweredStep> {
            indices.iter().filter_map(|&index| program.steps.get(index)).collect()
        };
        let joins = |group: &Vec<usize>| {
            let (group, parts) = (of(group), of(&parts));
            let all = || group.iter().chain(&parts);
            let operands: usize = all().map(|step| step.operands().len()).sum();
            let both = all().any(|step| step.handed);
            let apart = parts.iter().all(|&part| {
                let mut others = group.iter().filter(|other| other.handed != part.handed);
                others.all(|&other| cores::are_apart(program, &[other.clone(), part.clone()]))
            });
            both && apart && group.len() + parts.len() <= MOST_STEPS && operands <= MOST_OPERANDS
        };
        match groups.last_mut() {
            Some(group) if joins(group) => group.extend(parts),
            _ => groups.push(parts),
        }
    }
    // A group of the accelerator's steps alone gains nothing.
    let split = |group: Vec<usize>| -> Vec<Vec<usize>> {
        if group.iter().all(|&index| program.steps[index].handed) {
            group.into_iter().map(|index| vec![index]).collect()
        } else {
            vec![group]
        }
    };
    groups.into_iter().flat_map(split).collect()
}

/// The steps in these groups; in each the accelerator's come as soon as it is free, by the steps' costs, so that it never waits for the core.
fn arranged(program: &Program, groups: Vec<Vec<usize>>) -> Program {
    let mut made = Program {
        steps: Vec::new(),
        ..program.clone()
    };
    let mut assigned = Vec::new();
    for group in groups {
        let (handed, own): (Vec<_>, Vec<_>) = group.into_iter().partition(|&index| program.steps[index].handed);
        let (mut handed, mut own) = (handed.into_iter().peekable(), own.into_iter().peekable());
        let (mut busy, mut now, mut first) = (0, 0, true);
        loop {
            let next = match (handed.peek(), own.peek()) {
                (Some(_), Some(_)) if busy > now => own.next(),
                (Some(_), _) => handed.next(),
                _ => own.next(),
            };
            let Some(step) = next.and_then(|index| program.steps.get(index)) else {
                break;
            };
            let cost = step.step.work().total();
            if step.handed {
                now = now.max(busy);
                busy = now + cost;
            } else {
                now += cost;
            }
            let barrier = if first && !assigned.is_empty() { BARRIER } else { 0 };
            assigned.push(u8::from(step.handed) | barrier);
            made.steps.push(step.clone());
            first = false;
        }
    }
    made.assigned.steps = assigned;
    // A tensor is complete behind the last of the parts.
    let mut seen = HashSet::new();
    for step in made.steps.iter_mut().rev() {
        step.completes = step.completes.filter(|&tensor| seen.insert(tensor));
    }
    made
}
