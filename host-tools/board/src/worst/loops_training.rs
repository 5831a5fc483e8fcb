//! [`super::loops`] of operators of training: tiles of sums, by the blocks that their loops take, and what is left over one by one.

use arenite::Step;
use arenite::ops::activation_grad::Activated;
use arenite::ops::window::Window2d;

use super::counts::{Counts, block, near, taps};
use super::loops_single::grid;

/// Terms of a sum that is a term itself.
const ROW: f64 = 32.0;

/// The counts of such a step; `None` of others.
pub(super) fn counts(step: &Step) -> Option<[Counts; 3]> {
    Some(match step {
        Step::TrainedConv2dF32(op) => forward(&op.window, op.groups, op.bias.is_some()),
        Step::Conv2dInputGradF32(op) => input_grad(&op.window, op.groups),
        Step::Conv2dWeightSgdF32(op) => weight_sgd(&op.window, op.groups),
        Step::LinearInputGradF32(op) => {
            let outputs = f64::from(op.outputs);
            grid(
                &[("rows", op.rows.into())],
                &blocks("eights", "single inputs", op.inputs, 8),
                &[("outputs", outputs), ("sums of sums", block(outputs, ROW))],
            )
        }
        Step::LinearWeightSgdF32(op) => {
            let (rows, is_one) = (f64::from(op.rows), op.rows == 1);
            let one = |count: u32| if is_one { f64::from(count) } else { 0.0 };
            let mut places = tiles(op.outputs, op.inputs, if is_one { 0.0 } else { 1.0 }).to_vec();
            places.extend([
                ("outputs alone", one(op.outputs)),
                ("weights alone", one(op.outputs.saturating_mul(op.inputs))),
            ]);
            grid(&places, &[], &[("rows", rows), ("sums of sums", block(rows, ROW))])
        }
        Step::BiasSgdF32(op) => {
            let rows = f64::from(op.rows);
            let [eights, single] = blocks("eights", "single channels", op.channels, 8);
            grid(
                &[eights, single],
                &[],
                &[("rows", rows), ("sums of sums", block(rows, ROW))],
            )
        }
        Step::BatchNormF32(op) => grid(&[("rows", op.rows.into())], &[("channels", op.channels.into())], &[]),
        Step::BatchStatisticsF32(op) => {
            let [eights, single] = blocks("eights", "single channels", op.channels, 8);
            grid(&of_batch(op.rows), &[eights, single], &[])
        }
        Step::BatchNormGradF32(op) => {
            let [eights, single] = blocks("eights", "single channels", op.channels, 8);
            grid(
                &of_batch(op.rows),
                &[eights, single, ("channels", op.channels.into())],
                &[],
            )
        }
        Step::TrainedLocallyConnectedF32(op) => local(op.batch, op.input_shape, op.output_shape(), op.kernel),
        Step::LocallyConnectedGainGradF32(op) => local(op.batch, op.input_shape, op.output_shape(), op.kernel),
        Step::LocallyConnectedInputGradF32(op) => {
            let [channels, rows, columns] = op.input_shape.map(f64::from);
            let ([filters, ..], [kernel_rows, kernel_columns]) =
                (op.output_shape().map(f64::from), op.kernel.map(f64::from));
            grid(
                &[("lines", f64::from(op.batch) * channels * rows)],
                &[
                    ("filters", filters),
                    ("k rows", filters * kernel_rows),
                    ("taps", filters * kernel_rows * kernel_columns),
                ],
                &[("blocks", block(columns, 8.0)), ("columns", columns)],
            )
        }
        Step::LocallyConnectedWeightSgdF32(op) => {
            let [filters, rows, columns] = op.output_shape().map(f64::from);
            let taps = op.kernel.map(f64::from).iter().product::<f64>() * f64::from(op.input_shape[0]);
            grid(
                &[("lines", filters * taps * rows)],
                &[("images", op.batch.into())],
                &[("blocks", block(columns, 8.0)), ("columns", columns)],
            )
        }
        Step::MaxPoolPositionsF32(op) => {
            let [fours, single] = blocks("fours", "single channels", op.window.output[2].into(), 4);
            grid(&places(&op.window), &[fours, single], &[])
        }
        Step::MaxPoolGradF32(op) => pool_grad(&op.window),
        Step::AvgPoolGradF32(op) => pool_grad(&op.window),
        Step::ActivationGradF32(op) => {
            let of = |is: bool| if is { f64::from(op.count) } else { 0.0 };
            grid(
                &[
                    ("clamps", of(matches!(op.activation, Activated::Clamp { .. }))),
                    ("tanhs", of(op.activation == Activated::Tanh)),
                    ("logistics", of(op.activation == Activated::Logistic)),
                ],
                &[],
                &[],
            )
        }
        Step::LrnGradF32(op) => grid(
            &[("pixels", op.pixels.into())],
            &[("channels", op.channels.into()), ("near", near(op.channels, op.radius))],
            &[],
        ),
        Step::SoftmaxCrossEntropyF32(op) => grid(&[("rows", op.rows.into())], &[], &[("classes", op.classes.into())]),
        Step::SquaredErrorF32(op) => {
            let count = f64::from(op.count);
            let targets = if op.target.is_some() { count } else { 0.0 };
            grid(&[("elements", count), ("targets", targets)], &[], &[])
        }
        _ => return None,
    })
}

