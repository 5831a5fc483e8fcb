//! TensorFlow's node names in execution order, of a training step of a Keras ResNet: names only.
//!
//! Edges, attributes and shapes are those of Keras's own ResNet v1 with bottleneck blocks (He et al. 2015, as `keras.applications` builds
//! it), whose layer names say which blocks there are; ResNet-50, -101, -152 and any other depth of that family. The names must
//! state that network completely: a layer that is missing, unknown, doubled or out of order is an error.

mod roles;
mod trace;
mod training;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use self::trace::{Trace, at};
use super::assume::Assumptions;
use super::build::{self, Builder, NewNode, Weights, line};
use super::imported::{ImportOptions, Imported};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::train::KERAS_MOMENTUM;
use crate::graph::{
    Activation, BinaryOp, Conv2dAttrs, Layout, Op, Padding2d, PoolAttrs, ReduceKind, TensorId, UnaryKind,
};

/// Names of a Keras ResNet and its training loop, one a line.
pub(super) fn recognises(content: &[u8]) -> bool {
    let mut lines = content.split(|&b| b == b'\n').take(100_000);
    let stem = |line: &[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        line.ends_with(b"/conv1_conv/Conv2D") && !line.contains(&b' ') && !line.contains(&b',')
    };
    lines.any(stem)
}

/// Reads a list of names.
pub(super) fn import(path: &Path, content: &[u8], options: &ImportOptions) -> Result<Imported> {
    let trace = Trace::parse(build::text(content)?)?;
    let mut assumptions = Assumptions::new(options);
    let shape = input_shape(options, &mut assumptions)?;
    let mut work = Work {
        classes: assumptions.or_default("classes", CLASSES, "predictions", "Keras's ResNets classify ImageNet")?,
        epsilon: assumptions.or_default(
            "bn.epsilon",
            EPSILON,
            "every batch norm",
            "the value in Keras's ResNets",
        )?,
        trace: &trace,
        builder: Builder::new(&build::stem(path)),
        outputs: HashMap::new(),
        input: TensorId(0),
    };
    if work.classes == 0 || work.classes > build::LARGEST_EXTENT || !(work.epsilon > 0.0 && work.epsilon.is_finite()) {
        return Err(Error::new(
            ErrorKind::Usage,
            "classes and bn.epsilon must be above zero",
        ));
    }
    assumptions.record(
        "architecture",
        "Keras ResNet v1",
        &trace.network,
        "the names are its layers: filters 64, 128, 256, 512 and four times as many out of a block, stride 2 in the first \
         block of stages 3 to 5, pads of 3 and 1 before the first convolution and pooling",
    );
    trace.check_training()?;
    work.input = work.builder.input("input", &shape)?;
    let output = work.network()?;
    let mut warnings = Vec::new();
    trace.outside(&mut work.builder, &mut warnings);
    Ok(Imported {
        graph: work.builder.finish(&[output])?,
        assumptions: assumptions.finish()?,
        warnings,
        ..Imported::default()
    })
}

const CLASSES: usize = 1000;
const EPSILON: f32 = 1.001e-5;

/// Batch, rows, columns, channels.
fn input_shape(options: &ImportOptions, assumptions: &mut Assumptions<'_>) -> Result<[usize; 4]> {
    let batch = options.batch.unwrap_or(1).max(1);
    let Some(shape) = &options.input_shape else {
        let shape = [batch, 224, 224, 3];
        let reason = "the trace has no shapes; 224 x 224 x 3 is what Keras's ResNets were trained for (--input-shape)";
        assumptions.record("input-shape", "224x224x3", "the network's input", reason);
        return Ok(shape);
    };
    let usage = |message: &str| Error::new(ErrorKind::Usage, format!("--input-shape {shape:?}: {message}"));
    let &[n, h, w, c] = shape.as_slice() else {
        return Err(usage("not four extents").expected("batch, rows, columns, channels"));
    };
    if [n, h, w, c].iter().any(|&e| e == 0 || e > build::LARGEST_EXTENT) {
        return Err(usage("an extent is zero or too large"));
    }
    assumptions.record("input-shape", format!("{h}x{w}x{c}"), "the network's input", "given");
    match (n, batch) {
        (n, 1) => Ok([n, h, w, c]),
        (1, batch) => Ok([batch, h, w, c]),
        (n, batch) if n == batch => Ok([batch, h, w, c]),
        _ => Err(usage("contradicts --batch")),
    }
}

