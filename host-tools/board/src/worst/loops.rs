//! How often kernels enter their loops, in closed form: what [`super::instructions`] has for those whose loops are not the window's own.

use arenite::Step;
use arenite::kernels::packed::dwconv_s8;
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::window::Window2d;

use super::counts::{Counts, block, pointwise, taps, whole};
use super::{loops_dsp, loops_mve, loops_neon, loops_rvv, loops_sme};

/// The counts of kernels that take several pixels of a window at a time; `None` of the others.
pub(super) fn counts(step: &Step, window: &Window2d, weights: &[u8]) -> Option<[Counts; 3]> {
    Some(match step {
        Step::DspDenseS8(_) => loops_dsp::dense(window),
        Step::MveDenseS8(_) => loops_mve::dense(window),
        Step::DspConv2dS8(_) | Step::DspPairsConv2dS8(_) | Step::DspW4Conv2dS8(_) => loops_dsp::conv2d(window),
        Step::DspGroupsConv2dS8(op) => loops_dsp::groups(window, op.share),
        Step::DspDepthwiseS8(_) => loops_dsp::depthwise(window),
        Step::DspSlidingDepthwiseS8(_) => loops_dsp::sliding(window),
        Step::DotprodConv2dS8(_) | Step::I8mmConv2dS8(_) => loops_neon::conv2d(step, window, 4),
        Step::NeonConv2dS8(_) => loops_neon::conv2d(step, window, 2),
        Step::NeonConv2dF32(op) => loops_neon::conv2d_f32(step, window, op.residual.is_some()),
        Step::NeonDepthwiseF32(op) => {
            loops_neon::depthwise_f32(loops_dsp::depthwise(window), window, op.residual.is_some())
        }
        Step::MveTapsDepthwiseS8(_) | Step::NeonDepthwiseS8(_) => {
            loops_neon::depthwise(loops_dsp::depthwise(window), window)
        }
        Step::SmeConv2dS8(_) => loops_sme::conv2d(window),
        Step::RvvConv2dS8(_) => loops_rvv::conv2d(window),
        Step::RvvDepthwiseS8(_) => loops_rvv::depthwise(window),
        Step::IntConv2dS8(op) => int_conv2d(op, weights),
        Step::IntWinogradConv2dS8(op) => int_winograd(op, weights),
        Step::IntDenseS8(op) => int_dense(op, weights),
        Step::IntNarrowDenseS8(op) => int_narrow_dense(op, weights),
        Step::IntDepthwiseS8(op) => int_depthwise(op, weights),
        Step::Conv2dS16(op) => wide(window, op.groups),
        Step::W16Conv2dF32(op) | Step::W8Conv2dF32(op) | Step::W4Conv2dF32(op) => low_bit(window, op.groups, op.share),
        Step::W4Conv2dS8(op) => low_bit(window, op.groups, op.share),
        Step::Conv2dF32(op) | Step::DepthwiseF32(op) => scalar(window, op.groups, op.residual.is_some()),
        Step::Conv2dS8(op) | Step::DepthwiseS8(op) => scalar(window, op.groups, false),
        Step::MveConv2dS8(_) | Step::MveW4Conv2dS8(_) => loops_mve::conv2d(step, window, 1),
        Step::MveGroupsConv2dS8(op) => loops_mve::groups(op),
        Step::MveConv2dF32(op) => loops_mve::conv2d_f32(step, window, op.residual.is_some()),
        Step::MveDepthwiseS8(_) => loops_mve::depthwise(step, window),
        _ if step.kernel().name().contains("Pool") => pool(window),
        _ => return None,
    })
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

/// Output by output, four channels at a time, along lines of neighbours: rows of taps, or where these are apart tap by tap.
fn wide(window: &Window2d, groups: u16) -> [Counts; 3] {
    let [mut places, _, _] = scalar(window, groups, false);
    let depth = u32::from(window.input[2] / groups.max(1));
    let lines = if window.dilation[1] == 1 && groups == 1 {
        "k rows in"
    } else {
        "taps in"
    };
    let lines = places
        .iter()
        .find(|(name, _)| *name == lines)
        .map_or(0.0, |(_, lines)| *lines);
    places.push(("lines", lines));
    let outputs = f64::from(window.output[2]);
    [
        places,
        vec![
            ("1", 1.0),
            ("channels", outputs),
            ("ch/4", block(outputs, 4.0)),
            ("ch tail", outputs % 4.0),
        ],
        vec![
            ("1", 1.0),
            ("depth", depth.into()),
            ("depth/4", f64::from(depth / 4)),
            ("depth left", f64::from(depth % 4)),
            ("k columns", window.kernel[1].into()),
        ],
    ]
}

/// As [`wide`], output by output, with a scale for every `share` weights.
fn low_bit(window: &Window2d, groups: u16, share: u32) -> [Counts; 3] {
    let [places, channels, mut terms] = wide(window, groups);
    let depth = u32::from(window.input[2] / groups.max(1));
    let together = window.dilation[1] == 1 && groups == 1;
    let run = if together {
        depth * u32::from(window.kernel[1])
    } else {
        depth
    };
    terms.push(("parts", f64::from(run.div_ceil(share.max(1)))));
    let outputs = channels
        .into_iter()
        .filter(|(name, _)| ["1", "channels"].contains(name))
        .collect();
    [places, outputs, terms]
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

/// Pairs of tiles of 2 x 2 pixels, four channels at a time.
fn int_winograd(op: &Conv2dS8, weights: &[u8]) -> [Counts; 3] {
    let [rows, columns, outputs] = op.window.output.map(f64::from);
    let images = f64::from(op.window.batch);
    let rows_of_tiles = images * block(rows, 2.0);
    let general = channels(op, weights).general;
    [
        vec![
            ("1", 1.0),
            ("images", images),
            ("rows", rows_of_tiles),
            ("pairs", rows_of_tiles * block(columns, 4.0)),
            ("pixels", images * rows * columns),
            ("limited", limited(op)),
        ],
        vec![
            ("1", 1.0),
            ("channels", outputs),
            ("ch/4", block(outputs, 4.0)),
            ("general", general),
        ],
        vec![("1", 1.0), ("depth", op.window.input[2].into())],
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

/// As [`int_dense`], but of one or two channels that are left the others are not computed.
fn int_narrow_dense(op: &Conv2dS8, weights: &[u8]) -> [Counts; 3] {
    let [pixels, mut channels, terms] = int_dense(op, weights);
    let halved = f64::from(u8::from(matches!(op.window.output[2] % 4, 1 | 2)));
    for (name, count) in &mut channels {
        if *name == "fours by 2" {
            *count -= halved;
        }
    }
    channels.push(("half", halved));
    [pixels, channels, terms]
}

/// Channel by channel: a plane with its border is filled, then goes past the taps; without a border, taps are read where they lie.
fn int_depthwise(op: &Conv2dS8, weights: &[u8]) -> [Counts; 3] {
    let by_three = dwconv_s8::by_three(&op.window);
    let window = &if by_three {
        dwconv_s8::in_plane(&op.window)
    } else {
        dwconv_s8::turned(&op.window)
    };
    let found = channels(op, weights);
    let [kernel_rows, kernel_columns] = window.kernel.map(f64::from);
    let [rows, columns, _] = window.input.map(f64::from);
    let [out_rows, out_columns, outputs] = window.output.map(f64::from);
    let images = f64::from(window.batch);
    let short: f64 = found.by_block.iter().sum::<f64>() - found.general;
    let channels = vec![
        ("1", 1.0),
        ("channels", outputs),
        ("by three", if by_three { short } else { 0.0 }),
        ("by window", found.general + if by_three { 0.0 } else { short }),
        ("general", found.general),
        ("constant", found.constant),
    ];
    let terms = vec![
        ("1", 1.0),
        ("k rows", kernel_rows),
        ("taps", kernel_rows * kernel_columns),
        ("k pairs", kernel_rows * block(kernel_columns, 2.0)),
        ("k threes", kernel_rows * block(kernel_columns, 3.0)),
    ];
    let direct = !by_three && dwconv_s8::is_direct(window);
    let one = !by_three && dwconv_s8::is_one(window);
    let unless = |is: bool, count: f64| if is { 0.0 } else { images * count };
    let (filled, lines) = (|count| unless(direct, count), |count| unless(one, count));
    let plane: f64 = dwconv_s8::plane(window).map(f64::from).iter().product();
    let left = out_columns % 3.0;
    // Without a plane none is written twice.
    let alone = if direct || out_columns < 3.0 { left } else { 0.0 };
    let again = if left > 0.0 && !direct { out_rows } else { 0.0 };
    let places = vec![
        ("1", 1.0),
        ("images", images),
        ("points", if one { images } else { 0.0 }),
        ("plane/4", filled(block(plane, 4.0))),
        ("rows", filled(rows)),
        ("fours in", filled(rows * (columns / 4.0).floor())),
        ("left in", filled(rows * (columns % 4.0))),
        ("rows out", lines(out_rows)),
        ("threes", lines(out_rows * (out_columns / 3.0).floor())),
        ("rests", lines(again)),
        ("alone", lines(out_rows * alone)),
        ("rows once", lines(if direct { out_rows } else { 0.0 })),
        ("pixels", lines(out_rows * out_columns)),
        ("limited", limited(op)),
    ];
    [places, channels, terms]
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
            ("eights", (outputs / 8.0).floor()),
            ("beside eights", outputs % 8.0),
        ],
        vec![("1", 1.0)],
    ]
}
