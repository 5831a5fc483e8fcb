//! Generated steps of kernels that are the only ones of their operator.

use arenite::kernels::api::candidate::Job;
use arenite::ops::arg_max::ArgMax;
use arenite::ops::binary::{BinaryOp, SpecialBinaryOp};
use arenite::ops::choose::Choose;
use arenite::ops::compare::{Compare, Comparison};
use arenite::ops::convert::{Convert, Rescale, SigmoidS16};
use arenite::ops::elementwise::{BinaryF32, UnaryF32};
use arenite::ops::gather::Gather;
use arenite::ops::l2_norm::L2NormS8;
use arenite::ops::linear::LinearF32;
use arenite::ops::locally_connected::LocallyConnectedF32;
use arenite::ops::lrn::LrnF32;
use arenite::ops::matmul::MatMulInt;
use arenite::ops::movement::{CopyLoop, CopyStrided};
use arenite::ops::pointwise::{Pointwise, SpecialOp, UnaryOp};
use arenite::ops::pool2d::PoolF32;
use arenite::ops::reduce::{ReduceF32, ReduceInt, Reduction};
use arenite::ops::resize::{Interpolation, Resize};
use arenite::ops::softmax::{SoftmaxF32, SoftmaxInt, SoftmaxKind};
use arenite::ops::special_int::{SpecialInt, SpecialIntOp};
use arenite::quant::{LogSoftmaxI8, SigmoidI16, SoftmaxI8, SoftmaxI16};
use arenite::{DType, KernelId, Slot, Step};

use super::shapes::{Form, Random, affordable, loops, multiplier};
use super::{detections, local, recurrent, signal, tables};

/// The step and its constants, which are to lie from `base` on.
pub(super) fn step(kernel: KernelId, random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let step = match kernel {
        KernelId::SvdfS8 | KernelId::SvdfF32 | KernelId::LstmInt | KernelId::LstmF32 => {
            return Some(recurrent::step(kernel, random, base));
        }
        KernelId::LocallyConnectedS8 => return local::connected(random, base),
        KernelId::LrnS8 => return local::normalising(random, base),
        KernelId::Table | KernelId::TableS16 => return tables::step(kernel, random, base),
        KernelId::Resize | KernelId::SoftmaxInt | KernelId::LocallyConnectedF32 => {
            return with_constants(kernel, random, base);
        }
        KernelId::Detections => return Some(detections::step(random, base)),
        KernelId::BinaryF32
        | KernelId::SpecialBinaryF32
        | KernelId::Compare
        | KernelId::Choose
        | KernelId::SpecialInt => of_two(kernel, random),
        _ => match signal::signal(kernel, random, base) {
            Some(signal) => return Some(signal),
            None => of_one(kernel, random)?,
        },
    };
    Some((step, Vec::new()))
}

