//! Products of rows of f32 and packed weights (`conv2d_f32`): an element of a row at a time against sixteen channels, rounded behind the product and behind
//! the sum.

use core::arch::x86_64::*;

use super::super::args::ProductF32;

/// Output channels of a group.
const GROUP: usize = 16;

/// The limits of a step's outputs.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    low: __m256,
    high: __m256,
}

impl Limits {
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn new([low, high]: [f32; 2]) -> Self {
        Self {
            low: _mm256_set1_ps(low),
            high: _mm256_set1_ps(high),
        }
    }

    /// Eight sums, with what `residual` has from `at` on if it is not null, within the limits; a NaN becomes the least output, as in `portable`.
    ///
    /// # Safety
    /// `residual` is null or valid for reads of eight numbers from `at` on.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn of(self, mut sum: __m256, residual: *const f32, at: usize) -> __m256 {
        if !residual.is_null() {
            // SAFETY: the caller's promise.
            sum = _mm256_add_ps(sum, unsafe { _mm256_loadu_ps(residual.add(at)) });
        }
        _mm256_min_ps(_mm256_max_ps(sum, self.low), self.high)
    }
}

/// Eight numbers of `table` from `at` on; zeros where it is null.
///
/// # Safety
/// `table` is null or valid for reads of them.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn from(table: *const f32, at: usize) -> __m256 {
    if table.is_null() {
        _mm256_setzero_ps()
    } else {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(table.add(at)) }
    }
}

/// # Safety
/// As for [`super::four_rows_f32`]; the processor has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn rows<const ROWS: usize>(args: *const ProductF32) {
    // SAFETY: the caller passes valid arguments; the layout is that of `conv2d_f32::pack`.
    unsafe {
        let args = &*args;
        let k = 4 * args.quads + args.odd;
        let (stride, limits) = (args.out_stride / 4, Limits::new(args.limits));
        for tile in (0..args.tiles).map(|tile| tile * ROWS) {
            let x = args.x.byte_add(tile * args.x_stride);
            for group in 0..args.groups {
                let weights = args.weights.add(group * GROUP * k);
                let bias = [0, 8].map(|more| from(args.bias, GROUP * group + more));
                let mut sums = [bias; ROWS];
                for i in 0..k {
                    let [w0, w1] = [0, 8].map(|more| _mm256_loadu_ps(weights.add(i * GROUP + more)));
                    for (row, [s0, s1]) in sums.iter_mut().enumerate() {
                        let x = _mm256_set1_ps(*x.byte_add(row * args.x_stride).add(i));
                        *s0 = _mm256_add_ps(*s0, _mm256_mul_ps(x, w0));
                        *s1 = _mm256_add_ps(*s1, _mm256_mul_ps(x, w1));
                    }
                }
                for (row, [s0, s1]) in sums.into_iter().enumerate() {
                    let at = (tile + row) * stride + GROUP * group;
                    _mm256_storeu_ps(args.out.add(at), limits.of(s0, args.residual, at));
                    _mm256_storeu_ps(args.out.add(at + 8), limits.of(s1, args.residual, at + 8));
                }
            }
            if args.rest > 0 {
                rest::<ROWS>(args, k, tile);
            }
        }
    }
}

/// The last group of a tile from row `tile`, of fewer channels, four at a time. Rows are written whole: a row's outputs may lie where the residual of
/// the one before was.
///
/// # Safety
/// As for [`rows`].
#[target_feature(enable = "avx2")]
unsafe fn rest<const ROWS: usize>(args: &ProductF32, k: usize, tile: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let width = args.rest.next_multiple_of(4);
        let weights = args.weights.add(args.groups * GROUP * k);
        let mut sums = [[_mm_setzero_ps(); GROUP / 4]; ROWS];
        for quad in 0..width / 4 {
            let mut of = [_mm_loadu_ps(args.last_bias.add(4 * quad)); ROWS];
            for i in 0..k {
                let w = _mm_loadu_ps(weights.add(i * width + 4 * quad));
                for (row, sum) in of.iter_mut().enumerate() {
                    let x = *args.x.byte_add((tile + row) * args.x_stride).add(i);
                    *sum = _mm_add_ps(*sum, _mm_mul_ps(_mm_set1_ps(x), w));
                }
            }
            for (sums, of) in sums.iter_mut().zip(of) {
                if let Some(sum) = sums.get_mut(quad) {
                    *sum = of;
                }
            }
        }
        let [low, high] = args.limits.map(|limit| _mm_set1_ps(limit));
        for (row, sums) in sums.into_iter().enumerate() {
            let at = (tile + row) * (args.out_stride / 4) + GROUP * args.groups;
            let (mut residual, mut values) = ([0f32; GROUP], [0f32; GROUP]);
            if !args.residual.is_null() {
                let from = args.residual.add(at);
                from.copy_to_nonoverlapping(residual.as_mut_ptr(), args.rest);
            }
            for (quad, mut sum) in sums.into_iter().enumerate() {
                if !args.residual.is_null() {
                    sum = _mm_add_ps(sum, _mm_loadu_ps(residual.as_ptr().add(4 * quad)));
                }
                let value = _mm_min_ps(_mm_max_ps(sum, low), high);
                _mm_storeu_ps(values.as_mut_ptr().add(4 * quad), value);
            }
            values.as_ptr().copy_to_nonoverlapping(args.out.add(at), args.rest);
        }
    }
}
