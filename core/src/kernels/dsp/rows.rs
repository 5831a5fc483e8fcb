//! Where the rows of an input begin: one behind the other, or, under the windows of one row of a rolled tensor, anywhere.

#[cfg(feature = "rolling")]
use core::mem::MaybeUninit;

#[cfg(feature = "rolling")]
use crate::arena::{Mem, Slot};
#[cfg(feature = "rolling")]
use crate::ops::window::{Window2d, three};
#[cfg(feature = "rolling")]
use crate::rolled::MAX_TURN_ROWS;

/// Where rows begin.
pub(super) trait Rows {
    /// Whether the next row is not where this one ends.
    const ARE_APART: bool;

    /// Bytes from the input's first one to row `y`, whose `bytes` are known; anything for a row outside, which nobody reads.
    fn offset(&self, y: isize, bytes: usize) -> isize;
}

/// One behind the other.
pub(super) struct Whole;

impl Rows for Whole {
    const ARE_APART: bool = false;

    #[inline(always)]
    fn offset(&self, y: isize, bytes: usize) -> isize {
        y * bytes as isize
    }
}

/// Anywhere: bytes from the arena's start.
#[cfg(feature = "rolling")]
pub(super) struct Apart {
    offsets: [MaybeUninit<u32>; MAX_TURN_ROWS],
    /// How many of them there are.
    count: usize,
}

#[cfg(feature = "rolling")]
impl Apart {
    /// None yet.
    #[inline(always)]
    pub(super) fn none() -> Self {
        Self {
            offsets: [const { MaybeUninit::uninit() }; _],
            count: 0,
        }
    }

    /// Finds the rows of a window's input that rolls; gives the arena's start.
    #[inline(never)]
    pub(super) fn find(&mut self, mem: &Mem<'_>, input: Slot, window: &Window2d) -> Option<*const i8> {
        let [count, columns, channels] = three::<_, usize>(window.input);
        let bytes = u32::try_from(columns.checked_mul(channels)?).ok()?;
        let arena = mem.rows(input, bytes, self.offsets.get_mut(..count)?)?;
        self.count = count;
        Some(arena.as_ptr())
    }
}

#[cfg(feature = "rolling")]
impl Rows for Apart {
    const ARE_APART: bool = true;

    #[inline(always)]
    fn offset(&self, y: isize, _: usize) -> isize {
        let offset = self.offsets.get(..self.count).and_then(|rows| rows.get(y as usize));
        // SAFETY: `Mem::rows` wrote the first `count`.
        offset.map_or(0, |offset| unsafe { offset.assume_init() } as isize)
    }
}
