//! Sums along axes, four neighbours at a time, at addresses that are checked once and not for each element.

use crate::cells::{Element, Src};
use crate::ops::size::size;

/// Neighbours whose sums are taken at a time.
const LANES: usize = 4;

/// Calls `put` with the sums of `[a, r, b, s, c]` over `r` and `s`, in order, modulo 2^32. `None` where the operand is shorter than that.
#[inline(always)]
pub(crate) fn sums<T: Element + Into<i32>>(input: Src<'_, T>, shape: [u32; 5], mut put: impl FnMut(i32)) -> Option<()> {
    if size(&shape)? as usize > input.len() {
        return None;
    }
    let [a, r, b, s, c] = shape.map(|n| n as usize);
    let line = s.wrapping_mul(c);
    let row = b.wrapping_mul(line);
    let mut image = input.as_ptr();
    for _ in 0..a {
        let mut begin = image;
        for _ in 0..b {
            let (mut x, mut left) = (begin, c);
            // SAFETY: neighbours of the operand, whose length is that of all axes.
            unsafe {
                while left >= LANES {
                    along::<T, LANES>(x, [r, row, s, c]).into_iter().for_each(&mut put);
                    x = x.wrapping_add(LANES);
                    left -= LANES;
                }
                while left > 0 {
                    along::<T, 1>(x, [r, row, s, c]).into_iter().for_each(&mut put);
                    x = x.wrapping_add(1);
                    left -= 1;
                }
            }
            begin = begin.wrapping_add(line);
        }
        image = image.wrapping_add(r.wrapping_mul(row));
    }
    Some(())
}

/// The sums of what lies along two axes of (extent, step), for each of `N` neighbours.
///
/// # Safety
/// All of it is there.
#[inline(always)]
unsafe fn along<T: Element + Into<i32>, const N: usize>(
    x: *const T,
    [rows, row, columns, column]: [usize; 4],
) -> [i32; N] {
    let (mut sums, mut line) = ([0_i32; N], x);
    for _ in 0..rows {
        let mut at = line;
        for _ in 0..columns {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: as the caller promises.
                let x: i32 = unsafe { at.wrapping_add(lane).read() }.into();
                *sum = sum.wrapping_add(x);
            }
            at = at.wrapping_add(column);
        }
        line = line.wrapping_add(row);
    }
    sums
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    fn sums_of(input: &[i8], shape: [u32; 5]) -> Option<Vec<i32>> {
        let mut found = Vec::new();
        sums(Src::from_slice(input), shape, |sum| found.push(sum))?;
        Some(found)
    }

    #[test]
    fn sums_are_the_formula() {
        let input: Vec<i8> = (0..700).map(|i| (i * 37 % 256) as i8).collect();
        for shape in [
            [1, 1, 1, 7, 11],
            [2, 3, 4, 5, 3],
            [3, 2, 1, 1, 9],
            [5, 3, 2, 4, 1],
            [2, 0, 3, 2, 5],
            [1, 6, 2, 1, 4],
        ] {
            let [a, r, b, s, c] = shape.map(|n: u32| n as usize);
            let mut expected = Vec::new();
            for (i, j, k) in (0..a * b * c).map(|at| (at / (b * c), at / c % b, at % c)) {
                let places = (0..r * s).map(|at| (((i * r + at / s) * b + j) * s + at % s) * c + k);
                expected.push(places.map(|at| i32::from(input[at])).sum());
            }
            assert_eq!(sums_of(&input, shape), Some(expected), "{shape:?}");
        }
    }

    #[test]
    fn nothing_beyond_the_operand_is_read() {
        assert_eq!(sums_of(&[1; 12], [1, 3, 1, 1, 4]), Some(std::vec![3; 4]));
        assert_eq!(sums_of(&[1; 11], [1, 3, 1, 1, 4]), None);
        assert_eq!(sums_of(&[1; 12], [u32::MAX, 3, 2, 1, 4]), None);
    }
}
