//! Gradients of parameters, for those who compare them.
//!
//! Where a step applies a gradient at once, `w -= rate * dw`, no memory holds it. So the step is run on parameters that are zero and by a rate of -1, which
//! leaves `dw` itself where the parameters were; then they are put back and updated as the kernel would have done it, bit for bit. Nothing else reads them in
//! between, for one step runs. Where gradients are stored, they are read behind the last step that adds to them.

use std::collections::BTreeMap;

use arenite::ops::window::Window2d;
use arenite::{Progress, RunError, Session, Slot, Step};

use super::view::ModelView;
use crate::error::{Error, Result};
use crate::metadata::StepMeta;

/// Suffix of a parameter's name in that of the step that updates it.
pub const UPDATE: &str = ".sgd";

/// The same in that of the last step that adds to its stored gradient.
pub const SUM: &str = ".gradient";

/// The first trained parameter of a state that is not finite, by its name.
///
/// # Errors
/// [`crate::ErrorKind::Input`] for a damaged file.
pub fn not_finite(training: &ModelView<'_>, state: &[u8]) -> Result<Option<String>> {
    let is_finite = |update: &Update| {
        let from = update.parameter.offset as usize;
        let bytes = state.get(from..from + update.layout.elements() * size_of::<f32>());
        let words = bytes.map_or(&[][..], |bytes| bytes.as_chunks().0);
        words.iter().all(|&word| f32::from_le_bytes(word).is_finite())
    };
    let mut applied = updates(training)?.into_iter().map(|(_, update)| update);
    let broken = applied.find(|update| update.parameter.region == Slot::STATE && !is_finite(update));
    Ok(broken.map(|update| update.name))
}

/// The gradient of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// Of the steps of training the one that applies it, or adds to it last.
    pub step: usize,
    /// The parameter's name.
    pub name: String,
    /// Of a convolution `[out, in / groups, rows, columns]`, of a fully connected layer `[out, in]`, of a locally connected one
    /// `[out, in, rows, columns, output rows, output columns]`, of a bias or gain its elements.
    pub shape: Vec<usize>,
    /// Of the last training step, in that shape.
    pub values: Vec<f32>,
}

/// The parameters that the steps of training update, and the gradients of the last training step.
pub struct Gradients {
    updates: BTreeMap<usize, Update>,
}

/// A step that applies a gradient to a parameter, or adds to a stored one.
struct Update {
    /// The parameter that it changes.
    parameter: Slot,
    rate: Slot,
    layout: Layout,
    name: String,
    found: Vec<u8>,
}

/// How a parameter lies in memory.
enum Layout {
    Ohwi([usize; 4]),
    Plain(Vec<usize>),
}

impl Gradients {
    /// Looks for the steps of training that update a parameter.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`] for a damaged file.
    pub fn of(training: &ModelView<'_>) -> Result<Self> {
        let mut updates = updates(training)?;
        let is_sum = |update: &Update| update.parameter.region != Slot::STATE;
        if updates.iter().any(|(_, update)| is_sum(update)) {
            updates.retain(|(_, update)| is_sum(update));
        }
        Ok(Self {
            updates: updates.into_iter().collect(),
        })
    }

    /// Makes one training step, as [`Session::run`] does.
    pub(super) fn run(&mut self, session: &mut Session<'_, '_>) -> std::result::Result<(), RunError> {
        for index in 0.. {
            let progress = match self.updates.get_mut(&index) {
                Some(update) => update.run(session)?,
                None => session.step()?,
            };
            if progress == Progress::Done {
                break;
            }
        }
        Ok(())
    }

    /// The gradients, in the order in which they were found.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`] where no training step was made.
    pub fn into_found(self) -> Result<Vec<Gradient>> {
        if self.updates.values().any(|update| update.found.is_empty()) {
            return Err(
                Error::input("no training step was made, and there are no gradients").expected("one step at least")
            );
        }
        let found = self.updates.into_iter();
        Ok(found.map(|(step, update)| update.gradient(step)).collect())
    }
}

