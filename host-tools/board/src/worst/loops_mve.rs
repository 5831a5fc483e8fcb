//! [`super::loops`] of the kernels for Helium.

use arenite::Step;
use arenite::kernels::mve::conv2d_s8_w4_groups;
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::low_bit::GroupsConv2dS8;
use arenite::ops::window::Window2d;

use super::counts::{Counts, block, taps};

/// Bytes of a vector.
const VECTOR: usize = 16;

/// Whether the outputs are the type's own range and no multiplier shifts left, which saves instructions of each output.
pub(super) fn is_fast(op: &Conv2dS8, weights: &[u8]) -> bool {
    let left = weights.get(op.weights as usize).is_none_or(|&left| left != 0);
    !left && op.output_zero_point == -128 && op.clamp == [-128, 127]
}

/// How rows of a product are got: in place, as strips of columns, as windows. `element`: its bytes.
pub(super) fn path(window: &Window2d, element: u32) -> &'static str {
    let run = u32::from(window.kernel[1]) * u32::from(window.input[2]) * element;
    let one = window.batch == 1 && window.input[..2] == [1, 1] && window.output[..2] == [1, 1];
    match (window.kernel, window.padding) {
        // Nothing is planned.
        ([1, 1], [0, 0]) if one && window.input[2].is_multiple_of(VECTOR as u16) && element == 1 => "one row",
        ([1, 1], [0, 0]) => "pixels",
        _ if window.dilation != [1, 1] => "windows",
        _ if u32::from(window.input[2]) * element >= VECTOR as u32 => "strips",
        ([3, _], _) if run <= VECTOR as u32 => "windows of three short rows",
        _ if run <= VECTOR as u32 => "windows of short rows",
        _ => "windows",
    }
}

/// Whether two rows and two columns of the output are computed together.
pub(super) fn two_by_two(window: &Window2d) -> bool {
    window.stride == [1, 1] && window.kernel.iter().all(|&k| k <= 3)
}

/// Returns the number of the `extent` places from `start` that lie in `0..len`.
fn clipped(start: isize, extent: usize, len: usize) -> usize {
    let end = (start + extent as isize).min(len as isize);
    (end - start.max(0)).max(0) as usize
}

/// Rows of a product, several at a time.
#[derive(Default)]
struct Multiplied {
    unit: usize,
    /// Fewer are multiplied one by one.
    least: usize,
    calls: f64,
    /// Of so many at least.
    large: f64,
    pairs: f64,
    ones: f64,
}

impl Multiplied {
    fn add(&mut self, rows: usize) {
        if rows > 0 {
            self.calls += 1.0;
            if rows < self.least {
                self.ones += rows as f64;
                return;
            }
            self.large += 1.0;
            self.pairs += (rows / self.unit) as f64;
            self.ones += (rows % self.unit) as f64;
        }
    }
}

/// One row of activations after the other, in groups of eight channels, of blocks.
pub(super) fn dense(window: &Window2d) -> [Counts; 3] {
    let [inputs, outputs] = [window.input[2], window.output[2]].map(f64::from);
    [
        vec![("1", 1.0), ("rows", window.batch.into())],
        vec![
            ("1", 1.0),
            ("ch/8", ((outputs + 3.0) / 8.0).floor()),
            ("rest", if outputs % 8.0 > 4.0 { 1.0 } else { 0.0 }),
            (
                "four",
                if (1.0..=4.0).contains(&(outputs % 8.0)) {
                    1.0
                } else {
                    0.0
                },
            ),
        ],
        vec![
            ("1", 1.0),
            ("blocks", block(inputs, 16.0)),
            ("blocks/8", block(inputs, 128.0)),
        ],
    ]
}

/// As [`conv2d`], with the sums that outputs are added to.
pub(super) fn conv2d_f32(step: &Step, window: &Window2d, summed: bool) -> [Counts; 3] {
    let [mut places, channels, terms] = conv2d(step, window, 4);
    let pixels = f64::from(window.batch) * f64::from(window.output[0]) * f64::from(window.output[1]);
    places.push(("summed", if summed { pixels } else { 0.0 }));
    [places, channels, terms]
}

/// A product of rows of blocks (16 elements of int8, one of f32) and groups of channels, the rows copied where they do not lie side by side. `element`: its
/// bytes.
pub(super) fn conv2d(step: &Step, window: &Window2d, element: usize) -> [Counts; 3] {
    let pixel = usize::from(window.input[2]);
    let (depth, size, unit) = if element == 1 {
        (pixel, VECTOR, 2)
    } else {
        (pixel * element, element, 3)
    };
    let outputs = usize::from(window.output[2]);
    let [kh, kw] = window.kernel.map(usize::from);
    let padded = (kh * kw * depth).next_multiple_of(size);
    let places = rows(
        window,
        &Rows {
            path: path(window, element as u32),
            depth,
            padded,
            unit,
            least: 0,
            scratch: step.needs().scratch as usize,
        },
    );
    let blocks = padded / size;
    let flag = |set: bool| f64::from(u8::from(set));
    [
        places,
        vec![
            ("1", 1.0),
            ("groups", outputs.div_ceil(8) as f64),
            ("ch/4", outputs.div_ceil(4) as f64),
            ("part", flag(!outputs.is_multiple_of(8))),
        ],
        vec![
            ("1", 1.0),
            ("blocks", blocks as f64),
            ("one block", flag(blocks == 1)),
            ("two blocks", flag(blocks == 2)),
            // One and two have loops of their own.
            ("many", flag(blocks > 2)),
            ("many blocks", if blocks > 2 { blocks as f64 } else { 0.0 }),
            ("vectors", depth.div_ceil(VECTOR) as f64),
            ("k rows", kh as f64),
            ("k vectors", (kh * (kw * depth).div_ceil(VECTOR)) as f64),
        ],
    ]
}

