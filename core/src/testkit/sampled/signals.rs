//! Signal operators of one frame, and those that remember samples.

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::frames::{SignalDelay, SignalFramer, SignalOverlapAdd, SignalStacker};
use crate::ops::signal::{
    GAIN_TABLE, LOG_TABLE, SignalAutoScale, SignalEnergy, SignalFilterBank, SignalLog, SignalPcan, SignalSquareRoot,
    SignalSubtraction, SignalWindow, Subtraction,
};
use crate::tensor::DType;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

impl Generated for SignalWindow {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let size = draw.extent(60);
        let op = SignalWindow {
            output: Slot::default(),
            input: Slot::default(),
            window: Slot::default(),
            count: size * draw.extent(3),
            size,
            shift: draw.pick(&[12, 12, 15, 0, 31])?,
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::window
    }
}

impl Generated for SignalAutoScale {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = SignalAutoScale {
            output: Slot::default(),
            input: Slot::default(),
            bits: Slot::default(),
            count: draw.extent(120),
        };
        let bits = draw.random.below(17);
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Halves(bits)])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::auto_scale
    }
}

impl Generated for SignalEnergy {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let bins = draw.extent(80);
        let start = draw.random.below(bins + 1);
        let op = SignalEnergy {
            output: Slot::default(),
            input: Slot::default(),
            bins,
            start,
            end: start + draw.random.below(bins - start + 1),
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::energy
    }
}

impl Generated for SignalFilterBank {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (bins, channels) = (draw.extent(60), draw.extent(12));
        let mut taps = 0;
        let bands = draw.constants(channels + 1, |random| {
            let first = random.below(bins + 1);
            let count = random.below(bins - first + 1).min(random.below(20));
            taps += count;
            let [low, high] = (first as u16).to_le_bytes();
            let [count_low, count_high] = (count as u16).to_le_bytes();
            [low, high, count_low, count_high]
        })?;
        let op = SignalFilterBank {
            output: Slot::default(),
            input: Slot::default(),
            bins,
            channels,
            taps,
            bands,
            weights: draw.constants(2 * taps, |random| (random.next() as i16).to_le_bytes())?,
        };
        Some((
            op,
            Data::integers(draw.seed()).of(&[draw.pick(&[Numbers::Scaled, Numbers::Bytes])?]),
        ))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::filter_bank
    }
}

impl Generated for SignalSquareRoot {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = SignalSquareRoot {
            output: Slot::default(),
            input: Slot::default(),
            bits: Slot::default(),
            count: draw.extent(60),
        };
        let numbers = [
            Numbers::LongScaled,
            draw.pick(&[Numbers::Words([0, 12]), Numbers::Bytes])?,
        ];
        Some((op, Data::integers(draw.seed()).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::square_root
    }
}

impl Generated for SignalSubtraction {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [a, b, c, d, floor] = [0; 5].map(|_| {
            let scaled = draw.random.scaled();
            draw.random.one_of([410, 16_000, 15_974, scaled])
        });
        let op = SignalSubtraction {
            output: Slot::default(),
            input: Slot::default(),
            noise: Slot::default(),
            state: Slot::default(),
            count: draw.extent(50),
            constants: Subtraction {
                smoothing: [a, b],
                rest: [c, d],
                floor,
                smoothing_bits: draw.pick(&[10, 0, 31])?,
                bits: draw.pick(&[14, 14, 0, 63])?,
                clamping: draw.coin(),
            },
        };
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Scaled; 2])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::subtraction
    }
}

impl Generated for SignalPcan {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = SignalPcan {
            output: Slot::default(),
            input: Slot::default(),
            noise: Slot::default(),
            count: draw.extent(60),
            shift: draw.pick(&[6, 6, 0, 20, 63])?,
            table: draw.constants(GAIN_TABLE, |random| (random.next() as i16).to_le_bytes())?,
        };
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Scaled; 2])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::pcan
    }
}

impl Generated for SignalLog {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let any = draw.one_in(4);
        let mut at = 0.0;
        let table = draw.constants(LOG_TABLE, |random| {
            let entry = 65_536.0 * (libm::log2f(1.0 + at) - at);
            at += 1.0 / 128.0;
            if any { random.next() as u16 } else { entry as u16 }.to_le_bytes()
        })?;
        let scaled = draw.random.scaled();
        let op = SignalLog {
            output: Slot::default(),
            input: Slot::default(),
            count: draw.extent(60),
            scale: draw.pick(&[1600, 64, scaled])?,
            correction: draw.pick(&[3, 0, 31])?,
            table,
        };
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Scaled])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::signal::log
    }
}

impl Generated for SignalDelay {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = SignalDelay {
            output: Slot::default(),
            input: Slot::default(),
            state: Slot::default(),
            rows: draw.extent(3),
            frame: draw.extent(40),
            delay: draw.extent(60),
        };
        Some((op, Data::integers(draw.seed())))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::frames::delay
    }
}

impl Generated for SignalFramer {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let op = SignalFramer {
            output: Slot::default(),
            input: Slot::default(),
            valid: Slot::default(),
            state: Slot::default(),
            rows: draw.extent(3),
            frames: draw.extent(4),
            size: draw.extent(30),
            step: draw.extent(20),
            prefill: draw.coin(),
        };
        let state = draw.pick(&[Numbers::Bytes, Numbers::Halves(3)])?;
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Bytes, state])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::frames::framer
    }
}

impl Generated for SignalStacker {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let (left, right) = (draw.random.below(5), draw.random.below(4));
        let op = SignalStacker {
            output: Slot::default(),
            input: Slot::default(),
            valid: Slot::default(),
            state: Slot::default(),
            channels: draw.extent(30),
            left,
            right,
            step: 1 + draw.random.below(left + right + 1),
        };
        // The counter of the state is often 0, as before the first frame.
        let state = draw.pick(&[Numbers::Bytes, Numbers::Halves(0), Numbers::Halves(3)])?;
        Some((op, Data::integers(draw.seed()).of(&[Numbers::Bytes, state])))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::frames::stacker
    }
}

impl Generated for SignalOverlapAdd {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let dtype = draw.pick(&[DType::I16, DType::F32])?;
        let size = draw.extent(25);
        let op = SignalOverlapAdd {
            output: Slot::default(),
            input: Slot::default(),
            state: Slot::default(),
            dtype,
            rows: draw.extent(3),
            frames: draw.extent(4),
            size,
            step: 1 + draw.random.below(size),
        };
        let data = if dtype == DType::F32 {
            Data::floats(draw.seed(), Alike::EXACT_FLOATS)
        } else {
            Data::integers(draw.seed())
        };
        Some((op, data))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::frames::overlap_add
    }
}
