//! Against the scalar kernel, bit by bit, on shapes that the test kit's small cases have not: tiles over several rows and images, rows of windows that fill no
//! four and no vector, channels of one tile and of several, borders of all kinds, at the smallest distance.

use super::conv2d_s8::S8;
use super::packed;
use crate::kernels::api::kernel::Kernel;
use crate::kernels::mve::tests::{Random, compare, forms, window};
use crate::kernels::portable;

extern crate std;
use std::vec;

#[test]
fn convolutions_equal_the_scalar_kernel() {
    let cases = [
        // Pixels: one, all images in one row, strides.
        window(1, [1, 1, 640], 128, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [1, 1, 9], 5, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [3, 5, 24], 20, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 6, 65], 13, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [8, 9, 16], 24, [1, 1], [2, 2], [0, 0], [0, 0]),
        // Windows.
        window(1, [8, 9, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(3, [7, 9, 16], 39, [3, 3], [2, 2], [0, 1], [1, 1]),
        window(1, [9, 4, 18], 8, [5, 1], [2, 3], [2, 0], [2, 0]),
        window(1, [4, 5, 64], 17, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [6, 7, 17], 12, [1, 1], [2, 2], [1, 1], [0, 0]),
        window(1, [12, 13, 3], 8, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [19, 10, 1], 64, [10, 4], [2, 2], [4, 1], [4, 1]),
        window(1, [5, 40, 2], 8, [5, 5], [1, 3], [2, 2], [2, 2]),
        window(2, [2, 2, 3], 7, [5, 5], [1, 1], [2, 2], [2, 2]),
    ];
    let mut random = Random(1);
    for window in cases {
        for op in forms(window, 1) {
            for left in [false, true] {
                compare::<portable::conv2d::S8, S8>(op, &mut random, left, packed::pack);
            }
        }
    }
}

/// The trusted values are checked at any place: the packed weights of seven channels and windows of two rows of five elements, one word changed at a time.
#[test]
fn what_no_packer_writes_is_not_packed() {
    let [op, ..] = forms(window(1, [3, 5, 5], 7, [2, 1], [1, 1], [0, 0], [0, 0]), 1);
    let (channels, weights) = ([[7, 1 << 30, -5]; 7], [-1; 70]);
    let mut bytes = vec![0; S8::needs(&op).weights as usize];
    packed::pack(&op, &weights, &channels, &mut bytes).expect("slices of the right sizes");
    // Words keep them aligned.
    let mut words: vec::Vec<u32> = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
    assert_eq!(words.len(), 7 * (4 + 2 * 2));
    assert!(S8::trusts(&op, crate::cells::bytes_of(&words)));
    for at in 0..words.len() {
        let word = core::mem::replace(&mut words[at], 0xFFFF_FF00);
        let trusted = S8::trusts(&op, crate::cells::bytes_of(&words));
        // Lines: biases, shifts left, mantissas, shifts right; whole fours and fours of one element, twice.
        let line = at / 7;
        assert_eq!(trusted, [0, 2, 4, 6].contains(&line), "word {at}");
        words[at] = word;
    }
    // A shift to both sides.
    words[7] = 1;
    assert!(!S8::trusts(&op, crate::cells::bytes_of(&words)));
}
