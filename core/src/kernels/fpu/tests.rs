//! The blocked kernels against the scalar one.
#![allow(unsafe_code)]

extern crate std;

use core::cell::Cell;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

use super::{conv2d_f32, dwconv_f32};
use crate::arena::{Mem, Rounding, Slot};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable;
use crate::ops::conv2d::Conv2dF32;
use crate::ops::window::Window2d;

/// Runs with the output at `output` and the input at `input`, in elements; the residual after them.
fn run<K: Kernel<Op = Conv2dF32>>(
    op: &Conv2dF32,
    (output, input): (usize, usize),
    data: &[f32],
    residual: &[f32],
    constants: &[f32],
) -> Vec<f32> {
    let end = (output + residual.len()).max(input + data.len());
    run_at::<K>(op, [output, input, end], data, residual, constants)
}

/// Runs with the output `distance` bytes before the residual, and the input after both.
fn run_beside<K: Kernel<Op = Conv2dF32>>(
    op: &Conv2dF32,
    distance: i64,
    data: &[f32],
    residual: &[f32],
    constants: &[f32],
) -> Vec<f32> {
    let distance = (distance / 4) as usize;
    run_at::<K>(op, [0, distance + residual.len(), distance], data, residual, constants)
}

/// Runs with output, input and residual at these elements.
fn run_at<K: Kernel<Op = Conv2dF32>>(
    op: &Conv2dF32,
    [output, input, beside]: [usize; 3],
    data: &[f32],
    residual: &[f32],
    constants: &[f32],
) -> Vec<f32> {
    let outputs = residual.len();
    let end = (output + outputs).max(input + data.len()).max(beside + outputs);
    let mut arena = vec![f32::NAN; end];
    arena[input..input + data.len()].copy_from_slice(data);
    arena[beside..beside + outputs].copy_from_slice(residual);
    let at = |element: usize| Slot {
        region: 0,
        offset: 4 * element as u32,
    };
    let mut op = *op;
    (op.output, op.input) = (at(output), at(input));
    op.residual = op.residual.map(|_| at(beside));
    op.weights = 0;
    op.bias = op
        .bias
        .map(|_| 4 * (constants.len() - usize::from(op.window.output[2])) as u32);
    // SAFETY: every float is four bytes, initialised; the arrays are touched through these views alone while the kernel runs.
    let (bytes, weights) = unsafe {
        (
            core::slice::from_raw_parts_mut(arena.as_mut_ptr().cast::<u8>(), arena.len() * 4),
            core::slice::from_raw_parts(constants.as_ptr().cast::<u8>(), constants.len() * 4),
        )
    };
    let mem = Mem {
        regions: [Cell::from_mut(bytes).as_slice_of_cells(), &[], &[], &[]],
        state: &[],
        weights,
        rounding: Rounding::default(),
        turning: Default::default(),
    };
    K::run(&op, &mem).unwrap();
    arena[output..output + outputs].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 3 / 5))]

    #[test]
    fn blocks_equal_the_scalar_kernel(
        batch in 1u16..3, height in 1u16..7, width in 1u16..14, kernel in [1u16..4, 1u16..4], stride in [1u8..3, 1u8..3],
        dilation in [1u8..3, 1u8..3], padding in [0u8..3, 0u8..3], channels in 1u16..20, out in 1u16..10, deep: bool,
        biased: bool, residual: bool, relu: bool, seed: u32,
    ) {
        let extent = |extent: u16, i: usize| (extent + u16::from(padding[i]) - 1) / u16::from(stride[i]) + 1;
        let out = if deep { channels } else { out };
        let window = Window2d {
            batch,
            input: [height, width, channels],
            output: [extent(height, 0), extent(width, 1), out],
            kernel,
            stride,
            dilation,
            padding,
        };
        let op = Conv2dF32 {
            output: Slot::default(),
            input: Slot::default(),
            residual: residual.then(Slot::default),
            scratch: Slot::default(),
            weights: 0,
            bias: biased.then_some(0),
            window,
            groups: if deep { channels } else { 1 },
            clamp: if relu { [0.0, 6.0] } else { [f32::NEG_INFINITY, f32::INFINITY] },
        };
        let mut state = seed;
        let mut values = |n: usize| -> Vec<f32> {
            (0..n).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            }).collect()
        };
        let data = values(window.input_len().unwrap() as usize);
        let outputs = values(window.output_len().unwrap() as usize);
        let weights = values(op.weights_len().unwrap() as usize);
        let bias = values(usize::from(out));
        let apart = (0, outputs.len());
        let expected = run::<portable::conv2d::F32>(&op, apart, &data, &outputs, &[weights.clone(), bias.clone()].concat());
        let check = |found: Vec<f32>| {
            let far = found.iter().zip(&expected).find(|(a, b)| (*a - *b).abs() > 1e-4);
            prop_assert!(far.is_none(), "{far:?}");
            Ok(())
        };
        let places = |distance: i64| match distance / 4 {
            d if d >= 0 => (0, d as usize),
            d => (-d as usize, 0),
        };
        if deep {
            let mut packed = vec![[0; 4]; dwconv_f32::F32::needs(&op).weights as usize / 4];
            dwconv_f32::pack(&op, &weights, &mut packed).unwrap();
            let mut packed: Vec<f32> = packed.into_iter().map(f32::from_le_bytes).collect();
            packed.extend(&bias);
            check(run::<dwconv_f32::F32>(&op, apart, &data, &outputs, &packed))?;
            let near = places(dwconv_f32::F32::distance(&op, 1).unwrap());
            check(run::<dwconv_f32::F32>(&op, near, &data, &outputs, &packed))?;
            for more in (0..20).filter(|_| residual) {
                let distance = dwconv_f32::F32::distance(&op, 2).unwrap() + 4 * more;
                check(run_beside::<dwconv_f32::F32>(&op, distance, &data, &outputs, &packed))?;
            }
        } else {
            let mut packed = vec![[0; 4]; conv2d_f32::F32::needs(&op).weights as usize / 4];
            conv2d_f32::pack(&op, &weights, &mut packed).unwrap();
            let mut packed: Vec<f32> = packed.into_iter().map(f32::from_le_bytes).collect();
            packed.extend(&bias);
            check(run::<conv2d_f32::F32>(&op, apart, &data, &outputs, &packed))?;
            let near = places(conv2d_f32::F32::distance(&op, 1).unwrap());
            check(run::<conv2d_f32::F32>(&op, near, &data, &outputs, &packed))?;
            for more in (0..20).filter(|_| residual) {
                let distance = conv2d_f32::F32::distance(&op, 2).unwrap() + 4 * more;
                check(run_beside::<conv2d_f32::F32>(&op, distance, &data, &outputs, &packed))?;
            }
            if residual && conv2d_f32::F32::in_place(&op, 2) {
                check(run_beside::<conv2d_f32::F32>(&op, 0, &data, &outputs, &packed))?;
            }
        }
    }
}
