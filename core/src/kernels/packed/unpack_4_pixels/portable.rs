//! [`unpack`] in Rust.

#![cfg(not(kernel_isa = "armv7m"))]

/// The bytes at each of four places, in lines of `run`; see [`super::unpack`].
///
/// # Safety
/// As for it.
#[allow(clippy::too_many_arguments)]
#[inline(never)]
pub(super) unsafe fn unpack(
    a: *const i8,
    b: *const i8,
    c: *const i8,
    d: *const i8,
    run: usize,
    words: *mut i32,
    lines: usize,
    skip: usize,
) -> *mut i32 {
    let (mut a, mut b, mut c, mut d, mut words) = (a, b, c, d, words);
    // SAFETY: `at` is below the bytes of the line that are left, which are readable at each place (fn docs).
    let pair = |x: *const i8, y: *const i8, at: usize| unsafe {
        i32::from(*x.add(at)).wrapping_add(i32::from(*y.add(at)) << 16)
    };
    macro_rules! take {
        // SAFETY: `$count` bytes of the line are left at all four places, and `words` takes two words for each (fn docs).
        ($count:literal: $($at:literal)*) => { unsafe {
            $(
                words.add(2 * $at).write(pair(a, b, $at));
                words.add(2 * $at + 1).write(pair(c, d, $at));
            )*
            (a, b, c, d) = (a.add($count), b.add($count), c.add($count), d.add($count));
            words = words.add(2 * $count);
        } };
    }
    for _ in 0..lines {
        let mut left = run;
        while left >= 4 {
            take!(4: 0 1 2 3);
            left -= 4;
        }
        while left > 0 {
            take!(1: 0);
            left -= 1;
        }
        let next = |x: *const i8| x.wrapping_add(skip);
        (a, b, c, d) = (next(a), next(b), next(c), next(d));
    }
    words
}
