//! The transforms of F(2x2, 3x3) into whole numbers: of a tile of 4 x 4 inputs, and of a kernel of 3 x 3 weights, four times as large.

/// Tiles that share the loads of weights.
pub(super) const TILES: usize = 2;
/// Output channels that share the loads of inputs.
pub(super) const LANES: usize = 4;
/// Sums of a row of outputs: of four channels the four columns of both tiles.
pub(super) const SUMS: usize = LANES * TILES * 2;
/// Elements of a transformed tile.
pub(super) const POINTS: usize = 16;

/// The transform of 4 x 4 pixels, channel by channel, into every other element of `tile`, `[channels, 16, 2]`.
///
/// # Safety
/// The pixels have as many readable bytes as `channels`, and `tile` is the first or second element of that many times 16 pairs.
#[inline(never)]
pub(super) unsafe fn inputs(pixels: &[[*const i8; 4]; 4], channels: usize, tile: *mut i16) {
    let [top, upper, lower, bottom] = pixels;
    for c in 0..channels {
        let row = |pixels: &[*const i8; 4]| {
            // SAFETY: `c < channels`, the bytes of each pixel (fn docs).
            points(pixels.map(|pixel| i32::from(unsafe { *pixel.add(c) })))
        };
        let store = |i: usize, j: usize, value: i32| {
            // SAFETY: `i < 4`, `j < 4` and `c < channels`: every other element of `channels` times 16 pairs (fn docs).
            unsafe { tile.add((c * POINTS + i * 4 + j) * TILES).write(value as i16) }
        };
        // Two rows are held, the others pass by: more do not fit the registers.
        let (upper, lower) = (row(upper), row(lower));
        for (j, (&b, &c)) in upper.iter().zip(&lower).enumerate() {
            store(1, j, b + c);
            store(2, j, c - b);
        }
        for (j, (a, &c)) in row(top).into_iter().zip(&lower).enumerate() {
            store(0, j, a - c);
        }
        for (j, (d, &b)) in row(bottom).into_iter().zip(&upper).enumerate() {
            store(3, j, b - d);
        }
    }
}

/// Adds row `ROW` of the points, `[4, channels, tiles]`, to four times the sums: `[channels, tiles, columns]` of the upper row of outputs, and of the lower.
/// The first row that tells of them sets them.
#[inline(always)]
pub(super) fn sums<const ROW: usize>(
    points: &[i32; 4 * LANES * TILES],
    upper: &mut [i32; SUMS],
    lower: &mut [i32; SUMS],
) {
    let (points, _) = points.as_chunks::<{ LANES * TILES }>();
    let [a, b, c, d] = points else { return };
    let (upper, _) = upper.as_chunks_mut::<2>();
    let (lower, _) = lower.as_chunks_mut::<2>();
    let points = a.iter().zip(b).zip(c).zip(d);
    for ((upper, lower), (((&a, &b), &c), &d)) in upper.iter_mut().zip(lower).zip(points) {
        let columns = [a.wrapping_add(b).wrapping_add(c), b.wrapping_sub(c).wrapping_sub(d)];
        for ((upper, lower), value) in upper.iter_mut().zip(lower).zip(columns) {
            match ROW {
                0 => *upper = value,
                1 => (*upper, *lower) = (upper.wrapping_add(value), value),
                2 => (*upper, *lower) = (upper.wrapping_add(value), lower.wrapping_sub(value)),
                _ => *lower = lower.wrapping_sub(value),
            }
        }
    }
}

/// A line of four inputs.
#[inline(always)]
fn points([a, b, c, d]: [i32; 4]) -> [i32; 4] {
    [a - c, b + c, c - b, b - d]
}

/// Twice the transform of a line of three weights.
#[cfg(any(test, packing))]
#[inline(always)]
fn twice([a, b, c]: [i16; 3]) -> [i16; 4] {
    [2 * a, a + b + c, a - b + c, 2 * c]
}

