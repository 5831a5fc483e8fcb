//! Weights rounded so that a layer's output is nearest to the float layer's on the samples, not each weight to its own nearest integer.
//!
//! With the second moments H of what the weights meet, the error of an output is (w - q)' H (w - q): the distance of a point from a lattice. The nearest
//! plane method (Babai 1986; GPTQ, Frantar et al. 2023, is the same) rounds one weight after the other and lets those behind it make up for what was lost;
//! then single steps up or down are taken as long as the error falls, as adaptive rounding looks for (Nagel et al. 2020).

use super::moments::Moments;
use super::parameters::{Lattice, Layer, Stored};

/// Part of the mean of the diagonal that is added to it: samples say little of what they hardly have.
const DAMPING: f64 = 0.01;
/// Sweeps over the weights of an output, each of which must have found a step.
const SWEEPS: usize = 8;

/// Second moments around the mean of one group, and their factor.
struct Metric {
    /// `[i][j]`
    moments: Vec<f64>,
    /// The lower triangle `L` with `H = L L'`.
    factor: Vec<f64>,
    inputs: usize,
}

impl Metric {
    /// `None` where the samples give none.
    fn of(moments: &Moments, group: usize, inputs: usize) -> Option<Self> {
        let products = moments
            .products
            .get(group * inputs * inputs..)?
            .get(..inputs * inputs)?;
        let sums = moments.sums.get(group * inputs..)?.get(..inputs)?;
        let count = moments.count as f64;
        // In the units of the products.
        let mean: Vec<f64> = sums.iter().map(|&sum| sum as f64 / count / moments.unit).collect();
        let mut all = vec![0.0; inputs * inputs];
        for i in 0..inputs {
            for j in i..inputs {
                // The bias takes up the mean.
                let value = products[i * inputs + j] as f64 / count - mean[i] * mean[j];
                all[i * inputs + j] = value;
                all[j * inputs + i] = value;
            }
        }
        let diagonal = (0..inputs).map(|i| all[i * inputs + i]).sum::<f64>() / inputs.max(1) as f64;
        if !(diagonal.is_finite() && diagonal > 0.0) {
            return None;
        }
        for i in 0..inputs {
            all[i * inputs + i] += DAMPING * diagonal;
        }
        let factor = cholesky(&all, inputs)?;
        Some(Self {
            moments: all,
            factor,
            inputs,
        })
    }

    /// The stored weights of an output.
    fn rounded(&self, weights: &[f32], scale: f32, lattice: &Lattice, output: usize) -> Vec<i8> {
        let n = self.inputs;
        let scale = f64::from(scale);
        let wanted: Vec<f64> = weights.iter().map(|&weight| f64::from(weight) / scale).collect();
        let mut stored = vec![0_i8; n];
        let mut missing = vec![0.0; n];
        // Rounding errors of the weights behind, in each row of the factor.
        let mut lost = vec![0.0; n];
        for at in (0..n).rev() {
            let own = self.factor[at * n + at];
            stored[at] = lattice.nearest(output, at, (wanted[at] + lost[at] / own) as f32);
            missing[at] = wanted[at] - f64::from(stored[at]);
            let before = self.factor[at * n..at * n + at].iter();
            for (lost, factor) in lost.iter_mut().zip(before) {
                *lost += factor * missing[at];
            }
        }
        self.descend(&mut stored, &mut missing, lattice, output);
        stored
    }

    /// Single steps as long as the error falls.
    fn descend(&self, stored: &mut [i8], missing: &mut [f64], lattice: &Lattice, output: usize) {
        let n = self.inputs;
        let rows = self.moments.chunks_exact(n.max(1));
        let mut slope: Vec<f64> = rows
            .map(|row| row.iter().zip(missing.iter()).map(|(h, m)| h * m).sum())
            .collect();
        for _ in 0..SWEEPS {
            let mut found = false;
            for at in 0..n {
                let factor = f64::from(lattice.factor(output, at));
                let step = if slope[at] > 0.0 { factor } else { -factor };
                let own = self.moments[at * n + at] * factor * factor;
                let gain = 2.0 * step * slope[at] - own;
                let next = f64::from(stored[at]) + step;
                // More than rounding noise, so that every machine takes the same steps.
                if gain <= 1e-9 * own || next.abs() > f64::from(lattice.largest) * factor {
                    continue;
                }
                found = true;
                stored[at] = next as i8;
                missing[at] -= step;
                let row = &self.moments[at * n..(at + 1) * n];
                slope.iter_mut().zip(row).for_each(|(slope, h)| *slope -= step * h);
            }
            if !found {
                break;
            }
        }
    }

