//! Elementwise operators of one and two operands, with broadcasting.

use heapless::Vec;

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::binary::{BinaryOp, Pairwise, SpecialBinaryOp};
use crate::ops::choose::Choose;
use crate::ops::compare::{Compare, Comparison};
use crate::ops::convert::{Convert, Rescale, SigmoidS16, Table, TableS16};
use crate::ops::elementwise::{BinaryF32, Loop, MAX_LOOPS, UnaryF32};
use crate::ops::elementwise_int::{BinaryInt, IntOp};
use crate::ops::pointwise::{Pointwise, SpecialOp, UnaryOp};
use crate::ops::softmax::TABLE_LEN;
use crate::ops::special_int::{SpecialInt, SpecialIntOp};
use crate::quant::{Multiplier, SigmoidI16};
use crate::tensor::DType;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

/// Axes of at most so many elements together: operands of the output's shape, broadcast along some axes, and now and then of another order or apart.
pub(super) fn loops(draw: &mut Draw<'_>, most: u32) -> Vec<Loop, MAX_LOOPS> {
    let axes = draw.pick(&[1, 1, 2, 2, 3, 4, 6]).unwrap_or(1);
    let mut loops = Vec::new();
    let (mut left, mut inner_a, mut inner_b) = (most, 1, 1);
    for _ in 0..axes {
        let count = draw.share(if axes == 1 { most } else { 20 }, &mut left);
        let [without_a, without_b] = [draw.one_in(4), draw.one_in(4)];
        let axis = Loop {
            count,
            a: if without_a { 0 } else { inner_a },
            b: if without_b { 0 } else { inner_b },
        };
        inner_a *= if without_a { 1 } else { count };
        inner_b *= if without_b { 1 } else { count };
        let _ = loops.push(axis);
    }
    loops.reverse();
    if draw.one_in(8) {
        let strides = |axis: &Loop| axis.b;
        let mut turned: Vec<u32, MAX_LOOPS> = loops.iter().map(strides).collect();
        turned.reverse();
        loops.iter_mut().zip(turned).for_each(|(axis, stride)| axis.b = stride);
    }
    if draw.one_in(16) {
        let apart = 1 + draw.random.below(3);
        loops.iter_mut().for_each(|axis| axis.a *= apart);
    }
    loops
}

fn binary<F: Pairwise>(draw: &mut Draw<'_>, op: F) -> (BinaryF32<Slot, F>, Data) {
    let op = BinaryF32 {
        output: Slot::default(),
        a: Slot::default(),
        b: Slot::default(),
        loops: loops(draw, 120),
        op,
        clamp: draw.float_limits(),
    };
    let most = draw.random.one_of([1.0, 8.0, 1000.0, 3.0]);
    let data = Data::floats(draw.seed(), Alike::EXACT_FLOATS);
    (op, data.of(&[Numbers::Special(most); 2]))
}

impl Generated for BinaryF32<Slot, BinaryOp> {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (op, _) = draw.pick(BinaryOp::ROWS)?;
        Some(binary(draw, op))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::elementwise::binary
    }
}

impl Generated for BinaryF32<Slot, SpecialBinaryOp> {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (op, _) = draw.pick(SpecialBinaryOp::ROWS)?;
        Some(binary(draw, op))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::elementwise::binary
    }
}

fn unary<F: Pointwise>(draw: &mut Draw<'_>, op: F) -> (UnaryF32<Slot, F>, Data) {
    let op = UnaryF32 {
        output: Slot::default(),
        input: Slot::default(),
        count: draw.extent(100),
        op,
    };
    let most = draw.random.one_of([1.0, 8.0, 100.0, 3.0]);
    let data = Data::floats(draw.seed(), Alike::EXACT_FLOATS);
    (op, data.of(&[Numbers::Special(most)]))
}

impl Generated for UnaryF32<Slot, UnaryOp> {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (plain, _) = draw.pick(UnaryOp::ROWS)?;
        let [min, max] = draw.float_limits();
        let alpha = draw.random.float();
        let clamp = UnaryOp::Clamp { min, max };
        let op = draw.pick(&[plain, plain, plain, plain, clamp, UnaryOp::LeakyRelu { alpha }])?;
        Some(unary(draw, op))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::elementwise::unary
    }
}

impl Generated for UnaryF32<Slot, SpecialOp> {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (op, _) = draw.pick(SpecialOp::ROWS)?;
        Some(unary(draw, op))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::elementwise::unary
    }
}

