//! Convolutions and poolings.

use super::elem::Elem;
use super::importer::{Importer, Value, View};
use super::movement::extents;
use crate::build::LARGEST_EXTENT;
use crate::error::{Error, Result};
use crate::graph::{Activation, BinaryOp, Conv2dAttrs, DType, Layout, Op, Padding2d};

/// Most elements of a window that is cut into slices.
const MOST_TAPS: usize = 1024;

/// Largest stride, dilation and padding of the runtime's windows.
const MOST_STEP: usize = 255;

/// How windows slide over the spatial axes.
#[derive(Debug, Clone)]
pub(super) struct Windows {
    pub(super) kernel: Vec<usize>,
    pub(super) stride: Vec<usize>,
    pub(super) dilation: Vec<usize>,
    /// Padding before and after as stated.
    pub(super) pads: Vec<(i64, i64)>,
    /// Elements beyond the padding that the last window needs: the ceiling mode.
    pub(super) extra: Vec<usize>,
    pub(super) out: Vec<usize>,
}

impl Windows {
    /// Whether the runtime's windows are such: those of at most two axes, whose steps and paddings are bytes.
    pub(super) fn is_2d(&self) -> bool {
        let steps = self.stride.iter().chain(&self.dilation);
        let pads = self.pads.iter().zip(&self.extra);
        self.kernel.len() <= 2
            && steps.max().is_none_or(|&step| step <= MOST_STEP)
            && pads.into_iter().all(|(&(before, after), &extra)| {
                let fits = |pad: i64| (0..=MOST_STEP as i64).contains(&pad);
                fits(before) && fits(after) && fits(after + extra as i64)
            })
    }

    pub(super) fn padding(&self) -> Padding2d {
        let rows = self.kernel.len().checked_sub(2);
        let columns = self.kernel.len() - 1;
        let at = |axis: usize| {
            (
                self.pads[axis].0 as usize,
                self.pads[axis].1 as usize + self.extra[axis],
            )
        };
        let (top, bottom) = rows.map_or((0, 0), at);
        let (left, right) = at(columns);
        Padding2d {
            top,
            bottom,
            left,
            right,
        }
    }

    /// Rows and columns of a list that has columns alone where there is one axis.
    pub(super) fn pair(list: &[usize]) -> [usize; 2] {
        match list {
            &[rows, columns, ..] => [rows, columns],
            &[columns] => [1, columns],
            [] => [1, 1],
        }
    }
}

/// The `auto_pad` of paddings that are stated.
const STATED: &str = "NOTSET";

/// How a node pads by itself; the word may be empty.
pub(super) fn auto_pad<'a>(view: View<'_, 'a>) -> Result<&'a str> {
    match view.node.text("auto_pad")? {
        Some("") => Ok(STATED),
        _ => view.word("auto_pad", &[STATED, "SAME_UPPER", "SAME_LOWER", "VALID"]),
    }
}

/// Refuses paddings beside an `auto_pad` that gives others; zeros say nothing.
pub(super) fn pads_alone(stated: &[i64], auto: &str, pads: &[(i64, i64)]) -> Result<()> {
    let computed: Vec<i64> = pads.iter().map(|p| p.0).chain(pads.iter().map(|p| p.1)).collect();
    if auto == STATED || stated.iter().all(|&pad| pad == 0) || stated == computed {
        return Ok(());
    }
    Err(
        Error::input(format!("attribute `pads` is {stated:?} beside auto_pad {auto}"))
            .expected("one of the two")
            .help(format!("leave `pads` out, which are {computed:?} then, or `auto_pad`")),
    )
}

pub(super) fn positive(values: Option<Vec<i64>>, rank: usize, default: &[usize], what: &str) -> Result<Vec<usize>> {
    let Some(values) = values else {
        return Ok(default.to_vec());
    };
    let list = extents(&values, what)?;
    if list.len() != rank || list.iter().any(|&n| n == 0 || n > LARGEST_EXTENT) {
        return Err(Error::input(format!("{what} {values:?} of {rank} spatial axes")));
    }
    Ok(list)
}

