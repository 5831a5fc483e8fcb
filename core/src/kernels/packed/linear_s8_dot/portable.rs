//! [`super::sums`] and [`super::narrow`] in Rust.

#![cfg(not(kernel_isa = "gpr32"))]

use super::super::accumulate::{accumulate, narrow, one_by_one};

macro_rules! by {
    ($sums:ident: $($name:ident $block:literal)*) => { $(
        /// # Safety
        /// As for [`super::sums`].
        #[inline(always)]
        pub(in super::super) unsafe fn $name(words: *const i32, x: *const i8, inputs: usize, sums: &mut [i32; 4]) {
            // SAFETY: the block divides `inputs`, and words and bytes are there for each input (docs of `super::sums`).
            *sums = unsafe { $sums::<$block>(words, x, inputs, 0) };
        }
    )* };
}

by!(accumulate: by_2 2 by_4 4 by_8 8 by_16 16 by_32 32);
by!(narrow: narrow_by_4 4 narrow_by_8 8 narrow_by_16 16);
by!(one_by_one: plain 4 plain_two 2);
