//! The numbers of an input's samples, and those that lie far outside of all others.

/// How many samples, or columns, a warning lists.
pub(super) const LISTED: usize = 5;

/// A sample whose largest magnitude is so many times the median of all samples' is broken rather than rare.
const FAR: f32 = 100.0;

/// Fewer samples have no median that tells.
const FEWEST: usize = 4;

/// Values whose logarithm of two is counted: of 2^-64 to 2^63.
const OCTAVES: usize = 128;

/// The numbers of an input.
pub(super) struct Numbers {
    /// Of each sample, its value of the largest magnitude and where it stands.
    largest: Vec<(f32, usize)>,
    ends: [f32; 2],
    /// All values are whole numbers from 0 to 255.
    bytes: bool,
    squares: f64,
    count: u64,
    /// Magnitudes by octave, without zeros.
    octaves: [u64; OCTAVES],
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            largest: Vec::new(),
            ends: [f32::INFINITY, f32::NEG_INFINITY],
            bytes: true,
            squares: 0.0,
            count: 0,
            octaves: [0; OCTAVES],
        }
    }
}

impl Numbers {
    /// Takes a sample's values.
    pub(super) fn add(&mut self, values: &[f32]) {
        let mut largest = (0.0_f32, 0);
        for (at, &value) in values.iter().enumerate() {
            if value.abs() > largest.0.abs() {
                largest = (value, at);
            }
            self.ends = [self.ends[0].min(value), self.ends[1].max(value)];
            self.bytes &= (0.0..=255.0).contains(&value) && value.fract() == 0.0;
            self.squares += f64::from(value) * f64::from(value);
            if value != 0.0 {
                self.octaves[octave(value.abs())] += 1;
            }
        }
        self.count += values.len() as u64;
        self.largest.push(largest);
    }

    /// The least and the greatest value.
    pub(super) fn ends(&self) -> [f32; 2] {
        self.ends
    }

    /// The root of the mean square.
    pub(super) fn rms(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt()
    }

    /// Whether the values are those of bytes, and more than a few grey levels of them.
    pub(super) fn are_bytes(&self) -> bool {
        self.bytes && self.ends[1] > 64.0
    }

    /// The share of values, zeros aside, whose magnitude is below `limit`, to the octave.
    pub(super) fn share_below(&self, limit: f32) -> f64 {
        let all: u64 = self.octaves.iter().sum();
        let below: u64 = self.octaves[..octave(limit)].iter().sum();
        below as f64 / all.max(1) as f64
    }

    /// The warning about samples far beyond the others.
    pub(super) fn outliers(&self, name: &str) -> Option<String> {
        if self.largest.len() < FEWEST {
            return None;
        }
        let mut magnitudes: Vec<f32> = self.largest.iter().map(|(value, _)| value.abs()).collect();
        magnitudes.sort_by(f32::total_cmp);
        let median = magnitudes[magnitudes.len() / 2];
        let is_far = |value: f32| median > 0.0 && value.abs() / FAR > median;
        let far: Vec<usize> = (0..self.largest.len())
            .filter(|&sample| is_far(self.largest[sample].0))
            .collect();
        let &first = far.first()?;
        let (value, at) = self.largest[first];
        Some(format!(
            "--calibrate: `{name}` is {value:?} at element {at} of sample {first}, where half of the samples stay within {median:?}: \
             one scale for both loses the others; \
             leave out {}, or mend what measured them",
            listed(&far)
        ))
    }
}

/// The first of these numbers, for people.
pub(super) fn listed(numbers: &[usize]) -> String {
    let first: Vec<String> = numbers.iter().take(LISTED).map(ToString::to_string).collect();
    let more = if numbers.len() > LISTED { ", …" } else { "" };
    format!("sample {}{more}", first.join(", "))
}

fn octave(magnitude: f32) -> usize {
    (magnitude.log2().floor() + (OCTAVES / 2) as f32).clamp(0.0, (OCTAVES - 1) as f32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[&[f32]]) -> Numbers {
        let mut numbers = Numbers::default();
        samples.iter().for_each(|sample| numbers.add(sample));
        numbers
    }

    #[test]
    fn a_value_far_beyond_all_other_samples_is_named_with_its_place() {
        let usual: &[f32] = &[0.5, -1.0, 0.25];
        let text = of(&[usual, usual, &[0.0, -1e30, 1.0], usual, usual]).outliers("x");
        let text = text.expect("a warning");
        for part in ["`x`", "element 1 of sample 2", "stay within 1.0", "sample 2"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(of(&[usual, usual, &[0.0, -100.0, 1.0], usual]).outliers("x"), None);
        assert!(of(&[usual, usual, &[0.0, -100.1, 1.0], usual]).outliers("x").is_some());
        // Of three samples none is far from the others; sparse samples have no median.
        assert_eq!(of(&[usual, usual, &[1e30]]).outliers("x"), None);
        assert_eq!(of(&[&[0.0], &[0.0], &[0.0], &[5.0]]).outliers("x"), None);
    }

    #[test]
    fn bytes_are_whole_numbers_of_more_than_a_few_levels() {
        assert!(of(&[&[0.0, 128.0], &[255.0]]).are_bytes());
        assert!(!of(&[&[0.0, 0.5], &[255.0]]).are_bytes());
        assert!(!of(&[&[0.0, -1.0], &[255.0]]).are_bytes());
        assert!(!of(&[&[256.0]]).are_bytes());
        assert!(!of(&[&[0.0, 16.0]]).are_bytes());
    }

    #[test]
    fn shares_are_counted_by_octaves() {
        let numbers = of(&[&[0.25, 0.5, 1.0, 2.0, 0.0, -4.0, 8.0, 16.0, 32.0]]);
        assert_eq!(numbers.share_below(1.0), 0.25);
        assert_eq!(numbers.share_below(1e-30), 0.0);
        assert_eq!(numbers.ends(), [-4.0, 32.0]);
    }
}
