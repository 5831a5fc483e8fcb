//! Stages that can be cut by rows: a step over one image that takes each row of its output from rows of its input, and chains of them.

use std::convert::Infallible;
use std::ops::Range;

use arenite::ops::window::Window2d;
use arenite::{DType, Step};

use crate::graph::TensorId;
use crate::program::{LoweredStep, Place, Program};

/// A step that can be cut: one image, one input, one output.
pub(super) struct Stage {
    /// Of a step without a window one that takes each pixel from the same one.
    pub(super) window: Window2d,
    pub(super) input: TensorId,
    pub(super) output: TensorId,
    /// Another operand of the output's shape, of which each element is read for the same one of the output alone.
    pub(super) side: Option<TensorId>,
    /// Where the input is among the step's places.
    input_at: usize,
    /// Bytes of an element.
    pub(super) element: usize,
}

/// A rectangle of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

impl Rect {
    pub(super) fn pixels(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}

/// The longest chain that is cut.
pub(super) const LONGEST_CHAIN: usize = 8;

/// The steps `first..first + length` as stages, where they pass one tensor on from each to the next, all of one image and cut by rows.
pub(super) fn chain(program: &Program, first: usize, length: usize) -> Option<Vec<Stage>> {
    let mut stages: Vec<Stage> = Vec::with_capacity(length);
    for step in program.steps.get(first..first + length)? {
        let before = stages.last();
        let stage = stage(program, step, before)?;
        if before.is_some_and(|before| before.output != stage.input || !only_reader(program, stage.input, step, &stage))
        {
            return None;
        }
        stages.push(stage);
    }
    Some(stages)
}

/// The step as a stage behind `before`.
fn stage(program: &Program, step: &LoweredStep, before: Option<&Stage>) -> Option<Stage> {
    let places = step.places();
    let whole = |place: &Place| match *place {
        Place::Tensor(id, 0) => Some(id),
        _ => None,
    };
    let output = whole(places.first()?)?;
    let windowed = step.step.clone().window_mut().copied();
    let (window, input_at) = match (windowed, before) {
        (Some(window), _) => (window, 1),
        // Elements have no rows of their own: those of what they read.
        (None, Some(before)) => {
            let reads = |place: &Place| whole(place) == Some(before.output);
            (
                pixel_by_pixel(&before.window),
                1 + places.iter().skip(1).position(reads)?,
            )
        }
        (None, None) => return None,
    };
    let input = whole(places.get(input_at)?)?;
    let mut others = places
        .iter()
        .enumerate()
        .filter(|&(at, place)| at != 0 && at != input_at && !matches!(place, Place::Scratch | Place::Constant(_)));
    let side = match others.next() {
        Some((_, place)) => Some(whole(place)?),
        None => None,
    };
    if others.next().is_some() || side == Some(input) {
        return None;
    }
    // The outputs of the chain are its own: memory of its own, which nothing is a view of. Operands from outside may be anywhere.
    let plain = |id: TensorId| program.root(id) == (id, 0);
    let (x, y) = (program.graph.tensor(input), program.graph.tensor(output));
    let elements = window.output_len()?;
    let beside = side.is_none_or(|side| {
        let z = program.graph.tensor(side);
        z.elements() == elements as usize && z.dtype == y.dtype && !z.is_const()
    });
    let line = windowed.is_some() || step.step.elements() == Some(elements);
    let whole = x.elements() == window.input_len()? as usize && y.elements() == elements as usize;
    let same_dtype = x.dtype == y.dtype && x.dtype != DType::Bool;
    (window.batch == 1 && plain(output) && beside && line && whole && same_dtype).then(|| Stage {
        window,
        input,
        output,
        side,
        input_at,
        element: x.dtype.bytes(),
    })
}

impl Stage {
    /// The step `original` for the part of the output that `window` describes, over other places of its output, its input and its side.
    pub(super) fn part(
        &self,
        original: &LoweredStep,
        window: Window2d,
        [output, input, side]: [Place; 3],
    ) -> Option<Step<Place>> {
        let step = match original.step.elements() {
            Some(_) => original.step.clone().of_elements(window.output_len()?)?,
            None => original.step.part(window)?,
        };
        let mut at = 0..;
        let mut moved = |place| {
            let at = at.next();
            Ok::<_, Infallible>(match (at, place) {
                (Some(0), _) => output,
                (at, _) if at == Some(self.input_at) => input,
                (_, Place::Tensor(..)) => side,
                (_, other) => other,
            })
        };
        let Ok(step) = step.map(&mut moved);
        Some(step)
    }

