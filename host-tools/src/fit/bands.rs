//! Cutting a chain of windowed steps into bands of rows.

use arenite::DType;
use arenite::ops::conv2d::Window2d;

use crate::graph::{Tensor, TensorId, TensorKind};
use crate::program::{LoweredStep, Place, Program};

/// How a band gets the rows that the band before it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carry {
    /// They are kept in a line buffer and moved to its start.
    Lines,
    /// They are computed again.
    Halo,
}

/// Whether the steps `first..first + length` pass one tensor on from each to the next, all of one image and cut by rows.
pub(super) fn is_chain(program: &Program, first: usize, length: usize) -> bool {
    let Some(steps) = program.steps.get(first..first + length) else {
        return false;
    };
    steps.iter().all(|step| stage(program, step).is_some())
        && steps.windows(2).all(|pair| {
            let (Some(from), Some(to)) = (stage(program, &pair[0]), stage(program, &pair[1])) else {
                return false;
            };
            from.output == to.input && only_reader(program, from.output, &pair[1])
        })
}

/// The program with the chain of `cut` in bands; `None` where a kernel cannot be cut so.
pub(super) fn cut(program: &Program, cut: &super::Cut) -> Option<Program> {
    let steps = program.steps.get(cut.first..cut.first + cut.length)?;
    let stages: Vec<Stage> = steps.iter().map(|step| stage(program, step)).collect::<Option<_>>()?;
    let rows_out = usize::from(stages.last()?.window.output[0]);
    if rows_out <= cut.rows {
        return None;
    }
    let bands: Vec<Vec<Rows>> = (0..rows_out)
        .step_by(cut.rows)
        .map(|from| needed(&stages, from, (from + cut.rows).min(rows_out)))
        .collect();

    let mut result = program.clone();
    let mut out = Builder::new(&mut result, &stages, steps, &bands, cut.carry);
    for band in &bands {
        out.band(band)?;
    }
    let new_steps = out.steps;
    result.steps.splice(cut.first..cut.first + cut.length, new_steps);
    Some(result)
}

/// A step that can be cut: one image, one input, one output.
struct Stage {
    window: Window2d,
    input: TensorId,
    output: TensorId,
    element: usize,
}

/// Rows of a stage's output, from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rows {
    from: usize,
    to: usize,
}

fn stage(program: &Program, step: &LoweredStep) -> Option<Stage> {
    let window = *step.step.clone().window_mut()?;
    let mut places = step.places.iter();
    let (Some(&Place::Tensor(output, 0)), Some(&Place::Tensor(input, 0))) = (places.next(), places.next()) else {
        return None;
    };
    let plain =
        |id: TensorId| program.root(id) == (id, 0) || matches!(program.graph.tensor(id).kind, TensorKind::Input);
    let others = places.all(|place| matches!(place, Place::Scratch | Place::Constant(_)));
    let (x, y) = (program.graph.tensor(input), program.graph.tensor(output));
    let whole = x.elements() == window.input_len()? as usize && y.elements() == window.output_len()? as usize;
    let same_dtype = x.dtype == y.dtype;
    (window.batch == 1 && others && plain(input) && plain(output) && whole && same_dtype && x.dtype != DType::Bool)
        .then(|| Stage {
            window,
            input,
            output,
            element: x.dtype.bytes(),
        })
}

/// Whether `reader` alone reads the tensor, and nothing views or exports it.
fn only_reader(program: &Program, tensor: TensorId, reader: &LoweredStep) -> bool {
    let uses = program
        .steps
        .iter()
        .flat_map(|s| s.places.iter().skip(1))
        .filter(|place| matches!(place, Place::Tensor(id, _) if program.root(*id).0 == tensor));
    let viewed = program.views.values().any(|&(of, _)| of == tensor);
    uses.count() == 1
        && !viewed
        && !program.graph.outputs.contains(&tensor)
        && reader.places.get(1) == Some(&Place::Tensor(tensor, 0))
}

/// The output rows of every stage that rows `from..to` of the last one need.
fn needed(stages: &[Stage], from: usize, to: usize) -> Vec<Rows> {
    let mut rows = vec![Rows { from, to }];
    for stage in stages.iter().skip(1).rev() {
        let below = rows[rows.len() - 1];
        rows.push(input_rows(&stage.window, below));
    }
    rows.reverse();
    rows
}

/// The input rows under the windows of output rows.
fn input_rows(window: &Window2d, rows: Rows) -> Rows {
    let (stride, pad) = (usize::from(window.stride[0]), usize::from(window.padding[0]));
    let reach = (usize::from(window.kernel[0]) - 1) * usize::from(window.dilation[0]) + 1;
    let height = usize::from(window.input[0]);
    let to = ((rows.to - 1) * stride + reach).saturating_sub(pad).min(height);
    // A window may lie in the padding altogether; its step still wants a row to read.
    let from = (rows.from * stride).saturating_sub(pad).min(height - 1);
    Rows {
        from,
        to: to.max(from + 1),
    }
}

struct Builder<'a> {
    stages: &'a [Stage],
    originals: &'a [LoweredStep],
    carry: Carry,
    /// The buffer of each stage's output but the last.
    buffers: Vec<TensorId>,
    /// The rows that each buffer holds now.
    held: Vec<Rows>,
    steps: Vec<LoweredStep>,
}

