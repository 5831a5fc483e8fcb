//! The arithmetic of windows, run backwards: which kernels, strides and paddings explain the sizes that a trace states.

use crate::graph::Padding2d;

/// How a window slides along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) dilation: usize,
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Axis {
    /// Elements under one window.
    pub(super) fn span(&self) -> Option<usize> {
        self.kernel.checked_sub(1)?.checked_mul(self.dilation)?.checked_add(1)
    }

    /// Number of windows over `n` elements; `cover_all` counts a last window that sticks out (Chainer's ceiling mode), and the
    /// padding behind grows by what it needs.
    pub(super) fn windows(&mut self, n: usize, cover_all: bool) -> Option<usize> {
        let padded = n.checked_add(self.before)?.checked_add(self.after)?;
        let room = padded.checked_sub(self.span()?)?;
        if self.stride == 0 {
            return None;
        }
        let floor = room / self.stride + 1;
        if !cover_all || room.is_multiple_of(self.stride) {
            return Some(floor);
        }
        self.after = self.after.checked_add(self.stride - room % self.stride)?;
        Some(floor + 1)
    }
}

/// Padding of rows and columns.
pub(super) fn padding(rows: &Axis, columns: &Axis) -> Padding2d {
    Padding2d {
        top: rows.before,
        bottom: rows.after,
        left: columns.before,
        right: columns.after,
    }
}

/// TensorFlow's SAME padding of `n` elements: `ceil(n / stride)` windows, the odd element of padding behind.
pub(super) fn same(n: usize, kernel: usize, stride: usize, dilation: usize) -> Option<Axis> {
    let mut axis = Axis {
        kernel,
        stride,
        dilation,
        before: 0,
        after: 0,
    };
    let windows = n.checked_add(stride)?.checked_sub(1)?.checked_div(stride)?;
    let needed = windows.checked_sub(1)?.checked_mul(stride)?.checked_add(axis.span()?)?;
    let total = needed.saturating_sub(n);
    axis.before = total / 2;
    axis.after = total - axis.before;
    Some(axis)
}

/// All (a, b) with a * b = n, square first, then by growing difference.
pub(super) fn factor_pairs(n: usize) -> Vec<(usize, usize)> {
    let root = n.isqrt();
    let small = (1..=root).rev().filter(|a| n.is_multiple_of(*a));
    let pairs = small.flat_map(|a| {
        let b = n / a;
        let turned = (a != b).then_some((b, a));
        std::iter::once((a, b)).chain(turned)
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_by_hand() {
        let plain = Axis {
            kernel: 3,
            stride: 2,
            dilation: 1,
            before: 0,
            after: 0,
        };
        let mut floor = plain;
        assert_eq!((floor.windows(56, false), floor.after), (Some(27), 0));
        let mut cover = plain;
        assert_eq!((cover.windows(56, true), cover.after), (Some(28), 1));
        let mut dilated = Axis { dilation: 4, ..plain };
        assert_eq!(dilated.windows(8, false), None);
    }

    #[test]
    fn same_padding_of_the_first_alexnet_convolution() {
        let axis = same(224, 11, 4, 1).unwrap();
        assert_eq!((axis.before, axis.after), (3, 4));
    }

    #[test]
    fn pairs_start_with_the_square() {
        assert_eq!(
            factor_pairs(36),
            [
                (6, 6),
                (4, 9),
                (9, 4),
                (3, 12),
                (12, 3),
                (2, 18),
                (18, 2),
                (1, 36),
                (36, 1)
            ]
        );
        assert_eq!(factor_pairs(7), [(1, 7), (7, 1)]);
    }
}