/// Four times the transform of a kernel, row by row.
#[cfg(any(test, packing))]
pub(super) fn weights(kernel: &[i8; 9]) -> [i16; POINTS] {
    let [a, b, c, d, e, f, g, h, i] = kernel.map(i16::from);
    let [top, middle, bottom] = [[a, b, c], [d, e, f], [g, h, i]].map(twice);
    let mut columns = [[0; 4]; 4];
    for (column, ((&a, &b), &c)) in columns.iter_mut().zip(top.iter().zip(&middle).zip(&bottom)) {
        *column = twice([a, b, c]);
    }
    let [p, q, r, s] = columns;
    let mut points = [0; POINTS];
    let (rows, _) = points.as_chunks_mut::<4>();
    for (row, (((p, q), r), s)) in rows.iter_mut().zip(p.into_iter().zip(q).zip(r).zip(s)) {
        *row = [p, q, r, s];
    }
    points
}

/// Whether these are the points of any kernel, as packing computes them.
///
/// Of a line of four the inner two sum up to the outer two, row by row and column by column, which leaves nine numbers of the sixteen: four times the taps,
/// which are whole and of a byte.
#[inline(always)]
pub(super) fn is_of_bytes(points: &[i16; POINTS]) -> bool {
    #[rustfmt::skip]
    let [
        a, ab, ac, c,
        ad, all, without_middle, cf,
        ag, ag_less, ci_less, ci,
        g, gh, gi, i,
    ] = points.map(i32::from);
    let line = |[p, q, r, s]: [i32; 4]| (p + s) ^ (q + r);
    let rows = line([a, ab, ac, c])
        | line([ad, all, without_middle, cf])
        | line([ag, ag_less, ci_less, ci])
        | line([g, gh, gi, i]);
    let columns = line([a, ad, ag, g])
        | line([ab, all, ag_less, gh])
        | line([ac, without_middle, ci_less, gi])
        | line([c, cf, ci, i]);
    // Twice the sum of an edge's taps, less twice that with the middle one taken away.
    let (b, d, f, h) = (ab - ac, ad - ag, cf - ci, gh - gi);
    // The middle column, four times, less its ends.
    let e = 2 * (all - without_middle) - b - h;
    let tap = |four_times: i32| (four_times + 4 * 128) & !(4 * 255);
    let taps = tap(a) | tap(b) | tap(c) | tap(d) | tap(e) | tap(f) | tap(g) | tap(h) | tap(i);
    rows | columns | taps == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        /// The tile's four convolutions in products of points, against the definition.
        #[test]
        fn products_of_points_are_the_convolution(kernel: [i8; 9], input: [i8; 16]) {
            let mut tile = [0_i16; POINTS * TILES];
            let pixels = core::array::from_fn(|i| core::array::from_fn(|j| &raw const input[4 * i + j]));
            // SAFETY: `pixels` are 16 bytes of `input`, one channel each, and `tile` has `POINTS * TILES` elements.
            unsafe { inputs(&pixels, 1, tile.as_mut_ptr()) };
            let points = weights(&kernel);
            let product = |i: usize, j: usize| i32::from(points[4 * i + j]) * i32::from(tile[(4 * i + j) * TILES]);
            let line = |[a, b, c, d]: [i32; 4]| [a + b + c, b - c - d];
            let rows = core::array::from_fn::<_, 4, _>(|i| line(core::array::from_fn(|j| product(i, j))));
            for (x, y) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                let sum = line(rows.map(|row| row[x]))[y];
                let wanted: i32 = (0..9).map(|tap| i32::from(kernel[tap]) * i32::from(input[4 * (y + tap / 3) + x + tap % 3])).sum();
                prop_assert_eq!(sum, 4 * wanted);
            }
        }

        /// Any kernel's points are accepted; with one of them changed they are those of another kernel, or none.
        #[test]
        fn points_of_bytes_are_told_from_others(kernel: [i8; 9], at in 0..POINTS, change in 1..=u16::MAX) {
            let mut points = weights(&kernel);
            prop_assert!(is_of_bytes(&points));
            points[at] = points[at].wrapping_add(change as i16);
            prop_assert!(!is_of_bytes(&points));
        }
    }

    #[test]
    fn the_largest_weights_and_inputs_fit() {
        for value in [i8::MIN, i8::MAX] {
            assert!(is_of_bytes(&weights(&[value; 9])));
            let checkered = core::array::from_fn(|tap| if tap % 2 == 0 { value } else { !value });
            assert!(is_of_bytes(&weights(&checkered)));
        }
    }
}