struct Work<'w, 'a> {
    trace: &'w Trace<'a>,
    classes: usize,
    epsilon: f32,
    builder: Builder,
    /// Results by `layer/Op`.
    outputs: HashMap<String, TensorId>,
    input: TensorId,
}

/// A layer of the architecture: its name, its operators, what it reads (`layer/Op`, or nothing for the image).
struct Layer {
    name: String,
    steps: Vec<Step>,
    inputs: Vec<String>,
}

/// One operator of a layer; each but the first reads the one before.
enum Step {
    Pad(usize),
    Conv2d {
        kernel: usize,
        stride: usize,
        filters: usize,
    },
    Bias,
    BatchNorm,
    Relu,
    Add,
    MaxPool,
    Mean,
    MatMul,
    Softmax,
}

impl Work<'_, '_> {
    /// Adds the operators in the order of the file, as the architecture connects them.
    fn network(&mut self) -> Result<TensorId> {
        let layers = self.architecture()?;
        let known: BTreeSet<&str> = layers.iter().map(|l| l.name.as_str()).collect();
        if let Some((layer, number)) = self.trace.layers.iter().find(|(name, _)| !known.contains(*name)) {
            return Err(at(
                *number,
                format!("layer `{layer}` is none of a Keras ResNet with these blocks"),
            ));
        }
        let trainable = layers.iter().flat_map(|layer| &layer.steps).map(|step| match step {
            Step::Conv2d { .. } | Step::Bias | Step::MatMul => 1,
            Step::BatchNorm => 2,
            _ => 0,
        });
        self.trace.check_updates(trainable.sum())?;
        // Operands of each operator.
        let mut plan: HashMap<String, (Vec<String>, &Step)> = HashMap::new();
        for layer in &layers {
            let mut inputs = layer.inputs.clone();
            for step in &layer.steps {
                let name = format!("{}/{}", layer.name, step.spelled(self.trace, &layer.name));
                if !self.trace.lines.contains_key(name.as_str()) {
                    let message = format!("`{}/{name}` is missing", self.trace.network);
                    let error = Error::input(message).expected("all operators of a Keras ResNet");
                    return Err(match self.trace.layers.get(layer.name.as_str()) {
                        Some(number) => error.at(format!("line {number} (layer `{}`)", layer.name)),
                        None => error.at(format!(
                            "line {} (the last)",
                            self.trace.forward.last().map_or(0, |f| f.1)
                        )),
                    });
                }
                plan.insert(name.clone(), (std::mem::replace(&mut inputs, vec![name]), step));
            }
        }
        let mut last = self.input;
        for &(name, number) in &self.trace.forward {
            let Some((inputs, step)) = plan.get(name) else {
                return Err(at(
                    number,
                    format!("`{name}` is no operator of this layer in a Keras ResNet"),
                ));
            };
            let mut ids = Vec::new();
            for input in inputs {
                let id = match input.as_str() {
                    "" => Some(self.input),
                    input => self.outputs.get(input).copied(),
                };
                ids.push(id.ok_or_else(|| {
                    at(number, format!("`{name}` runs before `{input}`, which it reads"))
                        .help("the names must be in execution order")
                })?);
            }
            let id = self
                .step(name, number, step, &ids)
                .map_err(|e| e.at(format!("line {number} (`{name}`)")))?;
            self.outputs.insert(name.to_string(), id);
            last = id;
        }
        let output = layers
            .last()
            .and_then(|l| Some(format!("{}/{}", l.name, l.steps.last()?.spelled(self.trace, &l.name))));
        Ok(output.and_then(|name| self.outputs.get(&name).copied()).unwrap_or(last))
    }

