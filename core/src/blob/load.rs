//! [`Model::load`](super::Model::load): everything that is checked once, so that a run has nothing left to check.

#[cfg(feature = "rolling")]
use core::cell::Cell;

use super::port::PortPlace;
#[cfg(feature = "rolling")]
use super::rolling;
use super::sections::Parts;
use crate::arena::{Bounds, Slot};
#[cfg(feature = "accelerators")]
use crate::declared::Declaration;
use crate::error::LoadError;
use crate::fields::Fields;
#[cfg(feature = "accelerators")]
use crate::groups::{ACCELERATOR, BARRIER};
#[cfg(feature = "cores")]
use crate::groups::{MAX_CORES, Reach};
use crate::kernels::table::CheckStep;
#[cfg(feature = "accelerators")]
use crate::kernels::table::{KernelId, is_built};
use crate::ops::fault::Fault;
#[cfg(feature = "rolling")]
use crate::rolled::{MAX_ROLLED, Rolling, Turn};
#[cfg(any(feature = "training", feature = "rolling"))]
use crate::trusted::Seen;

/// Checks what is in a file whose bytes are as they were written, or were not looked at: the checks are the same, and trust nothing.
pub(super) fn check_parts(parts: Parts<'_>, check_step: CheckStep) -> Result<Parts<'_>, LoadError> {
    check_accelerator(parts)?;
    #[cfg(any(feature = "training", feature = "rolling"))]
    {
        #[cfg(feature = "rolling")]
        let seen = check_rolled(parts, check_step)?;
        #[cfg(not(feature = "rolling"))]
        let seen = None;
        let seen = check_list(parts, seen, check_step)?;
        #[cfg(feature = "training")]
        check_training(parts, seen, check_step)?;
        #[cfg(not(feature = "training"))]
        let _ = seen;
    }
    #[cfg(not(any(feature = "training", feature = "rolling")))]
    {
        let bounds = bounds_of(parts);
        check_steps(parts, &bounds, check_step)?;
        check_ports(parts, &bounds)?;
    }
    Ok(parts)
}

/// Checks rolled tensors, where there are any.
#[cfg(feature = "rolling")]
#[inline(never)]
fn check_rolled(parts: Parts<'_>, check_step: CheckStep) -> Result<Option<Seen>, LoadError> {
    if parts.rolling().is_empty() {
        return Ok(None);
    }
    let turn = Turn::new(Rolling::of(parts.rolling()).ok_or(LoadError::Header)?);
    let made = [const { Cell::new(0) }; MAX_ROLLED];
    let bounds = bounds_of(parts);
    rolling::check(parts, (&turn, &made, &bounds), check_step)?;
    Ok(Some(bounds.trusted.seen()))
}

/// Checks a list of steps and its ports: `seen` is the result of the list before it, whose budget it goes on with.
// Where there are two lists, the bounds of one do not lie below the checks of the other.
#[cfg(any(feature = "training", feature = "rolling"))]
#[inline(never)]
fn check_list(parts: Parts<'_>, seen: Option<Seen>, check_step: CheckStep) -> Result<Seen, LoadError> {
    let bounds = bounds_of(parts);
    if let Some(seen) = seen {
        bounds.trusted.go_on(seen);
    }
    check_steps(parts, &bounds, check_step)?;
    check_ports(parts, &bounds)?;
    Ok(bounds.trusted.seen())
}

/// Checks the steps of training, where there are any, in the same way: behind the file's own, whose memory they share.
#[cfg(feature = "training")]
fn check_training(parts: Parts<'_>, seen: Seen, check_step: CheckStep) -> Result<(), LoadError> {
    match parts.training() {
        Some(training) => check_list(training, Some(seen), check_step).map(|_| ()),
        None if parts.has_training() => Err(LoadError::Header),
        None => Ok(()),
    }
}

/// A function of its own, so that the stack of the steps' checks does not lie below what this one takes.
#[inline(never)]
fn bounds_of(parts: Parts<'_>) -> Bounds<'_> {
    let regions = [0, 1, 2, 3].map(|region| parts.arena_bytes(region));
    let bounds = Bounds::new(regions, parts.state_bytes(), parts.weights(), parts.steps().rest());
    #[cfg(feature = "cores")]
    let bounds = match reach_of(parts) {
        Some(reach) => bounds.shared_by(2, Some(reach)),
        None => bounds.shared_by(parts.cores().map_or(0, |(cores, _)| cores), None),
    };
    bounds
}

/// Refuses a file for an accelerator: this build hands nothing over.
#[cfg(not(feature = "accelerators"))]
fn check_accelerator(parts: Parts<'_>) -> Result<(), LoadError> {
    if parts.is_accelerated() {
        Err(LoadError::Accelerator)
    } else {
        Ok(())
    }
}

/// Checks that the accelerator that the file is for can be.
#[cfg(feature = "accelerators")]
fn check_accelerator(parts: Parts<'_>) -> Result<(), LoadError> {
    match parts.accelerated() {
        Some((_, declared)) if Declaration::of(declared).is_none() => Err(LoadError::Header),
        _ => Ok(()),
    }
}

/// The memory that the file's accelerator reaches.
#[cfg(feature = "cores")]
fn reach_of(parts: Parts<'_>) -> Option<Reach> {
    #[cfg(feature = "accelerators")]
    return parts.accelerator().map(|(declared, _)| Reach {
        alignment: declared.alignment,
        regions: declared.regions,
    });
    #[cfg(not(feature = "accelerators"))]
    {
        let _ = parts;
        None
    }
}

/// Whether the step is handed over, by its byte; then its kernel need not be in this build.
///
/// # Errors
/// [`Fault::Handed`] for a kernel that the accelerator has not.
#[cfg(feature = "accelerators")]
fn is_handed(parts: Parts<'_>, on: Option<u8>, kernel: u8) -> Result<bool, Fault> {
    let accelerator = parts
        .accelerator()
        .filter(|_| on.is_some_and(|on| on & !BARRIER == ACCELERATOR));
    match (accelerator, KernelId::from_u8(kernel)) {
        (None, _) => Ok(false),
        (Some((declared, _)), Some(kernel)) if !declared.takes(kernel) => Err(Fault::Handed),
        // An unknown kernel is refused as that.
        _ => Ok(true),
    }
}

/// Checks that the file is for a number of cores that there can be, and says where each step's core is.
#[cfg(feature = "cores")]
fn check_cores(parts: Parts<'_>) -> Result<&[u8], LoadError> {
    #[cfg(feature = "accelerators")]
    if let Some((_, steps)) = parts.accelerator() {
        return Ok(steps);
    }
    match parts.cores() {
        None => Ok(&[]),
        Some((cores, _)) if !(2..=MAX_CORES as u8).contains(&cores) => Err(LoadError::Cores { found: cores }),
        Some((_, steps)) if steps.len() == parts.step_count() as usize => Ok(steps),
        Some(_) => Err(LoadError::Header),
    }
}

fn check_steps(sections: Parts<'_>, bounds: &Bounds<'_>, check_step: CheckStep) -> Result<(), LoadError> {
    let first = sections.first_step();
    let mut step = first;
    #[cfg(feature = "cores")]
    let mut on = check_cores(sections)?.iter();
    #[cfg(feature = "rolling")]
    let rolled = rolling::steps(sections);
    for record in sections.steps() {
        // Those that roll were checked turn by turn.
        #[cfg(feature = "rolling")]
        if step.wrapping_sub(first) < rolled && record.is_some() {
            step += 1;
            continue;
        }
        let Some((id, params)) = record else {
            let fault = Fault::Encoding;
            return Err(LoadError::Step { step, fault });
        };
        #[cfg(feature = "cores")]
        let on = on.next().copied();
        #[cfg(feature = "cores")]
        if on.is_some_and(|on| !bounds.groups.begin(on)) {
            let fault = Fault::Core;
            return Err(LoadError::Step { step, fault });
        }
        #[cfg(feature = "accelerators")]
        match is_handed(sections, on, id) {
            Ok(handed) if handed || is_built(id) => {}
            Ok(_) => return Err(sections.unknown_kernel(step, id)),
            Err(fault) => return Err(LoadError::Step { step, fault }),
        }
        // Runs that share steps hand no commands over.
        #[cfg(feature = "ethos-u")]
        if on.is_some() && id == KernelId::EthosU as u8 {
            let fault = Fault::Handed;
            return Err(LoadError::Step { step, fault });
        }
        match check_step(id, params, bounds) {
            Some(Ok(())) => {}
            Some(Err(fault)) => return Err(LoadError::Step { step, fault }),
            None => return Err(sections.unknown_kernel(step, id)),
        }
        step += 1;
    }
    if step.wrapping_sub(first) == sections.step_count() {
        Ok(())
    } else {
        Err(LoadError::Header)
    }
}

/// The number of the first port: those of training are counted behind the file's own.
fn first_port(parts: Parts<'_>) -> u32 {
    #[cfg(feature = "training")]
    if parts.list.is_some() {
        let own = parts.inference();
        return (own.inputs() + own.outputs()) as u32;
    }
    let _ = parts;
    0
}

fn check_ports(sections: Parts<'_>, bounds: &Bounds<'_>) -> Result<(), LoadError> {
    let mut fields = Fields::new(sections.ports());
    let (input_count, count) = (
        sections.inputs() as u32,
        (sections.inputs() + sections.outputs()) as u32,
    );
    let (first, mut inputs, mut outputs) = (first_port(sections), 0u32, 0u32);
    for index in 0..count {
        let wrong = LoadError::Port { port: first + index };
        let place = PortPlace::read(&mut fields).ok_or(wrong)?;
        let input = index < input_count;
        #[cfg(feature = "rolling")]
        if input && rolling::is_fed(sections, index, &place) {
            inputs = inputs.checked_add(place.bytes).ok_or(wrong)?;
            continue;
        }
        let constant = place.slot.region == Slot::WEIGHTS;
        let aligned = place.slot.offset.is_multiple_of(place.dtype.bytes() as u32);
        if !bounds.contain(place.slot, place.bytes) || !aligned || (input && constant) {
            return Err(wrong);
        }
        let total = if input { &mut inputs } else { &mut outputs };
        *total = total.checked_add(place.bytes).ok_or(wrong)?;
    }
    if fields.finish() && [inputs, outputs] == sections.port_bytes() {
        Ok(())
    } else {
        Err(LoadError::Header)
    }
}
