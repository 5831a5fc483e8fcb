//! The most instructions of a step, as a linear form of its shapes.
//!
//! A kernel's loops run over pixels, or blocks of them, over channels, or blocks of them, and over the terms of a sum: how often each body is entered is a
//! product of such counts, a *feature*. The most instructions are a sum of features, each times what one entry costs at most. `cargo xtask bench --most` finds
//! these numbers for each board from counts of generated steps.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::counts::{Counts, ONCE, taps};
use super::{loops, loops_mve, loops_neon, loops_rvv, loops_sequence, loops_single, loops_sme, loops_training};
use arenite::kernels::packed::dwconv_s8;
use arenite::kernels::portable::{lstm, svdf};
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::detections::Suppression;
use arenite::ops::packed_conv2d::Form as Requantised;
use arenite::ops::window::Window2d;
use arenite::{DType, Step};
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
        rows.get(&row(step, weights))
            .ok_or("no generated step is like it: the kernel has no form for it")
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

/// The row of a step, whose constants are in `weights`: its kernel, and the sequence of instructions that its shapes or its constants choose.
pub fn row(step: &Step, weights: &[u8]) -> String {
    let mut clone = step.clone();
    let window = clone.window_mut().map_or("", |window| kind(step, window));
    format!("{}{}{window}", step.kernel().name(), sequence(step, weights))
}

