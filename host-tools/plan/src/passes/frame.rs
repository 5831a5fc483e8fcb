//! The same elements under other axes: in another order, with axes of extent 1 between them.

use crate::graph::{Graph, Node, Op};

/// The axes of a tensor in a new form, outermost first: each is an axis that it has, or a new one of extent 1. Every axis that it has is there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame(Vec<Option<usize>>);

impl Frame {
    /// The form in which a tensor of `shape` has the extents `other` without a change of its elements' order.
    pub(super) fn reshaping(shape: &[usize], other: &[usize]) -> Option<Self> {
        let mut next = 0;
        let mut axes = Vec::with_capacity(other.len());
        for &extent in other {
            let same = shape.get(next) == Some(&extent);
            if !same && extent != 1 {
                return None;
            }
            axes.push(same.then_some(next));
            next += usize::from(same);
        }
        (next == shape.len()).then_some(Self(axes))
    }

    /// The form that a transpose by `perm` gives.
    pub(super) fn transposing(perm: &[usize]) -> Self {
        Self(perm.iter().copied().map(Some).collect())
    }

    /// The form from which a transpose by `perm` comes.
    pub(super) fn transposed_by(perm: &[usize]) -> Self {
        let back = |axis| perm.iter().position(|&from| from == axis);
        Self((0..perm.len()).map(back).collect())
    }

    /// Whether it changes nothing.
    pub(super) fn is_identity(&self) -> bool {
        self.0.iter().enumerate().all(|(at, axis)| *axis == Some(at))
    }

    /// The extents of a tensor of `shape` in this form.
    pub(super) fn shape(&self, shape: &[usize]) -> Vec<usize> {
        self.0.iter().map(|axis| axis.map_or(1, |axis| shape[axis])).collect()
    }

    /// Whether the elements of a tensor of `shape` stay in their order.
    pub(super) fn keeps_order(&self, shape: &[usize]) -> bool {
        self.0.iter().flatten().filter(|&&axis| shape[axis] != 1).is_sorted()
    }

    /// Whether those of no tensor change their order.
    pub(super) fn keeps_any_order(&self) -> bool {
        self.0.iter().flatten().is_sorted()
    }

    /// The axes that a tensor has, in the order of this form.
    pub(super) fn order(&self) -> Vec<usize> {
        self.0.iter().flatten().copied().collect()
    }

    /// Where an axis is in this form.
    pub(super) fn at(&self, axis: usize) -> usize {
        self.0.iter().position(|&a| a == Some(axis)).unwrap_or(axis)
    }

    /// The move into this form of a tensor of `shape`.
    pub(super) fn forth(&self, shape: &[usize]) -> Move {
        Move(
            self.0
                .iter()
                .map(|axis| axis.filter(|&axis| shape[axis] != 1))
                .collect(),
        )
    }

    /// The move out of this form, to `shape`.
    pub(super) fn back(&self, shape: &[usize]) -> Move {
        let axes = shape.iter().enumerate();
        Move(
            axes.map(|(axis, &extent)| (extent != 1).then(|| self.at(axis)))
                .collect(),
        )
    }

    /// The axes of an operator's attributes in this form.
    pub(super) fn reframe(&self, op: &mut Op) {
        match op {
            Op::BatchNorm { axis, .. }
            | Op::Lrn { axis, .. }
            | Op::Concat { axis, .. }
            | Op::Softmax { axis, .. }
            | Op::LogSoftmax { axis } => *axis = self.at(*axis),
            Op::Reduce { axes, .. } => {
                axes.iter_mut().for_each(|axis| *axis = self.at(*axis));
                axes.sort_unstable();
            }
            Op::Pad { pads, .. } => *pads = self.0.iter().map(|a| a.map_or((0, 0), |a| pads[a])).collect(),
            Op::Slice { begin, stride } => {
                *begin = self.0.iter().map(|a| a.map_or(0, |a| begin[a])).collect();
                *stride = self.0.iter().map(|a| a.map_or(1, |a| stride[a])).collect();
            }
            _ => {}
        }
    }
}

/// How the elements of one tensor are those of another: of each axis of the result, the axis of the source; none for an extent of 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move(Vec<Option<usize>>);