impl Update {
    /// Runs the step, whose gradient it keeps.
    fn run(&mut self, session: &mut Session<'_, '_>) -> std::result::Result<Progress, RunError> {
        let bytes = self.layout.elements() * size_of::<f32>();
        let read = |session: &Session<'_, '_>, slot, len: usize| session.read(slot, len as u32).map(<[u8]>::to_vec);
        if self.parameter.region != Slot::STATE {
            let progress = session.step()?;
            self.found = read(session, self.parameter, bytes).unwrap_or_default();
            return Ok(progress);
        }
        let (Some(before), Some(rate)) = (read(session, self.parameter, bytes), read(session, self.rate, 4)) else {
            return session.step();
        };
        let by = rate.first_chunk().map_or(0.0, |&word| f32::from_le_bytes(word));
        let write = |session: &mut Session<'_, '_>, slot, bytes: &[u8]| session.write(slot, bytes).is_some();
        let mut whole = write(session, self.parameter, &vec![0; bytes]);
        whole &= write(session, self.rate, &(-1.0f32).to_le_bytes());
        let progress = session.step()?;
        let found = read(session, self.parameter, bytes).unwrap_or_default();
        let floats = |bytes: &[u8]| {
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|&word| f32::from_le_bytes(word))
                .collect::<Vec<_>>()
        };
        let updated = floats(&before).into_iter().zip(floats(&found));
        let updated: Vec<u8> = updated.flat_map(|(w, dw)| (w - by * dw).to_le_bytes()).collect();
        whole &= write(session, self.parameter, &updated) && write(session, self.rate, &rate);
        debug_assert!(whole, "what was read can be written");
        self.found = found;
        Ok(progress)
    }

    fn gradient(self, step: usize) -> Gradient {
        let words = self.found.as_chunks().0;
        let value = |at: usize| words.get(at).map_or(0.0, |&word| f32::from_le_bytes(word));
        let (shape, values) = match self.layout {
            Layout::Plain(shape) => (shape, (0..words.len()).map(value).collect()),
            Layout::Ohwi([o, h, w, i]) => {
                let at = |n: usize| {
                    let (n, x) = (n / w, n % w);
                    let (n, y) = (n / h, n % h);
                    let (o, c) = (n / i, n % i);
                    ((o * h + y) * w + x) * i + c
                };
                (vec![o, i, h, w], (0..words.len()).map(|n| value(at(n))).collect())
            }
        };
        Gradient {
            step,
            name: self.name,
            shape,
            values,
        }
    }
}

impl Layout {
    fn elements(&self) -> usize {
        match self {
            Self::Ohwi(extents) => extents.iter().product(),
            Self::Plain(extents) => extents.iter().product(),
        }
    }
}

/// The steps of training that update a parameter, and the last of those that add to each stored gradient, by their place in the list.
fn updates(training: &ModelView<'_>) -> Result<Vec<(usize, Update)>> {
    let names = training.metadata()?.steps;
    let steps = training.steps()?;
    let of = |(index, (step, meta)): (usize, (&Step, &StepMeta))| {
        let (parameter, rate, layout) = update(step)?;
        let name = if parameter.region == Slot::STATE {
            meta.name.strip_suffix(UPDATE).unwrap_or(&meta.name)
        } else {
            meta.name.strip_suffix(SUM)?
        };
        let update = Update {
            parameter,
            rate,
            layout,
            name: name.to_owned(),
            found: Vec::new(),
        };
        Some((index, update))
    };
    Ok(steps.iter().zip(&names).enumerate().filter_map(of).collect())
}

/// The parameter that a step updates, its rate, and the parameter's layout.
fn update(step: &Step) -> Option<(Slot, Slot, Layout)> {
    Some(match step {
        Step::Conv2dWeightSgdF32(op) => (op.weights, op.rate, Layout::Ohwi(ohwi(&op.window, op.groups))),
        Step::LinearWeightSgdF32(op) => {
            let shape = [op.outputs, op.inputs].map(|extent| extent as usize).to_vec();
            (op.weights, op.rate, Layout::Plain(shape))
        }
        Step::LocallyConnectedWeightSgdF32(op) => {
            let ([out, rows, columns], [kernel_rows, kernel_columns]) = (op.output_shape(), op.kernel);
            let shape = [out, op.input_shape[0], kernel_rows, kernel_columns, rows, columns];
            (op.weights, op.rate, Layout::Plain(shape.map(usize::from).to_vec()))
        }
        Step::BiasSgdF32(op) => (op.bias, op.rate, Layout::Plain(vec![op.channels as usize])),
        _ => return None,
    })
}

fn ohwi(window: &Window2d, groups: u16) -> [usize; 4] {
    let [rows, columns] = window.kernel.map(usize::from);
    let channels = usize::from(window.input[2]) / usize::from(groups.max(1));
    [window.output[2].into(), rows, columns, channels]
}
