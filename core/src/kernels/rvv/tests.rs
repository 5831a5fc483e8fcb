//! Against the scalar kernel, bit by bit, on shapes that the test kit's small cases have not: long runs, channels of one part and of several, borders of all
//! kinds, at the smallest distance.

use super::{conv2d_s8, dwconv_s8};
use crate::kernels::mve::tests::{Random, compare, forms, window};
use crate::kernels::portable;

#[test]
fn convolutions_equal_the_scalar_kernel() {
    let mut dilated = window(1, [9, 11, 5], 20, [3, 3], [1, 1], [2, 2], [2, 2]);
    (dilated.dilation, dilated.output) = ([2, 3], [9, 9, 20]);
    let cases = [
        window(1, [1, 1, 640], 128, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [1, 1, 8], 5, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [3, 5, 24], 20, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 5, 64], 65, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [8, 9, 16], 24, [1, 1], [2, 2], [0, 0], [0, 0]),
        window(1, [8, 8, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [7, 9, 16], 40, [3, 3], [2, 2], [0, 1], [1, 1]),
        window(1, [9, 4, 18], 33, [5, 1], [2, 3], [2, 0], [2, 0]),
        window(1, [6, 6, 17], 8, [1, 1], [2, 2], [1, 1], [0, 0]),
        window(1, [19, 10, 1], 64, [10, 4], [2, 2], [4, 1], [4, 1]),
        window(1, [3, 3, 4], 7, [3, 3], [1, 1], [0, 0], [0, 0]),
        window(1, [2, 20, 3], 34, [5, 5], [1, 1], [2, 2], [2, 2]),
        dilated,
    ];
    let mut random = Random(1);
    for window in cases {
        for op in forms(window, 1) {
            for left in [false, true] {
                compare::<portable::conv2d::S8, conv2d_s8::S8>(op, &mut random, left, conv2d_s8::pack);
            }
        }
    }
}

#[test]
fn depthwise_convolutions_equal_the_scalar_kernel() {
    let mut dilated = window(1, [9, 11, 20], 20, [3, 3], [1, 1], [2, 2], [2, 2]);
    (dilated.dilation, dilated.output) = ([2, 3], [9, 9, 20]);
    let cases = [
        window(1, [6, 5, 3], 3, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [5, 7, 16], 16, [3, 3], [2, 2], [0, 1], [1, 1]),
        window(1, [3, 9, 24], 24, [1, 5], [1, 2], [0, 2], [0, 2]),
        window(2, [6, 5, 37], 37, [3, 2], [1, 1], [1, 0], [1, 1]),
        window(1, [25, 5, 64], 64, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(1, [7, 8, 43], 43, [7, 6], [1, 1], [3, 3], [3, 2]),
        window(1, [4, 5, 33], 33, [1, 1], [1, 1], [0, 0], [0, 0]),
        dilated,
    ];
    let mut random = Random(2);
    for window in cases {
        for op in forms(window, window.input[2]) {
            for left in [false, true] {
                compare::<portable::conv2d::DepthwiseS8, dwconv_s8::S8>(op, &mut random, left, dwconv_s8::pack);
            }
        }
    }
}
