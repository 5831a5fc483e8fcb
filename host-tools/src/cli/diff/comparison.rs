//! Tensors of a run beside the arrays of a reference.

use std::collections::BTreeSet;
use std::path::Path;

use arenite::{DType, Slot};
use serde::Serialize;

use super::traced::{Traced, unravel};
use crate::array::{Array, Values};
use crate::files::zip::Zip;
use crate::metadata::{Metadata, StepMeta, TensorMeta};
use crate::{Error, Result, compare};

#[derive(Debug, Clone, Serialize)]
pub(super) struct Layer {
    pub(super) step: usize,
    pub(super) op: String,
    /// The array's key in the reference.
    pub(super) name: String,
    /// Relative error of floats; the largest difference of integers.
    pub(super) error: f64,
    pub(super) equal: bool,
    /// Where the largest difference is, in the traced layout, with both values.
    pub(super) index: Vec<usize>,
    pub(super) ours: f64,
    pub(super) reference: f64,
    pub(super) within: bool,
    /// Channels that were removed and depend on the input: nobody reads them, and they are not compared.
    pub(super) unread: usize,
}

/// Tensors that were compared, and those that are still to be.
pub(super) struct Comparison<'m> {
    pub(super) metadata: &'m Metadata,
    pub(super) model: &'m Path,
    pub(super) npz: Zip,
    pub(super) unseen: BTreeSet<String>,
    pub(super) tolerance: f64,
    pub(super) layers: Vec<Layer>,
    pub(super) not_in_reference: Vec<String>,
}

impl Comparison<'_> {
    /// Compares the tensor that a step completes with every array of one of its names.
    pub(super) fn step(
        &mut self,
        step: usize,
        meta: &StepMeta,
        read: &dyn Fn(Slot, u32) -> Option<Vec<u8>>,
    ) -> Result<()> {
        let Some(tensor) = &meta.completes else {
            return Ok(());
        };
        let names: Vec<&String> = tensor.names.iter().filter(|name| self.unseen.contains(*name)).collect();
        if names.is_empty() {
            self.not_in_reference.push(meta.name.clone());
            return Ok(());
        }
        let count: u32 = tensor.shape.iter().product();
        let ours = read(tensor.slot, count * tensor.dtype.bytes() as u32)
            .ok_or_else(|| Error::input(format!("the tensor `{}` lies outside the arena", tensor.names[0])))
            .and_then(|bytes| Traced::of(self.metadata, step, tensor, &bytes));
        let ours = ours.map_err(|e| e.in_file(self.model).help("the model is damaged: pack it again"))?;
        for name in names {
            let reference = Array::of_npz(&self.npz, name)?;
            self.layers
                .push(self.compare(step, meta, tensor, name, &ours, &reference)?);
            self.unseen.remove(name);
        }
        Ok(())
    }

    fn compare(
        &self,
        step: usize,
        meta: &StepMeta,
        tensor: &TensorMeta,
        name: &str,
        ours: &Traced,
        reference: &Array,
    ) -> Result<Layer> {
        let theirs = reference.to_f64();
        let Traced { values, known, unread } = ours;
        if theirs.len() != values.len() {
            return Err(other_shape(name, reference, values.shape()));
        }
        let float_reference = matches!(reference.values, Values::F32(_) | Values::F64(_));
        let quantised = tensor.scale != 0.0 && tensor.dtype != DType::F32;
        let ours: Vec<f64> = if float_reference && quantised {
            let real = |&v: &f64| f64::from(tensor.scale) * (v - f64::from(tensor.zero_point));
            values.iter().map(real).collect()
        } else {
            values.iter().copied().collect()
        };
        // Elements that nobody reads are not there to be compared.
        let ours: Vec<f64> = (ours.iter().zip(known).zip(&theirs))
            .map(|((&ours, &known), &theirs)| if known { ours } else { theirs })
            .collect();
        let of = (step, meta.kind.as_str(), name);
        let compared = self.layer(of, &ours, (&theirs, &reference.shape), !float_reference);
        Ok(Layer {
            unread: *unread,
            ..compared
        })
    }

    /// A step's numbers beside those of the reference, as many.
    pub(super) fn layer(
        &self,
        (step, op, name): (usize, &str, &str),
        ours: &[f64],
        (theirs, shape): (&[f64], &[usize]),
        exact: bool,
    ) -> Layer {
        let distance = |at: usize| match (ours[at] - theirs[at]).abs() {
            _ if ours[at] == theirs[at] || (ours[at].is_nan() && theirs[at].is_nan()) => 0.0,
            d if d.is_nan() => f64::INFINITY,
            d => d,
        };
        let at = (0..ours.len()).fold(0, |best, at| if distance(at) > distance(best) { at } else { best });
        let error = if exact {
            distance(at)
        } else {
            compare::relative_f64(ours, theirs)
        };
        Layer {
            step,
            op: op.to_owned(),
            name: name.to_owned(),
            error,
            equal: distance(at) == 0.0,
            index: unravel(at, shape),
            ours: ours.get(at).copied().unwrap_or(0.0),
            reference: theirs.get(at).copied().unwrap_or(0.0),
            within: if exact { error == 0.0 } else { error <= self.tolerance },
            unread: 0,
        }
    }
}

pub(super) fn other_shape(name: &str, reference: &Array, shape: &[usize]) -> Error {
    Error::input(format!("`{name}` has shape {:?}", reference.shape)).expected(format!("{shape:?}, as the model has"))
}
