//! Steps of sequences. Positions and indices are constants: the last ones, of which most is done.

use arenite::ops::attention::AttentionF32;
use arenite::ops::embedding::{Embedding, EmbeddingW8};
use arenite::ops::position::Position;
use arenite::ops::rms_norm::RmsNormF32;
use arenite::ops::rotary::RotaryF32;
use arenite::ops::write_line::WriteLine;
use arenite::{KernelId, Slot, Step};

use super::shapes::Random;

/// The step and its constants, which are to lie from `base` on; `None` of other kernels.
pub(super) fn step(kernel: KernelId, random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let slot = Slot::default();
    let constant = Slot {
        region: Slot::WEIGHTS,
        offset: base,
    };
    let words = |word: u32, count: u32| word.to_le_bytes().repeat(count as usize);
    Some(match kernel {
        KernelId::AttentionF32 => {
            let kv_heads = random.axis("heads", 6);
            let op = AttentionF32 {
                output: slot,
                query: slot,
                keys: slot,
                values: slot,
                position: constant,
                scratch: slot,
                heads: kv_heads * random.one_of(&[1, 1, 2]),
                kv_heads,
                width: random.axis("width", 40),
                capacity: random.axis("lines", 60),
                scale: 0.25,
            };
            (Step::AttentionF32(op), words(op.capacity - 1, 1))
        }
        KernelId::WriteLine => {
            let shape = [("outer", 12), ("lines", 20), ("inner", 60)].map(|(name, to)| random.axis(name, to));
            let op = WriteLine {
                state: slot,
                line: slot,
                position: constant,
                element: random.one_of(&[1, 2, 4, 8]),
                shape,
            };
            (Step::WriteLine(op), words(shape[1] - 1, 1))
        }
        KernelId::Embedding => {
            let op = Embedding {
                output: slot,
                indices: constant,
                table: slot,
                element: random.one_of(&[1, 2, 4, 8]),
                count: random.axis("indices", 20),
                rows: random.axis("rows", 40),
                width: random.axis("width", 80),
            };
            (Step::Embedding(op), words(op.rows - 1, op.count))
        }
        KernelId::EmbeddingW8 => {
            let (count, rows, width) = (
                random.axis("indices", 20),
                random.axis("rows", 20),
                random.axis("width", 80),
            );
            let share = random.one_of(&[width, 8, 5]);
            let indices = words(rows - 1, count);
            let table = base + indices.len().next_multiple_of(16) as u32;
            let scales = (table + rows * width).next_multiple_of(16);
            let op = EmbeddingW8 {
                output: slot,
                indices: constant,
                table,
                scales,
                count,
                rows,
                width,
                share,
            };
            let mut constants = indices;
            constants.resize((table - base) as usize, 0);
            constants.extend((0..rows * width).map(|_| random.byte()));
            constants.resize((scales - base) as usize, 0);
            constants.extend(0.01_f32.to_le_bytes().repeat((rows * width.div_ceil(share)) as usize));
            (Step::EmbeddingW8(op), constants)
        }
        KernelId::RmsNormF32 => {
            let op = RmsNormF32 {
                output: slot,
                input: slot,
                gain: slot,
                rows: random.axis("rows", 20),
                channels: random.axis("channels", 300),
                epsilon: 1e-5,
            };
            (Step::RmsNormF32(op), Vec::new())
        }
        KernelId::RotaryF32 => {
            let op = RotaryF32 {
                output: slot,
                input: slot,
                position: constant,
                cosines: slot,
                sines: slot,
                rows: random.axis("rows", 20),
                width: 2 * random.axis("pairs", 60),
                positions: random.axis("positions", 12),
                interleaved: random.chance(2),
            };
            (Step::RotaryF32(op), words(op.positions - 1, 1))
        }
        KernelId::Position => {
            let op = Position {
                output: slot,
                input: constant,
                lines: slot,
                capacity: random.axis("lines", 100),
            };
            (Step::Position(op), words(0, 1))
        }
        _ => return None,
    })
}
