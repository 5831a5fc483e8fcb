//! Transposed convolutions: convolutions over the operand with zeros between its elements.

use super::importer::{Importer, Value, View};
use super::windows::{Windows, auto_pad, pads_alone, positive};
use crate::build::LARGEST_EXTENT;
use crate::compose;
use crate::error::{Error, Result};

impl<'a> Importer<'_, 'a> {
    pub(super) fn conv_transpose(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (x, w, bias) = (self.operand(view, 0)?, self.operand(view, 1)?, self.optional(view, 2)?);
        let (x_shape, w_shape) = (self.shape(&x), self.shape(&w));
        if x_shape.len() < 3 || x_shape.len() != w_shape.len() || w_shape[0] != x_shape[1] {
            return Err(Error::input(format!(
                "an operand of shape {x_shape:?} and weights {w_shape:?}"
            )));
        }
        let rank = x_shape.len() - 2;
        let (kernel, groups) = (&w_shape[2..], usize::try_from(view.int("group", 1)?).unwrap_or(0));
        let stride = positive(view.node.ints("strides")?, rank, &vec![1; rank], "strides")?;
        let dilation = positive(view.node.ints("dilations")?, rank, &vec![1; rank], "dilations")?;
        if groups == 0 || !x_shape[1].is_multiple_of(groups) {
            return Err(Error::input(format!("{} channels in {groups} groups", x_shape[1])));
        }
        let named = positive(view.node.ints("kernel_shape")?, rank, kernel, "kernel_shape")?;
        if named != kernel {
            return Err(Error::input(format!("kernel_shape {named:?} and weights {w_shape:?}")));
        }
        let more = view.node.ints("output_padding")?.unwrap_or_else(|| vec![0; rank]);
        let stated = view.node.ints("pads")?.unwrap_or_else(|| vec![0; 2 * rank]);
        let sizes = view.node.ints("output_shape")?;
        let auto = auto_pad(view)?;
        let lists = [Some(&more), sizes.as_ref()].into_iter().flatten();
        let bound = LARGEST_EXTENT as i64;
        let small = |list: &Vec<i64>| list.iter().all(|v| (0..=bound).contains(v));
        if stated.len() != 2 * rank || !small(&stated) || !lists.clone().all(|l| l.len() == rank && small(l)) {
            let sizes = sizes
                .as_ref()
                .map_or(String::new(), |sizes| format!(", output_shape {sizes:?}"));
            return Err(
                Error::input(format!("pads {stated:?}, output_padding {more:?}{sizes}")).expected(format!(
                    "{} pads and {rank} of each of the others, from 0 to {bound}",
                    2 * rank
                )),
            );
        }
        let most = stride
            .iter()
            .zip(&dilation)
            .map(|(&stride, &dilation)| stride.max(dilation) as i64);
        if more.iter().zip(most).any(|(&more, most)| more >= most) {
            return Err(
                Error::input(format!("attribute `output_padding` is {more:?}")).expected(format!(
                    "less than the strides {stride:?} or the dilations {dilation:?}"
                )),
            );
        }
        let (mut pads, mut cut, mut out) = (vec![(0, 0); 2], Vec::new(), Vec::new());
        for axis in 0..rank {
            let (extent, step) = (x_shape[axis + 2] as i64, stride[axis] as i64);
            let reach = (kernel[axis] as i64 - 1) * dilation[axis] as i64;
            let full = (extent - 1) * step + reach + 1 + more[axis];
            let wanted = match (&sizes, auto) {
                (Some(sizes), _) => Some(sizes[axis]),
                (None, "SAME_UPPER" | "SAME_LOWER") => Some(extent * step),
                _ => None,
            };
            // The lengths between two strides are those of one operand.
            if let Some(sizes) = sizes.as_ref().filter(|sizes| sizes[axis] - full >= step) {
                return Err(Error::input(format!("attribute `output_shape` is {sizes:?}"))
                    .expected(format!("less than {} along spatial axis {axis}", full + step)));
            }
            let (before, after) = match wanted {
                Some(wanted) => {
                    let total = (full - wanted).max(0);
                    let less = total / 2;
                    if auto == "SAME_UPPER" {
                        (less, total - less)
                    } else {
                        (total - less, less)
                    }
                }
                None if auto == "VALID" => (0, 0),
                None => (stated[axis], stated[axis + rank]),
            };
            let count = wanted.unwrap_or(full - before - after);
            if count <= 0 {
                return Err(Error::input(format!("a result of {count} elements")));
            }
            cut.push((before, after));
            // The windows of the convolution that gives `count` elements over the spread operand.
            let first = reach - before;
            pads.push((first, count + reach - ((extent - 1) * step + 1) - first));
            out.push(count as usize);
        }
        if sizes.is_none() {
            pads_alone(&stated, auto, &cut)?;
        }
        let macs = x_shape.iter().chain(&w_shape[1..]).map(|&n| n as u64).product();
        let x = Value::Tensor(self.real(&x)?);
        let x = compose::spread(self, x, &stride)?;
        let w = self.turned(&w, groups)?;
        let windows = Windows {
            kernel: kernel.to_vec(),
            stride: vec![1; rank],
            dilation,
            pads: pads[2..].to_vec(),
            extra: vec![0; rank],
            out,
        };
        let windows = Windows {
            pads: windows.pads.iter().map(|p| (p.0.max(0), p.1.max(0))).collect(),
            ..windows
        };
        let cuts: Vec<(i64, i64)> = pads.iter().map(|p| (p.0.min(0), p.1.min(0))).collect();
        let (x, _) = self.cut(&x, &cuts)?;
        let y = self.convolution(&x, &w, bias.as_ref(), groups, &windows)?;
        if let Value::Tensor(id) = y {
            self.macs(id, macs);
        }
        self.bind(view, 0, y)
    }

    /// Weights `[in, out / groups, spatial…]` as those of the convolution over the spread operand.
    fn turned(&mut self, w: &Value, groups: usize) -> Result<Value> {
        let shape = self.shape(w);
        let rank = shape.len();
        let (mut split, mut joined) = (
            vec![groups, shape[0] / groups],
            vec![groups * shape[1], shape[0] / groups],
        );
        split.extend(&shape[1..]);
        joined.extend(&shape[2..]);
        let w = self.reshape(w, &split)?;
        let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..=rank).collect();
        let w = self.transpose(&w, &perm)?;
        let w = self.reshape(&w, &joined)?;
        let (mut begin, mut step) = (vec![0; rank], vec![1; rank]);
        for axis in (2..rank).filter(|&axis| joined[axis] > 1) {
            (begin[axis], step[axis]) = (joined[axis] - 1, -1);
        }
        self.slice(&w, &begin, &step, &joined)
    }
}
