//! A delay line: every element takes the next one's value, word by word.

use crate::cells::{Dst, Element};

/// Whether the core reads words at any address.
const UNALIGNED: bool = !cfg!(any(
    kernel_isa = "armv6m",
    target_arch = "riscv32",
    target_arch = "riscv64"
));

/// Words at a time where their addresses may be odd.
const BLOCK: usize = 8;

/// Every element takes the next one's value; the last one keeps its own.
pub(crate) fn advance<T: Element>(line: Dst<'_, T>) {
    let elements = line.cells().len();
    if elements < 2 {
        return;
    }
    let at = line.as_mut_ptr();
    // SAFETY: `line` has `elements >= 2` elements at `at`: `elements - 1` and the last one.
    unsafe {
        if cfg!(kernel_isa = "mve") {
            by_vectors(at, elements - 1);
        } else if UNALIGNED {
            by_blocks(at, elements - 1);
        } else {
            by_shifts(at, elements - 1);
        }
    }
}

/// # Safety
/// `count + 1` elements at `at`; `count` is not 0.
#[inline(always)]
unsafe fn by_vectors<T: Element>(at: *mut T, count: usize) {
    #[cfg(kernel_isa = "mve")]
    // SAFETY: `count` elements are read from `at + 1` on and written from `at` on, all of the `count + 1` elements that the contract guarantees.
    unsafe {
        helium::down(at.cast(), at.add(1).cast(), count * size_of::<T>());
    }
    #[cfg(not(kernel_isa = "mve"))]
    // SAFETY: the loop ends at `at + count`, the last of the `count + 1` elements that this function's contract guarantees.
    unsafe {
        one_by_one(at, at.add(count));
    }
}

/// Words of which one or both addresses are odd.
///
/// # Safety
/// `count + 1` elements at `at`.
#[inline(always)]
unsafe fn by_blocks<T: Element>(at: *mut T, count: usize) {
    let block = BLOCK * size_of::<u32>() / size_of::<T>();
    let blocks = count / block;
    // SAFETY: `blocks * block <= count`, and this function's contract guarantees `count + 1` elements at `at`.
    unsafe {
        if blocks > 0 {
            blocks_down(at.cast(), at.add(1).cast(), blocks);
        }
        one_by_one(at.add(blocks * block), at.add(count));
    }
}

/// Blocks to a lower address, of which all words are read before the first is written.
///
/// # Safety
/// `blocks` of them at both, which are not 0.
#[cfg(not(kernel_isa = "armv7m"))]
unsafe fn blocks_down(mut to: *mut u8, mut from: *const u8, blocks: usize) {
    for _ in 0..blocks {
        let mut words = [0_u32; BLOCK];
        // SAFETY: the loop is at one of `blocks` blocks at both (fn docs); words are read and written unaligned.
        unsafe {
            for (i, word) in words.iter_mut().enumerate() {
                *word = from.cast::<u32>().add(i).read_unaligned();
            }
            for (i, word) in words.into_iter().enumerate() {
                to.cast::<u32>().add(i).write_unaligned(word);
            }
        }
        (to, from) = (
            to.wrapping_add(BLOCK * size_of::<u32>()),
            from.wrapping_add(BLOCK * size_of::<u32>()),
        );
    }
}

/// The same: of the loop above compilers make `memmove`, which takes odd addresses byte by byte.
///
/// # Safety
/// `blocks` blocks are readable at `from` and writable at `to`; `blocks` is not 0.
#[cfg(kernel_isa = "armv7m")]
#[unsafe(naked)]
unsafe extern "C" fn blocks_down(to: *mut u8, from: *const u8, blocks: usize) {
    naked!(
        ".cpu cortex-m3",
        "push {{r4-r10, lr}}",
        "2: ldr r3, [r1], #4",
        "ldr r4, [r1], #4",
        "ldr r5, [r1], #4",
        "ldr r6, [r1], #4",
        "ldr r7, [r1], #4",
        "ldr r8, [r1], #4",
        "ldr r9, [r1], #4",
        "ldr r10, [r1], #4",
        "str r3, [r0], #4",
        "str r4, [r0], #4",
        "str r5, [r0], #4",
        "str r6, [r0], #4",
        "str r7, [r0], #4",
        "str r8, [r0], #4",
        "str r9, [r0], #4",
        "str r10, [r0], #4",
        "subs r2, #1",
        "bne 2b",
        "pop {{r4-r10, pc}}",
    )
}

