//! Copies of elements along axes, and views that need none.

use arenite::Step;
use arenite::ops::elementwise::MAX_LOOPS;
use arenite::ops::movement::{CopyLoop, CopyStrided};

use super::context::{Lower, fit, input, output};
use crate::error::{Error, Result};
use crate::graph::{Node, Tensor, TensorId, TensorKind};
use crate::program::Place;

/// `output` holds the same bytes as `input`: a view, unless either side is fixed from outside (a network input that is an output,
/// a constant, state), which takes a copy.
pub(super) fn alias(lower: &mut Lower<'_>, node: &Node, x: TensorId, y: TensorId) -> Result<()> {
    let graph = lower.graph();
    let free = matches!(graph.tensor(x).kind, TensorKind::Activation | TensorKind::Input);
    let interface = graph.outputs.contains(&y) && (graph.outputs.contains(&x) || graph.inputs.contains(&x));
    if free && !interface {
        lower.view(y, x, 0);
        return Ok(());
    }
    copy_all(lower, node, "copy", x, y)
}

/// An operand that is repeated along axes where it has extent 1, or which it lacks.
pub(super) fn broadcast(lower: &mut Lower<'_>, node: &Node) -> Result<()> {
    let (x, y) = (input(node, 0)?, output(node)?);
    let (source, result) = (lower.graph().tensor(x), lower.graph().tensor(y));
    if crate::graph::infer::broadcast(&source.shape, &result.shape)? != result.shape {
        return Err(Error::input(format!(
            "{:?} is repeated to {:?}",
            source.shape, result.shape
        )));
    }
    if source.elements() == result.elements() {
        return alias(lower, node, x, y);
    }
    let (from, to, shape) = (strides(source), strides(result), result.shape.clone());
    let skipped = shape.len() - source.shape.len();
    let extents = source.shape.clone();
    let axes: Vec<_> = (0..shape.len())
        .map(|axis| match axis.checked_sub(skipped) {
            Some(own) if extents[own] != 1 => (shape[axis], to[axis], from[own] as isize),
            _ => (shape[axis], to[axis], 0),
        })
        .collect();
    copy(lower, node, "broadcast", (x, 0), (y, 0), &axes)
}

/// All elements of `x` into `y`.
pub(super) fn copy_all(lower: &mut Lower<'_>, node: &Node, kind: &'static str, x: TensorId, y: TensorId) -> Result<()> {
    let count = lower.graph().tensor(x).elements();
    copy(lower, node, kind, (x, 0), (y, 0), &[(count, 1, 1)])
}

/// A copy to the first place from the second, along axes of (extent, stride in the destination, stride in the source), in elements of `element`
/// bytes, outermost first; it begins at element `from` of a source of `len` elements.
pub fn copy_elements(
    [output, input]: [Place; 2],
    element: usize,
    from: usize,
    len: usize,
    axes: &[(usize, usize, usize)],
) -> Option<Step<Place>> {
    let mut loops = heapless::Vec::new();
    for &(count, to, from) in axes {
        let (count, to, from) = (count.try_into().ok()?, to.try_into().ok()?, from.try_into().ok()?);
        loops.push(CopyLoop { count, to, from }).ok()?;
    }
    neighbours_last(&mut loops);
    Some(Step::CopyBytes(CopyStrided {
        output,
        input,
        element: element.try_into().ok()?,
        input_len: len.try_into().ok()?,
        from: from.try_into().ok()?,
        loops,
    }))
}

/// Whether axes of (extent, stride in the destination, stride in the source) walk neighbouring elements of both.
pub(super) fn is_one_run(axes: &[(usize, usize, isize)]) -> bool {
    let mut inner = 1;
    axes.iter()
        .rev()
        .filter(|(count, ..)| *count != 1)
        .all(|&(count, to, from)| {
            let next = to == inner && from == inner as isize;
            inner *= count;
            next
        })
}

/// A copy step between elements `from` of `x` and `to` of `y`, along `axes` of (extent, stride in y, stride in x).
pub(super) fn copy(
    lower: &mut Lower<'_>,
    node: &Node,
    kind: &'static str,
    (x, from): (TensorId, usize),
    (y, to): (TensorId, usize),
    axes: &[(usize, usize, isize)],
) -> Result<()> {
    let mut merged: Vec<(usize, usize, isize)> = Vec::new();
    for &(count, to, from) in axes.iter().filter(|(count, ..)| *count != 1) {
        match merged.last_mut() {
            Some(last) if last.1 == count * to && last.2 == count as isize * from => *last = (last.0 * count, to, from),
            _ => merged.push((count, to, from)),
        }
    }
    let mut loops = heapless::Vec::new();
    for (count, to, from) in merged {
        let from = i32::try_from(from).map_err(|_| Error::unsupported(format!("a stride of {from}")))?;
        let axis = CopyLoop {
            count: fit(count, "an extent")?,
            to: fit(to, "a stride")?,
            from,
        };
        let full = || Error::unsupported(format!("a copy along more than {MAX_LOOPS} axes"));
        loops.push(axis).map_err(|_| full())?;
    }
    neighbours_last(&mut loops);
    let at = lower.place(x)?;
    let tensor = lower.graph().tensor(x);
    let element = tensor.dtype.bytes();
    let op = CopyStrided {
        output: Place::Tensor(y, fit(to * element, "the offset")?),
        input: at,
        element: element as u8,
        input_len: fit(tensor.elements(), "the number of elements")?,
        from: fit(from, "the offset")?,
        loops,
    };
    lower.push(node, kind, Step::CopyBytes(op), 0);
    Ok(())
}

/// Puts the axis along which neighbours are written innermost, where the kernel has words and not elements to copy or to fill. Only where elements come again
/// or backwards: the output may then not lie over the input, and their order does not matter.
fn neighbours_last(loops: &mut [CopyLoop]) {
    let ahead = loops.iter().all(|axis| i64::from(axis.from) >= i64::from(axis.to));
    if ahead || loops.last().is_none_or(|last| last.to == 1) {
        return;
    }
    if let Some(at) = loops.iter().position(|axis| axis.to == 1 && axis.count > 1) {
        loops[at..].rotate_left(1);
    }
}

/// Elements between neighbours along each axis.
pub(super) fn strides(tensor: &Tensor) -> Vec<usize> {
    let inner = |axis: usize| tensor.shape[axis + 1..].iter().product();
    (0..tensor.shape.len()).map(inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(axes: &[(u32, u32, i32)]) -> Vec<(u32, u32, i32)> {
        let mut loops: Vec<CopyLoop> = axes
            .iter()
            .map(|&(count, to, from)| CopyLoop { count, to, from })
            .collect();
        neighbours_last(&mut loops);
        loops.into_iter().map(|axis| (axis.count, axis.to, axis.from)).collect()
    }

    #[test]
    fn neighbours_are_written_innermost_where_the_order_does_not_matter() {
        // A transposition, and a row that is repeated for each element of a column.
        assert_eq!(turned(&[(5, 1, 3), (3, 5, 1)]), [(3, 5, 1), (5, 1, 3)]);
        assert_eq!(
            turned(&[(2, 40, 9), (4, 1, 0), (9, 4, 1)]),
            [(2, 40, 9), (9, 4, 1), (4, 1, 0)]
        );
        // The output may lie over the input, or neighbours are innermost already.
        for kept in [[(3, 1, 9), (2, 3, 30)], [(4, 6, 0), (6, 1, 1)]] {
            assert_eq!(turned(&kept), kept);
        }
    }
}