impl<'a> Builder<'a> {
    fn new(
        program: &mut Program,
        stages: &'a [Stage],
        originals: &'a [LoweredStep],
        bands: &[Vec<Rows>],
        carry: Carry,
    ) -> Self {
        let mut buffers = Vec::new();
        for (index, stage) in stages.iter().enumerate().take(stages.len() - 1) {
            let rows = bands
                .iter()
                .map(|band| band[index].to - band[index].from)
                .max()
                .unwrap_or(0);
            let old = program.graph.tensor(stage.output).clone();
            let shape = vec![
                1,
                rows,
                usize::from(stage.window.output[1]),
                usize::from(stage.window.output[2]),
            ];
            let name = format!("{} (rows)", old.name);
            let name = (0..).map(|n| if n == 0 { name.clone() } else { format!("{name} {n}") });
            let name = name
                .into_iter()
                .find(|n| program.graph.tensors.iter().all(|t| t.name != *n))
                .unwrap_or_default();
            buffers.push(program.graph.add_tensor(Tensor {
                name,
                shape,
                traced_perm: None,
                ..old
            }));
        }
        let held = vec![Rows { from: 0, to: 0 }; buffers.len()];
        Self {
            stages,
            originals,
            carry,
            buffers,
            held,
            steps: Vec::new(),
        }
    }

    /// Appends the steps of one band.
    fn band(&mut self, band: &[Rows]) -> Option<()> {
        for (index, &want) in band.iter().enumerate() {
            let last = index + 1 == self.stages.len();
            let produce = match (last, self.carry) {
                (true, _) => want,
                (false, Carry::Halo) => {
                    self.held[index] = want;
                    want
                }
                (false, Carry::Lines) => self.keep(index, want)?,
            };
            if produce.from < produce.to {
                self.produce(index, produce)?;
            }
        }
        Some(())
    }

    /// Moves the rows that are wanted again to the buffer's start; returns the rows still to be computed.
    fn keep(&mut self, index: usize, want: Rows) -> Option<Rows> {
        let held = self.held[index];
        let kept = Rows {
            from: want.from.max(held.from),
            to: held.to,
        };
        if kept.from < kept.to && kept.from > held.from {
            let row = self.row_elements(index);
            let step = crate::ops::row_copy(
                self.stages[index].element,
                (kept.from - held.from) * row,
                (kept.to - kept.from) * row,
                (held.to - held.from) * row,
            )?;
            let buffer = self.buffers[index];
            self.steps.push(LoweredStep {
                name: format!("{}:keep", self.originals[index].name),
                kind: "keep_rows",
                step,
                places: vec![Place::Tensor(buffer, 0), Place::Tensor(buffer, 0)],
                macs: 0,
                completes: None,
            });
        }
        let from = if kept.from < kept.to { kept.to } else { want.from };
        self.held[index] = Rows {
            from: want.from,
            to: want.to.max(from),
        };
        Some(Rows { from, to: want.to })
    }

    /// Appends the step that computes output rows of a stage.
    fn produce(&mut self, index: usize, rows: Rows) -> Option<()> {
        let (stage, original) = (&self.stages[index], &self.originals[index]);
        let reads = input_rows(&stage.window, rows);
        let mut step = original.step.clone();
        let packed = step.needs().weights;
        let window = step.window_mut()?;
        let top = (rows.from * usize::from(window.stride[0])) as isize - isize::from(window.padding[0]);
        window.input[0] = (reads.to - reads.from) as u16;
        window.output[0] = (rows.to - rows.from) as u16;
        window.padding[0] = u8::try_from((reads.from as isize - top).max(0)).ok()?;
        // A kernel whose packed weights depend on the rows cannot be cut.
        if step.needs().weights != packed || step.check().is_err() {
            return None;
        }
        let input_row = usize::from(stage.window.input[1]) * usize::from(stage.window.input[2]) * stage.element;
        let output_row = self.row_elements(index) * stage.element;
        let (input, held) = match index.checked_sub(1) {
            Some(before) => (self.buffers[before], self.held[before].from),
            None => (stage.input, 0),
        };
        let (output, base) = match self.buffers.get(index) {
            Some(&buffer) => (buffer, self.held[index].from),
            None => (stage.output, 0),
        };
        let mut places = original.places.clone();
        places[0] = Place::Tensor(output, u32::try_from((rows.from - base) * output_row).ok()?);
        places[1] = Place::Tensor(input, u32::try_from((reads.from.checked_sub(held)?) * input_row).ok()?);
        let all = u64::from(stage.window.output[0]);
        let completes = if index + 1 == self.stages.len() {
            original.completes
        } else {
            None
        };
        self.steps.push(LoweredStep {
            step,
            places,
            macs: original.macs / all * (rows.to - rows.from) as u64,
            completes,
            ..original.clone()
        });
        Some(())
    }

    fn row_elements(&self, index: usize) -> usize {
        let [_, w, c] = self.stages[index].window.output.map(usize::from);
        w * c
    }
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
        assert_eq!(input_rows(&w, Rows { from: 0, to: 1 }), Rows { from: 0, to: 2 });
        assert_eq!(input_rows(&w, Rows { from: 3, to: 5 }), Rows { from: 2, to: 6 });
        assert_eq!(input_rows(&w, Rows { from: 7, to: 8 }), Rows { from: 6, to: 8 });
        let w = window(8, 3, 2, 1);
        assert_eq!(input_rows(&w, Rows { from: 1, to: 2 }), Rows { from: 1, to: 4 });
    }
}
