//! Statistics of a few hundred samples: confidence of a rate and of the difference of two.

use serde::Serialize;

/// Both ends of the Wilson score interval of a rate at 95 %: `successes` of `trials`.
///
/// Formula: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927. Without trials nothing is
/// known: 0 to 1.
pub(super) fn wilson(successes: usize, trials: usize) -> [f64; 2] {
    /// The 97.5 % quantile of the normal distribution.
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 {
        return [0.0, 1.0];
    }
    let (n, rate) = (trials as f64, successes as f64 / trials as f64);
    let scale = 1.0 + Z * Z / n;
    let centre = rate + Z * Z / (2.0 * n);
    let half = Z * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At the ends the interval touches 0 and 1, which rounding must not miss.
    let low = if successes == 0 { 0.0 } else { (centre - half) / scale };
    let high = if successes == trials {
        1.0
    } else {
        (centre + half) / scale
    };
    [low, high]
}

/// How the answers of two runs on the same samples compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Pair {
    /// Indices of the two evaluations.
    pub(super) between: [usize; 2],
    /// Samples for which both chose the same class.
    pub(super) same: usize,
    /// `same` as a part of all.
    pub(super) agreement: f64,
    /// Samples that the first alone has right.
    pub(super) only_first: usize,
    /// Samples that the second alone has right.
    pub(super) only_second: usize,
    /// McNemar's exact test: how likely so uneven a split is where both are right equally often.
    pub(super) p_value: f64,
}

impl Pair {
    /// Compares the classes that two runs chose with the right ones.
    pub(super) fn of(between: [usize; 2], [first, second]: [&[usize]; 2], right: &[usize]) -> Self {
        let each = || first.iter().zip(second).zip(right);
        let same = each().filter(|((a, b), _)| a == b).count();
        let only_first = each().filter(|((a, b), right)| a == right && b != right).count();
        let only_second = each().filter(|((a, b), right)| a != right && b == right).count();
        Self {
            between,
            same,
            agreement: same as f64 / right.len().max(1) as f64,
            only_first,
            only_second,
            p_value: mcnemar(only_first, only_second),
        }
    }
}

/// The two-sided exact binomial test on the samples that one of two alone has right.
///
/// Q. McNemar, "Note on the sampling error of the difference between correlated proportions", 1947, in its exact form.
fn mcnemar(only_first: usize, only_second: usize) -> f64 {
    let (n, few) = (only_first + only_second, only_first.min(only_second));
    // Terms of the binomial distribution, as logarithms: 2^-n alone is 0 for some thousand samples.
    let mut term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for k in 0..=few {
        tail += term.exp();
        term += ((n - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
    }

    // Expected values: the formula in decimals of 60 digits; sums of binomial coefficients as fractions.
    #[test]
    fn intervals_are_those_of_exact_arithmetic() {
        for (successes, trials, [low, high]) in [
            (355, 360, [0.967_904_150_412_447_7, 0.994_053_294_279_100_3]),
            (3, 7, [0.158_219_855_251_469_7, 0.749_541_635_472_342_8]),
            (0, 10, [0.0, 0.277_532_799_862_889_3]),
            (10, 10, [0.722_467_200_137_110_7, 1.0]),
        ] {
            let [found_low, found_high] = wilson(successes, trials);
            near(found_low, low);
            near(found_high, high);
        }
        assert_eq!(wilson(0, 0), [0.0, 1.0]);
    }

    #[test]
    fn mcnemar_is_the_exact_binomial_test() {
        near(mcnemar(0, 0), 1.0);
        near(mcnemar(1, 0), 1.0);
        near(mcnemar(0, 6), 0.03125);
        near(mcnemar(8, 2), 0.109375);
        near(mcnemar(5, 5), 1.0);
        // 2^-4000 is below the smallest f64.
        near(mcnemar(2056, 1944), 0.079_235_333_916_138_96);
    }
}
