//! Every loop of int8 against `portable`, bit by bit, on bytes that no packer writes too, by every level that this processor has.

extern crate std;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::kernels::mve::tests::Random;

/// The levels of this processor. At the portable one there is nothing to compare.
fn levels() -> impl Iterator<Item = Level> {
    let here = Level::get();
    [Level::Avx2, Level::Vnni]
        .into_iter()
        .filter(move |&level| level <= here)
}

/// One of the integers from `low` to `high`.
fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    low + random.below((high - low + 1) as u64) as i64
}

fn some_bytes(random: &mut Random, count: usize) -> Vec<i8> {
    (0..count).map(|_| between(random, -128, 127) as i8).collect()
}

/// Function that multiplies tiles.
type Tiles = unsafe fn(*const Product);

/// The portable product, by tiles of four rows.
///
/// # Safety
/// As for [`dots`].
unsafe fn plain(args: *const Product) {
    // SAFETY: `crate::kernels::neon::gemm_s8_portable::rows` has the contract of this function, and gets the same arguments.
    unsafe { crate::kernels::neon::gemm_s8_portable::rows::<false, 4>(args, 4) }
}

/// Biases, weights and table of a block of `width` channels, `bytes` of weights; weights of all values, shifts to one side.
fn block(random: &mut Random, width: usize, bytes: usize, packed: &mut Vec<u8>) {
    for _ in 0..width {
        packed.extend((between(random, -1 << 20, 1 << 20) as i32).to_le_bytes());
    }
    packed.extend(some_bytes(random, bytes).iter().map(|&byte| byte as u8));
    for _ in 0..width / 4 {
        // Mostly such that outputs are some tens.
        let mut shift = || match between(random, 0, 3) {
            0 => between(random, -31, 31),
            _ => between(random, -16, -10),
        };
        let shifts = [shift(), shift(), shift(), shift()];
        let mantissas = [(); 4].map(|()| between(random, i32::MIN.into(), i32::MAX.into()));
        let parts = [
            shifts.map(|shift| shift.max(0)),
            mantissas,
            shifts.map(|shift| shift.min(0)),
        ];
        for value in parts.iter().flatten() {
            packed.extend((*value as i32).to_le_bytes());
        }
    }
}

#[test]
fn products_are_the_portable_ones() {
    let (mut random, mut within) = (Random(11), 0);
    for (channels, k, tiles) in [
        (16, 8, 3),
        (1, 16, 1),
        (7, 24, 2),
        (10, 40, 3),
        (13, 64, 1),
        (37, 72, 2),
        (64, 320, 2),
    ] {
        let (groups, rest) = (channels / 16, channels % 16);
        let mut weights = Vec::new();
        (0..groups).for_each(|_| block(&mut random, 16, 16 * k, &mut weights));
        if rest > 0 {
            let width = usize::next_multiple_of(rest, 4);
            block(&mut random, width, width * k, &mut weights);
        }
        // Rows of four tiles, some bytes apart; outputs as well.
        let (x_stride, out_stride) = (k + 5, channels + 3);
        let x = some_bytes(&mut random, 4 * tiles * x_stride);
        let run = |rows: usize, tile: unsafe fn(*const Product)| {
            let mut out = vec![99i8; 4 * tiles * out_stride];
            let args = Product {
                x: x.as_ptr(),
                x_stride,
                weights: weights.as_ptr(),
                out: out.as_mut_ptr(),
                out_stride,
                groups,
                rest,
                blocks: k / 16,
                half: k / 8 % 2,
                tiles: 4 * tiles / rows,
                zero_point: -3,
                low: -101,
                high: 120,
            };
            // SAFETY: `x`, the weights and `out` were made with all rows, groups and outputs of `args`, and outlive the call.
            unsafe { tile(&args) };
            out
        };
        let portable = run(4, plain);
        within += portable
            .iter()
            .filter(|&&value| value != 99 && value != -101 && value != 120)
            .count();
        for level in levels() {
            let (four, one): (Tiles, Tiles) = match level {
                Level::Vnni => (gemm_s8::vnni::<4>, gemm_s8::vnni::<1>),
                _ => (gemm_s8::avx2::<4>, gemm_s8::avx2::<1>),
            };
            assert_eq!(run(4, four), portable, "{level:?} {channels} {k}");
            assert_eq!(run(1, one), portable, "{level:?} {channels} {k}, a row at a time");
        }
    }
    assert!(within > 500, "{within} within the limits");
}

#[test]
fn depthwise_ones_are_the_portable_ones() {
    let mut random = Random(12);
    for (channels, taps, pixels) in [(16, 9, 5), (8, 1, 3), (23, 4, 2), (29, 25, 3), (48, 3, 4)] {
        let (blocks, halves) = (channels / 16, usize::div_ceil(channels % 16, 8));
        let mut weights = Vec::new();
        (0..blocks).for_each(|_| block(&mut random, 16, 16 * taps, &mut weights));
        (0..halves).for_each(|_| block(&mut random, 8, 8 * taps, &mut weights));
        let x = some_bytes(&mut random, (pixels + taps) * channels);
        let entries: Vec<*const i8> = (0..taps).map(|tap| x[tap * channels..].as_ptr()).collect();
        let run = |loops: unsafe fn(*const Depthwise)| {
            let mut out = vec![99i8; pixels * channels];
            let args = Depthwise {
                entries: entries.as_ptr(),
                taps,
                weights: weights.as_ptr(),
                out: out.as_mut_ptr(),
                pixels,
                step: channels,
                channels,
                blocks,
                halves,
                first_half: if halves == 2 { 16 * blocks } else { channels - 8 },
                zero_point: 7,
                low: -120,
                high: 99,
            };
            // SAFETY: the input, the table, the weights and `out` were made with all taps and channels of `args`, and outlive the call.
            unsafe { loops(&args) };
            out
        };
        let portable = run(portable::depthwise);
        if levels().next().is_some() {
            assert_eq!(run(dwconv_s8::s8), portable, "{channels} {taps}");
        }
    }
}
