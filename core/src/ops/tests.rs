//! Every condition of operators' checks, broken alone: the fault that it gives, beside what is accepted at its limit.

mod detections;
mod forms;
mod l2_norm;
mod recurrent;
mod signals;

use super::binary::BinaryOp;
use super::choose::Choose;
use super::compare::{Compare, Comparison};
use super::conv2d::Conv2dS16;
use super::convert::{Convert, Rescale};
use super::elementwise::{BinaryF32, Loop};
use super::elementwise_int::{BinaryInt, IntOp};
use super::fault::Fault;
use super::locally_connected::LocallyConnectedF32;
use super::matmul::MatMulInt;
use super::operator::Operator;
use super::pool2d::PoolInt;
use super::softmax::{SoftmaxInt, SoftmaxKind};
use super::special_int::{SpecialInt, SpecialIntOp};
use super::window::Window2d;
use crate::arena::Slot;
use crate::quant::{LogSoftmaxI8, Multiplier};
use crate::tensor::DType;

const AT: Slot = Slot { region: 0, offset: 0 };

/// A shift beyond what is computed with.
const FAR: Multiplier = Multiplier {
    mantissa: 1 << 30,
    shift: 32,
};

/// Checks `operator` with and without each change.
#[track_caller]
fn broken<O: Operator>(operator: &O, fault: Fault, changes: &[fn(&mut O)]) {
    assert_eq!(operator.check(), Ok(()), "as it is");
    for (index, change) in changes.iter().enumerate() {
        let mut changed = operator.clone();
        change(&mut changed);
        assert_eq!(changed.check(), Err(fault), "change {index}");
    }
}

/// At its limits.
#[track_caller]
fn accepted<O: Operator>(operator: &O, changes: &[fn(&mut O)]) {
    for (index, change) in changes.iter().enumerate() {
        let mut changed = operator.clone();
        change(&mut changed);
        assert_eq!(changed.check(), Ok(()), "change {index}");
    }
}

type Loops = heapless::Vec<Loop, 6>;

fn loops(all: [[u32; 3]; 2]) -> Loops {
    all.into_iter().map(|[count, a, b]| Loop { count, a, b }).collect()
}

fn plain() -> Loops {
    loops([[3, 2, 0], [2, 1, 1]])
}

/// Of few elements, which a walk reaches by a sum beyond 32 bits; of a, then of b.
fn endless_a() -> Loops {
    loops([[1, u32::MAX, 0], [2, 1, 1]])
}

fn endless_b() -> Loops {
    loops([[1, 2, u32::MAX], [2, 1, 1]])
}

/// More elements than 32 bits count: in the output, in a, in b.
fn large() -> [Loops; 3] {
    [
        loops([[1 << 16, 0, 0], [1 << 16, 0, 0]]),
        loops([[3, 1 << 31, 0], [2, 1, 1]]),
        loops([[3, 2, 1 << 31], [2, 1, 1]]),
    ]
}

#[test]
fn broadcasts() {
    let binary = BinaryF32 {
        output: AT,
        a: AT,
        b: AT,
        loops: plain(),
        op: BinaryOp::Add,
        clamp: [0.0, 1.0],
    };
    broken(
        &binary,
        Fault::Shape,
        &[
            |op| op.loops = endless_a(),
            |op| op.loops = endless_b(),
            |op| op.loops = large()[0].clone(),
            |op| op.loops = large()[1].clone(),
            |op| op.loops = large()[2].clone(),
        ],
    );
    let int = BinaryInt {
        output: AT,
        a: AT,
        b: AT,
        loops: plain(),
        dtype: DType::I8,
        op: IntOp::Add,
        zero: [0; 3],
        shift: 31,
        multipliers: [Multiplier::ONE; 3],
        clamp: [5, 5],
    };
    broken(
        &int,
        Fault::Shape,
        &[
            |op| op.loops = endless_a(),
            |op| op.loops = endless_b(),
            |op| op.loops = large()[0].clone(),
            |op| op.loops = large()[1].clone(),
            |op| op.loops = large()[2].clone(),
        ],
    );
    broken(
        &int,
        Fault::Unsupported,
        &[
            |op| op.op = IntOp::Div,
            |op| (op.op, op.dtype) = (IntOp::Prelu, DType::I32),
        ],
    );
    accepted(
        &int,
        &[
            |op| (op.op, op.dtype) = (IntOp::Div, DType::I32),
            |op| op.op = IntOp::Prelu,
        ],
    );
    broken(
        &int,
        Fault::Quantisation,
        &[
            |op| op.shift = 32,
            |op| op.clamp = [6, 5],
            |op| op.multipliers[2] = FAR,
            |op| op.dtype = DType::U8,
        ],
    );
    let special = SpecialInt {
        output: AT,
        a: AT,
        b: AT,
        loops: plain(),
        dtype: DType::I8,
        op: SpecialIntOp::Div,
        zero: [0; 3],
        shift: 31,
        multipliers: [Multiplier::ONE; 3],
        clamp: [5, 5],
    };
    broken(
        &special,
        Fault::Shape,
        &[
            |op| op.loops = endless_a(),
            |op| op.loops = endless_b(),
            |op| op.loops = large()[0].clone(),
            |op| op.loops = large()[1].clone(),
            |op| op.loops = large()[2].clone(),
        ],
    );
    broken(&special, Fault::Unsupported, &[|op| op.dtype = DType::I16]);
    broken(
        &special,
        Fault::Quantisation,
        &[
            |op| op.shift = 32,
            |op| op.clamp = [6, 5],
            |op| op.multipliers[1] = FAR,
            |op| (op.op, op.dtype) = (SpecialIntOp::FloorDiv, DType::Bool),
        ],
    );
}

