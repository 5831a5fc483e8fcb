//! Arguments of the single loop.

use crate::kernels::packed::channel_record::Record;
#[cfg(not(kernel_isa = "rv32im"))]
use crate::kernels::packed::channel_record::{BLOCK, BLOCK2};

/// A pixel. `#[repr(C)]`; the assembly reads fields by `offset_of!`, and counts on.
#[repr(C)]
pub struct SingleLoopArgs {
    pub(super) words: *const i32,
    /// Past the inputs, and how many there are, with the sign changed: not 0, and whole blocks.
    pub(super) end: *const i8,
    pub(super) minus_inputs: isize,
    /// Inputs of a block less 1: a block is a power of two, and 2 or more.
    pub(super) last: usize,
    /// Start of the totals. A block's sum starts at 2^15, which is subtracted here as often as there are blocks.
    pub(super) start: i32,
    pub(super) records: *const Record,
    pub(super) y: *mut i8,
    /// Past the outputs, of which there is one at least.
    pub(super) y_end: *mut i8,
    /// `2 * zero_point + 1` of the output.
    pub(super) twice: i32,
}

impl SingleLoopArgs {
    /// For `inputs` from `x` on in blocks of `block`, a power of two from 2 to 32, and for `outputs` from `y` on.
    #[inline(always)]
    pub(in crate::kernels::packed) fn new(
        (words, x, inputs): (*const i32, *const i8, usize),
        block: usize,
        (records, y, outputs): (*const Record, *mut i8, usize),
        twice: i32,
    ) -> Self {
        let blocks = inputs >> block.trailing_zeros();
        Self {
            words,
            end: x.wrapping_add(inputs),
            minus_inputs: (inputs as isize).wrapping_neg(),
            last: block - 1,
            start: ((blocks << 15) as i32).wrapping_neg(),
            records,
            y,
            y_end: y.wrapping_add(outputs),
            twice,
        }
    }
}

/// Whether the bytes of a group with this code lie in order, as they are.
#[cfg(not(kernel_isa = "rv32im"))]
pub(super) const fn in_order(code: i32) -> bool {
    code & BLOCK == BLOCK2
}
