//! Sources of the rows of a convolution's matrix product. Every output pixel is a row; the paths differ in where the rows are:
//!
//! - [`Path::Pixels`]: 1 x 1 without padding. The input itself is the matrix.
//! - [`Path::Strips`]: pixels of 16 bytes or more. The columns under several windows of an output row are copied once, each as its `kh`
//!   pixels in a column; a window is then `kw * kh * C` contiguous elements, and the next one starts `stride` columns on. Weights are
//!   ordered `[kx][ky][c]`.
//! - [`Path::Windows`]: smaller pixels. Each window is copied whole; a row of it is a run of `kw * C` elements, which at so few
//!   channels is a single vector for the usual first layers. Weights are ordered `[ky][kx][c]`. Dilated windows of any pixels are
//!   copied tap by tap.
//!
//! Scratch holds the copies: as many windows as fit [`SCRATCH`] bytes, at least two. Nothing here depends on the type of the
//! elements: sizes are bytes.

use super::args::{Clipped, Copy, Windows};
use super::clip;
use super::geometry::{Geometry, Path, VECTOR};
use super::loops::{clipped_windows, copy, fill, windows_of_rows, windows_of_short_rows, windows_of_three_short_rows};
use crate::cells::{Dst, Src};

/// A product of rows and constants.
pub(super) trait Product {
    /// Multiplies `rows` rows from `x`, `stride` bytes apart, to the output pixels from `pixel`, which lie at `out`.
    ///
    /// # Safety
    /// Every row is valid for reads of its bytes rounded up to whole blocks; `out` is valid for writes of `rows` pixels.
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, pixel: usize);
}

/// A convolution under way.
pub(super) struct Rows<'a, P> {
    pub(super) geometry: &'a Geometry,
    /// All bytes of the input.
    pub(super) input: Src<'a, i8>,
    /// All bytes of the output.
    pub(super) output: Dst<'a, i8>,
    /// As many bytes as the geometry says.
    pub(super) scratch: Option<Dst<'a, i8>>,
    /// Every byte of the padding.
    pub(super) padding: i8,
    pub(super) product: P,
}

/// A single row as the product reads it, `padded` bytes in whole blocks: the input's own, or a copy in scratch where it ends within a block.
#[inline(always)]
pub(super) fn whole_blocks<'m>(
    row: Src<'m, i8>,
    padded: u32,
    scratch: impl FnOnce() -> Option<Dst<'m, i8>>,
) -> Option<*const i8> {
    if row.len() == padded as usize {
        return Some(row.as_ptr());
    }
    let copied = scratch()?.slice(0, padded as usize)?;
    // SAFETY: `copied` was sliced to `padded` bytes, at least the row's own.
    unsafe {
        copy(&Copy {
            src: row.as_ptr(),
            src_step: 0,
            dst: copied.as_mut_ptr(),
            dst_step: 0,
            bytes: row.len() as u32,
            count: 1,
            rows: 1,
            src_row: 0,
            dst_row: 0,
        });
    }
    Some(copied.as_src().as_ptr())
}

