//! Turns of rolled tensors: which kernels compute them, and the operator of one row.
//!
//! A step's record describes its tensors as if they were whole. `turned` makes of it the operator of one row. Its operands lie in [`Slot::ROLLED`]: a kernel
//! sees the row that it makes, and the first row that it reads, as if they were all that there is. Kernels that read several rows ask for each by itself
//! (`arena::Mem::row`).
//!
//! [`Slot::ROLLED`]: crate::arena::Slot::ROLLED

use core::cell::Cell;

use super::overlap::{Operands, check_operand, may_overlap, overlap};
use crate::arena::{Access, Bounds, MAX_REGIONS, Operand, Slot};
use crate::ops::fault::Fault;
use crate::ops::operator::Operator;
use crate::rolled::{MAX_TURN_ROWS, Turn};

/// How a kernel computes turns. Its packed weights and what it trusts in them must not depend on the number of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rolls {
    /// Not at all.
    No,
    /// From one row of each operand, or from several that are neighbours in memory, by the code for whole tensors; sums of rows
    /// ([`Operator::summed_mut`]) likewise, in scratch that keeps its bytes from the first turn to the last one, behind which the output is there.
    Row,
    /// From rows anywhere.
    Rows,
}

/// Makes of a step's operator that of the turn, which hears of the rows that it reads.
///
/// # Errors
/// [`Fault::Unsupported`] for an operator without rows, [`Fault::Shape`] for one whose rows are not those of its tensor.
pub(crate) fn turned<O: Operator>(turn: &Turn<'_>, op: &mut O) -> Result<(), Fault> {
    let rows = u32::from(turn.made().ok_or(Fault::Shape)?.rows);
    if let Some(window) = op.window_mut() {
        if window.batch != 1 || u32::from(window.output[0]) != rows {
            return Err(Fault::Shape);
        }
        let (height, kernel) = (u32::from(window.input[0]), u32::from(window.kernel[0]));
        let (stride, dilation) = (u32::from(window.stride[0]), u32::from(window.dilation[0]));
        let padding = u32::from(window.padding[0]);
        let (start, reach) = (turn.row() * stride, dilation * kernel.saturating_sub(1) + 1);
        let end = (start + reach).saturating_sub(padding).min(height);
        let first = start.saturating_sub(padding);
        let count = end.saturating_sub(first);
        if count as usize > MAX_TURN_ROWS {
            return Err(Fault::Unsupported);
        }
        turn.reads(first, count);
        let count = u16::try_from(count).ok().filter(|&count| count > 0);
        let above = u8::try_from(padding.saturating_sub(start)).map_err(|_| Fault::Shape)?;
        (window.input[0], window.output[0], window.padding[0]) = (count.ok_or(Fault::Shape)?, 1, above);
    } else if let Some(elements) = op.elements_mut() {
        let of_row = elements.checked_div(rows).filter(|of_row| of_row * rows == *elements);
        *elements = of_row.ok_or(Fault::Shape)?;
        turn.reads(turn.row(), 1);
    } else if let Some(summed) = op.summed_mut() {
        if u32::from(*summed) != rows {
            return Err(Fault::Shape);
        }
        *summed = 1;
        turn.reads(turn.row(), 1);
    } else {
        return Err(Fault::Unsupported);
    }
    Ok(())
}

/// As [`check_operands`](super::overlap::check_operands), of one turn: `made` says how many rows of each tensor there are.
#[inline(never)]
pub(crate) fn check_rows(
    step: &dyn Operands,
    (turn, rolls, made): (&Turn<'_>, Rolls, &[Cell<u16>]),
    bounds: &Bounds<'_>,
) -> Result<(), Fault> {
    let mut result = Ok(());
    let mut index = 0;
    bounds.trusted.begin();
    step.each(&mut |operand| {
        if result.is_ok() {
            result = match (operand.place.region, operand.access) {
                (Slot::ROLLED, _) => check_rolled(&operand, (turn, rolls, made), bounds),
                // Every operand that a turn writes is a row.
                (_, Access::Write | Access::Update) => Err(Fault::Rows),
                _ => check_operand(&operand, bounds),
            };
        }
        if result.is_ok() && operand.access != Access::Read {
            result = check_apart(step, (index, &operand), turn);
        }
        index += 1;
    });
    result
}

/// Checks the rows of one operand.
fn check_rolled(
    operand: &Operand,
    (turn, rolls, made): (&Turn<'_>, Rolls, &[Cell<u16>]),
    bounds: &Bounds<'_>,
) -> Result<(), Fault> {
    let index = operand.place.offset;
    let (tensor, first, count) = turn.touched(index).ok_or(Fault::Bounds)?;
    let there = match operand.access {
        Access::Write => turn.makes(index),
        Access::Read => {
            let made = made.get(index as usize).map_or(0, |made| u32::from(made.get()));
            !turn.makes(index) && first + count <= made
        }
        _ => false,
    };
    if !there {
        return Err(Fault::Rows);
    }
    let bytes = u32::from(tensor.bytes);
    if bytes == 0 || bytes.checked_mul(count) != Some(operand.bytes) {
        return Err(Fault::Shape);
    }
    let mut next = None;
    let mut apart = false;
    for row in 0..count {
        let place = placed(turn, index, row).ok_or(Fault::Bounds)?;
        if !bounds.contain(place, bytes) || usize::from(place.region) >= MAX_REGIONS {
            return Err(Fault::Bounds);
        }
        if !place.offset.is_multiple_of(operand.align) {
            return Err(Fault::Alignment);
        }
        apart |= next.is_some_and(|next| next != place);
        next = Some(Slot {
            offset: place.offset.saturating_add(bytes),
            ..place
        });
    }
    if rolls == Rolls::Rows || !apart {
        Ok(())
    } else {
        Err(Fault::Rows)
    }
}

/// Checks the overlaps of a written operand with all others, row by row.
fn check_apart(step: &dyn Operands, (index, operand): (usize, &Operand), turn: &Turn<'_>) -> Result<(), Fault> {
    let mut allowed = true;
    let mut other_index = 0;
    // It is one row, or scratch.
    let (written, _) = resolved(operand, turn, 0).ok_or(Fault::Bounds)?;
    step.each(&mut |other| {
        let mut row = 0;
        while let Some((read, count)) = resolved(&other, turn, row).filter(|_| other_index != index) {
            let follows = index == 0 && count == 1 && other.access == Access::Read;
            allowed &= !overlap(&written, &read) || (follows && may_overlap(step, &written, other_index, &read));
            row += 1;
        }
        other_index += 1;
    });
    if allowed { Ok(()) } else { Err(Fault::Overlap) }
}

/// Row `row` of an operand as an operand of its own, and how many there are; `None` behind the last one.
fn resolved(operand: &Operand, turn: &Turn<'_>, row: u32) -> Option<(Operand, u32)> {
    if operand.place.region != Slot::ROLLED {
        return (row == 0).then_some((*operand, 1));
    }
    let (tensor, _, count) = turn.touched(operand.place.offset)?;
    let place = placed(turn, operand.place.offset, row)?;
    let bytes = tensor.bytes.into();
    Some((
        Operand {
            place,
            bytes,
            ..*operand
        },
        count,
    ))
}

fn placed(turn: &Turn<'_>, index: u32, row: u32) -> Option<Slot> {
    let (region, offset) = turn.place(index, row)?;
    Some(Slot { region, offset })
}
