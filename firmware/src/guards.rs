//! Memory between bytes that nothing may touch: the memory protection of the core forbids them, and its fault is the finding.

use crate::board;
use crate::memory::{Areas, OutOfMemory};
use crate::protocol::Purpose;

/// Forbidden bytes on either side, and what they are aligned to: a page, and a region of every memory protection.
const FORBIDDEN: usize = 4096;

/// Takes a field of whole pages and forbids the bytes around it; `Ok(None)` where the core has no memory protection.
///
/// # Safety
/// Call it once: a second field would lift what the first one's fence forbids.
pub unsafe fn field(areas: &mut Areas, bytes: usize) -> Result<Option<&'static mut [u8]>, OutOfMemory> {
    let bytes = bytes.next_multiple_of(FORBIDDEN);
    let piece = areas.take(bytes + 3 * FORBIDDEN, Purpose::Arena)?;
    // SAFETY: the piece was just taken, and this is its only call.
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
