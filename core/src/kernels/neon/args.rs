//! Arguments of the loops: one struct each. `#[repr(C)]`; the assembly reads fields by `offset_of!`, the portable equivalents by name.
//!
//! # Safety of all loops
//! `args` points to arguments whose pointers are valid for what their fields describe, with constants in the layout of the kernel's `pack`.

use core::mem::offset_of;

/// A copy of `count` segments.
#[repr(C)]
pub(in crate::kernels) struct Copy {
    pub(in crate::kernels) src: *const i8,
    /// Bytes between segments.
    pub(in crate::kernels) src_step: usize,
    pub(in crate::kernels) dst: *mut i8,
    /// Bytes between segments.
    pub(in crate::kernels) dst_step: usize,
    /// Bytes of a segment, at least one.
    pub(in crate::kernels) bytes: usize,
    /// Segments, at least one.
    pub(in crate::kernels) count: usize,
}

/// Windows of one output row, copied to rows of a matrix. Sources are read, and copies written, to a multiple of 16 bytes for each row of a window.
#[repr(C)]
pub(in crate::kernels) struct Windows {
    pub(in crate::kernels) src: *const i8,
    /// Bytes between rows of the input.
    pub(in crate::kernels) row: usize,
    /// Bytes between windows of the input.
    pub(in crate::kernels) step: usize,
    pub(in crate::kernels) dst: *mut i8,
    /// Bytes of a row of a window, at least one.
    pub(in crate::kernels) run: usize,
    /// Bytes between copies.
    pub(in crate::kernels) stride: usize,
    /// Rows of a window, at least one.
    pub(in crate::kernels) rows: usize,
    /// Windows, at least one.
    pub(in crate::kernels) count: usize,
}

/// A run of pixels of a depthwise convolution ([`super::dwconv_s8`]).
#[repr(C)]
pub(in crate::kernels) struct Depthwise {
    /// Addresses of the first pixel's taps.
    pub(in crate::kernels) entries: *const *const i8,
    /// Taps, at least one.
    pub(in crate::kernels) taps: usize,
    pub(in crate::kernels) weights: *const u8,
    /// The first pixel of outputs.
    pub(in crate::kernels) out: *mut i8,
    /// Pixels, at least one.
    pub(in crate::kernels) pixels: usize,
    /// Bytes from a pixel's taps to the next one's.
    pub(in crate::kernels) step: usize,
    pub(in crate::kernels) channels: usize,
    /// Blocks of sixteen channels, from the first.
    pub(in crate::kernels) blocks: usize,
    /// Blocks of eight channels, at most two.
    pub(in crate::kernels) halves: usize,
    /// First channel of the first of them; the second's are the last eight.
    pub(in crate::kernels) first_half: usize,
    /// Added to the outputs.
    pub(in crate::kernels) zero_point: i32,
    /// Least output.
    pub(in crate::kernels) low: i32,
    /// Greatest output.
    pub(in crate::kernels) high: i32,
}

/// A product of rows of activations and packed weights ([`super::gemm_s8`]).
#[repr(C)]
pub(in crate::kernels) struct Product {
    /// The first row.
    pub(in crate::kernels) x: *const i8,
    /// Bytes between rows.
    pub(in crate::kernels) x_stride: usize,
    /// The first group.
    pub(in crate::kernels) weights: *const u8,
    /// The first row of outputs.
    pub(in crate::kernels) out: *mut i8,
    /// Bytes between rows of outputs.
    pub(in crate::kernels) out_stride: usize,
    /// Whole groups of sixteen output channels.
    pub(in crate::kernels) groups: usize,
    /// Channels of a last group, 0 where there is none.
    pub(in crate::kernels) rest: usize,
    /// Whole blocks of sixteen elements of a row.
    pub(in crate::kernels) blocks: usize,
    /// 1 where eight more elements follow.
    pub(in crate::kernels) half: usize,
    /// Tiles of rows, as many a tile as the loop takes.
    pub(in crate::kernels) tiles: usize,
    /// Added to the outputs.
    pub(in crate::kernels) zero_point: i32,
    /// Least output.
    pub(in crate::kernels) low: i32,
    /// Greatest output.
    pub(in crate::kernels) high: i32,
}