impl<P: Product> Rows<'_, P> {
    /// All outputs. `None` where an operand is too small.
    pub(super) fn run(&self) -> Option<()> {
        match self.geometry.path {
            Path::Pixels => self.pixels(),
            Path::Strips => self.strips(),
            Path::Windows => self.windows(),
        }
    }

    fn pixels(&self) -> Option<()> {
        let geometry = self.geometry;
        let [ih, iw, c] = geometry.input;
        let [oh, ow, _] = geometry.output;
        let [sh, sw] = geometry.stride;
        let images = geometry.batch;
        if [sh, sw] == [1, 1] && [ih, iw] == [oh, ow] {
            return self.run_of_pixels(0, c, images * oh * ow, 0);
        }
        for image in 0..images {
            for y in 0..oh {
                let from = (image * ih + y * sh) * iw * c;
                self.run_of_pixels(from, sw * c, ow, (image * oh + y) * ow)?;
            }
        }
        Some(())
    }

    /// `count` pixels, `step` bytes apart from byte `from`, to output pixels from `to`.
    fn run_of_pixels(&self, from: usize, step: usize, count: usize, to: usize) -> Option<()> {
        let ([_, _, c], [_, _, oc]) = (self.geometry.input, self.geometry.output);
        let padded = self.geometry.padded as usize;
        let output = self.output.slice(to * oc, count * oc)?;
        // Pixels that may be read to a whole block.
        let mut in_place = count;
        while in_place > 0 && self.input.slice(from, (in_place - 1) * step + padded).is_none() {
            in_place -= 1;
        }
        if in_place > 0 {
            let x = self.input.slice(from, (in_place - 1) * step + padded)?;
            // SAFETY: `x` was sliced to hold `in_place` rows `step` bytes apart, the last one padded too, and `output` has a row of `oc` elements for each.
            unsafe {
                self.product
                    .multiply(x.as_ptr(), step, in_place, output.as_mut_ptr(), to)
            };
        }
        for pixel in in_place..count {
            let x = self.input.slice(from + pixel * step, c)?;
            let copied = self.scratch?.slice(0, padded)?;
            let out = output.slice(pixel * oc, oc)?;
            // SAFETY: `x` was sliced to `c` bytes, which go to `padded >= c` bytes of scratch; the product reads that row and writes `out`'s `oc` elements.
            unsafe {
                copy(&Copy {
                    src: x.as_ptr(),
                    src_step: 0,
                    dst: copied.as_mut_ptr(),
                    dst_step: 0,
                    bytes: c as u32,
                    count: 1,
                    rows: 1,
                    src_row: 0,
                    dst_row: 0,
                });
                self.product
                    .multiply(copied.as_src().as_ptr(), padded, 1, out.as_mut_ptr(), to + pixel);
            }
        }
        Some(())
    }

    /// The product of `count` copied windows to outputs from pixel `to`.
    fn multiply_copies(&self, count: usize, to: usize) -> Option<()> {
        let [_, _, oc] = self.geometry.output;
        let out = self.output.slice(to * oc, count * oc)?;
        let x = self.scratch?.as_src();
        // SAFETY: scratch holds `count` padded windows `step` bytes apart (`plan_copies`); `out` has as many rows.
        unsafe {
            self.product
                .multiply(x.as_ptr(), self.geometry.step, count, out.as_mut_ptr(), to)
        };
        Some(())
    }

    fn strips(&self) -> Option<()> {
        let [oh, ow, _] = self.geometry.output;
        for image in 0..self.geometry.batch {
            for y in 0..oh {
                let mut x = 0;
                while x < ow {
                    let count = (ow - x).min(self.geometry.windows);
                    self.strip(image, y, x, count)?;
                    self.multiply_copies(count, (image * oh + y) * ow + x)?;
                    x += count;
                }
            }
        }
        Some(())
    }

    /// Copies the columns under `count` windows from column `x` of output row `y`.
    fn strip(&self, image: usize, y: usize, x: usize, count: usize) -> Option<()> {
        let geometry = self.geometry;
        let [ih, iw, c] = geometry.input;
        let [kh, kw] = geometry.kernel;
        let [sh, sw] = geometry.stride;
        let [top, left] = geometry.padding;
        let (row, column) = ((y * sh) as isize - top as isize, (x * sw) as isize - left as isize);
        let columns = (count - 1) * sw + kw;
        let (skip_rows, rows) = clip(row, kh, ih);
        let (skip, inside) = clip(column, columns, iw);
        let strip = self.scratch?.slice(0, columns * kh * c)?;
        if rows < kh || inside < columns {
            // SAFETY: `strip` was sliced to `columns * kh * c` bytes.
            unsafe { fill(strip.as_mut_ptr(), i32::from(self.padding), columns * kh * c) };
        }
        if inside == 0 || rows == 0 {
            return Some(());
        }
        let from = ((image * ih + (row + skip_rows as isize) as usize) * iw + (column + skip as isize) as usize) * c;
        let src = self.input.slice(from, ((rows - 1) * iw + inside) * c)?;
        let to = (skip * kh + skip_rows) * c;
        let dst = strip.slice(to, ((inside - 1) * kh + rows) * c)?;
        // SAFETY: `src` was sliced to `rows` rows of `inside` pixels, `dst` to as many columns `kh` pixels apart.
        unsafe {
            copy(&Copy {
                src: src.as_ptr(),
                src_step: c as u32,
                dst: dst.as_mut_ptr(),
                dst_step: (kh * c) as u32,
                bytes: c as u32,
                count: inside as u32,
                rows: rows as u32,
                src_row: (iw * c) as u32,
                dst_row: c as u32,
            })
        };
        Some(())
    }

    fn windows(&self) -> Option<()> {
        let geometry = self.geometry;
        let [ih, iw, c] = geometry.input;
        let [oh, ow, _] = geometry.output;
        let [kh, kw] = geometry.kernel;
        let [sh, sw] = geometry.stride;
        let [top, left] = geometry.padding;
        let (run, pitch) = (kw * c, iw * c);
        let last_read = (kh - 1) * pitch + run.next_multiple_of(VECTOR);
        // Output columns whose windows lie inside.
        // The stride is never 0, as load has checked and the compiler does not see.
        let first = left.div_ceil(sw.max(1));
        let whole = (iw + left)
            .checked_sub(kw)
            .map_or(0, |last| last / sw.max(1) + 1)
            .min(ow);
        let scratch = self.scratch?;
        let dense = geometry.dilation == [1, 1];
        let (mut copied, mut done) = (0, 0);
        for image in 0..geometry.batch {
            for y in 0..oh {
                let row = (y * sh) as isize - top as isize;
                let inside = row >= 0 && row as usize + kh <= ih;
                let from = |x: usize| (image * ih + row.max(0) as usize) * pitch + (x * sw - left) * c;
                // The last row may be read to a whole vector.
                let mut end = if inside { whole } else { 0 };
                while end > first && from(end - 1) + last_read > self.input.len() {
                    end -= 1;
                }
                let mut x = 0;
                while x < ow {
                    let to = copied * self.geometry.step;
                    if !dense {
                        let count = (ow - x).min(geometry.windows - copied);
                        let dst = scratch.slice(to, count * geometry.step)?;
                        self.dilated_windows(image, row, x, count, dst)?;
                        x += count;
                        copied += count;
                    } else if (first..end).contains(&x) {
                        let count = (end - x).min(self.geometry.windows - copied);
                        let src = self.input.slice(from(x), (count - 1) * sw * c + last_read)?;
                        let dst = scratch.slice(to, count * self.geometry.step + VECTOR)?;
                        let args = Windows {
                            src: src.as_ptr(),
                            row: pitch as u32,
                            step: (sw * c) as u32,
                            dst: dst.as_mut_ptr(),
                            run: run as u32,
                            stride: self.geometry.step as u32,
                            rows: kh as u32,
                            count: count as u32,
                        };
                        // SAFETY: `src` was sliced to end with the last window (`last_read`), `dst` to `count` windows and a vector written beyond.
                        unsafe {
                            match (run <= VECTOR, kh) {
                                (true, 3) => windows_of_three_short_rows(&args),
                                (true, _) => windows_of_short_rows(&args),
                                (false, _) => windows_of_rows(&args),
                            }
                        }
                        x += count;
                        copied += count;
                    } else if run <= VECTOR {
                        // Together while all columns lie inside.
                        let count = if (first..whole).contains(&x) { whole - x } else { 1 };
                        let count = count.min(self.geometry.windows - copied);
                        let dst = scratch.slice(to, count * self.geometry.step + VECTOR)?;
                        self.clipped_short_windows(image, row, x, count, dst);
                        x += count;
                        copied += count;
                    } else {
                        self.clipped_window(image, row, x, scratch.slice(to, self.geometry.step)?)?;
                        x += 1;
                        copied += 1;
                    }
                    if copied == self.geometry.windows {
                        self.multiply_copies(copied, done)?;
                        done += copied;
                        copied = 0;
                    }
                }
            }
        }
        match copied {
            0 => Some(()),
            _ => self.multiply_copies(copied, done),
        }
    }

    /// [`Rows::clipped_window`] of `count` windows whose rows are short; of several, all have the same columns inside.
    fn clipped_short_windows(&self, image: usize, row: isize, x: usize, count: usize, dst: Dst<'_, i8>) {
        let geometry = self.geometry;
        let [ih, iw, c] = geometry.input;
        let [kh, kw] = geometry.kernel;
        let column = (x * geometry.stride[1]) as isize - geometry.padding[1] as isize;
        let (above, rows) = clip(row, kh, ih);
        let (skip, inside) = clip(column, kw, iw);
        let from = (row + above as isize) * (iw * c) as isize + column * c as isize;
        let image = self.input.as_ptr().wrapping_add(image * ih * iw * c);
        let args = Clipped {
            src: image.wrapping_offset(from),
            row: (iw * c) as u32,
            dst: dst.as_mut_ptr(),
            run: (kw * c) as u32,
            above: above as u32,
            rows: rows as u32,
            below: (kh - above - rows) as u32,
            mask: ((1 << (inside * c)) - 1) << (skip * c),
            padding: i32::from(self.padding),
            step: (geometry.stride[1] * c) as u32,
            stride: geometry.step as u32,
            count: count as u32,
        };
        // SAFETY: the bytes of the mask lie in the image; `dst` holds the windows and what is written beyond them.
        unsafe { clipped_windows(&args) };
    }

    /// Copies `count` dilated windows from input row `row` and output column `x`: for each column of taps those of all windows. Taps outside are
    /// the zero point.
    fn dilated_windows(&self, image: usize, row: isize, x: usize, count: usize, dst: Dst<'_, i8>) -> Option<()> {
        let geometry = self.geometry;
        let [ih, iw, c] = geometry.input;
        let [kh, kw] = geometry.kernel;
        let [down, across] = geometry.dilation;
        let (step, by) = (geometry.step, geometry.stride[1]);
        let left = (x * by) as isize - geometry.padding[1] as isize;
        let right = left + ((count - 1) * by + (kw - 1) * across) as isize;
        let (skip_rows, rows) = clip_taps(row, kh, down, ih);
        if rows < kh || left < 0 || right >= iw as isize {
            // SAFETY: pointer and length are those of `dst`.
            unsafe { fill(dst.as_mut_ptr(), i32::from(self.padding), dst.cells().len()) };
        }
        if rows == 0 {
            return Some(());
        }
        let (run, pitch) = (kw * c, iw * c);
        let first = image * ih + (row + (skip_rows * down) as isize) as usize;
        for tap in 0..kw {
            let column = left + (tap * across) as isize;
            let (skip, inside) = clip_taps(column, count, by, iw);
            if inside == 0 {
                continue;
            }
            let from = first * pitch + (column + (skip * by) as isize) as usize * c;
            let src = self
                .input
                .slice(from, (rows - 1) * down * pitch + (inside - 1) * by * c + c)?;
            let to = skip * step + skip_rows * run + tap * c;
            let dst = dst.slice(to, (rows - 1) * run + (inside - 1) * step + c)?;
            // SAFETY: `src` was sliced to `rows` rows of `inside` pixels, `dst` to as many windows `step` bytes apart.
            unsafe {
                copy(&Copy {
                    src: src.as_ptr(),
                    src_step: (by * c) as u32,
                    dst: dst.as_mut_ptr(),
                    dst_step: step as u32,
                    bytes: c as u32,
                    count: inside as u32,
                    rows: rows as u32,
                    src_row: (down * pitch) as u32,
                    dst_row: run as u32,
                })
            };
        }
        Some(())
    }

    /// Copies what of the window at input row `row` and output column `x` lies inside; the rest is the zero point.
    fn clipped_window(&self, image: usize, row: isize, x: usize, dst: Dst<'_, i8>) -> Option<()> {
        let geometry = self.geometry;
        let [ih, iw, c] = geometry.input;
        let [kh, kw] = geometry.kernel;
        let column = (x * geometry.stride[1]) as isize - geometry.padding[1] as isize;
        let (run, pitch) = (kw * c, iw * c);
        let (skip_rows, rows) = clip(row, kh, ih);
        let (skip, inside) = clip(column, kw, iw);
        // SAFETY: pointer and length are those of `dst`.
        unsafe { fill(dst.as_mut_ptr(), i32::from(self.padding), dst.cells().len()) };
        if rows == 0 || inside == 0 {
            return Some(());
        }
        let from = (image * ih + (row + skip_rows as isize) as usize) * pitch + (column + skip as isize) as usize * c;
        let src = self.input.slice(from, (rows - 1) * pitch + inside * c)?;
        let dst = dst.slice(skip_rows * run + skip * c, (rows - 1) * run + inside * c)?;
        // SAFETY: `src` and `dst` were sliced to `rows` segments of `inside * c` bytes, `pitch` and `run` bytes apart.
        unsafe {
            copy(&Copy {
                src: src.as_ptr(),
                src_step: pitch as u32,
                dst: dst.as_mut_ptr(),
                dst_step: run as u32,
                bytes: (inside * c) as u32,
                count: rows as u32,
                rows: 1,
                src_row: 0,
                dst_row: 0,
            })
        };
        Some(())
    }
}

/// Of `count` positions from `start`, `step` apart, those within `0..extent`: how many to skip, and how many then.
fn clip_taps(start: isize, count: usize, step: usize, extent: usize) -> (usize, usize) {
    // A step is never 0, as load has checked and the compiler does not see.
    let before = |distance: usize| distance.div_ceil(step.max(1)).min(count);
    let skip = before(start.min(0).unsigned_abs());
    let room = (extent as isize).saturating_sub(start).max(0) as usize;
    (skip, before(room).saturating_sub(skip))
}
