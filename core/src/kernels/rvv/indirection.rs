//! Convolutions by runs of pixels: where the taps of an output pixel lie, as a table of addresses in scratch, so that no window is copied. Along a row, the
//! pixels whose windows lie inside from left to right are one run, along which the addresses move; a tap above or below the input points at padding and stays.

use crate::kernels::primitives::dwconv_indirection::inside;
use crate::ops::window::{Window2d, three, two};

/// Parameters and storage of an indirection table.
pub(super) struct Table {
    /// The input's first byte.
    pub(super) input: *const i8,
    /// As many bytes of padding as a tap has.
    pub(super) outside: *const i8,
    /// As many as taps.
    pub(super) entries: *mut *const i8,
}

/// Pixels that have the table's taps.
pub(super) struct Pixels {
    /// The first one.
    pub(super) first: usize,
    /// At least one.
    pub(super) count: usize,
    /// Taps in the table.
    pub(super) taps: usize,
    /// Pixels of the input at each of them.
    pub(super) together: usize,
}

/// Whether the neighbours in a row of a window are neighbours in the input as well.
pub(super) fn rows_contiguous(window: &Window2d) -> bool {
    window.dilation[1] == 1
}

/// Whether the input's pixels are the windows, in order.
pub(super) fn plain(window: &Window2d) -> bool {
    (window.kernel, window.padding, window.stride) == ([1, 1], [0, 0], [1, 1])
        && window.input[..2] == window.output[..2]
}

impl Table {
    /// Fills the table in for every run of output pixels in order, and calls `run`. `join`: of a run of more than one pixel, the neighbours in a row of the
    /// window are one tap.
    ///
    /// # Safety
    /// The entries are writable, and the input is as large as the window says.
    pub(super) unsafe fn each_run(&self, window: &Window2d, join: bool, mut run: impl FnMut(Pixels)) {
        let [in_height, in_width, channels] = three::<_, usize>(window.input);
        let [height, width, _] = three::<_, usize>(window.output);
        let [rows, columns] = two::<_, usize>(window.kernel);
        let [row_stride, stride] = two::<_, usize>(window.stride);
        let [row_dilation, dilation] = two::<_, usize>(window.dilation);
        let [above, before] = two::<_, usize>(window.padding);
        let pitch = in_width * channels;
        let (from, to) = inside(in_width, width, (columns - 1) * dilation + 1, stride, before);
        let (mut image, mut at) = (self.input, 0);
        for _ in 0..window.batch {
            for y in 0..height {
                let top = (y * row_stride) as isize - above as isize;
                let mut x = 0;
                while x < width {
                    let left = (x * stride) as isize - before as isize;
                    let whole = x >= from && x < to;
                    let together = if whole && join { columns } else { 1 };
                    let apart = if whole && join { 1 } else { columns };
                    let (mut entry, mut line) = (self.entries, top);
                    for _ in 0..rows {
                        let line_inside = (line as usize) < in_height;
                        let mut tap = image.wrapping_offset(line * pitch as isize + left * channels as isize);
                        let mut column = left;
                        for _ in 0..apart {
                            let inside = line_inside && (whole || (column as usize) < in_width);
                            // SAFETY: the loops go over the window's taps, for each of which an entry is writable (fn docs).
                            unsafe { *entry = if inside { tap } else { self.outside } };
                            entry = entry.wrapping_add(1);
                            tap = tap.wrapping_add(dilation * channels);
                            column += dilation as isize;
                        }
                        line += row_dilation as isize;
                    }
                    let count = if whole { to - x } else { 1 };
                    run(Pixels {
                        first: at,
                        count,
                        taps: rows * apart,
                        together,
                    });
                    x += count;
                    at += count;
                }
            }
            image = image.wrapping_add(in_height * pitch);
        }
    }
}
