//! Memory that the program does not use itself, handed out once, between canaries.

use core::{ptr, slice};

use arenite_protocol::{Guarded, Purpose};

use crate::stack;

/// Alignment of every piece handed out.
pub const ALIGN: usize = 64;
const CANARY: u8 = 0xc5;
const CANARY_BYTES: usize = 64;
/// Byte that a piece is filled with, so that the bytes written can be told from those that were not.
const PAINT: u8 = 0xa7;

unsafe extern "C" {
    static __stext: u8;
    static __erodata: u8;
    static __sheap: u8;
    static _extra_start: u8;
    static _extra_end: u8;
}

/// Start and end of the board's further memory, kept as data: on the 64-bit boards it lies farther from the code than
/// the code model's relative addresses reach.
struct Extra([*const u8; 2]);
// SAFETY: addresses only, never written.
unsafe impl Sync for Extra {}
static EXTRA: Extra = Extra([&raw const _extra_start, &raw const _extra_end]);

/// The free memory of the board: what lies between the program's data and its stack, then the board's further memory.
pub struct Areas([Area; 2]);

#[derive(Clone, Copy)]
struct Area {
    next: usize,
    end: usize,
}

/// A piece of memory that was handed out, with its canaries.
pub struct Piece {
    start: usize,
    len: usize,
    purpose: Purpose,
}

/// No area has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes wanted.
    pub needed: u64,
    /// Bytes of the largest piece that is left.
    pub available: u64,
    /// Purpose of the piece.
    pub purpose: Purpose,
}

impl Areas {
    /// All free memory but `reserved` (the blob's address and length).
    ///
    /// # Safety
    /// Call it once: two sets of areas would hand out the same bytes twice.
    pub unsafe fn new(reserved: (usize, usize)) -> Self {
        let (address, len) = reserved;
        Self(areas().map(|area| {
            let inside = address >= area.next && address < area.end;
            Area {
                next: if inside { address + len } else { area.next },
                ..area
            }
        }))
    }

    /// Takes `len` bytes, filled with a pattern; no bytes take no memory and have no canaries.
    pub fn take(&mut self, len: usize, purpose: Purpose) -> Result<Piece, OutOfMemory> {
        if len == 0 {
            let start = ALIGN;
            return Ok(Piece { start, len, purpose });
        }
        let fits = |area: &Area| area.room().is_some_and(|room| len <= room);
        let Some(area) = self.0.iter_mut().find(|area| fits(area)) else {
            let available = self.0.iter().filter_map(Area::room).max().unwrap_or(0) as u64;
            return Err(OutOfMemory {
                needed: len as u64,
                available,
                purpose,
            });
        };
        let start = area.next.next_multiple_of(ALIGN) + CANARY_BYTES;
        area.next = start + len + CANARY_BYTES;
        let piece = Piece { start, len, purpose };
        for canary in piece.canaries().into_iter().flatten() {
            // SAFETY: the bytes lie in free memory that nothing else was given.
            unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(canary), CANARY, CANARY_BYTES) };
        }
        // SAFETY: the piece lies in free memory that nothing else was given.
        unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(start), PAINT, len) };
        Ok(piece)
    }
}

impl Area {
    /// Length of the largest piece that can be taken.
    fn room(&self) -> Option<usize> {
        self.end
            .checked_sub(self.next.next_multiple_of(ALIGN))?
            .checked_sub(2 * CANARY_BYTES)
    }
}

impl Piece {
    /// The bytes.
    ///
    /// # Safety
    /// Call it once a piece: the slices would alias.
    pub unsafe fn bytes(&self) -> &'static mut [u8] {
        // SAFETY: the piece was handed out once, is filled, and lies in memory that is never given back; an empty one is aligned and not null.
        unsafe { slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut(self.start), self.len) }
    }

    /// Bytes from the start to the last one that was written since the piece was taken.
    pub fn touched(&self) -> u64 {
        let read = |offset: &usize| {
            // SAFETY: inside the piece; volatile because a slice of it may be alive elsewhere.
            unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u8>(self.start + offset)) }
        };
        (0..self.len)
            .rev()
            .find(|offset| read(offset) != PAINT)
            .map_or(0, |last| last as u64 + 1)
    }

    /// Whether the bytes around the piece are untouched; names it otherwise.
    pub fn intact(&self) -> Result<(), Guarded> {
        let changed = self
            .canaries()
            .into_iter()
            .flatten()
            .flat_map(|canary| canary..canary + CANARY_BYTES)
            .any(|address| {
                // SAFETY: the canaries are this piece's own memory, written when it was taken; volatile, for a stray write may change them.
                unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u8>(address)) != CANARY }
            });
        match (changed, self.purpose) {
            (false, _) => Ok(()),
            (true, Purpose::Arena) => Err(Guarded::Arena),
            (true, Purpose::State) => Err(Guarded::State),
        }
    }

    /// Addresses of the canaries: none around no bytes.
    fn canaries(&self) -> Option<[usize; 2]> {
        (self.len > 0).then(|| [self.start - CANARY_BYTES, self.start + self.len])
    }
}

/// Bytes of all areas together.
pub(crate) fn total() -> u64 {
    areas()
        .iter()
        .map(|area| area.end.saturating_sub(area.next) as u64)
        .sum()
}

/// A sum over code and constants that any changed bit changes.
pub(crate) fn flash_sum() -> u32 {
    let (start, end) = ((&raw const __stext).addr(), (&raw const __erodata).addr());
    // SAFETY: code and constants are initialised and the linker script bounds them.
    sum(unsafe { slice::from_raw_parts(&raw const __stext, end - start) })
}

/// A sum over `bytes` that any changed bit changes: rotate and add, word by word. It guards against stray writes, not
/// against an adversary; the blob itself carries a CRC-32.
pub fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(4);
    let tail = words
        .remainder()
        .iter()
        .fold(0, |sum: u32, &byte| sum.rotate_left(8) ^ u32::from(byte));
    words.fold(tail, |sum, word| {
        let word = word.try_into().map_or(0, u32::from_le_bytes);
        sum.rotate_left(5).wrapping_add(word)
    })
}

fn areas() -> [Area; 2] {
    // SAFETY: a live static; volatile, or the compiler would fold the addresses back into the code.
    let [start, end] = unsafe { ptr::read_volatile(&raw const EXTRA.0) };
    let area = |start: *const u8, end: usize| Area {
        next: start.addr(),
        end,
    };
    [area(&raw const __sheap, stack::limit()), area(start, end.addr())]
}