/// As [`conv2d`], of rows in the order of their weights; where a call has many, weights are widened for it.
pub(super) fn groups(op: &GroupsConv2dS8) -> [Counts; 3] {
    let window = &op.conv.window;
    let depth = usize::from(window.input[2]);
    let [kh, kw] = window.kernel.map(usize::from);
    let padded = (kh * kw * depth).next_multiple_of(VECTOR);
    let path = match path(window, 1) {
        "strips" => "windows",
        path => path,
    };
    let places = rows(
        window,
        &Rows {
            path,
            depth,
            padded,
            unit: 2,
            least: conv2d_s8_w4_groups::MANY,
            scratch: conv2d_s8_w4_groups::copies(op) as usize,
        },
    );
    let outputs = usize::from(window.output[2]);
    let blocks = padded / VECTOR;
    let flag = |set: bool| f64::from(u8::from(set));
    [
        places,
        vec![
            ("1", 1.0),
            ("groups", outputs.div_ceil(8) as f64),
            ("part", flag(!outputs.is_multiple_of(8))),
        ],
        vec![
            ("1", 1.0),
            ("blocks", blocks as f64),
            ("factors", block(padded as f64, op.share.into())),
            ("vectors", depth.div_ceil(VECTOR) as f64),
            ("k rows", kh as f64),
            ("k vectors", (kh * (kw * depth).div_ceil(VECTOR)) as f64),
        ],
    ]
}

/// Where the rows of a product are from.
pub(super) struct Rows {
    /// As [`path`] names it.
    pub(super) path: &'static str,
    /// Bytes of a pixel.
    pub(super) depth: usize,
    /// Bytes that the product reads for a row.
    pub(super) padded: usize,
    /// Rows that it takes together.
    pub(super) unit: usize,
    /// Fewer rows of a call are taken one by one.
    pub(super) least: usize,
    /// Bytes of scratch.
    pub(super) scratch: usize,
}

