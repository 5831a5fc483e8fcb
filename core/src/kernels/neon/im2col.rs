//! Sources of the rows of a convolution's matrix product. Every output pixel is a row; the paths differ in where the rows are:
//!
//! - [`Path::Pixels`]: 1 x 1 without padding. The input itself is the matrix.
//! - [`Path::Windows`]: each window is copied whole to scratch, a row of it at a time, which is a run of `kw * C` elements.
//!
//! Scratch holds as many windows as fit [`SCRATCH`] bytes, at least [`TILE`] of them. Nothing here depends on the type of the elements: sizes are bytes.

use super::args::{Copy, Windows};
use super::clip;
use super::loops::{copy, fill, windows};
use crate::cells::{Dst, Src};
use crate::kernels::primitives::dwconv_indirection::inside;
use crate::ops::window::Window2d;

/// Scratch bytes that are worth their memory: the calls of the product's loop are then below a tenth of it.
const SCRATCH: u32 = 1280;

/// Bytes of a vector.
const VECTOR: usize = 16;

/// Rows that a product takes at a time.
pub(in crate::kernels) const TILE: usize = 4;

/// Source of a step's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// From the input.
    Pixels,
    /// From copied windows.
    Windows,
}

/// Shapes of a convolution, and its way to the rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) struct Geometry {
    batch: usize,
    /// Rows, columns, bytes of a pixel.
    input: [usize; 3],
    /// Rows, columns, bytes of a pixel.
    output: [usize; 3],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    /// Bytes of what the product reads for a row of the matrix.
    padded: usize,
    path: Path,
    /// Windows copied at a time.
    windows: usize,
    /// Bytes of scratch.
    pub(in crate::kernels) scratch: u32,
}

impl Geometry {
    /// For elements of `element` bytes, and a product that reads rows in blocks of `block` bytes.
    pub(in crate::kernels) fn new(window: &Window2d, element: u32, block: u32) -> Self {
        let [ih, iw, c] = window.input.map(usize::from);
        let [oh, ow, oc] = window.output.map(usize::from);
        let [sh, sw] = window.stride.map(usize::from);
        let pixel = (c as u32).saturating_mul(element);
        let row = window.taps().saturating_mul(pixel);
        let padded = row.saturating_add(block - 1) / block * block;
        let inside = (oh.max(1) - 1) * sh < ih && (ow.max(1) - 1) * sw < iw;
        let pixels = window.kernel == [1, 1] && window.padding == [0, 0] && inside;
        let all = ((ow * oh) as u32).saturating_mul(window.batch.into());
        let most = SCRATCH.checked_div(padded).unwrap_or(0) / TILE as u32 * TILE as u32;
        let windows = most.max(TILE as u32).min(all);
        Self {
            batch: usize::from(window.batch),
            input: [ih, iw, pixel as usize],
            output: [oh, ow, (oc as u32).saturating_mul(element) as usize],
            kernel: window.kernel.map(usize::from),
            stride: [sh, sw],
            padding: window.padding.map(usize::from),
            padded: padded as usize,
            path: if pixels { Path::Pixels } else { Path::Windows },
            windows: windows as usize,
            scratch: match pixels {
                // Only for the last pixels, whose reads would pass the end of the input.
                true if padded > row => padded,
                true => 0,
                // The last vector of a window may be written up to 15 bytes beyond.
                false => windows.saturating_mul(padded).saturating_add(VECTOR as u32),
            },
        }
    }

    /// Least distance of the output below the input ([`crate::kernels::api::kernel::Kernel::distance`]).
    pub(in crate::kernels) fn distance(&self, window: &Window2d, element: u32) -> i64 {
        let lead = match self.path {
            // The first channels of a tile's last pixel are written before the last ones of its first pixel are computed.
            Path::Pixels => TILE as u32 * u32::from(window.output[2]) - 1,
            // Windows are copied before their outputs are written.
            Path::Windows => 0,
        };
        window.consumed_distance(element, lead)
    }
}

/// A product of rows and constants.
pub(in crate::kernels) trait Product {
    /// Multiplies `rows` rows from `x`, `stride` bytes apart, to the output pixels from `pixel`, which lie at `out`. Rows are done in order, [`TILE`] at a
    /// time.
    ///
    /// # Safety
    /// Every row is valid for reads of its bytes rounded up to whole blocks; `out` is valid for writes of `rows` pixels.
    unsafe fn multiply(&self, x: *const i8, stride: usize, rows: usize, out: *mut i8, pixel: usize);
}

/// A convolution under way.
pub(in crate::kernels) struct Rows<'a, P> {
    pub(in crate::kernels) geometry: &'a Geometry,
    /// All bytes of the input.
    pub(in crate::kernels) input: Src<'a, i8>,
    /// All bytes of the output.
    pub(in crate::kernels) output: Dst<'a, i8>,
    /// As many bytes as the geometry says.
    pub(in crate::kernels) scratch: Option<Dst<'a, i8>>,
    /// Every byte of the padding.
    pub(in crate::kernels) padding: i8,
    pub(in crate::kernels) product: P,
}

impl<P: Product> Rows<'_, P> {
    /// All outputs. `None` where an operand is too small.
    pub(in crate::kernels) fn run(&self) -> Option<()> {
        match self.geometry.path {
            Path::Pixels => self.pixels(),
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
        let padded = self.geometry.padded;
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
                    bytes: c,
                    count: 1,
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
        let x = self.scratch?.slice(0, count * self.geometry.padded)?.as_src();
        // SAFETY: `x` was sliced to `count` windows of `padded` bytes, and `out` to `count` rows of `oc` elements.
        unsafe {
            self.product
                .multiply(x.as_ptr(), self.geometry.padded, count, out.as_mut_ptr(), to)
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
        let (run, pitch, step) = (kw * c, iw * c, geometry.padded);
        let last_read = (kh - 1) * pitch + run.next_multiple_of(VECTOR);
        let (first, end) = inside(iw, ow, kw, sw, left);
        let scratch = self.scratch?;
        let (mut copied, mut done) = (0, 0);
        for image in 0..geometry.batch {
            for y in 0..oh {
                let row = (y * sh) as isize - top as isize;
                let rows_inside = row >= 0 && row as usize + kh <= ih;
                let from = |x: usize| (image * ih + row.max(0) as usize) * pitch + (x * sw - left) * c;
                // The last row may be read to a whole vector.
                let mut end = if rows_inside { end } else { 0 };
                while end > first && from(end - 1) + last_read > self.input.len() {
                    end -= 1;
                }
                let mut x = 0;
                while x < ow {
                    let to = copied * step;
                    if (first..end).contains(&x) {
                        let count = (end - x).min(geometry.windows - copied);
                        let src = self.input.slice(from(x), (count - 1) * sw * c + last_read)?;
                        let dst = scratch.slice(to, count * step + VECTOR)?;
                        // SAFETY: `src` was sliced to end with the last window (`last_read`), `dst` to `count` windows and a vector written beyond.
                        unsafe {
                            windows(&Windows {
                                src: src.as_ptr(),
                                row: pitch,
                                step: sw * c,
                                dst: dst.as_mut_ptr(),
                                run,
                                stride: step,
                                rows: kh,
                                count,
                            })
                        };
                        x += count;
                        copied += count;
                    } else {
                        self.clipped_window(image, row, x, scratch.slice(to, step)?)?;
                        x += 1;
                        copied += 1;
                    }
                    if copied == geometry.windows {
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
                src_step: pitch,
                dst: dst.as_mut_ptr(),
                dst_step: run,
                bytes: inside * c,
                count: rows,
            })
        };
        Some(())
    }
}