/// The windows of a node over `spatial` extents.
pub(super) fn windows(view: View<'_, '_>, spatial: &[usize], kernel: &[usize]) -> Result<Windows> {
    let rank = spatial.len();
    let ones = vec![1; rank];
    let kernel = positive(view.node.ints("kernel_shape")?, rank, kernel, "kernel_shape")?;
    let stride = positive(view.node.ints("strides")?, rank, &ones, "strides")?;
    let dilation = positive(view.node.ints("dilations")?, rank, &ones, "dilations")?;
    let ceil = view.flag("ceil_mode", false)?;
    let stated = view.node.ints("pads")?.unwrap_or_else(|| vec![0; 2 * rank]);
    let bound = LARGEST_EXTENT as i64;
    if stated.len() != 2 * rank
        || kernel.len() != rank
        || stated.iter().any(|p| p.unsigned_abs() > bound.unsigned_abs())
    {
        return Err(Error::input(format!(
            "pads {stated:?} and kernel {kernel:?} of {rank} spatial axes"
        )));
    }
    if stated.iter().any(|&pad| pad < 0) {
        return Err(Error::input(format!("attribute `pads` is {stated:?}"))
            .expected("paddings that are not below zero")
            .help("a Slice ahead of the operator takes elements away"));
    }
    let auto = auto_pad(view)?;
    let (mut pads, mut extra, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..rank {
        let (extent, step) = (spatial[axis] as i64, stride[axis] as i64);
        let span = (kernel[axis] as i64 - 1) * dilation[axis] as i64 + 1;
        let (before, after) = match auto {
            STATED => (stated[axis], stated[axis + rank]),
            "VALID" => (0, 0),
            _ => {
                let count = (extent + step - 1) / step;
                let total = ((count - 1) * step + span - extent).max(0);
                let less = total / 2;
                if auto == "SAME_UPPER" {
                    (less, total - less)
                } else {
                    (total - less, less)
                }
            }
        };
        let room = extent + before + after - span;
        if room < 0 {
            return Err(Error::input(format!(
                "a window of {span} does not fit into {extent} with padding {before} and {after}"
            )));
        }
        let mut count = if ceil { (room + step - 1) / step } else { room / step } + 1;
        // The last window starts inside the operand or its padding before.
        if ceil && (count - 1) * step >= extent + before {
            count -= 1;
        }
        extra.push(((count - 1) * step + span - (extent + before + after)).max(0) as usize);
        pads.push((before, after));
        out.push(count as usize);
    }
    pads_alone(&stated, auto, &pads)?;
    // A step that is never taken has no size.
    let none = |steps: &mut [usize], counts: &[usize]| {
        for (step, _) in steps.iter_mut().zip(counts).filter(|(_, count)| **count == 1) {
            *step = (*step).min(MOST_STEP);
        }
    };
    let (mut stride, mut dilation) = (stride, dilation);
    none(&mut stride, &out);
    none(&mut dilation, &kernel);
    Ok(Windows {
        kernel,
        stride,
        dilation,
        pads,
        extra,
        out,
    })
}

impl<'a> Importer<'_, 'a> {
    pub(super) fn conv(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, w, bias) = (self.operand(view, 0)?, self.operand(view, 1)?, self.optional(view, 2)?);
        let y = self.convolved(view, &x, &w, bias.as_ref())?;
        self.bind(view, 0, y)
    }

    /// A convolution as the node's attributes say.
    pub(super) fn convolved(
        &mut self,
        view: View<'_, '_>,
        x: &Value,
        w: &Value,
        bias: Option<&Value>,
    ) -> Result<Value> {
        let (x_shape, w_shape) = (self.shape(x), self.shape(w));
        if x_shape.len() < 3 || x_shape.len() != w_shape.len() {
            return Err(
                Error::input(format!("an operand of shape {x_shape:?} and weights {w_shape:?}"))
                    .expected("batch, channels and spatial axes"),
            );
        }
        let windows = windows(view, &x_shape[2..], &w_shape[2..])?;
        let groups = usize::try_from(view.int("group", 1)?).unwrap_or(0);
        if windows.kernel != w_shape[2..] {
            return Err(Error::input(format!(
                "kernel_shape {:?} and weights {w_shape:?}",
                windows.kernel
            )));
        }
        self.convolution(x, w, bias, groups, &windows)
    }

    /// A convolution of `[batch, channels, spatial…]` by weights `[out, channels / groups, spatial…]`.
    pub(super) fn convolution(
        &mut self,
        x: &Value,
        w: &Value,
        bias: Option<&Value>,
        groups: usize,
        windows: &Windows,
    ) -> Result<Value> {
        let (x_shape, w_shape) = (self.shape(x), self.shape(w));
        let (channels, out) = (x_shape[1], w_shape[0]);
        if groups == 0 || w_shape[1].checked_mul(groups) != Some(channels) || !out.is_multiple_of(groups) {
            return Err(Error::input(format!(
                "{channels} input channels, `group` {groups} and weights {w_shape:?} do not fit together"
            ))
            .expected("weights [M, C / group, …] with C the input's channels, and an M that `group` divides"));
        }
        if let Some(bias) = bias.map(|b| self.shape(b)).filter(|shape| *shape != [out]) {
            return Err(Error::input(format!("a bias of shape {bias:?} for {out} channels")));
        }
        let known = |v: &Value| matches!(v, Value::Array(_));
        if !windows.is_2d() || !known(w) || !bias.is_none_or(known) {
            return self.convolution_by_products(x, w, bias, groups, windows);
        }
        let [kh, kw] = Windows::pair(&windows.kernel);
        let flat = self.reshape(w, &[out, w_shape[1], kh, kw])?;
        let weights = self.transpose(&flat, &[0, 2, 3, 1])?;
        let x = self.rows_and_columns(x)?;
        let mut inputs = vec![self.real(&x)?, self.real(&weights)?];
        if let Some(bias) = bias {
            inputs.push(self.real(bias)?);
        }
        let attrs = Conv2dAttrs {
            layout: Layout::Nchw,
            stride: Windows::pair(&windows.stride),
            dilation: Windows::pair(&windows.dilation),
            padding: windows.padding(),
            groups,
            activation: Activation::None,
        };
        let y = self.emit(Op::Conv2d(attrs), &inputs)?;
        let mut shape = vec![x_shape[0], out];
        shape.extend(&windows.out);
        self.reshape(&Value::Tensor(y), &shape)
    }

    /// `[batch, channels, columns]` as images of one row.
    pub(super) fn rows_and_columns(&mut self, x: &Value) -> Result<Value> {
        match *self.shape(x) {
            [n, c, columns] => self.reshape(x, &[n, c, 1, columns]),
            _ => Ok(x.clone()),
        }
    }

    /// The operand's slices that meet each tap of the kernel, in its order, with `fill` around the operand.
    pub(super) fn taps(&mut self, x: &Value, windows: &Windows, fill: f32) -> Result<Vec<Value>> {
        let count: usize = windows.kernel.iter().product();
        if count > MOST_TAPS {
            let why = if windows.is_2d() || windows.kernel.len() > 2 {
                "more than two spatial axes, dilation or computed weights".to_string()
            } else {
                format!("strides, dilations or paddings above {MOST_STEP}")
            };
            return Err(
                Error::unsupported(format!("{why} with a window of {:?}", windows.kernel))
                    .expected(format!("at most {MOST_TAPS} elements")),
            );
        }
        let mut pads = vec![(0, 0); 2];
        for (axis, &(before, after)) in windows.pads.iter().enumerate() {
            pads.push((before, after + windows.extra[axis] as i64));
        }
        let (x, pads) = self.cut(x, &pads)?;
        let x = self.pad(&x, &pads, fill)?;
        let shape = self.shape(&x);
        let mut extents = shape[..2].to_vec();
        extents.extend(&windows.out);
        // A single window has no step.
        let step = |axis: usize| {
            if windows.out[axis] > 1 {
                windows.stride[axis] as isize
            } else {
                1
            }
        };
        let mut stride = vec![1, 1];
        stride.extend((0..windows.out.len()).map(step));
        let mut taps = Vec::with_capacity(count);
        for tap in 0..count {
            let (mut rest, mut begin) = (tap, vec![0; shape.len()]);
            for axis in (0..windows.kernel.len()).rev() {
                begin[axis + 2] = rest % windows.kernel[axis] * windows.dilation[axis];
                rest /= windows.kernel[axis];
            }
            taps.push(self.slice(&x, &begin, &stride, &extents)?);
        }
        Ok(taps)
    }

    /// Any convolution, also of weights that are computed: a product of what each window sees with the weights.
    fn convolution_by_products(
        &mut self,
        x: &Value,
        w: &Value,
        bias: Option<&Value>,
        groups: usize,
        windows: &Windows,
    ) -> Result<Value> {
        let x = Value::Tensor(self.real(x)?);
        let (rank, w_shape) = (self.shape(&x).len(), self.shape(w));
        let (channels, out) = (w_shape[1], w_shape[0] / groups);
        let inwards: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
        let weights = self.transpose(w, &inwards)?;
        let taps: usize = windows.kernel.iter().product();
        let weights = self.reshape(&weights, &[w_shape[0], taps * channels])?;
        let mut results = Vec::new();
        for group in 0..groups {
            let part = self.part(&x, 1, group * channels, channels)?;
            let seen = self.taps(&part, windows, 0.0)?;
            let seen = self.concat(&seen, 1)?;
            let seen = self.transpose(&seen, &inwards)?;
            let own = self.part(&weights, 0, group * out, out)?;
            let bias = bias.map(|b| self.part(b, 0, group * out, out)).transpose()?;
            results.push(self.linear(&seen, &own, bias.as_ref())?);
        }
        let y = self.concat(&results, rank - 1)?;
        let outwards: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
        self.transpose(&y, &outwards)
    }

    /// Integers with their zero point taken away, as f32.
    pub(super) fn centred(&mut self, x: &Value, zero: Option<&Value>) -> Result<Value> {
        let x = match x {
            Value::Array(array) => array.cast(&self.budget, Elem::FLOAT)?.into(),
            x => Value::Tensor(self.real(x)?),
        };
        match zero {
            None => Ok(x),
            Some(zero) => {
                let zero = match zero {
                    Value::Array(array) => array.cast(&self.budget, Elem::FLOAT)?.into(),
                    zero => Value::Tensor(self.real(zero)?),
                };
                self.binary(BinaryOp::Sub, &x, &zero)
            }
        }
    }

    pub(super) fn conv_integer(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, w) = (self.operand(view, 0)?, self.operand(view, 1)?);
        let terms: usize = self.shape(&w).get(1..).unwrap_or_default().iter().product();
        self.exact_terms(terms)?;
        let (zero_x, zero_w) = (self.optional(view, 2)?, self.optional(view, 3)?);
        let x = self.centred(&x, zero_x.as_ref())?;
        let rank = self.shape(&w).len();
        let zero_w = zero_w.map(|zero| self.along_axis(&zero, 0, rank)).transpose()?;
        let w = self.centred(&w, zero_w.as_ref())?;
        let y = self.convolved(view, &x, &w, None)?;
        let y = self.tensor(&y)?;
        let y = self.cast_tensor(y, DType::I32)?;
        self.bind(view, 0, Value::Tensor(y))
    }

    /// Sums of products of bytes are exact in f32 below 2^24.
    pub(super) fn exact_terms(&self, terms: usize) -> Result<()> {
        const MOST: usize = (1 << 24) / (255 * 255);
        if terms > MOST {
            return Err(
                Error::unsupported(format!("element type int32 of sums of {terms} products"))
                    .expected(format!("at most {MOST}, which f32 holds exactly"))
                    .help("quantise the model statically (QDQ or QLinear operators)"),
            );
        }
        Ok(())
    }
}
