//! The most instructions of a step, as a linear form of its shapes.
//!
//! A kernel's loops run over pixels, or blocks of them, over channels, or blocks of them, and over the terms of a sum: how often each body is entered is a
//! product of such counts, a *feature*. The most instructions are a sum of features, each times what one entry costs at most. `cargo xtask bench --most` finds
//! these numbers for each board from counts of generated steps.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::counts::Counts;
use super::{loops, loops_mve};
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::packed_conv2d::Form as Requantised;
use arenite::ops::window::Window2d;
use arenite::{Access, Slot, Step};
use serde::{Deserialize, Serialize};

/// Instructions of an entry, by feature: the names of the counts that it is a product of, with `*` between.
pub type Form = BTreeMap<String, f64>;

/// The bound of the steps of one row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The form.
    pub per: Form,
    /// Where the count depends on the data: what the dearest contents took, in parts of what the cheapest took, of all generated steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_data: Option<f64>,
}

/// Rows by name, by board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instructions(pub BTreeMap<String, BTreeMap<String, Row>>);

/// The tracked table.
pub static TABLE: LazyLock<Instructions> = LazyLock::new(|| {
    // A test reads it.
    serde_json::from_str(include_str!("instructions.json")).unwrap_or_default()
});

impl Instructions {
    /// The row of `step`, whose constants are in `weights`, on `board`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn row(&self, board: &str, step: &Step, weights: &[u8]) -> Result<&Row, &'static str> {
        let rows = self.0.get(board).ok_or("no kernel of this board has a form")?;
        rows.get(&row(step, weights)?).ok_or("the kernel has no form")
    }

    /// The most instructions of `step`, whose constants are in `weights`, on `board`.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn of(&self, board: &str, step: &Step, weights: &[u8]) -> Result<u64, &'static str> {
        Ok(value(&self.row(board, step, weights)?.per, &counts(step, weights)))
    }
}

/// The value of a form; that of a count which the step has not is beyond every number.
pub fn value(form: &Form, counts: &[Counts; 3]) -> u64 {
    let count = |name: &str| {
        let named = counts.iter().flatten().find(|(known, _)| *known == name);
        named.map_or(f64::INFINITY, |(_, count)| *count)
    };
    let terms = form
        .iter()
        .map(|(name, per)| per * name.split('*').map(count).product::<f64>());
    terms.sum::<f64>().ceil() as u64
}

/// The row of a step, whose constants are in `weights`: its kernel, and the sequence of instructions that its constants allow where that is stated in the step.
///
/// # Errors
/// Why there is none: shapes that no form was made from.
pub fn row(step: &Step, weights: &[u8]) -> Result<String, &'static str> {
    let outputs = |op: &Conv2dS8| {
        if loops_mve::is_fast(op, weights) {
            ""
        } else {
            " general"
        }
    };
    let mut clone = step.clone();
    if let Some(window) = clone.window_mut() {
        let groups = f64::from(window.input[2]) / depth(step, window);
        if window.dilation != [1, 1] {
            return Err("dilated windows have no form");
        }
        if groups > 1.0 && (groups < f64::from(window.input[2]) || window.input[2] != window.output[2]) {
            return Err("convolutions in groups have no form, but for as many as channels");
        }
        if groups > 1.0 && !is_shallow(step) {
            return Err("the kernel has no form of a convolution by channel");
        }
    }
    let name = step.kernel().name();
    Ok(match step {
        Step::DspConv2dS8(op) | Step::DspPairsConv2dS8(op) => format!("{name} {:?}", op.form),
        Step::DspDepthwiseS8(op) => {
            // Nine taps have a loop of their own.
            let taps = if op.window.kernel == [3, 3] { " 3x3" } else { "" };
            match op.form {
                // Weights of nine taps that are positive and not folded are too rare to be counted; signed ones take two instructions more.
                Requantised::Positive | Requantised::Signed => format!("{name} short{taps}"),
                form => format!("{name} {form:?}{taps}"),
            }
        }
        Step::IntDepthwiseS8(op) if loops::by_three(&op.window) => format!("{name} 3x3/{}", op.window.stride[1]),
        Step::CompactConv2dS8(op) if op.is_depthwise() => format!("{name} depthwise"),
        Step::BinaryInt(op) | Step::IntAddS8(op) if op.loops.len() <= 2 => {
            format!("{name} {:?} {}", op.op, op.dtype.name())
        }
        Step::MveSumS8(op) if op.loops.len() <= 2 => name.to_owned(),
        Step::BinaryInt(_) | Step::IntAddS8(_) | Step::MveSumS8(_) => return Err("more than two loops have no form"),
        Step::MveConv2dS8(op) => format!("{name} {}{}", loops_mve::path(&op.window, 1), outputs(op)),
        Step::MveConv2dF32(op) => {
            // Few shapes have windows of short rows, and they cost what others cost.
            let path = loops_mve::path(&op.window, 4);
            format!("{name} {}", path.split(' ').next().unwrap_or(path))
        }
        Step::MveDepthwiseS8(op) => {
            let unit = if loops_mve::two_by_two(&op.window) {
                "2x2"
            } else {
                "1x1"
            };
            format!("{name} {unit}{}", outputs(op))
        }
        Step::MaxPoolInt(op) | Step::AvgPoolInt(op) => format!("{name} {}", op.dtype.name()),
        _ => name.to_owned(),
    })
}