impl Generated for Compare {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::F32, DType::I8, DType::I32, DType::Bool])?;
        let asked = [
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
        ];
        let op = match dtype {
            DType::Bool => draw.pick(&[Comparison::And, Comparison::Or, Comparison::Equal, Comparison::Less])?,
            _ => draw.pick(&asked)?,
        };
        let op = Compare {
            output: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            loops: loops(draw, 120),
            dtype,
            op,
            zero: [draw.any_zero(DType::I8), draw.any_zero(DType::I8)],
            shift: draw.pick(&[8, 8, 0, 20, 31])?,
            multipliers: [draw.multiplier([-2, 0]), draw.multiplier([-2, 0])],
        };
        let numbers = match dtype {
            DType::F32 => Numbers::Special(4.0),
            DType::Bool => Numbers::Truths,
            DType::I32 => draw.pick(&[Numbers::Bytes, Numbers::Words([-3, 3])])?,
            _ => Numbers::Bytes,
        };
        Some((op, Data::integers(draw.seed()).of(&[numbers; 2])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::compare::any
    }
}

impl Generated for Choose {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = Choose {
            output: Slot::default(),
            condition: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            element: draw.pick(&[1, 2, 4, 8])?,
            loops: loops(draw, 80),
        };
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Truths])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::select::any
    }
}

/// The multipliers of a quantised sum: into a common scale, and out of it.
fn of_sums(draw: &mut Draw<'_>) -> [[i8; 2]; 3] {
    draw.pick(&[[[-1, 0], [-1, 0], [-19, -17]], [[-2, 1], [-2, 1], [-20, -14]]])
        .unwrap_or([[0, 0]; 3])
}

/// An integer operator of two operands: every type and operation.
pub(in crate::testkit) fn binary_int(draw: &mut Draw<'_>) -> Option<BinaryInt> {
    let dtype = draw.pick(&[DType::I8, DType::I8, DType::I16, DType::I16, DType::I32])?;
    let last = if dtype == DType::I32 { IntOp::Div } else { IntOp::Prelu };
    let op = draw.pick(&[IntOp::Add, IntOp::Sub, IntOp::Mul, IntOp::Minimum, IntOp::Maximum, last])?;
    let wide = dtype == DType::I16;
    let (shift, shifts) = match op {
        IntOp::Add | IntOp::Sub => (if wide { 15 } else { 20 }, of_sums(draw)),
        _ if wide => (0, [[-1, 1], [0, 0], [-16, -13]]),
        _ => (0, [[-1, 1], [0, 0], [-9, -5]]),
    };
    let [a, b, mut result] = shifts;
    let (mut of_a, mut of_b) = (draw.multiplier(a), draw.multiplier(b));
    if wide && matches!(op, IntOp::Add | IntOp::Sub) {
        result = [-15, -12];
        // The operand of the larger scale is halved, the other one less than that.
        let half = Multiplier {
            mantissa: 1 << 30,
            shift: 0,
        };
        let less = draw.multiplier([-4, -1]);
        [of_a, of_b] = draw
            .random
            .one_of([[half, less], [less, half], [half, half], [of_a, of_b]]);
    }
    Some(BinaryInt {
        output: Slot::default(),
        a: Slot::default(),
        b: Slot::default(),
        loops: loops(draw, 120),
        dtype,
        op,
        zero: [draw.any_zero(dtype), draw.any_zero(dtype), draw.any_zero(dtype)],
        shift: if draw.one_in(12) {
            draw.random.below(32) as u8
        } else {
            shift
        },
        multipliers: [of_a, of_b, draw.multiplier(result)],
        clamp: draw.limits(dtype),
    })
}

impl Generated for SpecialInt {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::I8, DType::I8, DType::I16, DType::I32])?;
        let op = match draw.random.below(4) {
            0 | 1 if dtype == DType::I8 => draw.pick(&[SpecialIntOp::Div, SpecialIntOp::SquaredDifference])?,
            0 => SpecialIntOp::SquaredDifference,
            1 | 2 => SpecialIntOp::FloorDiv,
            _ => SpecialIntOp::FloorMod,
        };
        let shift = if draw.one_in(12) {
            draw.random.below(32) as u8
        } else {
            7
        };
        let result = if op == SpecialIntOp::Div { [-2, 3] } else { [-20, -8] };
        let op = SpecialInt {
            output: Slot::default(),
            a: Slot::default(),
            b: Slot::default(),
            loops: loops(draw, 120),
            dtype,
            op,
            zero: [draw.any_zero(dtype), draw.any_zero(dtype), draw.any_zero(dtype)],
            shift,
            multipliers: [
                draw.multiplier([-1, 0]),
                draw.multiplier([-1, 0]),
                draw.multiplier(result),
            ],
            clamp: draw.limits(dtype),
        };
        let small = if dtype == DType::I32 {
            Numbers::Words([-9, 9])
        } else {
            Numbers::Bytes
        };
        let of_b = draw.pick(&[Numbers::Bytes, small])?;
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Bytes, of_b])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::special_s8_s16::special
    }
}

