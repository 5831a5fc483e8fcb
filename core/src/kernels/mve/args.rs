//! Arguments of the loops: a `#[repr(C)]` struct each, read by the assembly by offset_of! and by the portable equivalents by name.

/// A product of rows of activations and packed weights ([`super::gemm_s8`]).
#[repr(C)]
pub(super) struct Product {
    /// The first row.
    pub(super) x: *const i8,
    /// Bytes between rows.
    pub(super) x_stride: u32,
    /// Pairs of rows; the loop over one row ignores it.
    pub(super) pairs: u32,
    /// The first group.
    pub(super) weights: *const u8,
    /// Groups of eight output channels.
    pub(super) groups: u32,
    /// Blocks of 16 elements of a row, less one.
    pub(super) blocks_less_one: u32,
    /// The first row of outputs.
    pub(super) out: *mut i8,
    /// Bytes between rows of outputs.
    pub(super) out_stride: u32,
    /// Added to the outputs.
    pub(super) zero_point: i32,
    /// Channels to write of each group.
    pub(super) lanes: u32,
    /// Least output.
    pub(super) low: i32,
    /// Greatest output.
    pub(super) high: i32,
    /// Bytes of the factors that eight channels have beside their weights ([`super::conv2d_s8_w4_groups`]).
    pub(super) factors: u32,
}

/// A product of one row and packed weights of channels that are requantised alike ([`super::linear_s8`]).
#[repr(C)]
pub(super) struct Alike {
    /// The outputs.
    pub(super) out: *mut i8,
    /// The row, of whole blocks.
    pub(super) x: *const i8,
    /// Groups of eight output channels; channels to write of half a group.
    pub(super) groups: u32,
    /// Blocks of 16 elements of the row, at least one.
    pub(super) blocks: u32,
    /// The first group.
    pub(super) weights: *const u8,
    /// Added to the outputs.
    pub(super) zero_point: i32,
    /// Mantissa and right shift (0 or negative) of all channels.
    pub(super) factor: [i32; 2],
    /// Least output.
    pub(super) low: i32,
    /// Greatest output.
    pub(super) high: i32,
}

/// Weights of four bits of eight channels, their factors and tables, to int8 weights and tables ([`super::conv2d_s8_w4_groups`]).
#[repr(C)]
pub(super) struct Widen {
    pub(super) src: *const u8,
    pub(super) dst: *mut i8,
    /// Blocks of a row, at least one.
    pub(super) blocks: u32,
    /// Blocks that share factors, at least one.
    pub(super) of_group: u32,
}

/// A copy of `rows` rows of `count` segments.
#[repr(C)]
pub(super) struct Copy {
    pub(super) src: *const i8,
    /// Bytes between segments.
    pub(super) src_step: u32,
    pub(super) dst: *mut i8,
    /// Bytes between segments.
    pub(super) dst_step: u32,
    /// Bytes of a segment.
    pub(super) bytes: u32,
    pub(super) count: u32,
    pub(super) rows: u32,
    /// Bytes between rows.
    pub(super) src_row: u32,
    /// Bytes between rows.
    pub(super) dst_row: u32,
}

/// Windows of one output row, copied to rows of a matrix. Sources are read, and copies written, to a multiple of 16 bytes for each
/// row of a window.
#[repr(C)]
pub(super) struct Windows {
    pub(super) src: *const i8,
    /// Bytes between rows of the input.
    pub(super) row: u32,
    /// Bytes between windows of the input.
    pub(super) step: u32,
    pub(super) dst: *mut i8,
    /// Bytes of a row of a window.
    pub(super) run: u32,
    /// Bytes between copies.
    pub(super) stride: u32,
    /// Rows of a window.
    pub(super) rows: u32,
    /// Windows.
    pub(super) count: u32,
}

/// Windows that reach beyond the image, their rows of at most 16 bytes: `above` rows of padding, `rows` of which the image has the bytes of `mask`, `below`
/// rows of padding. Copies are written to 16 bytes for each row.
#[repr(C)]
pub(super) struct Clipped {
    /// The first row of the image, where the first window's column would be.
    pub(super) src: *const i8,
    /// Bytes between rows of the input.
    pub(super) row: u32,
    pub(super) dst: *mut i8,
    /// Bytes of a row of a window.
    pub(super) run: u32,
    pub(super) above: u32,
    pub(super) rows: u32,
    pub(super) below: u32,
    /// A bit for each byte of a row.
    pub(super) mask: u32,
    pub(super) padding: i32,
    /// Bytes between windows of the input.
    pub(super) step: u32,
    /// Bytes between copies.
    pub(super) stride: u32,
    /// Windows, at least one.
    pub(super) count: u32,
}