/// Of one tensor.
fn of_one(kernel: KernelId, random: &mut Random) -> Option<Step> {
    let (output, input) = (Slot::default(), Slot::default());
    let wide = [f32::NEG_INFINITY, f32::INFINITY];
    let clamp = random.one_of(&[wide, [0.0, f32::INFINITY], [0.0, 6.0]]);
    let pool = |random: &mut Random| PoolF32 {
        output,
        input,
        window: affordable(random, Form::Pool, 4),
        count_include_pad: random.chance(3),
        clamp,
    };
    let (rows, classes) = (random.axis("rows", 20), random.axis("classes", 100));
    let count = random.axis("count", 2000);
    Some(match kernel {
        KernelId::LinearF32 | KernelId::MveLinearF32 => {
            let (inputs, outputs) = (random.axis("inputs", 600), random.axis("outputs", 200));
            let rows = if random.chance(4) { random.wide(6) } else { 1 };
            let rows = random.extent("rows of inputs", rows);
            (inputs * outputs <= local::most(random, 16 << 10)).then_some(())?;
            let slot = Slot::default();
            let op = LinearF32 {
                output,
                input,
                weights: slot,
                bias: slot,
                rows,
                inputs,
                outputs,
                clamp,
            };
            Step::candidate(kernel, &Job::LinearF32(op))?
        }
        KernelId::MaxPoolF32 => Step::MaxPoolF32(pool(random)),
        KernelId::AvgPoolF32 => Step::AvgPoolF32(pool(random)),
        KernelId::SoftmaxF32 => {
            let log = random.chance(3);
            Step::SoftmaxF32(SoftmaxF32 {
                output,
                input,
                rows,
                classes,
                beta: 1.0,
                log,
            })
        }
        KernelId::SoftmaxS8 => {
            let kind = SoftmaxKind::I8(SoftmaxI8::new(1.0, 0.02 + random.float().abs() / 8.0)?);
            Step::SoftmaxS8(SoftmaxInt {
                output,
                input,
                rows,
                classes,
                kind,
            })
        }
        KernelId::UnaryF32 => Step::UnaryF32(UnaryF32 {
            output,
            input,
            count,
            op: random.one_of(UnaryOp::ROWS).0,
        }),
        KernelId::SpecialF32 => Step::SpecialF32(UnaryF32 {
            output,
            input,
            count,
            op: random.one_of(SpecialOp::ROWS).0,
        }),
        KernelId::ReduceF32 => Step::ReduceF32(ReduceF32 {
            output,
            input,
            shape: shape(random),
            kind: random.one_of(&KINDS),
        }),
        KernelId::ReduceInt => Step::ReduceInt(ReduceInt {
            output,
            input,
            dtype: random.one_of(&[DType::I8, DType::I8, DType::I16]),
            shape: shape(random),
            kind: random.one_of(&KINDS),
            zero_in: random.byte().into(),
            multiplier: multiplier(random, -8),
            zero_out: -3,
        }),
        KernelId::LrnF32 => {
            let channels = random.axis("channels", 64);
            Step::LrnF32(LrnF32 {
                output,
                input,
                pixels: random.axis("pixels", 60),
                channels,
                radius: {
                    let radius = random.between(0, 4);
                    random.extent("radius", radius) as u16
                },
                bias: 1.0,
                alpha: 0.0001,
                beta: random.one_of(&[0.75, 0.75, 0.5]),
            })
        }
        KernelId::CopyBytes => Step::CopyBytes(copy(random)),
        KernelId::Rescale => {
            let integers = [DType::I8, DType::I8, DType::U8, DType::I16, DType::I32];
            Step::Rescale(Rescale {
                output,
                input,
                count,
                from: random.one_of(&integers),
                to: random.one_of(&integers),
                zero_in: 4,
                zero_out: -5,
                absolute: random.chance(6),
                positive: multiplier(random, 0),
                negative: multiplier(random, -3),
                clamp: [-128, 127],
            })
        }
        KernelId::SigmoidS16 => Step::SigmoidS16(SigmoidS16 {
            output,
            input,
            count,
            sigmoid: random.one_of(&[SigmoidI16::power_of_two(0), SigmoidI16::logistic_of_scale(0.000_4)?]),
            tanh: random.chance(2),
        }),
        KernelId::Convert => {
            let types = [DType::I8, DType::F32, DType::U8, DType::F32, DType::I16, DType::I32];
            let (from, to) = (random.one_of(&types), random.one_of(&types));
            Step::Convert(Convert {
                output,
                input,
                count,
                from,
                to,
                scale: if random.chance(3) { 0.0 } else { 0.03 },
                zero_point: 7,
            })
        }
        KernelId::ArgMax => Step::ArgMax(ArgMax {
            output,
            input,
            dtype: random.one_of(&[DType::I8, DType::F32]),
            shape: [
                random.axis("outer", 30),
                random.axis("axis", 100),
                if random.chance(2) { 1 } else { random.axis("inner", 12) },
            ],
        }),
        KernelId::GlobalAvgPoolS8 => local::averaged(random),
        KernelId::L2NormS8 => Step::L2NormS8(L2NormS8 {
            output,
            input,
            rows: random.axis("rows", 60),
            channels: random.axis("channels", 300),
            zero: i32::from(random.byte() as i8),
        }),
        KernelId::MatMulInt => {
            let shape = [("matrix rows", 20), ("terms", 60), ("columns", 20)].map(|(name, to)| random.axis(name, to));
            let mut loops = heapless::Vec::new();
            let [rows, terms, columns] = shape;
            _ = rows.checked_mul(terms)?.checked_mul(columns)?;
            if random.chance(2) {
                let count = random.axis("matrices", 4);
                _ = loops.push(arenite::ops::elementwise::Loop {
                    count,
                    a: 1,
                    b: if random.chance(2) { 1 } else { 0 },
                });
            }
            Step::MatMulInt(MatMulInt {
                output,
                a: input,
                b: input,
                loops,
                dtype: random.one_of(&[DType::I8, DType::I8, DType::I16]),
                shape,
                transpose_a: random.chance(4),
                transpose_b: random.chance(2),
                zero: [3, -4, 5],
                multiplier: multiplier(random, -7),
                clamp: [-128, 127],
            })
        }
        KernelId::Gather => Step::Gather(Gather {
            output,
            input,
            indices: input,
            element: random.one_of(&[1, 2, 4, 8]),
            shape: [("outer", 6), ("entries", 40), ("inner", 60)].map(|(name, to)| random.axis(name, to)),
            count: random.axis("indices", 20),
        }),
        _ => return None,
    })
}