#[test]
fn comparisons_and_choices() {
    let compare = Compare {
        output: AT,
        a: AT,
        b: AT,
        loops: plain(),
        dtype: DType::I8,
        op: Comparison::Less,
        zero: [0; 2],
        shift: 31,
        multipliers: [Multiplier::ONE; 2],
    };
    broken(
        &compare,
        Fault::Shape,
        &[
            |op| op.loops = endless_a(),
            |op| op.loops = endless_b(),
            |op| op.loops = large()[0].clone(),
            |op| op.loops = large()[1].clone(),
            |op| op.loops = large()[2].clone(),
        ],
    );
    broken(
        &compare,
        Fault::Unsupported,
        &[
            |op| op.op = Comparison::And,
            |op| op.op = Comparison::Or,
            |op| op.dtype = DType::U8,
            |op| op.dtype = DType::I16,
            |op| op.dtype = DType::I64,
        ],
    );
    accepted(
        &compare,
        &[
            |op| (op.op, op.dtype) = (Comparison::Or, DType::Bool),
            |op| op.dtype = DType::F32,
            |op| op.dtype = DType::I32,
        ],
    );
    broken(
        &compare,
        Fault::Quantisation,
        &[|op| op.shift = 32, |op| op.multipliers[0] = FAR],
    );
    let choose = Choose {
        output: AT,
        condition: AT,
        a: AT,
        b: AT,
        element: 4,
        loops: plain(),
    };
    broken(
        &choose,
        Fault::Shape,
        &[
            |op| op.element = 0,
            |op| op.element = 3,
            |op| op.element = 9,
            |op| op.loops = endless_a(),
            |op| op.loops = endless_b(),
            |op| op.loops = large()[0].clone(),
            |op| op.loops = large()[1].clone(),
            |op| op.loops = large()[2].clone(),
        ],
    );
    accepted(
        &choose,
        &[|op| op.element = 1, |op| op.element = 2, |op| op.element = 8],
    );
}

