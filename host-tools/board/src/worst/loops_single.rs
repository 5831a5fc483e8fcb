//! [`super::loops`] of operators without a window: what a loop goes by, in elements, rows and axes.

use arenite::ops::detections::{Detections, Suppression};
use arenite::ops::elementwise::Loop;
use arenite::ops::fft::FftPlan;
use arenite::ops::movement::CopyStrided;
use arenite::ops::svdf::SvdfShape;
use arenite::{Access, Slot, Step};

use super::counts::{Counts, block, near};

/// The counts of a step without a window.
pub(super) fn counts(step: &Step) -> [Counts; 3] {
    match step {
        Step::LinearF32(op) => grid(
            &[("rows", op.rows.into())],
            &[
                ("out", op.outputs.into()),
                ("out/4", block(op.outputs.into(), 4.0)),
                ("out/2", f64::from(op.outputs / 2)),
                ("odd", f64::from(op.outputs % 2)),
            ],
            &eights("in", op.inputs),
        ),
        Step::MveLinearF32(op) => mve_linear(op.rows, op.inputs, op.outputs),
        Step::SoftmaxF32(op) => grid(
            &[("rows", op.rows.into())],
            &[
                ("log", f64::from(u8::from(op.log))),
                ("exp", f64::from(u8::from(!op.log))),
            ],
            &[("classes", op.classes.into())],
        ),
        Step::SoftmaxS8(op) | Step::SoftmaxInt(op) => {
            grid(&[("rows", op.rows.into())], &[], &[("classes", op.classes.into())])
        }
        Step::ReduceF32(op) => folded(op.shape),
        Step::ReduceInt(op) => reduced(op.shape),
        Step::LrnF32(op) => {
            let near = near(op.channels, op.radius);
            grid(
                &[("pixels", op.pixels.into())],
                &[("channels", op.channels.into()), ("near", near)],
                &[],
            )
        }
        Step::LrnS8(op) => grid(
            &[("pixels", op.pixels.into())],
            &[
                ("channels", op.channels.into()),
                ("first", f64::from(op.radius).min(op.channels.into())),
            ],
            &[],
        ),
        Step::Resize(op) => {
            let [rows, columns] = op.to.map(f64::from);
            let batch = f64::from(op.batch);
            grid(
                &[
                    ("images", batch),
                    ("rows", batch * rows),
                    ("pixels", batch * rows * columns),
                ],
                &[("channels", op.channels.into())],
                &[],
            )
        }
        Step::ArgMax(op) => {
            let [outer, extent, inner] = op.shape.map(f64::from);
            grid(&[("outer", outer)], &[("inner", inner)], &[("extent", extent)])
        }
        Step::Detections(op) => detected(op),
        Step::L2NormS8(op) => grid(&[("rows", op.rows.into())], &[], &[("channels", op.channels.into())]),
        Step::Gather(op) => {
            let [outer, _, inner] = op.shape;
            let rows = f64::from(outer) * f64::from(op.count);
            grid(
                &[("outer", outer.into()), ("rows", rows)],
                &[],
                &lines("row", inner.into()),
            )
        }
        Step::MatMulInt(op) => {
            let matrices: f64 = op.loops.iter().map(|l| f64::from(l.count)).product();
            let [rows, terms, columns] = op.shape.map(f64::from);
            grid(
                &[
                    ("matrices", matrices),
                    ("axes", matrices * op.loops.len() as f64),
                    ("rows", matrices * rows),
                ],
                &[("columns", columns)],
                &[("terms", terms)],
            )
        }
        Step::SvdfS8(op) => svdf(&op.shape),
        Step::IntSvdfS8(op) => svdf(&op.shape),
        Step::SvdfF32(op) => svdf(&op.shape),
        Step::DspSvdfS8(op) => dsp_svdf(&op.shape),
        Step::MveSvdfS8(op) => mve_svdf(&op.shape),
        Step::LstmInt(op) => lstm(op.shape.batch, op.shape.time, op.shape.features, op.shape.cells),
        Step::LstmF32(op) => lstm(op.shape.batch, op.shape.time, op.shape.features, op.shape.cells),
        Step::LocallyConnectedF32(op) => {
            let [outputs, rows, columns] = op.output_shape().map(f64::from);
            let [kernel_rows, kernel_columns] = op.kernel.map(f64::from);
            let inputs = f64::from(op.input_shape[0]);
            let lines = f64::from(op.batch) * outputs * rows;
            grid(
                &[("lines", lines)],
                &[
                    ("inputs", inputs),
                    ("k rows", inputs * kernel_rows),
                    ("taps", inputs * kernel_rows * kernel_columns),
                ],
                &eights("columns", columns as u32),
            )
        }
        Step::LocallyConnectedS8(op) => {
            // A line's columns go in blocks, each through all taps.
            let [outputs, rows, columns] = op.output_shape().map(f64::from);
            let [kernel_rows, kernel_columns] = op.kernel.map(f64::from);
            let inputs = f64::from(op.input_shape[0]);
            let lines = f64::from(op.batch) * outputs * rows;
            grid(
                &[("lines", lines)],
                &[
                    ("k rows", inputs * kernel_rows),
                    ("taps", inputs * kernel_rows * kernel_columns),
                ],
                &[("columns", columns), ("columns/16", block(columns, 16.0))],
            )
        }
        Step::CopyBytes(op) => copied(op),
        Step::SignalFilterBank(op) => grid(&[("channels", op.channels.into()), ("taps", op.taps.into())], &[], &[]),
        Step::SignalEnergy(op) => grid(
            &[("bins", op.bins.into()), ("wanted", f64::from(op.end - op.start))],
            &[],
            &[],
        ),
        Step::SignalWindow(op) => grid(
            &[
                ("samples", op.count.into()),
                ("rows", f64::from(op.count / op.size.max(1))),
            ],
            &[],
            &[],
        ),
        Step::SignalFftS16(op) | Step::SignalFftS32(op) | Step::SignalFftF32(op) => {
            transform(op.rows, op.samples, op.length)
        }
        Step::SignalDelay(op) => grid(
            &[("rows", op.rows.into())],
            &[],
            &[("frame", op.frame.into()), ("delay", op.delay.into())],
        ),
        Step::SignalFramer(op) => grid(
            &[("rows", op.rows.into())],
            &[("frames", op.frames.into())],
            &[
                ("size", op.size.into()),
                ("step", op.step.into()),
                ("history", op.history().into()),
            ],
        ),
        Step::SignalStacker(op) => grid(
            &[("channels", op.channels.into()), ("history", op.history().into())],
            &[],
            &[],
        ),
        Step::SignalOverlapAdd(op) => grid(
            &[("rows", op.rows.into())],
            &[("frames", op.frames.into())],
            &[("size", op.size.into()), ("step", op.step.into())],
        ),
        _ => elements(step),
    }
}