    /// Whether the kernel of this step may write where it reads the side.
    pub(super) fn over_side(&self, step: &Step<Place>) -> bool {
        let mut operands = Vec::new();
        step.operands(&mut |operand| operands.push(operand.place));
        let over = |at: usize| step.in_place(at) || step.distance(at).is_some_and(|distance| distance <= 0);
        let is_side = |place: &Place| matches!(*place, Place::Tensor(id, _) if Some(id) == self.side);
        operands.iter().skip(1).position(is_side).is_some_and(|at| over(at + 1))
    }
}

/// A window of one pixel that moves over what `before` gives.
fn pixel_by_pixel(before: &Window2d) -> Window2d {
    Window2d {
        batch: before.batch,
        input: before.output,
        output: before.output,
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [0, 0],
    }
}

/// Whether `reader` alone reads the tensor, and nothing views or exports it.
fn only_reader(program: &Program, tensor: TensorId, reader: &LoweredStep, stage: &Stage) -> bool {
    let uses = program
        .steps
        .iter()
        .flat_map(|s| s.places().into_iter().skip(1))
        .filter(|&place| matches!(place, Place::Tensor(id, _) if program.root(id).0 == tensor));
    let viewed = program.views.values().any(|&(of, _)| of == tensor);
    uses.count() == 1
        && !viewed
        && !program.graph.outputs.contains(&tensor)
        && reader.places().get(stage.input_at) == Some(&Place::Tensor(tensor, 0))
}

/// The rectangle of every stage's output that `last`, of the last one's, needs.
pub(super) fn needed(stages: &[Stage], last: Rect, tiled: bool) -> Vec<Rect> {
    let mut rects = vec![last];
    for stage in stages.iter().skip(1).rev() {
        rects.push(input_rect(&stage.window, &rects[rects.len() - 1], tiled));
    }
    rects.reverse();
    rects
}

/// The input under the windows of a rectangle of the output; bands have whole rows, though a stride may leave columns out.
pub(super) fn input_rect(window: &Window2d, output: &Rect, tiled: bool) -> Rect {
    Rect {
        rows: input_range(window, 0, &output.rows),
        columns: if tiled {
            input_range(window, 1, &output.columns)
        } else {
            0..usize::from(window.input[1])
        },
    }
}

/// The input rows (axis 0) or columns (axis 1) under the windows of a range of the output's.
pub(super) fn input_range(window: &Window2d, axis: usize, output: &Range<usize>) -> Range<usize> {
    let (stride, pad) = (usize::from(window.stride[axis]), usize::from(window.padding[axis]));
    let reach = (usize::from(window.kernel[axis]) - 1) * usize::from(window.dilation[axis]) + 1;
    let extent = usize::from(window.input[axis]);
    let end = ((output.end - 1) * stride + reach).saturating_sub(pad).min(extent);
    // A window may lie in the padding altogether; its step still wants something to read.
    let start = (output.start * stride).saturating_sub(pad).min(extent - 1);
    start..end.max(start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(height: u16, kernel: u16, stride: u8, padding: u8) -> Window2d {
        let out = (height + 2 * u16::from(padding) - kernel) / u16::from(stride) + 1;
        Window2d {
            batch: 1,
            input: [height, 4, 1],
            output: [out, 4, 1],
            kernel: [kernel, 1],
            stride: [stride, 1],
            dilation: [1, 1],
            padding: [padding, 0],
        }
    }

    #[test]
    fn rows_under_a_window_stop_at_the_border() {
        let w = window(8, 3, 1, 1);
        assert_eq!(input_range(&w, 0, &(0..1)), 0..2);
        assert_eq!(input_range(&w, 0, &(3..5)), 2..6);
        assert_eq!(input_range(&w, 0, &(7..8)), 6..8);
        let w = window(8, 3, 2, 1);
        assert_eq!(input_range(&w, 0, &(1..2)), 1..4);
        assert_eq!(input_range(&w, 1, &(1..3)), 1..3);
    }
}