/// Four rows of pixels and how far each moves from pixel to pixel.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RowSet {
    pub(super) rows: [*const i8; 4],
    pub(super) steps: [u32; 4],
}

/// Interleaving of sets of four rows byte by byte.
#[repr(C)]
pub(super) struct Interleave {
    pub(super) sets: *const RowSet,
    pub(super) dst: *mut i8,
    /// Number of sets.
    pub(super) count: u32,
    /// Vectors of each row.
    pub(super) vectors: u32,
    /// Bytes to take of each vector; zeros follow.
    pub(super) lanes: u32,
    /// Bytes added to every row of every set.
    pub(super) offset: u32,
    /// Bytes of `dst` between the end of a set and the next.
    pub(super) dst_skip: u32,
}

/// A depthwise convolution of interleaved rows, channel by channel.
#[repr(C)]
pub(super) struct Depthwise {
    /// Weights of the first channel.
    pub(super) weights: *const u8,
    /// The same for the lower of two output rows: one byte before, or the same where both rows are one.
    pub(super) lower_weights: *const u8,
    /// Bias, mantissa and shift of each channel.
    pub(super) table: *const u8,
    /// The first set of interleaved rows.
    pub(super) x: *const i8,
    pub(super) out: *mut i8,
    pub(super) channels: u32,
    /// Sets of rows.
    pub(super) sets: u32,
    /// Full units of a set.
    pub(super) units: u32,
    /// From unit to unit (2 x 2) or from pixel to pixel (1 x 1), in the interleaved rows.
    pub(super) x_step: u32,
    /// From unit to unit, in the output.
    pub(super) out_step: u32,
    /// From the last full unit of a set to the next set.
    pub(super) x_skip: u32,
    pub(super) out_skip: u32,
    pub(super) zero_point: i32,
    /// Elements to write of a last unit that is not full; 0 for none. Of eight outputs at a time: the mask of their lanes, bit 31 where any is of the second
    /// four, bit 30 where one column is left of two by two.
    pub(super) rest: u32,
    /// Offsets of the four columns of a window.
    pub(super) columns: *const [u32; 4],
    /// Offsets of the four outputs of a unit; of eight at a time, the second four's in the upper halves.
    pub(super) outputs: *const [u32; 4],
    pub(super) low: i32,
    pub(super) high: i32,
    /// Read by the loop alone that takes it.
    pub(super) column: *const LastColumn,
}

/// The last column of a depthwise convolution, where it is the only one that whole units leave, four sets of rows at a time. Offsets are bytes.
#[repr(C)]
pub(super) struct LastColumn {
    /// From the next channel's first column to this channel's last.
    pub(super) x: u32,
    /// From the next channel's first output to this channel's last column of outputs.
    pub(super) out: u32,
    /// From set to set of interleaved rows.
    pub(super) set: u32,
    /// From the third set to the fourth: nothing where there are three.
    pub(super) last: u32,
    /// 1 where there are more than four: the last four are done as well, of which some may be done twice.
    pub(super) again: u32,
    /// From the fourth set to the first of the last four.
    pub(super) again_x: u32,
    /// From the first set's outputs to those of the first of the last four.
    pub(super) again_out: u32,
    /// Offsets of the first, third, second and fourth set's outputs: the upper row's, and in the upper halves the lower row's.
    pub(super) outputs: [u32; 4],
}

/// A run of pixels of a depthwise convolution of any windows ([`super::dwconv_s8_indirection`]).
#[repr(C)]
pub(super) struct Taps {
    /// Addresses of the first pixel's taps.
    pub(super) entries: *const *const i8,
    /// Pairs of taps.
    pub(super) pairs: u32,
    /// 1 where a tap is left.
    pub(super) odd: u32,
    pub(super) weights: *const u8,
    /// The first pixel of outputs.
    pub(super) out: *mut i8,
    /// Pixels, at least one.
    pub(super) pixels: u32,
    /// Bytes from a pixel's taps to the next one's.
    pub(super) step: u32,
    pub(super) channels: u32,
    /// Added to the outputs.
    pub(super) zero_point: i32,
    /// Least output.
    pub(super) low: i32,
    /// Greatest output.
    pub(super) high: i32,
}

/// A sum of two tensors.
#[repr(C)]
pub(super) struct Add {
    /// 2^20: both operands are worked on with 20 more bits.
    pub(super) scale: i32,
    /// -(zero point of b) * 2^20.
    pub(super) b_offset: i32,
    pub(super) b_mantissa: i32,
    /// 0 or below.
    pub(super) b_shift: i32,
    /// -(zero point of a) * 2^19.
    pub(super) a_offset: i32,
    pub(super) mantissa: i32,
    /// 0 or below.
    pub(super) shift: i32,
    pub(super) zero_point: i32,
    pub(super) low: i32,
    pub(super) high: i32,
}

