//! Groups of four outputs of a fully connected layer, one behind the other: arguments of the loops, on the cores that have them.

pub(super) mod armv6m;
pub(super) mod rv32im;

use super::channel_record::{BLOCK, CONSTANT, GENERAL, Record, SINGLE};
use super::linear_s8_dot::DOUBLED_AT;

/// Groups of one block. `#[repr(C)]`; the assembly reads fields by `offset_of!`, and counts on.
#[repr(C)]
pub(super) struct LinearGroupsArgs {
    pub(super) words: *const i32,
    /// Past the inputs, and how many there are, with the sign changed.
    pub(super) end: *const i8,
    pub(super) minus_inputs: i32,
    pub(super) records: *const Record,
    pub(super) y: *mut i8,
    /// Not 0.
    pub(super) left: usize,
    /// `2 * zero_point + 1` of the output.
    pub(super) twice: i32,
    /// Bits of the codes of a group that must be as in `expected`.
    pub(super) mask: i32,
    pub(super) expected: i32,
    /// Start of the totals. A block's sum starts at 2^15, which is subtracted here as often as there are blocks.
    pub(super) start: i32,
}

impl LinearGroupsArgs {
    /// Block, and what is no short form.
    const MASK: i32 = BLOCK | -1 << DOUBLED_AT | SINGLE | GENERAL | CONSTANT;

    /// For `inputs` from `x` on, and `left` groups of the block of this number, which has a loop here.
    #[inline(always)]
    pub(super) fn new(
        (words, x, inputs): (*const i32, *const i8, usize),
        (records, y, left): (*const Record, *mut i8, usize),
        twice: i32,
        number: u32,
    ) -> Self {
        // 15 less the block's power of two.
        let shift = match number {
            0 => 13,
            1 => 14,
            _ => 12,
        };
        let inputs = inputs as i32;
        Self {
            words,
            end: x.wrapping_add(inputs as usize),
            minus_inputs: inputs.wrapping_neg(),
            records,
            y,
            left,
            twice,
            mask: Self::MASK,
            expected: (number as i32) << 8,
            start: (inputs << shift).wrapping_neg(),
        }
    }

    /// Whether there is a loop for blocks of this number, and whether both codes are for it.
    #[inline(always)]
    pub(super) fn takes(codes: [i32; 2], number: u32) -> bool {
        let is_plain = |code: i32| code & Self::MASK == (number as i32) << 8;
        matches!(number, 0 | 1 | 3) && codes.into_iter().all(is_plain)
    }
}