/// Returns the name of the loops that a kernel chooses for a step, as in its row.
fn sequence(step: &Step, weights: &[u8]) -> String {
    let outputs = |op: &Conv2dS8| {
        if loops_mve::is_fast(op, weights) {
            ""
        } else {
            " general"
        }
    };
    let stored = |form: Requantised| match form {
        // Positive weights that are not folded are too rare to be counted; signed ones take two instructions more.
        Requantised::Positive | Requantised::Signed => " short".to_owned(),
        form => format!(" {form:?}"),
    };
    // Broadcasting along more axes than two wants an odometer.
    let axes = match loops_single::axes(step).len() {
        0..=2 => "",
        _ => " axes",
    };
    match step {
        Step::DspConv2dS8(op) | Step::DspPairsConv2dS8(op) | Step::DspDenseS8(op) | Step::DspW4Conv2dS8(op) => {
            format!(" {:?}", op.form)
        }
        // Nine taps have a loop of their own.
        Step::DspGroupsConv2dS8(op) => format!(" {:?}", op.conv.form),
        Step::DspDepthwiseS8(op) if op.window.kernel == [3, 3] => format!("{} 3x3", stored(op.form)),
        Step::DspDepthwiseS8(op) | Step::DspSlidingDepthwiseS8(op) => stored(op.form),
        Step::IntDepthwiseS8(op) if dwconv_s8::by_three(&op.window) => {
            format!(" 3x3/{}", dwconv_s8::in_plane(&op.window).stride[1])
        }
        Step::CompactConv2dS8(op) if op.is_depthwise() => " depthwise".to_owned(),
        Step::BinaryInt(op) | Step::IntAddS8(op) => format!(" {:?} {}{axes}", op.op, op.dtype.name()),
        Step::MveSumS8(_) => axes.to_owned(),
        Step::BinaryF32(op) => format!(" {:?}{axes}", op.op),
        Step::SpecialBinaryF32(op) => format!(" {:?}{axes}", op.op),
        Step::SpecialInt(op) => format!(" {:?} {}{axes}", op.op, op.dtype.name()),
        Step::Compare(op) => format!(" {}{axes}", op.dtype.name()),
        Step::Choose(op) => format!(" {}{axes}", op.element),
        Step::UnaryF32(op) => format!(" {:?}", op.op),
        Step::SpecialF32(op) => format!(" {:?}", op.op),
        Step::ReduceF32(op) => format!(" {:?}", op.kind),
        Step::ReduceInt(op) => format!(" {:?} {}", op.kind, op.dtype.name()),
        Step::CopyBytes(op) => format!(" {} {}", op.element, loops_single::copies(op)),
        Step::Gather(op) => format!(" {}", op.element),
        Step::WriteLine(op) => format!(" {}", op.element),
        Step::Embedding(op) => format!(" {}", op.element),
        Step::RotaryF32(op) => (if op.interleaved { " interleaved" } else { " halves" }).to_owned(),
        Step::Rescale(op) => format!(" {} {}", op.from.name(), op.to.name()),
        Step::Convert(op) => {
            let float = [op.from, op.to].contains(&DType::F32);
            let scaled = if float && op.scale == 0.0 { " unscaled" } else { "" };
            format!(" {} {}{scaled}", op.from.name(), op.to.name())
        }
        Step::SigmoidS16(op) => (if op.tanh { " tanh" } else { " logistic" }).to_owned(),
        Step::Resize(op) => format!(" {:?} {}", op.interpolation, op.dtype.name()),
        Step::ArgMax(op) => format!(" {}", op.dtype.name()),
        Step::MatMulInt(op) => format!(" {}", op.dtype.name()),
        Step::LstmInt(op) if !lstm::is_short(op, weights) => format!(" {} general", op.dtype.name()),
        Step::LstmInt(op) => format!(" {}", op.dtype.name()),
        // Pairs of halves go by even memories.
        Step::SvdfS8(op) if op.state_type == DType::I16 => match (svdf::is_short(op), op.shape.memory % 2) {
            (false, _) => " int16 general".to_owned(),
            (true, 0) => " int16".to_owned(),
            (true, _) => " int16 odd".to_owned(),
        },
        Step::SvdfS8(op) => format!(" {}", op.state_type.name()),
        // Memories of eight elements have a loop of their own, those of whole words another.
        Step::DspSvdfS8(op) => match (op.shape.rank, op.shape.memory) {
            (1, 8) => format!(" {:?} eights", op.form),
            (_, memory) if memory.is_multiple_of(4) => format!(" {:?} words", op.form),
            _ => format!(" {:?}", op.form),
        },
        Step::MveSvdfS8(op) => match op.shape.rank.saturating_mul(op.shape.memory) {
            0..=16 => " one vector".to_owned(),
            _ => String::new(),
        },
        Step::SoftmaxInt(op) => {
            let kind = format!("{:?}", op.kind);
            format!(" {}", kind.split('(').next().unwrap_or_default())
        }
        Step::SignalOverlapAdd(op) => format!(" {}", op.dtype.name()),
        Step::Detections(op) => match op.suppression {
            Suppression::Fast { .. } => " fast".to_owned(),
            Suppression::Regular { .. } => " regular".to_owned(),
        },
        Step::SignalFftS16(op) | Step::SignalFftS32(op) | Step::SignalFftF32(op) if op.inverse => " inverse".to_owned(),
        // No multiplier shifts left.
        Step::MveDenseS8(op) if op.output_zero_point == -128 && op.clamp == [-128, 127] => String::new(),
        Step::MveDenseS8(_) => " general".to_owned(),
        Step::MveConv2dS8(op) | Step::MveW4Conv2dS8(op) => {
            format!(" {}{}", loops_mve::path(&op.window, 1), outputs(op))
        }
        Step::MveGroupsConv2dS8(op) => {
            let path = match loops_mve::path(&op.conv.window, 1) {
                "strips" => "windows",
                path => path,
            };
            format!(" {path} by {}{}", op.share, outputs(&op.conv))
        }
        Step::MveConv2dF32(op) => {
            // Few shapes have windows of short rows, and they cost what others cost.
            let path = loops_mve::path(&op.window, 4);
            format!(" {}", path.split(' ').next().unwrap_or(path))
        }
        Step::MveDepthwiseS8(op) => {
            let unit = if loops_mve::two_by_two(&op.window) {
                "2x2"
            } else {
                "1x1"
            };
            format!(" {unit}{}", outputs(op))
        }
        Step::DotprodConv2dS8(op) | Step::I8mmConv2dS8(op) | Step::NeonConv2dS8(op) => {
            format!(" {}", loops_neon::path(&op.window))
        }
        Step::NeonConv2dF32(op) => format!(" {}", loops_neon::path(&op.window)),
        Step::SmeConv2dS8(op) => format!(" {}", loops_sme::path(&op.window)),
        Step::RvvConv2dS8(op) => format!(" {}", loops_rvv::path(&op.window)),
        Step::RvvDepthwiseS8(op) => format!(" {}", loops_rvv::tiles(&op.window)),
        Step::MaxPoolInt(op) | Step::AvgPoolInt(op) => format!(" {}", op.dtype.name()),
        _ => String::new(),
    }
}

