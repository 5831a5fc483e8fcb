//! Bytes of four pixels, side by side in words that the loop over rows of weights multiplies ([`super::dot_s8_rows`]).

// The core with a loop of its own; hosts, and other cores, run the portable one.
mod armv7m;
mod portable;

#[cfg(kernel_isa = "armv7m")]
use armv7m as loops;
#[cfg(not(kernel_isa = "armv7m"))]
use portable as loops;

/// Position and number of the bytes to unpack, in lines.
#[derive(Clone, Copy)]
pub(super) struct UnpackLines {
    /// Bytes of a line.
    pub(super) run: usize,
    /// Lines, of which there is one at least.
    pub(super) count: usize,
    /// From the end of a line to the next one, modulo the address space.
    pub(super) skip: usize,
}

impl UnpackLines {
    /// One line.
    pub(super) const fn one(run: usize) -> Self {
        Self { run, count: 1, skip: 0 }
    }
}

/// Unpacks the bytes of `lines` at each of four places, two by two into words: `a + (b << 16)`, `c + (d << 16)`. Returns the end of the words written.
///
/// # Safety
/// 1. `lines.count` lines of `lines.run` bytes, `lines.skip` bytes between them, are readable at each of the four places.
/// 2. `words` takes two words for each of their bytes.
#[inline(always)]
pub(super) unsafe fn unpack([a, b, c, d]: [*const i8; 4], lines: UnpackLines, words: *mut i32) -> *mut i32 {
    // SAFETY: the loop reads the lines at each place (point 1) and writes two words for each byte (point 2).
    unsafe { loops::unpack(a, b, c, d, lines.run, words, lines.count, lines.skip) }
}