/// A sum of two tensors in its linear form ([`super::add_s8_linear`]).
#[repr(C)]
pub(super) struct AddS8LinearArgs {
    /// The first operand.
    pub(super) a: *const i8,
    /// The second one.
    pub(super) b: *const i8,
    /// The output.
    pub(super) out: *mut i8,
    /// Elements.
    pub(super) count: u32,
    /// Times the operands, over 2^8.
    pub(super) factors: [i32; 2],
    /// Added to the products.
    pub(super) offset: i32,
}

/// Sums or maxima over one window, channel by channel.
#[repr(C)]
pub(super) struct Pool {
    /// The window's first pixel, at the first channel.
    pub(super) src: *const i8,
    /// Bytes between pixels.
    pub(super) step: u32,
    /// Pixels of a row, at least one.
    pub(super) columns: u32,
    /// Bytes from the end of a row of the window to the next.
    pub(super) skip: u32,
    /// Rows, at least one.
    pub(super) rows: u32,
    /// Channels: 1 to 8 for sums, 1 to 16 for maxima.
    pub(super) lanes: u32,
    /// Eight sums of i16, or `lanes` maxima.
    pub(super) dst: *mut i8,
}

/// The mean over one window of at most 256 pixels, for all channels.
#[repr(C)]
pub(super) struct Mean {
    /// The window's first pixel.
    pub(super) src: *const i8,
    /// Bytes between pixels.
    pub(super) step: u32,
    /// Pixels of a row, at least one.
    pub(super) columns: u32,
    /// Bytes from the end of a row of the window to the next.
    pub(super) skip: u32,
    /// Channels, at least one.
    pub(super) channels: u32,
    /// Rows, at least one.
    pub(super) rows: u32,
    pub(super) dst: *mut i8,
    /// 2^32 / pixels, rounded up; at least two pixels.
    pub(super) reciprocal: u32,
    /// Half of the pixels, rounded down.
    pub(super) half: u32,
    pub(super) low: i32,
    pub(super) high: i32,
}

/// A product of f32 rows and packed weights ([`super::gemm_f32`]). Strides are bytes.
#[repr(C)]
pub(super) struct ProductF32 {
    /// The first row.
    pub(super) x: *const f32,
    pub(super) x_stride: u32,
    /// The first group's weights.
    pub(super) weights: *const f32,
    /// The first group's bias.
    pub(super) bias: *const f32,
    /// The first row of outputs.
    pub(super) out: *mut f32,
    pub(super) out_stride: u32,
    /// Added to the outputs, at the same strides; null for none.
    pub(super) residual: *const f32,
    /// Pairs of elements of a row.
    pub(super) pairs: u32,
    /// 1 where an element is left.
    pub(super) odd: u32,
    /// Groups of eight output channels.
    pub(super) groups: u32,
    /// Channels to write of the first and the second four of each group.
    pub(super) lanes: [u32; 2],
    /// Limits of the outputs.
    pub(super) limits: [f32; 2],
}

/// One output pixel of an f32 depthwise convolution. Steps are bytes.
#[repr(C)]
pub(super) struct DepthwiseF32 {
    /// The first tap's pixel.
    pub(super) x: *const f32,
    /// The first tap's weights, `[ky][kx][channels]`.
    pub(super) weights: *const f32,
    pub(super) bias: *const f32,
    pub(super) out: *mut f32,
    /// Added to the outputs; null for none.
    pub(super) residual: *const f32,
    pub(super) channels: u32,
    /// Rows and columns of taps, at least one each.
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// From tap to tap of a row: bytes of a pixel.
    pub(super) step: u32,
    /// From the end of a row of taps to the next, in x and in the weights.
    pub(super) x_skip: u32,
    pub(super) weights_skip: u32,
    /// Limits of the outputs.
    pub(super) limits: [f32; 2],
}

/// A row of f32 times fours of rows of weights ([`super::linear_f32`]).
#[repr(C)]
pub(super) struct LinearF32 {
    /// The row.
    pub(super) x: *const f32,
    /// Four rows for each four outputs, one behind the other.
    pub(super) weights: *const f32,
    /// Bytes between rows of weights.
    pub(super) stride: u32,
    /// Elements of a row.
    pub(super) inputs: u32,
    pub(super) bias: *const f32,
    pub(super) out: *mut f32,
    /// Fours of outputs, one at least.
    pub(super) groups: u32,
    /// 1 where the outputs have limits.
    pub(super) limited: u32,
    /// Limits of the outputs.
    pub(super) limits: [f32; 2],
}
