//! Load's checks of the operands of a step: in bounds, aligned, and overlapping only where the kernel allows it.

use crate::arena::{Access, Bounds, Operand, Slot};
#[cfg(feature = "cores")]
use crate::groups::Meets;
use crate::ops::fault::Fault;

/// Operands of a step, as load checks them; implemented for every kernel, checked by one function.
pub(crate) trait Operands {
    /// [`Operator::operands`].
    fn each(&self, visit: &mut dyn FnMut(Operand));
    /// [`Kernel::distance`].
    fn distance(&self, index: usize) -> Option<i64>;
    /// [`Kernel::in_place`].
    fn in_place(&self, index: usize) -> bool;
}

/// Everything that load checks of a step's operands; tells [`Bounds::trusted`] of those that are constants. They are visited anew for each one that is written,
/// which takes less code and stack than a list.
#[inline(never)]
pub(crate) fn check_operands(step: &dyn Operands, bounds: &Bounds<'_>) -> Result<(), Fault> {
    let mut result = Ok(());
    let mut index = 0;
    bounds.trusted.begin();
    step.each(&mut |operand| {
        if result.is_ok() {
            result = check_operand(&operand, bounds);
        }
        if result.is_ok() && operand.access != Access::Read {
            result = check_overlaps(step, index, &operand);
        }
        index += 1;
    });
    result
}

/// Checks the overlaps of a written operand with all others.
#[inline(never)]
fn check_overlaps(step: &dyn Operands, index: usize, operand: &Operand) -> Result<(), Fault> {
    let mut allowed = true;
    let mut other_index = 0;
    step.each(&mut |other| {
        allowed &= other_index == index
            || !overlap(operand, &other)
            || (index == 0 && other.access == Access::Read && may_overlap(step, operand, other_index, &other));
        other_index += 1;
    });
    if allowed { Ok(()) } else { Err(Fault::Overlap) }
}

/// Whether the output may overlap a read operand as it does.
#[inline(never)]
pub(super) fn may_overlap(step: &dyn Operands, output: &Operand, index: usize, other: &Operand) -> bool {
    let behind = i64::from(other.place.offset) - i64::from(output.place.offset);
    step.distance(index).is_some_and(|distance| distance <= behind)
        || (output.place == other.place && step.in_place(index))
}

#[inline(never)]
pub(super) fn check_operand(operand: &Operand, bounds: &Bounds<'_>) -> Result<(), Fault> {
    let Operand {
        access,
        place,
        bytes,
        align,
    } = *operand;
    if !bounds.contain(place, bytes) || (place.region == Slot::WEIGHTS && access != Access::Read) {
        return Err(Fault::Bounds);
    }
    if place.region == Slot::WEIGHTS {
        bounds.trusted.add(place.offset, bytes);
        #[cfg(feature = "cores")]
        if !bounds.groups.reaches_constant(place.offset) {
            return Err(Fault::Reach);
        }
    } else {
        #[cfg(feature = "cores")]
        match bounds
            .groups
            .add(place.region, place.offset, bytes, access != Access::Read)
        {
            Meets::Nothing => {}
            Meets::Another => return Err(Fault::Race),
            Meets::Unknown => return Err(Fault::Group),
            Meets::Beyond => return Err(Fault::Reach),
        }
    }
    if place.offset.is_multiple_of(align) {
        Ok(())
    } else {
        Err(Fault::Alignment)
    }
}

pub(super) fn overlap(a: &Operand, b: &Operand) -> bool {
    a.place.region == b.place.region
        && a.bytes > 0
        && b.bytes > 0
        && a.place.offset < b.place.offset.saturating_add(b.bytes)
        && b.place.offset < a.place.offset.saturating_add(a.bytes)
}
