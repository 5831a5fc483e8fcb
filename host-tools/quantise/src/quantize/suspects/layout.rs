//! Pictures whose channels lie elsewhere than the network's: the rows tell. A pixel is nearest to the one above it, and how far that lies in memory
//! follows from the layout.

/// Channels of a picture that a layout can be told of.
const CHANNELS: std::ops::RangeInclusive<usize> = 2..=4;

/// Rows and pixels of a row at the least.
const SMALLEST: usize = 8;

/// As many times as far from the pixel above by the network's layout as by the other one.
const FARTHER: f64 = 1.5;

/// Distances between the pixels above one another, by both layouts.
pub(super) struct Layout {
    /// The network has the channels last.
    last: bool,
    /// `[channels, rows, columns]`.
    extents: [usize; 3],
    /// Sums of differences to the element a row of one channel ahead, and a row of all channels.
    sums: [f64; 2],
}

impl Layout {
    /// Of an input of one picture of two to four channels.
    pub(super) fn of(shape: &[usize]) -> Option<Self> {
        let &[1, a, b, c] = shape else { return None };
        let (last, extents) = match (CHANNELS.contains(&a), CHANNELS.contains(&c)) {
            (true, false) => (false, [a, b, c]),
            (false, true) => (true, [c, a, b]),
            _ => return None,
        };
        (extents[1] >= SMALLEST.max(2 * extents[0]) && extents[2] >= SMALLEST).then_some(Self {
            last,
            extents,
            sums: [0.0; 2],
        })
    }

    /// Takes a sample's values.
    pub(super) fn add(&mut self, values: &[f32]) {
        let [channels, _, columns] = self.extents;
        for (sum, row) in self.sums.iter_mut().zip([columns, columns * channels]) {
            let ahead = values.get(row..).unwrap_or_default();
            let difference: f64 = values.iter().zip(ahead).map(|(a, b)| f64::from((a - b).abs())).sum();
            *sum += difference / ahead.len().max(1) as f64;
        }
    }

    /// The warning about samples in the other layout.
    pub(super) fn other(&self, name: &str) -> Option<String> {
        let [one, all] = self.sums;
        let (own, other) = if self.last { (all, one) } else { (one, all) };
        let [channels, rows, columns] = self.extents;
        let (is, wanted, transposition) = if self.last {
            (
                "[channels, rows, columns]",
                format!("[{rows}, {columns}, {channels}]"),
                "(0, 2, 3, 1)",
            )
        } else {
            (
                "[rows, columns, channels]",
                format!("[{channels}, {rows}, {columns}]"),
                "(0, 3, 1, 2)",
            )
        };
        (other > 0.0 && own > FARTHER * other).then(|| {
            format!(
                "--calibrate: the samples of `{name}` look like pictures stored as {is}, and the network takes {wanted}: give them their own shape and \
                 transpose them, in NumPy by .transpose{transposition}; a reshape does not move pixels"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNELS: usize = 3;
    const ROWS: usize = 10;
    const COLUMNS: usize = 13;

    /// A picture that changes slowly along its rows and columns, with channels of other brightness.
    fn pixel(channel: usize, row: usize, column: usize) -> f32 {
        let (y, x) = (row as f32, column as f32);
        (y * 0.31).sin() + (x * 0.47).cos() + channel as f32 * 0.8
    }

    fn picture(last: bool) -> Vec<f32> {
        let mut values = vec![0.0; CHANNELS * ROWS * COLUMNS];
        for channel in 0..CHANNELS {
            for row in 0..ROWS {
                for column in 0..COLUMNS {
                    let at = if last {
                        (row * COLUMNS + column) * CHANNELS + channel
                    } else {
                        (channel * ROWS + row) * COLUMNS + column
                    };
                    values[at] = pixel(channel, row, column);
                }
            }
        }
        values
    }

    fn told(shape: &[usize], values: &[f32]) -> Option<String> {
        let mut layout = Layout::of(shape).expect("a picture");
        layout.add(values);
        layout.other("x")
    }

    #[test]
    fn pictures_in_the_other_layout_are_told_and_others_are_not() {
        let (first, last) = ([1, CHANNELS, ROWS, COLUMNS], [1, ROWS, COLUMNS, CHANNELS]);
        assert_eq!(told(&first, &picture(false)), None);
        assert_eq!(told(&last, &picture(true)), None);
        let text = told(&first, &picture(true)).expect("channels are last");
        assert!(
            text.contains("takes [3, 10, 13]") && text.contains("(0, 3, 1, 2)"),
            "{text}"
        );
        let text = told(&last, &picture(false)).expect("channels are first");
        assert!(
            text.contains("takes [10, 13, 3]") && text.contains("(0, 2, 3, 1)"),
            "{text}"
        );
    }

    #[test]
    fn noise_and_shapes_that_are_no_pictures_tell_nothing() {
        let mut state = 7_u32;
        let noise: Vec<f32> = (0..CHANNELS * ROWS * COLUMNS)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state as f32 / u32::MAX as f32
            })
            .collect();
        assert_eq!(told(&[1, CHANNELS, ROWS, COLUMNS], &noise), None);
        assert_eq!(told(&[1, CHANNELS, ROWS, COLUMNS], &vec![0.5; noise.len()]), None);
        for shape in [
            &[1, 1, 28, 28][..],
            &[1, 28, 28, 1],
            &[1, 16, 16, 16],
            &[1, 3, 4, 40],
            &[2, 3, 16, 16],
            &[3, 16, 16],
        ] {
            assert!(Layout::of(shape).is_none(), "{shape:?}");
        }
    }
}
