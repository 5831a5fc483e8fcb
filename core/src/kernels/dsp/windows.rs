//! Windows of a convolution: their bytes, their pixels, and what of them lies inside the input.

use core::ops::Range;

use crate::ops::packed_conv2d::PackedConv2dS8;
use crate::ops::window::{Window2d, three, two};

/// The runs of one window.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) runs: u32,
    /// Bytes in a run.
    pub(super) len: u32,
}

impl Layout {
    pub(super) fn of(window: &Window2d) -> Self {
        let [rows, columns] = two::<_, u32>(window.kernel);
        let channels = u32::from(window.input[2]);
        // Within 32 bits by `check`; before it, saturate.
        match window.dilation[1] {
            1 => Self {
                runs: rows,
                len: columns.saturating_mul(channels),
            },
            _ => Self {
                runs: rows.saturating_mul(columns),
                len: channels,
            },
        }
    }

    pub(super) fn words(&self) -> u32 {
        self.len / 4
    }

    pub(super) fn tail(&self) -> u32 {
        self.len % 4
    }

    pub(super) fn pairs(&self) -> u32 {
        let body = self.runs.saturating_mul(self.words() * 2);
        body.saturating_add((self.runs * self.tail()).div_ceil(2))
            .min(u32::MAX / 64)
    }

    /// The activations of pair `at`, as offsets into the runs laid end to end.
    pub(super) fn pair(&self, at: u32) -> (u32, Option<u32>) {
        // At least one: a division by what may be none is a panic.
        let [words, tail] = [self.words().max(1), self.tail().max(1)];
        let body = self.runs * self.words() * 2;
        if at < body {
            let (run, word) = (at / 2 / words, at / 2 % words);
            let first = run * self.len + word * 4 + at % 2;
            return (first, Some(first + 2));
        }
        let byte = |t: u32| t / tail * self.len + self.words() * 4 + t % tail;
        let t = (at - body) * 2;
        (byte(t), (t + 1 < self.runs * self.tail()).then(|| byte(t + 1)))
    }
}

/// Bytes between the staged output pixels of an odd number of channels, which the loops write with one more; else 0.
pub(super) fn staged_stride(channels: u32) -> u32 {
    if channels % 2 == 1 { channels + 1 } else { 0 }
}

/// Pixels of a block: four, or one where an image has fewer.
pub(super) fn lanes(window: &Window2d) -> u32 {
    let [height, width, _] = three::<_, u32>(window.output);
    let pixels = pointwise_pixels(window).unwrap_or(height * width);
    if pixels < 4 { 1 } else { 4 }
}

/// The pixels of all images, where a pixel of the output needs its pixel of the input alone.
pub(super) fn pointwise_pixels(window: &Window2d) -> Option<u32> {
    let unpadded = window.input[..2] == window.output[..2] && window.padding == [0, 0];
    (window.kernel == [1, 1] && window.stride == [1, 1] && unpadded)
        .then(|| u32::from(window.batch) * u32::from(window.input[0]) * u32::from(window.input[1]))
}

/// Pixels at an image's start that go one at a time, so that the blocks of each row begin where windows begin to lie inside: as many of a row's pixels as
/// can be are then in blocks without a border. Only where all rows gain by it, and more than what single pixels cost. `inside`: the columns whose windows lie
/// inside.
#[inline(always)]
pub fn pixels_alone([height, width, channels]: [usize; 3], (from, to): (usize, usize)) -> usize {
    let blocks = |from: usize| to.saturating_sub(from) / 4;
    let gains = width.is_multiple_of(4) && from < 4 && blocks(from) > blocks(from.next_multiple_of(4));
    if gains && 6 * height > channels { from } else { 0 }
}

