//! The extents of results by those of operands, operator by operator.

use std::ops::Range;

use super::importer::{Importer, View};
use super::movement::axis_of;
use super::ops::{padding, positive};
use super::rearrange::block_size;
use super::rows::{Row, Translate};
use super::tensors::allowed;
use crate::error::{Error, Result};

impl Importer<'_, '_> {
    /// The extents of all results; `None` of operators that none follow from.
    pub(super) fn results(&mut self, view: View<'_, '_>, row: Option<Row>) -> Result<Option<Vec<Vec<usize>>>> {
        let Some(row) = row else {
            return Ok(match view.kind {
                "SHAPE" => Some(vec![vec![self.shape(view.input(0)?)?.len()]]),
                "RANK" => Some(vec![Vec::new()]),
                _ => None,
            });
        };
        if view.kind != "CONCATENATION" {
            view.inputs
                .iter()
                .flatten()
                .try_for_each(|&input| self.has_elements(input))?;
        }
        let x = || view.input(0).and_then(|x| self.shape(x));
        let one = match row.translate {
            Translate::Unary(_) => x()?,
            Translate::Binary(_) => self.broadcast(view, 0..2)?,
            Translate::Reduce(_) => self.reduced(view)?,
            Translate::By(_) => match view.kind {
                "LEAKY_RELU"
                | "ELU"
                | "L2_NORMALIZATION"
                | "SOFTMAX"
                | "LOG_SOFTMAX"
                | "REVERSE_V2"
                | "ZEROS_LIKE"
                | "DYNAMIC_UPDATE_SLICE"
                | "ADD_N"
                | "CUMSUM"
                | "LOGICAL_NOT"
                | "GELU"
                | "QUANTIZE"
                | "DEQUANTIZE"
                | "CAST" => x()?,
                "EQUAL" | "NOT_EQUAL" | "LESS" | "LESS_EQUAL" | "GREATER" | "GREATER_EQUAL" | "LOGICAL_AND"
                | "LOGICAL_OR" | "FLOOR_DIV" | "FLOOR_MOD" | "POW" => self.broadcast(view, 0..2)?,
                "SELECT" => self.shape(view.input(1)?)?,
                "SELECT_V2" => self.broadcast(view, 0..3)?,
                "REDUCE_ALL" | "REDUCE_ANY" => self.reduced(view)?,
                "ARG_MAX" | "ARG_MIN" => {
                    let mut shape = x()?;
                    shape.remove(self.axis_operand(view.input(1)?, view.input(0)?)?);
                    shape
                }
                "CONV_2D" | "DEPTHWISE_CONV_2D" | "AVERAGE_POOL_2D" | "MAX_POOL_2D" | "L2_POOL_2D" => {
                    self.windowed(view)?
                }
                "TRANSPOSE_CONV" => self.transposed(view)?,
                "BROADCAST_TO" => self.extents(view.input(1)?, "shape")?,
                "FILL" => self.extents(view.input(0)?, "extents")?,
                "FULLY_CONNECTED" => self.products(view)?,
                "BATCH_MATMUL" => self.matrices(view)?,
                "RESHAPE" => self.reshaping(view)?,
                "SQUEEZE" => self.squeezed(view)?,
                "EXPAND_DIMS" => {
                    let mut shape = x()?;
                    let axes = self.integers(view.input(1)?, "axis")?;
                    let &[axis] = axes.as_slice() else {
                        return Err(Error::input(format!("axes {axes:?}")).expected("one axis"));
                    };
                    shape.insert(axis_of(axis, shape.len() + 1)?, 1);
                    shape
                }
                "TRANSPOSE" => {
                    let shape = x()?;
                    let perm = self.integers(view.input(1)?, "permutation")?;
                    let axis = |&axis: &i64| axis_of(axis, shape.len()).map(|axis| shape[axis]);
                    perm.iter().map(axis).collect::<Result<_>>()?
                }
                "PAD" | "PADV2" | "MIRROR_PAD" => {
                    let shape = x()?;
                    let pads = self.pairs(view.input(1)?, "paddings", shape.len())?;
                    shape
                        .iter()
                        .zip(pads)
                        .map(|(d, (before, after))| d + before + after)
                        .collect()
                }
                "SPACE_TO_DEPTH" | "DEPTH_TO_SPACE" | "SPACE_TO_BATCH_ND" | "BATCH_TO_SPACE_ND" => {
                    self.blocked(view)?
                }
                "GATHER" | "EMBEDDING_LOOKUP" | "GATHER_ND" => self.gathered(view)?,
                "TILE" => {
                    let multiples = self.extents(view.input(1)?, "multiples")?;
                    x()?.iter().zip(multiples).map(|(&d, m)| d.saturating_mul(m)).collect()
                }
                "CONCATENATION" | "PACK" => self.joined(view)?,
                "SLICE" => self.sliced(view)?,
                "STRIDED_SLICE" => {
                    let extents = self.strided_slice_of(view)?.extent;
                    let shrink = view.option::<i32>(4, 0)?;
                    let kept = extents.into_iter().enumerate();
                    kept.filter(|(axis, _)| shrink & 1 << axis == 0)
                        .map(|(_, d)| d)
                        .collect()
                }
                "RESIZE_NEAREST_NEIGHBOR" | "RESIZE_BILINEAR" => {
                    let [n, _, _, c] = self.nhwc(view.input(0)?)?;
                    match self.extents(view.input(1)?, "new extents")?.as_slice() {
                        &[h, w] => vec![n, h, w, c],
                        other => return Err(Error::input(format!("new extents {other:?}")).expected("two extents")),
                    }
                }
                "SVDF" | "UNIDIRECTIONAL_SEQUENCE_LSTM" => self.recurrent(view)?,
                "SPLIT" | "SPLIT_V" | "UNPACK" => return self.parted(view).map(Some),
                _ => return Ok(None),
            },
        };
        Ok(Some(vec![one]))
    }

