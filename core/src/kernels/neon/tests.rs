//! Against the scalar kernel, bit by bit, on shapes that the test kit's small cases have not: blocks of all kinds, side by side and overlapping, long windows.

use super::depthwise;
use crate::kernels::mve::tests::{Random, compare, forms, window};
use crate::kernels::scalar;

#[test]
fn depthwise_convolutions_equal_the_scalar_kernel() {
    let cases = [
        window(1, [6, 5, 8], 8, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [5, 7, 16], 16, [3, 3], [2, 2], [0, 1], [1, 1]),
        window(1, [4, 6, 9], 9, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [5, 6, 15], 15, [2, 3], [1, 1], [0, 1], [1, 1]),
        window(1, [3, 9, 24], 24, [1, 5], [1, 2], [0, 2], [0, 2]),
        window(2, [6, 5, 27], 27, [3, 2], [1, 1], [1, 0], [1, 1]),
        window(1, [4, 5, 33], 33, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [25, 5, 64], 64, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [7, 8, 43], 43, [7, 6], [1, 1], [3, 3], [3, 2]),
        window(1, [4, 5, 32], 32, [1, 1], [1, 1], [0, 0], [0, 0]),
    ];
    let mut random = Random(2);
    for window in cases {
        for op in forms(window, window.input[2]) {
            for left in [false, true] {
                compare::<scalar::conv2d::DepthwiseS8, depthwise::S8>(op, &mut random, left, depthwise::pack);
            }
        }
    }
}

#[test]
fn dilated_ones_too() {
    let mut random = Random(3);
    let mut spread = window(1, [9, 11, 20], 20, [3, 3], [1, 1], [2, 2], [2, 2]);
    (spread.dilation, spread.output) = ([2, 3], [9, 9, 20]);
    for op in forms(spread, 20) {
        compare::<scalar::conv2d::DepthwiseS8, depthwise::S8>(op, &mut random, true, depthwise::pack);
    }
}