/// Returns the kind of a window by properties that its kernel's loops seldom meet: rows of their own, so that those of other windows are not looser for them.
fn kind(step: &Step, window: &Window2d) -> &'static str {
    let inputs = f64::from(window.input[2]);
    let groups = inputs / depth(step, window);
    let by_channel = groups == inputs && window.input[2] == window.output[2];
    match (window.dilation, groups > 1.0) {
        ([1, 1], true) if !by_channel => " in groups",
        ([1, 1], true) if !is_shallow(step) => " by channel",
        ([1, 1], _) => "",
        _ => " dilated",
    }
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
        | Step::MveDepthwiseF32(op)
        | Step::NeonConv2dF32(op)
        | Step::NeonDepthwiseF32(op) => op.groups,
        Step::Conv2dS8(op)
        | Step::DenseS8(op)
        | Step::MveDenseS8(op)
        | Step::DepthwiseS8(op)
        | Step::IntConv2dS8(op)
        | Step::IntDepthwiseS8(op)
        | Step::IntDenseS8(op)
        | Step::IntNarrowDenseS8(op)
        | Step::CompactConv2dS8(op)
        | Step::MveConv2dS8(op)
        | Step::MveW4Conv2dS8(op)
        | Step::MveDepthwiseS8(op)
        | Step::DotprodConv2dS8(op)
        | Step::I8mmConv2dS8(op)
        | Step::SmeConv2dS8(op)
        | Step::NeonConv2dS8(op)
        | Step::RvvConv2dS8(op)
        | Step::RvvDepthwiseS8(op)
        | Step::MveTapsDepthwiseS8(op)
        | Step::NeonDepthwiseS8(op) => op.groups,
        Step::Conv2dS16(op) => op.groups,
        Step::W16Conv2dF32(op) | Step::W8Conv2dF32(op) | Step::W4Conv2dF32(op) => op.groups,
        Step::W4Conv2dS8(op) => op.groups,
        Step::MveGroupsConv2dS8(op) => op.conv.groups,
        Step::DspConv2dS8(_)
        | Step::DspPairsConv2dS8(_)
        | Step::DspDenseS8(_)
        | Step::DspW4Conv2dS8(_)
        | Step::DspGroupsConv2dS8(_) => 1,
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
            // Such products would be as good for steps that are generated, and wrong for others.
            if *b != "1" && a.starts_with(ONCE) {
                continue;
            }
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

/// Returns the counts that the loops of a step go by: places in the output, channels, terms of a sum.
pub fn counts(step: &Step, weights: &[u8]) -> [Counts; 3] {
    let mut clone = step.clone();
    if let Some(window) = clone.window_mut() {
        return loops::counts(step, window, weights).unwrap_or_else(|| windowed(step, window));
    }
    loops_sequence::counts(step)
        .or_else(|| loops_training::counts(step))
        .unwrap_or_else(|| loops_single::counts(step))
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
        let reach = (f64::from(window.kernel[axis]) - 1.0) * f64::from(window.dilation[axis]);
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

/// Windows along an axis, by their share inside the input.
struct Reached {
    /// Windows that lie in it altogether.
    whole: f64,
    /// Taps of all windows that lie in it.
    taps: f64,
}

fn reached(window: &Window2d, axis: usize) -> Reached {
    let kernel = i64::from(window.kernel[axis]);
    let mut reached = Reached { whole: 0.0, taps: 0.0 };
    for (_, inside) in taps(window, axis) {
        reached.taps += inside as f64;
        reached.whole += if inside == kernel { 1.0 } else { 0.0 };
    }
    reached
}
