//! Output pixels of an odd number of channels, which the loops write with one channel more, beside their places.

/// Copies staged pixels of an odd number of channels to where they belong.
///
/// # Safety
/// `pixels` pixels of `staged_stride` bytes are readable at `stage`, and of `channels` writable at `out`; they do not overlap.
#[inline(never)]
pub(super) unsafe fn unstage(stage: *const i8, out: *mut i8, channels: usize, pixels: usize) {
    let (mut from, mut to) = (stage, out);
    for _ in 0..pixels {
        // SAFETY: one of `pixels` pixels: `channels` of its `staged_stride` bytes are readable at `from` and writable at `to`, without overlap (fn docs).
        unsafe { copy(from, to, channels) };
        from = from.wrapping_add(channels + 1);
        to = to.wrapping_add(channels);
    }
}

/// Copies a pixel of any address to any: by words, in fewer instructions than `memcpy` takes for as few bytes, and a small program needs nothing else of that.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`, and do not overlap.
#[inline(never)]
pub(super) unsafe fn copy(from: *const i8, to: *mut i8, len: usize) {
    let (words, written) = (from.cast::<u32>(), to.cast::<u32>());
    for word in 0..len / 4 {
        // SAFETY: `word < len / 4`, the words of the `len` bytes at both (fn docs); they are read and written unaligned.
        unsafe { written.add(word).write_unaligned(words.add(word).read_unaligned()) };
        // Nothing, but the compiler makes a `memcpy` of no loop that holds it.
        core::hint::black_box(());
    }
    for byte in len & !3..len {
        // SAFETY: `byte < len`, the bytes at both (fn docs).
        unsafe { *to.add(byte) = *from.add(byte) };
        core::hint::black_box(());
    }
}
