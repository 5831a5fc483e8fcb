//! Extents that a file leaves open (`shape_signature` with -1): those of inputs come from `--batch` and `--input-shape`, those of results follow from them,
//! operator by operator. The stated shape of a result is believed where it leaves nothing open and no operand has other extents than it states.

use super::importer::{Importer, View};
use super::rows::Row;
use super::tensors::allowed;
use crate::assume::Assumptions;
use crate::borders::usage;
use crate::error::{Error, ErrorKind, Result};
use crate::imported::ImportOptions;

/// Axes of a tensor at most.
const MAX_RANK: usize = 8;

impl Importer<'_, '_> {
    /// The extents of a network input; `--input-shape` is of the first.
    pub(super) fn input_extents(
        &mut self,
        index: usize,
        first: bool,
        options: &ImportOptions,
        assumptions: &mut Assumptions<'_>,
    ) -> Result<()> {
        let info = self.info(index);
        if !info.is_open() {
            return Ok(());
        }
        let mut shape = self.stated_shape(index)?;
        if let Some(asked) = options.input_shape.as_ref().filter(|_| first) {
            let zero = asked.contains(&0);
            if zero || asked.len() != shape.len() {
                return Err(
                    usage(format!("--input-shape {asked:?}")).expected(format!("{} extents above zero", shape.len()))
                );
            }
            if let Some(batch) = options.batch.filter(|batch| asked.first() != Some(batch)) {
                return Err(usage(format!("--batch {batch} contradicts --input-shape {asked:?}"))
                    .expected("one of the two options alone"));
            }
            for (axis, extent) in shape.iter_mut().enumerate() {
                if info.is_open_along(axis) {
                    *extent = asked[axis];
                }
            }
        } else {
            for (axis, extent) in shape
                .iter_mut()
                .enumerate()
                .filter(|(axis, _)| info.is_open_along(*axis))
            {
                if axis > 0 {
                    let key = format!("{}.{axis}", info.name);
                    let reason = "the file leaves it open and states this";
                    *extent = assumptions.or_default(&key, *extent, &info.name, reason)?;
                } else if let Some(batch) = options.batch {
                    assumptions.record("batch", batch, &info.name, "given by --batch");
                    *extent = batch;
                }
            }
        }
        if shape.contains(&0) {
            return Err(usage(format!("extents {shape:?} of `{}`", info.name)).expected("extents above zero"));
        }
        allowed(&shape).map_err(|e| e.at(format_args!("tensor {index} `{}`", info.name)))?;
        self.set_shape(index, shape);
        Ok(())
    }

    /// Whether tensor `index` has no elements: a slice of nothing, which takes no place.
    pub(super) fn is_empty(&self, index: usize) -> bool {
        self.scope.shapes.get(&index).is_some_and(|shape| shape.contains(&0))
    }

    /// Refuses an operand without elements.
    pub(super) fn has_elements(&self, index: usize) -> Result<()> {
        if !self.is_empty(index) {
            return Ok(());
        }
        let name = &self.info(index).name;
        Err(
            Error::unsupported(format!("it reads `{name}`, which has no elements here"))
                .expected("tensors without elements as operands of CONCATENATION alone"),
        )
    }

    /// Tensor `index` has these extents, whatever the file states.
    pub(super) fn set_shape(&mut self, index: usize, shape: Vec<usize>) {
        let same = self.stated_shape(index).is_ok_and(|stated| stated == shape);
        if !same {
            self.scope.shapes.insert(index, shape);
        }
    }

    /// Tensor `index` has the extents of the value that it takes, as far as the file leaves them open.
    pub(super) fn take_shape(&mut self, index: usize, shape: &[usize]) {
        if self.leaves_open(index, shape) {
            self.set_shape(index, shape.to_vec());
        }
    }

    /// Whether the file leaves extents of tensor `index` open, and these agree with the others.
    fn leaves_open(&self, index: usize, shape: &[usize]) -> bool {
        let info = self.info(index);
        let agrees = |(&stated, &extent): (&i32, &usize)| stated == -1 || usize::try_from(stated) == Ok(extent);
        info.is_open() && info.signature.len() == shape.len() && info.signature.iter().zip(shape).all(agrees)
    }

    /// Infers the extents of an operator's results where the file leaves some open, or where an operand has others than it states.
    ///
    /// # Errors
    /// Where an operand has others, and its operator cannot have such ones.
    pub(super) fn infer(&mut self, view: View<'_, '_>, row: Option<Row>) -> Result<()> {
        let resized = self.is_resized(view);
        if !resized && !view.outputs.iter().any(|&y| self.info(y).is_open()) {
            return Ok(());
        }
        // Subgraphs hand extents over themselves.
        if matches!(view.kind, "IF" | "WHILE") {
            return Ok(());
        }
        match self.results(view, row) {
            Ok(Some(shapes)) => {
                for (&y, shape) in view.outputs.iter().zip(shapes) {
                    if shape.len() > MAX_RANK {
                        return Err(Error::unsupported(format!("a result of {} axes", shape.len()))
                            .expected(format!("at most {MAX_RANK}")));
                    }
                    if shape.contains(&0) && !matches!(view.kind, "SLICE" | "CONCATENATION") {
                        return Err(Error::input(format!("a result of shape {shape:?}")).expected("extents above zero"));
                    }
                    if resized || self.leaves_open(y, &shape) {
                        allowed(&shape)?;
                        self.set_shape(y, shape);
                    }
                }
                Ok(())
            }
            Ok(None) if resized && !view.outputs.is_empty() => Err(Error::unsupported(
                "operands of other extents than the file states, of which those of its results do not follow",
            )
            .help(FIXED)),
            Err(error) if resized => Err(error),
            // The stated extents are as good as they can be; translating says why they are wrong.
            _ => Ok(()),
        }
    }

    /// Whether an operand has other extents than the file states.
    pub(super) fn is_resized(&self, view: View<'_, '_>) -> bool {
        view.inputs
            .iter()
            .flatten()
            .any(|input| self.scope.shapes.contains_key(input))
    }

    /// An error of an operator whose operands have other extents than the file states: that is no damage of the file.
    pub(super) fn of_extents(&self, view: View<'_, '_>, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Input if self.is_resized(view) => error.or_help(FIXED),
            _ => error,
        }
    }
}

/// Advice where a file holds extents that others do not fit.
const FIXED: &str = "the extents come of --batch, --input-shape or open extents of the file: leave the options out, or convert the model with the extents that \
                     you want";