    /// The states of a recurrent operator have the batch of its operand, too.
    fn recurrent(&mut self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let mut shape = self.shape(view.input(0)?)?;
        let weights = self.shape(view.input(if view.kind == "SVDF" { 1 } else { 2 })?)?;
        let units = weights.first().copied().unwrap_or(1);
        let time_major = view.kind != "SVDF" && view.flag(3)?;
        let batch = shape.get(usize::from(time_major)).copied().unwrap_or(1);
        let states = if view.kind == "SVDF" { 4..5 } else { 18..20 };
        for position in states {
            let state = view.input(position)?;
            let mut extents = self.stated_shape(state)?;
            if extents.len() == 2 && self.scope.map[state].is_none() {
                extents[0] = batch;
                allowed(&extents)?;
                self.set_shape(state, extents);
            }
        }
        let rank = if view.kind == "SVDF" {
            view.option::<i32>(0, 1)?.max(1) as usize
        } else {
            1
        };
        if let Some(last) = shape.last_mut() {
            *last = units / rank;
        }
        Ok(shape)
    }

    /// A constant list of extents.
    fn extents(&self, index: usize, what: &str) -> Result<Vec<usize>> {
        let values = self.integers(index, what)?;
        let extents: Option<Vec<usize>> = values.iter().map(|&d| usize::try_from(d).ok()).collect();
        extents.ok_or_else(|| Error::input(format!("the {what} are {values:?}")).expected("none negative"))
    }

    /// The extents to which these operands broadcast.
    fn broadcast(&self, view: View<'_, '_>, operands: Range<usize>) -> Result<Vec<usize>> {
        let mut result: Vec<usize> = Vec::new();
        for position in operands {
            let shape = self.shape(view.input(position)?)?;
            let rank = result.len().max(shape.len());
            let at =
                |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
            let mut both = Vec::new();
            for axis in 0..rank {
                both.push(match (at(&result, axis), at(&shape, axis)) {
                    (1, n) | (n, 1) => n,
                    (a, b) if a == b => a,
                    _ => {
                        return Err(Error::input(format!("operand shapes {result:?} and {shape:?}"))
                            .expected("extents that broadcast"));
                    }
                });
            }
            result = both;
        }
        Ok(result)
    }

