//! The steps that can roll: those at the beginning whose kernels make single rows from rows.

use std::ops::Range;

use arenite::kernels::api::turn::Rolls;
use arenite::ops::window::Window2d;
use arenite::{Access, MAX_ROLLED, MAX_TURN_ROWS, Step};

use super::super::lifetimes::in_arena;
use super::places::{Roll, RolledTensor};
use crate::error::{Error, Result};
use crate::graph::TensorId;
use crate::program::{LoweredStep, Place, Program};

/// The rows of each operand that a step reads for row `row` of its output.
pub(super) fn reads(step: &Step<Place>, row: usize) -> Range<usize> {
    match step.clone().window_mut() {
        Some(window) => under(window, row),
        None => row..row + 1,
    }
}

/// The input rows under the windows of an output row; none where these are in the padding altogether.
fn under(window: &Window2d, row: usize) -> Range<usize> {
    let [stride, padding, dilation] = [window.stride[0], window.padding[0], window.dilation[0]].map(usize::from);
    let reach = (usize::from(window.kernel[0]) - 1) * dilation + 1;
    let end = (row * stride + reach).saturating_sub(padding);
    (row * stride).saturating_sub(padding)..end.min(window.input[0].into())
}

/// The step that makes row `row`; `None` where no kernel does.
pub(super) fn of_row(step: &Step<Place>, row: usize, rows: usize) -> Option<Step<Place>> {
    if let Some(window) = step.clone().window_mut().copied() {
        let read = under(&window, row);
        let above = usize::from(window.padding[0]).saturating_sub(row * usize::from(window.stride[0]));
        let mut of_row = step.clone();
        let place = of_row.window_mut()?;
        (place.input[0], place.output[0], place.padding[0]) = (read.len() as u16, 1, above as u8);
        return of_row.check().is_ok().then_some(of_row);
    }
    if step.summed().is_some() {
        return step.clone().of_summed_row();
    }
    let elements = step.elements()?;
    (elements as usize)
        .is_multiple_of(rows)
        .then(|| step.clone().of_elements(elements / rows as u32))?
}

/// The longest beginning of the program that rolls, of at most so many steps, without its turns.
///
/// # Errors
/// [`crate::error::ErrorKind::Unsupported`] naming the first step that does not roll, where that is the first of all or reads an input that is to be fed.
pub(super) fn chain(program: &Program, fed: &[usize], most: usize) -> Result<Roll> {
    let mut roll = Roll::default();
    for (index, step) in program.steps.iter().enumerate().take(most) {
        let Some(added) = added(program, &roll, (index, step)) else {
            break;
        };
        if roll.tensors.len() + added.len() > MAX_ROLLED || index >= usize::from(arenite::NO_STEP) {
            break;
        }
        let inputs = added.len() - 1;
        // Inputs come first.
        let at = roll.tensors.iter().filter(|tensor| tensor.step.is_none()).count();
        let mut added = added.into_iter();
        roll.tensors.splice(at..at, added.by_ref().take(inputs));
        roll.tensors.extend(added);
        roll.steps = index + 1;
    }
    let Some(first) = program.steps.first() else {
        return Err(Error::unsupported("a network without steps does not roll").help("leave --stream-input out"));
    };
    if roll.steps == 0 {
        return Err(does_not(first));
    }
    let touched = |id: TensorId| {
        let later = program.steps[roll.steps..].iter().flat_map(LoweredStep::places);
        let roots = later.filter_map(|place| match place {
            Place::Tensor(id, _) => Some(program.root(id).0),
            _ => None,
        });
        roots
            .chain(program.graph.outputs.iter().map(|&output| program.root(output).0))
            .any(|root| root == id)
    };
    let whole: Vec<bool> = roll.tensors.iter().map(|tensor| touched(tensor.id)).collect();
    for (tensor, whole) in roll.tensors.iter_mut().zip(whole) {
        tensor.whole = whole || tensor.summed;
        if tensor.step.is_none() {
            let input = program
                .graph
                .inputs
                .iter()
                .position(|&id| program.root(id).0 == tensor.id);
            tensor.fed = input.filter(|input| fed.contains(input));
            tensor.whole |= tensor.fed.is_none();
        }
    }
    for &input in fed {
        let name = |id: TensorId| &program.graph.tensor(id).name;
        let id = program.graph.inputs[input];
        match roll.tensors.iter().find(|tensor| tensor.fed == Some(input)) {
            Some(tensor) if !tensor.whole => {}
            _ => {
                let last = &program.steps[roll.steps.min(program.steps.len() - 1)];
                return Err(
                    Error::unsupported(format!("input `{}` cannot be fed by rows", name(id)))
                        .at(format_args!("step `{}` ({})", last.name, last.kind))
                        .expected("steps that read single rows of it, all of them before the first one that does not")
                        .help("leave --stream-input out"),
                );
            }
        }
    }
    Ok(roll)
}

