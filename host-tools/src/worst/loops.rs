//! How often kernels enter their loops, in closed form: what [`super::instructions`] has for those whose loops are not the window's own.

use arenite::Step;
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::window::Window2d;

use super::counts::{Counts, block};
use super::loops_mve;

/// The counts of kernels that take several pixels of a window at a time; `None` of the others.
pub(super) fn counts(step: &Step, window: &Window2d, weights: &[u8]) -> Option<[Counts; 3]> {
    Some(match step {
        Step::DspConv2dS8(_) | Step::DspPairsConv2dS8(_) => dsp_conv2d(window),
        Step::DspDepthwiseS8(_) => dsp_depthwise(window),
        Step::IntConv2dS8(op) => int_conv2d(op, weights),
        Step::IntDenseS8(op) => int_dense(op, weights),
        Step::IntDepthwiseS8(op) => int_depthwise(op, weights),
        Step::Conv2dF32(op) | Step::DepthwiseF32(op) => scalar(window, op.groups, op.residual.is_some()),
        Step::Conv2dS8(op) | Step::DepthwiseS8(op) => scalar(window, op.groups, false),
        Step::MveConv2dS8(_) => loops_mve::conv2d(step, window, 1),
        Step::MveConv2dF32(op) => loops_mve::conv2d_f32(step, window, op.residual.is_some()),
        Step::MveDepthwiseS8(_) => loops_mve::depthwise(step, window),
        _ if step.kernel().name().contains("Pool") => pool(window),
        _ => return None,
    })
}

/// Indices of an axis's windows: the first tap inside the input, and how many are.
fn taps(window: &Window2d, axis: usize) -> impl Iterator<Item = (i64, i64)> {
    let [input, output, kernel] = [window.input[axis], window.output[axis], window.kernel[axis]].map(i64::from);
    let [stride, padding] = [window.stride[axis], window.padding[axis]].map(i64::from);
    (0..output).map(move |at| {
        let first = at * stride - padding;
        let (from, to) = (first.max(0), (first + kernel).min(input));
        (from - first, (to - from).max(0))
    })
}

/// Whether each of an axis's windows lies inside the input altogether.
fn whole(window: &Window2d, axis: usize) -> Vec<bool> {
    let kernel = i64::from(window.kernel[axis]);
    taps(window, axis).map(|(_, count)| count == kernel).collect()
}

/// Whether a pixel of the output needs its pixel of the input alone.
fn pointwise(window: &Window2d) -> bool {
    let unpadded = window.input[..2] == window.output[..2] && window.padding == [0, 0];
    window.kernel == [1, 1] && window.stride == [1, 1] && unpadded
}

/// The window, and where pixels are alone all of them in one row.
fn in_one_row(window: &Window2d) -> (f64, Vec<bool>, Vec<bool>) {
    if pointwise(window) {
        let pixels = usize::from(window.batch) * usize::from(window.input[0]) * usize::from(window.input[1]);
        (1.0, vec![true], vec![true; pixels])
    } else {
        (f64::from(window.batch), whole(window, 0), whole(window, 1))
    }
}

/// Output by output, tap by tap of each window that lies inside, eight terms at a time.
fn scalar(window: &Window2d, groups: u16, summed: bool) -> [Counts; 3] {
    let images = f64::from(window.batch);
    let [height, width] = [window.output[0], window.output[1]].map(f64::from);
    let depth = f64::from(window.input[2] / groups.max(1));
    let [tall, wide] = [0, 1].map(|axis| taps(window, axis).map(|(_, count)| count as f64).sum::<f64>());
    let pixels = images * height * width;
    [
        vec![
            ("1", 1.0),
            ("images", images),
            ("rows", images * height),
            ("pixels", pixels),
            ("summed", if summed { pixels } else { 0.0 }),
            ("k rows in", images * tall * width),
            ("taps in", images * tall * wide),
        ],
        vec![("1", 1.0), ("channels", window.output[2].into())],
        vec![
            ("1", 1.0),
            ("depth", depth),
            ("eights in", (depth / 8.0).floor()),
            ("left in", depth % 8.0),
            ("tail in", f64::from(u8::from(depth % 8.0 > 0.0))),
        ],
    ]
}

