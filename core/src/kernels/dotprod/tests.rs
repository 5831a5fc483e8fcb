//! All that multiply packed rows against the scalar kernel, bit by bit, on shapes that the test kit's small cases have not: several groups of channels, long
//! sums, many windows.

use super::conv2d_s8;
use super::conv2d_s8::Dots;
use crate::kernels::i8mm::conv2d_s8::{Matrices, S8 as I8mm};
use crate::kernels::mve::tests::{Random, compare, forms, window};
use crate::kernels::neon::conv2d_s8::{S8, Widening, pack};
use crate::kernels::neon::gemm_s8;
use crate::kernels::neon::gemm_s8::Multiply;
use crate::kernels::portable;

extern crate std;
use std::vec;

#[test]
fn convolutions_equal_the_scalar_kernel() {
    let cases = [
        // Pixels: one, odd numbers, K and channels that fill no block or group, strides.
        window(1, [1, 1, 640], 128, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [1, 1, 9], 5, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 6, 64], 72, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [3, 5, 24], 20, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [7, 6, 8], 33, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [4, 5, 1], 3, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [8, 9, 16], 24, [1, 1], [2, 2], [0, 0], [0, 0]),
        window(1, [5, 6, 10], 45, [1, 1], [2, 1], [0, 0], [0, 0]),
        // Windows.
        window(1, [8, 9, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [7, 9, 16], 39, [3, 3], [2, 2], [0, 1], [1, 1]),
        window(1, [9, 4, 18], 8, [5, 1], [2, 3], [2, 0], [2, 0]),
        window(1, [4, 5, 64], 17, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [6, 7, 17], 8, [1, 1], [2, 2], [1, 1], [0, 0]),
        window(1, [12, 13, 3], 8, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [19, 10, 1], 64, [10, 4], [2, 2], [4, 1], [4, 1]),
        window(1, [5, 40, 2], 8, [5, 5], [1, 3], [2, 2], [2, 2]),
    ];
    let mut random = Random(1);
    for window in cases {
        for op in forms(window, 1) {
            for left in [false, true] {
                compare::<portable::conv2d::S8, conv2d_s8::S8>(op, &mut random, left, pack::<Dots>);
                compare::<portable::conv2d::S8, S8>(op, &mut random, left, pack::<Widening>);
                compare::<portable::conv2d::S8, I8mm>(op, &mut random, left, pack::<Matrices>);
            }
        }
    }
}

/// The trusted values are checked in every group and at any place in it: the packed weights of 37 channels of 21 elements, one byte changed at a time.
#[test]
fn what_no_packer_writes_is_not_packed() {
    changed::<Dots>();
    changed::<Matrices>();
}

fn changed<L: Multiply>() {
    let (k, count) = (21, 37);
    let channels = vec![[7, 1 << 30, -5]; count];
    let mut packed = vec![0; gemm_s8::packed_bytes(count as u32, k as u32) as usize];
    gemm_s8::pack::<L>(k, 3, &channels, |_, _| Some(-1), &mut packed).expect("slices of the right sizes");
    // Words keep them aligned.
    let mut words: vec::Vec<u32> = packed.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
    assert!(gemm_s8::is_packed::<L>(crate::cells::bytes_of(&words), count, k));
    let mut refused = 0;
    for at in 0..words.len() {
        let word = core::mem::replace(&mut words[at], 0xFFFF_FF00);
        refused += usize::from(!gemm_s8::is_packed::<L>(crate::cells::bytes_of(&words), count, k));
        words[at] = word;
    }
    // The last step of four elements has one, the padding none; every shift is looked at, those of the three channels beside the last too.
    let (steps, shifts) = (count.next_multiple_of(4), 2 * count.next_multiple_of(4));
    // A step of nothing but padding is there where K wants one more to be a multiple of eight.
    assert_eq!(refused, steps + shifts, "of {}", words.len());
}
