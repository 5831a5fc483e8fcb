//! [`super::sums`] in Rust.

use super::super::accumulate::accumulate;

macro_rules! by {
    ($($name:ident $block:literal)*) => { $(
        /// # Safety
        /// As for [`super::sums`].
        #[inline(always)]
        pub(in super::super) unsafe fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            // SAFETY: passed on.
            *sums = unsafe { accumulate::<$block>(words, x, inputs, 0) };
        }
    )* };
}

by!(by_2 2 by_4 4 by_8 8 by_16 16 by_32 32);
