//! Steps that look their results up.

use arenite::ops::convert::{Table, TableS16};
use arenite::{KernelId, Slot, Step};

use super::shapes::Random;

/// The step and its table, which is to lie from `base` on; `None` of other kernels.
pub(super) fn step(kernel: KernelId, random: &mut Random, base: u32) -> Option<(Step, Vec<u8>)> {
    let (output, input, table) = (Slot::default(), Slot::default(), base);
    match kernel {
        KernelId::Table => {
            let values = (0..256).map(|_| random.byte()).collect();
            let count = random.axis("count", 8000);
            let op = Table {
                output,
                input,
                count,
                table,
            };
            Some((Step::Table(op), values))
        }
        KernelId::TableS16 => {
            let values = (0..513).flat_map(|i: i16| (i * 50).to_le_bytes()).collect();
            let count = random.axis("count", 8000);
            let op = TableS16 {
                output,
                input,
                count,
                table,
            };
            Some((Step::TableS16(op), values))
        }
        _ => None,
    }
}
