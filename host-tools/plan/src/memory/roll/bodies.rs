//! When each row lives, and what it may overlap. Time is counted in turns; the steps that do not roll follow them.

use std::collections::HashMap;

use super::super::bodies::{Bodies, relations};
use super::super::lifetimes::{self, Life, Moment, in_arena};
use super::super::plan::{Buffer, Part, Relation};
use super::chain::{of_row, reads};
use super::places::{ALIGN, Roll, RolledTensor};
use crate::graph::TensorId;
use crate::program::{Place, Program};

/// Of each row of each tensor the body that has it, and the bytes from its start.
pub(super) type Rows = Vec<Vec<(usize, u64)>>;

/// One turn, or the time of a row: from when it is made to when it is read last.
struct Lives {
    /// By tensor and row.
    rows: Vec<Vec<(u64, u64)>>,
    /// By turn: the row that it makes.
    made: Vec<usize>,
}

/// The bodies of a program whose first steps roll.
pub(super) fn bodies(program: &Program, roll: &Roll, in_place: bool) -> (Bodies, Rows) {
    let turns = roll.turns.len();
    let steps = turns + program.steps.len() - roll.steps;
    let mut bodies = Bodies::empty(steps.max(1));
    let lives = lives(program, roll);
    let rows = add_rows(program, roll, &lives, &mut bodies);
    add_others(program, roll, &mut bodies);
    if in_place {
        bodies.problem.relations = over_rows(program, roll, &lives, &rows);
        let of_program: Vec<_> = lifetimes::of_program(program);
        let whole = lifetimes::lives(&of_program);
        let later = relations(program, &bodies, &whole, roll.steps);
        bodies.problem.relations.extend(later);
    }
    (bodies, rows)
}

/// The tensors that a step that rolls reads, by their numbers.
fn inputs(program: &Program, roll: &Roll, step: usize) -> Vec<usize> {
    let places = program.steps[step].places();
    let ids = places.iter().skip(1).filter_map(|place| match place {
        Place::Tensor(id, _) => {
            let id = program.root(*id).0;
            roll.tensors.iter().position(|tensor| tensor.id == id)
        }
        _ => None,
    });
    ids.collect()
}

fn lives(program: &Program, roll: &Roll) -> Lives {
    let resident = |tensor: &RolledTensor| tensor.step.is_none() && tensor.fed.is_none();
    let mut rows: Vec<Vec<(u64, u64)>> = Vec::new();
    for tensor in &roll.tensors {
        rows.push(if resident(tensor) {
            vec![(0, 0); tensor.rows]
        } else {
            Vec::new()
        });
    }
    let mut made = Vec::new();
    for (turn, &tensor) in (0..).zip(&roll.turns) {
        let tensor = usize::from(tensor);
        let row = rows[tensor].len();
        made.push(row);
        rows[tensor].push((turn, turn));
        if let Some(step) = roll.tensors[tensor].step {
            let read = reads(&program.steps[step].step, row);
            for input in inputs(program, roll, step) {
                for life in &mut rows[input][read.clone()] {
                    life.1 = turn;
                }
            }
        }
    }
    // The last point at which a step that does not roll, or the caller, reads a tensor.
    let last = |id: TensorId| {
        let read = |index: &usize| {
            let places = program.steps[*index].places();
            places
                .iter()
                .any(|place| matches!(place, Place::Tensor(of, _) if program.root(*of).0 == id))
        };
        let output = program.graph.outputs.iter().any(|&output| program.root(output).0 == id);
        let step = if output {
            program.steps.len().checked_sub(1)
        } else {
            None
        };
        let step = step.or_else(|| (roll.steps..program.steps.len()).rev().find(read));
        step.map(|step| (roll.turns.len() + step).saturating_sub(roll.steps) as u64)
    };
    for (tensor, rows) in roll.tensors.iter().zip(&mut rows).filter(|(tensor, _)| tensor.whole) {
        if let Some(last) = last(tensor.id) {
            // A step that sums up rows writes in its last turn alone.
            let begin = if tensor.summed { rows.len() - 1 } else { 0 };
            rows[begin..].iter_mut().for_each(|life| life.1 = life.1.max(last));
        }
    }
    Lives { rows, made }
}

