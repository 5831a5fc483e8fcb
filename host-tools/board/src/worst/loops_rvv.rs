//! [`super::loops`] of the kernels for RISC-V's vectors, at the shortest that there are: longer ones take no more.

use arenite::ops::window::Window2d;

use super::counts::{Counts, block, whole};

/// Channels whose sums fit four registers, and those that fit eight.
const FEW: u16 = 16;
const MANY: f64 = 32.0;

/// Whether the input's pixels are the windows, in order.
fn plain(window: &Window2d) -> bool {
    let same = window.input[..2] == window.output[..2];
    same && (window.kernel, window.padding, window.stride) == ([1, 1], [0, 0], [1, 1])
}

/// Where a convolution's rows are, and what its tiles are.
pub(super) fn path(window: &Window2d) -> &'static str {
    match (plain(window), window.output[2] <= FEW) {
        (true, true) => "pixels few",
        (true, false) => "pixels",
        (false, true) => "windows few",
        (false, false) => "windows",
    }
}

/// The same of a depthwise convolution.
pub(super) fn tiles(window: &Window2d) -> &'static str {
    if window.output[2] <= FEW { "few" } else { "many" }
}

/// Runs of pixels, in tiles, twos and ones, and pixels alone at both ends of a row, part by part of the channels.
fn runs(window: &Window2d, plain: bool) -> (Counts, Counts) {
    let [rows, columns, outputs] = window.output;
    let images = f64::from(window.batch);
    let (runs, length, alone) = if plain {
        (1.0, images * f64::from(rows) * f64::from(columns), 0.0)
    } else {
        let inside = whole(window, 1).iter().filter(|whole| **whole).count() as f64;
        let lines = images * f64::from(rows);
        let alone = lines * (f64::from(columns) - inside);
        (if inside > 0.0 { lines } else { 0.0 }, inside, alone)
    };
    let few = outputs <= FEW;
    let tile = if few { 6.0 } else { 3.0 };
    let left = length % tile;
    let (twos, ones) = if few {
        ((left / 2.0).floor(), left % 2.0)
    } else {
        (0.0, left)
    };
    let places = vec![
        ("1", 1.0),
        ("rows", images * f64::from(rows)),
        ("runs", runs),
        ("tiles", runs * (length / tile).floor()),
        ("twos", runs * twos),
        ("ones", runs * ones),
        ("alone", alone),
    ];
    (places, vec![("1", 1.0), ("parts", block(outputs.into(), MANY))])
}

/// Taps are a row of the window along a run, and one element of it at the ends of rows; four elements of a tap have a loop of their own.
pub(super) fn conv2d(window: &Window2d) -> [Counts; 3] {
    let plain = plain(window);
    let (places, parts) = runs(window, plain);
    let depth = f64::from(window.input[2]);
    let [rows, columns] = window.kernel.map(f64::from);
    let joined = window.dilation[1] == 1;
    let (taps, run) = if joined {
        (rows, columns * depth)
    } else {
        (rows * columns, depth)
    };
    let terms = vec![
        ("1", 1.0),
        ("taps", taps),
        ("fours", taps * (run / 4.0).floor()),
        ("left", taps * (run % 4.0)),
        ("single taps", rows * columns),
        ("single fours", rows * columns * (depth / 4.0).floor()),
        ("single left", rows * columns * (depth % 4.0)),
        ("padding", if plain { 0.0 } else { run }),
    ];
    [places, parts, terms]
}

/// Tap by tap.
pub(super) fn depthwise(window: &Window2d) -> [Counts; 3] {
    let (places, parts) = runs(window, false);
    let [rows, columns] = window.kernel.map(f64::from);
    let terms = vec![
        ("1", 1.0),
        ("k rows", rows),
        ("taps", rows * columns),
        ("padding", window.input[2].into()),
    ];
    [places, parts, terms]
}
