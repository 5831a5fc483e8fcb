//! Every loop against `portable`, bit by bit, on bytes that no packer writes too, by every level that this processor has.

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

/// Numbers between -2 and 2, and one in twenty of those that computations end in.
fn some_floats(random: &mut Random, count: usize) -> Vec<f32> {
    const ENDS: [f32; 6] = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE];
    let one = |random: &mut Random| match between(random, 0, 119) {
        end @ 0..=5 => ENDS[end as usize],
        _ => between(random, -2000, 2000) as f32 / 1000.0,
    };
    (0..count).map(|_| one(random)).collect()
}

/// What multiplies tiles.
type Tiles = unsafe fn(*const Product);

/// The portable product, by tiles of four rows.
///
/// # Safety
/// As for [`dots`].
unsafe fn plain(args: *const Product) {
    // SAFETY: the caller's promise.
    unsafe { super::super::products::rows::<false, 4>(args, 4) }
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
            // SAFETY: all rows, weights and outputs are there.
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
                Level::Vnni => (product::vnni::<4>, product::vnni::<1>),
                _ => (product::avx2::<4>, product::avx2::<1>),
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
            // SAFETY: all taps, weights and outputs are there.
            unsafe { loops(&args) };
            out
        };
        let portable = run(portable::depthwise);
        if levels().next().is_some() {
            assert_eq!(run(depthwise::s8), portable, "{channels} {taps}");
        }
    }
}

/// What makes them equal: no sum is rounded less often, and none in another order.
#[test]
fn those_of_floats_are_the_portable_ones() {
    let mut random = Random(13);
    let same = |one: &[f32], other: &[f32]| {
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.to_bits() == b.to_bits())
    };
    for (channels, k, tiles) in [(16, 5, 2), (3, 8, 1), (14, 1, 3), (37, 33, 2), (64, 71, 1)] {
        let (groups, rest) = (channels / 16, channels % 16);
        let width = 16 * groups + usize::next_multiple_of(rest, 4);
        let weights = some_floats(&mut random, width * k);
        let x = some_floats(&mut random, 4 * tiles * (k + 3));
        let bias = some_floats(&mut random, channels);
        let residual = some_floats(&mut random, 4 * tiles * channels);
        let mut last_bias = [0.0; 16];
        last_bias[..rest].copy_from_slice(&bias[16 * groups..]);
        for (bias, residual) in [
            (bias.as_ptr(), core::ptr::null()),
            (core::ptr::null(), residual.as_ptr()),
        ] {
            let run = |rows: usize, tile: unsafe fn(*const ProductF32)| {
                let mut out = vec![99f32; 4 * tiles * channels];
                let args = ProductF32 {
                    x: x.as_ptr(),
                    x_stride: 4 * (k + 3),
                    weights: weights.as_ptr(),
                    bias,
                    out: out.as_mut_ptr(),
                    out_stride: 4 * channels,
                    residual,
                    groups,
                    rest,
                    quads: k / 4,
                    odd: k % 4,
                    tiles: 4 * tiles / rows,
                    limits: [0.0, 6.0],
                    last_bias: last_bias.as_ptr(),
                };
                // SAFETY: all rows, weights and outputs are there.
                unsafe { tile(&args) };
                out
            };
            let portable = run(4, portable::four_rows_f32);
            if levels().next().is_some() {
                let four = run(4, floats::rows::<4>);
                assert!(same(&four, &portable), "{channels} {k}: {four:?} {portable:?}");
                let one = run(1, floats::rows::<1>);
                assert!(same(&one, &portable), "{channels} {k}, a row at a time");
            }
        }
    }
    for (channels, taps, pixels) in [(16, 9, 4), (4, 3, 2), (7, 2, 3), (29, 5, 2), (40, 1, 3)] {
        let weights = some_floats(&mut random, taps * channels);
        let x = some_floats(&mut random, (pixels + taps) * channels);
        let bias = some_floats(&mut random, channels);
        let residual = some_floats(&mut random, pixels * channels);
        let entries: Vec<*const i8> = (0..taps).map(|tap| x[tap * channels..].as_ptr().cast()).collect();
        for (bias, residual) in [
            (bias.as_ptr(), core::ptr::null()),
            (core::ptr::null(), residual.as_ptr()),
        ] {
            let run = |loops: unsafe fn(*const DepthwiseF32)| {
                let mut out = vec![99f32; pixels * channels];
                let args = DepthwiseF32 {
                    entries: entries.as_ptr(),
                    taps,
                    weights: weights.as_ptr(),
                    out: out.as_mut_ptr(),
                    pixels,
                    step: 4 * channels,
                    bytes: 4 * channels,
                    blocks: channels / 16,
                    quads: usize::div_ceil(channels % 16, 4),
                    bias,
                    residual,
                    limits: [-1.5, 6.0],
                };
                // SAFETY: all taps, weights and outputs are there.
                unsafe { loops(&args) };
                out
            };
            let portable = run(portable::depthwise_f32);
            if levels().next().is_some() {
                let found = run(depthwise::f32);
                assert!(same(&found, &portable), "{channels} {taps}: {found:?} {portable:?}");
            }
        }
    }
}