    #[cfg(test)]
    fn error(&self, weights: &[f32], scale: f32, stored: &[i8]) -> f64 {
        let n = self.inputs;
        let lost: Vec<f64> = weights
            .iter()
            .zip(stored)
            .map(|(w, q)| f64::from(w / scale) - f64::from(*q))
            .collect();
        (0..n * n)
            .map(|at| self.moments[at] * lost[at / n] * lost[at % n])
            .sum()
    }
}

/// The lower triangle of a positive matrix's factor.
fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut factor = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let (above, own) = factor.split_at(i * n);
            let other = if i == j { &own[..j] } else { &above[j * n..j * n + j] };
            let sum: f64 = own[..j].iter().zip(other).map(|(a, b)| a * b).sum();
            let rest = matrix[i * n + j] - sum;
            factor[i * n + j] = if i == j {
                if !(rest > 0.0 && rest.is_finite()) {
                    return None;
                }
                rest.sqrt()
            } else {
                rest / factor[j * n + j]
            };
        }
    }
    Some(factor)
}

/// A layer with its weights rounded by what they meet, on so many threads; `None` where the samples do not say what that is.
pub(super) fn optimised(
    layer: &Layer,
    stored: &Stored,
    moments: &Moments,
    groups: usize,
    threads: usize,
) -> Option<Vec<i8>> {
    let (inputs, outputs) = (layer.inputs, stored.scales.len());
    let each = outputs / groups.max(1);
    let metrics: Vec<Metric> = (0..groups)
        .map(|group| Metric::of(moments, group, inputs))
        .collect::<Option<_>>()?;
    let output = |at: usize| {
        let weights = &layer.weights[at * inputs..(at + 1) * inputs];
        metrics[at / each].rounded(weights, stored.scales[at], &stored.lattice, at)
    };
    let size = outputs.div_ceil(threads.max(1)).max(1);
    let all: Vec<usize> = (0..outputs).collect();
    if threads <= 1 {
        return Some(all.into_iter().flat_map(output).collect());
    }
    let parts: Vec<Vec<i8>> = std::thread::scope(|scope| {
        let parts = all.chunks(size).map(|part| {
            let output = &output;
            scope.spawn(move || part.iter().flat_map(|&at| output(at)).collect::<Vec<i8>>())
        });
        let parts: Vec<_> = parts.collect();
        parts.into_iter().map(|part| part.join().ok()).collect::<Option<_>>()
    })?;
    Some(parts.concat())
}