#[test]
fn conversions() {
    let rescale = Rescale {
        output: AT,
        input: AT,
        count: 5,
        from: DType::I8,
        to: DType::I16,
        zero_in: 0,
        zero_out: 0,
        absolute: false,
        positive: Multiplier::ONE,
        negative: Multiplier::ONE,
        clamp: [3, 3],
    };
    broken(
        &rescale,
        Fault::Quantisation,
        &[
            |op| op.from = DType::F32,
            |op| op.to = DType::Bool,
            |op| op.positive = FAR,
            |op| op.negative = FAR,
            |op| op.clamp = [4, 3],
        ],
    );
    broken(&rescale, Fault::Shape, &[|op| op.count = 1 << 30]);
    let convert = Convert {
        output: AT,
        input: AT,
        count: 5,
        from: DType::F32,
        to: DType::I8,
        scale: 0.0,
        zero_point: 0,
    };
    broken(
        &convert,
        Fault::Quantisation,
        &[
            |op| op.to = DType::F32,
            |op| op.from = DType::I64,
            |op| op.to = DType::I64,
            |op| op.scale = f32::INFINITY,
            |op| op.scale = f32::NAN,
            |op| op.scale = -1e-9,
        ],
    );
    broken(&convert, Fault::Shape, &[|op| op.count = 1 << 30]);
    let softmax = SoftmaxInt {
        output: AT,
        input: AT,
        rows: 2,
        classes: 3,
        kind: SoftmaxKind::LogI8(LogSoftmaxI8 {
            multiplier: Multiplier::ONE,
            inverse: Multiplier::ONE,
            diff_min: -3,
        }),
    };
    let log = |multiplier, inverse| SoftmaxInt {
        kind: SoftmaxKind::LogI8(LogSoftmaxI8 {
            multiplier,
            inverse,
            diff_min: -3,
        }),
        ..softmax
    };
    assert_eq!(softmax.check(), Ok(()));
    assert_eq!(log(FAR, Multiplier::ONE).check(), Err(Fault::Quantisation));
    assert_eq!(log(Multiplier::ONE, FAR).check(), Err(Fault::Quantisation));
    broken(&softmax, Fault::Shape, &[|op| op.rows = 1 << 30]);
}

#[test]
fn products_and_windows() {
    let matmul = MatMulInt {
        output: AT,
        a: AT,
        b: AT,
        loops: plain(),
        dtype: DType::I8,
        shape: [2, 3, 4],
        transpose_a: false,
        transpose_b: false,
        zero: [-0x8000, 0x7fff, 0],
        multiplier: Multiplier {
            mantissa: 1 << 30,
            shift: 31,
        },
        clamp: [5, 5],
    };
    broken(
        &matmul,
        Fault::Shape,
        &[
            |op| op.loops = endless_a(),
            |op| op.loops = endless_b(),
            |op| op.loops = large()[0].clone(),
            |op| op.loops = large()[1].clone(),
            |op| op.loops = large()[2].clone(),
            |op| op.shape[1] = 1 << 30,
        ],
    );
    broken(
        &matmul,
        Fault::Quantisation,
        &[
            |op| op.multiplier = FAR,
            |op| op.dtype = DType::I16,
            |op| (op.dtype, op.multiplier.shift) = (DType::I16, 8),
            |op| op.clamp = [6, 5],
            |op| op.zero[0] -= 1,
            |op| op.zero[1] += 1,
            |op| op.zero[2] = 0x8000,
            |op| op.dtype = DType::I32,
        ],
    );
    accepted(&matmul, &[|op| (op.dtype, op.multiplier.shift) = (DType::I16, 7)]);
    let window = Window2d {
        batch: 1,
        input: [5, 4, 2],
        output: [4, 3, 2],
        kernel: [2, 2],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    };
    let conv = Conv2dS16 {
        output: AT,
        input: AT,
        weights: 0,
        bias: 0,
        channels: 0,
        window,
        groups: 1,
        clamp: [7, 7],
    };
    broken(&conv, Fault::Quantisation, &[|op| op.clamp = [8, 7]]);
    let pool = PoolInt {
        output: AT,
        input: AT,
        dtype: DType::I8,
        window,
        clamp: [127, 127],
    };
    broken(
        &pool,
        Fault::Quantisation,
        &[
            |op| op.clamp = [127, 126],
            |op| op.clamp = [0, 128],
            |op| op.clamp = [-129, 0],
            |op| op.dtype = DType::I32,
        ],
    );
    accepted(&pool, &[|op| (op.dtype, op.clamp) = (DType::I16, [-300, 128])]);
    broken(&pool, Fault::Shape, &[|op| op.window.output[2] = 1]);
    let local = LocallyConnectedF32 {
        output: AT,
        input: AT,
        weights: 0,
        bias: 0,
        batch: 1,
        input_shape: [1, 3, 4],
        channels: 2,
        kernel: [2, 3],
        gain: 1.0,
        clamp: [0.0, 1.0],
    };
    broken(
        &local,
        Fault::Shape,
        &[
            |op| op.input_shape[1] = u16::MAX,
            |op| op.input_shape[2] = u16::MAX,
            |op| op.kernel[0] = 0,
            |op| op.kernel[1] = 0,
        ],
    );
    accepted(
        &local,
        &[
            |op| op.input_shape[1] = u16::MAX - 1,
            |op| op.input_shape[2] = u16::MAX - 1,
        ],
    );
}
