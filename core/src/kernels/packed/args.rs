//! Arguments of the inner loops. `#[repr(C)]`; the assembly reads fields by `offset_of!`.

use core::mem::MaybeUninit;

use super::channel_record::Record;

/// Channels that `rows` takes at a time.
pub(super) const LANES: usize = if cfg!(kernel_isa = "rv32im") { 2 } else { 1 };

/// Arguments of `rows` besides its operands.
#[repr(C)]
pub(super) struct DotRowsArgs {
    /// Single form: rounding offset, added to the addend.
    pub(super) half: i32,
    /// First output of the first pixel.
    pub(super) out: *mut i8,
    /// Bytes between pixels of the output.
    pub(super) stride: usize,
    /// End of the records.
    pub(super) end: *const Record,
    /// `2 * zero_point + 1` of the output.
    pub(super) twice: i32,
    /// Single form: shift of the accumulators to the left.
    pub(super) left: u32,
    /// Bytes of a row of weights.
    pub(super) inputs: usize,
    /// Single form: shift of the mantissas to the right.
    pub(super) right: u32,
    /// The accumulators of the channels that ended the call; nothing before one did.
    pub(super) sums: MaybeUninit<[[i32; 4]; LANES]>,
}

/// XOR mask of the plane's bytes. ARMv6-M loads unsigned bytes with one instruction less.
pub(super) const FLIP: u8 = if cfg!(kernel_isa = "armv6m") { 0x80 } else { 0 };

/// One channel, three outputs of a row at a time. Where two are left over, the last three of a row overlap their neighbours, which are computed twice, from a
/// plane that does not change; one is computed alone.
#[repr(C)]
pub(super) struct Dwconv3x3PlaneArgs {
    /// Start of every sum.
    pub(super) bias: i32,
    /// Q31.
    pub(super) multiplier: i32,
    /// [`super::requantize::Rounding::addend`].
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
    /// Start of the row of windows behind the last one; at least one row is before it.
    pub(super) end: *const i8,
    /// Twice the whole groups of three in a row, of which there is one at least; one less where no output is left over.
    pub(super) groups: usize,
    /// Bytes by which the overlapping group starts before the windows left over, in the plane; 0 for one output alone.
    pub(super) back: usize,
    /// The same, in the output.
    pub(super) back_out: usize,
    /// From the end of a row of windows to the next row, modulo the address space.
    pub(super) step: usize,
    /// The same, in the output.
    pub(super) step_out: usize,
}

/// Any windows of one channel, three outputs of a row at a time, wherever its pixels lie; lines end as in [`Dwconv3x3PlaneArgs`].
#[repr(C)]
pub(super) struct Dwconv1x3Args {
    /// Start of every sum.
    pub(super) bias: i32,
    /// Q31.
    pub(super) multiplier: i32,
    /// [`super::requantize::Rounding::addend`].
    pub(super) addend: i32,
    /// As in [`Dwconv3x3PlaneArgs`].
    pub(super) code: i32,
    /// The first window's first tap.
    pub(super) x: *const i8,
    /// First output.
    pub(super) out: *mut i8,
    /// Bytes between outputs.
    pub(super) stride: usize,
    /// From tap to tap.
    pub(super) right: usize,
    /// From window to window.
    pub(super) next: usize,
    /// The first weight.
    pub(super) weights: *const i8,
    /// Weights of a row that the loop takes several at a time, as `dwconv_s8_1x3_outputs::leap` says.
    pub(super) leaps: usize,
    /// Those that are left.
    pub(super) rest: usize,
    /// From the end of a row of taps to the next one, modulo the address space, and where the weights end.
    pub(super) down: usize,
    /// See `down`.
    pub(super) weights_end: *const i8,
    /// From the end of the last row of taps to the next group.
    pub(super) group: usize,
    /// As in [`Dwconv3x3PlaneArgs`].
    pub(super) groups: usize,
    /// As in [`Dwconv3x3PlaneArgs`].
    pub(super) back: usize,
    /// As in [`Dwconv3x3PlaneArgs`].
    pub(super) back_out: usize,
    /// From the end of a line of windows to the next one, modulo the address space; outputs follow one another.
    pub(super) step: usize,
    /// Lines of windows, of which there is one at least; the loop counts them down.
    pub(super) lines: usize,
    /// The loop's own: groups that are left.
    pub(super) left: usize,
}

/// Windows of one output for each channel, where they lie in the input; see `dwconv_s8_single_output`.
#[repr(C)]
pub(super) struct DwconvSingleOutputArgs {
    /// The next channel's first tap.
    pub(super) x: *const i8,
    /// Its weights.
    pub(super) weights: *const i8,
    /// Its record.
    pub(super) records: *const Record,
    /// Its output.
    pub(super) out: *mut i8,
    /// End of the records.
    pub(super) end: *const Record,
    /// From tap to tap.
    pub(super) right: usize,
    /// From the end of a row of taps to the next one, modulo the address space.
    pub(super) down: usize,
    /// Taps of a row.
    pub(super) columns: usize,
    /// Rows of taps.
    pub(super) rows: usize,
    /// Bytes of a channel's weights.
    pub(super) row_bytes: usize,
    /// `2 * zero_point + 1` of the output.
    pub(super) twice: i32,
    /// Of the single form, as in [`DotRowsArgs`].
    pub(super) half: i32,
    /// See `half`.
    pub(super) left: u32,
    /// Single form: shift of the mantissas to the right.
    pub(super) right_shift: u32,
}

impl DwconvSingleOutputArgs {
    /// Goes on to the next channel.
    #[inline(always)]
    pub(super) fn advance(&mut self) {
        self.x = self.x.wrapping_add(1);
        self.weights = self.weights.wrapping_add(self.row_bytes);
        self.records = self.records.wrapping_add(1);
        self.out = self.out.wrapping_add(1);
    }
}

/// Taps of the windows of `dwconv_s8_small_window`, at most.
pub(super) const MOST_TAPS: usize = 9;

/// Windows of few taps of one channel, wherever its pixels lie: groups of three outputs of a line, and those that are left over one by one.
#[repr(C)]
pub(super) struct DwconvSmallWindowArgs {
    /// Of each tap the weight, as `dwconv_s8_small_window` shifts it, and where it lies from a window's first one; that one has the start of the sums in its
    /// offset's place.
    pub(super) taps: [[i32; 2]; MOST_TAPS],
    /// The first window's first tap.
    pub(super) x: *const i8,
    /// First output; outputs follow one another.
    pub(super) out: *mut i8,
    /// From window to window.
    pub(super) next: usize,
    /// Bytes between outputs.
    pub(super) stride: usize,
    /// Q31.
    pub(super) multiplier: i32,
    /// [`super::requantize::Rounding::addend`].
    pub(super) addend: i32,
    /// As in [`Dwconv3x3PlaneArgs`].
    pub(super) code: i32,
    /// From the first window of a line to the first that is in no group of three.
    pub(super) groups: usize,
    /// Windows of a line that are in none.
    pub(super) rest: usize,
    /// From the end of a line of windows to the next one, modulo the address space.
    pub(super) step: usize,
    /// Lines of windows, of which there is one at least; the loop counts them down.
    pub(super) lines: usize,
    /// Taps, of which there is one at least and [`MOST_TAPS`] at most.
    pub(super) count: usize,
    /// The loop's own.
    pub(super) own: [usize; 2],
}