    /// Keras's ResNet with the blocks that the names state.
    fn architecture(&self) -> Result<Vec<Layer>> {
        let mut layers = Vec::new();
        let mut add = |name: String, steps: Vec<Step>, inputs: &[&str]| {
            let inputs = inputs.iter().map(|s| s.to_string()).collect();
            layers.push(Layer { name, steps, inputs });
        };
        let conv = |kernel, stride, filters| {
            vec![
                Step::Conv2d {
                    kernel,
                    stride,
                    filters,
                },
                Step::Bias,
            ]
        };
        add("conv1_pad".into(), vec![Step::Pad(3)], &[""]);
        add("conv1_conv".into(), conv(7, 2, 64), &["conv1_pad/Pad"]);
        add("conv1_bn".into(), vec![Step::BatchNorm], &["conv1_conv/BiasAdd"]);
        add("conv1_relu".into(), vec![Step::Relu], &["conv1_bn/FusedBatchNormV3"]);
        add("pool1_pad".into(), vec![Step::Pad(1)], &["conv1_relu/Relu"]);
        add("pool1_pool".into(), vec![Step::MaxPool], &["pool1_pad/Pad"]);
        let mut x = "pool1_pool/MaxPool".to_string();
        for (stage, blocks) in self.blocks()? {
            let filters = 64usize << (stage - 2);
            for block in 1..=blocks {
                let b = format!("conv{stage}_block{block}");
                let stride = if block == 1 && stage > 2 { 2 } else { 1 };
                let mut shortcut = x.clone();
                if ["conv", "bn"]
                    .iter()
                    .any(|kind| self.trace.layers.contains_key(format!("{b}_0_{kind}").as_str()))
                {
                    add(format!("{b}_0_conv"), conv(1, stride, 4 * filters), &[&x]);
                    add(
                        format!("{b}_0_bn"),
                        vec![Step::BatchNorm],
                        &[&format!("{b}_0_conv/BiasAdd")],
                    );
                    shortcut = format!("{b}_0_bn/FusedBatchNormV3");
                }
                for (index, kernel, stride, filters) in
                    [(1, 1, stride, filters), (2, 3, 1, filters), (3, 1, 1, 4 * filters)]
                {
                    add(format!("{b}_{index}_conv"), conv(kernel, stride, filters), &[&x]);
                    add(
                        format!("{b}_{index}_bn"),
                        vec![Step::BatchNorm],
                        &[&format!("{b}_{index}_conv/BiasAdd")],
                    );
                    x = format!("{b}_{index}_bn/FusedBatchNormV3");
                    if index < 3 {
                        add(format!("{b}_{index}_relu"), vec![Step::Relu], &[&x]);
                        x = format!("{b}_{index}_relu/Relu");
                    }
                }
                let sum = Step::Add.spelled(self.trace, &format!("{b}_add"));
                add(format!("{b}_add"), vec![Step::Add], &[&shortcut, &x]);
                add(format!("{b}_out"), vec![Step::Relu], &[&format!("{b}_add/{sum}")]);
                x = format!("{b}_out/Relu");
            }
        }
        add("avg_pool".into(), vec![Step::Mean], &[&x]);
        let mut head = vec![Step::MatMul, Step::Bias];
        if self.trace.lines.contains_key("predictions/Softmax") {
            head.push(Step::Softmax);
        }
        add("predictions".into(), head, &["avg_pool/Mean"]);
        Ok(layers)
    }

    /// Number of blocks in each stage, from 2 on.
    fn blocks(&self) -> Result<BTreeMap<usize, usize>> {
        let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (layer, number) in &self.trace.layers {
            let Some((stage, rest)) = layer.strip_prefix("conv").and_then(|rest| rest.split_once("_block")) else {
                continue;
            };
            let block = rest.split('_').next().unwrap_or_default();
            match (stage.parse(), block.parse()) {
                (Ok(stage @ 2..=5), Ok(block @ 1..=10_000)) => {
                    found.entry(stage).or_default().insert(block);
                }
                _ => return Err(at(*number, format!("layer `{layer}`")).expected("stages 2 to 5 and blocks from 1 on")),
            }
        }
        if found.is_empty() {
            return Err(
                Error::input(format!("`{}` has no blocks", self.trace.network)).expected("`conv2_block1_…` and so on")
            );
        }
        let mut blocks = BTreeMap::new();
        for (expected, (stage, numbers)) in (2..).zip(found) {
            let contiguous = numbers.iter().copied().eq(1..=numbers.len());
            if stage != expected || !contiguous {
                return Err(
                    Error::input(format!("stage {stage} has blocks {numbers:?}")).expected(format!(
                        "blocks counted from 1 in every stage from 2 on, stage {expected} next"
                    )),
                );
            }
            blocks.insert(stage, numbers.len());
        }
        Ok(blocks)
    }

