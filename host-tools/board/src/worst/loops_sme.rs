//! [`super::loops`] of the kernel of outer products, at the shortest vectors that there are: longer ones take no more.

use arenite::ops::window::Window2d;

use super::counts::{Counts, block, pointwise, whole};

/// Words of such a vector, and its bytes.
const WORDS: usize = 4;
const BYTES: f64 = 16.0;

/// Vectors of channels that are summed at a time.
const TILES: f64 = 3.0;

/// Whether the input's pixels are the windows, in order.
pub(super) fn path(window: &Window2d) -> &'static str {
    if pointwise(window) { "pixels" } else { "windows" }
}

/// How often a walk along a tile's windows takes each of its ways, for all tiles and all rows of a window.
#[derive(Default)]
struct Walks {
    parts: f64,
    runs: f64,
    fours: f64,
    ones: f64,
    sides: f64,
    above: f64,
    padding: f64,
    rows: f64,
    images: f64,
}

impl Walks {
    /// `count` pixels of a row of the output from column `at`, of which `columns` says whose windows lie inside.
    fn part(&mut self, columns: &[bool], at: usize, count: usize, inside: bool) {
        self.parts += 1.0;
        if !inside {
            self.above += 1.0;
            self.padding += count as f64;
            return;
        }
        let pixels = columns.iter().skip(at).take(count);
        let run = pixels.filter(|inside| **inside).count();
        self.runs += f64::from(u8::from(run > 0));
        self.fours += (run / WORDS) as f64;
        self.ones += (run % WORDS) as f64;
        self.sides += (count - run) as f64;
    }

    fn of(window: &Window2d) -> Self {
        let images = usize::from(window.batch);
        let (rows, columns) = if pointwise(window) {
            let pixels = usize::from(window.output[0]) * usize::from(window.output[1]) * images;
            (1, vec![true; pixels])
        } else {
            (images * usize::from(window.output[0]), whole(window, 1))
        };
        let mut walks = Walks::default();
        let pixels = rows * columns.len();
        for k_row in 0..i64::from(window.kernel[0]) {
            let mut pixel = 0;
            while pixel < pixels {
                let (row, at) = (pixel / columns.len(), pixel % columns.len());
                let count = (columns.len() - at).min(WORDS - pixel % WORDS).min(pixels - pixel);
                let y = (row % usize::from(window.output[0])) as i64;
                let from = y * i64::from(window.stride[0]) - i64::from(window.padding[0]) + k_row;
                walks.part(&columns, at, count, (0..i64::from(window.input[0])).contains(&from));
                if at + count == columns.len() {
                    walks.rows += 1.0;
                    walks.images += f64::from(u8::from((row + 1) % usize::from(window.output[0]) == 0));
                }
                pixel += count;
            }
        }
        walks
    }
}

/// A tile of pixels, for three vectors of channels: row by row of the windows, a vector of each at a time.
pub(super) fn conv2d(window: &Window2d) -> [Counts; 3] {
    let walks = Walks::of(window);
    let [rows, columns, channels] = window.output.map(f64::from);
    let pixels = f64::from(window.batch) * rows * columns;
    let tiles = block(pixels, WORDS as f64);
    let run = f64::from(window.kernel[1]) * f64::from(window.input[2]);
    let each_row = block(run, 4.0);
    let vectors = block(channels, WORDS as f64);
    [
        vec![
            ("1", 1.0),
            ("tiles", tiles),
            ("pixels", pixels),
            ("k rows", tiles * f64::from(window.kernel[0])),
            ("parts", walks.parts),
            ("runs", walks.runs),
            ("fours", walks.fours),
            ("ones", walks.ones),
            ("sides", walks.sides),
            ("above", walks.above),
            ("padding", walks.padding),
            ("rows", walks.rows),
            ("images", walks.images),
        ],
        vec![("1", 1.0), ("passes", block(vectors, TILES)), ("vectors", vectors)],
        vec![
            ("1", 1.0),
            ("lines", block(run, BYTES)),
            ("k fours", (each_row / 4.0).floor()),
            ("k ones", each_row % 4.0),
        ],
    ]
}
