//! Operators along rows, windows and axes: softmax, normalisations, reductions, pooling.

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::global_pool::GlobalAvgPoolS8;
use crate::ops::l2_norm::L2NormS8;
use crate::ops::lrn::{LrnF32, LrnS8};
use crate::ops::pool2d::PoolF32;
use crate::ops::reduce::{ReduceF32, ReduceInt, Reduction};
use crate::ops::softmax::{EXPONENTIALS, SoftmaxF32, SoftmaxInt, SoftmaxKind, TABLE_LEN};
use crate::quant::{LRN_OCTAVES, LRN_POWERS, LogSoftmaxI8, LrnI8, SoftmaxI8, SoftmaxI16};
use crate::tensor::DType;
use crate::testkit::cases;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

/// Rows and their elements, `most` at most.
fn shape(draw: &mut Draw<'_>, most: u32) -> [u32; 2] {
    let mut left = most;
    [draw.share(5, &mut left), draw.share(most, &mut left)]
}

impl Generated for SoftmaxF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [rows, classes] = shape(draw, 100);
        let op = SoftmaxF32 {
            output: Slot::default(),
            input: Slot::default(),
            rows,
            classes,
            beta: draw.pick(&[1.0, 1.0, 0.5, 3.0])?,
            log: draw.coin(),
        };
        let most = draw.pick(&[1.0, 10.0, 100.0])?;
        Some((
            op,
            Data::floats(draw.seed(), Alike::NEAR_FLOATS).of(&[Numbers::Floats(most)]),
        ))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::softmax::f32
    }
}

impl Generated for SoftmaxInt {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [rows, classes] = shape(draw, 150);
        let (beta, scale) = (
            draw.pick(&[1.0, 1.0, 0.3, 4.0])?,
            draw.pick(&[0.05, 0.1, 0.004, 1.0, 16.0])?,
        );
        let kind = match draw.random.below(8) {
            0 => SoftmaxKind::I8ToI16(SoftmaxI8::new(beta, scale)?),
            1 | 2 => {
                // Shapes of exp(x) and of 1 / (1 + x), or any numbers.
                let any = draw.one_in(4);
                let mut at = 0;
                let exp = draw.constants(TABLE_LEN, |random| {
                    at += 1;
                    let shape = ((at - 1) * (at - 1) / 8).min(32767) as i16;
                    if any { random.next() as i16 } else { shape }.to_le_bytes()
                })?;
                let mut at = 512;
                let inverse = draw.constants(TABLE_LEN, |random| {
                    at += 1;
                    let shape = (32767 * 512 / (at - 1)) as i16;
                    if any { random.next() as i16 } else { shape }.to_le_bytes()
                })?;
                SoftmaxKind::I16(SoftmaxI16::new(beta, scale / 256.0)?, [exp, inverse])
            }
            3 => SoftmaxKind::LogI8(LogSoftmaxI8::new(scale)?),
            4 | 5 => {
                let exponentials = SoftmaxI8::new(beta, scale)?.exponentials();
                let mut all = exponentials.iter();
                let table = draw.constants(EXPONENTIALS, |_| all.next().map_or(0, |&exp| exp).to_le_bytes())?;
                SoftmaxKind::I8Table(table)
            }
            _ => SoftmaxKind::I8(SoftmaxI8::new(beta, scale)?),
        };
        let op = SoftmaxInt {
            output: Slot::default(),
            input: Slot::default(),
            rows,
            classes,
            kind,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::softmax::quantised
    }
}

impl Generated for LrnF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [pixels, channels] = shape(draw, 100);
        let op = LrnF32 {
            output: Slot::default(),
            input: Slot::default(),
            pixels,
            channels,
            radius: draw.pick(&[2, 0, 1, 5, 200])?,
            bias: draw.pick(&[1.0, 2.0, 0.5])?,
            alpha: draw.pick(&[1e-4, 0.1, 1.0])?,
            beta: draw.pick(&[0.75, 0.5, 1.0, 2.0])?,
        };
        Some((
            op,
            Data::floats(draw.seed(), Alike::NEAR_FLOATS).of(&[Numbers::Floats(4.0)]),
        ))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::lrn::f32
    }
}

