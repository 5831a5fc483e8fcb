//! Convolution: every output pixel is a row of a matrix product ([`super::gemm`]).
//!
//! What differs is where the rows are:
//!
//! - [`Path::Pixels`]: 1 x 1 without padding. The input itself is the matrix.
//! - [`Path::Strips`]: 16 input channels or more. The columns under several windows of an output row are copied once, each as its `kh`
//!   pixels in a column; a window is then `kw * kh * C` contiguous bytes, and the next one starts `stride` columns on. Weights are
//!   ordered `[kx][ky][c]`.
//! - [`Path::Windows`]: fewer input channels. Each window is copied whole; a row of it is a run of `kw * C` bytes, which at so few
//!   channels is a single vector for the usual first layers. Weights are ordered `[ky][kx][c]`.
//!
//! Scratch holds the copies: as many windows as fit [`SCRATCH`] bytes, at least two.

use super::args::{Copy, Windows};
use super::clip;
use super::gemm::{self, Matrix};
use super::loops::{copy, fill, windows_of_rows, windows_of_short_rows, windows_of_three_short_rows};
use crate::arena::Mem;
use crate::kernels::cells::{Dst, Src};
use crate::ops::conv2d::{Conv2dS8, Window2d};
use crate::ops::{Kernel, Needs};

/// Scratch bytes that are worth their memory: the calls of the product's loop are then below a tenth of it.
const SCRATCH: u32 = 1280;

/// int8, one group, no dilation. Packed weights of [`pack`]; the channel records are in them, and `channels` is the offset of the weights.
#[derive(Debug)]
pub struct S8;

/// Where a step's rows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// From the input.
    Pixels,
    /// From copied columns.
    Strips,
    /// From copied windows.
    Windows,
}

impl Path {
    /// The path for these shapes.
    pub fn of(window: &Window2d) -> Self {
        let inside = |axis: usize| {
            let last = (window.output.get(axis).copied().unwrap_or(0).max(1) - 1) as u32;
            last * u32::from(window.stride.get(axis).copied().unwrap_or(1))
                < u32::from(window.input.get(axis).copied().unwrap_or(0))
        };
        if window.kernel == [1, 1] && window.padding == [0, 0] && inside(0) && inside(1) {
            Path::Pixels
        } else if window.input[2] >= 16 {
            Path::Strips
        } else {
            Path::Windows
        }
    }
}

/// Whether this kernel computes the step; another one must where it does not.
pub fn supports(op: &Conv2dS8) -> bool {
    op.groups == 1 && op.window.dilation == [1, 1]
}

/// Packs OHWI weights and the channel records `{ bias, mantissa, shift }`; `dst` has the kernel's `needs(op).weights` bytes. `None` where
/// a slice is too short.
pub fn pack(op: &Conv2dS8, weights: &[i8], channels: &[[i32; 3]], dst: &mut [u8]) -> Option<()> {
    let [kh, kw] = op.window.kernel.map(usize::from);
    let c = usize::from(op.window.input[2]);
    let k = kh * kw * c;
    let columns_first = Path::of(&op.window) == Path::Strips;
    let channels = channels.get(..usize::from(op.window.output[2]))?;
    gemm::pack(
        k,
        op.input_zero_point,
        channels,
        |channel, i| {
            let at = match columns_first {
                true => (i / c % kh * kw + i / c / kh) * c + i % c,
                false => i,
            };
            weights.get(channel * k + at).copied()
        },
        dst,
    )
}

/// The least instructions of a step.
pub fn bound(op: &Conv2dS8, left_shifts: bool) -> u64 {
    let [h, w, c] = op.window.output.map(u64::from);
    let output = super::Output::new(op.output_zero_point, op.clamp, left_shifts);
    gemm::bound(u64::from(op.window.batch) * h * w, k(op), c, output.fast)
}

impl Kernel for S8 {
    type Op = Conv2dS8;

