//! Poolings.

use super::array::{Array, paid};
use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::windows::{Windows, windows};
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, DType, Layout, Op, PoolAttrs};

impl<'a> Importer<'_, 'a> {
    pub(super) fn pool(&mut self, view: View<'_, 'a>, max: bool) -> Result<()> {
        if max && view.output(1).is_some() {
            return Err(Error::unsupported("element type int64 of the indices of a pooling")
                .help("end the network before them, or leave that result out"));
        }
        // The order of the indices, which nobody reads.
        view.flag("storage_order", false)?;
        let x = self.operand(view, 0)?;
        if let Value::Tensor(id) = &x
            && let Some(quant) = self.out.tensor(*id).quant.clone()
        {
            let (id, dtype) = (*id, self.out.tensor(*id).dtype);
            let real = self.emit_as(Op::Dequantize, &[id], &self.shape(&x), DType::F32)?;
            let y = self.pooled_by(view, &Value::Tensor(real), max)?;
            let (y, shape) = (self.tensor(&y)?, self.shape(&y));
            let y = self.emit_as(Op::Quantize, &[y], &shape, dtype)?;
            self.out.tensor_mut(y).quant = Some(quant);
            return self.bind(view, 0, Value::Tensor(y));
        }
        let elem = self.elem(&x);
        let real = Value::Tensor(self.real(&x)?);
        let y = self.pooled_by(view, &real, max)?;
        let y = match elem {
            Elem::FLOAT => y,
            elem => self.cast(&y, elem)?,
        };
        self.bind(view, 0, y)
    }

    /// A pooling of real numbers as the node's attributes say.
    pub(super) fn pooled_by(&mut self, view: View<'_, 'a>, x: &Value, max: bool) -> Result<Value> {
        let shape = self.shape(x);
        if shape.len() < 3 {
            return Err(
                Error::input(format!("an operand of shape {shape:?}")).expected("batch, channels and spatial axes")
            );
        }
        if !view.node.has("kernel_shape") {
            return Err(Error::input("no kernel_shape"));
        }
        let windows = windows(view, &shape[2..], &[])?;
        // Some windows would see padding alone.
        for (axis, &(before, after)) in windows.pads.iter().enumerate() {
            let span = (windows.kernel[axis] - 1) * windows.dilation[axis] + 1;
            if before.max(after) >= span as i64 {
                return Err(
                    Error::input(format!("paddings {before} and {after} of a window of {span}"))
                        .expected("paddings that are smaller than the window"),
                );
            }
        }
        let include = view.flag("count_include_pad", false)?;
        self.pooled(x, &windows, max, include)
    }

    fn pooled(&mut self, x: &Value, windows: &Windows, max: bool, include: bool) -> Result<Value> {
        let shape = self.shape(x);
        let even = windows.extra.iter().all(|&e| e == 0) && windows.pads.iter().all(|p| p.0 == p.1);
        // A window that sees padding alone has no largest element.
        let sees = |axis: usize| {
            let span = (windows.kernel[axis] - 1) * windows.dilation[axis] + 1;
            let last = (windows.out[axis] - 1) * windows.stride[axis];
            (windows.pads[axis].0 as usize) < span && last < shape[axis + 2] + windows.pads[axis].0 as usize
        };
        let plain = windows.is_2d() && windows.dilation.iter().all(|&d| d == 1) && (0..windows.out.len()).all(sees);
        let mut to = shape[..2].to_vec();
        to.extend(&windows.out);
        if plain && (max || !include || even) {
            let x = self.rows_and_columns(x)?;
            let attrs = PoolAttrs {
                layout: Layout::Nchw,
                kernel: Windows::pair(&windows.kernel),
                stride: Windows::pair(&windows.stride),
                padding: windows.padding(),
                count_include_pad: include,
                activation: Activation::None,
            };
            let op = if max {
                Op::MaxPool2d(attrs)
            } else {
                Op::AvgPool2d(attrs)
            };
            let x = self.tensor(&x)?;
            let y = self.emit(op, &[x])?;
            return self.reshape(&Value::Tensor(y), &to);
        }
        let (fill, op) = if max {
            (f32::NEG_INFINITY, BinaryOp::Maximum)
        } else {
            (0.0, BinaryOp::Add)
        };
        let taps = self.taps(x, windows, fill)?;
        let mut taps = taps.into_iter();
        let mut y = taps.next().ok_or_else(|| Error::internal("an empty window"))?;
        for tap in taps {
            y = self.binary(op, &y, &tap)?;
        }
        if max {
            return Ok(y);
        }
        paid(&self.budget, Elem::FLOAT, &windows.out)?;
        let counts = counts(&shape[2..], windows, include);
        self.binary(BinaryOp::Div, &y, &counts.into())
    }
}

/// Returns the divisor of each window's sum, as `[1, 1, spatial…]`.
fn counts(spatial: &[usize], windows: &Windows, include: bool) -> Array {
    let along = |axis: usize| -> Vec<usize> {
        let (before, after) = windows.pads[axis];
        let (low, high) = if include {
            (-before, spatial[axis] as i64 + after)
        } else {
            (0, spatial[axis] as i64)
        };
        let inside = |place: i64| (low..high).contains(&place);
        let place =
            |window: usize, tap: usize| (window * windows.stride[axis] + tap * windows.dilation[axis]) as i64 - before;
        (0..windows.out[axis])
            .map(|window| {
                (0..windows.kernel[axis])
                    .filter(|&tap| inside(place(window, tap)))
                    .count()
            })
            .collect()
    };
    let mut counts = vec![1.0f32];
    for axis in 0..spatial.len() {
        let line = along(axis);
        counts = counts
            .iter()
            .flat_map(|c| line.iter().map(move |&n| c * n as f32))
            .collect();
    }
    let mut shape = vec![1, 1];
    shape.extend(&windows.out);
    Array::floats(&shape, counts.iter().map(|c| c.max(1.0)).collect())
}
