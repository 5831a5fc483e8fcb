//! Warnings about samples that calibrate a network badly: broken, repeated or empty ones, another scaling or layout than the network's, and inputs of which one
//! scale loses most. Each names the input, the samples where they are few, and what to do.

mod layout;
mod numbers;
mod scale;

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use self::layout::Layout;
use self::numbers::{Numbers, listed};
use self::scale::Columns;
pub(super) use self::scale::Integers;
use super::activations::Activations;
use super::evaluate::{Samples, floats};
use super::form::is_real;
use crate::error::Result;
use crate::graph::{Graph, TensorId};
use crate::weights::Weights;

/// Signal over noise of the answers, in dB, below which they are hardly those of the float network.
const LOST_DB: f64 = 10.0;

/// The warnings about samples for a network of f32. `bytes` says that the samples were bytes of stated values: their scaling is known then.
///
/// # Errors
/// Samples that cannot be read again, weights that are not there.
pub(super) fn find(
    graph: &Graph,
    weights: &Weights,
    samples: &Samples,
    integers: &Integers<'_>,
    bytes: bool,
) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    let inputs: Vec<(usize, TensorId)> = graph.inputs.iter().copied().enumerate().collect();
    let real: Vec<_> = inputs.iter().filter(|(_, id)| is_real(graph, *id)).copied().collect();
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let (mut repeated, mut empty) = (Vec::new(), Vec::new());
    let mut all: Vec<_> = real
        .iter()
        .map(|&(_, id)| Input::new(&graph.tensor(id).shape))
        .collect();
    for (number, sample) in samples.iter().enumerate() {
        let mut hasher = DefaultHasher::new();
        for value in sample {
            value.bytes()?.hash(&mut hasher);
        }
        if *seen.entry(hasher.finish()).or_insert(number) != number {
            repeated.push(number);
        }
        let mut zero = !real.is_empty();
        for (input, &(index, _)) in all.iter_mut().zip(&real) {
            if let Some(value) = sample.get(index) {
                let values: Vec<f32> = floats(&value.bytes()?).collect();
                zero &= values.iter().all(|&value| value == 0.0);
                input.add(&values);
            }
        }
        if zero {
            empty.push(number);
        }
    }
    let count = samples.len();
    if count > 1 && repeated.len() + 1 == count {
        warnings.push(format!(
            "--calibrate: all {count} samples are the same: the ranges are those of one; give samples as the device will meet them"
        ));
    } else if 2 * repeated.len() > count {
        warnings.push(format!(
            "--calibrate: {} of {count} samples repeat others, first {}: they add nothing; give as many unlike ones",
            repeated.len(),
            listed(&repeated)
        ));
    }
    if !empty.is_empty() && empty.len() < count {
        warnings.push(format!(
            "--calibrate: {} of {count} samples are all zero ({}): leave them out, unless the device meets such inputs",
            empty.len(),
            listed(&empty)
        ));
    }
    for (input, &(_, id)) in all.iter().zip(&real) {
        let name = &graph.tensor(id).name;
        warnings.extend(input.numbers.outliers(name));
        warnings.extend(input.layout.as_ref().and_then(|layout| layout.other(name)));
        let raw = !bytes && input.numbers.are_bytes() && scale::expects_less(graph, weights, id, input.numbers.rms())?;
        warnings.extend(raw.then(|| scale::unscaled_bytes(name)));
        let range = input.numbers.ends();
        warnings.extend(
            input
                .columns
                .as_ref()
                .and_then(|columns| columns.lost(graph, id, range, integers)),
        );
        warnings.extend(scale::logarithm(graph, id, &input.numbers, integers));
    }
    Ok(warnings)
}

/// The warning about answers that are hardly the float network's, even on the samples that calibrated it.
pub(super) fn lost(snr_db: Option<f64>, activations: Activations) -> Option<String> {
    let db = snr_db.filter(|&db| db < LOST_DB)?;
    let finer = match activations {
        Activations::Int8 => "--dtype int16x8, or ",
        Activations::Int16 => "",
    };
    Some(format!(
        "the answers are only {db:.1} dB from the float network's on the samples that calibrated it: \
         {finer}--keep-f32 with the layers that `arenite diff --float` names"
    ))
}

/// Properties of the samples of one input.
struct Input {
    numbers: Numbers,
    layout: Option<Layout>,
    columns: Option<Columns>,
}

impl Input {
    fn new(shape: &[usize]) -> Self {
        Self {
            numbers: Numbers::default(),
            layout: Layout::of(shape),
            columns: Columns::of(shape),
        }
    }

    fn add(&mut self, values: &[f32]) {
        self.numbers.add(values);
        if let Some(layout) = &mut self.layout {
            layout.add(values);
        }
        if let Some(columns) = &mut self.columns {
            columns.add(values);
        }
    }
}