/// The bias that makes up for what the stored weights add on average.
pub(super) fn corrected_bias(layer: &Layer, stored: &Stored, moments: &Moments, groups: usize, input: f32) -> Vec<f32> {
    let (inputs, outputs) = (layer.inputs, stored.scales.len());
    let each = (outputs / groups.max(1)).max(1);
    let count = moments.count.max(1) as f64;
    let of = |at: usize| {
        let sums = moments
            .sums
            .get(at / each * inputs..)
            .and_then(|sums| sums.get(..inputs))
            .unwrap_or_default();
        let row = at * inputs..(at + 1) * inputs;
        let lost = layer.weights[row.clone()]
            .iter()
            .zip(&stored.weights[row])
            .map(|(&weight, &q)| f64::from(weight) - f64::from(q) * f64::from(stored.scales[at]));
        let shift: f64 = lost.zip(sums).map(|(lost, &sum)| lost * sum as f64 / count).sum();
        (f64::from(layer.bias[at]) + shift * f64::from(input)) as f32
    };
    (0..outputs).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::activations::Activations;
    use super::*;

    const BYTES: Lattice = Lattice {
        factors: Vec::new(),
        filter: 3,
        share: 3,
        largest: 127,
    };

    /// Numbers of two inputs that go together and one that is by itself.
    fn moments() -> Moments {
        let mut moments = Moments {
            count: 0,
            unit: 1.0,
            sums: vec![0; 3],
            products: vec![0; 9],
        };
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i64 % 61 - 30
        };
        for _ in 0..500 {
            let a = random();
            let x = [a + 20, a + random() / 8 + 20, random()];
            moments.count += 1;
            for i in 0..3 {
                moments.sums[i] += x[i];
                for j in i..3 {
                    moments.products[i * 3 + j] += x[i] * x[j];
                }
            }
        }
        moments
    }

    #[test]
    fn no_other_weights_near_by_have_less_error() {
        let metric = Metric::of(&moments(), 0, 3).expect("moments");
        for weights in [[0.34_f32, 0.44, -0.21], [1.47, -0.53, 0.02], [-0.5, 0.5, 0.5]] {
            let scale = 0.1;
            let stored = metric.rounded(&weights, scale, &BYTES, 0);
            let own = metric.error(&weights, scale, &stored);
            let nearest: Vec<i8> = weights.iter().map(|w| (w / scale).round() as i8).collect();
            assert!(own <= metric.error(&weights, scale, &nearest) + 1e-9);
            for change in 0..27_i8 {
                let steps = [change % 3 - 1, change / 3 % 3 - 1, change / 9 - 1];
                // Two steps at once are not looked for, where they are far from the first place.
                if steps.iter().filter(|step| **step != 0).count() > 1 {
                    continue;
                }
                let other: Vec<i8> = stored.iter().zip(steps).map(|(q, step)| q + step).collect();
                assert!(
                    own <= metric.error(&weights, scale, &other) + 1e-6,
                    "{weights:?} {stored:?} {steps:?}"
                );
            }
        }
    }

    #[test]
    fn weights_that_go_together_make_up_for_each_other() {
        let metric = Metric::of(&moments(), 0, 3).expect("moments");
        // Both are nearest to 3; together they are nearer to 7 than to 6.
        let stored = metric.rounded(&[3.4, 3.4, 0.0], 1.0, &BYTES, 0);
        assert_eq!(i32::from(stored[0]) + i32::from(stored[1]), 7, "{stored:?}");
    }

    #[test]
    fn weights_of_parts_are_multiples_of_their_factors() {
        let metric = Metric::of(&moments(), 0, 3).expect("moments");
        let lattice = Lattice {
            factors: vec![1, 3, 2],
            filter: 3,
            share: 2,
            largest: 7,
        };
        // Of the first output, two weights of factor 1 and one of factor 3.
        let stored = metric.rounded(&[3.4, 3.4, 25.0], 1.0, &lattice, 0);
        assert_eq!(
            (i32::from(stored[0]) + i32::from(stored[1]), stored[2]),
            (7, 21),
            "{stored:?}"
        );
        let stored = metric.rounded(&[9.0, -9.0, 4.2], 1.0, &lattice, 0);
        assert!(
            stored[..2].iter().all(|q| q.abs() <= 7) && stored[2] % 3 == 0,
            "{stored:?}"
        );
    }

    #[test]
    fn a_bias_takes_up_what_rounding_adds_on_average() {
        let layer = Layer {
            weights: vec![0.34, 0.44, -0.21],
            bias: vec![0.5],
            positions: 1,
            inputs: 3,
            shape: vec![1, 3],
        };
        let moments = moments();
        let stored = layer.nearest(0.25, vec![0.1], Activations::Int8);
        let bias = corrected_bias(&layer, &stored, &moments, 1, 0.25);
        let mean: Vec<f64> = moments
            .sums
            .iter()
            .map(|&sum| 0.25 * sum as f64 / moments.count as f64)
            .collect();
        let of = |weights: &dyn Fn(usize) -> f64| -> f64 { (0..3).map(|i| weights(i) * mean[i]).sum() };
        let float = of(&|i| f64::from(layer.weights[i])) + 0.5;
        let int8 = of(&|i| f64::from(stored.weights[i]) * f64::from(stored.scales[0])) + f64::from(bias[0]);
        assert!((float - int8).abs() < 1e-6, "{float} {int8}");
    }

    #[test]
    fn samples_that_say_nothing_round_nothing() {
        let nothing = Moments {
            count: 5,
            unit: 1.0,
            sums: vec![0; 2],
            products: vec![0; 4],
        };
        assert!(Metric::of(&nothing, 0, 2).is_none());
        assert!(Metric::of(&Moments::default(), 0, 2).is_none());
    }
}