/// Words at multiples of four only: each of what is written has bits of two that are read. The first bytes of a word are its low ones.
///
/// # Safety
/// `count + 1` elements at `at`.
#[inline(always)]
unsafe fn by_shifts<T: Element>(at: *mut T, count: usize) {
    const WORDS: usize = 4;
    let (lanes, bits) = (size_of::<u32>() / size_of::<T>(), 8 * size_of::<T>() as u32);
    // SAFETY: `end` is the last element; a word is read where all its elements are before the end of that.
    unsafe {
        let (mut to, end) = (at, at.add(count));
        if lanes > 1 {
            while to < end && !to.cast::<u32>().is_aligned() {
                to.write(to.add(1).read());
                to = to.add(1);
            }
            // Elements from `to` on, the last one among them.
            let mut left = end.offset_from(to) as usize + 1;
            if left >= 2 * lanes {
                let mut word = to.cast::<u32>().read();
                let mut shift = |to: *mut T| {
                    let next = to.add(lanes).cast::<u32>().read();
                    to.cast::<u32>().write(word >> bits | next << (32 - bits));
                    word = next;
                };
                while left >= (WORDS + 1) * lanes {
                    for i in 0..WORDS {
                        shift(to.add(i * lanes));
                    }
                    to = to.add(WORDS * lanes);
                    left -= WORDS * lanes;
                }
                while left >= 2 * lanes {
                    shift(to);
                    to = to.add(lanes);
                    left -= lanes;
                }
            }
        }
        one_by_one(to, end);
    }
}

/// # Safety
/// The elements from `to` to `end`, and that at `end`.
#[inline(always)]
unsafe fn one_by_one<T: Element>(mut to: *mut T, end: *mut T) {
    while to < end {
        // SAFETY: `to < end`, and the elements to that at `end` are valid (fn docs).
        unsafe {
            to.write(to.add(1).read());
            to = to.add(1);
        }
    }
}

#[cfg(kernel_isa = "mve")]
mod helium {
    /// Sixteen bytes at a time, to a lower address. `len` is not 0.
    #[unsafe(naked)]
    pub(super) unsafe extern "C" fn down(to: *mut u8, from: *const u8, len: usize) {
        naked!(
            ".cpu cortex-m55",
            "push {{r7, lr}}",
            "dlstp.8 lr, r2",
            "2: vldrb.u8 q0, [r1], #16",
            "vstrb.8 q0, [r0], #16",
            "letp lr, 2b",
            "pop {{r7, pc}}",
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::cell::Cell;
    use std::vec::Vec;

    use super::*;

    /// A way to advance.
    type Way<T> = unsafe fn(*mut T, usize);

    fn check<T: Element + PartialEq + std::fmt::Debug>(of: impl Fn(usize) -> T) {
        let ways: [Way<T>; 3] = [by_vectors::<T>, by_blocks::<T>, by_shifts::<T>];
        for (skip, len) in (0..4).flat_map(|skip| (2..80).map(move |len| (skip, len))) {
            let all: Vec<T> = (0..skip + len + 4).map(&of).collect();
            let mut expected = all.clone();
            expected.copy_within(skip + 1..skip + len, skip);
            for way in ways {
                let mut found = all.clone();
                // SAFETY: the slice has `len` elements: `len - 1` and the last one.
                unsafe { way(found[skip..skip + len].as_mut_ptr(), len - 1) };
                assert_eq!(found, expected, "{skip} {len}");
            }
        }
    }

    #[test]
    fn every_way_moves_every_element() {
        check(|i| i as i8);
        check(|i| (i * 257) as i16);
        check(|i| i as f32);
    }

    #[test]
    fn short_lines_stay() {
        let cells: [Cell<u8>; 3] = [7, 8, 9].map(Cell::new);
        for (len, expected) in [(0, [7, 8, 9]), (1, [7, 8, 9]), (2, [8, 8, 9]), (3, [8, 9, 9])] {
            advance(Dst::<i8>::from_cells(&cells[..len]).unwrap());
            assert_eq!(cells.clone().map(Cell::into_inner), expected, "{len}");
        }
    }
}
