//! Against the scalar kernel, bit by bit, on shapes that the test kit's small cases have not: blocks of all kinds, side by side and overlapping, long windows.

use super::{conv2d_f32, dwconv_f32, dwconv_s8};
use crate::kernels::mve::tests::{Random, compare, compare_f32, forms, window};
use crate::kernels::portable;

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
                compare::<portable::conv2d::DepthwiseS8, dwconv_s8::S8>(op, &mut random, left, dwconv_s8::pack);
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
        compare::<portable::conv2d::DepthwiseS8, dwconv_s8::S8>(op, &mut random, true, dwconv_s8::pack);
    }
}

#[test]
fn f32_convolutions_equal_the_scalar_kernel() {
    let mut random = Random(4);
    for window in [
        // Rows: one, tiles and what is left; K that fills no block; channels that fill no group, and several groups.
        window(1, [1, 1, 65], 20, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [1, 1, 3], 1, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(2, [5, 5, 8], 16, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 3, 17], 47, [1, 1], [1, 1], [0, 0], [0, 0]),
        window(1, [6, 5, 7], 3, [1, 1], [2, 2], [0, 0], [0, 0]),
        // Windows.
        window(1, [7, 8, 5], 12, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [8, 9, 16], 8, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [9, 9, 3], 25, [3, 3], [2, 2], [0, 0], [1, 1]),
        window(1, [6, 7, 17], 34, [1, 1], [2, 2], [1, 1], [0, 0]),
        window(1, [19, 10, 1], 30, [10, 4], [2, 2], [4, 1], [4, 1]),
    ] {
        compare_f32::<conv2d_f32::F32>(window, 1, &mut random, conv2d_f32::pack);
    }
}

#[test]
fn f32_depthwise_convolutions_equal_the_scalar_kernel() {
    let mut random = Random(5);
    for window in [
        window(1, [6, 5, 16], 16, [3, 3], [1, 1], [1, 1], [1, 1]),
        window(2, [9, 7, 6], 6, [5, 3], [2, 1], [2, 1], [2, 1]),
        window(1, [4, 4, 4], 4, [4, 4], [1, 1], [0, 0], [0, 0]),
        window(1, [5, 6, 37], 37, [2, 3], [1, 2], [0, 1], [1, 1]),
        window(1, [7, 4, 27], 27, [1, 1], [1, 1], [0, 0], [0, 0]),
    ] {
        compare_f32::<dwconv_f32::F32>(window, window.input[2], &mut random, dwconv_f32::pack);
    }
    let mut spread = window(1, [9, 11, 20], 20, [3, 3], [1, 1], [2, 2], [2, 2]);
    (spread.dilation, spread.output) = ([2, 3], [9, 9, 20]);
    compare_f32::<dwconv_f32::F32>(spread, 20, &mut random, dwconv_f32::pack);
}