/// A product of rows of f32 and packed weights ([`super::conv2d_f32`]).
#[repr(C)]
pub(in crate::kernels) struct ProductF32 {
    /// The first row.
    pub(in crate::kernels) x: *const f32,
    /// Bytes between rows.
    pub(in crate::kernels) x_stride: usize,
    /// The first group.
    pub(in crate::kernels) weights: *const f32,
    /// Of all channels, as many as are in whole groups at least; null for none.
    pub(in crate::kernels) bias: *const f32,
    /// The first row of outputs.
    pub(in crate::kernels) out: *mut f32,
    /// Bytes between rows of outputs.
    pub(in crate::kernels) out_stride: usize,
    /// Added to the outputs, whose layout it has; null for none.
    pub(in crate::kernels) residual: *const f32,
    /// Whole groups of sixteen output channels.
    pub(in crate::kernels) groups: usize,
    /// Channels of a last group, 0 where there is none.
    pub(in crate::kernels) rest: usize,
    /// Whole blocks of four elements of a row.
    pub(in crate::kernels) quads: usize,
    /// Elements behind them.
    pub(in crate::kernels) odd: usize,
    /// Tiles of rows: of four, or of one, as the loop has them.
    pub(in crate::kernels) tiles: usize,
    /// Least and greatest output.
    pub(in crate::kernels) limits: [f32; 2],
    /// Sixteen biases of the last group.
    pub(in crate::kernels) last_bias: *const f32,
}

/// A run of pixels of a depthwise convolution of f32 ([`super::dwconv_f32`]).
#[repr(C)]
pub(in crate::kernels) struct DepthwiseF32 {
    /// Addresses of the first pixel's taps.
    pub(in crate::kernels) entries: *const *const i8,
    /// Taps, at least one.
    pub(in crate::kernels) taps: usize,
    /// `[taps][channels]`.
    pub(in crate::kernels) weights: *const f32,
    /// The first pixel of outputs.
    pub(in crate::kernels) out: *mut f32,
    /// Pixels, at least one.
    pub(in crate::kernels) pixels: usize,
    /// Bytes from a pixel's taps to the next one's.
    pub(in crate::kernels) step: usize,
    /// Bytes of a pixel.
    pub(in crate::kernels) bytes: usize,
    /// Blocks of sixteen channels, from the first.
    pub(in crate::kernels) blocks: usize,
    /// Blocks of four channels behind them; the last one's are the last four.
    pub(in crate::kernels) quads: usize,
    /// Null for none.
    pub(in crate::kernels) bias: *const f32,
    /// Added to the outputs, whose layout it has; null for none.
    pub(in crate::kernels) residual: *const f32,
    /// Least and greatest output.
    pub(in crate::kernels) limits: [f32; 2],
}

// Loaded in pairs.
consecutive!(Copy: src, src_step);
consecutive!(Copy: dst, dst_step);
consecutive!(Copy: bytes, count);
consecutive!(Windows: src, row);
consecutive!(Windows: step, dst);
consecutive!(Windows: run, stride);
consecutive!(Windows: rows, count);
consecutive!(Depthwise: entries, taps);
consecutive!(Depthwise: out, pixels);
consecutive!(Product: x, x_stride);
consecutive!(Product: out, out_stride);
consecutive!(Product: blocks, half);
consecutive!(ProductF32: x, x_stride);
consecutive!(ProductF32: weights, bias);
consecutive!(ProductF32: out, out_stride);
consecutive!(DepthwiseF32: entries, taps);
consecutive!(DepthwiseF32: out, pixels);
consecutive!(DepthwiseF32: bias, residual);
const _: () = assert!(offset_of!(Depthwise, low) == offset_of!(Depthwise, zero_point) + size_of::<i32>());
const _: () = assert!(offset_of!(Product, low) == offset_of!(Product, zero_point) + size_of::<i32>());