/// Blocks of four pixels: those of a row whose windows lie inside side by side, others pixel by pixel, and single pixels.
fn dsp_conv2d(window: &Window2d) -> [Counts; 3] {
    let (images, rows, columns) = in_one_row(window);
    let (height, width) = (rows.len(), columns.len());
    let from = columns.iter().position(|&whole| whole).unwrap_or(width);
    let to = from + columns.iter().skip(from).take_while(|&&whole| whole).count();
    let [mut direct, mut fours, mut ones, mut runs_of_fours] = [0.0; 4];
    // Windows taken one by one: the rows of them that are copied as one, by column, and those with an end outside.
    let [mut single, mut plain, mut outside] = [0.0; 3];
    let kernel_rows = f64::from(window.kernel[0]);
    let reached: Vec<f64> = taps(window, 0).map(|(_, count)| count as f64).collect();
    let (mut y, mut x, mut left) = (0, 0, height * width);
    while left > 0 {
        let mut pixels = if rows[y] && x >= from {
            to.saturating_sub(x) / 4 * 4
        } else {
            0
        };
        if pixels > 0 {
            runs_of_fours += 1.0;
            direct += pixels as f64 / 4.0;
            fours += pixels as f64 / 4.0;
            x += pixels;
        } else {
            pixels = if left >= 4 { 4 } else { 1 };
            for pixel in 0..pixels {
                single += 1.0;
                let rows_inside = if height == reached.len() {
                    reached[y]
                } else {
                    kernel_rows
                };
                // A row that lies outside altogether is filled as one.
                let across = if columns[x] { 0.0 } else { rows_inside };
                plain += kernel_rows - across;
                outside += across;
                x += 1;
                if x == width && pixel + 1 < pixels {
                    (y, x) = (y + 1, 0);
                }
            }
            if pixels == 4 { fours += 1.0 } else { ones += 1.0 }
        }
        left -= pixels;
        if x == width {
            (y, x) = (y + 1, 0);
        }
    }
    let [inputs, outputs] = [window.input[2], window.output[2]].map(f64::from);
    let run = f64::from(window.kernel[1]) * inputs;
    let [words, tail] = [(run / 4.0).floor(), run % 4.0];
    let by_channel = inputs % 4.0 == 0.0;
    let pairs = kernel_rows * words * 2.0 + block(kernel_rows * tail, 2.0);
    let odd = outputs % 2.0;
    [
        vec![
            ("1", 1.0),
            ("runs of fours", images * runs_of_fours),
            ("direct", images * direct),
            ("fours", images * fours),
            ("ones", images * ones),
            ("single", images * single),
            ("plain rows", images * plain),
            ("split rows", if by_channel { images * outside } else { 0.0 }),
            ("clipped rows", if by_channel { 0.0 } else { images * outside }),
        ],
        vec![
            ("1", 1.0),
            ("ch/2", block(outputs, 2.0)),
            ("odd", odd),
            ("odd ch", odd * outputs),
        ],
        vec![
            ("1", 1.0),
            ("pairs", pairs),
            ("pairs/12", block(pairs, 12.0)),
            ("k rows", kernel_rows),
            ("k columns", window.kernel[1].into()),
            ("words", words),
            ("tail", tail),
            ("all words", kernel_rows * words),
            ("tails/2", block(kernel_rows * tail, 2.0)),
        ],
    ]
}

/// Runs of pixels whose windows lie inside, and others pixel by pixel; a table of taps is made for each.
fn dsp_depthwise(window: &Window2d) -> [Counts; 3] {
    let (rows, columns) = (whole(window, 0), whole(window, 1));
    let [height, width] = [rows.len(), columns.len()].map(|len| len as f64);
    let inside = columns.iter().filter(|whole| **whole).count() as f64;
    let tall = rows.iter().filter(|whole| **whole).count() as f64;
    let images = f64::from(window.batch);
    let runs = if inside > 0.0 { images * tall } else { 0.0 };
    let together = images * tall * inside;
    let taps = f64::from(window.kernel[0]) * f64::from(window.kernel[1]);
    [
        vec![
            ("1", 1.0),
            ("rows", images * height),
            ("runs", runs),
            ("together", together),
            ("alone", images * height * width - together),
        ],
        vec![("1", 1.0), ("ch/4", block(window.output[2].into(), 4.0))],
        vec![
            ("1", 1.0),
            ("k rows", window.kernel[0].into()),
            ("taps", taps),
            ("taps/2", (taps / 2.0).floor()),
        ],
    ]
}

