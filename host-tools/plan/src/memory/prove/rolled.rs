//! The proof of rolled steps: turn by turn, every row that is read is followed from the turn that made it.

use arenite::{Access, NO_STEP, Operand, RESIDENT, Rolled, Rolling, Slot, Step, TurnAt};

use super::{Followed, check_step};
use crate::metadata::{Metadata, NO_TENSOR};
use crate::model::ModelView;
use crate::{Error, Result};

/// Numbers of rows, as the map of writers has them, begin behind those of tensors.
const ROWS: u32 = 1 << 30;

impl Followed {
    /// Follows the turns, where the file has any. Returns the number of steps that roll.
    pub(super) fn rolled(&mut self, view: &ModelView<'_>, metadata: &Metadata, steps: &[Step]) -> Result<usize> {
        let section = view.section(view.header().rolling);
        if section.is_empty() {
            return Ok(0);
        }
        let wrong = || Error::input("the section of rolled tensors contradicts itself").help("pack the model again");
        let rolling = Rolling::of(section).ok_or_else(wrong)?;
        let tensors: Vec<Rolled> = (0..rolling.count()).filter_map(|index| rolling.tensor(index)).collect();
        let place = |tensor: &Rolled, row: u32| {
            let (region, offset) = rolling.place(tensor, row).ok_or_else(wrong)?;
            Ok::<_, Error>(Slot { region, offset })
        };
        let number = |tensor: &Rolled, row: u32| ROWS + u32::from(tensor.first) + row;
        let mut made = vec![0; tensors.len()];
        for (tensor, made) in tensors.iter().zip(&mut made) {
            if tensor.step == NO_STEP && tensor.source == RESIDENT {
                *made = u32::from(tensor.rows);
                for row in 0..*made {
                    self.writers
                        .write(place(tensor, row)?, tensor.bytes.into(), number(tensor, row));
                }
            }
        }
        let (mut at, mut turn) = (TurnAt::START, 0);
        while let Some((index, next)) = rolling.turn(at) {
            (at, turn) = (next, turn + 1);
            let index = usize::from(index);
            let tensor = tensors.get(index).ok_or_else(wrong)?;
            let row = made[index];
            made[index] += 1;
            if row >= tensor.rows.into() {
                return Err(wrong());
            }
            if tensor.step == NO_STEP {
                self.writers
                    .write(place(tensor, row)?, tensor.bytes.into(), number(tensor, row));
                continue;
            }
            let step = steps.get(usize::from(tensor.step)).ok_or_else(wrong)?;
            let meta = metadata.steps.get(usize::from(tensor.step)).ok_or_else(wrong)?;
            let here = |e: Error| {
                e.at(format_args!(
                    "turn {turn}: row {row} of step {} (`{}`)",
                    tensor.step, meta.name
                ))
            };
            let (of_row, read) = of_row(step, row, tensor.rows.into()).ok_or_else(wrong).map_err(here)?;
            let mut operands = Vec::new();
            of_row.operands(&mut |operand| operands.push(operand));
            // Of an operand of several rows each is one of its own, which nothing may overlap.
            let mut rows: Vec<(usize, Operand, u32)> = Vec::new();
            for (at, operand) in operands.iter().enumerate() {
                if operand.place.region != Slot::ROLLED {
                    rows.push((at, *operand, NO_TENSOR));
                    continue;
                }
                let of = operand.place.offset as usize;
                let tensor = tensors.get(of).ok_or_else(wrong).map_err(here)?;
                let (first, count) = if of == index {
                    (row, 1)
                } else {
                    (read.0, read.1 - read.0)
                };
                if u32::from(tensor.bytes).checked_mul(count) != Some(operand.bytes) || (of == index) != (at == 0) {
                    return Err(here(wrong()));
                }
                for row in first..first + count {
                    let bytes = tensor.bytes.into();
                    let place = place(tensor, row)?;
                    rows.push((
                        at,
                        Operand {
                            place,
                            bytes,
                            ..*operand
                        },
                        number(tensor, row),
                    ));
                }
            }
            let single = rows.len() == operands.len();
            let placed: Vec<Operand> = rows.iter().map(|&(_, operand, _)| operand).collect();
            if single {
                check_step(view, &of_row, &placed).map_err(here)?;
            } else {
                apart(view, &placed).map_err(here)?;
            }
            for (_, operand, number) in rows.iter().filter(|(_, operand, _)| operand.access == Access::Read) {
                if operand.place.region == Slot::WEIGHTS {
                    continue;
                }
                self.writers
                    .read(operand.place, operand.bytes, *number)
                    .map_err(|fault| {
                        here(Error::input(format!(
                            "it reads row {} of the table of places, but byte {} is not that row's",
                            *number - ROWS,
                            fault.at
                        )))
                    })?;
                self.reads += 1;
            }
            // Sums outlive a turn, and what they are for is written in the last one.
            let sums = step.summed().map(|_| number(tensor, row));
            let is_last = row + 1 == u32::from(tensor.rows);
            for (_, operand, number) in rows.iter().filter(|(_, operand, _)| operand.access != Access::Read) {
                match (sums, operand.access) {
                    (Some(sums), Access::Scratch) => {
                        if row > 0 {
                            self.writers
                                .read(operand.place, operand.bytes, sums - 1)
                                .map_err(|fault| {
                                    here(Error::input(format!(
                                        "byte {} of its sums was overwritten since the turn before",
                                        fault.at
                                    )))
                                })?;
                        }
                        self.writers.write(operand.place, operand.bytes, sums);
                    }
                    (Some(_), _) if !is_last => {}
                    _ => self.writers.write(operand.place, operand.bytes, *number),
                }
            }
        }
        // Rows that are all there, one behind the other, are the tensor that the other steps read.
        for (tensor, made) in tensors.iter().zip(made) {
            if made != u32::from(tensor.rows) {
                return Err(wrong());
            }
            let summed = steps
                .get(usize::from(tensor.step))
                .is_some_and(|step| step.summed().is_some());
            let begin = if summed { made.saturating_sub(1) } else { 0 };
            let first = place(tensor, begin)?;
            let there = (begin..made).all(|row| {
                let slot = Slot {
                    offset: first.offset.saturating_add((row - begin) * u32::from(tensor.bytes)),
                    ..first
                };
                let same = rolling.place(tensor, row) == Some((slot.region, slot.offset));
                same && self
                    .writers
                    .read(slot, tensor.bytes.into(), number(tensor, row))
                    .is_ok()
            });
            let owner = metadata
                .steps
                .get(usize::from(tensor.step))
                .and_then(|meta| meta.operands.first());
            if let (true, Some(&owner)) = (there, owner) {
                self.writers
                    .write(first, u32::from(tensor.bytes) * (made - begin), owner);
            }
        }
        Ok(rolling.steps() as usize)
    }
}

