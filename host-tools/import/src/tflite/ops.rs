//! How an operator is translated by its row, and what translations share.

use super::importer::{Importer, View};
use super::movement::axis_of;
use super::rows::{Row, Translate, remedy, rows};
use crate::error::{Error, Result};
use crate::graph::{Activation, DType, Op, Padding2d, Quant, ReduceKind, TensorId, UnaryKind};

use DType::{F32, I8, I16, I32, U8};

impl Importer<'_, '_> {
    /// Translates one operator.
    pub(super) fn operator(&mut self, view: View<'_, '_>, version: i32) -> Result<()> {
        self.check_unsigned(view)?;
        self.check_stated(view)?;
        let row = rows().find(|row| row.kind == view.kind);
        let inferred = self.infer(view, row);
        if inferred.is_ok() && self.fold(view)? {
            return Ok(());
        }
        let Some(row) = row else {
            return Err(Error::unsupported("not supported").help(remedy(view.kind)));
        };
        inferred?;
        if !view.outputs.is_empty() && view.outputs.iter().all(|&y| self.is_empty(y)) {
            return Ok(());
        }
        if version > row.version {
            return Err(Error::unsupported(format!("version {version} of the operator"))
                .expected(format!("at most {}", row.version))
                .help("convert the model with an older converter, or without its newest options"));
        }
        self.check_legacy(view)?;
        self.narrow_indices(view);
        if !row.types.is_empty() {
            self.check_types(view, &row)?;
        }
        match row.translate {
            Translate::By(translate) => translate(self, view),
            Translate::Unary(UnaryKind::Relu6) if self.is_legacy(view) => self.legacy_relu6(view),
            Translate::Unary(kind) => self.elementwise(view, Op::Unary(kind), 1),
            Translate::Binary(kind) => self.binary(view, kind),
            Translate::Reduce(kind) => self.reduce(view, kind),
        }
    }

    pub(super) fn elementwise(&mut self, view: View<'_, '_>, op: Op, operands: usize) -> Result<()> {
        self.need_quant(view, operands)?;
        let inputs = (0..operands).map(|i| view.input(i).and_then(|x| self.operand(x)).map(Some));
        let inputs = inputs.collect::<Result<_>>()?;
        let y = self.output(view.output(0)?)?;
        self.node(view, "", op, inputs, vec![y]);
        Ok(())
    }

    pub(super) fn leaky_relu(&mut self, view: View<'_, '_>) -> Result<()> {
        let alpha = view.option(0, 0.0)?;
        self.elementwise(view, Op::Unary(UnaryKind::LeakyRelu { alpha }), 1)
    }