/// Output channels by what their records say.
struct Channels {
    by_block: [f64; 4],
    general: f64,
    constant: f64,
    /// Groups of four, by the block of the first.
    groups: [f64; 4],
}

fn channels(op: &Conv2dS8, weights: &[u8]) -> Channels {
    let mut found = Channels {
        by_block: [0.0; 4],
        general: 0.0,
        constant: 0.0,
        groups: [0.0; 4],
    };
    let records = weights.get(op.channels as usize..).unwrap_or(&[]).chunks_exact(12);
    for (index, record) in records.take(op.window.output[2].into()).enumerate() {
        let code = record.last_chunk::<4>().map_or(0, |word| u32::from_le_bytes(*word));
        let place = (code >> 8 & 3) as usize;
        match code & 0xc00 {
            0 => found.by_block[place] += 1.0,
            0x400 => {
                found.by_block[place] += 1.0;
                found.general += 1.0;
            }
            _ => found.constant += 1.0,
        }
        if index % 4 == 0 {
            found.groups[place] += 1.0;
        }
    }
    found
}

fn padded(inputs: f64) -> f64 {
    block(inputs, 4.0) * 4.0
}

/// Outputs that are limited beside their type.
fn limited(op: &Conv2dS8) -> f64 {
    let [rows, columns, _] = op.window.output.map(f64::from);
    let pixels = f64::from(op.window.batch) * rows * columns;
    if op.clamp == [-128, 127] { 0.0 } else { pixels }
}

/// Blocks of four windows, unpacked side by side, row by row or tap by tap; a last block of fewer gives its sums back.
fn int_conv2d(op: &Conv2dS8, weights: &[u8]) -> [Counts; 3] {
    let window = &op.window;
    let [kernel_rows, kernel_columns] = window.kernel.map(f64::from);
    let [_, _, inputs] = window.input.map(f64::from);
    let height = i64::from(window.input[0]);
    let (columns, tops): (Vec<bool>, Vec<(i64, i64)>) = (whole(window, 1), taps(window, 0).collect());
    let [out_rows, out_columns, outputs] = window.output.map(usize::from);
    let alone = pointwise(window);
    let (images, pixels) = if alone {
        (1.0, usize::from(window.batch) * out_rows * out_columns)
    } else {
        (f64::from(window.batch), out_rows * out_columns)
    };
    let [mut full, mut part, mut short, mut by_row, mut by_tap] = [0.0; 5];
    for first in (0..pixels).step_by(4) {
        let count = (pixels - first).min(4);
        if count == 4 {
            full += 1.0;
        } else {
            part += 1.0;
            short += count as f64;
        }
        if alone {
            continue;
        }
        let last = (first + 3).min(pixels - 1);
        let (y, x) = (first / out_columns, first % out_columns);
        let (last_y, last_x) = (last / out_columns, last % out_columns);
        let rows = if y == last_y && columns[x] && columns[last_x] {
            tops[y].1.min(height) as f64
        } else {
            0.0
        };
        by_row += rows;
        by_tap += (kernel_rows - rows) * kernel_columns;
    }
    let found = channels(op, weights);
    let [by_4, by_2, by_3, by_8] = found.by_block;
    let padded = padded(kernel_rows * kernel_columns * inputs);
    [
        vec![
            ("1", 1.0),
            ("full", images * full),
            ("part", images * part),
            ("short", images * short),
            ("alone", if alone { full + part } else { 0.0 }),
            ("by row", images * by_row),
            ("by tap", images * by_tap),
            ("limited", limited(op)),
        ],
        vec![
            ("1", 1.0),
            ("channels", outputs as f64),
            ("ch/2", block(outputs as f64, 2.0)),
            ("by 4", by_4),
            ("by 2", by_2),
            ("by 3", by_3),
            ("by 8", by_8),
            ("general", found.general),
            ("constant", found.constant),
        ],
        vec![
            ("1", 1.0),
            ("padded", padded),
            ("padded/8", block(padded, 8.0)),
            ("depth", inputs),
            ("run", inputs * kernel_columns),
        ],
    ]
}

