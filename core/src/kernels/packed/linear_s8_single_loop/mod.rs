//! All outputs of a pixel of a fully connected layer by one loop that is not unrolled: what small layers of compiled models take, whose code would be
//! larger than their weights. Records of the short form alone. Weights in either [layout](super::linear_s8_layout): where bytes lie in order, which other
//! loops take without blocks, they go by blocks here too.

// The cores with code of their own; others, and hosts, run the portable one.
mod armv6m;
mod portable;
mod rv32im;

use super::channel_record::Record;
#[cfg(not(kernel_isa = "rv32im"))]
use super::channel_record::{BLOCK, BLOCK2};

#[cfg(kernel_isa = "armv6m")]
pub(super) use armv6m::halves;
#[cfg(not(kernel_isa = "rv32im"))]
pub(super) use portable::bytes;
#[cfg(not(kernel_isa = "strict_align"))]
pub(super) use portable::halves;
#[cfg(kernel_isa = "rv32im")]
pub(super) use rv32im::{bytes, halves};

/// A pixel. `#[repr(C)]`; the assembly reads fields by `offset_of!`, and counts on.
#[repr(C)]
pub struct SingleLoopArgs {
    words: *const i32,
    /// Past the inputs, and how many there are, with the sign changed: not 0, and whole blocks.
    end: *const i8,
    minus_inputs: isize,
    /// Inputs of a block less 1: a block is a power of two, and 2 or more.
    last: usize,
    /// Start of the totals. A block's sum starts at 2^15, which is subtracted here as often as there are blocks.
    start: i32,
    records: *const Record,
    y: *mut i8,
    /// Past the outputs, of which there is one at least.
    y_end: *mut i8,
    /// `2 * zero_point + 1` of the output.
    twice: i32,
}

impl SingleLoopArgs {
    /// For `inputs` from `x` on in blocks of `block`, a power of two from 2 to 32, and for `outputs` from `y` on.
    #[inline(always)]
    pub(super) fn new(
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
const fn in_order(code: i32) -> bool {
    code & BLOCK == BLOCK2
}
