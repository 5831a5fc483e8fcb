//! The operators of `ai.onnx.ml` in front of a classifier's scores, as scikit-learn's exporter writes them, and where such a network ends.
//!
//! A label is what the application makes of the scores, and a map from labels to scores (ZipMap) is no tensor: the network ends with the scores.

use std::collections::HashMap;

use super::array::Array;
use super::importer::{Importer, Value, View};
use super::proto::{Model, Node, ValueInfo};
use super::rows::{Row, of_domain as row};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, ReduceKind, UnaryKind};

/// The domain.
pub(super) const DOMAIN: &str = "ai.onnx.ml";

/// Advice for its other operators.
pub(super) const REMEDY: &str =
    "export the part of the pipeline that is a network of layers, and compute the rest in the application";

pub(super) const ROWS: &[Row] = &[
    row(
        "LinearClassifier",
        "the scores, of a row of coefficients a class",
        |i, v| i.linear_scores(v, 1),
    ),
    row("LinearRegressor", "", |i, v| i.linear_scores(v, 0)),
    row("Normalizer", "L1 and L2", |i, v| i.normalizer(v)),
    row("Scaler", "", |i, v| i.scaler(v)),
];

/// Ends a classifier with its scores: what is cut, in words.
pub(super) fn cut(model: &mut Model<'_>) -> Vec<String> {
    let mut writers: HashMap<&str, (&Node<'_>, usize)> = HashMap::new();
    for node in &model.graph.nodes {
        writers.extend(node.outputs.iter().enumerate().map(|(at, &name)| (name, (node, at))));
    }
    let (mut said, mut ends) = (Vec::new(), Vec::new());
    for output in &model.graph.outputs {
        match writers.get(output.name) {
            Some((node, _)) if node.domain == DOMAIN && node.op == "ZipMap" => {
                let scores = node.inputs.first().copied().unwrap_or_default();
                said.push(format!(
                    "the output `{}` (ZipMap) is cut: the network ends with the scores `{scores}`",
                    output.name
                ));
                ends.push(Some(scores));
            }
            _ if is_label(output.name, &writers) => ends.push(None),
            _ => ends.push(Some(output.name)),
        }
    }
    if ends.iter().all(Option::is_none) {
        return Vec::new();
    }
    let outputs = std::mem::take(&mut model.graph.outputs).into_iter().zip(ends);
    for (output, end) in outputs {
        match end {
            Some(name) if name == output.name => model.graph.outputs.push(output),
            Some(name) => model.graph.outputs.push(ValueInfo {
                name,
                elem: 0,
                shape: None,
            }),
            None => said.push(format!(
                "the output `{}` is cut: a label is what the application makes of the scores",
                output.name
            )),
        }
    }
    said
}

/// Whether a tensor is made of labels: chosen of a list, looked up, or a classifier's first result.
fn is_label(name: &str, writers: &HashMap<&str, (&Node<'_>, usize)>) -> bool {
    let mut name = name;
    // A chain that comes back to itself ends here too.
    for _ in 0..writers.len() {
        let Some((node, at)) = writers.get(name) else {
            return false;
        };
        match (node.domain, node.op) {
            (DOMAIN, "ArrayFeatureExtractor" | "LabelEncoder") => return true,
            (DOMAIN, op) => return *at == 0 && op.ends_with("Classifier"),
            (_, "Cast" | "Reshape" | "Identity" | "Squeeze") => name = node.inputs.first().copied().unwrap_or_default(),
            _ => return false,
        }
    }
    false
}

impl<'a> Importer<'_, 'a> {
    /// Products of rows with the coefficients, as result `position`.
    fn linear_scores(&mut self, view: View<'_, 'a>, position: usize) -> Result<()> {
        if position == 1 && view.output(0).is_some_and(|name| self.findings.read.contains(name)) {
            return Err(Error::unsupported("labels of a classifier")
                .help("end the network with its scores, and choose the label in the application"));
        }
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let width = shape.last().copied().unwrap_or(0);
        let coefficients = view.floats("coefficients")?.unwrap_or_default();
        let targets = coefficients.len().checked_div(width).unwrap_or(0);
        let labels = match (
            view.node.ints("classlabels_ints")?,
            view.node.texts("classlabels_strings")?,
        ) {
            (Some(labels), _) if !labels.is_empty() => Some(labels.len()),
            (_, Some(labels)) if !labels.is_empty() => Some(labels.len()),
            _ => None,
        };
        if shape.len() != 2 || targets == 0 || targets * width != coefficients.len() {
            return Err(
                Error::input(format!("{} coefficients for rows {shape:?}", coefficients.len()))
                    .expected("one for each element of a row and each score"),
            );
        }
        if position == 1 && labels.is_some_and(|labels| labels != targets) {
            return Err(
                Error::unsupported(format!("{targets} scores of {} classes", labels.unwrap_or(0)))
                    .expected("a score for each class"),
            );
        }
        let weights = Array::floats(&[targets, width], coefficients).into();
        let bias = view.floats("intercepts")?.filter(|bias| !bias.is_empty());
        if let Some(bias) = bias.as_ref().filter(|bias| bias.len() != targets) {
            return Err(Error::input(format!("{} intercepts of {targets} scores", bias.len())));
        }
        let bias = bias.map(|bias| Value::from(Array::floats(&[targets], bias)));
        let y = self.linear(&x, &weights, bias.as_ref())?;
        let y = match view.text("post_transform", "NONE")? {
            "NONE" => y,
            "LOGISTIC" => self.unary(UnaryKind::LOGISTIC, &y)?,
            "SOFTMAX" => self.softmax_along(&y, -1, true, false)?,
            other => {
                return Err(Error::unsupported(format!("the transform `{other}` of scores"))
                    .expected("NONE, LOGISTIC or SOFTMAX"));
            }
        };
        self.bind(view, position, y)
    }

    /// Rows divided by the sum of their magnitudes, or by their length; those of zeros stay.
    fn normalizer(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let last = (self.shape(&x).len().checked_sub(1)).ok_or_else(|| Error::input("a scalar"))?;
        let size = match view.text("norm", "MAX")? {
            "L1" => {
                let magnitudes = self.unary(UnaryKind::ABS, &x)?;
                self.reduce(ReduceKind::Sum, &magnitudes, &[last], true)?
            }
            "L2" => {
                let squares = self.binary(BinaryOp::Mul, &x, &x)?;
                let sum = self.reduce(ReduceKind::Sum, &squares, &[last], true)?;
                self.square_root(&sum)?
            }
            other => return Err(Error::unsupported(format!("the norm `{other}`")).expected("L1 or L2")),
        };
        let size = self.with(BinaryOp::Maximum, &size, f32::MIN_POSITIVE)?;
        let y = self.binary(BinaryOp::Div, &x, &size)?;
        self.bind(view, 0, y)
    }

    /// `(x - offset) * scale`, one for all elements of a row or one each.
    fn scaler(&mut self, view: View<'_, 'a>) -> Result<()> {
        let mut y = self.operand(view, 0)?;
        let width = self.shape(&y).last().copied().unwrap_or(1);
        for (name, op) in [("offset", BinaryOp::Sub), ("scale", BinaryOp::Mul)] {
            if let Some(values) = view.floats(name)?.filter(|values| !values.is_empty()) {
                if values.len() != 1 && values.len() != width {
                    return Err(Error::input(format!(
                        "{} of `{name}` for rows of {width} elements",
                        values.len()
                    )));
                }
                let values = Array::floats(&[values.len()], values).into();
                y = self.binary(op, &y, &values)?;
            }
        }
        self.bind(view, 0, y)
    }
}
