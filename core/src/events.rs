//! Events of sessions for a program's log: features `events-defmt` and `events-log`. Builds with neither hold nothing of it.
//!
//! Times are the logger's: an event is logged before its step runs, so that the last one names the step that did not end.

use crate::blob::Model;
use crate::kernels::table::{KernelId, Kernels};

/// A session was opened.
#[inline(always)]
pub(crate) fn opened<K: Kernels>(model: &Model<'_, K>) {
    #[cfg(feature = "events-defmt")]
    defmt::debug!("opened: {}", model);
    #[cfg(feature = "events-log")]
    {
        let (header, target) = (model.header(), model.target_name());
        let (steps, arena, total) = (header.step_count, header.arena, header.total);
        log::debug!("opened: model for {target}, {steps} steps, arena {arena:?}, {total} bytes");
    }
    let _ = model;
}

/// A step is about to run.
#[inline(always)]
pub(crate) fn step(step: u32, steps: u32, kernel: u8) {
    #[cfg(feature = "events-defmt")]
    if let Some(kernel) = KernelId::from_u8(kernel) {
        defmt::trace!("step {=u32} of {=u32}: {}", step, steps, kernel);
    }
    #[cfg(feature = "events-log")]
    if let Some(kernel) = KernelId::from_u8(kernel) {
        log::trace!("step {step} of {steps}: {}", kernel.name());
    }
    let _: (u32, u32, u8, Option<KernelId>) = (step, steps, kernel, None);
}

/// The last step of a run is done.
#[inline(always)]
pub(crate) fn done(steps: u32) {
    #[cfg(feature = "events-defmt")]
    defmt::trace!("done: {=u32} steps", steps);
    #[cfg(feature = "events-log")]
    log::trace!("done: {steps} steps");
    let _ = steps;
}

/// A step does not decode any more, or leaves its operands.
#[inline(always)]
pub(crate) fn corrupt(step: u32) {
    #[cfg(feature = "events-defmt")]
    defmt::error!("step {=u32} changed since the model was loaded", step);
    #[cfg(feature = "events-log")]
    log::error!("step {step} changed since the model was loaded");
    let _ = step;
}
