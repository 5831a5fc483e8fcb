//! Memory of exactly as many bytes as asked for, each piece an allocation of its own: where the address sanitiser watches, the first byte
//! behind it is out of bounds.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use arenite::ARENA_ALIGN;

/// Bytes at the alignment that arenas and models want.
pub struct Exact {
    start: NonNull<u8>,
    len: usize,
}

impl Exact {
    /// `len` bytes of `byte`.
    ///
    /// # Panics
    /// Where there is no memory.
    pub fn new(len: usize, byte: u8) -> Self {
        let layout = layout(len);
        // SAFETY: the layout has a size above 0.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout);
        };
        // SAFETY: `layout.size()` bytes were just allocated at `start`.
        unsafe { start.write_bytes(byte, layout.size()) };
        Self { start, len }
    }

    /// A copy.
    pub fn of(bytes: &[u8]) -> Self {
        let mut copy = Self::new(bytes.len(), 0);
        copy.bytes().copy_from_slice(bytes);
        copy
    }

    /// All of it.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: allocated and written in `new`, and borrowed as long as this is.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Exact {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and no borrow is left.
        unsafe { dealloc(self.start.as_ptr(), layout(self.len)) };
    }
}

/// No allocation may have no bytes: one then, which nobody is given.
fn layout(len: usize) -> Layout {
    Layout::from_size_align(len.max(1), ARENA_ALIGN).expect("a length that memory has")
}