    fn needs(op: &Conv2dS8) -> Needs {
        if !supports(op) {
            // No arena is that large: load refuses the step.
            return Needs {
                scratch: u32::MAX,
                weights: u32::MAX,
            };
        }
        Needs {
            scratch: Copies::of(op, Path::of(&op.window)).bytes,
            weights: gemm::packed_bytes(u32::from(op.window.output[2]), k(op)),
        }
    }

    fn distance(op: &Conv2dS8, index: usize) -> Option<i64> {
        let lead = match Path::of(&op.window) {
            // The product writes less than two pixels ahead.
            Path::Pixels => 2 * u32::from(op.window.output[2]) - 1,
            // Windows are copied before their outputs are written.
            Path::Strips | Path::Windows => 0,
        };
        (index == 1).then(|| op.window.consumed_distance(1, lead))
    }

    fn run(op: &Conv2dS8, mem: &Mem<'_>) -> Option<()> {
        let path = Path::of(&op.window);
        let copies = Copies::of(op, path);
        let (k, channels) = (k(op), u32::from(op.window.output[2]));
        let image = Image {
            input: mem.src::<i8>(op.input, op.window.input_len()?)?,
            output: mem.dst::<i8>(op.output, op.window.output_len()?)?,
            scratch: match copies.bytes {
                0 => None,
                bytes => Some(mem.dst::<i8>(op.scratch, bytes)?),
            },
            matrix: Matrix::new(
                mem.weights::<u8>(op.weights, gemm::packed_bytes(channels, k))?,
                k as usize,
                channels as usize,
                op.output_zero_point,
                op.clamp,
            )?,
            op,
            copies,
        };
        match path {
            Path::Pixels => image.pixels(),
            Path::Strips => image.strips(),
            Path::Windows => image.windows(),
        }
    }
}

/// Elements under a window; saturates.
fn k(op: &Conv2dS8) -> u32 {
    let [kh, kw] = op.window.kernel.map(u32::from);
    (kh * kw).saturating_mul(u32::from(op.window.input[2]))
}

/// How scratch is used.
struct Copies {
    /// Windows copied at a time: even, unless there is one in all.
    windows: usize,
    /// Bytes from window to window.
    step: usize,
    /// Bytes of scratch.
    bytes: u32,
}

impl Copies {
    fn of(op: &Conv2dS8, path: Path) -> Self {
        let window = &op.window;
        let padded = gemm::padded(k(op));
        let [oh, ow, _] = window.output.map(u32::from);
        let (step, most) = match path {
            // Only for the last pixels, whose reads would pass the end of the input.
            Path::Pixels => {
                let copied = !usize::from(window.input[2]).is_multiple_of(gemm::BLOCK);
                return Self {
                    windows: 1,
                    step: padded as usize,
                    bytes: if copied { padded } else { 0 },
                };
            }
            Path::Strips => {
                let column = u32::from(window.kernel[0]).saturating_mul(u32::from(window.input[2]));
                (column.saturating_mul(u32::from(window.stride[1])), ow)
            }
            Path::Windows => (padded, (ow * oh).saturating_mul(u32::from(window.batch))),
        };
        // Strips overlap where the stride is below the kernel's width.
        let tail = padded.saturating_sub(step);
        let fit = SCRATCH.saturating_sub(tail).checked_div(step).unwrap_or(0);
        let windows = (fit.max(2) & !1).min(most);
        Self {
            windows: windows as usize,
            step: step as usize,
            // A last vector may be written up to 15 bytes beyond.
            bytes: windows
                .saturating_mul(step)
                .saturating_add(tail)
                .saturating_add(gemm::BLOCK as u32),
        }
    }
}

/// The operands of a step.
struct Image<'a> {
    op: &'a Conv2dS8,
    copies: Copies,
    input: Src<'a, i8>,
    output: Dst<'a, i8>,
    scratch: Option<Dst<'a, i8>>,
    matrix: Matrix<'a>,
}