/// A pass orders all candidates and compares each with all that are taken; of each class one, or one of all.
fn detected(op: &Detections) -> [Counts; 3] {
    let [candidates, taken, labels, rows] = [op.candidates, op.taken(), op.labels, op.rows()].map(f64::from);
    let levels = f64::from(op.candidates.max(2)).log2().ceil();
    let (passes, told) = match op.suppression {
        Suppression::Fast { classes } => (1.0, taken * f64::from(classes)),
        Suppression::Regular { .. } => (labels, 0.0),
    };
    grid(
        &[
            ("rows", rows),
            ("told", told),
            ("told labels", told * labels),
            ("scores", candidates * labels),
            ("passes", passes),
            ("candidates", passes * candidates),
            ("levels", passes * candidates * levels),
            ("pairs", passes * candidates * taken),
            ("taken", passes * taken),
            ("merged", passes * rows),
        ],
        &[],
        &[],
    )
}

/// The axes of a step that broadcasts.
pub(super) fn axes(step: &Step) -> &[Loop] {
    match step {
        Step::BinaryInt(op) | Step::IntAddS8(op) | Step::MveSumS8(op) => &op.loops,
        Step::BinaryF32(op) => &op.loops,
        Step::SpecialBinaryF32(op) => &op.loops,
        Step::Compare(op) => &op.loops,
        Step::Choose(op) => &op.loops,
        Step::SpecialInt(op) => &op.loops,
        _ => &[],
    }
}

/// Element by element; where operands are broadcast in lines of the innermost axis, and the axes outside go on like an odometer.
fn elements(step: &Step) -> [Counts; 3] {
    let (mut written, mut read) = (0.0, 0.0);
    step.operands(&mut |operand| {
        let elements = f64::from(operand.bytes) / f64::from(operand.align.max(1));
        match operand.access {
            _ if operand.place.region == Slot::WEIGHTS => {}
            Access::Write => written += elements,
            Access::Read => read += elements,
            _ => {}
        }
    });
    let axes = axes(step);
    let entered = |inside: usize| -> f64 {
        match axes.len() {
            len if len > inside => axes
                .iter()
                .take(len - inside)
                .map(|axis| f64::from(axis.count))
                .product(),
            _ => 0.0,
        }
    };
    grid(
        &[
            ("elements", written),
            ("elements/4", block(written, 4.0)),
            ("fours", (written / 4.0).floor()),
            ("left", written % 4.0),
            ("elements/16", block(written, 16.0)),
            ("read", read),
            ("lines", entered(1)),
            ("planes", entered(2)),
            ("volumes", entered(3)),
        ],
        &[],
        &[],
    )
}