/// Kernels whose sums have a channel's taps alone.
fn is_shallow(step: &Step) -> bool {
    match step {
        Step::CompactConv2dS8(op) => op.is_depthwise(),
        _ => step.kernel().name().contains("Depthwise") || step.kernel().name().contains("Pool"),
    }
}

/// Input channels of an output.
fn depth(step: &Step, window: &Window2d) -> f64 {
    let inputs = f64::from(window.input[2]);
    let groups = match step {
        Step::Conv2dF32(op)
        | Step::DepthwiseF32(op)
        | Step::FpuConv2dF32(op)
        | Step::FpuDepthwiseF32(op)
        | Step::MveConv2dF32(op)
        | Step::MveDepthwiseF32(op) => op.groups,
        Step::Conv2dS8(op)
        | Step::DepthwiseS8(op)
        | Step::IntConv2dS8(op)
        | Step::IntDepthwiseS8(op)
        | Step::IntDenseS8(op)
        | Step::CompactConv2dS8(op)
        | Step::MveConv2dS8(op)
        | Step::MveDepthwiseS8(op) => op.groups,
        Step::Conv2dS16(op) => op.groups,
        Step::W8Conv2dF32(op) | Step::W4Conv2dF32(op) => op.groups,
        Step::W4Conv2dS8(op) => op.groups,
        Step::DspConv2dS8(_) | Step::DspPairsConv2dS8(_) => 1,
        _ => window.input[2],
    };
    inputs / f64::from(groups.max(1))
}

/// The features of a step by their names, those that are zero left out.
pub fn features(step: &Step, weights: &[u8]) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::from([("1".to_owned(), 1.0)]);
    let [pixels, channels, terms] = counts(step, weights);
    for (a, x) in &pixels {
        for (b, y) in &channels {
            for (c, z) in &terms {
                let names: Vec<&str> = [*a, *b, *c].into_iter().filter(|name| *name != "1").collect();
                let value = x * y * z;
                if value > 0.0 && !names.is_empty() {
                    found.insert(names.join("*"), value);
                }
            }
        }
    }
    found
}

/// What loops of a step go by: places in the output, channels, terms of a sum.
pub fn counts(step: &Step, weights: &[u8]) -> [Counts; 3] {
    let mut clone = step.clone();
    if let Some(window) = clone.window_mut() {
        return loops::counts(step, window, weights).unwrap_or_else(|| windowed(step, window));
    }
    let one = || vec![("1", 1.0)];
    match step {
        Step::LinearF32(op) => {
            let [rows, inputs, outputs] = [op.rows, op.inputs, op.outputs].map(f64::from);
            [
                vec![("1", 1.0), ("rows", rows)],
                vec![("1", 1.0), ("out", outputs), ("out/4", (outputs / 4.0).ceil())],
                vec![
                    ("1", 1.0),
                    ("in", inputs),
                    ("eights in", (inputs / 8.0).floor()),
                    ("left in", inputs % 8.0),
                ],
            ]
        }
        Step::SoftmaxF32(op) => {
            let log = f64::from(u8::from(op.log));
            [
                vec![("1", 1.0), ("rows", op.rows.into())],
                vec![("1", 1.0), ("log", log), ("exp", 1.0 - log)],
                vec![("1", 1.0), ("classes", op.classes.into())],
            ]
        }
        Step::SoftmaxS8(op) | Step::SoftmaxInt(op) => [
            vec![("1", 1.0), ("rows", op.rows.into())],
            one(),
            vec![("1", 1.0), ("classes", op.classes.into())],
        ],
        _ => {
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
            let blocks = |by: f64| (written / by).ceil();
            // Broadcasting has a loop in a loop.
            let lines = match step {
                Step::BinaryInt(op) | Step::IntAddS8(op) | Step::MveSumS8(op) => match op.loops.as_slice() {
                    [_, .., inner] => written / f64::from(inner.count.max(1)),
                    _ => 0.0,
                },
                _ => 0.0,
            };
            let elements = vec![
                ("1", 1.0),
                ("elements", written),
                ("elements/4", blocks(4.0)),
                ("fours", (written / 4.0).floor()),
                ("left", written % 4.0),
                ("elements/16", blocks(16.0)),
                ("read", read),
                ("lines", lines),
            ];
            [elements, one(), one()]
        }
    }
}