/// The step that makes one row, and the rows that it reads of its inputs: the first one and that behind the last.
fn of_row(step: &Step, row: u32, rows: u32) -> Option<(Step, (u32, u32))> {
    let mut step = step.clone();
    if step.summed().is_some() {
        return Some((step.of_summed_row()?, (row, row + 1)));
    }
    let Some(window) = step.window_mut() else {
        let elements = step.elements()?.checked_div(rows)?;
        return Some((step.of_elements(elements)?, (row, row + 1)));
    };
    let above = |tap: i64| tap * i64::from(window.dilation[0]) + i64::from(row) * i64::from(window.stride[0]);
    let inside = |tap: &i64| {
        let at = above(*tap) - i64::from(window.padding[0]);
        (0..i64::from(window.input[0])).contains(&at)
    };
    let at = |tap: i64| above(tap) - i64::from(window.padding[0]);
    let taps = 0..i64::from(window.kernel[0]);
    let (first, last) = (taps.clone().find(inside)?, taps.rev().find(inside)?);
    // Between the first tap inside and the last one there are those that a dilation leaves out; a kernel may take rows of the padding's edge as well.
    let least = at(0).max(0);
    let most = at(i64::from(window.kernel[0]) - 1).min(i64::from(window.input[0]) - 1);
    if at(first) < least || at(last) > most {
        return None;
    }
    let padding = u8::try_from((-at(0)).max(0)).ok()?;
    window.input[0] = u16::try_from(most - least + 1).ok()?;
    (window.output[0], window.padding[0]) = (1, padding);
    Some((step, (least as u32, most as u32 + 1)))
}

/// Bounds of operands, and that what is written meets nothing else.
fn apart(view: &ModelView<'_>, operands: &[Operand]) -> Result<()> {
    let header = view.header();
    let end = |operand: &Operand| u64::from(operand.place.offset) + u64::from(operand.bytes);
    for (index, operand) in operands.iter().enumerate() {
        let size = match operand.place.region {
            Slot::STATE => header.state_init.len,
            Slot::WEIGHTS => header.weights.len,
            region => header.arena.get(usize::from(region)).copied().unwrap_or(0),
        };
        if end(operand) > size.into() || !operand.place.offset.is_multiple_of(operand.align.max(1)) {
            return Err(Error::input(format!(
                "operand {index} lies outside its memory, or is not aligned"
            )));
        }
        let meets = |other: &Operand| {
            other.place.region == operand.place.region
                && u64::from(other.place.offset) < end(operand)
                && u64::from(operand.place.offset) < end(other)
        };
        let others = operands
            .iter()
            .enumerate()
            .filter(|&(at, other)| at != index && other.bytes > 0);
        if operand.access != Access::Read && operand.bytes > 0 && others.into_iter().any(|(_, other)| meets(other)) {
            return Err(Error::input(format!("operand {index} overlaps a row that is read")));
        }
    }
    Ok(())
}
