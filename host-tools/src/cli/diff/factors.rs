//! Sizes of equalised channels. Between two layers `pack` may store a channel larger than the float network has it, and the next layer's weights take that
//! back. A file says between how many pairs of layers, but no factor: they are found here, by what the layers make of the float model's own values.

use ndarray::{ArrayD, Axis, IxDyn};

use super::models::{Models, completed};
use super::sizes::Factors;
use super::traced::{Traced, channel_axis, ends, is_quantised, real};
use crate::Result;
use crate::metadata::TensorMeta;
use crate::model;

/// Runs that tell a factor well enough.
const RUNS: usize = 16;

/// The factors of a model of which so many pairs of layers were equalised. Layers are fed with the float model's values, from the first on, so that a factor
/// is a layer's own: the least squares of its values that are not at an end of its range.
pub(super) fn factors(pairs: usize, models: &Models<'_>, runs: &[Vec<Vec<u8>>]) -> Result<Factors> {
    let mut found = Factors::default();
    found.of_steps.resize(models.ours.steps.len(), None);
    if pairs == 0 {
        return Ok(found);
    }
    let mut sums: Vec<Option<ArrayD<[f64; 2]>>> = vec![None; models.ours.steps.len()];
    for run in runs.iter().take(RUNS) {
        let values = models.values(run)?;
        let stored = models.inputs(run)?;
        let mut failed = None;
        model::run_changing(models.int8, &[stored], true, &mut |_, step, session| {
            let read = completed(models.ours, step, &|slot, len| session.read(slot, len));
            let Some((tensor, bytes)) = read else { return };
            let step = step as usize;
            let Some((_, expected)) = values.of(tensor) else {
                return;
            };
            if is_layer(&models.ours.steps[step].kind) && is_quantised(tensor) {
                let traced = Traced::of(models.ours, step, tensor, bytes);
                match traced {
                    Ok(traced) => found.of_steps[step] = learnt(&mut sums[step], tensor, &traced, expected),
                    Err(e) => failed = Some(e),
                }
            }
            // The next reader is fed with the float model's values.
            if let Some(bytes) = models.stored(&found, (step, tensor), bytes, expected) {
                session.write(tensor.slot, &bytes);
            }
        })?;
        failed.map_or(Ok(()), Err)?;
    }
    found.keep_most(pairs);
    Ok(found)
}

/// Layers that have weights: an equalised tensor is the result of one.
fn is_layer(kind: &str) -> bool {
    kind.contains("conv") || kind == "linear"
}

/// Factors by all that is known of a step's channels: sums of the products of both models' values, and of the int8 model's squares.
fn learnt(
    sums: &mut Option<ArrayD<[f64; 2]>>,
    tensor: &TensorMeta,
    found: &Traced,
    expected: &Traced,
) -> Option<ArrayD<f64>> {
    let axis = Axis(channel_axis(tensor, found.values.ndim())?);
    let mut shape = vec![1; found.values.ndim()];
    shape[axis.0] = found.values.len_of(axis);
    let [low, high] = ends(tensor.dtype)?.map(f64::from);
    let sums = sums.get_or_insert_with(|| ArrayD::from_elem(IxDyn(&shape), [0.0; 2]));
    let channels = found.values.axis_iter(axis).zip(expected.values.axis_iter(axis));
    let known = found.known.axis_iter(axis).zip(expected.known.axis_iter(axis));
    for (sum, ((found, expected), (known, there))) in sums.iter_mut().zip(channels.zip(known)) {
        for ((&stored, &expected), (&known, &there)) in found.iter().zip(&expected).zip(known.iter().zip(&there)) {
            if known && there && stored > low && stored < high && expected.is_finite() {
                let own = real(tensor, stored);
                *sum = [sum[0] + own * expected, sum[1] + own * own];
            }
        }
    }
    Some(sums.mapv(|[products, squares]| {
        let factor = products / squares;
        if factor.is_finite() && factor > 0.0 {
            factor
        } else {
            1.0
        }
    }))
}

#[cfg(test)]
mod tests {
    use arenite::{DType, Slot};

    use super::*;

    fn traced(values: &[f64]) -> Traced {
        let shape = IxDyn(&[1, 2, values.len() / 2]);
        Traced {
            values: ArrayD::from_shape_vec(shape.clone(), values.to_vec()).expect("a shape"),
            known: ArrayD::from_elem(shape, true),
            unread: 0,
        }
    }

    /// Channels first in the trace, last in memory.
    fn tensor() -> TensorMeta {
        TensorMeta {
            names: vec!["x".into()],
            slot: Slot::default(),
            dtype: DType::I8,
            shape: vec![1, 3, 2],
            traced_perm: vec![0, 2, 1],
            scale: 0.5,
            zero_point: -10,
        }
    }

    #[test]
    fn factors_are_of_channels_and_of_values_that_are_inside() {
        let mut sums = None;
        // Reals 10, 20, (at the end); 5, 2.5, 0.
        let found = traced(&[10.0, 30.0, 127.0, 0.0, -5.0, -10.0]);
        let expected = traced(&[2.5, 5.0, 500.0, 5.0, 2.5, 0.0]);
        let factors = learnt(&mut sums, &tensor(), &found, &expected).expect("factors");
        assert_eq!(
            (factors.shape(), factors.as_slice()),
            (&[1, 2, 1][..], Some(&[0.25, 1.0][..]))
        );
        let mut all = Factors {
            of_steps: vec![None, Some(factors), Some(ArrayD::from_elem(IxDyn(&[1, 2, 1]), 1.01))],
        };
        all.keep_most(2);
        assert!(all.of_steps[2].is_none(), "sizes that hardly differ are the same");
        let mut there = traced(&[4.0, 8.0, 4.0, 1.0, 2.0, 3.0]);
        all.to_float(1, &mut there);
        assert_eq!(there.values, traced(&[1.0, 2.0, 1.0, 1.0, 2.0, 3.0]).values);
        all.to_own(1, &mut there);
        assert_eq!(there.values, traced(&[4.0, 8.0, 4.0, 1.0, 2.0, 3.0]).values);
        all.keep_most(0);
        assert!(all.of_steps.iter().all(Option::is_none));
    }
}
