//! Products of one line and the columns of a matrix, several columns at a time.

#[cfg(kernel_isa = "mve")]
mod mve;

use crate::cells::{Element, Src};
#[cfg(kernel_isa = "mve")]
use mve as helium;

/// Sums that are handed on at a time.
const MOST: usize = 16;

/// Elements `step` from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct Spaced<'a, T> {
    pub(crate) from: Src<'a, T>,
    step: usize,
    pub(crate) count: usize,
}

impl<'a, T: Element + Into<i32>> Spaced<'a, T> {
    /// The first `count` elements from `start` on. `None` where there are fewer.
    pub(crate) fn new(all: Src<'a, T>, start: usize, step: usize, count: usize) -> Option<Self> {
        let reach = count.checked_sub(1)?.checked_mul(step)?.checked_add(1)?;
        let from = all.slice(start, reach)?;
        Some(Self { from, step, count })
    }

    /// Their sum. Reads `count` elements and none between them.
    pub(crate) fn sum(self) -> i64 {
        let sum = |sum: i64, x: T| sum.wrapping_add(i64::from(x.into()));
        let elements = (0..self.count).filter_map(|i| self.from.get(i.wrapping_mul(self.step)));
        elements.fold(0, sum)
    }

    /// Sums of one product with each element of the first `N` columns of `m`, whose rows have `width` elements.
    ///
    /// # Safety
    /// `m` points to `self.count` rows, `width` elements apart, the last of `N` elements at least.
    // A function by itself: within a kernel the loop would have no registers left.
    #[inline(never)]
    unsafe fn block<S: Copy + Default, const N: usize>(
        self,
        m: *const T,
        width: usize,
        add: impl Fn(S, i32, i32) -> S + Copy,
    ) -> [S; N] {
        let (mut x, mut m, mut sums) = (self.from.as_ptr(), m, [S::default(); N]);
        for _ in 0..self.count {
            // SAFETY: one of `self.count` elements of `self.from`, and `N` columns of the row that belongs to it, which the contract guarantees.
            let (value, row) = unsafe { (x.read(), m.cast::<[T; N]>().read_unaligned()) };
            for (sum, w) in sums.iter_mut().zip(row) {
                *sum = add(*sum, value.into(), w.into());
            }
            (x, m) = (x.wrapping_add(self.step), m.wrapping_add(width));
        }
        sums
    }

    /// All columns, `N` at a time, and those that are left one by one.
    #[inline(always)]
    fn blocks<S: Copy + Default, const N: usize>(
        self,
        m: Src<'_, T>,
        width: usize,
        add: impl Fn(S, i32, i32) -> S + Copy,
        mut put: impl FnMut(usize, &mut [S]) -> Option<()>,
    ) -> Option<()> {
        if self.count.checked_mul(width)? > m.len() {
            return None;
        }
        let (mut at, mut sums) = (0usize, [S::default(); MOST]);
        while at < width {
            let sums = sums.get_mut(..width.wrapping_sub(at).min(MOST))?;
            let m = m.as_ptr().wrapping_add(at);
            let (blocks, rest) = sums.as_chunks_mut::<N>();
            for (i, block) in blocks.iter_mut().enumerate() {
                // SAFETY: a row for each element, as just checked, of which N columns are left.
                *block = unsafe { self.block(m.wrapping_add(i.wrapping_mul(N)), width, add) };
            }
            let done = blocks.len().wrapping_mul(N);
            for (i, sum) in rest.iter_mut().enumerate() {
                // SAFETY: `self.count` rows of `width` elements lie in `m`, as just checked, and at least one column is left.
                [*sum] = unsafe { self.block(m.wrapping_add(done).wrapping_add(i), width, add) };
            }
            put(at, sums)?;
            at = at.wrapping_add(sums.len());
        }
        Some(())
    }
}

/// Calls `put` with an index and `sum of (x[k] - zero) * m[k, i]`, modulo 2^32, of the columns from it on, of `width` in all. `None` where m is smaller, or
/// where `put` says so.
#[cfg(not(kernel_isa = "mve"))]
#[inline(always)]
pub(crate) fn columns_s8(
    x: Spaced<'_, i8>,
    zero: i32,
    m: Src<'_, i8>,
    width: usize,
    put: impl FnMut(usize, &mut [i32]) -> Option<()>,
) -> Option<()> {
    let add = move |sum: i32, x: i32, w: i32| sum.wrapping_add(x.wrapping_sub(zero).wrapping_mul(w));
    x.blocks::<i32, 4>(m, width, add, put)
}

/// The same on Helium.
#[cfg(kernel_isa = "mve")]
#[inline(always)]
pub(crate) fn columns_s8(
    x: Spaced<'_, i8>,
    zero: i32,
    m: Src<'_, i8>,
    width: usize,
    mut put: impl FnMut(usize, &mut [i32]) -> Option<()>,
) -> Option<()> {
    if x.count.checked_mul(width)? > m.len() {
        return None;
    }
    let (mut at, mut sums) = (0usize, [0_i32; MOST]);
    while at < width {
        let args = helium::MatmulColumnsArgs {
            x: x.from.as_ptr(),
            step: x.step,
            count: x.count,
            m: m.as_ptr().wrapping_add(at),
            width,
            sums: sums.as_mut_ptr(),
            zero,
            columns: width.wrapping_sub(at),
        };
        // SAFETY: elements, which are not none, and a row for each, as just checked, of which these columns are left.
        let done = unsafe { helium::columns(&args) };
        put(at, sums.get_mut(..done)?)?;
        at = at.wrapping_add(done);
    }
    Some(())
}

/// Calls `put` with an index and `sum of x[k] * m[k, i]`, modulo 2^64, of the columns from it on, of `width` in all. `None` as above.
#[inline(always)]
pub(crate) fn columns_s16(
    x: Spaced<'_, i16>,
    m: Src<'_, i16>,
    width: usize,
    put: impl FnMut(usize, &mut [i64]) -> Option<()>,
) -> Option<()> {
    x.blocks::<i64, 2>(m, width, add_wide, put)
}

/// A product on top of a sum of 64 bits: of int16 it has 32.
#[inline(always)]
pub(crate) fn add_wide(sum: i64, x: i32, w: i32) -> i64 {
    sum.wrapping_add(if cfg!(kernel_isa = "armv7m") {
        // One instruction.
        i64::from(x).wrapping_mul(w.into())
    } else {
        x.wrapping_mul(w).into()
    })
}
