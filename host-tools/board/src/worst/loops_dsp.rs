//! [`super::loops`] of the kernels for the DSP extension.

use arenite::kernels::dsp::conv2d_s8::pixels_alone;
use arenite::ops::window::Window2d;

use super::counts::{Counts, block, in_one_row, taps, whole};

/// Blocks of four pixels: those of a row whose windows lie inside side by side, others pixel by pixel, and single pixels. The loop that widens windows is
/// entered once for all channels.
pub(super) fn conv2d(window: &Window2d) -> [Counts; 3] {
    let (images, rows, columns) = in_one_row(window);
    let (height, width) = (rows.len(), columns.len());
    let from = columns.iter().position(|&whole| whole).unwrap_or(width);
    let to = from + columns.iter().skip(from).take_while(|&&whole| whole).count();
    let kernel_rows = f64::from(window.kernel[0]);
    let reached: Vec<f64> = match taps(window, 0).map(|(_, count)| count as f64).collect() {
        reached if height == usize::from(window.output[0]) => reached,
        // All pixels in one row, of windows of one.
        _ => vec![kernel_rows],
    };
    let [inputs, outputs] = [window.input[2], window.output[2]].map(f64::from);
    let is_plain = window.dilation[1] == 1;
    // As the kernel's layout has them.
    let kernel_columns = f64::from(window.kernel[1]);
    let (runs, run) = if is_plain {
        (kernel_rows, kernel_columns * inputs)
    } else {
        (kernel_rows * kernel_columns, inputs)
    };
    let [words, tail] = [(run / 4.0).floor(), run % 4.0];
    let is_direct = is_plain || window.kernel[1] == 1;
    let alone = if is_direct {
        pixels_alone([height, width, window.output[2].into()], (from, to))
    } else {
        0
    };
    let [mut fours, mut ones] = [0.0; 2];
    // Of blocks whose windows lie inside side by side: rows of the output with such, blocks, rows of their windows inside, blocks' rows with some outside.
    let [mut runs_of_fours, mut direct, mut direct_rows, mut filled] = [0.0; 4];
    // Windows taken one by one: the rows of them that are copied as one and those by column; those that go by words, with their rows inside; and those that
    // go by bytes, of images whose rows have no word.
    let [mut single, mut plain, mut split] = [0.0; 3];
    let [mut shared, mut shared_rows, mut narrow] = [0.0; 3];
    let is_narrow = u32::from(window.input[1]) * u32::from(window.input[2]) < 4;
    let (mut y, mut x, mut left) = (0, 0, height * width);
    while left > 0 {
        let mut pixels = if is_direct && left >= 4 && x >= from && reached[y] > 0.0 {
            to.saturating_sub(x) / 4 * 4
        } else {
            0
        };
        if pixels > 0 {
            let blocks = pixels as f64 / 4.0;
            runs_of_fours += 1.0;
            direct += blocks;
            direct_rows += blocks * reached[y];
            filled += f64::from(u8::from(!rows[y]));
            fours += blocks;
            x += pixels;
        } else {
            pixels = if left >= 4 && (y > 0 || x >= alone) { 4 } else { 1 };
            for pixel in 0..pixels {
                // A row that lies outside altogether is filled as one.
                let across = if columns[x] { 0.0 } else { reached[y] };
                if is_plain && inputs % 4.0 != 0.0 && (!columns[x] || words == 1.0) {
                    if is_narrow {
                        narrow += 1.0;
                    } else {
                        shared += 1.0;
                        shared_rows += reached[y];
                    }
                } else {
                    single += 1.0;
                    plain += kernel_rows - across;
                    split += across;
                }
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
    let pairs = runs * words * 2.0 + block(runs * tail, 2.0);
    let odd = outputs % 2.0;
    [
        vec![
            ("1", 1.0),
            ("fours", images * fours),
            ("ones", images * ones),
            ("once runs of fours", images * runs_of_fours),
            ("once direct", images * direct),
            ("once direct rows", images * direct_rows),
            ("once filled", images * filled),
            ("once single", images * single),
            ("once plain rows", images * plain),
            ("once split rows", images * split),
            ("once shared", images * shared),
            ("once shared rows", images * shared_rows),
            ("once narrow", images * narrow),
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
            ("pairs/16", block(pairs, 16.0)),
            ("k rows", kernel_rows),
            ("k columns", kernel_columns),
            ("words", words),
            ("tail", tail),
            ("all words", runs * words),
            ("tails/2", block(runs * tail, 2.0)),
        ],
    ]
}

/// As [`conv2d`], pairs by fours, and what ends with each group of them.
pub(super) fn groups(window: &Window2d, share: u32) -> [Counts; 3] {
    let [pixels, channels, mut terms] = conv2d(window);
    if let Some((_, pairs)) = terms.iter_mut().find(|(name, _)| *name == "pairs") {
        *pairs = block(*pairs, 4.0) * 4.0;
        let groups = block(2.0 * *pairs, share.into());
        terms.push(("groups", groups));
    }
    [pixels, channels, terms]
}

/// One row of activations after the other, widened whole or by tiles of 256.
pub(super) fn dense(window: &Window2d) -> [Counts; 3] {
    let [inputs, outputs] = [window.input[2], window.output[2]].map(f64::from);
    [
        vec![("1", 1.0), ("rows", window.batch.into())],
        vec![
            ("1", 1.0),
            ("ch", outputs),
            ("ch/2", block(outputs, 2.0)),
            ("odd", outputs % 2.0),
        ],
        vec![
            ("1", 1.0),
            ("pairs", block(inputs, 2.0)),
            ("rest", block(inputs, 2.0) % 4.0),
            ("tiles", block(inputs, 256.0)),
        ],
    ]
}

/// Runs of pixels whose windows lie inside, and others pixel by pixel; a table of taps is made for each.
pub(super) fn depthwise(window: &Window2d) -> [Counts; 3] {
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

/// Lines, the longer way, of four channels: widened to pairs of neighbours, those at both ends one by one, then multiplied by twos.
pub(super) fn sliding(window: &Window2d) -> [Counts; 3] {
    let [height, width, channels] = window.output.map(f64::from);
    let images = f64::from(window.batch);
    let across = height > width;
    let (length, count) = if across { (height, width) } else { (width, height) };
    let before = f64::from(window.padding[usize::from(!across)]);
    let pairs = block(length, 2.0) + 1.0;
    let from = block(before, 2.0).min(pairs);
    let inside = (((length + before) / 2.0).floor().min(pairs) - from).max(0.0);
    [
        vec![("1", 1.0), ("quads", images * block(channels, 4.0))],
        vec![
            ("1", 1.0),
            ("lines", count),
            ("twos", count * (length / 2.0).floor()),
            ("odd", count * (length % 2.0)),
            ("inside", count * inside),
            ("ends", count * (pairs - inside)),
            ("outside", (count + 2.0) * pairs),
        ],
        vec![("1", 1.0)],
    ]
}