    fn reduced(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let mut shape = self.shape(view.input(0)?)?;
        let axes = self.integers(view.input(1)?, "axes")?;
        let mut axes: Vec<usize> = axes.iter().map(|&a| axis_of(a, shape.len())).collect::<Result<_>>()?;
        axes.sort_unstable();
        axes.dedup();
        let keep = view.flag(0)?;
        for axis in axes.into_iter().rev() {
            if keep {
                shape[axis] = 1;
            } else {
                shape.remove(axis);
            }
        }
        Ok(shape)
    }

    /// Of convolutions and pools.
    fn windowed(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let [n, h, w, c] = self.nhwc(view.input(0)?)?;
        let (kernel, channels, dilation) = match view.kind {
            "CONV_2D" | "DEPTHWISE_CONV_2D" => {
                let [first, rows, columns, last] = self.nhwc(view.input(1)?)?;
                let (at, channels) = if view.kind == "CONV_2D" { (4, first) } else { (5, last) };
                (
                    [rows, columns],
                    channels,
                    [view.option(at + 1, 1)?, view.option(at, 1)?],
                )
            }
            _ => (
                positive([view.option(4, 0)?, view.option(3, 0)?], "filter extent")?,
                c,
                [1, 1],
            ),
        };
        let dilation = positive(dilation, "dilation")?;
        let stride = positive([view.option(2, 0)?, view.option(1, 0)?], "stride")?;
        let pads = padding(view.option(0, 0)?, [h, w], kernel, stride, dilation)?;
        let pads = [pads.top + pads.bottom, pads.left + pads.right];
        let mut extents = [h, w];
        for axis in 0..2 {
            let window = (kernel[axis] - 1) * dilation[axis] + 1;
            let places = (extents[axis] + pads[axis]).checked_sub(window).ok_or_else(|| {
                Error::input(format!("a window of {window} over an extent of {}", extents[axis]))
                    .expected("an extent of at least that")
            })?;
            extents[axis] = places / stride[axis] + 1;
        }
        Ok(vec![n, extents[0], extents[1], channels])
    }

    /// Of a transposed convolution: its first operand.
    fn transposed(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let (shape, x) = (
            self.extents(view.input(0)?, "result's extents")?,
            self.shape(view.input(2)?)?,
        );
        if shape.first() == x.first() {
            return Ok(shape);
        }
        Err(
            Error::unsupported(format!("it makes {shape:?} of {x:?}: the file fixes these extents"))
                .expected("a result with the batch of its operand")
                .help("leave --batch and --input-shape out, or convert the model with the batch that you want"),
        )
    }

    /// Of a fully connected layer.
    fn products(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let (mut shape, weights) = (self.shape(view.input(0)?)?, self.shape(view.input(1)?)?);
        let &[units, k] = weights.as_slice() else {
            return Err(Error::input(format!("weights of shape {weights:?}")).expected("[out, in]"));
        };
        let elements: usize = shape.iter().product();
        match shape.last_mut() {
            Some(last) if view.flag(2)? && *last == k => *last = units,
            _ if elements.is_multiple_of(k) => shape = vec![elements / k, units],
            _ => {
                return Err(Error::input(format!("{shape:?} times weights [{units}, {k}]"))
                    .expected("rows of the weights' second extent"));
            }
        }
        Ok(shape)
    }

