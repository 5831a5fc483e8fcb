//! An int8 or int16 model beside the float model of the same network.

use std::collections::{BTreeMap, HashMap};

use arenite::{Model, Port, Slot};

use super::sizes::Factors;
use super::stored;
use super::traced::{Traced, real};
use crate::Result;
use crate::metadata::{Metadata, TensorMeta};
use crate::model;

/// Both models, the integers' first where there are two.
pub(super) struct Models<'m> {
    pub(super) ours: &'m Metadata,
    pub(super) theirs: &'m Metadata,
    pub(super) int8: &'m Model<'m>,
    pub(super) float: &'m Model<'m>,
    pub(super) ports: [&'m [Port<'m>]; 2],
}

/// The float model's values of a run.
#[derive(Default)]
pub(super) struct Values<'m> {
    /// By step.
    pub(super) of_steps: BTreeMap<usize, Traced>,
    /// The step that completes a tensor of this name.
    by_tensor: HashMap<&'m str, usize>,
}

impl Values<'_> {
    /// The value of a tensor of the int8 model, and the float model's step: by its name, or, where a quantiser has put a word behind that, by what is in front.
    pub(super) fn of(&self, tensor: &TensorMeta) -> Option<(usize, &Traced)> {
        let by_name = tensor.names.iter().find_map(|name| self.by_tensor.get(name.as_str()));
        let place = *by_name.or_else(|| self.by_tensor.get(quantised(tensor.names.first()?)?))?;
        let traced = self.of_steps.get(&place)?;
        let elements: usize = tensor.shape.iter().map(|&n| n as usize).product();
        (by_name.is_some() || traced.values.len() == elements).then_some((place, traced))
    }
}

/// The name of which a quantiser made this one: ONNX Runtime's `conv_QuantizeLinear_Output`, others' `conv_quantized`.
fn quantised(name: &str) -> Option<&str> {
    let words = ["_QuantizeLinear", "_quantized", "_quantize"];
    let at = words.iter().filter_map(|word| name.find(word)).min()?;
    name.get(..at).filter(|front| !front.is_empty())
}

impl<'m> Models<'m> {
    /// The float model's values of a run.
    pub(super) fn values(&self, run: &[Vec<u8>]) -> Result<Values<'m>> {
        let theirs = self.theirs;
        let mut values = Values::default();
        let mut failed = None;
        model::run(self.float, &[run.to_vec()], true, &mut |_, step, session| {
            let Some((tensor, bytes)) = completed(theirs, step, &|slot, len| session.read(slot, len)) else {
                return;
            };
            let place = step as usize;
            match Traced::of(theirs, place, tensor, bytes) {
                Ok(traced) => drop(values.of_steps.insert(place, traced)),
                Err(e) => failed = Some(e),
            }
            if let Some(name) = tensor.names.first() {
                values.by_tensor.insert(name, place);
            }
        })?;
        failed.map_or(Ok(values), Err)
    }

    /// The int8 model's inputs of a run of the float model.
    pub(super) fn inputs(&self, run: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        stored::inputs(run, self.ports[1], self.ports[0])
    }

    /// The real numbers that a step's tensor of the int8 model has, in the float model's sizes.
    pub(super) fn found(&self, factors: &Factors, step: usize, tensor: &TensorMeta, bytes: &[u8]) -> Result<Traced> {
        let mut traced = Traced::of(self.ours, step, tensor, bytes)?;
        traced.values.mapv_inplace(|stored| real(tensor, stored));
        factors.to_float(step, &mut traced);
        Ok(traced)
    }

    /// The bytes of a tensor of the int8 model that stores the float model's values; `None` where it stores no real numbers.
    pub(super) fn stored(
        &self,
        factors: &Factors,
        (step, tensor): (usize, &TensorMeta),
        memory: &[u8],
        expected: &Traced,
    ) -> Option<Vec<u8>> {
        let mut own = expected.clone();
        factors.to_own(step, &mut own);
        stored::bytes(self.ours, step, tensor, memory, &own)
    }
}

type Read<'r> = dyn Fn(Slot, u32) -> Option<&'r [u8]> + 'r;

/// The tensor that a step completes, and its bytes.
pub(super) fn completed<'m, 'r>(
    metadata: &'m Metadata,
    step: u32,
    read: &Read<'r>,
) -> Option<(&'m TensorMeta, &'r [u8])> {
    let tensor = metadata.steps.get(step as usize)?.completes.as_ref()?;
    let count: u32 = tensor.shape.iter().product();
    Some((tensor, read(tensor.slot, count * tensor.dtype.bytes() as u32)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_a_quantiser_put_behind_them() {
        for (name, front) in [
            ("/0/Conv_output_0_QuantizeLinear_Output", Some("/0/Conv_output_0")),
            ("y_quantized", Some("y")),
            ("y", None),
            ("_QuantizeLinear_Output", None),
        ] {
            assert_eq!(quantised(name), front, "{name}");
        }
    }
}
