//! The shapes of a convolution as a product of rows, and where its rows are.

use crate::ops::window::Window2d;

/// Scratch bytes that are worth their memory: the calls of the product's loop are then below a tenth of it.
const SCRATCH: u32 = 1280;

/// Bytes of a vector.
pub(super) const VECTOR: usize = 16;

/// Source of a step's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// From the input.
    Pixels,
    /// From copied columns.
    Strips,
    /// From copied windows.
    Windows,
}

/// Shapes of a convolution, and its way to the rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Geometry {
    pub(super) batch: usize,
    /// Rows, columns, bytes of a pixel.
    pub(super) input: [usize; 3],
    /// Rows, columns, bytes of a pixel.
    pub(super) output: [usize; 3],
    pub(super) kernel: [usize; 2],
    pub(super) stride: [usize; 2],
    pub(super) dilation: [usize; 2],
    pub(super) padding: [usize; 2],
    /// Bytes of a row, and of what the product reads for it.
    pub(super) row: u32,
    pub(super) padded: u32,
    pub(super) path: Path,
    /// Windows copied at a time: even, unless there is one in all.
    pub(super) windows: usize,
    /// Bytes from window to window of the copies.
    pub(super) step: usize,
    /// Bytes of scratch.
    pub(super) scratch: u32,
}

impl Geometry {
    /// For elements of `element` bytes, and a product that reads rows in blocks of `block` bytes.
    #[inline]
    pub(super) fn new(window: &Window2d, element: u32, block: u32) -> Self {
        let [ih, iw, c] = window.input.map(usize::from);
        let [oh, ow, oc] = window.output.map(usize::from);
        let [sh, sw] = window.stride.map(usize::from);
        let pixel = (c as u32).saturating_mul(element);
        let row = window.taps().saturating_mul(pixel);
        let padded = row.saturating_add(block - 1) / block * block;
        let inside = (oh.max(1) - 1) * sh < ih && (ow.max(1) - 1) * sw < iw;
        let path = if window.kernel == [1, 1] && window.padding == [0, 0] && inside {
            Path::Pixels
        } else if pixel as usize >= VECTOR && window.dilation == [1, 1] {
            Path::Strips
        } else {
            Path::Windows
        };
        let mut geometry = Self {
            batch: usize::from(window.batch),
            input: [ih, iw, pixel as usize],
            output: [oh, ow, (oc as u32).saturating_mul(element) as usize],
            kernel: window.kernel.map(usize::from),
            stride: [sh, sw],
            dilation: window.dilation.map(usize::from),
            padding: window.padding.map(usize::from),
            row,
            padded,
            path,
            windows: 1,
            step: padded as usize,
            scratch: 0,
        };
        geometry.plan_copies(u32::from(window.kernel[0]).saturating_mul(pixel), 2);
        geometry
    }

    /// The same of bytes, with windows in the place of strips, whose weights are in an order of their own, and at least `least` copied at a time.
    pub(super) fn of_windows(window: &Window2d, block: u32, least: u32) -> Self {
        let mut geometry = Self::new(window, 1, block);
        if geometry.path != Path::Pixels {
            geometry.path = Path::Windows;
            geometry.plan_copies(0, least);
        }
        geometry
    }

    /// Fills in how scratch is used, for at least `least` windows; `column` is the bytes of a column under a window.
    fn plan_copies(&mut self, column: u32, least: u32) {
        let [oh, ow, _] = self.output.map(|n| n as u32);
        let (step, most) = match self.path {
            // Only for the last pixels, whose reads would pass the end of the input.
            Path::Pixels => {
                self.scratch = if self.padded > self.row { self.padded } else { 0 };
                return;
            }
            Path::Strips => (column.saturating_mul(self.stride[1] as u32), ow),
            Path::Windows => (self.padded, (ow * oh).saturating_mul(self.batch as u32)),
        };
        // Strips overlap where the stride is below the kernel's width.
        let tail = self.padded.saturating_sub(step);
        let fit = SCRATCH.saturating_sub(tail).checked_div(step).unwrap_or(0);
        let windows = (fit.max(least) & !1).min(most);
        self.windows = windows as usize;
        self.step = step as usize;
        // A last vector may be written up to 15 bytes beyond.
        self.scratch = windows
            .saturating_mul(step)
            .saturating_add(tail)
            .saturating_add(VECTOR as u32);
    }

    /// The element of plain weights `[ky][kx][c]` that element `i` of a row is multiplied by.
    pub(super) fn plain_index(window: &Window2d, path: Path, i: usize) -> usize {
        let [kh, kw] = window.kernel.map(usize::from);
        let c = usize::from(window.input[2]);
        match path {
            Path::Strips => (i / c % kh * kw + i / c / kh) * c + i % c,
            Path::Pixels | Path::Windows => i,
        }
    }

    /// Least distance of the output below the input ([`crate::kernels::api::kernel::Kernel::distance`]), for a product that writes at most `ahead` elements
    /// beyond the row before the one it reads.
    /// elements beyond the row before the one it reads.
    pub(super) fn distance(&self, window: &Window2d, element: u32, ahead: u32) -> i64 {
        let lead = match self.path {
            Path::Pixels => ahead,
            // Windows are copied before their outputs are written.
            Path::Strips | Path::Windows => 0,
        };
        window.consumed_distance(element, lead)
    }
}
