//! Factors of the features of a step's loops.

use arenite::ops::window::Window2d;

/// Counts that features are products of.
pub(super) type Counts = Vec<(&'static str, f64)>;

/// How the names of places begin whose work is done once for all channels.
pub(super) const ONCE: &str = "once ";

/// Blocks, the last one begun too.
pub(super) fn block(of: f64, by: f64) -> f64 {
    (of / by).ceil()
}

/// Of an axis's windows: the first tap inside the input, and how many are.
pub(super) fn taps(window: &Window2d, axis: usize) -> impl Iterator<Item = (i64, i64)> {
    let [input, output, kernel] = [window.input[axis], window.output[axis], window.kernel[axis]].map(i64::from);
    let [stride, dilation, padding] = [window.stride[axis], window.dilation[axis], window.padding[axis]].map(i64::from);
    (0..output).map(move |at| {
        let first = at * stride - padding;
        // Taps before the input, and those before its end.
        let before = (-first + dilation - 1).div_euclid(dilation).clamp(0, kernel);
        let until = (input - first + dilation - 1).div_euclid(dilation).clamp(0, kernel);
        (before, (until - before).max(0))
    })
}

/// Whether each of an axis's windows lies inside the input altogether.
pub(super) fn whole(window: &Window2d, axis: usize) -> Vec<bool> {
    let kernel = i64::from(window.kernel[axis]);
    taps(window, axis).map(|(_, count)| count == kernel).collect()
}

/// Whether a pixel of the output needs its pixel of the input alone.
pub(super) fn pointwise(window: &Window2d) -> bool {
    let unpadded = window.input[..2] == window.output[..2] && window.padding == [0, 0];
    window.kernel == [1, 1] && window.stride == [1, 1] && unpadded
}

/// The window, and where pixels are alone all of them in one row.
pub(super) fn in_one_row(window: &Window2d) -> (f64, Vec<bool>, Vec<bool>) {
    if pointwise(window) {
        let pixels = usize::from(window.batch) * usize::from(window.input[0]) * usize::from(window.input[1]);
        (1.0, vec![true], vec![true; pixels])
    } else {
        (f64::from(window.batch), whole(window, 0), whole(window, 1))
    }
}

/// Neighbours of all channels of a pixel.
pub(super) fn near(channels: u32, radius: u16) -> f64 {
    let (channels, radius) = (u64::from(channels), u64::from(radius));
    let near = (0..channels).map(|c| (c + radius + 1).min(channels) - c.saturating_sub(radius));
    near.sum::<u64>() as f64
}