impl Generated for Table {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = Table {
            output: Slot::default(),
            input: Slot::default(),
            count: draw.extent(200),
            table: draw.constants(256, |random| [random.byte() as u8])?,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::convert::table
    }
}

impl Generated for TableS16 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        // A curve, or any numbers.
        let any = draw.coin();
        let mut at = 0_i32;
        let table = draw.constants(TABLE_LEN, |random| {
            at += 1;
            let curve = ((at - 257) * (at - 257) / 3 - 9000) as i16;
            if any { random.next() as i16 } else { curve }.to_le_bytes()
        })?;
        let op = TableS16 {
            output: Slot::default(),
            input: Slot::default(),
            count: draw.extent(150),
            table,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::convert::table_s16
    }
}

impl Generated for Rescale {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let types = [DType::I8, DType::I8, DType::U8, DType::I16, DType::I32];
        let [from, to] = [draw.pick(&types)?, draw.pick(&types)?];
        let shifts = match (from, to) {
            (DType::I32, _) => [-20, -8],
            (DType::I16, DType::I8 | DType::U8) => [-9, -6],
            (_, DType::I16) if from != DType::I16 => [4, 8],
            (_, DType::I32) => [0, 12],
            _ => [-2, 2],
        };
        let positive = draw.multiplier(shifts);
        let mut negative = if draw.coin() { positive } else { draw.multiplier(shifts) };
        if draw.one_in(6) {
            negative.mantissa = negative.mantissa.wrapping_neg();
        }
        let op = Rescale {
            output: Slot::default(),
            input: Slot::default(),
            count: draw.extent(120),
            from,
            to,
            zero_in: draw.any_zero(from),
            zero_out: draw.any_zero(to),
            absolute: draw.one_in(4),
            positive,
            negative,
            clamp: draw.limits(to),
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::convert::rescale
    }
}

impl Generated for SigmoidS16 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let tanh = draw.coin();
        let scale = draw.pick(&[1.0 / 4096.0, 1.0 / 2048.0, 0.0003, 0.001, 1.0 / 32768.0, 0.01, 1e-6])?;
        let sigmoid = if tanh {
            SigmoidI16::tanh_of_scale(scale)?
        } else {
            SigmoidI16::logistic_of_scale(scale)?
        };
        let op = SigmoidS16 {
            output: Slot::default(),
            input: Slot::default(),
            count: draw.extent(150),
            sigmoid,
            tanh,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::convert::sigmoid
    }
}

impl Generated for Convert {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let types = [DType::F32, DType::I8, DType::U8, DType::I16, DType::I32, DType::Bool];
        let from = draw.pick(&types)?;
        let to = if from != DType::F32 && draw.coin() {
            DType::F32
        } else {
            draw.pick(&types)?
        };
        let to = if from == DType::F32 && draw.coin() {
            DType::I8
        } else {
            to
        };
        let scale = draw.pick(&[0.0, 0.0625, 0.007_843_137, 0.03, 3.0, 1e-5])?;
        let op = Convert {
            output: Slot::default(),
            input: Slot::default(),
            count: draw.extent(120),
            from,
            to,
            scale,
            zero_point: draw.any_zero(if from == DType::F32 { to } else { from }),
        };
        let numbers = match from {
            DType::F32 => Numbers::Special(draw.pick(&[1.0, 2.0, 300.0, 1e6])?),
            DType::Bool => Numbers::Truths,
            _ => Numbers::Bytes,
        };
        let data = if to == DType::F32 {
            Data::floats(draw.seed(), Alike::EXACT_FLOATS)
        } else {
            Data::integers(draw.seed())
        };
        let exact = from != DType::F32 && to != DType::F32;
        Some((op, Data { exact, ..data }.of(&[numbers])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::convert::convert
    }
}
