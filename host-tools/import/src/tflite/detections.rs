//! `TFLite_Detection_PostProcess`, a custom operator of TensorFlow's object detectors.

use arenite::ops::detections::Suppression;

use super::flexbuffer::Options;
use super::importer::{Importer, View};
use crate::error::{Error, Result};
use crate::graph::{DType, Detector, Op, Tensor, TensorId};

/// The most boxes of a class, where the file does not say.
const BOXES_OF_A_CLASS: i64 = 100;

impl Importer<'_, '_> {
    pub(super) fn detections(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, p, a) = (view.input(0)?, view.input(1)?, view.input(2)?);
        let (encodings, predictions, anchors) = (self.shape(x)?, self.shape(p)?, self.shape(a)?);
        let (candidates, scores, row, count) = match (encodings.as_slice(), predictions.as_slice(), anchors.as_slice())
        {
            (&[1, candidates, width], &[1, scores, row], &[count, 4]) if width >= 4 => (candidates, scores, row, count),
            _ => {
                return Err(Error::unsupported(format!(
                    "encodings of shape {encodings:?}, scores of shape {predictions:?}, anchors of shape {anchors:?}"
                ))
                .expected("[1, anchors, 4 or more], [1, anchors, classes], [anchors, 4]")
                .help("TensorFlow Lite has this operator for one image at a time: use a batch of 1"));
            }
        };
        if scores != candidates || count != candidates {
            return Err(Error::input(format!(
                "{candidates} encodings, {scores} rows of scores, {count} anchors"
            ))
            .expected("as many of each"));
        }
        let detector = detector(&Options::read(view.custom)?, row)?;
        let rows = match detector.suppression {
            Suppression::Fast { classes } => detector.most * classes as usize,
            Suppression::Regular { .. } => detector.most,
        };
        let shapes: [&[usize]; 4] = [&[1, rows, 4], &[1, rows], &[1, rows], &[1]];
        for (position, shape) in shapes.into_iter().enumerate() {
            let y = view.output(position)?;
            self.expect_type(y, DType::F32)?;
            // Converters that do not know the operator leave its results without a shape.
            if !self.info(y).shape.is_empty() && self.shape(y)? != shape {
                return Err(
                    Error::input(format!("`{}` has shape {:?}", self.info(y).name, self.shape(y)?))
                        .expected(format!("{shape:?}, by the operator's options")),
                );
            }
        }
        let operands = [x, p, a].map(|operand| self.real(view, operand));
        let operands = operands.into_iter().map(|id| id.map(Some)).collect::<Result<_>>()?;
        let mut results = Vec::new();
        for (&y, shape) in view.outputs.iter().zip(shapes) {
            let id = self.output(y)?;
            self.out.tensors[id.0].shape = shape.to_vec();
            results.push(id);
        }
        self.node(view, "", Op::Detections(detector), operands, results);
        Ok(())
    }

    /// The operand as real numbers: a quantised one is dequantised, a constant when packing.
    fn real(&mut self, view: View<'_, '_>, operand: usize) -> Result<TensorId> {
        self.widen_weights(operand)?;
        if self.dtype(operand)? != DType::I8 {
            self.expect_type(operand, DType::F32)?;
            return self.operand(operand);
        }
        self.scale_of(operand)?;
        let from = self.operand(operand)?;
        let suffix = format!("/real{operand}");
        let name = format!("{}{suffix}", self.info(operand).name);
        let to = Tensor::activation(name, &self.shape(operand)?, DType::F32);
        let to = self.add_const(to);
        self.node(view, &suffix, Op::Dequantize, vec![Some(from)], vec![to]);
        Ok(to)
    }
}

/// Returns the detector of the options, for scores in rows of `row`.
fn detector(options: &Options<'_>, row: usize) -> Result<Detector> {
    let counted = |name: &str, value: i64| {
        let most = 1 << 20;
        match usize::try_from(value) {
            Ok(count @ 1..) if count <= most => Ok(count),
            _ => Err(Error::input(format!("option `{name}` is {value}")).expected(format!("1 to {most}"))),
        }
    };
    let count = |name: &str| counted(name, options.integer(name)?);
    let or = |name: &str, default: i64| Ok::<_, Error>(options.optional_integer(name)?.unwrap_or(default));
    let labels = count("num_classes")?;
    if row != labels && row != labels + 1 {
        return Err(Error::input(format!("{row} scores for each anchor"))
            .expected(format!("{labels} (num_classes), or one more for a background")));
    }
    let most = count("max_detections")?;
    let classes = count("max_classes_per_detection")?;
    let suppression = if or("use_regular_nms", 0)? != 0 {
        if classes != 1 {
            return Err(
                Error::unsupported(format!("use_regular_nms with max_classes_per_detection {classes}"))
                    .expected("max_classes_per_detection 1, which is all that this way of choosing boxes tells")
                    .help("convert the model with max_classes_per_detection=1"),
            );
        }
        let boxes = counted("detections_per_class", or("detections_per_class", BOXES_OF_A_CLASS)?)?;
        Suppression::Regular { boxes: boxes as u32 }
    } else {
        if classes > labels {
            return Err(
                Error::unsupported(format!("max_classes_per_detection {classes} of {labels} classes"))
                    .expected(format!(
                        "at most {labels}: TensorFlow Lite leaves the others' rows as they were"
                    ))
                    .help("convert the model with max_classes_per_detection=1"),
            );
        }
        Suppression::Fast {
            classes: classes as u32,
        }
    };
    let finite = |name: &str| {
        let value = options.float(name)?;
        if value.is_finite() {
            return Ok(value);
        }
        Err(Error::input(format!("option `{name}` is {value}")).expected("a finite number"))
    };
    let scale = |name: &str| {
        let value = finite(name)?;
        if value > 0.0 {
            return Ok(value);
        }
        Err(Error::input(format!("option `{name}` is {value}")).expected("more than zero"))
    };
    let overlap = finite("nms_iou_threshold")?;
    if !(overlap > 0.0 && overlap <= 1.0) {
        return Err(Error::input(format!("option `nms_iou_threshold` is {overlap}")).expected("above 0, at most 1"));
    }
    Ok(Detector {
        labels,
        most,
        suppression,
        threshold: finite("nms_score_threshold")?,
        overlap,
        scale: [
            scale("y_scale")?,
            scale("x_scale")?,
            scale("h_scale")?,
            scale("w_scale")?,
        ],
    })
}
