//! Operators with a state: SVDF and LSTM.

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::lstm::{Gate, LstmF32, LstmInt, LstmShape};
use crate::ops::svdf::{SvdfF32, SvdfS8, SvdfShape};
use crate::quant::{Multiplier, SigmoidI16};
use crate::tensor::DType;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

fn svdf(draw: &mut Draw<'_>, most: u32) -> SvdfShape {
    let rank = draw.random.one_of([1, 1, 2, 3]);
    SvdfShape {
        batch: draw.random.one_of([1, 1, 2, 3]),
        features: draw.extent(2 * most),
        units: draw.extent(7),
        rank,
        memory: draw.extent(most),
    }
}

impl Generated for SvdfS8 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let state_type = draw.pick(&[DType::I8, DType::I16])?;
        let shape = svdf(draw, 16);
        let [filters, times] = [shape.filters() * shape.features, shape.filters() * shape.memory];
        let zero_state = if draw.one_in(4) { draw.zero() } else { 0 };
        let wide = state_type == DType::I16;
        let op = SvdfS8 {
            output: Slot::default(),
            input: Slot::default(),
            state: Slot::default(),
            shape,
            state_type,
            weights: draw.weights(filters)?,
            time_weights: draw.weights(times * state_type.bytes() as u32)?,
            bias: draw.biases(shape.units)?,
            zero: [draw.zero(), zero_state, draw.zero()],
            multipliers: [
                draw.multiplier(if wide { [-2, 2] } else { [-9, -6] }),
                draw.multiplier(if wide { [-21, -16] } else { [-9, -5] }),
            ],
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::svdf::s8
    }
}

impl Generated for SvdfF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let shape = svdf(draw, 9);
        let op = SvdfF32 {
            output: Slot::default(),
            input: Slot::default(),
            state: Slot::default(),
            shape,
            weights: draw.floats(shape.filters() * shape.features)?,
            time_weights: draw.floats(shape.filters() * shape.memory)?,
            bias: draw.floats(shape.units)?,
            clamp: draw.float_limits(),
        };
        Some((op, Data::floats(draw.seed(), Alike::NEAR_FLOATS)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::svdf::f32
    }
}

/// Extents without gates. Cells are taken 32 at a time.
fn lstm(draw: &mut Draw<'_>, most: u32) -> Option<LstmShape> {
    Some(LstmShape {
        output: Slot::default(),
        input: Slot::default(),
        hidden: Slot::default(),
        cell: Slot::default(),
        batch: draw.pick(&[1, 1, 2])?,
        time: draw.extent(3),
        features: draw.extent(most),
        cells: draw.extent(most),
        time_major: draw.coin(),
        gates: [Gate::default(); 4],
    })
}

impl Generated for LstmInt {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::I8, DType::I16])?;
        let wide = dtype == DType::I16;
        let mut shape = lstm(draw, 14)?;
        if draw.one_in(16) {
            // More than a block, whose gates share their weights.
            (shape.cells, shape.features) = (33 + draw.random.below(4), draw.extent(3));
        }
        let (cells, features) = (shape.cells, shape.features);
        let large = draw.one_in(8);
        let mut shared = None;
        for gate in &mut shape.gates {
            *gate = match shared {
                Some(gate) => gate,
                None => Gate {
                    weights: draw.weights(cells * features)?,
                    recurrent: draw.weights(cells * cells)?,
                    bias: if wide {
                        draw.constants(cells, |random| {
                            let bias = i64::from(random.next() as i32);
                            (if large { bias << 9 } else { bias >> 8 }).to_le_bytes()
                        })?
                    } else {
                        draw.biases(cells)?
                    },
                },
            };
            if cells > 14 {
                shared = Some(*gate);
            }
        }
        let narrow = |draw: &mut Draw<'_>, shift: i8| Multiplier {
            mantissa: (1 << 30) + draw.random.below(1 << 30) as i32,
            shift: shift - draw.random.below(3) as i8,
        };
        let gates = if wide { [-9, -4] } else { [-1, 3] };
        let [zero_in, zero_hidden] = [draw.zero(), draw.zero()];
        let any = draw.random.below(28) as i8;
        let second = if draw.one_in(8) { -1 - any } else { -16 };
        let op = LstmInt {
            shape,
            dtype,
            zero: if wide { [0; 2] } else { [zero_in, zero_hidden] },
            gates: [0; 4].map(|_| [draw.multiplier(gates), draw.multiplier(gates)]),
            products: [
                narrow(draw, -14),
                narrow(draw, second),
                narrow(draw, if wide { -14 } else { -22 }),
            ],
            tanh: match draw.random.below(3) {
                0 => SigmoidI16::below_table(draw.random.below(12) as u8),
                _ => SigmoidI16::power_of_two(draw.random.below(4) as u8),
            },
            clip: draw.pick(&[0, 0, 20_000, 300])?,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::lstm::quantised
    }
}

impl Generated for LstmF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut shape = lstm(draw, 7)?;
        let (cells, features) = (shape.cells, shape.features);
        for gate in &mut shape.gates {
            *gate = Gate {
                weights: draw.floats(cells * features)?,
                recurrent: draw.floats(cells * cells)?,
                bias: draw.floats(cells)?,
            };
        }
        let op = LstmF32 {
            shape,
            clip: draw.pick(&[0.0, 0.0, 0.5, 3.0])?,
        };
        Some((
            op,
            Data::floats(draw.seed(), Alike::NEAR_FLOATS).of(&[Numbers::Floats(2.0)]),
        ))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::lstm::f32
    }
}
