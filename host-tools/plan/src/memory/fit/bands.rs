//! Cutting a chain of windowed steps into bands of rows, or into tiles of rows and columns.
//!
//! The rows of a band lie together in every tensor, so that its steps read and write them in place. The columns of a tile do not: it is
//! copied out of the chain's input and into the chain's output, and is a small tensor of its own between.
//!
//! A chain may pass sums with tensors from outside of it, whose rows are read where they are. The bands of a last one are written over them, where nothing
//! reads these again: so a residual sum takes one of its operands and a few rows of the other.

use std::ops::Range;

use arenite::Access;

use super::stage::{Rect, Stage, chain, input_rect, needed};
use crate::graph::{Tensor, TensorId, TensorKind};
use crate::lower::copies::copy_elements;
use crate::memory::lifetimes::{self, Moment, in_arena};
use crate::program::{LoweredStep, Place, Program};

/// How a band gets the rows that the band before it had. Tiles recompute what they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carry {
    /// They are kept in a line buffer and moved to its start.
    Lines,
    /// They are computed again.
    Halo,
}

/// A cut of a chain of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The chain's first step and its length.
    pub first: usize,
    /// Steps in the chain.
    pub length: usize,
    /// Rows of the last step's output in a band.
    pub rows: usize,
    /// Columns of the last step's output in a tile; `None` for bands as wide as it is.
    pub columns: Option<usize>,
    /// How bands share rows.
    pub carry: Carry,
}

/// Tiles or bands of one cut, at most: each is as many steps as its chain is long, and every step costs a device some time.
const MOST_TILES: usize = 256;

/// The program with the chain of `cut` in bands or tiles; `None` where a kernel cannot be cut so. Whether the last sum may be written over its operand,
/// `in_place` says.
pub(super) fn cut(program: &Program, cut: &Cut, in_place: bool) -> Option<Program> {
    let stages = chain(program, cut.first, cut.length)?;
    let steps = program.steps.get(cut.first..cut.first + cut.length)?;
    let [rows_out, columns_out, _] = stages.last()?.window.output.map(usize::from);
    let columns = cut.columns.unwrap_or(columns_out);
    let whole = columns >= columns_out;
    // Rows move on within a line buffer, columns do not.
    if (whole && (rows_out <= cut.rows || cut.columns.is_some())) || (!whole && cut.carry == Carry::Lines) {
        return None;
    }
    // Nor are the columns of a sum's other operand copied.
    if !whole && stages.iter().any(|stage| stage.side.is_some()) {
        return None;
    }
    if rows_out.div_ceil(cut.rows) * columns_out.div_ceil(columns) > MOST_TILES {
        return None;
    }
    let mut tiles: Vec<Vec<Rect>> = Vec::new();
    for row in (0..rows_out).step_by(cut.rows) {
        for column in (0..columns_out).step_by(columns) {
            let last = Rect {
                rows: row..(row + cut.rows).min(rows_out),
                columns: column..(column + columns).min(columns_out),
            };
            tiles.push(needed(&stages, last, !whole));
        }
    }

    let mut result = program.clone();
    let mut out = Builder::new(&mut result, &stages, steps, &tiles, cut.carry);
    for tile in &tiles {
        out.tile(tile)?;
    }
    let new_steps = out.steps;
    let during = cut.first..cut.first + new_steps.len();
    result.steps.splice(cut.first..cut.first + cut.length, new_steps);
    if in_place && let Some(last) = stages.last() {
        write_over_side(&mut result, last, during);
    }
    Some(result)
}