impl Image<'_> {
    fn pixels(&self) -> Option<()> {
        let window = &self.op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let [oh, ow, oc] = window.output.map(usize::from);
        let [sh, sw] = window.stride.map(usize::from);
        let images = usize::from(window.batch);
        if [sh, sw] == [1, 1] && [ih, iw] == [oh, ow] {
            return self.run_of_pixels(0, c, images * oh * ow, 0);
        }
        for image in 0..images {
            for y in 0..oh {
                let from = (image * ih + y * sh) * iw * c;
                self.run_of_pixels(from, sw * c, ow, (image * oh + y) * ow * oc)?;
            }
        }
        Some(())
    }

    /// `count` pixels, `step` bytes apart from `from`, to outputs from `to`.
    fn run_of_pixels(&self, from: usize, step: usize, count: usize, to: usize) -> Option<()> {
        let c = usize::from(self.op.window.input[2]);
        let oc = usize::from(self.op.window.output[2]);
        let padded = c.next_multiple_of(gemm::BLOCK);
        let output = self.output.slice(to, count * oc)?;
        // Pixels that may be read to a whole block.
        let mut in_place = count;
        while in_place > 0 && self.input.slice(from, (in_place - 1) * step + padded).is_none() {
            in_place -= 1;
        }
        if in_place > 0 {
            let x = self.input.slice(from, (in_place - 1) * step + padded)?;
            // SAFETY: `x` and `output` hold the rows, padded.
            unsafe { self.matrix.multiply(x.as_ptr(), step, in_place, output.as_mut_ptr()) };
        }
        for pixel in in_place..count {
            let x = self.input.slice(from + pixel * step, c)?;
            let copied = self.scratch?.slice(0, padded)?;
            let out = output.slice(pixel * oc, oc)?;
            // SAFETY: `c` bytes of `x` go to at least as many of scratch, which is a padded row; `out` is one row.
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
                self.matrix
                    .multiply(copied.as_src().as_ptr(), padded, 1, out.as_mut_ptr());
            }
        }
        Some(())
    }

    /// The matrix product of `count` copied windows to outputs from pixel `to`.
    fn multiply_copies(&self, count: usize, to: usize) -> Option<()> {
        let oc = usize::from(self.op.window.output[2]);
        let out = self.output.slice(to * oc, count * oc)?;
        let x = self.scratch?.as_src();
        // SAFETY: scratch holds `count` padded windows `step` bytes apart (`Copies::of`); `out` has as many rows.
        unsafe {
            self.matrix
                .multiply(x.as_ptr(), self.copies.step, count, out.as_mut_ptr())
        };
        Some(())
    }

    fn strips(&self) -> Option<()> {
        let [oh, ow, _] = self.op.window.output.map(usize::from);
        for image in 0..usize::from(self.op.window.batch) {
            for y in 0..oh {
                let mut x = 0;
                while x < ow {
                    let count = (ow - x).min(self.copies.windows);
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
        let window = &self.op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let [kh, kw] = window.kernel.map(usize::from);
        let [sh, sw] = window.stride.map(usize::from);
        let [top, left] = window.padding.map(usize::from);
        let (row, column) = ((y * sh) as isize - top as isize, (x * sw) as isize - left as isize);
        let columns = (count - 1) * sw + kw;
        let (skip_rows, rows) = clip(row, kh, ih);
        let (skip, inside) = clip(column, columns, iw);
        let strip = self.scratch?.slice(0, columns * kh * c)?;
        if rows < kh || inside < columns {
            // SAFETY: all of `strip`.
            unsafe {
                fill(
                    strip.as_mut_ptr(),
                    i32::from(self.op.input_zero_point),
                    columns * kh * c,
                )
            };
        }
        if inside == 0 || rows == 0 {
            return Some(());
        }
        let from = ((image * ih + (row + skip_rows as isize) as usize) * iw + (column + skip as isize) as usize) * c;
        let src = self.input.slice(from, ((rows - 1) * iw + inside) * c)?;
        let to = (skip * kh + skip_rows) * c;
        let dst = strip.slice(to, ((inside - 1) * kh + rows) * c)?;
        // SAFETY: from each of `rows` rows `inside` pixels, to as many columns `kh` pixels apart.
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
        let window = &self.op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let [oh, ow, _] = window.output.map(usize::from);
        let [kh, kw] = window.kernel.map(usize::from);
        let [sh, sw] = window.stride.map(usize::from);
        let [top, left] = window.padding.map(usize::from);
        let (run, pitch) = (kw * c, iw * c);
        let last_read = (kh - 1) * pitch + run.next_multiple_of(gemm::BLOCK);
        // Output columns whose windows lie inside.
        let first = left.div_ceil(sw);
        let end = (iw + left).checked_sub(kw).map_or(0, |last| last / sw + 1).min(ow);
        let scratch = self.scratch?;
        let (mut copied, mut done) = (0, 0);
        for image in 0..usize::from(window.batch) {
            for y in 0..oh {
                let row = (y * sh) as isize - top as isize;
                let inside = row >= 0 && row as usize + kh <= ih;
                let from = |x: usize| (image * ih + row.max(0) as usize) * pitch + (x * sw - left) * c;
                // Whose last row may be read to a whole vector.
                let mut end = if inside { end } else { 0 };
                while end > first && from(end - 1) + last_read > self.input.len() {
                    end -= 1;
                }
                let mut x = 0;
                while x < ow {
                    let to = copied * self.copies.step;
                    if (first..end).contains(&x) {
                        let count = (end - x).min(self.copies.windows - copied);
                        let src = self.input.slice(from(x), (count - 1) * sw * c + last_read)?;
                        let dst = scratch.slice(to, count * self.copies.step + gemm::BLOCK)?;
                        let args = Windows {
                            src: src.as_ptr(),
                            row: pitch as u32,
                            step: (sw * c) as u32,
                            dst: dst.as_mut_ptr(),
                            run: run as u32,
                            stride: self.copies.step as u32,
                            rows: kh as u32,
                            count: count as u32,
                        };
                        // SAFETY: `src` and `dst` hold the windows and what is read and written beyond them.
                        unsafe {
                            match (run <= gemm::BLOCK, kh) {
                                (true, 3) => windows_of_three_short_rows(&args),
                                (true, _) => windows_of_short_rows(&args),
                                (false, _) => windows_of_rows(&args),
                            }
                        }
                        x += count;
                        copied += count;
                    } else {
                        self.clipped_window(image, row, x, scratch.slice(to, self.copies.step)?)?;
                        x += 1;
                        copied += 1;
                    }
                    if copied == self.copies.windows {
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
        let window = &self.op.window;
        let [ih, iw, c] = window.input.map(usize::from);
        let [kh, kw] = window.kernel.map(usize::from);
        let column = (x * usize::from(window.stride[1])) as isize - isize::from(window.padding[1]);
        let (run, pitch) = (kw * c, iw * c);
        let (skip_rows, rows) = clip(row, kh, ih);
        let (skip, inside) = clip(column, kw, iw);
        // SAFETY: all of `dst`.
        unsafe { fill(dst.as_mut_ptr(), i32::from(self.op.input_zero_point), dst.cells().len()) };
        if rows == 0 || inside == 0 {
            return Some(());
        }
        let from = (image * ih + (row + skip_rows as isize) as usize) * pitch + (column + skip as isize) as usize * c;
        let src = self.input.slice(from, (rows - 1) * pitch + inside * c)?;
        let dst = dst.slice(skip_rows * run + skip * c, (rows - 1) * run + inside * c)?;
        // SAFETY: `rows` pieces of `inside` pixels in both.
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
