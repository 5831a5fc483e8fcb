//! Operators of sequences: attention over a state, what is written there by position, and what is read by index.

use crate::arena::Slot;
use crate::kernels::reference;
use crate::kernels::table::KernelId;
use crate::ops::attention::AttentionF32;
use crate::ops::embedding::{Embedding, EmbeddingW8};
use crate::ops::position::Position;
use crate::ops::rms_norm::RmsNormF32;
use crate::ops::rotary::RotaryF32;
use crate::ops::write_line::WriteLine;
use crate::testkit::compare::Reference;
use crate::testkit::generate::{Draw, Generated};
use crate::testkit::memory::{Alike, Data, Numbers};

/// An index below `count`: often the last one.
fn index(draw: &mut Draw<'_>, count: u32) -> Option<Numbers> {
    let last = count as i32 - 1;
    draw.pick(&[Numbers::Words([0, last]), Numbers::Words([last, last])])
}

impl Generated for AttentionF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let [kv_heads, group] = [draw.pick(&[1, 1, 2, 3])?, draw.pick(&[1, 1, 2, 3])?];
        let mut left = 210 / kv_heads;
        let width = draw.share(19, &mut left);
        let capacity = draw.share(30, &mut left);
        let op = AttentionF32 {
            output: Slot::default(),
            query: Slot::default(),
            keys: Slot::default(),
            values: Slot::default(),
            position: Slot::default(),
            scratch: Slot::default(),
            heads: kv_heads * group,
            kv_heads,
            width,
            capacity,
            scale: draw.pick(&[0.354, 1.0, 8.0])?,
        };
        let floats = Numbers::Floats(draw.pick(&[1.0, 4.0])?);
        let numbers = [floats, floats, floats, index(draw, capacity)?];
        Some((op, Data::floats(draw.seed(), Alike::NEAR_FLOATS).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::attention::f32
    }
}

impl Generated for WriteLine {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut left = 90;
        let shape = [5, 9, 9].map(|most| draw.share(most, &mut left));
        let op = WriteLine {
            state: Slot::default(),
            line: Slot::default(),
            position: Slot::default(),
            element: draw.pick(&[1, 2, 4, 8])?,
            shape,
        };
        let position = index(draw, shape[1])?;
        let numbers = [Numbers::Bytes, Numbers::Bytes, position];
        Some((op, Data::integers(draw.seed()).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::write_line::any
    }
}

impl Generated for Embedding {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut left = 90;
        let (rows, width) = (draw.share(9, &mut left), draw.share(19, &mut left));
        let op = Embedding {
            output: Slot::default(),
            indices: Slot::default(),
            table: Slot::default(),
            element: draw.pick(&[1, 2, 4, 8])?,
            count: draw.extent(5),
            rows,
            width,
        };
        let numbers = [index(draw, rows)?, Numbers::Bytes];
        Some((op, Data::integers(draw.seed()).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::embedding::any
    }
}

impl Generated for EmbeddingW8 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut left = 200;
        let (rows, width) = (draw.share(9, &mut left), draw.share(29, &mut left));
        // Groups that do not divide a row, and one that is all of it.
        let share = draw.pick(&[width, 1, 4, 7])?;
        let op = EmbeddingW8 {
            output: Slot::default(),
            indices: Slot::default(),
            table: draw.weights(rows * width)?,
            scales: draw.floats(rows * width.div_ceil(share))?,
            count: draw.extent(4),
            rows,
            width,
            share,
        };
        let numbers = [index(draw, rows)?];
        Some((op, Data::floats(draw.seed(), Alike::EXACT_FLOATS).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::embedding::w8
    }
}

impl Generated for RmsNormF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut left = 150;
        let (rows, channels) = (draw.share(9, &mut left), draw.share(90, &mut left));
        let op = RmsNormF32 {
            output: Slot::default(),
            input: Slot::default(),
            gain: Slot::default(),
            rows,
            channels,
            epsilon: draw.pick(&[1e-5, 1e-6, 0.5])?,
        };
        let numbers = [Numbers::Floats(draw.pick(&[1.0, 30.0])?), Numbers::Floats(1.0)];
        Some((op, Data::floats(draw.seed(), Alike::NEAR_FLOATS).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::rms_norm::f32
    }
}

impl Generated for RotaryF32 {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let mut left = 60;
        let (half, rows) = (draw.share(9, &mut left), draw.share(6, &mut left));
        let positions = draw.extent(11);
        let op = RotaryF32 {
            output: Slot::default(),
            input: Slot::default(),
            position: Slot::default(),
            cosines: Slot::default(),
            sines: Slot::default(),
            rows,
            width: 2 * half,
            positions,
            interleaved: draw.coin(),
        };
        let floats = Numbers::Floats(1.0);
        let numbers = [floats, index(draw, positions)?, floats, floats];
        Some((op, Data::floats(draw.seed(), Alike::NEAR_FLOATS).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::rotary::f32
    }
}

impl Generated for Position {
    fn generate(draw: &mut Draw<'_>) -> Option<(Self, Data)> {
        let capacity = draw.extent(40);
        let last = capacity as i32 - 1;
        let op = Position {
            output: Slot::default(),
            input: Slot::default(),
            lines: Slot::default(),
            capacity,
        };
        // The next line, or one before it.
        let lines = draw.random.below(capacity) as i32;
        let numbers = [
            Numbers::Words([0, lines]),
            Numbers::Words([lines, draw.pick(&[lines, last, i32::MAX])?]),
        ];
        Some((op, Data::integers(draw.seed()).of(&numbers)))
    }

    fn reference(_: KernelId) -> Reference<Self> {
        reference::position::any
    }
}