/// Makes the output of the chain's last stage a view of the tensor beside it, where every byte of that is read before it is written, and by nothing later.
fn write_over_side(program: &mut Program, last: &Stage, during: Range<usize>) {
    let (Some(side), output) = (last.side, last.output) else {
        return;
    };
    let graph = &program.graph;
    let (side, from) = program.root(side);
    let separate = side != output && from == 0 && program.root(output) == (output, 0);
    let movable = in_arena(graph, side) && matches!(graph.tensor(output).kind, TensorKind::Activation);
    if !separate || !movable || graph.tensor(side).bytes() != graph.tensor(output).bytes() {
        return;
    }
    let mut written: Vec<Range<u64>> = Vec::new();
    for touch in lifetimes::of_program(program) {
        let at = match touch.at {
            Moment::Start => continue,
            Moment::Step(at) => at,
            Moment::End if touch.root == side => return,
            Moment::End => break,
        };
        if touch.root == output && touch.access != Some(Access::Read) {
            // A later write over it belongs to a later sum.
            if at >= during.end {
                continue;
            }
            if !during.contains(&at) || !last.over_side(&program.steps[at].step) {
                return;
            }
            written.push(touch.bytes);
        } else if touch.root == side {
            // A step's output comes before what it reads; the kernel allows that they are the same bytes.
            let writes = matches!(program.steps[at].places().first(), Some(&Place::Tensor(id, _)) if id == output);
            let gone = |gone: &&Range<u64>| gone.start < touch.bytes.end && touch.bytes.start < gone.end;
            let before = written.iter().filter(|&bytes| !writes || *bytes != touch.bytes);
            if at >= during.end || before.into_iter().any(|bytes| gone(&bytes)) {
                return;
            }
        }
    }
    program.views.insert(output, (side, 0));
    program.over.insert(output);
}

struct Builder<'a> {
    stages: &'a [Stage],
    originals: &'a [LoweredStep],
    carry: Carry,
    /// The buffer of each stage's output but the last.
    buffers: Vec<TensorId>,
    /// Rows that each buffer holds now.
    held: Vec<Rect>,
    /// The tile of the chain's input and of its output, where columns are cut.
    ends: Option<[TensorId; 2]>,
    steps: Vec<LoweredStep>,
}

impl<'a> Builder<'a> {
    fn new(
        program: &mut Program,
        stages: &'a [Stage],
        originals: &'a [LoweredStep],
        tiles: &[Vec<Rect>],
        carry: Carry,
    ) -> Self {
        let mut buffer = |like: TensorId, channels: u16, rects: &mut dyn Iterator<Item = Rect>| {
            let (rows, columns) = rects.fold((1, 1), |(rows, columns), r| {
                (rows.max(r.rows.len()), columns.max(r.columns.len()))
            });
            let old = program.graph.tensor(like).clone();
            let name = unused_name(program, &format!("{} (rows)", old.name));
            program.graph.add_tensor(Tensor {
                name,
                shape: vec![1, rows, columns, usize::from(channels)],
                traced_perm: None,
                kind: TensorKind::Activation,
                ..old
            })
        };
        let (mut buffers, mut ends) = (Vec::new(), None);
        for (index, stage) in stages.iter().enumerate().take(stages.len() - 1) {
            let mut rects = tiles.iter().map(|tile| tile[index].clone());
            buffers.push(buffer(stage.output, stage.window.output[2], &mut rects));
        }
        if let (Some(first), Some(last)) = (stages.first(), stages.last()) {
            let whole = usize::from(last.window.output[1]);
            if tiles.iter().any(|tile| tile[stages.len() - 1].columns.len() < whole) {
                let mut reads = tiles.iter().map(|tile| input_rect(&first.window, &tile[0], true));
                let input = buffer(first.input, first.window.input[2], &mut reads);
                let mut writes = tiles.iter().map(|tile| tile[stages.len() - 1].clone());
                ends = Some([input, buffer(last.output, last.window.output[2], &mut writes)]);
            }
        }
        let nothing = Rect {
            rows: 0..0,
            columns: 0..0,
        };
        Self {
            stages,
            originals,
            carry,
            held: vec![nothing; buffers.len()],
            buffers,
            ends,
            steps: Vec::new(),
        }
    }