    fn step(&mut self, name: &str, number: usize, step: &Step, inputs: &[TensorId]) -> Result<TensorId> {
        let (layer, kind) = name.split_once('/').unwrap_or((name, ""));
        let mut inputs = inputs.to_vec();
        let extent = |work: &Self, axis: usize| {
            let shape = inputs.first().map(|&x| work.builder.shape(x));
            shape.and_then(|shape| shape.get(axis)).copied().unwrap_or(0)
        };
        let channels = extent(
            self,
            inputs
                .first()
                .map_or(0, |&x| self.builder.shape(x).len().saturating_sub(1)),
        );
        let (layout, activation) = (Layout::Nhwc, Activation::None);
        let op = match step {
            Step::Pad(n) => Op::Pad {
                pads: vec![(0, 0), (*n, *n), (*n, *n), (0, 0)],
                value: 0.0,
            },
            Step::Conv2d {
                kernel,
                stride,
                filters,
            } => {
                let traced = [*kernel, *kernel, channels, *filters];
                let weights = Weights::Moved {
                    shape: traced.to_vec(),
                    perm: vec![3, 0, 1, 2],
                };
                inputs.push(self.builder.param(&format!("{layer}/kernel"), &traced, &weights)?);
                // The 3 x 3 convolutions of the blocks are SAME with stride 1; the first one's padding is a layer of its own.
                let side = if *kernel == 3 { 1 } else { 0 };
                Op::Conv2d(Conv2dAttrs {
                    layout,
                    stride: [*stride; 2],
                    dilation: [1, 1],
                    padding: Padding2d {
                        top: side,
                        bottom: side,
                        left: side,
                        right: side,
                    },
                    groups: 1,
                    activation,
                })
            }
            Step::Bias => {
                inputs.push(
                    self.builder
                        .param(&format!("{layer}/bias"), &[channels], &Weights::Same)?,
                );
                let kind = BinaryOp::Add;
                Op::Binary { kind, activation }
            }
            Step::BatchNorm => {
                for variable in ["gamma", "beta", "moving_mean", "moving_variance"] {
                    inputs.push(
                        self.builder
                            .param(&format!("{layer}/{variable}"), &[channels], &Weights::Same)?,
                    );
                }
                let epsilon = self.epsilon;
                Op::BatchNorm {
                    axis: 3,
                    epsilon,
                    momentum: KERAS_MOMENTUM,
                    trained: false,
                }
            }
            Step::Relu => Op::Unary(UnaryKind::Relu),
            Step::Add => {
                if inputs
                    .windows(2)
                    .any(|pair| self.builder.shape(pair[0]) != self.builder.shape(pair[1]))
                {
                    let shapes: Vec<_> = inputs.iter().map(|&id| self.builder.shape(id)).collect();
                    return Err(Error::internal(format!("shortcut and branch have shapes {shapes:?}")));
                }
                let kind = BinaryOp::Add;
                Op::Binary { kind, activation }
            }
            Step::MaxPool => Op::MaxPool2d(PoolAttrs {
                layout,
                kernel: [3, 3],
                stride: [2, 2],
                padding: Padding2d::default(),
                count_include_pad: false,
                activation,
            }),
            Step::Mean => Op::Reduce {
                kind: ReduceKind::Mean,
                axes: vec![1, 2],
                keep_dims: false,
            },
            Step::MatMul => {
                let traced = [channels, self.classes];
                let weights = Weights::Moved {
                    shape: traced.to_vec(),
                    perm: vec![1, 0],
                };
                inputs.push(self.builder.param(&format!("{layer}/kernel"), &traced, &weights)?);
                Op::Linear { activation }
            }
            Step::Softmax => Op::Softmax { axis: 1, beta: 1.0 },
        };
        let inputs: Vec<_> = inputs.into_iter().map(Some).collect();
        self.builder.node(NewNode {
            name,
            kind,
            op,
            inputs: &inputs,
            output: name,
            origin: line(number),
        })
    }
}

impl Step {
    /// The last path element of the operator's name.
    fn spelled(&self, trace: &Trace<'_>, layer: &str) -> &'static str {
        match self {
            Step::Pad(_) => "Pad",
            Step::Conv2d { .. } => "Conv2D",
            Step::Bias => "BiasAdd",
            Step::BatchNorm => "FusedBatchNormV3",
            Step::Relu => "Relu",
            Step::Add if trace.lines.contains_key(format!("{layer}/AddV2").as_str()) => "AddV2",
            Step::Add => "add",
            Step::MaxPool => "MaxPool",
            Step::Mean => "Mean",
            Step::MatMul => "MatMul",
            Step::Softmax => "Softmax",
        }
    }
}