/// Rows of a batch, and sums that are terms.
fn of_batch(rows: u32) -> [(&'static str, f64); 2] {
    let rows = f64::from(rows);
    [("rows", rows), ("sums of sums", block(rows, ROW))]
}

/// Row by row of the output, eight columns at a time, through all taps.
fn local(batch: u16, input: [u16; 3], output: [u16; 3], kernel: [u16; 2]) -> [Counts; 3] {
    let [filters, rows, columns] = output.map(f64::from);
    let ([kernel_rows, kernel_columns], inputs) = (kernel.map(f64::from), f64::from(input[0]));
    grid(
        &[("lines", f64::from(batch) * filters * rows)],
        &[
            ("inputs", inputs),
            ("k rows", inputs * kernel_rows),
            ("taps", inputs * kernel_rows * kernel_columns),
        ],
        &[("blocks", block(columns, 8.0)), ("columns", columns)],
    )
}

/// Whole blocks of `of`, and what is left.
fn blocks(whole: &'static str, single: &'static str, count: u32, of: u32) -> [(&'static str, f64); 2] {
    [(whole, f64::from(count / of)), (single, f64::from(count % of))]
}

/// Tiles of four by four weights, and those that are narrower, of `groups` groups.
fn tiles(outputs: u32, inputs: u32, groups: f64) -> [(&'static str, f64); 4] {
    let of = |outputs: u32, inputs: u32| groups * f64::from(outputs) * f64::from(inputs);
    [
        ("tiles", of(outputs / 4, inputs / 4)),
        ("tall tiles", of(outputs / 4, inputs % 4)),
        ("wide tiles", of(outputs % 4, inputs / 4)),
        ("single weights", of(outputs % 4, inputs % 4)),
    ]
}

/// Pixels of the output, and the rows and taps of their windows that lie inside the input.
fn places(window: &Window2d) -> [(&'static str, f64); 5] {
    let images = f64::from(window.batch);
    let [height, width] = [window.output[0], window.output[1]].map(f64::from);
    let [tall, wide] = [0, 1].map(|axis| taps(window, axis).map(|(_, count)| count as f64).sum::<f64>());
    [
        ("images", images),
        ("lines", images * height),
        ("pixels", images * height * width),
        ("k rows in", images * tall * width),
        ("taps in", images * tall * wide),
    ]
}

/// Channels of a group: of the input, and of the output.
fn of_group(window: &Window2d, groups: u16) -> [u32; 2] {
    [window.input[2], window.output[2]].map(|channels| u32::from(channels / groups.max(1)))
}

/// Pixel by pixel, four filters at a time, along runs of neighbours: rows of the window, or where taps are apart tap by tap.
fn forward(window: &Window2d, groups: u16, biased: bool) -> [Counts; 3] {
    let [depth, filters] = of_group(window, groups);
    let all = places(window);
    let [_, _, _, rows, inside] = all;
    let depth = f64::from(depth);
    let parts = |of: f64| [(of / 4.0).floor(), of % 4.0];
    let (runs, [fours_in, left]) = if window.dilation[1] == 1 && groups == 1 {
        let tall = rows.1 / f64::from(window.output[1]).max(1.0);
        let each = taps(window, 1).map(|(_, count)| parts(count as f64 * depth));
        let [blocks, left] = each.fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]]);
        (rows.1, [tall * blocks, tall * left])
    } else {
        (inside.1, parts(depth).map(|part| inside.1 * part))
    };
    let mut all = all.to_vec();
    all.extend([("runs", runs), ("fours in", fours_in), ("left in", left)]);
    let [fours, single] = blocks("fours", "single filters", filters, 4);
    let each = |(name, count): (&'static str, f64)| (name, count * f64::from(groups));
    let outputs = f64::from(window.output[2]);
    grid(
        &all,
        &[
            ("groups", groups.into()),
            each(fours),
            each(single),
            ("biased", if biased { outputs } else { 0.0 }),
        ],
        &[],
    )
}

/// Pixel by pixel of the input, eight channels at a time, each tap that an output has here.
fn input_grad(window: &Window2d, groups: u16) -> [Counts; 3] {
    let [channels, filters] = of_group(window, groups);
    let images = f64::from(window.batch);
    let [rows, columns, _] = window.input.map(f64::from);
    let [kernel_rows, kernel_columns] = window.kernel.map(f64::from);
    let pixels = images * rows * columns;
    let tall: f64 = taps(window, 0).map(|(_, count)| count as f64).sum();
    let [_, _, _, _, inside] = places(window);
    let each = |(name, count): (&'static str, f64)| (name, count * f64::from(groups));
    let [eights, single] = blocks("eights", "single channels", channels, 8);
    grid(
        &[
            ("pixels", pixels),
            ("k rows", pixels * kernel_rows),
            ("taps", images * tall * columns * kernel_columns),
            inside,
        ],
        &[("groups", groups.into()), each(eights), each(single)],
        &[("filters", filters.into())],
    )
}

/// Taps of an axis that lie inside the input for some place of the output.
fn met(window: &Window2d, axis: usize) -> f64 {
    let mut all: Vec<i64> = taps(window, axis)
        .flat_map(|(first, count)| first..first + count)
        .collect();
    all.sort_unstable();
    all.dedup();
    all.len() as f64
}

/// Tap by tap, a tile of weights at a time, over all pixels that have the tap inside.
fn weight_sgd(window: &Window2d, groups: u16) -> [Counts; 3] {
    let [channels, filters] = of_group(window, groups);
    let images = f64::from(window.batch);
    let kernel_columns = f64::from(window.kernel[1]);
    let [met_rows, met_columns] = [0, 1].map(|axis| met(window, axis));
    let tall: f64 = taps(window, 0).map(|(_, count)| count as f64).sum();
    let [_, _, _, _, inside] = places(window);
    let mut narrow = tiles(filters, channels, groups.into()).to_vec();
    narrow.push(("outputs", window.output[2].into()));
    grid(
        &[
            ("taps", met_rows * kernel_columns),
            ("taps met", met_rows * met_columns),
            ("images", images * met_rows * met_columns),
            ("lines", images * tall * met_columns),
            inside,
        ],
        &narrow,
        &[],
    )
}

/// The gradient is cleared, then each output gives its own to taps of its window.
fn pool_grad(window: &Window2d) -> [Counts; 3] {
    let cleared = f64::from(window.batch) * window.input.map(f64::from).iter().product::<f64>();
    let mut all = places(window).to_vec();
    all.push(("cleared", cleared));
    grid(&all, &[("channels", window.output[2].into())], &[])
}