impl Generated for LrnS8 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [pixels, channels] = shape(draw, 120);
        let radius: u16 = draw.pick(&[2, 0, 1, 5, 200])?;
        let near = (u32::from(radius) * 2 + 1).min(channels);
        let (bias, alpha) = (draw.pick(&[1.0, 2.0])?, draw.pick(&[1e-4, 0.1, 1.0])?);
        let beta = draw.pick(&[0.75, 0.5, 1.0])?;
        let scales = [draw.pick(&[0.02, 0.1])?, draw.pick(&[0.02, 0.005])?];
        let lrn = LrnI8::new([bias, alpha, beta], scales, near)?;
        let mut table = [0; LRN_POWERS + 2 * LRN_OCTAVES];
        let words = table.get_mut(..lrn.words() as usize)?;
        lrn.write([bias, beta], scales, words)?;
        let mut words = words.iter();
        let op = LrnS8 {
            output: Slot::default(),
            input: Slot::default(),
            table: draw.constants(lrn.words(), |_| words.next().map_or(0, |&word| word).to_le_bytes())?,
            pixels,
            channels,
            radius,
            lrn,
            input_zero_point: draw.zero() as i8,
            output_zero_point: draw.zero() as i8,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::lrn::s8
    }
}

impl Generated for L2NormS8 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [rows, channels] = shape(draw, 150);
        let op = L2NormS8 {
            output: Slot::default(),
            input: Slot::default(),
            rows,
            channels,
            zero: draw.zero(),
        };
        Some((
            op,
            Data::integers(draw.seed()).of(&[draw.pick(&[Numbers::Bytes, Numbers::Bytes, Numbers::Truths])?]),
        ))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::l2_norm::s8
    }
}

impl Generated for GlobalAvgPoolS8 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut left = 150;
        let extents = [9, 9, 60].map(|most| draw.share(most, &mut left) as u16);
        let op = GlobalAvgPoolS8 {
            output: Slot::default(),
            input: Slot::default(),
            scratch: Slot::default(),
            extents,
            clamp: draw.pick(&[[-128, 127], [-128, 127], [0, 127], [-100, 90]])?,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::global_pool::s8
    }
}

/// The extents of a reduction.
fn reduced(draw: &mut Draw<'_>, most: u32) -> [u32; 5] {
    let mut left = most;
    let mut shape = [1; 5];
    // Whichever comes first has the most room.
    let first = draw.random.below(5) as usize;
    for offset in 0..5 {
        let axis = (first + offset) % 5;
        let extent = draw.share(if offset == 0 { 60 } else { 9 }, &mut left);
        shape.iter_mut().skip(axis).take(1).for_each(|own| *own = extent);
    }
    shape
}

const REDUCTIONS: [Reduction; 4] = [Reduction::Mean, Reduction::Sum, Reduction::Max, Reduction::Min];

impl Generated for ReduceF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = ReduceF32 {
            output: Slot::default(),
            input: Slot::default(),
            shape: reduced(draw, 150),
            kind: draw.pick(&REDUCTIONS)?,
        };
        let numbers = draw.pick(&[Numbers::Floats(1.0), Numbers::Special(8.0)])?;
        Some((op, Data::floats(draw.seed(), Alike::EXACT_FLOATS).of(&[numbers])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::reduce::f32
    }
}

impl Generated for ReduceInt {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::I8, DType::I16])?;
        let op = ReduceInt {
            output: Slot::default(),
            input: Slot::default(),
            dtype,
            shape: reduced(draw, 300),
            kind: draw.pick(&REDUCTIONS)?,
            zero_in: draw.any_zero(dtype),
            multiplier: draw.multiplier([-6, 2]),
            zero_out: draw.any_zero(dtype),
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::reduce::quantised
    }
}

impl Generated for PoolF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = PoolF32 {
            output: Slot::default(),
            input: Slot::default(),
            window: cases::window(draw.random, cases::Form::Pool, true),
            count_include_pad: draw.coin(),
            clamp: draw.float_limits(),
        };
        Some((
            op,
            Data::floats(draw.seed(), Alike::EXACT_FLOATS).of(&[Numbers::Special(8.0)]),
        ))
    }

    fn reference(kernel: KernelId) -> Reference<Self> {
        match kernel {
            KernelId::AvgPoolF32 => reference::pool2d::average_f32,
            _ => reference::pool2d::max_f32,
        }
    }
}
