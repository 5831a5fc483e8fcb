//! Generated steps over many shapes, with their constants: what counts of instructions are taken from.

mod convolution;
mod detections;
mod local;
mod recurrent;
mod sequence;
mod shapes;
mod signal;
mod single;
mod tables;
mod training;

use arenite::kernels::api::candidate::{Job, JobKind};
use arenite::ops::elementwise::Loop;
use arenite::ops::elementwise_int::{BinaryInt, IntOp};
use arenite::ops::packed_sum::PackedSumS8;
use arenite::ops::pool2d::PoolInt;
use arenite::quant::Multiplier;
use arenite::{DType, KernelId, Slot, Step};

pub use shapes::Random;
use shapes::{Form, affordable, loops};
pub use training::trains;

/// A step with its places: operands in region 0 from `arena` on, constants in the weights from `weights` on.
pub struct Generated {
    /// The step.
    pub step: Step,
    /// Its constants.
    pub constants: Vec<u8>,
    /// Bytes of its operands.
    pub bytes: u32,
}

/// A step of `kernel`; `None` where this seed has none.
pub fn step(kernel: KernelId, random: &mut Random, arena: u32, weights: u32) -> Option<Generated> {
    let depthwise = kernel.name().contains("Depthwise");
    let form = match kernel.name() {
        _ if depthwise => Form::Depthwise,
        "DspDenseS8" if random.chance(2) => Form::Tiles,
        "IntDenseS8" | "IntNarrowDenseS8" | "DspDenseS8" | "DenseS8" | "MveDenseS8" => Form::Dense,
        "IntWinogradConv2dS8" => Form::Neighbours,
        "CompactConv2dS8" if random.chance(2) => Form::Depthwise,
        "Conv2dS16" | "W16Conv2dF32" | "W8Conv2dF32" | "W4Conv2dF32" | "W4Conv2dS8" if random.chance(3) => {
            Form::Depthwise
        }
        _ if random.chance(4) => Form::Dense,
        _ => Form::Convolution,
    };
    let (step, constants) = match kernel.job() {
        Some(JobKind::Conv2dS8 | JobKind::Conv2dS8W4 | JobKind::Conv2dS8Groups) => {
            convolution::conv2d_s8(kernel, random, form, weights)?
        }
        Some(JobKind::Conv2dF32) => convolution::conv2d_f32(kernel, random, form, weights)?,
        Some(JobKind::LinearSumS8) => {
            let mut factor = |bits: u32| random.between(0, (1 << bits) - 1) as i32 - (1 << (bits - 1));
            let factors = [factor(30), factor(29)];
            let (offset, slot) = (factor(28), Slot::default());
            let count = random.axis("count", 8000);
            let op = PackedSumS8 {
                output: slot,
                a: slot,
                b: slot,
                factors,
                offset,
                count,
            };
            (Step::candidate(kernel, &Job::LinearSumS8(op))?, Vec::new())
        }
        Some(JobKind::BinaryInt) => {
            let op = random.one_of(&[IntOp::Add, IntOp::Add, IntOp::Mul, IntOp::Sub]);
            (
                Step::candidate(kernel, &Job::BinaryInt(binary(random, op, DType::I8)))?,
                Vec::new(),
            )
        }
        Some(JobKind::MaxPoolInt) => (Step::candidate(kernel, &Job::MaxPoolInt(pool(random)))?, Vec::new()),
        Some(JobKind::AvgPoolInt) => (Step::candidate(kernel, &Job::AvgPoolInt(pool(random)))?, Vec::new()),
        Some(JobKind::SvdfS8) => recurrent::packed_svdf(kernel, random, weights)?,
        Some(JobKind::LinearF32) => single::step(kernel, random, weights)?,
        None => match kernel {
            KernelId::Conv2dS16 => convolution::conv2d_s16(random, form, weights),
            KernelId::W16Conv2dF32 | KernelId::W8Conv2dF32 | KernelId::W4Conv2dF32 | KernelId::W4Conv2dS8 => {
                convolution::low_bit(kernel, random, form, weights)?
            }
            _ => match training::step(kernel, random, form, weights) {
                Some(made) => made,
                None => match sequence::step(kernel, random, weights) {
                    Some(made) => made,
                    None => single::step(kernel, random, weights)?,
                },
            },
        },
    };
    place(step, constants, arena)
}

fn pool(random: &mut Random) -> PoolInt {
    PoolInt {
        output: Slot::default(),
        input: Slot::default(),
        dtype: DType::I8,
        window: affordable(random, Form::Pool, 1),
        clamp: random.one_of(&[[-128, 127], [-128, 127], [0, 127]]),
    }
}

fn binary(random: &mut Random, op: IntOp, dtype: DType) -> BinaryInt {
    let half = Multiplier {
        mantissa: 1 << 30,
        shift: 0,
    };
    let mut mantissa = || (1 << 30) + random.between(0, (1 << 30) - 1) as i32;
    let (other, result) = (
        Multiplier {
            mantissa: mantissa(),
            shift: -1,
        },
        Multiplier {
            mantissa: mantissa(),
            shift: -18,
        },
    );
    BinaryInt {
        output: Slot::default(),
        a: Slot::default(),
        b: Slot::default(),
        loops: if op == IntOp::Add && random.chance(2) {
            let mut one = heapless::Vec::new();
            _ = one.push(Loop {
                count: random.axis("count", 8000),
                a: 1,
                b: 1,
            });
            one
        } else {
            loops(random)
        },
        dtype,
        op,
        zero: [0; 3].map(|_| i32::from(random.byte() as i8)),
        shift: 20,
        multipliers: [half, other, result],
        clamp: [-128, 127],
    }
}

/// Puts the operands one behind another.
fn place(step: Step, constants: Vec<u8>, arena: u32) -> Option<Generated> {
    let mut sizes = Vec::new();
    step.operands(&mut |operand| {
        if operand.place.region != Slot::WEIGHTS {
            sizes.push(operand.bytes);
        }
    });
    let mut next = 0;
    let mut sizes = sizes.into_iter();
    let mut each = |slot: Slot| {
        if slot.region == Slot::WEIGHTS {
            return Some(slot);
        }
        let offset = arena + next;
        next += sizes.next()?.next_multiple_of(16);
        Some(Slot { region: 0, offset })
    };
    let step = step.map(&mut |slot| each(slot).ok_or(())).ok()?;
    step.check().ok()?;
    Some(Generated {
        step,
        constants,
        bytes: next,
    })
}
