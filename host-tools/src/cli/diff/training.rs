//! `arenite diff --train`: one step of training against a reference.

use arenite::{DType, Port};

use super::super::machine::Machine;
use super::comparison::{Comparison, other_shape};
use crate::array::Array;
use crate::model::derived;
use crate::model::gradients::{Gradient, Gradients};
use crate::model::{self, ModelFile, ModelView};
use crate::{Error, ErrorKind, Result, compare};

/// The rate of the step, by which no parameter changes: gradients do not depend on it.
pub(super) const NO_RATE: f32 = 0.0;

/// # Errors
/// [`ErrorKind::Usage`] for a board: it holds no gradient.
pub(super) fn refuse_board(on: Machine) -> Result<()> {
    match on {
        Machine::Host => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Usage,
            format!("--train --on {}: no board holds a gradient", on.name()),
        )
        .expected("--on host")
        .help("the gradients of a board are the same bits")),
    }
}

/// The steps of training as a model of their own.
pub(super) fn steps_alone(file: &ModelFile) -> Result<ModelFile> {
    let view = file.view()?;
    let bytes = derived::of_training(&of_training(&view, file)?, false)?;
    Ok(ModelFile::made(&bytes, file.path()))
}

/// The gradients of one step of training from the parameters that the file holds.
pub(super) fn gradients(file: &ModelFile, inputs: Vec<Vec<u8>>) -> Result<Vec<Gradient>> {
    let view = file.view()?;
    let mut gradients = Gradients::of(&of_training(&view, file)?)?;
    let mut once = Some(inputs);
    let trained = model::train_keeping(
        &file.load()?,
        None,
        &mut |_| once.take(),
        &mut |_, _| Ok(()),
        &mut gradients,
    );
    trained.map_err(|e| e.in_file(file.path()))?;
    gradients.into_found()
}

fn of_training<'v>(view: &ModelView<'v>, file: &ModelFile) -> Result<ModelView<'v>> {
    view.training()?.ok_or_else(|| {
        Error::input("the file has no steps of training")
            .in_file(file.path())
            .help("pack it with --train --loss LOSS")
    })
}

impl Comparison<'_> {
    /// Compares each gradient with the array of its parameter's name, and puts it where its step is.
    pub(super) fn gradients(&mut self, gradients: &[Gradient]) -> Result<()> {
        for gradient in gradients {
            let name = gradient.name.as_str();
            if !self.unseen.remove(name) {
                self.not_in_reference.push(name.to_owned());
                continue;
            }
            let reference = Array::of_npz(&self.npz, name)?;
            let theirs = reference.to_f64();
            if theirs.len() != gradient.values.len() {
                return Err(other_shape(name, &reference, &gradient.shape));
            }
            let ours: Vec<f64> = gradient.values.iter().map(|&value| f64::from(value)).collect();
            let kind = self
                .metadata
                .steps
                .get(gradient.step)
                .map_or("", |meta| meta.kind.as_str());
            let layer = self.layer((gradient.step, kind, name), &ours, (&theirs, &reference.shape), false);
            self.layers.push(layer);
        }
        self.layers.sort_by_key(|layer| layer.step);
        Ok(())
    }

    /// Compares the outputs, the loss among them, with the arrays of their names: behind all steps.
    pub(super) fn outputs(&mut self, ports: &[Port<'_>], outputs: &[Vec<u8>]) -> Result<()> {
        for (port, bytes) in ports.iter().zip(outputs) {
            if !self.unseen.remove(port.name) {
                continue;
            }
            let reference = Array::of_npz(&self.npz, port.name)?;
            let (ours, theirs) = (compare::to_f64(port.dtype, bytes), reference.to_f64());
            if ours.len() != theirs.len() {
                return Err(other_shape(port.name, &reference, &[ours.len()]));
            }
            let of = (self.metadata.steps.len(), "output", port.name);
            let layer = self.layer(of, &ours, (&theirs, &reference.shape), port.dtype != DType::F32);
            self.layers.push(layer);
        }
        Ok(())
    }
}