    /// Appends the steps of one band or tile.
    fn tile(&mut self, tile: &[Rect]) -> Option<()> {
        for (index, want) in tile.iter().enumerate() {
            let last = index + 1 == self.stages.len();
            let produce = match (last, self.carry) {
                (true, _) => want.clone(),
                (false, Carry::Halo) => {
                    self.held[index] = want.clone();
                    want.clone()
                }
                (false, Carry::Lines) => self.keep(index, want)?,
            };
            if !produce.rows.is_empty() {
                self.produce(index, &produce)?;
            }
        }
        Some(())
    }

    /// Moves the rows that are wanted again to the buffer's start; returns what is still to be computed.
    fn keep(&mut self, index: usize, want: &Rect) -> Option<Rect> {
        let held = self.held[index].rows.clone();
        let kept = want.rows.start.max(held.start)..held.end;
        if kept.start < kept.end && kept.start > held.start {
            let [_, width, channels] = self.stages[index].window.output.map(usize::from);
            let row = width * channels;
            let run = [(kept.len() * row, 1, 1)];
            let buffer = Place::Tensor(self.buffers[index], 0);
            let (from, len) = ((kept.start - held.start) * row, held.len() * row);
            self.push_copy(index, "keep_rows", [buffer, buffer], (from, len), &run)?;
        }
        let start = if kept.start < kept.end {
            kept.end
        } else {
            want.rows.start
        };
        self.held[index] = Rect {
            rows: want.rows.start..want.rows.end.max(start),
            columns: want.columns.clone(),
        };
        Some(Rect {
            rows: start..want.rows.end.max(start),
            columns: want.columns.clone(),
        })
    }

    /// Appends the step that computes a rectangle of a stage's output, and the copies that a tile's ends need.
    fn produce(&mut self, index: usize, rect: &Rect) -> Option<()> {
        let (stage, original) = (&self.stages[index], &self.originals[index]);
        let reads = input_rect(&stage.window, rect, self.ends.is_some());
        let mut window = stage.window;
        for (axis, input, output) in [(0, &reads.rows, &rect.rows), (1, &reads.columns, &rect.columns)] {
            let top = (output.start * usize::from(window.stride[axis])) as isize - isize::from(window.padding[axis]);
            window.input[axis] = input.len() as u16;
            window.output[axis] = output.len() as u16;
            window.padding[axis] = u8::try_from((input.start as isize - top).max(0)).ok()?;
        }
        let [height, width, channels] = stage.window.output.map(usize::from);
        let last = index + 1 == self.stages.len();
        let input = match index.checked_sub(1) {
            Some(before) => {
                let columns = self.held[before].columns.len();
                let depth = usize::from(stage.window.input[2]);
                let skipped = reads.rows.start.checked_sub(self.held[before].rows.start)?;
                Place::Tensor(self.buffers[before], bytes(skipped * columns * depth * stage.element)?)
            }
            None => self.load(&reads)?,
        };
        let pixel = channels * stage.element;
        let in_place = bytes((rect.rows.start * width + rect.columns.start) * pixel)?;
        let output = match (self.buffers.get(index), self.ends) {
            (Some(&buffer), _) => {
                let held = &self.held[index];
                Place::Tensor(
                    buffer,
                    bytes((rect.rows.start - held.rows.start) * held.columns.len() * pixel)?,
                )
            }
            // A single row lies together in the output as well.
            (None, Some([_, tile])) if rect.rows.len() > 1 && rect.columns.len() < width => Place::Tensor(tile, 0),
            (None, _) => Place::Tensor(stage.output, in_place),
        };
        // Rows of the tensor beside it are where they are in the output as a whole.
        let side = stage.side.map_or(Place::Scratch, |side| Place::Tensor(side, in_place));
        let step = stage.part(original, window, [output, input, side])?;
        let store = last && !matches!(output, Place::Tensor(id, _) if id == stage.output);
        let all = (height * width) as u128;
        // A step that reads no constants is of the page of the step before it, so that bands do not turn pages.
        let before = index.checked_sub(1).map(|before| &self.originals[before]);
        let constant = |operand: &arenite::Operand<Place>| matches!(operand.place, Place::Constant(_));
        let page = match before {
            Some(before) if !original.operands().iter().any(constant) => before.page,
            _ => original.page,
        };
        self.steps.push(LoweredStep {
            step,
            macs: (u128::from(original.macs) * rect.pixels() as u128 / all) as u64,
            completes: if last && !store { original.completes } else { None },
            page,
            ..original.clone()
        });
        if store {
            let row = rect.columns.len() * channels;
            let axes = [(rect.rows.len(), width * channels, row), (row, 1, 1)];
            let places = [Place::Tensor(stage.output, in_place), output];
            self.push_copy(index, "store_tile", places, (0, rect.pixels() * channels), &axes)?;
            if let Some(step) = self.steps.last_mut() {
                step.completes = original.completes;
            }
        }
        Some(())
    }

