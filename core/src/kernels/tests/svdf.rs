//! SVDF of odd extents and at the ends of its fields, beside the formula in 64 bits.

extern crate std;

use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use crate::arena::{Mem, Rounding, Slot};
use crate::kernels::api::candidate::{Candidate, Job, PlainS8, PlainSvdf};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::portable::svdf::S8;
use crate::kernels::{dsp, mve, packed};
use crate::ops::operator::Operator;
use crate::ops::packed_conv2d::Form;
use crate::ops::svdf::{PackedSvdfS8, SvdfS8, SvdfShape};
use crate::quant::Multiplier;
use crate::tensor::DType;

/// A model's numbers, whatever their type.
struct Case {
    op: SvdfS8<Slot>,
    input: Vec<i32>,
    weights: Vec<i32>,
    time_weights: Vec<i32>,
    bias: Vec<i32>,
}

fn bytes(dtype: DType, values: &[i32]) -> Vec<u8> {
    let each = values
        .iter()
        .flat_map(|x| x.to_le_bytes().into_iter().take(dtype.bytes()));
    each.collect()
}

/// Bytes at a multiple of eight.
fn words(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
    // SAFETY: every word is eight bytes, initialised and borrowed mutably as long as the view.
    let memory = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), words.len() * 8) };
    memory[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Runs the kernel: the output and the state behind it.
fn found(case: &mut Case, state: &[i32]) -> (Vec<i32>, Vec<i32>) {
    let SvdfShape { batch, units, .. } = case.op.shape;
    let outputs = (batch * units) as usize;
    let mut memory = bytes(DType::I8, &case.input);
    let mut place = |len: usize, align: usize| {
        memory.resize(memory.len().next_multiple_of(align), 0);
        let offset = memory.len() as u32;
        memory.resize(memory.len() + len, 0);
        Slot { region: 0, offset }
    };
    let dtype = case.op.state_type;
    // The state at an odd multiple of its element.
    case.op.state = place(0, 4);
    place(dtype.bytes(), 1);
    case.op.state = place(state.len() * dtype.bytes(), 1);
    case.op.output = place(outputs, 1);
    let (at, len) = (case.op.state.offset as usize, state.len() * dtype.bytes());
    memory[at..][..len].copy_from_slice(&bytes(dtype, state));
    let mut constants = bytes(DType::I32, &case.bias);
    case.op.time_weights = constants.len() as u32;
    constants.extend(bytes(dtype, &case.time_weights));
    case.op.weights = constants.len() as u32;
    constants.extend(bytes(DType::I8, &case.weights));
    let (mut arena, constants) = (words(&memory), words(&constants));
    // SAFETY: every word is eight bytes, initialised; the vectors are touched through these views alone while the kernel runs.
    let (arena, weights) = unsafe {
        let arena = core::slice::from_raw_parts_mut(arena.as_mut_ptr().cast::<u8>(), arena.len() * 8);
        (
            arena,
            core::slice::from_raw_parts(constants.as_ptr().cast::<u8>(), constants.len() * 8),
        )
    };
    let mem = Mem {
        regions: [Cell::from_mut(&mut *arena).as_slice_of_cells(), &[], &[], &[]],
        state: &[],
        weights,
        rounding: Rounding::default(),
        turning: Default::default(),
    };
    S8::run(&case.op, &mem).expect("an SVDF that runs");
    let output = arena[case.op.output.offset as usize..][..outputs].iter();
    let state = arena[at..][..len].chunks_exact(dtype.bytes()).map(|x| match *x {
        [low, high] => i32::from(i16::from_le_bytes([low, high])),
        [x] => i32::from(x as i8),
        _ => unreachable!(),
    });
    (output.map(|&x| i32::from(x as i8)).collect(), state.collect())
}

/// A kernel with constants of its own.
struct Packed<K: Kernel> {
    op: K::Op,
    constants: Vec<u64>,
}

impl<K: Candidate<Op = PackedSvdfS8>> Packed<K> {
    /// `None` where the kernel is not for the case.
    fn of(case: &Case) -> Option<Self> {
        let op = case.op;
        let narrow = |values: &[i32]| -> Vec<i8> { values.iter().map(|&value| value as i8).collect() };
        let (weights, times) = (narrow(&case.weights), narrow(&case.time_weights));
        let channels =
            vec![[0, op.multipliers[0].mantissa, op.multipliers[0].shift.into()]; op.shape.filters() as usize];
        let plain = PlainSvdf {
            features: PlainS8 {
                weights: &weights,
                channels: &channels,
            },
            times: &times,
            bias: &case.bias,
        };
        let packed = PackedSvdfS8 {
            output: op.output,
            input: op.input,
            state: op.state,
            scratch: op.output,
            shape: op.shape,
            weights: 0,
            form: Form::General,
            zero: [op.zero[0] as i8, op.zero[2] as i8],
            multiplier: op.multipliers[1],
        };
        let job = Job::SvdfS8(packed, plain);
        let mut op = K::step(&job).filter(K::supports)?;
        let mut constants = vec![0; K::needs(&op).weights as usize];
        K::pack(&job, &op, &mut constants, &mut [])?;
        constants.resize(constants.len().next_multiple_of(4), 0);
        op.set_constants(0, 0);
        assert!(K::trusts(&op, &constants), "{op:?}");
        Some(Self {
            op,
            constants: words(&constants),
        })
    }

    /// The output; the state goes on.
    fn run(&mut self, input: &[i32], state: &mut [i32]) -> Vec<i32> {
        let outputs = (self.op.shape.batch * self.op.shape.units) as usize;
        let mut memory = vec![0; K::needs(&self.op).scratch as usize];
        let mut place = |values: &[i32]| {
            let offset = memory.len() as u32;
            memory.extend(bytes(DType::I8, values));
            Slot { region: 0, offset }
        };
        self.op.scratch = Slot { region: 0, offset: 0 };
        self.op.input = place(input);
        self.op.state = place(state);
        self.op.output = place(&vec![0; outputs]);
        let mut arena = words(&memory);
        // SAFETY: every word is eight bytes, initialised; the vectors are touched through these views alone while the kernel runs.
        let (arena, weights) = unsafe {
            (
                core::slice::from_raw_parts_mut(arena.as_mut_ptr().cast::<u8>(), arena.len() * 8),
                core::slice::from_raw_parts(self.constants.as_ptr().cast::<u8>(), self.constants.len() * 8),
            )
        };
        let mem = Mem {
            regions: [Cell::from_mut(&mut *arena).as_slice_of_cells(), &[], &[], &[]],
            state: &[],
            weights,
            rounding: Rounding::default(),
            turning: Default::default(),
        };
        K::run(&self.op, &mem).expect("an SVDF that runs");
        let read = |slot: Slot, len: usize| arena[slot.offset as usize..][..len].iter().map(|&x| i32::from(x as i8));
        let len = state.len();
        state
            .iter_mut()
            .zip(read(self.op.state, len))
            .for_each(|(to, x)| *to = x);
        read(self.op.output, outputs).collect()
    }
}

/// Runs of a kernel one after the other, each beside the formula; whether it is for the case.
fn goes_on_as_the_formula<K: Candidate<Op = PackedSvdfS8>>(case: &mut Case, state: &[i32]) -> bool {
    let Some(mut packed) = Packed::<K>::of(case) else {
        return false;
    };
    let (mut found, mut state, first) = (state.to_vec(), state.to_vec(), case.input.clone());
    for step in 0..4 {
        let output = packed.run(&case.input, &mut found);
        assert_eq!(output, expected(case, &mut state), "{step} {:?}", packed.op);
        assert_eq!(found, state, "{step} {:?}", packed.op);
        case.input.rotate_left(1);
        case.input.iter_mut().for_each(|x| *x = !*x);
    }
    case.input = first;
    true
}

#[test]
fn packed_kernels_go_on_as_the_formula() {
    let mut seed = 7_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as i32
    };
    let mut tried = [0; 3];
    let cases = if cfg!(miri) { 6 } else { 2000 };
    for _ in 0..cases {
        let mut one_of = |extents: [u32; 4]| extents[(next() & 3) as usize];
        let shape = SvdfShape {
            batch: one_of([1, 1, 1, 2]),
            features: one_of([16, 32, 5, 48]),
            units: one_of([1, 3, 8, 13]),
            rank: one_of([1, 1, 2, 3]),
            memory: one_of([8, 8, 12, 5]) + one_of([0, 0, 0, 1]),
        };
        let filters = shape.filters();
        let limit = one_of([4, 40, 127, 128]) as i32;
        let mut many =
            |count: u32, limit: i32| -> Vec<i32> { (0..count).map(|_| (next() % (2 * limit)) - limit).collect() };
        let (input, weights) = (
            many(shape.batch * shape.features, 128),
            many(filters * shape.features, limit),
        );
        let (time_weights, bias) = (many(filters * shape.memory, limit), many(shape.units, 20_000));
        let state = many(shape.batch * filters * shape.memory, 128);
        let mut multiplier = |shift: i32| Multiplier {
            mantissa: 1 << 30 | next() << 6,
            shift: (shift - next() % 6) as i8,
        };
        let multipliers = [multiplier(-5), multiplier(-4)];
        let slot = Slot::default();
        let op = SvdfS8 {
            output: slot,
            input: slot,
            state: slot,
            shape,
            state_type: DType::I8,
            weights: 0,
            time_weights: 0,
            bias: 0,
            zero: [
                next() % 256 - 128,
                0,
                if next() & 1 == 0 { -128 } else { next() % 256 - 128 },
            ],
            multipliers,
        };
        let mut case = Case {
            op,
            input,
            weights,
            time_weights,
            bias,
        };
        tried[0] += u32::from(goes_on_as_the_formula::<dsp::svdf_s8::S8>(&mut case, &state));
        tried[1] += u32::from(goes_on_as_the_formula::<packed::svdf_s8::S8>(&mut case, &state));
        tried[2] += u32::from(goes_on_as_the_formula::<mve::svdf_s8::S8>(&mut case, &state));
    }
    assert!(tried.iter().all(|&tried| tried > cases / 4), "{tried:?}");
}

