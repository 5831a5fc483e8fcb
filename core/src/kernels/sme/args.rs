//! Arguments of the loop. `#[repr(C)]`; the assembly reads fields by `offset_of!`, the portable equivalent by name.

use core::mem::offset_of;

/// A convolution of windows in the input, pixel by pixel, row by row, image by image.
#[repr(C)]
pub(super) struct Convolution {
    /// The first byte of the first window, whether it lies inside or not.
    pub(super) window: *const i8,
    pub(super) weights: *const u8,
    /// Words of the channels, line by line.
    pub(super) table: *const i32,
    pub(super) out: *mut i8,
    /// Output channels.
    pub(super) channels: usize,
    /// Pixels of the output, at least one.
    pub(super) pixels: usize,
    /// Rows of a window, at least one.
    pub(super) rows: usize,
    /// Bytes of a row of a window, at least one.
    pub(super) run: usize,
    /// Bytes between rows of the input.
    pub(super) pitch: usize,
    /// Rows of the input.
    pub(super) height: usize,
    /// Pixels of a row of the output.
    pub(super) columns: usize,
    /// Bytes between windows of a row.
    pub(super) step: usize,
    /// The columns whose windows lie inside: from, to.
    pub(super) inside: [usize; 2],
    /// Bytes of padding before a row.
    pub(super) left: usize,
    /// The row of the input at which the first windows begin.
    pub(super) top: isize,
    /// Rows of the input between rows of the output.
    pub(super) stride: usize,
    /// Bytes from behind a row's last window to the next row's first one.
    pub(super) next_row: isize,
    /// The row of the input at which the row behind the last one would begin.
    pub(super) bottom: isize,
    /// Bytes from there to the next image's first window.
    pub(super) next_image: isize,
    /// Value of padding.
    pub(super) outside: i32,
    /// Added to the outputs.
    pub(super) zero_point: i32,
    /// Least output.
    pub(super) low: i32,
    /// Greatest output.
    pub(super) high: i32,
}

// Loaded in pairs.
consecutive!(Convolution: channels, pixels, rows, run, pitch);
consecutive!(Convolution: columns, step);
consecutive!(Convolution: stride, next_row, bottom, next_image);
const _: () = assert!(offset_of!(Convolution, zero_point) == offset_of!(Convolution, outside) + size_of::<i32>());
const _: () = assert!(offset_of!(Convolution, high) == offset_of!(Convolution, low) + size_of::<i32>());
