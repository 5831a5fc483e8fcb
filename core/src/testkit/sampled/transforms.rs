//! The Fourier transform, and what a detector has found.

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::detections::{Detections, Suppression};
use crate::ops::fft::{FftPlan, SignalFft, leading_factors};
use crate::tensor::DType;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

impl Generated for SignalFft {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = match draw.kernel {
            KernelId::SignalFftS16 => DType::I16,
            KernelId::SignalFftS32 => DType::I32,
            _ => DType::F32,
        };
        // Every radix, alone and with others.
        let length = draw.pick(&[4, 6, 8, 10, 12, 16, 18, 20, 24, 30, 32, 36, 40, 48, 50, 60])?;
        let inverse = draw.coin();
        let op = SignalFft {
            output: Slot::default(),
            input: Slot::default(),
            dtype,
            rows: draw.pick(&[1, 1, 2])?,
            samples: if inverse || draw.coin() {
                length
            } else {
                draw.extent(length)
            },
            length,
            inverse,
            twiddles: twiddles(draw, dtype, length, inverse)?,
        };
        let data = match dtype {
            DType::F32 => Data::floats(draw.seed(), Alike::NEAR_FLOATS),
            DType::I16 => Data::integers(draw.seed()).of(&[draw.pick(&[Numbers::Bytes, Numbers::Halves(9)])?]),
            _ => Data::integers(draw.seed()).of(&[draw.pick(&[Numbers::Bytes, Numbers::Scaled])?]),
        };
        Some((op, data))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::fft::any
    }
}

/// The factors of a transform, in the order of [`FftPlan`].
fn twiddles(draw: &mut Draw<'_>, dtype: DType, length: u32, inverse: bool) -> Option<u32> {
    let plan = FftPlan::new(length)?;
    let mut phases = heapless::Vec::<f64, 256>::new();
    let direction = if inverse { 1.0 } else { -1.0 };
    let n = f64::from(plan.n());
    let root = |i: u32| direction * 2.0 * core::f64::consts::PI * f64::from(i) / n;
    let mut m = 1;
    for &radix in plan.radices().iter().rev() {
        let stride = plan.n().checked_div(m * u32::from(radix))?;
        for leading in 1..=leading_factors(radix) {
            phases.push(root(leading * m * stride)).ok()?;
        }
        for u in 0..m {
            for k in 1..u32::from(radix) {
                phases.push(root(u * k * stride)).ok()?;
            }
        }
        m *= u32::from(radix);
    }
    for k in 1..=plan.n() / 2 {
        phases
            .push(direction * core::f64::consts::PI * (f64::from(k) / n + 0.5))
            .ok()?;
    }
    let parts = phases.iter().flat_map(|&phase| [libm::cos(phase), libm::sin(phase)]);
    let (mut parts, count) = (parts, 2 * plan.factors());
    let fixed = |part: f64, largest: i32| libm::floor(0.5 + f64::from(largest) * part);
    match dtype {
        DType::I16 => draw.constants(count, |_| {
            (fixed(parts.next().unwrap_or(0.0), i16::MAX.into()) as i16).to_le_bytes()
        }),
        DType::I32 => draw.constants(count, |_| {
            (fixed(parts.next().unwrap_or(0.0), i32::MAX) as i32).to_le_bytes()
        }),
        _ => draw.constants(count, |_| (parts.next().unwrap_or(0.0) as f32).to_le_bytes()),
    }
}

impl Generated for Detections {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (candidates, labels) = (draw.extent(reference::detections::MOST as u32 / 2), draw.extent(4));
        let most = draw.extent(9);
        let op = Detections {
            output: Slot::default(),
            classes: Slot::default(),
            scores: Slot::default(),
            count: Slot::default(),
            encodings: Slot::default(),
            predictions: Slot::default(),
            anchors: Slot::default(),
            scratch: Slot::default(),
            candidates,
            width: draw.pick(&[4, 4, 5, 7])?,
            labels,
            background: draw.coin(),
            most,
            suppression: if draw.coin() {
                Suppression::Fast {
                    classes: 1 + draw.random.below(labels),
                }
            } else {
                Suppression::Regular { boxes: draw.extent(9) }
            },
            threshold: draw.pick(&[0.3, 0.0, 0.7])?,
            overlap: draw.pick(&[0.5, 0.1, 0.9, 1.0])?,
            scale: draw.pick(&[[10.0, 10.0, 5.0, 5.0], [1.0, 2.0, 3.0, 4.0]])?,
        };
        // Scores that are equal are taken in order.
        let scores = draw.pick(&[Numbers::Steps, Numbers::Positive(1.0)])?;
        let data = Data::floats(draw.seed(), Alike::EXACT_FLOATS);
        Some((op, data.of(&[Numbers::Floats(1.0), scores, Numbers::Positive(1.0)])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::detections::f32
    }
}