    /// Integer poolings work on stored numbers, so input and output must mean the same by them.
    pub(super) fn same_scales(&mut self, view: View<'_, '_>) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        if self.dtype(x)? == F32 {
            return Ok(());
        }
        let (qx, qy) = (self.scale_of(x)?, self.scale_of(y)?);
        let difference = (qx.scale[0] - qy.scale[0]).abs();
        // TensorFlow Lite Micro's bound.
        if f64::from(difference) > 1e-6 || qx.zero_point != qy.zero_point {
            return Err(Error::unsupported("a pooling between different scales")
                .expected("one scale and zero point for input and output")
                .help("TensorFlow Lite Micro refuses it as well; insert QUANTIZE behind the pooling"));
        }
        if difference != 0.0 {
            let name = &self.info(y).name;
            let text = format!("`{name}`: the pooling's scales differ by {difference:e}: stored values are pooled");
            self.warn(text);
        }
        Ok(())
    }

    pub(super) fn softmax(&mut self, view: View<'_, '_>) -> Result<()> {
        let axis = axis_of(-1, self.shape(view.input(0)?)?.len())?;
        let beta = view.option(0, 0.0)?;
        self.elementwise(view, Op::Softmax { axis, beta }, 1)
    }

    pub(super) fn log_softmax(&mut self, view: View<'_, '_>) -> Result<()> {
        let axis = axis_of(-1, self.shape(view.input(0)?)?.len())?;
        self.elementwise(view, Op::LogSoftmax { axis }, 1)
    }

    pub(super) fn reduce(&mut self, view: View<'_, '_>, kind: ReduceKind) -> Result<()> {
        let x = view.input(0)?;
        let rank = self.shape(x)?.len();
        let axes = self.integers(view.input(1)?, "axes")?;
        let mut axes: Vec<usize> = axes.iter().map(|&a| axis_of(a, rank)).collect::<Result<_>>()?;
        axes.sort_unstable();
        axes.dedup();
        let keep_dims = view.flag(0)?;
        self.elementwise(view, Op::Reduce { kind, axes, keep_dims }, 1)
    }

    pub(super) fn arg_max(&mut self, view: View<'_, '_>) -> Result<()> {
        let x = self.operand(view.input(0)?)?;
        self.arg_max_of(view, x)
    }

    /// The index of the largest element of `x`, which has the shape of the operand.
    pub(super) fn arg_max_of(&mut self, view: View<'_, '_>, x: TensorId) -> Result<()> {
        let rank = self.shape(view.input(0)?)?.len();
        let axis = match self.integers(view.input(1)?, "axis")?.as_slice() {
            &[axis] => axis_of(axis, rank)?,
            other => return Err(Error::input(format!("axes {other:?}")).expected("one axis")),
        };
        if self.dtype(view.output(0)?)? != I32 {
            return Err(
                Error::unsupported("a result that is not INT32").help("convert the model with output_type=int32")
            );
        }
        let y = self.output(view.output(0)?)?;
        self.node(view, "", Op::ArgMax { axis }, vec![Some(x)], vec![y]);
        Ok(())
    }

    pub(super) fn resize(&mut self, view: View<'_, '_>, bilinear: bool) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let (x_shape, y_shape) = (self.shape(x)?, self.shape(y)?);
        if x_shape.len() != 4 || y_shape.len() != 4 || x_shape[0] != y_shape[0] || x_shape[3] != y_shape[3] {
            return Err(Error::input(format!("it resizes {x_shape:?} to {y_shape:?}"))
                .expected("NHWC, batch and channels kept"));
        }
        let size = self.integers(view.input(1)?, "new extents")?;
        if size != [y_shape[1] as i64, y_shape[2] as i64] {
            return Err(
                Error::input(format!("new extents {size:?}")).expected(format!("{:?}, the result's", &y_shape[1..3]))
            );
        }
        let first = if bilinear { 2 } else { 0 };
        let (align_corners, half_pixel_centers) = (view.flag(first)?, view.flag(first + 1)?);
        if bilinear && align_corners && half_pixel_centers {
            return Err(Error::input("align_corners and half_pixel_centers exclude each other"));
        }
        let op = if bilinear {
            Op::ResizeBilinear {
                align_corners,
                half_pixel_centers,
            }
        } else {
            Op::ResizeNearest {
                align_corners,
                half_pixel_centers,
            }
        };
        if bilinear && self.is_legacy(view) {
            return self.legacy_resize(view, op);
        }
        let (x, y) = (self.operand(x)?, self.output(y)?);
        self.node(view, "", op, vec![Some(x)], vec![y]);
        Ok(())
    }

    pub(super) fn convert(&mut self, view: View<'_, '_>, op: Op) -> Result<()> {
        let (x, y) = (view.input(0)?, view.output(0)?);
        let (from, to) = (self.dtype(x)?, self.dtype(y)?);
        let refused = || {
            Error::unsupported(format!("from {} to {}", from.name(), to.name())).help(
                "TensorFlow Lite Micro has no such conversion either; choose other types when converting the model",
            )
        };
        match op {
            Op::Quantize => {
                let known = match from {
                    F32 => matches!(to, I8 | U8 | I16),
                    I8 => matches!(to, I8 | U8 | I16 | I32),
                    U8 => to == I8,
                    I16 => matches!(to, I8 | I16 | I32),
                    I32 => matches!(to, I8 | I16),
                    _ => false,
                };
                if !known {
                    return Err(refused());
                }
                if from != F32 {
                    self.scale_of(x)?;
                }
                self.scale_of(y)?;
            }
            Op::Dequantize => {
                if to != F32 {
                    return Err(refused());
                }
                self.scale_of(x)?;
            }
            _ if !matches!(to, F32 | I8 | I16 | I32) => return Err(refused()),
            _ => {}
        }
        let (x, y) = (self.operand(x)?, self.output(y)?);
        self.node(view, "", op, vec![Some(x)], vec![y]);
        Ok(())
    }

    /// The first operand that holds activations has a supported type, and a quantised one comes out with the same kind.
    fn check_types(&self, view: View<'_, '_>, row: &Row) -> Result<()> {
        let x = match view.kind {
            // Their first operand is the axis.
            "SPLIT" => view.input(1)?,
            // Its are the result's shape and the weights.
            "TRANSPOSE_CONV" => view.input(2)?,
            _ => view.input(0)?,
        };
        let dtype = self.dtype(x)?;
        if row.types.contains(&dtype) {
            return Ok(());
        }
        let names: Vec<&str> = row.types.iter().map(|d| d.name()).collect();
        Err(Error::unsupported(format!("operands of type {}", dtype.name()))
            .expected(names.join(", "))
            .help("quantise the model to int8, or insert QUANTIZE or CAST"))
    }

    /// Quantised arithmetic wants scales: of the first `operands` operands and of the result.
    pub(super) fn need_quant(&mut self, view: View<'_, '_>, operands: usize) -> Result<()> {
        let x = view.input(0)?;
        if !matches!(self.dtype(x)?, I8 | I16) || matches!(view.kind, "MINIMUM" | "MAXIMUM") {
            return Ok(());
        }
        // TensorFlow Lite Micro takes the absolute value of plain int16 numbers.
        if view.kind == "ABS" && self.dtype(x)? == I16 && self.quant(x)?.is_none() {
            return Ok(());
        }
        for position in 0..operands {
            self.scale_of(view.input(position)?)?;
        }
        self.scale_of(view.output(0)?).map(|_| ())
    }

    /// The quantisation of a tensor that must have one.
    pub(super) fn scale_of(&mut self, index: usize) -> Result<Quant> {
        self.quant(index)?.ok_or_else(|| {
            Error::input(format!("`{}` has no quantisation", self.info(index).name))
                .expected("a scale and a zero point")
                .help("convert the model again with full integer quantisation")
        })
    }

    pub(super) fn expect_type(&self, index: usize, dtype: DType) -> Result<()> {
        if self.dtype(index)? == dtype {
            Ok(())
        } else {
            Err(
                Error::unsupported(format!("`{}` is {}", self.info(index).name, self.dtype(index)?.name()))
                    .expected(dtype.name()),
            )
        }
    }

    /// A result whose shape its operator computes must declare it.
    pub(super) fn expect_shape(&self, index: usize, computed: &[usize]) -> Result<()> {
        let declared = self.shape(index)?;
        if declared == computed {
            return Ok(());
        }
        let name = &self.info(index).name;
        Err(Error::input(format!("`{name}` has shape {declared:?}")).expected(format!("{computed:?}")))
    }

    /// A state operand must be a variable tensor.
    pub(super) fn variable(&self, index: usize) -> Result<()> {
        if self.info(index).variable {
            Ok(())
        } else {
            Err(Error::input(format!(
                "the state `{}` is no variable tensor",
                self.info(index).name
            )))
        }
    }

    /// Float activations with integer weights are quantised at run time: another arithmetic, which TensorFlow Lite Micro does not
    /// have.
    pub(super) fn refuse_hybrid(&self, view: View<'_, '_>, x: usize, w: usize) -> Result<()> {
        if self.dtype(x)? == F32 && self.dtype(w)? != F32 {
            return Err(Error::unsupported(format!(
                "a hybrid operator: float activations `{}` with {} weights `{}`",
                self.info(x).name,
                self.dtype(w)?.name(),
                self.info(w).name
            ))
            .help(format!(
                "convert the model with full integer quantisation (a representative dataset), or without quantising {}",
                view.kind
            )));
        }
        if self.dtype(x)? != F32 && self.dtype(w)? != I8 {
            return Err(
                Error::unsupported(format!("{} weights `{}`", self.dtype(w)?.name(), self.info(w).name))
                    .expected("int8"),
            );
        }
        Ok(())
    }
}

