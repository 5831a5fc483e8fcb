//! Memory between bytes that nothing may touch: the memory protection of the core forbids them, and its fault is the finding.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use arenite::KernelId;
use arenite::testkit::{Guarded, Side, Watch};

use crate::board;
use crate::memory::{Areas, OutOfMemory};
use crate::protocol::{Purpose, Record};

/// Forbidden bytes on either side, and what they are aligned to: a page, and a region of every memory protection.
const FORBIDDEN: usize = 4096;

static ARMED: AtomicBool = AtomicBool::new(false);
static SUBJECT: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];

/// Takes a field of whole pages and forbids the bytes around it; `Ok(None)` where the core has no memory protection.
///
/// # Safety
/// Call it once: a second field would lift what the first one's fence forbids.
pub unsafe fn field(areas: &mut Areas, bytes: usize) -> Result<Option<&'static mut [u8]>, OutOfMemory> {
    let bytes = bytes.next_multiple_of(FORBIDDEN);
    let piece = areas.take(bytes + 3 * FORBIDDEN, Purpose::Arena)?;
    // SAFETY: once for this piece.
    let memory = unsafe { piece.bytes() };
    let skipped = memory.as_ptr().addr().wrapping_neg() % FORBIDDEN;
    let memory = memory.get_mut(skipped..).unwrap_or_default();
    let before = memory.as_ptr().addr();
    let start = before + FORBIDDEN;
    let (field, forbidden) = (start..start + bytes, start + bytes..start + bytes + FORBIDDEN);
    if !board::protection::forbid([before..start, forbidden], field) {
        return Ok(None);
    }
    Ok(memory.get_mut(FORBIDDEN..).and_then(|memory| memory.get_mut(..bytes)))
}

/// Says which kernel runs from now on, on which case or step, for the record of a fault.
pub fn subject(of: KernelId, number: u32) {
    let [kernel, seed, ..] = &SUBJECT;
    kernel.store(of as u32, Ordering::Relaxed);
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

/// What was running between forbidden bytes, as the handler of a fault records it.
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
