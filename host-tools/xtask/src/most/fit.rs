//! The least linear form that no sample exceeds.

use std::collections::{BTreeMap, BTreeSet};

/// Features by name, and what was counted.
pub type Point = (BTreeMap<String, f64>, f64);

/// Steps of the simplex after which the form that is there is taken; each lowers the mean.
const PIVOTS: usize = 5_000;

/// Features that join the program at a time, and how often.
const JOIN: usize = 12;
const ROUNDS: usize = 40;

/// A round that lowers the mean of what the form is, in parts of what was counted, by less, three times, is the last: what is left is one point's own.
const ENOUGH: f64 = 3e-4;

/// Numbers of features, none negative, whose form is nowhere below a point and on average as little above, in parts, as can be, up to `ENOUGH`; zeros are
/// left out. Every point has to have the feature `1`.
///
/// That is a linear program. Few of its thousand features are in the answer, so it begins with one, and those join that the dual says lower it most.
pub fn fit(points: &[Point]) -> BTreeMap<String, f64> {
    let names: BTreeSet<&str> = points
        .iter()
        .flat_map(|(features, _)| features.keys().map(String::as_str))
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    // Parts of the count that one of a feature is, the largest of each feature being 1.
    let columns: Vec<(f64, Vec<f64>)> = names
        .iter()
        .map(|name| {
            let part = |(features, is): &Point| features.get(*name).copied().unwrap_or(0.0) / is.max(1.0);
            let parts: Vec<f64> = points.iter().map(part).collect();
            let scale = parts.iter().copied().fold(0.0, f64::max).recip();
            (scale, parts.iter().map(|part| part * scale).collect())
        })
        .collect();
    let mean = |column: usize| columns[column].1.iter().sum::<f64>() / points.len() as f64;
    let mut chosen: Vec<usize> = (0..names.len()).filter(|&column| names[column] == "1").collect();
    let (mut found, mut least, mut slow) = (Vec::new(), f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let of: Vec<&[f64]> = chosen.iter().map(|&column| columns[column].1.as_slice()).collect();
        let (form, worth) = solve(&of);
        let value: f64 = form.iter().zip(&chosen).map(|(per, &column)| per * mean(column)).sum();
        let lowered = least - value;
        if found.is_empty() || lowered > 0.0 {
            (least, found) = (value, chosen.iter().copied().zip(form).collect());
        }
        slow = if lowered < ENOUGH { slow + 1 } else { 0 };
        if slow > 2 {
            break;
        }
        let gain = |column: usize| {
            let parts = columns[column].1.iter().zip(&worth);
            parts.map(|(part, worth)| part * worth).sum::<f64>() / mean(column)
        };
        let mut gains: Vec<(f64, usize)> = (0..names.len())
            .filter(|column| !chosen.contains(column))
            .map(|column| (gain(column), column))
            .filter(|(gain, _)| *gain > 1.0 + 1e-6)
            .collect();
        gains.sort_by(|a, b| b.0.total_cmp(&a.0));
        // Features that are the same for these points would keep others out.
        gains.dedup_by(|a, b| (a.0 - b.0).abs() < 1e-9);
        chosen.extend(gains.iter().take(JOIN).map(|(_, column)| *column));
    }
    let numbers = found
        .iter()
        .map(|&(column, per): &(usize, f64)| (names[column].to_owned(), per * columns[column].0));
    numbers.filter(|(_, per)| *per > 1e-9).collect()
}

fn value(form: &BTreeMap<String, f64>, features: &BTreeMap<String, f64>) -> f64 {
    let each = form
        .iter()
        .map(|(name, per)| per * features.get(name).copied().unwrap_or(0.0));
    each.sum()
}

/// The largest count, in parts of the form.
pub fn above(form: &BTreeMap<String, f64>, points: &[Point]) -> f64 {
    let parts = points.iter().map(|(features, is)| is / value(form, features).max(1.0));
    parts.fold(0.0, f64::max)
}

