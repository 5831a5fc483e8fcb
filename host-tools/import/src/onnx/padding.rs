//! Paddings: constant ones by an operator, others as slices and concatenations.

use super::importer::{Importer, Value, View};
use super::movement::axis_of;
use crate::build::LARGEST_EXTENT;
use crate::error::{Error, Result};
use crate::graph::numbers::Range;

/// Most elements that a padding by repetition adds on one side.
const MOST_REPEATED: usize = 256;

impl<'a> Importer<'_, 'a> {
    pub(super) fn pad_node(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let shape = self.shape(&x);
        let amounts = self.integers(view, 1, "pads", "paddings")?;
        let amounts = amounts.ok_or_else(|| Error::input("no paddings"))?;
        let axes = match self.known(view, 3, "axes")? {
            None => (0..shape.len()).collect(),
            Some(axes) => (axes.whole("axes")?.iter().map(|&a| axis_of(a, shape.len()))).collect::<Result<Vec<_>>>()?,
        };
        if amounts.len() != 2 * axes.len() {
            return Err(Error::input(format!(
                "{} paddings of {} axes",
                amounts.len(),
                axes.len()
            )));
        }
        let mut pads = vec![(0i64, 0i64); shape.len()];
        for (at, &axis) in axes.iter().enumerate() {
            pads[axis] = (amounts[at], amounts[at + axes.len()]);
        }
        let bound = LARGEST_EXTENT as i64;
        if pads
            .iter()
            .any(|p| p.0.unsigned_abs().max(p.1.unsigned_abs()) > bound.unsigned_abs())
        {
            return Err(Error::input(format!("paddings {pads:?}")).expected(format!("at most {bound}")));
        }
        let (x, pads) = self.cut(&x, &pads)?;
        let y = match view.text("mode", "constant")? {
            "constant" => {
                let fill = if view.opset < 11 {
                    view.number("value", 0.0, Range::Bound)?
                } else {
                    let value = self.known(view, 2, "value")?;
                    value.map_or(Ok(0.0), |v| {
                        v.single().ok_or_else(|| Error::input("a value of several elements"))
                    })?
                };
                self.pad(&x, &pads, fill)?
            }
            mode @ ("reflect" | "edge" | "wrap") => {
                let mut y = x;
                for (axis, &(before, after)) in pads.iter().enumerate() {
                    y = self.mirrored(&y, axis, before, after, mode)?;
                }
                y
            }
            other => {
                return Err(
                    Error::unsupported(format!("the mode `{other}`")).expected("constant, reflect, edge or wrap")
                );
            }
        };
        self.bind(view, 0, y)
    }

    /// Applies negative paddings; returns the value and the other paddings.
    pub(super) fn cut(&mut self, x: &Value, pads: &[(i64, i64)]) -> Result<(Value, Vec<(usize, usize)>)> {
        let mut y = x.clone();
        for (axis, &(before, after)) in pads.iter().enumerate().filter(|(_, p)| p.0 < 0 || p.1 < 0) {
            let extent = self.shape(&y)[axis];
            let (front, back) = ((-before).max(0) as usize, (-after).max(0) as usize);
            let left = extent.checked_sub(front + back).filter(|&n| n > 0);
            let left =
                left.ok_or_else(|| Error::input(format!("paddings {before} and {after} of {extent} elements")))?;
            y = self.part(&y, axis, front, left)?;
        }
        Ok((
            y,
            pads.iter()
                .map(|p| (p.0.max(0) as usize, p.1.max(0) as usize))
                .collect(),
        ))
    }

    fn mirrored(&mut self, x: &Value, axis: usize, before: usize, after: usize, mode: &str) -> Result<Value> {
        let shape = self.shape(x);
        let extent = shape[axis];
        if extent == 0 {
            return Err(Error::unsupported("dynamic shape: a padding of nothing"));
        }
        let room = match mode {
            "reflect" => extent.saturating_sub(1),
            "wrap" => extent,
            _ => MOST_REPEATED,
        };
        if before > room || after > room {
            return Err(Error::unsupported(format!(
                "a padding of {before} and {after} by {mode} of {extent} elements"
            ))
            .expected(format!("at most {room}")));
        }
        let side = |net: &mut Self, count: usize, front: bool| -> Result<Vec<Value>> {
            let step: isize = if mode == "reflect" { -1 } else { 1 };
            let from = match (mode, front) {
                ("reflect", true) => count,
                ("reflect", false) => extent.saturating_sub(2),
                ("wrap", true) => extent - count,
                ("edge", false) => extent - 1,
                _ => 0,
            };
            let (mut begin, mut stride, mut kept) = (vec![0; shape.len()], vec![1; shape.len()], shape.clone());
            begin[axis] = from;
            if mode == "edge" {
                kept[axis] = 1;
                let one = net.slice(x, &begin, &stride, &kept)?;
                return Ok(vec![one; count]);
            }
            (stride[axis], kept[axis]) = (if count > 1 { step } else { 1 }, count);
            Ok(vec![net.slice(x, &begin, &stride, &kept)?])
        };
        let mut parts = Vec::new();
        if before > 0 {
            parts.extend(side(self, before, true)?);
        }
        parts.push(x.clone());
        if after > 0 {
            parts.extend(side(self, after, false)?);
        }
        self.concat(&parts, axis)
    }
}