/// Geometry of a window, for the pixel loop.
pub(super) struct Geometry {
    pub(super) images: usize,
    pub(super) input: [usize; 3],
    pub(super) output: [usize; 3],
    pub(super) kernel: [usize; 2],
    pub(super) stride: [usize; 2],
    pub(super) dilation: [usize; 2],
    pub(super) padding: [usize; 2],
    pub(super) runs: usize,
    pub(super) words: usize,
    pub(super) tail: usize,
    /// Bytes of a row of the input.
    pub(super) row: usize,
    /// Columns of the output whose windows lie inside the input's columns: from, to.
    pub(super) inside: (usize, usize),
    pub(super) zero_point: i8,
    /// Of a window.
    pub(super) pairs: usize,
}

impl Geometry {
    #[inline(never)]
    pub(super) fn of(op: &PackedConv2dS8) -> Self {
        Self::known(op)
    }

    /// As [`Geometry::of`], where the step is a constant: so is what follows from it.
    #[inline(always)]
    pub(super) fn known(op: &PackedConv2dS8) -> Self {
        let window = &op.window;
        let layout = Layout::of(window);
        let (mut input, mut output) = (three::<_, usize>(window.input), three::<_, usize>(window.output));
        let mut images = usize::from(window.batch);
        if let Some(pixels) = pointwise_pixels(window) {
            // One long row: blocks then cross rows and images.
            images = 1;
            input = [1, pixels as usize, input[2]];
            output = [1, pixels as usize, output[2]];
        }
        let kernel = two::<_, usize>(window.kernel);
        let stride = two::<_, usize>(window.stride);
        let dilation = two::<_, usize>(window.dilation);
        let padding = two::<_, usize>(window.padding);
        Self {
            images,
            input,
            output,
            kernel,
            stride,
            dilation,
            padding,
            runs: layout.runs as usize,
            words: layout.words() as usize,
            tail: layout.tail() as usize,
            row: input[1] * input[2],
            inside: super::inside(input[1], output[1], kernel[1], stride[1], dilation[1], padding[1]),
            zero_point: op.input_zero_point,
            pairs: layout.pairs() as usize,
        }
    }

    /// [`lanes`].
    #[inline(always)]
    pub(super) fn lanes(&self) -> usize {
        if self.output[0] * self.output[1] < 4 { 1 } else { 4 }
    }

    /// [`staged_stride`].
    #[inline(always)]
    pub(super) fn staged(&self) -> usize {
        staged_stride(self.output[2] as u32) as usize
    }

    /// The rows of a window from row `top` of the input on that lie inside.
    #[inline(never)]
    pub(super) fn rows_inside(&self, top: isize) -> Range<usize> {
        let dilation = self.dilation[0].max(1);
        let above = |row: isize| ((row - top).max(0) as usize).div_ceil(dilation).min(self.kernel[0]);
        above(0)..above(self.input[0] as isize)
    }

    /// Whether words of a window at column `left` hold several columns, some of which may be outside, or are the only ones of their rows.
    #[inline(always)]
    pub(super) fn shares_words(&self, left: isize) -> bool {
        let inside = left >= 0 && left as usize + self.kernel[1] <= self.input[1];
        self.dilation[1] == 1 && !self.input[2].is_multiple_of(4) && (!inside || self.words == 1)
    }

    /// The first row and column of a pixel's window.
    #[inline(always)]
    pub(super) fn corner(&self, y: usize, x: usize) -> (isize, isize) {
        let at = |i: usize, axis: usize| (i * self.stride[axis]) as isize - self.padding[axis] as isize;
        (at(y, 0), at(x, 1))
    }

    /// Whether rows of a window are runs of bytes.
    #[inline(always)]
    pub(super) fn is_direct(&self) -> bool {
        self.dilation[1] == 1 || self.kernel[1] == 1
    }

    /// Rows of a window from row `top` of the input on that are read for four pixels at once, none unless `direct`.
    #[inline(always)]
    pub(super) fn rows_at_once(&self, direct: bool, top: isize) -> Range<usize> {
        if direct { self.rows_inside(top) } else { 0..0 }
    }

    /// [`pixels_alone`].
    #[inline(always)]
    pub(super) fn alone(&self) -> usize {
        pixels_alone(self.output, self.inside)
    }
}