/// The formula.
fn expected(case: &Case, state: &mut [i32]) -> Vec<i32> {
    let shape = case.op.shape;
    let [batch, features, units, rank, memory] =
        [shape.batch, shape.features, shape.units, shape.rank, shape.memory].map(|n| n as usize);
    let [zero_in, zero_state, zero_out] = case.op.zero.map(i64::from);
    let [into_state, into_output] = case.op.multipliers;
    let filters = units * rank;
    let wide = case.op.state_type == DType::I16;
    let (low, high) = if wide { (-32768, 32767) } else { (-128, 127) };
    let mut output = vec![];
    for b in 0..batch {
        for f in 0..filters {
            let row = &mut state[(b * filters + f) * memory..][..memory];
            row.copy_within(1.., 0);
            let terms = (0..features).map(|i| {
                (i64::from(case.input[b * features + i]) - zero_in) * i64::from(case.weights[f * features + i])
            });
            let newest = into_state.apply(terms.sum::<i64>() as i32).max(low).min(high);
            let newest = newest.wrapping_add(zero_state as i32);
            row[memory - 1] = if wide {
                i32::from(newest as i16)
            } else {
                i32::from(newest as i8)
            };
        }
        for u in 0..units {
            let mut sum = i64::from(case.bias[u]);
            for f in u * rank..(u + 1) * rank {
                for t in 0..memory {
                    let s = i64::from(state[(b * filters + f) * memory + t]) - zero_state;
                    sum += s * i64::from(case.time_weights[f * memory + t]);
                }
            }
            let scaled = into_output.apply(sum as i32).wrapping_add(zero_out as i32);
            output.push(scaled.clamp(-128, 127));
        }
    }
    output
}