fn does_not(step: &LoweredStep) -> Error {
    Error::unsupported(format!("`{}` ({}) does not roll", step.name, step.kind))
        .expected("an int8 convolution, pooling or elementwise operator of a target that rolls it, on one image")
        .help("leave --stream-input out")
}

/// The tensors that a step adds to those that roll, the one that it makes at the end; `None` where it does not roll.
fn added(program: &Program, roll: &Roll, (index, step): (usize, &LoweredStep)) -> Option<Vec<RolledTensor>> {
    if step.step.rolls() == Rolls::No || step.handed {
        return None;
    }
    let operands = step.operands();
    let own = |place: Place| match place {
        // A view of all of it has the same rows.
        Place::Tensor(id, 0) => Some(program.root(id))
            .filter(|&(root, from)| from == 0 && in_arena(&program.graph, root))
            .map(|(root, _)| root)
            .filter(|&root| program.graph.tensor(root).bytes() == program.graph.tensor(id).bytes()),
        _ => None,
    };
    let known = |id: TensorId| roll.tensors.iter().find(|tensor| tensor.id == id);
    let mut added = Vec::new();
    let (output, reads_of) = operands.split_first()?;
    let id = own(output.place).filter(|&id| output.access == Access::Write && known(id).is_none())?;
    let window = step.step.clone().window_mut().copied();
    let mut height = None;
    for operand in reads_of {
        let input = match (operand.place, operand.access) {
            (Place::Constant(_), Access::Read) | (Place::Scratch, _) => continue,
            (place, Access::Read) => own(place).filter(|&input| input != id)?,
            _ => return None,
        };
        let rows = match (known(input), window, step.step.summed()) {
            (Some(tensor), ..) => tensor.rows,
            (None, Some(window), _) => window.input[0].into(),
            (None, None, Some(rows)) => rows.into(),
            (None, None, None) => *program
                .graph
                .tensor(input)
                .shape
                .get(1)
                .filter(|_| rank(program, input) == 4)?,
        };
        let bytes = u64::from(operand.bytes);
        if rows == 0 || bytes % rows as u64 != 0 || height.is_some_and(|height| height != rows) {
            return None;
        }
        height = Some(rows);
        match known(input) {
            Some(tensor) if !tensor.summed && tensor.bytes * tensor.rows as u64 == bytes => {}
            Some(_) => return None,
            // Steps before the first one make no other inputs.
            None if program.graph.inputs.iter().any(|&port| program.root(port).0 == input) => {
                if added.iter().all(|tensor: &RolledTensor| tensor.id != input) {
                    added.push(RolledTensor {
                        id: input,
                        step: None,
                        fed: None,
                        rows,
                        bytes: bytes / rows as u64,
                        whole: false,
                        summed: false,
                    });
                }
            }
            None => return None,
        }
    }
    let rows = match window {
        Some(window) if window.batch == 1 && usize::from(window.input[0]) == height? => window.output[0].into(),
        Some(_) => return None,
        None => height.filter(|&height| step.step.summed().is_none_or(|rows| usize::from(rows) == height))?,
    };
    let most = if step.step.rolls() == Rolls::Rows {
        MAX_TURN_ROWS
    } else {
        1
    };
    let rolls = (0..rows).all(|row| {
        let read = reads(&step.step, row).len();
        // The packed weights are the same; of scratch a row may want less.
        let serves = |of_row: Step<Place>| {
            let [whole, row] = [step.step.needs(), of_row.needs()];
            row.weights == whole.weights && row.scratch <= whole.scratch
        };
        (1..=most).contains(&read) && of_row(&step.step, row, rows).is_some_and(serves)
    });
    let summed = step.step.summed().is_some();
    let made = if summed { 1 } else { rows as u64 };
    if !rolls || u64::from(output.bytes) % made != 0 || rows > usize::from(u16::MAX) {
        return None;
    }
    added.push(RolledTensor {
        id,
        step: Some(index),
        fed: None,
        rows,
        bytes: u64::from(output.bytes) / made,
        whole: false,
        summed,
    });
    Some(added)
}

fn rank(program: &Program, id: TensorId) -> usize {
    program.graph.tensor(id).shape.len()
}
