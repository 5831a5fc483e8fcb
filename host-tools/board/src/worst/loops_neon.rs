//! [`super::loops`] of the kernels for AArch64's vectors.

use arenite::Step;
use arenite::ops::window::Window2d;

use super::counts::Counts;
use super::loops_mve::{Rows, rows};

/// How rows of a product are got: in place, or as windows.
pub(super) fn path(window: &Window2d) -> &'static str {
    if (window.kernel, window.padding) == ([1, 1], [0, 0]) {
        "pixels"
    } else {
        "windows"
    }
}

/// A product of rows and groups of sixteen channels, `unit` rows at a time; what is left of the channels has a loop for each number of vectors.
pub(super) fn conv2d(step: &Step, window: &Window2d, unit: usize) -> [Counts; 3] {
    let depth = usize::from(window.input[2]);
    let [kernel_rows, kernel_columns] = window.kernel.map(usize::from);
    let outputs = usize::from(window.output[2]);
    let padded = (kernel_rows * kernel_columns * depth).next_multiple_of(8);
    let how = Rows {
        path: path(window),
        depth,
        padded,
        unit,
        least: 0,
        scratch: step.needs().scratch as usize,
    };
    let flag = |set: bool| f64::from(u8::from(set));
    let rest = (outputs % 16).div_ceil(4);
    [
        rows(window, &how),
        vec![
            ("1", 1.0),
            ("groups", (outputs / 16) as f64),
            ("rest of 1", flag(rest == 1)),
            ("rest of 2", flag(rest == 2)),
            ("rest of 3", flag(rest == 3)),
            ("rest of 4", flag(rest == 4)),
            ("part", (outputs % 4) as f64),
        ],
        vec![
            ("1", 1.0),
            ("blocks", (padded / 16) as f64),
            ("half", (padded / 8 % 2) as f64),
            ("vectors", depth.div_ceil(16) as f64),
            ("k rows", kernel_rows as f64),
            (
                "k vectors",
                (kernel_rows * (kernel_columns * depth).div_ceil(16)) as f64,
            ),
        ],
    ]
}

/// The same of f32, in blocks of four elements and one by one. `summed`: outputs are added to something.
pub(super) fn conv2d_f32(step: &Step, window: &Window2d, summed: bool) -> [Counts; 3] {
    let depth = 4 * usize::from(window.input[2]);
    let [kernel_rows, kernel_columns] = window.kernel.map(usize::from);
    let elements = kernel_rows * kernel_columns * usize::from(window.input[2]);
    let how = Rows {
        path: path(window),
        depth,
        padded: 4 * elements,
        unit: 4,
        least: 0,
        scratch: step.needs().scratch as usize,
    };
    let [_, channels, _] = conv2d(step, window, 4);
    let mut places = rows(window, &how);
    let pixels = f64::from(window.batch) * f64::from(window.output[0]) * f64::from(window.output[1]);
    places.push(("summed", if summed { pixels } else { 0.0 }));
    [
        places,
        channels,
        vec![
            ("1", 1.0),
            ("blocks", (elements / 4) as f64),
            ("odd", (elements % 4) as f64),
            ("vectors", depth.div_ceil(16) as f64),
            ("k rows", kernel_rows as f64),
            (
                "k vectors",
                (kernel_rows * (kernel_columns * depth).div_ceil(16)) as f64,
            ),
        ],
    ]
}

/// As [`depthwise`], in blocks of sixteen channels and of four. `summed`: outputs are added to something.
pub(super) fn depthwise_f32([mut places, _, terms]: [Counts; 3], window: &Window2d, summed: bool) -> [Counts; 3] {
    let channels = window.output[2];
    let pixels = f64::from(window.batch) * f64::from(window.output[0]) * f64::from(window.output[1]);
    places.push(("summed", if summed { pixels } else { 0.0 }));
    let blocks = vec![
        ("1", 1.0),
        ("ch/16", f64::from(channels / 16)),
        ("ch/4", f64::from((channels % 16).div_ceil(4))),
        ("channels", f64::from(channels)),
    ];
    [places, blocks, terms]
}

/// The pixels of another kernel by channel, which are taken the same way, in blocks of sixteen channels and of eight.
pub(super) fn depthwise([places, _, terms]: [Counts; 3], window: &Window2d) -> [Counts; 3] {
    let channels = window.output[2];
    let blocks = vec![
        ("1", 1.0),
        ("ch/16", f64::from(channels / 16)),
        ("ch/8", f64::from((channels % 16).div_ceil(8))),
        ("channels", f64::from(channels)),
    ];
    [places, blocks, terms]
}