/// Scales along some axis as those of the output channels, which are the first axis in the graph.
pub(super) fn by_output(quant: &mut Quant, out: usize) -> Result<()> {
    let count = quant.scale.len();
    if count != out {
        return Err(Error::input(format!("{count} scales of weights for {out} outputs"))
            .expected("one scale, or one for each output channel"));
    }
    quant.axis = Some(0);
    Ok(())
}

pub(super) fn activation(code: i8) -> Result<Activation> {
    match code {
        0 => Ok(Activation::None),
        1 => Ok(Activation::Relu),
        2 => Ok(Activation::ReluN1To1),
        3 => Ok(Activation::Relu6),
        other => Err(Error::unsupported(format!(
            "fused activation {}",
            ["TANH", "SIGN_BIT"]
                .get(usize::try_from(other).unwrap_or(0).wrapping_sub(4))
                .unwrap_or(&"of an unknown kind")
        ))
        .help("convert the activation as an operator of its own")),
    }
}

pub(super) fn positive(values: [i32; 2], what: &str) -> Result<[usize; 2]> {
    match values {
        [a @ 1..=0xFFFF, b @ 1..=0xFFFF] => Ok([a as usize, b as usize]),
        _ => Err(Error::input(format!("{what} {values:?}")).expected("1 to 65535")),
    }
}

/// SAME (0) or VALID (1) padding: SAME splits what is missing, the odd row or column below or to the right.
pub(super) fn padding(
    mode: i8,
    input: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
) -> Result<Padding2d> {
    let total = |axis: usize| {
        let out = input[axis].div_ceil(stride[axis]);
        ((out - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1).saturating_sub(input[axis])
    };
    match mode {
        0 => Ok(Padding2d {
            top: total(0) / 2,
            bottom: total(0) - total(0) / 2,
            left: total(1) / 2,
            right: total(1) - total(1) / 2,
        }),
        1 => Ok(Padding2d::default()),
        other => Err(Error::input(format!("padding {other}")).expected("0 (SAME) or 1 (VALID)")),
    }
}