/// The form in parts of the counts, on average.
pub fn mean(form: &BTreeMap<String, f64>, points: &[Point]) -> f64 {
    let parts = points.iter().map(|(features, is)| value(form, features) / is.max(1.0));
    parts.sum::<f64>() / points.len().max(1) as f64
}

/// Of the program of these features (by point): a number for each, and what each point is worth. Its dual (at most so much of each feature) starts from
/// nothing, so it is what is solved.
fn solve(features: &[&[f64]]) -> (Vec<f64>, Vec<f64>) {
    let (rows, columns) = (features.len(), features.first().map_or(0, |feature| feature.len()));
    let width = columns + rows + 1;
    let mut table: Vec<f64> = vec![0.0; rows * width];
    for (row, values) in features.iter().enumerate() {
        let line = &mut table[row * width..][..width];
        line[..columns].copy_from_slice(values);
        line[columns + row] = 1.0;
        // A little more, so that no two are the same.
        let mean = values.iter().sum::<f64>() / columns as f64;
        line[width - 1] = mean * (1.0 + 1e-7 * row as f64);
    }
    let mut basis: Vec<usize> = (columns..columns + rows).collect();
    let mut objective: Vec<f64> = vec![0.0; width];
    objective[..columns].fill(-1.0);
    for _ in 0..PIVOTS {
        let least = objective[..width - 1]
            .iter()
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(b.1));
        let Some((enters, _)) = least.filter(|(_, value)| **value < -1e-9) else {
            break;
        };
        let ratio = |row: usize| table[row * width + width - 1] / table[row * width + enters];
        let leaving = (0..rows)
            .filter(|row| table[row * width + enters] > 1e-9)
            .min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)));
        let Some(leaves) = leaving else { break };
        basis[leaves] = enters;
        let by = table[leaves * width + enters];
        table[leaves * width..][..width]
            .iter_mut()
            .for_each(|value| *value /= by);
        let pivot = table[leaves * width..][..width].to_vec();
        let clear = |line: &mut [f64]| {
            let by = line[enters];
            if by != 0.0 {
                line.iter_mut()
                    .zip(&pivot)
                    .for_each(|(value, pivot)| *value -= by * pivot);
            }
        };
        for row in (0..rows).filter(|row| *row != leaves) {
            clear(&mut table[row * width..][..width]);
        }
        clear(&mut objective);
    }
    let mut worth = vec![0.0; columns];
    for (row, &of) in basis.iter().enumerate().filter(|(_, of)| **of < columns) {
        worth[of] = table[row * width + width - 1];
    }
    (objective[columns..columns + rows].to_vec(), worth)
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_found_again_and_never_below() {
        let mut points = Vec::new();
        for a in 1..12 {
            for b in 1..9 {
                let (a, b) = (f64::from(a), f64::from(b));
                let features = [("1", 1.0), ("a", a), ("b", b), ("a b", a * b), ("a a", a * a)];
                let features = features.map(|(name, value)| (name.to_owned(), value));
                points.push((BTreeMap::from(features), 40.0 + 3.0 * a + 7.0 * a * b));
            }
        }
        let form = fit(&points);
        let expected = [("1", 40.0), ("a", 3.0), ("a b", 7.0)];
        assert_eq!(form.keys().collect::<Vec<_>>(), ["1", "a", "a b"], "{form:?}");
        for (name, per) in expected {
            assert!((form[name] - per).abs() < 1e-6, "{form:?}");
        }
        assert!((above(&form, &points) - 1.0).abs() < 1e-6 && (mean(&form, &points) - 1.0).abs() < 1e-3);
        // One count that is no sum of them lifts the form.
        points[20].1 += 30.0;
        let form = fit(&points);
        assert!(above(&form, &points) < 1.0 + 1e-6, "{form:?}");
    }
}