impl Move {
    /// Returns the effect of a transpose, or of a reshape that adds and drops extents of 1.
    pub(super) fn of(graph: &Graph, node: &Node) -> Option<Self> {
        let (&[Some(x)], &[y]) = (&node.inputs[..], &node.outputs[..]) else {
            return None;
        };
        let (x, y) = (graph.tensor(x), graph.tensor(y));
        if x.is_const() || x.dtype != y.dtype || x.quant != y.quant {
            return None;
        }
        match &node.op {
            Op::Transpose { perm } => {
                let axes = perm.iter().map(|&axis| (x.shape[axis] != 1).then_some(axis));
                Some(Self(axes.collect()))
            }
            Op::Reshape => {
                let mut from = (0..x.shape.len()).filter(|&axis| x.shape[axis] != 1);
                let mut axes = Vec::with_capacity(y.shape.len());
                for &extent in &y.shape {
                    let axis = if extent == 1 { None } else { Some(from.next()?) };
                    if axis.is_some_and(|axis| x.shape[axis] != extent) {
                        return None;
                    }
                    axes.push(axis);
                }
                Some(Self(axes))
            }
            _ => None,
        }
    }

    /// This move, and one that reads its result.
    pub(super) fn then(&self, next: &Self) -> Self {
        Self(next.0.iter().map(|axis| axis.and_then(|axis| self.0[axis])).collect())
    }

    /// The operator that makes a tensor of `result` from one of `source`; a reshape to the extents comes first, where there are any.
    pub(super) fn operator(&self, source: &[usize], result: &[usize]) -> (Option<Vec<usize>>, Op) {
        if self.0.iter().flatten().is_sorted() {
            let op = if source == result { Op::Identity } else { Op::Reshape };
            return (None, op);
        }
        if source.len() == result.len() {
            let mut unit = (0..source.len()).filter(|&axis| source[axis] == 1);
            let perm = self.0.iter().map(|axis| axis.or_else(|| unit.next()));
            if let Some(perm) = perm.collect::<Option<Vec<usize>>>() {
                return (None, Op::Transpose { perm });
            }
        }
        // The source with the result's extents of 1.
        let mut wide = vec![1; result.len()];
        let mut inner: Vec<usize> = self.0.iter().copied().flatten().collect();
        inner.sort_unstable();
        let places = (0..result.len()).filter(|&at| self.0[at].is_some());
        let placed: Vec<(usize, usize)> = inner.into_iter().zip(places).collect();
        for &(axis, at) in &placed {
            wide[at] = source[axis];
        }
        let from = |at: usize, axis: Option<usize>| match axis {
            None => at,
            Some(axis) => placed.iter().find(|(from, _)| *from == axis).map_or(at, |(_, at)| *at),
        };
        let perm = self.0.iter().enumerate().map(|(at, axis)| from(at, *axis)).collect();
        (Some(wide), Op::Transpose { perm })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_one_are_added_where_they_are_missing() {
        let axes = |shape: &[usize], other: &[usize]| Frame::reshaping(shape, other).map(|frame| frame.0);
        assert_eq!(
            axes(&[2, 3, 5], &[2, 3, 1, 5]),
            Some(vec![Some(0), Some(1), None, Some(2)])
        );
        assert_eq!(axes(&[1, 5], &[1, 1, 5]), Some(vec![Some(0), None, Some(1)]));
        assert_eq!(axes(&[2, 3, 5], &[2, 15]), None);
        assert_eq!(axes(&[2, 1, 5], &[2, 5]), None, "an axis would be lost");
    }

    #[test]
    fn a_move_through_axes_of_one_is_a_reshape_and_a_transpose() {
        // [2, 5, 3] as [2, 3, 1, 5].
        let moved = Move(vec![Some(0), Some(2), None, Some(1)]);
        let (wide, op) = moved.operator(&[2, 5, 3], &[2, 3, 1, 5]);
        assert_eq!(wide, Some(vec![2, 5, 1, 3]));
        assert_eq!(op, Op::Transpose { perm: vec![0, 3, 2, 1] });
        let (wide, op) = Move(vec![None, None, Some(3), Some(1)]).operator(&[1, 3, 1, 7], &[1, 1, 7, 3]);
        assert_eq!((wide, op), (None, Op::Transpose { perm: vec![0, 2, 3, 1] }));
        let straight = Move(vec![Some(0), None, Some(1)]);
        assert_eq!(straight.operator(&[2, 3], &[2, 1, 3]), (None, Op::Reshape));
    }
}
