//! What the inner loops are told. The assembly knows these offsets.

use super::record::Record;

/// Channels that `rows` takes at a time.
pub(super) const LANES: usize = if cfg!(all(target_arch = "riscv32", target_feature = "m", target_os = "none")) {
    2
} else {
    1
};

/// What `rows` needs besides its operands. The assembly knows these offsets.
#[repr(C)]
pub(super) struct Job {
    /// Where the first pixel's outputs go.
    pub(super) out: *mut i8,
    /// Bytes between pixels of the output.
    pub(super) stride: usize,
    /// End of the records.
    pub(super) end: *const Record,
    /// `2 * zero_point + 1` of the output.
    pub(super) twice: i32,
    /// Bytes of a row of weights.
    pub(super) inputs: usize,
    /// The accumulators of the channels that ended the call.
    pub(super) sums: [[i32; 4]; LANES],
    /// Of the single form: what it adds to the addend, what it shifts accumulators by to the left, and mantissas to the right.
    pub(super) half: i32,
    /// See `half`.
    pub(super) left: u32,
    /// See `half`.
    pub(super) right: u32,
}

/// What the plane's bytes are changed by, bit by bit: ARMv6-M loads unsigned bytes with one instruction less.
pub(super) const FLIP: u8 = if cfg!(cortex_m = "baseline") { 0x80 } else { 0 };

/// One channel, three outputs of a row at a time. The last three of a row overlap their neighbours where the width is no multiple of three: they are
/// computed twice, from a plane that does not change. The assembly knows these offsets.
#[repr(C)]
pub(super) struct Plane {
    /// Start of every sum.
    pub(super) bias: i32,
    /// Q31.
    pub(super) multiplier: i32,
    /// [`super::requant::Rounding::addend`].
    pub(super) addend: i32,
    /// The shift in the low byte; in the next one what the single form shifts the accumulator by, 0 in the short form.
    pub(super) code: i32,
    /// The first window's first tap.
    pub(super) plane: *const i8,
    /// Bytes between rows of the plane.
    pub(super) pitch: usize,
    /// Nine weights.
    pub(super) weights: *const i8,
    /// First output.
    pub(super) out: *mut i8,
    /// Bytes between outputs.
    pub(super) stride: usize,
    /// Where the row of windows after the last one would start; at least one row before.
    pub(super) end: *const i8,
    /// Twice the whole groups of three in a row, of which there is one at least; one less where no overlapping group follows.
    pub(super) groups: usize,
    /// How far back that group starts, in the plane.
    pub(super) back: usize,
    /// The same, in the output.
    pub(super) back_out: usize,
    /// From the end of a row of windows to the next row, modulo the address space.
    pub(super) step: usize,
    /// The same, in the output.
    pub(super) step_out: usize,
}