#[test]
fn odd_extents_and_ends_of_fields_are_the_formula() {
    let mut seed = 1_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as i32
    };
    let cases = if cfg!(miri) { 20 } else { 3000 };
    for case in 0..cases {
        let extent = |n: i32| (n % 11 + 1) as u32;
        let shape = SvdfShape {
            batch: (case % 2 + 1) as u32,
            features: extent(next()) + extent(next()),
            units: extent(next()),
            rank: extent(next()) % 4 + 1,
            memory: extent(next()),
        };
        let wide = case % 4 > 1;
        let [low, high] = if wide { [-32768, 32767] } else { [-128, 127] };
        let within = |n: i32, [low, high]: [i32; 2]| match n & 7 {
            0 => low,
            1 => high,
            _ => low + (n >> 3) % (high - low + 1),
        };
        let mut many = |count: u32, ends: [i32; 2]| -> Vec<i32> { (0..count).map(|_| within(next(), ends)).collect() };
        let filters = shape.filters();
        let (input, weights) = (
            many(shape.batch * shape.features, [-128, 127]),
            many(filters * shape.features, [-128, 127]),
        );
        let (time_weights, bias) = (
            many(filters * shape.memory, [low, high]),
            many(shape.units, [-40_000, 40_000]),
        );
        let mut state = many(shape.batch * filters * shape.memory, [low, high]);
        let mut zero = |n: i32| match n {
            0..=3 => 0,
            4 => i32::MAX,
            5 => i32::MIN,
            _ => within(next(), [-128, 127]),
        };
        let zeros = [zero(case % 9), zero(case % 13), zero(case % 7)];
        let shift = |n: i32| (n % 20 - 16) as i8;
        let multipliers = [0; 2].map(|_| Multiplier {
            mantissa: if next() & 15 == 0 {
                -(next() << 7)
            } else {
                1 << 30 | next() << 6
            },
            shift: if case % 3 == 0 {
                shift(next())
            } else {
                -(next() % 16) as i8
            },
        });
        let slot = Slot::default();
        let op = SvdfS8 {
            output: slot,
            input: slot,
            state: slot,
            shape,
            state_type: if wide { DType::I16 } else { DType::I8 },
            weights: 0,
            time_weights: 0,
            bias: 0,
            zero: zeros,
            multipliers,
        };
        let mut case = Case {
            op,
            input,
            weights,
            time_weights,
            bias,
        };
        let (output, after) = found(&mut case, &state);
        assert_eq!(output, expected(&case, &mut state), "{:?}", case.op);
        assert_eq!(after, state, "{:?}", case.op);
    }
}
