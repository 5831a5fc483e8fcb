//! Channels of other sizes than the float model's, by step.

use ndarray::ArrayD;

use super::traced::Traced;

/// A layer whose channels differ by less than this on average, as a logarithm, is not equalised.
const EQUAL: f64 = 0.02;

/// By step: how many times larger the float model's values of each channel are; extents of one but for the channels. None where sizes are the same.
#[derive(Default)]
pub(super) struct Factors {
    pub(super) of_steps: Vec<Option<ArrayD<f64>>>,
}

impl Factors {
    /// The layers whose channels differ most are those that were equalised.
    pub(super) fn keep_most(&mut self, pairs: usize) {
        let apart = |factors: &Option<ArrayD<f64>>| {
            let factors = factors.as_ref()?;
            let squares: f64 = factors.iter().map(|factor| factor.ln().powi(2)).sum();
            Some((squares / factors.len().max(1) as f64).sqrt())
        };
        let mut by_step: Vec<(usize, f64)> = self
            .of_steps
            .iter()
            .map(apart)
            .enumerate()
            .filter_map(|(at, apart)| Some((at, apart?)))
            .collect();
        by_step.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (at, (step, apart)) in by_step.into_iter().enumerate() {
            if at >= pairs || apart < EQUAL {
                self.of_steps[step] = None;
            }
        }
    }

    /// Values of the int8 model become of the float model's sizes.
    pub(super) fn to_float(&self, step: usize, traced: &mut Traced) {
        if let Some(factors) = self.fitting(step, traced) {
            traced.values *= factors;
        }
    }

    /// Values of the float model become of the int8 model's sizes.
    pub(super) fn to_own(&self, step: usize, traced: &mut Traced) {
        if let Some(factors) = self.fitting(step, traced) {
            traced.values /= factors;
        }
    }

    fn fitting(&self, step: usize, traced: &Traced) -> Option<&ArrayD<f64>> {
        let factors = self.of_steps.get(step)?.as_ref()?;
        factors.broadcast(traced.values.raw_dim()).is_some().then_some(factors)
    }
}
