//! Poolings at the ends of their fields, every backend against the definition in 64 bits.

extern crate std;

use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use crate::arena::{Mem, Rounding, Slot};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::{compact, dsp, mve, packed, portable};
use crate::ops::fault::Fault;
use crate::ops::operator::Operator;
use crate::ops::pool2d::PoolInt;
use crate::ops::reduce::{ReduceInt, Reduction};
use crate::ops::window::Window2d;
use crate::quant::Multiplier;
use crate::tensor::DType;

type Supports = fn(&PoolInt) -> bool;
type Run = fn(&PoolInt, &Mem<'_>) -> Option<()>;

fn kernel<K: Kernel<Op = PoolInt>>(name: &'static str) -> (&'static str, Supports, Run) {
    (name, K::supports, K::run)
}

/// Every average of integers: the scalar kernel last, which computes all.
fn averages() -> [(&'static str, Supports, Run); 5] {
    [
        kernel::<packed::pool2d_s8::Average>("int"),
        kernel::<dsp::pool2d_s8::Average>("dsp"),
        kernel::<mve::pool2d_s8::AvgS8>("mve"),
        kernel::<compact::pool2d_s8::Average>("compact"),
        kernel::<portable::pool2d::AvgInt>("scalar"),
    ]
}

/// Every maximum of integers.
fn maxima() -> [(&'static str, Supports, Run); 5] {
    [
        kernel::<packed::pool2d_s8::Max>("int"),
        kernel::<dsp::pool2d_s8::Max>("dsp"),
        kernel::<mve::pool2d_s8::MaxS8>("mve"),
        kernel::<compact::pool2d_s8::Max>("compact"),
        kernel::<portable::pool2d::MaxInt>("scalar"),
    ]
}

/// Elements as bytes of their type.
fn bytes(dtype: DType, values: &[i16]) -> Vec<u8> {
    match dtype {
        DType::I8 => values.iter().map(|&x| x as u8).collect(),
        _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

/// Runs a kernel on `values`, the output behind them.
fn run(run: Run, op: &PoolInt, values: &[i16]) -> Vec<i16> {
    let input = bytes(op.dtype, values);
    let output = input.len().next_multiple_of(16);
    let len = op.window.output_len().unwrap() as usize * op.dtype.bytes();
    let mut words = vec![0u64; (output + len).div_ceil(8)];
    // SAFETY: every word is eight bytes, initialised and borrowed mutably as long as the view.
    let memory = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), words.len() * 8) };
    memory[..input.len()].copy_from_slice(&input);
    let op = PoolInt {
        output: Slot {
            region: 0,
            offset: output as u32,
        },
        ..*op
    };
    let mem = Mem {
        regions: [Cell::from_mut(&mut *memory).as_slice_of_cells(), &[], &[], &[]],
        state: &[],
        weights: &[],
        rounding: Rounding::default(),
        turning: Default::default(),
    };
    run(&op, &mem).expect("a pooling that runs");
    let found = memory[output..][..len].chunks_exact(op.dtype.bytes());
    found
        .map(|x| match *x {
            [low, high] => i16::from_le_bytes([low, high]),
            [x] => i16::from(x as i8),
            _ => unreachable!(),
        })
        .collect()
}

/// The definition: the mean (or maximum) of what of each window lies inside the input, rounded half away from zero.
fn expected(op: &PoolInt, values: &[i16], max: bool) -> Vec<i16> {
    let Window2d {
        input: [h, w, c],
        output: [oh, ow, _],
        kernel,
        stride,
        padding,
        ..
    } = op.window;
    let inside = |at: u16, axis: usize, extent: u16| {
        let start = i64::from(at) * i64::from(stride[axis]) - i64::from(padding[axis]);
        let end = (start + i64::from(kernel[axis])).min(i64::from(extent));
        start.max(0) as usize..end as usize
    };
    let mut results = vec![];
    for (y, x, channel) in (0..oh).flat_map(|y| (0..ow).flat_map(move |x| (0..c).map(move |c| (y, x, c)))) {
        let rows = inside(y, 0, h);
        let under = rows.flat_map(|iy| inside(x, 1, w).map(move |ix| (iy, ix)));
        let under =
            under.map(|(iy, ix)| i64::from(values[(iy * usize::from(w) + ix) * usize::from(c) + usize::from(channel)]));
        let result = if max {
            under.max().unwrap()
        } else {
            let (sum, count) = under.fold((0, 0), |(sum, count), x| (sum + x, count + 1));
            // Twice the numbers, so that the half is whole.
            let away = if sum < 0 { -1 } else { 1 };
            (2 * sum + away * count) / (2 * count)
        };
        results.push(result.clamp(i64::from(op.clamp[0]), i64::from(op.clamp[1])) as i16);
    }
    results
}

fn pool(
    dtype: DType,
    input: [u16; 3],
    output: [u16; 2],
    kernel: [u16; 2],
    stride: [u8; 2],
    padding: [u8; 2],
) -> PoolInt {
    PoolInt {
        output: Slot::default(),
        input: Slot::default(),
        dtype,
        window: Window2d {
            batch: 1,
            input,
            output: [output[0], output[1], input[2]],
            kernel,
            stride,
            dilation: [1, 1],
            padding,
        },
        clamp: if dtype == DType::I8 {
            [-128, 127]
        } else {
            [i16::MIN, i16::MAX]
        },
    }
}

/// Sums at the ends of 32 bits and beyond: exact, or refused by the kernels that cannot.
#[test]
fn averages_of_many_elements_are_exact() {
    // The most elements that fit, and more: 255 * 257 and 4095 * 4081, then a row or a column beyond.
    for (dtype, input, fits) in [
        (DType::I16, [255, 257, 1], true),
        (DType::I16, [2, 32768, 1], false),
        (DType::I16, [257, 600, 3], false),
        (DType::I8, [4095, 4081, 1], true),
        (DType::I8, [4096, 4081, 1], false),
    ] {
        let op = pool(dtype, input, [1, 1], [input[0], input[1]], [1, 1], [0, 0]);
        assert_eq!(op.sums_fit(), fits, "{op:?}");
        let [least, largest] = if dtype == DType::I8 {
            [-128, 127]
        } else {
            [i16::MIN, i16::MAX]
        };
        let len = op.window.input_len().unwrap() as usize;
        let mixed = (0..len).map(|i| if i % 7 == 3 { largest } else { least }).collect();
        for values in [vec![least; len], vec![largest; len], mixed] {
            let mean = expected(&op, &values, false);
            let mut computed = 0;
            for (name, supports, compute) in averages() {
                assert!(
                    name == "scalar" || supports(&op) == (fits && dtype == DType::I8),
                    "{name}: {op:?}"
                );
                if supports(&op) {
                    computed += 1;
                    assert_eq!(run(compute, &op, &values), mean, "{name}: {op:?}");
                }
            }
            assert_eq!(computed, if fits && dtype == DType::I8 { 5 } else { 1 });
        }
    }
}

/// Windows as long as their fields hold cost no more than the input: unclipped, these would read 10^11 elements. Load refuses them all the same.
#[test]
fn windows_are_clipped_to_the_input() {
    for op in [
        pool(DType::I8, [3, 5, 6], [3, 5], [65535, 65535], [1, 1], [2, 4]),
        pool(DType::I16, [5, 3, 2], [2, 2], [65535, 65535], [3, 2], [1, 2]),
        pool(DType::I8, [255, 2, 17], [2, 1], [65535, 65535], [254, 1], [253, 0]),
    ] {
        assert_eq!(op.check(), Err(Fault::Shape), "{op:?}");
        let values: Vec<i16> = (0..op.window.input_len().unwrap())
            .map(|i| (i * 37 % 251) as i16 - 125)
            .collect();
        for (kernels, max) in [(averages(), false), (maxima(), true)] {
            let wanted = expected(&op, &values, max);
            for (name, _, compute) in kernels.into_iter().filter(|(_, supports, _)| supports(&op)) {
                assert_eq!(run(compute, &op, &values), wanted, "{name}, {max}: {op:?}");
            }
        }
    }
}

/// Behind the input windows may need as much padding as can be stated before it.
#[test]
fn windows_are_little_longer_than_the_input() {
    let op = |length: u16| pool(DType::I8, [3, 5, 6], [2, 5], [length, 4], [2, 1], [1, 3]);
    // The last of two windows starts in row 1; row 3 is the first behind the input.
    assert_eq!(op(2 + 255).check(), Ok(()));
    assert_eq!(op(2 + 256).check(), Err(Fault::Shape));
}

/// A mean over axes sums as a pooling does, and has no second kernel.
#[test]
fn reductions_beyond_32_bits_are_refused() {
    let mut op = ReduceInt {
        output: Slot::default(),
        input: Slot::default(),
        dtype: DType::I16,
        shape: [3, 255, 1, 257, 2],
        kind: Reduction::Mean,
        zero_in: 0,
        multiplier: Multiplier::ONE,
        zero_out: 0,
    };
    let supports = portable::reduce::Quantised::supports;
    assert!(supports(&op));
    op.shape = [3, 257, 1, 256, 2];
    assert!(!supports(&op));
    op.kind = Reduction::Max;
    assert!(supports(&op));
    (op.kind, op.dtype) = (Reduction::Sum, DType::I8);
    assert!(supports(&op));
    op.zero_in = i32::MIN;
    assert!(!supports(&op));
}
