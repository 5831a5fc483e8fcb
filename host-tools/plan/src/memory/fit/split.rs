//! Steps of bounded cost: a longer one becomes several of the same kernel, each of some rows of its output, or of some columns of one row.
//!
//! Nothing is computed twice and nothing is copied, so the parts do what the whole did; a caller that runs step by step gets control between them.

use std::convert::Infallible;
use std::ops::Range;

use arenite::ops::window::Window2d;

use super::super::shares::Shares;
use super::stage::input_range;
use crate::error::{Error, ErrorKind, Result};
use crate::program::{LoweredStep, Place, Program};

/// Parts of one step, at most: load looks for each at the steps before it, for one that it shares its constants with.
const MOST_PARTS: usize = 64;

/// Offending steps that an error names.
const MOST_NAMED: usize = 5;

/// Splits steps of which the cost exceeds `limit`, in terms of [`arenite::Cost::total`].
///
/// # Errors
/// [`ErrorKind::DoesNotFit`] with every step that cannot be split so far, and the limit that all of them would keep.
pub fn split(program: &mut Program, limit: u64) -> Result<()> {
    let mut steps = Vec::with_capacity(program.steps.len());
    let mut least: Vec<(u64, String)> = Vec::new();
    let mut down = true;
    for step in &program.steps {
        match parts(step, limit) {
            Ok(mut parts) => {
                // Rows of the output may lie where rows of the input were: those that run from the top need room below, and would drift away step by step.
                // Every other split step runs from the bottom, and comes back.
                if parts.len() > 1 {
                    if !down {
                        parts.reverse();
                    }
                    down = !down;
                }
                let last = parts.len() - 1;
                steps.extend(parts.into_iter().enumerate().map(|(index, part)| LoweredStep {
                    completes: step.completes.filter(|_| index == last),
                    ..part
                }));
            }
            Err(cost) => least.push((cost, format!("`{}` ({}) {cost}", step.name, step.kind))),
        }
    }
    let Some(feasible) = least.iter().map(|&(cost, _)| cost).max() else {
        program.steps = steps;
        return Ok(());
    };
    let mut named: Vec<&str> = least.iter().take(MOST_NAMED).map(|(_, text)| text.as_str()).collect();
    let more = format!("and {} others", least.len() - named.len());
    if least.len() > MOST_NAMED {
        named.push(&more);
    }
    let message = format!(
        "steps cost more, however their outputs are split by rows: {}",
        named.join(", ")
    );
    Err(Error::new(ErrorKind::DoesNotFit, message)
        .expected(format!("at most {limit} (--max-step)"))
        .help(format!("--max-step {feasible} is the least that this network allows")))
}

/// Returns the parts of a step: itself, or the fewest parts of equal rows of which none exceeds the limit. The least cost that it can be split to, otherwise.
fn parts(step: &LoweredStep, limit: u64) -> std::result::Result<Vec<LoweredStep>, u64> {
    let whole = step.step.cost().total();
    if whole <= limit {
        return Ok(vec![step.clone()]);
    }
    let mut least = whole;
    let Some(cut) = Cuttable::of(step) else {
        return Err(least);
    };
    let [rows, columns] = cut.extents;
    let most = (rows * if cut.across { columns } else { 1 }).min(MOST_PARTS);
    // More parts cost at least what they have to: begin there.
    let mut count = usize::try_from(whole / limit.max(1))
        .unwrap_or(most)
        .clamp(2, most.max(2));
    while count <= most {
        let tiles = cut.tiles(&Shares::equal(count));
        if tiles.len() > MOST_PARTS {
            break;
        }
        let made: Option<Vec<LoweredStep>> = tiles.iter().map(|tile| cut.part(tile)).collect();
        if let Some(made) = made {
            let highest = made.iter().map(|part| part.step.cost().total()).max().unwrap_or(whole);
            least = least.min(highest);
            if highest <= limit {
                return Ok(made);
            }
        }
        count += 1;
    }
    // Where the budget asks for more parts than there may be, the finest split says what is possible.
    Err(least)
}

/// A step whose output can be computed in parts: one input and one output in tensors, all else constants and scratch.
pub struct Cuttable<'a> {
    step: &'a LoweredStep,
    window: Window2d,
    /// Rows of all images, columns.
    extents: [usize; 2],
    /// Rows of one image.
    height: usize,
    /// Whether the columns of one row of output can be cut: windows are one row high, so that what a part reads lies together.
    across: bool,
    /// Bytes of an element of the output and of the input.
    elements: [usize; 2],
}

/// Rows `rows` of the output, counted over all images; columns `columns`, all of them where there is more than one row.
pub struct Tile {
    rows: Range<usize>,
    columns: Range<usize>,
}

impl<'a> Cuttable<'a> {
    /// A step that can be cut; `None` for others.
    pub fn of(step: &'a LoweredStep) -> Option<Self> {
        let window = *step.step.clone().window_mut()?;
        let mut places = step.places().into_iter();
        let (Some(Place::Tensor(..)), Some(Place::Tensor(..))) = (places.next(), places.next()) else {
            return None;
        };
        if !places.all(|place| matches!(place, Place::Scratch | Place::Constant(_))) {
            return None;
        }
        let operands = step.operands();
        let element = |operand: usize, elements: Option<u32>| {
            let (bytes, elements) = (operands.get(operand)?.bytes, elements.filter(|&n| n > 0)?);
            (bytes % elements == 0).then_some((bytes / elements) as usize)
        };
        let [height, width, _] = window.output.map(usize::from);
        Some(Self {
            step,
            window,
            extents: [height * usize::from(window.batch), width],
            height,
            across: window.kernel[0] == 1 || window.input[0] == 1,
            elements: [element(0, window.output_len())?, element(1, window.input_len())?],
        })
    }

