//! Run between forbidden bytes, for the record of a fault.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use arenite::KernelId;
use arenite::testkit::{Guarded, Side, Watch};

use crate::protocol::Record;

static ARMED: AtomicBool = AtomicBool::new(false);
static SUBJECT: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];

/// Says which kernel runs from now on, on which case or step, for the record of a fault.
pub fn of(kernel: KernelId, number: u32) {
    let [of, seed, ..] = &SUBJECT;
    of.store(kernel as u32, Ordering::Relaxed);
    seed.store(number, Ordering::Relaxed);
}

/// Says which operand lies in the field, for the record of a fault.
pub struct Watcher;

impl Watch for Watcher {
    fn begins(&mut self, guarded: Guarded, _: Range<*const u8>) {
        let [.., operand, start] = &SUBJECT;
        operand.store(guarded.operand.into(), Ordering::Relaxed);
        start.store((guarded.side == Side::Start).into(), Ordering::Relaxed);
        ARMED.store(true, Ordering::Release);
    }

    fn ended(&mut self) -> bool {
        // A fault does not come back.
        ARMED.store(false, Ordering::Release);
        true
    }
}

/// Returns the run between forbidden bytes, as the handler of a fault records it.
pub(crate) fn under_way() -> Option<Record<'static>> {
    let [kernel, seed, operand, start] = SUBJECT.each_ref().map(|part| part.load(Ordering::Relaxed));
    ARMED.load(Ordering::Acquire).then_some(Record::Outside {
        kernel: kernel as u8,
        seed,
        operand: operand as u8,
        start: start != 0,
        finding: "touched",
    })
}