    fn matrices(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let (a, b) = (self.shape(view.input(0)?)?, self.shape(view.input(1)?)?);
        let ([.., a0, a1], [.., b0, b1]) = (a.as_slice(), b.as_slice()) else {
            return Err(Error::input(format!("operand shapes {a:?} and {b:?}")).expected("two axes at least"));
        };
        let (rows, columns) = (
            if view.flag(0)? { *a1 } else { *a0 },
            if view.flag(1)? { *b0 } else { *b1 },
        );
        let (a, b) = (&a[..a.len() - 2], &b[..b.len() - 2]);
        let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
        let mut shape = long.to_vec();
        let behind = long.len() - short.len();
        for (extent, &other) in shape[behind..].iter_mut().zip(short) {
            *extent = if *extent == 1 { other } else { *extent };
        }
        shape.extend([rows, columns]);
        Ok(shape)
    }

    /// RESHAPE: its second operand, or its options, with one -1 for what is left.
    fn reshaping(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let x = self.shape(view.input(0)?)?;
        let target = match view.optional(1) {
            Some(shape) => self.integers(shape, "extents")?,
            None => {
                let stated = view.options.map(|options| options.scalars::<i32>(0)).transpose()?;
                let stated = stated.map(|stated| stated.to_vec()).unwrap_or_default();
                stated.into_iter().map(i64::from).collect()
            }
        };
        let elements: usize = x.iter().product();
        let mut known = target.iter().filter(|&&d| d != -1);
        let known = known.try_fold(1_usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
        let open = target.iter().filter(|&&d| d == -1).count();
        let left = known
            .filter(|&known| known > 0 && elements.is_multiple_of(known))
            .map(|known| elements / known);
        match left {
            Some(left) if open == 1 || (open == 0 && left == 1) => {
                Ok(target.iter().map(|&d| usize::try_from(d).unwrap_or(left)).collect())
            }
            _ => Err(Error::unsupported(format!("it makes {target:?} of {x:?}: the file fixes these extents"))
                .expected(format!("{elements} elements, or one extent of -1"))
                .help(
                    "leave --batch and --input-shape out, or reshape to [-1, …] in the network and convert it again",
                )),
        }
    }

    fn squeezed(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let shape = self.shape(view.input(0)?)?;
        let axes = view.options.map(|options| options.scalars::<i32>(0)).transpose()?;
        let axes = axes.map(|axes| axes.to_vec()).unwrap_or_default();
        let axes = axes.iter().map(|&axis| axis_of(i64::from(axis), shape.len()));
        let axes: Vec<usize> = axes.collect::<Result<_>>()?;
        if let Some(&axis) = axes.iter().find(|&&axis| shape[axis] != 1) {
            return Err(
                Error::unsupported(format!("it drops axis {axis} of {shape:?}")).expected("an axis of one element")
            );
        }
        let dropped = |axis: usize| {
            if axes.is_empty() {
                shape[axis] == 1
            } else {
                axes.contains(&axis)
            }
        };
        Ok((0..shape.len())
            .filter(|&axis| !dropped(axis))
            .map(|axis| shape[axis])
            .collect())
    }

    /// Of operators that move blocks between axes.
    fn blocked(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let mut shape = self.shape(view.input(0)?)?;
        if matches!(view.kind, "SPACE_TO_DEPTH" | "DEPTH_TO_SPACE") {
            let ([n, h, w, c], block) = (self.nhwc(view.input(0)?)?, block_size(view)?);
            return Ok(match view.kind {
                "SPACE_TO_DEPTH" => vec![n, h / block, w / block, c * block * block],
                _ => vec![n, h * block, w * block, c / (block * block)],
            });
        }
        let (block, pairs) = self.blocks(view, &shape)?;
        let positions: usize = block.iter().fold(1, |n: usize, &b| n.saturating_mul(b));
        let apart = view.kind == "SPACE_TO_BATCH_ND";
        shape[0] = if apart {
            shape[0].saturating_mul(positions)
        } else {
            shape[0] / positions
        };
        for (axis, (&block, (before, after))) in block.iter().zip(pairs).enumerate() {
            let extent = &mut shape[1 + axis];
            *extent = if apart {
                (*extent + before + after) / block
            } else {
                (*extent * block).saturating_sub(before + after)
            };
        }
        Ok(shape)
    }

    fn gathered(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let (first, second) = (self.shape(view.input(0)?)?, self.shape(view.input(1)?)?);
        Ok(match view.kind {
            "EMBEDDING_LOOKUP" => first.into_iter().chain(second.into_iter().skip(1)).collect(),
            "GATHER_ND" => {
                let (depth, tuples) = second.split_last().unwrap_or((&0, &[]));
                tuples.iter().chain(first.iter().skip(*depth)).copied().collect()
            }
            _ => {
                let axis = axis_of(i64::from(view.option::<i32>(0, 0)?), first.len())?;
                let indices = second.into_iter().skip(view.option::<i32>(1, 0)?.max(0) as usize);
                first[..axis]
                    .iter()
                    .copied()
                    .chain(indices)
                    .chain(first[axis + 1..].iter().copied())
                    .collect()
            }
        })
    }

    /// Of CONCATENATION and PACK.
    fn joined(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let mut result = self.shape(view.input(0)?)?;
        if view.kind == "PACK" {
            let axis = axis_of(i64::from(view.option::<i32>(1, 0)?), result.len() + 1)?;
            result.insert(axis, view.inputs.len());
            return Ok(result);
        }
        let axis = axis_of(i64::from(view.option::<i32>(0, 0)?), result.len())?;
        for position in 1..view.inputs.len() {
            let shape = self.shape(view.input(position)?)?;
            let alike = |(at, (a, b)): (usize, (&usize, &usize))| at == axis || a == b;
            if shape.len() != result.len() || !shape.iter().zip(&result).enumerate().all(alike) {
                return Err(Error::input(format!(
                    "it joins {result:?} and {shape:?} along axis {axis}"
                )));
            }
            result[axis] += shape[axis];
        }
        Ok(result)
    }

    /// SLICE, of which nothing may be left along an axis.
    fn sliced(&self, view: View<'_, '_>) -> Result<Vec<usize>> {
        let shape = self.shape(view.input(0)?)?;
        let begin = self.extents(view.input(1)?, "first indices")?;
        let size = self.integers(view.input(2)?, "sizes")?;
        let wrong = || Error::input(format!("first indices {begin:?} and sizes {size:?} of shape {shape:?}"));
        if begin.len() != shape.len() || size.len() != shape.len() {
            return Err(wrong());
        }
        let extent = |axis: usize| {
            let left = shape[axis].checked_sub(begin[axis])?;
            match size[axis] {
                -1 => Some(left),
                size => usize::try_from(size).ok().filter(|&size| size <= left),
            }
        };
        (0..shape.len()).map(|axis| extent(axis).ok_or_else(wrong)).collect()
    }

    /// Of operators with several results.
    fn parted(&self, view: View<'_, '_>) -> Result<Vec<Vec<usize>>> {
        let count = view.outputs.len();
        let x = view.input(usize::from(view.kind == "SPLIT"))?;
        let shape = self.shape(x)?;
        let axis = match view.kind {
            "UNPACK" => axis_of(i64::from(view.option::<i32>(1, 0)?), shape.len())?,
            "SPLIT" => self.axis_operand(view.input(0)?, x)?,
            _ => self.axis_operand(view.input(2)?, x)?,
        };
        let with = |extent: usize| {
            let mut part = shape.clone();
            part[axis] = extent;
            part
        };
        Ok(match view.kind {
            "UNPACK" => {
                let mut part = shape.clone();
                part.remove(axis);
                vec![part; count]
            }
            "SPLIT" => vec![with(shape[axis] / count.max(1)); count],
            _ => {
                let sizes = self.integers(view.input(1)?, "sizes")?;
                let given: i64 = sizes.iter().filter(|&&s| s >= 0).sum();
                let size = |&s: &i64| usize::try_from(if s < 0 { shape[axis] as i64 - given } else { s }).unwrap_or(0);
                sizes.iter().map(|s| with(size(s))).collect()
            }
        })
    }
}
