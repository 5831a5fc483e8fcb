//! Depthwise convolutions pixel by pixel: where the taps of an output pixel lie, as a table of addresses in scratch. Those outside the input point at a pixel
//! of padding, so that borders need no loop of their own; the pixels of a row whose windows lie inside are one run, along which the addresses move.

use crate::ops::window::{Window2d, three, two};

/// Places along one axis whose windows, of `reach` positions, lie inside: from, to.
pub(in crate::kernels) fn inside(
    input: usize,
    output: usize,
    reach: usize,
    stride: usize,
    padding: usize,
) -> (usize, usize) {
    // Never 0, as load has checked and the compiler does not see.
    let stride = stride.max(1);
    let from = padding.div_ceil(stride).min(output);
    let to = (input + padding).checked_sub(reach).map_or(0, |last| last / stride + 1);
    (from, to.min(output).max(from))
}

/// Bytes of an address in the table, on any machine that packs or runs.
pub(in crate::kernels) const ADDRESS: u32 = 8;

/// Parameters and storage of an indirection table.
pub(in crate::kernels) struct Table {
    /// The input's first byte.
    pub(in crate::kernels) input: *const i8,
    /// A pixel of padding.
    pub(in crate::kernels) outside: *const i8,
    /// As many as taps.
    pub(in crate::kernels) entries: *mut *const i8,
    /// Bytes of an element.
    pub(in crate::kernels) element: usize,
}

impl Table {
    /// Fills the table in for every run of output pixels in order, and calls `run` with the run's first pixel and their number. Along a run, taps go on by
    /// the stride's pixels of the input, and all are inside, unless it is one pixel.
    ///
    /// # Safety
    /// The entries are writable, and the input is as large as the window says.
    pub(in crate::kernels) unsafe fn each_run(&self, window: &Window2d, mut run: impl FnMut(usize, usize)) {
        let [in_height, in_width, channels] = three::<_, usize>(window.input);
        let [height, width, _] = three::<_, usize>(window.output);
        let [rows, columns] = two::<_, usize>(window.kernel);
        let [row_stride, stride] = two::<_, usize>(window.stride);
        let [row_dilation, dilation] = two::<_, usize>(window.dilation);
        let [above, before] = two::<_, usize>(window.padding);
        let pixel = channels * self.element;
        let pitch = in_width * pixel;
        let (from, to) = inside(in_width, width, (columns - 1) * dilation + 1, stride, before);
        let (mut image, mut at) = (self.input, 0);
        for _ in 0..window.batch {
            for y in 0..height {
                let top = (y * row_stride) as isize - above as isize;
                let rows_inside = top >= 0 && top as usize + (rows - 1) * row_dilation < in_height;
                let mut x = 0;
                while x < width {
                    let left = (x * stride) as isize - before as isize;
                    let whole = rows_inside && x >= from && x < to;
                    let (mut entry, mut line) = (self.entries, top);
                    for _ in 0..rows {
                        let line_inside = (line as usize) < in_height;
                        let mut tap = image.wrapping_offset(line * pitch as isize + left * pixel as isize);
                        let mut column = left;
                        for _ in 0..columns {
                            let inside = whole || (line_inside && (column as usize) < in_width);
                            // SAFETY: the loops go over the window's taps, for each of which an entry is writable (fn docs).
                            unsafe { *entry = if inside { tap } else { self.outside } };
                            entry = entry.wrapping_add(1);
                            tap = tap.wrapping_add(dilation * pixel);
                            column += dilation as isize;
                        }
                        line += row_dilation as isize;
                    }
                    let pixels = if whole { to - x } else { 1 };
                    run(at, pixels);
                    x += pixels;
                    at += pixels;
                }
            }
            image = image.wrapping_add(in_height * pitch);
        }
    }
}