const KINDS: [Reduction; 4] = [Reduction::Mean, Reduction::Sum, Reduction::Max, Reduction::Min];

/// Outer, reduced, kept, reduced and inner extents.
fn shape(random: &mut Random) -> [u32; 5] {
    let names = ["outer", "reduced before", "kept", "reduced", "inner"];
    let mut shape = names.map(|name| {
        let drawn = if random.chance(3) { 1 } else { random.wide(14) };
        random.extent(name, drawn)
    });
    if random.chance(2) {
        shape[2] = 1;
    }
    shape
}

/// Rows side by side, apart, backwards or over and over.
fn copy(random: &mut Random) -> CopyStrided {
    let element = random.one_of(&[1u8, 1, 4, 2, 8]);
    let (rows, columns) = (random.axis("outer", 12), random.axis("middle", 12));
    let inner = random.axis("inner", 160);
    let how = random.between(0, 5);
    let mut axes = Vec::new();
    let step: i32 = match how {
        0 => 0,
        1 => 2,
        2 => -1,
        _ => 1,
    };
    let reach = inner * step.unsigned_abs().max(1);
    if random.chance(3) {
        axes.push(CopyLoop {
            count: rows,
            to: columns * inner,
            from: (columns * reach) as i32,
        });
    }
    if random.chance(2) {
        axes.push(CopyLoop {
            count: columns,
            to: inner,
            from: reach as i32,
        });
    }
    axes.push(CopyLoop {
        count: inner,
        to: 1,
        from: step,
    });
    let from = if step < 0 { reach - 1 } else { 0 };
    let input_len = axes.iter().map(|axis| axis.count).product::<u32>() * step.unsigned_abs().max(1) + reach;
    CopyStrided {
        output: Slot::default(),
        input: Slot::default(),
        element,
        input_len,
        from,
        loops: axes.into_iter().collect(),
    }
}

/// Of two tensors, element by element.
fn of_two(kernel: KernelId, random: &mut Random) -> Step {
    let slot = Slot::default();
    let (output, a, b) = (slot, slot, slot);
    let wide = [f32::NEG_INFINITY, f32::INFINITY];
    let clamp = random.one_of(&[wide, wide, [0.0, 6.0]]);
    let loops = loops(random);
    let multipliers = [multiplier(random, 0), multiplier(random, -1), multiplier(random, -18)];
    match kernel {
        KernelId::SpecialBinaryF32 => {
            let op = random.one_of(SpecialBinaryOp::ROWS).0;
            Step::SpecialBinaryF32(BinaryF32 {
                output,
                a,
                b,
                loops,
                op,
                clamp,
            })
        }
        KernelId::Compare => {
            let dtype = random.one_of(&[DType::I8, DType::F32, DType::I32, DType::Bool]);
            let numbers = [
                Comparison::Equal,
                Comparison::NotEqual,
                Comparison::Less,
                Comparison::LessOrEqual,
            ];
            let op = match dtype {
                DType::Bool if random.chance(2) => random.one_of(&[Comparison::And, Comparison::Or]),
                _ => random.one_of(&numbers),
            };
            let [first, second, _] = multipliers;
            Step::Compare(Compare {
                output,
                a,
                b,
                loops,
                dtype,
                op,
                zero: [2, -2],
                shift: 8,
                multipliers: [first, second],
            })
        }
        KernelId::Choose => {
            let element = random.one_of(&[1, 2, 4, 8]);
            Step::Choose(Choose {
                output,
                condition: slot,
                a,
                b,
                element,
                loops,
            })
        }
        KernelId::SpecialInt => {
            let op = random.one_of(&[
                SpecialIntOp::SquaredDifference,
                SpecialIntOp::Div,
                SpecialIntOp::FloorDiv,
                SpecialIntOp::FloorMod,
            ]);
            let dtype = match op {
                SpecialIntOp::Div => DType::I8,
                _ => random.one_of(&[DType::I8, DType::I16, DType::I32]),
            };
            let (zero, clamp) = ([1, -2, 3], [-128, 127]);
            Step::SpecialInt(SpecialInt {
                output,
                a,
                b,
                loops,
                dtype,
                op,
                zero,
                shift: 7,
                multipliers,
                clamp,
            })
        }
        _ => {
            let op = random.one_of(BinaryOp::ROWS).0;
            Step::BinaryF32(BinaryF32 {
                output,
                a,
                b,
                loops,
                op,
                clamp,
            })
        }
    }
}