    /// Where the chain's first step finds a rectangle of its input: there, or in the copy that this appends.
    fn load(&mut self, rect: &Rect) -> Option<Place> {
        let stage = &self.stages[0];
        let [_, width, channels] = stage.window.input.map(usize::from);
        let at = |column: usize| bytes((rect.rows.start * width + column) * channels * stage.element);
        match self.ends {
            Some([tile, _]) if rect.rows.len() > 1 && rect.columns.len() < width => {
                let (row, tile) = (rect.columns.len() * channels, Place::Tensor(tile, 0));
                let reach = (rect.rows.len() - 1) * width * channels + rect.columns.end * channels;
                let axes = [(rect.rows.len(), row, width * channels), (row, 1, 1)];
                let places = [tile, Place::Tensor(stage.input, at(0)?)];
                self.push_copy(0, "load_tile", places, (rect.columns.start * channels, reach), &axes)?;
                Some(tile)
            }
            _ => Some(Place::Tensor(stage.input, at(rect.columns.start)?)),
        }
    }

    /// Appends a copy to the first place from the second: of a source of `len` elements from element `from` on.
    fn push_copy(
        &mut self,
        index: usize,
        kind: &'static str,
        places: [Place; 2],
        (from, len): (usize, usize),
        axes: &[(usize, usize, usize)],
    ) -> Option<()> {
        self.steps.push(LoweredStep {
            name: format!("{}:{kind}", self.originals[index].name),
            kind,
            step: copy_elements(places, self.stages[index].element, from, len, axes)?,
            macs: 0,
            completes: None,
            page: self.originals[index].page,
            handed: false,
            own: None,
        });
        Some(())
    }
}

fn bytes(count: usize) -> Option<u32> {
    u32::try_from(count).ok()
}

/// This name, or it with a number that makes it the only one.
fn unused_name(program: &Program, name: &str) -> String {
    (0..)
        .map(|n| {
            if n == 0 {
                name.to_string()
            } else {
                format!("{name} {n}")
            }
        })
        .find(|name| program.graph.tensors.iter().all(|t| t.name != *name))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use arenite::DType;

    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let mut program = Program {
            graph: crate::graph::Graph::default(),
            target: arenite::Target::Portable,
            size: false,
            share: true,
            steps: Vec::new(),
            views: std::collections::HashMap::new(),
            over: std::collections::HashSet::new(),
            weights: crate::program::Constants::default(),
            state: crate::program::State {
                offsets: Default::default(),
                initial: Vec::new(),
            },
            assigned: Default::default(),
        };
        for expected in ["x (rows)", "x (rows) 1", "x (rows) 2"] {
            let name = unused_name(&program, "x (rows)");
            assert_eq!(name, expected);
            program.graph.add_tensor(Tensor::activation(name, &[1], DType::F32));
        }
    }
}