/// Counts whose products are features, each beside one.
pub(super) fn grid(
    places: &[(&'static str, f64)],
    channels: &[(&'static str, f64)],
    terms: &[(&'static str, f64)],
) -> [Counts; 3] {
    [places, channels, terms].map(|counts| [("1", 1.0)].iter().chain(counts).copied().collect())
}

/// A row in blocks of eight.
pub(super) fn eights(name: &'static str, len: u32) -> [(&'static str, f64); 3] {
    [
        (name, len.into()),
        ("eights in", f64::from(len / 8)),
        ("left in", f64::from(len % 8)),
    ]
}

/// A row in blocks of sixteen and four.
pub(super) fn lines(name: &'static str, len: f64) -> [(&'static str, f64); 4] {
    [
        (name, len),
        ("sixteens", (len / 16.0).floor()),
        ("fours", (len % 16.0 / 4.0).floor()),
        ("ones", len % 4.0),
    ]
}

/// As [`reduced`]; neighbouring outputs go by blocks, and neighbouring elements of an output.
fn folded(shape: [u32; 5]) -> [Counts; 3] {
    let [mut places, rows, mut columns] = reduced(shape);
    let [outer, r, kept, s, inner] = shape.map(f64::from);
    // One axis is one loop, over elements that are neighbours where nothing lies between them.
    let (elements, together) = match (s == 1.0, kept == 1.0) {
        (true, _) => (r, kept * inner == 1.0),
        (_, true) => (r * s, inner == 1.0),
        _ => (s, inner == 1.0),
    };
    // Lines of outputs, and outputs of a line that are neighbours.
    let (lines, neighbours) = match (inner > 1.0, kept > 1.0) {
        (true, _) => (outer * kept, inner),
        (_, true) => (outer, if s == 1.0 { kept } else { 0.0 }),
        _ => (1.0, if r * s == 1.0 { outer } else { 0.0 }),
    };
    let outputs = outer * kept * inner;
    for (blocks, beside, of) in [("by 8", "beside 8", 8.0), ("by 4", "beside 4", 4.0)] {
        let count = lines * (neighbours / of).floor();
        places.extend([(blocks, count), (beside, outputs - of * count)]);
    }
    let eights = if together { (elements / 8.0).floor() } else { 0.0 };
    columns.extend([("r eights", eights), ("r left", elements - 8.0 * eights)]);
    [places, rows, columns]
}

fn reduced(shape: [u32; 5]) -> [Counts; 3] {
    let [outer, rows, kept, columns, inner] = shape.map(f64::from);
    grid(
        &[
            ("outer", outer),
            ("kept", outer * kept),
            ("outputs", outer * kept * inner),
        ],
        &[("r rows", rows)],
        &[("r columns", columns), ("r columns/4", block(columns, 4.0))],
    )
}

/// Four outputs of a row at a time, the last ones again; of fewer, four rows of an output.
fn mve_linear(rows: u32, inputs: u32, outputs: u32) -> [Counts; 3] {
    let (lines, fours) = if outputs < 4 {
        let calls = f64::from(outputs) * f64::from(rows / 4 + rows % 4);
        (calls, calls)
    } else {
        let rows = f64::from(rows);
        let calls = if outputs.is_multiple_of(4) { rows } else { 2.0 * rows };
        (calls, rows * block(outputs.into(), 4.0))
    };
    grid(
        &[("rows", rows.into()), ("calls", lines), ("fours", fours)],
        &[],
        &[("in/4", block(inputs.into(), 4.0))],
    )
}

fn svdf(shape: &SvdfShape) -> [Counts; 3] {
    let filters = f64::from(shape.filters());
    grid(
        &[("images", shape.batch.into())],
        &[
            ("units", shape.units.into()),
            ("filters", filters),
            ("filters/2", block(filters, 2.0)),
            // Rows of weights go by fours; of int16 state they are followed through memories by blocks.
            ("filters/4", block(filters, 4.0)),
            ("filters/32", block(filters, 32.0)),
        ],
        &[
            ("features", shape.features.into()),
            ("features/4", f64::from(shape.features / 4)),
            ("features left", f64::from(shape.features % 4)),
            ("memory", shape.memory.into()),
            ("memory/4", f64::from(shape.memory / 4)),
            ("memory left", f64::from(shape.memory % 4)),
        ],
    )
}

/// Pairs of filters over pairs of features; then every filter's memory, by words.
fn dsp_svdf(shape: &SvdfShape) -> [Counts; 3] {
    let filters = f64::from(shape.filters());
    let pairs = block(shape.features.into(), 2.0);
    grid(
        &[("rows", shape.batch.into())],
        &[
            ("units", shape.units.into()),
            ("filters", filters),
            ("filters/2", block(filters, 2.0)),
            ("odd", filters % 2.0),
        ],
        &[
            ("pairs", pairs),
            ("rest", pairs % 4.0),
            ("memory", shape.memory.into()),
            ("memory/4", f64::from(shape.memory / 4)),
            ("memory left", f64::from(shape.memory % 4)),
        ],
    )
}

/// Filters by eights over the features; every memory by vectors, then units by fours, and those that are left one by one.
fn mve_svdf(shape: &SvdfShape) -> [Counts; 3] {
    let filters = f64::from(shape.filters());
    let elements = f64::from(shape.rank) * f64::from(shape.memory);
    grid(
        &[("rows", shape.batch.into())],
        &[
            ("units", shape.units.into()),
            ("units/4", f64::from(shape.units / 4)),
            ("units left", f64::from(shape.units % 4)),
            ("filters/4", block(filters, 4.0)),
            ("filters/8", block(filters, 8.0)),
            ("state/16", block(filters * f64::from(shape.memory), 16.0)),
        ],
        &[
            ("blocks", block(shape.features.into(), 16.0)),
            ("elements/8", block(elements, 8.0)),
        ],
    )
}

fn lstm(batch: u32, time: u32, features: u32, cells: u32) -> [Counts; 3] {
    grid(
        &[("images", batch.into()), ("steps", f64::from(batch) * f64::from(time))],
        &[
            ("cells", cells.into()),
            // Rows of weights go by fours, cells by blocks.
            ("cells/4", block(cells.into(), 4.0)),
            ("cells/32", block(cells.into(), 32.0)),
        ],
        &[
            ("features", features.into()),
            ("features/4", f64::from(features / 4)),
            ("features left", f64::from(features % 4)),
            ("hidden", cells.into()),
            ("hidden/4", f64::from(cells / 4)),
            ("hidden left", f64::from(cells % 4)),
        ],
    )
}

/// How neighbours of the innermost axis are copied: as bytes, as one value, or one by one.
pub(super) fn copies(op: &CopyStrided) -> &'static str {
    match op.loops.last().map_or((1, 1), |inner| (inner.to, inner.from)) {
        (1, 1) => "neighbours",
        (1, 0) => "one value",
        _ => "apart",
    }
}

fn copied(op: &CopyStrided) -> [Counts; 3] {
    let extents: Vec<f64> = op.loops.iter().map(|axis| axis.count.into()).collect();
    let entered = |inside: usize| -> f64 { extents.iter().take(extents.len().saturating_sub(inside)).product() };
    let inner = extents.last().copied().unwrap_or(1.0);
    let bytes = if copies(op) == "neighbours" {
        inner * f64::from(op.element)
    } else {
        inner
    };
    let [line, sixteens, fours, ones] = lines("line", bytes);
    let long = f64::from(u8::from(bytes >= 24.0));
    grid(
        &[("lines", entered(1)), ("planes", entered(2)), ("volumes", entered(3))],
        &[],
        &[
            line,
            sixteens,
            fours,
            ones,
            ("long", long),
            ("long bytes", long * bytes),
            ("short bytes", (1.0 - long) * bytes),
            ("eights", (bytes / 8.0).floor()),
            ("left", bytes % 8.0),
        ],
    )
}

/// The stages of a transform by radix: how often each is made, and the smaller ones that it joins.
fn transform(rows: u32, samples: u32, length: u32) -> [Counts; 3] {
    const RADICES: [(u8, [&str; 3]); 4] = [
        (2, ["stages of 2", "groups of 2", "joins of 2"]),
        (3, ["stages of 3", "groups of 3", "joins of 3"]),
        (4, ["stages of 4", "groups of 4", "joins of 4"]),
        (5, ["stages of 5", "groups of 5", "joins of 5"]),
    ];
    let rows = f64::from(rows);
    let mut places = vec![
        ("1", 1.0),
        ("rows", rows),
        ("samples", rows * f64::from(samples)),
        ("length", rows * f64::from(length)),
    ];
    let Some(plan) = FftPlan::new(length) else {
        return [places, vec![("1", 1.0)], vec![("1", 1.0)]];
    };
    let n = f64::from(plan.n());
    for (radix, names) in RADICES {
        let (mut m, mut found) = (1.0, [0.0; 3]);
        for &stage in plan.radices().iter().rev() {
            if stage == radix {
                let groups = n / (m * f64::from(radix));
                found = [found[0] + 1.0, found[1] + groups, found[2] + n / f64::from(radix)];
            }
            m *= f64::from(stage);
        }
        places.extend(names.into_iter().zip(found.map(|count| rows * count)));
    }
    [places, vec![("1", 1.0)], vec![("1", 1.0)]]
}