fn with_constants(kernel: KernelId, random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let (output, input) = (Slot::default(), Slot::default());
    Some(match kernel {
        KernelId::Resize => {
            let op = Resize {
                output,
                input,
                dtype: random.one_of(&[DType::I8, DType::F32]),
                interpolation: random.one_of(&[Interpolation::Nearest, Interpolation::Bilinear]),
                batch: local::batch(random).into(),
                from: [random.axis("height", 12), random.axis("width", 12)],
                to: [random.axis("output height", 16), random.axis("output width", 16)],
                channels: random.axis("channels", 24),
                table: base,
            };
            let fraction = if op.dtype == DType::F32 {
                0.25_f32.to_bits()
            } else {
                256
            };
            let mut table = Vec::new();
            for (to, from) in [(op.to[0], op.from[0]), (op.to[1], op.from[1])] {
                for _ in 0..to {
                    let near = random.contents().between(0, from - 1);
                    let entry = [near, (near + 1).min(from - 1), fraction];
                    table.extend(entry.iter().flat_map(|word| word.to_le_bytes()));
                }
            }
            (Step::Resize(op), table)
        }
        KernelId::SoftmaxInt => {
            let scale = 0.02 + random.float().abs() / 8.0;
            let (kind, constants) = match random.between(0, 3) {
                0 => (SoftmaxKind::I8ToI16(SoftmaxI8::new(1.0, scale)?), Vec::new()),
                1 => (SoftmaxKind::LogI8(LogSoftmaxI8::new(scale)?), Vec::new()),
                2 => {
                    let table = (0..256).flat_map(|i: i32| (0x7fff_ffff_i32 >> (i / 16).min(31)).to_le_bytes());
                    (SoftmaxKind::I8Table(base), table.collect())
                }
                _ => {
                    let table = |i: i16| (0x7fff - 50 * i).to_le_bytes();
                    let both: Vec<u8> = (0..2).flat_map(|_| (0..513).flat_map(table)).collect();
                    (
                        SoftmaxKind::I16(SoftmaxI16::new(1.0, scale / 256.0)?, [base, base + 1026]),
                        both,
                    )
                }
            };
            let (rows, classes) = (random.axis("rows", 20), random.axis("classes", 100));
            (
                Step::SoftmaxInt(SoftmaxInt {
                    output,
                    input,
                    rows,
                    classes,
                    kind,
                }),
                constants,
            )
        }
        _ => {
            let (kernel, [height, width]) = local::connected_extents(random, 8);
            let mut op = LocallyConnectedF32 {
                output,
                input,
                weights: base,
                bias: base,
                batch: local::batch(random),
                input_shape: [local::channels(random, "inputs"), height, width],
                channels: local::channels(random, "outputs"),
                kernel,
                gain: 1.0,
                clamp: [0.0, f32::INFINITY],
            };
            let biases: u32 = op.output_shape().map(u32::from).iter().product();
            let [rows, columns] = op.kernel.map(u32::from);
            let weights = biases * u32::from(op.input_shape[0]) * rows * columns;
            let values = weights + biases;
            (values <= local::most(random, 12 << 10)).then_some(())?;
            op.bias = base + 4 * weights;
            let constants = (0..values).flat_map(|_| random.float().to_le_bytes()).collect();
            (Step::LocallyConnectedF32(op), constants)
        }
    })
}
