//! Arguments of the loops. `#[repr(C)]`; the assembly reads fields by `offset_of!`.

/// A run of pixels (`indirection`) and its constants ([`super::packed`]).
#[repr(C)]
pub(super) struct ConvArgs {
    /// Addresses of the first pixel's taps.
    pub(super) entries: *const *const i8,
    /// Taps, at least one.
    pub(super) taps: usize,
    /// Elements at a tap that are multiplied by the weights of every channel, at least one; of depthwise convolutions, where a tap has a pixel's
    /// channels, 1.
    pub(super) elements: usize,
    /// The weights.
    pub(super) weights: *const u8,
    /// The words of the channels.
    pub(super) table: *const i32,
    /// The first pixel of outputs.
    pub(super) out: *mut i8,
    /// Pixels, at least one.
    pub(super) pixels: usize,
    /// Bytes from a pixel's taps to the next one's, but for those outside.
    pub(super) step: usize,
    /// Output channels, at least one.
    pub(super) channels: usize,
    /// Value of the entries of taps outside the input.
    pub(super) outside: *const i8,
    /// Added to the outputs.
    pub(super) zero_point: i32,
    /// Least output.
    pub(super) low: i32,
    /// Greatest output.
    pub(super) high: i32,
}

/// A sum of two tensors of bytes ([`super::add_s8_linear`]).
#[repr(C)]
pub(super) struct AddS8LinearArgs {
    /// The first operand.
    pub(super) a: *const i8,
    /// The second one.
    pub(super) b: *const i8,
    /// The output.
    pub(super) out: *mut i8,
    /// Elements, at least one.
    pub(super) count: usize,
    /// Their factors over 2^8.
    pub(super) high: [i32; 2],
    /// Remainders of the factors over 2^8, 0 to 255.
    pub(super) low: [i32; 2],
    /// Added to the products.
    pub(super) offset: i32,
}