    /// The same of a step that takes each pixel of its output from the same one of its input: all pixels as one row, to be cut anywhere. `None` for others.
    pub fn of_pixels(step: &'a LoweredStep) -> Option<Self> {
        let mut cut = Self::of(step)?;
        let window = &mut cut.window;
        let single = window.kernel == [1, 1] && window.stride == [1, 1] && window.padding == [0, 0];
        let [rows, columns] = cut.extents;
        let pixels = u16::try_from(rows * columns).ok().filter(|_| single)?;
        window.batch = 1;
        (window.input[0], window.input[1]) = (1, pixels);
        (window.output[0], window.output[1]) = (1, pixels);
        (cut.extents, cut.height) = ([1, pixels.into()], 1);
        cut.across = true;
        Some(cut)
    }

    /// Columns of the output.
    pub fn columns(&self) -> usize {
        self.extents[1]
    }

    /// Some columns of a single row.
    pub fn tile(&self, columns: Range<usize>) -> Tile {
        Tile { rows: 0..1, columns }
    }

    /// As many tiles as there are shares or a few more: no part spans two images, and columns are cut where a row is too long by itself. In these shares where
    /// one axis of one image is cut, as equal as they can be otherwise.
    pub fn tiles(&self, shares: &Shares) -> Vec<Tile> {
        let [rows, columns] = self.extents;
        let count = shares.count();
        let images = rows / self.height;
        let bands = count.div_ceil(images).min(self.height);
        let across = if self.across {
            count.div_ceil(bands * images).min(columns)
        } else {
            1
        };
        let pieces = |total: usize, parts: usize| {
            let pieces = if parts == count {
                shares.pieces(total)
            } else {
                Shares::equal(parts).pieces(total)
            };
            pieces.into_iter().filter(|piece| !piece.is_empty())
        };
        let mut tiles = Vec::new();
        for image in 0..images {
            for band in pieces(self.height, bands) {
                let rows = image * self.height + band.start..image * self.height + band.end;
                for columns in pieces(columns, across) {
                    let rows = rows.clone();
                    tiles.push(Tile { rows, columns });
                }
            }
        }
        tiles
    }

    /// Tiles of at most so many pixels each, or of as few as they can be.
    pub fn tiles_of(&self, pixels: usize) -> Vec<Tile> {
        let [rows, columns] = self.extents;
        let count = if pixels >= columns {
            let images = rows / self.height;
            images * self.height.div_ceil((pixels / columns).max(1))
        } else if self.across {
            rows * columns.div_ceil(pixels.max(1))
        } else {
            rows
        };
        self.tiles(&Shares::equal(count))
    }

    /// The pixels of a tile, counted over all images: they lie together.
    pub fn pixels(&self, tile: &Tile) -> Range<usize> {
        let first = tile.rows.start * self.extents[1] + tile.columns.start;
        first..first + tile.rows.len() * tile.columns.len()
    }

    /// The step that computes a tile. `None` for a kernel whose packed weights depend on the extents, or that does not compute these.
    pub fn part(&self, tile: &Tile) -> Option<LoweredStep> {
        let whole = self.window;
        let ([_, wide_out, deep_out], [high_in, wide_in, deep_in]) =
            (whole.output.map(usize::from), whole.input.map(usize::from));
        let image = tile.rows.start / self.height;
        let in_image = tile.rows.start - image * self.height..tile.rows.end - image * self.height;
        let mut window = Window2d { batch: 1, ..whole };
        let mut starts = [0; 2];
        for (axis, output) in [(0, &in_image), (1, &tile.columns)] {
            // Columns that are not cut are read as they are, also those that a stride leaves out.
            if axis == 1 && tile.columns.len() == wide_out {
                continue;
            }
            let input = input_range(&whole, axis, output);
            let top = (output.start * usize::from(whole.stride[axis])) as isize - isize::from(whole.padding[axis]);
            window.input[axis] = u16::try_from(input.len()).ok()?;
            window.output[axis] = u16::try_from(output.len()).ok()?;
            window.padding[axis] = u8::try_from((input.start as isize - top).max(0)).ok()?;
            starts[axis] = input.start;
        }
        let step = self.step.step.part(window)?;
        let [row, column] = starts;
        let from = [
            (tile.rows.start * wide_out + tile.columns.start) * deep_out * self.elements[0],
            ((image * high_in + row) * wide_in + column) * deep_in * self.elements[1],
        ];
        let [output, input] = from.map(|bytes| u32::try_from(bytes).ok());
        let mut moves = [output?, input?].into_iter();
        let mut moved = |place| {
            Ok::<_, Infallible>(match (place, moves.next()) {
                (Place::Tensor(id, at), Some(bytes)) => Place::Tensor(id, at + bytes),
                (other, _) => other,
            })
        };
        let Ok(step) = step.map(&mut moved);
        let [rows, columns] = self.extents.map(|n| n as u128);
        // Of products before the end of this tile less those before its start, so that the parts have as many as the whole.
        let before = |pixels: usize| (u128::from(self.step.macs) * pixels as u128 / (rows * columns)) as u64;
        let start = tile.rows.start * wide_out + tile.columns.start;
        Some(LoweredStep {
            step,
            macs: before(start + tile.rows.len() * tile.columns.len()) - before(start),
            ..self.step.clone()
        })
    }
}