/// How often rows are multiplied, and what is copied before.
pub(super) fn rows(window: &Window2d, how: &Rows) -> Counts {
    let [ih, iw] = [0, 1].map(|axis| usize::from(window.input[axis]));
    let [oh, ow] = [0, 1].map(|axis| usize::from(window.output[axis]));
    let [kh, kw] = window.kernel.map(usize::from);
    let [sh, sw] = window.stride.map(usize::from);
    let [top, left] = window.padding.map(isize::from);
    let images = usize::from(window.batch);
    let Rows {
        depth,
        padded,
        unit,
        least,
        scratch,
        ..
    } = *how;
    let mut rows = Multiplied {
        unit,
        least,
        ..Multiplied::default()
    };
    let [
        mut copied,
        mut strips,
        mut pieces,
        mut filled,
        mut runs,
        mut together,
        mut alone,
    ] = [0.0; 7];
    match how.path {
        "one row" => rows.add(1),
        "pixels" => {
            let (count, each) = match (window.stride, [ih, iw] == [oh, ow]) {
                ([1, 1], true) => (1, images * oh * ow),
                _ => (images * oh, ow),
            };
            let bytes = images * ih * iw * depth;
            for run in 0..count {
                let from = if count == 1 {
                    0
                } else {
                    (run / oh * ih + run % oh * sh) * iw * depth
                };
                let by = if count == 1 { depth } else { sw * depth };
                let mut in_place = each;
                while in_place > 0 && from + (in_place - 1) * by + padded > bytes {
                    in_place -= 1;
                }
                rows.add(in_place);
                (in_place..each).for_each(|_| rows.add(1));
                copied += (each - in_place) as f64;
            }
        }
        "strips" => {
            let column = kh * depth * sw;
            let most = scratch.saturating_sub(VECTOR + padded.saturating_sub(column)) / column.max(1);
            for y in 0..oh {
                let tall = clipped((y * sh) as isize - top, kh, ih);
                for x in (0..ow).step_by(most.max(1)) {
                    let count = (ow - x).min(most.max(1));
                    let columns = (count - 1) * sw + kw;
                    let wide = clipped((x * sw) as isize - left, columns, iw);
                    (0..images).for_each(|_| rows.add(count));
                    strips += images as f64;
                    pieces += (images * tall * wide) as f64;
                    if tall < kh || wide < columns {
                        filled += (images * (columns * kh * depth).div_ceil(VECTOR)) as f64;
                    }
                }
            }
        }
        "windows" if window.dilation != [1, 1] => {
            // Together as far as scratch goes, of which those of the rows before have some: a column of taps at a time.
            let most = (scratch.saturating_sub(VECTOR) / padded).max(1);
            let total = images * oh * ow;
            (0..total.div_ceil(most)).for_each(|at| rows.add((total - at * most).min(most)));
            let tall: Vec<usize> = taps(window, 0).map(|(_, taps)| taps as usize).collect();
            let across = isize::from(window.dilation[1]);
            let short = depth <= VECTOR;
            for row in 0..images * oh {
                let (tall, mut x) = (tall[row % oh], 0);
                while x < ow {
                    let count = (ow - x).min(most - (row * ow + x) % most);
                    let columns: Vec<usize> = (0..kw as isize)
                        .map(|tap| {
                            let column = |window: usize| (window * sw) as isize - left + tap * across;
                            let inside = |window: &usize| (0..iw as isize).contains(&column(*window));
                            (x..x + count).filter(inside).count()
                        })
                        .collect();
                    let inside: usize = columns.iter().sum();
                    runs += 1.0;
                    if tall < kh || inside < count * kw {
                        filled += (count * padded).div_ceil(VECTOR) as f64;
                    }
                    if tall > 0 {
                        let copies = columns.iter().filter(|&&inside| inside > 0).count();
                        strips += copies as f64;
                        alone += (copies * tall) as f64;
                        *(if short { &mut pieces } else { &mut together }) += (inside * tall) as f64;
                    }
                    x += count;
                }
            }
        }
        _ => {
            let most = (scratch.saturating_sub(VECTOR) / padded).max(1);
            let total = images * oh * ow;
            (0..total.div_ceil(most)).for_each(|at| rows.add((total - at * most).min(most)));
            let (pitch, run) = (iw * depth, kw * depth);
            let last_read = (kh - 1) * pitch + run.next_multiple_of(VECTOR);
            for row in 0..images * oh {
                let (image, y) = (row / oh, row % oh);
                let start = (y * sh) as isize - top;
                let tall = clipped(start, kh, ih);
                let from = |x: usize| {
                    let column = (x * sw) as isize - left;
                    (image * ih * pitch) as isize + start * pitch as isize + column * depth as isize
                };
                let mut inside = 0;
                for x in 0..ow {
                    let wide = clipped((x * sw) as isize - left, kw, iw);
                    // Whose last vectors may be read.
                    let readable = from(x) + last_read as isize <= (images * ih * pitch) as isize;
                    if tall == kh && wide == kw && readable {
                        inside += 1;
                    } else {
                        alone += 1.0;
                        pieces += if wide > 0 { tall as f64 } else { 0.0 };
                    }
                }
                runs += if inside > 0 { 1.0 } else { 0.0 };
                together += f64::from(inside);
            }
            filled += alone * block(padded as f64, VECTOR as f64);
        }
    }
    vec![
        ("1", 1.0),
        ("calls", rows.calls),
        ("large", if least > 0 { rows.large } else { 0.0 }),
        ("row sets", rows.pairs),
        ("row ones", rows.ones),
        ("copied", copied),
        ("strips", strips),
        ("pieces", pieces),
        ("filled", filled),
        ("runs", runs),
        ("together", together),
        ("alone", alone),
    ]
}

/// Sets of four rows, interleaved for sixteen channels at a time, then channel by channel in units of four outputs.
pub(super) fn depthwise(step: &Step, window: &Window2d) -> [Counts; 3] {
    let [_, iw, channels] = window.input.map(usize::from);
    let [oh, ow, _] = window.output.map(usize::from);
    let images = f64::from(window.batch);
    let packed = channels <= VECTOR && (iw * channels).is_multiple_of(VECTOR);
    let pitch = 4 * if packed { channels } else { VECTOR };
    let two_by_two = two_by_two(window);
    let read = if two_by_two {
        ow.next_multiple_of(2) + 2
    } else {
        (ow.next_multiple_of(4) - 1) * usize::from(window.stride[1]) + 4
    };
    let columns = read.max(usize::from(window.padding[1]) + iw);
    let scratch = step.needs().scratch as usize;
    let most = (scratch.saturating_sub(channels.next_multiple_of(VECTOR)) / (columns * pitch)).max(1);
    let (sets, units, rest) = if two_by_two {
        (oh.div_ceil(2), ow / 2, ow % 2)
    } else {
        (oh, ow / 4, ow % 4)
    };
    let vectors = if packed { iw * channels / VECTOR } else { iw };
    let sets_of = |count: usize| images * sets as f64 * count as f64;
    [
        vec![
            ("1", 1.0),
            ("images", images),
            ("chunks", images * block(sets as f64, most as f64)),
            ("sets", sets_of(1)),
            ("set vectors", sets_of(vectors)),
            ("units", sets_of(units)),
            ("rests", sets_of(usize::from(rest > 0))),
            ("scratch/16", block(scratch as f64, 16.0)),
        ],
        vec![
            ("1", 1.0),
            ("channels", channels as f64),
            ("ch/16", block(channels as f64, 16.0)),
        ],
        vec![("1", 1.0)],
    ]
}