/// Of an operator that slides a window.
fn windowed(step: &Step, window: &Window2d) -> [Counts; 3] {
    let batch = f64::from(window.batch);
    let [rows, columns, outputs] = window.output.map(f64::from);
    let [kernel_rows, kernel_columns] = window.kernel.map(f64::from);
    let pixels = batch * rows * columns;
    let depth = depth(step, window);
    let run = kernel_columns * depth;
    let [reached_rows, reached_columns] = [0, 1].map(|axis| reached(window, axis));
    let inside = batch * reached_rows.whole * reached_columns.whole;
    let plain = window.input[..2] == window.output[..2] && window.kernel == [1, 1] && window.stride == [1, 1];
    // Where a pixel needs one pixel alone, images and rows are one.
    let images = if plain { 1.0 } else { batch };
    let block = |of: f64, by: f64| (of / by).ceil();
    let image = pixels / images;
    let [height, width] = [0, 1].map(|axis| {
        let reach = f64::from(window.kernel[axis]) - 1.0;
        (f64::from(window.output[axis]) - 1.0) * f64::from(window.stride[axis]) + reach + 1.0
    });
    let quads = (reached_columns.whole / 4.0).floor();
    let summed = match step {
        Step::Conv2dF32(op)
        | Step::DepthwiseF32(op)
        | Step::FpuConv2dF32(op)
        | Step::FpuDepthwiseF32(op)
        | Step::MveConv2dF32(op)
        | Step::MveDepthwiseF32(op) => op.residual.is_some(),
        _ => false,
    };
    let places = vec![
        ("1", 1.0),
        ("images", batch),
        ("rows", batch * rows),
        ("pixels", pixels),
        ("quads", images * (image / 4.0).floor()),
        ("left", images * (image % 4.0)),
        ("border", pixels - inside),
        ("whole", inside),
        ("row pairs", images * (image / 2.0).floor()),
        ("quads up", images * block(image, 4.0)),
        ("in/4", batch * rows * quads),
        ("single", batch * rows * (columns - 4.0 * quads)),
        ("k in/4", batch * reached_rows.taps * quads),
        ("k single", batch * reached_rows.taps * (columns - 4.0 * quads)),
        ("taps in", batch * reached_rows.taps * reached_columns.taps),
        ("k rows in", batch * reached_rows.taps * columns),
        ("row/4", batch * rows * block(columns, 4.0)),
        ("row/3", batch * rows * block(columns, 3.0)),
        ("summed", if summed { pixels } else { 0.0 }),
        ("plane", batch * height * width),
        ("input", batch * f64::from(window.input[0]) * f64::from(window.input[1])),
    ];
    let channels = vec![
        ("1", 1.0),
        ("channels", outputs),
        ("ch/2", block(outputs, 2.0)),
        ("ch/4", block(outputs, 4.0)),
        ("ch/8", block(outputs, 8.0)),
        ("ch/16", block(outputs, 16.0)),
        ("ch/8 whole", (outputs / 8.0).floor()),
        ("ch partial", if outputs % 8.0 > 0.0 { 1.0 } else { 0.0 }),
        ("ch tail", outputs % 4.0),
        ("odd ch", outputs * (outputs % 2.0)),
    ];
    let mut terms = vec![
        ("1", 1.0),
        ("taps", kernel_rows * kernel_columns),
        ("taps/2", block(kernel_rows * kernel_columns, 2.0)),
        ("k rows", kernel_rows),
    ];
    if !is_shallow(step) {
        terms.extend([
            ("terms", kernel_rows * run),
            ("terms/4", block(kernel_rows * run, 4.0)),
            ("terms/16", kernel_rows * block(run, 16.0)),
            ("tails", kernel_rows * (run % 4.0)),
            (
                "pairs",
                kernel_rows * 2.0 * (run / 4.0).floor() + block(kernel_rows * (run % 4.0), 2.0),
            ),
            ("depth", depth),
            ("depth/4", block(depth, 4.0)),
            ("depth/16", block(depth, 16.0)),
            ("run", run),
            ("run/4", block(run, 4.0)),
            ("run/16", block(run, 16.0)),
        ]);
    }
    [places, channels, terms]
}

/// What of the windows along an axis lies in the input.
struct Reached {
    /// Windows that lie in it altogether.
    whole: f64,
    /// Taps of all windows that lie in it.
    taps: f64,
}

fn reached(window: &Window2d, axis: usize) -> Reached {
    let [input, output, kernel] = [window.input[axis], window.output[axis], window.kernel[axis]].map(i64::from);
    let [stride, dilation, padding] = [window.stride[axis], window.dilation[axis], window.padding[axis]].map(i64::from);
    let mut reached = Reached { whole: 0.0, taps: 0.0 };
    for at in 0..output {
        let first = at * stride - padding;
        // Taps before the input, and those before its end.
        let before = (-first + dilation - 1).div_euclid(dilation).clamp(0, kernel);
        let until = (input - first + dilation - 1).div_euclid(dilation).clamp(0, kernel);
        let taps = until - before;
        reached.taps += taps as f64;
        reached.whole += if taps == kernel { 1.0 } else { 0.0 };
    }
    reached
}