/// Pixel by pixel, four channels at a time.
fn int_dense(op: &Conv2dS8, weights: &[u8]) -> [Counts; 3] {
    let [rows, columns, outputs] = op.window.output.map(f64::from);
    let inputs = f64::from(op.window.input[2]);
    let found = channels(op, weights);
    let [by_4, by_2, by_3, by_8] = found.groups;
    let padded = padded(inputs);
    [
        vec![
            ("1", 1.0),
            ("pixels", f64::from(op.window.batch) * rows * columns),
            ("limited", limited(op)),
        ],
        vec![
            ("1", 1.0),
            ("channels", outputs),
            ("fours by 4", by_4),
            ("fours by 2", by_2),
            ("fours by 3", by_3),
            ("fours by 8", by_8),
            ("general", found.general),
            ("constant", found.constant),
        ],
        vec![
            ("1", 1.0),
            ("padded", padded),
            ("padded/8", block(padded, 8.0)),
            ("copied", if inputs % 4.0 == 0.0 { 0.0 } else { padded }),
        ],
    ]
}

/// Whether the loops of three pixels of three by three taps take the step's channels of the short form.
pub(super) fn by_three(window: &Window2d) -> bool {
    window.kernel == [3, 3] && window.stride[1] <= 2 && window.output[1] >= 3
}

/// Channel by channel: a plane with its border is filled, then goes past the taps.
fn int_depthwise(op: &Conv2dS8, weights: &[u8]) -> [Counts; 3] {
    let window = &op.window;
    let found = channels(op, weights);
    let [kernel_rows, kernel_columns] = window.kernel.map(f64::from);
    let [rows, columns, _] = window.input.map(f64::from);
    let [out_rows, out_columns, outputs] = window.output.map(f64::from);
    let plane: f64 = [0, 1]
        .map(|axis: usize| {
            let reach =
                u32::from(window.output[axis] - 1) * u32::from(window.stride[axis]) + u32::from(window.kernel[axis]);
            f64::from(reach.max(u32::from(window.padding[axis]) + u32::from(window.input[axis])))
        })
        .iter()
        .product();
    let images = f64::from(window.batch);
    let short: f64 = found.by_block.iter().sum::<f64>() - found.general;
    let (by_three, by_window) = if by_three(window) {
        (short, found.general)
    } else {
        (0.0, short + found.general)
    };
    [
        vec![
            ("1", 1.0),
            ("images", images),
            ("plane/4", images * block(plane, 4.0)),
            ("rows", images * rows),
            ("fours in", images * rows * (columns / 4.0).floor()),
            ("left in", images * rows * (columns % 4.0)),
            ("rows out", images * out_rows),
            ("threes", images * out_rows * (out_columns / 3.0).floor()),
            (
                "rests",
                if out_columns % 3.0 > 0.0 {
                    images * out_rows
                } else {
                    0.0
                },
            ),
            ("pixels", images * out_rows * out_columns),
            ("limited", limited(op)),
        ],
        vec![
            ("1", 1.0),
            ("channels", outputs),
            ("by three", by_three),
            ("by window", by_window),
            ("general", found.general),
            ("constant", found.constant),
        ],
        vec![
            ("1", 1.0),
            ("k rows", kernel_rows),
            ("taps", kernel_rows * kernel_columns),
        ],
    ]
}

/// The part of each window that lies inside; whole rows of the input are one.
fn pool(window: &Window2d) -> [Counts; 3] {
    let images = f64::from(window.batch);
    let [height, width] = [window.output[0], window.output[1]].map(f64::from);
    let line = i64::from(window.input[1]);
    let [rows, columns]: [Vec<f64>; 2] = [0, 1].map(|axis| taps(window, axis).map(|(_, count)| count as f64).collect());
    let [tall, wide]: [f64; 2] = [&rows, &columns].map(|counts| counts.iter().sum());
    let across = taps(window, 1).filter(|(_, count)| *count == line).count() as f64;
    let outputs = f64::from(window.output[2]);
    [
        vec![
            ("1", 1.0),
            ("images", images),
            ("rows", images * height),
            ("pixels", images * height * width),
            ("k rows in", images * tall * width),
            ("merged rows in", images * (height * across + tall * (width - across))),
            ("taps in", images * tall * wide),
        ],
        vec![
            ("1", 1.0),
            ("channels", outputs),
            ("fours", (outputs / 4.0).floor()),
            ("ch/4", block(outputs, 4.0)),
            ("ch/16", block(outputs, 16.0)),
            ("ch tail", outputs % 4.0),
        ],
        vec![("1", 1.0)],
    ]
}