/// A body for each row, or for each tensor whose rows lie together; one for the scratch of each step.
fn add_rows(program: &Program, roll: &Roll, lives: &Lives, bodies: &mut Bodies) -> Rows {
    let part = |(lower, last): (u64, u64), offset: u64, size: u64| Part {
        lower,
        upper: last + 1,
        offset,
        size,
    };
    let mut rows = Rows::new();
    for (tensor, lives) in roll.tensors.iter().zip(&lives.rows) {
        let name = &program.graph.tensor(tensor.id).name;
        let align = 1 << ALIGN;
        let buffer = |name: String, parts: Vec<Part>| Buffer {
            name,
            align,
            parts,
            fixed: None,
        };
        let mut of = Vec::new();
        if tensor.whole {
            let pitch = if tensor.summed { 0 } else { tensor.bytes };
            let parts = (0..)
                .zip(lives)
                .map(|(row, &life)| part(life, row * pitch, tensor.bytes));
            let body = bodies.add(buffer(name.clone(), parts.collect()));
            bodies.set_tensor(tensor.id, body);
            of.extend((0..tensor.rows as u64).map(|row| (body, row * pitch)));
        } else {
            for (row, &life) in lives.iter().enumerate() {
                let body = bodies.add(buffer(format!("{name} row {row}"), vec![part(life, 0, tensor.bytes)]));
                of.push((body, 0));
            }
        }
        rows.push(of);
    }
    for (index, step) in program.steps.iter().enumerate().take(roll.steps) {
        // That of its dearest row: a plane of a few rows is less than one of all.
        let rows = roll
            .tensors
            .iter()
            .find(|tensor| tensor.step == Some(index))
            .map_or(0, |of| of.rows);
        let of_rows = (0..rows).filter_map(|row| of_row(&step.step, row, rows));
        let bytes = of_rows.map(|row| row.needs().scratch).max().unwrap_or(0).into();
        if bytes > 0 {
            let made = (0..).zip(&roll.turns);
            let own = made.filter(|&(_, &tensor)| roll.tensors[usize::from(tensor)].step == Some(index));
            let mut parts: Vec<Part> = own.map(|(turn, _)| part((turn, turn), 0, bytes)).collect();
            if step.step.summed().is_some()
                && let Some(&last) = parts.last()
            {
                // Sums outlive each turn but the last one.
                parts.truncate(1);
                parts[0].upper = last.upper;
            }
            let body = bodies.add(Buffer {
                name: format!("{} (scratch)", step.name),
                align: arenite::ARENA_ALIGN as u64,
                parts,
                fixed: None,
            });
            bodies.set_scratch(index, body);
        }
    }
    rows
}

/// Bodies of what the steps that do not roll touch alone, and of their scratch.
fn add_others(program: &Program, roll: &Roll, bodies: &mut Bodies) {
    let touches = lifetimes::of_program(program);
    let lives = lifetimes::lives(&touches);
    let turns = roll.turns.len() as u64;
    let at = |moment: Moment| match moment {
        Moment::Start => 0,
        Moment::Step(step) => turns + step.saturating_sub(roll.steps) as u64,
        Moment::End => (turns + program.steps.len() as u64).saturating_sub(roll.steps as u64 + 1),
    };
    let mut known: HashMap<TensorId, ()> = roll.tensors.iter().map(|tensor| (tensor.id, ())).collect();
    for touch in &touches {
        let id = touch.root;
        if !in_arena(&program.graph, id) || known.insert(id, ()).is_some() {
            continue;
        }
        let tensor = program.graph.tensor(id);
        let Life { first, last } = lives[&id];
        let buffer = Buffer::new(&tensor.name, at(first), at(last) + 1, tensor.bytes() as u64);
        let body = bodies.add(buffer.aligned(tensor.dtype.bytes().max(4) as u64));
        bodies.set_tensor(id, body);
    }
    for (index, step) in program.steps.iter().enumerate().skip(roll.steps) {
        let bytes = u64::from(step.step.needs().scratch);
        if bytes > 0 {
            let moment = at(Moment::Step(index));
            let buffer = Buffer::new(format!("{} (scratch)", step.name), moment, moment + 1, bytes);
            let body = bodies.add(buffer.aligned(arenite::ARENA_ALIGN as u64));
            bodies.set_scratch(index, body);
        }
    }
}

/// Where a row may overlap the one row that it is made of, at the distance that the kernel states.
fn over_rows(program: &Program, roll: &Roll, lives: &Lives, rows: &Rows) -> Vec<Relation> {
    let mut relations = Vec::new();
    for ((turn, &tensor), &row) in (0..).zip(&roll.turns).zip(&lives.made) {
        let tensor = usize::from(tensor);
        let of = &roll.tensors[tensor];
        let Some(step) = of.step.filter(|_| !of.whole) else {
            continue;
        };
        let lowered = &program.steps[step];
        let read = reads(&lowered.step, row);
        let Some(of_row) = of_row(&lowered.step, row, of.rows).filter(|_| read.len() == 1) else {
            continue;
        };
        let below = rows[tensor][row].0;
        let mut above: Vec<(usize, Option<i64>)> = Vec::new();
        for (index, operand) in lowered.operands().iter().enumerate().skip(1) {
            let Place::Tensor(id, _) = operand.place else {
                continue;
            };
            let id = program.root(id).0;
            let Some(input) = roll.tensors.iter().position(|tensor| tensor.id == id && !tensor.whole) else {
                continue;
            };
            let distance = of_row.distance(index);
            match above.iter_mut().find(|(known, _)| *known == input) {
                // Read twice by the same step, it must satisfy the rule of both operands.
                Some((_, known)) => *known = known.zip(distance).map(|(a, b)| a.max(b)),
                None => above.push((input, distance)),
            }
        }
        for (input, distance) in above {
            if let (Some(distance), true) = (distance, lives.rows[input][read.start].1 == turn) {
                let above = rows[input][read.start].0;
                relations.push(Relation { below, above, distance });
            }
        }
    }
    relations
}
